"""The tree of queues of a global master, made of queue names and a file of weights."""
from collections.abc import Sequence

import numpy as np

from subak.federation.choices import ROUND_ROBIN
from subak.federation.megha.global_master.queue_order import QueueOrder
from subak.federation.messages import NOBODY
from subak.queues.fair_orders import branches_of, hierarchy_of
from subak.queues.tree import TreeFile, queue_leaves, tree_of_paths


def build_queue_order(order: str, names: Sequence[str], file: TreeFile | None, resources: Sequence[str]) -> QueueOrder:
    """Return the tree that a global master chooses its queues by, told nothing; with round robin nothing is in it.

    *names*: of the queues, by their numbers.
    """
    if order == ROUND_ROBIN:
        tree, leaf = tree_of_paths(["none"]), np.zeros(0, np.int32)
        order, of_leaf = "drf", leaf
    else:
        tree = tree_of_paths(names, file)
        place = np.full(len(tree), NOBODY, np.int32)
        place[tree.leaves] = np.arange(len(tree.leaves))
        leaf = place[queue_leaves(tree, names)]
        of_leaf = np.full(len(tree.leaves), NOBODY, np.int32)
        of_leaf[leaf] = np.arange(len(leaf))
    hierarchy = hierarchy_of(order, branches_of(tree), np.ones((len(tree.leaves), len(resources))), list(resources))
    told = np.zeros((len(leaf), len(resources) + 1), np.int64)
    told[:, len(resources)] = NOBODY  # else that tasks of shape 0 wait would be no news
    return QueueOrder(hierarchy, leaf, of_leaf, told)


def shares_of(names: Sequence[str], file: TreeFile, served: Sequence[bool]) -> np.ndarray:
    """Return float64[queue]: the share of each queue that is *served*, its guarantee in the tree; 0 for all others."""
    tree = tree_of_paths(names, file)
    leaf = queue_leaves(tree, names)
    is_active = np.zeros(len(tree.leaves), bool)
    is_active[np.searchsorted(tree.leaves, leaf[np.array(served, bool)])] = True
    return tree.guarantee(tree.active(is_active))[leaf]
