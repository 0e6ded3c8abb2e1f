"""Runs a scheduler of a scenario with a seed: inputs, run, folder, in memory or some tasks at a time."""
import io
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Event

import msgspec
import polars as pl

from subak.experiment.checkpoints import Chunks, Place, growing, known_by
from subak.experiment.folder import Done, run_label, summary_json, write_run
from subak.experiment.inputs import energy_of, named, named_files, of_seed, refuse_tree, terms_of
from subak.experiment.measuring import Asked, measure
from subak.experiment.scenario import Scenario, settings_of
from subak.experiment.summary import summarise
from subak.fleet.edits import overcommitted
from subak.fleet.table import Fleet
from subak.measures import of_run as measures
from subak.measures.batch import has_bound, lower_bound, stints
from subak.measures.objective import read_objective
from subak.measures.plans import missed_words
from subak.measures.runs import (
    Summary,
)
from subak.measures.tasks.job_sums import JobSums, sums_of
from subak.measures.window import Window
from subak.output.writing import new_folder, write_file
from subak.policy import find_scheduler
from subak.queues.tree import read_tree
from subak.simulator.chunks.run import run_in_chunks
from subak.simulator.chunks.stream import ChunkedRun
from subak.simulator.engine.estimates import used_estimates
from subak.simulator.engine.run_loop import Progress
from subak.simulator.engine.setup import Terms
from subak.simulator.outcome import Finished, HeldRun, Outcome
from subak.simulator.simulate import default_interval, simulate
from subak.tables import PACKED
from subak.workload.stored import HeldWorkload, StoredWorkload
from subak.workload.table import Workload

UNBOUND = "none: it is found of all tasks together, and a run in chunks has some of them in memory"


def do_run(
    scenario: Scenario, name: str, seed: int, inputs: tuple[Workload, Fleet],
    on_progress: Callable[[Progress], None] | None = None,
) -> Done:
    """Simulate one scheduler of the scenario with one seed, which may draw the workload anew, and measure the run."""
    scenario, drawn, window = of_seed(scenario, seed, inputs)
    return with_bound(do_drawn(scenario, name, seed, drawn, window, on_progress), drawn)


def without_memory(done: Done) -> Done:
    """Leave out the memory of this process, where other runs have a part in it."""
    speed = msgspec.structs.replace(done.summary.speed, peak_memory_bytes=None)
    return done._replace(summary=msgspec.structs.replace(done.summary, speed=speed))


def simulate_into(  # noqa: PLR0913, PLR0917  (the words of the command)
    folder: Path, scenario: Scenario, name: str, seed: int, inputs: tuple[Workload | StoredWorkload, Fleet],
    on_progress: Callable[[Progress], None] | None = None, overwrite: bool = False, chunks: Chunks = Chunks(),
) -> Summary:
    """Do a run as `do_run`, and write its folder whole or not at all; its lower bound is added last.

    *chunks* are of a run that reads some tasks at a time. Raises InputError for a checkpoint of another run.
    """
    scenario, drawn, window = of_seed(scenario, seed, inputs)
    with new_folder(folder, "summary.json", overwrite) as partial:
        streams = isinstance(inputs[0], StoredWorkload)
        with growing(partial, chunks, known_by(scenario, name, seed)) if streams else nullcontext() as place:
            done = do_drawn(scenario, name, seed, drawn, window, on_progress, place)
        write_run(partial, done, name, seed)
    bounded = with_bound(done, drawn)
    for added in bounded.tables.keys() - done.tables.keys():
        table = io.BytesIO()
        bounded.tables[added].write_parquet(table, **PACKED)
        write_file(folder / f"{added}.parquet", table.getvalue())
    if bounded is not done:
        write_file(folder / "summary.json", summary_json(bounded.summary))
    return bounded.summary


def do_drawn(
    scenario: Scenario, name: str, seed: int, drawn: tuple[Workload | StoredWorkload, Fleet], window: Window,
    on_progress: Callable[[Progress], None] | None = None, place: Place | None = None,
) -> Done:
    """Simulate one scheduler of the scenario on what `of_seed` gave, and measure the run, but for its bound.

    *place*: where a run grows that reads some tasks at a time.
    """
    workload, fleet = drawn
    found: Finished
    if isinstance(workload, StoredWorkload):
        assert place is not None
        found, sums = _streamed(scenario, name, seed, (workload, fleet), place, on_progress)
        measured, tables = measure(found, asked_of(scenario, window), sums, place.room)
    else:
        outcome = simulated(scenario, name, seed, (workload, fleet), on_progress)
        promised = overcommitted(fleet, scenario.interference)  # shares are of what is promised
        found = HeldRun(outcome, HeldWorkload(workload), promised)
        measured, tables = measure(found, asked_of(scenario, window))
    outcome = found.outcome
    summary = summarise(outcome, scenario, (found.work.outline, fleet), run_label(name, seed, scenario.seeds), measured)
    if outcome.scheduler.recorded:
        _say_overcommitted(measured.timeline, [resource.name for resource in fleet.resources])
    if summary.plan is not None and summary.plan.missed:
        logging.getLogger("subak").warning(missed_words(summary.label, summary.plan))
    return Done(summary, tables, scenario, outcome.search_moves)


def _say_overcommitted(timeline: pl.DataFrame, resources: list[str]) -> None:
    """Say that the log's tasks ask for more than the fleet has: its scheduler gave less, or had other machines."""
    said = " and ".join(f"{share:.1%} of its {name}"
                        for name, share in measures.overcommitted(timeline, resources).items())
    if said:
        logging.getLogger("subak").warning(
            f"recorded: the log's tasks ask for more than the fleet has, up to {said} in the mean of one of "
            f"{len(timeline):,} intervals, and more at times: their scheduler gave less than they asked for, or had "
            "other machines")


def asked_of(scenario: Scenario, window: Window) -> Asked:
    """Return what the runs of a scenario are measured by."""
    return Asked(window, [read_objective(text) for text in scenario.objectives],
                 read_tree(Path(scenario.queues)) if scenario.queues else None, energy_of(scenario))


def simulated(
    scenario: Scenario, name: str, seed: int, inputs: tuple[Workload, Fleet],
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Return the run of a scheduler of the scenario with a seed, on the inputs `of_seed`; nothing is written."""
    workload, fleet = inputs
    scheduler = replace(find_scheduler(name, scenario.check_policy, scenario.parameters),
                        answer_timeout=scenario.answer_timeout)
    faults, queues, failures = named_files(scenario)
    if queues is not None:
        refuse_tree(workload, queues, scenario.queues)
    with named(scenario):
        return simulate(workload, fleet, scheduler, seed, on_progress=on_progress,
                        federation=settings_of(scenario, name), faults=faults, failures=failures,
                        queues=queues, **terms_of(scenario, name))


def _streamed(
    scenario: Scenario, name: str, seed: int, inputs: tuple[StoredWorkload, Fleet], place: Place,
    on_progress: Callable[[Progress], None] | None,
) -> tuple[ChunkedRun, JobSums]:
    """Return the run as `simulated` does, of some tasks at a time, and what jobs are over all tasks."""
    stored, fleet = inputs
    scheduler = find_scheduler(name, scenario.check_policy, scenario.parameters)
    faults, queues, _ = named_files(scenario)
    if queues is not None:
        refuse_tree(stored.head, queues, scenario.queues)
    interval = default_interval(stored.outline) if scenario.interval is None else scenario.interval
    terms = Terms(**{**terms_of(scenario, name), "ranking": scheduler.order, "seed": seed, "interval": interval,
                     "estimates": used_estimates(scenario.estimates, stored.outline), "queues": queues})
    given_up = Event()
    with named(scenario), ThreadPoolExecutor(1) as beside:
        try:
            sums = beside.submit(lambda: place.sums or sums_of(stored, given_up))
            fixed, settings = scenario.interval is not None, settings_of(scenario, name)
            found = run_in_chunks(stored, fleet, scheduler, terms, place.cut, fixed, on_progress, settings, faults)
            return found, sums.result()
        except BaseException:
            given_up.set()  # who interrupts a long run does not wait for its sums
            raise


def with_bound(done: Done, drawn: tuple[Workload | StoredWorkload, Fleet]) -> Done:
    """Add to a run of MapReduce jobs, all of whose tasks ended, what no schedule's makespan is less than."""
    scenario, (workload, fleet) = done.scenario, drawn
    if isinstance(workload, StoredWorkload):
        ended = done.summary.status["FINISHED"] == workload.tasks
        note = UNBOUND if ended and has_bound(workload.head) else ""
        return done._replace(summary=msgspec.structs.replace(done.summary, makespan_bound_note=note)) if note else done
    tasks = done.tables["tasks"]
    ended = bool((tasks["status"] == "FINISHED").all())  # a bound on the makespan is none on a part of it
    known = tasks["machine"].null_count() == 0  # a log does not say it
    if not (ended and known and has_bound(workload)):
        return done
    bound = lower_bound(workload, overcommitted(fleet, scenario.interference), scenario.slow_start < 1)
    summary = msgspec.structs.replace(
        done.summary, makespan_bound=bound.seconds, makespan_bound_note=bound.note,
        gap=measures.gap(done.summary, bound.seconds))
    more = {} if bound.seconds is None else {"stints": stints(tasks, workload)}
    return done._replace(summary=summary, tables={**done.tables, **more})
