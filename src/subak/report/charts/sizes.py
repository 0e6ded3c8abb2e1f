"""The chart of a sizing: an objective against the number of machines."""
import math
from collections.abc import Iterator
from typing import Any

import altair as alt

from subak.experiment.sizing.answer import Sized, Sizing
from subak.measures.objective import IN_SECONDS, Objective
from subak.report.charts.parts import HEIGHT
from subak.report.charts.times import seconds_ticks
from subak.report.sizing.objective_words import objectives_of, value_text
from subak.report.sizing.words import in_short, interval_text

ROOM_ABOVE = 3.0  # times the bound: what is drawn; sizes that are far too small are in the table
ROOM_BESIDE = 1.6  # times the answer


def size_chart(sizing: Sizing, number: int) -> alt.LayerChart:
    """Draw an objective, by its place, against the number of machines, a colour for each kind of them."""
    objective = objectives_of(sizing)[number]
    names = [answer.name for answer in sizing.answers]
    points = [row for answer in sizing.answers for row in _points(sizing, answer, number)]
    top = _top(points, objective, sizing)
    axis = seconds_ticks(top) if objective.measure in IN_SECONDS else alt.Axis()
    x = alt.X("machines:Q", title="machines", scale=alt.Scale(domain=_across(sizing), nice=False), axis=alt.Axis(
        format=",d", tickMinStep=1))
    y = alt.Y("mean:Q", title=f"{objective.measure}.{objective.statistic}", axis=axis,
              scale=alt.Scale(domain=[0, top], nice=False))
    colour = alt.Color("kind:N", scale=alt.Scale(domain=names), legend=alt.Legend() if len(names) > 1 else None)
    base = alt.Chart(alt.InlineData(values=points)).encode(x=x, y=y, color=colour)
    curve = base.mark_line(clip=True, strokeWidth=1.75)
    band = base.mark_area(clip=True, opacity=0.18).encode(y=alt.Y("low:Q"), y2="high:Q")
    marks = base.mark_point(clip=True, size=60, filled=True).encode(
        shape=alt.Shape("kept:N", scale=alt.Scale(domain=["kept", "missed"], range=["circle", "cross"]),
                        legend=alt.Legend()),
        tooltip=[alt.Tooltip("kind:N"), alt.Tooltip("machines:Q", format=",d"), alt.Tooltip("value:N", title="mean"),
                 alt.Tooltip("interval:N", title="95 % interval"), alt.Tooltip("kept:N", title="all objectives")])
    bound = alt.Chart(alt.InlineData(values=[{"bound": objective.bound}])).mark_rule(strokeDash=[4, 3]).encode(
        y=alt.Y("bound:Q"))
    lines = [_rule(sizing, which, colour, dash) for which, dash in (("fewest", [1, 0]), ("buy", [6, 3]))]
    return alt.LayerChart(layer=[band, curve, marks, bound, *lines]).properties(
        title=alt.Title(objective.text, subtitle=_subtitle(sizing)), width="container", height=HEIGHT,
        usermeta={"legend": [*names, "kept", "missed"]}, description=f"{objective.text} against machines")


def _rule(sizing: Sizing, which: str, colour: alt.Color, dash: list[int]) -> alt.Chart:
    """Draw a line at each answer's fewest machines, or at those needed."""
    rows = [{which: getattr(answer, which), "kind": answer.name}
            for answer in sizing.answers if getattr(answer, which) is not None]
    return alt.Chart(alt.InlineData(values=rows)).mark_rule(clip=True, strokeWidth=1, strokeDash=dash).encode(
        x=alt.X(f"{which}:Q"), color=colour, tooltip=[alt.Tooltip("kind:N"), alt.Tooltip(
            f"{which}:Q", title="fewest" if which == "fewest" else "needed", format=",d")])


def _points(sizing: Sizing, answer: Sized, number: int) -> Iterator[dict[str, Any]]:
    """Return a row a size at which the objective came to something."""
    objectives = objectives_of(sizing)
    text = value_text(objectives[number])
    for size in answer.sizes:
        value = size.values[number] if size.values else None
        if value is None or math.isinf(value.mean):
            continue
        low, high = (value.mean if end is None else end for end in (value.low, value.high))
        said = "" if value.low is None else f"{text(value.low)} to {text(value.high)}"
        yield {"kind": answer.name, "machines": size.machines, "mean": value.mean, "low": low, "high": high,
               "value": text(value.mean), "interval": said, "kept": "kept" if size.keeps(objectives) else "missed"}


def _across(sizing: Sizing) -> list[float]:
    """Return the ends of the axis of machines: around the answers, or all that was tried."""
    found = [answer.fewest for answer in sizing.answers if answer.fewest is not None]
    tried = [size.machines for answer in sizing.answers for size in answer.sizes]
    if not found:
        return [min(tried), max(tried) + 1]
    ends = [answer.buy or 0 for answer in sizing.answers]
    return [math.floor(min(found) / ROOM_BESIDE), math.ceil(max([*found, *ends]) * ROOM_BESIDE)]


def _top(points: list[dict[str, Any]], objective: Objective, sizing: Sizing) -> float:
    largest = max([row["high"] for row in points] or [objective.bound])
    top = largest if sizing.best is None else min(largest, ROOM_ABOVE * objective.bound)
    return max(top, objective.bound * 1.1) or 1.0


def _subtitle(sizing: Sizing) -> str:
    answer = sizing.answers[0 if sizing.best is None else sizing.best]
    if answer.buy is None:
        return in_short(answer)
    interval = interval_text(answer)
    around = f" (95 % interval {interval})" if interval else ""
    return f"{answer.name}: fewest {answer.fewest:,}{around}, needed {answer.buy:,}"
