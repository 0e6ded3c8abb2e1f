"""A sweep over what queues hold and want: from attempts to integrals over time, without a loop over tasks.

What a queue holds, and how many of its tasks wait, are step functions of time. A *row* is a span in which nothing of
one queue changes, an *instant* the number of a time at which anything does, and node * instants + instant the *key*
that keeps rows of one node together and in the order of time. Amounts are whole units, so sums have nothing to drift
with. The sweep goes through time in chunks, so what it needs beside the attempts does not grow with the run. What is
held when one begins is known from what changed before; so chunks are measured on threads beside each other, and what
they add is added up in the order of time.
"""
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from subak.fleet.capacity import Capacity
from subak.measures.fairness.rows import Rows, ends, runs, split, summed, totalled
from subak.measures.fairness.spans import Part, Span, spans
from subak.queues.tree import QueueTree
from subak.threads import in_order, usable_cores

SLACK = 1e-9  # a share that misses its guarantee by less does not miss it
SUMS = ("share", "guarantee", "shortfall", "demanding", "jain", "jain_time")  # of Measured, without regard to intervals
THREADS_MAX = 4  # that measure: one more hands out the spans, and adds up
FINE_SHARE = 2**29  # of a share, at most 1, for exact sums of its square: those of 30 resources stay below 2^63


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


class Events(NamedTuple):
    """What changes in a span of time, and what is held and waits when it begins."""

    begin: float  # seconds
    end: float
    node: np.ndarray  # int32[event], leaves
    time: np.ndarray  # float64[event], seconds
    deltas: np.ndarray  # int64[resource + 1, event]: of what is held and, last, waits


class Starving(NamedTuple):
    """The longest spans in a chunk in which tasks of a node wait and it holds nothing."""

    node: np.ndarray  # int64[row]
    since: np.ndarray  # float64[row], seconds
    until: np.ndarray  # float64[row], seconds


class Added(NamedTuple):
    """What a chunk adds to what was measured before it."""

    measured: Measured  # binned: of the chunk's intervals; starved: of nothing, since it may have begun before
    first: int  # the first of its intervals
    begin: float  # seconds
    end: float
    starving: Starving


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
    measured = _nothing(tree, len(demand.request), bins)
    since = np.full(len(tree), np.nan)  # seconds: since when a node starves where a span ends, nan where it does not
    asked = ((events, tree, capacity, bins) for events in _events_of_spans(spans(parts, cuts), demand, tree))
    for added in in_order(_of_span, asked, min(usable_cores(), THREADS_MAX)):
        _add_up(measured, added, since)
    return measured


def _nothing(tree: QueueTree, resources: int, bins: Bins) -> Measured:
    nodes, levels, places = len(tree), int(tree.depth.max()), int(max(bins.place.max(), bins.others.max())) + 1
    return Measured(
        share=np.zeros(nodes), guarantee=np.zeros(nodes), shortfall=np.zeros(nodes), demanding=np.zeros(nodes),
        jain=np.zeros(levels), jain_time=np.zeros(levels), starved=np.zeros(nodes),
        binned=np.zeros((places, resources + 3, bins.edges.size - 1)))


def _events_of_spans(found: Iterable[Span], demand: Demand, tree: QueueTree) -> Iterator[Events]:
    """Yield the events of each span; what is held and waits when it begins is what those before it leave."""
    amount = np.zeros((len(demand.request) + 1, len(tree)), np.int64)
    for span in found:
        events = _events(span, demand, tree.leaves, amount)
        amount[:] = 0
        for row, column in enumerate(events.deltas):
            np.add.at(amount[row], events.node, column)
        yield events


def _events(span: Span, demand: Demand, leaves: np.ndarray, amount: np.ndarray) -> Events:
    """Return what changes; *amount* is what the leaves hold and what waits at first."""
    node, time, deltas = [leaves], [np.full(leaves.size, span.begin)], [amount[:, leaves]]
    for times, rows, held, waiting in zip(span.trail[1:], span.changes, (0, 1, -1), (1, -1, 0), strict=True):
        stage = span.trail.stage[rows]
        change = np.empty((len(demand.request) + 1, rows.size), np.int64)
        change[:-1] = held * demand.request[:, stage] if held else 0
        change[-1] = waiting
        node.append(demand.leaf[stage])
        time.append(times[rows])
        deltas.append(change)
    return Events(span.begin, span.end, np.concatenate(node), np.concatenate(time), np.concatenate(deltas, axis=1))


def _of_span(events: Events, tree: QueueTree, capacity: Capacity, bins: Bins) -> Added:
    """Measure a span of time by itself."""
    first = int(np.searchsorted(bins.edges, events.begin, side="right")) - 1
    bins = bins._replace(edges=bins.edges[first : int(np.searchsorted(bins.edges, events.end)) + 1])
    inside = capacity.time[(capacity.time > events.begin) & (capacity.time < events.end)]
    instants, place = np.unique(np.concatenate([events.time, inside]), return_inverse=True)
    count = events.time.size
    chunk = Chunk(np.append(instants, events.end), np.unique(place[count:]), capacity, tree)
    measured, starving = _nothing(tree, len(events.deltas) - 1, bins), []
    steps = Steps(np.zeros(1, np.int64), np.ones(1), np.zeros(1))  # the root has everything
    for rows, others in _levels(chunk, events.node, place[:count], events.deltas, bins):
        starving.append(_starving(chunk, rows))
        steps = _measure(chunk, rows, others, steps, bins, measured)
    node, since, until = (np.concatenate(each) for each in zip(*starving, strict=True))
    return Added(measured, first, events.begin, events.end, Starving(node, since, until))


def _add_up(measured: Measured, added: Added, since: np.ndarray) -> None:
    """Add what the next span of time brings; *since* is since when nodes starve as it begins, and then as it ends."""
    of_span, intervals = added.measured, slice(added.first, added.first + added.measured.binned.shape[2])
    for name in SUMS:
        total = getattr(measured, name)
        total += getattr(of_span, name)
    measured.binned[:, :, intervals] += of_span.binned
    node, begin, end = added.starving
    went_on = (begin == added.begin) & ~np.isnan(since[node])
    begin = np.where(went_on, since[node], begin)
    np.maximum.at(measured.starved, node, end - begin)
    since[:] = np.nan
    goes_on = end == added.end
    since[node[goes_on]] = begin[goes_on]


# From events to rows


def _levels(
    chunk: Chunk, leaf: np.ndarray, instant: np.ndarray, deltas: np.ndarray, bins: Bins
) -> list[tuple[Rows, Rows | None]]:
    """Return the rows of each level, the topmost first, and of those together that are not followed one by one."""
    tree, instants = chunk.tree, chunk.time.size
    depth, below = tree.depth[leaf], (leaf[:0], instant[:0], deltas[:, :0])
    found: list[tuple[Rows, Rows | None]] = []
    for level in range(int(tree.depth.max()), 0, -1):
        there = np.flatnonzero(depth == level)
        node, begin, change = summed(
            np.concatenate([leaf[there], below[0]]), np.concatenate([instant[there], below[1]]),
            np.concatenate([deltas.take(there, axis=1), below[2]], axis=1))
        rest = np.flatnonzero(bins.place[node] < 0)
        others = summed(np.zeros(rest.size, np.int64), begin[rest], change.take(rest, axis=1)) if rest.size else None
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
    rows, shares = _shares(chunk, rows)
    dominant = shares.max(axis=0)
    _add(measured.share, rows.node, dominant * (time[rows.end] - time[rows.begin]))
    _add(measured.shortfall, *_short(chunk, rows, dominant, steps))
    jain, seconds = _jain(chunk, rows, dominant)
    measured.jain[level] += jain
    measured.jain_time[level] += seconds
    _follow(chunk, rows, shares, steps, bins, measured.binned)
    if others is not None:
        together, of_them = _shares(chunk, others)
        place = np.full(together.node.size, bins.others[level])
        _follow_shares(chunk, together, of_them, place, bins.edges, measured.binned)
    return steps


def _add(total: np.ndarray, node: np.ndarray, amounts: np.ndarray) -> None:
    total += np.bincount(node, amounts, total.size)


def _shares(chunk: Chunk, rows: Rows) -> tuple[Rows, np.ndarray]:
    """Return the rows, cut where the capacity changes, and float64[resource, row]: what of it is held."""
    if chunk.changes.size:
        span, begin, end = split(rows.begin, rows.end, chunk.changes, rows.held)
        rows = Rows(rows.node[span], begin, end, rows.amount.take(span, axis=1))
    times = chunk.time[rows.begin] if chunk.changes.size else chunk.time[:1]
    step = np.searchsorted(chunk.capacity.time, times, side="right") - 1
    there, held = chunk.capacity.amount[:, step], rows.amount[:-1]
    return rows, np.divide(held, there, out=np.zeros(held.shape), where=there > 0)


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


def _starving(chunk: Chunk, rows: Rows) -> Starving:
    node, begin, end = runs(rows, rows.waits & ~rows.held)
    return Starving(node, chunk.time[begin], chunk.time[end])


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


def _follow(chunk: Chunk, rows: Rows, shares: np.ndarray, steps: Steps, bins: Bins, binned: np.ndarray) -> None:
    """Add what the followed nodes of a level hold, want and are guaranteed in each interval."""
    its = np.flatnonzero(bins.place[rows.node] >= 0)
    if its.size == 0:
        return
    own = Rows(rows.node[its], rows.begin[its], rows.end[its], rows.amount.take(its, axis=1))
    _follow_shares(chunk, own, shares.take(its, axis=1), bins.place[own.node], bins.edges, binned)
    _, node, begin, end, guarantee = _against(chunk, steps, *runs(own, own.waits | own.held))
    place, sums = _in_bins(chunk, bins.place[node], begin, end, guarantee, bins.edges)
    binned[place, -2] += sums


def _follow_shares(
    chunk: Chunk, rows: Rows, shares: np.ndarray, place: np.ndarray, edges: np.ndarray, binned: np.ndarray
) -> None:
    """Add what is held and what waits; *place* is int64[row], where a row's node is followed."""
    values = np.concatenate([shares, shares.max(axis=0, keepdims=True), rows.amount[-1:]])
    place, sums = _in_bins(chunk, place, rows.begin, rows.end, values, edges)
    sums = np.moveaxis(sums, 0, 1)
    binned[place, :-2] += sums[:, :-1]
    binned[place, -1] += sums[:, -1]


def _in_bins(
    chunk: Chunk, place: np.ndarray, begin: np.ndarray, end: np.ndarray, values: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate *values* (float64[..., row]) that hold from begin to end, which are ascending in each of the places.

    Return the places that have a row, each once, and float64[..., place, interval].
    """
    first = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]])) if place.size else place
    since, until = chunk.time[begin], chunk.time[end]
    area = values * (until - since)
    until_end = np.empty_like(area)
    for its in map(slice, first, [*first[1:], place.size]):  # each place by itself: sums are of its own rows
        np.cumsum(area[..., its], axis=-1, out=until_end[..., its])
    before = np.searchsorted(chunk.time, edges, side="right") - 1
    number = np.repeat(np.arange(first.size), np.diff(first, append=place.size))
    key, wanted = number * chunk.time.size + begin, np.arange(first.size)[:, None] * chunk.time.size + before
    row = np.maximum(np.searchsorted(key, wanted, side="right") - 1, first[:, None])
    into = np.clip(edges, since[row], until[row]) - since[row]
    return place[first], np.diff((until_end - area)[..., row] + values[..., row] * into)
