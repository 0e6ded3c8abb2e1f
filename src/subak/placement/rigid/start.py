"""Starts a gang whole or not at all, on machines that no reservation needs."""
from collections.abc import Callable

import numpy as np

from subak.fleet.feasible import NOWHERE, first_fitting, meets_constraints
from subak.fleet.index import SEEN, block_may_fit, fitting_word, lowest_bit
from subak.fleet.shortlists import without_lists
from subak.fleet.state import BLOCK, LOG, NO_BITS, ONE, FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined, noinline
from subak.placement.claims import TASK_WAITING, Claims, claim, take_back
from subak.placement.rigid.gangs import expected_end
from subak.placement.rigid.profile import RESERVATIONS, hold, room_during
from subak.placement.rigid.reservations import Rigid, note_start
from subak.workload.tasks import Shapes, Tasks


@noinline
def start(
    rigid: Rigid, fleet: FleetState, tasks: Tasks, select_machine: Callable[..., int], gang: int,
    claims: Claims,
) -> bool:
    """Start a gang that has no reservation, if that delays nobody who has one; else leave everything as it was."""
    gangs, began, now = rigid.gangs, claims.size[0], rigid.profile.now[0]
    shape, until = rigid.table.shape[gangs.lane[gang]], expected_end(now, gangs.seconds[gang])
    if not may_start(rigid, fleet, tasks, gang):
        return False
    view = masked(rigid, fleet, tasks, shape, until) if is_masked(rigid) else fleet
    for place in range(gangs.first[gang], gangs.first[gang + 1]):
        task = gangs.task[place]
        if claims.status[task] == TASK_WAITING:
            machine = unpromised(rigid, view, tasks, select_machine, task, until, claims)
            if machine == NOWHERE or not claim(claims, fleet, tasks, task, machine):
                release_claims(rigid, tasks, claims, began, until)
                take_back(claims, fleet, tasks, began)
                return False
            gangs.pool[task] = rigid.profile.pool[machine]
            hold(rigid.profile, gangs.pool[task], shape, 1, now, until)
    note_start(rigid, gang)
    return True


@inlined
def may_start(rigid: Rigid, fleet: FleetState, tasks: Tasks, gang: int) -> bool:
    """Whether there is room for all of a gang at once; of a task alone, which its placement finds out, perhaps not."""
    gangs, profile, count = rigid.gangs, rigid.profile, rigid.gangs.left[gang]
    if first_fitting(fleet, tasks, gangs.task[gangs.first[gang]]) == NOWHERE:
        return False
    shape, now = rigid.table.shape[gangs.lane[gang]], profile.now[0]
    if profile.size[RESERVATIONS] == 0:
        return bool(count == 1 or holds(fleet, tasks, shape, count))
    if profile.first.size > 1 and count == 1:
        return True
    for pool in range(profile.first.size):
        if profile.allows[tasks.constraint_set[shape], pool]:
            count -= room_during(profile, pool, shape, now, expected_end(now, gangs.seconds[gang]))
            if count <= 0:
                return True
    return False


@kernel
def holds(fleet: FleetState, tasks: Tasks, shape: int, count: int) -> bool:
    """Whether *count* tasks of a shape fit the machines at once."""
    for block in range(fleet.allowed.shape[1]):
        if block_may_fit(fleet, tasks, shape, block):
            word = fitting_word(fleet, tasks, shape, block)
            while word != NO_BITS:
                count -= copies(fleet, tasks, shape, block * BLOCK + lowest_bit(word), count)
                if count <= 0:
                    return True
                word &= word - ONE
    return False


@inlined
def copies(fleet: FleetState, shapes: Shapes, shape: int, machine: int, most: int) -> int:
    """Return how many tasks of a shape fit what a machine has free, *most* at most."""
    for row in range(fleet.free.shape[0]):
        if shapes.request[row, shape] > 0:
            most = min(most, fleet.free[row, machine] // shapes.request[row, shape])
    return most


@inlined
def is_masked(rigid: Rigid) -> bool:
    """Whether some machines may be promised: in a single pool any will do where the pool has room."""
    return bool(rigid.profile.size[RESERVATIONS] > 0 and rigid.profile.first.size > 1)


@kernel
def masked(rigid: Rigid, fleet: FleetState, tasks: Tasks, shape: int, until: float) -> FleetState:
    """Return the fleet as a task may use it until *until*: without machines that somebody's reservation needs."""
    profile, row, now = rigid.profile, tasks.constraint_set[shape], rigid.profile.now[0]
    for block in range(fleet.allowed.shape[1]):
        kept = NO_BITS
        if block_may_fit(fleet, tasks, shape, block):
            word = fitting_word(fleet, tasks, shape, block)
            while word != NO_BITS:
                place = lowest_bit(word)
                word &= word - ONE
                if room_during(profile, profile.pool[block * BLOCK + place], shape, now, until) > 0:
                    kept |= ONE << np.uint64(place)
        rigid.mask[row, block] = kept
    rigid.frontier[SEEN, shape] = fleet.freed_blocks[LOG] - LOG - 1  # so that a search begins at the first block
    return FleetState(
        fleet.free, fleet.capacity, fleet.block_free_max, fleet.block_at_max, rigid.mask, fleet.open,
        fleet.freed_blocks, rigid.frontier, fleet.used, fleet.present, fleet.scale, fleet.random,
        without_lists(fleet.lists), fleet.machines,
    )


@inlined
def unpromised(
    rigid: Rigid, view: FleetState, tasks: Tasks, select_machine: Callable[..., int], task: int, until: float,
    claims: Claims,
) -> int:
    """Return the machine that a placement chooses of those that no reservation needs, NOWHERE if there is none.

    What others of the gang took in this decision counts. An answer that breaks a rule is returned, for `claim` to say.
    """
    profile, shape, now = rigid.profile, tasks.shape[task], rigid.profile.now[0]
    while True:
        machine = select_machine(view, tasks, task)
        if machine == NOWHERE or not is_masked(rigid):
            return machine
        if machine < 0 or machine >= view.machines:
            return machine
        if not meets_constraints(view, tasks, shape, machine):  # a user's policy that looks at amounts alone
            return NOWHERE
        if room_during(profile, profile.pool[machine], shape, now, until) > 0:
            return machine
        rigid.mask[tasks.constraint_set[shape], machine // BLOCK] &= ~(ONE << np.uint64(machine % BLOCK))


@kernel
def release_claims(rigid: Rigid, tasks: Tasks, claims: Claims, began: int, until: float) -> None:
    """Let the profile forget the claims of this decision from *began* on."""
    now = rigid.profile.now[0]
    for place in range(began, claims.size[0]):
        task = claims.task[place]
        hold(rigid.profile, rigid.gangs.pool[task], tasks.shape[task], -1, now, until)

