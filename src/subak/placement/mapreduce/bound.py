"""Computes a lower bound on the makespan of a batch.

Each stage by itself is a linear program over fractions of jobs on machines (x_ij: how much of job i machine j does):
the most loaded machine is done no sooner than C. A job's maps begin no sooner than its reduces may end, so levels are
added: the jobs whose reduces last at least h have all their maps done by C - h (`tail`), and those whose maps last at
least h begin their reduces after h (`head`). With seconds_ij, what job i takes on all S_j slots of machine j:

    least C:  sum over j of x_ij = 1;  h + sum over jobs i of level h or more of x_ij * seconds_ij <= C, for all h, j.

**Alike machines are one.** Machines with the same factors for all jobs are one *kind* with all their slots: added up,
their rows are the kind's, weighted by slots; and a kind's x divided among them by slots fits each of their rows. So the
optimum is the same. **Alike jobs are one**, by the same argument, when their seconds are in the same ratio on every
kind, and their level is the same: their common x is the mean, weighted by seconds, of their own. What is left is small
unless jobs differ in which machines suit them.

**In closed form.** Where each job runs best, spread over all S slots, no level is done before

    h + sum over jobs of level h or more of their least seconds by one slot / S.

With one kind of machine that is the optimum. Otherwise it is where the search for better prices (prices.py) begins,
which is cut short after a set amount of work, never by a clock: the same input gives the same bound.
"""
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from subak.errors import InputError
from subak.placement.mapreduce.batch import Batch, Half
from subak.placement.mapreduce.prices import Found, Side, find_prices
from subak.workload.table import Workload

LEVELS = (0.5, 0.8, 0.95)  # quantiles of heads and tails that are levels, beside 0
JOBS_BY_MACHINES_MAX = 20_000_000  # of distinct jobs and kinds of machines, for memory: 160 MB
SAFETY = 1e-9  # of the bound, for the rounding of its sums


class Shapes(NamedTuple):
    """The jobs of a half up to their size, and its machines up to their slots."""

    seconds: np.ndarray  # float64[shape, kind], of a job of size 1 by one slot; the least is 1; inf: it may not
    slots: np.ndarray  # int64[kind]
    of_job: np.ndarray  # int64[job], shape
    size: np.ndarray  # float64[job], seconds by one slot of the kind that suits the job best


@dataclass(frozen=True)
class Bound:
    """The bound and what it is the largest of, seconds from the first arrival."""

    maps: Found  # what the maps alone need, and the reduces behind them
    reduces: Found  # what the reduces alone need, behind their maps
    job: float  # the longest single job

    @property
    def seconds(self) -> float:
        """No schedule ends earlier."""
        return max(self.maps.least, self.reduces.least, self.job) * (1.0 - SAFETY)

    @property
    def missed(self) -> float:
        """By what share of the bound the linear programs' optimum could be above it; inf where that is not known."""
        best, optimum = (max(ends) for ends in zip((self.maps.least, self.maps.most), (
            self.reduces.least, self.reduces.most), (self.job, self.job), strict=True))
        return optimum / best - 1.0 if best > 0 else 0.0


def makespan_bound(batch: Batch, workload: Workload) -> Bound:
    """Return a bound that holds for every schedule of *batch*, by the true run times of *workload*.

    Raises InputError when the jobs and machines that differ are too many.
    """
    first = float(workload.tasks["arrival"].min() or 0.0)  # type: ignore[arg-type]
    run_time = workload.tasks["run_time"].to_numpy()
    maps, reduces = (find_shapes(half, run_time) for half in (batch.maps, batch.reduces))
    map_least, tail = least_seconds(batch.maps, maps, run_time), least_seconds(batch.reduces, reduces, run_time)
    head = np.where(batch.maps.tasks > 0, batch.maps.arrival - first + map_least, 0.0)
    head = np.maximum(head, np.where(batch.reduces.tasks > 0, batch.reduces.arrival - first, 0.0))
    return Bound(find_prices(_side(maps, batch.maps.tasks > 0, tail)),
                 find_prices(_side(reduces, batch.reduces.tasks > 0, head)), float((head + tail).max(initial=0.0)))


def find_shapes(half: Half, run_time: np.ndarray) -> Shapes:
    """Return what tells the jobs and the machines of a half apart.

    A slot takes work * factor + shuffle for all of a job's tasks: group and shuffle / work make the job's shape. Raises
    InputError when there are more than JOBS_BY_MACHINES_MAX of shapes and kinds.
    """
    kind, of_machine = _distinct(half.factor)
    column, of_group = _distinct(half.factor[kind].T)
    work, shuffle = _work(half, run_time)
    ratio = np.divide(shuffle, work, out=np.zeros(work.size), where=work > 0)
    told_apart = np.stack([of_group[half.group], ratio, work > 0])
    (group, ratio, works), of_job = np.unique(told_apart, axis=1, return_inverse=True)
    if group.size * kind.size > JOBS_BY_MACHINES_MAX:
        raise InputError(f"bound: {group.size:,} jobs on {kind.size:,} machines that all differ are too many: at most "
                         f"{JOBS_BY_MACHINES_MAX:,} pairs")
    factor = half.factor[np.ix_(kind, column[group.astype(np.int64)])].T
    seconds = np.where(works[:, None] > 0, factor + ratio[:, None], np.where(np.isfinite(factor), 1.0, np.inf))
    slots = np.bincount(of_machine, weights=half.slots, minlength=kind.size).astype(np.int64)
    return _scaled(seconds, slots, of_job.reshape(-1), np.where(work > 0, work, shuffle))


def _distinct(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of each group of equal rows, in their order, and int64[row], the group of each."""
    number: dict[bytes, int] = {}
    of_row = np.array([number.setdefault(row.tobytes(), len(number)) for row in table], np.int64)
    return np.unique(of_row, return_index=True)[1], of_row


def _work(half: Half, run_time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return float64[job] twice: seconds of a job's tasks on one slot of factor 1, and of its shuffles at the least.

    Tasks need not be alike: work of as many seconds is at least work / the longest tasks, each with its shuffle.
    """
    job = np.repeat(np.arange(half.tasks.size), half.tasks)
    work = np.bincount(job, weights=run_time[half.task], minlength=half.tasks.size)
    longest = _longest(half, run_time)
    return work, half.shuffle * np.divide(work, longest, out=half.tasks.astype(np.float64), where=longest > 0)


def _longest(half: Half, run_time: np.ndarray) -> np.ndarray:
    """Return float64[job], seconds of its longest task; 0 without tasks."""
    longest = np.zeros(half.tasks.size)
    np.maximum.at(longest, np.repeat(np.arange(half.tasks.size), half.tasks), run_time[half.task])
    return longest


def _scaled(seconds: np.ndarray, slots: np.ndarray, of_job: np.ndarray, size: np.ndarray) -> Shapes:
    """Count sizes by the kind that suits best, so that shapes in the same ratio become one."""
    least = seconds.min(axis=1, initial=np.inf)
    seconds = seconds / least[:, None]
    first, same = _distinct(seconds)
    return Shapes(seconds[first], slots, same[of_job], np.multiply(size, least[of_job], out=np.zeros(size.size),
                                                                   where=size > 0))


def least_seconds(half: Half, shapes: Shapes, run_time: np.ndarray) -> np.ndarray:
    """Return float64[job], the least time in which all machines together could do the half of each job; 0 without.

    It is no less than its longest task takes on the best machine, nor than all of it takes when it is cut at will.
    """
    best = half.factor.min(axis=0, initial=np.inf)
    there = half.tasks > 0
    cut = 1.0 / np.maximum((shapes.slots / shapes.seconds).sum(axis=1), 1.0)
    return np.where(there, np.maximum(half.shuffle + _longest(half, run_time) * np.where(there, best[half.group], 0.0),
                                      shapes.size * cut[shapes.of_job]), 0.0)


def _side(shapes: Shapes, there: np.ndarray, height: np.ndarray) -> Side:
    """Return the side of the jobs that are *there* (bool[job]); *height* (float64[job]) is what is before or behind."""
    levels = np.unique(np.concatenate([[0.0], np.quantile(height[there], LEVELS) if there.any() else []]))
    timed = shapes.size > 0  # the others have no tasks here, or none that take time
    pair = np.stack([shapes.of_job[timed], np.searchsorted(levels, height[timed], side="right")])
    (shape, level), row = np.unique(pair, axis=1, return_inverse=True)
    size = np.bincount(row.reshape(-1), weights=shapes.size[timed], minlength=shape.size)
    return Side(size[:, None] * shapes.seconds[shape] / shapes.slots, level, levels, shapes.slots / shapes.slots.sum())
