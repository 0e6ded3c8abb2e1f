"""Why a task fits nowhere: how many machines fail which of its demands."""
from typing import NamedTuple

import numpy as np

from subak.fleet.state import BLOCK, FleetState
from subak.workload.tasks import Shapes


class Shortage(NamedTuple):
    """Of *machines* that are there, how many fail what a shape asks for; a machine may fail several demands."""

    machines: int
    constraints: int  # do not meet its constraints
    too_small: list[int]  # by resource: have less than it asks for, even when they are empty
    too_full: list[int]  # by resource: have less free than it asks for
    fits: int  # fail nothing


def shortage(fleet: FleetState, shapes: Shapes, shape: int, first: int, end: int) -> Shortage:
    """Return how many of the machines *first* to *end* - 1, whole blocks of them, fail which demand of a shape."""
    capacity, free = fleet.capacity[:, first:end].astype(np.int64), fleet.free[:, first:end].astype(np.int64)
    there = (capacity > 0).any(axis=0)
    words = fleet.allowed[shapes.constraint_set[shape], first // BLOCK : end // BLOCK]
    bits = (words[:, None] >> np.arange(BLOCK, dtype=np.uint64)[None, :]) & np.uint64(1)
    allowed = bits.reshape(-1)[: end - first].astype(bool)
    request = shapes.request[:, shape].astype(np.int64)[:, None]
    small, full = there & (capacity < request), there & (free < request)
    fits = there & allowed & ~full.any(axis=0)
    return Shortage(int(there.sum()), int((there & ~allowed).sum()), small.sum(axis=1).tolist(),
                    full.sum(axis=1).tolist(), int(fits.sum()))
