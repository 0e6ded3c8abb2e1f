"""The loop of rigid jobs and reservations, and what ends and losses do to gangs."""
from collections.abc import Callable

import numpy as np

from subak.marks import inlined, noinline
from subak.placement.claims import KEPT, TASK_FINISHED, TASK_RUNNING, VIOLATED_RULE
from subak.placement.rigid.backfill import serve
from subak.placement.rigid.gangs import NOBODY, corrected_end
from subak.placement.rigid.profile import IS_OPEN, RESERVATIONS, hold
from subak.placement.rigid.reservations import (
    CHANGES_SEEN,
    FIRST_RESERVED,
    LATE,
    TO_REVISE,
    Rigid,
    build_rigid,
    close_if_unused,
    drop_reservations,
    let_wait,
    note_end,
    note_rest,
    reserves,
    somebody_waits,
)
from subak.queues.line import ABSENT, NO_MEMBER, first_below, set_key
from subak.simulator.central.gangs import gangs_of_tasks, give_up_too_large, lose_gangs
from subak.simulator.central.loop import advance
from subak.simulator.engine.attempts import commit
from subak.simulator.engine.setup import Prepared
from subak.simulator.engine.state import (
    LOOP_BROKEN,
    LOOP_PAUSED,
    LOOP_STEP,
    Simulation,
)
from subak.workload.table import Workload


def build_rigid_run(prepared: Prepared, workload: Workload, rule: int) -> Rigid:
    """Return that nobody waits yet; gangs that all machines together could never hold become unplaceable."""
    simulation, gangs = prepared.simulation, gangs_of_tasks(workload)
    give_up_too_large(simulation, gangs)
    return build_rigid(simulation.fleet, simulation.tasks, gangs, rule)


def run_rigid(sim: Simulation, rigid: Rigid, select_machine: Callable[..., int], budget: int) -> int:
    """Run *budget* steps of an order joined with a placement, with gangs and a rule of backfilling."""
    for _ in range(budget):
        outcome = advance(sim)
        if outcome != LOOP_STEP:
            return outcome
        rigid.profile.now[0] = sim.clock.now
        note_ends(sim, rigid)
        freed, arrived = sim.step.freed[: sim.counts.freed_now], sim.step.arrived[: sim.counts.arrived_now]
        if (freed.size > 0 or rigid.notes[TO_REVISE]) and somebody_waits(rigid):
            serve(rigid, sim.fleet, sim.tasks, select_machine, freed, sim.claims)
        if arrived.size > 0:
            note_arrivals(rigid, arrived)
            serve(rigid, sim.fleet, sim.tasks, select_machine, freed[:0], sim.claims)
        commit(sim)
        close_if_unused(rigid)
        if sim.claims.violation[VIOLATED_RULE] != KEPT:
            return LOOP_BROKEN
    return LOOP_PAUSED


@inlined
def note_ends(sim: Simulation, rigid: Rigid) -> None:
    """Tell the gangs what ended or was lost, how the fleet changed, and which estimates proved too short."""
    has_changed = sim.counts.next_change > rigid.notes[CHANGES_SEEN]
    if has_changed:
        rigid.notes[CHANGES_SEEN] = sim.counts.next_change
        lose_gangs(sim, rigid.gangs)
    for task in sim.step.ended[: sim.counts.ended_now]:  # of lost gangs too
        if sim.claims.status[task] == TASK_FINISHED:
            note_end(rigid, task)
        else:
            note_rest(rigid, rigid.gangs.of_task[task])
    if reserves(rigid):
        if has_changed:
            begin_anew(rigid)
        correct_estimates(sim, rigid)


@inlined
def note_arrivals(rigid: Rigid, arrived: np.ndarray) -> None:
    """Let the gangs wait of which nobody is missing any more."""
    for task in arrived:
        gang = rigid.gangs.of_task[task]
        rigid.gangs.missing[gang] -= 1
        if rigid.gangs.missing[gang] == 0:
            let_wait(rigid, gang)


@noinline
def begin_anew(rigid: Rigid) -> None:
    """Close the profile, which was of another fleet: nobody has a reservation, and all will be made anew."""
    gangs = rigid.gangs
    rigid.notes[TO_REVISE], rigid.notes[FIRST_RESERVED] = 1, NOBODY
    rigid.profile.size[RESERVATIONS], rigid.profile.size[IS_OPEN] = 0, 0
    gang = first_below(rigid.all, 0, ABSENT)
    while gang != NO_MEMBER:
        gangs.reserved[gang] = np.inf
        gang = first_below(rigid.all, rigid.all.place[gang] + 1, ABSENT)


@noinline
def correct_estimates(sim: Simulation, rigid: Rigid) -> None:
    """Expect what should have ended, and runs, to run for longer; all reservations are then made anew.

    They are, too, where it has ended since: what was to follow it has missed its time.
    """
    gangs, now = rigid.gangs, rigid.profile.now[0]
    soon = np.nextafter(now, np.inf)
    gang = first_below(rigid.ending, 0, soon)
    if gang != NO_MEMBER or rigid.notes[LATE]:
        drop_reservations(rigid, sim.claims)
    while gang != NO_MEMBER:
        until = -np.inf
        for place in range(gangs.first[gang], gangs.first[gang + 1]):
            task = gangs.task[place]
            if sim.claims.status[task] == TASK_RUNNING:
                until = corrected_end(sim.progress.start[task], gangs.seconds[gang], now)
                hold(rigid.profile, gangs.pool[task], sim.tasks.shape[task], 1, now, until)
        gangs.until[gang] = until
        set_key(rigid.ending, gang, until)
        gang = first_below(rigid.ending, 0, soon)
