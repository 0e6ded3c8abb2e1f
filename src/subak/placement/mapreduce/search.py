"""Improves HMHS's plan by local search: evens out maps, then keeps moves that help.

1. Even out: a task, or half of a job's tasks, leaves one of the busiest columns for the column where the sum of the
   eighth powers of the loads falls the most and which is then less busy than the first was, until no such move lowers
   the sum. The power stands in for the largest load, which would not tell moves on lesser columns apart.
2. Moves, drawn with the run's seed: a job to another place in the sequence, or tasks of a job to another column. Each
   is judged by the makespan with the reduces dispatched anew, and taken back when that is longer.

The first stage is bounded in moves, so only how many moves of the second are tried depends on a clock; given that
number, the answer is the same wherever it is made.
"""
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.placement.mapreduce.dispatch import Problem, execution_seconds
from subak.placement.mapreduce.min_min import min_min
from subak.placement.mapreduce.recipes import SearchSettings

POWER = 8  # of loads
EVEN_MOVES = 20  # of the first stage, for each job and column, at most
EVEN_WORK = 5e9  # of the first stage, in looks at a job or a column: some seconds
NO_COLUMN = -1


class Draft(NamedTuple):
    """Where maps go, and in which order each column takes its jobs."""

    tasks: np.ndarray  # int32[column, job]
    load: np.ndarray  # float64[column], seconds
    order: np.ndarray  # int32[job], every job


class Found(NamedTuple):
    """What a search found."""

    draft: Draft
    moves: int  # of the second stage that were tried


def search(problem: Problem, draft: Draft, reduces: Callable[[np.ndarray], Problem], seed: int,
           settings: SearchSettings, clock: Callable[[], float]) -> Found:
    """Improve *draft*, which is changed; *problem* is the maps', *reduces* makes that of the reduces of job ends.

    *clock* tells seconds; it is read only where the settings count no moves.
    """
    began, random, done = clock(), np.random.default_rng(seed), np.zeros(problem.tasks.size)
    before = _copy(draft)
    best = _makespan(problem, draft, reduces, done)
    even_out(problem, draft, even_moves(draft.order.size, draft.load.size))
    now = _makespan(problem, draft, reduces, done)
    if now > best:
        draft = before
    best, moves = min(best, now), 0
    while (clock() - began < settings.seconds) if settings.moves is None else (moves < settings.moves):
        moves += 1
        undo = _reorder(draft, random) if random.random() < 0.5 else _relocate(problem, draft, random)
        now = _makespan(problem, draft, reduces, done)
        if now > best:
            undo()
        best = min(best, now)
    return Found(draft, moves)


def even_moves(jobs: int, columns: int) -> int:
    """Return the most moves of the first stage; a move looks at every job and, of some, at every column."""
    return int(min(EVEN_MOVES * (jobs + columns), EVEN_WORK / (jobs + 100 * columns)))


def draft_of(problem: Problem, job: np.ndarray, column: np.ndarray, order: np.ndarray) -> Draft:
    """Return the draft of an assignment (int32[task] twice) whose columns take jobs in *order* (int[job])."""
    jobs, columns = problem.tasks.size, problem.available.size
    draft = Draft(np.zeros((columns, jobs), np.int32), np.zeros(columns), order.astype(np.int32))
    np.add.at(draft.tasks, (column, job), 1)
    weigh(problem, draft)
    return draft


def _copy(draft: Draft) -> Draft:
    return Draft(*(array.copy() for array in draft))


def _makespan(problem: Problem, draft: Draft, reduces: Callable[[np.ndarray], Problem], done: np.ndarray) -> float:
    """Return when all is done, with the reduces dispatched by Dynamic-Min-Min."""
    last = end_maps(problem, draft, done)
    finish = min_min(reduces(done)).finish
    return max(float(last), float(finish.max(initial=0.0)))


def _reorder(draft: Draft, random: np.random.Generator) -> Callable[[], None]:
    """Put a job elsewhere in the sequence; return what takes it back."""
    before = draft.order.copy()
    source, target = random.integers(draft.order.size, size=2)
    draft.order[:] = np.insert(np.delete(before, source), target, before[source])

    def undo() -> None:
        draft.order[:] = before

    return undo


def _relocate(problem: Problem, draft: Draft, random: np.random.Generator) -> Callable[[], None]:
    """Move some tasks of a job from a column to where one more would be done first; return what takes it back."""
    column = int(random.integers(draft.load.size))
    there = np.flatnonzero(draft.tasks[column])
    if not there.size:
        return lambda: None
    job = int(random.choice(there))
    count = int(random.integers(1, draft.tasks[column, job] + 1))
    target = least_busy(problem, draft, job, column)
    if target == NO_COLUMN:
        return lambda: None
    move(problem, draft, job, column, target, count)
    return lambda: move(problem, draft, job, target, column, count)


@kernel
def move(problem: Problem, draft: Draft, job: int, source: int, target: int, count: int) -> None:
    """Move *count* tasks of a job to another column."""
    draft.tasks[source, job] -= count
    draft.tasks[target, job] += count
    draft.load[source] -= count * execution_seconds(problem, job, source)
    draft.load[target] += count * execution_seconds(problem, job, target)


@kernel
def weigh(problem: Problem, draft: Draft) -> None:
    """Add up the loads."""
    for column in range(draft.load.size):
        draft.load[column] = 0.0
        for job in range(draft.order.size):
            if draft.tasks[column, job] > 0:
                draft.load[column] += draft.tasks[column, job] * execution_seconds(problem, job, column)


@kernel
def least_busy(problem: Problem, draft: Draft, job: int, source: int) -> int:
    """Return the column but *source* where one task more of the job would be done first, or NO_COLUMN."""
    best, soonest = NO_COLUMN, np.inf
    for column in range(draft.load.size):
        end = draft.load[column] + execution_seconds(problem, job, column)
        if column != source and end < soonest:
            best, soonest = column, end
    return best


@kernel
def end_maps(problem: Problem, draft: Draft, done: np.ndarray) -> float:
    """Write when each job's maps have ended into *done* (float64[job], seconds, 0 without any); return the last."""
    done[:] = 0.0
    last = 0.0
    for column in range(draft.load.size):
        now = problem.available[column]
        for job in draft.order:
            if draft.tasks[column, job] > 0:
                now = max(now, problem.ready[job])
                now += draft.tasks[column, job] * execution_seconds(problem, job, column)
                done[job] = max(done[job], now)
        last = max(last, now)
    return last


@kernel
def even_out(problem: Problem, draft: Draft, moves_max: int) -> None:
    """Move tasks while the sum of the powers of the loads falls, at most *moves_max* times."""
    column = busiest(draft)
    for _ in range(moves_max):
        if column == NO_COLUMN:
            return
        column = busiest(draft) if best_move(problem, draft, column) else next_busiest(draft, column)


@inlined
def busiest(draft: Draft) -> int:
    """Return the busiest column, the lowest of equals."""
    best = 0
    for column in range(1, draft.load.size):
        if draft.load[column] > draft.load[best]:
            best = column
    return best


@inlined
def next_busiest(draft: Draft, before: int) -> int:
    """Return the column that comes after *before* by load and number, or NO_COLUMN."""
    best = NO_COLUMN
    for column in range(draft.load.size):
        load, limit = draft.load[column], draft.load[before]
        after = load < limit or (load == limit and column > before)
        if after and (best == NO_COLUMN or load > draft.load[best]):
            best = column
    return best


@inlined
def best_move(problem: Problem, draft: Draft, source: int) -> bool:
    """Make the move out of a column that lowers the sum of the powers the most; return whether there is one."""
    top = draft.load[source]
    if top <= 0.0:
        return False
    best_gain, best_job, best_target, best_count = 1e-12, NO_COLUMN, NO_COLUMN, 0
    for job in range(draft.order.size):
        half = (draft.tasks[source, job] + 1) // 2
        for count in (half, 1):
            if half == 0 or (count == 1 and half == 1 and best_job == job):
                continue
            left = power((top - count * execution_seconds(problem, job, source)) / top)
            for target in range(draft.load.size):
                more = (draft.load[target] + count * execution_seconds(problem, job, target)) / top
                if target != source and more < 1.0:
                    gain = 1.0 + power(draft.load[target] / top) - left - power(more)
                    if gain > best_gain:
                        best_gain, best_job, best_target, best_count = gain, job, target, count
    if best_job == NO_COLUMN:
        return False
    move(problem, draft, best_job, source, best_target, best_count)
    return True


@inlined
def power(share: float) -> float:
    """Return *share* to the eighth power."""
    square = share * share
    return square * square * square * square
