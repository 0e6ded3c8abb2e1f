"""Sparrow: schedulers that probe a few random workers and bind tasks late.

Rules:
- A scheduler probes ceil(d m) workers, but m at least, for a batch of m tasks, all different, or in rounds over all
  workers when there are not as many. So there are always at least as many reservations as tasks left, and none can
  be forgotten.
- A worker whose turn for a reservation has come gets the next task of the batch, or hears that none is left.
- Per-task sampling is batch sampling with one task a batch.
- Only workers that could hold the batch are probed (section 3.6, per-job constraints). While there are none, the
  scheduler keeps what it owes until the operator announces a worker.

  message | the batch          | then
  SUBMIT  | (any)              | PROBE
  FETCH   | has tasks left     | ASSIGN
  FETCH   | has none           | NOTHING_LEFT
  BOUNCED | (any)              | a task is left again; PROBE if one is left

Source: Ousterhout, Wendell, Zaharia, Stoica, "Sparrow", SOSP 2013, sections 3.3 to 3.6 and 4.1.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.batches.membership import Membership, draw_distinct, draw_one, note_change
from subak.federation.batches.reservations import Reservations
from subak.federation.batches.submitter import BatchSubmitter, on_batch_arrive, on_batch_done
from subak.federation.batches.table import Batches
from subak.federation.batches.worker import (
    Workers,
    accept,
    end_attempt,
    queue_up,
    resize_worker,
    send_queued_back,
    serve_in_order,
)
from subak.federation.messages import (
    ARRIVE,
    ASSIGN,
    BOUNCED,
    CHANGE,
    DONE,
    EXITED,
    FETCH,
    NOBODY,
    NOTHING_LEFT,
    PROBE,
    SUBMIT,
    Outbox,
    may_serve,
    post,
)
from subak.federation.serving import SharedTables
from subak.fleet.amounts import give_back
from subak.marks import inlined
from subak.workload.tasks import Tasks


class Schedulers(NamedTuple):
    """All schedulers that sample; each touches its own batches."""

    order: np.ndarray  # int32[place], tasks of each batch: those handed out come first
    handed: np.ndarray  # int32[batch], tasks handed out
    owed: np.ndarray  # int32[batch], probes that no worker is there for
    stranded: np.ndarray  # int32[place], the batches that are owed some
    stranded_count: np.ndarray  # int64[1]
    nobody: np.ndarray  # uint64[block], the empty set of workers
    probe_ratio: float  # d
    probes_min: int  # for a batch, as far as there are workers


class Sparrow(NamedTuple):
    """The roles of a Sparrow federation."""

    batches: Batches
    submitter: BatchSubmitter
    members: Membership
    schedulers: Schedulers
    workers: Workers
    queues: Reservations


@inlined
def tasks_left(schedulers: Schedulers, batches: Batches, batch: int) -> int:
    """Return how many tasks of a batch have not been handed out."""
    return batches.first[batch + 1] - batches.first[batch] - schedulers.handed[batch]


@inlined
def probe(schedulers: Schedulers, batches: Batches, batch: int, worker: int, travelled: float, out: Outbox) -> np.void:
    """Send a probe."""
    row = post(out, PROBE, batches.scheduler[batch], worker, NOBODY, worker)
    row["batch"], row["travelled"] = batch, travelled
    row["delay"] = (batches.first[batch + 1] - batches.first[batch]) * batches.estimate[batch]
    return row


@inlined
def on_submit(schedulers: Schedulers, batches: Batches, members: Membership, message: np.void, out: Outbox) -> None:
    """Probe for a batch."""
    batch = message["batch"]
    tasks, least = int(message["count"]), min(schedulers.probes_min, int(members.able_count[batches.shape[batch]]))
    wanted = max(tasks, int(np.ceil(schedulers.probe_ratio * tasks)), least)
    while wanted > 0:
        found = draw_distinct(members, batches.shape[batch], wanted)
        if found == 0:
            owe(schedulers, batch, wanted)
            return
        for place in range(found):
            probe(schedulers, batches, batch, members.drawn[place], message["travelled"], out)
        wanted -= found


@inlined
def owe(schedulers: Schedulers, batch: int, probes: int) -> None:
    """Keep probes until there is a worker for them."""
    if schedulers.owed[batch] == 0:
        schedulers.stranded[schedulers.stranded_count[0]] = batch
        schedulers.stranded_count[0] += 1
    schedulers.owed[batch] += probes


@inlined
def probe_elsewhere(schedulers: Schedulers, batches: Batches, members: Membership, batch: int, out: Outbox) -> None:
    """Replace a reservation that came back."""
    worker = draw_one(members, batches.shape[batch], 0, members.workers, schedulers.nobody)
    if worker < 0:
        owe(schedulers, batch, 1)
    else:
        probe(schedulers, batches, batch, worker, 0.0, out)


@inlined
def on_fetch(schedulers: Schedulers, batches: Batches, message: np.void, out: Outbox) -> None:
    """Answer a worker with the next task of the batch."""
    batch = message["batch"]
    if tasks_left(schedulers, batches, batch) == 0:
        row = post(out, NOTHING_LEFT, message["to"], message["sender"], NOBODY, message["sender"])
        row["batch"], row["handle"] = batch, message["handle"]
        return
    task = schedulers.order[batches.first[batch] + schedulers.handed[batch]]
    schedulers.handed[batch] += 1
    row = post(out, ASSIGN, message["to"], message["sender"], task, message["sender"])
    row["batch"], row["delay"], row["travelled"] = batch, message["delay"], message["travelled"]
    row["handle"] = message["handle"]


@inlined
def on_bounced(schedulers: Schedulers, batches: Batches, members: Membership, message: np.void, out: Outbox) -> None:
    """Take a task back, and replace the reservation."""
    batch, task = message["batch"], message["task"]
    if task != NOBODY:
        schedulers.handed[batch] -= 1
        schedulers.order[batches.first[batch] + schedulers.handed[batch]] = task
    if tasks_left(schedulers, batches, batch) > 0:
        probe_elsewhere(schedulers, batches, members, batch, out)


@inlined
def probe_owed(schedulers: Schedulers, batches: Batches, members: Membership, out: Outbox) -> None:
    """Send what is owed, now that another worker is there."""
    kept = 0
    for place in range(schedulers.stranded_count[0]):
        batch = schedulers.stranded[place]
        if members.able_count[batches.shape[batch]] == 0:
            schedulers.stranded[kept] = batch
            kept += 1
            continue
        for _ in range(schedulers.owed[batch]):
            probe_elsewhere(schedulers, batches, members, batch, out)
        schedulers.owed[batch] = 0
    schedulers.stranded_count[0] = kept


@inlined
def on_change(roles: Sparrow, tasks: Tasks, message: np.void, out: Outbox) -> None:
    """Announce a change of the fleet: its worker loses what it cannot hold, and is a member as far as it is there."""
    worker, change = message["machine"], message["count"]
    resize_worker(roles.workers, roles.batches, tasks, change, worker, out)
    note_change(roles.members, roles.workers.own, tasks, worker, roles.workers.is_there[change])
    send_queued_back(roles.workers, roles.queues, roles.batches, roles.members, worker, out)


@inlined
def handle_scheduling(roles: Sparrow, message: np.void, out: Outbox) -> bool:
    """Handle a message to the submitter or a scheduler; return whether it was one."""
    kind, batches, schedulers = message["kind"], roles.batches, roles.schedulers
    if kind == FETCH:
        on_fetch(schedulers, batches, message, out)
    elif kind == ARRIVE:
        on_batch_arrive(roles.submitter, batches, message, out)
    elif kind == DONE:
        on_batch_done(roles.submitter, batches, message, out)
    elif kind == SUBMIT:
        on_submit(schedulers, batches, roles.members, message, out)
    elif kind == BOUNCED:
        on_bounced(schedulers, batches, roles.members, message, out)
    else:
        return False
    return True


@inlined
def handle_sparrow(roles: Sparrow, tasks: Tasks, now: float, message: np.void, out: Outbox) -> None:
    """Handle one message of a Sparrow federation."""
    kind, to = message["kind"], message["to"]
    batches, schedulers, workers, queues = roles.batches, roles.schedulers, roles.workers, roles.queues
    if handle_scheduling(roles, message, out):
        return
    if kind == PROBE:
        queue_up(workers, queues, batches, roles.members, message, now, out)
    elif kind == ASSIGN:
        accept(workers, batches, roles.members, tasks, message, now, out)
    elif kind == NOTHING_LEFT:
        give_back(workers.own, tasks, tasks.shape[batches.task[batches.first[message["batch"]]]], to)
    elif kind == EXITED:
        end_attempt(workers, batches, tasks, message, out)
    elif kind == CHANGE:
        on_change(roles, tasks, message, out)
        probe_owed(schedulers, batches, roles.members, out)
        to = message["machine"]
    serve_in_order(workers, queues, batches, tasks, to, now, out)


def serve_sparrow(tables: SharedTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their roles; no role has turns."""
    for place in range(count):
        if not may_serve(tables.out, place):
            break
        handle_sparrow(tables.roles, tables.tasks, now, tables.inbox[place], tables.out)
    return NOBODY
