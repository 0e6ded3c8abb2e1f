"""The central loop: merges a heap of ends with sorted arrivals and fleet changes.

One step is one instant: (1) time passes and is accounted for; (2) the fleet changes, and attempts on machines that
leave end; (3) attempts end; only when nothing was freed, (4) tasks arrive; (5) the scheduler decides; (6) its claims
are committed, and CPU is shared anew where tasks interfere. So what is freed at an instant can be used by what arrives
at it, and equal times leave in the order of their sequence numbers.
"""
from collections.abc import Callable

import numpy as np

from subak.fleet.amounts import give_back, take
from subak.fleet.feasible import shape_fits_without
from subak.marks import inlined, noinline
from subak.placement.claims import (
    KEPT,
    TASK_BLOCKED,
    TASK_FINISHED,
    TASK_RUNNING,
    TASK_UNPLACEABLE,
    VIOLATED_RULE,
)
from subak.placement.interface.hooks import Memory
from subak.placement.ordered import Ordered, ordered_arrival, ordered_departure
from subak.placement.whole_gangs import WaitingGangs, note_gangs, serve_gangs
from subak.queues.lanes import MISUSES, Lanes
from subak.simulator.central.gangs import lose_gangs
from subak.simulator.engine.attempts import (
    changes_use,
    commit,
    drop_dead,
    end_time,
    forget_lost_events,
    is_alive,
    note_freed,
    note_loss,
    note_waiting,
    stop,
)
from subak.simulator.engine.changes import apply_change
from subak.simulator.engine.heap import SIZE, drop_first, push_event
from subak.simulator.engine.interference import interferes
from subak.simulator.engine.recorder import finish, pass_time
from subak.simulator.engine.sorting import sort
from subak.simulator.engine.state import (
    LOOP_BROKEN,
    LOOP_LOSSES_FULL,
    LOOP_PAUSED,
    LOOP_STEP,
    LOOP_TIMELINE_FULL,
    TIMELINE_ARRIVALS,
    TIMELINE_ENDS,
    Simulation,
)


def run_ordered(
    sim: Simulation, ordered: Ordered, select_machine: Callable[..., int], budget: int
) -> int:
    """Run *budget* steps of an order joined with a placement; return why it stopped."""
    for _ in range(budget):
        outcome = advance(sim)
        if outcome != LOOP_STEP:
            return outcome
        freed, arrived = sim.step.freed[: sim.counts.freed_now], sim.step.arrived[: sim.counts.arrived_now]
        if freed.size > 0:
            ordered_departure(sim.fleet, sim.tasks, ordered, select_machine, freed, sim.claims)
        if arrived.size > 0:
            ordered_arrival(sim.fleet, sim.tasks, ordered, select_machine, arrived, sim.claims)
        commit(sim)
        if sim.claims.violation[VIOLATED_RULE] != KEPT:
            return LOOP_BROKEN
    return LOOP_PAUSED


def run_hooks(  # noqa: PLR0913, PLR0917  (a policy, and what it reads)
    sim: Simulation, waiting: WaitingGangs, lanes: Lanes, memory: Memory,
    on_arrival: Callable[..., None], on_departure: Callable[..., None], select_machine: Callable[..., int], budget: int,
) -> int:
    """Run *budget* steps of a policy that chooses task and machine together; return why it stopped.

    *select_machine* says where a task of a gang goes.
    """
    for _ in range(budget):
        outcome = advance(sim)
        if outcome != LOOP_STEP:
            return outcome
        lose_gangs(sim, waiting.gangs)
        came = let_gangs_wait(sim, waiting)
        serve_gangs(waiting, sim.fleet, sim.tasks, select_machine, sim.claims)
        freed, arrived = sim.step.freed[: sim.counts.freed_now], sim.step.arrived[:came]
        if freed.size > 0:
            on_departure(sim.fleet, sim.tasks, lanes, memory, freed, sim.claims)
        if arrived.size > 0:
            on_arrival(sim.fleet, sim.tasks, lanes, memory, arrived, sim.claims)
        commit(sim)
        if sim.claims.violation[VIOLATED_RULE] != KEPT or lanes.size[MISUSES] > 0:
            return LOOP_BROKEN
    return LOOP_PAUSED


@inlined
def let_gangs_wait(sim: Simulation, waiting: WaitingGangs) -> int:
    """Let the gangs wait that are complete; return how many single tasks arrived, which come first in `arrived`."""
    ended, arrived = sim.step.ended[: sim.counts.ended_now], sim.step.arrived[: sim.counts.arrived_now]
    freed = sim.step.freed[: sim.counts.freed_now]
    return note_gangs(waiting, sim.fleet, sim.tasks, ended, arrived, freed, sim.claims)


@inlined
def next_time(sim: Simulation) -> float:
    """Return the instant of the next event, inf when there is none that any task could still notice."""
    time = np.inf
    if sim.events.size[SIZE] > 0:
        time = sim.events.slot[0]["time"]
    if sim.counts.next_arrival < sim.tasks.arrival.size:
        time = min(time, sim.tasks.arrival[sim.counts.next_arrival])
    in_rows = time < np.inf or sim.counts.waiting_now > 0 or sim.counts.running_now > 0
    noticed = in_rows or sim.clock.unread_from < np.inf
    if noticed and sim.counts.next_change < sim.changes.time.size:
        time = min(time, sim.changes.time[sim.counts.next_change])
    return time


@inlined
def advance(sim: Simulation) -> int:
    """Bring the state to the next instant; the tables `freed` and `arrived` tell what it brought."""
    drop_dead(sim)
    return pass_to(sim, next_time(sim))


@inlined
def pass_to(sim: Simulation, time: float) -> int:
    """Bring the state to an instant at which, or before which, nothing else happens; see `advance`."""
    if time >= sim.clock.unread_from or time > sim.clock.until:  # where all have been read, no event is left
        return finish(sim, time)
    if sim.counts.losses + sim.counts.running_now > sim.losses.task.size:
        return LOOP_LOSSES_FULL
    if not pass_time(sim, time):
        return LOOP_TIMELINE_FULL
    sim.clock.now = time
    for machine in sim.step.freed[: sim.counts.freed_now]:
        sim.step.is_freed[machine] = False
    sim.counts.freed_now = 0
    sim.counts.arrived_now = 0
    sim.counts.ended_now = 0
    apply_changes(sim, time)
    apply_ends(sim, time)
    if sim.counts.freed_now == 0:
        apply_arrivals(sim, time)
    elif sim.counts.arrived_now > 1:
        sort(sim.step.arrived[: sim.counts.arrived_now])  # tasks of one instant go by their numbers
    return LOOP_STEP


@inlined
def apply_arrivals(sim: Simulation, time: float) -> None:
    """Let every task of this instant wait, unless its stage or the whole fleet forbids it."""
    while sim.counts.next_arrival < sim.tasks.arrival.size:
        task = sim.counts.next_arrival
        if sim.tasks.arrival[task] > time:
            return
        sim.counts.next_arrival += 1
        sim.counts.events += 1
        sim.record.current[TIMELINE_ARRIVALS] += 1
        if sim.claims.status[task] == TASK_UNPLACEABLE:
            continue
        if sim.stages.of_task.size > 0 and sim.stages.waits[sim.stages.of_task[task]] > 0:
            sim.claims.status[task] = TASK_BLOCKED
        else:
            note_waiting(sim, task)


@inlined
def apply_ends(sim: Simulation, time: float) -> None:
    """End every attempt whose time has come; an event of an attempt that was lost is passed over."""
    while sim.events.size[SIZE] > 0 and sim.events.slot[0]["time"] <= time:
        task, machine = sim.events.slot[0]["item"], sim.events.slot[0]["place"]
        alive = is_alive(sim, sim.events.slot[0])
        drop_first(sim.events)
        if alive:
            sim.counts.events += 1
            if changes_use(sim, task):
                change_use(sim, task, machine)
            else:
                sim.record.current[TIMELINE_ENDS] += 1
                stop(sim, task, machine)
                sim.claims.status[task] = TASK_FINISHED
                if interferes(sim.interference):
                    sim.interference.end[task] = time
                if sim.stages.of_task.size > 0:
                    finish_in_stage(sim, task, time)
        else:
            sim.counts.lost_events -= 1


@noinline
def change_use(sim: Simulation, task: int, machine: int) -> None:
    """Let a running task hold what it uses from now on, or end its attempt."""
    held, used = sim.tasks.shape[task], sim.overuse.shape[task]
    if sim.overuse.first.size == 0:
        end_for_overuse(sim, task, machine)
    elif shape_fits_without(sim.fleet, sim.tasks, used, machine, held):
        give_back(sim.fleet, sim.tasks, held, machine)
        take(sim.fleet, sim.tasks, used, machine)
        note_freed(sim, machine)
        sim.tasks.shape[task] = used
        end = end_time(sim, task, machine, sim.progress.start[task])
        sim.progress.event[task] = push_event(sim.events, end, task, machine)
    else:
        note_loss(sim, task, machine)
        stop(sim, task, machine)
        sim.overuse.first[task] = used
        sim.overuse.part[task] = np.inf
        note_waiting(sim, task)


@noinline
def end_for_overuse(sim: Simulation, task: int, machine: int) -> None:
    """End an attempt that uses more than it asked for; the task waits again and asks for what it uses."""
    note_loss(sim, task, machine)
    stop(sim, task, machine)
    sim.tasks.shape[task] = sim.overuse.shape[task]
    sim.overuse.part[task] = np.inf
    note_waiting(sim, task)


@inlined
def finish_in_stage(sim: Simulation, task: int, time: float) -> None:
    """Count the task off in its stage; the last one releases the stages that wait for it."""
    stages = sim.stages
    stage = stages.of_task[task]
    stages.left[stage] -= 1
    if sim.slow.enough.size > 0 and stages.left[stage] == 0:
        open_dependents(sim, stage, time)
    enough = sim.slow.enough[stage] if sim.slow.enough.size > 0 else 0
    if stages.left[stage] != enough:
        return
    for edge in range(stages.child_first[stage], stages.child_first[stage + 1]):
        child = stages.child[edge]
        stages.waits[child] -= 1
        if stages.waits[child] == 0:
            release_stage(sim, child, time)


@noinline
def open_dependents(sim: Simulation, stage: int, time: float) -> None:
    """Let attempts go on that had only this stage's last tasks to wait for: now it is known when they end."""
    stages = sim.stages
    for edge in range(stages.child_first[stage], stages.child_first[stage + 1]):
        child = stages.child[edge]
        sim.slow.unfinished[child] -= 1
        if sim.slow.unfinished[child] == 0:
            sim.slow.opened[child] = time
            for task in stages.task[stages.task_first[child] : stages.task_first[child + 1]]:
                if sim.claims.status[task] == TASK_RUNNING:
                    set_end(sim, task)
    forget_lost_events(sim)


@inlined
def set_end(sim: Simulation, task: int) -> None:
    """Give a running attempt an end in place of the one that it had."""
    machine = sim.progress.machine[task]
    end = end_time(sim, task, machine, sim.progress.start[task])
    sim.progress.event[task] = push_event(sim.events, end, task, machine)
    sim.counts.lost_events += 1


@inlined
def release_stage(sim: Simulation, stage: int, time: float) -> None:
    """Let those tasks of a stage wait that have arrived; the others will when they arrive."""
    for place in range(sim.stages.task_first[stage], sim.stages.task_first[stage + 1]):
        task = sim.stages.task[place]
        if sim.claims.status[task] == TASK_BLOCKED:
            sim.progress.ready[task] = time
            note_waiting(sim, task)


@inlined
def apply_changes(sim: Simulation, time: float) -> None:
    """Apply every change of the fleet at this instant."""
    while sim.counts.next_change < sim.changes.time.size:
        change = sim.counts.next_change
        if sim.changes.time[change] > time:
            return
        sim.counts.next_change += 1
        sim.counts.events += 1
        apply_change(sim, change)
