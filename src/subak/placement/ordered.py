"""An order joined with a placement: who is served next comes from the lanes, where from `select_machine`.

One round: (1) the lanes that may have a chance contend; (2) the lane whose first task ranks best is asked for a
machine; (3) a task that gets one leaves its lane, a lane that gets none is out of this round; (4) until none is left.
A task that found no place is asked about again when a machine that could take it is freed.
"""
from subak.kernel import inlined, kernel
from subak.placement.feasible import fits_any
from subak.placement.starts import claim
from subak.queues.lanes import (
    ACTIVE,
    CONTENDERS,
    NOBODY,
    contend,
    drop_top,
    pop,
    push,
    settle_top,
)


@inlined
def ordered_departure(fleet, tasks, lanes, select_machine, freed, starts):
    """Serve the lanes whose first task fits one of the *freed* machines (int32[:])."""
    for place in range(lanes.size[ACTIVE]):
        lane = lanes.active[place]
        if fits_any(fleet, tasks, lanes.root[lane], freed):
            contend(lanes, tasks.rank, lane)
    serve_round(fleet, tasks, lanes, select_machine, starts)


@inlined
def ordered_arrival(fleet, tasks, lanes, lane_of_shape, select_machine, arrived, starts):
    """Let the *arrived* tasks (int32[:]) wait, and serve the lanes whose first task is new."""
    for task in arrived:
        push(lanes, tasks.rank, lane_of_shape[tasks.shape[task]], task)
    for task in arrived:
        lane = lane_of_shape[tasks.shape[task]]
        if lanes.root[lane] == task:
            contend(lanes, tasks.rank, lane)
    serve_round(fleet, tasks, lanes, select_machine, starts)


@inlined
def serve_round(fleet, tasks, lanes, select_machine, starts):
    """Ask for machines in order until every contending lane is empty or was refused one."""
    while lanes.size[CONTENDERS] > 0:
        lane = lanes.contender[0]
        task = lanes.root[lane]
        machine = select_machine(fleet, tasks, task)
        if machine == -1 or not claim(starts, fleet, tasks, task, machine):
            drop_top(lanes, tasks.rank)
        elif serve_next(lanes, tasks.rank, lane) == NOBODY:
            drop_top(lanes, tasks.rank)
        else:
            settle_top(lanes, tasks.rank)


@kernel
def serve_next(lanes, rank, lane):
    """Take the started task out of its lane and return the next one, or NOBODY."""
    pop(lanes, rank, lane)
    return lanes.root[lane]
