"""Drives an engine to its end, block by block, in budgets of steps, with progress and growing tables.

A run in memory is one block of tasks; of a run in chunks each chunk is one.
"""
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from subak.errors import InputError
from subak.simulator.engine.state import (
    FIRST_RESOURCE,
    LOOP_BROKEN,
    LOOP_DONE,
    LOOP_LOSSES_FULL,
    LOOP_PAUSED,
    LOOP_TIMELINE_FULL,
    LOOP_UNREAD,
    PER_RESOURCE,
    TIMELINE_WAITING_MAX,
    Simulation,
)

BUDGET_FIRST = 10_000  # of the loop before it first comes back; then as many as take about REPORT_S
BUDGET_SLOW = 16  # the same of a policy that is called as plain Python, and may take a second for each decision
BUDGET_MAX = 100_000_000
REPORT_S = 0.2  # seconds between reports, and until Ctrl-C is heard
TIMELINE_INTERVALS_MAX = 10_000_000  # of a timeline whose interval was given


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
class LoopResult:
    """What an engine recorded on the way to its end, and how long that took."""

    timeline: np.ndarray  # float64[row, column], sums over each interval
    interval: float  # seconds
    end: float  # seconds, the last instant
    losses: list[np.ndarray]  # task, machine, start, end of attempts that were lost
    events: int
    seconds: float  # of the loop alone


class Driven(Protocol):
    """What a run drives: a state, and a step over it."""

    @property
    def simulation(self) -> Simulation:
        """The state; it may be another one in the next block of tasks."""

    @property
    def step(self) -> Callable[[int], int]:
        """What runs a number of steps, and says why it came back."""

    @property
    def last_arrival(self) -> float:
        """When the last task of the workload arrives (s)."""

    @property
    def arrived_before(self) -> int:
        """How many tasks arrived that the state does not count: those of earlier blocks."""

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers in the workload of the tasks in some rows of the state, int64[row]."""

    def broken(self) -> Exception:
        """Word the rule that was broken when the engine stops for one."""


@dataclass(frozen=True)
class Held:
    """A run with all tasks in memory: one block."""

    simulation: Simulation
    step: Callable[[int], int]
    broken: Callable[[], Exception]
    arrived_before = 0

    @property
    def last_arrival(self) -> float:
        """When the last task arrives (s)."""
        return float(self.simulation.tasks.arrival[-1])

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows: a task's number is its row."""
        return rows


class Course:
    """A run on its way to its end, through one block of tasks or several."""

    def __init__(self, run: Driven, fixed: bool, first: int = BUDGET_FIRST) -> None:
        """Begin a run that has read its first block; *fixed*: the timeline's interval was given.

        *first* is how many steps to run before it first comes back.
        """
        self.first = first
        self.run = run
        self.timeline = Timeline(fixed)
        self.losses: list[np.ndarray] = []  # as of `LoopResult`
        self.seconds = 0.0

    def drive(
        self, on_progress: Callable[[Progress], None] | None = None, check: Callable[[], None] | None = None,
        next_block: Callable[[], None] | None = None,
    ) -> LoopResult:
        """Run to the end. *check* is called after every step, *next_block* when the next to arrive has no row."""
        while not self._advance(on_progress, check):
            assert next_block is not None  # in memory there is no other block
            next_block()
        sim = self.run.simulation
        return LoopResult(self.timeline.rows(sim), sim.clock.interval, sim.clock.accounted, self.losses,
                          sim.counts.events, self.seconds)

    def _advance(
        self, on_progress: Callable[[Progress], None] | None, check: Callable[[], None] | None
    ) -> bool:
        """Run as far as there are rows; return whether the end has been reached."""
        run, why, began = self.run, LOOP_PAUSED, time.perf_counter()
        for why in _laps(run.step, self.first, singly=check is not None):
            if check:
                check()
            if why == LOOP_BROKEN:
                raise run.broken()
            if why == LOOP_TIMELINE_FULL:
                self.timeline.make_room(run.simulation)
            if why == LOOP_LOSSES_FULL:
                self.losses.append(_drained(run))
            if on_progress:
                on_progress(_progress(run))
        self.losses.append(_drained(run))
        self.seconds += time.perf_counter() - began
        return why == LOOP_DONE


def _laps(step: Callable[[int], int], first: int, singly: bool) -> Iterator[int]:
    """Run to the end, and say each time the loop came back why it did: after every step if *singly*."""
    budget, why = (1 if singly else first), LOOP_PAUSED
    while why not in (LOOP_DONE, LOOP_UNREAD):
        before = time.perf_counter()
        with np.errstate(over="ignore"):  # the words of 64 bits wrap, in compiled and in plain Python alike
            why = step(budget)
        if why == LOOP_PAUSED and not singly:
            budget = next_budget(budget, time.perf_counter() - before)
        yield why


def next_budget(budget: int, seconds: float) -> int:
    """Return how many steps to do next, after *budget* of them took *seconds*: at most double, or a tenth."""
    return min(max(int(budget * min(max(REPORT_S / max(seconds, 1e-9), 0.1), 2.0)), 1), BUDGET_MAX)


class Timeline:
    """Takes closed intervals over from the engine; a default interval that proves too fine is doubled."""

    def __init__(self, fixed: bool) -> None:
        self.fixed = fixed
        self.kept: list[np.ndarray] = []

    def make_room(self, sim: Simulation) -> None:
        """Move the closed intervals out, or merge them in pairs."""
        count = sim.counts.rows_closed
        if self.fixed:
            self.kept.append(sim.record.rows[:count].copy())
            sim.counts.rows_closed = 0
            if sim.counts.intervals > TIMELINE_INTERVALS_MAX:
                raise InputError(f"interval: {sim.clock.interval:g} s makes more than {TIMELINE_INTERVALS_MAX:,} "
                                 f"intervals, the last at {sim.clock.accounted:g} s; choose a longer one")
            return
        if count % 2:  # the last closed interval is the first half of the doubled one that is now open
            sim.record.current[:] = merged_pairs(np.vstack([sim.record.rows[count - 1], sim.record.current]))[0]
        half = count // 2
        sim.record.rows[:half] = merged_pairs(sim.record.rows[: 2 * half])
        sim.counts.rows_closed = sim.counts.intervals = half
        sim.clock.interval *= 2
        sim.clock.boundary = (half + 1) * sim.clock.interval

    def rows(self, sim: Simulation) -> np.ndarray:
        """Return float64[row, column], one row an interval."""
        return np.concatenate([*self.kept, sim.record.rows[: sim.counts.rows_closed]])


def merged_pairs(rows: np.ndarray) -> np.ndarray:
    """Return the sums of neighbouring rows: of maxima the larger, of stranded amounts the later."""
    first, second = rows[0::2], rows[1::2]
    merged = first + second
    merged[:, TIMELINE_WAITING_MAX] = np.maximum(first[:, TIMELINE_WAITING_MAX], second[:, TIMELINE_WAITING_MAX])
    merged[:, FIRST_RESOURCE + 2 :: PER_RESOURCE] = second[:, FIRST_RESOURCE + 2 :: PER_RESOURCE]
    return merged


def _drained(run: Driven) -> np.ndarray:
    """Return float64[4, loss] (task, machine, start, end) of the lost attempts noted so far, and forget them."""
    sim = run.simulation
    count = sim.counts.losses
    sim.counts.losses = 0
    task, *others = (column[:count] for column in sim.losses)
    return np.vstack([column.astype(np.float64) for column in (run.numbers(task), *others)])


def _progress(run: Driven) -> Progress:
    sim = run.simulation
    return Progress(
        sim.counts.events, sim.clock.now, run.last_arrival,
        run.arrived_before + sim.counts.next_arrival, sim.counts.waiting_now, sim.counts.running_now,
    )
