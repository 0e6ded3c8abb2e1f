"""Says why a task fits nowhere: how many machines fail which of its demands."""
from typing import NamedTuple

import numpy as np

from subak.fleet.state import FleetState
from subak.workload.tasks import Shapes


class Shortage(NamedTuple):
    """Of *machines* that are there, how many fail what a shape asks for; a machine may fail several demands."""

    machines: int
    constraints: int  # do not meet its constraints
    too_small: list[int]  # by resource: have less than it asks for, even when they are empty
    too_full: list[int]  # by resource: have less free than it asks for, and would have enough empty
    held: int  # fail nothing, and are held back for another
    fits: int  # fail nothing, and are not
    empty: int  # would fail nothing if they were empty


def meets_constraints(fleet: FleetState, shapes: Shapes, shape: int) -> np.ndarray:
    """Return bool[machine]: which meet the constraints of a shape, whether they are there or not."""
    return machines_of(fleet.allowed[shapes.constraint_set[shape]], fleet.machines)


def machines_of(words: np.ndarray, machines: int) -> np.ndarray:
    """Return bool[machine] of bits, uint64[block]."""
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return np.asarray(bits[:machines].astype(bool))


def has_enough(free: np.ndarray, shapes: Shapes, shape: int) -> np.ndarray:
    """Return bool[resource, machine]: which have as much *free* (int32[resource, machine]) as a shape asks for."""
    return np.asarray(free >= shapes.request[:, shape, None])


def shortage(fleet: FleetState, shapes: Shapes, shape: int, first: int, end: int) -> Shortage:
    """Return how many of the machines *first* to *end* - 1 fail which demand of a shape."""
    part = slice(first, end)
    there = (fleet.capacity[:, part] > 0).any(axis=0)
    allowed = meets_constraints(fleet, shapes, shape)[part]
    large, enough = (has_enough(amounts[:, part], shapes, shape) for amounts in (fleet.capacity, fleet.free))
    fits = there & allowed & enough.all(axis=0)
    is_open = machines_of(fleet.open, fleet.machines)[part]
    return Shortage(
        int(there.sum()), int((there & ~allowed).sum()), (there & ~large).sum(axis=1).tolist(),
        (there & large & ~enough).sum(axis=1).tolist(), int((fits & ~is_open).sum()),
        int((fits & is_open).sum()), int((there & allowed & large.all(axis=0)).sum()))
