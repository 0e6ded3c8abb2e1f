"""A lower bound on the makespan of a batch: no schedule whatever ends earlier.

Each stage by itself is a linear program over fractions of jobs on machines (x_ij: how much of job i machine j does):
the most loaded machine is done no sooner than C. A job's maps begin no sooner than its reduces may end, so levels are
added: the jobs whose reduces last at least h have all their maps done by C - h (`tail`), and those whose maps last at
least h begin their reduces after h (`head`). Any prices of the machines, 0 or more and 1 in all, bound C from below:

    C >= sum over jobs of min over machines of price * seconds + sum over levels of price * h.

The bound is this sum, over all machines, at the prices that HiGHS finds; so it holds however the solver rounds. Columns
are added as they pay (most jobs use few machines in the best fractional plan), which takes two or three rounds.
"""
from dataclasses import dataclass
from typing import NamedTuple

import highspy
import numpy as np

from subak.placement.linear_program import Program
from subak.placement.mapreduce.batch import Batch, Half
from subak.workload.table import Workload

LEVELS = (0.5, 0.8, 0.95)  # quantiles of heads and tails that are levels, beside 0
MACHINES_A_ROUND = 8  # for each job, the cheapest ones that are not in the program yet
ROUNDS = 20
CLOSE = 1e-7  # of the bound: what another round could gain, below which there is none
JOBS_AT_ONCE = 1024  # rows of matrices of jobs by machines
SAFETY = 1e-9  # of the bound, for the rounding of its sums


class Side(NamedTuple):
    """A stage of all jobs as a program sees it."""

    seconds: np.ndarray  # float64[job, machine], that the machine needs for the job alone, all slots; inf: it may not
    level: np.ndarray  # int64[job], how many levels bind the job
    height: np.ndarray  # float64[level], seconds: h, the first is 0, ascending


@dataclass(frozen=True)
class Bound:
    """The bound and what it is the largest of, seconds from the first arrival."""

    maps: float  # what the maps alone need, and the reduces behind them
    reduces: float  # what the reduces alone need, behind their maps
    job: float  # the longest single job

    @property
    def seconds(self) -> float:
        """No schedule ends earlier."""
        return max(self.maps, self.reduces, self.job) * (1.0 - SAFETY)


def makespan_bound(batch: Batch, workload: Workload) -> Bound:
    """Return a bound that holds for every schedule of *batch*, by the true run times of *workload*.

    Raises RunError when HiGHS finds no optimum.
    """
    first = float(workload.tasks["arrival"].min() or 0.0)  # type: ignore[arg-type]
    run_time = workload.tasks["run_time"].to_numpy()
    map_seconds, map_least = alone(batch.maps, run_time)
    reduce_seconds, tail = alone(batch.reduces, run_time)
    head = np.where(batch.maps.tasks > 0, batch.maps.arrival - first + map_least, 0.0)
    head = np.maximum(head, np.where(batch.reduces.tasks > 0, batch.reduces.arrival - first, 0.0))
    return Bound(side_bound(_side(map_seconds, batch.maps, tail)),
                 side_bound(_side(reduce_seconds, batch.reduces, head)), float((head + tail).max(initial=0.0)))


def alone(half: Half, run_time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return float64[job, machine], seconds that a machine needs for all of a job's tasks, and float64[job], seconds.

    The second is the least time in which all machines together could do the job: no less than its longest task takes
    on the best machine, nor than all of it takes when it is cut at will.
    """
    jobs = half.tasks.size
    job = np.repeat(np.arange(jobs), half.tasks)
    work = np.bincount(job, weights=run_time[half.task], minlength=jobs)
    longest = np.zeros(jobs)
    np.maximum.at(longest, job, run_time[half.task])
    # tasks need not be alike: work of as many seconds is at least this many tasks, each with its shuffle
    least_tasks = np.where(longest > 0, work / np.where(longest > 0, longest, 1.0), half.tasks)
    factor = half.factor[:, half.group].T
    seconds = np.where(np.isfinite(factor), work[:, None] * factor + (half.shuffle * least_tasks)[:, None], np.inf)
    seconds /= half.slots
    with np.errstate(divide="ignore", invalid="ignore"):  # of jobs without tasks in this half
        task = np.where(half.tasks > 0, half.shuffle + longest * factor.min(axis=1, initial=np.inf), 0.0)
        cut = np.where(half.tasks > 0, 1.0 / (1.0 / seconds).sum(axis=1), 0.0)
    return seconds, np.maximum(task, cut)


def _side(seconds: np.ndarray, half: Half, height: np.ndarray) -> Side:
    """Return the side of jobs that have tasks in this half; *height* (float64[job]) is what is before or behind it."""
    rows = half.tasks > 0
    height = height[rows]
    levels = np.unique(np.concatenate([[0.0], np.quantile(height, LEVELS) if height.size else []]))
    return Side(seconds[rows], np.searchsorted(levels, height, side="right"), levels)


def side_bound(side: Side) -> float:
    """Return the optimum of the side's linear program, from below; 0 without jobs."""
    jobs, machines = side.seconds.shape
    if jobs == 0:
        return 0.0
    unit = _unit(side)
    side = side._replace(seconds=side.seconds / unit, height=side.height / unit)
    program = _program(side)
    prices = np.zeros((side.height.size, machines))
    prices[0] = 1.0 / machines
    known, best = np.zeros((jobs, machines), bool), 0.0
    for _ in range(ROUNDS):
        job, machine = _paying(side, prices, known)
        if not job.size:
            break
        known[job, machine] = True
        _add(program, side, job, machine)
        solution = program.solve()
        prices = np.maximum(solution.price[jobs:].reshape(prices.shape), 0.0)
        if not prices.sum() > 0:
            break  # nothing takes any time
        prices /= prices.sum()
        best = max(best, value(side, prices))
        if best >= -solution.objective * (1.0 - CLOSE):
            break
    return best * unit


def _unit(side: Side) -> float:
    """Return seconds of about the size of the answer, so that the program's numbers are near 1."""
    return float(side.seconds.min(axis=1).sum() / side.seconds.shape[1] + side.height[-1]) or 1.0


def value(side: Side, prices: np.ndarray) -> float:
    """Return the bound that *prices* (float64[level, machine], 0 or more, 1 in all) prove."""
    total = float((prices.sum(axis=1) * side.height).sum())
    return total + sum(float(cost.min(axis=1).sum()) for _, cost in _costs(side, prices))


def _costs(side: Side, prices: np.ndarray) -> list[tuple[slice, np.ndarray]]:
    """Return blocks of jobs, and float64[job of the block, machine]: what each job would cost on each machine."""
    over_levels = np.cumsum(prices, axis=0)  # of the levels that bind a job, the last of which is `level` - 1
    free = np.zeros(prices.shape[1])
    blocks = []
    for first in range(0, len(side.seconds), JOBS_AT_ONCE):
        rows = slice(first, first + JOBS_AT_ONCE)
        level = side.level[rows]
        price = np.where(level[:, None] > 0, over_levels[level - 1], free)
        with np.errstate(invalid="ignore"):
            blocks.append((rows, np.where(np.isfinite(side.seconds[rows]), side.seconds[rows] * price, np.inf)))
    return blocks


def _paying(side: Side, prices: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return int64[column] twice, jobs and machines to add: the cheapest, cheaper than all that the job has."""
    jobs, machines = [], []
    for rows, cost in _costs(side, prices):
        of_known = np.where(known[rows], cost, np.inf).min(axis=1)
        cost[known[rows]] = np.inf
        count = min(MACHINES_A_ROUND, cost.shape[1])
        machine = np.argpartition(cost, count - 1, axis=1)[:, :count]
        pays = np.take_along_axis(cost, machine, axis=1)
        job, place = np.nonzero(np.isfinite(pays) & (pays < of_known[:, None] * (1.0 - CLOSE)))
        jobs.append(job + rows.start)
        machines.append(machine[job, place])
    return np.concatenate(jobs), np.concatenate(machines)


def _program(side: Side) -> Program:
    """Return the program with a row a job (all of it is done), one a level and machine, and the column of C."""
    jobs, machines = side.seconds.shape
    height = np.repeat(side.height, machines)
    program = Program(np.concatenate([np.ones(jobs), np.full(height.size, -highspy.kHighsInf)]),
                      np.concatenate([np.ones(jobs), -height]))
    rows = np.arange(jobs, jobs + height.size)
    program.add_sparse(-np.ones(1), np.zeros(1), rows, -np.ones(rows.size))
    return program


def _add(program: Program, side: Side, job: np.ndarray, machine: np.ndarray) -> None:
    """Add x_ij for each *job* and *machine* (int64[column])."""
    jobs, machines = side.seconds.shape
    entries = 1 + side.level[job]
    starts = np.cumsum(entries) - entries
    column = np.repeat(np.arange(job.size), entries)
    level = np.arange(column.size) - starts[column] - 1  # -1: the job's own row
    row = np.where(level < 0, job[column], jobs + level * machines + machine[column])
    seconds = side.seconds[job, machine][column]
    program.add_sparse(np.zeros(job.size), starts, row, np.where(level < 0, 1.0, seconds))
