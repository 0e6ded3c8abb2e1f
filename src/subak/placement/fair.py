"""Joins a fair order with a placement: the tree picks the task, `select_machine` the machine.

One instant: (1) what ended and what waits is told to the tree; (2) shapes that fit a machine that was freed may be
served again, and queues that fell below their limits; (3) a machine is looked for for the next leaf of the order,
and its shape is closed when there is none, until nobody is left; (4) a queue below its guarantee may take a place by
preemption (`reclaim`).

A queue's share is its dominant share of the capacity that is there at the time.

A gang has its turn as one: when none of its tasks is missing, it stands in its leaf's lane by the task that came last,
and counts there as all of them. It starts as a whole, each task where the placement puts it after those before it, or
not at all. Its leaf is then passed over until something ends or machines change: others of its shape may still start.
What was passed over for long has machines held back for it (hold_back.py).
"""
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from subak.fleet.feasible import NOWHERE, shape_fits_any
from subak.fleet.state import FleetState
from subak.marks import inlined, noinline
from subak.placement.claims import Claims, claim
from subak.placement.hold_back import (
    FOR_LEAF,
    FOR_SHAPE,
    HELD_MACHINES,
    LOOK_AT,
    NOT_PASSED_OVER,
    TIMES,
    HeldBack,
    could_hold,
    forget_passed_over,
    hold_for,
    is_for,
    is_holding,
    note_began,
    note_passed_over,
    release,
    without_held,
)
from subak.placement.rigid.start import holds
from subak.placement.whole_gangs import Gangs, claim_gang, completes, note_ended, selected
from subak.queues.hierarchy import (
    NOBODY,
    Hierarchy,
    add_task,
    begin_task,
    cap_leaf,
    close_shape,
    end_task,
    next_leaf,
    open_closed,
    refresh_all,
)
from subak.queues.lanes import Lanes, pop, push
from subak.workload.tasks import Tasks

ENOUGH = 1.0 + 1e-9  # times a guarantee or a limit: what counts as not above it
CAPPED = 0  # of `size`: how many leaves are capped


class Fair(NamedTuple):
    """What a fair order keeps of a run."""

    tree: Hierarchy
    lanes: Lanes  # a lane a leaf
    leaf: np.ndarray  # int32[task]
    least: np.ndarray  # int64[resource], units: the least that any shape asks of it
    queue: np.ndarray  # int32[leaf], its node of the tree of queues
    parent: np.ndarray  # int32[node], NOBODY for the root
    weight: np.ndarray  # float64[node]
    limit: np.ndarray  # float64[node], largest dominant share
    used: np.ndarray  # int64[node, resource], units
    present: np.ndarray  # int64[resource], units of capacity that shares are of
    siblings: np.ndarray  # float64[node], scratch
    waiting: np.ndarray  # int64[node], tasks at or below it
    running: np.ndarray  # int64[node], tasks at or below it
    capped: np.ndarray  # int32[leaf], the leaves that are kept from being served, the first `size`
    size: np.ndarray  # int64[1]: CAPPED
    has_limits: bool
    gangs: Gangs
    held: HeldBack


@inlined
def fair_instant(  # noqa: PLR0913, PLR0917  (what an instant brought)
    fleet: FleetState, tasks: Tasks, fair: Fair, select_machine: Callable[..., int],
    ended: np.ndarray, arrived: np.ndarray, freed: np.ndarray, guarantee: np.ndarray, now: float, claims: Claims,
) -> None:
    """Serve the tree at one instant: *ended* and *arrived* are int32[task], *freed* int32[machine].

    *guarantee* is float64[node] where those within their guarantees go first, else empty.
    """
    if now >= fair.held.clock[LOOK_AT]:
        hold_back(fleet, tasks, fair, now)
    note_instant(fleet, tasks, fair, ended, arrived, freed, claims)
    if guarantee.size > 0:
        note_guarantees(fair, guarantee)
        serve(fleet, tasks, fair, select_machine, guarantee, now, claims)
        uncap(fair)
    serve(fleet, tasks, fair, select_machine, guarantee[:0], now, claims)


@inlined
def note_instant(
    fleet: FleetState, tasks: Tasks, fair: Fair, ended: np.ndarray, arrived: np.ndarray, freed: np.ndarray,
    claims: Claims,
) -> None:
    """Tell the tree what ended, what waits now, and what may be served again."""
    has_gangs = fair.gangs.of_task.size > 0
    for task in ended:
        note_end(fair, tasks, task)
    if has_gangs:
        note_ended(fair.gangs, claims, ended)
    for task in arrived:
        if not has_gangs or completes(fair.gangs, task):
            let_wait(fair, tasks, task)
    if freed.size > 0:
        open_fitting(fleet, tasks, fair, freed)
        if is_news(fair, fleet):
            note_capacity(fair, fleet, tasks)
    if fair.size[CAPPED] > 0 and ended.size > 0:
        uncap_below_limits(fair, tasks)


@inlined
def is_news(fair: Fair, fleet: FleetState) -> bool:
    """Whether other capacity is there than shares are of."""
    news = False
    for resource in range(fair.present.size):
        news |= fair.present[resource] != fleet.present[resource]
    return news


@noinline
def note_guarantees(fair: Fair, guarantee: np.ndarray) -> None:
    """Work out the guarantee of every queue: over its path, its weight by that of the siblings that wait or run."""
    siblings = fair.siblings
    siblings[:] = 0.0
    for node in range(1, fair.parent.size):
        if fair.waiting[node] + fair.running[node] > 0:
            siblings[fair.parent[node]] += fair.weight[node]
    guarantee[0] = 1.0
    for node in range(1, fair.parent.size):
        is_active = fair.waiting[node] + fair.running[node] > 0
        above = guarantee[fair.parent[node]]
        guarantee[node] = above * fair.weight[node] / siblings[fair.parent[node]] if is_active else 0.0


@inlined
def let_wait(fair: Fair, tasks: Tasks, task: int) -> None:
    """Let a task wait in its leaf, and with it all that start together with it."""
    leaf, count = fair.leaf[task], together(fair, task)
    push(fair.lanes, tasks.rank, leaf, task)
    node = fair.queue[leaf]
    while node != NOBODY:
        fair.waiting[node] += count
        node = fair.parent[node]
    for _ in range(count):
        add_task(fair.tree, leaf)


@inlined
def together(fair: Fair, task: int) -> int:
    """Return how many tasks start with a task that waits, itself among them."""
    return int(fair.gangs.left[fair.gangs.of_task[task]]) if fair.gangs.of_task.size > 0 else 1


@inlined
def note_end(fair: Fair, tasks: Tasks, task: int) -> None:
    """Let a task's queues have back what it held."""
    hold(fair, tasks, task, -1)
    end_task(fair.tree, fair.leaf[task])


@inlined
def hold(fair: Fair, tasks: Tasks, task: int, sign: int) -> None:
    """Count what a task holds in all queues above it."""
    node, shape = fair.queue[fair.leaf[task]], tasks.shape[task]
    while node != NOBODY:
        fair.running[node] += sign
        for resource in range(fair.used.shape[1]):
            fair.used[node, resource] += sign * tasks.request[resource, shape]
        node = fair.parent[node]


@inlined
def open_fitting(fleet: FleetState, tasks: Tasks, fair: Fair, freed: np.ndarray) -> None:
    """Open the closed shapes that fit a freed machine."""
    place = 0
    while place < fair.tree.size[0]:
        if shape_fits_any(fleet, tasks, fair.tree.closed[place], freed):
            open_closed(fair.tree, place)
        else:
            place += 1


@inlined
def serve(
    fleet: FleetState, tasks: Tasks, fair: Fair, select_machine: Callable[..., int], guarantee: np.ndarray, now: float,
    claims: Claims,
) -> None:
    """Serve one leaf after another until every leaf is empty, at a limit, or of a shape that fits nowhere.

    With guarantees (float64[node], else empty) only within these.
    """
    while True:
        leaf = next_turn(fleet, tasks, fair, guarantee)
        if leaf == NOBODY:
            return
        task, held = fair.lanes.root[leaf], fair.held
        shape, is_gang = tasks.shape[task], together(fair, task) > 1
        is_it = is_holding(held) and is_for(held, leaf, shape, is_gang)
        if is_holding(held) and not is_it:
            begins = claim_next(fleet, without_held(fleet, held), tasks, fair, select_machine, task, claims)
        else:
            begins = claim_next(fleet, fleet, tasks, fair, select_machine, task, claims)
        if begins:
            start(fair, tasks, leaf)
            note_began(held, leaf, shape, is_gang)
        else:
            note_passed_over(held, leaf, shape, is_gang, tasks.arrival[task], now)
            if is_gang:
                cap(fair, leaf)
            else:
                close_shape(fair.tree, shape)
        if is_it and (begins or holds(fleet, tasks, shape, together(fair, task))):
            if not begins:  # its placement does not want what there is
                forget_passed_over(held, leaf if is_gang else NOBODY, shape)
            let_others_in(fleet, tasks, fair)


@inlined
def claim_next(
    fleet: FleetState, view: FleetState, tasks: Tasks, fair: Fair, select_machine: Callable[..., int], task: int,
    claims: Claims,
) -> bool:
    """Claim what a task, or its gang, needs of the machines in *view*; return whether it starts."""
    if together(fair, task) > 1:
        return claim_gang(fair.gangs, fleet, view, tasks, select_machine, fair.gangs.of_task[task], claims)
    machine = selected(fleet, view, tasks, select_machine, task)
    return bool(machine != NOWHERE and claim(claims, fleet, tasks, task, machine))


@noinline
def let_others_in(fleet: FleetState, tasks: Tasks, fair: Fair) -> None:
    """Let others use the machines that were held back, and have their turns again."""
    count = fair.held.size[HELD_MACHINES]
    release(fleet, fair.held)
    open_fitting(fleet, tasks, fair, fair.held.room.chosen[:count])
    uncap(fair)


@noinline
def hold_back(fleet: FleetState, tasks: Tasks, fair: Fair, now: float) -> None:
    """Hold machines back for who has been passed over longest; what was held in vain is held for others."""
    held = fair.held
    of_leaf, of_shape, times = held.size[FOR_LEAF], held.size[FOR_SHAPE], held.size[TIMES] + 1
    leaf, shape, longest = longest_passed_over(fair)
    while longest + held.after <= now:
        wide = shape if leaf == NOBODY else tasks.shape[fair.lanes.root[leaf]]
        count = 1 if leaf == NOBODY else together(fair, fair.lanes.root[leaf])
        if could_hold(fleet, tasks, held, wide, count):
            is_again = leaf == of_leaf if leaf != NOBODY else shape == of_shape
            if is_holding(held):
                let_others_in(fleet, tasks, fair)
            hold_for(fleet, held, leaf, wide, count, times if is_again else 0, now)
            return
        forget_passed_over(held, leaf, shape)  # too large for all machines that are there
        leaf, shape, longest = longest_passed_over(fair)
    if is_holding(held):  # for who is at a limit now
        let_others_in(fleet, tasks, fair)
    held.clock[LOOK_AT] = longest + held.after


@inlined
def longest_passed_over(fair: Fair) -> tuple[int, int, float]:
    """Return whose first is passed over longest: a leaf, or a shape where it starts by itself; and since when (inf).

    Of equals that of the lower leaf.
    """
    first, shape, longest = int(NOBODY), int(NOBODY), NOT_PASSED_OVER
    for place in range(fair.size[CAPPED]):
        leaf = int(fair.capped[place])
        if goes_before(fair.held.since[leaf], leaf, longest, first):
            first, longest = leaf, fair.held.since[leaf]
    for place in range(fair.tree.size[0]):
        closed = int(fair.tree.closed[place])
        leaf = int(fair.held.shape_leaf[closed])
        if goes_before(fair.held.shape_since[closed], leaf, longest, first):
            first, shape, longest = leaf, closed, fair.held.shape_since[closed]
    return first if shape == NOBODY else int(NOBODY), shape, longest


@inlined
def goes_before(since: float, leaf: int, longest: float, first: int) -> bool:
    """Whether a leaf has been passed over for longer than another, or as long and is the lower one."""
    return bool(since < longest or (since == longest < NOT_PASSED_OVER and leaf < first))


@inlined
def next_turn(fleet: FleetState, tasks: Tasks, fair: Fair, guarantee: np.ndarray) -> int:
    """Return the leaf whose turn it is, or NOBODY; those that a limit forbids are kept back (guarantees as above)."""
    while True:
        leaf = next_leaf(fair.tree, saturated(fleet, fair))
        if leaf == NOBODY:
            return NOBODY
        shape = tasks.shape[fair.lanes.root[leaf]]
        is_over = guarantee.size > 0 and not may_take(fair, tasks, leaf, shape, guarantee)
        if not (is_over or (fair.has_limits and at_limit(fair, tasks, leaf, shape))):
            return int(leaf)
        cap(fair, leaf)


@inlined
def start(fair: Fair, tasks: Tasks, leaf: int) -> None:
    """Take the first task of a leaf, which has got a machine, out of its lane, with all that start together with it."""
    task = pop(fair.lanes, tasks.rank, leaf)
    count, node = together(fair, task), fair.queue[leaf]
    while node != NOBODY:
        fair.waiting[node] -= count
        node = fair.parent[node]
    for _ in range(count):
        hold(fair, tasks, task, 1)
        begin_task(fair.tree, leaf)
    if fair.gangs.of_task.size > 0:
        fair.gangs.missing[fair.gangs.of_task[task]] = count


@inlined
def saturated(fleet: FleetState, fair: Fair) -> int:
    """Return a bit for each resource of which less is free in all than anybody asks for."""
    bits = 0
    for resource in range(fleet.used.size):
        if fleet.present[resource] - fleet.used[resource] < fair.least[resource]:
            bits |= 1 << resource
    return bits


@inlined
def at_limit(fair: Fair, tasks: Tasks, leaf: int, shape: int) -> bool:
    """Whether what is first in a leaf would lift a queue above its limit."""
    node, count = fair.queue[leaf], together(fair, fair.lanes.root[leaf])
    while node != NOBODY:
        if fair.limit[node] < np.inf and share_with(fair, tasks, node, shape, count) > fair.limit[node] * ENOUGH:
            return True
        node = fair.parent[node]
    return False


@inlined
def share_with(fair: Fair, tasks: Tasks, node: int, shape: int, sign: int) -> float:
    """Return a queue's dominant share with *sign* tasks of a shape more, less (-1), or as it is (0)."""
    share = 0.0
    for resource in range(fair.used.shape[1]):
        amount = fair.used[node, resource] + sign * tasks.request[resource, shape]
        share = max(share, amount / max(fair.present[resource], 1))
    return share


@inlined
def may_take(fair: Fair, tasks: Tasks, leaf: int, shape: int, guarantee: np.ndarray) -> bool:
    """Whether what is first in a leaf leaves its queue, and all above it, within their guarantees and limits."""
    node, count = fair.queue[leaf], together(fair, fair.lanes.root[leaf])
    while node > 0:
        most = min(guarantee[node], fair.limit[node])
        if share_with(fair, tasks, node, shape, count) > most * ENOUGH:
            return False
        node = fair.parent[node]
    return True


@inlined
def cap(fair: Fair, leaf: int) -> None:
    """Let a leaf be served no more for now."""
    fair.capped[fair.size[CAPPED]] = leaf
    fair.size[CAPPED] += 1
    cap_leaf(fair.tree, leaf, True)


@noinline
def uncap(fair: Fair) -> None:
    """Let all leaves that were kept back be served again."""
    for place in range(fair.size[CAPPED]):
        cap_leaf(fair.tree, fair.capped[place], False)
    fair.size[CAPPED] = 0


@noinline
def uncap_below_limits(fair: Fair, tasks: Tasks) -> None:
    """Let those leaves be served again whose next task no limit forbids any more."""
    kept = 0
    for place in range(fair.size[CAPPED]):
        leaf = fair.capped[place]
        if at_limit(fair, tasks, leaf, tasks.shape[fair.lanes.root[leaf]]):
            fair.held.since[leaf] = NOT_PASSED_OVER  # for want of room, as it has enough
            fair.capped[kept] = leaf
            kept += 1
        else:
            cap_leaf(fair.tree, leaf, False)
    fair.size[CAPPED] = kept


@noinline
def note_capacity(fair: Fair, fleet: FleetState, tasks: Tasks) -> None:
    """Let shares be of the capacity that is there now."""
    for resource in range(fair.present.size):
        fair.present[resource] = fleet.present[resource]
    for shape in range(fair.tree.vector.shape[0]):
        fair.tree.dominant[shape] = 0.0
        for resource in range(fair.present.size):
            share = tasks.request[resource, shape] / max(fair.present[resource], 1)
            fair.tree.vector[shape, resource] = share
            fair.tree.dominant[shape] = max(fair.tree.dominant[shape], share)
        if fair.tree.dominant[shape] == 0.0:
            fair.tree.dominant[shape] = 1.0
    refresh_all(fair.tree)
    uncap(fair)
