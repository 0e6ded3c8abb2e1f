"""The size and common parts of the HMHS experiments: draws, runs, means, intervals."""
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.errors import RunError
from subak.experiment.workers import DONE, FAILED, STARTED, News, Say, news_of
from subak.fleet.locality import LEVELS, NO_HOLDER, has_inputs, input_level
from subak.fleet.table import Fleet, make_fleet
from subak.placement.mapreduce.batch import find_batch
from subak.placement.mapreduce.bound import makespan_bound
from subak.placement.schedulers import LOCALITY_WAIT
from subak.policy import find_scheduler
from subak.reproduce.claims import Notify
from subak.settings import used_by
from subak.simulator.outcome import Outcome
from subak.simulator.results import finish_times
from subak.simulator.settings import RunSettings
from subak.simulator.simulate import simulate
from subak.threads import usable_cores
from subak.workload.mapreduce import CLUSTERS, WORKLOADS, MapReduce, draw_batch
from subak.workload.table import Workload, make_workload

BOUND, MAKESPAN, COMPLETION = "bound", "makespan (s)", "mean job completion (s)"
TRACE, AT_HOME = "trace", "trace, on its machines"  # its jobs on drawn machines, or where their inputs lie
# On its machines: speeds drawn as the paper's or all alike, and how many times as long far inputs take.
ALIKE, DRAWN_SPEEDS, SLOW_READS = f"{AT_HOME}, alike", f"{AT_HOME}, speeds drawn", f"{AT_HOME}, slow reads"
FAR = {"rack_local": 1.5, "off_rack": 2.0}  # of SLOW_READS: an assumption


class Way(NamedTuple):
    """A scheduler with what it is set to."""

    scheduler: str
    locality_wait: float = LOCALITY_WAIT


SCHEDULERS = {"fifo": Way("first-fit+backfill"), "fifo-pri": Way("fifo-pri"), "r-hmhs": Way("r-hmhs"),
              "hmhs": Way("hmhs")}
ALL_SCHEDULERS = {**SCHEDULERS, **{name: Way(name) for name in (
    "min-min", "dynamic-min-min", "max-min", "sufferage", "heft", "hmhs-search")}}
LOCAL_SCHEDULERS = {"fifo": SCHEDULERS["fifo"], "fair": Way("delay-scheduling", 0.0), "delay": Way("delay-scheduling"),
                    "fifo-pri": SCHEDULERS["fifo-pri"], "hmhs": SCHEDULERS["hmhs"]}
CONFIDENCE = 0.95
SPEEDS = (0.1, 1.0)  # V_ij of the paper, uniform between these


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

    workload: str = "single"  # of the paper, or one of TRACE...: the jobs of a trace
    jobs: int = 100
    cluster: int = 1


class Trace(NamedTuple):
    """The jobs of a trace, and its machines, if they are known."""

    workload: Workload
    fleet: Fleet | None = None


def knows_places(trace: Trace) -> bool:
    """Whether it is known on which machines the inputs of a trace's tasks lie."""
    return trace.fleet is not None and has_inputs(trace.workload)


class Job(NamedTuple):
    """One draw, and the schedulers that run it; what a process is given."""

    scale: Scale
    case: Case
    seed: int
    ways: dict[str, Way]
    trace: Trace | None
    bounded: bool = True  # whether the bound is to be found, too


Measures = dict[str, dict[str, float]]  # by scheduler, and of the bound: its numbers by name


class Bench:
    """The inputs of all experiments."""

    def __init__(self, scale: Scale, seed: int, notify: Notify, trace: Trace | None = None, processes: int = 1) -> None:
        self.scale, self.seed, self.notify, self.trace, self.processes = scale, seed, notify, trace, processes
        self.known: dict[tuple[Case, int], Measures] = {}  # by case and seed: several figures have points in common

    def measure(self, what: str, cases: Sequence[Case], ways: Mapping[str, Way], seeds: int) -> list[list[Measures]]:
        """Return what each of the *ways* came to on each case with each of so many *seeds*; what is known is not run.

        A way has the same name in all figures.
        """
        points = [(case, self.seed + number) for case in cases for number in range(seeds)]
        jobs: dict[str, Job] = {}
        for case, seed in points:
            known = self.known.get((case, seed), {})
            missing = {name: way for name, way in ways.items() if name not in known}
            if missing:
                trace = self.trace if _of_trace(case) else None
                bounded = BOUND not in known and not case.workload.startswith(AT_HOME)
                jobs[f"{what}: {_words(case)}, seed {seed}"] = Job(self.scale, case, seed, missing, trace, bounded)
        self._run(jobs)
        every = [{name: self.known[point][name] for name in (*ways, BOUND) if name in self.known[point]}
                 for point in points]
        return [every[place:place + seeds] for place in range(0, len(every), seeds)]

    def _run(self, jobs: dict[str, Job]) -> None:
        """Run the jobs, and know what came of them."""
        done = 0
        for each in in_turn(jobs) if self.processes == 1 else _side_by_side(jobs, self.processes):
            if each.kind == DONE:
                done += 1
                job, found = jobs[each.label], msgspec.msgpack.decode(each.result)
                self.known[job.case, job.seed] = {**self.known.get((job.case, job.seed), {}), **found}
            else:
                self.notify(each.label, done / len(jobs))


def makespans(found: Sequence[Measures], number: str = MAKESPAN) -> dict[str, np.ndarray]:
    """Return float64[seed] of each scheduler, and of the bound where there is one."""
    return {name: np.array([each[name][number] for each in found]) for name in found[0] if number in found[0][name]}


def in_turn(jobs: Mapping[str, Job]) -> Iterator[News]:
    """Do one job after the other."""
    for label, job in jobs.items():
        yield News(label, STARTED)
        yield News(label, DONE, result=run_job(label, job, lambda news: None))


def _side_by_side(jobs: Mapping[str, Job], processes: int) -> Iterator[News]:
    """Do so many at a time. Raises RunError when one fails."""
    with closing(news_of(run_job, jobs, processes, kept=True)) as found:
        for news in found:
            if news.kind == FAILED:
                raise RunError(news.error)
            if news.kind in (STARTED, DONE):
                yield news


def processes_here() -> int:
    """Return how many processes may run at once on this machine."""
    return usable_cores()


def run_job(label: str, job: Job, say: Say) -> bytes:
    """Run every scheduler of a job on what is drawn for it; return the Measures."""
    say(News(label, STARTED))
    workload, fleet = draw(job)
    found: Measures = {}
    for name, way in job.ways.items():
        scheduler = find_scheduler(way.scheduler)
        told = RunSettings(locality_wait=way.locality_wait, search_moves=job.scale.search_moves)
        outcome = simulate(workload, fleet, scheduler, job.seed, **used_by(told, scheduler))
        found[name] = measures_of(outcome, workload)
    if job.bounded:
        found[BOUND] = {MAKESPAN: makespan_bound(find_batch(workload, fleet), workload).seconds}
    return msgspec.msgpack.encode(found)


def measures_of(outcome: Outcome, workload: Workload) -> dict[str, float]:
    """Return the makespan, the mean completion of jobs, and which shares of the tasks ran how near their inputs."""
    finish = finish_times(outcome)
    job = workload.stages["job"].to_numpy()[workload.tasks["stage"].to_numpy()]
    completion = np.zeros(len(workload.jobs))
    np.maximum.at(completion, job, finish)
    inputs = outcome.simulation.speeds.inputs
    found = {MAKESPAN: float(finish.max()), COMPLETION: float(completion.mean())}
    known = np.flatnonzero(inputs.holder[0] != NO_HOLDER)
    if not known.size:
        return found
    level = input_level(inputs, known, outcome.simulation.progress.machine[known])
    return found | {f"{name} (share)": float((level == number).mean()) for number, name in enumerate(LEVELS)}


# Draws


def draw(job: Job) -> tuple[Workload, Fleet]:
    """Return the batch and the machines of a job's case with its seed."""
    case = job.case
    jobs = case.jobs if job.trace is None else len(job.trace.workload.jobs)
    parameters = MapReduce(
        jobs=jobs, classes=WORKLOADS.get(case.workload, WORKLOADS["single"]), map_machines=job.scale.machines,
        reduce_machines=job.scale.machines, slow_share=CLUSTERS[case.cluster])
    if job.trace is None:
        return draw_batch(parameters, job.seed)
    batch = _at_once(job.trace.workload, FAR if case.workload == SLOW_READS else {})
    if case.workload == TRACE:
        return batch, draw_batch(parameters, job.seed)[1]
    assert job.trace.fleet is not None
    return batch, _with_speeds(job.trace.fleet, jobs, job.seed if case.workload == DRAWN_SPEEDS else None)


def _at_once(jobs: Workload, far: Mapping[str, float]) -> Workload:
    """Return the jobs of a trace, all at 0, each its own speed group; with *far* factors, those in place of its own."""
    stages = jobs.stages.with_columns(speed_group=pl.col("job"), **{
        resource.name: pl.col(resource.name) * resource.unit for resource in jobs.resources},
        **{name: pl.lit(factor) for name, factor in far.items()})
    return make_workload(jobs.jobs, stages, jobs.tasks.with_columns(arrival=pl.lit(0.0)), jobs.resources,
                         jobs.provenance)


def _with_speeds(fleet: Fleet, groups: int, seed: int | None) -> Fleet:
    """Return the fleet with speeds drawn as the paper's, or as fast for all (None)."""
    shape = (groups, len(fleet.machines))
    speeds = np.ones(shape) if seed is None else np.random.default_rng((seed, 9)).uniform(*SPEEDS, shape)
    amounts = {resource.name: pl.col(resource.name) * resource.unit for resource in fleet.resources}
    return make_fleet(fleet.machines.with_columns(**amounts), fleet.resources, fleet.attributes, speeds=speeds)


def _of_trace(case: Case) -> bool:
    return case.workload.startswith(TRACE)


def _words(case: Case) -> str:
    return case.workload if _of_trace(case) else f"{case.jobs} {case.workload} jobs, cluster {case.cluster}"


# Statistics


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


def summary(times: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the mean makespans, how far HMHS is below the others and above the bound, with intervals."""
    row: dict[str, Any] = {f"{name} (s)": float(values.mean()) for name, values in times.items()}
    for other in (name for name in SCHEDULERS if name != "hmhs"):
        row[f"below {other} (share)"], row[f"below {other} ± (share)"] = interval(below(times, other))
    row["above the bound (share)"], row["above the bound ± (share)"] = interval(times["hmhs"] / times[BOUND] - 1.0)
    return row
