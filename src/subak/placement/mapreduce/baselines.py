"""Published baselines that choose the next job: Max-Min, Sufferage, upward rank, job order.

- Max-Min (Braun et al., JPDC 61, 2001): the job whose best completion time is the latest.
- Sufferage (Maheswaran et al., JPDC 59, 1999): the job that loses most if it does not get its best column.
- By rank (HEFT: Topcuoglu et al., IEEE TPDS 13, 2002): the job of the highest upward rank.
- In job order: the job of the lowest number (Hadoop's FIFO).

Ties go to the job of the lower number. The task goes to the column where it is complete first, ties to the least
execution time, then to the lower column; in job order, to the column that is free first, which looks at no speeds. A
job's best completion is kept and looked for again only when one of the two columns that it rests on was taken, which is
right because columns only become busier.
"""
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.placement.mapreduce.dispatch import (
    JOBS_ADMITTED,
    JOBS_OPEN,
    NOBODY,
    Assignment,
    Desk,
    Problem,
    admit,
    assign,
    build_assignment,
    build_desk,
    execution_seconds,
)

MAX_MIN, SUFFERAGE, RANK, JOB_ORDER = range(4)  # rules


class Choices(NamedTuple):
    """For each open job, the two columns where its next task would be complete first."""

    open: np.ndarray  # int32[job], the open jobs, in no order
    best: np.ndarray  # int32[job], column
    second: np.ndarray  # int32[job], column, NOBODY where there is only one
    completion: np.ndarray  # float64[job], seconds, on the best
    lost: np.ndarray  # float64[job], seconds that the second is worse; inf where there is only one
    rank: np.ndarray  # float64[job], upward rank


def max_min(problem: Problem) -> Assignment:
    """Dispatch every task by Max-Min; every job must have a column that may run it."""
    return _dispatch(problem, MAX_MIN, np.zeros(problem.tasks.size))


def sufferage(problem: Problem) -> Assignment:
    """Dispatch every task by Sufferage; every job must have a column that may run it."""
    return _dispatch(problem, SUFFERAGE, np.zeros(problem.tasks.size))


def by_rank(problem: Problem, rank: np.ndarray) -> Assignment:
    """Dispatch every task, highest *rank* (float64[job]) first; every job must have a column that may run it."""
    return _dispatch(problem, RANK, rank)


def in_job_order(problem: Problem) -> Assignment:
    """Dispatch every task, lowest job first; every job must have a column that may run it."""
    return _dispatch(problem, JOB_ORDER, -np.arange(problem.tasks.size, dtype=np.float64))


def _dispatch(problem: Problem, rule: int, rank: np.ndarray) -> Assignment:
    desk, out, jobs = build_desk(problem), build_assignment(problem), problem.tasks.size
    choices = Choices(np.empty(jobs, np.int32), np.full(jobs, NOBODY, np.int32), np.full(jobs, NOBODY, np.int32),
                      np.zeros(jobs), np.zeros(jobs), rank)
    dispatch_by_rule(problem, desk, choices, out, rule)
    return out


@kernel
def dispatch_by_rule(problem: Problem, desk: Desk, choices: Choices, out: Assignment, rule: int) -> None:
    """Fill *out* from its start to its end."""
    compares = rule in (MAX_MIN, SUFFERAGE)  # jobs by their columns, so all have to know theirs
    for _ in range(out.job.size):
        first, size = desk.counts[JOBS_ADMITTED], desk.counts[JOBS_OPEN]
        admit(problem, desk)
        for place in range(first, desk.counts[JOBS_ADMITTED]):
            choices.open[size] = desk.queue[place]
            size += 1
            if compares:
                choose_columns(problem, desk, choices, desk.queue[place], rule)
        chosen = choose_job(choices, size, rule)
        job = choices.open[chosen]
        if not compares:
            choose_columns(problem, desk, choices, job, rule)
        column = choices.best[job]
        assign(problem, desk, out, job, column)
        if desk.left[job] == 0:
            size -= 1
            choices.open[chosen] = choices.open[size]
        if compares:
            choose_again(problem, desk, choices, size, column, rule)


@inlined
def choose_again(problem: Problem, desk: Desk, choices: Choices, size: int, column: int, rule: int) -> None:
    """Let those of the *size* open jobs choose again whose choice rests on a *column* that was taken."""
    for place in range(size):
        job = choices.open[place]
        if column in (choices.best[job], choices.second[job]):
            choose_columns(problem, desk, choices, job, rule)


@inlined
def choose_job(choices: Choices, size: int, rule: int) -> int:
    """Return the place among the *size* open jobs of the one that goes next."""
    value = choices.rank
    if rule == MAX_MIN:
        value = choices.completion
    elif rule == SUFFERAGE:
        value = choices.lost
    chosen = 0
    for place in range(1, size):
        job, other = choices.open[place], choices.open[chosen]
        if value[job] > value[other] or (value[job] == value[other] and job < other):
            chosen = place
    return chosen


@inlined
def choose_columns(problem: Problem, desk: Desk, choices: Choices, job: int, rule: int) -> None:
    """Find the two columns where a task of the job would be complete first; in job order, that are free first."""
    best, second, soonest, next_soonest, shortest = NOBODY, NOBODY, np.inf, np.inf, np.inf
    for column in range(desk.available.size):
        execution = execution_seconds(problem, job, column)
        if rule == JOB_ORDER and execution < np.inf:
            execution = 0.0
        completion = desk.available[column] + execution
        if completion < soonest or (completion == soonest and execution < shortest):
            second, next_soonest = best, soonest
            best, soonest, shortest = column, completion, execution
        elif completion < next_soonest:
            second, next_soonest = column, completion
    choices.best[job], choices.second[job] = best, second
    choices.completion[job], choices.lost[job] = soonest, next_soonest - soonest
