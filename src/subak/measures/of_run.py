"""Computes the measures in summary.json from the tables written beside it."""
import math

import numpy as np
import polars as pl

from subak.fleet.locality import LEVELS as PLACES
from subak.measures.runs import FailureFacts, Reason, Spread, Summary, Waiting
from subak.placement.claims import STATUSES
from subak.workload.table import Workload
from subak.workload.tasks import SLOWDOWN_FLOOR_S

LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)


def place_counts(tasks: pl.DataFrame) -> dict[str, int]:
    """Return how many tasks ran node-local, rack-local and off-rack, as Hadoop's counters of a job do.

    Of those that started and of which it is known where their input lies; empty where there is none.
    """
    return _counted(tasks["locality"].drop_nulls(), PLACES) if "locality" in tasks.columns else {}


def locality(counts: dict[str, int]) -> dict[str, float]:
    """Return the parts of all that the counts are; empty where nothing was counted."""
    total = sum(counts.values())
    return {level: count / total for level, count in counts.items()} if total else {}


def slowdowns(tasks: pl.DataFrame) -> pl.Expr:
    """Return the bounded slowdown, as it stands in the column `slowdown` where it has been worked out already."""
    return pl.col("slowdown") if "slowdown" in tasks.columns else bounded_slowdown()


def bounded_slowdown() -> pl.Expr:
    """Return (finish - ready) / run time, run times under 10 s counted as 10 s, and at least 1; null until it finished.

    What was lost with a machine counts: the task was in the system all the while (Feitelson's bounded slowdown).
    """
    longer = pl.max_horizontal("run_time", pl.lit(SLOWDOWN_FLOOR_S))
    return ((pl.col("finish") - pl.col("ready")) / longer).clip(lower_bound=1.0)


def spread(values: pl.Series) -> Spread:
    """Return mean, median, 90th, 95th, 99th and 99.9th percentile and maximum, without the nulls.

    A percentile is the least value that at least that share of the values does not exceed (nearest rank).
    """
    values = values.drop_nulls() if values.null_count() else values
    values = pl.Series(np.sort(values.to_numpy()))  # several numbers at a time
    if values.is_empty():
        return Spread()
    median, p90, p95, p99, p999 = (_number(values[math.ceil(level * len(values)) - 1]) for level in LEVELS)
    return Spread(_number(values.mean()), median, p90, p99, p999, _number(values.max()), p95)


def makespan(tasks: pl.DataFrame) -> float | None:
    """Return the last finish minus the first arrival of all tasks, None when nothing finished."""
    last = tasks["finish"].max()
    return None if last is None else _number(last) - _number(tasks["arrival"].min())


def gap(summary: Summary, bound: float | None) -> float | None:
    """Return by what share of the *bound* (s) the makespan is above it, None unless every task finished."""
    finished = summary.status.get("FINISHED", 0) == sum(summary.status.values())
    return summary.makespan / bound - 1.0 if finished and bound and summary.makespan is not None else None


def utilisation(timeline: pl.DataFrame, resources: list[str]) -> dict[str, float | None]:
    """Return per resource the used amount over the present capacity, over the whole run."""
    return {name: _ratio(timeline, f"used_{name}", f"capacity_{name}") for name in resources}


def stranded(timeline: pl.DataFrame, resources: list[str]) -> dict[str, float | None]:
    """Return per resource the share of capacity that was free but of no use to the smallest waiting task."""
    return {name: _ratio(timeline, f"stranded_{name}", f"capacity_{name}") for name in resources}


def idle_while_waiting(timeline: pl.DataFrame, resources: list[str]) -> dict[str, float | None]:
    """Return per resource the share of capacity that was free while tasks waited, whatever the reason.

    An interval in which fewer than one task waited in the mean counts as much as that. None where nothing waited.
    """
    part = timeline.with_columns(span=pl.col("span") * pl.col("waiting").clip(upper_bound=1.0))
    used = {name: _ratio(part, f"used_{name}", f"capacity_{name}") for name in resources}
    return {name: None if share is None else max(1.0 - share, 0.0) for name, share in used.items()}


def overcommitted(timeline: pl.DataFrame, resources: list[str]) -> dict[str, float]:
    """Return, of the resources of which more was used than there was, the largest mean of an interval, as a share."""
    most = {name: _number((timeline[f"used_{name}"] / timeline[f"capacity_{name}"]).max()) for name in resources}
    return {name: share for name, share in most.items() if share > 1}


def waiting(timeline: pl.DataFrame) -> Waiting:
    """Return the mean over time and the largest number of waiting tasks."""
    span = _number(timeline["span"].sum())
    mean = _number((timeline["waiting"] * timeline["span"]).sum()) / span if span > 0 else None
    return Waiting(mean, _number(timeline["waiting_max"].max()))


def status_counts(tasks: pl.DataFrame) -> dict[str, int]:
    """Return how many tasks stand how at the end; every task is in exactly one."""
    return _counted(tasks["status"], STATUSES)


def outcome_counts(tasks: pl.DataFrame) -> FailureFacts | None:
    """Return how the tasks ended that did, and how many attempts failed; None for a run without a plan of failures."""
    if "attempts_failed" not in tasks.columns:
        return None
    return FailureFacts(_counted(tasks["outcome"].drop_nulls()), int(tasks["attempts_failed"].sum()))


def recorded_counts(tasks: pl.DataFrame, workload: Workload) -> dict[str, int]:
    """Return how the trace says that those tasks ended that finished in the run; empty where it says nothing."""
    if "outcome" not in workload.tasks.columns:
        return {}
    counts = _counted(workload.tasks["outcome"].filter(tasks["status"] == "FINISHED").drop_nulls())
    return {name: count for name, count in counts.items() if count}


def _counted(words: pl.Series, known: tuple[str, ...] = ()) -> dict[str, int]:
    """Return how often each word occurs: those of an Enum, and those *known*."""
    found = dict(words.value_counts().iter_rows())
    names = words.dtype.categories.to_list() if isinstance(words.dtype, pl.Enum) else known
    return {name: int(found.get(name, 0)) for name in names}


def reasons(tasks: pl.DataFrame) -> tuple[Reason, ...]:
    """Return why tasks are not running or done, the most frequent reason first."""
    counted = (
        tasks.filter(pl.col("reason").is_not_null())
        .group_by(pl.col("status").cast(pl.String), pl.col("reason").cast(pl.String))
        .agg(pl.len().alias("tasks"))
        .sort(["tasks", "status", "reason"], descending=[True, False, False])
    )
    return tuple(Reason(**row) for row in counted.iter_rows(named=True))


def _ratio(timeline: pl.DataFrame, part: str, whole: str) -> float | None:
    if timeline[part].null_count() == len(timeline):
        return None
    total = _number((timeline[whole] * timeline["span"]).sum())
    return _number((timeline[part] * timeline["span"]).sum()) / total if total > 0 else None


def _number(value: object) -> float:
    return float(value or 0.0)  # type: ignore[arg-type]
