"""Tallies a run's tasks block by block: exact up to EXACT_MAX tasks, by sketches beyond."""
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from msgspec import structs

from subak.measures import of_run as measures
from subak.measures.objective import SLURM_WAIT, Objective
from subak.measures.runs import FailureFacts, Reason, Spread, WaitedFacts, WindowFacts
from subak.measures.tasks.job_sums import LENGTHS, JobSums
from subak.measures.tasks.jobs import (
    GROUPS_MAX,
    KINDS_OF_GROUPS,
    LEVELS,
    WAITED,
    described,
    groups_of_kind,
    groups_of_stages,
    part_of_jobs,
    wait_by_length,
    waited_facts,
    with_jobs,
)
from subak.measures.tasks.sketch import ACCURACY, Sketches
from subak.measures.tasks.slurm_jobs import slurm_waits
from subak.workload.table import Workload

EXACT_MAX = 50_000_000  # tasks of which every wait is kept
OF_NUMBERS = ("wait_time", WAITED, "slowdown")  # columns that every run is measured by
OF_OBJECTIVES = {"wait": "wait_time", "turnaround": "turnaround", "slowdown": "slowdown",
                 SLURM_WAIT: "wait_time"}  # what they read
OF_GANGS = ("stage", "ready")  # and of tasks that start together
DELAY = "execution_delay"


class Spreads(Protocol):
    """How waits and slowdowns of the tasks that count are gathered."""

    @property
    def accuracy(self) -> float | None:
        """By which share percentiles may be off; None: they are exact."""

    def add(self, tasks: pl.DataFrame) -> None:
        """Add described tasks with their stage, slowdown and turnaround."""

    def wait_time(self) -> Spread:
        """Return that of all of them."""

    def slurm_wait(self) -> Spread | None:
        """Return that of Slurm jobs; None where no tasks start together."""

    def slowdown(self) -> Spread:
        """Return that of all that finished."""

    def execution_delay(self) -> Spread | None:
        """Return that of all that finished; None where none share CPU."""

    def lengths(self) -> dict[str, Spread]:
        """Return waits of tasks of short and of long jobs."""

    def concerned(self, objective: Objective) -> pl.DataFrame:
        """Return what an objective is judged by."""

    def groups(self, of_job: pl.DataFrame) -> pl.DataFrame:
        """Return one row for each group of tasks of each kind; *of_job* has those of each job, and its completion."""


class Columns:
    """Columns of the tasks that count, in their order: in memory, or a file for each of those that hold numbers."""

    def __init__(self, names: tuple[str, ...], folder: Path | None) -> None:
        """Begin without tasks, in memory or in a *folder* that is there."""
        self.names, self.folder = names, folder
        self.parts: list[pl.DataFrame] = []
        for name in names if folder else ():
            self._path(name).write_bytes(b"")  # a run that goes on measures anew

    def add(self, tasks: pl.DataFrame) -> None:
        """Keep the columns of these tasks."""
        if self.folder is None:
            self.parts.append(tasks.select(self.names))
            return
        for name in self.names:
            with self._path(name).open("ab") as file:
                column = tasks[name]
                file.write((column if name == "stage" else column.fill_null(float("nan"))).to_numpy().tobytes())

    def column(self, name: str) -> pl.Series:
        """Return a column of all tasks, in one piece: polars adds up one piece after the other."""
        if self.folder is None:
            return pl.concat(part[name] for part in self.parts).rechunk()
        if name == "stage":
            return pl.Series(name, np.fromfile(self._path(name), np.uint32))
        values = np.fromfile(self._path(name))
        column = pl.Series(name, values)
        return column.fill_nan(None) if np.isnan(values).any() else column

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}.bin"


class Exact:
    """Every value, in the order of the tasks; on the disk beside their stages, which tell what is no number."""

    accuracy: float | None = None

    def __init__(
        self, of_stage: dict[str, pl.Series], values: tuple[str, ...], folder: Path | None, gangs: np.ndarray,
    ) -> None:
        """Begin without tasks, in memory or in a *folder* that is there; *of_stage* is what `groups_of_stages` returns.

        *values* are the columns of numbers that are looked at, *gangs* are bool[stage], whose tasks start together.
        """
        self.of_stage, self.gangs = of_stage, gangs
        self.of_gangs = OF_GANGS if gangs.any() else ()
        self.columns = Columns(tuple(dict.fromkeys((
            *values, *self.of_gangs, *(of_stage if folder is None else ("stage",))))), folder)

    def add(self, tasks: pl.DataFrame) -> None:
        """Keep the tasks."""
        self.columns.add(tasks)

    def column(self, name: str) -> pl.Series:
        """Return a column of all tasks: one that is kept, or one that their stages tell."""
        if name in self.columns.names:
            return self.columns.column(name)
        return self.of_stage[name].gather(self.columns.column("stage"))

    def tasks(self, *names: str) -> pl.DataFrame:
        """Return these columns of all tasks."""
        return pl.DataFrame([self.column(name) for name in names])

    def wait_time(self) -> Spread:
        """Return the spread of all that could start."""
        return measures.spread(self.column(WAITED))

    def slurm_wait(self) -> Spread | None:
        """Return the spread of all that could start; None where no tasks start together."""
        if not self.of_gangs:
            return None
        return measures.spread(slurm_waits(self.tasks(WAITED, *self.of_gangs), self.gangs, WAITED))

    def slowdown(self) -> Spread:
        """Return the spread of all that finished."""
        return measures.spread(self.column("slowdown"))

    def execution_delay(self) -> Spread | None:
        """Return the spread of all that finished; None where none share CPU."""
        return measures.spread(self.column(DELAY)) if DELAY in self.columns.names else None

    def lengths(self) -> dict[str, Spread]:
        """Return waits of tasks of short and of long jobs."""
        return wait_by_length(self.tasks(WAITED, "length"))

    def concerned(self, objective: Objective) -> pl.DataFrame:
        """Return the columns that an objective reads."""
        keys = [name for name, _ in objective.keys if name in self.of_stage]
        values = [OF_OBJECTIVES[objective.measure]] if objective.measure in OF_OBJECTIVES else []
        together = self.of_gangs if objective.measure == SLURM_WAIT else ()
        return self.tasks("job", *values, *together, *keys)

    def groups(self, of_job: pl.DataFrame) -> pl.DataFrame:
        """Return the groups of tasks."""
        kinds = [kind for kind in KINDS_OF_GROUPS if kind in self.of_stage]
        return pl.concat(groups_of_kind(self.column, kind, of_job) for kind in kinds)


class Sketched:
    """Counts in bins, for each group of each kind."""

    accuracy: float | None = ACCURACY

    def __init__(self) -> None:
        self.names: dict[str, dict[str | None, int]] = {}  # the groups of each kind, and their numbers
        self.still: dict[str, np.ndarray] = {}  # int64[group], how many of each kind's groups never started
        self.waits: dict[str, Sketches] = {}
        self.slowdowns: dict[str, Sketches] = {}

    def add(self, tasks: pl.DataFrame) -> None:
        """Count the tasks."""
        wait, slowdown = (tasks[name].fill_null(float("nan")).to_numpy() for name in (WAITED, "slowdown"))
        still = tasks["wait_time"].is_null().to_numpy() & ~np.isnan(wait)
        for kind in (kind for kind in KINDS_OF_GROUPS if kind in tasks.columns):
            group = self._numbered(kind, tasks[kind])
            more = np.bincount(group[still], minlength=len(self.names[kind]))
            before = self.still.get(kind, more[:0])
            self.still[kind] = more + np.pad(before, (0, more.size - before.size))
            for held, values in ((self.waits, wait), (self.slowdowns, slowdown)):
                held.setdefault(kind, Sketches()).add(group, values, len(self.names[kind]))

    def _numbered(self, kind: str, column: pl.Series) -> np.ndarray:
        """Return int64[row], the number of each row's group; new ones are numbered as they come."""
        names = self.names.setdefault(kind, {})
        found = column.unique(maintain_order=True)
        for name in found.cast(pl.String).to_list():
            names.setdefault(name, len(names))
        number = pl.Series([names[name] for name in found.cast(pl.String).to_list()], dtype=pl.Int64)
        return column.replace_strict(found, number, return_dtype=pl.Int64).to_numpy()

    def wait_time(self) -> Spread:
        """Return about the spread of all that could start."""
        return self.waits["length"].spread(*self.names["length"].values()) if self.waits else Spread()

    def slurm_wait(self) -> Spread | None:
        """Return None: of so many tasks none start together."""

    def slowdown(self) -> Spread:
        """Return about the spread of all that finished."""
        return self.slowdowns["length"].spread(*self.names["length"].values()) if self.waits else Spread()

    def execution_delay(self) -> Spread | None:
        """Return None: of so many tasks none share CPU."""

    def concerned(self, _objective: Objective) -> pl.DataFrame:
        """Return nothing: no objective can be judged of percentiles that are not exact."""
        return pl.DataFrame()

    def lengths(self) -> dict[str, Spread]:
        """Return about the waits of tasks of short and of long jobs."""
        numbers = self.names.get("length", {})
        return {name: self.waits["length"].spread(numbers[name]) if name in numbers else Spread() for name in LENGTHS}

    def groups(self, of_job: pl.DataFrame) -> pl.DataFrame:
        """Return the groups of tasks, with percentiles of sketches."""
        return pl.concat(self._groups(kind, of_job) for kind in self.waits)

    def _groups(self, kind: str, jobs: pl.DataFrame) -> pl.DataFrame:
        waits, slowdowns = self.waits[kind], self.slowdowns[kind]
        table = pl.DataFrame({
            "by": kind, "name": pl.Series(list(self.names[kind]), dtype=pl.String), "number": range(waits.rows.size),
            "tasks": waits.rows, "started": waits.values - self.still[kind], "wait_mean": waits.means()})
        table = table.sort("tasks", "name", descending=[True, False]).head(GROUPS_MAX)
        found = {name: pl.Series([waits.quantile(number, level) for number in table["number"]], dtype=pl.Float64)
                 for name, level in LEVELS.items()}
        mean = slowdowns.means().gather(table["number"])
        return with_jobs(table.drop("number").with_columns(**found, slowdown_mean=mean), kind, jobs)


class Tally:
    """What is measured of a run's tasks, in their order, some at a time."""

    def __init__(self, window: WindowFacts, of_stage: dict[str, pl.Series], jobs: int, spreads: Spreads) -> None:
        """Begin without tasks; *of_stage* is what `groups_of_stages` returns."""
        self.window, self.of_stage, self.spreads = window, of_stage, spreads
        self.tasks = 0
        self.waited = WaitedFacts()
        self.status: dict[str, int] = {}
        self.recorded: dict[str, int] = {}
        self.reasons: dict[tuple[str, str | None], int] = {}
        self.places: dict[str, int] = {}  # how many ran how near their input
        self.failures: FailureFacts | None = None
        self.jobs: list[pl.DataFrame] = []
        self.first, self.last_finish = float("inf"), float("-inf")
        self.seen, self.row = np.zeros(jobs, bool), np.zeros(jobs, np.int64)
        self.firsts: list[pl.DataFrame] = []  # of each job, the groups of the first of its tasks that count

    def add(self, tasks: pl.DataFrame, workload: Workload) -> None:
        """Add rows of the task table of a run, with those of their workload."""
        self.tasks += len(tasks)
        _count(self.status, measures.status_counts(tasks))
        _count(self.recorded, measures.recorded_counts(tasks, workload))
        for reason in measures.reasons(tasks):
            key = reason.status, reason.reason
            self.reasons[key] = self.reasons.get(key, 0) + reason.tasks
        self.first = min(self.first, float(tasks["arrival"][0]))
        finish = tasks["finish"].fill_null(float("-inf")).to_numpy()
        self.last_finish = max(self.last_finish, float(finish.max()))
        self.failures = _together(self.failures, measures.outcome_counts(tasks))
        self.jobs.append(part_of_jobs(tasks))
        counted = described(tasks, workload, self.window, self.of_stage)
        _count(self.places, measures.place_counts(counted))
        self._note_firsts(counted)
        self.spreads.add(counted.with_columns(
            slowdown=measures.bounded_slowdown(), turnaround=pl.col("finish") - pl.col("ready")))
        self._note_waits(waited_facts(counted, self.window))

    def _note_waits(self, part: WaitedFacts) -> None:
        each = zip(structs.astuple(self.waited), structs.astuple(part), strict=True)
        self.waited = WaitedFacts(*(before + more for before, more in each))

    def _note_firsts(self, tasks: pl.DataFrame) -> None:
        job, rows = tasks["job"].to_numpy(), np.arange(len(tasks))
        self.row[job[::-1]] = rows[::-1]  # of rows of one job the first is written last
        first = np.flatnonzero(~self.seen[job] & (self.row[job] == rows))
        self.seen[job[first]] = True
        self.firsts.append(tasks.select("job", *(kind for kind in KINDS_OF_GROUPS if kind in tasks.columns))[first])

    def groups(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """Return what `group_table` does; *jobs* is the job table."""
        return self.spreads.groups(pl.concat(self.firsts).join(jobs.select("job", "completion"), on="job", how="left"))

    def ranked_reasons(self) -> tuple[Reason, ...]:
        """Return why tasks are not running or done, the most frequent reason first."""
        ranked = sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))
        return tuple(Reason(status, reason, tasks) for (status, reason), tasks in ranked)

    def makespan(self) -> float | None:
        """Return the last finish minus the first arrival, None when nothing finished."""
        return None if self.last_finish == float("-inf") else self.last_finish - self.first


def tally_of(
    head: Workload, window: WindowFacts, sums: JobSums, tasks: int, folder: Path | None,
    objectives: list[Objective] = [], shares_cpu: bool = False,  # noqa: B006  (never changed)
) -> Tally:
    """Return a tally for a run of so many *tasks*, in memory or with room in *folder*."""
    of_stage = groups_of_stages(head, sums.lengths(window))
    asked = any(each.measure == "turnaround" for each in objectives)
    values = (*OF_NUMBERS, *("turnaround",) * asked, *(DELAY,) * shares_cpu)
    exact, gangs = folder is None or tasks <= EXACT_MAX, head.gang_sizes() > 0
    return Tally(window, of_stage, len(head.jobs), Exact(of_stage, values, folder, gangs) if exact else Sketched())


def _together(before: FailureFacts | None, more: FailureFacts | None) -> FailureFacts | None:
    """Return how the tasks of both ended."""
    if before is None or more is None:
        return more
    counts = dict(before.outcomes)
    _count(counts, more.outcomes)
    return FailureFacts(counts, before.attempts_failed + more.attempts_failed)


def _count(counts: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count
