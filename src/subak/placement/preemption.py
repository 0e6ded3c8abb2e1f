"""Preemption for fairness: a queue below its guarantee takes a place back from the queue furthest above its own.

Rules:
- A queue takes only up to its guarantee, the next task included, and only what it lacks a machine for.
- A queue gives only down to its guarantee, the task included; of its tasks the one that started last goes first.
- So who took is not above, who gave is not below, and nothing goes back before the guarantees change: with an arrival,
  or when a queue has nothing left to run.

The guarantee of a queue is the product over its path of its weight by that of its siblings that wait or run.
"""
import numpy as np

from subak.kernel import cold
from subak.placement.fair import ENOUGH, Fair, may_take, share_with
from subak.queues.hierarchy import NOBODY
from subak.workload.tasks import Tasks


@cold
def neediest_leaf(fair: Fair, tasks: Tasks, guarantee: np.ndarray, tried: np.ndarray) -> int:
    """Return the leaf with a waiting task whose queue lacks the largest part of its guarantee, NOBODY if none may take.

    *tried* is bool[shape]: those for which no place was found.
    """
    best, most = NOBODY, 0.0
    for place in range(fair.lanes.size[0]):
        leaf = fair.lanes.active[place]
        shape = tasks.shape[fair.lanes.root[leaf]]
        if tried[shape] or fair.tree.capped[leaf] or not may_take(fair, tasks, leaf, shape, guarantee):
            continue
        node = fair.queue[leaf]
        lack = 1.0 - share_with(fair, tasks, node, shape, 0) / guarantee[node]
        if lack > most:
            best, most = leaf, lack
    return int(best)


@cold
def excess(fair: Fair, tasks: Tasks, task: int, leaf: int, guarantee: np.ndarray) -> float:
    """Return by how much of its guarantee the task's queue is above it, 0 if it may not give the task to the leaf.

    Neither may the queues above it, as far as they are not above the leaf too: these lose nothing.
    """
    giver, shape = fair.queue[fair.leaf[task]], tasks.shape[task]
    node = giver
    while node > 0 and not is_above(fair, node, fair.queue[leaf]):
        if share_with(fair, tasks, node, shape, -1) < guarantee[node] / ENOUGH or guarantee[node] == 0.0:
            return 0.0
        node = fair.parent[node]
    if node == giver:
        return 0.0
    return max(share_with(fair, tasks, giver, shape, 0) / guarantee[giver] - 1.0, 0.0)


@cold
def is_above(fair: Fair, node: int, other: int) -> bool:
    """Whether a queue is another, or above it."""
    while other != NOBODY:
        if other == node:
            return True
        other = fair.parent[other]
    return False
