"""A workload read block by block from disk, or held in memory.

Jobs and stages are read whole. Of the tasks it is known how many there are, how many of each stage, and when the first
and the last arrive. They must be sorted by arrival, as every folder is that Subak writes.
"""
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from subak.errors import InputError, first_line
from subak.tables import scan_table
from subak.workload.extent import at_load, kept_of, shrinking, tasks_at_load, tasks_kept
from subak.workload.table import Workload, checked_tasks, read_head, refuse_idle

TASKS_READ = 1 << 20  # at a time
ROWS_READ = 1 << 16  # rows of a table of which some are kept, that are read together
LOOKED_AT = 1 << 22  # arrivals that are looked at together


@dataclass(frozen=True)
class HeldWorkload:
    """A workload that is in memory, in the words of one that is stored."""

    head: Workload

    @property
    def outline(self) -> Workload:
        """The workload."""
        return self.head

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return len(self.head.tasks)

    def parts(self) -> Iterator[Workload]:
        """Yield the workload, in one part."""
        yield self.head

    @cached_property
    def of_stage(self) -> np.ndarray:
        """int64[stage], how many tasks it has."""
        return np.bincount(self.head.tasks["stage"].to_numpy(), minlength=len(self.head.stages))

    def arrivals_between(self, begin: float, end: float) -> int:
        """Return how many tasks arrive from *begin* to *end* (s)."""
        return int(self.head.tasks["arrival"].is_between(begin, end).sum())

    def stages_between(self, begin: float, end: float) -> pl.Series:
        """Return the stages of which tasks arrive from *begin* to *end* (s)."""
        return self.head.tasks.filter(pl.col("arrival").is_between(begin, end))["stage"].unique()


@dataclass(frozen=True)
class StoredWorkload:
    """A workload folder, of whose tasks none is in memory."""

    folder: Path
    head: Workload  # without tasks
    tasks: int
    first: float  # seconds, the first arrival
    last: float
    of_stage: np.ndarray  # int64[stage], how many tasks it has
    arrival_of_stage: np.ndarray  # float64[stage], s, when its first task arrives
    estimates: int  # tasks of which there is the user's guess of the run time
    columns: tuple[str, ...]  # of the table of tasks
    source: Workload  # what the folder has of jobs and stages
    stage: pl.Series | None = None  # of each stage of the folder its row in *head*, null where left out; None: the same
    before: np.ndarray | None = None  # int64[block], tasks kept before each ROWS_READ rows of the table
    times: float = 1.0  # how much more densely tasks arrive than in the folder

    def at_load(self, times: float) -> "StoredWorkload":
        """Return the workload as `at_load` of one in memory does."""
        if times == 1.0:
            return self
        head, factor = replace(at_load(self.outline, times), tasks=self.head.tasks), shrinking(times)
        return replace(self, head=head, times=times, first=self.first * factor, last=self.last * factor,
                       arrival_of_stage=self.arrival_of_stage * factor)

    def part(self, begin: int, end: int) -> Workload:
        """Return the workload with those tasks alone whose numbers are from *begin* to before *end*.

        Raises InputError for rows that break a rule, or are not sorted by arrival.
        """
        tasks = self._tasks(begin, end)
        if not tasks["arrival"].is_sorted():
            row = int(np.argmax(np.diff(tasks["arrival"].to_numpy()) < 0)) + 1
            self.refuse_before(begin + row, math.inf)
        return replace(self.head, tasks=tasks)

    def parts(self) -> Iterator[Workload]:
        """Yield the tasks in their order, some at a time."""
        for begin in range(0, self.tasks, TASKS_READ):
            yield self.part(begin, min(begin + TASKS_READ, self.tasks))

    def refuse_unsorted(self) -> None:
        """Raise InputError where tasks are not sorted by arrival; all are looked at, some at a time."""
        before = -math.inf
        for begin in range(0, self.tasks, LOOKED_AT):
            arrival = self._all().select("arrival").slice(begin, LOOKED_AT).collect()["arrival"].to_numpy()
            early = np.flatnonzero(np.diff(arrival, prepend=before) < 0)
            if early.size:
                self.refuse_before(begin + int(early[0]), math.inf)
            before = arrival[-1]

    def refuse_before(self, task: int, arrival: float) -> None:
        """Raise InputError where a task arrives before *arrival* (s), that of the one above it."""
        if self.arrival(task) < arrival:
            raise InputError(f"{self.folder / 'tasks.parquet'}: tasks must be sorted by arrival to be read in chunks, "
                             f"row {task} arrives at {self.arrival(task):g} s, before the one above it")

    def arrival(self, task: int) -> float:
        """Return when a task arrives (s), inf for the number behind the last."""
        return float(self._tasks(task, task + 1)["arrival"][0]) if task < self.tasks else float("inf")

    @cached_property
    def outline(self) -> Workload:
        """The workload with a few of its tasks: the first, the last, and one with an estimate, if any has."""
        chosen = [self.part(0, 1).tasks] if self.tasks else []
        if self.estimates:
            known = self._all().filter(pl.col("estimate").is_not_null()).head(1).collect()
            chosen.append(checked_tasks(known, self.head))
        if self.tasks > 1:
            chosen.append(self.part(self.tasks - 1, self.tasks).tasks)
        return replace(self.head, tasks=pl.concat([self.head.tasks, *chosen], how="diagonal"))

    def arrivals_between(self, begin: float, end: float) -> int:
        """Return how many tasks arrive from *begin* to *end* (s)."""
        return int(_collected(self.folder, self._all(), pl.col("arrival").is_between(begin, end).sum()).item())

    def stages_between(self, begin: float, end: float) -> pl.Series:
        """Return the stages of which tasks arrive from *begin* to *end* (s)."""
        inside = pl.col("stage").filter(pl.col("arrival").is_between(begin, end)).unique()
        return _collected(self.folder, self._all(), inside)["stage"]

    def _tasks(self, begin: int, end: int) -> pl.DataFrame:
        """Return tasks by their numbers, checked. Of a table of which some are kept, whole blocks are read."""
        if self.stage is None or self.before is None:
            return tasks_at_load(checked_tasks(self._rows(begin, end), self.head), self.times)
        first, last = (int(each) for each in np.searchsorted(self.before, [begin, end - 1], side="right") - 1)
        rows = checked_tasks(self._rows(first * ROWS_READ, (last + 1) * ROWS_READ), self.source)
        kept = tasks_kept(rows, self.stage).slice(begin - int(self.before[first]), end - begin)
        return tasks_at_load(kept, self.times)

    def _rows(self, begin: int, end: int) -> pl.DataFrame:
        """Return rows of the table as it is."""
        try:
            return _scan(self.folder).slice(begin, end - begin).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"{self.folder / 'tasks.parquet'}: not a readable Parquet file: "
                             f"{first_line(error)}") from None

    def _all(self) -> pl.LazyFrame:
        """Return all tasks, which are not checked."""
        return tasks_at_load(_kept(_scan(self.folder), self.stage), self.times)


def work_of(workload: Workload | StoredWorkload) -> HeldWorkload | StoredWorkload:
    """Return a workload in the words that those in memory and those that are stored have in common."""
    return workload if isinstance(workload, StoredWorkload) else HeldWorkload(workload)


def task_count(folder: Path) -> int:
    """Return how many tasks a workload folder has. Raises InputError where it has no readable table of tasks."""
    return int(_collected(folder, _scan(folder), pl.len()).item())


def last_arrival(folder: Path) -> float:
    """Return when the last task of a workload folder arrives, s; 0 where there is none. Raises InputError as above."""
    found = _collected(folder, _scan(folder), pl.col("arrival").cast(pl.Float64, strict=False).max()).item()
    return 0.0 if found is None else float(found)


def open_workload(folder: Path, queues: Sequence[str] = ()) -> StoredWorkload:
    """Look over a workload folder, or the jobs of some queues in it, as `of_queues` does.

    Raises InputError, naming the file or the row, for one that breaks a rule.
    """
    source = read_head(folder)
    head, number = kept_of(source, queues) if queues else (source, None)
    table = _kept(_scan(folder), number)
    columns = table.collect_schema().names()
    estimate = pl.col("estimate").count() if "estimate" in columns else pl.lit(0)
    arrival = pl.col("arrival")
    found = _collected(folder, table, pl.len(), arrival.first().alias("first"), arrival.last().alias("last"),
                       estimate.alias("estimates")).row(0, named=True)
    stage = pl.col("stage").cast(pl.UInt32, strict=False)  # what is none is refused when its task is read
    counts = table.select(stage, arrival.cast(pl.Float64, strict=False)).filter(
        stage < len(head.stages)).group_by("stage").agg(pl.len(), arrival.min()).collect(engine="streaming")
    of_stage, arrival_of_stage = np.zeros(len(head.stages), np.int64), np.full(len(head.stages), np.inf)
    of_stage[counts["stage"].to_numpy()] = counts["len"].to_numpy()
    arrival_of_stage[counts["stage"].to_numpy()] = counts["arrival"].fill_null(np.inf).to_numpy()
    refuse_idle(of_stage, head)
    before = None if number is None else _kept_before(folder, number)
    return StoredWorkload(folder, head, found["len"], found["first"] or 0.0, found["last"] or 0.0, of_stage,
                          arrival_of_stage, found["estimates"], tuple(columns), source, number, before)


def _kept(table: pl.LazyFrame, number: pl.Series | None) -> pl.LazyFrame:
    """Return the tasks of stages that have a *number*, by that, as `tasks_kept` does; None: all of them."""
    if number is None:
        return table
    row = number.is_not_null().arg_true()
    stage = pl.col("stage").cast(pl.UInt32, strict=False)
    known = stage.replace_strict(row, number.gather(row), default=None, return_dtype=pl.UInt32)
    return table.with_columns(known.alias("stage")).filter(pl.col("stage").is_not_null())


def _kept_before(folder: Path, number: pl.Series) -> np.ndarray:
    """Return int64[block]: how many tasks are kept before each ROWS_READ rows of the table."""
    row = number.is_not_null().arg_true()
    counts = _scan(folder).with_row_index("row").select(
        (pl.col("row") // ROWS_READ).alias("block"), pl.col("stage").cast(pl.UInt32, strict=False).is_in(row.implode())
    ).group_by("block").agg(pl.col("stage").sum()).sort("block").collect(engine="streaming")
    return np.concatenate([[0], np.cumsum(counts["stage"].to_numpy(), dtype=np.int64)[:-1]])


def _scan(folder: Path) -> pl.LazyFrame:
    path = folder / "tasks.parquet"
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    return scan_table(path)


def _collected(folder: Path, table: pl.LazyFrame, *columns: pl.Expr) -> pl.DataFrame:
    """Return a table about all tasks."""
    try:
        return table.select(columns).collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{folder / 'tasks.parquet'}: not a readable Parquet file: {first_line(error)}") from None
