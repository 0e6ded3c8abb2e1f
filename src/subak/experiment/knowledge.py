"""Describes the run-time estimates that a scheduler used, and how accurate they were.

Only schedulers that know the same can be compared as equals: who knows more has less to find out.
"""
import math

from subak.federation.settings import Federation
from subak.placement.schedulers import BY_USERS, CLASS_MEANS, JOB_MEANS, NOTHING, RUN_TIMES, UNKNOWN, Scheduler
from subak.simulator.engine.estimates import used_estimates
from subak.simulator.estimate_words import CLASS, FACTOR, NONE, USER, parse_estimates
from subak.workload.table import Workload

BY_CUTOFF = ("hawk", "pigeon")  # architectures that go by run times only to tell long jobs from short ones


def knowledge(scheduler: Scheduler, settings: Federation | None, estimates: str, workload: Workload) -> str:
    """Return what *scheduler* knew of run times, such as "run times, within a factor of 2".

    *settings* are those of a federation, *estimates* the scenario's word. Raises InputError as `used_estimates` does.
    """
    known = scheduler.knows if settings is None else _of_federation(scheduler, settings)
    kind, factor = parse_estimates(used_estimates(estimates, workload))
    if known in (NOTHING, UNKNOWN) or kind == NONE:
        return UNKNOWN if known == UNKNOWN else NOTHING
    if kind == CLASS and known in (RUN_TIMES, JOB_MEANS):
        return CLASS_MEANS
    how = {USER: BY_USERS, FACTOR: f", within a factor of {factor:g}"}
    return known + how.get(kind, "")


def _of_federation(scheduler: Scheduler, settings: Federation) -> str:
    if settings.placement == "bins":  # LoTES's, of the plan's classes
        return CLASS_MEANS
    if scheduler.architecture in BY_CUTOFF and math.isinf(settings.cutoff):
        return NOTHING
    if scheduler.architecture == "dodoor" and settings.duration_weight == 0:
        return NOTHING
    return scheduler.knows
