"""Refuses what cannot be run in chunks."""
from subak.errors import InputError
from subak.federation.choices import BINS, PLACEMENTS
from subak.federation.settings import Federation
from subak.placement.schedulers import Scheduler
from subak.simulator.engine.setup import Terms
from subak.simulator.estimate_words import EXACT, USER, parse_estimates
from subak.simulator.federated.fault_plan import FaultPlan
from subak.workload.stored import StoredWorkload

OF_ALL_JOBS = ("johnson", "johnson-reversed")  # orders that sum up all jobs before the run
SUPPORTED = "an order or a fair order with a placement that looks for one machine, greedy, tetris, megha and central"
MEGHAS = ("megha", "central")  # architectures whose tables, but for those by task, are of what is open


def refuse_chunks(
    stored: StoredWorkload, scheduler: Scheduler, terms: Terms, federation: Federation, faults: FaultPlan | None
) -> None:
    """Raise InputError for a scheduler, a workload or settings that need all tasks at once."""
    _refuse_scheduler(scheduler)
    if scheduler.architecture and federation.placement == PLACEMENTS[BINS]:
        raise InputError(f"in chunks: placement must not be {PLACEMENTS[BINS]}, which is planned for all tasks")
    if faults is not None and faults.replay:
        raise InputError(f"in chunks: replay must be 0, not {faults.replay:g}; what is said again of a task that has "
                         "gone is about nobody")
    for name, usual in (("request_error", 0.0), ("usage_swing", 0.0), ("interference", 0.0), ("slow_start", 1.0)):
        value = getattr(terms, name)
        if value != usual:
            raise InputError(f"in chunks: {name} must be {usual:g}, not {value:g}; it is drawn or held "
                             "for all tasks together")
    if parse_estimates(terms.estimates or EXACT)[0] not in (EXACT, USER):
        raise InputError(f"in chunks: estimates must be {EXACT} or {USER}, not {terms.estimates}, which is told from "
                         "all tasks")
    if "inputs" in stored.columns:
        raise InputError("in chunks: tasks must not have inputs that lie somewhere; this workload has a column inputs")
    gang = stored.head.stages.get_column("gang", default=None)
    if gang is not None and (gang.fill_null(False).to_numpy() & (stored.of_stage > 1)).any():
        raise InputError("in chunks: tasks must start by themselves; this workload has gangs, which start when all "
                         "their tasks have been read")


def _refuse_scheduler(scheduler: Scheduler) -> None:
    kinds = {
        "a federation whose schedulers hold batches of tasks": scheduler.architecture not in {"", *MEGHAS},
        "what a log says": scheduler.recorded,
        "a plan for all jobs": bool(scheduler.planned), "delay scheduling": scheduler.delays,
        "backfill with reservations": bool(scheduler.reserves), "a policy from a file": not scheduler.built_in,
        "scores divided by their means over all tasks": str(scheduler.memory).endswith("normalised_memory"),
        "an order of all jobs": scheduler.order in OF_ALL_JOBS,
    }
    kind = next((words for words, holds in kinds.items() if holds), None)
    if kind is not None:
        raise InputError(f"in chunks: {scheduler.name} is {kind}; run in chunks are {SUPPORTED}")
