"""A worker under a sampling scheduler: its amounts, its queue and its running tasks.

Rules:
- The head of the queue goes when its request fits what is free; nothing goes before it (Sparrow section 4.1, for whom a
  worker has slots). Its amounts are taken at once, while the scheduler is asked for a task.
- When a worker leaves or shrinks, what it can no longer hold comes back to the scheduler: attempts, the last to start
  first, as the executor loses them, and what is queued.

  message      | then
  PROBE        | queued; BOUNCED when the worker could not hold it
  ENQUEUE      | queued; BOUNCED when the worker could not hold it
  its turn     | a reservation: FETCH; a task: BEGIN
  ASSIGN       | BEGIN; BOUNCED when the worker left or shrank meanwhile
  NOTHING_LEFT | its amounts are free again
  EXITED       | its amounts are free again, and DONE
"""
from typing import NamedTuple

import numpy as np

from subak.federation.batches.membership import Membership, is_able
from subak.federation.batches.reservations import Reservations, enqueue, free_row, unlink
from subak.federation.batches.table import Batches
from subak.federation.messages import (
    BEGIN,
    BOUNCED,
    DONE,
    FETCH,
    LONG_BEGUN,
    MACHINE_LOST,
    NOBODY,
    NOT_THERE,
    Outbox,
    post,
)
from subak.fleet.amounts import give_back, shift, take
from subak.fleet.feasible import shape_fits
from subak.fleet.state import FleetState
from subak.marks import inlined
from subak.workload.tasks import Tasks

GONE = -1  # configuration of a worker that is not there


class Workers(NamedTuple):
    """All workers, each touching its own column; the lists of what runs are kept only where the fleet changes."""

    own: FleetState  # what each has and has free; an absent one has 0 of everything
    long_queued: np.ndarray  # int32[worker], long tasks in its queue
    long_running: np.ndarray  # int32[worker]
    running: np.ndarray  # int32[worker], the attempt that began last, NOBODY for none
    earlier: np.ndarray  # int32[task], the attempt on the same worker that began before it; empty in a steady fleet
    begun: np.ndarray  # float64[task], seconds; empty in a steady fleet
    sticky: np.ndarray  # int32[task], the row of the reservation it came by, which stays; empty where none does
    capacity: np.ndarray  # int32[resource, change], units, what the operator announces
    is_there: np.ndarray  # bool[change]


@inlined
def queue_up(
    workers: Workers, queues: Reservations, batches: Batches, members: Membership, message: np.void, now: float,
    out: Outbox,
) -> bool:
    """Queue a reservation or a task, if the worker could hold it; else send it back."""
    worker, batch = message["to"], message["batch"]
    if not is_able(members, batches.shape[batch], worker):
        bounce(batches, worker, batch, message["task"], False, out)
        return False
    number = enqueue(queues, worker, message, batches.estimate[batch], now)
    workers.long_queued[worker] += queues.row[number]["task"] != NOBODY
    return True


@inlined
def bounce(batches: Batches, worker: int, batch: int, task: int, has_begun: bool, out: Outbox) -> None:
    """Send a reservation (of no task) or a task back to its scheduler."""
    row = post(out, BOUNCED, worker, batches.scheduler[batch], task, worker)
    row["batch"], row["count"] = batch, has_begun
    row["reason"] = MACHINE_LOST if has_begun else NOT_THERE


@inlined
def serve_in_order(
    workers: Workers, queues: Reservations, batches: Batches, tasks: Tasks, worker: int, now: float, out: Outbox
) -> None:
    """Let the head of the queue go as long as it fits."""
    while queues.head[worker] != NOBODY:
        number = queues.head[worker]
        if not shape_fits(workers.own, tasks, batches.shape[queues.row[number]["batch"]], worker):
            return
        let_go(workers, queues, batches, tasks, worker, NOBODY, number, now, out)


@inlined
def let_go(  # noqa: PLR0913, PLR0917
    workers: Workers, queues: Reservations, batches: Batches, tasks: Tasks, worker: int, before: int, number: int,
    now: float, out: Outbox,
) -> None:
    """Take a row that fits out of the queue: a task begins, for a reservation the scheduler is asked.

    A reservation that stays with its worker keeps its row, to which the scheduler's answer returns.
    """
    row = queues.row[number]
    batch, task = row["batch"], row["task"]
    unlink(queues, worker, before, number)
    take(workers.own, tasks, tasks.shape[batches.task[batches.first[batch]]], worker)
    if task == NOBODY:
        request = post(out, FETCH, worker, batches.scheduler[batch], NOBODY, worker)
        request["batch"], request["delay"], request["travelled"] = batch, now - row["since"], row["travelled"]
        request["handle"] = number
    else:
        workers.long_queued[worker] -= 1
        begin(workers, batches, worker, task, now, now - row["since"], out)
    if task != NOBODY or workers.sticky.size == 0:
        free_row(queues, number)


@inlined
def begin(
    workers: Workers, batches: Batches, worker: int, task: int, now: float, waited: float, out: Outbox
) -> None:
    """Run a task whose amounts are taken, which waited in the queue; the scheduler of a long one is told."""
    post(out, BEGIN, worker, worker, task, worker)["delay"] = waited
    batch = batches.of_task[task]
    if batches.is_long[batch]:
        workers.long_running[worker] += 1
        row = post(out, LONG_BEGUN, worker, batches.scheduler[batch], task, worker)
        row["batch"] = batch
    if workers.begun.size > 0:
        workers.begun[task] = now
        note_running(workers, worker, task)


@inlined
def note_running(workers: Workers, worker: int, task: int) -> None:
    """List an attempt that begins now: the latest first, of those of one instant the one with the highest number."""
    later, place = NOBODY, workers.running[worker]
    while place != NOBODY and workers.begun[place] == workers.begun[task] and place > task:
        later, place = place, workers.earlier[place]
    workers.earlier[task] = place
    if later == NOBODY:
        workers.running[worker] = task
    else:
        workers.earlier[later] = task


@inlined
def accept(
    workers: Workers, batches: Batches, members: Membership, tasks: Tasks, message: np.void, now: float, out: Outbox
) -> bool:
    """Begin the task that a scheduler assigned, unless the worker left or shrank since it asked for it."""
    worker, task, batch = message["to"], message["task"], message["batch"]
    if is_able(members, batches.shape[batch], worker) and not is_overfull(workers.own, worker):
        begin(workers, batches, worker, task, now, 0.0, out)
        return True
    give_back(workers.own, tasks, tasks.shape[task], worker)
    bounce(batches, worker, batch, task, False, out)
    return False


@inlined
def is_overfull(own: FleetState, worker: int) -> bool:
    """Whether a worker that left or shrank has promised more than it has."""
    for resource in range(own.free.shape[0]):  # noqa: SIM110
        if own.free[resource, worker] < 0:
            return True
    return False


@inlined
def end_attempt(workers: Workers, batches: Batches, tasks: Tasks, message: np.void, out: Outbox) -> bool:
    """Note that an attempt's run time is over, and tell the submitter; return whether it was a long one."""
    worker, task = message["to"], message["task"]
    give_back(workers.own, tasks, tasks.shape[task], worker)
    forget_running(workers, worker, task)
    post(out, DONE, worker, 0, task, worker)
    is_long: bool = batches.is_long[batches.of_task[task]]
    workers.long_running[worker] -= is_long
    return is_long


@inlined
def forget_running(workers: Workers, worker: int, task: int) -> None:
    """Take an attempt off the list."""
    if workers.begun.size == 0:
        return
    if workers.running[worker] == task:
        workers.running[worker] = workers.earlier[task]
        return
    later = workers.running[worker]
    while workers.earlier[later] != task:
        later = workers.earlier[later]
    workers.earlier[later] = workers.earlier[task]


@inlined
def resize_worker(workers: Workers, batches: Batches, tasks: Tasks, change: int, worker: int, out: Outbox) -> None:
    """Let a worker leave, join or take another capacity, as the operator says; what it then cannot run is lost."""
    while workers.running[worker] != NOBODY and not holds_running(workers, tasks, worker, change):
        task = workers.running[worker]
        batch = batches.of_task[task]
        give_back(workers.own, tasks, tasks.shape[task], worker)
        forget_running(workers, worker, task)
        workers.long_running[worker] -= batches.is_long[batch]
        bounce(batches, worker, batch, task, True, out)
    shift(workers.own, worker, workers.capacity, change if workers.is_there[change] else GONE)


@inlined
def holds_running(workers: Workers, tasks: Tasks, worker: int, change: int) -> bool:
    """Whether what runs on a worker fits in the capacity it comes to have."""
    if not workers.is_there[change]:
        return False
    for resource in range(workers.capacity.shape[0]):
        held, task = 0, workers.running[worker]
        while task != NOBODY:
            held += tasks.request[resource, tasks.shape[task]]
            task = workers.earlier[task]
        if held > workers.capacity[resource, change]:
            return False
    return True


@inlined
def send_queued_back(
    workers: Workers, queues: Reservations, batches: Batches, members: Membership, worker: int, out: Outbox
) -> None:
    """Send back what waits at a worker that could no longer hold it."""
    before, number = NOBODY, queues.head[worker]
    while number != NOBODY:
        after, batch, task = queues.row[number]["next"], queues.row[number]["batch"], queues.row[number]["task"]
        if is_able(members, batches.shape[batch], worker):
            before = number
        else:
            unlink(queues, worker, before, number)
            free_row(queues, number)
            workers.long_queued[worker] -= task != NOBODY
            bounce(batches, worker, batch, task, False, out)
        number = after
