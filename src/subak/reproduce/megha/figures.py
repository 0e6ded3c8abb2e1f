"""The charts of the Megha paper's figures and of those past it."""
from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

from subak.report.charts.fit import dressed
from subak.reproduce.claims import Figure, title_of
from subak.reproduce.figure_parts import COLOURS, FIGURE_HEIGHT, FIGURE_WIDTH, LOG, base, colour, escaped
from subak.reproduce.megha.prototype.chart import draw as draw_prototype

QUANTILE_NAMES = ("median (s)", "mean (s)", "p90 (s)", "p99 (s)", "p99.9 (s)", "p99.99 (s)", "max (s)")
LEAST_S = 1e-6  # what a logarithmic axis shows for 0


def draw(figure: Figure) -> alt.TopLevelMixin:
    """Return the chart of a figure."""
    chart = DRAWN[figure.key](figure.table if figure.points is None else figure.points)
    return dressed(chart.properties(title=title_of(figure)))


def _seconds(name: str, words: str = "allocation time (s), logarithmic") -> Any:
    return alt.Y(f"{escaped(name)}:Q", title=words, scale=LOG, axis=alt.Axis(format="~g"))


def _distribution(table: pl.DataFrame) -> Any:
    shown = table.with_columns(pl.col("allocation time (s)").clip(LEAST_S))
    return base(shown).mark_line().encode(
        x=alt.X("allocation time (s):Q", title="allocation time (s), logarithmic", scale=LOG,
                axis=alt.Axis(format="~g")),
        y=alt.Y("share:Q", title="share that is at most so long", axis=alt.Axis(format="~%")),
        color=colour("scheduler"))


def _bars(table: pl.DataFrame, group: str, by: str) -> Any:
    """Draw the quantiles of each group as marks above one another."""
    shown = table.unpivot([name for name in QUANTILE_NAMES if name in table.columns], index=[group, by],
                          variable_name="quantile", value_name="seconds").with_columns(pl.col("seconds").clip(LEAST_S))
    order = [name for name in QUANTILE_NAMES if name in table.columns]
    return base(shown).mark_point(filled=True, size=70).encode(
        x=alt.X("quantile:N", sort=order, title=None, axis=alt.Axis(labelAngle=0)), y=_seconds("seconds"),
        color=colour(by), shape=alt.Shape(f"{escaped(group)}:N", title=group),
        tooltip=[f"{escaped(group)}:N", f"{escaped(by)}:N", "quantile:N", alt.Tooltip("seconds:Q", format=".4g")])


def _quantiles(table: pl.DataFrame) -> Any:
    return _bars(table.with_columns(workload=pl.lit("cloudera-like")), "workload", "scheduler")


def _demand(table: pl.DataFrame) -> Any:
    return base(table).mark_area(interpolate="step-after", color=COLOURS[0]).encode(
        x=alt.X("time (s):Q", title="time (s)"), y=alt.Y("slots wanted:Q", axis=alt.Axis(format=",")))


def _centralized(table: pl.DataFrame) -> Any:
    named = table.with_columns(case=pl.format("{} workers, {}", "workers", "per machine of an update"))
    return _bars(named, "case", "masters")


def _parts(table: pl.DataFrame) -> Any:
    return base(table).mark_bar().encode(
        x=alt.X("of the medians (share):Q", title="share of the medians", axis=alt.Axis(format="~%")),
        y=alt.Y("costs:N", title=None, sort=None, axis=alt.Axis(labelLimit=260)), color=colour("part"))


def _growth(table: pl.DataFrame) -> Any:
    shown = table.unpivot(["median (s)", "mean (s)", "p99 (s)"], index=["updates", "workers"], variable_name="quantile",
                          value_name="seconds").with_columns(pl.col("seconds").clip(LEAST_S))
    return base(shown).mark_line(point=True).encode(
        x=alt.X("workers:Q", axis=alt.Axis(format="~s")), y=_seconds("seconds"), color=colour("quantile"),
        strokeDash=alt.StrokeDash("updates:N", title="updates"))


def _masters(table: pl.DataFrame) -> Any:
    named = table.with_columns(masters=pl.format("{} GMs, {} LMs", "global masters", "local masters"))
    shown = named.unpivot(["median (s)", "mean (s)", "p99 (s)"], index="masters", variable_name="quantile",
                          value_name="seconds")
    return base(shown).mark_point(filled=True, size=70).encode(
        x=alt.X("masters:N", sort=None, title=None), y=_seconds("seconds"), color=colour("quantile"))


def _fair(table: pl.DataFrame) -> Any:
    return _bars(table.with_columns(case=pl.format("{} workers, {}", "workers", "demand")), "case", "rule")


def _counts(table: pl.DataFrame) -> Any:
    shown = table.unpivot(["preemptions", "preemption attempts", "repartitions"], index=["demand", "rule", "workers"],
                          variable_name="what", value_name="count")
    return base(shown).mark_bar().encode(
        x=alt.X("what:N", title=None, axis=alt.Axis(labelAngle=-20)), xOffset=alt.XOffset("workers:N"),
        y=alt.Y("count:Q", title="count, logarithmic", scale=alt.Scale(type="symlog", domainMin=0),
                axis=alt.Axis(format=",", values=[0, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000])),
        color=colour("workers", "workers"),
    ).properties(width=FIGURE_WIDTH // 2, height=FIGURE_HEIGHT // 2).facet(
        column=alt.Column("rule:N", title=None), row=alt.Row("demand:N", title=None, sort=None))


def _charged(table: pl.DataFrame) -> Any:
    return _bars(table.with_columns(run=pl.format("{} workers, {} GMs", "workers", "global masters")), "run", "charged")


def _sweep(table: pl.DataFrame) -> Any:
    key = table.columns[0]
    panels = []
    for number, (name, words) in enumerate((
            ("p99 (s)", "99th percentile (s)"), ("inconsistent (share)", "refused of the requests"),
            ("run time lost (share)", "run time lost"), ("unfairness (share)", "unfairness"))):
        axis = alt.Axis(format=",") if name.endswith("(s)") else alt.Axis(format="~%")
        panels.append(alt.Chart(alt.InlineData(values=table.select(key, name).to_dicts()), width=FIGURE_WIDTH // 2 - 30,
                                height=FIGURE_HEIGHT // 2).mark_line(point=True, color=COLOURS[number]).encode(
            x=alt.X(f"{escaped(key)}:N", sort=None, title=key, axis=alt.Axis(labelAngle=0)),
            y=alt.Y(f"{escaped(name)}:Q", title=words, axis=axis)))
    return alt.vconcat(alt.hconcat(*panels[:2]), alt.hconcat(*panels[2:]))


def _large(table: pl.DataFrame) -> Any:
    return _bars(table, "workload", "scheduler")


DRAWN: dict[str, Callable[[pl.DataFrame], Any]] = {
    "3": _distribution, "4": _quantiles, "5": _demand, "6": _centralized, "7": _parts, "8": _growth, "9": _masters,
    "10": _fair, "11": _counts, "why": _charged, "heartbeat": _sweep, "load": _sweep, "large": _large,
    "prototype": draw_prototype,
}
