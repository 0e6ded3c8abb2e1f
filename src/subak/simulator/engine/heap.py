"""The event heap, ordered by (time, sequence), with four children per node."""
from typing import NamedTuple

import numpy as np

from subak.marks import inlined

EVENT = np.dtype([("time", np.float64), ("sequence", np.int64), ("item", np.int32), ("place", np.int32)])
SIZE, SEQUENCE = 0, 1
WAYS = 4


class Events(NamedTuple):
    """A heap in one array: events at the same time leave in the order they came."""

    slot: np.ndarray  # EVENT[slot]
    size: np.ndarray  # int64[2]: SIZE now, SEQUENCE ever


def build_events(capacity: int) -> Events:
    """Return an empty heap for *capacity* events at once."""
    return Events(np.empty(capacity, EVENT), np.zeros(2, np.int64))


@inlined
def first_time(events: Events) -> float:
    """Return when the earliest event is, inf if there is none."""
    return float(events.slot[0]["time"]) if events.size[SIZE] > 0 else np.inf


@inlined
def earlier(slot: np.ndarray, first: int, second: int) -> bool:
    """Whether the event at *first* leaves before the one at *second*."""
    if slot[first]["time"] != slot[second]["time"]:
        return slot[first]["time"] < slot[second]["time"]
    return slot[first]["sequence"] < slot[second]["sequence"]


@inlined
def push_event(events: Events, time: float, item: int, place: int) -> int:
    """Let something happen to an item at *time*; return the event's sequence number."""
    sequence = events.size[SEQUENCE]
    events.size[SEQUENCE] += 1
    insert(events, time, sequence, item, place)
    return sequence


@inlined
def insert(events: Events, time: float, sequence: int, item: int, place: int) -> None:
    """Put an event with a given sequence number into its place."""
    slot = events.slot
    hole = events.size[SIZE]
    events.size[SIZE] += 1
    slot[hole]["time"] = time
    slot[hole]["sequence"] = sequence
    while hole > 0 and earlier(slot, hole, (hole - 1) // WAYS):
        parent = (hole - 1) // WAYS
        slot[hole] = slot[parent]
        hole = parent
        slot[hole]["time"] = time
        slot[hole]["sequence"] = sequence
    slot[hole]["item"] = item
    slot[hole]["place"] = place


@inlined
def drop_first(events: Events) -> None:
    """Take the earliest event out."""
    slot = events.slot
    events.size[SIZE] -= 1
    last = events.size[SIZE]
    place = 0
    while True:
        child = WAYS * place + 1
        if child >= last:
            break
        first = child
        for other in range(child + 1, min(child + WAYS, last)):
            if earlier(slot, other, first):
                first = other
        if not earlier(slot, first, last):
            break
        slot[place] = slot[first]
        place = first
    slot[place] = slot[last]
