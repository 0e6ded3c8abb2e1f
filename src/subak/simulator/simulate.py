"""Simulates one scheduler on one workload and fleet with one seed."""
from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from subak.errors import InputError, PolicyError, first_line
from subak.federation.settings import Federation
from subak.fleet.speeds import refuse_speeds
from subak.fleet.table import Fleet
from subak.placement.claims import (
    DOES_NOT_FIT,
    KEPT,
    NO_SUCH_MACHINE,
    RULES,
    VIOLATED_RULE,
    VIOLATING_MACHINE,
    VIOLATING_TASK,
)
from subak.placement.schedulers import Scheduler
from subak.queues.tree import refuse_changes
from subak.resources import amount_number, amount_words
from subak.simulator.central.engines import CentralLoop, central_loop
from subak.simulator.central.integrity import Integrity
from subak.simulator.engine.estimates import with_estimates
from subak.simulator.engine.run_loop import BUDGET_FIRST, BUDGET_SLOW, Course, Held, Progress
from subak.simulator.engine.setup import Prepared, Terms
from subak.simulator.engine.state import LOOP_DONE, Simulation
from subak.simulator.failures.plan import FailurePlan
from subak.simulator.federated.architectures import ARCHITECTURES
from subak.simulator.federated.fault_plan import FaultPlan
from subak.simulator.federated.simulate import simulate_federated
from subak.simulator.outcome import Outcome
from subak.simulator.recorded import replay
from subak.simulator.settings import refuse_told
from subak.workload.table import Workload

INTERVALS_WANTED = 400  # of the default timeline, over the span of the arrivals
INTERVAL_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


def simulate(  # noqa: PLR0913, PLR0917  (nearly every one is a word of the scenario)
    workload: Workload,
    fleet: Fleet,
    scheduler: Scheduler,
    seed: int = 1,
    interval: float | None = None,
    until: float = math.inf,
    on_progress: Callable[[Progress], None] | None = None,
    check: Callable[..., None] | None = None,
    federation: Federation | None = None,
    faults: FaultPlan | None = None,
    failures: FailurePlan | None = None,
    **more: Any,
) -> Outcome:
    """Simulate one scheduler on one workload and fleet.

    *interval* is the timeline's (seconds; by default about 400 over the arrivals), *until* the last instant to
    simulate, *check* is called after every step with the state (tests), *federation* holds the settings of a scheduler
    that is one, *faults* what goes wrong in it, *failures* which tasks do not finish. *more* are further fields of
    `Terms` (engine/setup.py), such as `queues`, `slow_start`, `search_moves`. Raises
    InputError for workloads and fleets that do not match, and for faults, failures, wrong requests and interference
    that the scheduler does not support, PolicyError when the policy breaks a rule.
    """
    width = interval if interval is not None else default_interval(workload)
    terms = Terms(ranking=scheduler.order, seed=seed, interval=width, until=until, **more)
    refuse_told(terms, scheduler)
    workload = with_estimates(workload, terms.estimates, seed)
    if scheduler.architecture:
        refuse_speeds(workload, fleet, scheduler.name)
        architecture = ARCHITECTURES[scheduler.architecture]
        settings = architecture.settled(federation or Federation())
        fixed = interval is not None
        return Outcome(scheduler=scheduler, seed=seed, **simulate_federated(
            workload, fleet, architecture, settings, seed, width, fixed, until, on_progress, check, faults,
            terms.queues, failures, terms.hold_back_after))
    for what, plan in (("faults", faults), ("failures", failures)):
        if plan is not None:
            raise InputError(f"{what}: {scheduler.name} is no federation; only megha and central support them")
    if terms.queues is not None:
        refuse_changes(terms.queues, scheduler.name)
    if scheduler.recorded:
        prepared, loop_result = replay(workload, fleet, terms, interval is not None)
        return Outcome(prepared, scheduler, seed, loop_result)
    loop = central_loop(workload, fleet, scheduler, terms)
    simulation, waiting = loop.prepared.simulation, loop.waiting
    step = loop.step if scheduler.built_in else _guarded(loop.step, simulation, scheduler.name)
    held = Held(simulation, step, lambda: _broken(loop, scheduler, workload, fleet))
    course = Course(held, interval is not None, BUDGET_FIRST if scheduler.compiled else BUDGET_SLOW)
    with loop.talk or nullcontext():
        loop_result = course.drive(on_progress, None if check is None else lambda: check(simulation, waiting))
    return Outcome(loop.prepared, scheduler, seed, loop_result, plans=tuple(loop.plans),
                   plans_missed=tuple(loop.plans_missed), search_moves=loop.search_moves,
                   looked_at=loop.looked_at(), decisions=None if loop.policy is None else loop.policy.decisions)


def default_interval(workload: Workload) -> float:
    """Return a round number of seconds that cuts the span of the arrivals into about 400 intervals."""
    span = float(workload.tasks["arrival"].max() or 0.0)  # type: ignore[arg-type]
    wanted = span / INTERVALS_WANTED
    return float(next((step for step in INTERVAL_STEPS if step >= wanted), math.ceil(wanted / 86400) * 86400))


def _guarded(step: Callable[[int], int], sim: Simulation, name: str) -> Callable[[int], int]:
    """Return *step* for a user's policy: what it raises is worded, and what is not its own must be as it was."""
    integrity = Integrity(sim)

    def guarded(budget: int) -> int:
        try:
            why = step(budget)
        except PolicyError:  # of a policy in plain Python, worded already
            raise
        except (Exception, SystemExit) as error:  # whatever a user's policy may raise is the policy's fault
            raise PolicyError(f"scheduler {name} raised {type(error).__name__}: {first_line(error)}") from None
        changed = integrity.broken(last=why == LOOP_DONE)
        if changed:
            raise PolicyError(f"scheduler {name} changed {changed}; a policy may only read it, and start tasks with "
                              "claim() (if it does not mean to, --check-policy finds where it leaves its own arrays)")
        return why

    return guarded


def _broken(loop: CentralLoop, scheduler: Scheduler, workload: Workload, fleet: Fleet) -> PolicyError:
    """Word the rule that a policy broke, with the task, the machine and the amounts."""
    said = _broken_rule(loop.prepared, scheduler, workload, fleet)
    return PolicyError(said if loop.talk is None else said + loop.talk.last_words())


def _broken_rule(prepared: Prepared, scheduler: Scheduler, workload: Workload, fleet: Fleet) -> str:
    violation = prepared.simulation.claims.violation
    if violation[VIOLATED_RULE] == KEPT:
        return f"scheduler {scheduler.name} pushed to a lane that does not exist, or popped from an empty one"
    task, machine = int(violation[VIOLATING_TASK]), int(violation[VIOLATING_MACHINE])
    said = f"scheduler {scheduler.name} {RULES[int(violation[VIOLATED_RULE])]}: machine {machine} for task {task}"
    if violation[VIOLATED_RULE] == NO_SUCH_MACHINE:
        return f"{said}; machines are 0 to {len(fleet.machines) - 1}, or -1 for none"
    if violation[VIOLATED_RULE] == DOES_NOT_FIT:
        sim = prepared.simulation
        shape = sim.tasks.shape[task]
        amounts = ", ".join(
            f"{resource.name} asked {amount_words(resource, sim.tasks.request[row, shape])}, "
            f"free {amount_number(resource, max(int(sim.fleet.free[row, machine]), 0))}"
            for row, resource in enumerate(workload.resources)
        )
        constrained = " (it has constraints)" if sim.tasks.constraint_set[shape] else ""
        return f"{said}{constrained}; {amounts}"
    return f"{said}; tasks are 0 to {len(workload.tasks) - 1}"
