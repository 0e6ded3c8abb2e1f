"""What a finished run is."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from subak.placement.schedulers import Scheduler
from subak.simulator.engine.run_loop import LoopResult
from subak.simulator.engine.setup import Prepared
from subak.simulator.engine.state import Simulation
from subak.simulator.federated.simulate import Federated

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
    looked_at: float = math.nan  # of LoTES: share of the machines that it looks at for an arriving task

    @property
    def simulation(self) -> Simulation:
        """The final state."""
        return self.prepared.simulation
