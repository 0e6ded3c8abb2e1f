"""The outcome of a finished run, as arrays."""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from subak.fleet.table import Fleet
from subak.placement.schedulers import Scheduler
from subak.simulator.engine.run_loop import LoopResult
from subak.simulator.engine.setup import Prepared
from subak.simulator.engine.state import Simulation
from subak.simulator.federated.simulate import Federated
from subak.workload.stored import HeldWorkload, StoredWorkload
from subak.workload.table import Workload

if TYPE_CHECKING:  # scipy and HiGHS, which plans are made with, take a while to load
    from subak.placement.lotes.plan import Plan


@dataclass(frozen=True)
class Outcome:
    """A finished run: the final state of every task, the timeline and the lost attempts."""

    prepared: Prepared
    scheduler: Scheduler
    seed: int
    loop_result: LoopResult
    federated: Federated | None = None  # of a federation: its settings, network and roles
    plans: tuple[Plan, ...] = ()  # of a scheduler that goes by plans: those it made, in order
    plans_missed: tuple[str, ...] = ()  # why one could not be made during the run, each time; that before went on
    search_moves: int | None = None  # that a search for a better plan tried
    decisions: int | None = None  # times that a policy in plain Python was called; None: of any other
    looked_at: float = math.nan  # of LoTES: share of the machines that it looks at for an arriving task

    @property
    def simulation(self) -> Simulation:
        """The final state."""
        return self.prepared.simulation


class Part(NamedTuple):
    """What became of some tasks of a run, that stand together in the workload."""

    workload: Workload  # with these tasks alone
    outcome: Outcome  # whose lost attempts are theirs, by their rows
    lost: np.ndarray  # int64[attempt], the places of these attempts among all that were lost


class Finished(Protocol):
    """A finished run, whose tasks come in parts."""

    @property
    def outcome(self) -> Outcome:
        """The run; of tasks that are not in memory it says nothing."""

    @property
    def work(self) -> HeldWorkload | StoredWorkload:
        """What was scheduled."""

    @property
    def fleet(self) -> Fleet:
        """What it was scheduled on."""

    def parts(self) -> Iterator[Part]:
        """Return the tasks in the order of the workload."""

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers in the workload of the tasks in some rows of the state, int64[row]."""

    def reasons(self) -> list[str] | None:
        """Return the reasons that tasks may have, in one order for all parts; None where there is one part."""


@dataclass(frozen=True)
class HeldRun:
    """A finished run in memory: one part."""

    outcome: Outcome
    work: HeldWorkload
    fleet: Fleet

    def parts(self) -> Iterator[Part]:
        """Return all tasks."""
        lost = sum(part.shape[1] for part in self.outcome.loop_result.losses)
        yield Part(self.work.head, self.outcome, np.arange(lost))

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows: a task's number is its row."""
        return rows

    def reasons(self) -> None:
        """Return None: there is one part."""
