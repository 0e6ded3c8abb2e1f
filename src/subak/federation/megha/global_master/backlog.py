"""A global master's queues: served in turns or by a fair order, each in its own order.

A task that fits nowhere steps behind all others. Alike tasks of a queue stand in one lane, because where one fits
nowhere the others do not either. A round serves the lanes of a queue by their first tasks; a lane whose first task fits
nowhere leaves the round, which is Megha's rescheduling at the end of the queue; the next round begins when something
was freed in the view.
"""
from subak.federation.megha.global_master.hold_back import as_held_for
from subak.federation.megha.global_master.queue_order import queue_in_turn, tell_queue
from subak.federation.megha.global_master.state import (
    PHASE_ENDED,
    PHASE_WAITING,
    GlobalMaster,
)
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import Topology
from subak.federation.messages import DONE, NOBODY, Outbox, is_filling, post
from subak.fleet.index import block_may_fit
from subak.fleet.state import LOG, FleetState
from subak.marks import inlined
from subak.queues.lanes import (
    ACTIVE_LANES,
    CONTENDERS,
    NO_PLACE,
    Lanes,
    contend,
    drop_top,
    pop,
    push,
    rise,
    settle_top,
)


@inlined
def lanes_of(master: GlobalMaster, queue: int) -> Lanes:
    """Return the lanes of one queue: the same heaps, with the queue's own list of active lanes and its own round."""
    first, end, lanes = master.lane_span[queue, 0], master.lane_span[queue, 1], master.lanes
    return Lanes(
        lanes.root, lanes.length, lanes.child, lanes.sibling, lanes.score,
        lanes.active[first:end], lanes.position, lanes.contender[first:end], lanes.place, master.lane_size[queue],
        lanes.by_shape, lanes.number,
    )


@inlined
def enqueue(master: GlobalMaster, tasks: OpenTasks, task: int) -> None:
    """Let a task wait in its lane; a lane that was empty joins the round."""
    if master.task[task]["queued"]:
        return
    master.task[task]["queued"] = True
    master.counts.queued += 1
    lane = tasks.lane[task]
    lanes = lanes_of(master, tasks.queue[task])
    was_empty = lanes.root[lane] == NOBODY
    push(lanes, tasks.rank, lane, task)
    if lanes.place[lane] != NO_PLACE:
        rise(lanes, tasks.rank, lanes.place[lane])
    elif was_empty:
        contend(lanes, tasks.rank, lane)


@inlined
def choose(master: GlobalMaster, topology: Topology, tasks: OpenTasks, out: Outbox) -> int:
    """Return the queue whose turn it is, of those with a task to place, or NOBODY; and where the outbox is filling."""
    if master.queue_order.queue.size > 0:
        return choose_fairly(master, topology, tasks, out)
    place = master.counts.next_queue
    for _ in range(master.counts.own_queues):
        queue = master.own[place]
        place = place + 1 if place + 1 < master.counts.own_queues else 0
        forget_stale(master, tasks, queue, out)
        if is_filling(out):
            return NOBODY
        if master.lane_size[queue, CONTENDERS] > 0:
            master.counts.next_queue = place
            return int(queue)
    return NOBODY


@inlined
def choose_fairly(master: GlobalMaster, topology: Topology, tasks: OpenTasks, out: Outbox) -> int:
    """Return the queue that the fair order serves next, or NOBODY."""
    for queue in range(master.queue_order.leaf.size):
        shape = NOBODY
        if topology.queue[queue]["owner"] == master.number:
            forget_stale(master, tasks, queue, out)
            if master.lane_size[queue, CONTENDERS] > 0:
                lanes = lanes_of(master, queue)
                shape = tasks.shape[lanes.root[lanes.contender[0]]]
        if is_filling(out):
            return NOBODY
        tell_queue(master.queue_order, tasks, queue, master.total, master.fleet.present, shape)
    return queue_in_turn(master.queue_order)


@inlined
def forget_stale(master: GlobalMaster, tasks: OpenTasks, queue: int, out: Outbox) -> None:
    """Take tasks off the top that no longer wait: they were withdrawn, or a restarted master learned that they run.

    Any number may have been withdrawn: whoever asked takes another turn when the outbox is filling.
    """
    lanes = lanes_of(master, queue)
    while lanes.size[CONTENDERS] > 0 and not is_filling(out):
        task = lanes.root[lanes.contender[0]]
        if master.task[task]["phase"] == PHASE_WAITING:
            return
        leave_first(master, lanes, tasks)
        if master.task[task]["phase"] == PHASE_ENDED:
            say_done(master, tasks, task, out)


@inlined
def leave_first(master: GlobalMaster, lanes: Lanes, tasks: OpenTasks) -> None:
    """Take the task that is served first out of its lane."""
    lane = lanes.contender[0]
    master.counts.queued -= 1
    master.task[pop(lanes, tasks.rank, lane)]["queued"] = False
    if lanes.root[lane] == NOBODY:
        drop_top(lanes, tasks.rank)
    else:
        settle_top(lanes, tasks.rank)


@inlined
def say_done(master: GlobalMaster, tasks: OpenTasks, task: int, out: Outbox) -> None:
    """Tell the submitter that a task has ended, and whether it is in a lane yet, which needs its row."""
    me = master.task[task]
    row = post(out, DONE, master.number, master.number, tasks.number[task], NOBODY)
    row["row"], row["round"], row["reason"], row["code"] = task, tasks.round[task], me["reason"], me["code"]
    row["incarnation"], row["count"] = master.counts.incarnation, me["queued"]
    row["refusals"], row["repartitions"], row["preempted"] = me["refusals"], me["repartitioned"], me["preempted"]
    row["lost"] = me["lost"]


@inlined
def set_aside(lanes: Lanes, tasks: OpenTasks) -> None:
    """Let the lane that is served first wait for the next round."""
    drop_top(lanes, tasks.rank)


@inlined
def wake_lanes(master: GlobalMaster, tasks: OpenTasks) -> None:
    """Begin a round with the lanes that may fit where something was freed since the last round began."""
    scanned, count = master.counts.scanned, master.fleet.freed_blocks[LOG]
    if scanned == count:
        return
    master.counts.scanned = count
    for own in master.own[: master.counts.own_queues]:
        lanes = lanes_of(master, own)
        for place in range(lanes.size[ACTIVE_LANES]):
            lane = lanes.active[place]
            if lanes.place[lane] == NO_PLACE and may_fit_now(master, tasks, lane, scanned, count):
                contend(lanes, tasks.rank, lane)


@inlined
def may_fit_now(master: GlobalMaster, tasks: OpenTasks, lane: int, since: int, count: int) -> bool:
    """Whether the first of a lane may fit where something was freed since then."""
    shape = tasks.shape[master.lanes.root[lane]]
    if lane == master.holding.search.for_lane:
        return may_fit_since(as_held_for(master.fleet, master.holding, master.holding.open), tasks, shape, since, count)
    return may_fit_since(master.fleet, tasks, shape, since, count)


@inlined
def may_fit_since(view: FleetState, tasks: OpenTasks, shape: int, since: int, count: int) -> bool:
    """Whether the shape may fit a block in which something was freed since then."""
    if count - since > LOG:
        return True
    for number in range(since, count):  # noqa: SIM110
        if block_may_fit(view, tasks, shape, view.freed_blocks[number % LOG]):
            return True
    return False
