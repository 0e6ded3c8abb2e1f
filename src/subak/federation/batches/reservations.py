"""The queues at workers: chains of reservations for tasks of a batch, and of long tasks.

Rules: a row is in one queue, in one chain on its way to a thief, kept for the attempt it led to, or free. There are
never more reservations than were first sent: another one leaves only for one that came back, or for a task that used
one up.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.messages import NOBODY
from subak.marks import inlined

ROW = np.dtype([
    ("batch", np.int32),
    ("task", np.int32),  # NOBODY: a reservation
    ("next", np.int32),  # row, NOBODY at the end
    ("delayed", np.float64),  # seconds that others which went before it were estimated to take
    ("since", np.float64),  # seconds, when it joined a queue first
    ("travelled", np.float64),  # seconds that the messages that brought it were under way
    ("work", np.float64),  # seconds that all tasks of its batch are estimated to take
    ("estimate", np.float64),  # seconds that one of them is
])


class Reservations(NamedTuple):
    """All queues, in one pool."""

    row: np.ndarray  # ROW[row]
    head: np.ndarray  # int32[worker], row, NOBODY for an empty queue
    tail: np.ndarray  # int32[worker], row
    free: np.ndarray  # int64[2]: the first free row, NOBODY for none; rows from here on were never used
    length: np.ndarray  # int32[worker]
    passed: np.ndarray  # int32[worker], a row up to which, from the head on, all are tasks; NOBODY: none is known


FIRST_FREE, UNTOUCHED = range(2)  # of `free`


def build_reservations(workers: int, rows: int) -> Reservations:
    """Return empty queues that hold *rows* at most."""
    return Reservations(
        np.zeros(max(rows, 1), ROW), np.full(workers, NOBODY, np.int32), np.full(workers, NOBODY, np.int32),
        np.array([NOBODY, 0]), np.zeros(workers, np.int32), np.full(workers, NOBODY, np.int32),
    )


@inlined
def new_row(queues: Reservations) -> int:
    """Take a free row."""
    number = queues.free[FIRST_FREE]
    if number == NOBODY:
        number = queues.free[UNTOUCHED]
        queues.free[UNTOUCHED] += 1
        return number
    queues.free[FIRST_FREE] = queues.row[number]["next"]
    return number


@inlined
def free_row(queues: Reservations, number: int) -> None:
    """Give a row back."""
    queues.row[number]["next"] = queues.free[FIRST_FREE]
    queues.free[FIRST_FREE] = number


@inlined
def append(queues: Reservations, worker: int, number: int) -> None:
    """Put a row at the end of a queue."""
    queues.row[number]["next"] = NOBODY
    if queues.head[worker] == NOBODY:
        queues.head[worker] = number
    else:
        queues.row[queues.tail[worker]]["next"] = number
    queues.tail[worker] = number
    queues.length[worker] += 1


@inlined
def rejoin(queues: Reservations, worker: int, number: int) -> None:
    """Put a row that was in a queue before back where it was: before all that joined later."""
    before, after, since = NOBODY, queues.head[worker], queues.row[number]["since"]
    while after != NOBODY and queues.row[after]["since"] < since:
        before, after = after, queues.row[after]["next"]
    if after == NOBODY:
        append(queues, worker, number)
        return
    queues.row[number]["next"] = after
    queues.passed[worker] = NOBODY
    if before == NOBODY:
        queues.head[worker] = number
    else:
        queues.row[before]["next"] = number
    queues.length[worker] += 1


@inlined
def unlink(queues: Reservations, worker: int, before: int, number: int) -> None:
    """Take a row out of a queue; *before* is the row before it, NOBODY at the head."""
    after = queues.row[number]["next"]
    if queues.passed[worker] == number:
        queues.passed[worker] = before
    if before == NOBODY:
        queues.head[worker] = after
    else:
        queues.row[before]["next"] = after
    if after == NOBODY:
        queues.tail[worker] = before
    queues.length[worker] -= 1


@inlined
def skip_tasks(queues: Reservations, worker: int, before: int, number: int) -> tuple[int, int]:
    """Return the first row from *number* on that is a reservation, NOBODY if none is, after the row before it.

    Tasks at the head that were passed before are not looked at again: what waits behind them is asked for often.
    """
    if before == NOBODY and queues.passed[worker] != NOBODY:
        before = queues.passed[worker]
        number = queues.row[before]["next"]
    is_from_head = before == NOBODY or before == queues.passed[worker]
    while number != NOBODY and queues.row[number]["task"] != NOBODY:
        before, number = number, queues.row[number]["next"]
    if is_from_head:
        queues.passed[worker] = before
    return before, number


@inlined
def enqueue(queues: Reservations, worker: int, message: np.void, estimate: float, now: float) -> int:
    """Let what a message brings wait in a queue; return its row."""
    number = new_row(queues)
    row = queues.row[number]
    row["batch"], row["task"], row["delayed"] = message["batch"], message["task"], 0.0
    row["since"], row["travelled"], row["work"] = now, message["travelled"], message["delay"]
    row["estimate"] = estimate
    append(queues, worker, number)
    return number
