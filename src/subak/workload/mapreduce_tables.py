"""Makes tables of MapReduce jobs: a map stage, and a reduce stage that waits for it.

A job is a row of numbers; whoever has such rows, from a trace or from a law, makes stages and tasks of them here.
"""
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.resources import Resource
from subak.workload.constraints import CONSTRAINT_TYPE

SLOTS = (Resource("map_slot", 1.0, "slots"), Resource("reduce_slot", 1.0, "slots"))  # Hadoop 1: two kinds
SLOT = (Resource("slot", 1.0, "slots"),)  # one kind that either runs in
NAMES = ("map", "reduce")


class AlikeJobs(NamedTuple):
    """Jobs whose map tasks are alike and whose reduce tasks are alike (HMHS, section 2.1), one row a job."""

    arrival: np.ndarray  # float64[job], seconds
    tasks: np.ndarray  # int64[job, 2], T^m and T^r; 0 for a stage that is not there
    seconds: np.ndarray  # float64[job, 2], P^m and P^r: run time of each task
    shuffle: np.ndarray | None = None  # float64[job], seconds before a reduce's run; None: left out


class Stages(NamedTuple):
    """Stages and tasks as `make_workload` takes them."""

    stages: pl.DataFrame
    tasks: pl.DataFrame


def alike_stages(jobs: AlikeJobs, resources: tuple[Resource, ...]) -> Stages:
    """Return the stages that have tasks, a job's map before its reduce, and their tasks in that order.

    Each task asks for one of *resources*: SLOTS, a kind for each stage, or SLOT.
    """
    there = (jobs.tasks > 0).ravel()
    kind = np.tile(np.array([0, 1]), len(jobs.tasks))[there]
    job = np.repeat(np.arange(len(jobs.tasks)), 2)[there]
    counts = jobs.tasks.ravel()[there]
    shuffle = None if jobs.shuffle is None else np.where(kind == 1, jobs.shuffle[job], 0.0)
    stage = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    tasks = pl.DataFrame({
        "stage": stage, "index": _indices(jobs.tasks), "arrival": jobs.arrival[job][stage],
        "run_time": jobs.seconds.ravel()[there][stage]})
    return Stages(stage_table(job, kind, resources, shuffle), tasks)


def stage_table(job: np.ndarray, kind: np.ndarray, resources: tuple[Resource, ...],
                shuffle: np.ndarray | None) -> pl.DataFrame:
    """Return stages of *job* (int[stage], a job's rows together) and *kind* (int[stage], 0 map, 1 reduce).

    A reduce waits for the map of its job, if that has one. *shuffle* is float64[stage], seconds, or None for no
    such column.
    """
    waits = (kind == 1) & (np.roll(job, 1) == job) & (np.arange(len(job)) > 0)
    columns = {resource.name: (kind == place).astype(np.float64) for place, resource in enumerate(resources)}
    if len(resources) == 1:
        columns = {resources[0].name: np.ones(len(kind))}
    table = pl.DataFrame({"job": job, "kind_row": kind, "before": np.arange(len(job)) - 1, "waits": waits, **columns})
    if shuffle is not None:
        table = table.with_columns(shuffle=shuffle)
    return table.with_columns(
        name=pl.lit(pl.Series(NAMES)).gather("kind_row"), kind=pl.lit("TASK"), priority=pl.lit(0),
        depends_on=pl.when("waits").then(pl.concat_list("before")).otherwise(pl.lit([], pl.List(pl.Int64))),
        constraints=pl.lit([], pl.List(CONSTRAINT_TYPE)),
    ).drop("kind_row", "before", "waits")


def _indices(tasks: np.ndarray) -> np.ndarray:
    """uint32[task]: the number of each task within its job, maps first."""
    sizes = tasks.sum(axis=1)
    first = np.cumsum(sizes) - sizes
    return (np.arange(int(sizes.sum())) - np.repeat(first, sizes)).astype(np.uint32)
