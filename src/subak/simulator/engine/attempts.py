"""Starts, ends and loses attempts under every kind of scheduler, keeping state and heap in step."""

import numpy as np

from subak.fleet.amounts import give_back
from subak.fleet.speeds import attempt_seconds, run_seconds
from subak.marks import inlined, noinline
from subak.placement.claims import (
    TASK_RUNNING,
    TASK_WAITING,
)
from subak.simulator.engine.heap import SIZE, drop_first, insert, push_event
from subak.simulator.engine.interference import interferes, join, leave, share_anew
from subak.simulator.engine.state import (
    TIMELINE_LOST,
    TIMELINE_STARTS,
    Simulation,
)

LOST_EVENTS_KEPT = 1000  # events of lost attempts, or replaced ones, the heap may carry before it is looked through


@inlined
def commit(sim: Simulation) -> None:
    """Turn the scheduler's claims into running attempts, and share CPU anew where tasks do."""
    now = sim.clock.now
    for place in range(sim.claims.size[0]):
        task, machine = sim.claims.task[place], sim.claims.machine[place]
        sim.progress.start[task] = now
        sim.progress.event[task] = push_event(sim.events, end_time(sim, task, machine, now), task, machine)
        sim.progress.machine[task] = machine
        sim.progress.attempts[task] += 1
        sim.record.waiting_by_shape[sim.tasks.shape[task]] -= 1
        if interferes(sim.interference):
            join(sim.interference, task, machine, end_time(sim, task, machine, 0.0))
    sim.record.current[TIMELINE_STARTS] += sim.claims.size[0]
    sim.counts.waiting_now -= sim.claims.size[0]
    sim.counts.running_now += sim.claims.size[0]
    sim.claims.size[0] = 0
    if interferes(sim.interference):
        sim.counts.lost_events += share_anew(
            sim.interference, sim.progress.start, sim.progress.event, sim.events, now)
        forget_lost_events(sim)


@inlined
def end_time(sim: Simulation, task: int, machine: int, start: float) -> float:
    """Return when an attempt ends that starts at *start*; inf while it waits for inputs that nobody has made yet.

    Where CPU is shared it ends then only if it gets all that it wants.
    """
    end = start + attempt_seconds(sim.speeds, sim.tasks, task, machine)
    if sim.slow.opened.size > 0:
        end = max(end, sim.slow.opened[sim.stages.of_task[task]] + run_seconds(sim.speeds, sim.tasks, task, machine))
    if sim.cut.size > 0 and sim.cut[task] >= 0.0:
        end = start + sim.cut[task]
    if changes_use(sim, task) and end < np.inf:
        end -= (1.0 - sim.overuse.part[task]) * run_seconds(sim.speeds, sim.tasks, task, machine)
    return end


@inlined
def stop(sim: Simulation, task: int, machine: int) -> None:
    """Give back what an attempt holds."""
    give_back(sim.fleet, sim.tasks, sim.tasks.shape[task], machine)
    if interferes(sim.interference):
        leave(sim.interference, task, machine)
    sim.counts.running_now -= 1
    sim.step.ended[sim.counts.ended_now] = task
    sim.counts.ended_now += 1
    note_freed(sim, machine)


@inlined
def note_freed(sim: Simulation, machine: int) -> None:
    """List a machine, once, among those whose amounts changed for the better or that left."""
    if not sim.step.is_freed[machine]:
        sim.step.is_freed[machine] = True
        sim.step.freed[sim.counts.freed_now] = machine
        sim.counts.freed_now += 1


@inlined
def note_waiting(sim: Simulation, task: int) -> None:
    """Let a task wait from now on."""
    if sim.overuse.first.size > 0:
        sim.tasks.shape[task] = sim.overuse.first[task]
    sim.claims.status[task] = TASK_WAITING
    sim.step.arrived[sim.counts.arrived_now] = task
    sim.counts.arrived_now += 1
    sim.counts.waiting_now += 1
    sim.record.waiting_by_shape[sim.tasks.shape[task]] += 1


@noinline
def lose(sim: Simulation, task: int, machine: int) -> None:
    """End an attempt before its time: the task waits again."""
    sim.counts.lost_events += 1
    note_loss(sim, task, machine)
    stop(sim, task, machine)
    note_waiting(sim, task)


@noinline
def note_loss(sim: Simulation, task: int, machine: int) -> None:
    """Write down an attempt that ends before its time."""
    loss = sim.counts.losses
    sim.counts.losses += 1
    sim.losses.task[loss], sim.losses.machine[loss] = task, machine
    sim.losses.start[loss], sim.losses.end[loss] = sim.progress.start[task], sim.clock.now
    sim.record.current[TIMELINE_LOST] += 1


@inlined
def is_alive(sim: Simulation, slot: np.void) -> bool:
    """Whether an event ends the present attempt of its task, not one that was lost."""
    task = slot["item"]
    return sim.claims.status[task] == TASK_RUNNING and sim.progress.event[task] == slot["sequence"]


@inlined
def drop_dead(sim: Simulation) -> None:
    """Drop the events of lost attempts that have come to the top: nothing happens at their instants."""
    while sim.counts.lost_events > 0 and sim.events.size[SIZE] > 0 and not is_alive(sim, sim.events.slot[0]):
        drop_first(sim.events)
        sim.counts.lost_events -= 1


@noinline
def forget_lost_events(sim: Simulation) -> None:
    """Rebuild the heap when most of it ends attempts that were lost, so that it never outgrows twice the running."""
    lost = sim.counts.lost_events
    if lost <= LOST_EVENTS_KEPT or 2 * lost <= sim.events.size[SIZE]:
        return
    size = sim.events.size[SIZE]
    sim.events.size[SIZE] = 0
    for place in range(size):
        slot = sim.events.slot[place]
        if is_alive(sim, slot):
            insert(sim.events, slot["time"], slot["sequence"], slot["item"], slot["place"])
    sim.counts.lost_events = 0


@inlined
def changes_use(sim: Simulation, task: int) -> bool:
    """Whether the task's attempt will come to use other amounts than it holds now."""
    return bool(sim.overuse.part.size > 0 and sim.overuse.part[task] < np.inf
                and sim.tasks.shape[task] != sim.overuse.shape[task])
