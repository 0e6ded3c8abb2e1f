"""The charts of runs: each function makes one Altair chart from runs' series."""
from collections.abc import Callable
from functools import partial
from typing import Any

import altair as alt
import polars as pl

from subak.measures import series
from subak.measures.runs import Run, groups, resource_names
from subak.report.charts.lines import Lines, Reading, exceedances, line_chart, over_time
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
    share_axis,
    tens,
    tooltips,
    worded,
)
from subak.report.charts.times import times_of
from subak.report.comparison import PART_TITLES, SPREAD_TITLES
from subak.report.number_text import SECOND_STEPS, seconds_text, share_text


def chart_makers(runs: list[Run]) -> dict[str, Callable[[], Chart]]:
    """Return every chart of a report by its name, still to be drawn; utilisation is one chart a resource."""
    named: dict[str, Callable[[list[Run]], Chart]] = {
        "comparison": wait_comparison,
        "wait-over-time": wait_over_time,
        "wait-distribution": wait_distribution,
        "slowdown-distribution": slowdown_distribution,
        "queue-length": queue_length,
        **{f"utilisation-{name}": partial(utilisation, resource=name) for name in resource_names(runs)},
    }
    if any(run.summary.federation for run in runs):
        named |= {"allocation-parts": allocation_parts, "allocation-distribution": allocation_distribution}
        if any("messages" in run.timeline().collect_schema() for run in runs):
            named["messages-over-time"] = messages_over_time
    return {name: partial(make, runs) for name, make in named.items()}


def wait_comparison(runs: list[Run]) -> Chart:
    """Draw mean and percentiles of the wait time, a mark a scheduler, a small dot a seed."""
    rows = [_point(run, title, getattr(run.summary.wait_time, name))
            for run in runs for name, title in SPREAD_TITLES.items()]
    known = [row for row in rows if row["seconds"] is not None]
    floor, top = second_range([row["seconds"] for row in known])
    x = alt.X("seconds_drawn:Q", title="wait time", scale=second_scale(floor / 1.3, top * 1.3),
              axis=second_axis(floor, top, any(row["seconds"] < floor for row in known)))
    base = alt.Chart(alt.InlineData(values=at_least(known, "seconds", floor))).encode(
        y=alt.Y("measure:N", title=None, sort=list(SPREAD_TITLES.values()),
                axis=alt.Axis(grid=True, tickBand="extent", ticks=False)),
        yOffset=alt.YOffset("scheduler:N", sort=list(groups(runs)), scale=alt.Scale(paddingOuter=0.35)),
        color=colour(runs), opacity=faded(), tooltip=tooltips("measure", "scheduler", "seed", "wait time"))
    several = len(runs) > len(groups(runs))
    marks = base.mark_point(filled=True, size=80, clip=True).encode(x=x, shape=shape(runs))
    seeds = base.mark_point(filled=True, size=24, clip=True).encode(x=x)
    chart = alt.LayerChart(layer=[_means(marks), seeds] if several else [marks],
                           height=max(220, 6 * (8 * len(groups(runs)) + 12)))
    return finished(chart, runs, "Wait time per scheduler",
                   "Mean and percentiles over the tasks that started"
                   + ("; large marks are means over seeds, dots are seeds" if several else ""), encodings=["x"])


def wait_over_time(runs: list[Run]) -> Chart:
    """Draw the mean wait time of the tasks that arrive in each period, a line a run."""
    shown = times_of(runs)
    period = series.period_of(shown.span)
    table = series.wait_by_period(runs, period)
    floor, top = second_range(table["mean"].to_list())
    reading = shown.reading("mean wait", "seconds")
    chart = line_chart(over_time(shown.in_unit(table), "time", "mean"), runs, reading, floor, point=True).encode(
        x=shown.x(), opacity=faded(),
        y=alt.Y("y:Q", title="mean wait time", scale=second_scale(floor, top),
                axis=second_axis(floor, top, any_below(table["mean"], floor))))
    return finished(chart, runs, "Wait time over time",
                    f"Mean over the tasks that arrive in each {_period_text(period)}")


def wait_distribution(runs: list[Run]) -> Chart:
    """Draw the share of started tasks that waited longer than x, both axes logarithmic."""
    table = series.wait_distribution(runs)
    floor, top = second_range(table["value"].to_list())
    y, least = share_axis(table, "share of tasks waiting longer")
    reading = Reading("waited longer than", "seconds", "of tasks", "share")
    chart = line_chart(exceedances(table, floor), runs, reading, least, interpolate="step-after").encode(
        x=alt.X("x:Q", title="wait time", scale=second_scale(floor, top), axis=second_axis(floor, top, False)), y=y)
    return finished(chart, runs, "Distribution of wait time", f"Did not wait at all: {_at_once(runs, table)}")


def slowdown_distribution(runs: list[Run]) -> Chart:
    """Draw the share of finished tasks with a larger bounded slowdown than x, both axes logarithmic."""
    table = series.slowdown_distribution(runs)
    largest = max(table["value"].to_list(), default=10.0)
    y, least = share_axis(table, "share of tasks slowed more")
    reading = Reading("slowed more than", "ratio", "of tasks", "share")
    chart = line_chart(exceedances(table, 1.0), runs, reading, least, interpolate="step-after").encode(
        x=alt.X("x:Q", title="bounded slowdown (times)",
                scale=alt.Scale(type="log", domain=[1, max(10.0, largest)], nice=False),
                axis=alt.Axis(values=tens(1, largest), labelExpr=COUNT_LABEL)), y=y)
    return finished(chart, runs, "Distribution of bounded slowdown",
                    "(finish - ready) / run time of finished tasks, run times under 10 s counted as 10 s")


def queue_length(runs: list[Run]) -> Chart:
    """Draw the number of waiting tasks over time, a line a run, on an axis that holds zero and millions."""
    shown = times_of(runs)
    table = series.waiting_over_time(runs)
    top = max(table["waiting"].to_list(), default=1.0)
    reading = shown.reading("tasks waiting", "ratio")
    chart = line_chart(over_time(shown.in_unit(table), "time", "waiting"), runs, reading).encode(
        x=shown.x(), y=_counts("waiting tasks", top))
    return finished(chart, runs, "Queue length",
                    "Tasks waiting, mean of each period; logarithmic above one task")


def utilisation(runs: list[Run], resource: str) -> Chart:
    """Draw the used share of one resource over time, and dashed what is free yet too scattered to be used."""
    shown = times_of(runs)
    table = series.used_over_time(runs, resource).rename({"stranded": "fragmented"}).unpivot(
        index=["run", "scheduler", "time"], variable_name="what", value_name="share").drop_nulls("share")
    reading = shown.reading(resource, "share")
    drawn = over_time(shown.in_unit(table), "time", "share")
    chart = line_chart(drawn, runs, reading).encode(
        x=shown.x(),
        y=alt.Y("y:Q", title=f"share of {resource}", axis=alt.Axis(format="~%", tickCount=5),
                scale=alt.Scale(domain=[0, max(1.0, *table["share"].to_list(), 0.0)])))
    return finished(chart, runs, f"Utilisation of {resource}",
                    "Share of the capacity; fragmented is free, but too scattered for the smallest waiting task"
                    "", legend_names=_whats(drawn))


def allocation_parts(runs: list[Run]) -> Chart:
    """Draw the parts of the mean and of the median allocation time on top of each other (Megha, section II)."""
    table = pl.DataFrame([
        {"scheduler": run.group, "level": level, "part": title, "seconds": getattr(facts.parts[name], level) or 0.0}
        for run in runs if (facts := run.summary.federation) for level in ("mean", "median")
        for name, title in PART_TITLES.items() if name in facts.parts
    ], schema={"scheduler": pl.String, "level": pl.String, "part": pl.String, "seconds": pl.Float64})
    table = table.group_by("scheduler", "level", "part", maintain_order=True).agg(pl.col("seconds").mean())
    longest = table.group_by("scheduler", "level").agg(pl.col("seconds").sum())["seconds"].max()
    _, size, unit = next((step for step in SECOND_STEPS if float(longest or 0.0) < step[0]), SECOND_STEPS[-1])  # type: ignore[arg-type]
    drawn = worded(table.with_row_index("order"), "seconds", "took", seconds_text)
    drawn = drawn.with_columns(pl.col("seconds") / size)
    parts = list(PART_TITLES.values())
    chart = alt.Chart(alt.InlineData(values=drawn_rows(drawn))).mark_bar().encode(
        x=alt.X("seconds:Q", title=f"allocation time ({unit})", stack="zero", axis=alt.Axis(format=",~f", tickCount=6)),
        y=alt.Y("scheduler:N", title=None, sort=list(groups(runs))),
        yOffset=alt.YOffset("level:N", sort=["mean", "median"]),
        color=alt.Color("part:N", scale=alt.Scale(domain=parts), legend=alt.Legend()),
        order=alt.Order("order:Q"), tooltip=tooltips("scheduler", "level", "part", "took"))
    schedulers = table["scheduler"].n_unique()
    return chart.properties(
        title=alt.Title("Parts of the allocation time",
                        subtitle="Above the means, which add up to the mean; below the medians of the parts"),
        description="Parts of the allocation time of " + ", ".join(groups(runs)), width="container",
        height=max(120, 48 * schedulers), usermeta={"legend": parts})


def messages_over_time(runs: list[Run]) -> Chart:
    """Draw how many messages were handled a second over time, and dashed what some of them said, a line each."""
    shown = times_of(runs)
    table = series.messages_over_time(runs)
    top = max(table["a second"].to_list(), default=1.0)
    drawn = over_time(shown.in_unit(table), "time", "a second")
    chart = line_chart(drawn, runs, shown.reading("a second", "ratio")).encode(
        x=shown.x(), y=_counts("handled a second", top))
    return finished(chart, runs, "Messages over time",
                    "Messages handled a second; among them refusals and requests on another master's partition; tasks "
                    "preempted", legend_names=_whats(drawn))


def allocation_distribution(runs: list[Run]) -> Chart:
    """Draw the share of tasks that were allocated within x, a line a run."""
    table = series.allocation_distribution([run for run in runs if run.summary.federation])
    floor, top = second_range(table["value"].to_list())
    longer = exceedances(table, floor)
    within = Lines(longer.table.with_columns(-pl.col("^l[0-9]+$") + 1.0), longer.lines)
    reading = Reading("allocated within", "seconds", "of tasks", "share")
    chart = line_chart(within, runs, reading, interpolate="step-after").encode(
        x=alt.X("x:Q", title="allocation time", scale=second_scale(floor, top), axis=second_axis(floor, top, False)),
        y=alt.Y("y:Q", title="share of started tasks", axis=alt.Axis(format="~%", tickCount=5),
                scale=alt.Scale(domain=[0, 1])))
    return finished(chart, runs, "Distribution of allocation time",
                    "From ready to the last start; only of schedulers that are federations")


def _counts(title: str, top: float) -> alt.Y:
    """Return an axis of counts that holds zero and millions; one is too near to zero for a label of its own."""
    return alt.Y("y:Q", title=title, scale=alt.Scale(type="symlog", constant=1, domain=[0, max(10.0, top)]),
                 axis=alt.Axis(values=[0, *tens(10 if top >= 100 else 1, top)], labelExpr=COUNT_LABEL))


def _whats(drawn: Lines) -> list[str]:
    return list(dict.fromkeys(line.what for line in drawn.lines))


def _means(marks: alt.Chart) -> alt.Chart:
    """Draw one mark a scheduler in place of one a seed."""
    averaged = alt.AggregatedFieldDef(op="mean", field="seconds_drawn", **{"as": "seconds_drawn"})
    chart: alt.Chart = marks.copy()
    chart.transform = [alt.AggregateTransform(aggregate=[averaged], groupby=["measure", "scheduler"])]
    chart.encoding.tooltip = tooltips("measure", "scheduler")
    return chart


def _point(run: Run, title: str, seconds: float | None) -> dict[str, Any]:
    return {"run": run.label, "scheduler": run.group, "seed": run.summary.seed, "measure": title,
            "seconds": seconds, "wait time": seconds_text(seconds)}


def _period_text(period: float) -> str:
    return "24 hours" if period == series.DAY else seconds_text(period)


def _at_once(runs: list[Run], table: pl.DataFrame) -> str:
    """State the share of started tasks that did not wait: a logarithmic axis cannot."""
    waited = {run: share for run, value, share in table.select("run", "value", "share").iter_rows() if value == 0}
    started = set(table["run"])
    shares = {name: [1 - waited[run.label] if run.label in waited else 0.0 for run in members if run.label in started]
              for name, members in groups(runs).items()}
    return ", ".join(f"{name} {share_text(sum(each) / len(each))}" for name, each in shares.items() if each) or "none"
