"""Finds the map and reduce stages of jobs, and whether a workload is all MapReduce.

A stage that waits for another is a reduce; so is one that waits for none and is called "reduce". The others are maps.
"""
import numpy as np
import polars as pl

from subak.workload.table import Workload

REDUCE = "reduce"  # the name by which a stage that waits for none is a reduce all the same


def reduce_stages(workload: Workload) -> np.ndarray:
    """Return bool[stage]: which stages are reduces."""
    waits = pl.col("depends_on").list.len() > 0
    return workload.stages.select((waits | (pl.col("name") == REDUCE)).fill_null(False).alias("reduce"))[
        "reduce"].to_numpy()


def fault(workload: Workload) -> str:
    """Return what keeps a workload from being one of MapReduce jobs, with job and stages; empty when it is one.

    A job has at most one stage of maps and one of reduces, and each of the tasks of a stage is to end by itself.
    """
    kinds = workload.stages.select("job", "name", "kind", pl.Series("reduce", reduce_stages(workload)))
    kinds = kinds.with_columns(name=pl.col("name").fill_null(""))
    service = kinds.filter(pl.col("kind") == "SERVICE")
    if not service.is_empty():
        return f"{_job(workload, service)} has a stage of services, {service['name'][0]!r}, which end only when stopped"
    twice = kinds.filter(pl.struct("job", "reduce").is_duplicated())
    if twice.is_empty():
        return ""
    names = twice.filter((pl.col("job") == twice["job"][0]) & (pl.col("reduce") == twice["reduce"][0]))["name"]
    what = "that wait for others" if twice["reduce"][0] else "that wait for none"
    return f"{_job(workload, twice)} has {len(names)} stages {what}, {', '.join(map(repr, names))}"


def _job(workload: Workload, stages: pl.DataFrame) -> str:
    return f"job {workload.jobs['job'][int(stages['job'][0])]!r}"
