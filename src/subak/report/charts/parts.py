"""The common parts of charts: axes, colours and shapes of schedulers, zoom, legends."""
import math
from collections.abc import Callable, Sequence
from typing import Literal

import altair as alt
import polars as pl

from subak.json_type import Json
from subak.measures.runs import Run, groups

# Steps of a logarithmic axis of time, seconds; between the first and the last lie 100 microseconds and 1,000 days.
SECOND_LADDER = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36_000.0, 864_000.0, 8_640_000.0, 86_400_000.0)
SECOND_LADDER_DENSE = tuple(sorted(
    [step * part for step in SECOND_LADDER if step < 60 for part in (1, 2, 5) if step < 10 or part < 5]
    + [30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 18_000.0, 43_200.0]
    + [86_400.0 * part * step for step in (1, 10, 100) for part in (1, 2, 5)]
))
SECOND_LABEL = (
    "datum.value >= 86400 ? format(datum.value / 86400, '~r') + ' d' : "
    "datum.value >= 3600 ? format(datum.value / 3600, '~r') + ' h' : "
    "datum.value >= 60 ? format(datum.value / 60, '~r') + ' min' : "
    "datum.value >= 0.1 ? format(datum.value, '~r') + ' s' : format(datum.value * 1000, '~r') + ' ms'"
)
COUNT_LABEL = "format(datum.value, '~s')"
ZOOM_ON = "wheel![event.ctrlKey || event.metaKey]"  # a plain wheel scrolls the page, as everywhere else
PAN_ON = "[pointerdown[event.pointerType === 'mouse'], window:pointerup] > window:pointermove!"

HEIGHT = 240  # pixels of a chart

Chart = alt.Chart | alt.LayerChart
Row = dict[str, Json]  # of a chart's data


def finished(chart: Chart, runs: list[Run], title: str, subtitle: str,
             encodings: Sequence[Literal["x", "y"]] = ("x", "y"), legend_names: Sequence[str] = ()) -> Chart:
    """Add what all charts have: title, description, size, zoom and a legend that picks out one scheduler."""
    names = list(groups(runs))
    meta = {} if chart.usermeta is alt.Undefined else chart.usermeta
    sized = chart.properties(title=alt.Title(title, subtitle=subtitle), width="container",
                             description=f"{title}. {subtitle}. Schedulers: {', '.join(names)}.",
                             usermeta={**meta, "legend": [*names, *legend_names]})
    if chart.height is alt.Undefined:
        sized = sized.properties(height=HEIGHT)
    pick = alt.selection_point(name="pick", fields=["scheduler"], bind="legend")
    if "facets" in meta:  # a drag in one of several panels would move them all
        return sized.add_params(pick)
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=encodings, zoom=ZOOM_ON, translate=PAN_ON)
    return sized.add_params(zoom, pick)


def colour(runs: list[Run]) -> alt.Color:
    """One colour a scheduler, the same in every chart; a lone scheduler needs no legend."""
    return alt.Color("scheduler:N", scale=alt.Scale(domain=list(groups(runs))), legend=legend(runs))


def legend(runs: list[Run]) -> alt.Legend | None:
    """Return a legend of schedulers; a lone one needs none."""
    return alt.Legend() if len(groups(runs)) > 1 else None


def shape(runs: list[Run]) -> alt.Shape:
    """One shape a scheduler, the same in every chart."""
    return alt.Shape("scheduler:N", scale=alt.Scale(domain=list(groups(runs))), legend=legend(runs))


def faded() -> Json:
    """Return the opacity of a mark: faint while another scheduler is picked out."""
    picked = alt.selection_point(name="pick", fields=["scheduler"])
    return alt.when(picked).then(alt.value(1)).otherwise(alt.value(0.12))


def tooltips(*names: str) -> list[alt.Tooltip]:
    """Return the tooltips of columns of words, titled by their names."""
    return [alt.Tooltip(f"{name}:N", title=name) for name in names]


def worded(table: pl.DataFrame, name: str, title: str, text: Callable[[float], str]) -> pl.DataFrame:
    """Add *name* in words as the column *title*, which a tooltip shows."""
    return table.with_columns(pl.Series(title, [text(value) for value in table[name]], dtype=pl.String))


def drawn_rows(table: pl.DataFrame) -> list[Row]:
    """Return the rows with numbers rounded: five digits are more than a screen shows, and the page stays small."""
    return table.with_columns(pl.selectors.float().round_sig_figs(5)).to_dicts()


def at_least(rows: list[Row], name: str, floor: float) -> list[Row]:
    """Lift what a logarithmic axis cannot hold to its lower end; the axis labels that end as "at most"."""
    return [{**row, f"{name}_drawn": max(row[name], floor)} for row in rows]


def any_below(values: pl.Series, floor: float) -> bool:
    """Whether a value lies below the end of its axis."""
    return bool((values < floor).any())


def second_range(values: list[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic time axis: a step of the ladder under nearly all waits, and the longest."""
    positive = sorted(value for value in values if value > 0)
    if not positive:
        return 0.1, 10.0
    low = max(positive[len(positive) // 50], positive[-1] * 1e-8)
    floor = max((step for step in SECOND_LADDER if step <= low), default=SECOND_LADDER[0])
    return floor, max(positive[-1] * 1.15, floor * 10)


def second_scale(floor: float, top: float) -> alt.Scale:
    """Return the logarithmic scale of a time axis."""
    return alt.Scale(type="log", domain=[floor, top], nice=False)


def second_axis(floor: float, top: float, below: bool) -> alt.Axis:
    """Label a time axis in s, min, h and d; its lower end says "≤" where shorter waits are drawn on it."""
    steps = [step for step in SECOND_LADDER if floor <= step <= top]
    if len(steps) < 5:
        steps = [step for step in SECOND_LADDER_DENSE if floor <= step <= top]
    label = f"datum.value <= {floor} ? '≤ ' + ({SECOND_LABEL}) : ({SECOND_LABEL})" if below else SECOND_LABEL
    return alt.Axis(values=steps, labelExpr=label)


def share_axis(table: pl.DataFrame, title: str) -> tuple[alt.Y, float]:
    """Return the logarithmic axis of a share of tasks, and its lower end."""
    least = table.filter(pl.col("share") > 0)["share"].min()
    bottom = 10 ** math.floor(math.log10(float(least))) if isinstance(least, float) else 0.01  # a float, or no rows
    axis = alt.Axis(values=tens(bottom, 1), format="~%")
    bottom = min(bottom, 0.1)
    return alt.Y("y:Q", title=title, scale=alt.Scale(type="log", domain=[bottom, 1], nice=False), axis=axis), bottom


def tens(least: float, most: float) -> list[float]:
    """Return the powers of ten from *least* to *most*, and at least two of them."""
    first = math.floor(math.log10(least))
    return [float(f"1e{power}") for power in range(first, max(first + 1, math.floor(math.log10(max(most, least)))) + 1)]
