"""Indexes machines in blocks of 64: a bit for each machine, and the most that is free in each block.

A search asks a block's summary first and skips it when no machine can fit. Otherwise it computes the word of the
machines that fit: the constraint set's bit-vector AND one bit-vector per resource (Megha IV-B.3). So it skips, and
stays exact. A search from the first machine on begins where the last one for the same shape ended, or at a block in
which something was freed since then.

Indices are unsigned because the compiler then vectorises: 64 machines against one amount take 4 ns, 30 with signed.
"""
from typing import Any

import numpy as np

from subak.fleet.state import BLOCK, FREE_WHEN_ABSENT, LOG, NO_BITS, ONE, FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.workload.tasks import Shapes

SEEN, FRONTIER = 0, 1  # rows of FleetState.frontier
LANES_OF_BLOCK = np.uint64(BLOCK)
MOST = 2**31 - 1
ALL_BITS = np.uint64(2**64 - 1)
PAIRS, QUADS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
NIBBLES, BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


@inlined
def lower_summary(fleet: FleetState, resource: int, block: int) -> None:
    """Recompute a summary after the last machine that held the maximum may have lost some."""
    lanes = fleet.free[resource, block * BLOCK:(block + 1) * BLOCK]
    largest, count = np.int32(FREE_WHEN_ABSENT), 0
    for lane in range(LANES_OF_BLOCK):  # as fast as ever when compiled, and six times as fast in plain Python
        largest = max(largest, lanes[lane])
    for lane in range(LANES_OF_BLOCK):
        if lanes[lane] == largest:
            count += 1
    fleet.block_free_max[resource, block], fleet.block_at_max[resource, block] = largest, count


@inlined
def raise_summary(fleet: FleetState, resource: int, block: int, amount: int) -> None:
    """Keep a summary true after one of its machines came to have *amount* free, which is more than before."""
    if amount > fleet.block_free_max[resource, block]:
        fleet.block_free_max[resource, block], fleet.block_at_max[resource, block] = amount, 1
    elif amount == fleet.block_free_max[resource, block]:
        fleet.block_at_max[resource, block] += 1


@inlined
def note_freed_block(fleet: FleetState, block: int) -> None:
    """Remember that a machine of the block came to have more free."""
    count = fleet.freed_blocks[LOG]
    fleet.freed_blocks[count % LOG] = block
    fleet.freed_blocks[LOG] = count + 1


@kernel
def first_block(fleet: FleetState, shape: int) -> int:
    """Return a block before which no machine fits the shape."""
    seen, block = fleet.frontier[SEEN, shape], fleet.frontier[FRONTIER, shape]
    count = fleet.freed_blocks[LOG]
    if count - seen > LOG:
        return 0
    for number in range(seen, count):
        block = min(block, fleet.freed_blocks[number % LOG])
    return block


@kernel
def note_first_block(fleet: FleetState, shape: int, block: int) -> None:
    """Remember that no machine before the block fits the shape now."""
    fleet.frontier[SEEN, shape] = fleet.freed_blocks[LOG]
    fleet.frontier[FRONTIER, shape] = block


@inlined
def block_may_fit(fleet: FleetState, shapes: Shapes, shape: int, block: int) -> bool:
    """Whether some machine of the block may meet the shape's constraints and have its request free."""
    if fleet.allowed[shapes.constraint_set[shape], block] & fleet.open[block] == NO_BITS:
        return False
    for resource in range(fleet.free.shape[0]):
        if fleet.block_free_max[resource, block] < shapes.request[resource, shape]:
            return False
    return True


@kernel
def has_at_least(amounts: np.ndarray, resource: int, block: int, amount: int) -> np.uint64:
    """Return the word of the block's machines that have at least *amount* in int32[resource, padded machine]."""
    first = np.uint64(block) * LANES_OF_BLOCK
    word = NO_BITS
    for lane in range(LANES_OF_BLOCK):
        word |= np.uint64(amounts[resource, first + lane] >= amount) << lane
    return word


@kernel
def has_at_most(amounts: np.ndarray, resource: int, block: int, amount: int) -> np.uint64:
    """Return the word of the places of a block that have at most *amount* in int32[resource, padded place]."""
    first = np.uint64(block) * LANES_OF_BLOCK
    word = NO_BITS
    for lane in range(LANES_OF_BLOCK):
        word |= np.uint64(amounts[resource, first + lane] <= amount) << lane
    return word


@inlined
def fitting_word(fleet: FleetState, shapes: Shapes, shape: int, block: int) -> np.uint64:
    """Return the word of the block's machines that meet the shape's constraints and have its request free."""
    return word_of(fleet, fleet.free, shapes, shape, block)


@kernel
def holding_word(fleet: FleetState, shapes: Shapes, shape: int, block: int) -> np.uint64:
    """Return the word of the block's machines that could hold the shape when they are idle."""
    return word_of(fleet, fleet.capacity, shapes, shape, block)


@inlined
def word_of(fleet: FleetState, amounts: np.ndarray, shapes: Shapes, shape: int, block: int) -> np.uint64:
    """Return the word of the block's machines that meet the constraints and have the request in *amounts*."""
    word = fleet.allowed[shapes.constraint_set[shape], block] & fleet.open[block]
    for resource in range(amounts.shape[0]):
        if word != NO_BITS:
            word &= has_at_least(amounts, resource, block, shapes.request[resource, shape])
    return word


@kernel
def least_in_word(numbers: np.ndarray, block: int, word: np.uint64) -> int:
    """Return the least of int32[padded machine] over the machines of a word, the largest int32 if it is empty."""
    first = np.uint64(block) * LANES_OF_BLOCK
    least: Any = np.int32(MOST)
    for lane in range(LANES_OF_BLOCK):
        number = numbers[first + lane] if (word >> lane) & ONE != NO_BITS else np.int32(MOST)
        least = min(least, number)
    return least


@kernel
def equal_word(numbers: np.ndarray, block: int, number: int) -> np.uint64:
    """Return the word of the block's machines at which int32[padded machine] is *number*."""
    first = np.uint64(block) * LANES_OF_BLOCK
    word = NO_BITS
    for lane in range(LANES_OF_BLOCK):
        word |= np.uint64(numbers[first + lane] == number) << lane
    return word


@kernel
def lowest_bit(word: np.uint64) -> int:
    """Return the place of the lowest set bit of a word that is not zero: how many bits lie below it."""
    return int(count_bits((word & (~word + ONE)) - ONE))


@kernel
def count_bits(word: np.uint64) -> np.uint64:
    """Return the number of set bits (the compiler knows this form as one instruction)."""
    word = word - ((word >> ONE) & PAIRS)
    word = (word & QUADS) + ((word >> np.uint64(2)) & QUADS)
    return (((word + (word >> np.uint64(4))) & NIBBLES) * BYTES) >> np.uint64(56)
