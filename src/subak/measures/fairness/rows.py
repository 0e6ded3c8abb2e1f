"""Rows: spans of time in which nothing of a queue changes, out of attempts, without a loop over them.

An *instant* is the number of a time at which something changes, within a chunk of time; rows are sorted by node and
instant. Amounts are whole units, so running totals have nothing to drift with.
"""
from typing import NamedTuple

import numpy as np


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


def runs(rows: Rows, holds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return node, begin and end (instants) of the longest spans in which *holds* (bool[row])."""
    joined = (rows.node[1:] == rows.node[:-1]) & holds[1:] & holds[:-1]
    opens, closes = holds.copy(), holds.copy()
    opens[1:] &= ~joined
    closes[:-1] &= ~joined
    return rows.node[opens], rows.begin[opens], rows.end[closes]
