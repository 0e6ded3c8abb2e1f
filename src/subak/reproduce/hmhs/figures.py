"""The charts of the HMHS paper's figures and of those past it."""
from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

from subak.fleet.locality import LEVELS
from subak.report.charts.fit import dressed
from subak.reproduce.claims import Figure, title_of
from subak.reproduce.figure_parts import FIGURE_HEIGHT, FIGURE_WIDTH, base, colour
from subak.reproduce.hmhs.study import BOUND, SCHEDULERS


def draw(figure: Figure) -> alt.TopLevelMixin:
    """Return the chart of a figure."""
    assert figure.points is not None
    return dressed(DRAWN[figure.key](figure.points).properties(title=title_of(figure)))


def _makespans(table: pl.DataFrame, by: str) -> Any:
    """Draw the mean makespans, a line a scheduler, a panel a workload."""
    names = [f"{name} (s)" for name in (*SCHEDULERS, BOUND)]
    long = table.unpivot(names, index=["workload", by], variable_name="scheduler", value_name="makespan").with_columns(
        pl.col("scheduler").str.strip_suffix(" (s)"))
    return base(long).mark_line(point=True).encode(
        x=alt.X(f"{by}:Q", title=by, axis=alt.Axis(tickMinStep=1)), y=alt.Y("makespan:Q", title="makespan (s)"),
        color=colour("scheduler", sort=None),
    ).properties(width=FIGURE_WIDTH // 2, height=FIGURE_HEIGHT).facet(
        alt.Facet("workload:N", title=None), columns=2).resolve_scale(y="independent")


def _gaps(table: pl.DataFrame) -> Any:
    shown = table.with_columns(
        pl.concat_str([pl.col(name).cast(pl.String) for name in ("workload", "jobs") if name in table.columns]
                      or [pl.lit("trace")], separator=", ").alias("case"),
        pl.col("above the bound (share)").alias("gap"))
    return base(shown).mark_point(filled=True, size=90).encode(
        x=alt.X("gap:Q", title="makespan above the bound", axis=alt.Axis(format="~%")),
        y=alt.Y("scheduler:N", sort=None, title=None), color=colour("case", sort=None))


def _near(table: pl.DataFrame) -> Any:
    levels = [f"{name} (share)" for name in LEVELS]
    long = table.unpivot(levels, index=["machines", "scheduler"], variable_name="level", value_name="share")
    shown = long.with_columns(pl.col("level").str.strip_suffix(" (share)"))
    return base(shown).mark_bar().encode(
        x=alt.X("share:Q", title="tasks with known inputs", stack="normalize", axis=alt.Axis(format="~%")),
        y=alt.Y("scheduler:N", sort=None, title=None), color=colour("level", sort=list(LEVELS)),
        row=alt.Row("machines:N", title=None, sort=None)).properties(height=FIGURE_HEIGHT // 2)


DRAWN: dict[str, Callable[[pl.DataFrame], Any]] = {
    "1": lambda table: _makespans(table, "jobs"), "2": lambda table: _makespans(table, "cluster"),
    "baselines": _gaps, "yahoo": _gaps, "locality": _near,
}
