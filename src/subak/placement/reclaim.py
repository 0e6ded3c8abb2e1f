"""Preempts for fairness: a queue below its guarantee reclaims from the queue furthest above its own.

Rules:
- A queue takes only up to its guarantee, the next task included, and only what it lacks a machine for.
- A queue gives only down to its guarantee, the task included; of its tasks the one that started last goes first.
- So who took is not above, who gave is not below, and nothing goes back before the guarantees change: with an arrival,
  or when a queue has nothing left to run.

The guarantee of a queue is the product over its path of its weight by that of its siblings that wait or run.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.feasible import shape_fits_without
from subak.fleet.state import FleetState
from subak.marks import noinline
from subak.placement.fair import ENOUGH, Fair, may_take, note_guarantees, share_with
from subak.queues.hierarchy import NOBODY
from subak.workload.tasks import Tasks

HOUR = 3600.0
REST_MAX = 60.0  # seconds after a search in vain, at most
TOKENS, TOPPED_UP, LOOK_AGAIN, PER_SECOND, TOKENS_MAX = range(5)  # of `clock`


class Reclaim(NamedTuple):
    """How much may be preempted, and scratch."""

    guarantee: np.ndarray  # float64[node]; empty where nothing may be preempted
    tried: np.ndarray  # bool[shape]
    clock: np.ndarray  # float64[5]: TOKENS ... TOKENS_MAX


def build_reclaim(nodes: int, shapes: int, reclaims_per_hour: float) -> Reclaim:
    """Return a full bucket for *reclaims_per_hour* an hour, at most a minute's worth (or one) at once."""
    clock = np.zeros(5)
    clock[PER_SECOND] = reclaims_per_hour / HOUR
    clock[TOKENS] = clock[TOKENS_MAX] = max(1.0, reclaims_per_hour / 60.0) if reclaims_per_hour > 0.0 else 0.0
    return Reclaim(np.zeros(nodes if reclaims_per_hour > 0.0 else 0), np.zeros(shapes, bool), clock)


@noinline
def look_anew(fair: Fair, reclaim: Reclaim, now: float) -> None:
    """Fill the bucket for the time that has passed, and begin with what the guarantees are now."""
    clock = reclaim.clock
    clock[TOKENS] = min(clock[TOKENS_MAX], clock[TOKENS] + (now - clock[TOPPED_UP]) * clock[PER_SECOND])
    clock[TOPPED_UP] = now
    reclaim.tried[:] = False
    note_guarantees(fair, reclaim.guarantee)


@noinline
def note_in_vain(reclaim: Reclaim, shape: int, now: float) -> None:
    """Note that no place was found for a shape: the next search, which looks at everything that runs, waits a while."""
    reclaim.tried[shape] = True
    reclaim.clock[LOOK_AGAIN] = now + min(1.0 / reclaim.clock[PER_SECOND], REST_MAX)


@noinline
def makes_room(fleet: FleetState, tasks: Tasks, victim: int, task: int, machine: int) -> bool:
    """Whether a task would fit its victim's machine in its place."""
    return bool(shape_fits_without(fleet, tasks, tasks.shape[task], machine, tasks.shape[victim]))


@noinline
def goes_first(start: np.ndarray, task: int, above: float, other: int, most: float) -> bool:
    """Whether a task, *above* its queue's guarantee, is ended rather than another that is *most* above, or NOBODY.

    *start* is float64[task], seconds: of equals the latest started goes, then the highest number.
    """
    if above != most or above == 0.0 or other == NOBODY:
        return bool(above > most)
    return bool(start[task] > start[other] or (start[task] == start[other] and task > other))


@noinline
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


@noinline
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


@noinline
def is_above(fair: Fair, node: int, other: int) -> bool:
    """Whether a queue is another, or above it."""
    while other != NOBODY:
        if other == node:
            return True
        other = fair.parent[other]
    return False
