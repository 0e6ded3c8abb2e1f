"""The charts: each a function from runs to one Altair chart, over series that are already small."""
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import altair as alt
import polars as pl

from subak.report import series
from subak.report.comparison import PART_TITLES, SPREAD_TITLES
from subak.report.runs import Run, groups, resource_names
from subak.report.words import SECOND_STEPS, seconds_text, share_text

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

Chart = alt.Chart | alt.LayerChart


def chart_makers(runs: list[Run]) -> dict[str, Callable[[], Chart]]:
    """Return every chart of a report by its name, still to be drawn; utilisation is one chart a resource."""
    named: dict[str, Callable[[list[Run]], Chart]] = {
        "comparison": response_comparison,
        "response-over-time": response_over_time,
        "response-distribution": response_distribution,
        "slowdown-distribution": slowdown_distribution,
        "queue-length": queue_length,
        **{f"utilisation-{name}": partial(utilisation, resource=name) for name in resource_names(runs)},
    }
    if any(run.summary.federation for run in runs):
        named |= {"allocation-parts": allocation_parts, "allocation-distribution": allocation_distribution}
    return {name: partial(make, runs) for name, make in named.items()}


def response_comparison(runs: list[Run]) -> Chart:
    """Draw mean and percentiles of the response time, a mark a scheduler, a small dot a seed."""
    rows = [_point(run, title, getattr(run.summary.response, name))
            for run in runs for name, title in SPREAD_TITLES.items()]
    known = [row for row in rows if row["seconds"] is not None]
    floor, top = _second_range([row["seconds"] for row in known])
    x = alt.X("seconds_drawn:Q", title="response time", scale=_second_scale(floor / 1.3, top * 1.3),
              axis=_second_axis(floor, top, any(row["seconds"] < floor for row in known)))
    base = alt.Chart(alt.InlineData(values=_at_least(known, "seconds", floor))).encode(
        y=alt.Y("measure:N", title=None, sort=list(SPREAD_TITLES.values()),
                axis=alt.Axis(grid=True, tickBand="extent", ticks=False)),
        yOffset=alt.YOffset("scheduler:N", sort=list(groups(runs)), scale=alt.Scale(paddingOuter=0.35)),
        color=_colour(runs), opacity=_faded(), tooltip=_tooltips("measure", "scheduler", "seed", "response time"))
    several = len(runs) > len(groups(runs))
    marks = base.mark_point(filled=True, size=110, clip=True).encode(x=x, shape=_shape(runs))
    seeds = base.mark_point(filled=True, size=24, clip=True).encode(x=x)
    chart = alt.LayerChart(layer=[_means(marks), seeds] if several else [marks],
                           height=max(220, 6 * (16 * len(groups(runs)) + 12)))
    return _finish(chart, runs, "Response time per scheduler",
                   "Mean and percentiles over the tasks that started"
                   + ("; large marks are means over seeds, dots are seeds" if several else ""), encodings=["x"])


def response_over_time(runs: list[Run]) -> Chart:
    """Draw the mean response time of the tasks that start in each period (LoTES, Fig. 6), a line a run."""
    _, span = series.clock(runs)
    period = series.period_of(span)
    table = series.response_by_period(runs, period)
    floor, top = _second_range(table["mean"].to_list())
    rows = _at_least(_rows(_worded(_timed(table, span), "mean", "mean response", seconds_text)), "mean", floor)
    chart = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True, clip=True).encode(
        **_by_scheduler(runs), x=_time(span), opacity=_faded(),
        y=alt.Y("mean_drawn:Q", title="mean response time", scale=_second_scale(floor, top),
                axis=_second_axis(floor, top, _any_below(table["mean"], floor))),
        tooltip=[*_tooltips("run"), _time_tooltip(span), *_tooltips("mean response"),
                 alt.Tooltip("tasks:Q", format=",.0f")])
    return _finish(chart, runs, "Response time over time",
                   f"Mean over the tasks that start in each {_period_text(period)}")


def response_distribution(runs: list[Run]) -> Chart:
    """Draw the share of started tasks that waited longer than x, both axes logarithmic."""
    table = series.response_distribution(runs)
    floor, top = _second_range(table["value"].to_list())
    drawn = _worded(table.filter(pl.col("share") > 0), "value", "waited longer than", seconds_text)
    chart = _lines(_at_least(_rows(drawn), "value", floor), interpolate="step-after").encode(
        **_by_scheduler(runs),
        x=alt.X("value_drawn:Q", title="response time", scale=_second_scale(floor, top),
                axis=_second_axis(floor, top, _any_below(table["value"], floor))),
        y=_share_axis(table, "share of tasks waiting longer"),
        tooltip=[*_tooltips("run", "waited longer than"), _share_tooltip()])
    return _finish(chart, runs, "Distribution of response time", f"Did not wait at all: {_at_once(runs, table)}")


def slowdown_distribution(runs: list[Run]) -> Chart:
    """Draw the share of finished tasks with a larger bounded slowdown than x, both axes logarithmic."""
    table = series.slowdown_distribution(runs)
    largest = max(table["value"].to_list(), default=10.0)
    chart = _lines(_rows(table.filter(pl.col("share") > 0)), interpolate="step-after").encode(
        **_by_scheduler(runs),
        x=alt.X("value:Q", title="bounded slowdown (times)",
                scale=alt.Scale(type="log", domain=[1, max(10.0, largest)], nice=False),
                axis=alt.Axis(values=_tens(1, largest), labelExpr=COUNT_LABEL, labelOverlap=True)),
        y=_share_axis(table, "share of tasks slowed more"),
        tooltip=[*_tooltips("run"), alt.Tooltip("value:Q", title="slowed more than", format=",.2~f"), _share_tooltip()])
    return _finish(chart, runs, "Distribution of bounded slowdown",
                   "(finish - ready) / run time of finished tasks, run times under 10 s counted as 10 s")


def queue_length(runs: list[Run]) -> Chart:
    """Draw the number of waiting tasks over time, a line a run, on an axis that holds zero and millions."""
    _, span = series.clock(runs)
    table = series.waiting_over_time(runs)
    top = max(table["waiting"].to_list(), default=1.0)
    chart = _lines(_rows(_timed(table, span))).encode(
        **_by_scheduler(runs), x=_time(span),
        y=alt.Y("waiting:Q", title="waiting tasks",
                scale=alt.Scale(type="symlog", constant=1, domain=[0, max(10.0, top)]),
                axis=alt.Axis(values=[0, *_tens(1, top)], labelExpr=COUNT_LABEL, labelOverlap=True)),
        tooltip=[*_tooltips("run"), _time_tooltip(span), alt.Tooltip("waiting:Q", format=",.1f"),
                 alt.Tooltip("waiting_max:Q", title="at most", format=",.0f")])
    return _finish(chart, runs, "Queue length", "Tasks waiting, mean of each period; logarithmic above one task")


def utilisation(runs: list[Run], resource: str) -> Chart:
    """Draw the used share of one resource over time, and dashed what is free yet too scattered to be used."""
    _, span = series.clock(runs)
    table = series.used_over_time(runs, resource).unpivot(
        index=["run", "scheduler", "time"], variable_name="what", value_name="share").drop_nulls("share")
    chart = _lines(_rows(_timed(table, span))).encode(
        **_by_scheduler(runs), x=_time(span),
        strokeDash=alt.StrokeDash("what:N", legend=None,
                                  scale=alt.Scale(domain=["used", "stranded"], range=[[1, 0], [3, 3]])),
        y=alt.Y("share:Q", title=f"share of {resource}", axis=alt.Axis(format="~%", tickCount=5),
                scale=alt.Scale(domain=[0, max(1.0, *table["share"].to_list(), 0.0)])),
        tooltip=[*_tooltips("run", "what"), _time_tooltip(span), alt.Tooltip("share:Q", format=".1%")])
    return _finish(chart, runs, f"Utilisation of {resource}",
                   "Share of the capacity in use; dashed: free, but unusable by the smallest waiting task")


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
    drawn = _worded(table.with_row_index("order"), "seconds", "took", seconds_text)
    drawn = drawn.with_columns(pl.col("seconds") / size)
    parts = list(PART_TITLES.values())
    chart = alt.Chart(alt.InlineData(values=_rows(drawn))).mark_bar().encode(
        x=alt.X("seconds:Q", title=f"allocation time ({unit})", stack="zero", axis=alt.Axis(format=",~f", tickCount=6)),
        y=alt.Y("scheduler:N", title=None, sort=list(groups(runs))),
        yOffset=alt.YOffset("level:N", sort=["mean", "median"]),
        color=alt.Color("part:N", scale=alt.Scale(domain=parts), legend=alt.Legend()),
        order=alt.Order("order:Q"), tooltip=_tooltips("scheduler", "level", "part", "took"))
    schedulers = table["scheduler"].n_unique()
    return chart.properties(
        title=alt.Title("Parts of the allocation time",
                        subtitle="Above the means, which add up to the mean; below the medians of the parts"),
        description="Parts of the allocation time of " + ", ".join(groups(runs)), width="container",
        height=max(120, 56 * schedulers))


def allocation_distribution(runs: list[Run]) -> Chart:
    """Draw the share of tasks that were allocated within x, a line a run."""
    table = series.allocation_distribution([run for run in runs if run.summary.federation])
    floor, top = _second_range(table["value"].to_list())
    within = table.with_columns(share=1.0 - pl.col("share"))
    drawn = _worded(within, "value", "allocated within", seconds_text)
    chart = _lines(_at_least(_rows(drawn), "value", floor), interpolate="step-after").encode(
        **_by_scheduler(runs),
        x=alt.X("value_drawn:Q", title="allocation time", scale=_second_scale(floor, top),
                axis=_second_axis(floor, top, _any_below(table["value"], floor))),
        y=alt.Y("share:Q", title="share of started tasks", axis=alt.Axis(format="~%", tickCount=5),
                scale=alt.Scale(domain=[0, 1])),
        tooltip=[*_tooltips("run", "allocated within"), _share_tooltip()])
    return _finish(chart, runs, "Distribution of allocation time",
                   "From ready to the last start; only of schedulers that are federations")


def _finish(chart: Chart, runs: list[Run], title: str, subtitle: str,
            encodings: Sequence[Literal["x", "y"]] = ("x", "y")) -> Chart:
    """Add what all charts have: title, description, size, zoom and a legend that picks out one scheduler."""
    names = ", ".join(groups(runs))
    sized = chart.properties(title=alt.Title(title, subtitle=subtitle), width="container",
                             description=f"{title}. {subtitle}. Schedulers: {names}.")
    if chart.height is alt.Undefined:
        sized = sized.properties(height=300)
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=encodings, zoom=ZOOM_ON, translate=PAN_ON)
    pick = alt.selection_point(name="pick", fields=["scheduler"], bind="legend")
    return sized.add_params(zoom, pick)


def _means(marks: alt.Chart) -> alt.Chart:
    """Draw one mark a scheduler in place of one a seed."""
    averaged = alt.AggregatedFieldDef(op="mean", field="seconds_drawn", **{"as": "seconds_drawn"})
    chart: alt.Chart = marks.copy()
    chart.transform = [alt.AggregateTransform(aggregate=[averaged], groupby=["measure", "scheduler"])]
    chart.encoding.tooltip = _tooltips("measure", "scheduler")
    return chart


def _point(run: Run, title: str, seconds: float | None) -> dict[str, Any]:
    return {"run": run.label, "scheduler": run.group, "seed": run.summary.seed, "measure": title,
            "seconds": seconds, "response time": seconds_text(seconds)}


def _colour(runs: list[Run]) -> alt.Color:
    """One colour a scheduler, the same in every chart; a lone scheduler needs no legend."""
    return alt.Color("scheduler:N", scale=alt.Scale(domain=list(groups(runs))), legend=_legend(runs))


def _legend(runs: list[Run]) -> alt.Legend | None:
    return alt.Legend() if len(groups(runs)) > 1 else None


def _shape(runs: list[Run]) -> alt.Shape:
    return alt.Shape("scheduler:N", scale=alt.Scale(domain=list(groups(runs))), legend=_legend(runs))


def _faded() -> Any:
    picked = alt.selection_point(name="pick", fields=["scheduler"])
    return alt.when(picked).then(alt.value(1)).otherwise(alt.value(0.12))


def _by_scheduler(runs: list[Run]) -> dict[str, Any]:
    """Return the channels that all line charts share: a colour a scheduler, a line a run."""
    return {"color": _colour(runs), "detail": "run:N", "strokeOpacity": _faded()}


def _lines(rows: list[dict[str, Any]], **options: Any) -> alt.Chart:
    """Start a chart of thin lines, with invisible points that answer a pointer."""
    chart: alt.Chart = alt.Chart(alt.InlineData(values=rows)).mark_line(
        point="transparent", clip=True, strokeWidth=1.75, **options)
    return chart


def _time_tooltip(span: float) -> alt.Tooltip:
    return alt.Tooltip("when:Q", title=series.time_unit(span)[1], format=",.2~f")


def _share_tooltip() -> alt.Tooltip:
    return alt.Tooltip("share:Q", title="share of tasks", format=".3~%")


def _tooltips(*names: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{name}:N", title=name) for name in names]


def _time(span: float) -> alt.X:
    size, word = series.time_unit(span)
    return alt.X("when:Q", title=f"time since the start ({word})",
                 axis=alt.Axis(grid=False, labelExpr="format(datum.value, ',~f')", tickCount=8),
                 scale=alt.Scale(domain=[0, span / size], nice=False))


def _timed(table: pl.DataFrame, span: float) -> pl.DataFrame:
    """Put the time in the axis's unit."""
    size, _ = series.time_unit(span)
    return table.with_columns((pl.col("time") / size).alias("when")).drop("time")


def _worded(table: pl.DataFrame, name: str, title: str, text: Callable[[float], str]) -> pl.DataFrame:
    """Add *name* in words as the column *title*, which a tooltip shows."""
    return table.with_columns(pl.Series(title, [text(value) for value in table[name]], dtype=pl.String))


def _rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows with numbers rounded: five digits are more than a screen shows, and the page stays small."""
    return table.with_columns(pl.selectors.float().round_sig_figs(5)).to_dicts()


def _at_least(rows: list[dict[str, Any]], name: str, floor: float) -> list[dict[str, Any]]:
    """Lift what a logarithmic axis cannot hold to its lower end; the axis labels that end as "at most"."""
    return [{**row, f"{name}_drawn": max(row[name], floor)} for row in rows]


def _any_below(values: pl.Series, floor: float) -> bool:
    return bool((values < floor).any())


def _second_range(values: list[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic time axis: a step of the ladder under nearly all waits, and the longest."""
    positive = sorted(value for value in values if value > 0)
    if not positive:
        return 0.1, 10.0
    low = max(positive[len(positive) // 50], positive[-1] * 1e-8)
    floor = max((step for step in SECOND_LADDER if step <= low), default=SECOND_LADDER[0])
    return floor, max(positive[-1] * 1.15, floor * 10)


def _second_scale(floor: float, top: float) -> alt.Scale:
    return alt.Scale(type="log", domain=[floor, top], nice=False)


def _second_axis(floor: float, top: float, below: bool) -> alt.Axis:
    """Label a time axis in s, min, h and d; its lower end says "≤" where shorter waits are drawn on it."""
    steps = [step for step in SECOND_LADDER if floor <= step <= top]
    if len(steps) < 5:
        steps = [step for step in SECOND_LADDER_DENSE if floor <= step <= top]
    label = f"datum.value <= {floor} ? '≤ ' + ({SECOND_LABEL}) : ({SECOND_LABEL})" if below else SECOND_LABEL
    return alt.Axis(values=steps, labelExpr=label, labelOverlap=True)


def _share_axis(table: pl.DataFrame, title: str) -> alt.Y:
    least = table.filter(pl.col("share") > 0)["share"].min()
    bottom = 10 ** math.floor(math.log10(float(least))) if isinstance(least, float) else 0.01  # a float, or no rows
    return alt.Y("share:Q", title=title, scale=alt.Scale(type="log", domain=[min(bottom, 0.1), 1], nice=False),
                 axis=alt.Axis(values=_tens(bottom, 1), format="~%"))


def _tens(least: float, most: float) -> list[float]:
    """Return the powers of ten from *least* to *most*, and at least two of them."""
    first = math.floor(math.log10(least))
    return [float(f"1e{power}") for power in range(first, max(first + 1, math.floor(math.log10(max(most, least)))) + 1)]


def _period_text(period: float) -> str:
    return "24 hours" if period == series.DAY else seconds_text(period)


def _at_once(runs: list[Run], table: pl.DataFrame) -> str:
    """State the share of started tasks that did not wait: a logarithmic axis cannot."""
    waited = {run: share for run, value, share in table.select("run", "value", "share").iter_rows() if value == 0}
    started = set(table["run"])
    shares = {name: [1 - waited[run.label] if run.label in waited else 0.0 for run in members if run.label in started]
              for name, members in groups(runs).items()}
    return ", ".join(f"{name} {share_text(sum(each) / len(each))}" for name, each in shares.items() if each) or "none"
