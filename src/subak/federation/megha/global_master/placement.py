"""Chooses a machine within a partition: the first that fits (the paper), or the best by a score.

- aligned-fit: the highest request . free, Tetris's score of a machine for a given task.
- bins: the highest v = N - kappa of LoTES (section 4.3): what the machine's bin holds of the task's class, less what
  runs of it. The bins are a plan's, made before the run; what runs is the master's belief, as stale as its view.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.choices import ALIGNED_FIT, BINS
from subak.fleet.amounts import give_back, take
from subak.fleet.feasible import NOWHERE, fitting_in
from subak.fleet.index import block_may_fit, fitting_word, lowest_bit
from subak.fleet.state import BLOCK, NO_BITS, ONE, FleetState
from subak.marks import inlined
from subak.placement.fits.best_fit import ALIGNED, extreme_in
from subak.workload.tasks import Shapes


class Bins(NamedTuple):
    """What the machines emulate, and what a master believes runs there; no classes where nobody places by bins."""

    target: np.ndarray  # int16[class, machine], tasks of the class in the machine's bin: N
    class_of_shape: np.ndarray  # int32[shape]
    running: np.ndarray  # int16[class, machine]: kappa


@inlined
def hold(view: FleetState, bins: Bins, shapes: Shapes, shape: int, machine: int) -> None:
    """Let a task of a shape hold its amounts on a machine in a view."""
    take(view, shapes, shape, machine)
    if bins.running.shape[0] > 0:
        bins.running[bins.class_of_shape[shape], machine] += 1


@inlined
def let_go(view: FleetState, bins: Bins, shapes: Shapes, shape: int, machine: int) -> None:
    """Give back in a view what a task of a shape holds on a machine."""
    give_back(view, shapes, shape, machine)
    if bins.running.shape[0] > 0:
        bins.running[bins.class_of_shape[shape], machine] -= 1


@inlined
def hold_nothing(bins: Bins, machine: int) -> None:
    """Let nothing run on a machine."""
    for kind in range(bins.running.shape[0]):
        bins.running[kind, machine] = 0


@inlined
def chosen_in(
    view: FleetState, bins: Bins, shapes: Shapes, shape: int, placement: int, first: int, end: int
) -> int:
    """Return the machine for a shape in blocks *first* to *end* of a view, or NOWHERE."""
    if placement == ALIGNED_FIT:
        return extreme_in(view, shapes, shape, ALIGNED, first, end)
    if placement == BINS:
        return emptiest_bin(view, bins, shapes, shape, first, end)
    return fitting_in(view, shapes, shape, first * BLOCK, end)


@inlined
def emptiest_bin(view: FleetState, bins: Bins, shapes: Shapes, shape: int, first: int, end: int) -> int:
    """Return the first machine that fits with the highest N - kappa, or NOWHERE."""
    kind = bins.class_of_shape[shape]
    best, highest = NOWHERE, 0
    for block in range(first, end):
        if block_may_fit(view, shapes, shape, block):
            word = fitting_word(view, shapes, shape, block)
            while word != NO_BITS:
                machine = block * BLOCK + lowest_bit(word)
                word &= word - ONE
                score = bins.target[kind, machine] - bins.running[kind, machine]
                if best == NOWHERE or score > highest:
                    best, highest = machine, score
    return int(best)
