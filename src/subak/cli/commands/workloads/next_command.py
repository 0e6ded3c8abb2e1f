"""Names the command to type after a conversion of Slurm's accounting: `subak size`, on a kind that holds every task."""
import math
import shlex
from pathlib import Path

import numpy as np
import polars as pl

from subak.experiment.sizing.size import partitions_of
from subak.workload.table import Workload

GIB = 1024.0  # in MiB
LEAST = {"cpu": 16.0, "memory": 64 * GIB, "gpu": 1.0}  # of a usual node
PARTITIONS_NAMED_MAX = 6


def next_command(workload: Workload, out: Path) -> tuple[str, str]:
    """Return how to size the cluster: of several partitions, the one with the most CPU work; and what to put in."""
    partitions, chosen = partitions_of(workload), np.ones(len(workload.stages), bool)
    only = other = ""  # no partition is left out
    if len(partitions) > 1:
        first, chosen = _busiest(workload, partitions)
        only = f" --only-queue {shlex.quote(first)}"
        rest = [each for each in partitions if each != first]
        named = ", ".join(rest[:PARTITIONS_NAMED_MAX]) + (" ..." if len(rest) > PARTITIONS_NAMED_MAX else "")
        again = _command(workload, out, f" --only-queue {shlex.quote(rest[0])}", _of_partition(
            workload, partitions, rest[0]))
        other = f" Size the other partitions apart ({named}): {again}"
    return (f"Next: {_command(workload, out, only, chosen)}",
            f"Put your own node behind --kind, and behind --objective how long jobs may wait.{other}")


def _command(workload: Workload, out: Path, only: str, chosen: np.ndarray) -> str:
    """Return the command that sizes a kind of machine for the stages of bool[stage]."""
    kind = ",".join(f"{each.name}={_amount(each.name, amounts[chosen].max() * each.unit)}"
                    for each, amounts in zip(workload.resources, workload.requests, strict=True)
                    if each.name != "gpu" or amounts[chosen].any())
    return (f"subak size {shlex.quote(str(out))}{only} --kind {kind} --objective 'slurm_wait.p95 < 1h' "
            "--scheduler easy")


def _own(workload: Workload, partitions: tuple[str, ...]) -> pl.Series:
    """Return the partition of each stage."""
    depth = max(each.count("/") for each in partitions) + 1
    return workload.jobs["queue"].str.split("/").list.head(depth).list.join("/").gather(workload.stages["job"])


def _of_partition(workload: Workload, partitions: tuple[str, ...], name: str) -> np.ndarray:
    """Return bool[stage]: whether a stage is of a partition."""
    return (_own(workload, partitions) == name).to_numpy()


def _busiest(workload: Workload, partitions: tuple[str, ...]) -> tuple[str, np.ndarray]:
    """Return the partition whose tasks held the most CPU time, and bool[stage]: whether a stage is of it."""
    stage = workload.tasks["stage"].to_numpy()
    work = np.bincount(stage, workload.tasks["run_time"].to_numpy() * workload.requests[0][stage],
                       minlength=len(workload.stages))
    own = _own(workload, partitions)
    most = str(pl.DataFrame({"own": own, "work": work}).group_by("own").agg(pl.col("work").sum())
               .sort("work", "own", descending=[True, False])["own"][0])
    return most, (own == most).to_numpy()


def _amount(name: str, largest: float) -> str:
    """Return an amount that holds the largest task, a power of two."""
    amount = max(LEAST[name], 2.0 ** math.ceil(math.log2(largest)) if largest > 0 else 0.0)
    return f"{amount / GIB:g}Gi" if name == "memory" else f"{amount:g}"
