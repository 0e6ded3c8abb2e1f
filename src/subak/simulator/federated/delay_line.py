"""A first-in-first-out queue of events with the same delay, which need no sorting.

An event joins the line if it is not before the last one in it; else whoever has it puts it into a heap. A heap of all
messages cost an eighth of the time of a federation's loop, most of it for branches that no processor foresees.
"""
from typing import NamedTuple

import numpy as np

from subak.marks import inlined
from subak.simulator.engine.heap import EVENT, SIZE, Events, drop_first, first_time

TAKEN, PUT = range(2)  # of `size`


class DelayLine(NamedTuple):
    """Events in the order in which they leave."""

    event: np.ndarray  # EVENT[place], a ring, whose size is a power of two; event n is at place n modulo the size
    size: np.ndarray  # int64[2]: how many were TAKEN, and PUT, ever


def build_line(capacity: int) -> DelayLine:
    """Return an empty line for *capacity* events at once, or more."""
    return DelayLine(np.empty(1 << max(capacity - 1, 0).bit_length(), EVENT), np.zeros(2, np.int64))


def in_line(line: DelayLine) -> np.ndarray:
    """Return EVENT[event], those in the line, in order."""
    return line.event[np.arange(line.size[TAKEN], line.size[PUT]) % line.event.size]


def with_longer_line(line: DelayLine, capacity: int) -> DelayLine:
    """Return a line with the same events, and room for *capacity*."""
    longer, events = build_line(capacity), in_line(line)
    longer.event[: len(events)], longer.size[PUT] = events, len(events)
    return longer


@inlined
def event_at(line: DelayLine, number: int) -> np.void:
    """Return the event of a number."""
    return line.event[number & (line.event.size - 1)]


@inlined
def is_empty(line: DelayLine) -> bool:
    """Whether nothing is in the line."""
    return bool(line.size[TAKEN] == line.size[PUT])


@inlined
def may_join(line: DelayLine, time: float) -> bool:
    """Whether an event at *time*, with a later sequence number than all others, leaves after all of the line."""
    return bool(is_empty(line) or event_at(line, line.size[PUT] - 1)["time"] <= time)


@inlined
def join(line: DelayLine, time: float, sequence: int, item: int, place: int) -> None:
    """Put an event in that may join; there must be room."""
    event = event_at(line, line.size[PUT])
    event["time"], event["sequence"], event["item"], event["place"] = time, sequence, item, place
    line.size[PUT] += 1


# -- a line beside a heap ----------------------------------------------------------------------------------------------


@inlined
def line_is_first(line: DelayLine, events: Events) -> bool:
    """Whether the first event of a line comes before the first of a heap."""
    if is_empty(line) or events.size[SIZE] == 0:
        return not is_empty(line)
    one, other = event_at(line, line.size[TAKEN]), events.slot[0]
    return bool(one["time"] < other["time"] or (one["time"] == other["time"] and one["sequence"] < other["sequence"]))


@inlined
def first_time_of(line: DelayLine, events: Events) -> float:
    """Return when the earliest event of both is, inf if there is none."""
    time = first_time(events)
    return time if is_empty(line) else min(time, float(event_at(line, line.size[TAKEN])["time"]))


@inlined
def take_first(line: DelayLine, events: Events) -> tuple[float, int, int, int]:
    """Take the earliest event of both; return its time, sequence number, item and place."""
    is_of_line = line_is_first(line, events)
    first = event_at(line, line.size[TAKEN]) if is_of_line else events.slot[0]
    time, sequence, item, place = first["time"], first["sequence"], first["item"], first["place"]
    if is_of_line:
        line.size[TAKEN] += 1
    else:
        drop_first(events)
    return time, sequence, item, place


def all_events(line: DelayLine, events: Events) -> np.ndarray:
    """Return EVENT[event] of both, the earliest first, the others in no order."""
    heap = events.slot[: events.size[SIZE]]
    return np.concatenate([in_line(line), heap] if line_is_first(line, events) else [heap, in_line(line)], dtype=EVENT)
