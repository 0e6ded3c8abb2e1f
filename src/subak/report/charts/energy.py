"""Charts of energy: what machines draw."""
from collections.abc import Callable
from functools import partial

import altair as alt
import numpy as np
import polars as pl

from subak.measures import series
from subak.measures.runs import Run
from subak.report.charts.lines import Line, line_chart, over_time, stacked
from subak.report.charts.parts import Chart, finished
from subak.report.charts.times import times_of
from subak.report.number_text import POWER_STEPS

POWER_PANEL_HEIGHT = 110  # pixels, where there are several


def energy_chart_makers(runs: list[Run]) -> dict[str, Callable[[], Chart]]:
    """Return the charts of energy by name, still to be drawn; none where no run knows of it."""
    known = [run for run in runs if run.summary.energy]
    return {"power-over-time": partial(power, known, runs)} if known else {}


def power(runs: list[Run], everyone: list[Run]) -> Chart:
    """Draw the power of all machines over time, and below it what a kWh costs and emits where that changes.

    *everyone* are all runs of the page, whose colours and axis it shares.
    """
    times = times_of(everyone)
    table = times.in_unit(series.power_over_time(runs))
    most = float(table["watts"].max() or 0.0)  # type: ignore[arg-type]
    _, size, unit = next(step for step in POWER_STEPS if most < step[0])
    panels = {f"power ({unit})": table.with_columns(value=pl.col("watts") / size), **_tariffs(runs, table)}
    every = list(dict.fromkeys(Line(*key) for key in table.select("run", "scheduler").iter_rows()))
    drawn = {title: over_time(panel, "time", "value", every) for title, panel in panels.items()}
    several = len(drawn) > 1
    reading = times.reading("mean", "number")
    chart = line_chart(stacked(drawn) if several else drawn[next(iter(drawn))], everyone, reading).encode(
        x=times.x(), y=alt.Y("y:Q", title=None if several else next(iter(drawn)),
                                   axis=alt.Axis(tickCount=3 if several else 5)))
    if several:
        chart = chart.encode(facet=alt.Facet("facet:N", title=None, sort=list(drawn), columns=1, spacing=12,
                                             header=alt.Header(labelAnchor="start", labelPadding=3)))
        chart = chart.resolve_scale(y="independent").properties(height=POWER_PANEL_HEIGHT)
    return finished(chart, everyone, "Power", "Of all machines together, the mean of each period"
                    + (", and what a kWh costs and emits then" if several else ""))


def _tariffs(runs: list[Run], table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return a panel for each of price and carbon that changes over time."""
    currency = next((run.summary.energy.currency for run in runs if run.summary.energy), "") or "price"
    titles = {"price": f"price ({currency} a kWh)" if currency != "price" else "price of a kWh",
              "carbon": "carbon (kg a kWh)"}
    return {title: table.with_columns(value=pl.col(name)) for name, title in titles.items()
            if _changes(table[name])}


def _changes(values: pl.Series) -> bool:
    """Return whether means over time differ by more than they are rounded."""
    return bool(values.count()) and not np.allclose(values.drop_nulls(), values.drop_nulls()[0], rtol=1e-9, atol=0.0)
