"""Counts what arrives in the measured window: jobs, tasks and what Slurm calls a job."""
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.measures.window import Window, arrived
from subak.workload.table import Workload


class Arrivals(NamedTuple):
    """What arrives in a window."""

    jobs: int
    tasks: int
    slurm_jobs: int  # tasks, those that start together as one


def arrivals(workload: Workload, window: Window) -> Arrivals:
    """Return how much arrives in the window."""
    tasks = arrived(workload.tasks, window)
    jobs = workload.stages["job"].gather(tasks["stage"].unique()).n_unique()
    return Arrivals(jobs, len(tasks), slurm_jobs_of(workload, tasks))


def slurm_jobs_of(workload: Workload, tasks: pl.DataFrame) -> int:
    """Return how many Slurm jobs these *tasks* of a workload belong to."""
    stages = tasks["stage"].to_numpy()
    together = workload.gang_sizes()[stages] > 0
    return int(np.count_nonzero(~together) + np.unique(stages[together]).size)


def may_share(workload: Workload, window: Window, capacity: np.ndarray) -> bool:
    """Whether a machine holds several nodes of a job that arrives in the window; *capacity*: int[resource, machine]."""
    stages = arrived(workload.tasks, window)["stage"].unique().to_numpy()
    stages = stages[workload.gang_sizes()[stages] > 0]
    largest = capacity.max(axis=1)
    return any(all(2 * amounts[stage] <= most for amounts, most in zip(workload.requests, largest, strict=True))
               for stage in stages)
