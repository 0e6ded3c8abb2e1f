"""Charts of what each way of sharing gives the queues of a tree."""

import altair as alt
import numpy as np

from subak.measures.fairness.fair_shares import EXACT, FairShares
from subak.report.charts.fit import dressed
from subak.report.charts.parts import Chart
from subak.report.charts.theme import LIGHT, SHAPES

SHARES_WIDTH, SHARES_ROW_HEIGHT = 560, 60  # pixels
COLOURS = [LIGHT[f"series-{number}"] for number in range(1, 9)]
SHARE = alt.Axis(format="~%")


def share_chart(found: FairShares, nodes: np.ndarray, title: str) -> alt.LayerChart | alt.FacetChart:
    """Draw the dominant share of some nodes (int[node]): a mark a way, and a tick where the guarantee is."""
    rows = [{"queue": found.tree.names[node], "way": way, "share": float(found.share[way][node]),
             "guarantee": float(found.guarantee[node]), "below": "yes" if found.violated[way][node] else "no"}
            for node in nodes for way in found.ways]
    names = [found.tree.names[node] for node in nodes]
    base = alt.Chart(alt.InlineData(values=rows), width=SHARES_WIDTH, height=SHARES_ROW_HEIGHT * max(1, len(names)))
    y = alt.Y("queue:N", title=None, sort=names, axis=alt.Axis(grid=True, tickBand="extent", ticks=False))
    ticks = base.mark_tick(thickness=2, size=SHARES_ROW_HEIGHT - 6, color=LIGHT["quiet"]).encode(
        y=y, x=alt.X("guarantee:Q", title="dominant share; ticks are guarantees", axis=SHARE))
    marks = base.mark_point(filled=True, size=80).encode(
        y=y, yOffset=alt.YOffset("way:N", sort=found.ways, scale=alt.Scale(paddingOuter=0.2)),
        x=alt.X("share:Q", axis=SHARE), color=_colour(found), shape=_shape(found),
        tooltip=["queue:N", "way:N", alt.Tooltip("share:Q", format=".2%"), alt.Tooltip("guarantee:Q", format=".2%"),
                 alt.Tooltip("below:N", title="below its guarantee")])
    return dressed(alt.layer(ticks, marks).properties(title=title))


def error_chart(found: FairShares) -> Chart:
    """Draw by how much each way misses the exact share of each leaf."""
    leaves = [int(leaf) for leaf in found.tree.leaves]
    off = {way: found.share[way] - found.share[EXACT] for way in found.ways if way != EXACT}
    rows = [{"queue": found.tree.names[leaf], "way": way, "off": float(off[way][leaf])}
            for leaf in leaves for way in off]
    names = [found.tree.names[leaf] for leaf in leaves]
    height = SHARES_ROW_HEIGHT * max(1, len(names))
    chart = alt.Chart(alt.InlineData(values=rows), width=SHARES_WIDTH, height=height).mark_bar()
    return dressed(chart.encode(
        y=alt.Y("queue:N", title=None, sort=names), yOffset=alt.YOffset("way:N", sort=found.ways),
        x=alt.X("off:Q", title="dominant share, less the exact one", axis=SHARE),
        color=_colour(found).legend(values=list(off)),
        tooltip=["queue:N", "way:N", alt.Tooltip("off:Q", format="+.2%")],
    ).properties(title="How far off the exact shares"))


def _colour(found: FairShares) -> alt.Color:
    return alt.Color("way:N", title=None, scale=alt.Scale(domain=found.ways, range=COLOURS), legend=alt.Legend())


def _shape(found: FairShares) -> alt.Shape:
    return alt.Shape("way:N", title=None, scale=alt.Scale(domain=found.ways, range=SHAPES), legend=alt.Legend())
