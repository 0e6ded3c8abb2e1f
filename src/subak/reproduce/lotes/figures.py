"""The charts of the LoTES paper's figures and of those past it."""
from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

from subak.report.charts.fit import dressed
from subak.reproduce.claims import Figure, title_of
from subak.reproduce.figure_parts import FIGURE_HEIGHT, FIGURE_WIDTH, LOG, base, colour, escaped

LEAST_S, LEAST_TASKS = 1e-3, 0.01  # what is shown at the foot of a logarithmic axis, for all below it


def draw(figure: Figure) -> alt.TopLevelMixin:
    """Return the chart of a figure."""
    table = figure.table if figure.points is None else figure.points
    return dressed(DRAWN[figure.key](table).properties(title=title_of(figure)))


def _panels(points: pl.DataFrame, make: Callable[[pl.DataFrame], Any]) -> Any:
    places = points["place"].unique(maintain_order=True)
    return alt.vconcat(*(make(points.filter(pl.col("place") == place)).properties(title=f"the {place}")
                         for place in places)).resolve_scale(x="independent", y="independent")


def _time(name: str, words: str) -> Any:
    return alt.Y(f"{escaped(name)}:Q", title=words, scale=LOG, axis=alt.Axis(format="~g", tickCount=6))


def _waits(points: pl.DataFrame) -> Any:
    return _panels(points, lambda part: base(_raised(part, "mean wait (s)", LEAST_S)).mark_line(point=True).encode(
        x=alt.X("interval:Q", title="day, or hour of the trace"),
        y=_time("mean wait (s)", "mean wait (s), logarithmic"), color=colour("scheduler", sort=None)))


def _raised(table: pl.DataFrame, name: str, least: float) -> pl.DataFrame:
    return table.with_columns(pl.col(name).clip(lower_bound=least))


def _distribution(points: pl.DataFrame) -> Any:
    return _panels(points, lambda part: base(part).mark_line().encode(
        x=alt.X(f"{escaped('wait (s)')}:Q", title="wait (s), logarithmic", scale=LOG,
                axis=alt.Axis(format="~g", tickCount=8)),
        y=_time("longer (share)", "share that is longer, logarithmic"), color=colour("scheduler", sort=None)))


def _queue(points: pl.DataFrame) -> Any:
    return _panels(points, lambda part: base(_raised(part, "waiting", LEAST_TASKS)).mark_line(strokeWidth=1).encode(
        x=alt.X(f"{escaped('time (h)')}:Q", title="time (h)"),
        y=_time("waiting", "tasks that wait, logarithmic"), color=colour("scheduler", sort=None)))


def _bins(table: pl.DataFrame) -> Any:
    shown = table.with_columns(pl.format("{}: {}, {}", "machines", "cores", "memory").alias("configuration"))
    return base(shown).mark_bar().encode(
        x=alt.X("bins:Q", title="bins"), y=alt.Y("configuration:N", sort=None, title="machines: cores, memory"),
        color=colour("classes", "classes"))


def _classes(table: pl.DataFrame) -> Any:
    return base(table).mark_point(filled=True, size=90).encode(
        x=alt.X(f"{escaped('cores (share)')}:Q", title="cores, of those of the largest machine, logarithmic", scale=LOG,
                axis=alt.Axis(format=".3~%")),
        y=alt.Y(f"{escaped('of the tasks (share)')}:Q", title="of the tasks, logarithmic", scale=LOG,
                axis=alt.Axis(format=".3~%")),
        color=colour("whose", sort=None))


def _bars(table: pl.DataFrame) -> Any:
    places = table["place"].unique(maintain_order=True) if "place" in table.columns else [None]
    parts = [table if place is None else table.filter(pl.col("place") == place) for place in places]
    return alt.vconcat(*(base(_raised(part, "mean wait (s)", LEAST_S)).mark_point(filled=True, size=90).encode(
        x=alt.X(f"{escaped('mean wait (s)')}:Q", title="mean wait (s), logarithmic", scale=LOG,
                axis=alt.Axis(format="~g", tickCount=6)),
        y=alt.Y("scheduler:N", sort=None, title=None)).properties(title="" if place is None else f"the {place}")
        for place, part in zip(places, parts, strict=True)))


def _grows(name: str, how: str = "%") -> Callable[[pl.DataFrame], Any]:
    return lambda table: base(_raised(table, "mean wait (s)", LEAST_S)).mark_line(point=True).encode(
        x=alt.X(f"{escaped(name)}:Q", title=name.removesuffix(" (share)"), axis=alt.Axis(format=how)),
        y=_time("mean wait (s)", "mean wait (s), logarithmic"),
        color=colour("scheduler", sort=None)).properties(width=FIGURE_WIDTH, height=FIGURE_HEIGHT)


def _placements(table: pl.DataFrame) -> Any:
    return base(table).mark_bar().encode(
        x=alt.X(f"{escaped('mean allocation time (s)')}:Q", title="mean allocation time (s)"),
        y=alt.Y("placement:N", sort=None, title=None), color=colour("placement", sort=None))


DRAWN: dict[str, Callable[[pl.DataFrame], Any]] = {
    "tables": _bins, "classes": _classes, "6": _waits, "7": _distribution, "8": _queue, "why": _bars,
    "loads": _grows("load (share)"),
    "options": _bars, "errors": _grows("error (share)"), "federation": _placements, "mix": _bars,
    "usage": _grows("swing (share)"), "locality": _grows("run time far from the data (times)", ".1f"),
    "fairness": _bars,
}
