"""Eagle: Hawk, with short tasks kept away from long ones, sticky batches, and shortest job first.

Rules:
- Succinct state sharing (section 4.1): the central scheduler marks the workers with long tasks in a bit-vector; each
  long task brings a snapshot of it to its worker. A worker with a long task rejects probes, and its newest snapshot
  goes back with the rejection; the scheduler probes a worker that is not marked instead. After ROUNDS rounds the probe
  goes to the workers kept for short jobs; where there is none that could hold the task, the next one keeps it.
- Sticky batch probing (section 4.2): a reservation stays with its worker until no task of the batch is left. When its
  task ends it is back at its place in the queue, and its turn may be the next.
- The queue (section 4.3): of the reservations before the first long task, the one whose batch is least work; a worker
  is told how much that was at first, and of a batch's reservations the earliest goes first. None goes before a
  reservation that this, with all tasks that went before it already, would hold up for more than `starvation_limit`
  times its own estimate, be it the worker's last batch or another. Long tasks keep their places.
- Nobody steals.

  message              | receiver  | then
  PROBE                | worker    | queued; REJECTED when it has a long task and the round is not the last
  REJECTED             | scheduler | PROBE another, if a task is left
  ENQUEUE              | worker    | queued, with the snapshot it brings
  EXITED (short)       | worker    | its reservation is in the queue again
  NOTHING_LEFT         | worker    | its reservation is used up
  all of these         | worker    | serves its queue, shortest first

Source: Delgado, Didona, Dinu, Zwaenepoel, "Job-aware Scheduling in Eagle: Divide and Stick to Your Probes", SoCC 2016.
The number of rounds, and what the limit counts, are those of the authors' simulator.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.batches.membership import Membership, draw_one
from subak.federation.batches.reservations import Reservations, free_row, rejoin
from subak.federation.batches.worker import accept, let_go, queue_up
from subak.federation.messages import (
    ASSIGN,
    BOUNCED,
    CHANGE,
    ENQUEUE,
    EXITED,
    NOBODY,
    NOTHING_LEFT,
    PROBE,
    REJECTED,
    Outbox,
    may_serve,
    post,
)
from subak.federation.sampling.central_scheduler import Central, handle_long, place_owed
from subak.federation.sampling.hawk import Hawk, end_and_tell
from subak.federation.sampling.sparrow import Schedulers, Sparrow, handle_sparrow, on_change, owe, probe, tasks_left
from subak.federation.serving import SharedTables
from subak.fleet.amounts import give_back
from subak.fleet.feasible import shape_fits
from subak.fleet.state import BLOCK, ONE, FleetState
from subak.marks import inlined
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
    estimate_min: float  # seconds, the least of all batches
    request_min: np.ndarray  # int32[resource], units, the least that any task asks for


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
    for place in range(out.counts.posted):
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
    scheduler, batch = message["to"], message["batch"]
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
        row = post(out, REJECTED, worker, roles.batches.scheduler[message["batch"]], NOBODY, worker)
        row["batch"], row["count"], row["seen"] = message["batch"], message["count"], sharing.brought[worker]
        row["travelled"] = message["travelled"]
        return
    queue_up(workers, roles.queues, roles.batches, roles.members, message, now, out)


@inlined
def shortest(queues: Reservations, sharing: Sharing, worker: int) -> tuple[int, int]:
    """Return the row to be served next, NOBODY if the queue is empty, and the row before it.

    It ends where even the shortest task there is would hold one of those before it up for too long.
    """
    chosen, before_chosen, slack = NOBODY, NOBODY, np.inf
    before, number = NOBODY, queues.head[worker]
    while number != NOBODY and slack >= sharing.estimate_min:
        row = queues.row[number]
        if row["task"] != NOBODY and chosen != NOBODY:
            break
        if chosen == NOBODY or (row["work"] < queues.row[chosen]["work"] and row["estimate"] <= slack):
            chosen, before_chosen = number, before
        if row["task"] != NOBODY:
            break
        slack = min(slack, sharing.starvation_limit * row["estimate"] - row["delayed"])
        before, number = number, row["next"]
    return chosen, before_chosen


@inlined
def has_room(own: FleetState, sharing: Sharing, worker: int) -> bool:
    """Whether a worker has as much free as the least task asks for: else its queue need not be walked."""
    for resource in range(own.free.shape[0]):  # noqa: SIM110
        if own.free[resource, worker] < sharing.request_min[resource]:
            return False
    return True


@inlined
def serve_shortest(
    roles: Sparrow, sharing: Sharing, tasks: Tasks, worker: int, now: float, out: Outbox
) -> None:
    """Let reservations go, shortest job first, as long as the next one fits."""
    queues, batches, workers = roles.queues, roles.batches, roles.workers
    while has_room(workers.own, sharing, worker):
        number, before = shortest(queues, sharing, worker)
        if number == NOBODY or not shape_fits(workers.own, tasks, batches.shape[queues.row[number]["batch"]], worker):
            return
        let_go(workers, queues, batches, tasks, worker, before, number, now, out)


@inlined
def on_assign(roles: Sparrow, tasks: Tasks, message: np.void, now: float, out: Outbox) -> None:
    """Begin the assigned task; its reservation stays until the task ends, unless the worker could not hold it."""
    if accept(roles.workers, roles.batches, roles.members, tasks, message, now, out):
        roles.workers.sticky[message["task"]] = message["handle"]
        hold_up(roles.queues, message["to"], message["handle"], roles.batches.estimate[message["batch"]])
    else:
        free_row(roles.queues, message["handle"])


@inlined
def hold_up(queues: Reservations, worker: int, number: int, seconds: float) -> None:
    """Note that a task, which began by a reservation, is estimated to hold those up that were there before it."""
    since, overtaken = queues.row[number]["since"], queues.head[worker]
    while overtaken != NOBODY and queues.row[overtaken]["since"] < since:
        queues.row[overtaken]["delayed"] += seconds
        overtaken = queues.row[overtaken]["next"]


@inlined
def on_nothing_left(roles: Sparrow, tasks: Tasks, message: np.void) -> None:
    """Give back what was taken for a task, and forget the reservation."""
    batches = roles.batches
    give_back(roles.workers.own, tasks, tasks.shape[batches.task[batches.first[message["batch"]]]], message["to"])
    free_row(roles.queues, message["handle"])


@inlined
def forget_lost(roles: Sparrow, out: Outbox) -> None:
    """Forget the reservations of attempts that were lost; their schedulers send others in their place."""
    for place in range(out.counts.posted):
        row = out.row[place]
        if row["kind"] == BOUNCED and row["count"] and not roles.batches.is_long[row["batch"]]:
            free_row(roles.queues, roles.workers.sticky[row["task"]])


@inlined
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
        on_assign(sparrow, tasks, message, now, out)
    elif kind == NOTHING_LEFT:
        on_nothing_left(sparrow, tasks, message)
    elif kind == EXITED:
        if not end_and_tell(sparrow, tasks, message, out):
            rejoin(sparrow.queues, worker, workers.sticky[message["task"]])
    elif kind == CHANGE:
        worker = message["machine"]
        on_change(sparrow, tasks, message, out)
        forget_lost(sparrow, out)
        place_owed(sparrow, roles.hawk.central, tasks, now, out)
        share_state(sharing, roles.hawk.central, out, message)
    else:
        handle_sparrow(sparrow, tasks, now, message, out)
        return
    serve_shortest(sparrow, sharing, tasks, worker, now, out)


def serve_eagle(tables: SharedTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their roles; no role has turns."""
    for place in range(count):
        if not may_serve(tables.out, place):
            break
        handle_eagle(tables.roles, tables.tasks, now, tables.inbox[place], tables.out)
    return NOBODY
