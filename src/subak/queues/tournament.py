"""Finds the first waiting task among those that fit a machine's free amounts.

Lanes are in groups, a lane for each shape, and go by their turns; those of one turn go by their first tasks' numbers.
Each group is a binary tree over its lanes; a node knows the first task and the least amounts asked of those below it,
so that a search leaves out whatever is served later or cannot fit. It is logarithmic where requests are ordered alike
in every resource, as a group's lanes are by their dominant one.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.feasible import shape_fits
from subak.fleet.state import FleetState
from subak.marks import inlined
from subak.queues.lanes import NOBODY, Lanes
from subak.workload.tasks import Tasks

NOBODY_WAITS = 2**31 - 1  # instead of an amount where nobody waits
NO_KEY = 2**62  # instead of a key
TURN_SHIFT, TASK_MASK = 32, 2**32 - 1  # a key: the turn, shifted, and the number of the task
DEPTH = 128  # of the search: two nodes a level


class Tournament(NamedTuple):
    """One tree for each group; the children of node n are 2 n and 2 n + 1, counted from the group's base."""

    first: np.ndarray  # int64[node], the least key of those that wait below, NO_KEY if nobody does
    least: np.ndarray  # int32[resource, node], units, the least asked by those that wait below
    base: np.ndarray  # int32[group]
    leaves: np.ndarray  # int32[group], a power of two: nodes from here on, counted from the base, are lanes
    base_of_lane: np.ndarray  # int32[lane]
    leaf: np.ndarray  # int32[lane], counted from the base
    turn: np.ndarray  # int64[lane]
    stack: np.ndarray  # int32[DEPTH]


def build_tournament(
    group_of_lane: np.ndarray, groups: int, request: np.ndarray, largest: np.ndarray, turn: np.ndarray | None = None
) -> Tournament:
    """Return the trees of empty lanes; *request* is int32[resource, lane], *largest* int[resource], both units.

    *turn* is int64[lane], below 2**30; without it only the tasks' numbers count.
    """
    members = np.bincount(group_of_lane, minlength=groups)
    leaves = np.array([1 << int(count - 1).bit_length() if count > 1 else 1 for count in members], np.int32)
    base = np.concatenate([[0], np.cumsum(2 * leaves)]).astype(np.int32)
    dominant = (request / np.maximum(largest, 1)[:, None]).max(axis=0)
    order = np.lexsort((dominant, group_of_lane))
    number = np.empty(order.size, np.int32)  # of a lane among those of its group
    number[order] = np.arange(order.size) - np.concatenate([[0], np.cumsum(members)])[group_of_lane[order]]
    return Tournament(
        first=np.full(base[-1], NO_KEY, np.int64),
        least=np.full((len(request), base[-1]), NOBODY_WAITS, np.int32),
        base=base[:-1], leaves=leaves, base_of_lane=base[group_of_lane],
        leaf=(leaves[group_of_lane] + number).astype(np.int32),
        turn=np.zeros(group_of_lane.size, np.int64) if turn is None else turn, stack=np.zeros(DEPTH, np.int32),
    )


@inlined
def note_first(trees: Tournament, lanes: Lanes, tasks: Tasks, lane: int) -> None:
    """Let the tree of a lane know its first task, after that changed; lane s holds the tasks of shape s."""
    base, node = trees.base_of_lane[lane], trees.leaf[lane]
    waits = lanes.root[lane] != NOBODY
    trees.first[base + node] = (trees.turn[lane] << TURN_SHIFT) + lanes.root[lane] if waits else NO_KEY
    for resource in range(trees.least.shape[0]):
        trees.least[resource, base + node] = tasks.request[resource, lane] if waits else NOBODY_WAITS
    while node > 1:
        node //= 2
        left, right = base + 2 * node, base + 2 * node + 1
        trees.first[base + node] = min(trees.first[left], trees.first[right])
        for resource in range(trees.least.shape[0]):
            trees.least[resource, base + node] = min(trees.least[resource, left], trees.least[resource, right])


@inlined
def may_hold(trees: Tournament, fleet: FleetState, node: int, machine: int) -> bool:
    """Whether what a machine has free may be enough for someone below a node."""
    for resource in range(trees.least.shape[0]):  # noqa: SIM110
        if trees.least[resource, node] > fleet.free[resource, machine]:
            return False
    return True


@inlined
def first_that_fits(trees: Tournament, fleet: FleetState, tasks: Tasks, group: int, machine: int) -> int:
    """Return the first waiting task of a group that fits a machine now, or NOBODY."""
    base, leaves, best = trees.base[group], trees.leaves[group], NO_KEY
    trees.stack[0] = 1
    size = 1
    while size > 0:
        size -= 1
        node = trees.stack[size]
        if trees.first[base + node] < best and may_hold(trees, fleet, base + node, machine):
            if node < leaves:
                left_last = trees.first[base + 2 * node] < trees.first[base + 2 * node + 1]
                trees.stack[size] = 2 * node + left_last
                trees.stack[size + 1] = 2 * node + 1 - left_last
                size += 2
            elif shape_fits(fleet, tasks, tasks.shape[trees.first[base + node] & TASK_MASK], machine):
                best = trees.first[base + node]
    return NOBODY if best == NO_KEY else int(best & TASK_MASK)
