"""Counts what each scheduler placed by the end of the window, and who waited longer."""
from typing import NamedTuple

import polars as pl

from subak.measures.runs import Run
from subak.measures.series import measured_tasks

LONG_SHARE = 0.9  # tasks whose run time is above this quantile are the long ones
WORSE_SECONDS, WORSE_SHARE = 1.0, 0.1  # by how much a queue's mean wait must be longer to count


class Placed(NamedTuple):
    """What had been placed by the last arrival (or the end), over the runs of a scheduler."""

    started: float  # tasks, the mean over the runs
    at_once: float | None  # the share of all started tasks that did not wait
    run_time: float | None  # seconds, the median of those that had started by then
    run_time_mean: float | None  # seconds


class Classes(NamedTuple):
    """Mean waits of short and of long tasks, in seconds."""

    limit: float  # seconds; longer tasks are long
    short: float | None
    long: float | None


class WorseQueues(NamedTuple):
    """Queues that wait longer in the mean than under another scheduler."""

    queues: int  # that have started tasks under both
    worse: int
    queue: str  # that lost most
    seconds: float  # its mean wait here
    other_seconds: float  # and there


def placed(runs: list[Run]) -> Placed:
    """Return what the runs of one scheduler had placed of the measured tasks by the end of the window."""
    lasting = pl.col("run_time").is_finite()
    by_then = pl.concat([measured_tasks(run).filter(pl.col("start") <= _end(run)).select("run_time", "start")
                         for run in runs])
    started, median, mean = by_then.select(
        pl.len(), pl.col("run_time").filter(lasting).median().alias("median"),
        pl.col("run_time").filter(lasting).mean().alias("mean")).collect().row(0)
    at_once = _tasks(runs).select((pl.col("wait_time") == 0).mean()).collect().item()
    return Placed(started / len(runs), at_once, median, mean)


def _end(run: Run) -> float:
    return float("inf") if run.summary.window is None else run.summary.window.end


def long_limit(runs: list[Run]) -> float | None:
    """Return the run time above which a tenth of the tasks is, in seconds; None where tasks do not differ."""
    times = runs[0].tasks().select("run_time").filter(pl.col("run_time").is_finite())
    least, limit, most = times.select(pl.col("run_time").min().alias("least"),
                                      pl.col("run_time").quantile(LONG_SHARE, "higher").alias("limit"),
                                      pl.col("run_time").max().alias("most")).collect().row(0)
    return None if limit is None or not least < limit <= most else float(limit)


def classes(runs: list[Run], limit: float) -> Classes:
    """Return the mean waits of the tasks that run at least *limit* seconds, and of those that run less."""
    is_long = pl.col("run_time") >= limit
    wait = pl.col("wait_time")
    short, long = _tasks(runs).select(wait.filter(~is_long).mean().alias("short"),
                                      wait.filter(is_long).mean().alias("long")).collect().row(0)
    return Classes(limit, short, long)


def worse_queues(runs: list[Run], others: list[Run]) -> WorseQueues | None:
    """Return which queues wait longer under the scheduler of *runs* than under that of *others*, if there are some."""
    here, there = _by_queue(runs), _by_queue(others)
    both = here.join(there, on="queue", suffix="_there").with_columns(
        lost=pl.col("wait_time") - pl.col("wait_time_there")).sort(["lost", "queue"], descending=[True, False])
    worse = both.filter((pl.col("lost") > WORSE_SECONDS) & (pl.col("lost") > WORSE_SHARE * pl.col("wait_time_there")))
    if len(both) < 2 or worse.is_empty():
        return None
    queue, seconds, other = worse.select("queue", "wait_time", "wait_time_there").row(0)
    return WorseQueues(len(both), len(worse), queue, seconds, other)


def _tasks(runs: list[Run]) -> pl.LazyFrame:
    return pl.concat([measured_tasks(run).select(pl.col("waited").alias("wait_time"), "run_time",
                                                 pl.col("queue").cast(pl.String)) for run in runs])


def _by_queue(runs: list[Run]) -> pl.DataFrame:
    return _tasks(runs).drop_nulls(["wait_time", "queue"]).group_by("queue").agg(pl.col("wait_time").mean()).collect()
