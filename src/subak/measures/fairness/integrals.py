"""Integrates what the queues of a level hold, are guaranteed and lack, and how long they wait.

Each node's rows are added up one after the other, in the order of time, and so is what is in each interval.
"""
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.measures.fairness.rows import Rows

SLACK = 1e-9  # a share that misses its guarantee by less does not miss it
ROOT = 0  # rows of it are of several nodes together, which are followed and no more
NOT_FOLLOWED = -1  # the place of a node that is not followed
NEVER = -1  # the instant at which what does not hold begins
HELD_FROM, HELD_TO, VALUE, BEFORE, TOTAL, REACHED = range(6)  # of a piece of time in which a value holds
PIECE = 6  # numbers of one


class Chunk(NamedTuple):
    """A span of time, its instants, and the capacity in it; of the tree what kernels need."""

    time: np.ndarray  # float64[instant], seconds; the last is the chunk's end
    changes: np.ndarray  # int64[change], instants at which the capacity changes
    since: np.ndarray  # float64[step], seconds: since when there is which capacity
    capacity: np.ndarray  # int64[resource, step], units
    parent: np.ndarray  # int32[node]
    weight: np.ndarray  # float64[node]


class Steps(NamedTuple):
    """What a weight of one is guaranteed among the active children of a node, over time; by key of that node."""

    key: np.ndarray  # int64[step]
    height: np.ndarray  # float64[step], 0 where no child is active
    area: np.ndarray  # float64[step], share-seconds of all steps before it


class Intervals(NamedTuple):
    """The intervals of the timeline that lie in a chunk."""

    edge: np.ndarray  # float64[interval + 1], seconds
    instant: np.ndarray  # int64[interval + 1]: the last one by each edge
    place: np.ndarray  # int64[node]: where a node is followed, NOT_FOLLOWED where it is not
    piece: np.ndarray  # float64[PIECE]: what was looked at last


class Starving(NamedTuple):
    """The longest spans in a chunk in which tasks of a node wait and it holds nothing."""

    node: np.ndarray  # int64[row]
    since: np.ndarray  # float64[row], seconds
    until: np.ndarray  # float64[row], seconds


class Measured(NamedTuple):
    """Integrals over time, and how long queues starved."""

    share: np.ndarray  # float64[node], share-seconds: the dominant share
    guarantee: np.ndarray  # float64[node], share-seconds
    shortfall: np.ndarray  # float64[node], share-seconds below the guarantee while tasks wait
    demanding: np.ndarray  # float64[node], seconds in which tasks wait
    jain: np.ndarray  # float64[level], seconds times the index
    jain_time: np.ndarray  # float64[level], seconds in which there was one
    starved: np.ndarray  # float64[node], seconds: the longest in which tasks waited and nothing was held
    binned: np.ndarray  # float64[place, resource + 3, interval]: shares, dominant share, guarantee, waiting; x seconds


@kernel
def add_demand(chunk: Chunk, rows: Rows, steps: Steps, measured: Measured, starving: Starving) -> int:
    """Add for how long nodes demand, and what they are guaranteed; list when they starve, and return how often."""
    found, since, hungry = 0, NEVER, NEVER
    for row in range(rows.node.size):
        node, begin, end = rows.node[row], rows.begin[row], rows.end[row]
        waits, holds = waits_in(rows, row), holds_in(rows, row)
        if waits:
            measured.demanding[node] += chunk.time[end] - chunk.time[begin]
        last = row + 1 == rows.node.size or rows.node[row + 1] != node
        active, starves = waits or holds, waits and not holds
        if active and since == NEVER:
            since = begin
        if since != NEVER and (last or not active):
            measured.guarantee[node] += guaranteed(chunk, steps, node, since, end if active else begin)
            since = NEVER
        if starves and hungry == NEVER:
            hungry = begin
        if hungry != NEVER and (last or not starves):
            starving.node[found], starving.since[found] = node, chunk.time[hungry]
            starving.until[found] = chunk.time[end if starves else begin]
            found += 1
            hungry = NEVER
    return found


@kernel
def add_shares(
    chunk: Chunk, rows: Rows, shares: np.ndarray, steps: Steps, highest: np.ndarray, intervals: Intervals,
    measured: Measured,
) -> None:
    """Add what nodes hold, and lack of their guarantee, and what those that are followed do in each interval.

    *shares* is float64[resource + 2, row], which is filled in: that of each resource, of the dominant one, and how many
    tasks wait. *highest* is float64[node], the most that a weight of one is guaranteed among its children.
    """
    first = 0
    while first < rows.node.size:
        node, behind = rows.node[first], first
        while behind < rows.node.size and rows.node[behind] == node:
            fill_shares(chunk, rows, shares, behind)
            behind += 1
        if node != ROOT:
            add_held(chunk, rows, shares, first, behind, measured)
            most = highest[chunk.parent[node]] * chunk.weight[node]
            measured.shortfall[node] += shortfall(chunk, rows, shares, steps, first, behind, most)
        if intervals.place[node] != NOT_FOLLOWED:
            follow_shares(chunk, rows, shares, first, behind, intervals, measured)
            if node != ROOT:
                follow_guarantee(chunk, rows, steps, first, behind, intervals, measured)
        first = behind


@inlined
def waits_in(rows: Rows, row: int) -> bool:
    """Whether tasks wait, which makes a queue demand."""
    return rows.amount[rows.amount.shape[0] - 1, row] > 0


@inlined
def holds_in(rows: Rows, row: int) -> bool:
    """Whether anything is held."""
    held = False
    for resource in range(rows.amount.shape[0] - 1):
        held |= rows.amount[resource, row] > 0
    return held


# Guarantees


@inlined
def guaranteed(chunk: Chunk, steps: Steps, node: int, begin: int, end: int) -> float:
    """Return the share-seconds that a node is guaranteed between two instants while it is active."""
    own = chunk.parent[node] * chunk.time.size
    return chunk.weight[node] * (area_until(chunk, steps, own, end) - area_until(chunk, steps, own, begin))


@inlined
def area_until(chunk: Chunk, steps: Steps, own: int, instant: int) -> float:
    """Return the share-seconds of a weight of one; *own* is the key of the parent's first instant."""
    step = last_by(steps.key, own + instant)
    return steps.area[step] + steps.height[step] * (
        chunk.time[instant] - chunk.time[steps.key[step] % chunk.time.size])


@inlined
def last_by(values: np.ndarray, value: float) -> int:
    """Return the place of the last of ascending *values*, float64[place], that is not above *value*; -1 for none."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - 1


# What a node's rows from *first* to before *behind* add up to


@inlined
def fill_shares(chunk: Chunk, rows: Rows, shares: np.ndarray, row: int) -> None:
    """Fill in what is held of what there is when the row begins, and how many tasks wait."""
    resources, dominant = chunk.capacity.shape[0], 0.0
    step = last_by(chunk.since, chunk.time[rows.begin[row]])
    for resource in range(resources):
        there, share = chunk.capacity[resource, step], 0.0
        if there > 0:
            share = rows.amount[resource, row] / there
        shares[resource, row] = share
        dominant = max(dominant, share)
    shares[resources, row] = dominant
    shares[resources + 1, row] = rows.amount[resources, row]


@inlined
def add_held(chunk: Chunk, rows: Rows, shares: np.ndarray, first: int, behind: int, measured: Measured) -> None:
    """Add the share-seconds of the dominant share."""
    node, resources = rows.node[first], chunk.capacity.shape[0]
    for row in range(first, behind):
        seconds = chunk.time[rows.end[row]] - chunk.time[rows.begin[row]]
        measured.share[node] += shares[resources, row] * seconds


@inlined
def shortfall(
    chunk: Chunk, rows: Rows, shares: np.ndarray, steps: Steps, first: int, behind: int, most: float,
) -> float:
    """Return the share-seconds that a node is below its guarantee, *most* at most, while it has tasks that wait.

    *first*, *behind*: its rows, the last one excluded.

    What holds nothing lacks all of its guarantee, and what holds more than it is ever guaranteed lacks nothing: only
    the rows between are cut wherever their guarantees change, which is often where many siblings come and go.
    """
    node, resources, found, since = rows.node[first], chunk.capacity.shape[0], 0.0, NEVER
    for row in range(first, behind):
        lacks_all = waits_in(rows, row) and shares[resources, row] == 0 and most > 0
        if lacks_all and since == NEVER:
            since = rows.begin[row]
        if since != NEVER and (row + 1 == behind or not lacks_all):
            found += guaranteed(chunk, steps, node, since, rows.end[row] if lacks_all else rows.begin[row])
            since = NEVER
    for row in range(first, behind):
        if waits_in(rows, row) and 0 < shares[resources, row] < most:
            found = add_lack(chunk, rows, steps, row, shares[resources, row], found)
    return found


@inlined
def add_lack(chunk: Chunk, rows: Rows, steps: Steps, row: int, dominant: float, found: float) -> float:
    """Return *found* with the share-seconds that a row's dominant share is below its guarantee, piece by piece."""
    node, instants = rows.node[row], chunk.time.size
    own, weight = chunk.parent[node] * instants, chunk.weight[node]
    step, begin, end = last_by(steps.key, own + rows.begin[row]), rows.begin[row], rows.end[row]
    while begin < end:
        until = step_end(steps, step, own, end)
        gap = steps.height[step] * weight - dominant
        if gap >= SLACK:
            found += gap * (chunk.time[until] - chunk.time[begin])
        step, begin = step + 1, until
    return found


@inlined
def step_end(steps: Steps, step: int, own: int, end: int) -> int:
    """Return the instant at which a step ends, *end* if that is before."""
    return min(steps.key[step + 1] - own, end) if step + 1 < steps.key.size else end


# Through the intervals of the timeline


@inlined
def follow_shares(
    chunk: Chunk, rows: Rows, shares: np.ndarray, first: int, behind: int, intervals: Intervals, measured: Measured
) -> None:
    """Add what a node holds, and how many of its tasks wait, in each interval."""
    place, resources = intervals.place[rows.node[first]], chunk.capacity.shape[0]
    for number in range(resources + 2):
        edge, column = 0, number if number <= resources else number + 1  # the guarantee's is between
        for row in range(first, behind):
            if row > first:
                edge = close_edges(intervals, measured, place, column, edge, rows.begin[row])
            begin_piece(chunk, rows.begin[row], rows.end[row], shares[number, row], row == first, intervals.piece)
        close_edges(intervals, measured, place, column, edge, chunk.time.size)


@inlined
def follow_guarantee(
    chunk: Chunk, rows: Rows, steps: Steps, first: int, behind: int, intervals: Intervals, measured: Measured
) -> None:
    """Add what a node is guaranteed in each interval, while it is active."""
    node, edge, since, begun = rows.node[first], 0, NEVER, False
    for row in range(first, behind):
        active = waits_in(rows, row) or holds_in(rows, row)
        if active and since == NEVER:
            since = rows.begin[row]
        if since != NEVER and (row + 1 == behind or not active):
            until = rows.end[row] if active else rows.begin[row]
            edge = follow_steps(chunk, steps, node, since, until, begun, edge, intervals, measured)
            since, begun = NEVER, True
    if begun:
        close_edges(intervals, measured, intervals.place[node], chunk.capacity.shape[0] + 1, edge, chunk.time.size)


@inlined
def follow_steps(  # noqa: PLR0913, PLR0917
    chunk: Chunk, steps: Steps, node: int, begin: int, end: int, begun: bool, edge: int, intervals: Intervals,
    measured: Measured,
) -> int:
    """Add the same between two instants, piece by piece; return the edge that comes next."""
    place, column = intervals.place[node], chunk.capacity.shape[0] + 1
    own = chunk.parent[node] * chunk.time.size
    step = last_by(steps.key, own + begin)
    while begin < end:
        until = step_end(steps, step, own, end)
        if begun:
            edge = close_edges(intervals, measured, place, column, edge, begin)
        begin_piece(chunk, begin, until, steps.height[step] * chunk.weight[node], not begun, intervals.piece)
        step, begin, begun = step + 1, until, True
    return edge


@inlined
def begin_piece(chunk: Chunk, begin: int, end: int, value: float, first: bool, piece: np.ndarray) -> None:
    """Go on with a value that holds from one instant to another, behind what was looked at last."""
    piece[HELD_FROM], piece[HELD_TO], piece[VALUE] = chunk.time[begin], chunk.time[end], value
    area = value * (piece[HELD_TO] - piece[HELD_FROM])
    piece[TOTAL] = area if first else piece[TOTAL] + area
    piece[BEFORE] = piece[TOTAL] - area


@inlined
def close_edges(
    intervals: Intervals, measured: Measured, place: int, column: int, edge: int, behind: int
) -> int:
    """Add what there is between the edges before instant *behind*, from *edge* on; return the one that comes next."""
    piece = intervals.piece
    while edge < intervals.edge.size and intervals.instant[edge] < behind:
        at = min(max(intervals.edge[edge], piece[HELD_FROM]), piece[HELD_TO])
        reached = piece[BEFORE] + piece[VALUE] * (at - piece[HELD_FROM])
        if edge > 0:
            measured.binned[place, column, edge - 1] += reached - piece[REACHED]
        piece[REACHED] = reached
        edge += 1
    return edge
