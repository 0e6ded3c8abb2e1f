"""A run in chunks: only open tasks are in memory, results grow on the disk, and a checkpoint lets it go on later."""
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from subak.errors import InputError, RunError, SubakError, first_line
from subak.experiment.run import (
    Done,
    Measured,
    digested,
    energy_of,
    load_fleet,
    named,
    named_files,
    of_run,
    refuse_tree,
    run_label,
    scenario_values,
    summarise,
    terms_of,
    write_run,
)
from subak.experiment.scenario import Scenario, settings_of
from subak.federation.settings import Federation
from subak.fleet.table import Fleet
from subak.measures.chunks.allocation import AllocationTally
from subak.measures.chunks.fairness import FairnessTally
from subak.measures.chunks.tally import EXACT_MAX, Tally, tally_of
from subak.measures.fairness.measure import field_of
from subak.measures.job_sums import JobSums
from subak.measures.jobs import jobs_of_parts
from subak.measures.objective import read_objective
from subak.measures.runs import Summary
from subak.measures.task_facts import facts_of_tally
from subak.measures.window import Window, cut, ended_window, refuse_empty, window_between
from subak.output.places import located, refuse_folder
from subak.output.writing import new_folder
from subak.placement.schedulers import Scheduler
from subak.policy import find_scheduler
from subak.queues.tree import TreeFile
from subak.simulator.beforehand import refuse_inputs
from subak.simulator.chunks.checkpoint import EVERY_S, FILE, Checkpoint
from subak.simulator.chunks.course import ChunkedOutcome
from subak.simulator.chunks.refusals import refuse_chunks
from subak.simulator.chunks.run import TASKS_READ, Cut, run_in_chunks
from subak.simulator.engine.columns import as_enum
from subak.simulator.engine.estimates import used_estimates
from subak.simulator.engine.run_loop import Progress
from subak.simulator.engine.setup import Terms
from subak.simulator.federated.fault_plan import FaultPlan
from subak.simulator.federated_results import waiting_tables
from subak.simulator.outcome import Outcome
from subak.simulator.refusals import refuse_times
from subak.simulator.results import attempt_table, possible_reasons, task_table, timeline_table
from subak.simulator.simulate import default_interval
from subak.tables import PACKED
from subak.threads import one_by_one
from subak.version import VERSION
from subak.workload.chunks import StoredWorkload, open_workload, task_count
from subak.workload.redraws import AUTO, NONE
from subak.workload.samples import workload_folder
from subak.workload.table import Workload

OURS = re.compile(r"checkpoint\.npz|(block-\d{6}|[a-z_]+)\.bin|\..*")  # what a checkpoint's folder may hold
IN_MEMORY_MAX = 16_000_000  # tasks that are read at once unasked: some 3 GB


class Chunks(NamedTuple):
    """How a run is to be cut, as it was asked for."""

    tasks: int | None = None  # read at a time; None: as many as suit
    checkpoint: Path | None = None  # a folder to keep the run in while it goes on, and to go on from
    every: float = EVERY_S  # seconds between two checkpoints, at least


class Tallies(NamedTuple):
    """What is measured in the pass over the tasks of a run."""

    tally: Tally
    allocation: AllocationTally | None  # of a federation
    fairness: FairnessTally | None  # between several queues

    def add(self, outcome: Outcome, workload: Workload, tasks: pl.DataFrame, lost: pl.DataFrame) -> None:
        """Add the run of some tasks, with their table, and that of their lost attempts with their places among all."""
        self.tally.add(tasks, workload)
        if self.allocation is not None:
            self.allocation.add(outcome, tasks)
        if self.fairness is not None:
            self.fairness.add(tasks, lost, lost["place"].to_numpy(), workload)


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
    terms = Terms(**{**terms_of(scenario), "ranking": scheduler.order, "seed": seed, "interval": width,
                     "estimates": told, "queues": queues})
    refuse_times(width, terms.until)
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
    return Stored(stored, outline, fleet, scheduler, terms, window, settings, faults)


def _refuse_settings(scenario: Scenario, stored: StoredWorkload, outline: Workload) -> None:
    if outline.tasks.is_empty():
        raise InputError("workload: there must be at least one task to simulate, this one has 0")
    if scenario.resample != NONE and (scenario.resample != AUTO or len(scenario.seeds) > 1):
        raise InputError(f"in chunks: resample must be {NONE}, not {scenario.resample}; workloads are drawn anew in "
                         "memory")
    if energy_of(scenario) is not None:
        raise InputError("in chunks: energy is not counted; leave it out, or run in memory")
    for each in map(read_objective, scenario.objectives):
        if each.keys:
            raise InputError(f"in chunks: objective {each.text!r} must be of all tasks, without `for`")
        if stored.tasks > EXACT_MAX:
            raise InputError(f"in chunks: objective {each.text!r} cannot be judged of more than {EXACT_MAX:,} "
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
                    sums = beside.submit(_sums, inputs.workload, given_up)
                    found = run_in_chunks(
                        inputs.workload, inputs.fleet, inputs.scheduler, inputs.terms,
                        Cut(place, chunks.tasks or TASKS_READ, checkpoint), scenario.interval is not None, on_progress,
                        inputs.settings, inputs.faults)
                    of_jobs = sums.result()
                except BaseException:
                    given_up.set()  # who interrupts a long run does not wait for its sums
                    raise
            done = _measured(found, of_jobs, inputs, scenario, run_label(name, seed, scenario.seeds),
                             partial / "tasks.parquet", kept)
        write_run(partial, done, scenario, name, seed)
    return done.summary


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


def _measured(
    found: ChunkedOutcome, sums: JobSums, inputs: Stored, scenario: Scenario, label: str, path: Path, kept: bool
) -> Done:
    """Measure a run in one pass over its tasks, in which their table is written if it is *kept*."""
    stored, window = inputs.workload, inputs.window
    objectives = [read_objective(text) for text in scenario.objectives]
    timeline = timeline_table(found.outcome, stored.head)
    of_window = ended_window(timeline, window, stored.arrivals_between(window.begin, window.end), stored.tasks)
    tallies = Tallies(
        tally_of(stored.head, of_window, sums, stored.tasks, found.blocks.folder,
                 any(each.measure == "turnaround" for each in objectives)),
        None if found.outcome.federated is None else AllocationTally(of_window, stored.tasks, found.blocks.folder),
        fairness_tally(found, cut(timeline, of_window), inputs.terms.queues))
    tally, allocation = tallies.tally, tallies.allocation
    attempts = _write_tasks(found, tallies, path, kept)
    jobs = jobs_of_parts(tally.jobs, sums.undisturbed())
    with ThreadPoolExecutor(1) as beside:  # the longer part is here, where it can be interrupted
        try:
            facts = beside.submit(facts_of_tally, tally, jobs, stored.head, of_window, objectives)
            groups = beside.submit(tally.groups, jobs)
            fair = None if tallies.fairness is None else tallies.fairness.fairness()
        except BaseException:
            beside.shutdown(wait=False, cancel_futures=True)
            raise
    of = Measured(facts.result(), timeline, of_window, fair and fair.facts,
                  federation=None if allocation is None else allocation.facts(found.outcome))
    summary = summarise(found.outcome, scenario, (inputs.outline, inputs.fleet), label, of)
    return Done(summary, {"timeline": timeline, "groups": groups.result(), "attempts": attempts,
                          **({} if fair is None else {"queues": fair.queues, "shares": fair.shares}),
                          **waiting_in_chunks(found)})


def fairness_tally(found: ChunkedOutcome, timeline: pl.DataFrame, queues: TreeFile | None) -> FairnessTally | None:
    """Return a tally of a run over its *timeline*, None where no fairness is measured."""
    field = field_of(timeline, found.stored.head, found.fleet, queues)
    lost = sum(part.shape[1] for part in found.outcome.loop_result.losses)
    return None if field is None else FairnessTally(field, found.stored.of_stage, lost, found.blocks.folder)


def waiting_in_chunks(found: ChunkedOutcome) -> dict[str, pl.DataFrame]:
    """Return what `waiting_tables` does, with the numbers of tasks in the workload."""
    tables = waiting_tables(found.outcome, found.stored.head, found.fleet)
    if "waiting" in tables:
        waiting = tables["waiting"]
        number = pl.Series(found.run.number[waiting["task"].to_numpy()].astype(np.uint32))
        tables["waiting"] = waiting.with_columns(number.alias("task")).sort("task")
    return tables


def _sums(stored: StoredWorkload, given_up: Event) -> JobSums:
    """Return what jobs are by all tasks, or by some of them where that is given up."""
    sums = JobSums(stored.head)
    for begin in range(0, stored.tasks, TASKS_READ):
        if given_up.is_set():
            break
        sums.add(stored.part(begin, min(begin + TASKS_READ, stored.tasks)).tasks)
    return sums


def _write_tasks(found: ChunkedOutcome, tallies: Tallies, path: Path, kept: bool) -> pl.DataFrame:
    """Let the tallies see every task, and write the table of them as they come; return the table of lost attempts.

    Raises RunError when the disk refuses.
    """
    reasons = pl.Enum(possible_reasons(found.outcome, found.stored.head, found.stored.of_stage))
    machines = found.fleet.machines
    fleet = replace(found.fleet, machines=machines.with_columns(as_enum(machines["machine"])))  # once
    trouble: list[SubakError | OSError] = []
    attempts: list[pl.DataFrame] = []

    def parts() -> Iterator[pl.DataFrame]:
        begin = 0
        with one_by_one() as beside:
            for workload, outcome in found.parts():
                places = pl.Series("place", found.places_of_lost(begin, begin + len(workload.tasks)))
                lost = attempt_table(outcome, workload, fleet).with_columns(places)
                table = task_table(outcome, workload, fleet)
                table = table.with_columns(pl.col("reason").cast(pl.String).cast(reasons))
                beside(tallies.add, outcome, workload, table, lost)
                attempts.append(lost)
                begin += len(workload.tasks)
                yield table

    def source(columns: list[str] | None, _where: Any, _rows: int | None, _size: int | None) -> Iterator[pl.DataFrame]:
        try:
            yield first
            yield from rest
        except (SubakError, OSError) as error:
            trouble.append(error)
            raise

    rest = parts()
    first = next(rest)
    if not kept:
        for _ in rest:
            pass
    table = register_io_source(source, schema=first.schema) if kept else first.clear().lazy()
    try:
        table.sink_parquet(path.absolute(), row_group_size=TASKS_READ, maintain_order=True, **PACKED)
    except (OSError, pl.exceptions.PolarsError, SubakError) as error:
        raise trouble[0] if trouble else RunError(f"{path.name}: could not be written: {first_line(error)}") from None
    return pl.concat(attempts).sort("place").drop("place")  # in the order in which they were lost
