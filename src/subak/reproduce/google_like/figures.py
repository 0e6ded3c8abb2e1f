"""Figures 1 to 7 of the Google-like paper over measured data."""
from typing import Any

import altair as alt
import polars as pl

from subak.report.charts.fit import PANEL_HEIGHT, PANEL_WIDTH, distribution_panel, dressed, tail_panel
from subak.report.charts.theme import LIGHT
from subak.reproduce.google_like.experiments import Reproduction
from subak.reproduce.google_like.laws import PAPER_LAW
from subak.reproduce.google_like.published import GROUPS

MAKESPAN_LINES = ("data", "log-normal", "Pareto from the least", PAPER_LAW)
GAP_LINES = ("data", "Pareto from 0", PAPER_LAW)
TITLES = {
    "figure-1": "Fig. 1: priority groups of each scheduling class",
    "figure-2": "Fig. 2: gaps between tasks, and Pareto laws",
    "figure-3": "Fig. 3: mean makespan of each priority group, by ending",
    "figure-4": "Fig. 4: makespans of tasks that finished, and log-normal laws",
    "figure-5": "Fig. 5: times until the KILL of killed tasks, and log-normal laws",
    "figure-6": "Fig. 6: priority groups of each scheduling class, tasks that finished",
    "figure-7": "Fig. 7: priority groups of each scheduling class, killed tasks",
}


def figures(found: Reproduction) -> dict[str, alt.TopLevelMixin]:
    """Return the figures by name; one whose tasks the source lacks is left out."""
    drawn: dict[str, Any] = {}
    for name, key, lines in (("figure-2", "gaps", GAP_LINES), ("figure-4", "FINISH", MAKESPAN_LINES),
                             ("figure-5", "KILL", MAKESPAN_LINES)):
        if key in found.comparisons:
            compared = found.comparisons[key]
            panels = alt.hconcat(distribution_panel(compared, lines), tail_panel(compared, lines))
            drawn[name] = dressed(panels.properties(title=TITLES[name]))
    drawn["figure-3"] = dressed(_group_means(found).properties(title=TITLES["figure-3"]))
    for number in found.classes["figure"].unique():
        name = f"figure-{number}"
        drawn[name] = dressed(_classes(found.classes.filter(figure=number)).properties(title=TITLES[name]))
    return dict(sorted(drawn.items()))


def _classes(counts: pl.DataFrame) -> Any:
    """Draw the groups' shares of each scheduling class, above one another."""
    return alt.Chart(alt.InlineData(values=counts.to_dicts()), width=2 * PANEL_WIDTH, height=PANEL_HEIGHT).mark_bar(
        ).encode(
        x=alt.X("class:O", title="scheduling class", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("tasks:Q", stack="normalize", title="share of the tasks", axis=alt.Axis(format="~%")),
        color=alt.Color("group:N", title="priority group", sort=list(GROUPS), scale=alt.Scale(
            domain=list(GROUPS), range=[LIGHT[f"series-{number}"] for number in range(1, 5)])),
        order=alt.Order("group:N"),
        tooltip=["class:O", "group:N", alt.Tooltip("tasks:Q", format=",")])


def _group_means(found: Reproduction) -> Any:
    """Draw a mark a group, ending and source on a logarithmic axis."""
    rows = found.groups.to_dicts()
    return alt.Chart(alt.InlineData(values=rows), width=2 * PANEL_WIDTH, height=PANEL_HEIGHT).mark_point(
        filled=True, size=130).encode(
        x=alt.X("mean:Q", title="mean makespan (s), logarithmic",
                scale=alt.Scale(type="log", domain=[100, 1_000_000]),
                axis=alt.Axis(values=[100, 1000, 10_000, 100_000, 1_000_000], format="~s")),
        y=alt.Y("group:N", title=None, sort=list(GROUPS)),
        yOffset=alt.YOffset("ended:N"),
        color=alt.Color("ended:N", scale=alt.Scale(domain=["FINISH", "KILL"],
                                                   range=[LIGHT["series-1"], LIGHT["series-2"]])),
        shape=alt.Shape("source:N", scale=alt.Scale(domain=["paper", "measured"], range=["diamond", "circle"])),
        tooltip=["source:N", "ended:N", "group:N", alt.Tooltip("mean:Q", format=",.1f"),
                 alt.Tooltip("count:Q", format=",")],
    )
