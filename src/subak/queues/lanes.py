"""Lanes of waiting tasks, each a pairing heap ordered by (rank, task number).

One lane is a strict queue; a lane per shape lets later tasks that fit go ahead; a lane per machine is a machine
queue. Links are arrays over the tasks, so a waiting task costs eight bytes and no allocation.

Rules: a task is in at most one lane; `active` lists exactly the lanes that hold a task.
Source of the heap: Fredman et al., "The pairing heap", Algorithmica 1 (1986), two-pass merging.
"""
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel
from subak.marks import inlined

NOBODY = -1  # no task
NO_PLACE = -1  # no place


class Lanes(NamedTuple):
    """Any number of ordered queues of tasks."""

    root: np.ndarray  # int32[lane], the task served first, NOBODY when empty
    length: np.ndarray  # int32[lane], tasks in it
    child: np.ndarray  # int32[task]
    sibling: np.ndarray  # int32[task]
    score: np.ndarray  # float64[lane], what a round serves first; 0 where only the rank counts
    active: np.ndarray  # int32[lane], the non-empty lanes, in no order
    position: np.ndarray  # int32[lane], place in active
    contender: np.ndarray  # int32[lane], a heap of the lanes served in this round
    place: np.ndarray  # int32[lane], place in contender, NO_PLACE for a lane that is not served in this round
    size: np.ndarray  # int64[3]: ACTIVE_LANES, CONTENDERS, MISUSES (of a lane that is not there, or empty)
    by_shape: bool  # whether lane s holds exactly the tasks of shape s
    number: np.ndarray  # int64[task], what goes by between equal ranks; empty: the tasks' own numbers


ACTIVE_LANES, CONTENDERS, MISUSES = 0, 1, 2


def build_lanes(lanes: int, tasks: int, by_shape: bool = False, number: np.ndarray | None = None) -> Lanes:
    """Return empty lanes for the given numbers of lanes and tasks; *number* as of `Lanes`."""
    return Lanes(
        root=np.full(lanes, NOBODY, np.int32),
        length=np.zeros(lanes, np.int32),
        child=np.empty(tasks, np.int32),
        sibling=np.empty(tasks, np.int32),
        score=np.zeros(lanes),
        active=np.empty(lanes, np.int32),
        position=np.empty(lanes, np.int32),
        contender=np.empty(lanes, np.int32),
        place=np.full(lanes, NO_PLACE, np.int32),
        size=np.zeros(3, np.int64),
        by_shape=by_shape,
        number=np.zeros(0, np.int64) if number is None else number,
    )


@inlined
def goes_before(lanes: Lanes, rank: np.ndarray, first: int, second: int) -> bool:
    """Whether task *first* is served before task *second*."""
    if rank[first] != rank[second]:
        return rank[first] < rank[second]
    if lanes.number.size > 0:
        return lanes.number[first] < lanes.number[second]
    return first < second


@inlined
def meld(lanes: Lanes, rank: np.ndarray, first: int, second: int) -> int:
    """Join two heaps and return the root; NOBODY is the empty heap."""
    if first == NOBODY:
        return second
    if second == NOBODY:
        return first
    if goes_before(lanes, rank, second, first):
        first, second = second, first
    lanes.sibling[second] = lanes.child[first]
    lanes.child[first] = second
    return first


@kernel
def meld_children(lanes: Lanes, rank: np.ndarray, first: int) -> int:
    """Join a list of siblings in two passes: in pairs from the left, then the pairs from the right."""
    pairs = NOBODY
    while first != NOBODY:
        second = lanes.sibling[first]
        lanes.sibling[first] = NOBODY
        rest = NOBODY
        if second != NOBODY:
            rest = lanes.sibling[second]
            lanes.sibling[second] = NOBODY
        pair = meld(lanes, rank, first, second)
        lanes.sibling[pair] = pairs
        pairs = pair
        first = rest
    root = NOBODY
    while pairs != NOBODY:
        rest = lanes.sibling[pairs]
        lanes.sibling[pairs] = NOBODY
        root = meld(lanes, rank, root, pairs)
        pairs = rest
    return root


@inlined
def push(lanes: Lanes, rank: np.ndarray, lane: int, task: int) -> None:
    """Let a task wait in a lane; a lane or a task that does not exist is noted, and the run stops."""
    if lane < 0 or lane >= lanes.root.size or task < 0 or task >= lanes.child.size:
        lanes.size[MISUSES] += 1
        return
    lanes.child[task] = NOBODY
    lanes.sibling[task] = NOBODY
    if lanes.root[lane] == NOBODY:
        lanes.position[lane] = lanes.size[ACTIVE_LANES]
        lanes.active[lanes.size[ACTIVE_LANES]] = lane
        lanes.size[ACTIVE_LANES] += 1
    lanes.root[lane] = meld(lanes, rank, lanes.root[lane], task)
    lanes.length[lane] += 1


@inlined
def pop(lanes: Lanes, rank: np.ndarray, lane: int) -> int:
    """Take the first task out of a lane, and return it; one that is empty or not there is noted, and the run stops."""
    if lane < 0 or lane >= lanes.root.size or lanes.root[lane] == NOBODY:
        lanes.size[MISUSES] += 1
        return NOBODY
    task = lanes.root[lane]
    lanes.root[lane] = meld_children(lanes, rank, lanes.child[task])
    lanes.length[lane] -= 1
    if lanes.root[lane] == NOBODY:
        deactivate(lanes, lane)
    return task


@kernel
def detach(lanes: Lanes, lane: int) -> int:
    """Empty a lane that is not empty; return the first of its tasks, which `next_detached` goes on from."""
    first = lanes.root[lane]
    lanes.root[lane] = NOBODY
    lanes.length[lane] = 0
    deactivate(lanes, lane)
    return first


@kernel
def next_detached(lanes: Lanes, rank: np.ndarray, task: int) -> int:
    """Return the task that follows in a detached lane, or NOBODY; *task* is then free to wait elsewhere."""
    return meld_children(lanes, rank, lanes.child[task])


@inlined
def deactivate(lanes: Lanes, lane: int) -> None:
    """Take a lane that became empty out of the list of active ones."""
    lanes.size[ACTIVE_LANES] -= 1
    last = lanes.active[lanes.size[ACTIVE_LANES]]
    lanes.active[lanes.position[lane]] = last
    lanes.position[last] = lanes.position[lane]


@inlined
def contend(lanes: Lanes, rank: np.ndarray, lane: int) -> None:
    """Enter a non-empty lane into this round; the highest score is served first, ties by the first tasks."""
    place = lanes.size[CONTENDERS]
    lanes.contender[place] = lane
    lanes.place[lane] = place
    lanes.size[CONTENDERS] += 1
    rise(lanes, rank, place)


@inlined
def rise(lanes: Lanes, rank: np.ndarray, place: int) -> None:
    """Restore the round's order after the contender at *place* came to be served earlier."""
    while place > 0 and lane_before(lanes, rank, place, (place - 1) // 2):
        swap_contenders(lanes, place, (place - 1) // 2)
        place = (place - 1) // 2


@inlined
def settle_top(lanes: Lanes, rank: np.ndarray) -> None:
    """Restore the round's order after the first contender's score or first task changed."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= lanes.size[CONTENDERS]:
            return
        if child + 1 < lanes.size[CONTENDERS] and lane_before(lanes, rank, child + 1, child):
            child += 1
        if not lane_before(lanes, rank, child, place):
            return
        swap_contenders(lanes, child, place)
        place = child


@inlined
def drop_top(lanes: Lanes, rank: np.ndarray) -> None:
    """Take the first contender out of this round."""
    lanes.size[CONTENDERS] -= 1
    lanes.place[lanes.contender[0]] = NO_PLACE
    if lanes.size[CONTENDERS] > 0:
        lanes.contender[0] = lanes.contender[lanes.size[CONTENDERS]]
        lanes.place[lanes.contender[0]] = 0
        settle_top(lanes, rank)


@inlined
def lane_before(lanes: Lanes, rank: np.ndarray, place: int, other: int) -> bool:
    """Whether the contender at *place* goes before the one at *other*."""
    first, second = lanes.contender[place], lanes.contender[other]
    if lanes.score[first] != lanes.score[second]:
        return lanes.score[first] > lanes.score[second]
    return goes_before(lanes, rank, lanes.root[first], lanes.root[second])


@inlined
def swap_contenders(lanes: Lanes, place: int, other: int) -> None:
    """Exchange two places of the round's heap."""
    lanes.contender[place], lanes.contender[other] = lanes.contender[other], lanes.contender[place]
    lanes.place[lanes.contender[place]], lanes.place[lanes.contender[other]] = place, other
