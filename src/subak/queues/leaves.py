"""Finds the leaves that a fair order serves in a workload: the tasks of a job that ask for the same."""
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.queues.hierarchy import NOBODY
from subak.queues.layout import Branches
from subak.queues.tree import QueueTree, queue_leaves
from subak.workload.table import Workload

JOB_WEIGHT = 1.0


class Leaves(NamedTuple):
    """The leaves of a workload: the tasks of a job that ask for the same."""

    branches: Branches
    queue: np.ndarray  # int32[leaf], its node of the queue tree
    of_task: np.ndarray  # int32[task]


def leaves_of(
    workload: Workload, shape_of_stage: np.ndarray, tree: QueueTree, arrival_of_stage: np.ndarray | None = None,
) -> Leaves:
    """Return the leaves of a workload below a tree that has all its queues; a job of several shapes is a node.

    The lower leaf is served first where all else is equal: within a queue that of the job that arrives first, then that
    of the shorter name, and of names as long of the lesser one. The order of rows says nothing. *arrival_of_stage*,
    float64[stage], s, is when the first task of each arrives, where the workload's tasks are not all there.
    """
    job = workload.stages["job"].to_numpy().astype(np.int64)
    queue_of_job = queue_leaves(tree, workload.jobs["queue"].to_list()).astype(np.int64)
    table = pl.DataFrame({"stage": np.arange(job.size), "job": job, "shape": shape_of_stage.astype(np.int64)})
    pairs = table.group_by("job", "shape").agg(pl.col("stage").min().alias("first"))
    arrival = np.full(len(workload.jobs), np.inf)
    if arrival_of_stage is None:
        np.minimum.at(arrival, job[workload.tasks["stage"].to_numpy()], workload.tasks["arrival"].to_numpy())
    else:
        np.minimum.at(arrival, job, arrival_of_stage)
    name, of_pair = workload.jobs["job"], pairs["job"].to_numpy()
    pairs = pairs.with_columns(pl.Series("queue", queue_of_job[of_pair]), pl.Series("arrival", arrival[of_pair]),
                               name[of_pair].alias("name"), name[of_pair].str.len_bytes().alias("length"))
    pairs = pairs.sort("arrival", "queue", "length", "name", "first").with_row_index("leaf")
    by_job = pairs.group_by("job", maintain_order=True).agg(pl.len(), pl.col("queue").first())
    several = by_job.filter(pl.col("len") > 1)
    node_of_job = np.full(len(workload.jobs), NOBODY, np.int64)
    node_of_job[several["job"].to_numpy()] = len(tree) + np.arange(len(several))
    queue, own = pairs["queue"].to_numpy(), node_of_job[pairs["job"].to_numpy()]
    of_stage = table.join(pairs, on=["job", "shape"], how="left", maintain_order="left")["leaf"].to_numpy()
    branches = Branches(
        parent=np.concatenate([tree.parent, several["queue"].to_numpy()]).astype(np.int32),
        weight=np.concatenate([tree.weight, np.full(len(several), JOB_WEIGHT)]),
        leaf_parent=np.where(own == NOBODY, queue, own).astype(np.int32),
        leaf_weight=np.full(len(pairs), JOB_WEIGHT),
        leaf_shape=pairs["shape"].to_numpy().astype(np.int32),
    )
    return Leaves(branches, queue.astype(np.int32), of_stage[workload.tasks["stage"].to_numpy()].astype(np.int32))
