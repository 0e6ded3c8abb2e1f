"""Measures a run of MapReduce jobs: how near its makespan is to a bound, and which machine ran what when."""
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet
from subak.placement.mapreduce.batch import find_batch
from subak.placement.mapreduce.bound import Bound, makespan_bound
from subak.workload.maps_and_reduces import fault, reduce_stages
from subak.workload.table import Workload

MACHINES_DRAWN = 40  # of each kind
MISSED_LEAST = 1e-6  # of a bound: less is rounding
KINDS = ("map", "reduce")


def has_bound(workload: Workload) -> bool:
    """Whether a workload is one of MapReduce jobs, by stages that wait or their names."""
    is_batch = workload.has_dependencies or bool(workload.stages["name"].is_in(KINDS).all())
    return is_batch and not fault(workload)


class LowerBound(NamedTuple):
    """What no schedule's makespan is less than."""

    seconds: float | None  # None where there is none
    note: str = ""  # why there is none, or how far it may be below what was looked for


def lower_bound(workload: Workload, fleet: Fleet, slow_start: bool = False) -> LowerBound:
    """Return the lower bound on the makespan; none where the fleet changes, say.

    With a *slow_start*, inputs are copied while maps still run, so copying is left out of the bound.
    """
    try:
        batch = find_batch(workload, fleet)
        if slow_start:
            batch = replace(batch, reduces=replace(batch.reduces, shuffle=np.zeros(len(workload.jobs))))
        bound = makespan_bound(batch, workload)
    except InputError as error:  # no plan: the run itself needs none
        return LowerBound(None, f"none: {error}")
    return LowerBound(bound.seconds, _missed(bound)) if bound.seconds > 0 else LowerBound(None)


def _missed(bound: Bound) -> str:
    if bound.missed <= MISSED_LEAST:
        return ""
    limit = "by an unknown share" if math.isinf(bound.missed) else f"by up to {bound.missed:.1%}"
    fault = bound.maps.fault or bound.reduces.fault
    return f"cut short: its linear programs' optimum may be above it {limit}" + (f" ({fault})" if fault else "")


def bound_seconds(workload: Workload, fleet: Fleet, slow_start: bool = False) -> float | None:
    """Return the seconds of `lower_bound`."""
    return lower_bound(workload, fleet, slow_start).seconds


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
    """Return the slot of each task, the lowest that is free when it starts.

    *machine*: int[task]; *start*, *finish*: float64[task], seconds; tasks are sorted by machine and start.
    """
    taken: list[int] = []
    free: list[float] = []  # when each slot of the present machine is free
    for row, (of_machine, begin, end) in enumerate(zip(machine.tolist(), start.tolist(), finish.tolist(), strict=True)):
        if row == 0 or of_machine != machine[row - 1]:
            free = []
        slot = next((number for number, time in enumerate(free) if time <= begin), len(free))
        free[slot : slot + 1] = [end]
        taken.append(slot)
    return taken
