"""Turns events into spans of time in which nothing of a queue changes.

An *instant* is the number of a time at which something changes, within a chunk of time; rows are sorted by node and
instant. Amounts are whole units, so running totals have nothing to drift with.
"""
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel

NO_NODE = -1  # of an event that is of none of the nodes in question


class Rows(NamedTuple):
    """Rows of the nodes of one level, by key; each ends where the next of its node begins."""

    node: np.ndarray  # int64[row]
    begin: np.ndarray  # int64[row], instant
    end: np.ndarray  # int64[row], instant
    amount: np.ndarray  # int64[resource + 1, row]: held and, last, waiting tasks

    @property
    def waits(self) -> np.ndarray:
        """bool[row]: whether tasks wait, which makes a queue demand."""
        return np.asarray(self.amount[-1] > 0)

    @property
    def held(self) -> np.ndarray:
        """bool[row]: whether anything is held."""
        return np.asarray(self.amount[:-1].sum(axis=0) > 0)


def rows_of(node: np.ndarray, instant: np.ndarray, deltas: np.ndarray, instants: int) -> Rows:
    """Return the rows of nodes out of what changes, in the order of time.

    *node* is int64[event], NO_NODE where it is of none; *instant* is int64[event], ascending, below *instants* - 1;
    *deltas* is int64[event, resource + 1].
    """
    count = np.zeros(int(node.max()) + 1, np.int64)
    count_rows(node, instant, np.full(count.size, -1), count)
    size, last = int(count.sum()), np.cumsum(count)
    rows = Rows(np.repeat(np.arange(count.size), count), np.empty(size, np.int64), np.full(size, instants - 1),
                np.zeros((deltas.shape[1], size), np.int64))
    fill_rows(node, instant, deltas, last - count, np.full(count.size, -1), rows)
    return rows


@kernel
def count_rows(node: np.ndarray, instant: np.ndarray, last: np.ndarray, count: np.ndarray) -> None:
    """Count at how many instants each node changes; *last* is -1 for each at first."""
    for event in range(node.size):
        here = node[event]
        if here != NO_NODE and last[here] != instant[event]:
            last[here] = instant[event]
            count[here] += 1


@kernel
def fill_rows(
    node: np.ndarray, instant: np.ndarray, deltas: np.ndarray, place: np.ndarray, row: np.ndarray, rows: Rows
) -> None:
    """Fill rows in; *place* is where the first of each node is to be, *row* is -1 for each at first."""
    for event in range(node.size):
        here = node[event]
        if here == NO_NODE:
            continue
        now, before = row[here], row[here]
        if before < 0 or rows.begin[before] != instant[event]:
            now = place[here] if before < 0 else before + 1
            row[here], rows.begin[now] = now, instant[event]
            if before >= 0:
                rows.end[before] = instant[event]
                for column in range(deltas.shape[1]):
                    rows.amount[column, now] = rows.amount[column, before]
        for column in range(deltas.shape[1]):
            rows.amount[column, now] += deltas[event, column]


def ends(node: np.ndarray, begin: np.ndarray, instants: int) -> np.ndarray:
    """Return int64[row]: the instant at which the next row of the same node begins, or the last instant."""
    end = np.full(node.size, instants - 1)
    same = node[1:] == node[:-1]
    end[:-1][same] = begin[1:][same]
    return end


def summed(
    node: np.ndarray, instant: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs of node and instant, in order, and the sums of *values* (any[row, event]) over each."""
    if node.size == 0:
        return node, instant, values
    shift, instants = int(node.size).bit_length(), int(instant.max()) + 1
    key = ((node.astype(np.int64) * instants + instant) << shift) | np.arange(node.size)  # sorted as it is, in place
    key.sort()
    order = key & ((1 << shift) - 1)
    key >>= shift
    new = np.ones(key.size, bool)
    np.not_equal(key[1:], key[:-1], out=new[1:])
    first = np.flatnonzero(new)
    pair = key[first]
    return pair // instants, pair % instants, np.add.reduceat(values.take(order, axis=1), first, axis=1)


def totalled(node: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Return the running totals of *deltas* (any[row, event]), which begin anew with each node."""
    first = np.flatnonzero(node[1:] != node[:-1]) + 1
    deltas = deltas.copy()
    deltas[:, first] -= np.add.reduceat(deltas, np.concatenate([[0], first]), axis=1)[:, :-1]
    return np.cumsum(deltas, axis=1)


def split(
    begin: np.ndarray, end: np.ndarray, at: np.ndarray, wanted: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut spans of whole numbers wherever *at* (int64[cut], sorted) falls inside one; return span, begin and end.

    Spans that are not *wanted* (bool[span]) stay whole.
    """
    first = np.searchsorted(at, begin, side="right")
    inside = np.maximum(np.searchsorted(at, end, side="left") - first, 0)
    if wanted is not None:
        inside *= wanted
    span = np.repeat(np.arange(begin.size), inside + 1)
    if span.size == begin.size:
        return span, begin, end
    place = np.arange(span.size) - np.repeat(np.cumsum(inside + 1) - inside - 1, inside + 1)
    cut = first[span] + place
    return (span, np.where(place == 0, begin[span], at[np.maximum(cut - 1, 0)]),
            np.where(place == inside[span], end[span], at[np.minimum(cut, at.size - 1)]))
