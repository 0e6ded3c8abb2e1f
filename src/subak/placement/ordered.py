"""An order joined with a placement: who is served next comes from the lanes, where from `select_machine`.

One round: (1) the lanes that may have a chance contend; (2) the lane whose first task ranks best is asked for a
machine; (3) a task that gets one leaves its lane, a lane that gets none is out of this round; (4) until none is left.
A task that found no place is asked about again when a machine that could take it is freed.
"""
from collections.abc import Callable

import numpy as np

from subak.fleet.feasible import NOWHERE, shape_fits_any
from subak.fleet.state import FleetState
from subak.marks import inlined
from subak.placement.claims import Claims, claim
from subak.queues.lanes import (
    ACTIVE_LANES,
    CONTENDERS,
    NOBODY,
    Lanes,
    contend,
    drop_top,
    pop,
    push,
    settle_top,
)
from subak.workload.tasks import Tasks


@inlined
def ordered_departure(
    fleet: FleetState, tasks: Tasks, lanes: Lanes,
    select_machine: Callable[..., int], freed: np.ndarray, claims: Claims,
) -> None:
    """Serve the lanes whose first task fits one of the *freed* machines (int32[:])."""
    for place in range(lanes.size[ACTIVE_LANES]):
        lane = lanes.active[place]
        if shape_fits_any(fleet, tasks, first_shape(lanes, tasks, lane), freed):
            contend(lanes, tasks.rank, lane)
    serve_round(fleet, tasks, lanes, select_machine, freed, claims)


@inlined
def ordered_arrival(
    fleet: FleetState, tasks: Tasks, lanes: Lanes,
    lane_of_shape: np.ndarray, select_machine: Callable[..., int], arrived: np.ndarray, claims: Claims,
) -> None:
    """Let the *arrived* tasks (int32[:]) wait, and serve the lanes whose first task is new."""
    for task in arrived:
        push(lanes, tasks.rank, lane_of_shape[tasks.shape[task]], task)
    for task in arrived:
        lane = lane_of_shape[tasks.shape[task]]
        if lanes.root[lane] == task:
            contend(lanes, tasks.rank, lane)
    serve_round(fleet, tasks, lanes, select_machine, arrived[:0], claims)


@inlined
def serve_round(
    fleet: FleetState, tasks: Tasks, lanes: Lanes,
    select_machine: Callable[..., int], freed: np.ndarray, claims: Claims,
) -> None:
    """Ask for machines in order until every contending lane is empty or was refused one.

    A shape that waited before the round fits at most the *freed* machines: when these are taken, nobody is asked.
    """
    while lanes.size[CONTENDERS] > 0:
        lane = lanes.contender[0]
        task = lanes.root[lane]
        if lanes.by_shape and freed.size > 0 and not shape_fits_any(fleet, tasks, lane, freed):
            drop_top(lanes, tasks.rank)
            continue
        machine = select_machine(fleet, tasks, task)
        if machine == NOWHERE or not claim(claims, fleet, tasks, task, machine):
            drop_top(lanes, tasks.rank)
            continue
        pop(lanes, tasks.rank, lane)
        if lanes.root[lane] == NOBODY:
            drop_top(lanes, tasks.rank)
        else:
            settle_top(lanes, tasks.rank)


@inlined
def first_shape(lanes: Lanes, tasks: Tasks, lane: int) -> int:
    """Return the shape of a lane's first task, without looking at the task where the whole lane has one shape."""
    if lanes.by_shape:
        return lane
    return tasks.shape[lanes.root[lane]]
