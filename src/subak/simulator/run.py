"""A run: one scheduler on one workload and fleet with one seed, from the first event to the last."""
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof, types

from subak.errors import InputError, PolicyError
from subak.federation.settings import Federation
from subak.fleet.speeds import refuse_speeds
from subak.fleet.state import ABSENT
from subak.fleet.table import Fleet
from subak.kernel import function_type, kernel_of
from subak.placement.compiled import (
    HOOK,
    LANES,
    MEMORY,
    SELECT_MACHINE,
    compiled_hook,
    compiled_select_machine,
)
from subak.placement.lotes.plan import Plan as LotesPlan
from subak.placement.lotes.plan import make_plan as make_lotes_plan
from subak.placement.mapreduce.plan import Plan, make_plan
from subak.placement.mapreduce.search import SearchSettings
from subak.placement.schedulers import LOTES, Scheduler
from subak.placement.starts import DOES_NOT_FIT, KEPT, MACHINE, NO_SUCH_MACHINE, RULE, RULES, TASK
from subak.queues.fair_orders import FAIR_ORDERS
from subak.queues.lanes import build_lanes
from subak.queues.tree import TreeFile
from subak.simulator.architectures import ARCHITECTURES
from subak.simulator.central import run_hooks, run_ordered
from subak.simulator.drive import Driven, Progress, drive
from subak.simulator.fair_run import build_fair, run_fair
from subak.simulator.fault_plan import FaultPlan
from subak.simulator.federated_run import Federated, simulate_federated
from subak.simulator.lotes_run import build_dispatcher, lotes_order, run_lotes
from subak.simulator.planned_run import build_lineup, run_planned
from subak.simulator.setup import Prepared, machine_order, prepare
from subak.simulator.state import Simulation
from subak.tables import first_line
from subak.workload.table import Workload

INTERVALS_WANTED = 400  # of the default timeline, over the span of the arrivals
INTERVAL_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


@dataclass(frozen=True)
class Outcome:
    """A finished run: the final state of every task, the timeline and the lost attempts."""

    prepared: Prepared
    scheduler: Scheduler
    seed: int
    driven: Driven
    federated: Federated | None = None  # of a federation: its settings, network and roles
    search_moves: int | None = None  # that a search for a better plan tried

    @property
    def simulation(self) -> Simulation:
        """The final state."""
        return self.prepared.simulation


@functools.cache
def _lotes_engine(state: Any, dispatcher: Any) -> Callable[..., int]:
    return kernel_of(types.int64(state, dispatcher, LANES, types.int64), run_lotes)


@functools.cache
def _planned_engine(state: Any) -> Callable[..., int]:
    return kernel_of(types.int64(state, LANES, types.int32[::1], types.int64), run_planned)


@functools.cache
def _fair_engine(state: Any, fair: Any, back: Any) -> Callable[..., int]:
    return kernel_of(types.int64(state, fair, back, function_type(SELECT_MACHINE), types.int64), run_fair)


@functools.cache
def _engine(state: Any, with_hooks: bool) -> Callable[..., int]:
    engine: Callable[..., int]
    if with_hooks:
        hook = function_type(HOOK)
        engine = kernel_of(types.int64(state, LANES, MEMORY, hook, hook, types.int64), run_hooks)
    else:
        select = function_type(SELECT_MACHINE)
        engine = kernel_of(types.int64(state, LANES, types.int32[::1], select, types.int64), run_ordered)
    return engine


def simulate(  # noqa: PLR0913, PLR0917  (every one is a word of the scenario)
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
    queues: TreeFile | None = None,
    preemptions: float = 0.0,
    slow_start: float = 1.0,
    search: SearchSettings | None = None,
) -> Outcome:
    """Simulate one scheduler on one workload and fleet.

    *interval* is the timeline's (seconds; by default about 400 over the arrivals), *until* the last instant to
    simulate, *check* is called after every step with the state (tests), *federation* holds the settings of a scheduler
    that is one, *faults* what goes wrong in it, *queues* weights and limits for the fair orders, *preemptions* how many
    an hour a queue below its guarantee may cause under them. *slow_start* is the share of a stage's tasks that have
    ended when the tasks that wait for it may start; such an attempt holds its machine, and goes on behind its `shuffle`
    when all of them have. *search* says how long a scheduler that searches betters its plan. Raises InputError for
    workloads and fleets that do not match, and for faults that the scheduler has no remedy for, PolicyError when the
    policy breaks a rule.
    """
    width = interval if interval is not None else default_interval(workload)
    _refuse_times(width, until)
    if not 0 <= slow_start <= 1:
        raise InputError(f"slow start: must be a share from 0 to 1, not {slow_start:g}")
    if scheduler.architecture:
        refuse_speeds(workload, fleet, scheduler.name)
        if slow_start != 1.0:
            raise InputError(f"slow start: {scheduler.name} is a federation, in which tasks start when all that they "
                             f"wait for has ended; the share must be 1, not {slow_start:g}")
        architecture = ARCHITECTURES[scheduler.architecture]
        settings = architecture.settled(federation or Federation())
        fixed = interval is not None
        return Outcome(scheduler=scheduler, seed=seed, **simulate_federated(
            workload, fleet, architecture, settings, seed, width, fixed, until, on_progress, check, faults, queues))
    if faults is not None:
        raise InputError(f"faults: {scheduler.name} is no federation; faults befall megha and central")
    plan = make_lotes_plan(workload, fleet) if scheduler.planned == LOTES else None
    order = machine_order(fleet, scheduler.machines) if plan is None else lotes_order(plan)
    prepared = prepare(workload, fleet, scheduler.order, order, seed, width, until, slow_start)
    moves = None
    if plan is not None:
        simulation, waiting, step = _lotes_driver(prepared, workload, plan)
    elif scheduler.planned:
        planned = make_plan(workload, fleet, scheduler.planned, seed, search)
        moves = planned.search_moves
        simulation, waiting, step = _planned_driver(prepared, planned)
    elif scheduler.order in FAIR_ORDERS:
        simulation, waiting, step = _fair_driver(prepared, scheduler, workload, queues, preemptions)
    else:
        simulation, waiting, step = _driver(prepared, scheduler)
    if not scheduler.built_in:
        step = _guarded(step, scheduler.name)
    driven = drive(
        simulation, lambda budget: step(simulation, budget), interval is not None, on_progress,
        None if check is None else lambda: check(simulation, waiting),
        lambda: _broken(prepared, scheduler, workload, fleet),
    )
    return Outcome(prepared, scheduler, seed, driven, search_moves=moves)


def _refuse_times(interval: float, until: float) -> None:
    if not (math.isfinite(interval) and interval > 0):
        raise InputError(f"interval: must be a positive number of seconds, not {interval:g}")
    if until < 0 or math.isnan(until):
        raise InputError(f"until: must be 0 seconds or more, not {until:g}")


def default_interval(workload: Workload) -> float:
    """Return a round number of seconds that cuts the span of the arrivals into about 400 intervals."""
    span = float(workload.tasks["arrival"].max() or 0.0)  # type: ignore[arg-type]
    wanted = span / INTERVALS_WANTED
    return float(next((step for step in INTERVAL_STEPS if step >= wanted), math.ceil(wanted / 86400) * 86400))


def _driver(
    prepared: Prepared, scheduler: Scheduler
) -> tuple[Simulation, Any, Callable[[Simulation, int], int]]:
    """Return the state, the lanes, and a function that runs a number of steps."""
    simulation = prepared.simulation
    shapes, padded_machines = simulation.tasks.constraint_set.size, simulation.fleet.free.shape[1]
    lane_count = {"one": 1, "shape": shapes, "machine": padded_machines + 1}[scheduler.lanes]
    lanes = build_lanes(lane_count, simulation.tasks.arrival.size, scheduler.lanes == "shape")
    state = typeof(simulation)
    if scheduler.select_machine is not None:
        select = compiled_select_machine(scheduler.select_machine, scheduler.built_in)
        lane_of_shape = np.arange(shapes, dtype=np.int32) if scheduler.lanes == "shape" else np.zeros(shapes, np.int32)
        run = _engine(state, with_hooks=False)
        return simulation, lanes, lambda sim, budget: run(sim, lanes, lane_of_shape, select, budget)
    assert scheduler.on_arrival is not None
    assert scheduler.on_departure is not None
    on_arrival = compiled_hook(scheduler.on_arrival, scheduler.built_in)
    on_departure = compiled_hook(scheduler.on_departure, scheduler.built_in)
    memory = scheduler.memory(prepared.instance)
    run = _engine(state, with_hooks=True)
    return simulation, lanes, lambda sim, budget: run(sim, lanes, memory, on_arrival, on_departure, budget)


def _lotes_driver(
    prepared: Prepared, workload: Workload, plan: LotesPlan
) -> tuple[Simulation, Any, Callable[[Simulation, int], int]]:
    """Return the state, that of the dispatcher, and a function that runs a number of steps."""
    state, lanes = build_dispatcher(prepared, workload, plan)
    run = _lotes_engine(typeof(prepared.simulation), typeof(state))
    return prepared.simulation, state, lambda sim, budget: run(sim, state, lanes, budget)


def _planned_driver(
    prepared: Prepared, plan: Plan
) -> tuple[Simulation, Any, Callable[[Simulation, int], int]]:
    """Return the state, the lanes, and a function that runs a number of steps."""
    lanes, lane_of_task = build_lineup(prepared, plan)
    run = _planned_engine(typeof(prepared.simulation))
    return prepared.simulation, lanes, lambda sim, budget: run(sim, lanes, lane_of_task, budget)


def _fair_driver(
    prepared: Prepared, scheduler: Scheduler, workload: Workload, queues: TreeFile | None, preemptions: float
) -> tuple[Simulation, Any, Callable[[Simulation, int], int]]:
    """Return the state, that of the order, and a function that runs a number of steps."""
    assert scheduler.select_machine is not None
    fair, back = build_fair(prepared, workload, scheduler.order, queues, preemptions)
    select = compiled_select_machine(scheduler.select_machine, scheduler.built_in)
    run = _fair_engine(typeof(prepared.simulation), typeof(fair), typeof(back))
    return prepared.simulation, fair, lambda sim, budget: run(sim, fair, back, select, budget)


def _guarded(step: Callable[[Simulation, int], int], name: str) -> Callable[[Simulation, int], int]:
    """Return *step* for a user's policy: what it raises is worded, and it may not have changed the fleet."""

    def guarded(sim: Simulation, budget: int) -> int:
        try:
            why = step(sim, budget)
        except Exception as error:  # whatever a user's policy may raise is the policy's fault
            raise PolicyError(f"scheduler {name} raised {type(error).__name__}: {first_line(error)}") from None
        if _is_tampered(sim):
            raise PolicyError(f"scheduler {name} changed the amounts of the fleet; a policy may only read them, "
                              "and start tasks with claim()")
        return why

    return guarded


def _is_tampered(sim: Simulation) -> bool:
    """Whether free and used amounts no longer add up to the capacity."""
    held = np.where(sim.fleet.free == ABSENT, 0, sim.fleet.capacity - sim.fleet.free)
    overfull = (held < 0) | (held > sim.fleet.capacity)
    return bool(overfull.any() or (held.sum(axis=1, dtype=np.int64) != sim.fleet.used).any())


def _broken(prepared: Prepared, scheduler: Scheduler, workload: Workload, fleet: Fleet) -> PolicyError:
    """Word the rule that a policy broke, with the task, the machine and the amounts."""
    note = prepared.simulation.starts.note
    if note[RULE] == KEPT:
        return PolicyError(
            f"scheduler {scheduler.name} pushed to a lane that does not exist, or popped from an empty one"
        )
    task, machine = int(note[TASK]), int(note[MACHINE])
    said = f"scheduler {scheduler.name} {RULES[int(note[RULE])]}: machine {machine} for task {task}"
    if note[RULE] == NO_SUCH_MACHINE:
        return PolicyError(f"{said}; machines are 0 to {len(fleet.machines) - 1}, or -1 for none")
    if note[RULE] == DOES_NOT_FIT:
        sim = prepared.simulation
        shape = sim.tasks.shape[task]
        amounts = ", ".join(
            f"{resource.name} asked {sim.tasks.request[row, shape] * resource.unit:g}, "
            f"free {max(int(sim.fleet.free[row, machine]), 0) * resource.unit:g}"
            for row, resource in enumerate(workload.resources)
        )
        constrained = " (it has constraints)" if sim.tasks.constraint_set[shape] else ""
        return PolicyError(f"{said}{constrained}; {amounts}")
    return PolicyError(f"{said}; tasks are 0 to {len(workload.tasks) - 1}")
