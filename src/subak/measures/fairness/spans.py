"""Cuts time into spans of about as many changes each.

Attempts come in parts, in the order in which their tasks arrive: nothing changes for a task before it arrives, so all
that changes before the first arrival of the next part is known. In memory there is one part. Where time is cut is told
by a sample of all attempts, whatever the parts, so that what is summed over spans is the same however they come.
"""
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

CHANGES = 3  # of an attempt: it waits, it starts, it ends
SAMPLE_MIN = 100_000  # of all changes, at least as many are in the sample
SPANS_TOGETHER = 16  # that rows are put into at once


class Trail(NamedTuple):
    """Attempts, in any order: a row waits at an instant (inf: never), starts (inf) and ends (inf)."""

    stage: np.ndarray  # uint32[row]
    waits: np.ndarray  # float64[row], seconds
    starts: np.ndarray  # float64[row], seconds
    ends: np.ndarray  # float64[row], seconds


class Part(NamedTuple):
    """Attempts of some tasks."""

    trail: Trail
    until: float  # seconds: what comes in parts behind this one changes nothing before


class Span(NamedTuple):
    """A span of time, and the rows of a trail that change in it."""

    begin: float  # seconds
    end: float
    trail: Trail
    changes: tuple[np.ndarray, np.ndarray, np.ndarray]  # int[change]: rows that begin to wait, start, and end


def sample_step(rows: int) -> int:
    """Return that each so-many-th of all rows is to be in the sample."""
    return max(CHANGES * rows // SAMPLE_MIN, 1)


def sampled(trail: Trail, which: slice | np.ndarray) -> np.ndarray:
    """Return float64[change], seconds, in which *which* of the rows change."""
    return np.concatenate([times[which] for times in trail[1:]])


def cuts_of(sample: np.ndarray, rows: int, end: float, events: int) -> np.ndarray:
    """Return float64[cut], seconds, from 0 to *end*: between two of them about so many *events*.

    *sample* is float64[change], in any order, of so many *rows* in all.
    """
    count = CHANGES * rows
    if count <= events:
        return np.array([0.0, end])
    sample = np.append(sample[sample < end], 0.0)
    inner = np.quantile(sample, np.linspace(0, 1, -(-count // events) + 1)[1:-1])
    return np.concatenate([np.unique(np.append(inner[inner < end], 0.0)), [end]])


def spans(parts: Iterable[Part], cuts: np.ndarray) -> Iterator[Span]:
    """Yield the spans between *cuts*, float64[cut], seconds, ascending, each once all that changes in it is known."""
    begun, held = 0, []
    for part in parts:
        held.append(part.trail)
        known = int(np.searchsorted(cuts[1:], part.until, side="right"))
        if known == begun:
            continue
        trail = held[0] if len(held) == 1 else Trail(*map(np.concatenate, zip(*held, strict=True)))
        held.clear()
        yield from _spans(trail, cuts[begun : known + 1])
        if known == cuts.size - 1:
            return
        begun, held = known, [between(trail, cuts[known], cuts[-1])]


def between(trail: Trail, begin: float, end: float) -> Trail:
    """Return the rows of which something changes from *begin* to before *end* (s), and of them these changes alone."""
    inside = [(times >= begin) & (times < end) for times in trail[1:]]
    rows = np.flatnonzero(inside[0] | inside[1] | inside[2])
    waits, starts, ends = (np.where(now[rows], times[rows], np.inf)
                           for now, times in zip(inside, trail[1:], strict=True))
    return Trail(trail.stage[rows], waits, starts, ends)


def _spans(trail: Trail, cuts: np.ndarray) -> Iterator[Span]:
    """Return the spans between *cuts*, before the first of which nothing changes.

    A row is looked at from its first change to its last, for SPANS_TOGETHER spans at a time, so that all of it is
    linear in the rows and in what goes on.
    """
    first = np.minimum(trail.waits, trail.starts)
    np.minimum(first, trail.ends, out=first)
    order = np.argsort(first, kind="stable").astype(np.uint32)
    first = first[order]
    places = np.searchsorted(first, cuts)
    assert places[0] == 0, f"{places[0]} attempts change before {cuts[0]} s"  # nothing changes before it arrives
    del first  # of a month, 200 MB
    ahead = [order[:0]] * CHANGES
    for begin in range(0, cuts.size - 1, SPANS_TOGETHER):
        inner = cuts[begin : begin + SPANS_TOGETHER + 1]
        new, changes = order[places[begin] : places[begin + inner.size - 1]], []
        for kind, times in enumerate(trail[1:]):
            rows = np.concatenate([ahead[kind], new])
            when = times[rows]
            now = when < inner[-1]
            changes.append(_apart(rows[now], when[now], inner))
            ahead[kind] = rows[~now]
        for since, until, *rows in zip(inner[:-1].tolist(), inner[1:].tolist(), *changes, strict=True):
            yield Span(since, until, trail, (rows[0], rows[1], rows[2]))


def _apart(rows: np.ndarray, times: np.ndarray, cuts: np.ndarray) -> list[np.ndarray]:
    """Return the rows that change between each two of *cuts*; *times* is float64[row], seconds, when each does."""
    span = (np.searchsorted(cuts, times, side="right") - 1).astype(np.uint8)
    ends = np.cumsum(np.bincount(span, minlength=cuts.size - 1))
    return np.split(rows[np.argsort(span, kind="stable")], ends[:-1])
