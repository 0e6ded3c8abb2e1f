"""Min-Min and Dynamic-Min-Min (HMHS 3.2): the task with the earliest completion goes next.

With every job ready at 0 this is Min-Min; with jobs that become ready, Dynamic-Min-Min (Algorithm 1). Ties: the least
completion time, then the least execution time, then the job, then the column.

The textbook looks at every job and column for every task. But for a given column the best job is that of the least
execution time E_ij, whenever the column is free: so each column keeps a heap of its admitted jobs by (E_ij, job), jobs
without tasks left fall out when they come to its top, and a tournament over the columns finds the best completion.
O(jobs * columns * log jobs + tasks * log columns) in all.
"""
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.placement.mapreduce.dispatch import (
    JOBS_ADMITTED,
    NOBODY,
    Assignment,
    Desk,
    Problem,
    admit,
    assign,
    build_assignment,
    build_desk,
    execution_seconds,
    tournament,
)


class Best(NamedTuple):
    """The jobs of each column, the best first."""

    heap: np.ndarray  # int32[column, job], admitted jobs by (E_ij, job)
    size: np.ndarray  # int32[column], of its heap
    execution: np.ndarray  # float64[column], seconds, of the job on top; inf where there is none
    completion: np.ndarray  # float64[column], seconds, of the same: never too late
    winner: np.ndarray  # int32[2 * leaf], a tournament of columns by completion


def min_min(problem: Problem) -> Assignment:
    """Dispatch every task; every job must have a column that may run it. Memory: 4 bytes for each job and column."""
    desk, out = build_desk(problem), build_assignment(problem)
    columns = problem.available.size
    best = Best(np.empty((columns, desk.queue.size), np.int32), np.zeros(columns, np.int32),
                np.full(columns, np.inf), np.full(columns, np.inf), tournament(columns))
    dispatch_min_min(problem, desk, best, out)
    return out


@kernel
def dispatch_min_min(problem: Problem, desk: Desk, best: Best, out: Assignment) -> None:
    """Fill *out* from its start to its end."""
    for _ in range(out.job.size):
        first = desk.counts[JOBS_ADMITTED]
        waited = admit(problem, desk)
        if waited or desk.counts[JOBS_ADMITTED] > first:
            take_in(problem, desk, best, first)
        column = best.winner[1]
        while desk.left[best.heap[column, 0]] == 0:
            drop_top(problem, best, column)
            refresh(problem, desk, best, column)
            column = best.winner[1]
        assign(problem, desk, out, best.heap[column, 0], column)
        refresh(problem, desk, best, column)


@inlined
def take_in(problem: Problem, desk: Desk, best: Best, first: int) -> None:
    """Put the jobs admitted since *first* into the heap of every column that may run them."""
    for column in range(best.size.size):
        for place in range(first, desk.counts[JOBS_ADMITTED]):
            if execution_seconds(problem, desk.queue[place], column) < np.inf:
                push(problem, best, column, desk.queue[place])
        renew_completion(problem, desk, best, column)
    for node in range(best.winner.size // 2 - 1, 0, -1):
        best.winner[node] = better(best, best.winner[2 * node], best.winner[2 * node + 1])


@inlined
def renew_completion(problem: Problem, desk: Desk, best: Best, column: int) -> None:
    """Work out what the job on top of a column's heap would take, and when it would be complete."""
    best.execution[column] = np.inf
    if best.size[column] > 0:
        best.execution[column] = execution_seconds(problem, best.heap[column, 0], column)
    best.completion[column] = desk.available[column] + best.execution[column]


@inlined
def refresh(problem: Problem, desk: Desk, best: Best, column: int) -> None:
    """Do so, and play the column's matches again."""
    renew_completion(problem, desk, best, column)
    node = (best.winner.size // 2 + column) // 2
    while node > 0:
        best.winner[node] = better(best, best.winner[2 * node], best.winner[2 * node + 1])
        node //= 2


@inlined
def better(best: Best, left: int, right: int) -> int:
    """Return the column whose best job goes first; *left* is the lower one."""
    if right == NOBODY or best.completion[right] == np.inf:
        return left
    if left == NOBODY or best.completion[left] == np.inf:
        return right
    if best.completion[left] != best.completion[right]:
        return left if best.completion[left] < best.completion[right] else right
    if best.execution[left] != best.execution[right]:
        return left if best.execution[left] < best.execution[right] else right
    return left if best.heap[left, 0] <= best.heap[right, 0] else right


# A heap of jobs for each column


@inlined
def shorter(problem: Problem, column: int, job: int, other: int) -> bool:
    """Whether a task of *job* takes less time on the column than one of *other*, ties by number."""
    mine, others = execution_seconds(problem, job, column), execution_seconds(problem, other, column)
    return mine < others or (mine == others and job < other)


@inlined
def push(problem: Problem, best: Best, column: int, job: int) -> None:
    """Put a job into a column's heap."""
    heap, place = best.heap[column], best.size[column]
    best.size[column] += 1
    while place > 0 and shorter(problem, column, job, heap[(place - 1) // 2]):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = job


@inlined
def drop_top(problem: Problem, best: Best, column: int) -> None:
    """Take the job on top out of a column's heap."""
    heap = best.heap[column]
    best.size[column] -= 1
    size = best.size[column]
    job, place = heap[size], 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and shorter(problem, column, heap[child + 1], heap[child]):
            child += 1
        if not shorter(problem, column, heap[child], job):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = job
