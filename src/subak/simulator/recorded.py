"""Replays a log as recorded: each task starts when it did, and no scheduler decides.

The log does not say on which of the fleet's machines a task ran, so there is none: the fleet is what utilisation is
measured by, and may hold less than the log's tasks ask for together, where its scheduler gave less than was asked for
or had other machines. A task was ready when it arrived and what it waits for had ended (of a slow start: that share of
it), but at the latest when it started. A task of which the log does not know when it started is left out.
"""
import time
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from subak.errors import InputError
from subak.fleet.capacity import capacity_steps
from subak.fleet.locality import no_inputs
from subak.fleet.speeds import attempt_seconds
from subak.fleet.table import Fleet
from subak.placement.claims import (
    TASK_BLOCKED,
    TASK_FINISHED,
    TASK_NOT_ARRIVED,
    TASK_RUNNING,
    TASK_UNPLACEABLE,
    TASK_WAITING,
)
from subak.simulator.engine.run_loop import TIMELINE_INTERVALS_MAX, LoopResult
from subak.simulator.engine.setup import ROWS_HELD, Prepared, Terms, machine_order, prepare
from subak.simulator.engine.state import (
    FIRST_RESOURCE,
    PER_RESOURCE,
    TIMELINE_ARRIVALS,
    TIMELINE_ENDS,
    TIMELINE_RUNNING_MEAN,
    TIMELINE_STARTS,
    TIMELINE_WAITING_MAX,
    TIMELINE_WAITING_MEAN,
)
from subak.workload.table import Workload

NOT_IN_LOG = "the log does not know when it started"


class Log(NamedTuple):
    """When each task was what, in seconds; inf for never, and for what is not known."""

    arrival: np.ndarray  # float64[task]
    ready: np.ndarray  # float64[task]
    start: np.ndarray  # float64[task]
    finish: np.ndarray  # float64[task]


def refuse_unrecorded(workload: Workload) -> None:
    """Raise InputError for a workload that does not know when any of its tasks started."""
    if "recorded_start" not in workload.tasks.columns or not workload.tasks["recorded_start"].count():
        raise InputError("recorded: the workload does not know when its tasks started (column recorded_start of its "
                         "tasks); it does where its trace says so, as google2011's and SWF logs that record waits do")


def replay(workload: Workload, fleet: Fleet, terms: Terms, fixed: bool) -> tuple[Prepared, LoopResult]:
    """Return the state in which the log leaves the tasks, and its timeline; *fixed*: the interval was given.

    Raises InputError for a workload without recorded starts, and for intervals that are too many.
    """
    refuse_unrecorded(workload)
    began = time.perf_counter()
    prepared = prepare(workload, fleet, machine_order(fleet, "given"), msgspec.structs.replace(terms, slow_start=1.0))
    sim = prepared.simulation
    speeds = sim.speeds._replace(factor=np.zeros((0, 0)), inputs=no_inputs())  # run times are the log's, as they were
    sim = sim._replace(speeds=speeds)
    every = np.arange(sim.tasks.arrival.size)
    log = _log(workload, attempt_seconds(sim.speeds, sim.tasks, every, every), terms.slow_start)
    known, begun = np.isfinite(log.start), log.start <= min(terms.until, np.finfo(float).max)
    sim.claims.status[:] = status_at(log, terms.until)
    sim.progress.ready[:] = np.where(known, log.ready, log.arrival)
    sim.progress.start[:] = np.where(begun, log.start, np.nan)
    sim.progress.attempts[:] = begun
    unknown = len(prepared.reason_of_shape)  # one shape more, for the reason
    sim = sim._replace(tasks=sim.tasks._replace(shape=np.where(known, sim.tasks.shape, unknown).astype(np.int32)))
    end = _end(log, terms.until)
    edges = _edges(terms.interval, end, fixed)
    request = workload.requests[:, workload.tasks["stage"].to_numpy()]
    rows = timeline_rows(log, request, fleet, edges)
    events = sum(int((times <= end).sum()) for times in (log.arrival, log.start, log.finish))
    result = LoopResult(rows, float(edges[1] - edges[0]) if len(edges) > 2 else terms.interval, end,
                        [np.zeros((4, 0))], events, time.perf_counter() - began)
    return replace(prepared, simulation=sim, reason_of_shape=[*prepared.reason_of_shape, NOT_IN_LOG]), result


def _log(workload: Workload, seconds: np.ndarray, share: float) -> Log:
    """Return when each task was what, if attempts take *seconds* (float64[task])."""
    arrival = workload.tasks["arrival"].to_numpy()
    start = workload.tasks["recorded_start"].fill_null(np.inf).to_numpy()
    finish = start + seconds
    released = np.maximum(arrival, _released(workload, finish, share)[workload.tasks["stage"].to_numpy()])
    return Log(arrival, np.where(np.isfinite(start), np.minimum(start, released), np.inf), start, finish)


def _released(workload: Workload, finish: np.ndarray, share: float) -> np.ndarray:
    """Return float64[stage], when *share* of the tasks of each stage that it waits for had ended; 0 for none."""
    released = np.zeros(len(workload.stages))
    if not workload.has_dependencies:
        return released
    stage = workload.tasks["stage"].to_numpy()
    sizes = np.bincount(stage, minlength=released.size)
    last = np.cumsum(sizes) - sizes + np.ceil(share * sizes).astype(np.int64) - 1
    enough = np.where(share * sizes > 0, finish[np.lexsort((finish, stage))][last], 0.0)
    edges = workload.stages.with_row_index("child").select("child", "depends_on").explode("depends_on").drop_nulls()
    np.maximum.at(released, edges["child"].to_numpy(), enough[edges["depends_on"].to_numpy()])
    return released


def status_at(log: Log, until: float) -> np.ndarray:
    """Return int8[task], how each task stands at *until* (seconds)."""
    began, ended = np.isfinite(log.start), np.isfinite(log.finish)
    return np.select(
        [~began, log.arrival > until, ended & (log.finish <= until), log.start <= until, log.ready <= until],
        [TASK_UNPLACEABLE, TASK_NOT_ARRIVED, TASK_FINISHED, TASK_RUNNING, TASK_WAITING], TASK_BLOCKED).astype(np.int8)


def _end(log: Log, until: float) -> float:
    """Return the last instant: *until* where anything goes on until then, else when the last thing happened."""
    times = np.concatenate([log.arrival, log.start, log.finish])
    if until < np.inf and (np.isfinite(times[times > until]).any() or np.isinf(log.finish[log.start <= until]).any()):
        return until
    return float(times[np.isfinite(times)].max())


def _edges(interval: float, end: float, fixed: bool) -> np.ndarray:
    """Return the edges of the intervals, the last at the *end*; a default *interval* that is too fine is doubled.

    Raises InputError where a given one makes too many.
    """
    while not fixed and end / interval > ROWS_HELD:
        interval *= 2
    count = max(int(np.ceil(end / interval)), 1)
    if count > TIMELINE_INTERVALS_MAX:
        raise InputError(f"interval: {interval:g} s makes more than {TIMELINE_INTERVALS_MAX:,} intervals, the last at "
                         f"{end:g} s; choose a longer one")
    return np.append(np.arange(count) * interval, end)


def timeline_rows(log: Log, request: np.ndarray, fleet: Fleet, edges: np.ndarray) -> np.ndarray:
    """Return float64[interval, column], sums over each interval between *edges*; what was stranded is not known.

    *request* is int32[resource, task], units.
    """
    rows = np.zeros((len(edges) - 1, FIRST_RESOURCE + PER_RESOURCE * len(request)))
    for column, times in ((TIMELINE_ARRIVALS, log.arrival), (TIMELINE_STARTS, log.start), (TIMELINE_ENDS, log.finish)):
        rows[:, column] = _in_bins(times, np.ones(times.size), edges)[0]
    one = np.ones(log.start.size)
    rows[:, TIMELINE_WAITING_MEAN] = held(edges, (log.ready, one), (log.start, -one))
    rows[:, TIMELINE_WAITING_MAX] = _most_waiting(log, edges)
    rows[:, TIMELINE_RUNNING_MEAN] = held(edges, (log.start, one), (log.finish, -one))
    capacity = capacity_steps(fleet)
    for resource, amount in enumerate(request.astype(np.float64)):
        first = FIRST_RESOURCE + PER_RESOURCE * resource
        rows[:, first] = held(edges, (log.start, amount), (log.finish, -amount))
        rows[:, first + 1] = held(edges, (capacity.time, np.diff(capacity.amount[resource], prepend=0)))
        rows[:, first + 2] = np.nan
    return rows


def held(edges: np.ndarray, *changes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return float64[interval], the integral over time of what *changes* (times and amounts) add up to."""
    total = np.zeros(len(edges) - 1)
    for times, amounts in changes:
        jump, late = _in_bins(times, amounts, edges)
        total += (np.cumsum(jump) - jump) * np.diff(edges) + late
    return total


def _in_bins(times: np.ndarray, amounts: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return float64[interval]: the amounts that come in each, and these times the seconds until it ends."""
    within = times <= edges[-1]
    place = np.minimum(np.searchsorted(edges[:-1], times[within], side="right") - 1, len(edges) - 2)
    left = amounts[within] * (edges[place + 1] - times[within])
    return (np.bincount(place, amounts[within], len(edges) - 1), np.bincount(place, left, len(edges) - 1))


def _most_waiting(log: Log, edges: np.ndarray) -> np.ndarray:
    """Return float64[interval], the most tasks that waited at once for longer than an instant."""
    known = np.isfinite(log.start)
    times = np.concatenate([log.ready[known], log.start[known], edges])
    change = np.concatenate([np.ones(known.sum()), -np.ones(known.sum()), np.zeros(len(edges))])
    instant, place = np.unique(times, return_inverse=True)
    waiting = np.cumsum(np.bincount(place, change))
    begins = np.flatnonzero(instant < edges[-1])
    most = np.zeros(len(edges) - 1)
    np.maximum.at(most, np.searchsorted(edges[:-1], instant[begins], side="right") - 1, waiting[begins])
    return most
