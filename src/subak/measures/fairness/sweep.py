"""Sweeps over attempts to integrate what queues hold and want over time.

What a queue holds, and how many of its tasks wait, are step functions of time. A *row* is a span in which nothing of
one queue changes, an *instant* the number of a time at which anything does, and node * instants + instant the *key*
that keeps rows of one node together and in the order of time. Amounts are whole units, so sums have nothing to drift
with, and floats are added up in the order of rows (`integrals.py`). The sweep goes through time in chunks, so what it
needs beside the attempts does not grow with the run. What is held when one begins is known from what changed before; so
chunks are measured on threads beside each other, and what they add is added up in the order of time.
"""
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from subak.fleet.capacity import Capacity
from subak.kernels.kernel import kernel
from subak.measures.fairness.integrals import (
    NOT_FOLLOWED,
    PIECE,
    ROOT,
    Chunk,
    Intervals,
    Measured,
    Starving,
    Steps,
    add_demand,
    add_shares,
)
from subak.measures.fairness.rows import NO_NODE, Rows, ends, rows_of, split, summed, totalled
from subak.measures.fairness.spans import Part, Span, spans
from subak.queues.tree import QueueTree
from subak.threads import in_order, usable_cores

SUMS = ("share", "guarantee", "shortfall", "demanding", "jain", "jain_time")  # of Measured, without regard to intervals
THREADS_MAX = 4  # that measure: one more hands out the spans, and adds up
FINE_SHARE = 2**29  # of a share, at most 1, for exact sums of its square: those of 30 resources stay below 2^63


class Demand(NamedTuple):
    """What an attempt holds, and in which queue, by its stage."""

    leaf: np.ndarray  # int32[stage], node of the queue
    request: np.ndarray  # int64[resource, stage], units


class Bins(NamedTuple):
    """Which queues are followed through which intervals of time."""

    edges: np.ndarray  # float64[interval + 1], seconds
    place: np.ndarray  # int64[node]: where a node is followed, -1 where it is among the others of its level
    others: np.ndarray  # int64[level]: where the others of each level are, together


class Events(NamedTuple):
    """What changes in a span of time, and what is held and waits when it begins."""

    begin: float  # seconds
    end: float
    node: np.ndarray  # int64[event], leaves
    time: np.ndarray  # float64[event], seconds
    deltas: np.ndarray  # int64[event, resource + 1]: of what is held and, last, waits


class Added(NamedTuple):
    """What a chunk adds to what was measured before it."""

    measured: Measured  # binned: of the chunk's intervals; starved: of nothing, since it may have begun before
    first: int  # the first of its intervals
    begin: float  # seconds
    end: float
    starving: Starving


def sweep(
    parts: Iterable[Part], cuts: np.ndarray, demand: Demand, tree: QueueTree, capacity: Capacity, bins: Bins
) -> Measured:
    """Return what holds from the first to the last of *cuts*, float64[cut], seconds, going from one to the next."""
    measured = _nothing(tree, len(demand.request), bins)
    since = np.full(len(tree), np.nan)  # seconds: since when a node starves where a span ends, nan where it does not
    levels = _levels(tree)
    asked = ((events, tree, levels, capacity, bins) for events in _events_of_spans(spans(parts, cuts), demand, tree))
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
    amount, leaves = np.zeros((len(tree), len(demand.request) + 1), np.int64), tree.leaves
    for span in found:
        size = leaves.size + sum(rows.size for rows in span.changes)
        events = Events(span.begin, span.end, np.empty(size, np.int64), np.empty(size),
                        np.empty((size, amount.shape[1]), np.int64))
        events.node[: leaves.size], events.time[: leaves.size] = leaves, span.begin
        events.deltas[: leaves.size] = amount[leaves]
        first = leaves.size
        for times, rows, held, waiting in zip(span.trail[1:], span.changes, (0, 1, -1), (1, -1, 0), strict=True):
            here = slice(first, first + rows.size)
            events.time[here] = times[rows]
            note_changes(span.trail.stage[rows], held, waiting, demand, events.node[here], events.deltas[here], amount)
            first += rows.size
        yield events


@kernel
def note_changes(
    stage: np.ndarray, held: int, waiting: int, demand: Demand, node: np.ndarray, deltas: np.ndarray, amount: np.ndarray
) -> None:
    """Fill in what changes as attempts of some stages begin to wait, start or end, and add it to *amount*.

    Each holds what it asks for *held* times more, and *waiting* tasks more wait; *deltas* and *amount* are
    int64[event, resource + 1] and int64[node, resource + 1], of what is held and, last, waits.
    """
    resources = amount.shape[1] - 1
    for event in range(stage.size):
        its = stage[event]
        node[event] = demand.leaf[its]
        for resource in range(resources):
            deltas[event, resource] = held * demand.request[resource, its]
            amount[node[event], resource] += deltas[event, resource]
        deltas[event, resources] = waiting
        amount[node[event], resources] += waiting


def _of_span(events: Events, tree: QueueTree, levels: np.ndarray, capacity: Capacity, bins: Bins) -> Added:
    """Measure a span of time by itself; *levels* is what `_levels` returns."""
    first = int(np.searchsorted(bins.edges, events.begin, side="right")) - 1
    bins = bins._replace(edges=bins.edges[first : int(np.searchsorted(bins.edges, events.end)) + 1])
    chunk, order, instant = _in_time(events, tree, capacity)
    node, deltas = events.node[order], events.deltas.take(order, axis=0)
    measured, starving = _nothing(tree, deltas.shape[1] - 1, bins), []
    steps = Steps(np.zeros(1, np.int64), np.ones(1), np.zeros(1))  # the root has everything
    for level, of_leaf in enumerate(levels):
        its = of_leaf[node]
        rows = rows_of(its, instant, deltas, chunk.time.size)
        steps, starved = _measure(chunk, rows, level, steps, bins, measured)
        starving.append(starved)
        others = np.where((its == NO_NODE) | (bins.place[its] >= 0), NO_NODE, ROOT)
        if (others == ROOT).any():
            _follow_others(chunk, rows_of(others, instant, deltas, chunk.time.size), bins.others[level], bins, measured)
    return Added(measured, first, events.begin, events.end, Starving(*map(np.concatenate, zip(*starving, strict=True))))


def _in_time(events: Events, tree: QueueTree, capacity: Capacity) -> tuple[Chunk, np.ndarray, np.ndarray]:
    """Return the instants of a span, the order of its events in time, and int64[event], the instant of each in it."""
    begin = int(np.searchsorted(capacity.time, events.begin, side="right"))
    end = max(begin, int(np.searchsorted(capacity.time, events.end)))  # of a span without length, too
    times = np.concatenate([events.time, capacity.time[begin:end]])
    order = _order(times, events.begin)
    times = times[order]
    new = np.ones(times.size, bool)
    np.not_equal(times[1:], times[:-1], out=new[1:])
    instant, changes = np.cumsum(new) - 1, order >= events.time.size
    chunk = Chunk(np.append(times[new], events.end), np.unique(instant[changes]), capacity.time[begin - 1 : end],
                  np.ascontiguousarray(capacity.amount[:, begin - 1 : end]), tree.parent, tree.weight)
    return (chunk, order, instant) if begin == end else (chunk, order[~changes], instant[~changes])


def _order(times: np.ndarray, begin: float) -> np.ndarray:
    """Return the order of times (float64, seconds), none of which is before *begin*; those that are equal in any.

    The bits of floats that are not negative are in their order. Where those that differ leave room for places, these
    are sorted with them, which takes less than half of the time.
    """
    shift = int(times.size).bit_length()
    key = times.view(np.int64) - int(np.float64(begin).view(np.int64))
    if int(key.max()) >> (63 - shift):
        return np.argsort(times)
    key <<= shift
    key |= np.arange(times.size)
    key.sort()
    key &= (1 << shift) - 1
    return key


def _levels(tree: QueueTree) -> np.ndarray:
    """Return int64[level, node], the topmost first: the node of a level that each is or is below, else NO_NODE."""
    found, above = [], np.arange(len(tree))
    for level in range(int(tree.depth.max()), 0, -1):
        above = np.where(tree.depth[above] > level, tree.parent[above], above)
        found.append(np.where(tree.depth[above] == level, above, NO_NODE))
    return np.array(found[::-1])


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


# From rows to measures


def _measure(
    chunk: Chunk, rows: Rows, level: int, above: Steps, bins: Bins, measured: Measured
) -> tuple[Steps, Starving]:
    """Add the measures of one level's nodes; return what their weights are guaranteed, and when they starve."""
    steps, size = _steps(chunk, rows, rows.waits | rows.held, above), rows.node.size
    starving = Starving(np.empty(size, np.int64), np.empty(size), np.empty(size))
    found = add_demand(chunk, rows, steps, measured, starving)
    rows = _cut(chunk, rows)
    shares = np.empty((chunk.capacity.shape[0] + 2, rows.node.size))
    highest = np.zeros(chunk.parent.size)
    np.maximum.at(highest, steps.key // chunk.time.size, steps.height)
    add_shares(chunk, rows, shares, steps, highest, _intervals(chunk, bins, bins.place), measured)
    jain, seconds = _jain(chunk, rows, shares[-2])
    measured.jain[level] += jain
    measured.jain_time[level] += seconds
    return steps, Starving(*(each[:found] for each in starving))


def _follow_others(chunk: Chunk, rows: Rows, at: int, bins: Bins, measured: Measured) -> None:
    """Add, *at* a place, what those of a level do together that are not followed one by one; *rows* are of ROOT."""
    rows, place = _cut(chunk, rows), np.full(chunk.parent.size, NOT_FOLLOWED)
    place[ROOT] = at
    nothing = Steps(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    shares, highest = np.empty((chunk.capacity.shape[0] + 2, rows.node.size)), np.zeros(chunk.parent.size)
    add_shares(chunk, rows, shares, nothing, highest, _intervals(chunk, bins, place), measured)


def _intervals(chunk: Chunk, bins: Bins, place: np.ndarray) -> Intervals:
    instant = np.searchsorted(chunk.time, bins.edges, side="right") - 1
    return Intervals(bins.edges, instant, place, np.zeros(PIECE))


def _cut(chunk: Chunk, rows: Rows) -> Rows:
    """Return the rows, cut where the capacity changes, of which something is held."""
    if chunk.changes.size == 0:
        return rows
    span, begin, end = split(rows.begin, rows.end, chunk.changes, rows.held)
    return Rows(rows.node[span], begin, end, rows.amount.take(span, axis=1))


def _steps(chunk: Chunk, rows: Rows, active: np.ndarray, above: Steps) -> Steps:
    """Return what a weight is guaranteed among its active siblings: their parent's guarantee over all their weights."""
    instants = chunk.time.size
    first = np.concatenate([[True], rows.node[1:] != rows.node[:-1]])
    before = np.where(first, False, np.concatenate([[False], active[:-1]]))
    turned = np.flatnonzero(first | (active != before))
    node, sign = rows.node[turned], active[turned].astype(np.float64) - before[turned]
    parent = chunk.parent[node].astype(np.int64)
    parent, begin, change = summed(parent, rows.begin[turned], np.stack([sign, sign * chunk.weight[node]]))
    count, weight = totalled(parent, change)
    own = _above(chunk, parent) if parent[-1] else np.zeros(parent.size, np.int64)
    span, first_key, _ = split(own + begin, own + ends(parent, begin, instants), above.key, count > 0)
    height = above.height[np.searchsorted(above.key, first_key, side="right") - 1] * chunk.weight[parent[span]]
    height = np.divide(height, weight[span], out=np.zeros(span.size), where=count[span] > 0)
    begin = first_key - own[span]
    seconds = chunk.time[ends(parent[span], begin, instants)] - chunk.time[begin]
    area = height * seconds
    return Steps(parent[span] * instants + begin, height, np.cumsum(area) - area)


def _above(chunk: Chunk, node: np.ndarray) -> np.ndarray:
    """Return int64[node]: the key of the first instant of each node's parent."""
    return chunk.parent[node].astype(np.int64) * chunk.time.size


def _jain(chunk: Chunk, rows: Rows, dominant: np.ndarray) -> tuple[float, float]:
    """Return Jain's index times seconds, and the seconds, over the times in which at least two siblings demand.

    Of siblings the guarantees are as their weights, and the index does not change with a common factor: so it is taken
    over dominant share / weight.
    """
    instants = chunk.time.size
    waits = rows.waits
    near = waits.copy()
    near[1:] |= waits[:-1]
    near = np.flatnonzero(near)  # what demands, and what comes behind it: nothing else changes the index
    node, begin = rows.node[near], rows.begin[near]
    least = chunk.weight[rows.node].min()
    if near.size == 0:
        return 0.0, 0.0
    fine = np.rint(dominant[near] * (least / chunk.weight[node]) * FINE_SHARE).astype(np.int64) * waits[near]
    now = np.stack([waits[near].astype(np.int64), fine, fine * fine])
    change = now.copy()
    change[:, 1:] -= np.where(node[1:] == node[:-1], now[:, :-1], 0)
    parent, begin, change = summed(chunk.parent[node], begin, change)
    count, total, squares = totalled(parent, change).astype(np.float64)
    index = np.divide(total * total, count * squares, out=np.ones(count.size), where=squares > 0)
    seconds = np.where(count > 1, chunk.time[ends(parent, begin, instants)] - chunk.time[begin], 0.0)
    return float((index * seconds).sum()), float(seconds.sum())
