"""Drops rows of ended tasks from a state and appends new ones.

A task's number in a state is its row. Who is open keeps their order, so that ties go as they would if nobody had gone.
"""
from typing import Any

import numpy as np

from subak.fleet.speeds import Speeds
from subak.placement.claims import TASK_FINISHED, TASK_UNPLACEABLE, Claims
from subak.placement.fair import Fair
from subak.placement.ordered import Ordered
from subak.queues.lanes import NOBODY, Lanes
from subak.simulator.engine.heap import EVENT, SIZE, Events
from subak.simulator.engine.setup import build_losses
from subak.simulator.engine.state import Progress, Simulation
from subak.workload.tasks import Stages, Tasks

# The columns that have a value for each task; they are empty where nothing is told of anybody.
OF_TASKS: dict[type, tuple[str, ...]] = {
    Tasks: ("arrival", "run_time", "estimate", "rank", "shape"),
    Speeds: ("group", "shuffle"),
    Progress: Progress._fields,
    Claims: ("status",),
    Stages: ("of_task",),
    Lanes: ("child", "sibling"),
    Fair: ("leaf",),
}
EVENTS_A_TASK, EVENTS_MORE = 2, 2048  # room in the heap: ends of attempts that run, and of some that were lost
NO_NUMBER = -1  # of a row that has gone


def open_rows(sim: Simulation) -> np.ndarray:
    """Return the rows of the tasks that something may still happen to, in order; all will arrive that have not."""
    is_open = ~np.isin(sim.claims.status, (TASK_FINISHED, TASK_UNPLACEABLE))
    is_open[sim.counts.next_arrival:] = True
    return np.flatnonzero(is_open)


def without_ended(
    sim: Simulation, states: tuple[object, ...], kept: np.ndarray
) -> tuple[Simulation, tuple[object, ...]]:
    """Return a simulation and what is beside it with the rows *kept* alone, which must be all that are open.

    There is no room for anything to happen before `with_arriving` has made some.
    """
    number = np.full(sim.tasks.arrival.size, NO_NUMBER, np.int32)
    number[kept] = np.arange(kept.size)
    sim.counts.next_arrival = int(np.searchsorted(kept, sim.counts.next_arrival))
    tables = {name: _picked(getattr(sim, name), kept) for name in ("tasks", "speeds", "progress", "claims", "stages")}
    none = np.empty(0, np.int32)
    left = sim._replace(**{**tables, "claims": tables["claims"]._replace(task=none, machine=none)},
                        events=_renumbered_events(sim.events, number), losses=build_losses(0),
                        step=sim.step._replace(arrived=none, ended=none))
    return left, tuple(_renumbered(state, kept, number) for state in states)


def with_arriving(
    sim: Simulation, states: tuple[object, ...], fresh: Simulation, leaf: np.ndarray
) -> tuple[Simulation, tuple[object, ...]]:
    """Return a simulation and what is beside it with the rows of *fresh* behind its own, and room for all of them.

    *leaf* is int32[task], the leaves of the new ones in a tree of queues; empty where there is none.
    """
    tables = {name: _behind(getattr(sim, name), getattr(fresh, name))
              for name in ("tasks", "speeds", "progress", "claims", "stages")}
    tasks = tables["tasks"].arrival.size
    claims = tables["claims"]._replace(task=np.empty(tasks, np.int32), machine=np.empty(tasks, np.int32))
    slots = np.empty(EVENTS_A_TASK * tasks + EVENTS_MORE, EVENT)
    held = int(sim.events.size[SIZE])
    slots[:held] = sim.events.slot[:held]
    room = {"arrived": np.empty(tasks, np.int32), "ended": np.empty(tasks, np.int32)}
    more = fresh.tasks.arrival.size
    grown = sim._replace(**{**tables, "claims": claims, "stages": _listed(tables["stages"])},
                         events=sim.events._replace(slot=slots), losses=build_losses(tasks),
                         step=sim.step._replace(**room))
    return grown, tuple(_longer(state, more, leaf) for state in states)


def _picked(table: Any, rows: np.ndarray) -> Any:
    columns = {name: getattr(table, name) for name in OF_TASKS[type(table)]}
    return table._replace(**{name: column[rows] for name, column in columns.items() if column.size})


def _behind(table: Any, fresh: Any) -> Any:
    names = OF_TASKS[type(table)]
    return table._replace(**{name: np.concatenate([getattr(table, name), getattr(fresh, name)]) for name in names})


def _renumbered_events(events: Events, number: np.ndarray) -> Events:
    """Return the same heap; what ends lost attempts of a task that has gone is of row 0, whose attempt it is not."""
    slot = events.slot[: events.size[SIZE]].copy()
    slot["item"] = np.maximum(number[slot["item"]], 0)
    return events._replace(slot=slot)


def _renumbered(state: Any, kept: np.ndarray, number: np.ndarray) -> Any:
    """Return what is beside a simulation; what knows nothing of tasks is as it was."""
    if isinstance(state, Fair):
        return _picked(state, kept)._replace(lanes=_renumbered(state.lanes, kept, number))
    if isinstance(state, Ordered):
        return state._replace(lanes=_renumbered(state.lanes, kept, number))
    if isinstance(state, Lanes):
        links = _picked(state, kept)
        return links._replace(**{name: _numbers(getattr(links, name), number) for name in ("root", "child", "sibling")})
    return state


def _numbers(links: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return links to tasks by their new numbers; of a task that does not wait they mean nothing, and lead nowhere."""
    there = (links >= 0) & (links < number.size)
    return np.where(there, number[np.where(there, links, 0)], NOBODY).astype(np.int32)


def _longer(state: Any, more: int, leaf: np.ndarray) -> Any:
    """Return what is beside a simulation with *more* tasks, who do not wait."""
    if isinstance(state, Fair):
        return state._replace(lanes=_longer(state.lanes, more, leaf), leaf=np.concatenate([state.leaf, leaf]))
    if isinstance(state, Ordered):
        return state._replace(lanes=_longer(state.lanes, more, leaf))
    if isinstance(state, Lanes):
        none = np.full(more, NOBODY, np.int32)
        return state._replace(child=np.concatenate([state.child, none]), sibling=np.concatenate([state.sibling, none]))
    return state


def _listed(stages: Stages) -> Stages:
    """Return the stages with the lists of their tasks; in a workload without dependencies there are none."""
    if stages.of_task.size == 0:
        return stages
    count = np.bincount(stages.of_task, minlength=stages.left.size)
    return stages._replace(task_first=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
                           task=np.argsort(stages.of_task, kind="stable").astype(np.int32))
