"""Draws the chart of `subak inspect`: demand against capacity, arrivals, run times, configurations."""
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.describe import describe_fleet
from subak.fleet.table import Fleet
from subak.output.places import refuse_file
from subak.output.writing import write_file
from subak.report.number_text import seconds_text
from subak.workload.demand import Demand
from subak.workload.table import TIME_0, Workload

if TYPE_CHECKING:
    import altair as alt

    from subak.report.charts.times import Times

SUFFIXES = (".html", ".svg", ".png")
INSPECT_WIDTH, INSPECT_HEIGHT = 640, 200
BIN_COUNT = 120


def check_chart_path(path: Path | None) -> None:
    """Raise InputError unless the file's name ends as a chart's must and its folder is there."""
    if path is None:
        return
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"--chart: the file must end in {', '.join(SUFFIXES)}, not {path.name!r}")
    refuse_file(path)
    if not path.parent.is_dir():
        raise InputError(f"--chart: no such folder as {path.parent}")


def workload_chart(workload: Workload, demand: Demand) -> "alt.VConcatChart":
    """Return an Altair chart of a workload: a panel a resource, arrivals over time, distribution of run times."""
    import altair as alt  # noqa: PLC0415  (slow to import, and most calls draw nothing)

    from subak.report.charts.times import times  # noqa: PLC0415  (as above)

    last = max([*demand.times, float(workload.tasks["arrival"].max() or 0.0)])  # type: ignore[arg-type]
    clock = times(0.0, last, str(workload.provenance.notes.get("remarks", {}).get(TIME_0, "")))
    panels = [_demand_panel(alt, demand, resource.name, resource.of, clock) for resource in workload.resources]
    panels += [_arrival_panel(alt, workload, clock), _run_time_panel(alt, workload)]
    return alt.vconcat(*panels, title=f"Workload {workload.provenance.name}").resolve_scale(color="independent")


def fleet_chart(fleet: Fleet) -> "alt.Chart":
    """Return an Altair chart of a fleet: machines of each configuration."""
    import altair as alt  # noqa: PLC0415  (as above)

    rows = [{"configuration": ", ".join(f"{name} {amount:.4g}" for name, amount in each.capacity.items()),
             "machines": each.machines} for each in describe_fleet(fleet).configurations[:40]]
    title = f"Fleet {fleet.provenance.name}"
    return alt.Chart(alt.InlineData(values=rows), width=INSPECT_WIDTH, title=title).mark_bar().encode(
        x=alt.X("machines:Q", title="machines"),
        y=alt.Y("configuration:N", title=None, sort="-x"),
        tooltip=["configuration:N", "machines:Q"],
    )


def _shown(times: "Times", seconds: float) -> float:
    """Return an instant as the chart has it."""
    return seconds / times.size


def _text(times: "Times", seconds: float) -> str:
    """Return an instant in words."""
    if times.begins is None:
        return seconds_text(seconds)
    return f"{times.begins + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"


def _title(times: "Times") -> str:
    """Return the title of the axis, from when to when."""
    if times.begins is None:
        return f"time ({times.word})"
    first, last = times.begins, times.begins + timedelta(seconds=times.span)
    return f"time ({times.zone}{', ' if times.zone else ''}from {first:%Y-%m-%d} to {last:%Y-%m-%d})"


def _demand_panel(alt: Any, demand: Demand, name: str, of: str, clock: "Times") -> Any:
    lines = {"requested": demand.requested[name], **({"capacity": demand.capacity[name]} if demand.capacity else {})}
    rows = [{"at": _shown(clock, time), "time": _text(clock, time), "amount": amount, "what": what}
            for what, amounts in lines.items() for time, amount in zip(demand.times, amounts, strict=True)]
    title = f"{name}: requested if every task started on arrival"
    base = alt.Chart(alt.InlineData(values=rows), width=INSPECT_WIDTH, height=INSPECT_HEIGHT, title=title)
    return base.mark_line(interpolate="step-after").encode(
        x=clock.x("at", _title(clock), zooms=False),
        y=alt.Y("amount:Q", title=f"{name} ({of})"),
        color=alt.Color("what:N", title=None, scale=alt.Scale(domain=list(lines), range=["#d1495b", "#30638e"])),
        tooltip=["what:N", "time:N", alt.Tooltip("amount:Q", format=",.4~f")],
    )


def _arrival_panel(alt: Any, workload: Workload, clock: "Times") -> Any:
    counts, edges = np.histogram(workload.tasks["arrival"].to_numpy(), bins=BIN_COUNT)
    rows = [{"start": _shown(clock, low), "end": _shown(clock, high), "from": _text(clock, low), "tasks": count}
            for count, low, high in zip(counts.tolist(), edges.tolist(), edges[1:].tolist(), strict=False)]
    chart = alt.Chart(alt.InlineData(values=rows), width=INSPECT_WIDTH, height=INSPECT_HEIGHT // 2, title="Arrivals")
    return chart.mark_bar().encode(
        x=clock.x("start", _title(clock), zooms=False, bin="binned"),
        x2="end",
        y=alt.Y("tasks:Q", title="tasks", scale=alt.Scale(type="symlog")),
        tooltip=["from:N", "tasks:Q"],
    )


def _run_time_panel(alt: Any, workload: Workload) -> Any:
    from subak.report.charts.parts import SECOND_LABEL, SECOND_LADDER  # noqa: PLC0415  (as above)

    run_times = workload.tasks.filter(pl.col("run_time").is_finite())["run_time"].to_numpy()
    levels = np.linspace(0, 1, 201)
    values = np.quantile(run_times, levels) if len(run_times) else levels
    rows = [{"seconds": value, "share": level, "run time": seconds_text(value)}
            for value, level in zip(values.tolist(), levels.tolist(), strict=True)
            if value > 0]
    title = "Share of the tasks that run at most so long"
    base = alt.Chart(alt.InlineData(values=rows), width=INSPECT_WIDTH, height=INSPECT_HEIGHT // 2, title=title)
    return base.mark_line(interpolate="step-after").encode(
        x=alt.X("seconds:Q", title="run time", scale=alt.Scale(type="log"),
                axis=alt.Axis(values=list(SECOND_LADDER), labelExpr=SECOND_LABEL)),
        y=alt.Y("share:Q", title="share of tasks", axis=alt.Axis(format="%")),
        tooltip=["run time:N", alt.Tooltip("share:Q", format=".1%")],
    )


def write_chart(chart: "alt.TopLevelMixin", path: Path) -> None:
    """Write a chart; the file appears only when it is whole. An HTML page holds all it needs."""
    from subak.report.document import chart_page, picture  # noqa: PLC0415  (as above)

    kind, spec = path.suffix.lower().removeprefix("."), chart.to_dict()
    write_file(path, chart_page(spec) if kind == "html" else picture(spec, kind))
