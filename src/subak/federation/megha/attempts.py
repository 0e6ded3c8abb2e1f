"""Attempts by machine, as a local master, worker or view knows them: one linked list per machine.

Rules: a row is in the list of exactly one machine, or free; the newest attempt of a machine is first. Rows are taken
where one was freed last, else behind all that ever were, so that a large pool costs what is used of it.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.counts import TOLD
from subak.federation.messages import NOBODY
from subak.marks import inlined
from subak.records import Numbers

ROW = np.dtype([  # first what is asked for when an attempt has ended: of an old row, one or two lines of a cache
    ("task", np.int64),
    ("attempt", np.int64),
    ("machine", np.int32),
    ("handle", np.int32),  # of a worker's: the local master's row, which it says with every report
    ("next", np.int32),  # row of the machine's next attempt, or of the next free row
    ("before", np.int32),  # row of the machine's attempt before it
    ("state", np.int8),
    ("reason", np.int8),  # why it ended, or is being ended
    ("code", np.int16),  # exit code
    ("shape", np.int32),
    ("queue", np.int32),
    ("owner", np.int32),  # of the task: its global master
    ("row", np.int32),  # of the task, among the open tasks of its owner
    ("preempted", TOLD),  # how often its task had been preempted before
    ("round", np.int16),  # of the task: how often it was submitted anew after an attempt that failed
    ("in_gang", np.int8),  # whether the task starts together with others
    ("start", np.int64),  # number of the start at its machine
    ("version", np.int64),  # of the ledger, when its end was entered
    ("since", np.float64),  # seconds, when it came into its state
    ("limit", np.float64),  # seconds that it may run
    ("priority", np.int32),
    ("heir", np.int32),  # row of the attempt that this one is preempted for; of an ended one, of the next that ended
    ("awaits", np.int32),  # how many are being preempted for this one
], align=True)
ANY_ATTEMPT = -1


class RowCounts(Numbers):
    """Which rows of a pool are taken."""

    free_row: int  # the row freed last, NOBODY for none
    rows_used: int
    rows_ever: int  # rows taken yet


class Attempts(NamedTuple):
    """A pool of rows, listed by machine."""

    row: np.ndarray  # ROW[row]
    first: np.ndarray  # int32[machine], row of its newest attempt, NOBODY for none
    counts: RowCounts


def build_attempts(machines: int, rows: int) -> Attempts:
    """Return an empty pool."""
    return build_part(np.full(machines, NOBODY, np.int32), rows)


def build_part(first: np.ndarray, rows: int) -> Attempts:
    """Return an empty pool for some of the machines; other pools have theirs in *first*, int32[machine], too."""
    return Attempts(np.zeros(max(rows, 1), ROW), first, RowCounts(free_row=NOBODY))


@inlined
def has_room(attempts: Attempts) -> bool:
    """Whether another attempt can be noted."""
    return bool(attempts.counts.rows_used < attempts.row.size)


@inlined
def add_attempt(attempts: Attempts, machine: int, task: int, attempt: int, state: int) -> int:
    """Note an attempt on a machine, and return its row; there must be room."""
    number = attempts.counts.free_row
    if number == NOBODY:
        number = attempts.counts.rows_ever
        attempts.counts.rows_ever += 1
    else:
        attempts.counts.free_row = attempts.row[number]["next"]
    attempts.counts.rows_used += 1
    row = attempts.row[number]
    row["task"], row["machine"], row["attempt"], row["state"] = task, machine, attempt, state
    row["heir"], row["awaits"], row["reason"] = NOBODY, 0, 0
    row["row"], row["owner"], row["shape"], row["queue"], row["priority"] = NOBODY, NOBODY, NOBODY, NOBODY, 0
    row["preempted"], row["in_gang"], row["round"], row["code"], row["limit"] = 0, 0, 0, 0, 0.0
    row["start"], row["version"], row["since"] = 0, 0, 0.0
    row["next"], row["before"], row["handle"] = attempts.first[machine], NOBODY, NOBODY
    if attempts.first[machine] != NOBODY:
        attempts.row[attempts.first[machine]]["before"] = number
    attempts.first[machine] = number
    return int(number)


@inlined
def find_attempt(attempts: Attempts, machine: int, task: int, attempt: int) -> int:
    """Return the row of an attempt on a machine, NOBODY if it is not there; ANY_ATTEMPT finds any of the task."""
    number = attempts.first[machine]
    while number != NOBODY:
        row = attempts.row[number]
        if row["task"] == task and attempt in (row["attempt"], ANY_ATTEMPT):
            break
        number = row["next"]
    return int(number)


@inlined
def find_by_handle(attempts: Attempts, handle: int, machine: int, task: int, attempt: int) -> int:
    """Return the row of an attempt like `find_attempt`, at once where *handle* is its row."""
    if 0 <= handle < attempts.counts.rows_ever:
        row = attempts.row[handle]
        if row["machine"] == machine and row["task"] == task and attempt in (row["attempt"], ANY_ATTEMPT):
            return int(handle)
    return find_attempt(attempts, machine, task, attempt)


@inlined
def drop_attempt(attempts: Attempts, number: int) -> None:
    """Forget an attempt."""
    row = attempts.row[number]
    before, after = row["before"], row["next"]
    if before == NOBODY:
        attempts.first[row["machine"]] = after
    else:
        attempts.row[before]["next"] = after
    if after != NOBODY:
        attempts.row[after]["before"] = before
    row["next"], row["machine"] = attempts.counts.free_row, NOBODY
    attempts.counts.free_row = number
    attempts.counts.rows_used -= 1


# -- what whoever runs a task must know of it: copied from messages to rows, and back ----------------------------------


@inlined
def note_task(row: np.void, message: np.void) -> None:
    """Write down what a message says of its task."""
    row["row"], row["owner"], row["shape"], row["queue"] = (
        message["row"], message["owner"], message["shape"], message["queue"])
    row["priority"], row["in_gang"], row["preempted"] = message["priority"], message["in_gang"], message["preempted"]
    row["round"], row["limit"] = message["round"], message["limit"]


@inlined
def tell_task(message: np.void, row: np.void) -> None:
    """Say in a message what is known of its task."""
    message["row"], message["owner"], message["shape"], message["queue"] = (
        row["row"], row["owner"], row["shape"], row["queue"])
    message["priority"], message["in_gang"], message["preempted"] = row["priority"], row["in_gang"], row["preempted"]
    message["round"], message["limit"] = row["round"], row["limit"]
