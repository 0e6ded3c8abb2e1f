"""The facts of tasks and jobs that summary.json holds."""
from typing import NamedTuple

import polars as pl

from subak.measures import of_run as measures
from subak.measures.objective import Objective
from subak.measures.objectives import judged
from subak.measures.runs import (
    EnergyFacts,
    FailureFacts,
    JobFacts,
    ObjectiveFacts,
    Reason,
    Spread,
    WaitedFacts,
    WindowFacts,
)
from subak.measures.tasks.jobs import job_facts
from subak.measures.tasks.tally import Tally
from subak.measures.window import measured_jobs
from subak.workload.table import Workload


class TaskFacts(NamedTuple):
    """Fields of `Summary` by their names there, and how many tasks there are."""

    tasks: int
    status: dict[str, int]
    reasons: tuple[Reason, ...]
    recorded: dict[str, int]
    wait_time: Spread
    slurm_wait: Spread | None
    slowdown: Spread
    execution_delay: Spread | None
    locality: dict[str, float]
    lengths: dict[str, Spread]
    jobs: JobFacts
    waited: WaitedFacts
    objectives: tuple[ObjectiveFacts, ...]
    makespan: float | None
    failures: FailureFacts | None
    percentiles_within: float | None


def facts_of(
    tally: Tally, jobs: pl.DataFrame, head: Workload, window: WindowFacts, objectives: list[Objective],
    energy: EnergyFacts | None = None,
) -> TaskFacts:
    """Return the facts of a run: what was gathered of its tasks, and its job table."""
    of_window, spreads = measured_jobs(jobs, window), tally.spreads
    return TaskFacts(
        tasks=tally.tasks, status=tally.status, reasons=tally.ranked_reasons(), recorded=tally.recorded,
        wait_time=spreads.wait_time(), slurm_wait=spreads.slurm_wait(), slowdown=spreads.slowdown(),
        execution_delay=spreads.execution_delay(),
        locality=measures.locality(tally.places), lengths=spreads.lengths(),
        jobs=job_facts(jobs, window), waited=tally.waited,
        objectives=tuple(judged(each, spreads.concerned(each), of_window, head, energy) for each in objectives),
        makespan=tally.makespan(), failures=tally.failures, percentiles_within=spreads.accuracy,
    )
