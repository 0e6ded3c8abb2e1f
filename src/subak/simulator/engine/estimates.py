"""The run-time estimates that a scheduler may use.

- "exact": the run times themselves.
- "user": those of the workload's column `estimate`; who gave none is told by the run time.
- "factor=F": the run time times a factor that is uniform from 1 to F, by the run's seed and the task's number: users
  ask for more than they use, lest they be ended (the f-model of the literature on backfilling, such as Mu'alem and
  Feitelson 2001, with f = F - 1; users' own estimates are rounder, say Tsafrir and Feitelson 2006).
- "class": the mean run time of the tasks that ask for the same amounts under the same constraints; where fewer than two
  of them end, so that their mean would be a run time itself, that of all tasks.
- "none": the mean of all tasks, for each of them. So whoever goes by run times still runs, and learns nothing that
  tells two tasks apart.
- "" (the default): "user" where the workload has estimates, else "exact".

Means are over the tasks that end. The run times themselves stay what they are: attempts end by them.
"""
from dataclasses import replace

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.shapes import find_shapes
from subak.simulator.estimate_words import CLASS, EXACT, FACTOR, USER, parse_estimates
from subak.workload.google_like.streams import Purpose, uniforms
from subak.workload.table import Workload


def used_estimates(text: str, workload: Workload) -> str:
    """Return the word in use: what an empty *text* stands for with this workload, else *text*.

    Raises InputError where users' estimates are asked for, and the workload has none.
    """
    has_own = "estimate" in workload.tasks.columns and workload.tasks["estimate"].null_count() < len(workload.tasks)
    if text == USER and not has_own:
        raise InputError("estimates: the workload has none of its users' (column estimate of its tasks); SWF logs with "
                         "requested times and .tr files have them")
    return text or (USER if has_own else EXACT)


def with_estimates(workload: Workload, text: str, seed: int) -> Workload:
    """Return the workload with the estimates that a scheduler is told; see above. Raises InputError as those do."""
    kind, factor = parse_estimates(used_estimates(text, workload))
    if kind == USER:
        return workload
    if kind == EXACT:
        return replace(workload, tasks=workload.tasks.drop("estimate", strict=False))
    run_time = workload.tasks["run_time"].to_numpy()
    if kind == FACTOR:
        drawn = uniforms(seed, Purpose.ESTIMATE, 0, run_time.size)
        estimate = run_time * (1.0 + (factor - 1.0) * drawn)
    else:
        estimate = _means(run_time, _classes(workload) if kind == CLASS else np.zeros(run_time.size, np.int64))
    return replace(workload, tasks=workload.tasks.with_columns(pl.Series("estimate", estimate)))


def _classes(workload: Workload) -> np.ndarray:
    return find_shapes(workload).of_stage[workload.tasks["stage"].to_numpy()]


def _means(run_time: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return float64[task], the mean of each task's *group* over those that end; of fewer than two, that of all."""
    ends = np.isfinite(run_time)
    overall = run_time[ends].mean() if ends.any() else np.inf
    count = np.bincount(group[ends], minlength=group.max(initial=0) + 1)
    total = np.bincount(group[ends], weights=run_time[ends], minlength=count.size)
    return np.where(count > 1, total / np.maximum(count, 1), overall)[group]
