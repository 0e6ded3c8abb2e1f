"""Greedy as in LoTES section 5.2: first fit, else the shortest machine queue, ties random, each queue in order.

A machine that has a queue serves it first: an arriving task starts there only behind the tasks that wait, so each
machine queue is first come, first served. Lane m is the queue of machine m; one more lane holds the tasks that only
a machine which is not there now could run.
"""
import numpy as np

from subak.fleet.state import ABSENT, BLOCK, FleetState
from subak.kernel import inlined, kernel
from subak.placement.feasible import NOWHERE, first_fitting, fits, next_fitting
from subak.placement.hooks import Memory
from subak.placement.random_fit import random_below
from subak.placement.starts import Starts, claim
from subak.queues.lanes import NOBODY, Lanes, detach, next_detached, pop, push
from subak.workload.tasks import Tasks


def greedy_arrival(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, arrived: np.ndarray, starts: Starts
) -> None:
    """Start each task on the first machine that can, or let it wait at one."""
    for task in arrived:
        dispatch(fleet, tasks, lanes, task, starts)


def greedy_departure(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, freed: np.ndarray, starts: Starts
) -> None:
    """Serve the queues of the freed machines; the queue of a machine that left is dispatched anew."""
    for machine in freed:
        if fleet.free[0, machine] == ABSENT:
            dispatch_all(fleet, tasks, lanes, machine, starts)
        else:
            while lanes.root[machine] != NOBODY and fits(fleet, tasks, lanes.root[machine], machine):
                claim(starts, fleet, tasks, pop(lanes, tasks.rank, machine), machine)
    if lanes.root[fleet.machines] != NOBODY:
        dispatch_all(fleet, tasks, lanes, fleet.machines, starts)


@kernel
def dispatch_all(fleet: FleetState, tasks: Tasks, lanes: Lanes, lane: int, starts: Starts) -> None:
    """Empty a lane and dispatch its tasks in their order."""
    following = NOBODY
    if lanes.root[lane] != NOBODY:
        following = detach(lanes, lane)
    while following != NOBODY:
        task = following
        following = next_detached(lanes, tasks.rank, task)
        dispatch(fleet, tasks, lanes, task, starts)


@inlined
def dispatch(fleet: FleetState, tasks: Tasks, lanes: Lanes, task: int, starts: Starts) -> None:
    """Start a task on the first machine without a queue that fits, else let it wait at the shortest queue."""
    machine = first_fitting(fleet, tasks, task)
    while machine != NOWHERE and lanes.root[machine] != NOBODY:
        machine = next_fitting(fleet, tasks, task, machine + 1)
    if machine != NOWHERE:
        claim(starts, fleet, tasks, task, machine)
    else:
        push(lanes, tasks.rank, shortest_queue(fleet, tasks, lanes, task), task)


@kernel
def could_hold(fleet: FleetState, tasks: Tasks, task: int, machine: int) -> bool:
    """Whether the task fits the machine when that is idle."""
    shape = tasks.shape[task]
    word = fleet.allowed[tasks.constraint_set[shape], machine // BLOCK]
    if (word >> np.uint64(machine % BLOCK)) & np.uint64(1) == 0:
        return False
    for resource in range(fleet.free.shape[0]):
        if fleet.capacity[resource, machine] < tasks.request[resource, shape]:
            return False
    return fleet.free[0, machine] != ABSENT


@kernel
def shortest_queue(fleet: FleetState, tasks: Tasks, lanes: Lanes, task: int) -> int:
    """Return the machine of the shortest queue that could hold the task, ties random, or the lane of nobody."""
    machines = fleet.machines
    least, ties = np.int64(2**62), 0
    for machine in range(machines):
        if lanes.length[machine] <= least and could_hold(fleet, tasks, task, machine):
            if lanes.length[machine] < least:
                least, ties = np.int64(lanes.length[machine]), 0
            ties += 1
    if ties == 0:
        return machines
    chosen = random_below(fleet.random, ties)
    for machine in range(machines):
        if lanes.length[machine] == least and could_hold(fleet, tasks, task, machine):
            if chosen == 0:
                return machine
            chosen -= 1
    return machines
