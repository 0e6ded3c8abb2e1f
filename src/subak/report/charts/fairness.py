"""Charts of fairness: shares of queues over time, who went without, and wait time against fairness."""
from collections.abc import Callable
from functools import partial

import altair as alt
import polars as pl

from subak.measures import series
from subak.measures.runs import FairnessFacts, Run, groups
from subak.report.charts.parts import (
    COUNT_LABEL,
    Chart,
    any_below,
    at_least,
    colour,
    drawn_rows,
    faded,
    finished,
    lines,
    second_axis,
    second_range,
    second_scale,
    shape,
    time_axis,
    time_tooltip,
    timed,
    tooltips,
    worded,
)
from subak.report.charts.theme import SERIES
from subak.report.number_text import ratio_text, seconds_text, share_text

LINES_MAX = len(SERIES)  # queues of a chart of shares: as many as there are colours that can be told apart
RUNS_MAX = 6  # whose shares are drawn, each in a chart of its own
BARS_MAX = 10  # queues of the chart of shortfalls
AGAINST = ("shortfall", "jain")  # what wait time is drawn against
LABEL_WIDTH = 180  # pixels of a queue's name


def fairness_chart_makers(runs: list[Run]) -> dict[str, Callable[[], Chart]]:
    """Return the charts of fairness by their names, still to be drawn; none where no run has several queues."""
    fair = [run for run in runs if run.summary.fairness]
    if not fair:
        return {}
    first = [group[0] for group in groups(fair).values()][:RUNS_MAX]
    shares = {f"shares-{run.label}": partial(queue_shares, run) for run in first}
    against = {f"wait-against-{what}": partial(wait_against, fair, what) for what in AGAINST}
    return {**(against if len(groups(fair)) > 1 else {}), "shortfall": partial(queue_shortfall, fair), **shares}


def queue_shares(run: Run) -> Chart:
    """Draw the dominant shares of the largest queues of the topmost level that has several, and their guarantees."""
    level = first_level(run.summary.fairness)
    count = run.summary.fairness.levels[level - 1].queues if run.summary.fairness else 0
    _, span = series.clock([run])
    wide = series.shares_over_time(run, level, LINES_MAX)
    ranked = wide.group_by("queue").agg(pl.col("share").mean()).sort("share", "queue", descending=[True, False])
    queues = ranked["queue"]
    table = wide.unpivot(index=["queue", "time"], variable_name="what", value_name="part")
    chart = lines(drawn_rows(timed(table.drop_nulls("part"), span))).encode(
        x=time_axis(span), color=alt.Color("queue:N", scale=alt.Scale(domain=queues.to_list()), legend=alt.Legend()),
        strokeOpacity=faded("queue"),
        strokeDash=alt.StrokeDash("what:N", legend=None,
                                  scale=alt.Scale(domain=["share", "guarantee"], range=[[1, 0], [3, 3]])),
        y=alt.Y("part:Q", title="dominant share", axis=alt.Axis(format="~%", tickCount=5)),
        tooltip=[*tooltips("queue", "what"), time_tooltip(span),
                 alt.Tooltip("part:Q", title="of all there is", format=".3~%")])
    which = f"The {len(queues)} largest of {count} queues" if count > len(queues) else "All queues"
    return finished(chart, [run], f"Shares of queues: {run.label}",
                    f"{which} of level {level}, mean of each period; dashed: what each is guaranteed", picks="queue")


def queue_shortfall(runs: list[Run]) -> Chart:
    """Draw the share-seconds that queues lacked while tasks of them waited, a bar a scheduler; means over seeds."""
    table = pl.concat(
        run.queues().filter("leaf").select(
            pl.lit(run.group).alias("scheduler"), "queue", "shortfall", "shortfall_mean", "starved_longest").collect()
        for run in runs)
    table = table.group_by("scheduler", "queue", maintain_order=True).agg(pl.all().mean())
    ranked = table.group_by("queue").agg(pl.col("shortfall").max()).sort("shortfall", "queue", descending=[True, False])
    worst = ranked.head(BARS_MAX)["queue"].to_list()
    drawn = worded(table.filter(pl.col("queue").is_in(worst)), "shortfall_mean", "lacked in the mean", share_text)
    drawn = worded(drawn, "starved_longest", "longest starved", seconds_text)
    chart = alt.Chart(alt.InlineData(values=drawn_rows(drawn))).mark_bar().encode(
        x=alt.X("shortfall:Q", title="share-seconds below the guarantee",
                axis=alt.Axis(labelExpr=COUNT_LABEL, tickCount=6)),
        y=alt.Y("queue:N", title=None, sort=worst, axis=alt.Axis(labelLimit=LABEL_WIDTH)),
        yOffset=alt.YOffset("scheduler:N", sort=list(groups(runs))), color=colour(runs), opacity=faded(),
        tooltip=[*tooltips("scheduler", "queue"), alt.Tooltip("shortfall:Q", format=",.3~g"),
                 *tooltips("lacked in the mean", "longest starved")])
    sized = chart.properties(height=max(120, len(worst) * (10 * len(groups(runs)) + 12)))
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
    title, spelled = {"shortfall": ("share that a waiting queue lacked, mean (less is fairer)", "shortfall"),
                      "jain": ("Jain's index of waiting queues (1 is fairest)", "Jain's index")}[what]
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
