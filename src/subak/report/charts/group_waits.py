"""Charts of wait times by priority and by gang width."""
from collections.abc import Callable
from functools import partial

import altair as alt
import polars as pl

from subak.measures import series
from subak.measures.runs import Run, groups
from subak.report.charts.parts import (
    Chart,
    any_below,
    at_least,
    colour,
    drawn_rows,
    faded,
    finished,
    second_axis,
    second_range,
    second_scale,
    shape,
    tooltips,
    worded,
)
from subak.report.number_text import count_text, seconds_text

GROUPS_SHOWN = 16  # of a kind
TITLES = {"priority": "Wait time by priority", "gang": "Wait time by width of gangs"}
SUBTITLES = {"priority": "higher priorities above", "gang": "tasks that start together; 1 is a task by itself"}
AXES = {"priority": "priority", "gang": "tasks of a gang"}


def group_wait_makers(runs: list[Run]) -> dict[str, Callable[[], Chart]]:
    """Return the charts by name, still to be drawn: of the kinds of which there are several groups."""
    tables = {kind: series.group_waits(runs, kind, GROUPS_SHOWN) for kind in TITLES}
    return {f"wait-by-{kind}": partial(group_waits, runs, kind, table) for kind, table in tables.items()
            if table["name"].n_unique() > 1}


def group_waits(runs: list[Run], kind: str, table: pl.DataFrame) -> Chart:
    """Draw the mean wait of each group, and up to where 95 % of its tasks waited; a mark a scheduler."""
    floor, top = second_range([*table["mean"], *table["p95"]])
    is_below = any_below(table["mean"], floor) or any_below(table["p95"], floor)
    for name, title in (("mean", "mean wait"), ("p95", "95 % waited at most")):
        table = worded(table, name, title, seconds_text)
    table = worded(table, "tasks", "tasks in it", count_text)
    rows = at_least(at_least(drawn_rows(table), "mean", floor), "p95", floor)
    x = alt.X("mean_drawn:Q", title="mean wait time, and a line to what 95 % waited at most",
              scale=second_scale(floor / 1.3, top * 1.3),
              axis=second_axis(floor, top, is_below))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("name:N", title=AXES[kind], sort=ordered(kind, table["name"].unique().to_list()),
                axis=alt.Axis(grid=True, tickBand="extent", ticks=False)),
        yOffset=alt.YOffset("scheduler:N", sort=list(groups(runs)), scale=alt.Scale(paddingOuter=0.35)),
        color=colour(runs), opacity=faded(),
        tooltip=tooltips("name", "scheduler", "tasks in it", "mean wait", "95 % waited at most"))
    lines = base.mark_rule(strokeWidth=1.5, clip=True).encode(x=x, x2="p95_drawn:Q")
    marks = base.mark_point(filled=True, size=70, clip=True).encode(x=x, shape=shape(runs))
    drawn = table["name"].n_unique()
    chart = alt.LayerChart(layer=[lines, marks], height=max(160, drawn * max(22, 10 * len(groups(runs)))))
    return finished(chart, runs, TITLES[kind], f"Of the tasks that started; {SUBTITLES[kind]}", encodings=["x"])


def ordered(kind: str, names: list[str]) -> list[str]:
    """Return the names of groups as they stand below each other: the highest priority first, the narrowest gang."""
    return sorted(names, key=lambda name: int(name.split()[0]), reverse=kind == "priority")
