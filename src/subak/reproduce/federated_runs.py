"""Runs federations for papers, and measures allocation times, messages and preemptions."""
from typing import Any, NamedTuple

import numpy as np

from subak.federation.megha.global_master.state import TALLY
from subak.federation.megha.local_master.state import LOCAL_TALLY
from subak.federation.settings import Federation
from subak.fleet.table import Fleet
from subak.placement.claims import TASK_FINISHED, TASK_RUNNING, TASK_UNPLACEABLE
from subak.policy import find_scheduler
from subak.queues.tree import TreeFile
from subak.records import total
from subak.reproduce.claims import Notify
from subak.reproduce.missed_shares import fairness_error, wasted_share
from subak.simulator.outcome import Outcome
from subak.simulator.simulate import simulate
from subak.workload.table import Workload

QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}  # Fig. 4
PARTS = ("framework queueing", "processing", "worker queueing", "communication")  # section III
LONGEST_RUNS_WAITED = 20  # a run is given up so many times the longest run time after the last arrival


class Run(NamedTuple):
    """What is asked of one simulation."""

    allocation: np.ndarray  # float64[task that started], seconds from its arrival to its first start
    parts: dict[str, np.ndarray]  # seconds of each of PARTS; they add up to the time until the last start
    tasks: int
    unplaceable: int
    unstarted: int  # placeable, yet never started
    requests: int  # to local masters: launches, repartitions, preemptions
    refusals: int
    repartitions: int
    preemption_attempts: int
    preemptions: int  # tasks
    wasted: float  # share of the run time that was lost to preemption
    unfairness: float  # see fairness_error; nan without shares
    seconds: float  # of the event loop


def federated_run(  # noqa: PLR0913, PLR0917  (a run has many terms)
    label: str, workload: Workload, fleet: Fleet, scheduler: str, settings: Federation, seed: int, notify: Notify,
    queues: TreeFile | None = None,
) -> Run:
    """Simulate, and measure; *queues* has the weights of fair turns."""
    count = len(workload.tasks)
    notify(label, 0.0)
    last, longest = float(workload.tasks["arrival"][-1]), float(workload.tasks["run_time"].max())  # type: ignore[arg-type]
    outcome = simulate(
        workload, fleet, find_scheduler(scheduler), seed, until=last + LONGEST_RUNS_WAITED * longest,
        federation=settings, queues=queues, on_progress=lambda progress: notify(label, progress.tasks_arrived / count))
    return measure(outcome, workload, settings)


def measure(outcome: Outcome, workload: Workload, settings: Federation) -> Run:
    """Return what is asked of a finished federated run; the one place that reads its arrays."""
    assert outcome.federated is not None
    sim, network = outcome.simulation, outcome.federated.network
    status = sim.claims.status
    started = np.isin(status, (TASK_RUNNING, TASK_FINISHED))
    lost_task, _, lost_start, lost_end = np.hstack(outcome.loop_result.losses)
    first = sim.progress.start.copy()
    np.fmin.at(first, lost_task.astype(np.int64), lost_start)
    waited = (sim.progress.start - sim.progress.ready)[started]
    known = {"processing": network.processing[started], "worker queueing": network.at_worker[started],
             "communication": network.communication[started]}
    queued = np.maximum(waited - sum(known.values()), 0.0)
    tally = _tallies(outcome.federated.roles)
    return Run(
        (first - sim.progress.ready)[started], {"framework queueing": queued, **known}, status.size,
        int((status == TASK_UNPLACEABLE).sum()), int((~started & (status != TASK_UNPLACEABLE)).sum()),
        tally.get("launches", 0) + tally.get("repartitions", 0), tally.get("refusals", 0), tally.get("repartitions", 0),
        tally.get("preemption attempts", 0), tally.get("tasks preempted", 0),
        wasted_share(sim.tasks.run_time[status == TASK_FINISHED], lost_end - lost_start),
        fairness_error(outcome, workload, settings.shares) if settings.shares else float("nan"),
        outcome.loop_result.seconds)


def _tallies(roles: Any) -> dict[str, int]:
    """Return Megha's counts, summed over the masters; nothing for a federation that has none."""
    if not hasattr(roles, "masters"):
        return {}
    counts = dict(zip(TALLY, total([each.tally for each in roles.masters]).values(), strict=True))
    return counts | dict(zip(LOCAL_TALLY, total([each.tally for each in roles.locals]).values(), strict=True))


def spread(run: Run) -> dict[str, float]:
    """Return the allocation time's mean, quantiles and maximum, in seconds, by the names of columns."""
    times = run.allocation if len(run.allocation) else np.array([np.nan])
    return {"median (s)": float(np.quantile(times, 0.5)), "mean (s)": float(times.mean()),
            **{f"{name} (s)": float(np.quantile(times, level)) for name, level in QUANTILES.items() if level > 0.5},
            "max (s)": float(times.max())}
