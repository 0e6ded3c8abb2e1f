"""The loop of LoTES, its dispatcher, and how a new plan takes over."""
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from subak.errors import InputError
from subak.fleet.shapes import Shapes
from subak.fleet.state import BLOCK, FREE_WHEN_ABSENT
from subak.fleet.table import Fleet
from subak.kernels.kernel import kernel_of
from subak.placement.claims import KEPT, TASK_RUNNING, VIOLATED_RULE
from subak.placement.fair import Fair
from subak.placement.lotes.configurations import NO_CONFIGURATION, Configurations
from subak.placement.lotes.dispatch import ALL, NEVER_TRIED, Dispatcher, lotes_instant, serve_gangs
from subak.placement.lotes.fair import fair_lotes_instant
from subak.placement.lotes.plan import Plan, Planner
from subak.placement.lotes.scores import build_scores, change_running, fill_buckets
from subak.placement.lotes.settings import LotesSettings
from subak.placement.whole_gangs import Gangs, WaitingGangs, build_waiting, no_gangs
from subak.queues.lanes import Lanes, build_lanes
from subak.queues.orders import FAIR_ORDERS
from subak.queues.tournament import build_tournament, note_first
from subak.simulator.central.by_address import by_address
from subak.simulator.central.fair import build_fair
from subak.simulator.central.gangs import gangs_of, lose_gangs
from subak.simulator.central.loop import advance, let_gangs_wait
from subak.simulator.engine.attempts import commit
from subak.simulator.engine.bins import classes_with_homes, target_bins
from subak.simulator.engine.setup import NO_ROW, Prepared, Terms, prepare
from subak.simulator.engine.state import (
    LOOP_BROKEN,
    LOOP_PAUSED,
    LOOP_STEP,
    Simulation,
)
from subak.workload.table import Workload


class Places(NamedTuple):
    """Where the machines of each configuration stand in a run; behind them those of none."""

    row: np.ndarray  # int32[place], of the fleet, or NO_ROW
    block_first: np.ndarray  # int32[configuration + 1]
    machines: np.ndarray  # int32[configuration]


def lotes_places(configurations: Configurations) -> Places:
    """Return the machines by configuration, each filled up to whole blocks with NO_ROW.

    Machines that are like none that were there when the plan was made are a last configuration, and may be none.
    """
    rows = [np.flatnonzero(configurations.of_machine == each).astype(np.int32)
            for each in (*range(len(configurations.machines)), NO_CONFIGURATION)]
    filled = [np.concatenate([each, np.full(-each.size % BLOCK, NO_ROW, np.int32)]) for each in rows]
    block_first = np.concatenate([[0], np.cumsum([each.size // BLOCK for each in filled])])
    machines = np.array([each.size for each in rows], np.int32)
    return Places(np.concatenate(filled), block_first.astype(np.int32), machines)


def build_dispatcher(simulation: Simulation, places: Places, plan: Plan | None, shapes: Shapes,
                     settings: LotesSettings) -> Dispatcher:
    """Return the dispatcher of an idle fleet with nobody waiting. Its last class is the one of no bins.

    Without a plan it is the only one.
    """
    known = places.machines.size - 1
    planned = np.zeros((0, known)) if plan is None else plan.routes.T
    classes = len(planned)
    tasks, largest = simulation.tasks, simulation.fleet.capacity.max(axis=1)
    routes = np.zeros((classes + 1, known + 1))
    routes[:classes, :known] = planned
    of_shape = np.zeros(shapes.constraint_set.size, np.int32) if plan is None else classes_with_homes(plan, shapes)
    target = np.zeros((1, places.row.size), np.int32) if plan is None else target_bins(plan, places.row)
    routes[classes, :known] = 1.0 / known
    is_devoted = routes > 0.0
    is_devoted[:, known] = True
    in_turns = settings.order != "fifo"
    turns = turns_of(plan if settings.order == "least-work" else None, shapes, simulation.fleet.scale)
    return Dispatcher(
        scores=build_scores(target, places.block_first),
        waiting=build_tournament(of_shape, classes + 1, tasks.request, largest, turns if in_turns else None),
        class_of_shape=of_shape, counted=np.zeros(tasks.arrival.size, np.int16),
        share=routes, wheel=_wheel(routes), is_devoted=is_devoted, machines=places.machines,
        failed=np.full(of_shape.size, NEVER_TRIED), by_deficit=settings.choice == "deficit", sampled=settings.sampled,
        looked=np.zeros(2, np.int64), in_turns=in_turns, strays=settings.fallback == "all",
    )


def turns_of(plan: Plan | None, shapes: Shapes, scale: np.ndarray) -> np.ndarray:
    """Return int64[shape], the least expected work first: the mean run time of the class times the dominant request.

    *scale* is float64[resource], of a unit. Without a plan requests alone count.
    """
    asked = (shapes.request * scale[:, None]).max(axis=0)
    work = asked if plan is None else asked * plan.classes.run_time[plan.class_of(shapes)]
    return np.unique(work, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _wheel(routes: np.ndarray) -> np.ndarray:
    """Return the sums of float64[class, configuration], beyond 1 from the last part on: any draw ends there."""
    last = routes.shape[1] - (routes > 0)[:, ::-1].argmax(axis=1) - 1
    return np.where(np.arange(routes.shape[1]) >= last[:, None], 2.0, np.cumsum(routes, axis=1))


def take_over(state: Dispatcher, before: Dispatcher, simulation: Simulation, lanes: Lanes) -> None:
    """Let a dispatcher of an idle fleet know what runs and who waits, as far as *before* did."""
    for task in np.flatnonzero(simulation.claims.status == TASK_RUNNING):
        kind = state.class_of_shape[simulation.tasks.shape[task]]
        state.counted[task] = kind
        state.scores.running[kind, simulation.progress.machine[task]] += 1
    for kind, running in enumerate(state.scores.running):
        state.scores.held[kind] = np.bincount(
            np.repeat(state.scores.configuration, BLOCK), weights=running, minlength=state.machines.size)
    for each in (state.scores.bucket, state.scores.blocks, state.scores.members):
        each[:] = 0
    fill_buckets(state.scores)
    state.looked[:] = before.looked
    if state.strays:  # else what is devoted to a class now may have room
        state.failed[:] = before.failed
    lanes.score[:] = -state.waiting.turn
    for lane in lanes.active[: lanes.size[0]]:
        note_first(state.waiting, lanes, simulation.tasks, int(lane))


@functools.cache
def _engine(state: Any, dispatcher: Any, waiting: Any, lanes: Any) -> Callable[..., int]:
    return kernel_of(types.int64(state, dispatcher, waiting, lanes, types.float64, types.int64), run_lotes)


@functools.cache
def _fair_engine(state: Any, dispatcher: Any, fair: Any) -> Callable[..., int]:
    return kernel_of(types.int64(state, dispatcher, fair, types.float64[::1], types.float64, types.int64),
                     run_lotes_fair)


class PlannedRun:
    """A run under a dispatcher; its plan is made again from time to time, where the settings say so.

    It knows the same machines as alike all the time, so that they keep their places.
    """

    def __init__(self, prepared: Prepared, planner: Planner, plan: Plan | None, places: Places,
                 fair: Fair | None, gangs: Gangs) -> None:
        """Build the dispatcher for the first plan; with a *fair* order that says who is served next."""
        self.prepared, self.simulation, self.planner = prepared, prepared.simulation, planner
        self.places, self.settings = places, planner.settings
        self.shapes = prepared.shapes
        self.lanes = build_lanes(self.shapes.constraint_set.size, self.simulation.tasks.arrival.size)
        self.waiting = build_waiting(gangs, self.simulation.tasks)
        self.plans = [] if plan is None else [plan]
        self.missed: list[str] = []  # why a plan could not be made again, each time
        self.state = self._dispatcher(plan)
        self.lanes.score[:] = -self.state.waiting.turn
        self.began = float(self.simulation.tasks.arrival[0])
        self.arrivals_end = float(planner.arrivals.since.max(initial=0.0))
        self.next_plan = self._after(self.began)
        self.fair = fair
        self.engine = self._compiled(fair)

    def step(self, budget: int) -> int:
        """Run a number of steps; make a new plan when it is time."""
        if self.simulation.clock.now >= self.next_plan:
            self._plan_again()
        return self.engine(self.state, self.next_plan, budget)

    def looked_at(self) -> float:
        """Return how many machines were looked at for an arriving task, of all that there are; nan of a sample."""
        searches, machines = self.state.looked.tolist()
        if not searches or self.settings.sampled != ALL:
            return math.nan
        return machines / searches / int(self.places.machines.sum())

    def _compiled(self, fair: Fair | None) -> Callable[[Dispatcher, float, int], int]:
        simulation, waiting, lanes = self.simulation, self.waiting, self.lanes
        if fair is None:
            run = by_address(_engine, simulation, self.state, waiting, lanes)
            return lambda state, pause_at, budget: run(simulation, state, waiting, lanes, pause_at, budget)
        run, nothing = by_address(_fair_engine, simulation, self.state, fair), np.zeros(0)
        return lambda state, pause_at, budget: run(simulation, state, fair, nothing, pause_at, budget)

    def _dispatcher(self, plan: Plan | None) -> Dispatcher:
        return build_dispatcher(self.simulation, self.places, plan, self.shapes, self.settings)

    def _after(self, time: float) -> float:
        """Return when the first plan after *time* is due."""
        period = self.settings.replan_seconds
        return self.began + (math.floor((time - self.began) / period) + 1) * period if period else math.inf

    def _plan_again(self) -> None:
        """Let the dispatcher of a plan for what arrived lately take over; where there can be none, keep the old one.

        When nothing arrives any more there is nothing to plan for; before that, somebody ought to hear of it.
        """
        since = self.next_plan - self.began
        self.next_plan = self._after(self.simulation.clock.now)
        if since - self.settings.replan_window > self.arrivals_end:
            return
        try:
            plan = self.planner.again(since, self._there())
        except InputError as error:  # nothing arrived, or what did tells no rate
            self.missed.append(str(error))
            return
        before, self.state = self.state, self._dispatcher(plan)
        take_over(self.state, before, self.simulation, self.lanes)
        self.plans.append(plan)

    def _there(self) -> np.ndarray:
        """Return bool[machine]: which rows of the fleet are there now."""
        there = np.zeros(len(self.planner.fleet.machines), bool)
        known = self.places.row != NO_ROW
        there[self.places.row[known]] = self.simulation.fleet.free[0, : known.size][known] != FREE_WHEN_ABSENT
        return there


def run_lotes(
    sim: Simulation, state: Dispatcher, waiting: WaitingGangs, lanes: Lanes, pause_at: float, budget: int
) -> int:
    """Run *budget* steps, or until the first instant at or after *pause_at*; return why it stopped."""
    for _ in range(budget):
        outcome = advance(sim)
        if outcome != LOOP_STEP:
            return outcome
        lose_gangs(sim, waiting.gangs)
        for task in sim.step.ended[: sim.counts.ended_now]:
            change_running(state.scores, state.counted[task], sim.progress.machine[task], -1)
        came = let_gangs_wait(sim, waiting)
        serve_gangs(state, waiting, sim.fleet, sim.tasks, sim.claims)
        lotes_instant(
            state, sim.fleet, sim.tasks, lanes, sim.step.freed[: sim.counts.freed_now], sim.step.arrived[:came],
            sim.claims,
        )
        commit(sim)
        if sim.claims.violation[VIOLATED_RULE] != KEPT:
            return LOOP_BROKEN
        if sim.clock.now >= pause_at:
            return LOOP_PAUSED
    return LOOP_PAUSED


def run_lotes_fair(
    sim: Simulation, state: Dispatcher, fair: Fair, nothing: np.ndarray, pause_at: float, budget: int
) -> int:
    """Run *budget* steps under a fair order, or until the first instant at or after *pause_at*; return why it stopped.

    *nothing* is float64[0].
    """
    for _ in range(budget):
        outcome = advance(sim)
        if outcome != LOOP_STEP:
            return outcome
        lose_gangs(sim, fair.gangs)
        for task in sim.step.ended[: sim.counts.ended_now]:
            change_running(state.scores, state.counted[task], sim.progress.machine[task], -1)
        fair_lotes_instant(
            state, sim.fleet, sim.tasks, fair, sim.step.ended[: sim.counts.ended_now],
            sim.step.arrived[: sim.counts.arrived_now], sim.step.freed[: sim.counts.freed_now], nothing, sim.claims,
        )
        commit(sim)
        if sim.claims.violation[VIOLATED_RULE] != KEPT:
            return LOOP_BROKEN
        if sim.clock.now >= pause_at:
            return LOOP_PAUSED
    return LOOP_PAUSED


def build_planned_run(inputs: tuple[Workload, Fleet], settings: LotesSettings, terms: Terms) -> PlannedRun:
    """Make a plan and build a run that goes by it; where requests are wrong, it is made of what tasks use.

    Where the mix of classes is not known beforehand, there is no plan yet. Raises InputError when there is nothing to
    plan.
    """
    planner = Planner(*inputs, settings)
    plan = planner.first() if settings.mix == "known" else None
    places = lotes_places(planner.known_configurations())
    prepared, fair = prepare(*inputs, places.row, terms, planner.shapes), None
    if terms.ranking in FAIR_ORDERS:
        fair, _ = build_fair(prepared, inputs[0], terms.ranking, terms, 0.0)
    gangs = gangs_of(prepared.simulation, inputs[0]) if fair is None else no_gangs()
    return PlannedRun(prepared, planner, plan, places, fair, gangs)
