"""Decides whether a run meets its objectives."""
import math
from collections.abc import Callable, Iterable

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.measures.objective import OF_JOBS, OF_MACHINES, SLURM_WAIT, Objective, level_of
from subak.measures.of_run import slowdowns
from subak.measures.runs import EnergyFacts, ObjectiveFacts
from subak.measures.tasks.job_sums import JobSums
from subak.measures.tasks.slurm_jobs import slurm_waits
from subak.measures.window import Window
from subak.workload.stored import HeldWorkload, StoredWorkload
from subak.workload.table import Workload


def judged(
    objective: Objective, tasks: pl.DataFrame, jobs: pl.DataFrame, workload: Workload, energy: EnergyFacts | None,
) -> ObjectiveFacts:
    """Return whether a run keeps an objective. *tasks* are described, *jobs* the job table, both of the window.

    Raises InputError where no task is concerned.
    """
    if objective.measure in OF_MACHINES:
        return _of_machines(objective, energy, len(tasks))
    concerned = tasks.filter(_condition(objective, tasks, workload))
    if concerned.is_empty():
        raise _unconcerned(objective)
    values = _values(objective.measure, concerned, jobs, workload)
    value = _statistic(values, level_of(objective.statistic, objective.text))
    return ObjectiveFacts(objective.text, None if math.isinf(value) else value, objective.holds(value), len(concerned))


def share_within(
    objective: Objective, tasks: pl.DataFrame, jobs: pl.DataFrame, workload: Workload,
) -> float | None:
    """Return the share of what an objective is of that keeps its bound by itself; None of means, and of machines.

    Raises InputError where no task is concerned.
    """
    if objective.measure in OF_MACHINES or level_of(objective.statistic, objective.text) is None:
        return None
    concerned = tasks.filter(_condition(objective, tasks, workload))
    if concerned.is_empty():
        raise _unconcerned(objective)
    return float(np.mean([objective.holds(value) for value in _values(objective.measure, concerned, jobs, workload)]))


def refuse_unconcerned(
    objectives: Iterable[Objective], work: HeldWorkload | StoredWorkload, window: Window,
    sums: Callable[[], JobSums],
) -> JobSums | None:
    """Raise InputError for an objective of tasks of which none arrives in the window, before a run finds that out.

    *sums* adds up jobs over all tasks, which takes a while. Returns these sums, or None if no objective needs them.
    """
    keyed = [each for each in objectives if each.keys]
    if not keyed:
        return None
    concerned = work.head.stages[work.stages_between(window.begin, window.end)]
    job = concerned["job"]
    found = sums()
    columns = [work.head.jobs["queue"].gather(job), found.lengths(window).gather(job)]
    stages = concerned.rename({"scheduling_class": "class"}, strict=False).with_columns(columns)
    for each in keyed:
        if stages.filter(_condition(each, stages, work.head)).is_empty():
            raise _unconcerned(each)
    return found


def _unconcerned(objective: Objective) -> InputError:
    return InputError(f"objective {objective.text!r}: no task that is measured is of these")


def _of_machines(objective: Objective, energy: EnergyFacts | None, tasks: int) -> ObjectiveFacts:
    """Return whether the machines keep an objective; of each task it is endless where none finished."""
    amounts = getattr(energy, objective.statistic)
    value = getattr(amounts, OF_MACHINES[objective.measure])
    return ObjectiveFacts(objective.text, value, objective.holds(math.inf if value is None else value), tasks)


def _condition(objective: Objective, tasks: pl.DataFrame, workload: Workload) -> pl.Expr:
    condition = pl.lit(True)
    for key, value in objective.keys:
        if key == "class" and "class" not in tasks.columns:
            raise InputError(f"objective {objective.text!r}: the workload has no scheduling classes")
        if key == "queue":
            queue = pl.col("queue").cast(pl.String)
            condition &= (queue == value) | queue.str.starts_with(f"{value}/")
        elif key == "user":
            of_user = workload.jobs.select((pl.col("user") == value).arg_true())["user"]
            condition &= pl.col("job").is_in(of_user.cast(tasks["job"].dtype).implode())
        else:
            condition &= pl.col(key).cast(pl.String) == value
    return condition


def _values(measure: str, tasks: pl.DataFrame, jobs: pl.DataFrame, workload: Workload) -> np.ndarray:
    """Return float64[task, Slurm job or job]; endless where it has not come to be."""
    if measure in OF_JOBS:
        column = measure.removeprefix("job_")
        values = jobs.filter(pl.col("job").is_in(tasks["job"].unique().implode()))[column]
    elif measure == SLURM_WAIT:
        values = slurm_waits(tasks, workload.gang_sizes() > 0, "wait_time")
    elif measure == "wait":
        values = tasks["wait_time"]
    elif measure == "turnaround":
        values = tasks["turnaround"] if "turnaround" in tasks.columns else tasks["finish"] - tasks["ready"]
    else:
        values = tasks.select(slowdowns(tasks).alias("slowdown"))["slowdown"]
    return np.sort(values.fill_null(math.inf).to_numpy())


def _statistic(values: np.ndarray, level: float | None) -> float:
    """Return the mean, or the least value that at least this share of the values does not exceed."""
    if values.size == 0:
        return math.inf
    return float(values.mean() if level is None else values[max(math.ceil(level * values.size) - 1, 0)])
