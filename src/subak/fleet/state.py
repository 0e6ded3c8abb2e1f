"""The state of a fleet during a run: exact free amounts, and a summary per block.

Rules: free + used = capacity for every present machine; an absent machine has FREE_WHEN_ABSENT free of everything, so
that nothing fits there; block_free_max is the true maximum of its block at all times, and block_at_max how many of its
machines have it.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.shortlists import Shortlists, no_shortlists

BLOCK = 64  # machines a block: one word of a constraint set's bit-vector
FREE_WHEN_ABSENT = -1  # free amount of a machine that is not there
LOG = 64  # freed blocks remembered
ONE, NO_BITS = np.uint64(1), np.uint64(0)  # of a word



class FleetState(NamedTuple):
    """Arrays of the machines: resources are rows, so that a pass over the machines is contiguous.

    Rows are padded to whole blocks with absent machines that meet no constraints.
    """

    free: np.ndarray  # int32[resource, padded machine], units; FREE_WHEN_ABSENT where the machine is not there
    capacity: np.ndarray  # int32[resource, padded machine], units; 0 where the machine is not there
    block_free_max: np.ndarray  # int32[resource, block], units
    block_at_max: np.ndarray  # int32[resource, block], how many of its machines have that much free
    allowed: np.ndarray  # uint64[constraint_set, block], bit m of word b: machine 64 b + m meets the set
    open: np.ndarray  # uint64[block], likewise: nobody has the machine held back for another
    freed_blocks: np.ndarray  # int64[LOG + 1], the blocks freed last, in a ring; behind them how many there ever were
    frontier: np.ndarray  # int64[2, shape]: SEEN how many there were at the last search, FRONTIER where it ended
    used: np.ndarray  # int64[resource], units over all machines
    present: np.ndarray  # int64[resource], units of capacity over all present machines
    scale: np.ndarray  # float64[resource], 1 / largest capacity
    random: np.ndarray  # uint64[1], state of the run's random numbers
    lists: Shortlists  # of placements that look for the machine that costs least; else none
    machines: int  # without the padding


def build_fleet_state(
    capacity: np.ndarray, present: np.ndarray, allowed: np.ndarray, shapes: int, seed: int
) -> FleetState:
    """Return an empty fleet from int32[resource, machine], bool[machine], bool[constraint_set, machine].

    *shapes* is how many shapes the tasks will have, *seed* that of the run's random numbers.
    """
    machines = capacity.shape[1]
    there = np.where(present, capacity, 0)
    free = padded(np.where(present, capacity, FREE_WHEN_ABSENT), FREE_WHEN_ABSENT)
    largest, at_largest = summaries(free)
    return FleetState(
        free=free,
        capacity=padded(there, 0),
        block_free_max=largest,
        block_at_max=at_largest,
        allowed=pack_bits(allowed),
        open=all_open(free.shape[1]),
        freed_blocks=np.zeros(LOG + 1, np.int64),
        frontier=np.zeros((2, shapes), np.int64),
        used=np.zeros(len(free), np.int64),
        present=there.sum(axis=1, dtype=np.int64),
        scale=1.0 / np.maximum(capacity.max(axis=1), 1),
        random=np.array([seed], np.uint64),
        lists=no_shortlists(),
        machines=machines,
    )


def all_open(machines: int) -> np.ndarray:
    """Return uint64[block]: none of so many machines, padded to whole blocks, is held back."""
    return np.full(machines // BLOCK, np.uint64(2**64 - 1))


def summaries(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `block_free_max` and `block_at_max` for int32[resource, padded machine], what is free."""
    machines = free.reshape(len(free), -1, BLOCK)
    largest = machines.max(axis=2)
    return largest, (machines == largest[:, :, None]).sum(axis=2, dtype=np.int32)


def padded(amounts: np.ndarray, filler: int, kind: type = np.int32) -> np.ndarray:
    """Return *kind*[row, padded machine]: *amounts* with *filler* up to a whole number of blocks."""
    rows, machines = amounts.shape
    result = np.full((rows, -(-machines // BLOCK) * BLOCK), filler, kind)
    result[:, :machines] = amounts
    return result


def pack_bits(truth: np.ndarray) -> np.ndarray:
    """Return uint64[row, block] words of bool[row, machine]."""
    bits = padded(truth, 0, np.bool_)
    return np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)
