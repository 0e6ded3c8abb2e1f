"""Finds the first member of a line whose key is below a bound.

A segment tree of the least keys, so that a change and a question cost the logarithm of the places. A key of inf is
never below a bound: such a member is not in the line.
"""
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel
from subak.marks import inlined

NO_MEMBER = -1
ABSENT = np.inf  # key of a member that is not in the line
LAST_KEY = np.finfo(np.float64).max  # the largest key of one that is


class Line(NamedTuple):
    """Members in order."""

    least: np.ndarray  # float64[node]: the key of a place, or the least of the two nodes below; the root is node 1
    place: np.ndarray  # int32[member]
    member: np.ndarray  # int32[place]


def build_line(order: np.ndarray) -> Line:
    """Return an empty line whose places are taken by the members in *order* (int32[place], each member once)."""
    places = 1 << max(int(order.size - 1).bit_length(), 0)
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size)
    return Line(np.full(2 * places, ABSENT), place, order.astype(np.int32))


@kernel
def set_key(line: Line, member: int, key: float) -> None:
    """Give a member a key; ABSENT takes it out of the line."""
    node = line.least.size // 2 + line.place[member]
    line.least[node] = key
    while node > 1:
        node //= 2
        least = min(line.least[2 * node], line.least[2 * node + 1])
        if line.least[node] == least:
            return
        line.least[node] = least


@inlined
def key_of(line: Line, member: int) -> float:
    """Return a member's key."""
    return float(line.least[line.least.size // 2 + line.place[member]])


@kernel
def first_below(line: Line, place: int, bound: float) -> int:
    """Return the first member at or after *place* whose key is below *bound*, or NO_MEMBER."""
    leaves = line.least.size // 2
    if place >= leaves:
        return NO_MEMBER
    node = leaves + place
    while not line.least[node] < bound:
        while node & 1:
            node //= 2
        if node == 0:
            return NO_MEMBER
        node += 1
    while node < leaves:
        node *= 2
        if not line.least[node] < bound:
            node += 1
    return int(line.member[node - leaves])
