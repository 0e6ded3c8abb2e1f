"""Pigeon: distributors deal tasks evenly to groups of workers, whose masters keep two queues.

Rules:
- A distributor deals a batch to the masters as evenly as possible, in an order that is drawn for each batch. Only
  groups that could hold the tasks count: with a worker not kept for short tasks, or else with any.
- A group keeps some of its workers for short tasks. A short task goes to one of the others if it fits there, else to
  a kept one; a long task goes to a kept one only where no other worker of the group could ever hold it.
- A task that fits nowhere waits in its group's queue of short or of long tasks. When there is room again, the queues
  are served by weight: W short tasks, then a long one, as long as both wait. The first of a queue is not overtaken by
  others of its queue; while it does not fit, the other queue is served.

  message | receiver    | then
  SUBMIT  | distributor | DEAL each task to a master
  BOUNCED | distributor | DEAL the task anew
  DEAL    | master      | START, or it waits; BOUNCED when the group could not hold it
  START   | worker      | BEGIN; OVER and BOUNCED when the worker left or shrank meanwhile
  EXITED  | worker      | DONE, and OVER
  OVER    | master      | the room is free: serve the queues
  CHANGE  | worker      | OVER and BOUNCED for what it cannot run any more
  CHANGE  | master      | BOUNCED for what the group could not hold any more

Source: Wang, Li, Li, Sun, Rao, Che, Jiang, "Pigeon: an Effective Distributed, Hierarchical Datacenter Job Scheduler",
SoCC 2019, section 3 (dealing, two queues, weighted fair queueing, reserved workers).
"""
from typing import NamedTuple

import numpy as np

from subak.federation.batches.membership import Membership, is_able, note_change
from subak.federation.batches.submitter import BatchSubmitter, on_batch_arrive, on_batch_done
from subak.federation.batches.table import Batches
from subak.federation.batches.worker import Workers, accept, end_attempt, resize_worker
from subak.federation.messages import (
    ARRIVE,
    BOUNCED,
    CHANGE,
    DEAL,
    DONE,
    EXITED,
    MACHINE_LOST,
    NOBODY,
    NOT_THERE,
    OVER,
    START,
    SUBMIT,
    Outbox,
    may_serve,
    post,
)
from subak.federation.serving import SharedTables
from subak.fleet.amounts import give_back, shift, take
from subak.fleet.feasible import NOWHERE, fitting_in
from subak.fleet.state import BLOCK, NO_BITS, FleetState
from subak.marks import inlined
from subak.placement.fits.random_fit import random_below
from subak.workload.tasks import Tasks

GONE = -1  # configuration of a worker that is not there
SHORT, LONG = range(2)  # the two queues of a group


class Groups(NamedTuple):
    """All masters, each touching its own group: general workers are in blocks [2 g], kept ones in blocks [2 g + 1]."""

    room: FleetState  # what is free when everything under way has begun; absent workers have 0 of everything
    block: np.ndarray  # int64[2 group + 1], first blocks
    of_worker: np.ndarray  # int32[worker]
    head: np.ndarray  # int32[group, 2], the first waiting task of a queue, NOBODY when it is empty
    tail: np.ndarray  # int32[group, 2]
    next: np.ndarray  # int32[task], in its queue
    turns: np.ndarray  # int32[group], short tasks served since the last long one, or since none waited
    is_long: np.ndarray  # bool[task]
    weight: int  # W


class Distributors(NamedTuple):
    """All distributors."""

    order: np.ndarray  # int32[place], groups: room to work in
    random: np.ndarray  # uint64[1]
    stranded: np.ndarray  # int32[place], tasks that no group could hold
    stranded_count: np.ndarray  # int64[1]


class Pigeon(NamedTuple):
    """The roles of a Pigeon federation."""

    batches: Batches
    submitter: BatchSubmitter
    members: Membership
    distributors: Distributors
    groups: Groups
    workers: Workers


# -- distributors ------------------------------------------------------------------------------------------------------


@inlined
def has_able(members: Membership, shape: int, first: int, end: int) -> bool:
    """Whether a worker of blocks *first* .. *end* - 1 could hold the shape."""
    for block in range(first, end):  # noqa: SIM110
        if members.able[shape, block] != NO_BITS:
            return True
    return False


@inlined
def list_groups(distributors: Distributors, groups: Groups, members: Membership, shape: int, parts: int) -> int:
    """List the groups of which the first *parts* parts (general, kept) have a worker for the shape; return how many."""
    count = 0
    for group in range(groups.turns.size):
        if has_able(members, shape, groups.block[2 * group], groups.block[2 * group + parts]):
            distributors.order[count] = group
            count += 1
    return count


@inlined
def draw_groups(roles: Pigeon, shape: int, is_long: bool, wanted: int) -> int:
    """Put the groups that may be dealt the shape in an order, drawn as far as *wanted*; return how many they are."""
    distributors, order = roles.distributors, roles.distributors.order
    count = list_groups(distributors, roles.groups, roles.members, shape, 1 if is_long else 2)
    if count == 0 and is_long:
        count = list_groups(distributors, roles.groups, roles.members, shape, 2)
    for place in range(min(wanted, count)):
        other = place + random_below(distributors.random, count - place)
        order[place], order[other] = order[other], order[place]
    return count


@inlined
def deal(roles: Pigeon, batch: int, place: int, end: int, travelled: float, out: Outbox) -> None:
    """Deal the tasks at *place* .. *end* - 1 of a batch."""
    batches, distributors = roles.batches, roles.distributors
    is_long = roles.groups.is_long[batches.task[place]]
    groups = draw_groups(roles, batches.shape[batch], is_long, end - place)
    for number in range(end - place):
        task = batches.task[place + number]
        if groups == 0:
            strand(distributors, task)
        else:
            hand_over(batches, batch, task, distributors.order[number % groups], travelled, out)


@inlined
def hand_over(batches: Batches, batch: int, task: int, group: int, travelled: float, out: Outbox) -> None:
    """Send a task to a master."""
    row = post(out, DEAL, batches.scheduler[batch], group, task, NOBODY)
    row["batch"], row["travelled"] = batch, travelled


@inlined
def deal_again(roles: Pigeon, task: int, out: Outbox) -> None:
    """Deal a task that came back."""
    batch = roles.batches.of_task[task]
    if draw_groups(roles, roles.batches.shape[batch], roles.groups.is_long[task], 1) == 0:
        strand(roles.distributors, task)
    else:
        hand_over(roles.batches, batch, task, roles.distributors.order[0], 0.0, out)


@inlined
def strand(distributors: Distributors, task: int) -> None:
    """Keep a task until a worker comes that could hold it."""
    distributors.stranded[distributors.stranded_count[0]] = task
    distributors.stranded_count[0] += 1


@inlined
def deal_stranded(roles: Pigeon, out: Outbox) -> None:
    """Deal what was kept, now that another worker is there."""
    count = roles.distributors.stranded_count[0]
    roles.distributors.stranded_count[0] = 0
    for place in range(count):  # what is stranded again takes a place that was read
        deal_again(roles, roles.distributors.stranded[place], out)


# -- masters -----------------------------------------------------------------------------------------------------------


@inlined
def find_worker(groups: Groups, members: Membership, tasks: Tasks, group: int, task: int) -> int:
    """Return the worker of a group on which a task would start now, NOWHERE if there is none."""
    shape = tasks.shape[task]
    first, kept, end = groups.block[2 * group], groups.block[2 * group + 1], groups.block[2 * group + 2]
    if groups.is_long[task] and has_able(members, shape, first, kept):
        end = kept
    worker = fitting_in(groups.room, tasks, shape, first * BLOCK, end)
    while worker != NOWHERE and not is_able(members, shape, worker):
        worker = fitting_in(groups.room, tasks, shape, worker + 1, end)
    return worker


@inlined
def start(groups: Groups, members: Membership, tasks: Tasks, group: int, task: int, out: Outbox) -> bool:
    """Start a task if a worker has room for it; return whether it was."""
    worker = find_worker(groups, members, tasks, group, task)
    if worker == NOWHERE:
        return False
    take(groups.room, tasks, tasks.shape[task], worker)
    post(out, START, group, worker, task, worker)
    return True


@inlined
def on_deal(roles: Pigeon, tasks: Tasks, message: np.void, out: Outbox) -> None:
    """Start a task, or let it wait; a task that the group could not hold goes back."""
    groups, members, group, task = roles.groups, roles.members, message["to"], message["task"]
    if not has_able(members, tasks.shape[task], groups.block[2 * group], groups.block[2 * group + 2]):
        give_up(roles.batches, group, task, out)
        return
    queue = LONG if groups.is_long[task] else SHORT
    if groups.head[group, queue] == NOBODY and start(groups, members, tasks, group, task, out):
        return
    groups.next[task] = NOBODY
    if groups.head[group, queue] == NOBODY:
        groups.head[group, queue] = task
    else:
        groups.next[groups.tail[group, queue]] = task
    groups.tail[group, queue] = task


@inlined
def give_up(batches: Batches, group: int, task: int, out: Outbox) -> None:
    """Send a task back to its distributor."""
    row = post(out, BOUNCED, group, batches.scheduler[batches.of_task[task]], task, NOBODY)
    row["batch"], row["reason"] = batches.of_task[task], NOT_THERE


@inlined
def serve_group(groups: Groups, members: Membership, tasks: Tasks, group: int, out: Outbox) -> None:
    """Start the first tasks of the queues as long as there is room, by weight."""
    while True:
        turn = SHORT
        if groups.head[group, SHORT] == NOBODY or (
            groups.turns[group] >= groups.weight and groups.head[group, LONG] != NOBODY
        ):
            turn = LONG
        if not start_first(groups, members, tasks, group, turn, out) and not start_first(
            groups, members, tasks, group, 1 - turn, out
        ):
            return


@inlined
def start_first(groups: Groups, members: Membership, tasks: Tasks, group: int, queue: int, out: Outbox) -> bool:
    """Start the first task of a queue if it fits; return whether it was."""
    task = groups.head[group, queue]
    if task == NOBODY or not start(groups, members, tasks, group, task, out):
        return False
    groups.head[group, queue] = groups.next[task]
    if queue == LONG or groups.head[group, LONG] == NOBODY:
        groups.turns[group] = 0
    else:
        groups.turns[group] += 1
    return True


@inlined
def send_waiting_back(roles: Pigeon, tasks: Tasks, group: int, queue: int, out: Outbox) -> None:
    """Send back what waits in a group that could no longer hold it."""
    groups, before, task = roles.groups, NOBODY, roles.groups.head[group, queue]
    while task != NOBODY:
        after = groups.next[task]
        if has_able(roles.members, tasks.shape[task], groups.block[2 * group], groups.block[2 * group + 2]):
            before = task
        else:
            give_up(roles.batches, group, task, out)
            if before == NOBODY:
                groups.head[group, queue] = after
            else:
                groups.next[before] = after
        task = after
    groups.tail[group, queue] = before


# -- workers, and all together -----------------------------------------------------------------------------------------


@inlined
def free_room(groups: Groups, worker: int, task: int, reason: int, out: Outbox) -> None:
    """Tell the master that an attempt is over."""
    row = post(out, OVER, worker, groups.of_worker[worker], task, worker)
    row["reason"] = reason


@inlined
def on_group_change(roles: Pigeon, tasks: Tasks, message: np.void, out: Outbox) -> int:
    """Announce a change of the fleet to its worker and its master; return the group."""
    groups, workers, worker, change = roles.groups, roles.workers, message["machine"], message["count"]
    group = groups.of_worker[worker]
    resize_worker(workers, roles.batches, tasks, change, worker, out)
    for place in range(out.counts.posted):
        free_room(groups, worker, out.row[place]["task"], MACHINE_LOST, out)
    note_change(roles.members, workers.own, tasks, worker, workers.is_there[change])
    shift(groups.room, worker, workers.capacity, change if workers.is_there[change] else GONE)
    send_waiting_back(roles, tasks, group, SHORT, out)
    send_waiting_back(roles, tasks, group, LONG, out)
    deal_stranded(roles, out)
    return group


@inlined
def handle_pigeon(roles: Pigeon, tasks: Tasks, now: float, message: np.void, out: Outbox) -> None:
    """Handle one message of a Pigeon federation."""
    kind, to, batches, groups = message["kind"], message["to"], roles.batches, roles.groups
    if kind == ARRIVE:
        on_batch_arrive(roles.submitter, batches, message, out)
    elif kind == DONE:
        on_batch_done(roles.submitter, batches, message, out)
    elif kind == SUBMIT:
        batch = message["batch"]
        deal(roles, batch, batches.first[batch], batches.first[batch + 1], message["travelled"], out)
    elif kind == BOUNCED:
        deal_again(roles, message["task"], out)
    elif kind == DEAL:
        on_deal(roles, tasks, message, out)
    elif kind == START:
        on_start(roles, tasks, message, now, out)
    elif kind == EXITED:
        end_attempt(roles.workers, batches, tasks, message, out)
        free_room(groups, to, message["task"], 0, out)
    elif kind == OVER:
        give_back(groups.room, tasks, tasks.shape[message["task"]], message["machine"])
        serve_group(groups, roles.members, tasks, to, out)
    elif kind == CHANGE:
        serve_group(groups, roles.members, tasks, on_group_change(roles, tasks, message, out), out)


@inlined
def on_start(roles: Pigeon, tasks: Tasks, message: np.void, now: float, out: Outbox) -> None:
    """Begin a task, unless the worker left or shrank since it was sent."""
    workers, worker, task = roles.workers, message["to"], message["task"]
    take(workers.own, tasks, tasks.shape[task], worker)
    message["batch"] = roles.batches.of_task[task]
    if not accept(workers, roles.batches, roles.members, tasks, message, now, out):
        free_room(roles.groups, worker, task, MACHINE_LOST, out)


def serve_pigeon(tables: SharedTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their roles; no role has turns."""
    for place in range(count):
        if not may_serve(tables.out, place):
            break
        handle_pigeon(tables.roles, tables.tasks, now, tables.inbox[place], tables.out)
    return NOBODY
