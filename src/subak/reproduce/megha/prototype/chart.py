"""The chart of Fig. 12."""

import altair as alt
import polars as pl

from subak.reproduce.figure_parts import LOG, base, colour

LEAST_S = 1e-4  # what a logarithmic axis shows for less


def draw(table: pl.DataFrame) -> alt.TopLevelMixin:
    """Return the chart of the figure's points."""
    shown = table.with_columns(pl.col("seconds").clip(LEAST_S))
    return base(shown).mark_line().encode(
        x=alt.X("seconds:Q", title="seconds, logarithmic", scale=LOG, axis=alt.Axis(format="~g")),
        y=alt.Y("share:Q", title="share that is at most so long", axis=alt.Axis(format="~%")),
        color=colour("what"), strokeDash=alt.StrokeDash("workload:N", title=None))
