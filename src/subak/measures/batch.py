"""What is said of a run of MapReduce jobs beside the usual: how near its makespan is to a bound, and who ran when."""
from dataclasses import replace

import numpy as np
import polars as pl

from subak.errors import InputError, RunError
from subak.fleet.table import Fleet
from subak.placement.mapreduce.batch import find_batch
from subak.placement.mapreduce.bound import makespan_bound
from subak.workload.maps_and_reduces import fault, reduce_stages
from subak.workload.table import Workload

PAIRS_MAX = 20_000_000  # of jobs and machines: beyond, the bound would take minutes
MACHINES_DRAWN = 40  # of each kind
KINDS = ("map", "reduce")


def has_bound(workload: Workload, fleet: Fleet) -> bool:
    """Whether a workload is one of MapReduce jobs, by stages that wait or their names, of a size to be bounded."""
    small = len(workload.jobs) * len(fleet.machines) <= PAIRS_MAX
    is_batch = workload.has_dependencies or bool(workload.stages["name"].is_in(KINDS).all())
    return small and is_batch and not fault(workload)


def bound_seconds(workload: Workload, fleet: Fleet, slow_start: bool = False) -> float | None:
    """Return the lower bound on the makespan, None where there is none: the fleet changes, say.

    With a *slow_start*, inputs are copied while maps still run, so copying is left out of the bound.
    """
    try:
        batch = find_batch(workload, fleet)
        if slow_start:
            batch = replace(batch, reduces=replace(batch.reduces, shuffle=np.zeros(len(workload.jobs))))
        bound = makespan_bound(batch, workload).seconds
    except (InputError, RunError):  # no plan, or numbers too far apart for a program: the run itself needs neither
        return None
    return bound if bound > 0 else None


def stints(tasks: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """Return kind, machine, slot, job, begin, end (s), tasks: which job's tasks a slot ran one right after the other.

    Of the first 40 machines, in the fleet's order, that ran maps, and of the first 40 that ran reduces.
    """
    is_reduce = pl.Series("is_reduce", reduce_stages(workload)[workload.tasks["stage"].to_numpy()])
    ran = tasks.with_columns(is_reduce).filter(pl.col("finish").is_not_null()).with_columns(
        pl.col("machine").to_physical().alias("row"))
    parts = [_of_kind(ran.filter(pl.col("is_reduce") == bool(number)), kind) for number, kind in enumerate(KINDS)]
    return pl.concat(parts).with_columns(workload.jobs["job"].gather(pl.concat(parts)["job"]).alias("job"))


def _of_kind(ran: pl.DataFrame, kind: str) -> pl.DataFrame:
    drawn = ran["row"].unique().sort().head(MACHINES_DRAWN)
    ran = ran.filter(pl.col("row").is_in(drawn.implode())).sort("row", "start", "finish", "index")
    ran = ran.with_columns(pl.Series("slot", slots(*(ran[name].to_numpy() for name in ("row", "start", "finish"))),
                                     dtype=pl.UInt32)).sort("row", "slot", "start", maintain_order=True)
    same = [pl.col(name) == pl.col(name).shift(1) for name in ("row", "slot", "job")]
    follows = pl.all_horizontal(*same, pl.col("start") <= pl.col("finish").shift(1)).fill_null(False)
    return ran.with_columns((~follows).cum_sum().alias("stint")).group_by("stint", maintain_order=True).agg(
        pl.lit(kind).alias("kind"), pl.col("machine").first().cast(pl.String), pl.col("slot").first(),
        pl.col("job").first(), pl.col("start").first().alias("begin"), pl.col("finish").last().alias("end"),
        pl.len().cast(pl.UInt32).alias("tasks")).drop("stint")


def slots(machine: np.ndarray, start: np.ndarray, finish: np.ndarray) -> list[int]:
    """Return the slot of each task, the lowest that is free when it starts; tasks are sorted by machine and start."""
    taken: list[int] = []
    free: list[float] = []  # when each slot of the present machine is free
    for row, (of_machine, begin, end) in enumerate(zip(machine.tolist(), start.tolist(), finish.tolist(), strict=True)):
        if row == 0 or of_machine != machine[row - 1]:
            free = []
        slot = next((number for number, time in enumerate(free) if time <= begin), len(free))
        free[slot : slot + 1] = [end]
        taken.append(slot)
    return taken
