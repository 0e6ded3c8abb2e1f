"""A study: how large its experiments are, its inputs, and what is asked of each simulation."""
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from subak.federation.local_state import LOCAL_TALLY
from subak.federation.master_state import TALLY
from subak.federation.settings import Federation
from subak.fleet.table import Fleet
from subak.placement.starts import FINISHED, RUNNING, UNPLACEABLE
from subak.policy import find_scheduler
from subak.queues.tree import TreeFile
from subak.reproduce import megha_workloads as made
from subak.reproduce.megha_fairness import fairness_error, wasted_share
from subak.simulator.run import Outcome, simulate
from subak.workload.table import Workload

Notify = Callable[[str, float], None]  # what is being simulated, and which part of its tasks have arrived
QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}  # Fig. 4
PARTS = ("framework queueing", "processing", "worker queueing", "communication")  # section III
PATIENCE = 20  # a run is given up so many times the longest run time after the last arrival


class Scale(NamedTuple):
    """How large the experiments are."""

    workers: int = 10_000
    central_workers: tuple[int, ...] = (10_000, 20_000)
    sizes: tuple[int, ...] = (1_000, 5_000, 10_000, 20_000, 30_000, 40_000, 50_000)
    masters_workers: int = 30_000
    masters: tuple[tuple[int, int], ...] = ((5, 5), (5, 10), (5, 20), (10, 5), (10, 10), (10, 20), (20, 5), (20, 10),
                                            (20, 20), (40, 10))  # global, local
    fair_workers: tuple[int, ...] = (200, 500, 1_500)
    fair_peaks: tuple[float, float] = (300.0, 1_000.0)  # machines that google_19-like tasks want at the worst instant
    google: int = made.GOOGLE_COUNT
    alibaba: int = made.ALIBABA_COUNT
    cloudera: int = made.CLOUDERA_COUNT
    steady_workers: int = 2_000
    steady: int = 200_000
    large_workers: int = 50_000
    large: int = 1_000_000


QUICK = Scale(1_000, (1_000, 2_000), (200, 1_000, 5_000), 3_000,
              ((5, 5), (5, 10), (10, 5), (10, 10), (20, 10)), (40, 100, 300), (60.0, 200.0), 910, 1_600, 1_018,
              200, 8_000, 1_000, 10_000)


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


class Study:
    """The inputs of all experiments, and the runs that several figures share."""

    def __init__(self, scale: Scale, seed: int, notify: Notify, google: Workload | None = None,
                 google_fleet: Fleet | None = None, alibaba: Path | None = None) -> None:
        self.scale, self.seed, self.notify = scale, seed, notify
        self.google = made.shipped_google() if google is None else google
        self.google_fleet, self.alibaba = google_fleet, alibaba
        self.kept: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what *make* makes, made once."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def run(self, label: str, workload: Workload, fleet: Fleet, scheduler: str, settings: Federation,
            queues: TreeFile | None = None) -> Run:
        """Simulate, and measure; *queues* has the weights of fair turns."""
        count = len(workload.tasks)
        self.notify(label, 0.0)
        last, longest = float(workload.tasks["arrival"][-1]), float(workload.tasks["run_time"].max())  # type: ignore[arg-type]
        outcome = simulate(
            workload, fleet, find_scheduler(scheduler), self.seed, until=last + PATIENCE * longest,
            federation=settings, queues=queues,
            on_progress=lambda progress: self.notify(label, progress.tasks_arrived / count))
        return measure(outcome, workload, settings)


def measure(outcome: Outcome, workload: Workload, settings: Federation) -> Run:
    """Return what is asked of a finished federated run; the one place that reads its arrays."""
    assert outcome.federated is not None
    sim, network = outcome.simulation, outcome.federated.network
    status = sim.starts.status
    started = np.isin(status, (RUNNING, FINISHED))
    lost_task, _, lost_start, lost_end = np.hstack(outcome.driven.losses)
    first = sim.progress.start.copy()
    np.fmin.at(first, lost_task.astype(np.int64), lost_start)
    waited = (sim.progress.start - sim.progress.ready)[started]
    known = {"processing": network.processing[started], "worker queueing": network.at_worker[started],
             "communication": network.communication[started]}
    queued = np.maximum(waited - sum(known.values()), 0.0)
    tally = _tallies(outcome.federated.roles)
    return Run(
        (first - sim.progress.ready)[started], {"framework queueing": queued, **known}, status.size,
        int((status == UNPLACEABLE).sum()), int((~started & (status != UNPLACEABLE)).sum()),
        tally.get("launches", 0) + tally.get("repartitions", 0), tally.get("refusals", 0), tally.get("repartitions", 0),
        tally.get("preemption attempts", 0), tally.get("tasks preempted", 0),
        wasted_share(sim.tasks.run_time[status == FINISHED], lost_end - lost_start),
        fairness_error(outcome, workload, settings.shares) if settings.shares else float("nan"), outcome.driven.seconds)


def _tallies(roles: Any) -> dict[str, int]:
    """Return Megha's counts, summed over the masters; nothing for a federation that has none."""
    if not hasattr(roles, "masters"):
        return {}
    counts = dict(zip(TALLY, roles.masters.tally.sum(axis=0).tolist(), strict=True))
    return counts | dict(zip(LOCAL_TALLY, roles.locals.tally.sum(axis=0).tolist(), strict=True))


def spread(run: Run) -> dict[str, float]:
    """Return the allocation time's mean, quantiles and maximum, in seconds, by the names of columns."""
    times = run.allocation if len(run.allocation) else np.array([np.nan])
    return {"median (s)": float(np.quantile(times, 0.5)), "mean (s)": float(times.mean()),
            **{f"{name} (s)": float(np.quantile(times, level)) for name, level in QUANTILES.items() if level > 0.5},
            "max (s)": float(times.max())}
