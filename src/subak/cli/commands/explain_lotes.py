"""`subak explain lotes`: prints the classes, lambda*, the allocation and the bins of LoTES's plan."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from rich.table import Table

from subak.errors import InputError
from subak.fleet.table import Fleet, read_fleet
from subak.placement.lotes.settings import LotesSettings
from subak.report.console import Console, Text
from subak.report.number_text import count_text, number_text, seconds_text, share_text
from subak.toml_files import read_toml
from subak.workload.samples import workload_folder
from subak.workload.table import Workload, read_workload

if TYPE_CHECKING:  # HiGHS and scipy take a while to load, and other commands need neither
    from subak.placement.lotes.plan import Plan

ROWS_SHOWN = 60  # bins; configurations
NAMED = 3  # machines of a bin
HOUR_S = 3600.0


def explain_lotes(workload: str, fleet: Path | None, classes: int | None, settings: Path | None) -> None:
    """Make the plan for a workload and a fleet, and show it."""
    from subak.placement.lotes.plan import make_plan  # noqa: PLC0415  (see above)

    given = LotesSettings() if settings is None else read_toml(settings, LotesSettings)
    if classes is not None:
        given = msgspec.structs.replace(given, classes=classes)
    read, machines = _inputs(workload, fleet)
    show(make_plan(read, machines, given), machines, Console())


def _inputs(workload: str, fleet: Path | None) -> tuple[Workload, Fleet]:
    folder = workload_folder(workload)
    read = read_workload(folder)
    if fleet is None and not (folder / "fleet").is_dir():
        raise InputError(f"{folder}: has no fleet; name one: subak explain lotes {workload} FLEET")
    return read, read_fleet(fleet or folder / "fleet")


def show(plan: Plan, fleet: Fleet, console: Console) -> None:
    """Print a plan."""
    console.print(_classes(plan))
    for line in _rates(plan):
        console.print(Text(line), soft_wrap=True)
    console.print(_configurations(plan))
    console.print(_bins(plan, fleet))
    for line in [*_cut_off(plan), *plan.notes]:
        console.print(Text(line), soft_wrap=True)
    spent = ", ".join(f"{stage} {seconds_text(seconds)}" for stage, seconds in plan.seconds.items())
    console.print(Text(f"Spent on {spent}.", style="dim"), soft_wrap=True)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, justify="right")
    return table


def _natural(plan: Plan, amounts: np.ndarray) -> list[str]:
    return [number_text(float(amount) * resource.unit)
            for amount, resource in zip(amounts, plan.resources, strict=True)]


def _names(plan: Plan) -> list[str]:
    return [resource.name for resource in plan.resources]


def _classes(plan: Plan) -> Table:
    grouped = len(plan.configurations.names) > 1
    table = _table("Classes: means of their tasks", "class", "tasks", *_names(plan), "run time",
                   *["constraints"] * grouped)
    classes = plan.classes
    for each in range(classes.share.size):
        words = [Text(plan.configurations.names[classes.group[each]])] if grouped else []
        table.add_row(str(each + 1), share_text(float(classes.share[each])), *_natural(plan, classes.request[:, each]),
                      seconds_text(float(classes.run_time[each])), *words)
    return table


def _rates(plan: Plan) -> list[str]:
    jobs, whole = plan.allocation.rate * HOUR_S, plan.assignment.rate * HOUR_S
    rounded = plan.assignment.rate_rounded * HOUR_S
    return [f"lambda*, with all machines of a configuration pooled: {jobs:,.1f} jobs an hour.",
            f"With jobs in bins: {whole:,.1f}, {plan.packing_gap:.3%} less.",
            f"With whole machines: {rounded:,.1f}, {plan.rounding_gap:.4%} less again."]


def _configurations(plan: Plan) -> Table:
    """Show of each configuration what part of its scarcest resource goes to each class (delta)."""
    classes = range(plan.classes.share.size)
    table = _table("Configurations, and delta: the most of any resource that a class is allotted", "configuration",
                   "machines", *_names(plan), *(f"class {each + 1}" for each in classes), "bins known")
    most = plan.allocation.delta.max(axis=2)
    for row in range(min(len(most), ROWS_SHOWN)):
        parts = ["-" if plan.rate[row, each] == 0 else share_text(round(float(most[row, each]), 6)) for each in classes]
        table.add_row(str(row + 1), count_text(plan.configurations.machines[row]),
                      *_natural(plan, plan.configurations.capacity[:, row]), *parts,
                      count_text(plan.assignment.considered[row]))
    return table


def _bins(plan: Plan, fleet: Fleet) -> Table:
    classes = range(plan.classes.share.size)
    table = _table("Bins, and who emulates them", "configuration", "machines", "by the LP",
                   *(f"class {each + 1}" for each in classes), "machines' ids")
    order = np.lexsort((-plan.assignment.part, plan.assignment.configuration))
    for row in order[:ROWS_SHOWN]:
        ids = fleet.machines["machine"].gather(np.flatnonzero(plan.bin_of_machine == row)).to_list()
        more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
        table.add_row(str(plan.assignment.configuration[row] + 1), count_text(plan.assignment.machines[row]),
                      f"{plan.assignment.part[row]:,.2f}", *(str(plan.assignment.bins[row, each]) for each in classes),
                      Text(", ".join(ids[:NAMED]) + more))
    return table


def _cut_off(plan: Plan) -> list[str]:
    return [f"The first {ROWS_SHOWN} of {count:,} {what} are shown." for what, count in
            (("configurations", plan.configurations.machines.size), ("bins", len(plan.assignment.bins)))
            if count > ROWS_SHOWN]
