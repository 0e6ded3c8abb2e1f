"""A sweep over what queues hold and want: from attempts to integrals over time, without a loop over tasks.

What a queue holds, and how many of its tasks wait, are step functions of time. A *row* is a span in which nothing of
one queue changes, an *instant* the number of a time at which anything does, and node * instants + instant the *key*
that keeps rows of one node together and in the order of time. Amounts are whole units, so sums have nothing to drift
with. The sweep goes through time in chunks, so what it needs beside the attempts does not grow with the run.
"""
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from subak.fleet.capacity import Capacity
from subak.measures.fairness.rows import Rows, ends, runs, split, summed, totalled
from subak.measures.fairness.spans import Part, Span, spans
from subak.queues.tree import QueueTree

SLACK = 1e-9  # a share that misses its guarantee by less does not miss it
FINE_SHARE = 2**29  # of a share, at most 1, for exact sums of its square: those of 30 resources stay below 2^63


class Measured(NamedTuple):
    """Integrals over the time swept so far, and how things stand at its end."""

    share: np.ndarray  # float64[node], share-seconds: the dominant share
    guarantee: np.ndarray  # float64[node], share-seconds
    shortfall: np.ndarray  # float64[node], share-seconds below the guarantee while tasks wait
    demanding: np.ndarray  # float64[node], seconds in which tasks wait
    starved: np.ndarray  # float64[node], seconds: the longest in which tasks waited and nothing was held
    starved_since: np.ndarray  # float64[node], seconds, nan where it is not
    jain: np.ndarray  # float64[level], seconds times the index
    jain_time: np.ndarray  # float64[level], seconds in which there was one
    amount: np.ndarray  # int64[resource + 1, node]: held and, last, waiting tasks; of leaves
    binned: np.ndarray  # float64[place, resource + 3, interval]: shares, dominant share, guarantee, waiting; x seconds


class Demand(NamedTuple):
    """What an attempt holds, and in which queue, by its stage."""

    leaf: np.ndarray  # int32[stage], node of the queue
    request: np.ndarray  # int64[resource, stage], units


class Bins(NamedTuple):
    """Which queues are followed through which intervals of time."""

    edges: np.ndarray  # float64[interval + 1], seconds
    place: np.ndarray  # int64[node]: where a node is followed, -1 where it is among the others of its level
    others: np.ndarray  # int64[level]: where the others of each level are, together


class Steps(NamedTuple):
    """What a weight of one is guaranteed among the active children of a node, over time; by key of that node."""

    key: np.ndarray  # int64[step]
    height: np.ndarray  # float64[step], 0 where no child is active
    area: np.ndarray  # float64[step], share-seconds of all steps before it


class Chunk(NamedTuple):
    """A span of time, its instants, and the capacity in it."""

    time: np.ndarray  # float64[instant], seconds; the last is the chunk's end
    changes: np.ndarray  # int64[change], instants at which the capacity changes
    capacity: Capacity
    tree: QueueTree


def sweep(
    parts: Iterable[Part], cuts: np.ndarray, demand: Demand, tree: QueueTree, capacity: Capacity, bins: Bins
) -> Measured:
    """Return what holds from the first to the last of *cuts*, seconds; time is gone through from one to the next."""
    nodes, resources, levels = len(tree), len(demand.request), int(tree.depth.max())
    places = int(max(bins.place.max(), bins.others.max())) + 1
    measured = Measured(
        share=np.zeros(nodes), guarantee=np.zeros(nodes), shortfall=np.zeros(nodes), demanding=np.zeros(nodes),
        starved=np.zeros(nodes), starved_since=np.full(nodes, np.nan),
        jain=np.zeros(levels), jain_time=np.zeros(levels),
        amount=np.zeros((resources + 1, nodes), np.int64),
        binned=np.zeros((places, resources + 3, bins.edges.size - 1)))
    for span in spans(parts, cuts):
        first, last = np.searchsorted(bins.edges, span.begin, side="right") - 1, np.searchsorted(bins.edges, span.end)
        _sweep_chunk(span, demand, tree, capacity, bins._replace(edges=bins.edges[first : last + 1]),
                     measured._replace(binned=measured.binned[:, :, first:last]))
    return measured


def _sweep_chunk(
    span: Span, demand: Demand, tree: QueueTree, capacity: Capacity, bins: Bins, measured: Measured
) -> None:
    """Add what one span of time brings."""
    node, time, deltas = _events(span, demand, tree.leaves, measured.amount)
    measured.amount[:] = 0
    for row, column in enumerate(deltas):
        np.add.at(measured.amount[row], node, column)
    inside = capacity.time[(capacity.time > span.begin) & (capacity.time < span.end)]
    instants, place = np.unique(np.concatenate([time, inside]), return_inverse=True)
    chunk = Chunk(np.append(instants, span.end), np.unique(place[time.size:]), capacity, tree)
    steps = Steps(np.zeros(1, np.int64), np.ones(1), np.zeros(1))  # the root has everything
    for rows, others in _levels(chunk, node, place[: time.size], deltas, bins):
        steps = _measure(chunk, rows, others, steps, bins, measured)


def _events(
    span: Span, demand: Demand, leaves: np.ndarray, amount: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return leaf, time (seconds) and int64[resource + 1, event]: what is held and waits at first, and changes then."""
    node, time, deltas = [leaves], [np.full(leaves.size, span.begin)], [amount[:, leaves]]
    for times, rows, held, waiting in zip(span.trail[1:], span.changes, (0, 1, -1), (1, -1, 0), strict=True):
        stage = span.trail.stage[rows]
        change = np.empty((len(demand.request) + 1, rows.size), np.int64)
        change[:-1] = held * demand.request[:, stage] if held else 0
        change[-1] = waiting
        node.append(demand.leaf[stage])
        time.append(times[rows])
        deltas.append(change)
    return np.concatenate(node), np.concatenate(time), np.concatenate(deltas, axis=1)


# From events to rows


def _levels(
    chunk: Chunk, leaf: np.ndarray, instant: np.ndarray, deltas: np.ndarray, bins: Bins
) -> list[tuple[Rows, Rows | None]]:
    """Return the rows of each level, the topmost first, and of those together that are not followed one by one."""
    tree, instants = chunk.tree, chunk.time.size
    depth, below = tree.depth[leaf], (leaf[:0], instant[:0], deltas[:, :0])
    found: list[tuple[Rows, Rows | None]] = []
    for level in range(int(tree.depth.max()), 0, -1):
        there = depth == level
        node, begin, change = summed(
            np.concatenate([leaf[there], below[0]]), np.concatenate([instant[there], below[1]]),
            np.concatenate([deltas[:, there], below[2]], axis=1))
        rest = bins.place[node] < 0
        others = summed(np.zeros(int(rest.sum()), np.int64), begin[rest], change[:, rest]) if rest.any() else None
        found.append((_rows(node, begin, change, instants), others and _rows(*others, instants)))
        below = (tree.parent[node], begin, change)
    return found[::-1]


def _rows(node: np.ndarray, begin: np.ndarray, deltas: np.ndarray, instants: int) -> Rows:
    return Rows(node.astype(np.int64), begin, ends(node, begin, instants), totalled(node, deltas))


# From rows to measures


def _measure(
    chunk: Chunk, rows: Rows, others: Rows | None, above: Steps, bins: Bins, measured: Measured
) -> Steps:
    """Add the measures of one level's nodes; return what their weights are guaranteed."""
    tree, time = chunk.tree, chunk.time
    level = int(tree.depth[rows.node[0]]) - 1
    waits, held = rows.waits, rows.held
    steps = _steps(chunk, rows, waits | held, above)
    _add(measured.guarantee, *_guaranteed(chunk, steps, *runs(rows, waits | held)))
    _add(measured.demanding, rows.node[waits], time[rows.end[waits]] - time[rows.begin[waits]])
    _starve(chunk, rows, waits & ~held, measured)
    rows, shares = _shares(chunk, rows)
    dominant = shares.max(axis=0)
    _add(measured.share, rows.node, dominant * (time[rows.end] - time[rows.begin]))
    _add(measured.shortfall, *_short(chunk, rows, dominant, steps))
    jain, seconds = _jain(chunk, rows, dominant)
    measured.jain[level] += jain
    measured.jain_time[level] += seconds
    _follow(chunk, rows, shares, steps, bins, measured)
    if others is not None:
        _follow_one(chunk, *_shares(chunk, others), bins.edges, measured.binned[bins.others[level]])
    return steps


def _add(total: np.ndarray, node: np.ndarray, amounts: np.ndarray) -> None:
    total += np.bincount(node, amounts, total.size)


def _shares(chunk: Chunk, rows: Rows) -> tuple[Rows, np.ndarray]:
    """Return the rows, cut where the capacity changes, and float64[resource, row]: what of it is held."""
    if chunk.changes.size:
        span, begin, end = split(rows.begin, rows.end, chunk.changes, rows.held)
        rows = Rows(rows.node[span], begin, end, rows.amount[:, span])
    step = np.searchsorted(chunk.capacity.time, chunk.time[rows.begin], side="right") - 1
    there = chunk.capacity.amount[:, step]
    return rows, np.divide(rows.amount[:-1], there, out=np.zeros(there.shape), where=there > 0)


def _steps(chunk: Chunk, rows: Rows, active: np.ndarray, above: Steps) -> Steps:
    """Return what a weight is guaranteed among its active siblings: their parent's guarantee over all their weights."""
    tree, instants = chunk.tree, chunk.time.size
    first = np.concatenate([[True], rows.node[1:] != rows.node[:-1]])
    before = np.where(first, False, np.concatenate([[False], active[:-1]]))
    turned = np.flatnonzero(first | (active != before))
    node, sign = rows.node[turned], active[turned].astype(np.float64) - before[turned]
    parent = tree.parent[node].astype(np.int64)
    parent, begin, change = summed(parent, rows.begin[turned], np.stack([sign, sign * tree.weight[node]]))
    count, weight = totalled(parent, change)
    own = _above(chunk, parent) if parent[-1] else np.zeros(parent.size, np.int64)
    span, first_key, _ = split(own + begin, own + ends(parent, begin, instants), above.key, count > 0)
    height = above.height[np.searchsorted(above.key, first_key, side="right") - 1] * tree.weight[parent[span]]
    height = np.divide(height, weight[span], out=np.zeros(span.size), where=count[span] > 0)
    begin = first_key - own[span]
    seconds = chunk.time[ends(parent[span], begin, instants)] - chunk.time[begin]
    area = height * seconds
    return Steps(parent[span] * instants + begin, height, np.cumsum(area) - area)


def _above(chunk: Chunk, node: np.ndarray) -> np.ndarray:
    """Return int64[node]: the key of the first instant of each node's parent."""
    return chunk.tree.parent[node].astype(np.int64) * chunk.time.size


def _guaranteed(
    chunk: Chunk, steps: Steps, node: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes, and the share-seconds that each is guaranteed between two instants while it is active."""
    own = _above(chunk, node)
    until_begin, until_end = (_area(chunk, steps, own, instant) for instant in (begin, end))
    return node, chunk.tree.weight[node] * (until_end - until_begin)


def _area(chunk: Chunk, steps: Steps, own: np.ndarray, instant: np.ndarray) -> np.ndarray:
    step = np.searchsorted(steps.key, own + instant, side="right") - 1
    since = chunk.time[instant] - chunk.time[steps.key[step] % chunk.time.size]
    return steps.area[step] + steps.height[step] * since


def _short(chunk: Chunk, rows: Rows, dominant: np.ndarray, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and the share-seconds that each is below its guarantee while it has tasks that wait.

    What holds nothing lacks all of its guarantee, and what holds more than it is ever guaranteed lacks nothing: only
    the rows between are cut wherever their guarantees change, which is often where many siblings come and go.
    """
    tree, highest = chunk.tree, np.zeros(len(chunk.tree))
    np.maximum.at(highest, steps.key // chunk.time.size, steps.height)
    may_lack = rows.waits & (dominant < highest[tree.parent[rows.node]] * tree.weight[rows.node])
    of_nothing = _guaranteed(chunk, steps, *runs(rows, may_lack & (dominant == 0)))
    between = np.flatnonzero(may_lack & (dominant > 0))
    span, node, begin, end, guarantee = _against(
        chunk, steps, rows.node[between], rows.begin[between], rows.end[between])
    gap = guarantee - dominant[between[span]]
    gap[gap < SLACK] = 0.0
    lacked = gap * (chunk.time[end] - chunk.time[begin])
    return np.concatenate([of_nothing[0], node]), np.concatenate([of_nothing[1], lacked])


def _against(
    chunk: Chunk, steps: Steps, node: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cut spans of nodes where their guarantees change; return span, node, begin, end and guarantee of each part."""
    own = _above(chunk, node)
    span, first_key, last_key = split(own + begin, own + end, steps.key)
    height = steps.height[np.searchsorted(steps.key, first_key, side="right") - 1]
    return (span, node[span], first_key - own[span], last_key - own[span], height * chunk.tree.weight[node[span]])


def _starve(chunk: Chunk, rows: Rows, starves: np.ndarray, measured: Measured) -> None:
    """Note the longest span in which tasks of a node wait and it holds nothing; it may have begun in chunks before."""
    node, begin, end = runs(rows, starves)
    since = chunk.time[begin]
    carried = (begin == 0) & ~np.isnan(measured.starved_since[node])
    since[carried] = measured.starved_since[node[carried]]
    np.maximum.at(measured.starved, node, chunk.time[end] - since)
    goes_on = end == chunk.time.size - 1
    measured.starved_since[rows.node] = np.nan
    measured.starved_since[node[goes_on]] = since[goes_on]


def _jain(chunk: Chunk, rows: Rows, dominant: np.ndarray) -> tuple[float, float]:
    """Return Jain's index times seconds, and the seconds, over the times in which at least two siblings demand.

    Of siblings the guarantees are as their weights, and the index does not change with a common factor: so it is taken
    over dominant share / weight.
    """
    tree, instants = chunk.tree, chunk.time.size
    waits = rows.waits
    near = waits.copy()
    near[1:] |= waits[:-1]
    near = np.flatnonzero(near)  # what demands, and what comes behind it: nothing else changes the index
    node, begin = rows.node[near], rows.begin[near]
    least = tree.weight[rows.node].min()
    if near.size == 0:
        return 0.0, 0.0
    fine = np.rint(dominant[near] * (least / tree.weight[node]) * FINE_SHARE).astype(np.int64) * waits[near]
    now = np.stack([waits[near].astype(np.int64), fine, fine * fine])
    change = now.copy()
    change[:, 1:] -= np.where(node[1:] == node[:-1], now[:, :-1], 0)
    parent, begin, change = summed(tree.parent[node], begin, change)
    count, total, squares = totalled(parent, change).astype(np.float64)
    index = np.divide(total * total, count * squares, out=np.ones(count.size), where=squares > 0)
    seconds = np.where(count > 1, chunk.time[ends(parent, begin, instants)] - chunk.time[begin], 0.0)
    return float((index * seconds).sum()), float(seconds.sum())


# Through the intervals of the timeline


def _follow(chunk: Chunk, rows: Rows, shares: np.ndarray, steps: Steps, bins: Bins, measured: Measured) -> None:
    """Add what the followed nodes of a level hold, want and are guaranteed in each interval."""
    active = rows.waits | rows.held
    for node in np.unique(rows.node[bins.place[rows.node] >= 0]):
        its = slice(*np.searchsorted(rows.node, [node, node + 1]))
        own, target = Rows(rows.node[its], rows.begin[its], rows.end[its], rows.amount[:, its]), bins.place[node]
        _follow_one(chunk, own, shares[:, its], bins.edges, measured.binned[target])
        _, _, begin, end, guarantee = _against(chunk, steps, *runs(own, active[its]))
        measured.binned[target][-2] += _in_bins(chunk, begin, end, guarantee, bins.edges)


def _follow_one(chunk: Chunk, rows: Rows, shares: np.ndarray, edges: np.ndarray, binned: np.ndarray) -> None:
    values = np.concatenate([shares, shares.max(axis=0, keepdims=True), rows.amount[-1:]])
    sums = _in_bins(chunk, rows.begin, rows.end, values, edges)
    binned[:-2] += sums[:-1]
    binned[-1] += sums[-1]


def _in_bins(
    chunk: Chunk, begin: np.ndarray, end: np.ndarray, values: np.ndarray, edges: np.ndarray
) -> np.ndarray:
    """Return float64[..., interval]: integrals of *values* (float64[..., row]) that hold from begin to end."""
    if begin.size == 0:
        return np.zeros(edges.size - 1)
    since, until = chunk.time[begin], chunk.time[end]
    area = values * (until - since)
    row = np.maximum(np.searchsorted(since, edges, side="right") - 1, 0)
    into = np.clip(edges, since[row], until[row]) - since[row]
    return np.diff((np.cumsum(area, axis=-1) - area)[..., row] + values[..., row] * into)
