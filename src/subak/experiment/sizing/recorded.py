"""Measures the waits of the log that a workload was made of, to stand beside those of sizes."""
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from subak.errors import InputError
from subak.experiment.inputs import scenario_window
from subak.experiment.scenario import Scenario
from subak.experiment.sizing.answer import Recorded
from subak.experiment.sizing.counts import slurm_jobs_of
from subak.fleet.table import Fleet
from subak.measures.measured import shares_within, values_of
from subak.measures.objective import Objective
from subak.measures.objectives import refuse_unconcerned
from subak.measures.tasks.job_sums import sums_of
from subak.measures.window import arrived, waits_at_begin, window_of
from subak.policy import find_scheduler
from subak.simulator.results import task_table, timeline_table
from subak.simulator.simulate import simulate
from subak.workload.demand import most_recorded
from subak.workload.stored import HeldWorkload
from subak.workload.table import Workload


def recorded(scenario: Scenario, inputs: tuple[Workload, Fleet], objectives: Sequence[Objective]) -> Recorded | None:
    """Return what each objective came to in the log; None where it knows no starts, or is of another load.

    The machines are any: the log does not say on which a task ran.
    """
    workload, fleet = inputs
    if scenario.load != 1.0 or "recorded_start" not in workload.tasks.columns:
        return None
    window = scenario_window(scenario, workload)
    known = replace(workload, tasks=workload.tasks.filter(pl.col("recorded_start").is_not_null()))
    try:
        refuse_unconcerned(objectives, HeldWorkload(known), window, lambda: sums_of(known))
        window_of(known, window.begin, window.end)
    except InputError:  # the log knows no start of a task that an objective is of
        return None
    outcome = simulate(known, fleet, find_scheduler("recorded"))
    tasks = task_table(outcome, known, fleet)
    measured = (tasks, timeline_table(outcome, known), known, window, list(objectives))
    asked = scenario.measure_from is not None or scenario.measure_until is not None
    held = most_recorded(known, window.begin, window.end) if asked else most_recorded(known)
    most = tuple(each.unit * amount for each, amount in zip(known.resources, held, strict=True))
    before = known.tasks.filter(tasks.select(waits_at_begin(window).alias("waits"))["waits"])
    return Recorded(tuple(values_of(*measured)), len(arrived(tasks, window)), most,
                    tuple(each.of for each in known.resources), slurm_jobs_of(known, before),
                    tuple(shares_within(*measured)))
