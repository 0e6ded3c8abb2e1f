"""The chart of the Dodoor paper's results here."""

import altair as alt

from subak.report.charts.fit import dressed
from subak.reproduce.claims import Figure, title_of
from subak.reproduce.figure_parts import FIGURE_HEIGHT, FIGURE_WIDTH, base, colour


def draw(figure: Figure) -> alt.TopLevelMixin:
    """Return the mean latency against the load, a line a scheduler."""
    assert figure.points is not None
    return dressed(base(figure.points).mark_line(point=True).encode(
        x=alt.X("load (share):Q", title="cores asked for, of those there are", axis=alt.Axis(format="~%")),
        y=alt.Y("mean (s):Q", title="from submission to end (s), mean"), color=colour("scheduler", sort=None),
    ).properties(width=FIGURE_WIDTH, height=FIGURE_HEIGHT, title=title_of(figure)))
