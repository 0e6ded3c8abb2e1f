"""Keeps, for each shape, a short list of its cheapest machines, which a best-fit search scans first.

What a machine costs a shape is the sum over the resources of (free * first) * second: the more is free, the more or,
where second is negative, the less. A list goes as far as its end, a cost and a machine. Rules:

- every machine that fits the shape and goes before the end is in the list, or has changed since the list was last seen;
- a machine that is in it costs at least what its entry says, or has changed since.

So the changes are noted that make a machine cost less, or fit: what is freed, and what is taken where having less free
costs less. A list is put right when its shape is asked about (placement/fits/cheapest.py).
"""
from typing import NamedTuple

import numpy as np

from subak.marks import inlined

LISTS_MAX = 4096  # shapes that have lists at once; others take their places
MACHINES_LISTED_MAX = 32  # machines of a list
NOTED_MIN, MACHINES_A_CHANGE = 64, 8  # changes noted; of a large fleet one for so many machines, which takes
# as long to follow as they take to be looked at together
FACTOR_A, FACTOR_B = 0, 1  # tables of `weight`: first and second
NO_SHAPE = -1

LIST = np.dtype([("end", np.float64), ("end_machine", np.int64), ("seen", np.int64), ("shape", np.int32),
                 ("size", np.int32)])
LISTED = np.dtype([("cost", np.float64), ("machine", np.int64)])


class Shortlists(NamedTuple):
    """The lists of all shapes, and what changed; all are empty where nobody asks for the least costly."""

    head: np.ndarray  # LIST[list]
    entry: np.ndarray  # LISTED[list, MACHINES_LISTED_MAX], the best last
    weight: np.ndarray  # float64[2, resource, shape]: FACTOR_A and FACTOR_B
    changed: np.ndarray  # int64[a power of two, and 1], the machines that changed last, in a ring; behind them how many
    costs: np.ndarray  # float64[machine of a block], scratch
    follows_takes: bool  # whether a machine may cost less for having less free


def no_shortlists() -> Shortlists:
    """Return no lists."""
    return Shortlists(np.zeros(0, LIST), np.zeros((0, MACHINES_LISTED_MAX), LISTED), np.zeros((2, 0, 0)),
                      np.zeros(1, np.int64), np.zeros(0), False)


def build_shortlists(weight: np.ndarray, machines: int, block: int) -> Shortlists:
    """Return lists for which nobody has asked yet, for float64[2, resource, shape]; *block*: machines of one."""
    lists = min(LISTS_MAX, weight.shape[2])
    head = np.zeros(lists, LIST)
    head["shape"] = NO_SHAPE
    noted = 1 << max(machines // MACHINES_A_CHANGE, NOTED_MIN).bit_length()
    return Shortlists(head, np.zeros((lists, MACHINES_LISTED_MAX), LISTED), np.ascontiguousarray(weight, np.float64),
                      np.zeros(noted + 1, np.int64), np.zeros(block), bool((weight[FACTOR_B] > 0).any()))


@inlined
def note_change(lists: Shortlists, machine: int) -> None:
    """Note that a machine may cost less than before, or fit what it did not."""
    room = lists.changed.size - 1
    if room > 0:
        count = lists.changed[room]
        lists.changed[count & (room - 1)] = machine
        lists.changed[room] = count + 1


@inlined
def same_lists(lists: Shortlists) -> Shortlists:
    """Return the lists by value: in a kernel what is part of a state is known by its address alone."""
    return Shortlists(lists.head, lists.entry, lists.weight, lists.changed, lists.costs, lists.follows_takes)


@inlined
def without_lists(lists: Shortlists) -> Shortlists:
    """Return what notes the same changes and has no lists: for a search among some of the machines."""
    return Shortlists(lists.head[:0], lists.entry, lists.weight, lists.changed, lists.costs, lists.follows_takes)
