"""Builds the fair orders by name, over a workload's tree or a pooled machine."""
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.queues.hierarchy import (
    NOBODY,
    Hierarchy,
    begin_task,
    close_shape,
    next_leaf,
    refresh_all,
)
from subak.queues.layout import Branches, build_hierarchy
from subak.queues.orders import DRF, FAIR_ORDERS
from subak.queues.tree import QueueTree, queue_leaves
from subak.workload.table import Workload

ENDLESS = 2**62  # tasks of a leaf that has no end
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


def hierarchy_of(
    order: str, branches: Branches, vector: np.ndarray, names: list[str], jobs_from: int | None = None
) -> Hierarchy:
    """Return the hierarchy of an order by name; *vector* is float64[shape, resource], *names* the resources'.

    Nodes from *jobs_from* on are jobs, and leaves that are not below them too; left out, leaves are queues. Flat DRF
    keeps jobs together. Raises InputError where an order collapses the tree for a resource that is not there.
    """
    fair = FAIR_ORDERS[order]
    if fair.code == DRF:
        branches = _flat(branches, jobs_from)
    refuse_collapsed(order, names)
    return build_hierarchy(branches, vector, fair.code, names.index(fair.collapsed) if fair.collapsed else 0)


def refuse_collapsed(order: str, names: list[str]) -> None:
    """Raise InputError where an order collapses the tree for a resource that is not among *names*."""
    needed = FAIR_ORDERS[order].collapsed
    if needed and needed not in names:
        raise InputError(f"order {order}: needs a resource named {needed}, there are {', '.join(names)}")


def _flat(branches: Branches, jobs_from: int | None) -> Branches:
    """Return a tree without queues: what was below them is the root's, and jobs weigh what their queues do."""
    nodes = branches.parent.size
    first = nodes if jobs_from is None else jobs_from
    place = np.concatenate([np.zeros(first), 1 + np.arange(nodes - first)]).astype(np.int32)
    queue_weight = np.where(np.arange(nodes) < first, branches.weight, 1.0) if jobs_from is not None else np.ones(nodes)
    return Branches(
        parent=np.concatenate([[NOBODY], np.zeros(nodes - first)]).astype(np.int32),
        weight=np.concatenate([[1.0], branches.weight[first:] * queue_weight[branches.parent[first:]]]),
        leaf_parent=place[branches.leaf_parent],
        leaf_weight=branches.leaf_weight * queue_weight[branches.leaf_parent],
        leaf_shape=branches.leaf_shape,
    )


def share_out(
    tree: QueueTree, demand: np.ndarray, capacity: np.ndarray, order: str, tasks: np.ndarray | None = None
) -> np.ndarray:
    """Return int64[leaf]: how many tasks each leaf of the tree gets on one pooled machine, one task at a time.

    *demand* is int64[leaf, resource], *capacity* int64[resource], *tasks* int64[leaf] (left out: without end).
    The first two resources are cpu and memory, for the orders that are collapsed for one.
    """
    hierarchy = pooled(tree, demand, capacity, order)
    hierarchy.waiting[:] = ENDLESS if tasks is None else np.minimum(tasks, ENDLESS)
    hand_out(hierarchy, np.ascontiguousarray(demand, np.int64), np.array(capacity, np.int64))
    return hierarchy.running.copy()


def pooled(tree: QueueTree, demand: np.ndarray, capacity: np.ndarray, order: str) -> Hierarchy:
    """Return the hierarchy of a tree whose leaves are jobs on one pooled machine; nobody waits yet."""
    names = ["cpu", "memory", *(f"resource {number}" for number in range(2, len(capacity)))][: len(capacity)]
    return hierarchy_of(order, branches_of(tree), np.asarray(demand) / np.asarray(capacity), names)


def branches_of(tree: QueueTree) -> Branches:
    """Return a tree whose leaves are what is served, each with a shape of its own."""
    leaf = tree.leaves
    inner = np.setdiff1d(np.arange(len(tree)), leaf)
    place = np.zeros(len(tree), np.int32)
    place[inner] = np.arange(inner.size)
    parent = np.where(tree.parent[inner] < 0, NOBODY, place[tree.parent[inner]])
    return Branches(
        parent=parent.astype(np.int32), weight=tree.weight[inner], leaf_parent=place[tree.parent[leaf]],
        leaf_weight=tree.weight[leaf], leaf_shape=np.arange(leaf.size, dtype=np.int32),
    )


def hand_out(tree: Hierarchy, demand: np.ndarray, free: np.ndarray, most: int = ENDLESS) -> list[int]:
    """Serve the leaves in turn on a pooled machine until nothing fits; return the first *most* choices at most.

    *demand* is int64[leaf, resource], *free* int64[resource], taken from; every leaf has a shape of its own.
    """
    chosen = np.empty(min(most, int(_tasks_at_most(demand, free))), np.int32)
    wanted = np.where(tree.waiting[:, None] > 0, demand, 0)
    count = _hand_out(tree, demand, free, least_requests(wanted.T), chosen)
    return [int(leaf) for leaf in chosen[:count]]


def _tasks_at_most(demand: np.ndarray, free: np.ndarray) -> int:
    """Return no less than how many tasks can be handed out."""
    each = np.where(demand > 0, free // np.maximum(demand, 1), np.iinfo(np.int64).max).min(axis=1)
    return int(min(each.sum(dtype=np.float64), 1e8))


def least_requests(request: np.ndarray) -> np.ndarray:
    """Return int64[resource]: the least that any shape asks of it, if it asks; *request* is [resource, shape]."""
    asked = np.where(request > 0, request.astype(np.int64), np.iinfo(np.int64).max)  # an int32 cannot hold that
    least: np.ndarray = asked.min(axis=1)
    return least


@kernel
def _hand_out(tree: Hierarchy, demand: np.ndarray, free: np.ndarray, least: np.ndarray, chosen: np.ndarray) -> int:
    refresh_all(tree)
    for count in range(chosen.size):
        close_what_does_not_fit(tree, demand, free)
        leaf = next_leaf(tree, saturated_of(free, least))
        if leaf == NOBODY:
            return count
        chosen[count] = leaf
        for resource in range(free.size):
            free[resource] -= demand[leaf, resource]
        begin_task(tree, leaf)
    return int(chosen.size)


@inlined
def close_what_does_not_fit(tree: Hierarchy, demand: np.ndarray, free: np.ndarray) -> None:
    """Close the shapes, one a leaf, of which a task no longer fits."""
    for leaf in range(demand.shape[0]):
        if tree.is_open[leaf]:
            for resource in range(free.size):
                if demand[leaf, resource] > free[resource]:
                    close_shape(tree, leaf)
                    break


@inlined
def saturated_of(free: np.ndarray, least: np.ndarray) -> int:
    """Return a bit for each resource of which less is free than anybody asks for."""
    saturated = 0
    for resource in range(free.size):
        if free[resource] < least[resource]:
            saturated |= 1 << resource
    return saturated
