"""Charts of fairness: shares over time, what queues lacked, and wait time against fairness."""
from collections.abc import Callable
from functools import partial

import altair as alt
import polars as pl

from subak.measures import series
from subak.measures.runs import FairnessFacts, Run, groups
from subak.report.charts.lines import Line, line_chart, over_time, stacked
from subak.report.charts.parts import (
    COUNT_LABEL,
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
from subak.report.charts.some_queues import of_queues
from subak.report.charts.times import times_of
from subak.report.number_text import ratio_text, seconds_text, share_text
from subak.report.short_names import shortened

QUEUES_DRAWN = 5  # each in a panel of its own, all on one scale
QUEUE_PANEL_HEIGHT = 56  # pixels
RUNS_MAX = 8  # whose shares are drawn, as many as there are colours that can be told apart
BARS_MAX = 5  # queues of the chart of shortfalls
AGAINST = ("shortfall", "jain")  # what wait time is drawn against
LABEL_WIDTH = 180  # pixels of a queue's name


def fairness_chart_makers(runs: list[Run]) -> dict[str, Callable[[], Chart]]:
    """Return the charts of fairness by their names, still to be drawn; none where no run has several queues."""
    fair = [run for run in runs if run.summary.fairness]
    if not fair:
        return {}
    against = {f"wait-against-{what}": partial(wait_against, fair, what) for what in AGAINST}
    return {**(against if len(groups(fair)) > 1 else {}), "shortfall": partial(queue_shortfall, fair),
            "queue-shares": partial(queue_shares, fair)}


def queue_shares(runs: list[Run]) -> Chart:
    """Draw the dominant shares and guarantees of the largest queues of the topmost level with several, a panel each."""
    first = [group[0] for group in groups(runs).values()][:RUNS_MAX]
    level = first_level(first[0].summary.fairness)
    facts = first[0].summary.fairness
    count = facts.levels[level - 1].queues if facts and facts.levels else 0
    queues = _largest(first, level)
    shown = of_queues(first, tuple(queues))
    times = times_of(shown)
    table = pl.concat(
        series.shares_over_time(run, level, len(queues)).select(
            pl.lit(run.label).alias("run"), pl.lit(run.group).alias("scheduler"), pl.all()) for run in shown)
    long = table.unpivot(["share", "guarantee"], index=["run", "scheduler", "queue", "time"],
                         variable_name="what", value_name="part")
    short = shortened(queues)
    every = list(dict.fromkeys(Line(*key) for key in long.select("run", "scheduler", "what").iter_rows()))
    timed = times.in_unit(long)
    drawn = stacked({short[queue]: over_time(timed.filter(pl.col("queue") == queue), "time", "part", every)
                     for queue in queues})
    chart = line_chart(drawn, runs, times.reading("dominant share", "share")).encode(
        x=times.x(), y=alt.Y("y:Q", title=None, axis=alt.Axis(format="~%", tickCount=3)),
        facet=alt.Facet("facet:N", title=None, sort=list(short.values()), columns=1, spacing=12,
                        header=alt.Header(labelAnchor="start", labelPadding=3)))
    which = f"The {len(queues)} largest of {count} queues" if count > len(queues) else "All queues"
    return finished(chart.properties(height=QUEUE_PANEL_HEIGHT), runs, "Shares of queues",
                    f"{which} of level {level}, dominant share in the mean of each period, and what each is guaranteed",
                    legend_names=["share", "guarantee"])


def _largest(runs: list[Run], level: int) -> list[str]:
    """Return the queues of a level that held most, in the mean over the runs."""
    held = pl.concat(
        run.shares().filter((pl.col("level") == level) & pl.col("queue").is_not_null())
        .group_by(pl.col("queue").cast(pl.String)).agg((pl.col("share") * pl.col("span")).sum()).collect()
        for run in runs)
    ranked = held.group_by("queue").agg(pl.col("share").sum()).sort(["share", "queue"], descending=[True, False])
    return ranked.head(QUEUES_DRAWN)["queue"].to_list()


def queue_shortfall(runs: list[Run]) -> Chart:
    """Draw the share-seconds that queues lacked while tasks of them waited, a bar a scheduler; means over seeds."""
    table = pl.concat(
        run.queues().filter("leaf").select(
            pl.lit(run.group).alias("scheduler"), "queue", "shortfall", "shortfall_mean", "starved_longest").collect()
        for run in runs)
    table = table.group_by("scheduler", "queue", maintain_order=True).agg(pl.all().mean())
    ranked = table.group_by("queue").agg(pl.col("shortfall").max()).sort("shortfall", "queue", descending=[True, False])
    short = shortened(ranked.head(BARS_MAX)["queue"].to_list())
    worst = list(short.values())
    drawn = table.filter(pl.col("queue").is_in(list(short))).with_columns(pl.col("queue").replace_strict(short))
    drawn = worded(drawn, "shortfall_mean", "lacked in the mean", share_text)
    drawn = worded(drawn, "starved_longest", "longest starved", seconds_text)
    chart = alt.Chart(alt.InlineData(values=drawn_rows(drawn))).mark_bar().encode(
        x=alt.X("shortfall:Q", title="share-seconds below the guarantee",
                axis=alt.Axis(labelExpr=COUNT_LABEL, tickCount=6)),
        y=alt.Y("queue:N", title=None, sort=worst, axis=alt.Axis(labelLimit=LABEL_WIDTH)),
        yOffset=alt.YOffset("scheduler:N", sort=list(groups(runs))), color=colour(runs), opacity=faded(),
        tooltip=[*tooltips("scheduler", "queue"), alt.Tooltip("shortfall:Q", format=",.3~g"),
                 *tooltips("lacked in the mean", "longest starved")])
    sized = chart.properties(height=max(120, len(worst) * (8 * len(groups(runs)) + 10)))
    return finished(sized, runs, "Shortfall of queues",
                    f"While tasks waited: guarantee less dominant share, over time; the {len(worst)} queues with most",
                    encodings=["x"])


def wait_against(runs: list[Run], what: str) -> Chart:
    """Draw the mean wait time of each run against how fair it was to its queues."""
    rows = [{"run": run.label, "scheduler": run.group, "seconds": run.summary.wait_time.mean,
             "wait time": seconds_text(run.summary.wait_time.mean), **_fairness(run.summary.fairness)}
            for run in runs]
    table = pl.DataFrame(rows, schema_overrides={"seconds": pl.Float64, "shortfall": pl.Float64, "jain": pl.Float64})
    table = table.drop_nulls(["seconds", what])
    floor, top = second_range(table["seconds"].to_list())
    floor, top = floor / 1.3, top * 1.3
    title, spelled = {"shortfall": ("mean share that a waiting queue lacked", "shortfall"),
                      "jain": ("Jain's index of waiting queues", "Jain's index")}[what]
    chart = alt.Chart(alt.InlineData(values=at_least(drawn_rows(table), "seconds", floor))).mark_point(
        filled=True, size=110).encode(
        x=alt.X(f"{what}:Q", title=title, scale=alt.Scale(zero=what == "shortfall", padding=12),
                axis=alt.Axis(format="~%" if what == "shortfall" else "~f", tickCount=6)),
        y=alt.Y("seconds_drawn:Q", title="mean wait time", scale=second_scale(floor, top),
                axis=second_axis(floor, top, any_below(table["seconds"], floor))),
        color=colour(runs), shape=shape(runs), opacity=faded(),
        tooltip=[*tooltips("run", "wait time", "lacked in the mean"), alt.Tooltip("index:N", title="Jain's index")])
    return finished(chart, runs, f"Wait time against {spelled}", _against_text(what))


def first_level(facts: FairnessFacts | None) -> int:
    """Return the topmost level of the tree that has several queues."""
    levels = facts.levels if facts else ()
    return next((each.level for each in levels if each.queues > 1), 1)


def _fairness(facts: FairnessFacts | None) -> dict[str, float | str | None]:
    levels = facts.levels if facts else ()
    jain = next((each.jain for each in levels if each.jain is not None), None)
    shortfall = facts.shortfall_mean if facts else None
    return {"shortfall": shortfall, "jain": jain, "lacked in the mean": share_text(shortfall),
            "index": ratio_text(jain)}


def _against_text(what: str) -> str:
    if what == "shortfall":
        return "A mark a run; what queues lacked of their guarantees while tasks of them waited; best is below, left"
    return "A mark a run; of the topmost level on which several queues waited at once; best is below, right"
