"""The charts of the MCH paper's figures and of those past it."""
from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

from subak.report.charts.fit import dressed
from subak.reproduce.claims import Figure, title_of
from subak.reproduce.figure_parts import COLOURS, FIGURE_HEIGHT, FIGURE_WIDTH, LOG, base, colour, escaped


def draw(figure: Figure) -> alt.TopLevelMixin:
    """Return the chart of a figure."""
    table = figure.table if figure.points is None else figure.points
    return dressed(DRAWN[figure.key](table).properties(title=title_of(figure)))


def _logarithmic(name: str, words: str) -> Any:
    return alt.Y(f"{escaped(name)}:Q", title=words, scale=LOG, axis=alt.Axis(format="~g", tickCount=6))


def _shares(points: pl.DataFrame) -> Any:
    orders = points["order"].unique(maintain_order=True).to_list()
    return base(points).mark_line(interpolate="step-after", strokeWidth=1.5).encode(
        x=alt.X("time (s):Q", title="time (s)"), y=alt.Y("share:Q", title="dominant share", axis=alt.Axis(format="~%")),
        color=colour("job"),
    ).properties(width=FIGURE_WIDTH // 2, height=FIGURE_HEIGHT // 2).facet(
        alt.Facet("order:N", title=None, sort=orders), columns=2)


def _times(points: pl.DataFrame) -> Any:
    return base(points).mark_line(point=True).encode(
        x=alt.X("jobs:Q", title="jobs, logarithmic", scale=LOG, axis=alt.Axis(format="~s", tickCount=5)),
        y=_logarithmic("time (s)", "total time (s), logarithmic"), color=colour("order", sort=None),
    ).properties(width=FIGURE_WIDTH // 2, height=FIGURE_HEIGHT // 2).facet(
        alt.Facet("levels:N", title="levels"), columns=2)


def _root(table: pl.DataFrame) -> Any:
    names = [name for name in table.columns if name.endswith("(times)")]
    shown = table.unpivot(names, index=["levels", "jobs"], variable_name="what", value_name="times").with_columns(
        pl.col("what").str.strip_suffix(" (times)"))
    return base(shown).mark_line(point=True).encode(
        x=alt.X("jobs:Q", title="jobs, logarithmic", scale=LOG, axis=alt.Axis(format="~s", tickCount=5)),
        y=_logarithmic("times", "times, logarithmic"),
        color=colour("what", sort=None).legend(labelLimit=400, columns=1),
        strokeDash=alt.StrokeDash("levels:N", title="levels"))


def _tree(table: pl.DataFrame) -> Any:
    return base(table).mark_line(point=True).encode(
        x=alt.X("nodes:Q", title="nodes of the tree, logarithmic", scale=LOG, axis=alt.Axis(format="~s", tickCount=5)),
        y=_logarithmic("a decision (s)", "time of a decision (s), logarithmic"), color=colour("order", sort=None))


def _large(table: pl.DataFrame) -> Any:
    return base(table).mark_point(filled=True, size=90, color=COLOURS[0]).encode(
        x=alt.X("decisions a second:Q", title="decisions a second, logarithmic", scale=LOG,
                axis=alt.Axis(format="~s", tickCount=6)),
        y=alt.Y("order:N", sort=None, title=None))


def _federation(table: pl.DataFrame) -> Any:
    panels = [base(table.filter(pl.col("varied") == varied)).mark_line(point=True).encode(
        x=alt.X("value:N", sort=None, title=varied, axis=alt.Axis(labelAngle=0)),
        y=alt.Y(f"{escaped('unfairness (share)')}:Q", title="unfairness", axis=alt.Axis(format="~%")),
        color=colour("queue_order", sort=None), strokeDash=alt.StrokeDash("fairness:N", title="fairness"),
    ).properties(width=FIGURE_WIDTH // 3, height=FIGURE_HEIGHT // 2)
        for varied in table["varied"].unique(maintain_order=True)]
    return alt.hconcat(*panels)


DRAWN: dict[str, Callable[[pl.DataFrame], Any]] = {
    "4": _shares, "5": _times, "root": _root, "tree": _tree, "large": _large, "federation": _federation,
}
