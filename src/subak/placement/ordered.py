"""Joins an order with a placement: lanes pick the task, `select_machine` the machine.

One round: (1) the lanes that may have a chance contend; (2) the lane whose first task ranks best is asked for a
machine; (3) a task that gets one leaves its lane, a lane that gets none is out of this round; (4) until none is left.
A task that found no place is asked about again when a machine that could take it is freed.

With a lane for each shape many wait at once, of which most fit no machine that is freed. So what the lanes that hold
tasks ask for lies side by side, and 64 of them are compared with what a machine has free in the time of a few.
"""
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from subak.fleet.feasible import NOWHERE, meets_constraints, shape_fits_any
from subak.fleet.index import ALL_BITS, MOST, has_at_most, lowest_bit
from subak.fleet.state import BLOCK, NO_BITS, ONE, FleetState
from subak.marks import inlined
from subak.placement.claims import Claims, claim
from subak.queues.lanes import (
    ACTIVE_LANES,
    CONTENDERS,
    NOBODY,
    Lanes,
    build_lanes,
    contend,
    drop_top,
    pop,
    push,
    settle_top,
)
from subak.workload.tasks import Tasks


class Ordered(NamedTuple):
    """Where tasks wait, and what is asked for there."""

    lanes: Lanes
    lane_of_shape: np.ndarray  # int32[shape]
    wanted: np.ndarray  # int32[resource, place], units: what the shape of the lane at a place of `active` asks for, and
    # MOST where no lane is, up to a whole block of 64; without a row where lanes are not of one shape each


def build_ordered(tasks: Tasks, by_shape: bool) -> Ordered:
    """Return empty lanes: one for each shape, or one for all."""
    shapes, resources = tasks.constraint_set.size, tasks.request.shape[0] if by_shape else 0
    return Ordered(
        lanes=build_lanes(shapes if by_shape else 1, tasks.arrival.size, by_shape),
        lane_of_shape=np.arange(shapes, dtype=np.int32) if by_shape else np.zeros(shapes, np.int32),
        wanted=np.full((resources, -(-shapes // BLOCK) * BLOCK), MOST, np.int32))


@inlined
def ordered_departure(
    fleet: FleetState, tasks: Tasks, ordered: Ordered,
    select_machine: Callable[..., int], freed: np.ndarray, claims: Claims,
) -> None:
    """Serve the lanes whose first task fits one of the *freed* machines (int32[:])."""
    lanes = ordered.lanes
    if lanes.by_shape:
        for block in range((lanes.size[ACTIVE_LANES] + BLOCK - 1) // BLOCK):
            contend_in(fleet, tasks, ordered, block, freed)
    elif lanes.size[ACTIVE_LANES] > 0 and shape_fits_any(fleet, tasks, tasks.shape[lanes.root[0]], freed):
        contend(lanes, tasks.rank, 0)
    serve_round(fleet, tasks, ordered, select_machine, freed, claims)


@inlined
def contend_in(fleet: FleetState, tasks: Tasks, ordered: Ordered, block: int, freed: np.ndarray) -> None:
    """Let the lanes at a block of places contend whose shape fits one of the *freed* machines."""
    left = ALL_BITS  # places of lanes that do not contend yet
    for machine in freed:
        word = left
        for resource in range(ordered.wanted.shape[0]):
            if word != NO_BITS:
                word &= has_at_most(ordered.wanted, resource, block, fleet.free[resource, machine])
        while word != NO_BITS:
            lane = ordered.lanes.active[block * BLOCK + lowest_bit(word)]
            if meets_constraints(fleet, tasks, lane, machine):
                contend(ordered.lanes, tasks.rank, lane)
                left &= ~(word & (~word + ONE))
            word &= word - ONE
        if left == NO_BITS:
            return


@inlined
def ordered_arrival(
    fleet: FleetState, tasks: Tasks, ordered: Ordered,
    select_machine: Callable[..., int], arrived: np.ndarray, claims: Claims,
) -> None:
    """Let the *arrived* tasks (int32[:]) wait, and serve the lanes whose first task is new."""
    lanes = ordered.lanes
    for task in arrived:
        lane = ordered.lane_of_shape[tasks.shape[task]]
        push(lanes, tasks.rank, lane, task)
        if lanes.length[lane] == 1:
            for resource in range(ordered.wanted.shape[0]):
                ordered.wanted[resource, lanes.position[lane]] = tasks.request[resource, lane]
    for task in arrived:
        lane = ordered.lane_of_shape[tasks.shape[task]]
        if lanes.root[lane] == task:
            contend(lanes, tasks.rank, lane)
    serve_round(fleet, tasks, ordered, select_machine, arrived[:0], claims)


@inlined
def serve_round(
    fleet: FleetState, tasks: Tasks, ordered: Ordered,
    select_machine: Callable[..., int], freed: np.ndarray, claims: Claims,
) -> None:
    """Ask for machines in order until every contending lane is empty or was refused one.

    A shape that waited before the round fits at most the *freed* machines: when these are taken, nobody is asked.
    """
    lanes = ordered.lanes
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
        take_first(ordered, tasks.rank, lane)
        if lanes.root[lane] == NOBODY:
            drop_top(lanes, tasks.rank)
        else:
            settle_top(lanes, tasks.rank)


@inlined
def take_first(ordered: Ordered, rank: np.ndarray, lane: int) -> None:
    """Take the first task out of a lane; where that was all, the last of the active lanes has its place then."""
    lanes, wanted = ordered.lanes, ordered.wanted
    pop(lanes, rank, lane)
    if lanes.root[lane] == NOBODY:
        for resource in range(wanted.shape[0]):
            wanted[resource, lanes.position[lane]] = wanted[resource, lanes.size[ACTIVE_LANES]]
            wanted[resource, lanes.size[ACTIVE_LANES]] = MOST
