"""Reads Rumen's JSON: jobs, tasks and attempts as three tables."""
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import polars as pl

from subak.errors import InputError
from subak.tables import ColumnType
from subak.workload.readers.files.json_text import converted, json_values
from subak.workload.readers.files.stream import Advance
from subak.workload.table import TIME_MAX_S

NOT_GIVEN = -1  # Rumen's word for a number that the job's log does not give
MILLISECONDS_MAX = int(TIME_MAX_S) * 1000
NAME_MAX = 60  # characters of a name that a message shows
Milliseconds = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]  # what Arrow can hold; `_refuse_times` is exact
Priority = Literal["VERY_HIGH", "HIGH", "NORMAL", "LOW", "VERY_LOW"]
Result = Literal["SUCCESS", "SUCCEEDED", "FAILED", "KILLED", "RUNNING", "PREP"]

JOB_COLUMNS: dict[str, ColumnType] = {
    "job": pl.String, "queue": pl.String, "user": pl.String, "priority": pl.String, "outcome": pl.String,
    "submit": pl.Int64,  # milliseconds since 1970
    "awaited": pl.UInt32,  # how many jobs it depends on
}
TASK_COLUMNS: dict[str, ColumnType] = {
    "row": pl.UInt32,  # row of the job
    "task": pl.String, "stage": pl.String,  # map, reduce or other
    "inputs": pl.List(pl.String),  # hosts that hold its input
}
ATTEMPT_COLUMNS: dict[str, ColumnType] = {
    "task_row": pl.UInt32,  # row of the task
    "attempt": pl.String, "result": pl.String, "host": pl.String,
    "start": pl.Int64, "finish": pl.Int64, "copied": pl.Int64,  # milliseconds since 1970; -1 = unknown
}


class Attempt(msgspec.Struct, frozen=True, rename="camel"):
    """A try at a task: what is read of Rumen's LoggedTaskAttempt."""

    attempt_id: str | None = msgspec.field(default=None, name="attemptID")
    result: Result | None = None
    host_name: str | None = None
    start_time: Milliseconds = NOT_GIVEN
    finish_time: Milliseconds = NOT_GIVEN
    shuffle_finished: Milliseconds = NOT_GIVEN


class Location(msgspec.Struct, frozen=True):
    """Where a copy of a task's input lies: the names from the rack to the host."""

    layers: tuple[str, ...] = ()


class Task(msgspec.Struct, frozen=True, rename="camel"):
    """A task of a job: what is read of Rumen's LoggedTask."""

    task_id: str | None = msgspec.field(default=None, name="taskID")
    attempts: tuple[Attempt, ...] | None = None
    preferred_locations: tuple[Location, ...] | None = None


class Job(msgspec.Struct, frozen=True, rename="camel"):
    """A job of the history: what is read of Rumen's LoggedJob."""

    job_id: str = msgspec.field(name="jobID")
    map_tasks: tuple[Task, ...] | None
    reduce_tasks: tuple[Task, ...] | None
    other_tasks: tuple[Task, ...] | None = None
    user: str | None = None
    queue: str | None = None
    priority: Priority | None = None
    outcome: str | None = None
    submit_time: Milliseconds = NOT_GIVEN
    directly_awaited: tuple[str | dict[str, Any], ...] | None = msgspec.field(default=None, name="directDependantJobs")


FIELDS = frozenset(name for kind in (Job, Task, Location, Attempt) for name in kind.__struct_encode_fields__)


class History(NamedTuple):
    """The rows of a trace: JOB_COLUMNS, TASK_COLUMNS and ATTEMPT_COLUMNS."""

    jobs: pl.DataFrame
    tasks: pl.DataFrame
    attempts: pl.DataFrame


def read_history(path: Path, advance: Advance) -> History:
    """Read a trace: jobs one after another, or in lists.

    Raises InputError with the line where the text is no JSON, or with the job and its field that breaks a rule.
    """
    jobs: list[tuple[Any, ...]] = []
    tasks: list[tuple[Any, ...]] = []
    attempts: list[tuple[Any, ...]] = []
    for number, value in enumerate(json_values(path, advance, FIELDS), 1):
        job = converted(value, Job, f"{path}: job {number}")
        for stage, listed in (("map", job.map_tasks), ("reduce", job.reduce_tasks), ("other", job.other_tasks)):
            for task in listed or ():
                attempts.extend(_attempt_row(len(tasks), attempt, job.submit_time) for attempt in task.attempts or ())
                tasks.append((len(jobs), task.task_id, stage, _hosts(task)))
        jobs.append(_job_row(job))
    history = History(*(pl.DataFrame(rows, schema, orient="row") for rows, schema in (
        (jobs, JOB_COLUMNS), (tasks, TASK_COLUMNS), (attempts, ATTEMPT_COLUMNS))))
    _refuse_times(history.jobs, "job", path, "submit")
    _refuse_times(history.attempts, "attempt", path, "start", "finish", "copied")
    return history


def _job_row(job: Job) -> tuple[Any, ...]:
    return (job.job_id, job.queue or "default", job.user or "unknown", job.priority or "NORMAL", job.outcome,
            job.submit_time, len(job.directly_awaited or ()))


def _hosts(task: Task) -> list[str]:
    return [location.layers[-1] for location in task.preferred_locations or () if location.layers]


def _attempt_row(task: int, attempt: Attempt, submit: int) -> tuple[Any, ...]:
    result = "SUCCESS" if attempt.result == "SUCCEEDED" else attempt.result
    start = NOT_GIVEN if attempt.start_time == 0 < submit else attempt.start_time  # Yahoo's jobs have six such
    return (task, attempt.attempt_id, result, attempt.host_name, start, attempt.finish_time, attempt.shuffle_finished)


def _refuse_times(table: pl.DataFrame, key: str, path: Path, *names: str) -> None:
    said = {"submit": "submitTime", "start": "startTime", "finish": "finishTime", "copied": "shuffleFinished"}
    for name in names:
        bad = table.filter((pl.col(name) < NOT_GIVEN) | (pl.col(name) > MILLISECONDS_MAX))
        if len(bad):
            raise InputError(f"{path}: {said[name]} must be milliseconds, 0 to {MILLISECONDS_MAX:g}, or -1 for "
                             f"unknown, not {bad[name][0]} of {key} {str(bad[key][0])[:NAME_MAX]}")
