"""The course of a run in chunks: rows of those who ended go to their blocks, who arrives next comes behind those left.

One chunk: (1) the loop runs until the next to arrive has no row; (2) rows of tasks that ended are written out; (3) the
state is left with those that are open, which is also what a checkpoint holds; (4) the next chunk is read behind them.
"""
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from subak.errors import RunError
from subak.fleet.table import Fleet
from subak.placement.claims import TASK_NOT_ARRIVED
from subak.placement.fair import Fair
from subak.placement.schedulers import Scheduler
from subak.queues.fair_orders import leaves_of
from subak.queues.tree import tree_of_paths
from subak.simulator.central.engines import central_loop
from subak.simulator.chunks.blocks import Blocks
from subak.simulator.chunks.rows import open_rows, with_arriving, without_ended
from subak.simulator.engine.run_loop import LoopResult, Progress, Timeline, run_on
from subak.simulator.engine.setup import Prepared, Terms, arriving
from subak.simulator.engine.state import (
    ACCOUNTED,
    EVENTS,
    INTERVAL,
    LOOP_UNREAD,
    UNREAD_FROM,
    Simulation,
)
from subak.simulator.estimate_words import EXACT
from subak.simulator.outcome import Outcome
from subak.workload.chunks import StoredWorkload
from subak.workload.table import Workload


class Course:
    """A run between two chunks, or in one."""

    def __init__(
        self, stored: StoredWorkload, fleet: Fleet, scheduler: Scheduler, terms: Terms, chunk: int, blocks: Blocks,
        fixed: bool,
    ) -> None:
        self.stored, self.fleet, self.scheduler, self.terms = stored, fleet, scheduler, terms
        self.chunk, self.blocks = chunk, blocks
        loop = central_loop(self._part(0, chunk), fleet, scheduler, terms)
        assert loop.run is not None
        self.prepared, self.run, self.states = loop.prepared, loop.run, loop.states
        self.simulation = _with_all_of_stages(loop.prepared.simulation, stored.of_stage)
        self.leaf_of_stage = _leaves(stored, terms, self.prepared) if self._is_fair else np.zeros(0, np.int32)
        self.read = min(chunk, stored.tasks)
        self.number = np.arange(self.read)  # int64[row], in the workload
        self.timeline = Timeline(self.simulation, fixed)
        self.losses: list[np.ndarray] = []  # as of `LoopResult`, with numbers in the workload
        self.seconds = 0.0
        self.simulation.clock[UNREAD_FROM] = stored.arrival(self.read)

    def advance(self, on_progress: Callable[[Progress], None] | None) -> bool:
        """Run as far as there are rows; return whether the end has been reached."""
        sim, states, losses = self.simulation, self.states, []  # type: ignore[var-annotated]
        began = time.perf_counter()
        why = run_on(sim, lambda budget: self.run(sim, *states, budget), self.timeline, losses,
                     self._told(on_progress), None, self._broken)
        self.seconds += time.perf_counter() - began
        for each in losses:
            each[0] = self.number[each[0].astype(np.int64)]
            self.losses += [each] if each.size else []
        if why == LOOP_UNREAD:
            return False
        self.blocks.write(self.number, sim, np.arange(self.number.size))
        return True

    def drop_ended(self) -> None:
        """Write the rows of tasks that ended, and go on without them."""
        sim, kept = self.simulation, open_rows(self.simulation)
        ended = np.delete(np.arange(self.number.size), kept)
        self.blocks.write(self.number[ended], sim, ended)
        self.simulation, self.states = without_ended(sim, self.states, kept)
        self.number = self.number[kept]

    def read_on(self) -> None:
        """Read the next chunk."""
        end = min(self.read + self.chunk, self.stored.tasks)
        part = self._part(self.read, end)
        fresh = arriving(self.prepared, part, self.fleet, self.terms)
        leaf = self.leaf_of_stage[part.tasks["stage"].to_numpy()] if self._is_fair else self.leaf_of_stage
        self.simulation, self.states = with_arriving(self.simulation, self.states, fresh, leaf)
        self.number = np.concatenate([self.number, np.arange(self.read, end)])
        self.read = end
        self.simulation.clock[UNREAD_FROM] = self.stored.arrival(end)

    def ended(self) -> "ChunkedOutcome":
        """Return the run, which has come to its end."""
        sim = self.simulation
        losses = self.losses or [np.zeros((4, 0))]
        result = LoopResult(self.timeline.rows(), float(sim.clock[INTERVAL]), float(sim.clock[ACCOUNTED]), losses,
                            int(sim.counts[EVENTS]), self.seconds)
        outcome = Outcome(replace(self.prepared, simulation=sim), self.scheduler, self.terms.seed, result)
        return ChunkedOutcome(self.stored, self.fleet, self.terms, outcome, self.blocks)

    @property
    def _is_fair(self) -> bool:
        return any(isinstance(state, Fair) for state in self.states)

    def _part(self, begin: int, end: int) -> Workload:
        """Return some tasks as the scheduler is told of them."""
        part = self.stored.part(begin, end)
        if self.terms.estimates != EXACT:
            return part
        return replace(part, tasks=part.tasks.drop("estimate", strict=False))

    def _told(self, on_progress: Callable[[Progress], None] | None) -> Callable[[Progress], None] | None:
        """Let *on_progress* hear of the whole run."""
        if on_progress is None:
            return None
        without_row = self.read - self.number.size
        return lambda found: on_progress(replace(
            found, last_arrival=self.stored.last, tasks_arrived=without_row + found.tasks_arrived))

    def _broken(self) -> Exception:
        return RunError(f"scheduler {self.scheduler.name} broke a rule; this is a defect of Subak, please report it")


@dataclass(frozen=True)
class ChunkedOutcome:
    """A finished run whose tasks are in blocks on the disk."""

    stored: StoredWorkload
    fleet: Fleet
    terms: Terms
    outcome: Outcome  # of the tasks that were open last; the losses are all there were, with numbers in the workload
    blocks: Blocks

    def parts(self) -> Iterator[tuple[Workload, Outcome]]:
        """Return the run of each block of tasks, in order, with their workload."""
        for block, begin, end in self.blocks.spans():
            workload = self.stored.part(begin, end)
            yield workload, self._outcome(workload, block, begin, end)

    def places_of_lost(self, begin: int, end: int) -> np.ndarray:
        """Return int64[attempt]: which lost attempts are of tasks from *begin* to before *end*."""
        task = np.hstack(self.outcome.loop_result.losses)[0]
        return np.flatnonzero((task >= begin) & (task < end))

    def _outcome(self, workload: Workload, block: int, begin: int, end: int) -> Outcome:
        whole, result = self.outcome, self.blocks.read(block)
        fresh = arriving(whole.prepared, workload, self.fleet, self.terms)
        came = result["status"] != TASK_NOT_ARRIVED
        progress = {name: np.where(came, result[name], getattr(fresh.progress, name)).astype(
            getattr(fresh.progress, name).dtype) for name in ("ready", "start", "machine", "attempts")}
        sim = fresh._replace(
            progress=fresh.progress._replace(**progress),
            claims=fresh.claims._replace(status=np.where(came, result["status"], fresh.claims.status)))
        lost = np.hstack(whole.loop_result.losses)[:, self.places_of_lost(begin, end)]
        lost[0] -= begin
        return replace(whole, prepared=replace(whole.prepared, simulation=sim),
                       loop_result=replace(whole.loop_result, losses=[lost]))


def _with_all_of_stages(sim: Simulation, of_stage: np.ndarray) -> Simulation:
    """Let stages have all their tasks left, not those of one chunk."""
    if sim.stages.left.size == 0:
        return sim
    return sim._replace(stages=sim.stages._replace(left=of_stage.astype(np.int32)))


def _leaves(stored: StoredWorkload, terms: Terms, prepared: Prepared) -> np.ndarray:
    """Return int32[stage]: the leaf of a stage's tasks."""
    head = stored.head
    each = replace(head, tasks=pl.DataFrame({"stage": np.arange(len(head.stages))}))
    return leaves_of(each, prepared.shapes.of_stage, tree_of_paths(head.jobs["queue"].to_list(), terms.queues)).of_task


def arrays_of(state: Any, name: str = "") -> dict[str, np.ndarray]:
    """Return every array of a state of named tuples, by its place in them."""
    if isinstance(state, np.ndarray):
        return {name: state}
    fields = state._asdict() if hasattr(state, "_asdict") else dict(enumerate(state)) if type(state) is tuple else {}
    return {place: array for key, each in fields.items() for place, array in arrays_of(each, f"{name}/{key}").items()}


def with_arrays(state: Any, arrays: dict[str, np.ndarray], name: str = "") -> Any:
    """Return a state with *arrays* (by `arrays_of`) in the place of its own."""
    if isinstance(state, np.ndarray):
        return arrays[name]
    if hasattr(state, "_asdict"):
        return type(state)(*(with_arrays(each, arrays, f"{name}/{key}") for key, each in state._asdict().items()))
    if type(state) is tuple:
        return tuple(with_arrays(each, arrays, f"{name}/{key}") for key, each in enumerate(state))
    return state
