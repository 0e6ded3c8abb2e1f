"""What charts over time show of a run: up to the last arrival, since afterwards it only drains."""
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import polars as pl

from subak.measures.runs import Run
from subak.tables import scan_table

ROWS_MIN = 12  # of a timeline, below which a window says nothing and the whole run is shown


@dataclass(frozen=True)
class Seen(Run):
    """A run of which only what happened before an instant is seen, and of shares only those of some queues."""

    until: float = float("inf")  # seconds
    only: tuple[str, ...] | None = None  # queues

    def tasks(self) -> pl.LazyFrame:
        """Return the tasks that started by then."""
        return super().tasks().filter(pl.col("start") <= self.until)

    def timeline(self) -> pl.LazyFrame:
        """Return the timeline, its last interval cut short."""
        return self._cut(super().timeline())

    def shares(self) -> pl.LazyFrame:
        """Return the shares of the queues that are seen."""
        shares = self._cut(super().shares())
        return shares if self.only is None else shares.filter(pl.col("queue").cast(pl.String).is_in(self.only))

    def _cut(self, table: pl.LazyFrame) -> pl.LazyFrame:
        left = self.until - pl.col("time")
        return table.filter(pl.col("time") < self.until).with_columns(pl.min_horizontal("span", left).alias("span"))


def window_end(runs: list[Run]) -> float | None:
    """Return the last arrival of all runs, in seconds; None where hardly anything had happened by then."""
    files = [run.folder / "tasks.parquet" for run in runs]
    until = max((_last_arrival(path, path.stat().st_mtime_ns) for path in files), default=0.0)
    rows = min((run.timeline().filter(pl.col("time") < until).select(pl.len()).collect().item() for run in runs),
               default=0)
    return until if rows >= ROWS_MIN else None


@lru_cache(maxsize=1024)
def _last_arrival(tasks: Path, _changed: int) -> float:
    """Return a run's last arrival: every chart over time asks for it, and the table of a month is long."""
    arrival = scan_table(tasks).select(pl.col("arrival").max()).collect().item()
    return 0.0 if arrival is None else float(arrival)


def seen(runs: list[Run], queues: tuple[str, ...] | None = None) -> list[Run]:
    """Return the runs as charts over time show them."""
    until = window_end(runs)
    return [Seen(run.folder, run.summary, float("inf") if until is None else until, queues) for run in runs]
