"""Restricts runs to some queues, for charts."""
from dataclasses import dataclass

import polars as pl

from subak.measures.runs import Run


@dataclass(frozen=True)
class OfQueues(Run):
    """A run of whose shares only those of some queues are there."""

    queues_seen: tuple[str, ...] = ()

    def shares(self) -> pl.LazyFrame:
        """Return the shares of these queues."""
        return super().shares().filter(pl.col("queue").cast(pl.String).is_in(self.queues_seen))


def of_queues(runs: list[Run], queues: tuple[str, ...]) -> list[Run]:
    """Return the runs with the shares of some queues only."""
    return [OfQueues(run.folder, run.summary, run.held, run.settings, queues) for run in runs]
