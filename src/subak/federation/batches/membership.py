"""Knows which workers are present and which tasks each could hold, and draws from them.

Everybody who draws a worker draws from those that are there, meet the shape's constraints and have its request as
capacity. Workers are numbered so that those kept for short jobs come first.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.index import count_bits, lowest_bit
from subak.fleet.state import BLOCK, NO_BITS, ONE, FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.placement.fits.random_fit import random_below
from subak.workload.tasks import Tasks

NOWHERE = -1
TRIES = 32  # at a random number before the workers are counted
SPARSE = 4  # fewer than one in so many: they are listed, not tried


class Membership(NamedTuple):
    """Who could hold what; the lists are room to work in."""

    able: np.ndarray  # uint64[shape, block], bit w of word b: worker 64 b + w could hold the shape
    able_count: np.ndarray  # int64[shape], workers that could
    general_count: np.ndarray  # int64[shape], of them in the general partition
    general: int  # the first worker that is not kept for short jobs
    workers: int
    random: np.ndarray  # uint64[1]
    drawn: np.ndarray  # int32[worker], the result of a draw
    mark: np.ndarray  # int64[worker], number of the draw it was last drawn in
    draws: np.ndarray  # int64[1]


def build_membership(fleet: FleetState, tasks: Tasks, general: int, seed: int) -> Membership:
    """Return who is a member at the beginning; *fleet* is only read."""
    shapes = tasks.constraint_set.size
    members = Membership(
        np.zeros((shapes, fleet.allowed.shape[1]), np.uint64), np.zeros(shapes, np.int64), np.zeros(shapes, np.int64),
        general, fleet.machines, np.array([seed], np.uint64), np.zeros(fleet.machines, np.int32),
        np.zeros(fleet.machines, np.int64), np.zeros(1, np.int64),
    )
    bits = np.unpackbits(fleet.allowed.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    there = fleet.free[0] >= 0
    for shape in range(shapes):
        able = bits[tasks.constraint_set[shape]].astype(bool) & there
        able &= (fleet.capacity >= tasks.request[:, shape, None]).all(axis=0)
        members.able[shape] = np.packbits(able, bitorder="little").view("<u8")
        members.able_count[shape], members.general_count[shape] = able.sum(), able[general:].sum()
    return members


@inlined
def is_able(members: Membership, shape: int, worker: int) -> bool:
    """Whether the worker is there and could hold the shape when it is idle."""
    return bool((members.able[shape, worker // BLOCK] >> np.uint64(worker % BLOCK)) & ONE != NO_BITS)


@kernel
def note_change(members: Membership, fleet: FleetState, tasks: Tasks, worker: int, is_there: bool) -> None:
    """Announce that a worker came, left or has another capacity, that of *fleet*."""
    bit = ONE << np.uint64(worker % BLOCK)
    for shape in range(members.able_count.size):
        word = fleet.allowed[tasks.constraint_set[shape], worker // BLOCK]
        able = is_there and (word & bit) != NO_BITS
        for resource in range(fleet.capacity.shape[0]):
            able = able and fleet.capacity[resource, worker] >= tasks.request[resource, shape]
        if able == is_able(members, shape, worker):
            continue
        members.able[shape, worker // BLOCK] ^= bit
        step = 1 if able else -1
        members.able_count[shape] += step
        members.general_count[shape] += step if worker >= members.general else 0


@inlined
def draw_distinct(members: Membership, shape: int, wanted: int) -> int:
    """Draw up to *wanted* different workers, evenly, into `drawn`; return how many."""
    wanted = min(wanted, members.able_count[shape])
    if 2 * wanted > members.able_count[shape] or SPARSE * members.able_count[shape] < members.workers:
        return draw_from_list(members, shape, wanted)
    members.draws[0] += 1
    number, found = members.draws[0], 0
    while found < wanted:
        worker = random_below(members.random, members.workers)
        if members.mark[worker] != number and is_able(members, shape, worker):
            members.mark[worker] = number
            members.drawn[found] = worker
            found += 1
    return found


@kernel
def draw_from_list(members: Membership, shape: int, wanted: int) -> int:
    """Draw by listing all, and shuffling as far as wanted."""
    drawn, listed = members.drawn, 0
    for block in range(members.able.shape[1]):
        word = members.able[shape, block]
        while word != NO_BITS:
            drawn[listed] = block * BLOCK + lowest_bit(word)
            listed += 1
            word &= word - ONE
    for place in range(wanted):
        other = place + random_below(members.random, listed - place)
        drawn[place], drawn[other] = drawn[other], drawn[place]
    return wanted


@kernel
def draw_one(members: Membership, shape: int, first: int, end: int, avoided: np.ndarray) -> int:
    """Draw a worker from *first* .. *end* - 1 that is not in *avoided* (uint64[block]), NOWHERE if there is none."""
    if first >= end:
        return NOWHERE
    for _ in range(TRIES):
        worker = first + random_below(members.random, end - first)
        bit = ONE << np.uint64(worker % BLOCK)
        if (members.able[shape, worker // BLOCK] & ~avoided[worker // BLOCK] & bit) != NO_BITS:
            return worker
    count = np.uint64(0)
    for block in range(first // BLOCK, (end - 1) // BLOCK + 1):
        count += count_bits(members.able[shape, block] & ~avoided[block] & span(block, first, end))
    if count == np.uint64(0):
        return NOWHERE
    left = random_below(members.random, int(count))
    for block in range(first // BLOCK, (end - 1) // BLOCK + 1):
        word = members.able[shape, block] & ~avoided[block] & span(block, first, end)
        here = int(count_bits(word))
        if left < here:
            for _ in range(left):
                word &= word - ONE
            return block * BLOCK + lowest_bit(word)
        left -= here
    return NOWHERE


@inlined
def span(block: int, first: int, end: int) -> np.uint64:
    """Return the bits of a block that lie in *first* .. *end* - 1."""
    word = ~NO_BITS
    if first > block * BLOCK:
        word &= ~NO_BITS << np.uint64(first - block * BLOCK)
    if end < (block + 1) * BLOCK:
        word &= ~(~NO_BITS << np.uint64(end - block * BLOCK))
    return word
