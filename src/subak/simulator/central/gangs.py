"""Gangs of a central run: which tasks start together, which are too large, and what a loss does."""

from typing import Protocol

import numpy as np

from subak.marks import noinline
from subak.placement.claims import TASK_RUNNING, TASK_UNPLACEABLE, TASK_WAITING
from subak.placement.whole_gangs import Gangs, build_gangs, no_gangs
from subak.simulator.engine.attempts import forget_lost_events, lose
from subak.simulator.engine.state import Simulation
from subak.workload.table import Workload


def gangs_of_tasks(workload: Workload) -> np.ndarray:
    """Return int64[task], the gang of each; a task that starts by itself is one. They are numbered by first tasks."""
    stage = workload.tasks["stage"].to_numpy()
    alone = workload.gang_sizes()[stage] == 0
    keys = np.where(alone, len(workload.stages) + np.arange(stage.size), stage)
    _, first, found = np.unique(keys, return_index=True, return_inverse=True)
    number = np.empty(first.size, np.int64)
    number[np.argsort(first)] = np.arange(first.size)
    return number[found.reshape(-1)]


def gangs_of(simulation: Simulation, workload: Workload) -> Gangs:
    """Return the gangs of a workload; those that all machines together could never hold become unplaceable."""
    if not workload.gang_sizes().any():
        return no_gangs()
    of_task = gangs_of_tasks(workload)
    give_up_too_large(simulation, of_task)
    return build_gangs(of_task)


def give_up_too_large(simulation: Simulation, gangs: np.ndarray) -> None:
    """Let gangs, int64[task], be unplaceable that all machines together could never hold."""
    size = np.bincount(gangs)[gangs]
    if size.max() > 1:
        simulation.claims.status[size > most_at_once(simulation)[simulation.tasks.shape]] = TASK_UNPLACEABLE


def most_at_once(simulation: Simulation) -> np.ndarray:
    """Return int64[shape]: how many tasks the machines could hold at once, each with the most that it ever has."""
    fleet, tasks, changes = simulation.fleet, simulation.tasks, simulation.changes
    most = fleet.capacity.astype(np.int64)
    for row, amounts in enumerate(changes.capacity):
        np.maximum.at(most[row], changes.machine[changes.present], amounts[changes.present])
    bits = np.unpackbits(fleet.allowed.view(np.uint8), axis=1, bitorder="little").astype(bool)
    counts = np.empty(tasks.constraint_set.size, np.int64)
    for shape, asked in enumerate(tasks.request.T):
        copies = (most[asked > 0] // asked[asked > 0, None]).min(axis=0)
        counts[shape] = copies[bits[tasks.constraint_set[shape]]].sum()
    return counts


class Members(Protocol):
    """Which tasks are a gang."""

    @property
    def of_task(self) -> np.ndarray:
        """The gang of each task, int32[task]; empty where there are none."""

    @property
    def task(self) -> np.ndarray:
        """The tasks, gang by gang, int32[task]."""

    @property
    def first(self) -> np.ndarray:
        """Where those of a gang begin, int64[gang + 1]."""


@noinline
def lose_gangs(sim: Simulation, gangs: Members) -> None:
    """Lose what still runs of *gangs* of which an attempt was lost.

    They have `of_task`, int32[task], the gang of each, and `task`, int32[task], the tasks gang by gang, those of one
    from `first`, int64[gang + 1], on; all are empty where there are none.
    """
    if gangs.of_task.size == 0:
        return
    for lost in range(sim.counts.ended_now):
        if sim.claims.status[sim.step.ended[lost]] == TASK_WAITING:
            gang = gangs.of_task[sim.step.ended[lost]]
            for place in range(gangs.first[gang], gangs.first[gang + 1]):
                task = gangs.task[place]
                if sim.claims.status[task] == TASK_RUNNING:
                    lose(sim, task, sim.progress.machine[task])
    forget_lost_events(sim)
