"""How large the experiments of the HMHS paper are, and what they have in common: draws, runs, means and intervals."""
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.fleet.table import Fleet
from subak.placement.mapreduce.batch import find_batch
from subak.placement.mapreduce.bound import makespan_bound
from subak.placement.mapreduce.recipes import SearchSettings
from subak.policy import find_scheduler
from subak.reproduce.claims import Notify
from subak.simulator.results import finish_times
from subak.simulator.simulate import simulate
from subak.workload.mapreduce import CLUSTERS, WORKLOADS, MapReduce, draw_batch
from subak.workload.table import Workload, make_workload

BOUND = "bound"
SCHEDULERS = {"fifo": "first-fit+backfill", "fifo-pri": "fifo-pri", "r-hmhs": "r-hmhs", "hmhs": "hmhs"}
ALL_SCHEDULERS = {**SCHEDULERS, "min-min": "min-min", "dynamic-min-min": "dynamic-min-min", "max-min": "max-min",
                  "sufferage": "sufferage", "heft": "heft", "hmhs-search": "hmhs-search"}
CONFIDENCE = 0.95


class Scale(NamedTuple):
    """How large the experiments are."""

    seeds: int = 30
    jobs: tuple[int, ...] = (50, 100, 150, 200, 250, 300, 350, 400, 450, 500)  # Fig. 1
    machines: int = 100  # of maps, and as many of reduces
    cluster_jobs: int = 100  # Fig. 2
    baseline_jobs: tuple[int, ...] = (100, 300)  # past the paper
    baseline_seeds: int = 10
    search_moves: int = 500


QUICK = Scale(seeds=5, jobs=(50, 150, 300), machines=40, cluster_jobs=40, baseline_jobs=(40,), baseline_seeds=2,
              search_moves=100)


class Case(NamedTuple):
    """A point of a figure: what is drawn there with each seed."""

    workload: str = "single"
    jobs: int = 100
    cluster: int = 1


class Bench:
    """The inputs of all experiments."""

    def __init__(self, scale: Scale, seed: int, notify: Notify, yahoo: Workload | None = None) -> None:
        self.scale, self.seed, self.notify, self.yahoo = scale, seed, notify, yahoo

    def draw(self, case: Case, number: int) -> tuple[Workload, Fleet]:
        """Return the batch and the machines of a case with the seed of that *number*."""
        parameters = MapReduce(
            jobs=case.jobs, classes=WORKLOADS[case.workload], map_machines=self.scale.machines,
            reduce_machines=self.scale.machines, slow_share=CLUSTERS[case.cluster])
        return draw_batch(parameters, self.seed + number)

    def draw_yahoo(self, number: int) -> tuple[Workload, Fleet]:
        """Return the jobs of a trace, all at 0, each its own speed group, on machines drawn as in Fig. 1."""
        assert self.yahoo is not None
        jobs = self.yahoo
        stages = jobs.stages.with_columns(speed_group=pl.col("job"), **{
            resource.name: pl.col(resource.name) * resource.unit for resource in jobs.resources})
        batch = make_workload(jobs.jobs, stages, jobs.tasks.with_columns(arrival=pl.lit(0.0)), jobs.resources,
                              jobs.provenance)
        return batch, self.draw(Case(jobs=len(jobs.jobs)), number)[1]

    def measure(self, schedulers: dict[str, str], seeds: int,
                draw: Callable[[int], tuple[Workload, Fleet]]) -> dict[str, np.ndarray]:
        """Return float64[seed] makespans (s) of each scheduler, and the bound's."""
        found: dict[str, list[float]] = {name: [] for name in (*schedulers, BOUND)}
        for number in range(seeds):
            workload, fleet = draw(number)
            for name, scheduler in schedulers.items():
                found[name].append(makespan(workload, fleet, scheduler, self.seed + number, self.scale.search_moves))
            found[BOUND].append(makespan_bound(find_batch(workload, fleet), workload).seconds)
        return {name: np.array(values) for name, values in found.items()}


def makespan(workload: Workload, fleet: Fleet, scheduler: str, seed: int, search_moves: int) -> float:
    """Return the seconds from 0 until everything has ended."""
    outcome = simulate(workload, fleet, find_scheduler(scheduler), seed, search=SearchSettings(moves=search_moves))
    return float(finish_times(outcome).max())


def below(times: dict[str, np.ndarray], other: str, name: str = "hmhs") -> np.ndarray:
    """Return float64[seed]: by what share of *other*'s makespan that of *name* is shorter."""
    shorter: np.ndarray = 1.0 - times[name] / times[other]
    return shorter


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return the mean, and half the width of its 95 % interval (Student's t; nan for a single value)."""
    if values.size < 2:
        return float(values.mean()), float("nan")
    half = scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean()), float(half)


def summary(times: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the mean makespans, how far HMHS is below the others and above the bound, with intervals."""
    row: dict[str, Any] = {f"{name} (s)": float(values.mean()) for name, values in times.items()}
    for other in (name for name in SCHEDULERS if name != "hmhs"):
        row[f"below {other} (share)"], row[f"below {other} ± (share)"] = interval(below(times, other))
    row["above the bound (share)"], row["above the bound ± (share)"] = interval(times["hmhs"] / times[BOUND] - 1.0)
    return row
