"""Greedy as in LoTES section 5.2: first fit, else the shortest machine queue, ties random.

A machine that has a queue serves it first: an arriving task starts there only behind the tasks that wait, so each
machine queue is first come, first served. Lane m is the queue of machine m; one lane behind the padded machines
holds the tasks that only a machine which is not there now could run. A gang waits at no machine: it goes before single
tasks, and each of its tasks to the first machine that fits, whoever waits there (whole_gangs.py).
"""
import numpy as np

from subak.fleet.feasible import NOWHERE, fits
from subak.fleet.index import (
    MOST,
    block_may_fit,
    count_bits,
    equal_word,
    first_block,
    fitting_word,
    holding_word,
    least_in_word,
    lowest_bit,
    note_first_block,
)
from subak.fleet.state import BLOCK, NO_BITS, ONE, FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.placement.claims import Claims, claim
from subak.placement.fits.random_fit import random_below
from subak.placement.interface.hooks import Memory
from subak.queues.lanes import NOBODY, Lanes, detach, next_detached, pop, push
from subak.workload.tasks import Tasks


def greedy_arrival(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, arrived: np.ndarray, claims: Claims
) -> None:
    """Start each task on the first machine that can, or let it wait at one."""
    for task in arrived:
        dispatch(fleet, tasks, lanes, task, claims)


def greedy_departure(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, freed: np.ndarray, claims: Claims
) -> None:
    """Serve the queues of the freed machines; one whose machine left or became too small is dispatched anew."""
    for machine in freed:
        while lanes.root[machine] != NOBODY and fits(fleet, tasks, lanes.root[machine], machine):
            claim(claims, fleet, tasks, pop(lanes, tasks.rank, machine), machine)
        if lanes.root[machine] != NOBODY and not could_hold(fleet, tasks, tasks.shape[lanes.root[machine]], machine):
            dispatch_all(fleet, tasks, lanes, machine, claims)
    if lanes.root[fleet.free.shape[1]] != NOBODY:
        dispatch_all(fleet, tasks, lanes, fleet.free.shape[1], claims)


@kernel
def dispatch_all(fleet: FleetState, tasks: Tasks, lanes: Lanes, lane: int, claims: Claims) -> None:
    """Empty a lane and dispatch its tasks in their order."""
    following = NOBODY
    if lanes.root[lane] != NOBODY:
        following = detach(lanes, lane)
    while following != NOBODY:
        task = following
        following = next_detached(lanes, tasks.rank, task)
        dispatch(fleet, tasks, lanes, task, claims)


@inlined
def dispatch(fleet: FleetState, tasks: Tasks, lanes: Lanes, task: int, claims: Claims) -> None:
    """Start a task on the first machine without a queue that fits, else let it wait at the shortest queue."""
    machine = first_without_queue(fleet, tasks, lanes, tasks.shape[task])
    if machine != NOWHERE:
        claim(claims, fleet, tasks, task, machine)
    else:
        push(lanes, tasks.rank, shortest_queue(fleet, tasks, lanes, task), task)


@inlined
def first_without_queue(fleet: FleetState, tasks: Tasks, lanes: Lanes, shape: int) -> int:
    """Return the first machine that fits the shape and has no queue, or NOWHERE."""
    first_fit_block = -1
    for block in range(first_block(fleet, shape), fleet.allowed.shape[1]):
        if block_may_fit(fleet, tasks, shape, block):
            word = fitting_word(fleet, tasks, shape, block)
            if word != NO_BITS:
                if first_fit_block < 0:
                    first_fit_block = block
                    note_first_block(fleet, shape, block)
                word &= equal_word(lanes.length, block, 0)
                if word != NO_BITS:
                    return block * BLOCK + lowest_bit(word)
    if first_fit_block < 0:
        note_first_block(fleet, shape, fleet.allowed.shape[1])
    return NOWHERE


@kernel
def could_hold(fleet: FleetState, tasks: Tasks, shape: int, machine: int) -> bool:
    """Whether the machine is there and, when idle, has what the shape asks."""
    for resource in range(fleet.capacity.shape[0]):
        if fleet.capacity[resource, machine] < tasks.request[resource, shape]:
            return False
    return True


@kernel
def shortest_queue(fleet: FleetState, tasks: Tasks, lanes: Lanes, task: int) -> int:
    """Return the machine of the shortest queue that could hold the task, ties random, or the lane of nobody."""
    shape = tasks.shape[task]
    least, ties = MOST, 0
    for block in range(fleet.allowed.shape[1]):
        word = holding_word(fleet, tasks, shape, block)
        shortest = least_in_word(lanes.length, block, word)
        if shortest < least:
            least, ties = shortest, 0
        if shortest == least:
            ties += int(count_bits(word & equal_word(lanes.length, block, least)))
    if least == MOST:
        return fleet.capacity.shape[1]
    chosen = random_below(fleet.random, ties)
    for block in range(fleet.allowed.shape[1]):
        word = holding_word(fleet, tasks, shape, block) & equal_word(lanes.length, block, least)
        count = int(count_bits(word))
        if chosen < count:
            return block * BLOCK + nth_bit(word, chosen)
        chosen -= count
    return fleet.capacity.shape[1]


@kernel
def nth_bit(word: np.uint64, number: int) -> int:
    """Return the place of the set bit that has *number* set bits below it."""
    for _ in range(number):
        word &= word - ONE
    return lowest_bit(word)
