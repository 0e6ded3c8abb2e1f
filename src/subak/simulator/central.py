"""The central simulator: a heap of ends merged with sorted arrivals and changes of the fleet.

One step is one instant: (1) time passes and is accounted for; (2) the fleet changes, and attempts on machines that
leave end; (3) attempts end; only when nothing was freed, (4) tasks arrive; (5) the scheduler decides; (6) its claims
are committed. So what is freed at an instant can be used by what arrives at it, and equal times leave in the order
of their sequence numbers.
"""
from collections.abc import Callable

import numpy as np

from subak.fleet.amounts import give_back, remove, resize
from subak.fleet.speeds import attempt_seconds, run_seconds
from subak.kernel import cold, inlined
from subak.placement.hooks import Memory
from subak.placement.ordered import ordered_arrival, ordered_departure
from subak.placement.starts import (
    BLOCKED,
    FINISHED,
    KEPT,
    RULE,
    RUNNING,
    UNPLACEABLE,
    WAITING,
)
from subak.placement.starts import SIZE as CLAIMS
from subak.queues.lanes import MISUSES, Lanes
from subak.simulator.heap import SIZE, drop_first, insert, push_event
from subak.simulator.order import sort
from subak.simulator.recorder import close_interval, pass_time
from subak.simulator.state import (
    ARRIVALS,
    ARRIVED,
    ENDED,
    ENDS,
    EVENTS,
    FREED,
    INTERVAL,
    INTERVALS,
    LOSSES,
    LOST,
    LOST_EVENTS,
    NEXT_ARRIVAL,
    NEXT_CHANGE,
    NOW,
    ROWS,
    RUNNING_NOW,
    STARTS,
    UNTIL,
    WAITING_NOW,
    Simulation,
)

DONE, STEP, PAUSED, TIMELINE_FULL, LOSSES_FULL, BROKEN = range(6)  # why the loop came back
LOST_EVENTS_KEPT = 1000  # events of lost attempts, or replaced ones, the heap may carry before it is looked through


def run_ordered(
    sim: Simulation, lanes: Lanes, lane_of_shape: np.ndarray, select_machine: Callable[..., int], budget: int
) -> int:
    """Run *budget* steps of an order joined with a placement; return why it stopped."""
    for _ in range(budget):
        outcome = advance(sim)
        if outcome != STEP:
            return outcome
        freed, arrived = sim.step.freed[: sim.counts[FREED]], sim.step.arrived[: sim.counts[ARRIVED]]
        if freed.size > 0:
            ordered_departure(sim.fleet, sim.tasks, lanes, select_machine, freed, sim.starts)
        if arrived.size > 0:
            ordered_arrival(sim.fleet, sim.tasks, lanes, lane_of_shape, select_machine, arrived, sim.starts)
        commit(sim)
        if sim.starts.note[RULE] != KEPT:
            return BROKEN
    return PAUSED


def run_hooks(
    sim: Simulation, lanes: Lanes, memory: Memory,
    on_arrival: Callable[..., None], on_departure: Callable[..., None], budget: int,
) -> int:
    """Run *budget* steps of a policy that chooses task and machine together; return why it stopped."""
    for _ in range(budget):
        outcome = advance(sim)
        if outcome != STEP:
            return outcome
        freed, arrived = sim.step.freed[: sim.counts[FREED]], sim.step.arrived[: sim.counts[ARRIVED]]
        if freed.size > 0:
            on_departure(sim.fleet, sim.tasks, lanes, memory, freed, sim.starts)
        if arrived.size > 0:
            on_arrival(sim.fleet, sim.tasks, lanes, memory, arrived, sim.starts)
        commit(sim)
        if sim.starts.note[RULE] != KEPT or lanes.size[MISUSES] > 0:
            return BROKEN
    return PAUSED


@inlined
def next_time(sim: Simulation) -> float:
    """Return the instant of the next event, inf when there is none that any task could still notice."""
    time = np.inf
    if sim.events.size[SIZE] > 0:
        time = sim.events.slot[0]["time"]
    if sim.counts[NEXT_ARRIVAL] < sim.tasks.arrival.size:
        time = min(time, sim.tasks.arrival[sim.counts[NEXT_ARRIVAL]])
    noticed = time < np.inf or sim.counts[WAITING_NOW] > 0 or sim.counts[RUNNING_NOW] > 0
    if noticed and sim.counts[NEXT_CHANGE] < sim.changes.time.size:
        time = min(time, sim.changes.time[sim.counts[NEXT_CHANGE]])
    return time


@inlined
def advance(sim: Simulation) -> int:
    """Bring the state to the next instant; the tables `freed` and `arrived` tell what it brought."""
    drop_dead(sim)
    time = next_time(sim)
    if time == np.inf or time > sim.clock[UNTIL]:
        return finish(sim, time)
    if sim.counts[LOSSES] + sim.counts[RUNNING_NOW] > sim.losses.task.size:
        return LOSSES_FULL
    if not pass_time(sim, time):
        return TIMELINE_FULL
    sim.clock[NOW] = time
    for machine in sim.step.freed[: sim.counts[FREED]]:
        sim.step.is_freed[machine] = False
    sim.counts[FREED] = 0
    sim.counts[ARRIVED] = 0
    sim.counts[ENDED] = 0
    apply_changes(sim, time)
    apply_ends(sim, time)
    if sim.counts[FREED] == 0:
        apply_arrivals(sim, time)
    elif sim.counts[ARRIVED] > 1:
        sort(sim.step.arrived[: sim.counts[ARRIVED]])  # tasks of one instant go by their numbers
    return STEP


@inlined
def drop_dead(sim: Simulation) -> None:
    """Drop the events of lost attempts that have come to the top: nothing happens at their instants."""
    while sim.events.size[SIZE] > 0 and not is_alive(sim, sim.events.slot[0]):
        drop_first(sim.events)
        sim.counts[LOST_EVENTS] -= 1


@cold
def finish(sim: Simulation, time: float) -> int:
    """Close the last interval: where the run was told to stop if anything goes on until then, else at the last event.

    *time* is the next event's.
    """
    goes_on = time < np.inf or sim.counts[RUNNING_NOW] > 0 or sim.counts[WAITING_NOW] > 0
    end = sim.clock[UNTIL] if goes_on and sim.clock[UNTIL] < np.inf else sim.clock[NOW]
    if not pass_time(sim, end):
        return TIMELINE_FULL
    if end > sim.counts[INTERVALS] * sim.clock[INTERVAL] or sim.counts[ROWS] == 0:
        close_interval(sim)
        return DONE
    for column in range(sim.record.current.size):  # what happened at the very end belongs to the last interval
        sim.record.rows[sim.counts[ROWS] - 1, column] += sim.record.current[column]
    return DONE


@inlined
def note_freed(sim: Simulation, machine: int) -> None:
    """List a machine, once, among those whose amounts changed for the better or that left."""
    if not sim.step.is_freed[machine]:
        sim.step.is_freed[machine] = True
        sim.step.freed[sim.counts[FREED]] = machine
        sim.counts[FREED] += 1


@inlined
def note_waiting(sim: Simulation, task: int) -> None:
    """Let a task wait from now on."""
    sim.starts.status[task] = WAITING
    sim.step.arrived[sim.counts[ARRIVED]] = task
    sim.counts[ARRIVED] += 1
    sim.counts[WAITING_NOW] += 1
    sim.record.waiting_by_shape[sim.tasks.shape[task]] += 1


@inlined
def apply_arrivals(sim: Simulation, time: float) -> None:
    """Let every task of this instant wait, unless its stage or the whole fleet forbids it."""
    while sim.counts[NEXT_ARRIVAL] < sim.tasks.arrival.size:
        task = sim.counts[NEXT_ARRIVAL]
        if sim.tasks.arrival[task] > time:
            return
        sim.counts[NEXT_ARRIVAL] += 1
        sim.counts[EVENTS] += 1
        sim.record.current[ARRIVALS] += 1
        if sim.starts.status[task] == UNPLACEABLE:
            continue
        if sim.stages.of_task.size > 0 and sim.stages.waits[sim.stages.of_task[task]] > 0:
            sim.starts.status[task] = BLOCKED
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
            sim.counts[EVENTS] += 1
            if uses_too_much(sim, task):
                end_for_overuse(sim, task, machine)
            else:
                sim.record.current[ENDS] += 1
                stop(sim, task, machine)
                sim.starts.status[task] = FINISHED
                if sim.stages.of_task.size > 0:
                    finish_in_stage(sim, task, time)
        else:
            sim.counts[LOST_EVENTS] -= 1


@inlined
def uses_too_much(sim: Simulation, task: int) -> bool:
    """Whether the task's attempt is ended before its time, because it asked for less than it uses."""
    return bool(sim.overuse.part.size > 0 and sim.overuse.part[task] < np.inf)


@cold
def end_for_overuse(sim: Simulation, task: int, machine: int) -> None:
    """End an attempt that uses more than it asked for; the task waits again and asks for what it uses."""
    note_loss(sim, task, machine)
    stop(sim, task, machine)
    sim.tasks.shape[task] = sim.overuse.shape[task]
    sim.overuse.part[task] = np.inf
    note_waiting(sim, task)


@inlined
def is_alive(sim: Simulation, slot: np.void) -> bool:
    """Whether an event ends the present attempt of its task, not one that was lost."""
    task = slot["item"]
    return sim.starts.status[task] == RUNNING and sim.progress.event[task] == slot["sequence"]


@inlined
def stop(sim: Simulation, task: int, machine: int) -> None:
    """Give back what an attempt holds."""
    give_back(sim.fleet, sim.tasks, task, machine)
    sim.counts[RUNNING_NOW] -= 1
    sim.step.ended[sim.counts[ENDED]] = task
    sim.counts[ENDED] += 1
    note_freed(sim, machine)


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


@cold
def open_dependents(sim: Simulation, stage: int, time: float) -> None:
    """Let attempts go on that had only this stage's last tasks to wait for: now it is known when they end."""
    stages = sim.stages
    for edge in range(stages.child_first[stage], stages.child_first[stage + 1]):
        child = stages.child[edge]
        sim.slow.unfinished[child] -= 1
        if sim.slow.unfinished[child] == 0:
            sim.slow.opened[child] = time
            for task in stages.task[stages.task_first[child] : stages.task_first[child + 1]]:
                if sim.starts.status[task] == RUNNING:
                    set_end(sim, task)
    forget_lost_events(sim)


@inlined
def set_end(sim: Simulation, task: int) -> None:
    """Give a running attempt an end in place of the one that it had."""
    machine = sim.progress.machine[task]
    end = end_time(sim, task, machine, sim.progress.start[task])
    sim.progress.event[task] = push_event(sim.events, end, task, machine)
    sim.counts[LOST_EVENTS] += 1


@inlined
def release_stage(sim: Simulation, stage: int, time: float) -> None:
    """Let those tasks of a stage wait that have arrived; the others will when they arrive."""
    for place in range(sim.stages.task_first[stage], sim.stages.task_first[stage + 1]):
        task = sim.stages.task[place]
        if sim.starts.status[task] == BLOCKED:
            sim.progress.ready[task] = time
            note_waiting(sim, task)


@inlined
def apply_changes(sim: Simulation, time: float) -> None:
    """Apply every change of the fleet at this instant."""
    while sim.counts[NEXT_CHANGE] < sim.changes.time.size:
        change = sim.counts[NEXT_CHANGE]
        if sim.changes.time[change] > time:
            return
        sim.counts[NEXT_CHANGE] += 1
        sim.counts[EVENTS] += 1
        apply_change(sim, change)


@cold
def apply_change(sim: Simulation, change: int) -> None:
    """Let a machine leave, join, or take another capacity; attempts that no longer fit are lost."""
    machine = sim.changes.machine[change]
    if sim.changes.present[change]:
        while not holds_at_most(sim, machine, change):
            lose(sim, latest_on(sim, machine), machine)
        resize(sim.fleet, machine, sim.changes.capacity, change)
    else:
        for slot in sim.events.slot[: sim.events.size[SIZE]]:
            if slot["place"] == machine and is_alive(sim, slot):
                lose(sim, slot["item"], machine)
        remove(sim.fleet, machine)
    note_freed(sim, machine)
    forget_lost_events(sim)


@inlined
def holds_at_most(sim: Simulation, machine: int, change: int) -> bool:
    """Whether what runs on the machine fits in its new capacity."""
    for resource in range(sim.fleet.used.size):
        held = sim.fleet.capacity[resource, machine] - max(sim.fleet.free[resource, machine], 0)
        if held > sim.changes.capacity[resource, change]:
            return False
    return True


@inlined
def latest_on(sim: Simulation, machine: int) -> int:
    """Return the task that started last on a machine, of equals the one with the highest number."""
    latest = -1
    for slot in sim.events.slot[: sim.events.size[SIZE]]:
        if slot["place"] == machine and is_alive(sim, slot):
            task = slot["item"]
            if latest < 0 or started_after(sim.progress.start, task, latest):
                latest = task
    return latest


@cold
def lose(sim: Simulation, task: int, machine: int) -> None:
    """End an attempt before its time: the task waits again."""
    sim.counts[LOST_EVENTS] += 1
    note_loss(sim, task, machine)
    stop(sim, task, machine)
    note_waiting(sim, task)


@cold
def note_loss(sim: Simulation, task: int, machine: int) -> None:
    """Write down an attempt that ends before its time."""
    loss = sim.counts[LOSSES]
    sim.counts[LOSSES] += 1
    sim.losses.task[loss], sim.losses.machine[loss] = task, machine
    sim.losses.start[loss], sim.losses.end[loss] = sim.progress.start[task], sim.clock[NOW]
    sim.record.current[LOST] += 1


@cold
def forget_lost_events(sim: Simulation) -> None:
    """Rebuild the heap when most of it ends attempts that were lost, so that it never outgrows twice the running."""
    lost = sim.counts[LOST_EVENTS]
    if lost <= LOST_EVENTS_KEPT or 2 * lost <= sim.events.size[SIZE]:
        return
    size = sim.events.size[SIZE]
    sim.events.size[SIZE] = 0
    for place in range(size):
        slot = sim.events.slot[place]
        if is_alive(sim, slot):
            insert(sim.events, slot["time"], slot["sequence"], slot["item"], slot["place"])
    sim.counts[LOST_EVENTS] = 0


@inlined
def started_after(start: np.ndarray, task: int, other: int) -> bool:
    """Whether *task* started after *other*, ties by number."""
    return start[task] > start[other] or (start[task] == start[other] and task > other)


@inlined
def end_time(sim: Simulation, task: int, machine: int, start: float) -> float:
    """Return when an attempt ends that starts at *start*; inf while it waits for inputs that nobody has made yet."""
    end = start + attempt_seconds(sim.speeds, sim.tasks, task, machine)
    if sim.slow.opened.size > 0:
        end = max(end, sim.slow.opened[sim.stages.of_task[task]] + run_seconds(sim.speeds, sim.tasks, task, machine))
    if uses_too_much(sim, task) and end < np.inf:
        end -= (1.0 - sim.overuse.part[task]) * run_seconds(sim.speeds, sim.tasks, task, machine)
    return end


@inlined
def commit(sim: Simulation) -> None:
    """Turn the scheduler's claims into running attempts."""
    now = sim.clock[NOW]
    for place in range(sim.starts.note[CLAIMS]):
        task, machine = sim.starts.task[place], sim.starts.machine[place]
        sim.progress.start[task] = now
        sim.progress.event[task] = push_event(sim.events, end_time(sim, task, machine, now), task, machine)
        sim.progress.machine[task] = machine
        sim.progress.attempts[task] += 1
        sim.record.waiting_by_shape[sim.tasks.shape[task]] -= 1
    sim.record.current[STARTS] += sim.starts.note[CLAIMS]
    sim.counts[WAITING_NOW] -= sim.starts.note[CLAIMS]
    sim.counts[RUNNING_NOW] += sim.starts.note[CLAIMS]
    sim.starts.note[CLAIMS] = 0
