"""Jobs as a whole, and parts of a workload apart: short and long, by queue, priority, scheduling class, gang's width.

A job's wait is from its arrival to its first task's start, its completion time to its last task's finish; its slowdown
is the latter over what it takes where nothing ever waits: its longest chain of tasks, each behind those of the stages
that its own depends on, on machines of speed 1. Completion and slowdown are of jobs all of whose tasks finished. A job
is long if the mean run time of its tasks is above that of 90 % of the jobs that are measured, else short (Delgado and
others: Hawk, ATC 2015, section 4.1, where 10 % are long).
"""
from collections.abc import Iterator

import numpy as np
import polars as pl

from subak.measures.of_run import bounded_slowdown, spread
from subak.measures.runs import JobFacts, Spread, WindowFacts
from subak.measures.window import Window, measured
from subak.workload.table import Workload
from subak.workload.tasks import SLOWDOWN_FLOOR_S

LONG_SHARE = 0.1  # of the jobs
GROUPS_MAX = 1_000  # of one kind that are written down, those of most tasks first
KINDS_OF_GROUPS = ("length", "priority", "class", "gang", "queue")
LENGTHS = ("short", "long")
COUNTED = ("job", "queue", "arrival", "run_time", "ready", "finish", "wait_time")  # columns that measures of tasks read
TASKS_OF_PART = 1 << 20  # looked at together: a month's indices as int64 would take a gigabyte


def job_table(tasks: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """Return one row a job: job (row), queue, arrival; wait, null until a task started; completion and slowdown.

    The latter two are null unless all its tasks finished.

    *tasks* is the task table of a run of the workload, in whose order it is.
    """
    alone = pl.Series("alone", undisturbed(workload))
    finish = pl.when((pl.col("status") == "FINISHED").all()).then(pl.col("finish").max())
    jobs = tasks.group_by("job", maintain_order=True).agg(
        pl.col("queue").first(), pl.col("arrival").min(), finish.alias("finish"),
        ((pl.col("ready") + pl.col("wait_time")).min() - pl.col("arrival").min()).alias("wait"))
    completion = (pl.col("finish") - pl.col("arrival")).alias("completion")
    slowdown = pl.col("completion") / pl.max_horizontal(alone.gather(jobs["job"]), pl.lit(SLOWDOWN_FLOOR_S))
    return jobs.with_columns(completion).with_columns(slowdown=slowdown.clip(lower_bound=1.0)).drop("finish")


def undisturbed(workload: Workload) -> np.ndarray:
    """Return float64[job], seconds: how long each job takes where nothing waits; 0 for one without tasks."""
    job = workload.stages["job"].to_numpy().astype(np.int64)
    first = np.full(len(workload.jobs), np.inf)
    for stage, arrival, _ in _parts(workload):
        np.minimum.at(first, job[stage], arrival)
    edges = workload.stages.with_row_index("child").select("child", pl.col("depends_on").alias("parent")).explode(
        "parent").drop_nulls()
    child, parent = (edges[name].to_numpy().astype(np.int64) for name in ("child", "parent"))
    depth = _depths(child, parent, job.size)
    ready, done, longest = np.zeros(job.size), np.zeros(job.size), np.zeros(first.size)
    for level in range(int(depth.max(initial=0)) + 1):
        for stage, arrival, run_time in _parts(workload):
            here = np.flatnonzero(depth[stage] == level)
            of = stage[here]
            np.maximum.at(done, of, np.maximum(arrival[here] - first[job[of]], ready[of]) + run_time[here])
        below = depth[parent] == level
        np.maximum.at(ready, child[below], done[parent[below]])
    np.maximum.at(longest, job, done)
    return longest


def _parts(workload: Workload) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return stage (int64), arrival and run time of the tasks, a part at a time."""
    columns = [workload.tasks[name].to_numpy() for name in ("stage", "arrival", "run_time")]
    for begin in range(0, len(workload.tasks), TASKS_OF_PART):
        stage, arrival, run_time = (column[begin:begin + TASKS_OF_PART] for column in columns)
        yield stage.astype(np.int64), arrival, run_time


def _depths(child: np.ndarray, parent: np.ndarray, stages: int) -> np.ndarray:
    """Return int64[stage]: how many stages are before each, on the longest way."""
    depth = np.zeros(stages, np.int64)
    while (behind := depth[child] <= depth[parent]).any():
        np.maximum.at(depth, child[behind], depth[parent[behind]] + 1)
    return depth


def job_facts(jobs: pl.DataFrame) -> JobFacts:
    """Return what summary.json says of the jobs that count; *jobs* are rows of the job table."""
    return JobFacts(len(jobs), len(jobs) - jobs["completion"].null_count(), spread(jobs["wait"]),
                    spread(jobs["completion"]), spread(jobs["slowdown"]))


def lengths(workload: Workload, window: Window | WindowFacts) -> pl.Series:
    """Return short or long for each job of a workload, as an Enum; what divides them is of the jobs of the window."""
    of_job = workload.tasks.select(
        "run_time", "arrival", job=workload.stages["job"].gather(workload.tasks["stage"])).group_by("job").agg(
        pl.col("run_time").mean(), pl.col("arrival").min())
    mean = np.zeros(len(workload.jobs))
    mean[of_job["job"].to_numpy()] = of_job["run_time"].to_numpy()
    of_window = measured(of_job, window)["run_time"].to_numpy()
    cutoff = np.quantile(of_window, 1.0 - LONG_SHARE, method="inverted_cdf") if of_window.size else np.inf
    return pl.Series("length", np.where(mean > cutoff, *LENGTHS[::-1]), dtype=pl.Enum(LENGTHS))


def described(tasks: pl.DataFrame, workload: Workload, window: WindowFacts) -> pl.DataFrame:
    """Return the rows of the task table that count, the columns COUNTED, and what tells groups apart.

    That is length and priority, and where there are any class and width of gang.
    """
    stage = workload.tasks["stage"]
    columns = [lengths(workload, window).gather(tasks["job"]),
               workload.stages["priority"].gather(stage).alias("priority")]
    if "scheduling_class" in workload.stages.columns:
        columns.append(workload.stages["scheduling_class"].gather(stage).alias("class"))
    if workload.gang_sizes().any():
        columns.append(width_words(workload.gang_sizes()).gather(stage).alias("gang"))
    return measured(tasks.select(COUNTED).with_columns(columns), window)


def width_words(sizes: np.ndarray) -> pl.Series:
    """Return how wide gangs of int[stage] tasks are, in powers of two: 1 (also 0, no gang), 2, 3 to 4, 5 to 8, ..."""
    power = np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    names = {each: f"{2**each}" if each < 2 else f"{2**(each - 1) + 1} to {2**each}" for each in set(power.tolist())}
    return pl.Series("gang", [names[each] for each in power.tolist()], dtype=pl.String)


def wait_by_length(tasks: pl.DataFrame) -> dict[str, Spread]:
    """Return the wait time of tasks of short and of long jobs; *tasks* are described."""
    return {name: spread(tasks["wait_time"].filter(tasks["length"] == name)) for name in LENGTHS}


def group_table(tasks: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each group of tasks of each kind: how they waited, and how their jobs fared.

    *tasks* are described; *jobs* is the job table.
    """
    kinds = [kind for kind in KINDS_OF_GROUPS if kind in tasks.columns]
    of_job = tasks.select("job", *kinds)[_first_rows(tasks["job"].to_numpy())].join(
        jobs.select("job", "completion"), on="job", how="left")
    return pl.concat(_groups(tasks, kind, of_job) for kind in kinds)


def _first_rows(job: np.ndarray) -> np.ndarray:
    """Return the rows in which each job comes first, in order; *job* is uint32[row], rows of the jobs."""
    first = np.full(int(job.max(initial=0)) + 1, job.size)
    np.minimum.at(first, job, np.arange(job.size))
    return np.sort(first[first < job.size])


def _groups(tasks: pl.DataFrame, kind: str, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the groups of one kind; a job is of the kind of the first of its tasks."""
    wait = pl.col("wait_time")
    table = tasks.group_by(kind).agg(
        pl.len().cast(pl.Int64).alias("tasks"), wait.count().cast(pl.Int64).alias("started"),
        wait.mean().alias("wait_mean"), *(wait.quantile(level, "higher").alias(f"wait_{text}") for level, text in (
            (0.5, "median"), (0.95, "p95"), (0.99, "p99"))),
        bounded_slowdown().mean().alias("slowdown_mean"))
    of_jobs = jobs.group_by(kind).agg(
        pl.len().cast(pl.Int64).alias("jobs"), pl.col("completion").mean().alias("completion_mean"))
    return table.join(of_jobs, on=kind, how="left", nulls_equal=True).select(
        pl.lit(kind).alias("by"), pl.col(kind).cast(pl.String).alias("name"), pl.exclude(kind)).sort(
        ["tasks", "name"], descending=[True, False]).head(GROUPS_MAX)
