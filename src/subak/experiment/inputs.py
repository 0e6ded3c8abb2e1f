"""Reads and checks the inputs of a scenario, in memory or looked over, and draws those of a seed."""
import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from subak.errors import InputError
from subak.experiment.fleets import edited
from subak.experiment.scenario import APART, Scenario, settings_of
from subak.fleet.edits import completed, overcommitted
from subak.fleet.table import Fleet, read_fleet, uniform_fleet
from subak.json_type import Json
from subak.measures.energy.measure import refuse_energy
from subak.measures.energy.settings import Energy, energy_file, energy_names, read_energy, tables_of
from subak.measures.objective import Objective, read_objective
from subak.measures.objectives import refuse_unconcerned
from subak.measures.tasks.job_sums import JobSums, sums_of
from subak.measures.tasks.tally import EXACT_MAX
from subak.measures.window import Window, window_of
from subak.placement.schedulers import Scheduler
from subak.policy_files import named_scheduler, policy_file
from subak.queues.tree import TreeFile, read_tree, tree_of_paths
from subak.settings import used_by
from subak.simulator.beforehand import refuse_gangs, refuse_inputs
from subak.simulator.chunks.refusals import refuse_chunks
from subak.simulator.engine.estimates import used_estimates
from subak.simulator.engine.setup import Terms
from subak.simulator.failures.plan import FailurePlan, PlanError, read_failure_plan
from subak.simulator.federated.fault_plan import FaultPlan, RoleError, read_fault_plan
from subak.simulator.settings import RunSettings
from subak.workload.extent import at_load, of_queues
from subak.workload.redraws import AUTO, NONE
from subak.workload.resample import resample_for, resampled, why_as_it_is
from subak.workload.samples import is_path, workload_folder
from subak.workload.stored import StoredWorkload, open_workload, task_count, work_of
from subak.workload.table import Workload, read_workload

DIGEST_BYTES = 1 << 20  # of a file read at once
IN_MEMORY_MAX = 16_000_000  # tasks that are read at once unasked: some 3 GB
Tasks = TypeVar("Tasks", Workload, StoredWorkload, Workload | StoredWorkload)


def load_inputs(scenario: Scenario) -> tuple[Workload, Fleet]:
    """Read workload and fleet, edited, note their digests, and check the files of faults, queues and failures.

    Raises InputError when one differs from a digest that the scenario holds already, or a file breaks a rule.
    """
    workload = load_checked(scenario)
    return workload, load_fleet(scenario, workload)


def load_checked(scenario: Scenario) -> Workload:
    """Read the workload as `load_workload` does, and check the files of faults, queues, failures and energy."""
    _check_files(scenario)
    return load_workload(scenario)


def open_inputs(scenario: Scenario) -> tuple[StoredWorkload, Fleet]:
    """Look over the workload, of which the run is to read some tasks at a time; the rest is as with `load_inputs`."""
    _check_files(scenario)
    folder = workload_folder(scenario.workload)
    stored = open_workload(folder, scenario.only_queues)
    scenario.workload_digest = digested("workload", folder, scenario.workload_digest)
    return stored, load_fleet(scenario, stored.head)


def _check_files(scenario: Scenario) -> None:
    named_files(scenario)
    energy_of(scenario)


def is_larger(scenario: Scenario) -> bool:
    """Whether the workload has more tasks than a run is to have in memory; one that cannot be read is none such."""
    try:
        return task_count(workload_folder(scenario.workload)) > IN_MEMORY_MAX
    except InputError:  # who reads it says what is wrong
        return False


def load_workload(scenario: Scenario) -> Workload:
    """Read the workload, and note its digest. Raises InputError when it differs from one that the scenario holds."""
    folder = workload_folder(scenario.workload)
    workload = read_workload(folder)
    scenario.workload_digest = digested("workload", folder, scenario.workload_digest)
    return of_queues(workload, scenario.only_queues)


def load_fleet(scenario: Scenario, workload: Workload) -> Fleet:
    """Read the fleet, or make alike machines for the workload, and edit it; the rest is as with `load_workload`."""
    return edited(_fleet_of(scenario, workload), scenario.scale, scenario.remove, scenario.add_machines)


def _fleet_of(scenario: Scenario, workload: Workload) -> Fleet:
    """Return the fleet that the scenario names, as it is."""
    if scenario.machines:
        return uniform_fleet(scenario.machines, scenario.capacity, workload.resources, workload.asked)
    folder = workload_folder(scenario.workload)
    fleet_folder = Path(scenario.fleet) if scenario.fleet else folder / "fleet"
    if not fleet_folder.is_dir() and not scenario.fleet:
        names = " ".join(f"--capacity {resource.name}=1" for resource in workload.resources)
        raise InputError(f"{folder}: has no fleet; give --fleet FOLDER, or alike machines: --machines 1000 {names}")
    fleet = completed(read_fleet(fleet_folder), workload.resources, workload.asked)
    scenario.fleet_digest = digested("fleet", fleet_folder, scenario.fleet_digest)
    return fleet


def inputs_of(scenario: Scenario, *files: Path | None) -> list[Path]:
    """Return what a scenario reads, and *files*: no result may be written over it."""
    names = [scenario.fleet, scenario.faults, scenario.queues, scenario.failures,
             *map(policy_file, scenario.schedulers), *files]
    if scenario.energy and scenario.energy not in energy_names():
        names += [scenario.energy, *tables_of(Path(scenario.energy))]
    workload = [scenario.workload] if is_path(scenario.workload) else []
    return [Path(name) for name in (*workload, *names) if name]


def digested(what: str, folder: Path, expected: str) -> str:
    """Return the digest of a folder's tables. Raises InputError where another is *expected*."""
    text = hashlib.sha256()
    for path in sorted(folder.glob("*.parquet")):
        with path.open("rb") as file:
            while part := file.read(DIGEST_BYTES):
                text.update(part)
    digest = text.hexdigest()[:16]
    if expected and digest != expected:
        raise InputError(f"{what} {folder}: must be the one the scenario was run on ({expected}), it is now {digest}")
    return digest


def named_files(scenario: Scenario) -> tuple[FaultPlan | None, TreeFile | None, FailurePlan | None]:
    """Read the files of faults, of queues and of failures, where the scenario names them.

    Raises InputError for one that cannot be read, or breaks a rule.
    """
    return (read_fault_plan(Path(scenario.faults)) if scenario.faults else None,
            read_tree(Path(scenario.queues)) if scenario.queues else None,
            read_failure_plan(Path(scenario.failures)) if scenario.failures else None)


def energy_of(scenario: Scenario) -> Energy | None:
    """Read what machines draw and cost, where the scenario names a file."""
    return read_energy(energy_file(scenario.energy)) if scenario.energy else None


def scenario_window(scenario: Scenario, workload: Workload | StoredWorkload) -> Window:
    """Return what the runs of a scenario are measured in. Raises InputError where no task arrives in it."""
    return window_of(workload, scenario.measure_from, scenario.measure_until)


def terms_of(scenario: Scenario, name: str) -> dict[str, Json]:
    """Return what a run of a scheduler is told of a scenario: the settings of runs that the scheduler uses."""
    used = used_by(scenario, named_scheduler(name, scenario.parameters))
    return {each: value for each, value in used.items() if each in RunSettings.__struct_fields__}


def of_seed(
    scenario: Scenario, seed: int, inputs: tuple[Tasks, Fleet]
) -> tuple[Scenario, tuple[Tasks, Fleet], Window]:
    """Return what a seed runs on, and the window, which is the same for all seeds; the scenario says how it was drawn.

    Days are drawn before the load is changed, so that they are still of 24 h. Raises InputError where no task arrives
    in the window, or the workload cannot be redrawn as the scenario says.
    """
    workload, fleet = inputs
    settled, window = settle_resample(scenario, workload), scenario_window(scenario, workload)
    times = window._replace(begin=window.begin / scenario.load, end=window.end / scenario.load)
    if isinstance(workload, StoredWorkload):
        return settled, (workload.at_load(scenario.load), fleet), times
    drawn = resampled(workload, settled.resample, seed, window.begin, window.end)
    return settled, (at_load(drawn, scenario.load), fleet), times


def settle_resample(scenario: Scenario, workload: Workload | StoredWorkload) -> Scenario:
    """Return the scenario with the way in which seeds change its workload. Raises InputError where that cannot be.

    Where several seeds were to draw a trace anew and leave it as it is, it says why.
    """
    if isinstance(workload, StoredWorkload):
        if scenario.resample != NONE and (scenario.resample != AUTO or len(scenario.seeds) > 1):
            raise InputError(f"in chunks: resample must be {NONE}, not {scenario.resample}; days are drawn of all "
                             "tasks, and put in order with all of them")
        return msgspec.structs.replace(scenario, resample=NONE)
    window = scenario_window(scenario, workload)
    resample = resample_for(workload, scenario.resample, len(scenario.seeds), window.begin, window.end)
    if scenario.resample == AUTO and resample == NONE and len(scenario.seeds) > 1:
        why = why_as_it_is(workload, window.begin, window.end)
        logging.getLogger("subak").warning(f"seeds do not draw {workload.provenance.name} anew: {why}; what is found "
                                           "holds of this trace, and no interval says how others would be")
    return msgspec.structs.replace(scenario, resample=resample)


def refuse_unfit(
    scenario: Scenario, schedulers: list[Scheduler], inputs: tuple[Workload | StoredWorkload, Fleet],
    measured: Sequence[Objective] = (),
) -> JobSums | None:
    """Raise InputError where no run of one of the scenario's *schedulers*, in order, could begin with these inputs.

    *measured* is measured beside its objectives. Returns the sums of jobs over all tasks, if an objective needed them
    and the run has the same tasks.
    """
    (workload, fleet), work = inputs, work_of(inputs[0])
    used_estimates(scenario.estimates, work.outline)
    at_load(work.outline, scenario.load)
    overcommitted(fleet, scenario.interference)
    _refuse_undeclared(scenario, schedulers)
    faults, queues, failures = named_files(scenario)
    if isinstance(workload, StoredWorkload):
        _refuse_stream(scenario, schedulers, workload)
    window, energy = scenario_window(scenario, workload), energy_of(scenario)
    asked = [*map(read_objective, scenario.objectives), *measured]
    if energy is not None:
        refuse_uncounted(energy, scenario, fleet, window, asked)
    sums = refuse_unconcerned(asked, work, window, lambda: sums_of(workload))
    for name, scheduler in zip(scenario.schedulers, schedulers, strict=True):
        refuse_gangs(work.outline, scheduler, scenario.gangs == APART, scenario.reclaims_per_hour)
        with named(scenario):
            refuse_inputs(work.outline, fleet, scheduler, settings_of(scenario, name), faults, queues, failures)
    return sums if scenario.load == 1.0 else None


def _refuse_stream(scenario: Scenario, schedulers: list[Scheduler], stored: StoredWorkload) -> None:
    """Raise InputError for runs that cannot read their tasks some at a time."""
    faults, _, failures = named_files(scenario)
    if failures is not None:
        raise InputError("in chunks: tasks must not have a plan of failures, which is drawn for all of them")
    settle_resample(scenario, stored)
    for name, scheduler in zip(scenario.schedulers, schedulers, strict=True):
        terms = Terms(ranking=scheduler.order, interval=1.0, **terms_of(scenario, name))
        refuse_chunks(stored, scheduler, terms, settings_of(scenario, name), faults)
    if stored.tasks <= EXACT_MAX:
        return
    if scenario.energy:
        raise InputError(f"in chunks: energy is counted of all attempts together, of at most {EXACT_MAX:,} tasks")
    if scenario.objectives:
        raise InputError(f"in chunks: objective {scenario.objectives[0]!r} cannot be judged of more than {EXACT_MAX:,} "
                         "tasks, of which percentiles are not exact")


def _refuse_undeclared(scenario: Scenario, schedulers: list[Scheduler]) -> None:
    known = [each.name for scheduler in schedulers for each in scheduler.parameters]
    unknown = next((name for name in scenario.parameters if name not in known), None)
    if unknown is not None:
        raise InputError(f"parameters: none of the schedulers declares {unknown}; they declare "
                         f"{', '.join(known) or 'none'}")


def refuse_uncounted(
    energy: Energy, scenario: Scenario, fleet: Fleet, window: Window, objectives: list[Objective]
) -> None:
    """Raise InputError, naming the file, for one that does not go with the fleet, the window or the objectives."""
    try:
        refuse_energy(energy, fleet, window.begin, objectives)
    except InputError as error:
        raise InputError(f"{scenario.energy}: {error}") from None


def refuse_tree(workload: Workload, queues: TreeFile, path: str) -> None:
    """Raise InputError, naming the file, for queues that make no tree with the workload's: not only after the run."""
    try:
        tree_of_paths(workload.jobs["queue"].unique(maintain_order=True), queues)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


@contextmanager
def named(scenario: Scenario) -> Iterator[None]:
    """Name the file of faults, or of failures, in what is wrong with it and only federation and workload show.

    Raises InputError for a RoleError or a PlanError.
    """
    try:
        yield
    except RoleError as error:
        raise InputError(f"{scenario.faults}: {error}") from None
    except PlanError as error:
        raise InputError(f"{scenario.failures}: {error}") from None
