"""The workloads and machines of the Megha paper, as near as public data allows.

The paper's samples (4,550 tasks of Google, 8,000 of Alibaba, 10,173 of Cloudera) are not public; what stands for each
is said in its docstring. Task and machine constraints are the authors' own frequencies.
"""
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from subak.fleet.table import ATTRIBUTE_COLUMNS, Fleet, make_fleet
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.readers.alibaba import alibaba2018
from subak.workload.readers.files.stream import Advance, ignore_progress
from subak.workload.readers.google.google2011 import events as google2011
from subak.workload.readers.options import Options
from subak.workload.table import Workload, make_workload

RESOURCES = (Resource("cpu", 1e-3, "cores"), Resource("memory", 1e-3, "GB"))
CORES, MEMORY_GB = 64.0, 16.0  # of every machine (section V-B)
CONSTRAINTS = 21  # section IV-B.1
# Per cent of the tasks of the first statistical cluster that require each constraint; the other clusters' are these
# times a factor. Source of this and the next two tables: github.com/meghanat/megha-constraint-aware, commit b503dbc,
# megha_sim/simulation/simulation.py and megha_config_G5L5S10000_C.json (after Sharma et al., SoCC 2011).
TASK_PERCENT = (8, 7, 7, 10, 23, 20, 30, 1, 3, 1, 4, 3, 2, 1, 4, 2, 9, 8, 11, 25, 29)
CLUSTER_FACTOR = (1.0, 0.94, 0.98, 0.72, 1.21, 0.82, 1.09, 0.59, 0.71, 0.9)
# How often each of the ten clusters occurs among tasks of type 1, 2, 3 and 4 (weights; a column adds up to about 1).
CLUSTER_WEIGHT = (
    (0.039629, 0.120433, 0.130371, 0.116757), (0.140495, 0.079715, 0.160817, 0.120470),
    (0.059059, 0.110161, 0.150668, 0.133837), (0.120322, 0.120433, 0.049307, 0.096584),
    (0.089876, 0.099765, 0.160817, 0.116757), (0.110050, 0.099765, 0.120470, 0.110198),
    (0.089876, 0.059295, 0.028886, 0.049307), (0.140495, 0.130334, 0.049307, 0.103886),
    (0.120322, 0.090111, 0.120470, 0.099802), (0.089876, 0.089988, 0.028886, 0.052400),
)
# Per cent of the authors' 10,000 machines that meet each constraint; in their file the bits are independent.
MACHINE_PERCENT = (37.61, 65.7, 15.56, 37.66, 68.28, 11.11, 28.39, 15.47, 70.28, 73.26, 48.69, 47.03, 31.69, 7.99,
                   69.27, 15.12, 56.28, 27.64, 66.77, 70.04, 100.0)
KINDS_OF_CLUSTER, ODDS_SPREAD = 3, 0.5  # the paper's clusters A, B, C: the odds above times exp(+-0.5) (not published)
GOOGLE_COUNT, ALIBABA_COUNT, CLOUDERA_COUNT = 4_550, 8_000, 10_173  # section V-A
ALIBABA_CORES, ALIBABA_MEMORY = 96.0, 100.0  # of one of its machines, in the trace's amounts
RUN_TIME_MAX_S = 3600.0  # of the google_19-like tasks: longer ones would outlast every allocation that is measured
QUEUES = ("user1", "user2", "user3", "user4")
FOUR_QUEUES: dict[str, Any] = {  # section VI-E
    "global_masters": 3, "shares": dict(zip(QUEUES, (0.1, 0.25, 0.15, 0.5), strict=True)),
    "masters_of": dict(zip(QUEUES, (0, 1, 1, 2), strict=True)),
}


class Sample(NamedTuple):
    """Tasks in order of arrival; amounts in cores and GB."""

    name: str
    origin: str
    arrival: np.ndarray  # float64[task], seconds
    run_time: np.ndarray  # float64[task], seconds
    cpu: np.ndarray  # float64[task], cores
    memory: np.ndarray  # float64[task], GB
    job: np.ndarray  # int64[task]


# Machines


def machines(count: int, clusters: int = 10, seed: int | None = None) -> Fleet:
    """Return *count* machines dealt to *clusters*; with a *seed* each meets some of the 21 constraints.

    Every cluster is of a kind, drawn at random, and a kind has frequencies of its own (section V).
    """
    cluster = np.arange(count) % clusters
    table = pl.DataFrame({"machine": [f"m{row}" for row in range(count)], "cluster": [f"c{row:03d}" for row in cluster],
                          "cpu": np.full(count, CORES), "memory": np.full(count, MEMORY_GB)})
    attributes = pl.DataFrame(schema=ATTRIBUTE_COLUMNS) if seed is None else _attributes(cluster, seed)
    made = Provenance("megha", f"{count:,} machines of {CORES:g} cores and {MEMORY_GB:g} GB", "made by hand")
    return make_fleet(table, RESOURCES, attributes, provenance=made)


def _attributes(cluster: np.ndarray, seed: int) -> pl.DataFrame:
    random = np.random.default_rng((seed, 1))
    frequency = machine_frequencies(seed)
    kind = random.integers(0, KINDS_OF_CLUSTER, int(cluster.max()) + 1)[cluster]
    row, constraint = np.nonzero(random.random((len(cluster), CONSTRAINTS)) < frequency[kind])
    names = pl.Series([constraint_name(number) for number in range(CONSTRAINTS)])
    return pl.DataFrame([pl.Series("machine", row.astype(np.uint32)), names.gather(constraint).alias("attribute"),
                         pl.repeat("1", len(row), eager=True).alias("value")])


def machine_frequencies(seed: int) -> np.ndarray:
    """Return float64[kind, constraint]: the authors' shares, and two more kinds with other odds."""
    share = np.array(MACHINE_PERCENT) / 100
    signs = np.random.default_rng((seed, 2)).choice([-1.0, 1.0], (KINDS_OF_CLUSTER, CONSTRAINTS))
    signs[0] = 0.0
    times = np.exp(ODDS_SPREAD * signs)
    frequency: np.ndarray = share * times / (1 - share + share * times)
    return frequency


def constraint_name(number: int) -> str:
    """Return the attribute of a constraint, numbered from 0."""
    return f"constraint{number + 1:02d}"


# Constraints of tasks


def draw_constraints(count: int, seed: int, rate: float = 1.0) -> np.ndarray:
    """Return bool[task, constraint], drawn as the authors do.

    A type from 1 to 4, equally likely; a statistical cluster by the type's weights; each constraint independently by
    the cluster's frequency. Then a task keeps its constraints with probability *rate* (1: theirs, 85.7 % have one).
    """
    random = np.random.default_rng((seed, 3))
    weight = np.array(CLUSTER_WEIGHT)
    bounds = np.cumsum(weight / weight.sum(axis=0), axis=0)  # float64[cluster, type]
    kind = random.integers(0, weight.shape[1], count)
    cluster = (random.random(count)[:, None] > bounds[:, kind].T).sum(axis=1).clip(max=len(weight) - 1)
    frequency = np.round(np.outer(CLUSTER_FACTOR, TASK_PERCENT), 1) / 100
    drawn: np.ndarray = random.random((count, CONSTRAINTS)) < frequency[cluster]
    return drawn & (random.random(count) < rate)[:, None]


# Samples


def google_sample(seed: int, count: int = GOOGLE_COUNT, workload: Workload | None = None, peak: float = 0.0) -> Sample:
    """Return *count* tasks of Google's 2011 trace that arrived within it and ran for at most an hour, drawn at random.

    Amounts are shares of the largest machine there and become shares of a machine here; with *peak* they are scaled so
    that the demand, if every task started on arrival, is at most that many machines (a task's: one machine).
    The paper sampled the 2019 trace.
    """
    source = shipped_google() if workload is None else workload
    tasks = source.tasks.filter(pl.col("arrival") > 0, pl.col("run_time").is_between(0, RUN_TIME_MAX_S, closed="right"))
    random = np.random.default_rng((seed, 4))
    count = min(count, len(tasks))
    chosen = tasks[np.sort(random.choice(len(tasks), count, replace=False))]
    stages = source.stages[chosen["stage"]]
    amounts = [stages[each.name].to_numpy() * each.unit for each in source.resources]
    arrival = chosen["arrival"].to_numpy() - float(chosen["arrival"][0])
    sample = Sample(f"google_19-like ({count:,} tasks)", "Google 2011", arrival, chosen["run_time"].to_numpy(),
                    amounts[0] * CORES, amounts[1] * MEMORY_GB, stages["job"].to_numpy().astype(np.int64))
    return scaled_to_peak(sample, peak) if peak else sample


def shipped_google() -> Workload:
    """Return the shipped 90 minutes of Google's 2011 trace."""
    from subak.workload.samples import sample_folder  # noqa: PLC0415  (so that the package's data are read when asked)
    from subak.workload.table import read_workload  # noqa: PLC0415  (as above)

    return read_workload(sample_folder())


def read_google(folder: Path, advance: Advance = ignore_progress) -> tuple[Workload, Fleet | None]:
    """Read a folder with parts of Google's 2011 trace."""
    found = google2011.read(folder, Options(), advance)
    return found.workload, found.fleet


def scaled_to_peak(sample: Sample, peak: float) -> Sample:
    """Return the sample with amounts times what brings the highest demand to *peak* machines."""
    low, high = 1e-6, 1e6
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if peak_demand(_times(sample, middle)) > peak else (middle, high)
    return _times(sample, low)


def _times(sample: Sample, factor: float) -> Sample:
    return sample._replace(cpu=np.minimum(sample.cpu * factor, CORES),
                           memory=np.minimum(sample.memory * factor, MEMORY_GB))


def peak_demand(sample: Sample) -> float:
    """Return the machines' worth of the scarcer resource wanted at the worst instant, if tasks started on arrival."""
    shares = (sample.cpu / CORES, sample.memory / MEMORY_GB)
    return max(float(demand_at_events(sample, share).max()) for share in shares)


def demand_at_events(sample: Sample, amount: np.ndarray) -> np.ndarray:
    """Return what is wanted after each arrival and end, in order of time (ends before arrivals of the same instant)."""
    time = np.concatenate([sample.arrival + sample.run_time, sample.arrival])
    change = np.concatenate([-amount, amount])
    return np.cumsum(change[np.argsort(time, kind="stable")])


def alibaba_sample(source: Path, count: int = ALIBABA_COUNT, advance: Advance = ignore_progress) -> Sample:
    """Return the first *count* rows of batch_task of Alibaba's 2018 trace, each as one task that waits for no other."""
    tables = alibaba2018.read(alibaba2018.files(source)[0], Options(), advance).workload
    tasks = tables.tasks.unique("stage", keep="first", maintain_order=True).filter(pl.col("run_time") > 0).head(count)
    stages = tables.stages[tasks["stage"]]
    cpu, memory = (stages[each.name].to_numpy() * each.unit for each in tables.resources)
    arrival = tasks["arrival"].to_numpy()
    return Sample(f"alibaba-like ({len(tasks):,} tasks)", "Alibaba 2018, tasks of batch_task", arrival - arrival[0],
                  tasks["run_time"].to_numpy(), np.minimum(cpu / ALIBABA_CORES, 1) * CORES,
                  np.minimum(memory / ALIBABA_MEMORY, 1) * MEMORY_GB, stages["job"].to_numpy().astype(np.int64))


ALIBABA_RATE, ALIBABA_JOB = 16.0, 4  # tasks a second in the trace's first half hour, tasks of a job


def alibaba_stand_in(seed: int, count: int = ALIBABA_COUNT, workload: Workload | None = None) -> Sample:
    """Return tasks of Google's trace where Alibaba's, which may not be redistributed, is not given.

    Amounts and run times are those of tasks drawn at random; jobs and arrivals are as dense as Alibaba's: jobs of 4
    tasks in a Poisson stream.
    """
    sample = google_sample(seed, count, workload)
    random = np.random.default_rng((seed, 8))
    jobs = -(-len(sample.arrival) // ALIBABA_JOB)
    arrival = np.repeat(np.cumsum(random.exponential(ALIBABA_JOB / ALIBABA_RATE, jobs)), ALIBABA_JOB)
    shuffled = random.permutation(len(sample.arrival))
    cpu, memory, run_time = (values[shuffled] for values in (sample.cpu, sample.memory, sample.run_time))
    return Sample(f"alibaba-like ({count:,} tasks)", "Google 2011, in place of Alibaba 2018 (see --alibaba)",
                  arrival[: len(shuffled)], run_time, cpu, memory, np.arange(len(shuffled)) // ALIBABA_JOB)


LONG_SHARE, LONG_SPAN_S, LONG_MEDIAN_S, LONG_SIGMA = 0.97, 30.0, 60.0, 0.4
SHORT_SPAN_S, SHORT_MEAN_S = 90.0, 5.0
JOB_MEDIAN, JOB_SIGMA = 4.0, 1.2  # tasks of a job: log-normal, at most a hundredth of all
CLOUDERA_PEAK = 0.95  # of the machines


def cloudera_like(seed: int, count: int = CLOUDERA_COUNT, workers: int = 10_000) -> Sample:
    """Return tasks of one worker slot each whose demand over time rises to 95 % of *workers* and falls again (Fig. 5).

    A mixture: 97 % of the tasks are of jobs that arrive evenly over 30 s and run log-normally long; 3 % are short and
    arrive over 90 s. Jobs have a log-normal number of tasks that arrive together. The long run times are stretched
    until the highest demand is reached: a load under which sampling suffers, and not quite more than there is.
    """
    random = np.random.default_rng((seed, 5))
    sizes = np.clip(np.rint(JOB_MEDIAN * np.exp(JOB_SIGMA * random.standard_normal(count))), 1, max(1, count // 100))
    job = np.repeat(np.arange(count), sizes.astype(np.int64))[:count]
    is_long = (random.random(count) < LONG_SHARE)[job]
    arrival = random.random(count)[job] * np.where(is_long, LONG_SPAN_S, SHORT_SPAN_S)
    short = random.exponential(SHORT_MEAN_S, count)
    long = LONG_MEDIAN_S * np.exp(LONG_SIGMA * random.standard_normal(count))
    order = np.argsort(arrival, kind="stable")
    arrival, is_long, job, short, long = arrival[order], is_long[order], job[order], short[order], long[order]
    one = np.ones(count)

    def stretched(factor: float) -> Sample:
        run_time = np.where(is_long, long * factor, short)
        return Sample(f"cloudera-like ({count:,} tasks)", "drawn: a rising and falling mixture of long and short tasks",
                      arrival, run_time, one * CORES, one * MEMORY_GB, job)

    low, high = 1e-3, 1e3
    for _ in range(50):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if peak_demand(stretched(middle)) > CLOUDERA_PEAK * workers else (middle, high)
    return stretched(low)


STEADY_REQUESTS = ((4.0, 1.0), (8.0, 2.0), (16.0, 2.0), (8.0, 4.0))  # cores, GB
STEADY_MEAN_S, STEADY_JOB = 30.0, 20  # run time (exponential), alike tasks of a job


def steady(count: int, workers: int, load: float, seed: int) -> Sample:
    """Return jobs of 20 alike tasks in a Poisson stream that keeps the scarcer resource of *workers* busy at *load*."""
    random = np.random.default_rng((seed, 6))
    jobs = -(-count // STEADY_JOB)
    kind = np.repeat(random.integers(0, len(STEADY_REQUESTS), jobs), STEADY_JOB)[:count]
    request = np.array(STEADY_REQUESTS)
    share = float((request / (CORES, MEMORY_GB)).mean(axis=0).max())  # of a machine, a task's
    gap = STEADY_JOB * STEADY_MEAN_S * share / (load * workers)
    arrival = np.repeat(np.cumsum(random.exponential(gap, jobs)), STEADY_JOB)[:count]
    return Sample(f"steady ({count:,} tasks at {load:.0%} load)", "drawn", arrival,
                  random.exponential(STEADY_MEAN_S, count), request[kind, 0], request[kind, 1],
                  np.arange(count) // STEADY_JOB)


# Workloads


def workload_of(sample: Sample, constraints: np.ndarray | None = None, queue: np.ndarray | None = None) -> Workload:
    """Return a workload; *constraints* is bool[task, constraint], *queue* int64[task] (equal within a job) of QUEUES.

    Alike tasks of a job are a stage.
    """
    count = len(sample.arrival)
    bits = np.zeros(count, np.int64) if constraints is None else constraints @ (1 << np.arange(CONSTRAINTS))
    of_queue = np.zeros(count, np.int64) if queue is None else queue
    tasks = pl.DataFrame({"job": sample.job, "queue": of_queue, "cpu": sample.cpu, "memory": sample.memory,
                          "bits": bits, "arrival": sample.arrival, "run_time": sample.run_time})
    stages = tasks.select("job", "queue", "cpu", "memory", "bits").unique(maintain_order=True).with_row_index("stage")
    jobs = stages.select("job", "queue").unique("job", maintain_order=True).with_row_index("row")
    distinct = stages.select("bits").unique(maintain_order=True)
    lists = distinct.with_columns(pl.Series("constraints", [_constraint_list(each) for each in distinct["bits"]],
                                            pl.List(CONSTRAINT_TYPE)))
    placed = stages.join(jobs, on="job", how="left", maintain_order="left").join(
        lists, on="bits", how="left", maintain_order="left")
    keys = ["job", "queue", "cpu", "memory", "bits"]
    rows = tasks.join(stages, on=keys, how="left", maintain_order="left").with_columns(
        index=pl.int_range(pl.len(), dtype=pl.UInt32).over("job"))
    names = pl.Series(QUEUES).gather(jobs["queue"])
    return make_workload(
        pl.DataFrame([jobs["job"].cast(pl.String), names.alias("queue"), names.alias("user")]),
        placed.select(job="row", name=pl.col("stage").cast(pl.String), depends_on=pl.lit([], pl.List(pl.UInt32)),
                      kind=pl.lit("TASK"), priority=pl.lit(0), constraints="constraints", cpu="cpu", memory="memory"),
        rows.select("stage", "index", "arrival", "run_time"), RESOURCES, Provenance(sample.name, sample.origin))


def _constraint_list(bits: int) -> list[dict[str, str]]:
    return [{"attribute": constraint_name(number), "operator": "=", "value": "1"}
            for number in range(CONSTRAINTS) if bits >> number & 1]


def deal_queues(sample: Sample, seed: int) -> np.ndarray:
    """Return int64[task]: the queue of its job; the jobs are dealt to the four evenly, in an order drawn at random."""
    _, job = np.unique(sample.job, return_inverse=True)
    order = np.random.default_rng((seed, 7)).permutation(int(job.max()) + 1)
    queue: np.ndarray = order[job] % len(QUEUES)
    return queue
