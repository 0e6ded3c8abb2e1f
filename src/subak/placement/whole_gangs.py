"""Starts gangs whole or not at all under fair orders, beside single tasks.

A gang waits when none of its tasks is missing. Under a scheduler that places tasks one by one (Tetris, Greedy, LoTES)
those that wait go first at each instant, in the scheduler's order of their first tasks; each task goes where the
scheduler puts one alone, after those before it. A gang for which there is no room is passed over until a machine is
freed that has room for one of its tasks, and with it those behind it that are as large and whose tasks are alike.
"""
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from subak.fleet.feasible import NOWHERE, meets_constraints, shape_fits_any
from subak.fleet.state import FleetState
from subak.marks import inlined, noinline
from subak.placement.claims import TASK_FINISHED, TASK_WAITING, Claims, claim, take_back
from subak.placement.rigid.start import holds
from subak.queues.lanes import (
    ACTIVE_LANES,
    CONTENDERS,
    NO_PLACE,
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


class Gangs(NamedTuple):
    """The gangs of a run; all empty where it has none."""

    of_task: np.ndarray  # int32[task], its gang; a task that starts by itself is one
    first: np.ndarray  # int64[gang + 1], where its tasks begin in `task`
    task: np.ndarray  # int32[task], the tasks gang by gang
    missing: np.ndarray  # int32[gang]: tasks that neither wait nor have ended
    left: np.ndarray  # int32[gang]: tasks that have not ended


class WaitingGangs(NamedTuple):
    """The gangs that wait beside single tasks."""

    gangs: Gangs
    lanes: Lanes  # each gang by its first task; those of a lane are as large, and their tasks alike
    lane: np.ndarray  # int32[gang]
    shape: np.ndarray  # int32[lane]


def no_gangs() -> Gangs:
    """Return the gangs of a run that has none."""
    return Gangs(*(np.zeros(0, kind) for kind in (np.int32, np.int64, np.int32, np.int32, np.int32)))


def build_gangs(of_task: np.ndarray) -> Gangs:
    """Return the gangs of int64[task], each task's, numbered from 0; nobody waits."""
    size = np.bincount(of_task).astype(np.int32)
    return Gangs(of_task.astype(np.int32), np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
                 np.argsort(of_task, kind="stable").astype(np.int32), size, size.copy())


def build_waiting(gangs: Gangs, tasks: Tasks) -> WaitingGangs:
    """Return that no gang waits."""
    size, shape = np.diff(gangs.first), tasks.shape[gangs.task[gangs.first[:-1]]]
    kinds, lane = np.unique(np.stack([shape, size]), axis=1, return_inverse=True)
    return WaitingGangs(gangs, build_lanes(max(kinds.shape[1], 1), gangs.of_task.size),
                        lane.reshape(-1).astype(np.int32), kinds[0].astype(np.int32))


# -- who waits, and who is missing -------------------------------------------------------------------------------------


@inlined
def note_ended(gangs: Gangs, claims: Claims, ended: np.ndarray) -> None:
    """Note which tasks of gangs have finished; *ended* is int32[:], the tasks whose attempts ended."""
    for task in ended:
        if claims.status[task] == TASK_FINISHED:
            gangs.missing[gangs.of_task[task]] -= 1
            gangs.left[gangs.of_task[task]] -= 1


@inlined
def completes(gangs: Gangs, task: int) -> bool:
    """Note that a task of a gang waits; return whether none is missing now."""
    gangs.missing[gangs.of_task[task]] -= 1
    return bool(gangs.missing[gangs.of_task[task]] == 0)


@inlined
def is_alone(gangs: Gangs, task: int) -> bool:
    """Whether a task starts by itself."""
    gang = gangs.of_task[task]
    return bool(gangs.first[gang + 1] - gangs.first[gang] == 1)


@noinline
def claim_gang(
    gangs: Gangs, fleet: FleetState, view: FleetState, tasks: Tasks, select_machine: Callable[..., int], gang: int,
    claims: Claims,
) -> bool:
    """Claim a machine of those in *view* for each waiting task of a gang, or for none: whether all have one."""
    began = claims.size[0]
    if not holds(view, tasks, tasks.shape[gangs.task[gangs.first[gang]]], gangs.left[gang]):
        return False
    for place in range(gangs.first[gang], gangs.first[gang + 1]):
        member = gangs.task[place]
        if claims.status[member] == TASK_WAITING:
            machine = selected(fleet, view, tasks, select_machine, member)
            if machine == NOWHERE or not claim(claims, fleet, tasks, member, machine):
                take_back(claims, fleet, tasks, began)
                return False
    return True


@inlined
def selected(
    fleet: FleetState, view: FleetState, tasks: Tasks, select_machine: Callable[..., int], task: int
) -> int:
    """Return the machine that a placement chooses, NOWHERE where that is held back: a policy may look at amounts alone.

    An answer that breaks a rule is returned, for `claim` to say.
    """
    machine, shape = select_machine(view, tasks, task), tasks.shape[task]
    if machine < 0 or machine >= view.machines:
        return int(machine)
    is_held = meets_constraints(fleet, tasks, shape, machine) and not meets_constraints(view, tasks, shape, machine)
    return NOWHERE if is_held else int(machine)


# -- beside single tasks -----------------------------------------------------------------------------------------------


@noinline
def note_gangs(
    waiting: WaitingGangs, fleet: FleetState, tasks: Tasks, ended: np.ndarray, arrived: np.ndarray, freed: np.ndarray,
    claims: Claims,
) -> int:
    """Let the gangs have their turn that are complete now, or may have room: *freed* is int32[machine].

    *ended* and *arrived* are int32[task]. Return how many single tasks arrived; they are first in *arrived* then.
    """
    gangs, lanes, alone = waiting.gangs, waiting.lanes, 0
    if gangs.of_task.size == 0:
        return int(arrived.size)
    note_ended(gangs, claims, ended)
    for task in arrived:
        if not is_alone(gangs, task) and completes(gangs, task):
            push(lanes, tasks.rank, waiting.lane[gangs.of_task[task]], first_of(gangs, task))
    for task in arrived:
        lane = waiting.lane[gangs.of_task[task]]
        if is_alone(gangs, task):
            arrived[alone] = task
            alone += 1
        elif lanes.root[lane] == first_of(gangs, task):
            contend_once(lanes, tasks.rank, lane)
    for place in range(lanes.size[ACTIVE_LANES]):
        lane = lanes.active[place]
        if shape_fits_any(fleet, tasks, waiting.shape[lane], freed):
            contend_once(lanes, tasks.rank, lane)
    return alone


@inlined
def first_of(gangs: Gangs, task: int) -> int:
    """Return the first task of a task's gang."""
    return int(gangs.task[gangs.first[gangs.of_task[task]]])


@inlined
def contend_once(lanes: Lanes, rank: np.ndarray, lane: int) -> None:
    """Let a lane have its turn, if it is not to have it already."""
    if lanes.place[lane] == NO_PLACE:
        contend(lanes, rank, lane)


@inlined
def next_gang(waiting: WaitingGangs) -> int:
    """Return the gang whose turn it is, NOBODY where all have had theirs."""
    lanes = waiting.lanes
    return int(waiting.gangs.of_task[lanes.root[lanes.contender[0]]]) if lanes.size[CONTENDERS] > 0 else int(NOBODY)


@inlined
def end_turn(waiting: WaitingGangs, rank: np.ndarray, begins: bool) -> None:
    """Let the gang whose turn it is run, or wait on."""
    lanes, gangs = waiting.lanes, waiting.gangs
    lane = lanes.contender[0]
    if begins:
        gang = gangs.of_task[pop(lanes, rank, lane)]
        gangs.missing[gang] = gangs.left[gang]
    if not begins or lanes.root[lane] == NOBODY:
        drop_top(lanes, rank)
    else:
        settle_top(lanes, rank)


@inlined
def serve_gangs(
    waiting: WaitingGangs, fleet: FleetState, tasks: Tasks, select_machine: Callable[..., int], claims: Claims
) -> None:
    """Give each gang its turn; each task goes where *select_machine* says."""
    gang = next_gang(waiting)
    while gang != NOBODY:
        begins = claim_gang(waiting.gangs, fleet, fleet, tasks, select_machine, gang, claims)
        end_turn(waiting, tasks.rank, begins)
        gang = next_gang(waiting)
