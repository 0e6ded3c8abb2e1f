"""Measures one simulation for the figures of the LoTES paper."""
from typing import Any, NamedTuple

import numpy as np

from subak.fleet.speeds import attempt_seconds
from subak.placement.claims import TASK_UNPLACEABLE
from subak.simulator.engine.state import TIMELINE_WAITING_MEAN
from subak.simulator.outcome import Outcome
from subak.simulator.results import first_start
from subak.workload.table import Workload

TAILS = np.concatenate([[0.0], np.logspace(-2, 6, 161)])  # seconds: points of the distribution


class Run(NamedTuple):
    """What is asked of one simulation."""

    mean: float  # seconds until the first start, over the tasks that started
    weighted: float  # the same, each task by its dominant request
    later: float  # over the tasks that start after the first interval, nan without any
    by_queue: float  # the mean over the queues of the means of their tasks
    slow_down: float  # mean run time of the last attempts, by that where machines are as fast as the fastest
    tail: np.ndarray  # float64[point], the share that waited longer than each of TAILS
    quantile: dict[str, float]  # seconds
    begun: np.ndarray  # float64[interval], seconds: mean wait time of the tasks that first start in it, nan for none
    waiting: np.ndarray  # float64[interval], tasks, means of the timeline up to the last arrival
    width: float  # seconds of an interval of `waiting`
    unstarted: int  # placeable, yet never started
    unplaceable: int
    lost: int  # attempts
    rate: float  # tasks a second of the simulation
    plans: tuple[Any, ...]
    looked_at: float  # share of the machines, for an arriving task; nan but of LoTES

    def longer_than(self, seconds: float) -> float:
        """Return the share of the tasks that waited longer, at the nearest point."""
        return float(self.tail[np.abs(TAILS - seconds).argmin()])


def measured(outcome: Outcome, workload: Workload, interval: float, until: float | None = None) -> Run:
    """Return what is asked of a finished run; *interval* is that of the mean wait times over time, in seconds.

    Queues are measured *until* then, in seconds (by default the last arrival): a run goes on until its longest task
    ends, long after all is placed.
    """
    simulation, loop = outcome.simulation, outcome.loop_result
    start = first_start(outcome)
    begun = ~np.isnan(start)
    wait = start[begun] - simulation.progress.ready[begun]
    of_interval = (start[begun] // interval).astype(np.int64)
    count, total = np.bincount(of_interval), np.bincount(of_interval, weights=wait)
    until = float(simulation.tasks.arrival[-1]) if until is None else until
    timeline = loop.timeline[: max(1, round(until / loop.interval))]
    time_left = loop.end - np.arange(len(timeline)) * loop.interval
    spans = np.maximum(np.minimum(loop.interval, time_left), 1e-9)
    asked = (simulation.tasks.request * simulation.fleet.scale[:, None]).max(axis=0)[simulation.tasks.shape[begun]]
    unplaceable = int((simulation.claims.status == TASK_UNPLACEABLE).sum())
    ordered = np.sort(wait)
    return Run(
        float(wait.mean()), float((wait * asked).sum() / asked.sum()),
        float(total[1:].sum() / count[1:].sum()) if count.size > 1 else float("nan"),
        _by_queue(workload, begun, wait), _slow_down(outcome, begun),
        1.0 - np.searchsorted(ordered, TAILS, side="right") / ordered.size,
        {name: float(np.quantile(ordered, at)) for name, at in (("median", 0.5), ("p99", 0.99), ("p99.9", 0.999))},
        np.divide(total, count, out=np.full(count.size, np.nan), where=count > 0),
        timeline[:, TIMELINE_WAITING_MEAN] / spans, loop.interval, int((~begun).sum()) - unplaceable, unplaceable,
        sum(lost.shape[1] for lost in loop.losses), len(start) / loop.seconds, outcome.plans, outcome.looked_at,
    )


def _by_queue(workload: Workload, begun: np.ndarray, wait: np.ndarray) -> float:
    """Return the mean over the queues of the mean wait of their tasks."""
    queue = workload.jobs["queue"].rank("dense").to_numpy()[workload.stages["job"].to_numpy()]
    of_task = queue[workload.tasks["stage"].to_numpy()[begun]]
    count, total = np.bincount(of_task), np.bincount(of_task, weights=wait)
    return float((total[count > 0] / count[count > 0]).mean())


def _slow_down(outcome: Outcome, begun: np.ndarray) -> float:
    """Return the seconds of all last attempts, by those that they would take on the fastest machine of each group."""
    simulation = outcome.simulation
    if not simulation.speeds.factor.size:
        return 1.0
    which = np.flatnonzero(begun & np.isfinite(simulation.tasks.run_time))
    spent = attempt_seconds(simulation.speeds, simulation.tasks, which, simulation.progress.machine[which])
    least = simulation.speeds.factor.min(axis=1)[simulation.speeds.group[which]]
    return float(spent.sum() / (simulation.tasks.run_time[which] * least).sum())
