"""Lays out a tree of queues as the slots of a hierarchy."""
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel
from subak.queues.hierarchy import (
    BEST_APART,
    FIRST_UNIT,
    GATE,
    JOIN,
    KIND,
    LEAF,
    LEFT,
    NOBODY,
    NODE,
    OF,
    ORDER,
    RESOURCE,
    RIGHT,
    UP,
    Hierarchy,
    refresh_all,
)


class Branches(NamedTuple):
    """The inner nodes of a tree, parents before children, and the leaves below them, in depth-first order."""

    parent: np.ndarray  # int32[node], NOBODY for the root, which is node 0
    weight: np.ndarray  # float64[node]
    leaf_parent: np.ndarray  # int32[leaf], a node
    leaf_weight: np.ndarray  # float64[leaf]
    leaf_shape: np.ndarray  # int32[leaf]


def build_hierarchy(branches: Branches, vector: np.ndarray, order: int, resource: int = 0) -> Hierarchy:
    """Return a hierarchy in which nobody waits; *vector* is float64[shape, resource], shares of the capacity.

    *resource* is the one that a collapse is made for.
    """
    leaves, nodes, (shapes, resources) = branches.leaf_parent.size, branches.parent.size, vector.shape
    link = np.full((2 * (2 * leaves + nodes) + 1, BEST_APART + 1), NOBODY, np.int32)
    weight = np.ones(len(link))
    slot = np.empty(leaves, np.int32)
    sorted_leaves = np.lexsort((np.arange(leaves), branches.leaf_shape, branches.leaf_parent)).astype(np.int32)
    children = np.argsort(branches.parent[1:], kind="stable").astype(np.int32) + np.int32(1)
    count = lay_out(
        link, weight, slot, branches, sorted_leaves, _firsts(branches.leaf_parent, nodes),
        children, _firsts(branches.parent[1:], nodes), np.empty(leaves + nodes, np.int32),
    )
    link = np.ascontiguousarray(link[:count])
    gates = np.flatnonzero(link[:, KIND] == GATE)
    by_shape = np.argsort(link[gates, OF], kind="stable")
    mode = np.zeros(3, np.int64)
    mode[ORDER], mode[RESOURCE] = order, resource
    dominant = vector.max(axis=1)
    tree = Hierarchy(
        link=link, value=np.zeros((count, FIRST_UNIT + 3 * resources)), weight=np.ascontiguousarray(weight[:count]),
        slot=slot, shape=branches.leaf_shape, waiting=np.zeros(leaves, np.int64), running=np.zeros(leaves, np.int64),
        capped=np.zeros(leaves, bool), vector=np.ascontiguousarray(vector),
        dominant=np.where(dominant > 0.0, dominant, 1.0), is_open=np.ones(shapes, bool),
        gate_first=_firsts(link[gates, OF], shapes), gate=gates[by_shape].astype(np.int32),
        closed=np.empty(shapes, np.int32), size=np.zeros(1, np.int64), mode=mode,
    )
    refresh_all(tree)
    return tree


def _firsts(group: np.ndarray, groups: int) -> np.ndarray:
    """Return int64[group + 1]: where the members of each group begin, when sorted by group."""
    return np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))]).astype(np.int64)


@kernel
def lay_out(  # noqa: PLR0913, PLR0917  (the tree, and where its parts are)
    link: np.ndarray, weight: np.ndarray, slot_of_leaf: np.ndarray, branches: Branches, sorted_leaves: np.ndarray,
    leaf_first: np.ndarray, children: np.ndarray, child_first: np.ndarray, open_slots: np.ndarray,
) -> int:
    """Lay the tree out from its last node to the root, and return the number of slots; empty nodes get none.

    *sorted_leaves* are by parent and shape; *open_slots* is room for the slots of one node's children.
    """
    slots = 0
    nodes = branches.parent.size
    of_node = open_slots[open_slots.size - nodes :]  # behind what a node's children can take
    for node in range(nodes - 1, -1, -1):
        count = 0
        place = leaf_first[node]
        while place < leaf_first[node + 1]:
            shape, first = branches.leaf_shape[sorted_leaves[place]], count
            while place < leaf_first[node + 1] and branches.leaf_shape[sorted_leaves[place]] == shape:
                leaf = sorted_leaves[place]
                link[slots, KIND], link[slots, OF] = LEAF, leaf
                weight[slots] = branches.leaf_weight[leaf]
                slot_of_leaf[leaf] = slots
                open_slots[count] = slots
                slots, count, place = slots + 1, count + 1, place + 1
            slots = join_run(link, open_slots, first, count, slots)
            slots = put_over(link, GATE, shape, open_slots[first], slots)
            open_slots[first] = slots - 1
            count = first + 1
        for child in children[child_first[node] : child_first[node + 1]]:
            if of_node[child] != NOBODY:
                open_slots[count] = of_node[child]
                count += 1
        of_node[node] = NOBODY
        if count > 0:
            slots = join_run(link, open_slots, 0, count, slots)
            weight[slots] = branches.weight[node]
            of_node[node] = slots
            slots = put_over(link, NODE, node, open_slots[0], slots)
    return slots


@kernel
def join_run(link: np.ndarray, open_slots: np.ndarray, first: int, end: int, slots: int) -> int:
    """Join the slots *first* to *end* - 1 in pairs until one is left, at *first*; return the number of slots."""
    while end - first > 1:
        kept = first
        for place in range(first, end - 1, 2):
            left, right = open_slots[place], open_slots[place + 1]
            link[slots, KIND], link[slots, LEFT], link[slots, RIGHT] = JOIN, left, right
            link[left, UP] = slots
            link[right, UP] = slots
            open_slots[kept] = slots
            slots, kept = slots + 1, kept + 1
        if (end - first) % 2 == 1:
            open_slots[kept] = open_slots[end - 1]
            kept += 1
        end = kept
    return slots


@kernel
def put_over(link: np.ndarray, kind: int, number: int, below: int, slots: int) -> int:
    """Put a gate or a node over a slot; return the number of slots."""
    link[slots, KIND], link[slots, OF], link[slots, LEFT] = kind, number, below
    link[below, UP] = slots
    return slots + 1
