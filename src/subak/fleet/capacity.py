"""Sums the capacity of all present machines over time."""
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.fleet.table import Fleet


class Capacity(NamedTuple):
    """What all machines that are there have together."""

    time: np.ndarray  # float64[step], seconds, from when on; the first is 0
    amount: np.ndarray  # int64[resource, step], units


def capacity_steps(fleet: Fleet) -> Capacity:
    """Return what all machines that are there have together, from time 0 on, as they come, go and change."""
    names = [resource.name for resource in fleet.resources]
    amounts = [(pl.col(name).cast(pl.Int64) * pl.col("present")).alias(name) for name in names]
    first = fleet.machines.with_row_index("machine_row").select(
        pl.lit(0.0).alias("time"), pl.col("machine_row").alias("machine"), *amounts)
    states = pl.concat([first, fleet.changes.select("time", pl.col("machine").cast(pl.UInt32), *amounts)])
    changed = states.with_columns(pl.col(name).diff().over("machine").fill_null(pl.col(name)) for name in names)
    steps = changed.group_by("time").agg(pl.col(name).sum() for name in names).sort("time")
    return Capacity(steps["time"].to_numpy(), np.cumsum([steps[name].to_numpy() for name in names], axis=1))
