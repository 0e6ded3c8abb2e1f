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
from subak.placement.fair import ENOUGH, Fair, share_with
from subak.queues.hierarchy import NOBODY
from subak.workload.tasks import Tasks


@cold
def note_guarantees(fair: Fair, guarantee: np.ndarray, siblings: np.ndarray) -> None:
    """Work out the guarantee of every queue; *guarantee* and *siblings* are float64[node], the latter scratch."""
    siblings[:] = 0.0
    for node in range(1, fair.parent.size):
        if fair.waiting[node] + fair.running[node] > 0:
            siblings[fair.parent[node]] += fair.weight[node]
    guarantee[0] = 1.0
    for node in range(1, fair.parent.size):
        is_active = fair.waiting[node] + fair.running[node] > 0
        above = guarantee[fair.parent[node]]
        guarantee[node] = above * fair.weight[node] / siblings[fair.parent[node]] if is_active else 0.0


@cold
def neediest_leaf(fair: Fair, tasks: Tasks, guarantee: np.ndarray, tried: np.ndarray) -> int:
    """Return the leaf with a waiting task whose queue lacks the largest part of its guarantee, NOBODY if none may take.

    *tried* is bool[shape]: those for which no place was found.
    """
    best, most = NOBODY, 0.0
    for place in range(fair.lanes.size[0]):
        leaf = fair.lanes.active[place]
        shape = tasks.shape[fair.lanes.root[leaf]]
        if tried[shape] or fair.tree.capped[leaf] or not may_take(fair, leaf, shape, guarantee):
            continue
        node = fair.queue[leaf]
        lack = 1.0 - share_with(fair, node, shape, 0.0) / guarantee[node]
        if lack > most:
            best, most = leaf, lack
    return int(best)


@cold
def may_take(fair: Fair, leaf: int, shape: int, guarantee: np.ndarray) -> bool:
    """Whether a task more leaves the leaf's queue, and all above it, within their guarantees."""
    node = fair.queue[leaf]
    while node > 0:
        if share_with(fair, node, shape, 1.0) > guarantee[node] * ENOUGH:
            return False
        node = fair.parent[node]
    return True


@cold
def excess(fair: Fair, tasks: Tasks, task: int, guarantee: np.ndarray) -> float:
    """Return by how much of its guarantee the task's queue is above it, 0 if it may not give the task."""
    leaf = fair.leaf[task]
    node = fair.queue[leaf]
    if share_with(fair, node, tasks.shape[task], -1.0) < guarantee[node] / ENOUGH or guarantee[node] == 0.0:
        return 0.0
    return max(share_with(fair, node, tasks.shape[task], 0.0) / guarantee[node] - 1.0, 0.0)
