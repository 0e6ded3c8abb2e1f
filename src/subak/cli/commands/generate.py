"""`subak generate`: a Google-like workload of a given length, and the fleet it is meant for."""
import math
import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TimeRemainingColumn

from subak.cli.options import CapacityOption, FleetOption, MachinesOption, OverwriteOption, parse_amounts
from subak.errors import InputError
from subak.fleet.table import Fleet, read_fleet, uniform_fleet
from subak.output.places import refuse_folder
from subak.output.writing import new_folder
from subak.report.console import bars, echo
from subak.workload.google_like.generate import Generated, Length, write_generated
from subak.workload.google_like.google import google_machines, google_priorities, megha_constraints, with_attributes
from subak.workload.google_like.load import dynamism_for, loads, loads_until
from subak.workload.google_like.parameters import (
    SHARES,
    Diurnal,
    Makespans,
    Parameters,
    Queues,
    read_parameters,
)

PAPER, AROUND, LENGTH = "The paper's numbers", "Around the paper's model", "How much"  # headings of the help
Number = float | None
MARKER = "workload.toml"  # only a folder with it is ever replaced


def generate(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The workload folder to write; the machines go to its "
                                                             "subfolder `fleet`.")],
    tasks: Annotated[int | None, typer.Option(
        metavar="N", help="So many tasks. Google's month had 25400000, which come in 14.7 days at the paper's gap.",
        show_default=False,
        rich_help_panel=LENGTH)] = None,
    seconds: Annotated[Number, typer.Option(
        metavar="SECONDS", help="Instead of --tasks: all that arrives before this time.", show_default=False,
        rich_help_panel=LENGTH)] = None,
    load: Annotated[Number, typer.Option(
        metavar="SHARE", help="Instead of --dynamism: let the tasks that run in the long run ask for this share of "
                              "the fleet's scarcer resource, such as 0.8.", show_default=False,
        rich_help_panel=LENGTH)] = None,
    fleet: FleetOption = None,
    machines: MachinesOption = 0,
    capacity: CapacityOption = None,
    parameters: Annotated[Path | None, typer.Option(
        metavar="FILE.toml", help="Parameters of every model, such as `subak fit` writes; the options below change "
                                  "single ones.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same workload.")] = 1,
    dynamism: Annotated[Number, typer.Option(
        metavar="SECONDS", help="Mean gap between tasks [default: 0.05].", show_default=False,
        rich_help_panel=PAPER)] = None,
    gap_shape: Annotated[Number, typer.Option(
        metavar="B", help="Shape of the Pareto law of the gaps [default: 4].", show_default=False,
        rich_help_panel=PAPER)] = None,
    type_: Annotated[Number, typer.Option(
        "--type", metavar="SHARE", help="Share of tasks; the rest are services [default: 0.7].", show_default=False,
        rich_help_panel=PAPER)] = None,
    task_mass: Annotated[Number, typer.Option(
        metavar="SECONDS", help="Mean makespan of tasks [default: 1700].", show_default=False,
        rich_help_panel=PAPER)] = None,
    task_disparity: Annotated[Number, typer.Option(
        metavar="RATIO", help="Mean over median makespan of tasks [default: 3.8].", show_default=False,
        rich_help_panel=PAPER)] = None,
    service_mass: Annotated[Number, typer.Option(
        metavar="SECONDS", help="Mean makespan of services [default: 8000].", show_default=False,
        rich_help_panel=PAPER)] = None,
    service_disparity: Annotated[Number, typer.Option(
        metavar="RATIO", help="Mean over median makespan of services [default: 24].", show_default=False,
        rich_help_panel=PAPER)] = None,
    users: Annotated[int | None, typer.Option(
        metavar="N", help="Users, each a queue, of Zipf's law [default: 1].", show_default=False,
        rich_help_panel=AROUND)] = None,
    diurnal: Annotated[Number, typer.Option(
        metavar="AMPLITUDE", help="A daily rhythm of the arrivals, 0 to 1; the mean rate stays [default: off].",
        show_default=False, rich_help_panel=AROUND)] = None,
    constraints: Annotated[Number, typer.Option(
        metavar="SHARE", help="This share of the tasks has placement constraints, by Megha's tables; the machines "
                              "get attributes to match [default: off].", show_default=False,
        rich_help_panel=AROUND)] = None,
    google_classes: Annotated[bool, typer.Option(
        "--google-classes", help="Google's priorities and scheduling classes instead of the paper's priority in "
                                 "thousandths.", rich_help_panel=AROUND)] = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Generate a workload like Google's of 2011 (Da Costa, Grange, De Courchelle, 2016), or like a fitted trace.

    Without --fleet or --machines, the fleet is Google's 12,583 machines (LoTES, Table 1), so that
    `subak compare FOLDER` runs as it is. Jobs, stages, gangs and failures are set in the parameter file.

    Example: `subak generate --tasks 1000000 --load 0.8 --out W`, then `subak compare W --schedulers first-fit,tetris`.
    """
    length, inputs = Length(tasks, seconds), [path for path in (fleet, parameters) if path is not None]
    refuse_folder(out, MARKER, overwrite, inputs)
    given = read_parameters(parameters) if parameters else Parameters()
    if load is not None and dynamism is not None:
        raise InputError("--load: sets the dynamism, so --dynamism must be left out")
    chosen = _changed(given, {
        "dynamism": dynamism, "gap_shape": gap_shape, "type": type_,
        "tasks": _makespans(given.tasks, task_mass, task_disparity),
        "services": _makespans(given.services, service_mass, service_disparity),
        "queues": None if users is None else Queues(users, given.queues.exponent,
                                                    min(users, given.queues.departments)),
        "diurnal": None if diurnal is None else Diurnal(diurnal),
        "constraints": None if constraints is None else megha_constraints(constraints),
        "priorities": google_priorities() if google_classes else None,
    })
    place = _fleet(chosen, fleet, machines, capacity)
    if load is not None:
        if place is None:
            raise InputError("--load: needs a fleet with the parameters' resources; give --fleet or --machines")
        chosen = msgspec.structs.replace(chosen, dynamism=dynamism_for(chosen, place, load))
    place, remark = _matched(chosen, place, seed)
    with new_folder(out, MARKER, overwrite, inputs) as folder:
        written = _write(folder, chosen, seed, length)
        if place is not None:
            (folder / "fleet").mkdir()
            place.write(folder / "fleet")
    _show(chosen, written, place, remark, out)


def _changed(parameters: Parameters, changes: dict[str, object]) -> Parameters:
    return msgspec.structs.replace(parameters, **{name: value for name, value in changes.items() if value is not None})


def _makespans(law: Makespans, mass: Number, disparity: Number) -> Makespans:
    return Makespans(law.mass if mass is None else mass, law.disparity if disparity is None else disparity)


def _fleet(parameters: Parameters, folder: Path | None, machines: int, capacity: list[str] | None) -> Fleet | None:
    """Return the fleet of the options; Google's by default, or none where its resources are not the parameters'."""
    if folder is not None and (machines or capacity):
        raise InputError("--fleet: leaves no place for --machines and --capacity")
    if capacity and not machines:
        raise InputError("--capacity: goes with --machines N")
    if folder is not None:
        return read_fleet(folder)
    if machines:
        return uniform_fleet(machines, parse_amounts(capacity or []), parameters.resources)
    return google_machines() if parameters.resources == SHARES else None


def _matched(parameters: Parameters, fleet: Fleet | None, seed: int) -> tuple[Fleet | None, str]:
    """Return the fleet with attributes that meet the constraints as often as asked, and what to say of it."""
    law = parameters.constraints
    if law is None or fleet is None:
        return fleet, ""
    attributes = {constraint.attribute for constraint, _ in law.choices}
    if attributes & set(fleet.attributes["attribute"].unique()):
        return fleet, "whose attributes stay as they are"
    if not law.met_by:
        return fleet, "the machines have no attributes for the constraints: the parameters do not say met_by"
    return with_attributes(fleet, law, seed), f"with attributes for {len(law.choices)} constraints"


def _write(folder: Path, parameters: Parameters, seed: int, length: Length) -> Generated:
    """Write with a bar over tasks, or over simulated seconds where the number of tasks is not known."""
    with bars(SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as progress:
        unit = "tasks" if length.tasks is not None else "seconds"
        bar = progress.add_task(f"Generating ({unit})", total=math.ceil(length.tasks or length.seconds or 0))

        def advance(written: Generated) -> None:
            progress.update(bar, completed=written.tasks if length.tasks is not None else int(written.arrival_last))

        return write_generated(folder, parameters, seed, length, os.cpu_count() or 1, advance)


def _show(parameters: Parameters, written: Generated, fleet: Fleet | None, remark: str, out: Path) -> None:
    echo(f"Wrote {out}: {written.tasks:,} tasks in {written.jobs:,} jobs and {written.stages:,} stages, the last "
               f"arriving at {written.arrival_last:,.0f} s, a task every {parameters.dynamism:.4g} s")
    if fleet is None:
        echo("No fleet: give `subak compare` one, or --machines here")
        return
    name = ", ".join(part for part in (f"{len(fleet.machines):,} machines", fleet.provenance.name, remark) if part)
    echo(f"Wrote {out / 'fleet'}: {name}")
    echo(f"Load, if nothing waits: {_shares(loads(parameters, fleet))} in the long run, "
               f"{_shares(loads_until(out, fleet, written.arrival_last))} on average until the last arrival")
    echo(f"Next: `subak compare {out} --until {math.ceil(written.arrival_last)}` ends with the arrivals; without "
               f"--until, averages are taken until the longest service ends, which may be years")


def _shares(loads: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.1%}" for name, share in loads.items())
