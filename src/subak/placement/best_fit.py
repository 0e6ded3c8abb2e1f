"""Best and worst fit: the machine with the least, or the most, free amounts among those that fit.

A machine's free amounts are added as fractions of the largest machine's, so that resources weigh alike;
the request is the same for all and changes nothing. Ties go to the first machine.
"""
import numpy as np

from subak.fleet.index import NO_BITS, ONE, block_may_fit, fitting_word, lowest_bit
from subak.fleet.state import BLOCK, FleetState
from subak.kernel import kernel
from subak.placement.feasible import NOWHERE
from subak.workload.tasks import Tasks


@kernel
def free_share(fleet: FleetState, machine: int) -> float:
    """Return the sum of the free amounts of a machine, each as a fraction of the largest capacity."""
    share = 0.0
    for resource in range(fleet.free.shape[0]):
        share += fleet.free[resource, machine] * fleet.scale[resource]
    return share


def best_fit(fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return the machine that fits with the least left free, -1 if none fits."""
    return extreme_fit(fleet, tasks, tasks.shape[task], 1.0)


def worst_fit(fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return the machine that fits with the most left free, -1 if none fits."""
    return extreme_fit(fleet, tasks, tasks.shape[task], -1.0)


@kernel
def extreme_fit(fleet: FleetState, tasks: Tasks, shape: int, sign: float) -> int:
    """Return the machine that fits with the least *sign* times its free share, or NOWHERE."""
    best, least = NOWHERE, np.inf
    for block in range(fleet.block_free_max.shape[1]):
        if block_may_fit(fleet, tasks, shape, block):
            word = fitting_word(fleet, tasks, shape, block)
            while word != NO_BITS:
                machine = block * BLOCK + lowest_bit(word)
                word &= word - ONE
                share = sign * free_share(fleet, machine)
                if share < least:
                    best, least = machine, share
    return best
