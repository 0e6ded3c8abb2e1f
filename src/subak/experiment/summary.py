"""Sums up a run in the page of numbers that is summary.json."""
import platform
import resource as process

import msgspec
import numba
import numpy as np
import polars as pl

from subak.experiment.knowledge import knowledge
from subak.experiment.measuring import Measured
from subak.experiment.scenario import Scenario
from subak.fleet.table import Fleet
from subak.measures import of_run as measures
from subak.measures.plans import plan_facts
from subak.measures.runs import (
    FleetFacts,
    RedrawnFacts,
    Speed,
    Summary,
    WorkloadFacts,
)
from subak.measures.window import cut
from subak.placement.schedulers import Scheduler
from subak.simulator.outcome import Outcome
from subak.simulator.results import attempts_lost
from subak.simulator.settings import FOREVER
from subak.version import VERSION
from subak.workload.redraws import NONE, REDRAWN
from subak.workload.table import TIME_0, Workload


def summarise(
    outcome: Outcome, scenario: Scenario, inputs: tuple[Workload, Fleet], label: str, of: Measured
) -> Summary:
    """Return the run in a page of numbers; of the workload's tasks an outline is enough."""
    facts, within = of.facts._asdict(), cut(of.timeline, of.window)
    tasks = facts.pop("tasks")
    (workload, fleet), loop = inputs, outcome.loop_result
    names = [resource.name for resource in workload.resources]
    source = workload.provenance
    lost, run_time_lost = attempts_lost(outcome)
    return Summary(
        scheduler=outcome.scheduler.name,
        label=label,
        seed=outcome.seed,
        knows=knowledge(outcome.scheduler, outcome.federated.settings if outcome.federated else None,
                        scenario.estimates, workload),
        options=_options(outcome.scheduler, loop.interval, scenario, outcome.search_moves),
        gangs_apart=0 if outcome.scheduler.keeps_gangs else int(np.count_nonzero(workload.gang_sizes())),
        workload=WorkloadFacts(source.name, source.origin, source.licence, tasks, len(workload.jobs),
                               str(source.notes.get("remarks", {}).get(TIME_0, ""))),
        redrawn=RedrawnFacts(**source.notes[REDRAWN]) if REDRAWN in source.notes else None,
        fleet=FleetFacts(fleet.provenance.name, len(fleet.machines)),
        resources=workload.resources,
        window=of.window,
        **facts,
        utilisation=measures.utilisation(within, names),
        waiting=measures.waiting(within),
        stranded=measures.stranded(within, names),
        idle_while_waiting=measures.idle_while_waiting(within, names),
        attempts_lost=lost,
        run_time_lost=run_time_lost,
        federation=of.federation,
        fairness=of.fairness,
        plan=plan_facts(outcome.plans, outcome.plans_missed),
        energy=of.energy,
        speed=Speed(tasks / max(loop.seconds, 1e-9), loop.events, loop.seconds, peak_memory_bytes(),
                    msgspec.UNSET if outcome.decisions is None else outcome.decisions / max(loop.seconds, 1e-9)),
        versions={"subak": VERSION, "python": platform.python_version(), "numba": numba.__version__,
                  "numpy": np.__version__, "polars": pl.__version__},
    )


def _options(
    scheduler: Scheduler, interval: float, scenario: Scenario, search_moves: int | None
) -> dict[str, object]:
    options: dict[str, object] = {"order": scheduler.order, "interval_s": interval, "waits_at": scheduler.waits_at}
    if scenario.until != FOREVER:
        options["until_s"] = scenario.until
    if scenario.resample != NONE:
        options["resample"] = scenario.resample
    if scenario.load != 1.0:
        options["load"] = scenario.load
    if scenario.slow_start != 1.0:
        options["slow_start"] = scenario.slow_start
    if search_moves is not None:
        options["search_moves"] = search_moves
    return options


def peak_memory_bytes() -> float:
    """Return the largest resident size that this process has had."""
    return process.getrusage(process.RUSAGE_SELF).ru_maxrss * 1024.0
