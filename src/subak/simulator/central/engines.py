"""The compiled loop of each kind of central scheduler, with its state."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from numba import types

from subak.errors import InputError
from subak.fleet.shortlists import build_shortlists
from subak.fleet.state import BLOCK
from subak.fleet.table import Fleet
from subak.kernels.kernel import function_type, kernel_of
from subak.placement.interface.compiled import (
    HOOK,
    SELECT_MACHINE,
    compiled_gang_machine,
    compiled_hooks,
    compiled_select_machine,
)
from subak.placement.interface.plain_python import PlainPolicy, Tables
from subak.placement.lotes.settings import LotesSettings
from subak.placement.mapreduce.plan import make_plan
from subak.placement.ordered import build_ordered
from subak.placement.rigid.reservations import BACKFILL_RULES
from subak.placement.schedulers import LOTES, Scheduler, loaded
from subak.placement.whole_gangs import build_waiting, no_gangs
from subak.queues.lanes import build_lanes
from subak.queues.orders import FAIR_ORDERS
from subak.simulator.central.by_address import as_they_are, by_address
from subak.simulator.central.conversation import Conversation
from subak.simulator.central.delay import build_delay, run_delay
from subak.simulator.central.fair import build_fair, run_fair
from subak.simulator.central.gangs import gangs_of
from subak.simulator.central.loop import run_hooks, run_ordered
from subak.simulator.central.planned import build_machine_queues, run_planned
from subak.simulator.central.rigid import build_rigid_run, run_rigid
from subak.simulator.engine.setup import Prepared, Terms, machine_order, prepare
from subak.workload.table import Workload

if TYPE_CHECKING:  # scipy and HiGHS, which LoTES plans with, take a while to load
    from subak.placement.lotes.plan import Plan


class CentralLoop(NamedTuple):
    """A run ready to begin: its loop, and what that reads."""

    prepared: Prepared
    waiting: Any  # what tests look at beside the state: lanes, a fair order, a planned run
    step: Callable[[int], int]  # runs a number of steps; returns why it came back
    plans: list[Plan] = []  # noqa: RUF012  (never changed here) of LoTES: those made so far
    plans_missed: list[str] = []  # noqa: RUF012  (as above) and why others could not be made
    search_moves: int | None = None  # that a search for a better plan tried
    looked_at: Callable[[], float] = lambda: math.nan  # share of the machines looked at for an arriving task, of LoTES
    run: Callable[..., int] | None = None  # what a step calls, with the simulation, *states and a number of steps
    states: tuple[Any, ...] = ()
    policy: PlainPolicy | None = None  # of a user, that is called as plain Python
    talk: Conversation | None = None  # with a scheduler in a process of its own


def central_loop(workload: Workload, fleet: Fleet, scheduler: Scheduler, terms: Terms) -> CentralLoop:
    """Return the loop of a central scheduler, ready to run. Raises InputError where a plan cannot be made."""
    loop = _loop_of(workload, fleet, scheduler, terms)
    return loop if scheduler.compiled else _asking(loop, scheduler, workload, fleet)


def _asking(loop: CentralLoop, scheduler: Scheduler, workload: Workload, fleet: Fleet) -> CentralLoop:
    """Return the loop of a policy in plain Python, or in a process of its own, which is asked in each step."""
    sim = loop.prepared.simulation
    lanes, memory = loop.states[1:3] if scheduler.select_machine is None else (None, None)
    talk = Conversation(loop.prepared, workload, fleet, scheduler) if scheduler.command else None
    hooks = () if talk is None else (talk.on_arrival, talk.on_departure)
    policy = PlainPolicy(scheduler, Tables(sim.fleet, sim.tasks, sim.claims, sim.step.arrived, sim.step.freed, lanes,
                                           memory), hooks)
    return loop._replace(step=lambda budget: policy.during(lambda: loop.step(budget)), policy=policy, talk=talk)


def _loop_of(workload: Workload, fleet: Fleet, scheduler: Scheduler, terms: Terms) -> CentralLoop:
    if scheduler.starts_gangs and workload.gang_sizes().any():
        _refuse_unlike(terms)
    if scheduler.planned == LOTES:
        return _lotes(workload, fleet, scheduler.settled(terms.lotes), terms)
    prepared = _with_lists(prepare(workload, fleet, machine_order(fleet, scheduler.machines), terms), scheduler)
    if scheduler.planned:
        plan = make_plan(workload, fleet, scheduler.planned, terms.seed, terms.search)
        lanes, lane_of_task = build_machine_queues(prepared, plan)
        return _compiled(prepared, lanes, _planned_engine, lanes, lane_of_task)._replace(search_moves=plan.search_moves)
    if scheduler.delays:
        delay = build_delay(prepared, workload, (terms.locality_wait, terms.locality_wait))
        return _compiled(prepared, delay, _delay_engine, delay)
    if scheduler.order in FAIR_ORDERS:
        return _fair(prepared, workload, scheduler, terms)
    if scheduler.select_machine is None:
        return _hooks(prepared, workload, scheduler)
    rigid = bool(scheduler.reserves) or workload.gang_sizes().any()
    return _rigid(prepared, workload, scheduler, terms) if rigid else _ordered(prepared, scheduler)


def _refuse_unlike(terms: Terms) -> None:
    """Raise InputError where the tasks of a gang would ask for different amounts."""
    if terms.request_error:
        raise InputError("request_error: requests may not be wrong in a workload with gangs, whose tasks are alike")
    if terms.usage_swing:
        raise InputError("usage_swing: usage may not vary in a workload with gangs, whose tasks are alike")


def _with_lists(prepared: Prepared, scheduler: Scheduler) -> Prepared:
    """Return the run with short lists of the machines that cost each shape least, if the scheduler goes by costs."""
    if not scheduler.weights:
        return prepared
    fleet = prepared.simulation.fleet
    lists = build_shortlists(loaded(scheduler.weights)(prepared.instance), fleet.machines, BLOCK)
    return replace(prepared, simulation=prepared.simulation._replace(fleet=fleet._replace(lists=lists)))


def _compiled(
    prepared: Prepared, waiting: Any, engine: Callable[..., Callable[..., int]], *states: Any,
    given: Callable[..., Callable[..., int]] = by_address,
) -> CentralLoop:
    """Return a loop over the simulation and further *states*, compiled for their types, which it is *given* so."""
    run = given(engine, prepared.simulation, *states)
    return CentralLoop(prepared, waiting, lambda budget: run(prepared.simulation, *states, budget), run=run,
                       states=states)


def _lanes(prepared: Prepared, scheduler: Scheduler) -> Any:
    simulation = prepared.simulation
    shapes, padded = simulation.tasks.constraint_set.size, simulation.fleet.free.shape[1]
    lanes = {"one": 1, "shape": shapes, "machine": padded + 1}[scheduler.lanes]
    return build_lanes(lanes, simulation.tasks.arrival.size, scheduler.lanes == "shape")


def _ordered(prepared: Prepared, scheduler: Scheduler) -> CentralLoop:
    ordered = build_ordered(prepared.simulation.tasks, scheduler.lanes == "shape")
    return _compiled(prepared, ordered.lanes, _ordered_engine, ordered, compiled_select_machine(scheduler))


def _rigid(prepared: Prepared, workload: Workload, scheduler: Scheduler, terms: Terms) -> CentralLoop:
    name = scheduler.reserves or ("backfill" if scheduler.lanes == "shape" else "strict")
    rigid = build_rigid_run(prepared, workload, BACKFILL_RULES.index(name))
    return _compiled(prepared, rigid, _rigid_engine, rigid, compiled_select_machine(scheduler))


def _hooks(prepared: Prepared, workload: Workload, scheduler: Scheduler) -> CentralLoop:
    lanes, simulation = _lanes(prepared, scheduler), prepared.simulation
    gangs = gangs_of(simulation, workload) if scheduler.starts_gangs else no_gangs()
    memory = loaded(scheduler.memory)(prepared.instance)
    return _compiled(prepared, lanes, _hooks_engine, build_waiting(gangs, simulation.tasks), lanes, memory,
                     *compiled_hooks(scheduler), compiled_gang_machine(scheduler), given=as_they_are)


def _fair(prepared: Prepared, workload: Workload, scheduler: Scheduler, terms: Terms) -> CentralLoop:
    fair, back = build_fair(prepared, workload, scheduler.order, terms, terms.reclaims_per_hour)
    return _compiled(prepared, fair, _fair_engine, fair, back, compiled_select_machine(scheduler))


def _lotes(workload: Workload, fleet: Fleet, settings: LotesSettings, terms: Terms) -> CentralLoop:
    from subak.simulator.central.lotes import build_planned_run  # noqa: PLC0415  (see above)

    run = build_planned_run((workload, fleet), settings, terms)
    return CentralLoop(run.prepared, run, run.step, run.plans, run.missed, looked_at=run.looked_at)


@functools.cache
def _planned_engine(state: Any, lanes: Any) -> Callable[..., int]:
    return kernel_of(types.int64(state, lanes, types.int32[::1], types.int64), run_planned)


@functools.cache
def _delay_engine(state: Any, delay: Any) -> Callable[..., int]:
    return kernel_of(types.int64(state, delay, types.int64), run_delay)


@functools.cache
def _fair_engine(state: Any, fair: Any, back: Any) -> Callable[..., int]:
    return kernel_of(types.int64(state, fair, back, function_type(SELECT_MACHINE), types.int64), run_fair)


@functools.cache
def _ordered_engine(state: Any, ordered: Any) -> Callable[..., int]:
    return kernel_of(types.int64(state, ordered, function_type(SELECT_MACHINE), types.int64), run_ordered)


@functools.cache
def _rigid_engine(state: Any, rigid: Any) -> Callable[..., int]:
    return kernel_of(types.int64(state, rigid, function_type(SELECT_MACHINE), types.int64), run_rigid)


@functools.cache
def _hooks_engine(state: Any, waiting: Any, lanes: Any, memory: Any) -> Callable[..., int]:
    hook, select_machine = function_type(HOOK), function_type(SELECT_MACHINE)
    return kernel_of(types.int64(state, waiting, lanes, memory, hook, hook, select_machine, types.int64), run_hooks)
