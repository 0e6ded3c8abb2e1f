"""The charts of a study: measures over one setting, over two, and against each other."""
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import altair as alt
import numpy as np

from subak.report.charts.parts import HEIGHT, Chart
from subak.report.number_text import UNITS, in_one_unit, number_text, share_text
from subak.report.study.columns import Column
from subak.report.study.facts import Group, front, grouped, means
from subak.report.study.results import Results, Setting

LINES_MAX = 8  # as many as there are colours that can be told apart
TEXTS_MAX = 8  # columns of a heat map whose cells have their values in them
CELL_HEIGHT = 34  # pixels
FRONT = ["on the front", "others"]
WIDE = 10.0  # a setting whose values span more than this factor is on a logarithmic axis


def chart_makers(results: Results) -> dict[str, Callable[[], Chart]]:
    """Return every chart by its name, still to be drawn: `front-`, `over-` and `map-`, then what is drawn."""
    shown = [name for name in results.shown if name in results.columns]
    judged = [name for name in shown if results.columns[name].less_is_better is not None]
    settings = range(len(results.settings))
    several = len(results.places) > 1
    return {
        **{f"front-{one}-{other}": partial(front_chart, results, one, other)
           for one, other in itertools.combinations(judged[:3], 2) if several},
        **{f"over-{results.settings[setting].title}-{name}": partial(over_chart, results, setting, name)
           for setting in settings for name in shown},
        **{f"map-{results.settings[one].title}-{results.settings[other].title}-{name}":
           partial(heat_map, results, one, other, name)
           for one, other in itertools.combinations(settings, 2) for name in shown},
    }


def over_chart(results: Results, setting: int, name: str) -> Chart:
    """Draw a measure over a setting with its intervals, a line for each combination of the others, if these are few."""
    along, column = results.settings[setting], results.columns[name]
    others = tuple(number for number in range(len(results.settings)) if number != setting)
    lines = others if _combinations(results, others) <= LINES_MAX else ()
    groups = grouped(results, name, (setting,), lines)
    size, unit = _unit(column, [group.value for group in groups])
    rows = [_row(group, along, column, size) for group in groups]
    names = list(dict.fromkeys(group.name for group in groups))
    tooltip = [alt.Tooltip("x_name:N", title=along.title),
               *([alt.Tooltip("line:N", title=" and ".join(results.settings[each].title for each in lines))]
                 if lines else []),
               alt.Tooltip("text:N", title=column.title), alt.Tooltip("between:N", title="95 % interval")]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=_axis(along), color=alt.Color("line:N", scale=alt.Scale(domain=names),
                                        legend=alt.Legend() if len(names) > 1 else None))
    y = alt.Y("value:Q", title=_with_unit(column, unit), scale=alt.Scale(zero=False))
    bars = base.mark_rule(strokeWidth=2, opacity=0.55).encode(y=y, y2="high:Q").transform_filter(
        "isValid(datum.low)").transform_calculate(value="datum.low")
    layers = [*([bars] if any(group.interval for group in groups) else []),
              *([base.mark_line(strokeWidth=2).encode(y=y)] if along.numbers is not None else []),
              base.mark_point(filled=True, size=60, opacity=1).encode(y=y, tooltip=tooltip)]
    return _finished(alt.LayerChart(layer=layers), f"{column.title}, over {along.title}",
                     _subtitle(results, lines, others, groups), names)


def heat_map(results: Results, one: int, other: int, name: str) -> Chart:
    """Draw a measure over two settings, the mean over all others."""
    along, up, column = results.settings[one], results.settings[other], results.columns[name]
    groups = grouped(results, name, (one, other), ())
    values = [group.value for group in groups]
    size, unit = _unit(column, values)
    middle = (min(values) + max(values)) / 2
    rows = [{**_row(group, along, column, size), "y": up.names[group.place[1]], "dark": group.value > middle,
             "short": number_text(group.value / size)} for group in groups]
    tooltip = [alt.Tooltip("x_name:N", title=along.title), alt.Tooltip("y:N", title=up.title),
               alt.Tooltip("text:N", title=column.title), alt.Tooltip("between:N", title="95 % interval")]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("x_name:O", title=along.title, sort=list(along.names), axis=alt.Axis(labelAngle=0)),
        y=alt.Y("y:O", title=up.title, sort=list(up.names)), tooltip=tooltip)
    cells = base.mark_rect().encode(color=alt.Color("value:Q", scale=alt.Scale(scheme="blues"), legend=None))
    texts = base.mark_text(fontSize=12).encode(
        text="short:N", color=alt.when("datum.dark").then(alt.value("white")).otherwise(alt.value("#111")))
    layers = [cells, texts] if len(along.names) <= TEXTS_MAX else [cells]
    others = tuple(number for number in range(len(results.settings)) if number not in (one, other))
    chart = alt.LayerChart(layer=layers, height=CELL_HEIGHT * len(up.names))
    return _finished(chart, f"{_with_unit(column, unit)}, over {along.title} and {up.title}",
                     _subtitle(results, (), others, []), [])


def front_chart(results: Results, one: str, other: str) -> Chart:
    """Draw all points by two measures, and the line of those that no other is better than in both."""
    columns = results.columns[one], results.columns[other]
    value = [means(results, name) for name in (one, other)]
    finite = [point for point in range(len(results.places)) if np.isfinite(value[0][point] + value[1][point])]
    units = [_unit(column, each[finite].tolist()) for column, each in zip(columns, value, strict=True)]
    best = front(results, one, other)
    rows = [{"x": _number(value[0][point] / units[0][0]), "y": _number(value[1][point] / units[1][0]),
             "point": results.point_name(point), "front": FRONT[point not in best],
             "one": columns[0].measure.text(value[0][point]), "other": columns[1].measure.text(value[1][point])}
            for point in sorted(finite, key=lambda point: point in best)]  # the front is drawn over the others
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("x:Q", title=_with_unit(columns[0], units[0][1]), scale=alt.Scale(zero=False, nice=True)),
        y=alt.Y("y:Q", title=_with_unit(columns[1], units[1][1]), scale=alt.Scale(zero=False, nice=True)))
    line = base.transform_filter(f"datum.front === '{FRONT[0]}'").mark_line(
        strokeWidth=1.5, strokeDash=[4, 3], interpolate="step-after").encode(order="x:Q")
    points = base.mark_point(filled=True, size=90, opacity=0.9).encode(
        color=alt.Color("front:N", scale=alt.Scale(domain=FRONT), legend=alt.Legend()),
        shape=alt.Shape("front:N", scale=alt.Scale(domain=FRONT), legend=alt.Legend()),
        tooltip=[alt.Tooltip("point:N"), alt.Tooltip("one:N", title=columns[0].title),
                 alt.Tooltip("other:N", title=columns[1].title)])
    return _finished(alt.LayerChart(layer=[line, points]), f"{columns[0].title}, against {columns[1].title}",
                     f"{len(best)} of {len(finite)} points are on the front: no other is better in both", FRONT)


def _finished(chart: Chart, title: str, subtitle: str, names: Sequence[str]) -> Chart:
    """Add what all charts have."""
    sized = chart.properties(title=alt.Title(title, subtitle=subtitle), width="container",
                             description=f"{title}. {subtitle}.", usermeta={"legend": list(names)})
    return sized.properties(height=HEIGHT) if chart.height is alt.Undefined else sized


def _row(group: Group, along: Setting, column: Column, size: float) -> dict[str, Any]:
    """Return a mark: where it stands, and what it says to who points at it."""
    text, place = column.measure.text, group.place[0]
    low, high = group.interval or (None, None)
    return {"x": place if along.numbers is None else along.numbers[place], "x_name": along.names[place],
            "line": group.name, "value": _number(group.value / size), "text": text(group.value),
            "low": None if low is None else _number(low / size), "high": None if high is None else _number(high / size),
            "between": "" if low is None else f"{text(low)} to {text(high)}"}


def _axis(along: Setting) -> alt.X:
    """Return the axis of a setting: of numbers, logarithmic where they span much; else its places in their order."""
    if along.numbers is None or len(along.numbers) < 3:
        return alt.X("x_name:O", title=along.title, sort=list(along.names), scale=alt.Scale(type="point", padding=0.5),
                     axis=alt.Axis(labelAngle=0))
    least, most = min(along.numbers), max(along.numbers)
    kind: Any = "log" if least > 0 and most >= WIDE * least else "linear"
    return alt.X("x:Q", title=along.title, axis=alt.Axis(values=sorted(along.numbers), format="~g", grid=False),
                 scale=alt.Scale(type=kind, domain=[least, most], nice=False, padding=12))


def _combinations(results: Results, settings: tuple[int, ...]) -> int:
    return len(set(map(tuple, results.places[:, list(settings)].tolist())))


def _subtitle(results: Results, lines: tuple[int, ...], others: tuple[int, ...], groups: Sequence[Group]) -> str:
    """Say over what a mean is taken, and what is around it."""
    left = [results.settings[each].title for each in others if each not in lines]
    over = [*([f"{len(results.seeds)} seeds"] if len(results.seeds) > 1 else []), *left]
    mean = f"Mean over {' and '.join(over)}" if over else "One run each"
    bars = "; bars are 95 % intervals" if any(group.interval for group in groups) else ""
    return mean + bars


def _unit(column: Column, values: Sequence[float]) -> tuple[float, str]:
    """Return the size and the sign of the unit in which values are drawn."""
    text = column.measure.text
    unit, _ = in_one_unit(text, values)
    if text is share_text:
        return 0.01, "%"
    return next((size for _, size, sign in UNITS.get(text, ()) if sign == unit), 1.0), unit


def _with_unit(column: Column, unit: str) -> str:
    return f"{column.title} ({unit})" if unit else column.title


def _number(value: float) -> float:
    return float(f"{value:.6g}")
