"""Streams the tasks of a workload through a run: ended tasks go to blocks, arriving ones come in.

Between two chunks, when the next to arrive has no row: (1) rows of tasks that ended are written out; (2) the state is
left with those that are open, which is also what a checkpoint holds; (3) the next chunk is read.
"""
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from subak.fleet.table import Fleet
from subak.simulator.chunks.blocks import Blocks
from subak.simulator.engine.columns import as_enum
from subak.simulator.engine.run_loop import Driven, LoopResult
from subak.simulator.engine.setup import Terms
from subak.simulator.estimate_words import EXACT
from subak.simulator.outcome import Outcome, Part
from subak.simulator.results import possible_reasons
from subak.threads import in_order
from subak.workload.stored import StoredWorkload
from subak.workload.table import Workload


class Streamed(Driven, Protocol):
    """A run with rows for tasks that come and go."""

    @property
    def number(self) -> np.ndarray:
        """int64[row], of its task in the workload; negative where there is none."""

    @property
    def kind(self) -> np.dtype:
        """The fields of a task's results."""

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

    def outcome(self, result: LoopResult) -> Outcome:
        """Return the run, which has come to its end, of the tasks that have rows."""

    def outcome_of(self, whole: Outcome, part: Workload, values: np.ndarray) -> Outcome:
        """Return the run of some tasks; *values* are their results."""


class Stream:
    """The tasks that a run has not read, and the blocks of those that it let go."""

    def __init__(self, stored: StoredWorkload, run: Streamed, read: int, terms: Terms, chunk: int, blocks: Blocks
                 ) -> None:
        """Feed a run that has taken on the first *read* tasks."""
        self.stored, self.run, self.terms, self.chunk, self.blocks = stored, run, terms, chunk, blocks
        self._note_read(read)

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
        self._note_read(self.read + len(part.tasks))

    def write_rest(self) -> None:
        """Write the rows of all tasks, in the end."""
        number = self.run.number
        rows = np.argsort(number, kind="stable")
        self._write(rows[np.searchsorted(number[rows], 0):])

    def _note_read(self, read: int) -> None:
        self.read = read
        self.run.simulation.clock.unread_from = self.stored.arrival(read)

    def _write(self, rows: np.ndarray) -> None:
        self.blocks.write(self.run.numbers(rows), self.run.results(rows))


@dataclass(frozen=True)
class ChunkedRun:
    """A finished run whose tasks are in blocks on the disk."""

    work: StoredWorkload
    fleet: Fleet
    run: Streamed
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
        return self.run.numbers(rows)

    def reasons(self) -> list[str]:
        """Return the reasons that tasks may have, each once, as they come in the task table of a run in memory."""
        return possible_reasons(self.outcome, self.work.head, self.work.of_stage)


def told_part(stored: StoredWorkload, begin: int, end: int, terms: Terms) -> Workload:
    """Return some tasks as the scheduler is told of them. Raises InputError where the one behind them comes before."""
    part = stored.part(begin, end)
    stored.refuse_before(end, part.tasks["arrival"][-1])
    return part if terms.estimates != EXACT else replace(part, tasks=part.tasks.drop("estimate", strict=False))
