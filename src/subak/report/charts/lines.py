"""Line charts whose values a pointer reads off, from one wide table.

A page shows, at the nearest row to a pointer, the values of all lines; what it needs for that is in the chart's
`usermeta`, which no picture shows.
"""
from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import polars as pl

from subak.json_type import Json
from subak.measures.runs import Run
from subak.report.charts.parts import Row, colour, faded

GRID_MAX = 240  # places on the axis of a distribution: one every three pixels of a picture
DASHES = ([1, 0], [4, 3], [2, 2], [8, 2, 2, 2])  # of what a line shows, the first one solid


class Line(NamedTuple):
    """A line of a chart: whose it is, and what it shows where a run has several."""

    run: str
    scheduler: str
    what: str = ""


class Lines(NamedTuple):
    """What a chart of lines draws: ``x``, a column ``l0``, ``l1``, ... a line, and ``facet`` where it has panels."""

    table: pl.DataFrame
    lines: list[Line]


class Reading(NamedTuple):
    """How values are read off a chart: the titles of x and y, and how numbers become words (page.js has the words)."""

    x: str
    x_text: str
    y: str
    y_text: str
    begins: float | None = None  # of instants: milliseconds since 1970 at x = 0, and of one in x
    unit: float | None = None


def over_time(table: pl.DataFrame, x: str, y: str, every: Sequence[Line] = ()) -> Lines:
    """Put lines (run, scheduler, what, *x*, *y*) on the places of the one with most points, by straight lines.

    With *every*, the columns are those lines, of which some may have no points.
    """
    found = _by_line(table, x, y)
    grid = _longest(list(found.values()))
    nothing = np.empty(0), np.empty(0)
    return _lines(grid, {line: _between(*found.get(line, nothing), grid) for line in every or found})


def exceedances(table: pl.DataFrame, least: float, x: str = "value", y: str = "share") -> Lines:
    """Put distributions on common places from *least* on: at each, the share (of one) that is larger."""
    found = _by_line(table, x, y)
    grid = _thinned(np.concatenate([places for places, _ in found.values()] or [np.empty(0)]), least)
    return _lines(grid, {line: _larger(places, values, grid) for line, (places, values) in found.items()})


def line_chart(drawn: Lines, runs: list[Run], reading: Reading, least: float | None = None,
               **options: Json) -> alt.Chart:
    """Start a chart of thin lines in y, a colour a scheduler and a dash for what is shown.

    With *least*, y is on a logarithmic axis from there: smaller values are drawn on its end, and zero with them where
    the axis is one of time; a share of zero is not drawn.
    """
    keys = _keys(drawn)
    rows = rounded(drawn.table)
    named = [{"line": key, **line._asdict()} for key, line in zip(keys, drawn.lines, strict=True)]
    chart: alt.Chart = alt.Chart(alt.InlineData(values=rows)).mark_line(clip=True, strokeWidth=1.75, **options)
    chart = chart.transform_fold(list[str | alt.FieldName](keys), as_=["line", "y"]).transform_lookup(
        lookup="line", from_=alt.LookupData(data=alt.InlineData(values=named), key="line", fields=list(Line._fields)))
    if least is not None:
        zero = least if reading.y_text == "seconds" else "null"
        chart = chart.transform_calculate(y=f"isValid(datum.y) ? (datum.y > 0 ? max(datum.y, {least}) : {zero}) : null")
    chart = chart.encode(color=colour(runs), detail="run:N", strokeOpacity=faded())
    whats = list(dict.fromkeys(line.what for line in drawn.lines))
    if len(whats) > 1:
        chart = chart.encode(strokeDash=alt.StrokeDash(
            "what:N", scale=alt.Scale(domain=whats, range=list(DASHES[:len(whats)])),
            legend=alt.Legend(symbolType="stroke", symbolSize=300)))
    facets = drawn.table["facet"].unique(maintain_order=True).to_list() if "facet" in drawn.table.columns else []
    meta = {"reading": reading._asdict(), "lines": named, **({"facets": facets} if facets else {})}
    return chart.properties(usermeta=meta)


def rounded(table: pl.DataFrame) -> list[Row]:
    """Return the rows with four digits a number, which is more than a screen shows; x keeps seven, to stay in order."""
    values = pl.selectors.float().exclude("x").round_sig_figs(4)
    exact = table.with_columns(values, pl.col("x").round_sig_figs(7)).to_dicts()
    return [{name: _short(value) for name, value in row.items() if value is not None} for row in exact]


def stacked(facets: dict[str, Lines]) -> Lines:
    """Put panels below each other, in their order; all have the same lines."""
    tables = [drawn.table.with_columns(facet=pl.lit(name)) for name, drawn in facets.items()]
    lines = next((drawn.lines for drawn in facets.values()), [])
    return Lines(pl.concat(tables, how="diagonal"), lines)


def _short(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _keys(drawn: Lines) -> list[str]:
    return [f"l{number}" for number in range(len(drawn.lines))]


def _by_line(table: pl.DataFrame, x: str, y: str) -> dict[Line, tuple[np.ndarray, np.ndarray]]:
    """Return the places and values of each line, in order of its places."""
    names = [name for name in Line._fields if name in table.columns]
    parts = ((Line(*key), part.sort(x)) for key, part in table.drop_nulls(y).group_by(names, maintain_order=True))
    return {line: (part[x].to_numpy(), part[y].cast(pl.Float64).to_numpy()) for line, part in parts}


def _lines(grid: np.ndarray, columns: dict[Line, np.ndarray]) -> Lines:
    table = pl.DataFrame({"x": grid, **{f"l{number}": values for number, values in enumerate(columns.values())}},
                         schema_overrides={"x": pl.Float64}, nan_to_null=True)
    return Lines(table, list(columns))


def _longest(lines: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the places of the line that has most, and those of others beyond its ends."""
    most = max((places for places, _ in lines), key=len, default=np.empty(0))
    if len(most) == 0:
        return most
    others = np.concatenate([places for places, _ in lines])
    step = _step(most)
    outside = others[(others < most[0] - step) | (others > most[-1] + step)]
    return np.unique(np.concatenate([most, outside]))


def _step(places: np.ndarray) -> float:
    return float(np.median(np.diff(places))) if len(places) > 1 else 0.0


def _between(places: np.ndarray, values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Return a line's values at *grid*; nothing where it had not begun or has ended, to within a step."""
    if len(places) == 0:
        return np.full(len(grid), np.nan)
    step = max(_step(places), _step(grid))
    inside = (grid >= places[0] - step) & (grid <= places[-1] + step)
    return np.where(inside, np.interp(grid, places, values), np.nan)


def _thinned(values: np.ndarray, least: float) -> np.ndarray:
    """Return *least* and at most GRID_MAX of the values above it, evenly spread on a logarithmic axis."""
    ordered = np.unique(values[values > least])
    if len(ordered) > GRID_MAX:
        wanted = np.geomspace(ordered[0], ordered[-1], GRID_MAX)
        ordered = ordered[np.unique(np.searchsorted(ordered, wanted * (1 - 1e-12)))]
    return np.concatenate([[least], ordered])


def _larger(places: np.ndarray, shares: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Return the share above each of *grid*, of the shares above each of *places*: steps down."""
    before = np.searchsorted(places, grid, side="right")
    return np.concatenate([[1.0], shares])[before]
