"""The course of a run in chunks: ended tasks go to blocks, arriving ones come in.

One chunk: (1) the loop runs until the next to arrive has no row; (2) rows of tasks that ended are written out; (3) the
state is left with those that are open, which is also what a checkpoint holds; (4) the next chunk is read.
"""
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from subak.fleet.table import Fleet
from subak.simulator.chunks.blocks import Blocks
from subak.simulator.engine.columns import as_enum
from subak.simulator.engine.run_loop import LoopResult, Progress, Timeline, run_on
from subak.simulator.engine.setup import Terms
from subak.simulator.engine.state import ACCOUNTED, EVENTS, INTERVAL, LOOP_UNREAD, UNREAD_FROM, Simulation
from subak.simulator.estimate_words import EXACT
from subak.simulator.outcome import Outcome, Part
from subak.simulator.results import possible_reasons
from subak.threads import in_order
from subak.workload.stored import StoredWorkload
from subak.workload.table import Workload


class Driven(Protocol):
    """What a run in chunks drives: a loop, and rows for tasks that come and go."""

    @property
    def number(self) -> np.ndarray:
        """int64[row], of its task in the workload; negative where there is none."""

    @property
    def kind(self) -> np.dtype:
        """The fields of a task's results."""

    @property
    def simulation(self) -> Simulation:
        """The state of what runs."""

    @property
    def arrived_before(self) -> int:
        """How many tasks arrived that are not among those the state counts."""

    @property
    def step(self) -> Callable[[int], int]:
        """What runs a number of steps, and says why it came back."""

    def ended(self) -> np.ndarray:
        """Return the rows of tasks to which nothing will happen any more, in the order of the workload."""

    def results(self, rows: np.ndarray) -> np.ndarray:
        """Return what became of the tasks of some rows."""

    def drop(self, rows: np.ndarray) -> None:
        """Go on without the rows of tasks that ended."""

    def read(self, begin: int, part: Workload) -> None:
        """Take on the tasks from number *begin* on."""

    def kept(self) -> dict[str, np.ndarray]:
        """Return what another run like this one goes on from."""

    def go_on_from(self, kept: dict[str, np.ndarray]) -> None:
        """Be where another run was. Raises KeyError where anything is missing."""

    def broken(self) -> Exception:
        """Word that a rule was broken."""

    def outcome(self, result: LoopResult) -> Outcome:
        """Return the run, which has come to its end, of the tasks that have rows."""

    def outcome_of(self, whole: Outcome, part: Workload, values: np.ndarray) -> Outcome:
        """Return the run of some tasks; *values* are their results."""


class Course:
    """A run between two chunks, or in one."""

    def __init__(
        self, stored: StoredWorkload, run: Driven, read: int, terms: Terms, chunk: int, blocks: Blocks, fixed: bool,
    ) -> None:
        """Begin a run that has taken on the first *read* tasks."""
        self.stored, self.run, self.terms, self.chunk, self.blocks = stored, run, terms, chunk, blocks
        self.read = read
        self.timeline = Timeline(run.simulation, fixed)
        self.losses: list[np.ndarray] = []  # as of `LoopResult`, with numbers in the workload
        self.seconds = 0.0

    def advance(self, on_progress: Callable[[Progress], None] | None) -> bool:
        """Run as far as there are rows; return whether the end has been reached."""
        sim, losses = self.run.simulation, []  # type: ignore[var-annotated]
        sim.clock[UNREAD_FROM] = self.stored.arrival(self.read)
        self.timeline.simulation = sim
        began = time.perf_counter()
        why = run_on(sim, self.run.step, self.timeline, losses, self._told(on_progress), None, self.run.broken)
        self.seconds += time.perf_counter() - began
        for each in losses:
            each[0] = self.run.number[each[0].astype(np.int64)]
            self.losses += [each] if each.size else []
        if why == LOOP_UNREAD:
            return False
        number = self.run.number
        rows = np.argsort(number, kind="stable")
        self._write(rows[np.searchsorted(number[rows], 0):])
        return True

    def drop_ended(self) -> None:
        """Write the rows of tasks that ended, and go on without them."""
        ended = self.run.ended()
        self._write(ended)
        self.run.drop(ended)

    def parts_to_come(self) -> Generator[Workload, None, None]:
        """Yield the chunks that have not been read, while a thread reads the next one."""
        begins = range(self.read, self.stored.tasks, self.chunk)
        return in_order(told_part, ((self.stored, begin, begin + self.chunk, self.terms) for begin in begins), 1)

    def take_on(self, part: Workload) -> None:
        """Go on with the chunk that was read next."""
        self.run.read(self.read, part)
        self.read += len(part.tasks)

    def ended(self, fleet: Fleet) -> "ChunkedRun":
        """Return the run, which has come to its end."""
        sim = self.run.simulation
        losses = self.losses or [np.zeros((4, 0))]
        result = LoopResult(self.timeline.rows(), float(sim.clock[INTERVAL]), float(sim.clock[ACCOUNTED]), losses,
                            int(sim.counts[EVENTS]), self.seconds)
        return ChunkedRun(self.stored, fleet, self.run, self.run.outcome(result), self.blocks)

    def _write(self, rows: np.ndarray) -> None:
        self.blocks.write(self.run.number[rows], self.run.results(rows))

    def _told(self, on_progress: Callable[[Progress], None] | None) -> Callable[[Progress], None] | None:
        """Let *on_progress* hear of the whole run."""
        if on_progress is None:
            return None
        before = self.run.arrived_before
        return lambda found: on_progress(replace(
            found, last_arrival=self.stored.last, tasks_arrived=before + found.tasks_arrived))


@dataclass(frozen=True)
class ChunkedRun:
    """A finished run whose tasks are in blocks on the disk."""

    work: StoredWorkload
    fleet: Fleet
    run: Driven
    outcome: Outcome  # of the tasks that were open last; the losses are all there were, with numbers in the workload
    blocks: Blocks

    def parts(self) -> Iterator[Part]:
        """Return the run of each block of tasks, in order."""
        jobs = self.work.head.jobs
        jobs = jobs.with_columns(as_enum(jobs["queue"]))  # once: there are as many as in all blocks together
        for block, begin, end in self.blocks.spans():
            workload = replace(self.work.part(begin, end), jobs=jobs)
            whole = self.run.outcome_of(self.outcome, workload, self.blocks.read(block))
            losses = np.hstack(self.outcome.loop_result.losses)
            places = np.flatnonzero((losses[0] >= begin) & (losses[0] < end))
            lost = losses[:, places]
            lost[0] -= begin
            yield Part(workload, replace(whole, loop_result=replace(whole.loop_result, losses=[lost])), places)

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers in the workload of the tasks in some rows of the state, int64[row]."""
        return self.run.number[rows]

    def reasons(self) -> list[str]:
        """Return the reasons that tasks may have, each once, as they come in the task table of a run in memory."""
        return possible_reasons(self.outcome, self.work.head, self.work.of_stage)


def told_part(stored: StoredWorkload, begin: int, end: int, terms: Terms) -> Workload:
    """Return some tasks as the scheduler is told of them. Raises InputError where the one behind them comes before."""
    part = stored.part(begin, end)
    stored.refuse_before(end, part.tasks["arrival"][-1])
    return part if terms.estimates != EXACT else replace(part, tasks=part.tasks.drop("estimate", strict=False))
