"""Clusters tasks into classes by k-means (LoTES section 5.1), split by constraints.

- Features are the requests alone, one a resource, so that a new task is in the class it was clustered into; the run
  time of a class is the mean of its tasks' estimates. (In the paper's Table 2 the classes' run times hardly differ.)
- Each is divided by its standard deviation over the window (scaling "deviation") or by the largest machine's capacity
  ("capacity"). A resource that everyone asks the same of does not count.
- Lloyd's algorithm begins RESTARTS times (k-means++) on at most TASKS_SEEN_MAX tasks evenly spaced by rank, in scipy;
  each is carried on over all tasks until none changes its class, or, with very many different requests, for a set
  number of steps, which the plan then says; the best is taken.
- With classes = 0 their number is the least from which one more class takes away less than GAIN_MIN of the variance
  that is left, or holds less than SHARE_MIN of the tasks (the paper's reason for 4: more had less than 0.01 %). On the
  shipped slice of Google's trace that is 4, with and without the tasks that stood there when it began; by the paper's
  reason alone it would be more than CLASSES_TRIED_MAX.
"""
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when they are first used

from subak.errors import InputError
from subak.fleet.shapes import Shapes
from subak.placement.lotes.bins import FINE_UNITS
from subak.placement.lotes.settings import LotesSettings
from subak.workload.google_like.fit import leave_standing_out
from subak.workload.table import Workload, expected_seconds

TASKS_SEEN_MAX = 5_000
RESTARTS = 8
LLOYD_STEPS_MAX = 1_000
CELLS_SEEN_MAX = 100_000_000  # of requests and clusters, that the steps of one beginning look at: about two seconds
CLASSES_TRIED_MAX = 12  # classes the criterion looks at
GAIN_MIN = 0.25  # what dividing a flat plane takes away at the fourth class
SHARE_MIN = 1e-4
RUN_TIME_MIN = 1e-6  # of the mean run time of all: a class of zero-length runs is planned for as if this long
NO_CLASS = -1


class Arrivals(NamedTuple):
    """What a workload's plans may look at, in order of arrival."""

    since: np.ndarray  # float64[task], seconds after the workload's first arrival
    shape: np.ndarray  # int32[task]
    run_time: np.ndarray  # float64[task], seconds, estimates
    left_out: int  # tasks that were there when the trace began


class Window(NamedTuple):
    """What arrived in a window, by shape: numbers of tasks, or where they count less with their age, such sums."""

    tasks: np.ndarray  # float64[shape]
    ended: np.ndarray  # float64[shape], with a finite run time
    run_time: np.ndarray  # float64[shape], seconds, sum over those
    left_out: int  # tasks that were there when the trace began


class Centres(NamedTuple):
    """Clusters of requests."""

    at: np.ndarray  # float64[resource, cluster], units, means
    settled: bool  # whether every beginning that was looked at went on until no task changed its cluster


class Classes(NamedTuple):
    """The classes, the smallest first, and what is needed to find the nearest."""

    request: np.ndarray  # float64[resource, class], units, means
    fine: np.ndarray  # int64[resource, class], the same in fine units, rounded down
    run_time: np.ndarray  # float64[class], seconds, means
    share: np.ndarray  # float64[class], of the arrivals
    tasks: np.ndarray  # int64[class]
    group: np.ndarray  # int32[class], of sets of constraints
    centre: np.ndarray  # float64[resource, cluster], units
    weight: np.ndarray  # float64[resource], of a unit in a distance
    of_cluster: np.ndarray  # int32[cluster, group], class or NO_CLASS
    settled: bool  # whether k-means ended by itself

    def nearest(self, request: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Return int32[task], the class nearest to *request* (int[resource, task], units) among those of its *group*.

        A group that had no task in the window takes the nearest of all.
        """
        distance = distances(request, self.centre, self.weight)  # [task, cluster]
        table = self.of_cluster.copy()
        for each in np.flatnonzero((table == NO_CLASS).all(axis=0)):
            table[:, each] = table.max(axis=1)
        choice = table.T[group]  # [task, cluster]
        nearest = np.where(choice == NO_CLASS, np.inf, distance).argmin(axis=1)
        return choice[np.arange(nearest.size), nearest].astype(np.int32)


def find_arrivals(workload: Workload, shapes: Shapes, standing: bool) -> Arrivals:
    """Return the workload's arrivals; with *standing* those that were there when a trace began are among them.

    Raises InputError when there are none.
    """
    if workload.tasks.is_empty():
        raise InputError("workload: there must be at least one task to plan for, this one has 0")
    tasks = workload.tasks if standing else leave_standing_out(workload.tasks)
    return Arrivals(
        tasks["arrival"].to_numpy() - workload.tasks["arrival"][0], shapes.of_stage[tasks["stage"].to_numpy()],
        expected_seconds(replace(workload, tasks=tasks)), len(workload.tasks) - len(tasks))


def find_window(arrivals: Arrivals, shapes: int, begin: float, end: float, halving: float = np.inf) -> Window:
    """Return what arrives from *begin* on and before *end*, seconds after the first arrival, of so many *shapes*.

    A task counts half of one that arrives *halving* seconds later, by whole steps of these back from the end. Raises
    InputError when nothing arrives.
    """
    first, last = np.searchsorted(arrivals.since, [begin, end])
    if first == last:
        raise InputError(f"window: no task arrives in the {end - begin:g} s that begin "
                         f"{begin:g} s after the first arrival")
    since, shape, run_time = (each[first:last] for each in arrivals[:3])
    weight = 0.5 ** np.ceil((end - since) / halving - 1.0) if halving < np.inf else np.ones(since.size)
    ends = np.isfinite(run_time)
    tasks, ended = (np.bincount(shape[which], weights=weight[which], minlength=shapes) for which in (slice(None), ends))
    total = np.bincount(shape[ends], weights=weight[ends] * run_time[ends], minlength=shapes)
    return Window(tasks, ended, total, arrivals.left_out)


def find_classes(window: Window, request: np.ndarray, group: np.ndarray, largest: np.ndarray,
                 settings: LotesSettings) -> Classes:
    """Cluster the shapes of a non-empty window: *request* int32[resource, shape], *group* int32[shape].

    *largest* is int64[resource], the largest machine's capacity. Raises InputError when run times tell no rate.
    """
    seen = np.flatnonzero(window.tasks)
    asked, tasks = request[:, seen].astype(np.float64), window.tasks[seen].astype(np.float64)
    weight = _weights(asked, tasks, largest, settings.scaling)
    if settings.classes:
        found = find_centres(asked, tasks, weight, settings.classes, settings.seed)
    else:
        found = choose_centres(asked, tasks, weight, settings.seed)
    centre = found.at[:, np.argsort((found.at / np.maximum(largest, 1)[:, None]).max(axis=0), kind="stable")]
    cluster = distances(asked, centre, weight).argmin(axis=1)
    return _classes(window, (request, settings.usage), seen, (cluster, group), (centre, weight), found.settled)


def distances(request: np.ndarray, centre: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return float64[task, cluster], squared."""
    return sum((((request[row][:, None] - centre[row][None, :]) * weight[row]) ** 2 for row in range(len(weight))),
               start=np.zeros((request.shape[1], centre.shape[1])))


def _weights(asked: np.ndarray, tasks: np.ndarray, largest: np.ndarray, scaling: str) -> np.ndarray:
    if scaling == "capacity":
        return 1.0 / np.maximum(largest, 1)
    mean = (asked * tasks).sum(axis=1) / tasks.sum()
    deviation = np.sqrt(((asked - mean[:, None]) ** 2 * tasks).sum(axis=1) / tasks.sum())
    return np.divide(1.0, deviation, out=np.zeros(mean.size), where=deviation > 0)


def find_centres(asked: np.ndarray, tasks: np.ndarray, weight: np.ndarray, count: int, seed: int) -> Centres:
    """Return at most *count* clusters of the least variance found."""
    seen = min(TASKS_SEEN_MAX, int(np.ceil(tasks.sum())))
    evenly = (np.arange(seen) + 0.5) * tasks.sum() / seen
    order = np.lexsort((asked * weight[:, None])[::-1])
    points = asked[:, order[np.searchsorted(np.cumsum(tasks[order]), evenly)]].T * weight  # [task, resource]
    count = min(count, len(np.unique(points, axis=0)))
    scale = np.where(weight > 0, weight, 1.0)[:, None]
    mean = ((asked * tasks).sum(axis=1) / tasks.sum())[:, None]
    best, least, all_settled = mean, np.inf, True
    random = np.random.default_rng(seed)
    for _ in range(RESTARTS if count > 1 else 0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a cluster that runs empty is left out below
            found, _ = scipy.cluster.vq.kmeans2(points, count, minit="++", rng=random)
        centre, settled = _settle(asked, tasks, weight, np.where(weight[:, None] > 0, found.T / scale, mean))
        all_settled = all_settled and settled
        variance = _variance(asked, tasks, weight, centre)
        if variance < least * (1 - 1e-9):
            best, least = centre, variance
    return Centres(best, all_settled)


def _settle(asked: np.ndarray, tasks: np.ndarray, weight: np.ndarray, centre: np.ndarray) -> Centres:
    """Carry Lloyd's steps on over all tasks until none changes its cluster, or for CELLS_SEEN_MAX."""
    before = None
    for _ in range(min(LLOYD_STEPS_MAX, max(CELLS_SEEN_MAX // (asked.shape[1] * centre.shape[1]), 1))):
        cluster = distances(asked, centre, weight).argmin(axis=1)
        if before is not None and (cluster == before).all():
            return Centres(centre, settled=True)
        held = np.bincount(cluster, weights=tasks, minlength=centre.shape[1])
        sums = np.array([np.bincount(cluster, weights=tasks * row, minlength=held.size) for row in asked])
        centre, before = sums[:, held > 0] / held[held > 0], (np.cumsum(held > 0) - 1)[cluster]
    return Centres(centre, settled=False)


def _variance(asked: np.ndarray, tasks: np.ndarray, weight: np.ndarray, centre: np.ndarray) -> float:
    return float((distances(asked, centre, weight).min(axis=1) * tasks).sum())


def choose_centres(asked: np.ndarray, tasks: np.ndarray, weight: np.ndarray, seed: int) -> Centres:
    """Return the clusters of the least number that one more hardly improves, by the criterion above."""
    best, all_settled = find_centres(asked, tasks, weight, 1, seed)
    before = _variance(asked, tasks, weight, best)
    for count in range(2, CLASSES_TRIED_MAX + 1):
        more, settled = find_centres(asked, tasks, weight, count, seed)
        all_settled = all_settled and settled
        after = _variance(asked, tasks, weight, more)
        held = np.bincount(distances(asked, more, weight).argmin(axis=1), weights=tasks)
        if before - after < GAIN_MIN * before or before <= 0 or held.min() < SHARE_MIN * tasks.sum():
            break
        best, before = more, after
    return Centres(best, all_settled)


def _classes(window: Window, asked: tuple[np.ndarray, float], seen: np.ndarray,
             of_shape: tuple[np.ndarray, np.ndarray], space: tuple[np.ndarray, np.ndarray], settled: bool) -> Classes:
    cluster, group = of_shape  # of those seen, of all
    request, usage = asked
    pairs, which = np.unique(np.vstack([cluster, group[seen]]), axis=1, return_inverse=True)
    which, count = which.reshape(-1), pairs.shape[1]
    tasks = np.bincount(which, weights=window.tasks[seen], minlength=count)
    mean = usage * np.array([np.bincount(which, weights=row[seen] * window.tasks[seen], minlength=count) / tasks
                             for row in request])
    fine = np.floor(mean * FINE_UNITS * (1 + 1e-12) + 1e-6).astype(np.int64)
    fine = np.where((mean > 0) & (fine == 0), 1, fine)
    of_cluster = np.full((space[0].shape[1], int(group.max()) + 1), NO_CLASS, np.int32)
    of_cluster[pairs[0], pairs[1]] = np.arange(count)
    return Classes(fine / FINE_UNITS, fine, _run_times(window, seen, which, count), tasks / tasks.sum(),
                   tasks.astype(np.int64), pairs[1].astype(np.int32), *space, of_cluster, settled)


def _run_times(window: Window, seen: np.ndarray, which: np.ndarray, count: int) -> np.ndarray:
    """Return float64[class], mean seconds without endless tasks; a class of nothing else has the mean of all."""
    ended = np.bincount(which, weights=window.ended[seen], minlength=count)
    total = np.bincount(which, weights=window.run_time[seen], minlength=count)
    if not ended.any():
        raise InputError("workload: every task of the window runs for ever: there is no rate at which they could come")
    overall = total.sum() / ended.sum()
    if overall == 0:
        raise InputError("workload: every task of the window has run time 0: any rate of them could be served")
    means = np.divide(total, ended, out=np.full(count, overall), where=ended > 0)
    return np.maximum(means, RUN_TIME_MIN * overall)
