"""Best, worst and aligned fit: the machine with the least free, the most free, or the best alignment.

Amounts are fractions of the largest machine's, so that resources weigh alike. Best and worst fit add a machine's free
amounts up; the request is the same for all and changes nothing. Aligned fit takes their dot product with the request,
which is how Tetris (SIGCOMM 2014, section 3.2) chooses a machine for a task. Ties go to the first machine.

A run keeps short lists of what `weights` says (cheapest.py); without them all machines that fit are looked at.
"""
import numpy as np

from subak.fleet.feasible import NOWHERE
from subak.fleet.index import block_may_fit, fitting_word, lowest_bit
from subak.fleet.state import BLOCK, NO_BITS, ONE, FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.placement.fits.cheapest import cheapest
from subak.placement.interface.instance import Instance
from subak.workload.tasks import Shapes, Tasks

LEAST_FREE, MOST_FREE, ALIGNED = range(3)


def best_fit(fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return the machine that fits with the least left free, -1 if none fits."""
    return listed_fit(fleet, tasks, task, LEAST_FREE)


def worst_fit(fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return the machine that fits with the most left free, -1 if none fits."""
    return listed_fit(fleet, tasks, task, MOST_FREE)


def aligned_fit(fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return the machine that fits with the highest request . free, -1 if none fits."""
    return listed_fit(fleet, tasks, task, ALIGNED)


def best_weights(instance: Instance) -> np.ndarray:
    """Return float64[2, resource, shape]: what `cost` says of each shape, LEAST_FREE, in factors for short lists."""
    return weights(instance, LEAST_FREE)


def worst_weights(instance: Instance) -> np.ndarray:
    """Return the same for MOST_FREE."""
    return weights(instance, MOST_FREE)


def aligned_weights(instance: Instance) -> np.ndarray:
    """Return the same for ALIGNED."""
    return weights(instance, ALIGNED)


def weights(instance: Instance, rule: int) -> np.ndarray:
    """Return float64[2, resource, shape]: the factors of a rule's `cost`, which give it to the last bit."""
    scale = 1.0 / np.maximum(instance.capacity.max(axis=1), 1)
    first = np.repeat(scale[:, None], instance.requests.shape[1], axis=1)
    second = instance.requests * first if rule == ALIGNED else np.ones_like(first)
    return np.stack([first, second if rule == LEAST_FREE else -second])


@inlined
def listed_fit(fleet: FleetState, tasks: Tasks, task: int, rule: int) -> int:
    """Return the machine that fits at the least cost under the rule of the run, or NOWHERE."""
    if fleet.lists.head.size == 0:
        return extreme_fit(fleet, tasks, tasks.shape[task], rule)
    return cheapest(fleet, tasks, tasks.shape[task])


@kernel
def cost(fleet: FleetState, shapes: Shapes, shape: int, machine: int, rule: int) -> float:
    """Return what a rule wants least of a machine."""
    total = 0.0
    for resource in range(fleet.free.shape[0]):
        share = fleet.free[resource, machine] * fleet.scale[resource]
        if rule == ALIGNED:
            share *= shapes.request[resource, shape] * fleet.scale[resource]
        total += share
    return total if rule == LEAST_FREE else -total


@kernel
def extreme_fit(fleet: FleetState, shapes: Shapes, shape: int, rule: int) -> int:
    """Return the machine that fits at the least cost under a rule, or NOWHERE."""
    return int(extreme_in(fleet, shapes, shape, rule, 0, fleet.block_free_max.shape[1]))


@kernel
def extreme_in(fleet: FleetState, shapes: Shapes, shape: int, rule: int, first: int, end: int) -> int:
    """Return the machine of blocks *first* to *end* that fits at the least cost under a rule, or NOWHERE."""
    best, least = NOWHERE, np.inf
    for block in range(first, end):
        if block_may_fit(fleet, shapes, shape, block):
            word = fitting_word(fleet, shapes, shape, block)
            while word != NO_BITS:
                machine = block * BLOCK + lowest_bit(word)
                word &= word - ONE
                found = cost(fleet, shapes, shape, machine, rule)
                if found < least:
                    best, least = machine, found
    return best
