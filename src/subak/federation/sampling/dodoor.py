"""Dodoor: sends each task to the better of two random workers, by loads that a data store publishes.

Rules:
- A scheduler draws two workers that could hold the task, and sends it to the one with the lower score, of equals the
  first. It goes by the loads that it was told last; its own decisions change nothing in them.
- The load of a worker is what its tasks ask for, waiting and running, and the seconds that these are estimated to take.
  The score is that of the amounts, sum of request x load / capacity^2 over the resources, and that of the seconds, each
  as a share of what the two workers have together: (1 - w) of the first and w of the second, `duration_weight`.
- A scheduler tells the store its decisions a few at a time (`report_tasks`); the store adds them to what it knows.
  A worker whose task is over, or that changes, tells the store its load, which takes the place of what was known.
- Once the store has heard of so many decisions (`push_ratio` for each worker) it sends the loads to all schedulers.
- Workers serve their queues in order.

  message   | receiver   | then
  SUBMIT    | scheduler  | for each task: ENQUEUE; after some decisions: ADD_LOAD
  BOUNCED   | scheduler  | the same for the task that came back
  ADD_LOAD  | store      | adds the decisions; after some: LOADS to every scheduler
  SET_LOAD  | store      | takes what the worker says
  LOADS     | scheduler  | goes by them from now on
  ENQUEUE   | worker     | queued
  EXITED    | worker     | SET_LOAD

What a message brings is kept in a table here. Of two that are under way from one worker both bring the newest, and of
the loads the store has sent the last LOADS_KEPT are kept: who knows only older ones goes by the oldest of these.

Source: "Dodoor: Efficient Randomized Decentralized Scheduling with Load Caching for Heterogeneous Tasks and Clusters",
arXiv 2510.12889. Where it is silent, and for the score of a resource, its authors' program.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.batches.membership import NOWHERE, draw_one
from subak.federation.batches.table import Batches
from subak.federation.batches.worker import end_attempt, queue_up, serve_in_order
from subak.federation.messages import (
    ADD_LOAD,
    BOUNCED,
    CHANGE,
    ENQUEUE,
    EXITED,
    LOADS,
    NOBODY,
    SET_LOAD,
    SUBMIT,
    Outbox,
    may_serve,
    post,
)
from subak.federation.sampling.sparrow import Sparrow, handle_scheduling, on_change, owe, tasks_left
from subak.federation.serving import SharedTables
from subak.fleet.state import FleetState
from subak.marks import inlined
from subak.workload.tasks import Tasks

LOADS_KEPT = 64  # of the loads that the store sent
STORE = 0  # its number among the local masters


class Loads(NamedTuple):
    """What workers hold, and what is known of it; a load is amounts, in units, and last the seconds of the tasks."""

    held: np.ndarray  # float64[amount, worker], load of each
    tasks_held: np.ndarray  # int32[worker]
    told: np.ndarray  # float64[amount, worker], what each told the store last
    stored: np.ndarray  # float64[amount, worker], what the store knows
    snapshot: np.ndarray  # float64[place, amount, worker], what it sent: number s at place s modulo their number
    sent: np.ndarray  # int64[1], how many it sent, and the one of the beginning
    known: np.ndarray  # int64[scheduler], the newest that it was told
    decisions: np.ndarray  # int64[1], of which the store has heard
    unreported: np.ndarray  # int32[scheduler], task, the first of a chain that the store was not told yet, or NOBODY
    unreported_count: np.ndarray  # int32[scheduler]
    next: np.ndarray  # int32[task], the next of its chain, here or under way
    is_listed: np.ndarray  # bool[task], whether it is in a chain
    sent_to: np.ndarray  # int32[task], its worker
    workers: int  # whose loads are told
    push_tasks: int  # decisions between two times that the store sends loads
    report_tasks: int  # decisions of a scheduler that it tells together
    duration_weight: float


class Dodoor(NamedTuple):
    """The roles of a Dodoor federation."""

    sparrow: Sparrow
    loads: Loads


# -- schedulers --------------------------------------------------------------------------------------------------------


@inlined
def resource_load(loads: Loads, place: int, own: FleetState, tasks: Tasks, shape: int, worker: int) -> float:
    """Return how much a worker has to do of what a shape asks for, as was told: sum of request x load / capacity^2."""
    total = 0.0
    for resource in range(own.capacity.shape[0]):
        capacity = float(own.capacity[resource, worker])
        if capacity > 0.0:
            total += tasks.request[resource, shape] * loads.snapshot[place, resource, worker] / (capacity * capacity)
    return total


@inlined
def lead(first: float, second: float) -> float:
    """Return the difference of the shares that two loads have of both; 0 where there are none."""
    return (first - second) / (first + second) if first + second > 0.0 else 0.0


@inlined
def choose(roles: Sparrow, loads: Loads, tasks: Tasks, shape: int, scheduler: int) -> int:
    """Return the better of two workers drawn for a shape, NOWHERE if none could hold it."""
    members, nobody, own = roles.members, roles.schedulers.nobody, roles.workers.own
    first = draw_one(members, shape, 0, members.workers, nobody)
    if first == NOWHERE:
        return NOWHERE
    second = draw_one(members, shape, 0, members.workers, nobody)
    snapshots, amounts_count, _ = loads.snapshot.shape
    place = max(loads.known[scheduler], loads.sent[0] - snapshots) % snapshots
    amounts = lead(resource_load(loads, place, own, tasks, shape, first),
                   resource_load(loads, place, own, tasks, shape, second))
    seconds = lead(loads.snapshot[place, amounts_count - 1, first], loads.snapshot[place, amounts_count - 1, second])
    score = (1.0 - loads.duration_weight) * amounts + loads.duration_weight * seconds
    return second if score > 0.0 else first


@inlined
def place_all(roles: Sparrow, loads: Loads, tasks: Tasks, batch: int, travelled: float, out: Outbox) -> None:
    """Send each task of a batch that is left to the better of two workers; keep them while nobody could hold them."""
    schedulers, batches = roles.schedulers, roles.batches
    for _ in range(tasks_left(schedulers, batches, batch)):
        scheduler = batches.scheduler[batch]
        worker = choose(roles, loads, tasks, batches.shape[batch], scheduler)
        if worker == NOWHERE:
            if schedulers.owed[batch] == 0:
                owe(schedulers, batch, 1)
            return
        task = schedulers.order[batches.first[batch] + schedulers.handed[batch]]
        schedulers.handed[batch] += 1
        row = post(out, ENQUEUE, scheduler, worker, task, worker)
        row["batch"], row["travelled"] = batch, travelled
        report(loads, scheduler, task, worker, out)


@inlined
def report(loads: Loads, scheduler: int, task: int, worker: int, out: Outbox) -> None:
    """Note a decision, and tell the store those that are due; of a task it is not told twice, but the latest."""
    loads.sent_to[task] = worker
    if loads.is_listed[task]:
        return
    loads.is_listed[task] = True
    loads.next[task] = loads.unreported[scheduler]
    loads.unreported[scheduler] = task
    loads.unreported_count[scheduler] += 1
    if loads.unreported_count[scheduler] == loads.report_tasks:
        row = post(out, ADD_LOAD, scheduler, STORE, task, NOBODY)
        row["count"] = loads.unreported_count[scheduler]
        loads.unreported[scheduler], loads.unreported_count[scheduler] = NOBODY, 0


@inlined
def place_owed(roles: Sparrow, loads: Loads, tasks: Tasks, out: Outbox) -> None:
    """Place what was kept, now that another worker is there."""
    schedulers, kept = roles.schedulers, 0
    for place in range(schedulers.stranded_count[0]):
        batch = schedulers.stranded[place]
        if roles.members.able_count[roles.batches.shape[batch]] == 0:
            schedulers.stranded[kept] = batch
            kept += 1
        else:
            schedulers.owed[batch] = 0
            place_all(roles, loads, tasks, batch, 0.0, out)
    schedulers.stranded_count[0] = kept


@inlined
def on_task_bounced(roles: Sparrow, loads: Loads, tasks: Tasks, message: np.void, out: Outbox) -> None:
    """Send a task that came back elsewhere."""
    batch, schedulers = message["batch"], roles.schedulers
    schedulers.handed[batch] -= 1
    schedulers.order[roles.batches.first[batch] + schedulers.handed[batch]] = message["task"]
    place_all(roles, loads, tasks, batch, 0.0, out)


# -- the data store ----------------------------------------------------------------------------------------------------


@inlined
def on_add_load(loads: Loads, batches: Batches, tasks: Tasks, message: np.void, out: Outbox) -> None:
    """Add decisions to what is known, and send it to all schedulers when that is due."""
    task = message["task"]
    for _ in range(message["count"]):
        add(loads.stored, loads.sent_to[task], batches, tasks, batches.of_task[task], 1.0)
        loads.is_listed[task] = False
        task = loads.next[task]
    before = loads.decisions[0] // loads.push_tasks
    loads.decisions[0] += message["count"]
    if loads.decisions[0] // loads.push_tasks == before:
        return
    number = loads.sent[0]
    place = number % loads.snapshot.shape[0]
    for amount in range(loads.stored.shape[0]):
        for worker in range(loads.stored.shape[1]):
            loads.snapshot[place, amount, worker] = loads.stored[amount, worker]
    loads.sent[0] += 1
    for scheduler in range(loads.known.size):
        row = post(out, LOADS, STORE, scheduler, NOBODY, NOBODY)
        row["seen"], row["count"] = number, loads.workers


@inlined
def on_set_load(loads: Loads, worker: int) -> None:
    """Take what a worker says of itself."""
    for amount in range(loads.stored.shape[0]):
        loads.stored[amount, worker] = loads.told[amount, worker]


# -- workers -----------------------------------------------------------------------------------------------------------


@inlined
def add(load: np.ndarray, worker: int, batches: Batches, tasks: Tasks, batch: int, sign: float) -> None:
    """Add a task of a batch to the load of a worker, or take it off."""
    resources = load.shape[0] - 1
    for resource in range(resources):
        load[resource, worker] += sign * tasks.request[resource, batches.shape[batch]]
    load[resources, worker] += sign * batches.estimate[batch]


@inlined
def take_off(loads: Loads, batches: Batches, tasks: Tasks, worker: int, batch: int) -> None:
    """Take a task off the load of a worker, which has none without tasks: rounding errors end there."""
    add(loads.held, worker, batches, tasks, batch, -1.0)
    loads.tasks_held[worker] -= 1
    if loads.tasks_held[worker] == 0:
        for amount in range(loads.held.shape[0]):
            loads.held[amount, worker] = 0.0


@inlined
def tell(loads: Loads, worker: int, out: Outbox) -> None:
    """Tell the store the load of a worker."""
    for amount in range(loads.told.shape[0]):
        loads.told[amount, worker] = loads.held[amount, worker]
    post(out, SET_LOAD, worker, STORE, NOBODY, worker)


@inlined
def take_off_bounced(roles: Sparrow, loads: Loads, tasks: Tasks, worker: int, first: int, out: Outbox) -> None:
    """Take off what a worker that changed sent back, attempts and queued tasks, and tell the store.

    *first*: the place of the first message that may be about it.
    """
    for place in range(first, out.counts.posted):
        if out.row[place]["kind"] == BOUNCED:
            take_off(loads, roles.batches, tasks, worker, out.row[place]["batch"])
    tell(loads, worker, out)


# -- all together ------------------------------------------------------------------------------------------------------


@inlined
def handle_dodoor(roles: Dodoor, tasks: Tasks, now: float, message: np.void, out: Outbox) -> None:
    """Handle one message of a Dodoor federation."""
    kind, worker, sparrow, loads = message["kind"], message["to"], roles.sparrow, roles.loads
    batches, workers = sparrow.batches, sparrow.workers
    if kind == SUBMIT:
        place_all(sparrow, loads, tasks, message["batch"], message["travelled"], out)
    elif kind == BOUNCED:
        on_task_bounced(sparrow, loads, tasks, message, out)
    elif kind == LOADS:
        loads.known[message["to"]] = max(loads.known[message["to"]], message["seen"])
    elif kind == ADD_LOAD:
        on_add_load(loads, batches, tasks, message, out)
    elif kind == SET_LOAD:
        on_set_load(loads, message["machine"])
    elif kind == ENQUEUE:
        if queue_up(workers, sparrow.queues, batches, sparrow.members, message, now, out):
            add(loads.held, worker, batches, tasks, message["batch"], 1.0)
            loads.tasks_held[worker] += 1
            serve_in_order(workers, sparrow.queues, batches, tasks, worker, now, out)
    elif kind == EXITED:
        end_attempt(workers, batches, tasks, message, out)
        take_off(loads, batches, tasks, worker, batches.of_task[message["task"]])
        tell(loads, worker, out)
        serve_in_order(workers, sparrow.queues, batches, tasks, worker, now, out)
    elif kind == CHANGE:
        worker, first = message["machine"], out.counts.posted
        on_change(sparrow, tasks, message, out)
        take_off_bounced(sparrow, loads, tasks, worker, first, out)
        place_owed(sparrow, loads, tasks, out)
        serve_in_order(workers, sparrow.queues, batches, tasks, worker, now, out)
    else:
        handle_scheduling(sparrow, message, out)


def serve_dodoor(tables: SharedTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their roles; no role has turns."""
    for place in range(count):
        if not may_serve(tables.out, place):
            break
        handle_dodoor(tables.roles, tables.tasks, now, tables.inbox[place], tables.out)
    return NOBODY
