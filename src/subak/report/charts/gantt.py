"""The Gantt chart of a batch: which job each machine ran when."""
import math
from collections.abc import Callable
from functools import partial

import altair as alt
import polars as pl

from subak.measures.batch import KINDS
from subak.measures.runs import Run, groups
from subak.report.charts.parts import Chart, drawn_rows, tooltips
from subak.report.charts.theme import SERIES
from subak.report.charts.times import Times, times_of
from subak.report.number_text import seconds_text

RUNS_DRAWN = 4  # schedulers, one run of each
STINTS_DRAWN = 2_400  # of one chart; more would make the page slow, so then fewer machines are shown
SLOT_HEIGHT = 9  # pixels


def gantt_makers(runs: list[Run]) -> dict[str, Callable[[], Chart]]:
    """Return a chart for the first run of each scheduler that has stints, of the four with the least makespans."""
    firsts = [members[0] for members in groups(runs).values() if members[0].summary.makespan_bound is not None]
    firsts.sort(key=lambda run: run.summary.makespan or math.inf)
    return {f"gantt-{run.label}": partial(gantt, run) for run in firsts[:RUNS_DRAWN]}


def gantt(run: Run) -> Chart:
    """Draw a row a slot, a bar a stint; maps above reduces, a job in the same colour in both."""
    table = _shown(run.stints().collect())
    times = times_of([run])
    rows = times.in_unit(table, "begin", "end").with_columns(
        (pl.col("machine") + pl.when(pl.col("slot") > 0).then(pl.format(" / {}", pl.col("slot") + 1)).otherwise(
            pl.lit(""))).alias("row"),
        pl.Series("lasts", [seconds_text(end - begin) for begin, end in table.select("begin", "end").iter_rows()],
                  dtype=pl.String),
        (pl.col("job").rank("dense") % len(SERIES)).alias("shade"))
    panels = [_panel(rows.filter(pl.col("kind") == kind), kind, times) for kind in KINDS
              if (rows["kind"] == kind).any()]
    counts = {kind: table.filter(pl.col("kind") == kind)["machine"].n_unique() for kind in KINDS}
    shown = " and ".join(f"{count} that ran {kind}s" for kind, count in counts.items() if count)
    title = alt.Title(f"Who ran when: {run.group}",
                      subtitle=f"The first machines, {shown}; a bar for tasks of a job in a row; colours repeat after "
                               f"{len(SERIES)} jobs")
    chart = alt.LayerChart(layer=panels)
    slots = rows.select(pl.struct("kind", "row").n_unique()).item()
    return chart.properties(title=title, width="container", height=max(120, SLOT_HEIGHT * slots),
                            description=f"Gantt chart of {run.label}: {shown}")


def _panel(rows: pl.DataFrame, kind: str, times: Times) -> alt.Chart:
    named = rows.with_columns((pl.lit(f"{kind} ") + pl.col("row")).alias("row"))
    chart: alt.Chart = alt.Chart(alt.InlineData(values=drawn_rows(named))).mark_bar(height={"band": 0.9}).encode(
        x=times.x("begin"), x2="end:Q",
        y=alt.Y("row:N", title=None, sort=None, axis=alt.Axis(labelOverlap=True, grid=False, ticks=False)),
        color=alt.Color("shade:N", legend=None), tooltip=tooltips("job", "row", "tasks", "lasts"))
    return chart


def _shown(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out the last machines of each kind until the chart is small enough, keeping one of each."""
    while len(table) > STINTS_DRAWN:
        machines = table.group_by("kind", maintain_order=True).agg(pl.col("machine").unique(maintain_order=True))
        if machines["machine"].list.len().max() == 1:
            return table.head(STINTS_DRAWN)
        kept = machines.with_columns(pl.col("machine").list.head((pl.col("machine").list.len() + 1) // 2))
        table = table.join(kept.explode("machine"), on=["kind", "machine"], how="semi", maintain_order="left")
    return table
