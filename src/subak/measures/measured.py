"""Measures a finished run for objectives, without writing its folder."""
import math

import polars as pl

from subak.measures.objective import OF_JOBS, Objective
from subak.measures.objectives import judged, share_within
from subak.measures.runs import EnergyFacts
from subak.measures.tasks.jobs import described, job_table
from subak.measures.window import Window, measured_jobs, window_facts
from subak.workload.table import Workload


def values_of(
    tasks: pl.DataFrame, timeline: pl.DataFrame, workload: Workload, window: Window, objectives: list[Objective],
    energy: EnergyFacts | None = None,
) -> list[float]:
    """Return the value of each objective's measure, inf where it is endless; of a run's tables and its workload.

    Raises InputError where one concerns no task.
    """
    counted, jobs = _counted(tasks, timeline, workload, window, objectives)
    found = (judged(each, counted, jobs, workload, energy).value for each in objectives)
    return [math.inf if value is None else value for value in found]


def shares_within(
    tasks: pl.DataFrame, timeline: pl.DataFrame, workload: Workload, window: Window, objectives: list[Objective],
) -> list[float | None]:
    """Return the share of the tasks or jobs of each objective that keep its bound themselves; None of means."""
    counted, jobs = _counted(tasks, timeline, workload, window, objectives)
    return [share_within(each, counted, jobs, workload) for each in objectives]


def _counted(
    tasks: pl.DataFrame, timeline: pl.DataFrame, workload: Workload, window: Window, objectives: list[Objective],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the tasks that count, described, and the jobs, where an objective is of jobs."""
    facts = window_facts(tasks, timeline, window)
    of_jobs = any(objective.measure in OF_JOBS for objective in objectives)
    jobs = measured_jobs(job_table(tasks, workload), facts) if of_jobs else pl.DataFrame()
    return described(tasks, workload, facts), jobs
