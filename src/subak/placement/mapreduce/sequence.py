"""Predicts when the tasks of a plan end, as the engine will run it.

A machine never idles while a task of its own is ready: a slot that is free takes the ready task of the least rank. Of
tasks that become ready at the instant in which a slot is freed, those that waited before go first, as in the engine.
"""
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.placement.mapreduce.dispatch import Problem, execution_seconds


class Sequences(NamedTuple):
    """Tasks by machine, in the order in which they become ready, those that do together by rank and then by number."""

    job: np.ndarray  # int32[place]
    rank: np.ndarray  # float64[place]
    first: np.ndarray  # int64[machine + 1], where each machine's tasks begin
    column: np.ndarray  # int64[machine + 1], where its columns begin
    waiting: np.ndarray  # int32[place], a heap of those that wait, by (rank, place)


class Ends(NamedTuple):
    """When tasks, jobs and columns are done."""

    task: np.ndarray  # float64[place], seconds
    job: np.ndarray  # float64[job], seconds, of its last task; 0 without tasks
    column: np.ndarray  # float64[column], seconds


def sequence(problem: Problem, job: np.ndarray, machine: np.ndarray, rank: np.ndarray) -> tuple[Ends, np.ndarray]:
    """Return when tasks of *job* (int32[task]) end on *machine* (int32[task]), taken by *rank* (float64[task]).

    Machines are those of ``problem.machine``, whose columns are contiguous. Also returns int64[place], which task is in
    which place.
    """
    machines = len(problem.factor)
    ready = problem.ready[job]
    together = bool((ready == ready[:1]).all())
    task = np.lexsort((rank, machine) if together else (rank, ready, machine))
    sequences = Sequences(
        job[task].astype(np.int32), rank[task],
        np.searchsorted(machine[task], np.arange(machines + 1)), np.searchsorted(problem.machine,
                                                                                 np.arange(machines + 1)),
        np.empty(job.size, np.int32),
    )
    ends = Ends(np.zeros(job.size), np.zeros(problem.tasks.size), problem.available.copy())
    run_machines(problem, sequences, ends)
    return ends, task


@kernel
def run_machines(problem: Problem, sequences: Sequences, ends: Ends) -> None:
    """Let every machine run its tasks."""
    for machine in range(sequences.first.size - 1):
        waiting = sequences.waiting[sequences.first[machine] : sequences.first[machine + 1]]
        following, end, size, now = sequences.first[machine], sequences.first[machine + 1], 0, 0.0
        for _ in range(end - following):
            column = first_free(ends, sequences.column[machine], sequences.column[machine + 1])
            now = max(now, ends.column[column])
            while following < end and problem.ready[sequences.job[following]] < now:
                size = push(sequences, waiting, size, following)
                following += 1
            if size == 0:
                now = max(now, problem.ready[sequences.job[following]])
                while following < end and problem.ready[sequences.job[following]] == now:
                    size = push(sequences, waiting, size, following)
                    following += 1
            place = waiting[0]
            size = drop_top(sequences, waiting, size)
            end_task(problem, sequences, ends, place, column, now)


@inlined
def end_task(problem: Problem, sequences: Sequences, ends: Ends, place: int, column: int, now: float) -> None:
    """Note when a task ends that starts *now*."""
    job = sequences.job[place]
    ends.column[column] = now + execution_seconds(problem, job, column)
    ends.task[place] = ends.column[column]
    ends.job[job] = max(ends.job[job], ends.task[place])


@inlined
def first_free(ends: Ends, first: int, end: int) -> int:
    """Return the column from *first* on, before *end*, that is free first."""
    best = first
    for column in range(first + 1, end):
        if ends.column[column] < ends.column[best]:
            best = column
    return best


@inlined
def goes_first(sequences: Sequences, place: int, other: int) -> bool:
    """Whether the task in one place is taken before that in another."""
    if sequences.rank[place] != sequences.rank[other]:
        return sequences.rank[place] < sequences.rank[other]
    return place < other


@inlined
def push(sequences: Sequences, waiting: np.ndarray, size: int, place: int) -> int:
    """Let a task wait; return how many do."""
    hole = size
    while hole > 0 and goes_first(sequences, place, waiting[(hole - 1) // 2]):
        waiting[hole] = waiting[(hole - 1) // 2]
        hole = (hole - 1) // 2
    waiting[hole] = place
    return size + 1


@inlined
def drop_top(sequences: Sequences, waiting: np.ndarray, size: int) -> int:
    """Take the task out that goes first; return how many still wait."""
    size -= 1
    last, place = waiting[size], 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and goes_first(sequences, waiting[child + 1], waiting[child]):
            child += 1
        if not goes_first(sequences, waiting[child], last):
            break
        waiting[place] = waiting[child]
        place = child
    waiting[place] = last
    return size
