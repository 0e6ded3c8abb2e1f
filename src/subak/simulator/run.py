"""A run: one scheduler on one workload and fleet with one seed, from the first event to the last."""
import functools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof, types

from subak.errors import InputError, PolicyError
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
from subak.placement.schedulers import Scheduler
from subak.placement.starts import DOES_NOT_FIT, KEPT, MACHINE, NO_SUCH_MACHINE, RULE, RULES, TASK
from subak.queues.lanes import Lanes, build_lanes
from subak.simulator.central import BROKEN, DONE, LOSSES_FULL, PAUSED, TIMELINE_FULL, run_hooks, run_ordered
from subak.simulator.setup import Prepared, prepare
from subak.simulator.state import (
    ACCOUNTED,
    BOUNDARY,
    EVENTS,
    FIRST_RESOURCE,
    INTERVAL,
    INTERVALS,
    LOSSES,
    NEXT_ARRIVAL,
    NOW,
    PER_RESOURCE,
    ROWS,
    RUNNING_NOW,
    WAITING_MAX,
    WAITING_NOW,
    Simulation,
)
from subak.tables import first_line
from subak.workload.table import Workload

STEPS_FIRST = 10_000  # of the loop before it first comes back; then as many as take about REPORT_S
STEPS_MAX = 100_000_000
REPORT_S = 0.2  # seconds between reports, and until Ctrl-C is heard
INTERVALS_MAX = 10_000_000  # of a timeline whose interval was given
INTERVALS_WANTED = 400  # of the default timeline, over the span of the arrivals
INTERVAL_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    events: int
    time: float  # simulated seconds
    last_arrival: float  # seconds
    tasks_arrived: int
    waiting: int
    running: int


@dataclass(frozen=True)
class Outcome:
    """A finished run: the final state of every task, the timeline and the lost attempts."""

    prepared: Prepared
    scheduler: Scheduler
    seed: int
    timeline: np.ndarray  # float64[row, column], sums over each interval
    interval: float  # seconds
    end: float  # seconds, the last instant
    losses: list[np.ndarray]  # task, machine, start, end of attempts that were lost
    events: int
    seconds: float  # of the loop alone

    @property
    def simulation(self) -> Simulation:
        """The final state."""
        return self.prepared.simulation


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
    check: Callable[[Simulation, Lanes], None] | None = None,
) -> Outcome:
    """Simulate one scheduler on one workload and fleet.

    *interval* is the timeline's (seconds; by default about 400 over the arrivals), *until* the last instant to
    simulate, *check* is called after every step (tests). Raises InputError for workloads and fleets that do not
    match, PolicyError when the policy breaks a rule.
    """
    width = interval if interval is not None else default_interval(workload)
    _refuse_times(width, until)
    prepared = prepare(workload, fleet, scheduler, seed, width, until)
    simulation, lanes, step = _driver(prepared, scheduler)
    if not scheduler.built_in:
        step = _guarded(step, scheduler.name)
    timeline = _Timeline(simulation, fixed=interval is not None)
    losses: list[np.ndarray] = []
    began = time.perf_counter()
    for why in _laps(simulation, step, singly=check is not None):
        if check:
            check(simulation, lanes)
        if why == BROKEN:
            raise _broken(prepared, scheduler, workload, fleet)
        if why == TIMELINE_FULL:
            timeline.make_room()
        if why == LOSSES_FULL:
            losses.append(_drained(simulation))
        if on_progress:
            on_progress(_progress(simulation))
    seconds = time.perf_counter() - began
    losses.append(_drained(simulation))
    return Outcome(
        prepared, scheduler, seed, timeline.rows(), float(simulation.clock[INTERVAL]),
        float(simulation.clock[ACCOUNTED]), losses, int(simulation.counts[EVENTS]), seconds,
    )


def _refuse_times(interval: float, until: float) -> None:
    if not (math.isfinite(interval) and interval > 0):
        raise InputError(f"interval: must be a positive number of seconds, not {interval:g}")
    if until < 0 or math.isnan(until):
        raise InputError(f"until: must be 0 seconds or more, not {until:g}")


def _laps(simulation: Simulation, step: Callable[[Simulation, int], int], singly: bool) -> Iterator[int]:
    """Run to the end, and say each time the loop came back why it did: after every step if *singly*."""
    budget, why = (1 if singly else STEPS_FIRST), PAUSED
    while why != DONE:
        before = time.perf_counter()
        with np.errstate(over="ignore"):  # the words of 64 bits wrap, in compiled and in plain Python alike
            why = step(simulation, budget)
        if why == PAUSED and not singly:
            budget = next_budget(budget, time.perf_counter() - before)
        yield why


def next_budget(budget: int, seconds: float) -> int:
    """Return how many steps to do next, after *budget* of them took *seconds*: at most double, or a tenth."""
    return min(max(int(budget * min(max(REPORT_S / max(seconds, 1e-9), 0.1), 2.0)), 1), STEPS_MAX)


def default_interval(workload: Workload) -> float:
    """Return a round number of seconds that cuts the span of the arrivals into about 400 intervals."""
    span = float(workload.tasks["arrival"].max() or 0.0)  # type: ignore[arg-type]
    wanted = span / INTERVALS_WANTED
    return float(next((step for step in INTERVAL_STEPS if step >= wanted), math.ceil(wanted / 86400) * 86400))


def _driver(
    prepared: Prepared, scheduler: Scheduler
) -> tuple[Simulation, Lanes, Callable[[Simulation, int], int]]:
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


class _Timeline:
    """Takes closed intervals over from the engine; a default interval that proves too fine is doubled."""

    def __init__(self, simulation: Simulation, fixed: bool) -> None:
        self.simulation = simulation
        self.fixed = fixed
        self.kept: list[np.ndarray] = []

    def make_room(self) -> None:
        """Move the closed intervals out, or merge them in pairs."""
        sim = self.simulation
        count = int(sim.counts[ROWS])
        if self.fixed:
            self.kept.append(sim.record.rows[:count].copy())
            sim.counts[ROWS] = 0
            if sim.counts[INTERVALS] > INTERVALS_MAX:
                raise InputError(f"interval: {sim.clock[INTERVAL]:g} s makes more than {INTERVALS_MAX:,} intervals, "
                                 f"the last at {sim.clock[ACCOUNTED]:g} s; choose a longer one")
            return
        if count % 2:  # the last closed interval is the first half of the doubled one that is now open
            sim.record.current[:] = merged_pairs(np.vstack([sim.record.rows[count - 1], sim.record.current]))[0]
        half = count // 2
        sim.record.rows[:half] = merged_pairs(sim.record.rows[: 2 * half])
        sim.counts[ROWS] = sim.counts[INTERVALS] = half
        sim.clock[INTERVAL] *= 2
        sim.clock[BOUNDARY] = (half + 1) * sim.clock[INTERVAL]

    def rows(self) -> np.ndarray:
        """Return float64[row, column], one row an interval."""
        return np.concatenate([*self.kept, self.simulation.record.rows[: self.simulation.counts[ROWS]]])


def merged_pairs(rows: np.ndarray) -> np.ndarray:
    """Return the sums of neighbouring rows: of maxima the larger, of stranded amounts the later."""
    first, second = rows[0::2], rows[1::2]
    merged = first + second
    merged[:, WAITING_MAX] = np.maximum(first[:, WAITING_MAX], second[:, WAITING_MAX])
    merged[:, FIRST_RESOURCE + 2 :: PER_RESOURCE] = second[:, FIRST_RESOURCE + 2 :: PER_RESOURCE]
    return merged


def _drained(sim: Simulation) -> np.ndarray:
    """Return float64[4, loss] (task, machine, start, end) of the lost attempts noted so far, and forget them."""
    count = int(sim.counts[LOSSES])
    sim.counts[LOSSES] = 0
    return np.vstack([column[:count].astype(np.float64) for column in sim.losses])


def _progress(sim: Simulation) -> Progress:
    arrived = int(sim.counts[NEXT_ARRIVAL])
    return Progress(
        int(sim.counts[EVENTS]), float(sim.clock[NOW]), float(sim.tasks.arrival[-1]), arrived,
        int(sim.counts[WAITING_NOW]), int(sim.counts[RUNNING_NOW]),
    )


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
