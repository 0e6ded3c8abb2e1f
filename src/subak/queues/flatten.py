"""Computes leaf weights for a flat DRF that shares as the tree would: MCH's, collapsed and exact.

MCH (You et al., IEEE Communications Letters 2019, section III): a leaf that asks for k', the resource that is saturated
first, weighs the product over its ancestors below the root of 1 / mu, mu being the ancestor's dominant share when its
children are at a level of 1; another leaf weighs 1. In the paper all nodes of the tree weigh 1. Here a node counts as
its weight by the mean of its siblings' (1 where they are alike), so that only ratios matter and a flat tree is DRF's.

A flat weighted DRF with weights W ends in the shares x exactly if every leaf has all its tasks or a *bottleneck*: a
saturated resource it asks for, of which no leaf that asks for it has a larger x / W. Hence:

- `exact_weights` are the exact shares themselves: x / x is 1 for all;
- `mch_weights` are right exactly if `every_leaf_has_a_bottleneck` with the exact shares. That is always so where all
  leaves ask for k'. Where some do not, docs/fairness.md says what it takes.
"""
import numpy as np

from subak.queues.curves import exact_shares
from subak.queues.fluid import CLOSE, make_problem
from subak.queues.hierarchy import TIE
from subak.queues.tree import QueueTree

SAME = 1e-9  # shares that differ by less than this part are equal, after all rounding


def mch_weights(tree: QueueTree, demand: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Return float64[leaf]: the paper's weights; *demand* is [leaf, resource], *capacity* [resource]."""
    direction = make_problem(tree, demand, capacity, None).direction
    weight = relative_weights(tree)
    unit, mu = _unit_vectors(tree, direction, weight)
    first = _first_of_largest(unit[0])  # k'
    plain, divided = weight.copy(), weight.copy()
    for node in range(1, len(tree)):
        above = tree.parent[node]
        plain[node] *= plain[above]
        divided[node] *= divided[above] / (mu[above] if above > 0 else 1.0)
    return np.where(direction[:, first] > 0, divided[tree.leaves], plain[tree.leaves])


def first_saturated(tree: QueueTree, demand: np.ndarray, capacity: np.ndarray) -> int:
    """Return k', the resource that is saturated first: the root's dominant one, the first of equals."""
    direction = make_problem(tree, demand, capacity, None).direction
    return _first_of_largest(_unit_vectors(tree, direction, relative_weights(tree))[0][0])


def _first_of_largest(values: np.ndarray) -> int:
    return int((values >= values.max() * (1.0 - TIE)).argmax())


def relative_weights(tree: QueueTree) -> np.ndarray:
    """Return float64[node]: the weight by the mean of the siblings' weights, 1 for the root."""
    weight = np.ones(len(tree))
    for children in tree.children:
        weight[children] = tree.weight[children] / tree.weight[children].mean() if children else 1.0
    return weight


def _unit_vectors(tree: QueueTree, direction: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every node's vector with a largest entry of 1, and what that was before (mu): [node, resource], [node]."""
    vector, mu = np.zeros((len(tree), direction.shape[1])), np.ones(len(tree))
    vector[tree.leaves] = direction
    for node in range(len(tree) - 1, -1, -1):
        mu[node] = vector[node].max()
        vector[node] /= mu[node]
        if node > 0:
            vector[tree.parent[node]] += weight[node] * vector[node]
    return vector, mu


def collapsed_weights(tree: QueueTree) -> np.ndarray:
    """Return float64[leaf]: the product over the path of weight / sum of the siblings' weights (C-CH, M-CH)."""
    guarantee: np.ndarray = tree.guarantee()[tree.leaves]
    return guarantee


def exact_weights(
    tree: QueueTree, demand: np.ndarray, capacity: np.ndarray, tasks: np.ndarray | None = None,
) -> np.ndarray:
    """Return float64[leaf]: weights with which flat weighted DRF ends in the hierarchy's fluid shares.

    They are those shares. Limits of queues are kept in them, but a flat DRF does not keep limits by itself.
    """
    return exact_shares(make_problem(tree, demand, capacity, tasks))


def weighted_drf(
    weights: np.ndarray, demand: np.ndarray, capacity: np.ndarray, tasks: np.ndarray | None = None,
) -> np.ndarray:
    """Return float64[leaf]: the dominant shares of flat weighted DRF, with infinitely small tasks.

    All shares rise in proportion to their weights; what asks for a saturated resource, or has all its tasks, stays.
    """
    vector = np.asarray(demand, np.float64) / np.asarray(capacity, np.float64)
    dominant = vector.max(axis=1)
    direction = vector / dominant[:, None]
    ceiling = np.full(len(vector), np.inf) if tasks is None else np.asarray(tasks, np.float64) * dominant
    shares = np.zeros(len(vector))
    while True:
        free = 1 - shares @ direction
        stays = (shares >= ceiling * (1 - CLOSE)) | (direction[:, free <= CLOSE] > 0).any(axis=1)
        speed = np.where(stays, 0.0, weights)
        if not speed.any():
            return shares
        filling = speed @ direction
        times = np.concatenate([free[filling > 0] / filling[filling > 0],
                                (ceiling - shares)[speed > 0] / speed[speed > 0]])
        shares = shares + times.min() * speed


def every_leaf_has_a_bottleneck(
    weights: np.ndarray, shares: np.ndarray, demand: np.ndarray, capacity: np.ndarray, tasks: np.ndarray | None = None,
) -> bool:
    """Return whether flat weighted DRF ends in *shares* (float64[leaf]): necessary, and sufficient."""
    vector = np.asarray(demand, np.float64) / np.asarray(capacity, np.float64)
    dominant = vector.max(axis=1)
    saturated = shares @ (vector / dominant[:, None]) >= 1 - SAME
    level = shares / weights
    has = np.zeros(len(shares), bool) if tasks is None else shares >= np.asarray(tasks) * dominant * (1 - SAME)
    for resource in np.flatnonzero(saturated):
        asks = vector[:, resource] > 0
        has |= asks & (level >= level[asks].max() * (1 - SAME))
    return bool(has.all())
