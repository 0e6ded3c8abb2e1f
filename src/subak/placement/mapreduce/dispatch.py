"""Dispatches tasks to machines one at a time, over columns whose load only grows.

A column is a slot of a machine. The tasks of a job are alike, so a dispatcher deals in jobs and counts. A job may be
dispatched from when it is admitted (hmhs, Algorithm 1, lines 2 to 10): when it is ready as soon as some column is
free; where no admitted job has tasks left, the next to be ready are admitted, and columns that are free earlier count
as free from then. Algorithm 1 admits one job there; here all that are ready at that same time are, so that jobs that
are ready together never depend on their numbers. Otherwise the two are the same.
"""
from typing import NamedTuple

import numpy as np

from subak.marks import inlined

NOBODY = -1  # no job, no column
JOBS_ADMITTED, JOBS_OPEN, TASKS_ASSIGNED = range(3)  # of `counts`


class Problem(NamedTuple):
    """What is to be dispatched, and where to."""

    tasks: np.ndarray  # int64[job], of a stage: T_i
    seconds: np.ndarray  # float64[job], run time of a task at factor 1: P_i
    shuffle: np.ndarray  # float64[job], seconds before it
    ready: np.ndarray  # float64[job], seconds: A_i
    group: np.ndarray  # int32[job], column of `factor`
    factor: np.ndarray  # float64[machine, group]: V_ij; inf where the machine may not run the job
    machine: np.ndarray  # int32[column]
    available: np.ndarray  # float64[column], seconds: when the column is first free


class Assignment(NamedTuple):
    """What was dispatched, in order; a job's tasks are alike, so which of them it is does not matter."""

    job: np.ndarray  # int32[task]
    column: np.ndarray  # int32[task]
    finish: np.ndarray  # float64[task], seconds, when each column runs its tasks in this order


class Desk(NamedTuple):
    """The state that every dispatcher keeps."""

    left: np.ndarray  # int64[job], tasks not dispatched
    queue: np.ndarray  # int32[job], jobs with tasks by (ready, number); the first JOBS_ADMITTED of them are admitted
    available: np.ndarray  # float64[column], seconds: Ava_j
    first_free: np.ndarray  # int32[2 * leaf], a tournament of columns by `available`
    counts: np.ndarray  # int64[3]: JOBS_ADMITTED, JOBS_OPEN (admitted, tasks left), TASKS_ASSIGNED


def build_desk(problem: Problem) -> Desk:
    """Return the state before the first task."""
    jobs = np.flatnonzero(problem.tasks > 0)
    queue = jobs[np.argsort(problem.ready[jobs], kind="stable")].astype(np.int32)
    desk = Desk(problem.tasks.astype(np.int64), queue, problem.available.copy(),
                tournament(problem.available.size), np.zeros(3, np.int64))
    play_all(desk.first_free, desk.available)
    return desk


def build_assignment(problem: Problem) -> Assignment:
    """Return room for every task."""
    count = int(problem.tasks.sum())
    return Assignment(np.full(count, NOBODY, np.int32), np.full(count, NOBODY, np.int32), np.zeros(count))


@inlined
def execution_seconds(problem: Problem, job: int, column: int) -> float:
    """Return E_ij, as `attempt_seconds` counts it; inf where the job may not run."""
    return problem.shuffle[job] + problem.seconds[job] * problem.factor[problem.machine[column], problem.group[job]]


@inlined
def admit(problem: Problem, desk: Desk) -> bool:
    """Admit the jobs that are ready; return whether columns had to wait for them, so that `available` changed.

    The new ones stand in the queue from what JOBS_ADMITTED was before.
    """
    waited = False
    if desk.counts[JOBS_OPEN] == 0:
        soonest = problem.ready[desk.queue[desk.counts[JOBS_ADMITTED]]]
        waited = desk.available[desk.first_free[1]] < soonest
        if waited:
            for column in range(desk.available.size):
                desk.available[column] = max(desk.available[column], soonest)
            play_all(desk.first_free, desk.available)
    free = desk.available[desk.first_free[1]]
    admitted = desk.counts[JOBS_ADMITTED]
    while admitted < desk.queue.size and problem.ready[desk.queue[admitted]] <= free:
        admitted += 1
        desk.counts[JOBS_OPEN] += 1
    desk.counts[JOBS_ADMITTED] = admitted
    return waited


@inlined
def assign(problem: Problem, desk: Desk, out: Assignment, job: int, column: int) -> None:
    """Dispatch a task of *job* to *column*."""
    desk.available[column] += execution_seconds(problem, job, column)
    play(desk.first_free, desk.available, column)
    place = desk.counts[TASKS_ASSIGNED]
    out.job[place], out.column[place], out.finish[place] = job, column, desk.available[column]
    desk.counts[TASKS_ASSIGNED] += 1
    desk.left[job] -= 1
    if desk.left[job] == 0:
        desk.counts[JOBS_OPEN] -= 1


# A tournament: node n plays nodes 2n and 2n + 1, so node 1 is the least of all, and a change plays log n matches.


def tournament(columns: int) -> np.ndarray:
    """Return int32[2 * leaf], with the columns at the leaves and nothing played."""
    leaves = 1 << max(columns - 1, 1).bit_length()
    tree = np.full(2 * leaves, NOBODY, np.int32)
    tree[leaves : leaves + columns] = np.arange(columns)
    return tree


@inlined
def play_all(tree: np.ndarray, key: np.ndarray) -> None:
    """Play every match, least *key* (float64[column]) first, ties to the lower column."""
    for node in range(tree.size // 2 - 1, 0, -1):
        tree[node] = lesser(key, tree[2 * node], tree[2 * node + 1])


@inlined
def play(tree: np.ndarray, key: np.ndarray, column: int) -> None:
    """Play the matches of a column whose key changed."""
    node = (tree.size // 2 + column) // 2
    while node > 0:
        tree[node] = lesser(key, tree[2 * node], tree[2 * node + 1])
        node //= 2


@inlined
def lesser(key: np.ndarray, left: int, right: int) -> int:
    """Return the column of the lesser key; a place without a column loses."""
    if right == NOBODY or (left != NOBODY and key[left] <= key[right]):
        return left
    return right
