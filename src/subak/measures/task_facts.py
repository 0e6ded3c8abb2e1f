"""What summary.json says of the tasks and jobs of a run, whether they are in memory or were gathered in chunks."""
from typing import NamedTuple

import polars as pl

from subak.measures import of_run as measures
from subak.measures.chunks.tally import Exact, Tally
from subak.measures.jobs import job_facts, wait_by_length, waited_facts
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
from subak.measures.window import measured, measured_jobs
from subak.workload.table import Workload

COLUMNS = {"wait": "wait_time", "turnaround": "turnaround", "slowdown": "slowdown"}  # what objectives read


class TaskFacts(NamedTuple):
    """Fields of `Summary` by their names there, and how many tasks there are."""

    tasks: int
    status: dict[str, int]
    reasons: tuple[Reason, ...]
    recorded: dict[str, int]
    wait_time: Spread
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


def facts_of_tables(
    tasks: pl.DataFrame, counted: pl.DataFrame, jobs: pl.DataFrame, workload: Workload, window: WindowFacts,
    objectives: list[Objective], energy: EnergyFacts | None,
) -> TaskFacts:
    """Return the facts of a run in memory: its task table, the described tasks that count, and its job table."""
    of_window, inside = measured_jobs(jobs, window), measured(tasks, window)
    return TaskFacts(
        tasks=len(tasks), status=measures.status_counts(tasks), reasons=measures.reasons(tasks),
        recorded=measures.recorded_counts(tasks, workload), wait_time=measures.wait_spread(counted, window.end),
        slowdown=measures.slowdown_spread(counted), execution_delay=measures.delay_spread(inside),
        locality=measures.locality(inside), lengths=wait_by_length(counted),
        jobs=job_facts(jobs, window), waited=waited_facts(counted, window),
        objectives=tuple(judged(each, counted, of_window, workload, energy) for each in objectives),
        makespan=measures.makespan(tasks), failures=measures.outcome_counts(tasks), percentiles_within=None,
    )


def facts_of_tally(
    tally: Tally, jobs: pl.DataFrame, head: Workload, window: WindowFacts, objectives: list[Objective]
) -> TaskFacts:
    """Return the facts of a run in chunks of a workload; *objectives* have no keys, and do not concern machines."""
    of_window, spreads = measured_jobs(jobs, window), tally.spreads
    of_tasks = [each.measure for each in objectives if each.measure in COLUMNS]
    kept = spreads.tasks("job", *dict.fromkeys(COLUMNS[name] for name in of_tasks)) if isinstance(
        spreads, Exact) else pl.DataFrame(schema={"job": pl.UInt32})
    return TaskFacts(
        tasks=tally.tasks, status=tally.status, reasons=tally.ranked_reasons(), recorded=tally.recorded,
        wait_time=spreads.wait_time(), slowdown=spreads.slowdown(), execution_delay=None, locality={},
        lengths=spreads.lengths(),
        jobs=job_facts(jobs, window), waited=tally.waited,
        objectives=tuple(judged(each, kept, of_window, head, None) for each in objectives),
        makespan=tally.makespan(), failures=None, percentiles_within=spreads.accuracy,
    )
