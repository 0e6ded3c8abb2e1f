"""Holds machines back for tasks that were passed over for too long.

Where small tasks keep coming, a wide task finds no machine with enough free at once, and a gang never enough machines:
each time its turn comes in vain, and others take what was freed. From *after* seconds of that on, machines are held
back for it, for one such at a time: those that have most free for it, as many as could hold all of it when idle. Only
it may start there. Each time *after* seconds more pass in vain, twice as many are held, up to sixteen times as many,
since what runs there may be long.

It is passed over from its first turn in vain on: a gang until it starts, a task until one of its shape does.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.index import SEEN, block_may_fit, holding_word, lowest_bit
from subak.fleet.shortlists import note_change, same_lists
from subak.fleet.state import BLOCK, LOG, NO_BITS, ONE, FleetState, all_open
from subak.marks import inlined, noinline
from subak.placement.rigid.start import copies
from subak.queues.lanes import NOBODY
from subak.workload.tasks import Shapes

NOT_PASSED_OVER = np.inf
HELD_MACHINES, FOR_LEAF, FOR_SHAPE, TIMES = range(4)  # of `size`
LOOK_AT = 0  # of `clock`
TIMES_MAX = 4  # of doubling: to all machines it took 4 points of a crowded fleet's use, for one task at a time


class Room(NamedTuple):
    """How many tasks of a shape machines could hold, and those that were chosen of them."""

    idle: np.ndarray  # int64[padded machine], when idle
    now: np.ndarray  # int64[padded machine], beside what runs there
    chosen: np.ndarray  # int32[padded machine], in the order of their choice


class HeldBack(NamedTuple):
    """The machines that are held back, and what has been passed over since when."""

    after: float  # seconds; inf: nothing is held back
    since: np.ndarray  # float64[leaf], s: of gangs
    shape_since: np.ndarray  # float64[shape], s: of tasks that start by themselves
    shape_leaf: np.ndarray  # int32[shape], the leaf whose turn came in vain first
    open: np.ndarray  # uint64[block], the machines that are not held back
    frontier: np.ndarray  # int64[2, shape], of searches among those
    room: Room  # `chosen`: those that are held back, the first `size`
    size: np.ndarray  # int64[4]: HELD_MACHINES, FOR_LEAF (of a gang, or NOBODY), FOR_SHAPE (or NOBODY), TIMES in vain
    clock: np.ndarray  # float64[1]: LOOK_AT, s


def build_held_back(fleet: FleetState, leaves: int, after: float) -> HeldBack:
    """Return that nothing is held back; *leaves* of the order."""
    shapes, machines = fleet.frontier.shape[1], fleet.free.shape[1]
    return HeldBack(
        after, since=np.full(leaves, NOT_PASSED_OVER), shape_since=np.full(shapes, NOT_PASSED_OVER),
        shape_leaf=np.zeros(shapes, np.int32),
        open=all_open(machines), frontier=fleet.frontier.copy(), room=build_room(machines),
        size=np.array([0, NOBODY, NOBODY, 0]), clock=np.full(1, np.inf))


def build_room(machines: int) -> Room:
    """Return room for what is found out of so many machines."""
    return Room(np.zeros(machines, np.int64), np.zeros(machines, np.int64), np.empty(machines, np.int32))


@inlined
def is_holding(held: HeldBack) -> bool:
    """Whether machines are held back."""
    return bool(held.size[HELD_MACHINES] > 0)


@inlined
def is_for(held: HeldBack, leaf: int, shape: int, is_gang: bool) -> bool:
    """Whether it is the first of this leaf for which machines are held back."""
    return bool(held.size[FOR_LEAF] == leaf if is_gang else held.size[FOR_SHAPE] == shape)


@noinline
def without_held(fleet: FleetState, held: HeldBack) -> FleetState:
    """Return the fleet as others may use it."""
    return FleetState(
        fleet.free, fleet.capacity, fleet.block_free_max, fleet.block_at_max, fleet.allowed, held.open,
        fleet.freed_blocks,
        held.frontier, fleet.used, fleet.present, fleet.scale, fleet.random, same_lists(fleet.lists), fleet.machines,
    )


@inlined
def note_passed_over(held: HeldBack, leaf: int, shape: int, is_gang: bool, arrival: float, now: float) -> None:
    """Note that the turn of the first of a leaf came in vain; nobody has been passed over for longer than it waits."""
    if is_gang:
        held.since[leaf] = longer_of(held.since[leaf], arrival, now)
        since = held.since[leaf]
    else:
        if held.shape_since[shape] == NOT_PASSED_OVER:
            held.shape_leaf[shape] = leaf
        held.shape_since[shape] = longer_of(held.shape_since[shape], arrival, now)
        since = held.shape_since[shape]
    if not is_holding(held):
        held.clock[LOOK_AT] = min(held.clock[LOOK_AT], since + held.after)


@inlined
def longer_of(since: float, arrival: float, now: float) -> float:
    """Return since when something is passed over whose turn came in vain now."""
    return now if since == NOT_PASSED_OVER else max(since, arrival)


@inlined
def forget_passed_over(held: HeldBack, leaf: int, shape: int) -> None:
    """Take it that the gang of a leaf, or, NOBODY, a shape, is not passed over."""
    if leaf != NOBODY:
        held.since[leaf] = NOT_PASSED_OVER
    else:
        held.shape_since[shape] = NOT_PASSED_OVER


@inlined
def note_began(held: HeldBack, leaf: int, shape: int, is_gang: bool) -> None:
    """Note that the first of a leaf has started.

    Where machines were held back for a single one, others of its shape have been passed over as long.
    """
    if is_gang:
        held.since[leaf] = NOT_PASSED_OVER
    elif not is_for(held, leaf, shape, is_gang):
        held.shape_since[shape] = NOT_PASSED_OVER


@noinline
def release(fleet: FleetState, held: HeldBack) -> None:
    """Let others use the machines that are held back again; they stand in `chosen` until others are held."""
    for place in range(held.size[HELD_MACHINES]):
        open_to_others(held.open, held.room.chosen[place])
        note_change(fleet.lists, held.room.chosen[place])
    held.size[HELD_MACHINES], held.size[FOR_LEAF], held.size[FOR_SHAPE] = 0, NOBODY, NOBODY
    held.clock[LOOK_AT] = -np.inf


@noinline
def could_hold(fleet: FleetState, shapes: Shapes, held: HeldBack, shape: int, count: int) -> bool:
    """Whether all machines together could hold *count* tasks of a shape when idle; note how many each."""
    note_room(fleet, shapes, held.room, shape, count)
    return bool(held.room.idle.sum() >= count)


@noinline
def hold_for(fleet: FleetState, held: HeldBack, leaf: int, shape: int, count: int, times: int, now: float) -> None:
    """Hold machines back for a leaf's gang of *count* or, NOBODY, one task of a shape, which `could_hold` has noted.

    After *times* in vain twice as many for each.
    """
    number = choose(held.room, count << min(times, TIMES_MAX), count)
    for place in range(number):
        close_to_others(held.open, held.room.chosen[place])
    held.size[HELD_MACHINES] = number
    held.size[FOR_LEAF], held.size[FOR_SHAPE] = leaf, shape if leaf == NOBODY else NOBODY
    held.size[TIMES], held.clock[LOOK_AT] = times, now + held.after
    held.frontier[SEEN, :] = fleet.freed_blocks[LOG] - LOG - 1  # so that a search begins at the first block


@inlined
def open_to_others(bits: np.ndarray, machine: int) -> None:
    """Let others use a machine, in uint64[block]."""
    bits[machine // BLOCK] |= ONE << np.uint64(machine % BLOCK)


@inlined
def close_to_others(bits: np.ndarray, machine: int) -> None:
    """Let nobody else use a machine, in uint64[block]."""
    bits[machine // BLOCK] &= ~(ONE << np.uint64(machine % BLOCK))


@noinline
def choose(room: Room, wanted: int, most: int) -> int:
    """Choose machines for *wanted* tasks, *most* of a machine at most; return how many.

    Those come first that have room for most tasks now, of equals the lower machine.
    """
    number, level = 0, most
    while wanted > 0 and level >= 0:
        lower = -1
        for machine in range(room.idle.size):
            if room.now[machine] == level and room.idle[machine] > 0 and wanted > 0:
                wanted -= room.idle[machine]
                room.chosen[number] = machine
                number += 1
            elif room.now[machine] < level:
                lower = max(lower, room.now[machine])
        level = lower
    return number


@noinline
def note_room(fleet: FleetState, shapes: Shapes, room: Room, shape: int, most: int) -> None:
    """Note how many tasks of a shape each machine could hold when idle, and how many now, *most* of each at most."""
    room.idle[:] = 0
    room.now[:] = 0
    for block in range(fleet.allowed.shape[1]):
        word = holding_word(fleet, shapes, shape, block)
        may_fit = block_may_fit(fleet, shapes, shape, block)
        while word != NO_BITS:
            machine = block * BLOCK + lowest_bit(word)
            word &= word - ONE
            room.idle[machine] = idle_copies(fleet, shapes, shape, machine, most)
            if may_fit:
                room.now[machine] = copies(fleet, shapes, shape, machine, most)


@inlined
def idle_copies(fleet: FleetState, shapes: Shapes, shape: int, machine: int, most: int) -> int:
    """Return how many tasks of a shape a machine could hold when idle, *most* at most."""
    for row in range(fleet.capacity.shape[0]):
        if shapes.request[row, shape] > 0:
            most = min(most, fleet.capacity[row, machine] // shapes.request[row, shape])
    return most
