"""Chooses the queue to serve next: in turn, or by a fair order over the tree.

A fair order goes by what all queues hold in the master's view, so it is as stale as the view; only the master's own
queues have a turn. The tree is told what has changed when a turn is taken.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.messages import NOBODY
from subak.marks import inlined
from subak.queues.hierarchy import Hierarchy, next_leaf, tell

NOTHING_SATURATED = 0


class QueueOrder(NamedTuple):
    """A tree whose leaves are the queues, each with a shape of its own: what it holds; empty tables for round robin."""

    tree: Hierarchy
    leaf: np.ndarray  # int32[queue]
    queue: np.ndarray  # int32[leaf]
    told: np.ndarray  # int64[queue, resource + 1]: units held, and the shape of the first task that waits, or NOBODY


@inlined
def tell_queue(
    order: QueueOrder, tasks: OpenTasks, queue: int, total: np.ndarray, present: np.ndarray, shape: int
) -> None:
    """Tell the tree what a queue holds (*total*, int64[queue, resource]) and asks for next, if that is news.

    *present* is int64[resource], units of the federation; *shape* is NOBODY when no task of the queue can have a turn.
    """
    resources = present.size
    is_news = order.told[queue, resources] != shape
    for resource in range(resources):
        is_news |= order.told[queue, resource] != total[queue, resource]
    if not is_news:
        return
    tree, leaf = order.tree, order.leaf[queue]
    holds = False
    for resource in range(resources):
        order.told[queue, resource] = total[queue, resource]
        holds |= total[queue, resource] > 0
    order.told[queue, resources] = shape
    tree.dominant[leaf] = 0.0
    for resource in range(resources):
        amount = total[queue, resource]
        if not holds and shape != NOBODY:
            amount = tasks.request[resource, shape]
        tree.vector[leaf, resource] = amount / max(present[resource], 1)
        tree.dominant[leaf] = max(tree.dominant[leaf], tree.vector[leaf, resource])
    if tree.dominant[leaf] == 0.0:
        tree.dominant[leaf] = 1.0
    tree.running[leaf] = holds
    tree.waiting[leaf] = shape != NOBODY
    tell(tree, tree.slot[leaf])


@inlined
def queue_in_turn(order: QueueOrder) -> int:
    """Return the queue that the order serves next, NOBODY if none has a task to place."""
    leaf = next_leaf(order.tree, NOTHING_SATURATED)
    return int(order.queue[leaf]) if leaf != NOBODY else NOBODY
