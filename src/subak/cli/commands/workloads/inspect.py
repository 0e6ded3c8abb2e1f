"""`subak inspect`: prints the contents of a workload or a fleet."""
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from rich.table import Table

from subak.cli.commands.workloads.inspect_chart import check_chart_path, fleet_chart, workload_chart, write_chart
from subak.errors import InputError
from subak.fleet.describe import FleetDescription, describe_fleet
from subak.fleet.table import read_fleet
from subak.output.workplaces import recover
from subak.report.console import Console, Text, echo, echo_json, waiting
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.demand import Demand, demand
from subak.workload.describe import LEVELS, WorkloadDescription, describe
from subak.workload.samples import workload_folder
from subak.workload.table import read_workload

BARS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 60
INSPECT_ROWS = 12
LEVEL_NAMES = {0.0: "least", 0.5: "median", 1.0: "most"}


class Inspection(msgspec.Struct, frozen=True):
    """Everything that `--json` prints; a part that the folder lacks is null."""

    workload: WorkloadDescription | None
    fleet: FleetDescription | None
    demand: Demand | None


def inspect(text: str, largest: int, chart: Path | None, as_json: bool) -> None:
    """Describe a folder, and draw it where that is asked for."""
    check_chart_path(chart)
    path = workload_folder(text)
    with waiting(f"Reading {text}"):
        inspection = _inspection(path, largest)
    if chart is not None:  # before anything is printed: who reads the output may go away
        from subak.report.document import unchecked  # noqa: PLC0415  (slow to import, and most calls draw nothing)

        with unchecked(), waiting("Drawing"):
            write_chart(_chart(inspection, path), chart)
        echo(f"Wrote {chart}", err=True)
    if as_json:
        echo_json(inspection)
    else:
        show(inspection, Console())


def _inspection(path: Path, largest: int) -> Inspection:
    recover(path)
    if (path / "workload.toml").is_file():
        workload = read_workload(path)
        fleet = read_fleet(path / "fleet") if (path / "fleet").exists() else None
        described = None if fleet is None else describe_fleet(fleet)
        return Inspection(describe(workload, largest), described, demand(workload, fleet))
    if (path / "fleet.toml").is_file():
        return Inspection(None, describe_fleet(read_fleet(path)), None)
    raise InputError(f"{path}: " + ("has neither workload.toml nor fleet.toml" if path.exists() else "no such folder"))


def _chart(inspection: Inspection, path: Path) -> Any:
    if inspection.workload is None or inspection.demand is None:
        return fleet_chart(read_fleet(path))
    return workload_chart(read_workload(path), inspection.demand)


def show(inspection: Inspection, console: Console) -> None:
    """Print the tables of an inspection."""
    if inspection.workload is not None and inspection.demand is not None:
        _show_workload(inspection.workload, console)
        _show_demand(inspection.demand, inspection.workload.resources, console)
        _show_largest(inspection.workload, console)
        _show_provenance(inspection.workload.provenance, console)
    if inspection.fleet is not None:
        _show_fleet(inspection.fleet, console)


def _table(title: str, *columns: str) -> Table:
    """Return an empty table whose columns but the first are numbers."""
    table = Table(title=title, title_justify="left")
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left", overflow="fold", no_wrap=not place)
    return table


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def _show_workload(description: WorkloadDescription, console: Console) -> None:
    counts = _table(f"Workload {description.name}", "what", "count")
    for name, count in description.counts.items():
        counts.add_row(name, f"{count:,}")
    for part, values in description.parts.items():
        for value, count in values.items():
            counts.add_row(f"tasks of {part} {value}", f"{count:,}")
    console.print(counts)
    first, last, end = map(_number, (description.first_arrival, description.last_arrival, description.last_end))
    console.print(Text(f"Arrivals from {first} s to {last} s; were every task started on arrival, "
                       f"the last would end at {end} s."))
    _show_quantiles(description, console)
    if description.constraints:
        constraints = _table(f"Constraints ({len(description.constraints)} distinct)", "constraint", "tasks")
        for name, count in list(description.constraints.items())[:INSPECT_ROWS]:
            constraints.add_row(Text(name), f"{count:,}")
        console.print(constraints)


def _show_quantiles(description: WorkloadDescription, console: Console) -> None:
    found = description.quantiles
    table = _table("Distributions", "", *found)
    table.add_row("mean", *(_number(each.mean) for each in found.values()))
    for place, level in enumerate(LEVELS):
        name = LEVEL_NAMES.get(level, f"{level:.0%}")
        table.add_row(name, *(_number(each.values[place]) for each in found.values()))
    console.print(table)


def _show_demand(found: Demand, resources: tuple[Resource, ...], console: Console) -> None:
    columns = [name for resource in resources for name in _demand_columns(found, resource)]
    table = _table("Requested, if every task started on arrival" + (", and present capacity" if found.capacity else ""),
                   "time (s)", *columns)
    step = max(1, (len(found.times) - 1) // (INSPECT_ROWS - 1))
    for place in range(0, len(found.times), step):
        cells = [cell for resource in resources for cell in _demand_cells(found, resource.name, place)]
        table.add_row(f"{found.times[place]:,.0f}", *cells)
    console.print(table)
    for resource in resources:
        name = resource.name
        line = (f"most {_number(found.requested_max[name])} at {_number(found.requested_max_time[name])} s, "
                f"mean {_number(found.requested_mean[name])} ({resource.of})")
        console.print(Text(f"{name:>10} {_sparkline(found.requested[name])}  {line}"), soft_wrap=True)


def _demand_columns(found: Demand, resource: Resource) -> list[str]:
    return [f"{resource.name} requested", *([f"{resource.name} capacity", "ratio"] if found.capacity else [])]


def _demand_cells(found: Demand, name: str, place: int) -> list[str]:
    requested = found.requested[name][place]
    if found.capacity is None:
        return [_number(requested)]
    capacity = found.capacity[name][place]
    return [_number(requested), _number(capacity), f"{requested / capacity:.2f}" if capacity else "no capacity"]


def _sparkline(values: list[float]) -> str:
    """Return the values as bars from 0 to the largest; each bar is the mean of its share of them."""
    width = min(SPARK_WIDTH, len(values))
    edges = [place * len(values) // width for place in range(width + 1)]
    means = [sum(values[low:high]) / (high - low) for low, high in pairwise(edges)]
    top = max(means) or 1.0
    return "".join(BARS[min(int(mean / top * len(BARS)), len(BARS) - 1)] for mean in means)


def _show_largest(description: WorkloadDescription, console: Console) -> None:
    table = _table("Largest jobs", "job", "tasks", "arrival (s)", "mean run time (s)",
                   *(resource.name for resource in description.resources))
    table.add_column("queue", no_wrap=True, max_width=16)
    for job in description.largest_jobs:
        run_time = "no end" if job.run_time_mean is None else _number(job.run_time_mean)
        table.add_row(Text(job.job), f"{job.tasks:,}", _number(job.arrival), run_time,
                      *map(_number, job.requested.values()), Text(job.queue))
    if description.largest_jobs:
        console.print(table)


def _show_provenance(provenance: Provenance, console: Console) -> None:
    table = Table(title=f"Provenance of {provenance.name}", title_justify="left", show_header=False)
    table.add_row("origin", Text(provenance.origin))
    table.add_row("licence", Text(provenance.licence))
    for name, value in _flat(provenance.notes):
        table.add_row(Text(name), Text(value))
    console.print(table)


def _flat(notes: dict[str, Any], above: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in notes.items():
        path = f"{above}{name}"
        rows += _flat(value, f"{path}: ") if isinstance(value, dict) else [(path, str(value))]
    return rows


def _show_fleet(description: FleetDescription, console: Console) -> None:
    counts = _table(f"Fleet {description.name}", "what", "amount")
    for name, count in description.counts.items():
        counts.add_row(name, f"{count:,}")
    for resource in description.resources:
        counts.add_row(f"{resource.name} at time 0 ({resource.of})", _number(description.capacity[resource.name]))
    console.print(counts)
    if description.first_change is not None and description.last_change is not None:
        console.print(Text(f"Changes from {_number(description.first_change)} s to "
                           f"{_number(description.last_change)} s."))
    _show_configurations(description, console)
    _show_attributes(description, console)
    _show_provenance(description.provenance, console)


def _show_configurations(description: FleetDescription, console: Console) -> None:
    table = _table("Machine configurations", "machines", "share", *(each.name for each in description.resources))
    for each in description.configurations[:3 * INSPECT_ROWS]:
        table.add_row(f"{each.machines:,}", f"{each.share:.2%}", *map(_number, each.capacity.values()))
    console.print(table)


def _show_attributes(description: FleetDescription, console: Console) -> None:
    if not description.attributes:
        return
    table = _table("Attributes", "attribute", "machines", "values", "most frequent")
    for name, each in description.attributes.items():
        frequent = ", ".join(f"{value} ({count:,})" for value, count in list(each.most_frequent.items())[:3])
        table.add_row(Text(name), f"{each.machines:,}", f"{each.values:,}", Text(frequent))
    console.print(table)
