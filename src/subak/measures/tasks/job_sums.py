"""Sums jobs without a run: work, and the time a job would take if nothing waited.

Gathered from tasks in their order, some at a time, and the same however they are cut.
"""
from threading import Event

import numpy as np
import polars as pl

from subak.measures.runs import WindowFacts
from subak.measures.window import Window
from subak.workload.stored import StoredWorkload, work_of
from subak.workload.table import Workload

LONG_SHARE = 0.1  # of the jobs
LENGTHS = ("short", "long")
TASKS_OF_PART = 1 << 20  # looked at together: a month's indices as int64 would take a gigabyte


class JobSums:
    """Sums over the tasks of each job, and of each stage."""

    def __init__(self, head: Workload) -> None:
        """Begin without tasks; *head* is the workload, of which only jobs and stages are read."""
        self.head = head
        jobs, stages = len(head.jobs), len(head.stages)
        self.job = head.stages["job"].to_numpy().astype(np.int64)  # of each stage
        self.first = np.full(jobs, np.inf)  # seconds, the first arrival of each job
        self.run_time, self.tasks = np.zeros(jobs), np.zeros(jobs, np.int64)
        self.done = np.zeros(stages)  # seconds after its job's first arrival, where its inputs are there from the start
        self.longest = np.full(stages, -np.inf)  # seconds, the longest run time of each stage

    def add(self, tasks: pl.DataFrame) -> None:
        """Add tasks, which arrive no earlier than those before."""
        columns = [tasks[name].to_numpy() for name in ("stage", "arrival", "run_time")]
        for begin in range(0, len(tasks), TASKS_OF_PART):
            self._add(*(column[begin:begin + TASKS_OF_PART] for column in columns))

    def _add(self, stage: np.ndarray, arrival: np.ndarray, run_time: np.ndarray) -> None:
        stage = stage.astype(np.int64)
        job = self.job[stage]
        np.minimum.at(self.first, job, arrival)
        np.add.at(self.run_time, job, run_time)
        np.add.at(self.tasks, job, 1)
        np.maximum.at(self.done, stage, arrival - self.first[job] + run_time)
        np.maximum.at(self.longest, stage, run_time)

    def lengths(self, window: Window | WindowFacts) -> pl.Series:
        """Return short or long for each job, as an Enum; what divides them is of the jobs that arrive in the window."""
        mean = self.run_time / np.maximum(self.tasks, 1)
        counts = (self.first >= window.begin) & (self.first <= window.end) & (self.tasks > 0)
        cutoff = np.quantile(mean[counts], 1.0 - LONG_SHARE, method="inverted_cdf") if counts.any() else np.inf
        return pl.Series("length", np.where(mean > cutoff, *LENGTHS[::-1]), dtype=pl.Enum(LENGTHS))

    def undisturbed(self) -> np.ndarray:
        """Return float64[job], seconds: how long each job takes where nothing waits; 0 for one without tasks.

        A task that arrives x after its job's first and takes c ends by max(x, r) + c where its inputs are there at r,
        and the latest of a stage's tasks by the later of max(x + c) and r + max(c).
        """
        edges = self.head.stages.with_row_index("child").select("child", pl.col("depends_on").alias("parent")).explode(
            "parent").drop_nulls()
        child, parent = (edges[name].to_numpy().astype(np.int64) for name in ("child", "parent"))
        depth, done, ready = _depths(child, parent, self.job.size), self.done.copy(), np.zeros(self.job.size)
        for level in range(int(depth.max(initial=0)) + 1):
            here = np.flatnonzero((depth == level) & (self.longest >= 0))
            done[here] = np.maximum(done[here], ready[here] + self.longest[here])
            below = depth[parent] == level
            np.maximum.at(ready, child[below], done[parent[below]])
        longest = np.zeros(self.first.size)
        np.maximum.at(longest, self.job, done)
        return longest


def sums_of(workload: Workload | StoredWorkload, given_up: Event | None = None) -> JobSums:
    """Return the sums over all tasks of a workload, or over some of them where that is *given_up*."""
    work = work_of(workload)
    sums = JobSums(work.head)
    for part in work.parts():
        if given_up is not None and given_up.is_set():
            break
        sums.add(part.tasks)
    return sums


def _depths(child: np.ndarray, parent: np.ndarray, stages: int) -> np.ndarray:
    """Return int64[stage]: how many stages are before each, on the longest way."""
    depth = np.zeros(stages, np.int64)
    while (behind := depth[child] <= depth[parent]).any():
        np.maximum.at(depth, child[behind], depth[parent[behind]] + 1)
    return depth
