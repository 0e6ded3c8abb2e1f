"""Eagle: Hawk, but short tasks keep clear of long ones, stay with their worker, and the shortest job goes first.

Rules:
- Succinct state sharing (section 4.1): the central scheduler marks the workers with long tasks in a bit-vector; each
  long task brings a snapshot of it to its worker. A worker with a long task rejects probes, and its newest snapshot
  goes back with the rejection; the scheduler probes a worker that is not marked instead. After ROUNDS rounds the probe
  goes to the workers kept for short jobs; where there is none that could hold the task, the next one keeps it.
- Sticky batch probing (section 4.2): a worker that ends a short task asks for the next one of its batch before it
  serves its queue.
- The queue (section 4.3): of the reservations before the first long task, the one whose job had least work left when it
  was probed for; none goes before a reservation that this, with all that went before it already, would hold up for
  more than `starvation_limit` times its own estimate. Long tasks keep their places.
- Nobody steals.

  message              | receiver  | then
  PROBE                | worker    | queued; REJECTED when it has a long task and the round is not the last
  REJECTED             | scheduler | PROBE another, if a task is left
  ENQUEUE              | worker    | queued, with the snapshot it brings
  EXITED (short)       | worker    | FETCH for the same batch
  EXITED, NOTHING_LEFT | worker    | serves its queue, shortest first

Source: Delgado, Didona, Dinu, Zwaenepoel, "Job-aware Scheduling in Eagle: Divide and Stick to Your Probes", SoCC 2016.
The number of rounds, and what the limit counts, are those of the authors' simulator.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.batches import Batches
from subak.federation.central_scheduler import Central, handle_long, place_owed
from subak.federation.hawk import Hawk, end_and_tell
from subak.federation.membership import Membership, draw_one
from subak.federation.messages import (
    ASSIGN,
    CHANGE,
    ENQUEUE,
    EXITED,
    NOBODY,
    NOTHING_LEFT,
    PROBE,
    REJECTED,
    Outbox,
    post,
)
from subak.federation.reservations import Reservations
from subak.federation.sampling_worker import Workers, accept, fetch, let_go, queue_up
from subak.federation.sparrow import Schedulers, Sparrow, handle_sparrow, on_change, owe, probe, tasks_left
from subak.fleet.amounts import give_back, take
from subak.fleet.index import ONE
from subak.fleet.state import BLOCK
from subak.kernel import inlined, kernel
from subak.placement.feasible import shape_fits
from subak.workload.tasks import Tasks

ROUNDS = 5  # probes of one that avoid long tasks, before it goes to the workers kept for short jobs
NEVER = -1  # no snapshot has been seen


class Sharing(NamedTuple):
    """The bit-vector of the workers with long tasks, and who has seen which snapshot of it."""

    marked: np.ndarray  # uint64[block], as the central scheduler believes now
    snapshot: np.ndarray  # uint64[place, block], the last ones, snapshot s at place s modulo their number
    taken: np.ndarray  # int64[1], how many were ever taken
    brought: np.ndarray  # int64[worker], the newest that a long task brought, NEVER at first
    known: np.ndarray  # int64[scheduler], the newest that a rejection brought
    starvation_limit: int


class Eagle(NamedTuple):
    """The roles of an Eagle federation."""

    hawk: Hawk
    sharing: Sharing


# -- the central scheduler's bit-vector --------------------------------------------------------------------------------


@inlined
def mark(sharing: Sharing, central: Central, worker: int) -> None:
    """Mark a worker as far as it has long tasks."""
    bit = ONE << np.uint64(worker % BLOCK)
    if central.long_tasks[worker] > 0:
        sharing.marked[worker // BLOCK] |= bit
    else:
        sharing.marked[worker // BLOCK] &= ~bit


@inlined
def share_state(sharing: Sharing, central: Central, out: Outbox, message: np.void) -> None:
    """After the central scheduler handled a message: mark what it changed, and let long tasks bring a snapshot."""
    if message["task"] != NOBODY:
        mark(sharing, central, message["sender"])
    sent = False
    for place in range(out.size[0]):
        row = out.row[place]
        if row["kind"] == ENQUEUE:
            mark(sharing, central, row["to"])
            row["seen"] = sharing.taken[0]
            sent = True
    if sent:
        place = sharing.taken[0] % sharing.snapshot.shape[0]
        for block in range(sharing.marked.size):
            sharing.snapshot[place, block] = sharing.marked[block]
        sharing.taken[0] += 1


# -- schedulers --------------------------------------------------------------------------------------------------------


@inlined
def on_rejected(roles: Sparrow, sharing: Sharing, message: np.void, out: Outbox) -> None:
    """Probe another worker instead of one that has a long task."""
    schedulers, batches = roles.schedulers, roles.batches
    scheduler, batch = message["to"], message["first"]
    sharing.known[scheduler] = max(sharing.known[scheduler], message["seen"])
    if tasks_left(schedulers, batches, batch) == 0:
        return
    rounds = message["count"] + 1
    worker = next_worker(roles.members, schedulers, sharing, batches.shape[batch], scheduler, rounds)
    if worker < 0:  # nobody without long tasks could hold it, and nobody is kept for short ones: stand in line
        rounds = ROUNDS
        worker = draw_one(roles.members, batches.shape[batch], 0, roles.members.workers, schedulers.nobody)
    if worker < 0:
        owe(schedulers, batch, 1)
        return
    row = probe(schedulers, batches, batch, worker, message["travelled"], out)
    row["count"] = rounds


@inlined
def next_worker(
    members: Membership, schedulers: Schedulers, sharing: Sharing, shape: int, scheduler: int, rounds: int
) -> int:
    """Draw a worker that is not marked, or after some rounds one that is kept for short jobs; NOWHERE if none is."""
    worker = -1
    newest = sharing.known[scheduler]
    if rounds < ROUNDS and sharing.taken[0] - newest <= sharing.snapshot.shape[0]:
        marked = sharing.snapshot[newest % sharing.snapshot.shape[0]]
        worker = draw_one(members, shape, 0, members.workers, marked)
    if worker < 0:
        worker = draw_one(members, shape, 0, members.general, schedulers.nobody)
    return worker


# -- workers -----------------------------------------------------------------------------------------------------------


@inlined
def on_probe(roles: Sparrow, sharing: Sharing, message: np.void, now: float, out: Outbox) -> None:
    """Queue a reservation, unless a long task is here."""
    worker, workers = message["to"], roles.workers
    if message["count"] < ROUNDS and workers.long_queued[worker] + workers.long_running[worker] > 0:
        row = post(out, REJECTED, worker, roles.batches.scheduler[message["first"]], NOBODY, worker)
        row["first"], row["count"], row["seen"] = message["first"], message["count"], sharing.brought[worker]
        row["travelled"] = message["travelled"]
        return
    queue_up(workers, roles.queues, roles.batches, roles.members, message, now, out)


@inlined
def shortest(queues: Reservations, batches: Batches, worker: int, limit: int) -> tuple[int, int]:
    """Return the row to be served next, NOBODY if the queue is empty, and the row before it."""
    chosen, before_chosen, slack = NOBODY, NOBODY, np.inf
    before, number = NOBODY, queues.head[worker]
    while number != NOBODY:
        row = queues.row[number]
        if row["task"] != NOBODY and chosen != NOBODY:
            break
        estimate = batches.estimate[row["batch"]]
        if chosen == NOBODY or (row["remaining"] < queues.row[chosen]["remaining"] and estimate <= slack):
            chosen, before_chosen = number, before
        if row["task"] != NOBODY:
            break
        slack = min(slack, limit * estimate - row["delayed"])
        before, number = number, row["next"]
    return chosen, before_chosen


@inlined
def serve_shortest(
    roles: Sparrow, sharing: Sharing, tasks: Tasks, worker: int, now: float, out: Outbox
) -> None:
    """Let reservations go, shortest job first, as long as the next one fits."""
    queues, batches, workers = roles.queues, roles.batches, roles.workers
    while True:
        number, before = shortest(queues, batches, worker, sharing.starvation_limit)
        if number == NOBODY or not shape_fits(workers.own, tasks, batches.shape[queues.row[number]["batch"]], worker):
            return
        overtaken = queues.head[worker]
        while overtaken != number:
            queues.row[overtaken]["delayed"] += batches.estimate[queues.row[number]["batch"]]
            overtaken = queues.row[overtaken]["next"]
        let_go(workers, queues, batches, tasks, worker, before, number, now, out)


@inlined
def stick(workers: Workers, batches: Batches, tasks: Tasks, worker: int, task: int, out: Outbox) -> bool:
    """Ask for the next task of the batch of one that ended, if it fits; return whether it was asked for."""
    if not shape_fits(workers.own, tasks, tasks.shape[task], worker):
        return False
    take(workers.own, tasks, task, worker)
    fetch(batches, worker, batches.of_task[task], 0.0, 0.0, out)
    return True


@kernel
def handle_eagle(roles: Eagle, tasks: Tasks, now: float, message: np.void, out: Outbox) -> None:
    """Handle one message of an Eagle federation."""
    kind, worker, sparrow, sharing = message["kind"], message["to"], roles.hawk.sparrow, roles.sharing
    batches, workers = sparrow.batches, sparrow.workers
    if handle_long(sparrow, roles.hawk.central, tasks, now, message, out):
        share_state(sharing, roles.hawk.central, out, message)
        return
    if kind == REJECTED:
        on_rejected(sparrow, sharing, message, out)
        return
    if kind == PROBE:
        on_probe(sparrow, sharing, message, now, out)
    elif kind == ENQUEUE:
        sharing.brought[worker] = max(sharing.brought[worker], message["seen"])
        queue_up(workers, sparrow.queues, batches, sparrow.members, message, now, out)
    elif kind == ASSIGN:
        accept(workers, batches, sparrow.members, tasks, message, now, out)
    elif kind == NOTHING_LEFT:
        give_back(workers.own, tasks, batches.task[batches.first[message["first"]]], worker)
    elif kind == EXITED:
        if not end_and_tell(sparrow, tasks, message, out):
            stick(workers, batches, tasks, worker, message["task"], out)
    elif kind == CHANGE:
        worker = message["machine"]
        on_change(sparrow, tasks, message, out)
        place_owed(sparrow, roles.hawk.central, tasks, now, out)
        share_state(sharing, roles.hawk.central, out, message)
    else:
        handle_sparrow(sparrow, tasks, now, message, out)
        return
    serve_shortest(sparrow, sharing, tasks, worker, now, out)
