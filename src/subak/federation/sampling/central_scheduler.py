"""The central scheduler of Hawk and Eagle: sends long tasks to the workers with the least expected wait.

Rules: the waiting time of a worker is what its long tasks are estimated to take, less what the running ones have had. A
task counts by its dominant share of the worker, so that a worker with room for two counts half of each. One whose task
takes longer than estimated is not known to wait any more, but goes behind those that have none. Workers kept for short
jobs count only where no other could hold the task.

  message          | the task     | then
  SUBMIT           | new          | SENT: ENQUEUE at the worker that waits least
  LONG_BEGUN       | SENT         | has begun: the waiting time of its worker shrinks from now on
  LONG_OVER        | SENT, begun  | OVER: its estimate is taken off
  BOUNCED          | SENT, begun  | its estimate is taken off; SENT to another

Source: Hawk, section 3.7.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.batches.membership import Membership, is_able
from subak.federation.batches.table import Batches
from subak.federation.messages import BOUNCED, ENQUEUE, LONG_BEGUN, LONG_OVER, SUBMIT, Outbox, post
from subak.federation.sampling.sparrow import Sparrow, owe, probe_owed
from subak.fleet.state import FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.workload.tasks import Tasks

SENT, OVER = -1.0, -2.0  # instead of the time at which a task began


class Central(NamedTuple):
    """What the central scheduler believes of each worker's long tasks; times are weighed by shares of the worker."""

    number: int  # among the schedulers
    long_tasks: np.ndarray  # int32[worker], sent and not over
    work: np.ndarray  # float64[worker], seconds they are estimated to take
    running: np.ndarray  # float64[worker], share of the worker that runs some of them
    running_work: np.ndarray  # float64[worker], seconds that these were estimated to take
    running_since: np.ndarray  # float64[worker], sum over these of the share times the time it began
    share: np.ndarray  # float64[task], of its worker
    begun: np.ndarray  # float64[task], seconds, when it was heard to have begun; SENT before, OVER after
    sent_to: np.ndarray  # int32[task], its worker
    waiting: np.ndarray  # float64[worker], seconds, when a batch is placed: room to work in, like the next
    worker: np.ndarray  # int32[place], a heap of those that may be sent a batch


@inlined
def waiting_time(central: Central, worker: int, now: float) -> float:
    """Return the seconds that the long tasks of a worker are estimated to keep it."""
    had = central.running[worker] * now - central.running_since[worker]
    return max(central.work[worker] - min(max(had, 0.0), central.running_work[worker]), 0.0)


@inlined
def dominant_share(own: FleetState, tasks: Tasks, shape: int, worker: int) -> float:
    """Return the largest share of a resource of the worker that a task of the shape asks."""
    share = 0.0
    for resource in range(own.capacity.shape[0]):
        if tasks.request[resource, shape] > 0:
            share = max(share, tasks.request[resource, shape] / own.capacity[resource, worker])
    return share


@inlined
def waits_less(central: Central, worker: int, other: int) -> bool:
    """Whether a worker goes before another: it waits less, of equals it has fewer long tasks, or a lower number."""
    if central.waiting[worker] != central.waiting[other]:
        return bool(central.waiting[worker] < central.waiting[other])
    if central.long_tasks[worker] != central.long_tasks[other]:
        return bool(central.long_tasks[worker] < central.long_tasks[other])
    return bool(worker < other)


@inlined
def sink(central: Central, place: int, size: int, least_first: bool) -> None:
    """Restore the order below a place of the heap, whose first waits least, or most."""
    worker = central.worker[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and waits_less(central, central.worker[child + 1], central.worker[child]) == least_first:
            child += 1
        if waits_less(central, central.worker[child], worker) != least_first:
            break
        central.worker[place] = central.worker[child]
        place = child
    central.worker[place] = worker


@inlined
def make_heap(central: Central, size: int, least_first: bool) -> None:
    """Order what is listed as a heap."""
    for place in range(size // 2 - 1, -1, -1):
        sink(central, place, size, least_first)


@inlined
def list_candidates(central: Central, members: Membership, shape: int, now: float, wanted: int) -> int:
    """Make a heap of those that wait least among the workers that may be sent the shape; return how many they are.

    As many as there are tasks *wanted* for suffice: each task lets one worker wait longer, so the last of them goes to
    one of these at the latest.
    """
    first = members.general if members.general_count[shape] > 0 else 0
    for worker in range(members.workers):
        central.waiting[worker] = waiting_time(central, worker, now)
    size, most = 0, np.inf  # how long the last of them waits, once there are enough
    for worker in range(first, members.workers):
        if central.waiting[worker] > most or not is_able(members, shape, worker):
            continue
        if size < wanted:
            central.worker[size] = worker
            size += 1
            if size < wanted:
                continue
            make_heap(central, size, False)
        elif waits_less(central, worker, central.worker[0]):
            central.worker[0] = worker
            sink(central, 0, size, False)
        most = central.waiting[central.worker[0]]
    make_heap(central, size, True)
    return size


@inlined
def place_long(
    roles: Sparrow, central: Central, tasks: Tasks, batch: int, now: float, travelled: float, out: Outbox
) -> None:
    """Send all tasks of a batch that are left to the workers that wait least."""
    batches, schedulers, shape = roles.batches, roles.schedulers, roles.batches.shape[batch]
    left = batches.first[batch + 1] - batches.first[batch] - schedulers.handed[batch]
    size = list_candidates(central, roles.members, shape, now, max(left, 1))
    if size == 0:
        if schedulers.owed[batch] == 0:
            owe(schedulers, batch, 1)
        return
    for _ in range(left):
        task = schedulers.order[batches.first[batch] + schedulers.handed[batch]]
        schedulers.handed[batch] += 1
        worker = central.worker[0]
        share = dominant_share(roles.workers.own, tasks, shape, worker)
        central.share[task], central.begun[task], central.sent_to[task] = share, SENT, worker
        work = batches.estimate[batch] * share
        central.long_tasks[worker] += 1
        central.work[worker] += work
        central.waiting[worker] += work
        sink(central, 0, size, True)
        row = post(out, ENQUEUE, central.number, worker, task, worker)
        row["batch"], row["travelled"] = batch, travelled


@inlined
def on_long_begun(central: Central, batches: Batches, message: np.void, now: float) -> None:
    """Let the waiting time of a worker shrink."""
    task, worker = message["task"], message["sender"]
    if central.begun[task] != SENT or central.sent_to[task] != worker:
        return
    central.begun[task] = now
    central.running[worker] += central.share[task]
    central.running_work[worker] += central.share[task] * batches.estimate[message["batch"]]
    central.running_since[worker] += central.share[task] * now


@inlined
def take_off(central: Central, batches: Batches, task: int, batch: int) -> None:
    """Take a task that is over, or came back, off its worker's account."""
    worker, share = central.sent_to[task], central.share[task]
    work = batches.estimate[batch] * share
    central.long_tasks[worker] -= 1
    central.work[worker] -= work
    if central.begun[task] >= 0.0:
        central.running[worker] -= share
        central.running_work[worker] -= work
        central.running_since[worker] -= share * central.begun[task]
    central.begun[task] = OVER
    if central.long_tasks[worker] == 0:  # rounding errors end here
        central.work[worker] = central.running[worker] = 0.0
        central.running_work[worker] = central.running_since[worker] = 0.0


@inlined
def on_long_bounced(roles: Sparrow, central: Central, tasks: Tasks, message: np.void, now: float, out: Outbox) -> None:
    """Send a task that came back elsewhere."""
    batch, task = message["batch"], message["task"]
    take_off(central, roles.batches, task, batch)
    roles.schedulers.handed[batch] -= 1
    roles.schedulers.order[roles.batches.first[batch] + roles.schedulers.handed[batch]] = task
    place_long(roles, central, tasks, batch, now, 0.0, out)


@kernel
def place_owed(roles: Sparrow, central: Central, tasks: Tasks, now: float, out: Outbox) -> None:
    """Place what is owed, now that another worker is there: long tasks here, probes for the others."""
    schedulers, batches, kept = roles.schedulers, roles.batches, 0
    for place in range(schedulers.stranded_count[0]):
        batch = schedulers.stranded[place]
        if not batches.is_long[batch] or roles.members.able_count[batches.shape[batch]] == 0:
            schedulers.stranded[kept] = batch
            kept += 1
            continue
        schedulers.owed[batch] = 0
        place_long(roles, central, tasks, batch, now, 0.0, out)
    schedulers.stranded_count[0] = kept
    probe_owed(schedulers, batches, roles.members, out)


@inlined
def handle_long(roles: Sparrow, central: Central, tasks: Tasks, now: float, message: np.void, out: Outbox) -> bool:
    """Handle a message to the central scheduler; return whether it was one."""
    kind = message["kind"]
    if kind == LONG_BEGUN:
        on_long_begun(central, roles.batches, message, now)
    elif kind == LONG_OVER:
        take_off(central, roles.batches, message["task"], message["batch"])
    elif kind == SUBMIT and message["to"] == central.number:
        place_long(roles, central, tasks, message["batch"], now, message["travelled"], out)
    elif kind == BOUNCED and message["to"] == central.number:
        on_long_bounced(roles, central, tasks, message, now, out)
    else:
        return False
    return True
