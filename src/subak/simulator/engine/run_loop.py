"""Runs an engine to its end in budgets of steps, with progress and growing tables."""
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from subak.errors import InputError
from subak.simulator.engine.state import (
    ACCOUNTED,
    BOUNDARY,
    EVENTS,
    FIRST_RESOURCE,
    INTERVAL,
    INTERVALS,
    LOOP_BROKEN,
    LOOP_DONE,
    LOOP_LOSSES_FULL,
    LOOP_PAUSED,
    LOOP_TIMELINE_FULL,
    LOOP_UNREAD,
    LOSSES,
    NEXT_ARRIVAL,
    NOW,
    PER_RESOURCE,
    ROWS_CLOSED,
    RUNNING_NOW,
    TIMELINE_WAITING_MAX,
    WAITING_NOW,
    Simulation,
)

BUDGET_FIRST = 10_000  # of the loop before it first comes back; then as many as take about REPORT_S
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


def run_to_end(
    simulation: Simulation,
    step: Callable[[int], int],
    fixed: bool,
    on_progress: Callable[[Progress], None] | None,
    check: Callable[[], None] | None,
    broken: Callable[[], Exception],
) -> LoopResult:
    """Run an engine to its end.

    *step* runs a number of steps and says why it came back; *fixed*: the timeline's interval was given; *check* is
    called after every step; *broken* words the rule that was broken when the engine stops for one.
    """
    timeline = Timeline(simulation, fixed)
    losses: list[np.ndarray] = []
    began = time.perf_counter()
    run_on(simulation, step, timeline, losses, on_progress, check, broken)
    seconds = time.perf_counter() - began
    return LoopResult(timeline.rows(), float(simulation.clock[INTERVAL]), float(simulation.clock[ACCOUNTED]), losses,
                      int(simulation.counts[EVENTS]), seconds)


def run_on(
    simulation: Simulation,
    step: Callable[[int], int],
    timeline: "Timeline",
    losses: list[np.ndarray],
    on_progress: Callable[[Progress], None] | None,
    check: Callable[[], None] | None,
    broken: Callable[[], Exception],
) -> int:
    """Run an engine to its end, or until it has no rows for those who arrive next; say which: LOOP_DONE, LOOP_UNREAD.

    Lost attempts are put behind *losses*; the rest is as with `run_to_end`.
    """
    why = LOOP_PAUSED
    for why in _laps(step, singly=check is not None):
        if check:
            check()
        if why == LOOP_BROKEN:
            raise broken()
        if why == LOOP_TIMELINE_FULL:
            timeline.make_room()
        if why == LOOP_LOSSES_FULL:
            losses.append(_drained(simulation))
        if on_progress:
            on_progress(_progress(simulation))
    losses.append(_drained(simulation))
    return why


def _laps(step: Callable[[int], int], singly: bool) -> Iterator[int]:
    """Run to the end, and say each time the loop came back why it did: after every step if *singly*."""
    budget, why = (1 if singly else BUDGET_FIRST), LOOP_PAUSED
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

    def __init__(self, simulation: Simulation, fixed: bool) -> None:
        self.simulation = simulation
        self.fixed = fixed
        self.kept: list[np.ndarray] = []

    def make_room(self) -> None:
        """Move the closed intervals out, or merge them in pairs."""
        sim = self.simulation
        count = int(sim.counts[ROWS_CLOSED])
        if self.fixed:
            self.kept.append(sim.record.rows[:count].copy())
            sim.counts[ROWS_CLOSED] = 0
            if sim.counts[INTERVALS] > TIMELINE_INTERVALS_MAX:
                raise InputError(f"interval: {sim.clock[INTERVAL]:g} s makes more than {TIMELINE_INTERVALS_MAX:,} "
                                 f"intervals, the last at {sim.clock[ACCOUNTED]:g} s; choose a longer one")
            return
        if count % 2:  # the last closed interval is the first half of the doubled one that is now open
            sim.record.current[:] = merged_pairs(np.vstack([sim.record.rows[count - 1], sim.record.current]))[0]
        half = count // 2
        sim.record.rows[:half] = merged_pairs(sim.record.rows[: 2 * half])
        sim.counts[ROWS_CLOSED] = sim.counts[INTERVALS] = half
        sim.clock[INTERVAL] *= 2
        sim.clock[BOUNDARY] = (half + 1) * sim.clock[INTERVAL]

    def rows(self) -> np.ndarray:
        """Return float64[row, column], one row an interval."""
        return np.concatenate([*self.kept, self.simulation.record.rows[: self.simulation.counts[ROWS_CLOSED]]])


def merged_pairs(rows: np.ndarray) -> np.ndarray:
    """Return the sums of neighbouring rows: of maxima the larger, of stranded amounts the later."""
    first, second = rows[0::2], rows[1::2]
    merged = first + second
    merged[:, TIMELINE_WAITING_MAX] = np.maximum(first[:, TIMELINE_WAITING_MAX], second[:, TIMELINE_WAITING_MAX])
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
