"""Measures jobs as wholes, and groups: short and long, by queue, priority, class and gang width.

A job's wait is from its arrival to its first task's start, its completion time to its last task's finish; its slowdown
is the latter over what it takes where nothing ever waits: its longest chain of tasks, each behind those of the stages
that its own depends on, on machines of speed 1. Completion and slowdown are of jobs all of whose tasks finished. A job
is long if the mean run time of its tasks is above that of 90 % of the jobs that are measured, else short (Delgado and
others: Hawk, ATC 2015, section 4.1, where 10 % are long).
"""
import math
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from subak.measures.of_run import spread
from subak.measures.runs import JobFacts, Spread, WaitedFacts, WindowFacts
from subak.measures.tasks.job_sums import LENGTHS, sums_of
from subak.measures.window import (
    Window,
    arrived,
    measured,
    measured_jobs,
    still_waits,
    wait_until,
    waits_at_begin,
    waits_through,
)
from subak.workload.table import Workload
from subak.workload.tasks import SLOWDOWN_FLOOR_S

LEVELS = {"wait_median": 0.5, "wait_p95": 0.95, "wait_p99": 0.99}  # of groups
PASSES_MAX = 16  # over the tasks, to find those of a group
GROUPS_MAX = 1_000  # of one kind that are written down, those of most tasks first
KINDS_OF_GROUPS = ("length", "priority", "class", "gang", "queue")
WAITED = "waited"  # the wait time, of tasks that never started until the end of the window
COUNTED = ("job", "queue", "arrival", "run_time", "ready", "finish", "wait_time",
           "status")  # columns that measures of tasks read
AT_TIMES = ("execution_delay", "locality")  # and those that some runs have


def job_table(tasks: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """Return one row a job: job (row), queue, arrival; wait, null until a task started; completion and slowdown.

    The latter two are null unless all its tasks finished.

    *tasks* is the task table of a run of the workload, in whose order it is.
    """
    return jobs_of_parts([part_of_jobs(tasks)], undisturbed(workload))


def part_of_jobs(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each job of some rows of a task table: what `jobs_of_parts` makes the job table of."""
    return tasks.group_by("job", maintain_order=True).agg(
        pl.col("queue").first(), pl.col("arrival").min(), pl.col("finish").max(),
        (pl.col("status") == "FINISHED").all().alias("finished"),
        (pl.col("ready") + pl.col("wait_time")).min().alias("start"))


def jobs_of_parts(parts: list[pl.DataFrame], alone: np.ndarray) -> pl.DataFrame:
    """Return the job table of a run; *parts* are those of its tasks, in order, *alone* is float64[job], seconds.

    See `undisturbed` for the latter.
    """
    jobs = parts[0] if len(parts) == 1 else pl.concat(parts).group_by("job", maintain_order=True).agg(
        pl.col("queue").first(), pl.col("arrival").min(), pl.col("finish").max(), pl.col("finished").all(),
        pl.col("start").min())
    completion = pl.when("finished").then(pl.col("finish")) - pl.col("arrival")
    slowdown = pl.col("completion") / pl.max_horizontal(pl.Series("alone", alone).gather(jobs["job"]),
                                                        pl.lit(SLOWDOWN_FLOOR_S))
    return jobs.with_columns(wait=pl.col("start") - pl.col("arrival"), completion=completion).with_columns(
        slowdown=slowdown.clip(lower_bound=1.0)).drop("finish", "finished", "start")


def undisturbed(workload: Workload) -> np.ndarray:
    """Return float64[job], seconds: how long each job takes where nothing waits; 0 for one without tasks."""
    return sums_of(workload).undisturbed()


def job_facts(jobs: pl.DataFrame, window: WindowFacts) -> JobFacts:
    """Return what summary.json says of a run's jobs, of which *jobs* is the table: how many is of those that arrive."""
    inside, counted = arrived(jobs, window), measured_jobs(jobs, window)
    return JobFacts(len(inside), len(inside) - inside["completion"].null_count(), spread(counted["wait"]),
                    spread(counted["completion"]), spread(counted["slowdown"]))


def lengths(workload: Workload, window: Window | WindowFacts) -> pl.Series:
    """Return short or long for each job of a workload, as an Enum; what divides them is of the jobs of the window."""
    return sums_of(workload).lengths(window)


def described(
    tasks: pl.DataFrame, workload: Workload, window: Window | WindowFacts, of_stage: dict[str, pl.Series] | None = None
) -> pl.DataFrame:
    """Return the rows of the task table that count, the columns that are measured, their stage, and what tells groups.

    *of_stage* is what `groups_of_stages` returns, where the workload's tasks are not all.
    """
    told = groups_of_stages(workload, lengths(workload, window)) if of_stage is None else of_stage
    stage = workload.tasks["stage"]
    columns = [column.gather(stage) for name, column in told.items() if name not in COUNTED]
    more = [name for name in AT_TIMES if name in tasks.columns]
    return measured(tasks.select(*COUNTED, *more, wait_until(window.end).alias(WAITED)).with_columns(stage, *columns),
                    window)


def groups_of_stages(workload: Workload, length: pl.Series) -> dict[str, pl.Series]:
    """Return what the tasks of each stage have in common, by name: job, queue, length, priority, class, gang's width.

    The latter two where there are any; *length* is that of each job.
    """
    stages, sizes, paths = workload.stages, workload.gang_sizes(), workload.jobs["queue"]
    queue = paths.cast(pl.Enum(paths.unique(maintain_order=True)))
    found = {"job": stages["job"], "queue": queue.gather(stages["job"]), "length": length.gather(stages["job"]),
             "priority": stages["priority"]}
    if "scheduling_class" in stages.columns:
        found["class"] = stages["scheduling_class"]
    if sizes.any():
        found["gang"] = width_words(sizes)
    return {name: column.alias(name) for name, column in found.items()}


def width_words(sizes: np.ndarray) -> pl.Series:
    """Return how wide gangs of int[stage] tasks are, in powers of two: 1 (also 0, no gang), 2, 3 to 4, 5 to 8, ..."""
    power = np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    names = {each: f"{2**each}" if each < 2 else f"{2**(each - 1) + 1} to {2**each}" for each in set(power.tolist())}
    return pl.Series("gang", [names[each] for each in power.tolist()], dtype=pl.String)


def waited_facts(tasks: pl.DataFrame, window: WindowFacts) -> WaitedFacts:
    """Return who counts though it did not arrive in the window, or never started; *tasks* are described."""
    return WaitedFacts(*tasks.select(
        pl.col(WAITED).count(), waits_at_begin(window).sum().alias("before"), still_waits().sum().alias("still"),
        waits_through(window).sum().alias("through")).row(0))


def wait_by_length(tasks: pl.DataFrame) -> dict[str, Spread]:
    """Return the wait time of tasks of short and of long jobs; *tasks* are described."""
    return {name: spread(tasks[WAITED].filter(tasks["length"] == name)) for name in LENGTHS}


def groups_of_kind(column: Callable[[str], pl.Series], kind: str, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the groups of one kind; *jobs* has the group of each job, that of the first of its tasks.

    *column* returns one of the tasks' by its name. One is looked at after the other, and one group after the other, so
    that no more is held than a column, the places of the groups and the largest group.
    """
    names, code = _coded(column(kind))
    places = list(_places(code, len(names)))
    del code
    waits, started = column(WAITED), column("wait_time").is_not_null()
    rows = [(len(waits[here]), int(started[here].sum() or 0), *_waited(waits[here])) for here in places]
    del waits, started
    slowdown = column("slowdown")
    means = [slowdown[here].mean() for here in places]
    schema = {"tasks": pl.Int64, "started": pl.Int64, "wait_mean": pl.Float64, **dict.fromkeys(LEVELS, pl.Float64)}
    table = pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.Series("slowdown_mean", means, pl.Float64))
    named = table.select(pl.lit(kind).alias("by"), pl.Series("name", names, pl.String), pl.all())
    return with_jobs(named.filter(pl.col("tasks") > 0), kind, jobs)


def _waited(wait: pl.Series) -> tuple[object, ...]:
    """Return the mean, and of each level the least value at or above it."""
    known = wait.drop_nulls() if wait.null_count() else wait
    if known.is_empty():
        return None, *[None] * len(LEVELS)
    places = [math.ceil((len(known) - 1) * level) for level in LEVELS.values()]
    percentiles = np.partition(known.to_numpy(), places)[places]
    return wait.mean(), *percentiles.tolist()


def with_jobs(groups: pl.DataFrame, kind: str, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the groups of one kind that have most tasks, with their jobs."""
    of_jobs = jobs.group_by(pl.col(kind).cast(pl.String).alias("name")).agg(
        pl.len().cast(pl.Int64).alias("jobs"), pl.col("completion").mean().alias("completion_mean"))
    most = groups.sort(["tasks", "name"], descending=[True, False]).head(GROUPS_MAX)
    return most.join(of_jobs, on="name", how="left", nulls_equal=True, maintain_order="left")


def _coded(column: pl.Series) -> tuple[list[str | None], np.ndarray]:
    """Return the distinct values of a column as text, and uint32[row], the place of each row's among them."""
    if isinstance(column.dtype, pl.Enum):
        return column.dtype.categories.to_list(), column.to_physical().to_numpy()
    distinct = column.drop_nulls().unique().sort()
    names = distinct.cast(pl.String).to_list()
    if not names:
        return [None], np.zeros(len(column), np.uint32)
    code = distinct.search_sorted(column.fill_null(distinct[0])).cast(pl.UInt32)
    if column.null_count() == 0:
        return names, code.to_numpy()
    return [*names, None], np.where(column.is_null(), len(names), code.to_numpy())


def _places(code: np.ndarray, count: int) -> Iterator[slice | np.ndarray]:
    """Return the rows of each of *count* codes; of few, a pass for each is less than putting all in order."""
    if count == 1:
        yield slice(None)
        return
    if count <= PASSES_MAX:
        for each in range(count):
            yield np.flatnonzero(code == each).astype(np.uint32)
        return
    order = np.argsort(code.astype(np.min_scalar_type(count)), kind="stable").astype(np.uint32)
    ends = np.cumsum(np.bincount(code, minlength=count))
    for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        yield order[begin:end]
