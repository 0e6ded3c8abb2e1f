"""Keeps the jobs of some queues alone, and raises or lowers the load of a workload."""
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.nearest import did_you_mean
from subak.workload.table import TIME_0, Observed, Workload

QUEUES_NAMED_MAX = 10  # in an error
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def at_load(workload: Workload, times: float) -> Workload:
    """Return a workload whose jobs come *times* as densely: instants are divided by that, run times are as they were.

    The log's own starts and calendar are not its any more. Raises InputError where all tasks arrive at once.
    """
    if times == 1.0:
        return workload
    arrival = workload.tasks["arrival"]
    if arrival.is_empty() or arrival[0] == arrival[-1]:
        raise InputError(f"load: must be 1, not {times:g}, for {workload.provenance.name}, whose tasks all arrive at "
                         "once")
    source, seen = workload.provenance, workload.observed
    remarks = {name: value for name, value in source.notes.get("remarks", {}).items() if name != TIME_0}
    provenance = msgspec.structs.replace(
        source, origin=f"{source.origin}; at {times:g} times its load", notes={**source.notes, "remarks": remarks},
        calendar=None)
    return replace(
        workload, tasks=tasks_at_load(workload.tasks, times),
        observed=None if seen is None else Observed(seen.begin / times, seen.end / times), provenance=provenance)


def tasks_at_load(tasks: Frame, times: float) -> Frame:
    """Return tasks that arrive *times* as densely, without the starts of the log."""
    if times == 1.0:
        return tasks
    return tasks.with_columns(pl.col("arrival") * shrinking(times)).drop("recorded_start", strict=False)


def shrinking(times: float) -> float:
    """Return the factor of arrivals: Polars divides one number otherwise than several, by less than it rounds."""
    return 1.0 / times


def of_queues(workload: Workload, queues: Sequence[str]) -> Workload:
    """Return the jobs of these queues and of those below them; all of them where none is named.

    Raises InputError for a queue that no job is in.
    """
    if not queues:
        return workload
    head, number = kept_of(workload, queues)
    return replace(head, tasks=tasks_kept(workload.tasks, number))


def kept_of(workload: Workload, queues: Sequence[str]) -> tuple[Workload, pl.Series]:
    """Return a workload with jobs and stages of these queues, but all its tasks, and the new row of each stage.

    The row is null where the stage is left out. Raises InputError for a queue that no job is in.
    """
    paths = workload.jobs["queue"]
    inside = [(paths == queue) | paths.str.starts_with(f"{queue}/") for queue in queues]
    for queue, rows in zip(queues, inside, strict=True):
        if not rows.any():
            raise _unknown(workload, queue)
    source = workload.provenance
    notes = {name: value for name, value in source.notes.items() if name != "parameters"}  # a model draws all queues
    provenance = msgspec.structs.replace(source, name=f"{source.name} ({', '.join(queues)})", notes=notes)
    jobs = np.any([rows.to_numpy() for rows in inside], axis=0)
    stages = jobs[workload.stages["job"].to_numpy()]
    new_job, new_stage = (pl.Series((np.cumsum(rows) - rows).astype(np.uint32)) for rows in (jobs, stages))
    kept = workload.stages.filter(stages)
    kept = kept.with_columns(new_job.gather(kept["job"]).alias("job"), _renumbered(kept["depends_on"], new_stage))
    return (replace(workload, jobs=workload.jobs.filter(jobs), stages=kept, provenance=provenance),
            new_stage.set(pl.Series(~stages), None))


def tasks_kept(tasks: pl.DataFrame, number: pl.Series) -> pl.DataFrame:
    """Return the tasks of stages that have a *number*, by that; rows keep their order."""
    stage = number.gather(tasks["stage"])
    return tasks.with_columns(stage.alias("stage")).filter(stage.is_not_null())


def _unknown(workload: Workload, queue: str) -> InputError:
    known = workload.jobs["queue"].unique().sort()
    firsts = known.str.split("/").list.first().unique().sort().to_list()
    named = ", ".join(firsts[:QUEUES_NAMED_MAX]) + (" and others" if len(firsts) > QUEUES_NAMED_MAX else "")
    return InputError(f"only_queues: no job is in queue {queue!r}; the first parts of queues are {named}"
                      + did_you_mean(queue, [*firsts, *known.to_list()]))


def _renumbered(lists: pl.Series, new: pl.Series) -> pl.Series:
    """Return lists of rows, each by its *new* number."""
    table = pl.DataFrame({"row": np.arange(len(lists)), "old": lists})
    found = table.explode("old").drop_nulls("old")
    found = found.with_columns(new=new.gather(found["old"])).group_by("row", maintain_order=True).agg("new")
    none = pl.lit([], pl.List(pl.UInt32))
    return table.join(found, on="row", how="left", maintain_order="left").with_columns(
        pl.col("new").fill_null(none))["new"].alias(lists.name)
