"""Measures a finished run in one pass over its tasks, in memory or block by block."""
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl
from polars.io.plugins import register_io_source

from subak.errors import RunError, SubakError, first_line
from subak.measures.energy.measure import EnergyTally
from subak.measures.energy.settings import Energy
from subak.measures.fairness.measure import field_of
from subak.measures.fairness.tally import FairnessTally
from subak.measures.federation import FederationTally
from subak.measures.objective import Objective
from subak.measures.runs import EnergyFacts, FairnessFacts, FederationFacts, WindowFacts
from subak.measures.tasks.job_sums import JobSums, sums_of
from subak.measures.tasks.jobs import jobs_of_parts
from subak.measures.tasks.tally import Tally, tally_of
from subak.measures.tasks.task_facts import TaskFacts, facts_of
from subak.measures.window import Window, cut, ended_window
from subak.queues.tree import TreeFile
from subak.simulator.engine.columns import as_enum
from subak.simulator.engine.interference import interferes
from subak.simulator.federated_results import waiting_tables
from subak.simulator.outcome import Finished, Part
from subak.simulator.results import attempt_table, task_table, timeline_table
from subak.tables import PACKED
from subak.threads import one_by_one

ROWS_WRITTEN = 1 << 20  # at once, of the table of tasks


class Asked(NamedTuple):
    """What a run is measured by, beside what every run is."""

    window: Window
    objectives: list[Objective]
    queues: TreeFile | None = None
    energy: Energy | None = None


class Room(NamedTuple):
    """Where a run that is too large for the memory is measured."""

    folder: Path  # of what is kept of each task
    tasks: Path  # the table of tasks
    kept: bool  # whether its rows are written


class Measured(NamedTuple):
    """What a run is measured by: what its tasks say, the timeline, the window, how fair it was, and so on."""

    facts: TaskFacts
    timeline: pl.DataFrame
    window: WindowFacts
    fairness: FairnessFacts | None = None
    energy: EnergyFacts | None = None
    federation: FederationFacts | None = None


class Tallies(NamedTuple):
    """What is gathered of the tasks of a run."""

    tally: Tally
    federation: FederationTally | None  # of a federation
    fairness: FairnessTally | None  # between several queues
    energy: EnergyTally | None  # where it is said what machines draw

    def add(self, part: Part, tasks: pl.DataFrame, lost: pl.DataFrame) -> None:
        """Add a part of the run, with the tables of its tasks and of its lost attempts."""
        self.tally.add(tasks, part.workload)
        if self.federation is not None:
            self.federation.add(part.outcome, tasks)
        for each in (self.fairness, self.energy):
            if each is not None:
                each.add(tasks, lost, part.lost, part.workload)


def measure(
    found: Finished, asked: Asked, sums: JobSums | None = None, room: Room | None = None
) -> tuple[Measured, dict[str, pl.DataFrame]]:
    """Return what a run is measured by, and its tables by name; that of its tasks is written where there is *room*.

    *sums* are over all tasks, where somebody has added them up. Raises RunError when the disk refuses.
    """
    head, outcome, work = found.work.head, found.outcome, found.work
    timeline = timeline_table(outcome, head)
    window = ended_window(timeline, asked.window, work.arrivals_between(asked.window.begin, asked.window.end),
                          work.tasks)
    sums, within = sums or sums_of(head), cut(timeline, window)
    tallies = _tallies(found, asked, window, within, sums, room and room.folder)
    lost: list[tuple[pl.DataFrame, pl.Series]] = []
    tables = _tables(found, tallies, lost)
    tasks = {"tasks": pl.concat(tables)} if room is None else _written(tables, room)
    jobs = jobs_of_parts(tallies.tally.jobs, sums.undisturbed())
    used, of_energy = (None, {}) if tallies.energy is None else tallies.energy.use(within, head)
    with ThreadPoolExecutor(1) as beside:  # the longer part is here, where it can be interrupted
        try:
            facts = beside.submit(facts_of, tallies.tally, jobs, head, window, asked.objectives, used)
            groups = beside.submit(tallies.tally.groups, jobs)
            fair = None if tallies.fairness is None else tallies.fairness.fairness()
        except BaseException:
            beside.shutdown(wait=False, cancel_futures=True)
            raise
    federation = None if tallies.federation is None else tallies.federation.facts(outcome)
    measured = Measured(facts.result(), timeline, window, fair and fair.facts, used, federation)
    return measured, {
        **tasks, "timeline": timeline, "attempts": _in_order(lost),
        **({} if fair is None else {"queues": fair.queues, "shares": fair.shares}),
        **of_energy, **waiting_of(found), "groups": groups.result()}


def _tallies(
    found: Finished, asked: Asked, window: WindowFacts, within: pl.DataFrame, sums: JobSums, folder: Path | None
) -> Tallies:
    """Return what gathers, in memory or with room in a *folder*; *within* is the timeline of the window."""
    head, outcome, tasks = found.work.head, found.outcome, found.work.tasks
    shared = interferes(outcome.simulation.interference)
    field = field_of(within, head, found.fleet, asked.queues)
    lost = sum(part.shape[1] for part in outcome.loop_result.losses)
    return Tallies(
        tally_of(head, window, sums, tasks, folder, asked.objectives, shared),
        None if outcome.federated is None else FederationTally(window, tasks, folder),
        None if field is None else FairnessTally(field, found.work.of_stage, lost, folder),
        None if asked.energy is None else EnergyTally(asked.energy, found.fleet, window))


def _tables(found: Finished, tallies: Tallies, lost: list[tuple[pl.DataFrame, pl.Series]]) -> Iterator[pl.DataFrame]:
    """Yield the table of tasks, part by part, while the tallies see them; note the lost attempts, and their places."""
    machines, reasons = found.fleet.machines, found.reasons()
    fleet = replace(found.fleet, machines=machines.with_columns(as_enum(machines["machine"])))  # once
    with one_by_one() as beside:
        for part in found.parts():
            attempts = attempt_table(part.outcome, part.workload, fleet)
            table = task_table(part.outcome, part.workload, fleet)
            if reasons is not None:
                table = table.with_columns(pl.col("reason").cast(pl.String).cast(pl.Enum(reasons)))
            beside(tallies.add, part, table, attempts)
            lost.append((attempts, pl.Series("place", part.lost)))
            yield table


def _in_order(lost: list[tuple[pl.DataFrame, pl.Series]]) -> pl.DataFrame:
    """Return the table of lost attempts, in the order in which they were lost."""
    if len(lost) == 1:
        return lost[0][0]
    return pl.concat(table.with_columns(place) for table, place in lost).sort("place").drop("place")


def waiting_of(found: Finished) -> dict[str, pl.DataFrame]:
    """Return what masters knew of who waits in the end, with the numbers of tasks in the workload."""
    tables = waiting_tables(found.outcome, found.work.head, found.fleet)
    if "waiting" in tables:
        number = pl.Series("task", found.numbers(tables["waiting"]["task"].to_numpy()), pl.UInt32)
        tables["waiting"] = tables["waiting"].with_columns(number).sort("task", maintain_order=True)
    return tables


def _written(tables: Iterator[pl.DataFrame], room: Room) -> dict[str, pl.DataFrame]:
    """Write the table of tasks as it comes, and return nothing of it. Raises RunError when the disk refuses."""
    trouble: list[SubakError | OSError] = []

    def source(
        columns: list[str] | None, _where: object, _rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        try:
            yield first
            yield from tables
        except (SubakError, OSError) as error:
            trouble.append(error)
            raise

    first = next(tables)
    if not room.kept:
        for _ in tables:
            pass
    table = register_io_source(source, schema=first.schema) if room.kept else first.clear().lazy()
    try:
        table.sink_parquet(room.tasks.absolute(), row_group_size=ROWS_WRITTEN, maintain_order=True, **PACKED)
    except (OSError, pl.exceptions.PolarsError, SubakError) as error:
        raise trouble[0] if trouble else RunError(f"{room.tasks.name}: could not be written: {first_line(error)}"
                                                  ) from None
    return {}
