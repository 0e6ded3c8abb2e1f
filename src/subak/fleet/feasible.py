"""Whether a task fits a machine: the one function that every scheduler asks, and the exact search built on it."""
import numpy as np

from subak.fleet.index import ALL_BITS, block_may_fit, first_block, fitting_word, lowest_bit, note_first_block
from subak.fleet.state import BLOCK, NO_BITS, ONE, FleetState
from subak.marks import inlined
from subak.workload.tasks import Shapes, Tasks

NOWHERE = -1  # no machine


@inlined
def meets_constraints(fleet: FleetState, shapes: Shapes, shape: int, machine: int) -> bool:
    """Whether the machine meets the shape's constraints, and is not held back."""
    word = fleet.allowed[shapes.constraint_set[shape], machine // BLOCK] & fleet.open[machine // BLOCK]
    return (word >> np.uint64(machine % BLOCK)) & ONE != NO_BITS


@inlined
def shape_fits(fleet: FleetState, shapes: Shapes, shape: int, machine: int) -> bool:
    """Whether the machine meets the shape's constraints and has its whole request free."""
    if not meets_constraints(fleet, shapes, shape, machine):
        return False
    for resource in range(fleet.free.shape[0]):
        if fleet.free[resource, machine] < shapes.request[resource, shape]:
            return False
    return True


@inlined
def shape_fits_without(fleet: FleetState, shapes: Shapes, shape: int, machine: int, leaving: int) -> bool:
    """Whether the shape would fit the machine once a task of shape *leaving* has left it."""
    if not meets_constraints(fleet, shapes, shape, machine):
        return False
    for resource in range(fleet.free.shape[0]):
        free = fleet.free[resource, machine] + shapes.request[resource, leaving]
        if free < shapes.request[resource, shape]:
            return False
    return True


@inlined
def fits(fleet: FleetState, tasks: Tasks, task: int, machine: int) -> bool:
    """Whether the machine could start the task now."""
    return shape_fits(fleet, tasks, tasks.shape[task], machine)


@inlined
def first_fitting(fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return the first machine that fits the task, or NOWHERE: `next_fitting` from machine 0, remembering where."""
    shape = tasks.shape[task]
    machine = next_fitting(fleet, tasks, task, first_block(fleet, shape) * BLOCK)
    note_first_block(fleet, shape, fleet.allowed.shape[1] if machine == NOWHERE else machine // BLOCK)
    return machine


@inlined
def next_fitting(fleet: FleetState, tasks: Tasks, task: int, machine: int) -> int:
    """Return the first machine at or after *machine* that fits the task, or NOWHERE."""
    return fitting_in(fleet, tasks, tasks.shape[task], machine, fleet.allowed.shape[1])


@inlined
def fitting_in(fleet: FleetState, shapes: Shapes, shape: int, machine: int, end: int) -> int:
    """Return the first machine at or after *machine*, before block *end*, that fits the shape, or NOWHERE."""
    skipped = np.uint64(machine % BLOCK)
    for block in range(machine // BLOCK, end):
        if block_may_fit(fleet, shapes, shape, block):
            word = fitting_word(fleet, shapes, shape, block) & (ALL_BITS << skipped)
            if word != NO_BITS:
                return block * BLOCK + lowest_bit(word)
        skipped = NO_BITS
    return NOWHERE


@inlined
def shape_fits_any(fleet: FleetState, shapes: Shapes, shape: int, machines: np.ndarray) -> bool:
    """Whether the shape fits any of the given *machines* (int32[:])."""
    for machine in machines:  # noqa: SIM110
        if shape_fits(fleet, shapes, shape, machine):
            return True
    return False
