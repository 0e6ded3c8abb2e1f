"""Draws MapReduce batches: jobs, machines and speeds as in HMHS (section 4.1 and Table 1).

What the paper leaves open is chosen so: times are real numbers, a job's class is drawn and not dealt out, V_ij^m and
V_ij^r are drawn for each job and machine independently, and which machines are slow is drawn once, in the number that
Table 1 says. Every quantity has a random stream of its own, numbered by job, so that more jobs leave the first as they
are.
"""
import math
from enum import IntEnum
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import polars as pl

from subak.fleet.table import Fleet, make_fleet
from subak.tables import Provenance
from subak.workload.google_like.laws import discrete
from subak.workload.google_like.parameters import require, require_positive, require_share, require_weights
from subak.workload.google_like.streams import uniforms
from subak.workload.mapreduce_tables import SLOT, SLOTS, AlikeJobs, alike_stages
from subak.workload.table import Workload, make_workload

ORIGIN = "drawn as HMHS draws it (Chen, Shen, Chen, Guo), section 4.1"
BATCH_TASKS_MAX = 200_000_000
MOST_FACTORS = 500_000_000  # of groups x machines: 4 GB
Interval = tuple[float, float]
Sharing = Literal["none", "machines", "slots"]


class JobClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A share of the jobs, and the intervals in which their numbers are uniform, ends included."""

    name: str
    share: float
    map_seconds: Interval = (5.0, 45.0)  # P^m
    reduce_seconds: Interval = (15.0, 135.0)  # P^r
    maps: tuple[int, int] = (1, 300)  # T^m
    reduces: tuple[int, int] = (1, 40)  # T^r

    def __post_init__(self) -> None:
        for name in ("map_seconds", "reduce_seconds", "maps", "reduces"):
            low, high = getattr(self, name)
            require(0 <= low <= high < math.inf, f"class {self.name}: {name} must be from a least to a most, 0 or more",
                    (low, high))
        require(self.maps[0] + self.reduces[0] > 0, f"class {self.name}: a job must have a task",
                (self.maps, self.reduces))


WORKLOADS = {
    "single": (JobClass("normal", 1.0),),
    "hybrid": (JobClass("normal", 0.8), JobClass("long", 0.15, (100.0, 2000.0), (300.0, 6000.0)),
               JobClass("large", 0.05, maps=(2000, 5000), reduces=(100, 400))),
}
CLUSTERS = {1: 0.0, 2: 0.2, 3: 0.4, 4: 0.6, 5: 0.8, 6: 1.0}  # Table 1: share of slow machines


class MapReduce(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch in numbers; the defaults are the paper's single workload on cluster 1."""

    jobs: int = 100  # N
    classes: tuple[JobClass, ...] = WORKLOADS["single"]
    gap: float = 0.0  # seconds between jobs, the mean of an exponential law; 0: all arrive at 0
    map_machines: int = 100  # M^m
    reduce_machines: int = 100  # M^r
    slots: int = 1  # of each kind that a machine has
    sharing: Sharing = "none"  # see `Places`
    slow_share: float = CLUSTERS[1]
    factors: Interval = (0.1, 1.0)  # V_ij of a machine that is not slow
    slow_factors: Interval = (0.9, 1.0)
    map_output_bytes: float = 0.0  # that each map leaves to the reduces of its job; 0: no shuffle
    copy_bytes_per_second: float = 20e6  # to one reduce

    def __post_init__(self) -> None:
        for name in ("jobs", "map_machines", "reduce_machines", "slots"):
            require(getattr(self, name) >= 1, f"{name} must be 1 or more", getattr(self, name))
        require_weights("shares of the classes", [each.share for each in self.classes])
        require_share("slow_share", self.slow_share)
        for name in ("gap", "map_output_bytes"):
            require(0 <= getattr(self, name) < math.inf, f"{name} must be finite, 0 or more", getattr(self, name))
        require_positive("copy_bytes_per_second", self.copy_bytes_per_second)
        for name in ("factors", "slow_factors"):
            low, high = getattr(self, name)
            require(0 < low <= high < math.inf, f"{name} must be from a least above 0 to a most", (low, high))
        size = self.jobs * (self.map_machines + self.reduce_machines)
        require(size <= MOST_FACTORS, f"jobs times machines must be at most {MOST_FACTORS:,}", size)


class Purpose(IntEnum):
    """What a stream is for; the numbers are part of what a seed means, so they are never given anew."""

    CLASS = 1
    GAP = 2
    MAP_SECONDS = 3
    REDUCE_SECONDS = 4
    MAPS = 5
    REDUCES = 6
    MAP_FACTOR = 7
    REDUCE_FACTOR = 8
    SLOW_MAP = 9
    SLOW_REDUCE = 10


class Places(NamedTuple):
    """Which machines run what.

    Sharing none: map machines, then reduce machines. Machines: the first of them have map slots, the first of them
    have reduce slots, so that most have both. Slots: as many machines as with none, whose slots take either.
    """

    machines: int
    maps: slice  # of the machines
    reduces: slice


def draw_batch(parameters: MapReduce, seed: int) -> tuple[Workload, Fleet]:
    """Return jobs with their speed groups, and machines with their speeds: factors float64[group, machine].

    Sharing nothing, a job is a group: the factors of its maps on the map machines and of its reduces on the reduce
    machines. Else a stage is one: row 2 i of job i's maps, row 2 i + 1 of its reduces. Equal arguments give equal
    tables. Raises InputError for a seed outside [0, 2^64[, or more than 200 million tasks. HMHS, section 4.1.
    """
    kinds = _classes(parameters, seed)
    jobs = _jobs(parameters, seed, kinds)
    tasks = int(jobs.tasks.sum())
    require(tasks <= BATCH_TASKS_MAX, f"jobs must have at most {BATCH_TASKS_MAX:,} tasks together", tasks)
    made = Provenance("mapreduce", f"{ORIGIN}, seed {seed}", "Apache-2.0",
                      {"seed": seed, "parameters": msgspec.to_builtins(parameters)})
    resources = SLOT if parameters.sharing == "slots" else SLOTS
    stages = alike_stages(jobs, resources)
    grouped = stages.stages.with_columns(speed_group=_groups(parameters, stages.stages))
    workload = make_workload(_job_table(parameters, kinds), grouped, stages.tasks, resources, made)
    return workload, _fleet(parameters, seed, made)


# Jobs


def _classes(parameters: MapReduce, seed: int) -> np.ndarray:
    """int64[job]: row of the classes."""
    weights = np.array([each.share for each in parameters.classes])
    return discrete(uniforms(seed, Purpose.CLASS, 0, parameters.jobs), weights)


def _jobs(parameters: MapReduce, seed: int, kinds: np.ndarray) -> AlikeJobs:
    count = parameters.jobs
    drawn = {purpose: uniforms(seed, purpose, 0, count)
             for purpose in (Purpose.MAP_SECONDS, Purpose.REDUCE_SECONDS, Purpose.MAPS, Purpose.REDUCES)}
    seconds = np.column_stack([_between(drawn[Purpose.MAP_SECONDS], _bounds(parameters, kinds, "map_seconds")),
                               _between(drawn[Purpose.REDUCE_SECONDS], _bounds(parameters, kinds, "reduce_seconds"))])
    tasks = np.column_stack([_whole(drawn[Purpose.MAPS], _bounds(parameters, kinds, "maps")),
                             _whole(drawn[Purpose.REDUCES], _bounds(parameters, kinds, "reduces"))])
    return AlikeJobs(_arrivals(parameters, seed), tasks, seconds, _shuffle(parameters, tasks))


def _bounds(parameters: MapReduce, kinds: np.ndarray, name: str) -> np.ndarray:
    """float64[2, job]: the ends of each job's interval."""
    bounds: np.ndarray = np.array([getattr(each, name) for each in parameters.classes], np.float64)[kinds].T
    return bounds


def _between(drawn: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    low, high = bounds
    return low + drawn * (high - low)


def _whole(drawn: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    low, high = bounds
    return np.floor(low + drawn * (high - low + 1)).astype(np.int64)


def _arrivals(parameters: MapReduce, seed: int) -> np.ndarray:
    """float64[job], seconds; the first job arrives at 0."""
    gaps = -np.log(uniforms(seed, Purpose.GAP, 0, parameters.jobs))
    gaps[0] = 0.0
    with np.errstate(over="ignore"):  # the table refuses what is too late
        return np.cumsum(gaps * parameters.gap)


def _shuffle(parameters: MapReduce, tasks: np.ndarray) -> np.ndarray | None:
    """float64[job], seconds that a reduce copies its even part of what the maps leave; None without a volume."""
    if not parameters.map_output_bytes:
        return None
    with np.errstate(over="ignore"):  # the table refuses what never ends
        volume = tasks[:, 0] * parameters.map_output_bytes
        return volume / np.maximum(tasks[:, 1], 1) / parameters.copy_bytes_per_second


def _job_table(parameters: MapReduce, kinds: np.ndarray) -> pl.DataFrame:
    names = pl.Series([each.name for each in parameters.classes], dtype=pl.String)
    return pl.DataFrame({"job": pl.int_range(len(kinds), eager=True).cast(pl.String), "queue": names.gather(kinds)},
                        ).with_columns(user=pl.lit("unknown"))


def _groups(parameters: MapReduce, stages: pl.DataFrame) -> pl.Series:
    job = stages["job"]
    return job if parameters.sharing == "none" else 2 * job + (stages["name"] == "reduce").cast(job.dtype)


# Machines


def _places(parameters: MapReduce) -> Places:
    maps, reduces = parameters.map_machines, parameters.reduce_machines
    if parameters.sharing == "machines":
        return Places(max(maps, reduces), slice(0, maps), slice(0, reduces))
    if parameters.sharing == "slots":
        return Places(maps + reduces, slice(0, maps + reduces), slice(0, maps + reduces))
    return Places(maps + reduces, slice(0, maps), slice(maps, maps + reduces))


def _fleet(parameters: MapReduce, seed: int, made: Provenance) -> Fleet:
    places = _places(parameters)
    slow = _slow(parameters, seed, places)
    capacity = np.zeros((2, places.machines))
    capacity[0, places.maps] = capacity[1, places.reduces] = parameters.slots
    amounts = {"slot": capacity[0]} if parameters.sharing == "slots" else {"map_slot": capacity[0],
                                                                           "reduce_slot": capacity[1]}
    machines = pl.DataFrame({"machine": _machine_names(parameters, places), **amounts}).with_columns(
        cluster=pl.lit("0"))
    rows = pl.DataFrame({"machine": np.flatnonzero(slow)}).with_columns(attribute=pl.lit("slow"), value=pl.lit("yes"))
    resources = SLOT if parameters.sharing == "slots" else SLOTS
    return make_fleet(machines, resources, rows, provenance=made, speeds=_speeds(parameters, seed, places, slow))


def _machine_names(parameters: MapReduce, places: Places) -> list[str]:
    if parameters.sharing != "none":
        return [f"machine-{number}" for number in range(places.machines)]
    return ([f"map-{number}" for number in range(parameters.map_machines)]
            + [f"reduce-{number}" for number in range(parameters.reduce_machines)])


def _slow(parameters: MapReduce, seed: int, places: Places) -> np.ndarray:
    """bool[machine]: the share is kept among map machines and among reduce machines, or among shared machines."""
    if parameters.sharing != "none":
        return _slow_of(seed, Purpose.SLOW_MAP, places.machines, parameters.slow_share)
    return np.concatenate([
        _slow_of(seed, Purpose.SLOW_MAP, parameters.map_machines, parameters.slow_share),
        _slow_of(seed, Purpose.SLOW_REDUCE, parameters.reduce_machines, parameters.slow_share)])


def _slow_of(seed: int, purpose: Purpose, count: int, share: float) -> np.ndarray:
    slow = np.zeros(count, np.bool_)
    slow[np.argsort(uniforms(seed, purpose, 0, count))[:round(share * count)]] = True
    return slow


def _speeds(parameters: MapReduce, seed: int, places: Places, slow: np.ndarray) -> np.ndarray:
    """float64[group, machine]; 1 where a group's tasks cannot run."""
    maps = _factors(parameters, seed, Purpose.MAP_FACTOR, slow[places.maps])
    reduces = _factors(parameters, seed, Purpose.REDUCE_FACTOR, slow[places.reduces])
    if parameters.sharing == "none":
        return np.hstack([maps, reduces])
    speeds = np.ones((2 * parameters.jobs, places.machines))
    speeds[0::2, places.maps] = maps
    speeds[1::2, places.reduces] = reduces
    return speeds


def _factors(parameters: MapReduce, seed: int, purpose: Purpose, slow: np.ndarray) -> np.ndarray:
    """float64[job, machine]: V_ij."""
    (low, high), (slow_low, slow_high) = parameters.factors, parameters.slow_factors
    drawn = uniforms(seed, purpose, 0, parameters.jobs * len(slow)).reshape(parameters.jobs, len(slow))
    drawn *= np.where(slow, slow_high - slow_low, high - low)
    drawn += np.where(slow, slow_low, low)
    return drawn
