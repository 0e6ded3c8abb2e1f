"""Charts of fitted laws: data against models, and the tail, on logarithmic axes."""
from collections.abc import Sequence
from typing import Any, TypeVar

import altair as alt
import numpy as np

from subak.report.charts.parts import SECOND_LABEL
from subak.report.charts.theme import LIGHT, chart_config
from subak.workload.google_like.goodness import CURVE_LEVELS, Comparison

Drawn = TypeVar("Drawn", bound=alt.TopLevelMixin)

PANEL_WIDTH, PANEL_HEIGHT = 340, 230  # pixels of a panel
POINT_COUNT = 160  # of a model's line
DATA = "data"
LABEL = f"datum.value < 1e-3 ? format(datum.value * 1e6, '~g') + ' µs' : ({SECOND_LABEL})"
LINES = (DATA, "log-normal", "Weibull", "gamma", "Pareto from 0", "Pareto from the least", "written to the file",
         "paper's law")
FITTED = LINES[:-1]


def fit_chart(title: str, comparisons: Sequence[Comparison]) -> alt.VConcatChart:
    """Draw each comparison in a row: the share that is at most x beside the share that is more (both axes log)."""
    rows = [alt.hconcat(distribution_panel(each), tail_panel(each)) for each in comparisons]
    chart = alt.vconcat(*rows, title=alt.Title(title, subtitle="Data against fitted laws, in order of distance (KS)"))
    return dressed(chart)


def dressed(chart: Drawn) -> Drawn:
    """Return the chart in the report's light colours, on white."""
    look = {name: value for name, value in chart_config(LIGHT).items() if value is not None}
    return chart.configure(**look).properties(background="white", padding=16)


def distribution_panel(comparison: Comparison, only: Sequence[str] = FITTED) -> alt.Chart:
    """Draw the cumulative distribution of a comparison, x logarithmic."""
    near = ", ".join(f"{law.name} {law.distance:.3f}" for law in comparison.laws if law.name in only)
    title = alt.Title(f"{comparison.name} ({comparison.count:,})", subtitle=_wrapped(near))
    return _lines(_points(comparison, only, tail=False), comparison, only).encode(
        y=alt.Y("share:Q", title="share that is at most so long", axis=alt.Axis(format="~%"),
                scale=alt.Scale(domain=[0, 1])),
    ).properties(title=title)


def tail_panel(comparison: Comparison, only: Sequence[str] = FITTED) -> alt.Chart:
    """Draw the share that is longer, both axes logarithmic."""
    least = max(0.5 / comparison.count, 1e-6)
    return _lines(_points(comparison, only, tail=True), comparison, only).encode(
        y=alt.Y("share:Q", title="share that is longer", axis=alt.Axis(format="~%", values=_shares(least)),
                scale=alt.Scale(type="log", domain=[least, 1], nice=False)),
    ).properties(title="The tail")


def _wrapped(text: str, width: int = 62) -> list[str]:
    lines = [""]
    for word in text.split(", "):
        longer = f"{lines[-1]}, {word}" if lines[-1] else word
        lines[-1:] = [longer] if len(longer) <= width else [lines[-1], word]
    return lines


def _points(comparison: Comparison, only: Sequence[str], tail: bool) -> list[dict[str, Any]]:
    low, high = _range(comparison)
    grid = np.geomspace(low, high, POINT_COUNT)
    curves = {law.name: (grid, law.frozen.sf(grid) if tail else law.frozen.cdf(grid))
              for law in comparison.laws if law.name in only}
    levels = np.array(CURVE_LEVELS)
    curves = {DATA: (np.array(comparison.values), 1 - levels if tail else levels)} | curves
    return [{"law": name, "seconds": _short(place), "share": _short(share)}
            for name, (places, shares) in curves.items()
            for place, share in zip(places.tolist(), shares.tolist(), strict=True) if share > 0 or not tail]


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _range(comparison: Comparison) -> tuple[float, float]:
    """Return the ends of the axis: nearly all of the data, and twice the most."""
    return max(comparison.values[1], 1e-9) / 2, comparison.values[-1] * 2


def _lines(rows: list[dict[str, Any]], comparison: Comparison, only: Sequence[str]) -> Any:
    low, high = _range(comparison)
    shown = [name for name in LINES if name == DATA or name in only]
    colours = [LIGHT["ink"] if name == DATA else LIGHT[f"series-{LINES.index(name)}"] for name in shown]
    written = "datum.law === 'written to the file'"
    return alt.Chart(alt.InlineData(values=rows), width=PANEL_WIDTH, height=PANEL_HEIGHT).mark_line(clip=True).encode(
        x=alt.X("seconds:Q", title="seconds, logarithmic", scale=alt.Scale(type="log", domain=[low, high], nice=False),
                axis=alt.Axis(values=_steps(low, high), labelExpr=LABEL, labelOverlap=True)),
        color=alt.Color("law:N", scale=alt.Scale(domain=shown, range=colours), legend=alt.Legend(columns=4)),
        strokeWidth=alt.condition("datum.law === 'data'", alt.value(3), alt.value(1.5)),
        strokeDash=alt.condition(written, alt.value([5, 3]), alt.value([1, 0])),
        tooltip=["law:N", alt.Tooltip("seconds:Q", format=".4~g"), alt.Tooltip("share:Q", format=".3~%")],
    )


def _steps(low: float, high: float) -> list[float]:
    """Return round durations from *low* to *high*: powers of ten under 10 s, then minutes, hours and days."""
    tens = [float(f"1e{power}") for power in range(-9, 2)]
    return [step for step in (*tens, 60.0, 600.0, 3600.0, 36_000.0, 864_000.0, 8_640_000.0) if low <= step <= high]


def _shares(least: float) -> list[float]:
    return [float(f"1e{power}") for power in range(-6, 1) if 10.0**power >= least]
