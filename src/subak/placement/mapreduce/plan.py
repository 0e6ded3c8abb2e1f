"""A plan: the machine and the order of each task, fixed before a run.

HMHS in three steps (hmhs 3.3): (1) dispatch the maps; (2) sequence those of each machine; (3) dispatch the reduces,
each job's from the instant at which its last map ends.
"""
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from subak.fleet.shapes import find_shapes
from subak.fleet.table import Fleet
from subak.placement.mapreduce.baselines import by_rank, in_job_order, max_min, sufferage
from subak.placement.mapreduce.batch import Batch, Half, find_batch
from subak.placement.mapreduce.dispatch import Assignment, Problem
from subak.placement.mapreduce.min_min import min_min
from subak.placement.mapreduce.recipes import (
    ASSIGNED,
    JOB_ORDER,
    MAX_MIN,
    MIN_MIN,
    RANK,
    RECIPES,
    REVERSED,
    SUFFERAGE,
    Recipe,
    SearchSettings,
)
from subak.placement.mapreduce.search import Draft, Found, draft_of, search
from subak.placement.mapreduce.sequence import sequence
from subak.queues.johnson import job_priorities, places
from subak.workload.table import Workload, expected_seconds


@dataclass(frozen=True)
class Plan:
    """Where tasks run, by which ranks: a machine takes of its maps, then its reduces, the ready one of least rank."""

    machine: np.ndarray  # int32[task], row of the fleet
    rank: np.ndarray  # float64[task]
    is_reduce: np.ndarray  # bool[task]
    finish: np.ndarray  # float64[task], seconds: when it will end if run times are as expected
    search_moves: int | None = None  # moves that a search tried, None where none was made

    @property
    def makespan(self) -> float:
        """Seconds from time 0 to the last end."""
        return float(self.finish.max())


@dataclass(frozen=True)
class Planned:
    """One half of a plan: everything by place in ``Half.task``, by job and then by number."""

    job: np.ndarray  # int32[place]
    column: np.ndarray  # int[place], that it was dispatched to; another slot of its machine may run it
    row: np.ndarray  # int32[place], row of ``Half.machine``
    rank: np.ndarray  # float64[place]
    finish: np.ndarray  # float64[place], seconds
    column_free: np.ndarray  # float64[column], seconds: when each slot has done its part
    job_done: np.ndarray  # float64[job], seconds, of its last task; 0 without


def make_plan(workload: Workload, fleet: Fleet, name: str, seed: int = 1, settings: SearchSettings | None = None,
              clock: Callable[[], float] = time.perf_counter) -> Plan:
    """Return the plan of the recipe called *name*. Raises InputError where there can be none (see `find_batch`).

    A recipe that searches draws with *seed*, as long as *settings* say; *clock* tells the seconds spent.
    """
    batch, recipe = find_batch(workload, fleet), RECIPES[name]
    upward = upward_ranks(batch)
    place = _places(workload, fleet, recipe)
    maps = _plan_maps(batch, recipe, upward[0], place)
    reduces = _plan_reduces(batch, recipe, upward[1], maps)
    plan = joined(batch, maps, reduces, len(workload.tasks))
    if not recipe.searches:
        return plan
    if batch.maps.task.size == 0:
        return replace(plan, search_moves=0)  # reduces alone are dispatched as well as they will be
    found = _search(batch, maps, place, seed, settings or SearchSettings(), clock)
    maps = _drafted(batch.maps, found.draft)
    better = joined(batch, maps, _plan_reduces(batch, recipe, upward[1], maps), len(workload.tasks))
    return replace(min(plan, better, key=lambda each: each.makespan), search_moves=found.moves)


def _places(workload: Workload, fleet: Fleet, recipe: Recipe) -> np.ndarray:
    """Return int64[job], the place of each job in the sequence of the maps."""
    priority = job_priorities(workload, fleet, find_shapes(workload), expected_seconds(workload))
    return places(priority, descending=recipe.sequence == REVERSED)


def _search(batch: Batch, maps: Planned, place: np.ndarray, seed: int, settings: SearchSettings,
            clock: Callable[[], float]) -> Found:
    """Return what a search makes of the maps' plan."""
    half, reduces = batch.maps, batch.reduces
    columns = int(half.slots.sum())
    available = free_for_reduces(batch, maps.column_free)
    problem = half.problem(half.arrival, np.zeros(columns))
    return search(problem, draft_of(problem, maps.job, maps.column, np.argsort(place)),
                  lambda done: reduces.problem(np.maximum(reduces.arrival, done), available), seed, settings, clock)


def _drafted(half: Half, draft: Draft) -> Planned:
    """Return the maps as a draft has them: a job's tasks take its columns in their order."""
    job, column = np.nonzero(draft.tasks.T)
    count = draft.tasks[column, job]
    job, column = np.repeat(job, count).astype(np.int32), np.repeat(column, count)
    place = np.empty(draft.order.size)
    place[draft.order] = np.arange(draft.order.size)
    return in_sequence(half, job, column, place[job])


def joined(batch: Batch, maps: Planned, reduces: Planned, tasks: int) -> Plan:
    """Return the plan that two halves add up to."""
    plan = Plan(np.zeros(tasks, np.int32), np.zeros(tasks), np.zeros(tasks, bool), np.zeros(tasks))
    for half, planned in ((batch.maps, maps), (batch.reduces, reduces)):
        plan.machine[half.task] = half.machine[planned.row]
        plan.rank[half.task] = planned.rank
        plan.finish[half.task] = planned.finish
        plan.is_reduce[half.task] = half is batch.reduces
    return plan


def _plan_maps(batch: Batch, recipe: Recipe, upward: np.ndarray, place: np.ndarray) -> Planned:
    half = batch.maps
    problem = half.problem(half.arrival, np.zeros(int(half.slots.sum())))
    planned = as_assigned(half, dispatch(recipe.maps, problem, upward))
    if recipe.sequence == ASSIGNED:
        return planned
    return in_sequence(half, planned.job, planned.column, place[planned.job].astype(np.float64))


def in_sequence(half: Half, job: np.ndarray, column: np.ndarray, rank: np.ndarray) -> Planned:
    """Return the maps of *job* (int32[place]) on the machines of *column* (int[place]), taken by *rank*."""
    problem = half.problem(half.arrival, np.zeros(int(half.slots.sum())))
    row = half.row_of_column[column]
    ends, order = sequence(problem, job, row, rank)
    finish = np.empty(order.size)
    finish[order] = ends.task
    return Planned(job, column, row, rank, finish, ends.column, ends.job)


def _plan_reduces(batch: Batch, recipe: Recipe, upward: np.ndarray, maps: Planned) -> Planned:
    half = batch.reduces
    ready = np.maximum(half.arrival, maps.job_done)  # A_i (equation 2)
    problem = half.problem(ready, free_for_reduces(batch, maps.column_free))
    return as_assigned(half, dispatch(recipe.reduces, problem, upward))


def as_assigned(half: Half, assignment: Assignment) -> Planned:
    """Return one half in the order of its assignment: a job's tasks take its places in the order of their numbers."""
    order = np.argsort(assignment.job, kind="stable")
    column_free = np.zeros(int(half.slots.sum()))
    column_free[assignment.column] = assignment.finish  # the last one of each column stands
    job_done = np.zeros(half.tasks.size)
    np.maximum.at(job_done, assignment.job, assignment.finish)
    column = assignment.column[order]
    return Planned(assignment.job[order], column, half.row_of_column[column], order.astype(np.float64),
                   assignment.finish[order], column_free, job_done)


def free_for_reduces(batch: Batch, map_free: np.ndarray) -> np.ndarray:
    """Return float64[column], seconds: when each slot of the reduces is first free; *map_free* is that of map columns.

    At once, unless maps and reduces compete on a machine: there maps go first, and a slot is free when as many maps of
    the machine have left as it takes. That is exact where both ask for the same and all jobs arrive together.
    """
    free = np.zeros(int(batch.reduces.slots.sum()))
    if not batch.shares:
        return free
    map_column = np.concatenate([[0], np.cumsum(batch.maps.slots)])
    column = np.concatenate([[0], np.cumsum(batch.reduces.slots)])
    row_of_machine = {machine: row for row, machine in enumerate(batch.maps.machine.tolist())}
    for row, machine in enumerate(batch.reduces.machine.tolist()):
        if machine in row_of_machine:
            maps = row_of_machine[machine]
            ends = np.sort(map_free[map_column[maps] : map_column[maps + 1]])
            slots = np.arange(batch.reduces.slots[row])
            still_there = ends.size * (slots.size - 1 - slots) // slots.size
            free[column[row] : column[row + 1]] = ends[ends.size - 1 - still_there]
    return free


def dispatch(rule: str, problem: Problem, upward: np.ndarray) -> Assignment:
    """Dispatch every task by the rule of that name; *upward* is float64[job], the upward rank."""
    if rule == RANK:
        return by_rank(problem, upward)
    return {MIN_MIN: min_min, MAX_MIN: max_min, SUFFERAGE: sufferage, JOB_ORDER: in_job_order}[rule](problem)


def upward_ranks(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Return float64[job] for maps and for reduces, seconds: of a task and what follows it, on machines of mean speed.

    A job's graph has two levels, so the rank of a map is its mean time plus that of a reduce (HEFT, without costs of
    communication other than the shuffle).
    """
    reduces = batch.reduces.mean_seconds()
    return batch.maps.mean_seconds() + reduces, reduces
