"""The table of batches: tasks of one stage that arrive together and go to one scheduler.

What everybody knows of a batch is on paper before the run: whose it is, its tasks, and what it is estimated to take.
"""
from typing import NamedTuple

import numpy as np

from subak.workload.tasks import Tasks

ESTIMATE_MAX_S = 1e12  # of a service that nobody stops


class Batches(NamedTuple):
    """Which tasks belong together; a batch's tasks are alike."""

    of_task: np.ndarray  # int32[task]
    first: np.ndarray  # int64[batch + 1], where its tasks begin in `task`
    task: np.ndarray  # int32[place], in the order of their numbers
    shape: np.ndarray  # int32[batch]
    scheduler: np.ndarray  # int32[batch], a job's batches share one
    estimate: np.ndarray  # float64[batch], seconds, mean of its tasks
    is_long: np.ndarray  # bool[batch], whether its job is


def build_batches(tasks: Tasks, stage: np.ndarray, job_of_stage: np.ndarray, schedulers: int, cutoff: float,
                  singly: bool) -> Batches:
    """Return the batches of *stage* (int64[task]), *job_of_stage* (int64[stage]); *singly*: one for each task.

    Jobs go round the schedulers in the order of their first arrivals. A job whose mean estimate is *cutoff* seconds or
    more is long (Hawk section 3.3).
    """
    count = tasks.arrival.size
    keys = np.arange(count) if singly else _keys(tasks.arrival, stage)
    _, first_task, of_task = np.unique(keys, return_index=True, return_inverse=True)
    by_arrival = np.argsort(first_task, kind="stable")
    place = np.empty_like(by_arrival)
    place[by_arrival] = np.arange(by_arrival.size)
    of_task = place[of_task]
    sizes = np.bincount(of_task)
    job = job_of_stage[stage]
    expected = np.minimum(tasks.estimate, ESTIMATE_MAX_S)
    long_job = _means(expected, job, job_of_stage.max() + 1) >= cutoff
    turn = np.empty(job_of_stage.max() + 1, np.int64)
    _, first_of_job = np.unique(job, return_index=True)
    jobs = job[np.sort(first_of_job)]
    turn[jobs] = np.arange(jobs.size)
    job_of_batch = job[first_task[by_arrival]]
    return Batches(
        of_task=of_task.astype(np.int32),
        first=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        task=np.argsort(of_task, kind="stable").astype(np.int32),
        shape=tasks.shape[first_task[by_arrival]],
        scheduler=(turn[job_of_batch] % schedulers).astype(np.int32),
        estimate=_means(expected, of_task, sizes.size),
        is_long=long_job[job_of_batch],
    )


def _keys(arrival: np.ndarray, stage: np.ndarray) -> np.ndarray:
    """Return a number for each task, equal for those of one stage that arrive at one instant."""
    _, instant = np.unique(arrival, return_inverse=True)
    return instant.astype(np.int64) * (int(stage.max()) + 1) + stage


def _means(values: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    counts = np.maximum(np.bincount(group, minlength=groups), 1)
    return np.bincount(group, weights=values, minlength=groups) / counts
