"""Hawk: long jobs go to a central scheduler, short ones are probed as in Sparrow, idle workers steal.

Rules:
- Jobs whose mean run time is estimated at the cutoff or more are long (section 3.3). The first workers are kept for
  short jobs; where no other worker could hold a long task, these may (section 3.4).
- The central scheduler sends each long task to the worker of the general partition with the least estimated waiting
  time (section 3.7, central_scheduler.py).
- A worker that has room and an empty queue asks random workers of the general partition, one after the other, for the
  first group of short reservations that sit behind a long task (section 3.6, figure 3).

  message             | receiver           | then
  EXITED,NOTHING_LEFT | worker             | serves its queue; if it is empty: STEAL
  STEAL               | worker             | STOLEN, with a group or with nothing
  STOLEN              | worker             | queues the group; with nothing: STEAL from another, some times

Source: Delgado, Dinu, Kermarrec, Zwaenepoel, "Hawk: Hybrid Datacenter Scheduling", USENIX ATC 2015.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.batches.membership import Membership, is_able
from subak.federation.batches.reservations import Reservations, append, free_row, skip_tasks, unlink
from subak.federation.batches.table import Batches
from subak.federation.batches.worker import bounce, end_attempt, queue_up, serve_in_order
from subak.federation.messages import (
    CHANGE,
    ENQUEUE,
    EXITED,
    LONG_OVER,
    NOBODY,
    NOTHING_LEFT,
    STEAL,
    STOLEN,
    Outbox,
    may_serve,
    post,
)
from subak.federation.sampling.central_scheduler import Central, handle_long, place_owed
from subak.federation.sampling.sparrow import Sparrow, handle_sparrow, on_change
from subak.federation.serving import SharedTables
from subak.fleet.amounts import give_back
from subak.marks import inlined
from subak.placement.fits.random_fit import random_below
from subak.workload.tasks import Tasks


class Thieves(NamedTuple):
    """Which workers are asking others."""

    asks_left: np.ndarray  # int32[worker], 0 when it is not asking
    attempts: int


class Hawk(NamedTuple):
    """The roles of a Hawk federation."""

    sparrow: Sparrow
    central: Central
    thieves: Thieves


# -- stealing ----------------------------------------------------------------------------------------------------------


@inlined
def look_around(roles: Sparrow, thieves: Thieves, worker: int, out: Outbox) -> None:
    """Begin to ask others, if the worker's queue is empty and it is not asking yet."""
    if thieves.attempts > 0 and thieves.asks_left[worker] == 0 and roles.queues.head[worker] == NOBODY:
        thieves.asks_left[worker] = thieves.attempts
        ask_another(roles, thieves, worker, out)


@inlined
def ask_another(roles: Sparrow, thieves: Thieves, worker: int, out: Outbox) -> None:
    """Ask a random worker of the general partition."""
    members = roles.members
    victim = members.general + random_below(members.random, members.workers - members.general)
    post(out, STEAL, worker, victim, NOBODY, worker)


@inlined
def on_steal(roles: Sparrow, message: np.void, out: Outbox) -> None:
    """Give the first group of reservations behind a long task to a thief that could hold them."""
    queues, batches, members = roles.queues, roles.batches, roles.members
    victim, thief = message["to"], message["sender"]
    before, number = NOBODY, queues.head[victim]
    count, first = 0, NOBODY
    long_queued = roles.workers.long_queued[victim]
    if long_queued + roles.workers.long_running[victim] > 0 and queues.length[victim] > long_queued:
        if roles.workers.long_running[victim] == 0:
            before, number = skip_reservations(queues, before, number)
        before, number = skip_tasks(queues, victim, before, number)
        first = number
        while number != NOBODY and can_steal(queues, batches, members, number, thief):
            after = queues.row[number]["next"]
            unlink(queues, victim, before, number)
            queues.row[number]["next"] = after
            number = after
            count += 1
    row = post(out, STOLEN, victim, thief, NOBODY, thief)
    row["count"], row["start"] = count, first


@inlined
def skip_reservations(queues: Reservations, before: int, number: int) -> tuple[int, int]:
    """Return the first row from *number* on that is a task, NOBODY if none is, after the row before it."""
    while number != NOBODY and queues.row[number]["task"] == NOBODY:
        before, number = number, queues.row[number]["next"]
    return before, number


@inlined
def can_steal(queues: Reservations, batches: Batches, members: Membership, number: int, thief: int) -> bool:
    """Whether a row is a reservation that the thief could hold."""
    row = queues.row[number]
    return bool(row["task"] == NOBODY and is_able(members, batches.shape[row["batch"]], thief))


@inlined
def on_stolen(roles: Sparrow, thieves: Thieves, message: np.void, out: Outbox) -> None:
    """Queue what was stolen; after nothing, ask another as long as the queue is empty."""
    worker, number = message["to"], message["start"]
    queues, batches = roles.queues, roles.batches
    for _ in range(message["count"]):
        after, batch = queues.row[number]["next"], queues.row[number]["batch"]
        if is_able(roles.members, batches.shape[batch], worker):
            append(queues, worker, number)
        else:
            free_row(queues, number)
            bounce(batches, worker, batch, NOBODY, False, out)
        number = after
    thieves.asks_left[worker] -= 1
    if message["count"] > 0 or queues.head[worker] != NOBODY:
        thieves.asks_left[worker] = 0
    elif thieves.asks_left[worker] > 0:
        ask_another(roles, thieves, worker, out)


# -- all together ------------------------------------------------------------------------------------------------------


@inlined
def end_and_tell(roles: Sparrow, tasks: Tasks, message: np.void, out: Outbox) -> bool:
    """Note the end of an attempt; the scheduler of a long one is told. Return whether it was long."""
    is_long = end_attempt(roles.workers, roles.batches, tasks, message, out)
    if is_long:
        batch = roles.batches.of_task[message["task"]]
        row = post(out, LONG_OVER, message["to"], roles.batches.scheduler[batch], message["task"], message["to"])
        row["batch"] = batch
    return is_long


@inlined
def handle_hawk(roles: Hawk, tasks: Tasks, now: float, message: np.void, out: Outbox) -> None:
    """Handle one message of a Hawk federation."""
    kind, worker, sparrow = message["kind"], message["to"], roles.sparrow
    batches, workers, queues = sparrow.batches, sparrow.workers, sparrow.queues
    if handle_long(sparrow, roles.central, tasks, now, message, out):
        return
    if kind == STEAL:
        on_steal(sparrow, message, out)
        return
    if kind == EXITED:
        end_and_tell(sparrow, tasks, message, out)
    elif kind == NOTHING_LEFT:
        give_back(workers.own, tasks, tasks.shape[batches.task[batches.first[message["batch"]]]], worker)
    elif kind == ENQUEUE:
        queue_up(workers, queues, batches, sparrow.members, message, now, out)
    elif kind == STOLEN:
        on_stolen(sparrow, roles.thieves, message, out)
    elif kind == CHANGE:
        worker = message["machine"]
        on_change(sparrow, tasks, message, out)
        place_owed(sparrow, roles.central, tasks, now, out)
    else:
        handle_sparrow(sparrow, tasks, now, message, out)
        return
    serve_in_order(workers, queues, batches, tasks, worker, now, out)
    if kind in (EXITED, NOTHING_LEFT):
        look_around(sparrow, roles.thieves, worker, out)


def serve_hawk(tables: SharedTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their roles; no role has turns."""
    for place in range(count):
        if not may_serve(tables.out, place):
            break
        handle_hawk(tables.roles, tables.tasks, now, tables.inbox[place], tables.out)
    return NOBODY
