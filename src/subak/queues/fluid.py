"""The exact fluid allocation of H-DRF, the limit for infinitely small tasks; the reference.

A leaf is blocked when it has all its tasks, or asks for a resource that is saturated or of which a queue at or above it
holds its limit. A queue is blocked when all its children are. Over the resources that are not saturated:

- a leaf's vector is what it holds, share x normalised demand;
- a queue's level is the least share / weight among its children that are not blocked; its vector is the sum of those
  children's vectors, each rescaled to the share weight x level, and of the blocked children's vectors as they are;
- a node's share is the largest entry of its vector.

Filling goes down from the root to the children at the level. They rise together, those ahead wait for them. A child
whose share does not rise however much it is given (a blocked child holds more of another resource) is given until it
does, the first listed first. All of it is linear between events (a child is caught up with, the largest entry of a
vector is another, something is full), so that the solver goes from event to event.

Source: Bhattacharya et al., "Hierarchical scheduling for diverse datacenter workloads", SoCC 2013.
"""
from dataclasses import dataclass

import numpy as np

from subak.queues.tree import QueueTree

CLOSE = 1e-11  # shares that differ by less than this part of them are equal: far above the rounding of float64
FLUID_EVENTS_MAX = 1_000_000


@dataclass(frozen=True)
class Problem:
    """What is divided, among whom; amounts are shares of the capacity."""

    tree: QueueTree
    direction: np.ndarray  # float64[leaf, resource], normalised demand s: its largest entry is 1
    ceiling: np.ndarray  # float64[leaf], dominant share of all its tasks, inf if they do not end


@dataclass(frozen=True)
class Values:
    """What the definition says of every node, over the resources that are not saturated."""

    blocked: np.ndarray  # bool[node]
    vector: np.ndarray  # float64[node, resource]
    share: np.ndarray  # float64[node]
    level: np.ndarray  # float64[node], of queues that are not blocked


@dataclass(frozen=True)
class Rates:
    """How fast everything rises while the root is filled."""

    vector: np.ndarray  # float64[node, resource]
    share: np.ndarray  # float64[node], 0 of a node that is given without effect on its share
    level: np.ndarray  # float64[node], likewise
    given: np.ndarray  # float64[node], by how much the rates of the node count, 0 of one that waits


def fluid_shares(
    tree: QueueTree, demand: np.ndarray, capacity: np.ndarray, tasks: np.ndarray | None = None,
) -> np.ndarray:
    """Return float64[leaf], the dominant share of each leaf.

    *demand* is of one task, [leaf, resource], *capacity* [resource], *tasks* [leaf] how many there are (None: no end).
    Every leaf must ask for something.
    """
    problem = make_problem(tree, demand, capacity, tasks)
    shares = np.zeros(len(tree.leaves))
    for _ in range(FLUID_EVENTS_MAX):
        values = values_at(problem, shares)
        if values.blocked[0]:
            return shares
        rates = rates_at(problem, values)
        shares = shares + _time_to_event(problem, shares, values, rates) * rates.given[tree.leaves]
    raise AssertionError(f"no end after {FLUID_EVENTS_MAX} events")


def make_problem(tree: QueueTree, demand: np.ndarray, capacity: np.ndarray, tasks: np.ndarray | None) -> Problem:
    """Return amounts as shares."""
    vector = np.asarray(demand, np.float64) / np.asarray(capacity, np.float64)
    dominant = vector.max(axis=1)  # mu_i
    ceiling = np.full(len(vector), np.inf) if tasks is None else np.asarray(tasks, np.float64) * dominant
    return Problem(tree, vector / dominant[:, None], ceiling)


def used_shares(problem: Problem, shares: np.ndarray) -> np.ndarray:
    """Return float64[node, resource]: what a node holds, nothing rescaled; the root's row is what is in use."""
    return problem.tree.sums(shares[:, None] * problem.direction)


def blocked_leaves(problem: Problem, shares: np.ndarray) -> np.ndarray:
    """Return bool[leaf]: whether it has all its tasks, or asks for something that is full, here or above."""
    tree = problem.tree
    full = used_shares(problem, shares) >= _limits(problem) * (1 - CLOSE)  # bool[node, resource]
    for node in range(1, len(tree)):
        full[node] |= full[tree.parent[node]]
    return (shares >= problem.ceiling * (1 - CLOSE)) | (full[tree.leaves] & (problem.direction > 0)).any(axis=1)


def all_fit(problem: Problem, shares: np.ndarray) -> bool:
    """Return whether nothing is more than full."""
    fits = used_shares(problem, shares) <= _limits(problem) * (1 + CLOSE)
    return bool(fits.all() and (shares <= problem.ceiling * (1 + CLOSE)).all())


def time_until_full(problem: Problem, shares: np.ndarray, speed: np.ndarray) -> float:
    """Return when something more is full if shares rise with a *speed*, float64[leaf]."""
    gap = _limits(problem) - used_shares(problem, shares)
    return min(_least_time(problem.ceiling - shares, speed), _least_time(gap, used_shares(problem, speed)))


def _limits(problem: Problem) -> np.ndarray:
    """Return float64[node, 1]: the most that a node may hold of any resource."""
    return np.append(1.0, problem.tree.limit[1:])[:, None]


def values_at(problem: Problem, shares: np.ndarray) -> Values:
    """Return what the definition says of every node when the leaves have *shares* (float64[leaf])."""
    tree = problem.tree
    is_open = used_shares(problem, shares)[0] < 1 - CLOSE  # the resources that are not saturated
    blocked = ~tree.active(~blocked_leaves(problem, shares))
    vector, share, level = np.zeros((len(tree), len(is_open))), np.zeros(len(tree)), np.zeros(len(tree))
    vector[tree.leaves] = shares[:, None] * problem.direction * is_open
    for node in range(len(tree) - 1, -1, -1):
        children = tree.children[node]
        moving = [child for child in children if not blocked[child]]
        if moving:
            level[node] = min(share[child] / tree.weight[child] for child in moving)
        for child in children:
            scale = 1.0 if blocked[child] or share[child] == 0 else tree.weight[child] * level[node] / share[child]
            vector[node] += scale * vector[child]
        share[node] = vector[node].max()
    return Values(blocked, vector, share, level)


def rates_at(problem: Problem, values: Values) -> Rates:
    """Return how fast everything rises while the root is filled."""
    tree = problem.tree
    vector, share, level = np.zeros_like(values.vector), np.zeros(len(tree)), np.zeros(len(tree))
    factor = np.zeros(len(tree))  # of a node's rates in its parent's
    vector[tree.leaves] = problem.direction * ~values.blocked[tree.leaves][:, None]
    share[tree.leaves] = 1.0
    for node in range(len(tree) - 1, -1, -1):
        if values.blocked[node] or not tree.children[node]:
            continue
        lowest, ahead = _lowest_and_ahead(tree, values, node)
        stuck = next((child for child in lowest if share[child] == 0), None)
        if stuck is not None:
            factor[stuck] = 1.0
            vector[node] = vector[stuck]
        else:
            level[node] = 1.0
            for child in lowest:
                factor[child] = tree.weight[child] / share[child]
                vector[node] += factor[child] * vector[child]
            for child in ahead:
                vector[node] += tree.weight[child] / values.share[child] * values.vector[child]
        share[node] = _rise_of_largest(values.vector[node], vector[node])
    return _given(tree, factor, vector, share, level)


def _lowest_and_ahead(tree: QueueTree, values: Values, node: int) -> tuple[list[int], list[int]]:
    """Return the children at the level, and those above it; the blocked are neither."""
    moving = [child for child in tree.children[node] if not values.blocked[child]]
    reach = values.level[node] * (1 + CLOSE)
    lowest = [child for child in moving if values.share[child] / tree.weight[child] <= reach]
    return lowest, [child for child in moving if child not in lowest]


def _rise_of_largest(vector: np.ndarray, rate: np.ndarray) -> float:
    """Return how fast the largest entry of a vector rises."""
    rise = float(rate[vector >= vector.max() * (1 - CLOSE)].max())
    return rise if rise > CLOSE * rate.max() else 0.0


def _given(tree: QueueTree, factor: np.ndarray, vector: np.ndarray, share: np.ndarray, level: np.ndarray) -> Rates:
    """Return rates of all nodes for one of the root, from rates of each node on its own."""
    given = np.zeros(len(tree))
    given[0] = 1.0
    for node in range(1, len(tree)):
        given[node] = given[tree.parent[node]] * factor[node]
    return Rates(vector * given[:, None], share * given, level * given, given)


def _time_to_event(problem: Problem, shares: np.ndarray, values: Values, rates: Rates) -> float:
    """Return for how long the rates hold."""
    tree = problem.tree
    times = [time_until_full(problem, shares, rates.given[tree.leaves])]
    for node in np.flatnonzero(rates.given > 0):
        if tree.children[node]:
            times.append(_time_to_catch_up(tree, values, rates, int(node)))
            top, rise = values.share[node], rates.share[node]
            behind = values.vector[node] < top * (1 - CLOSE)
            times.append(_least_time((top - values.vector[node])[behind], (rates.vector[node] - rise)[behind]))
    return min(times)


def _time_to_catch_up(tree: QueueTree, values: Values, rates: Rates, node: int) -> float:
    """Return when a child that is ahead is reached."""
    _, ahead = _lowest_and_ahead(tree, values, node)
    gaps = np.array([values.share[child] / tree.weight[child] - values.level[node] for child in ahead])
    return _least_time(gaps, np.full(len(ahead), rates.level[node]))


def _least_time(gap: np.ndarray, speed: np.ndarray) -> float:
    """Return when the first gap is closed; one that is not being closed never is."""
    closing = speed > 0
    return float((np.maximum(gap[closing], 0.0) / speed[closing]).min(initial=np.inf))
