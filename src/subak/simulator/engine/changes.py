"""Applies fleet changes during a run: machines leave, join or change capacity."""

import numpy as np

from subak.fleet.amounts import remove, resize
from subak.marks import inlined, noinline
from subak.simulator.engine.attempts import forget_lost_events, is_alive, lose, note_freed
from subak.simulator.engine.heap import SIZE
from subak.simulator.engine.interference import change_physical, interferes
from subak.simulator.engine.state import (
    Simulation,
)


@noinline
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
    if interferes(sim.interference):
        change_physical(sim.interference, machine, change)
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


@inlined
def started_after(start: np.ndarray, task: int, other: int) -> bool:
    """Whether *task* started after *other*, ties by number."""
    return start[task] > start[other] or (start[task] == start[other] and task > other)
