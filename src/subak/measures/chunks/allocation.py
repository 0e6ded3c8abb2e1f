"""What a federation's run in chunks measures beside others: the spreads of allocation times, and what queues held."""
from pathlib import Path

import numpy as np
import polars as pl

from subak.measures import of_run as measures
from subak.measures.chunks.sketch import Sketches
from subak.measures.chunks.tally import EXACT_MAX, Columns
from subak.measures.federation import ALLOCATIONS, QueuesHeld, allocations, facts_of_spreads
from subak.measures.runs import FederationFacts, WindowFacts
from subak.simulator.outcome import Outcome


class AllocationTally:
    """What is only known of a federation's tasks, in their order, some at a time."""

    def __init__(self, window: WindowFacts, tasks: int, folder: Path) -> None:
        """Begin a run of so many *tasks*, with room in *folder*."""
        self.window, self.held = window, QueuesHeld(window)
        self.columns = Columns(ALLOCATIONS, folder) if tasks <= EXACT_MAX else None
        self.sketches = {name: Sketches() for name in ALLOCATIONS}

    def add(self, outcome: Outcome, tasks: pl.DataFrame) -> None:
        """Add the run of some tasks; *tasks* is their table."""
        self.held.add(outcome, tasks)
        counted = allocations(tasks, self.window)
        if self.columns is not None:
            self.columns.add(counted)
            return
        for name in ALLOCATIONS:
            values = counted[name].fill_null(float("nan")).to_numpy()
            self.sketches[name].add(np.zeros(values.size, np.int64), values, 1)

    def facts(self, outcome: Outcome) -> FederationFacts:
        """Return the facts of the run, which *outcome* is in the end."""
        columns = self.columns
        spreads = {name: self.sketches[name].spread(0) if columns is None else measures.spread(columns.column(name))
                   for name in ALLOCATIONS}
        return facts_of_spreads(outcome, spreads, self.held)
