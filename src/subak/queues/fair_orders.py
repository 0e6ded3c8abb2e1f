"""Builds the fair orders by name, over a workload's tree or a pooled machine."""
import numpy as np

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
from subak.queues.tree import QueueTree

ENDLESS = 2**62  # tasks of a leaf that has no end


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
