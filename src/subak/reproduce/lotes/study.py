"""The runs behind the figures of the LoTES paper: on Google's trace, and on a month of the same classes."""
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from subak.federation.settings import Federation
from subak.fleet.table import Fleet, make_fleet, read_fleet
from subak.placement.claims import TASK_UNPLACEABLE
from subak.placement.lotes.settings import LotesSettings
from subak.policy import find_scheduler
from subak.reproduce.claims import Notify
from subak.reproduce.federated_runs import Run as FederatedRun
from subak.reproduce.federated_runs import measure
from subak.reproduce.lotes.workload import DAY_S, Month, month_of
from subak.simulator.engine.state import TIMELINE_WAITING_MEAN
from subak.simulator.outcome import Outcome
from subak.simulator.results import first_start
from subak.simulator.simulate import simulate
from subak.workload.google_like.google import google_machines
from subak.workload.samples import sample_folder
from subak.workload.table import Workload, read_workload

PAPER = ("greedy", "tetris", "lotes")
HOUR_S = 3600.0
TAILS = np.concatenate([[0.0], np.logspace(-2, 6, 161)])  # seconds: points of the distribution


class Scale(NamedTuple):
    """How large the experiments are."""

    month: Month = Month(load=0.9, amplitude=0.3, burst=1.16)  # the trace asks for 1.16 of its cpu at time 0
    part: int = 1  # one of so many of Google's machines
    short: Month = Month(3_000_000, 29 * 3 / 25.4, 0.95, 0.3, 1.16)  # for the figures past the paper
    loads: tuple[float, ...] = (0.8, 0.9, 0.95, 0.98)
    errors: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5)
    federated: Month = Month(1_000_000, 29 / 25.4, 0.95, 0.0, 0.95)
    masters: int = 10  # global, and local


QUICK = Scale(Month(60_000, 3.0, 0.95, 0.3, 1.16), 50, Month(30_000, 1.5, 0.95, 0.3, 1.16), (0.8, 0.95), (0.0, 0.25),
              Month(20_000, 1.0, 0.95, 0.0, 0.95), 2)


class Run(NamedTuple):
    """What is asked of one simulation."""

    mean: float  # seconds until the first start, over the tasks that started
    weighted: float  # the same, each task by its dominant request
    later: float  # over the tasks that start after the first interval, nan without any
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

    def longer_than(self, seconds: float) -> float:
        """Return the share of the tasks that waited longer, at the nearest point."""
        return float(self.tail[np.abs(TAILS - seconds).argmin()])


def sample() -> tuple[Workload, Fleet]:
    """Return the shipped sample of Google's trace and its machines."""
    return read_workload(sample_folder()), read_fleet(sample_folder() / "fleet")


class Study:
    """The inputs of all experiments, and what several figures share."""

    def __init__(self, scale: Scale, seed: int, notify: Notify, trace: Workload | None = None,
                 fleet: Fleet | None = None) -> None:
        """Take a trace and its machines, or the shipped sample."""
        self.scale, self.seed, self.notify = scale, seed, notify
        self.trace, self.fleet = (trace, fleet) if trace is not None and fleet is not None else sample()
        self.kept: dict[Any, Any] = {}

    def once(self, name: Any, make: Callable[[], Any]) -> Any:
        """Return what *make* makes, made once."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def machines(self) -> Fleet:
        """Return Google's machines, or one of so many of each kind in turn."""
        whole: Fleet = self.once("machines", google_machines)
        if self.scale.part == 1:
            return whole
        amounts = [pl.col(each.name) * each.unit for each in whole.resources]
        table = whole.machines.with_columns(amounts).sort("cpu", "memory", "machine")
        return make_fleet(table.gather_every(self.scale.part), whole.resources, provenance=whole.provenance)

    def place(self, name: str | Month) -> tuple[Workload, Fleet]:
        """Return "trace", "month", or a month of its own. A month is kept until another is asked for."""
        if name == "trace":
            return self.trace, self.fleet
        month = self.scale.month if isinstance(name, str) else name
        if self.kept.get("month") != month:
            self.notify(f"Generating {month.tasks:,} tasks", 0.0)
            self.kept["month"], self.kept["tasks"] = month, month_of(month, self.machines(), self.seed)
        return self.kept["tasks"], self.machines()

    def run(self, name: str | Month, scheduler: str, request_error: float = 0.0, **settings: Any) -> Run:
        """Simulate a scheduler, once; *settings* are LoTES's."""
        key = (name, scheduler, request_error, tuple(sorted(settings.items())))
        run: Run = self.once(key, lambda: self._run(name, scheduler, request_error, settings))
        return run

    def _run(self, name: str | Month, scheduler: str, request_error: float, settings: dict[str, Any]) -> Run:
        workload, fleet = self.place(name)
        words = f"{name if isinstance(name, str) else f'load {name.load:g}'}: {scheduler}"
        self.notify(words, 0.0)
        outcome = simulate(
            workload, fleet, find_scheduler(scheduler), self.seed, lotes=LotesSettings(**settings),
            request_error=request_error,
            on_progress=lambda progress: self.notify(words, progress.tasks_arrived / len(workload.tasks)))
        return measured(outcome, DAY_S if name != "trace" else HOUR_S, float(workload.tasks["arrival"][-1]))

    def federated(self, placement: str) -> FederatedRun:
        """Simulate megha with a placement, once, up to the last arrival."""
        def make() -> FederatedRun:
            workload, fleet = self.place(self.scale.federated)
            masters, words = self.scale.masters, f"megha, {placement}"
            settings = Federation(global_masters=masters, local_masters=masters, placement=placement)
            self.notify(words, 0.0)
            outcome = simulate(
                workload, fleet, find_scheduler("megha"), self.seed, until=float(workload.tasks["arrival"][-1]),
                federation=settings,
                on_progress=lambda progress: self.notify(words, progress.tasks_arrived / len(workload.tasks)))
            return measure(outcome, workload, settings)
        run: FederatedRun = self.once(("megha", placement), make)
        return run


def measured(outcome: Outcome, interval: float, until: float) -> Run:
    """Return what is asked of a finished run; *interval* is that of the mean wait times over time, in seconds.

    Queues are measured *until* then, in seconds: a run goes on until its longest task ends, long after all is placed.
    """
    simulation, loop = outcome.simulation, outcome.loop_result
    start = first_start(outcome)
    begun = ~np.isnan(start)
    wait = start[begun] - simulation.progress.ready[begun]
    of_interval = (start[begun] // interval).astype(np.int64)
    count, total = np.bincount(of_interval), np.bincount(of_interval, weights=wait)
    timeline = loop.timeline[: max(1, round(until / loop.interval))]
    time_left = loop.end - np.arange(len(timeline)) * loop.interval
    spans = np.maximum(np.minimum(loop.interval, time_left), 1e-9)
    asked = (simulation.tasks.request * simulation.fleet.scale[:, None]).max(axis=0)[simulation.tasks.shape[begun]]
    unplaceable = int((simulation.claims.status == TASK_UNPLACEABLE).sum())
    ordered = np.sort(wait)
    return Run(
        float(wait.mean()), float((wait * asked).sum() / asked.sum()),
        float(total[1:].sum() / count[1:].sum()) if count.size > 1 else float("nan"),
        1.0 - np.searchsorted(ordered, TAILS, side="right") / ordered.size,
        {name: float(np.quantile(ordered, at)) for name, at in (("median", 0.5), ("p99", 0.99), ("p99.9", 0.999))},
        np.divide(total, count, out=np.full(count.size, np.nan), where=count > 0),
        timeline[:, TIMELINE_WAITING_MEAN] / spans, loop.interval, int((~begun).sum()) - unplaceable, unplaceable,
        sum(lost.shape[1] for lost in loop.losses), len(start) / loop.seconds, outcome.plans,
    )
