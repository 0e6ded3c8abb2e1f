"""The charts of the Megha paper's figures, and of those past it, over what was measured."""
from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

from subak.report.fit_charts import dressed
from subak.report.theme import LIGHT
from subak.reproduce.megha import Figure

WIDTH, HEIGHT = 520, 260  # pixels of a panel
COLOURS = [LIGHT[f"series-{number}"] for number in range(1, 9)]
LOG_S = alt.Scale(type="log")
QUANTILE_NAMES = ("median (s)", "mean (s)", "p90 (s)", "p99 (s)", "p99.9 (s)", "p99.99 (s)", "max (s)")
LEAST_S = 1e-6  # what a logarithmic axis shows for 0


def draw(figure: Figure) -> Any:
    """Return the chart of a figure."""
    chart = DRAWN[figure.key](figure.table)
    return dressed(chart.properties(title=title(figure)))


def title(figure: Figure) -> str:
    """Return what a figure is called."""
    return f"Fig. {figure.key}: {figure.title}" if figure.key.isdigit() else figure.title


def _base(table: pl.DataFrame) -> Any:
    return alt.Chart(alt.InlineData(values=table.to_dicts()), width=WIDTH, height=HEIGHT)


def _colour(name: str, words: str | None = None) -> Any:
    return alt.Color(f"{_escaped(name)}:N", title=words, scale=alt.Scale(range=COLOURS))


def _escaped(name: str) -> str:
    """Return a column's name as Vega-Lite takes it: dots and brackets are not paths."""
    return name.replace(".", "\\.").replace("[", "\\[").replace("]", "\\]")


def _seconds(name: str, words: str = "allocation time (s), logarithmic") -> Any:
    return alt.Y(f"{_escaped(name)}:Q", title=words, scale=LOG_S, axis=alt.Axis(format="~g"))


def _distribution(table: pl.DataFrame) -> Any:
    shown = table.with_columns(pl.col("allocation time (s)").clip(LEAST_S))
    return _base(shown).mark_line().encode(
        x=alt.X("allocation time (s):Q", title="allocation time (s), logarithmic", scale=LOG_S,
                axis=alt.Axis(format="~g")),
        y=alt.Y("share:Q", title="share that is at most so long", axis=alt.Axis(format="~%")),
        color=_colour("scheduler"))


def _bars(table: pl.DataFrame, group: str, colour: str) -> Any:
    """Draw the quantiles of each group as marks above one another."""
    shown = table.unpivot([name for name in QUANTILE_NAMES if name in table.columns], index=[group, colour],
                          variable_name="quantile", value_name="seconds").with_columns(pl.col("seconds").clip(LEAST_S))
    order = [name for name in QUANTILE_NAMES if name in table.columns]
    return _base(shown).mark_point(filled=True, size=70).encode(
        x=alt.X("quantile:N", sort=order, title=None, axis=alt.Axis(labelAngle=0)), y=_seconds("seconds"),
        color=_colour(colour), shape=alt.Shape(f"{_escaped(group)}:N", title=group),
        tooltip=[f"{_escaped(group)}:N", f"{_escaped(colour)}:N", "quantile:N", alt.Tooltip("seconds:Q", format=".4g")])


def _quantiles(table: pl.DataFrame) -> Any:
    return _bars(table.with_columns(workload=pl.lit("cloudera-like")), "workload", "scheduler")


def _demand(table: pl.DataFrame) -> Any:
    return _base(table).mark_area(interpolate="step-after", color=COLOURS[0]).encode(
        x=alt.X("time (s):Q", title="time (s)"), y=alt.Y("slots wanted:Q", axis=alt.Axis(format=",")))


def _centralized(table: pl.DataFrame) -> Any:
    named = table.with_columns(case=pl.format("{} workers, {}", "workers", "per machine of an update"))
    return _bars(named, "case", "masters")


def _parts(table: pl.DataFrame) -> Any:
    return _base(table).mark_bar().encode(
        x=alt.X("of the medians (share):Q", title="share of the medians", axis=alt.Axis(format="~%")),
        y=alt.Y("costs:N", title=None, sort=None, axis=alt.Axis(labelLimit=260)), color=_colour("part"))


def _growth(table: pl.DataFrame) -> Any:
    shown = table.unpivot(["median (s)", "mean (s)", "p99 (s)"], index=["updates", "workers"], variable_name="quantile",
                          value_name="seconds").with_columns(pl.col("seconds").clip(LEAST_S))
    return _base(shown).mark_line(point=True).encode(
        x=alt.X("workers:Q", axis=alt.Axis(format="~s")), y=_seconds("seconds"), color=_colour("quantile"),
        strokeDash=alt.StrokeDash("updates:N", title="updates"))


def _masters(table: pl.DataFrame) -> Any:
    named = table.with_columns(masters=pl.format("{} GMs, {} LMs", "global masters", "local masters"))
    shown = named.unpivot(["median (s)", "mean (s)", "p99 (s)"], index="masters", variable_name="quantile",
                          value_name="seconds")
    return _base(shown).mark_point(filled=True, size=70).encode(
        x=alt.X("masters:N", sort=None, title=None), y=_seconds("seconds"), color=_colour("quantile"))


def _fair(table: pl.DataFrame) -> Any:
    return _bars(table.with_columns(case=pl.format("{} workers, {}", "workers", "demand")), "case", "rule")


def _counts(table: pl.DataFrame) -> Any:
    shown = table.unpivot(["preemptions", "preemption attempts", "repartitions"], index=["demand", "rule", "workers"],
                          variable_name="what", value_name="count")
    return _base(shown).mark_bar().encode(
        x=alt.X("what:N", title=None, axis=alt.Axis(labelAngle=-20)), xOffset=alt.XOffset("workers:N"),
        y=alt.Y("count:Q", title="count, logarithmic", scale=alt.Scale(type="symlog", domainMin=0),
                axis=alt.Axis(format=",", values=[0, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000])),
        color=_colour("workers", "workers"),
    ).properties(width=WIDTH // 2, height=HEIGHT // 2).facet(
        column=alt.Column("rule:N", title=None), row=alt.Row("demand:N", title=None, sort=None))


def _sweep(table: pl.DataFrame) -> Any:
    key = table.columns[0]
    panels = []
    for number, (name, words) in enumerate((
            ("p99 (s)", "99th percentile (s)"), ("inconsistent (share)", "refused of the requests"),
            ("run time lost (share)", "run time lost"), ("unfairness (share)", "unfairness"))):
        axis = alt.Axis(format=",") if name.endswith("(s)") else alt.Axis(format="~%")
        panels.append(alt.Chart(alt.InlineData(values=table.select(key, name).to_dicts()), width=WIDTH // 2 - 30,
                                height=HEIGHT // 2).mark_line(point=True, color=COLOURS[number]).encode(
            x=alt.X(f"{_escaped(key)}:N", sort=None, title=key, axis=alt.Axis(labelAngle=0)),
            y=alt.Y(f"{_escaped(name)}:Q", title=words, axis=axis)))
    return alt.vconcat(alt.hconcat(*panels[:2]), alt.hconcat(*panels[2:]))


def _large(table: pl.DataFrame) -> Any:
    return _bars(table, "workload", "scheduler")


DRAWN: dict[str, Callable[[pl.DataFrame], Any]] = {
    "3": _distribution, "4": _quantiles, "5": _demand, "6": _centralized, "7": _parts, "8": _growth, "9": _masters,
    "10": _fair, "11": _counts, "heartbeat": _sweep, "load": _sweep, "large": _large,
}
