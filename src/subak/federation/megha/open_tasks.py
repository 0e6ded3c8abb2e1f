"""The open tasks of a global master: those whose end is not yet confirmed by both sides.

An open task has a row, which is another task's afterwards; so the tables of a master are as large as what is open at
once. The number of a task is used once, so whoever is told of a row and a task sees whether they still belong together.
The table is on disk, and the global master and the submitter beside it share it: the submitter gives rows out and takes
them back, the master reads.

Columns are called as those of `Tasks`, whose place this takes where a global master asks what fits.
"""
from typing import Any, NamedTuple

import numpy as np

from subak.federation.messages import NOBODY
from subak.marks import inlined
from subak.records import Numbers

COLUMNS: list[tuple[str, Any]] = [  # of `OpenTasks`
    ("number", np.int64), ("rank", np.float64), ("shape", np.int32), ("queue", np.int32), ("gang", np.int32),
    ("lane", np.int32), ("round", np.int16), ("losses_max", np.int16), ("priority", np.int32), ("next", np.int32),
    ("limit", np.float64),
]
OPEN_TASK = np.dtype(COLUMNS, align=True)
OPEN_GANG = np.dtype([
    ("number", np.int64),  # of the gang, NOBODY where the row is free
    ("size", np.int32),  # tasks
    ("first", np.int32),  # row of the one that was submitted first, NOBODY before; of a free row, the next free one
    ("last", np.int32),
])


class OpenCounts(Numbers):
    """Which rows of a table of open tasks are taken."""

    free_task: int  # the row freed last, NOBODY for none
    tasks_ever: int  # rows used yet
    free_gang: int
    gangs_ever: int
    tasks_open: int


class OpenTasks(NamedTuple):
    """What is asked for by each open task."""

    number: np.ndarray  # int64[row], of the task; NOBODY where the row is free
    rank: np.ndarray  # float64[row], the order's key: the least is served first, ties by number
    shape: np.ndarray  # int32[row]
    queue: np.ndarray  # int32[row]
    lane: np.ndarray  # int32[row], alike tasks of a queue share one
    priority: np.ndarray  # int32[row]
    round: np.ndarray  # int16[row], how often it was submitted anew after an attempt that failed
    losses_max: np.ndarray  # int16[row], attempts that may be lost before the task is
    limit: np.ndarray  # float64[row], seconds that an attempt may run
    gang: np.ndarray  # int32[row], row of its gang; NOBODY where it starts by itself
    next: np.ndarray  # int32[row], the one of its gang that was submitted after it; of a free row, the next free one
    gangs: np.ndarray  # OPEN_GANG[row]
    counts: OpenCounts
    request: np.ndarray  # int32[resource, shape], units
    constraint_set: np.ndarray  # int32[shape]


def build_open_tasks(tasks: int, gangs: int, request: np.ndarray, constraint_set: np.ndarray) -> OpenTasks:
    """Return a table with nothing open, for so many tasks and gangs at once; memory is used as rows are.

    Columns of a row lie side by side, since they are written and read together. There are two rows at least: the column
    of a single row is of another type.
    """
    row = np.zeros(max(tasks, 2), OPEN_TASK)
    return OpenTasks(
        **{name: row[name] for name, _ in COLUMNS}, gangs=np.zeros(gangs, OPEN_GANG),
        counts=OpenCounts(free_task=NOBODY, free_gang=NOBODY), request=request, constraint_set=constraint_set,
    )


@inlined
def is_still(tasks: OpenTasks, row: int, number: int, round_: int) -> bool:
    """Whether a row is still that of a task, which has not been submitted anew."""
    return bool(0 <= row < tasks.counts.tasks_ever and tasks.number[row] == number and tasks.round[row] == round_)


@inlined
def open_task(tasks: OpenTasks, number: int) -> int:
    """Return a row for a task, whose columns are to be written; there must be room."""
    row = tasks.counts.free_task
    if row == NOBODY:
        row = tasks.counts.tasks_ever
        tasks.counts.tasks_ever += 1
    else:
        tasks.counts.free_task = tasks.next[row]
    tasks.counts.tasks_open += 1
    tasks.number[row], tasks.round[row], tasks.gang[row], tasks.next[row] = number, 0, NOBODY, NOBODY
    return int(row)


@inlined
def close_task(tasks: OpenTasks, row: int) -> None:
    """Let a row be another task's."""
    tasks.number[row], tasks.next[row] = NOBODY, tasks.counts.free_task
    tasks.counts.free_task = row
    tasks.counts.tasks_open -= 1


# -- gangs: tasks in the order in which they were submitted ------------------------------------------------------------


@inlined
def open_gang(tasks: OpenTasks, number: int, size: int) -> int:
    """Return a row for a gang of which nobody was submitted yet."""
    row = tasks.counts.free_gang
    if row == NOBODY:
        row = tasks.counts.gangs_ever
        tasks.counts.gangs_ever += 1
    else:
        tasks.counts.free_gang = tasks.gangs[row]["first"]
    gang = tasks.gangs[row]
    gang["number"], gang["size"], gang["first"], gang["last"] = number, size, NOBODY, NOBODY
    return int(row)


@inlined
def join_gang(tasks: OpenTasks, row: int, gang: int) -> None:
    """Let an open task be of a gang."""
    tasks.gang[row] = gang
    if tasks.gangs[gang]["first"] == NOBODY:
        tasks.gangs[gang]["first"] = row
    else:
        tasks.next[tasks.gangs[gang]["last"]] = row
    tasks.gangs[gang]["last"] = row


@inlined
def close_gang(tasks: OpenTasks, gang: int) -> None:
    """Let the rows of a gang, and of all its tasks, be others'."""
    row = tasks.gangs[gang]["first"]
    while row != NOBODY:
        after = tasks.next[row]
        close_task(tasks, row)
        row = after
    tasks.gangs[gang]["number"], tasks.gangs[gang]["first"] = NOBODY, tasks.counts.free_gang
    tasks.counts.free_gang = gang
