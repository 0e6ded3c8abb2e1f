"""A central scheduler's run in chunks: drops rows of ended tasks, appends arriving ones."""
from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import polars as pl

from subak.errors import RunError
from subak.fleet.table import Fleet
from subak.kernels.arrays import arrays_of, with_arrays
from subak.placement.fair import Fair
from subak.placement.schedulers import Scheduler
from subak.queues.leaves import leaves_of
from subak.queues.tree import tree_of_paths
from subak.simulator.central.engines import central_loop
from subak.simulator.chunks.blocks import RESULT, results, with_results
from subak.simulator.chunks.rows import open_rows, with_arriving, without_ended
from subak.simulator.engine.run_loop import LoopResult
from subak.simulator.engine.setup import Prepared, Terms, arriving
from subak.simulator.engine.state import Simulation
from subak.simulator.outcome import Outcome
from subak.workload.stored import StoredWorkload
from subak.workload.table import Workload


class CentralRun:
    """A run whose rows are the open tasks, in the order of the workload; see `Driven`."""

    kind = RESULT

    def __init__(self, first: Workload, stored: StoredWorkload, fleet: Fleet, scheduler: Scheduler, terms: Terms
                 ) -> None:
        terms = msgspec.structs.replace(terms, arrival_of_stage=stored.arrival_of_stage)
        self.fleet, self.scheduler, self.terms = fleet, scheduler, terms
        loop = central_loop(first, fleet, scheduler, terms)
        assert loop.run is not None
        self.prepared, self.run, self.states = loop.prepared, loop.run, loop.states
        self.simulation = _with_all_of_stages(loop.prepared.simulation, stored.of_stage)
        self.leaf_of_stage = _leaves(stored, terms, self.prepared) if self._is_fair else np.zeros(0, np.int32)
        self.number, self.last_arrival = np.arange(len(first.tasks)), stored.last
        self.read_by_now = self.number.size

    @property
    def arrived_before(self) -> int:
        """How many tasks arrived that are not among those the state counts."""
        return self.read_by_now - self.number.size

    @property
    def step(self) -> Callable[[int], int]:
        """What runs a number of steps, and says why it came back."""
        sim, states = self.simulation, self.states
        return lambda budget: self.run(sim, *states, budget)

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers in the workload of the tasks in some rows."""
        return self.number[rows]

    def ended(self) -> np.ndarray:
        """Return the rows of tasks to which nothing will happen any more, in the order of the workload."""
        return np.delete(np.arange(self.number.size), open_rows(self.simulation))

    def results(self, rows: np.ndarray) -> np.ndarray:
        """Return what became of the tasks of some rows."""
        return results(self.simulation, rows)

    def drop(self, rows: np.ndarray) -> None:
        """Go on without the rows of tasks that ended."""
        kept = np.delete(np.arange(self.number.size), rows)
        self.simulation, self.states = without_ended(self.simulation, self.states, kept)
        self.number = self.number[kept]

    def read(self, begin: int, part: Workload) -> None:
        """Take on the tasks from number *begin* on."""
        fresh = arriving(self.prepared, part, self.fleet, self.terms)
        leaf = self.leaf_of_stage[part.tasks["stage"].to_numpy()] if self._is_fair else self.leaf_of_stage
        self.simulation, self.states = with_arriving(self.simulation, self.states, fresh, leaf)
        self.read_by_now = begin + len(part.tasks)
        self.number = np.concatenate([self.number, np.arange(begin, self.read_by_now)])

    def kept(self) -> dict[str, np.ndarray]:
        """Return what another run like this one goes on from."""
        return {"number": self.number, **arrays_of((self.simulation, self.states), "state")}

    def go_on_from(self, kept: dict[str, np.ndarray]) -> None:
        """Be where another run was. Raises KeyError where anything is missing."""
        self.number = kept["number"]
        self.simulation, self.states = with_arrays((self.simulation, self.states), kept, "state")

    def broken(self) -> Exception:
        """Word that a rule was broken."""
        return RunError(f"scheduler {self.scheduler.name} broke a rule; this is a defect of Subak, please report it")

    def outcome(self, result: LoopResult) -> Outcome:
        """Return the run, which has come to its end, of the tasks that have rows."""
        return Outcome(replace(self.prepared, simulation=self.simulation), self.scheduler, self.terms.seed, result)

    def outcome_of(self, whole: Outcome, part: Workload, values: np.ndarray) -> Outcome:
        """Return the run of some tasks; *values* are their results."""
        sim = with_results(arriving(whole.prepared, part, self.fleet, self.terms), values)
        return replace(whole, prepared=replace(whole.prepared, simulation=sim))

    @property
    def _is_fair(self) -> bool:
        return any(isinstance(state, Fair) for state in self.states)


def _with_all_of_stages(sim: Simulation, of_stage: np.ndarray) -> Simulation:
    """Let stages have all their tasks left, not those of one chunk."""
    if sim.stages.left.size == 0:
        return sim
    return sim._replace(stages=sim.stages._replace(left=of_stage.astype(np.int32)))


def _leaves(stored: StoredWorkload, terms: Terms, prepared: Prepared) -> np.ndarray:
    """Return int32[stage]: the leaf of a stage's tasks."""
    head = stored.head
    each = replace(head, tasks=pl.DataFrame({"stage": np.arange(len(head.stages))}))
    tree = tree_of_paths(head.jobs["queue"].to_list(), terms.queues)
    return leaves_of(each, prepared.shapes.of_stage, tree, stored.arrival_of_stage).of_task
