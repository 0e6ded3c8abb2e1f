"""Rumen's JSON: a history of Hadoop jobs, their tasks and attempts, as three tables."""
import json
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
import polars as pl

from subak.errors import InputError, first_line
from subak.tables import ColumnType
from subak.workload.readers.stream import Advance, content
from subak.workload.table import TIME_MAX_S

NOT_GIVEN = -1  # Rumen's word for a number that the job's log does not give
MILLISECONDS_MAX = int(TIME_MAX_S) * 1000
SPACE = re.compile(r"\s*")
NAME_MAX = 60  # characters of a name that a message shows
OBJECTS_MAX = 5_000_000  # of one JSON value: a job of a million attempts has four each; as many take a gigabyte
NO_FIELDS: dict[str, Any] = {}
Milliseconds = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]  # what Arrow can hold; `_refuse_times` is exact
Priority = Literal["VERY_HIGH", "HIGH", "NORMAL", "LOW", "VERY_LOW"]
Result = Literal["SUCCESS", "SUCCEEDED", "FAILED", "KILLED", "RUNNING", "PREP"]
T = TypeVar("T")

JOB_COLUMNS: dict[str, ColumnType] = {
    "job": pl.String, "queue": pl.String, "user": pl.String, "priority": pl.String, "outcome": pl.String,
    "submit": pl.Int64,  # milliseconds since 1970
    "awaited": pl.UInt32,  # how many jobs it depends on
}
TASK_COLUMNS: dict[str, ColumnType] = {
    "row": pl.UInt32,  # row of the job
    "task": pl.String, "stage": pl.String,  # map, reduce or other
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


class Task(msgspec.Struct, frozen=True, rename="camel"):
    """A task of a job: what is read of Rumen's LoggedTask."""

    task_id: str | None = msgspec.field(default=None, name="taskID")
    attempts: tuple[Attempt, ...] | None = None


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


FIELDS = frozenset(name for kind in (Job, Task, Attempt) for name in kind.__struct_encode_fields__)


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
                tasks.append((len(jobs), task.task_id, stage))
        jobs.append(_job_row(job))
    history = History(*(pl.DataFrame(rows, schema, orient="row") for rows, schema in (
        (jobs, JOB_COLUMNS), (tasks, TASK_COLUMNS), (attempts, ATTEMPT_COLUMNS))))
    _refuse_times(history.jobs, "job", path, "submit")
    _refuse_times(history.attempts, "attempt", path, "start", "finish", "copied")
    return history


def _job_row(job: Job) -> tuple[Any, ...]:
    return (job.job_id, job.queue or "default", job.user or "unknown", job.priority or "NORMAL", job.outcome,
            job.submit_time, len(job.directly_awaited or ()))


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


def json_values(path: Path, advance: Advance, known: frozenset[str]) -> Iterator[Any]:
    """Yield the JSON values of a plain, gz or xz file, which stand one after another, or in lists.

    Of objects only the *known* fields are kept, and of a list one value at a time, so that memory stays near the size
    of the text. Raises InputError naming the line where the text is no JSON, or is cut off.
    """
    text = _text(path, advance).rstrip()  # so that what is cut off is missed in its last line
    decoder = _Decoder(path, text, known)
    place = _after_space(text, 0)
    while place < len(text):
        if text[place] == "[":
            place = yield from _elements(decoder, place)
        else:
            value, place = decoder.value(place)
            yield value
        place = _after_space(text, place)


def _elements(decoder: "_Decoder", place: int) -> Generator[Any, None, int]:
    """Yield the elements of the list that begins at *place*, and return the place behind it."""
    text = decoder.text
    place = _after_space(text, place + 1)
    while not text.startswith("]", place):
        value, place = decoder.value(place)
        yield value
        place = _after_space(text, place)
        if text.startswith(",", place) and not text.startswith("]", _after_space(text, place + 1)):
            place = _after_space(text, place + 1)
        elif not text.startswith("]", place):
            raise decoder.error(place, "is no JSON, or is cut off: a list goes on with , or ends with ]")
    return place + 1


class _Decoder:
    """Decodes one JSON value of a text at a time, with the known fields of its objects, up to OBJECTS_MAX of them."""

    def __init__(self, path: Path, text: str, known: frozenset[str]) -> None:
        self.path, self.text, self.known = path, text, known
        self.escapes = "\\u" in text
        self.decode = json.JSONDecoder(object_hook=self._kept).raw_decode
        self.objects = 0

    def value(self, place: int) -> tuple[Any, int]:
        """Return the value at *place*, and the place behind it. Raises InputError where there is none."""
        self.objects = 0
        try:
            value, end = self.decode(self.text, place)
            if self.escapes:
                json.dumps(value, ensure_ascii=False).encode()  # halves of characters, which no table takes
        except json.JSONDecodeError as error:
            raise self.error(error.pos, f"is no JSON, or is cut off: {error.msg}") from None
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists without end
            raise self.error(place, f"JSON that cannot be read: {first_line(error)}") from None
        return value, end

    def error(self, place: int, words: str) -> InputError:
        """Return the error that names the line of *place*."""
        return InputError(f"{self.path}, line {self.text.count(chr(10), 0, place) + 1}: {words}")

    def _kept(self, found: dict[str, Any]) -> dict[str, Any]:
        self.objects += 1
        if self.objects > OBJECTS_MAX:
            raise ValueError(f"more than {OBJECTS_MAX:,} objects in one value")
        names = self.known & found.keys()
        return {name: found[name] for name in names} if names else NO_FIELDS


def _text(path: Path, advance: Advance) -> str:
    try:
        return content(path, advance).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: must be text in UTF-8, byte {error.start} is {error.object[error.start]:#04x}"
                         ) from None


def _after_space(text: str, place: int) -> int:
    found = SPACE.match(text, place)
    assert found is not None  # it matches nothing too
    return found.end()


def converted(value: Any, kind: type[T], where: str) -> T:
    """Return a decoded JSON value as *kind*. Raises InputError, beginning with *where*, for another schema."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError(f"{where}: {first_line(error)}") from None
