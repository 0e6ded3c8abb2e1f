"""`subak generate`: draws a Google-like workload of a given length, and a fleet for it."""
import math
import sys
from pathlib import Path

import msgspec
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TimeRemainingColumn

from subak.cli.generated import Number, Numbers
from subak.errors import InputError
from subak.experiment.fleets import edited
from subak.experiment.scenario import Scenario
from subak.fleet.table import Fleet, read_fleet, uniform_fleet
from subak.output.places import refuse_folder
from subak.output.writing import new_folder, scratch_folder
from subak.report.console import bars, echo
from subak.report.number_text import counted
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
from subak.workload.piped import PIPE, pack

MARKER = "workload.toml"  # only a folder with it is ever replaced


def generate(out: Path, tasks: int | None, seconds: Number, load: Number, asked: Scenario, parameters: Path | None,
             seed: int, numbers: Numbers, overwrite: bool) -> None:
    """Write a workload and its fleet, and say what they are."""
    length, inputs = Length(tasks, seconds), [Path(path) for path in (asked.fleet, parameters) if path]
    to_pipe = str(out) == PIPE
    if to_pipe and sys.stdout.isatty():
        raise InputError(f"--out {PIPE}: standard output is a terminal; pipe it to `subak simulate {PIPE}`")
    if not to_pipe:
        refuse_folder(out, MARKER, overwrite, inputs)
    given = read_parameters(parameters) if parameters else Parameters()
    if load is not None and numbers.dynamism is not None:
        raise InputError("--load: sets the dynamism, so --dynamism must be left out")
    chosen = _changed(given, {
        "dynamism": numbers.dynamism, "gap_shape": numbers.gap_shape, "type": numbers.type,
        "tasks": _makespans(given.tasks, numbers.task_mass, numbers.task_disparity),
        "services": _makespans(given.services, numbers.service_mass, numbers.service_disparity),
        "queues": None if numbers.users is None else Queues(
            numbers.users, given.queues.exponent, min(numbers.users, given.queues.departments)),
        "diurnal": None if numbers.diurnal is None else Diurnal(numbers.diurnal),
        "constraints": None if numbers.constraints is None else megha_constraints(numbers.constraints),
        "priorities": google_priorities() if numbers.google_classes else None,
    })
    place = _edited(_fleet(chosen, asked), asked)
    if load is not None:
        if place is None:
            raise InputError("--load: needs a fleet with the parameters' resources; give --fleet or --machines")
        chosen = msgspec.structs.replace(chosen, dynamism=dynamism_for(chosen, place, load))
    place, remark = _matched(chosen, place, seed)
    if to_pipe:
        with scratch_folder() as folder:
            written = _written(folder, chosen, seed, length, place)
            pack(folder, sys.stdout.buffer)
            _show(chosen, written, place, remark, folder, err=True)
        return
    with new_folder(out, MARKER, overwrite, inputs) as folder:
        written = _written(folder, chosen, seed, length, place)
    _show(chosen, written, place, remark, out)


def _written(folder: Path, parameters: Parameters, seed: int, length: Length, place: Fleet | None) -> Generated:
    """Write a workload, and its fleet, into a folder."""
    written = _write(folder, parameters, seed, length)
    if place is not None:
        (folder / "fleet").mkdir()
        place.write(folder / "fleet")
    return written


def _changed(parameters: Parameters, changes: dict[str, object]) -> Parameters:
    return msgspec.structs.replace(parameters, **{name: value for name, value in changes.items() if value is not None})


def _makespans(law: Makespans, mass: Number, disparity: Number) -> Makespans:
    return Makespans(law.mass if mass is None else mass, law.disparity if disparity is None else disparity)


def _fleet(parameters: Parameters, asked: Scenario) -> Fleet | None:
    """Return the fleet of the options; Google's by default, or none where its resources are not the parameters'."""
    if asked.fleet:
        return read_fleet(Path(asked.fleet))
    if asked.machines:
        return uniform_fleet(asked.machines, asked.capacity, parameters.resources)
    return google_machines() if parameters.resources == SHARES else None


def _edited(fleet: Fleet | None, asked: Scenario) -> Fleet | None:
    """Return the fleet with the edits of the options. Raises InputError for edits of no fleet."""
    edits = asked.scale, asked.remove, asked.add_machines
    if fleet is None:
        if edits != (1.0, [], []):
            raise InputError("--scale, --remove, --add-machines: need a fleet with the parameters' resources; give "
                             "--fleet or --machines")
        return None
    return edited(fleet, *edits)


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

        return write_generated(folder, parameters, seed, length, advance=advance)


def _show(
    parameters: Parameters, written: Generated, fleet: Fleet | None, remark: str, out: Path, err: bool = False
) -> None:
    """Say what is in a folder, or on the error stream what was there and has gone through a pipe."""
    name = "the workload" if err else str(out)
    echo(f"Wrote {name}: {counted(written.tasks, 'task')} in {counted(written.jobs, 'job')} and "
         f"{counted(written.stages, 'stage')}, the last arriving at {written.arrival_last:,.0f} s, "
         f"a task every {parameters.dynamism:.4g} s", err)
    if fleet is None:
        echo("No fleet: give `subak compare` one, or --machines here", err)
        return
    parts = counted(len(fleet.machines), "machine"), fleet.provenance.name, remark
    machines = ", ".join(part for part in parts if part)
    echo(f"Wrote {'its fleet' if err else out / 'fleet'}: {machines}", err)
    echo(f"Load, if nothing waits: {_shares(loads(parameters, fleet))} in the long run, "
         f"{_shares(loads_until(out, fleet, written.arrival_last))} on average until the last arrival", err)
    if not err:
        echo(f"Next: `subak compare {out}`; means over time are up to the last arrival, and --until "
             f"{math.ceil(written.arrival_last)} ends the runs with it, though the longest service may run for years")


def _shares(loads: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.1%}" for name, share in loads.items())
