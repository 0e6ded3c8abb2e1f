"""Draws the failures of each task from a plan, once, independent of the scheduler.

Each task has numbers of its own, whatever its rule says: with a larger probability those that failed before fail again,
and some more do.
"""
import re
from fnmatch import translate
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.federation.megha.jobs import TERMS
from subak.simulator.failures.plan import ANY, EVENLY, NAMES, FailurePlan, PlanError, Rule
from subak.simulator.failures.planned import ALWAYS, KILLED, NEVER, Planned
from subak.workload.table import Workload

RECORDED_FAILED, RECORDED_KILLED = "FAIL", "KILL"  # outcomes of a trace


class Drawn(NamedTuple):
    """Numbers from 0 to below 1 that decide about each task: float64[task]."""

    bad: np.ndarray  # how many of its attempts do not finish
    kind: np.ndarray  # whether these fail or run on
    after: np.ndarray  # when they fail
    cancels: np.ndarray
    cancel_after: np.ndarray


def draw_failures(plan: FailurePlan, workload: Workload, seed: int) -> tuple[Planned, np.ndarray]:
    """Return what befalls the tasks of a workload, and TERMS[task], on which they are run; *seed* is the run's.

    How many first attempts of a task do not finish is geometric, so that each attempt does not with the rule's
    probability; all of them fail, or all run on. A task without an end does not fail by itself. Raises PlanError
    where the plan does not go with the workload.
    """
    refuse_plan(plan, workload)
    rules = [*plan.task, Rule()]  # the last holds where none does
    rule = rules_of_stages(plan, workload)[workload.tasks["stage"].to_numpy()]
    terms = np.array([tuple(getattr(each, name) for name in TERMS.names or ()) for each in rules], TERMS)[rule]
    planned = _drawn(rules, rule, workload, np.random.default_rng([plan.seed, seed]))
    if plan.recorded:
        _follow_recorded(planned, workload)
    return planned, terms


def refuse_plan(plan: FailurePlan, workload: Workload) -> None:
    """Raise PlanError where a plan does not go with a workload."""
    rules_of_stages(plan, workload)
    if plan.recorded and "outcome" not in workload.tasks.columns:
        raise PlanError(f"recorded: the tasks of workload {workload.provenance.name} have no column outcome, which "
                        "says how they ended in the trace")


def _drawn(rules: list[Rule], rule: np.ndarray, workload: Workload, random: np.random.Generator) -> Planned:
    """Return what is planned by *rule* (int64[task], places in *rules*)."""
    def of_rule(name: str) -> np.ndarray:
        return np.array([float(getattr(each, name) or 0.0) for each in rules])[rule]

    run_time, arrival = (workload.tasks[name].to_numpy() for name in ("run_time", "arrival"))
    drawn = Drawn(*random.random((len(Drawn._fields), rule.size)))
    overrun = of_rule("overrun")
    chance = of_rule("fail") + overrun
    runs_on = drawn.kind * chance < overrun
    share = np.array([np.nan if each.fail_after == EVENLY else each.fail_after for each in rules])[rule]
    after = np.where(np.isnan(share), drawn.after, share) * run_time
    fails = np.where(np.isinf(run_time), 0, first_attempts(drawn.bad, chance))
    wait = -np.log1p(-drawn.cancel_after) * of_rule("cancel_after")
    return Planned(
        fails.astype(np.int16), np.where(runs_on, NEVER, after), of_rule("exit_code").astype(np.int16),
        np.where(drawn.cancels < of_rule("cancel"), arrival + wait, NEVER),
    )


def first_attempts(drawn: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Return int64[task]: how many first attempts do not finish, each with a *chance*; at most ALWAYS."""
    with np.errstate(divide="ignore", invalid="ignore"):
        count = np.where(chance < 1, np.log1p(-drawn) / np.log(chance), ALWAYS)
    return np.where(chance > 0, np.minimum(count, ALWAYS), 0).astype(np.int64)


def _follow_recorded(planned: Planned, workload: Workload) -> None:
    """Let tasks that the trace recorded as failed or killed end so, when they have run as long as there."""
    run_time = workload.tasks["run_time"].to_numpy()
    ended = np.isfinite(run_time)
    failed, killed = ((workload.tasks["outcome"] == outcome).fill_null(False).to_numpy() & ended
                      for outcome in (RECORDED_FAILED, RECORDED_KILLED))
    planned.fails[failed | killed] = ALWAYS
    planned.after[failed | killed] = run_time[failed | killed]
    planned.code[killed] = KILLED


# -- whom rules are for ------------------------------------------------------------------------------------------------


def rules_of_stages(plan: FailurePlan, workload: Workload) -> np.ndarray:
    """Return int64[stage]: the last rule that fits each stage of the workload, -1 where none does.

    Raises PlanError for a name that nothing has, and for gangs that were to be tried again.
    """
    columns = _names_of_stages(workload)
    gang = workload.gang_sizes() > 0
    rule = np.full(len(workload.stages), -1)
    for number, each in enumerate(plan.task):
        fits = np.ones(rule.size, bool) if each.gang is None else gang == each.gang
        for name in NAMES:
            fits &= _fits(columns[name], getattr(each, name), name)
        rule[fits] = number
    _refuse_retried_gangs(plan, workload, rule, gang)
    return rule


def _names_of_stages(workload: Workload) -> dict[str, pl.Series]:
    """Return for each of NAMES what it is of every stage."""
    jobs = workload.jobs.select("queue", "user", "job")
    return {**jobs[workload.stages["job"]].to_dict(), "stage": workload.stages["name"]}


def _fits(values: pl.Series, wanted: str, name: str) -> np.ndarray:
    """Return bool[stage]: whose name is the one that is *wanted*, or that of a queue below it."""
    if wanted == ANY:
        return np.ones(len(values), bool)
    patterns = [wanted, f"{wanted}/*"] if name == "queue" else [wanted]
    meant = re.compile("|".join(map(translate, patterns)))
    known = values.unique(maintain_order=True).drop_nulls().to_list()
    found = [each for each in known if meant.match(each)]
    if not found:
        raise PlanError(f"task.{name}: the workload has no {name} {wanted!r}; it has {', '.join(known[:3])}"
                        f"{' ...' if len(known) > 3 else ''}")
    return np.asarray(values.is_in(found).fill_null(False).to_numpy())


def _refuse_retried_gangs(plan: FailurePlan, workload: Workload, rule: np.ndarray, gang: np.ndarray) -> None:
    """Raise PlanError where a gang, which starts and fails as a whole, was to be tried again."""
    retries = np.array([*(each.retries for each in plan.task), 0])[rule]
    bad = np.flatnonzero(gang & (retries > 0))
    if bad.size:
        stage = int(bad[0])
        job = workload.jobs["job"][workload.stages["job"][stage]]
        raise PlanError(f"task.retries: must be 0 for gangs, which start and fail as a whole, not {retries[stage]}; "
                        f"stage {workload.stages['name'][stage]} of job {job} is one (a rule with gang = true behind "
                        "the others is for them alone)")
