"""Runs a scenario in chunks: only open tasks are in memory, and a checkpoint lets it resume."""
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import NamedTuple

import msgspec

from subak.errors import InputError, RunError
from subak.experiment.measuring import Room, measure
from subak.experiment.run import (
    Done,
    asked_of,
    digested,
    energy_of,
    load_fleet,
    named,
    named_files,
    of_run,
    refuse_tree,
    refuse_uncounted,
    run_label,
    scenario_values,
    summarise,
    terms_of,
    write_run,
)
from subak.experiment.scenario import Scenario, settings_of
from subak.federation.settings import Federation
from subak.fleet.table import Fleet
from subak.measures.objective import read_objective
from subak.measures.objectives import refuse_unconcerned
from subak.measures.runs import Summary
from subak.measures.tasks.job_sums import JobSums
from subak.measures.tasks.tally import EXACT_MAX
from subak.measures.window import Window, refuse_empty, window_between
from subak.output.places import located, refuse_folder
from subak.output.writing import new_folder
from subak.placement.schedulers import Scheduler
from subak.policy import find_scheduler
from subak.simulator.beforehand import refuse_inputs
from subak.simulator.chunks.checkpoint import EVERY_S, FILE, Checkpoint
from subak.simulator.chunks.refusals import refuse_chunks
from subak.simulator.chunks.run import TASKS_READ, Cut, run_in_chunks
from subak.simulator.engine.estimates import used_estimates
from subak.simulator.engine.run_loop import Progress
from subak.simulator.engine.setup import Terms
from subak.simulator.federated.fault_plan import FaultPlan
from subak.simulator.simulate import default_interval
from subak.version import VERSION
from subak.workload.redraws import AUTO, NONE
from subak.workload.samples import workload_folder
from subak.workload.stored import StoredWorkload, open_workload, task_count
from subak.workload.table import Workload

OURS = re.compile(r"checkpoint\.npz|(block-\d{6}|[a-z_]+)\.bin|\..*")  # what a checkpoint's folder may hold
IN_MEMORY_MAX = 16_000_000  # tasks that are read at once unasked: some 3 GB


class Chunks(NamedTuple):
    """How a run is to be cut, as it was asked for."""

    tasks: int | None = None  # read at a time; None: as many as suit
    checkpoint: Path | None = None  # a folder to keep the run in while it goes on, and to go on from
    every: float = EVERY_S  # seconds between two checkpoints, at least


class Stored(NamedTuple):
    """The inputs of a run in chunks."""

    workload: StoredWorkload
    outline: Workload  # with a few of its tasks
    fleet: Fleet
    scheduler: Scheduler
    terms: Terms
    window: Window
    settings: Federation
    faults: FaultPlan | None
    sums: JobSums | None  # of jobs over all tasks, where an objective of some tasks needed them before the run


def is_larger(scenario: Scenario) -> bool:
    """Whether the workload has more tasks than a run is to have in memory; one that cannot be read is none such."""
    try:
        return task_count(workload_folder(scenario.workload)) > IN_MEMORY_MAX
    except InputError:  # who reads it says what is wrong
        return False


def open_inputs(scenario: Scenario) -> Stored:
    """Look over the inputs of the scenario's one run, and note their digests.

    Raises InputError for those that break a rule, and for what cannot be run in chunks.
    """
    folder, name, seed = workload_folder(scenario.workload), scenario.schedulers[0], scenario.seeds[0]
    scheduler = find_scheduler(name, scenario.check_policy, scenario.parameters)
    stored = open_workload(folder)
    outline = stored.outline()
    faults, queues, failures = named_files(scenario)
    if failures is not None:
        raise InputError("in chunks: tasks must not have a plan of failures, which is drawn for all of them")
    _refuse_settings(scenario, stored, outline)
    width = scenario.interval if scenario.interval is not None else default_interval(outline)
    told = used_estimates(scenario.estimates, outline)
    terms = Terms(**{**terms_of(scenario, name), "ranking": scheduler.order, "seed": seed, "interval": width,
                     "estimates": told, "queues": queues})
    settings = settings_of(scenario, name)
    refuse_chunks(stored, scheduler, terms, settings, faults)
    scenario.workload_digest = digested("workload", folder, scenario.workload_digest)
    fleet = load_fleet(scenario, outline)
    with named(scenario):
        refuse_inputs(outline, fleet, scheduler, settings, faults, queues)
    if queues is not None:
        refuse_tree(outline, queues, scenario.queues)
    window = window_between(outline, scenario.measure_from, scenario.measure_until)
    refuse_empty(window, stored.arrivals_between(window.begin, window.end) > 0, stored.first, stored.last)
    objectives, energy = [read_objective(text) for text in scenario.objectives], energy_of(scenario)
    if energy is not None:
        refuse_uncounted(energy, scenario, fleet, window, objectives)
    sums = refuse_unconcerned(objectives, stored, window, lambda: _sums(stored, Event()))
    return Stored(stored, outline, fleet, scheduler, terms, window, settings, faults, sums)


def _refuse_settings(scenario: Scenario, stored: StoredWorkload, outline: Workload) -> None:
    if outline.tasks.is_empty():
        raise InputError("workload: there must be at least one task to simulate, this one has 0")
    if scenario.resample != NONE and (scenario.resample != AUTO or len(scenario.seeds) > 1):
        raise InputError(f"in chunks: resample must be {NONE}, not {scenario.resample}; workloads are drawn anew in "
                         "memory")
    if scenario.load != 1.0 or scenario.only_queues:
        raise InputError("in chunks: load must be 1 and only_queues none; workloads are changed in memory")
    if stored.tasks <= EXACT_MAX:
        return
    if scenario.energy:
        raise InputError(f"in chunks: energy is counted of all attempts together, of at most {EXACT_MAX:,} tasks")
    if scenario.objectives:
        raise InputError(f"in chunks: objective {scenario.objectives[0]!r} cannot be judged of more than {EXACT_MAX:,} "
                         "tasks, of which percentiles are not exact")


def simulate_in_chunks(
    folder: Path, scenario: Scenario, inputs: Stored, chunks: Chunks,
    on_progress: Callable[[Progress], None] | None = None, overwrite: bool = False, kept: bool = True,
) -> Summary:
    """Simulate the scenario's one run in chunks, and write the run folder whole or not at all.

    *kept*: its tasks are, else their table is empty. Raises InputError for a checkpoint of another run.
    """
    name, seed = scenario.schedulers[0], scenario.seeds[0]
    scenario = msgspec.structs.replace(scenario, resample=NONE)
    with new_folder(folder, "summary.json", overwrite) as partial:
        with _place(partial, chunks.checkpoint) as place:
            known_by = _known_by(scenario, name, seed)
            checkpoint = None if chunks.checkpoint is None else Checkpoint(place, known_by, chunks.every)
            with ThreadPoolExecutor(1) as beside:
                given_up = Event()
                try:
                    sums = None if inputs.sums else beside.submit(_sums, inputs.workload, given_up)
                    found = run_in_chunks(
                        inputs.workload, inputs.fleet, inputs.scheduler, inputs.terms,
                        Cut(place, chunks.tasks or TASKS_READ, checkpoint), scenario.interval is not None, on_progress,
                        inputs.settings, inputs.faults)
                    of_jobs = inputs.sums if sums is None else sums.result()
                except BaseException:
                    given_up.set()  # who interrupts a long run does not wait for its sums
                    raise
            measured, tables = measure(found, asked_of(scenario, inputs.window), of_jobs,
                                       Room(place, partial / "tasks.parquet", kept))
        label = run_label(name, seed, scenario.seeds)
        summary = summarise(found.outcome, scenario, (inputs.outline, inputs.fleet), label, measured)
        write_run(partial, Done(summary, tables, scenario), name, seed)
    return summary


@contextmanager
def _place(partial: Path, checkpoint: Path | None) -> Iterator[Path]:
    """Give a folder in which results grow; it goes when the run is whole, and that of a checkpoint only then."""
    place = partial / ".blocks" if checkpoint is None else checkpoint
    with _alone(place):
        try:
            yield place
        except OSError as error:
            if checkpoint is None:
                raise  # whoever makes the folder of the results says of it what is wrong
            raise RunError(f"{checkpoint}: could not be written: {error.strerror or error}") from None
        for path in place.iterdir():
            if OURS.fullmatch(path.name):
                path.unlink()
    with suppress(OSError):  # somebody put something there meanwhile
        place.rmdir()


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Make a folder, and let no other process be at it meanwhile. Raises InputError where one is."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        number = os.open(place, os.O_RDONLY)
    except OSError as error:
        raise RunError(f"{place}: could not be written: {error.strerror or error}") from None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(f"{place}: another process is at it; choose another folder, or wait") from None
    finally:
        os.close(number)


def refuse_checkpoint(folder: Path, out: Path | None, inputs: list[Path]) -> None:
    """Raise InputError, in one line, unless a run may be kept in *folder*: nothing of anybody else's is in it.

    *out* is where its results are to be, *inputs* what it reads.
    """
    if out is not None and located(folder).is_relative_to(located(out)):
        raise InputError(f"{folder}: a checkpoint must not be in the folder of the results, {out}")
    inputs = inputs if out is None else [*inputs, out]
    if folder.is_dir() and not folder.is_symlink() and any(folder.iterdir()):
        strange = next((path.name for path in sorted(folder.iterdir()) if not OURS.fullmatch(path.name)), None)
        if strange is not None:
            raise InputError(f"{folder}: must be empty or hold a checkpoint alone, it has {strange}")
        return
    refuse_folder(folder, FILE, False, inputs)


def _known_by(scenario: Scenario, name: str, seed: int) -> dict[str, str]:
    """Return what tells a run from others, in words."""
    values = scenario_values(of_run(scenario, name, [seed]))
    return {"version": VERSION, **{key: msgspec.json.encode(value).decode() for key, value in values.items()}}


def _sums(stored: StoredWorkload, given_up: Event) -> JobSums:
    """Return what jobs are by all tasks, or by some of them where that is given up."""
    sums = JobSums(stored.head)
    for begin in range(0, stored.tasks, TASKS_READ):
        if given_up.is_set():
            break
        sums.add(stored.part(begin, min(begin + TASKS_READ, stored.tasks)).tasks)
    return sums
