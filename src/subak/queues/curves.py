"""The exact fluid allocation as a function of a node's share, by flattening the tree.

Between two saturations a node's vector is a piecewise linear function of its share, its *curve*, made of its children's
curves alone. So one pass from the leaves to the root gives the curve of everything; the first point of the root's curve
at which something is full ends it; one pass down gives every leaf its share there. What is blocked then counts from
there on as a constant in its parent's curve, and the tree is flattened again for what is left.

Before anything is blocked every curve is a single ray, and the two passes are MCH's: along the ray a node's share is
mu times its children's level. That is why `flatten.mch_weights` are right until the first saturation.

A *place* on a curve says how far along it is: the number of a point, and a fraction of the way to the next; beyond the
last point, that point's number plus what the share has risen since. A share may stand still between two points: what
is blocked holds more of another resource. Of children for which it stands still at the same level, the first listed
comes first.
"""
from typing import NamedTuple

import numpy as np

from subak.queues.fluid import CLOSE, Problem, all_fit, blocked_leaves, time_until_full, used_shares
from subak.queues.tree import QueueTree


class Curve(NamedTuple):
    """A node's way while it is filled, from what it has: points, and a ray from the last of them without end."""

    share: np.ndarray  # float64[point], never falling
    vector: np.ndarray  # float64[point, resource], 0 of what is saturated
    ray: np.ndarray  # float64[resource], how the vector goes on with the share
    place: np.ndarray  # float64[point, child], where the children are on theirs; only those that are not blocked
    place_ray: np.ndarray  # float64[child], how they go on with the share


def exact_shares(problem: Problem) -> np.ndarray:
    """Return float64[leaf], the dominant share of each leaf in H-DRF's fluid allocation."""
    shares = np.zeros(len(problem.tree.leaves))
    while not (blocked := blocked_leaves(problem, shares)).all():
        moving = problem.tree.active(~blocked)
        shares = _first_full(problem, shares, moving, curves_of(problem, shares, moving))
    return shares


def curves_of(problem: Problem, shares: np.ndarray, moving: np.ndarray) -> dict[int, Curve]:
    """Return the curve of every node that is *moving* (bool[node]: not blocked), when the leaves have *shares*."""
    tree, used = problem.tree, used_shares(problem, shares)
    is_open = used[0] < 1 - CLOSE
    row = {int(leaf): place for place, leaf in enumerate(tree.leaves)}
    curves: dict[int, Curve] = {}
    for node in np.flatnonzero(moving)[::-1].tolist():
        if node in row:
            direction = problem.direction[row[node]] * is_open
            curves[node] = _leaf_curve(float(shares[row[node]]), direction)
        else:
            blocked = [child for child in tree.children[node] if not moving[child]]
            children = _moving_children(tree, moving, node)
            curves[node] = node_curve([curves[child] for child in children], tree.weight[children],
                                      used[blocked].sum(axis=0) * is_open)
    return curves


def _moving_children(tree: QueueTree, moving: np.ndarray, node: int) -> list[int]:
    return [child for child in tree.children[node] if moving[child]]


def _leaf_curve(share: float, direction: np.ndarray) -> Curve:
    return Curve(np.array([share]), share * direction[None, :], direction, np.zeros((1, 0)), np.zeros(0))


def node_curve(children: list[Curve], weight: np.ndarray, held: np.ndarray) -> Curve:
    """Return a node's curve from its children's; *held* (float64[resource]) is what the blocked ones hold."""
    levels, places = _meetings(children, weight)
    vector = np.tile(held, (len(levels), 1))
    for child, curve in enumerate(children):
        vector += _scaled(curve, places[:, child], weight[child] * levels)
    ray = weight @ np.array([child.ray for child in children])
    vector, places = _split_where_largest_changes(vector, places)
    vector, places = _split_ray(vector, places, ray, weight)
    share = np.maximum.accumulate(vector.max(axis=1))
    for point in range(1, len(share)):
        if share[point] <= share[point - 1] * (1 + CLOSE):
            share[point] = share[point - 1]
    slope = ray.max()
    return Curve(share, vector, ray / slope, places, weight / slope)


def _meetings(children: list[Curve], weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels at which a child's curve begins or bends, and the places: [point], [point, child]."""
    bends = [(share / weight[child], child, point)
             for child, curve in enumerate(children) for point, share in enumerate(curve.share)]
    last = np.full(len(children), -1)
    levels: list[float] = []
    places: list[list[float]] = []
    for level, child, point in _ordered(bends):
        last[child] = point
        row = [_place_at(curve, last[other], weight[other] * level) for other, curve in enumerate(children)]
        if not places or row != places[-1]:
            levels.append(level)
            places.append(row)
    return np.array(levels), np.array(places)


def _ordered(bends: list[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
    """Return bends by level, those at almost the same level by child."""
    bends = sorted(bends)
    for place in range(1, len(bends)):
        level, (_, child, point) = bends[place - 1][0], bends[place]
        if bends[place][0] <= level * (1 + CLOSE):
            bends[place] = (level, child, point)
    return sorted(bends)


def _place_at(curve: Curve, last: int, share: float) -> float:
    """Return the place at which a curve has a share, behind the point *last*; -1: it is still ahead, and waits."""
    if last < 0:
        return 0.0
    if last == len(curve.share) - 1:
        return float(last + max(share - curve.share[last], 0.0))
    gap = curve.share[last + 1] - curve.share[last]
    return float(last + min(max((share - curve.share[last]) / gap, 0.0), 1.0)) if gap > 0 else float(last)


def _along(points: np.ndarray, ray: np.ndarray, place: float) -> np.ndarray:
    """Return what is at a place of a curve; *points* is [point, ...], *ray* how it goes on."""
    last = len(points) - 1
    if place >= last:
        return points[last] + (place - last) * ray
    point = int(place)
    return points[point] + (place - point) * (points[point + 1] - points[point])


def _scaled(child: Curve, places: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return a child's vector at each place, rescaled where it is ahead of the share that its siblings are at."""
    vectors = np.array([_along(child.vector, child.ray, place) for place in places])
    ahead = (places == 0) & (shares < child.share[0])
    scale = np.where(ahead, shares / child.share[0] if child.share[0] > 0 else 1.0, 1.0)
    return vectors * scale[:, None]


def _split_where_largest_changes(vector: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put a point in wherever the largest entry becomes another, so that the share is linear in between."""
    rows, kept = [vector[0]], [places[0]]
    for point in range(1, len(vector)):
        step = vector[point] - vector[point - 1]
        for part in _changes(vector[point - 1], step, 1.0):
            rows.append(vector[point - 1] + part * step)
            kept.append(places[point - 1] + part * (places[point] - places[point - 1]))
        rows.append(vector[point])
        kept.append(places[point])
    return np.array(rows), np.array(kept)


def _split_ray(
    vector: np.ndarray, places: np.ndarray, ray: np.ndarray, weight: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Do the same for the ray, along which the children's shares rise with their weights."""
    parts = _changes(vector[-1], ray, np.inf)
    rows = [*vector, *(vector[-1] + part * ray for part in parts)]
    return np.array(rows), np.array([*places, *(places[-1] + part * weight for part in parts)])


def _changes(start: np.ndarray, step: np.ndarray, end: float) -> list[float]:
    """Return where in 0 .. *end* the largest entry of start + part x step becomes another."""
    parts: list[float] = []
    part = 0.0
    while True:
        now = start + part * step
        top = int(np.lexsort((step, now >= now.max() * (1 - CLOSE)))[-1])  # of the largest the fastest
        faster = step > step[top]
        meets = (start[top] - start)[faster] / (step - step[top])[faster]
        part = float(meets.min(initial=np.inf))
        if part >= end:
            return parts
        parts.append(part)


# From the root's curve to the leaves


def _first_full(
    problem: Problem, shares: np.ndarray, moving: np.ndarray, curves: dict[int, Curve],
) -> np.ndarray:
    """Return float64[leaf]: the shares at the first place of the root's curve at which something is full."""
    tree = problem.tree
    first, end = 0, len(curves[0].share)  # the last point at which all fits is in first .. end - 1
    while end - first > 1:
        middle = (first + end) // 2
        fits = all_fit(problem, shares + _rise(tree, moving, curves, middle))
        first, end = (middle, end) if fits else (first, middle)
    start = shares + _rise(tree, moving, curves, first)
    step = shares + _rise(tree, moving, curves, first + 1) - start
    return start + time_until_full(problem, start, step) * step


def _rise(tree: QueueTree, moving: np.ndarray, curves: dict[int, Curve], point: int) -> np.ndarray:
    """Return float64[leaf]: by how much the shares have risen at a point of the root's curve."""
    place = np.zeros(len(tree))
    place[0] = point
    for node in np.flatnonzero(moving).tolist():
        children = _moving_children(tree, moving, node)
        place[children] = _along(curves[node].place, curves[node].place_ray, place[node])
    rise: np.ndarray = place[tree.leaves]  # a leaf's curve is a ray
    return rise
