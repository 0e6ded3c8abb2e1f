"""An order joined with a placement: who is served next comes from the lanes, where from `select_machine`.

One round: (1) the lanes that may have a chance contend; (2) the lane whose first task ranks best is asked for a
machine; (3) a task that gets one leaves its lane, a lane that gets none is out of this round; (4) until none is left.
A task that found no place is asked about again when a machine that could take it is freed.
"""
from collections.abc import Callable

import numpy as np

from subak.fleet.state import FleetState
from subak.kernel import inlined
from subak.placement.feasible import NOWHERE, fits_any
from subak.placement.starts import Starts, claim
from subak.queues.lanes import (
    ACTIVE,
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
    select_machine: Callable[..., int], freed: np.ndarray, starts: Starts,
) -> None:
    """Serve the lanes whose first task fits one of the *freed* machines (int32[:])."""
    for place in range(lanes.size[ACTIVE]):
        lane = lanes.active[place]
        if fits_any(fleet, tasks, lanes.root[lane], freed):
            contend(lanes, tasks.rank, lane)
    serve_round(fleet, tasks, lanes, select_machine, starts)


@inlined
def ordered_arrival(
    fleet: FleetState, tasks: Tasks, lanes: Lanes,
    lane_of_shape: np.ndarray, select_machine: Callable[..., int], arrived: np.ndarray, starts: Starts,
) -> None:
    """Let the *arrived* tasks (int32[:]) wait, and serve the lanes whose first task is new."""
    for task in arrived:
        push(lanes, tasks.rank, lane_of_shape[tasks.shape[task]], task)
    for task in arrived:
        lane = lane_of_shape[tasks.shape[task]]
        if lanes.root[lane] == task:
            contend(lanes, tasks.rank, lane)
    serve_round(fleet, tasks, lanes, select_machine, starts)


@inlined
def serve_round(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, select_machine: Callable[..., int], starts: Starts
) -> None:
    """Ask for machines in order until every contending lane is empty or was refused one."""
    while lanes.size[CONTENDERS] > 0:
        lane = lanes.contender[0]
        task = lanes.root[lane]
        machine = select_machine(fleet, tasks, task)
        if machine == NOWHERE or not claim(starts, fleet, tasks, task, machine):
            drop_top(lanes, tasks.rank)
            continue
        pop(lanes, tasks.rank, lane)
        if lanes.root[lane] == NOBODY:
            drop_top(lanes, tasks.rank)
        else:
            settle_top(lanes, tasks.rank)
