"""Skips a round of idle heartbeats at once, and accounts for its cost.

A round is a heartbeat of a local master: its timer, an update to every global master, and what each of them answers.
While nothing else is under way, the rounds of a local master are the same over and over, a heartbeat apart: so are the
messages, the services and who waits for whom. What becomes of the numbers that are kept is the same to the last bit,
because additions of floating-point numbers are the same as long as none of them leaves its binade:

- Between two powers of two all numbers have the same last place, and to add a constant moves each of them by the same
  multiple of it, but where the constant ends in exactly half of a last place, which is then rounded to an even number.
  Where that is so of what times are moved by, no round is passed over in that binade.
- Sums of seconds are brought up to date before anything else is added to them: one round is added as it was made, and
  the others in one multiplication, in each binade that the sum crosses (`add_rounds`). Of a sum it does not matter
  where a round is rounded to an even number: after it the sum is even, so the next round does the same again.

Whether a round changes nothing, only the roles can say (no_news.py).
"""
import math
from typing import NamedTuple

import numpy as np

from subak.federation.messages import BEAT, GLOBAL_MASTER, LOCAL_MASTER, NOTED, UPDATE
from subak.federation.settings import Federation
from subak.marks import inlined, noinline
from subak.records import Numbers
from subak.simulator.federated.delay_line import (
    PUT,
    TAKEN,
    DelayLine,
    build_line,
    event_at,
    in_line,
    is_empty,
    join,
    may_join,
)

TOUCHED = -1  # of `owed`: something has arrived there since it was last looked at
ROUNDS_MAX = 100_000  # of each local master that are passed over at once
UNSETTLED_MAX = 1 << 30  # rounds that are passed over before they are all accounted for


class Round(Numbers):
    """What is known of a round, in seconds."""

    heartbeat: float  # as it was set, likewise those before binade_end
    delay: float
    beat_seconds: float  # of service
    update_seconds: float
    noted_seconds: float
    binade_end: float  # of the present, -inf where nothing is known; those below hold within it
    step: float  # from a round to the next
    heard: float  # from its beginning until an update has been served
    answered: float  # and until the answers arrive
    turn: float  # what one answer takes
    length: float  # of all
    last: float  # when the last of all that were passed over began
    next_beat: float  # when the first timer in line goes off, inf if there is none


class BeatCounts(Numbers):
    """Whether heartbeats are passed over, and how many."""

    is_on: int
    masters: int  # global masters
    first_master: int  # address, likewise the next
    first_local: int
    events_a_round: int
    unsettled: int  # rounds passed over since all were accounted for
    passed: int  # rounds, ever


class Beats(NamedTuple):
    """The timers of heartbeats, in order, and what is known of a round in the binade of the present."""

    line: DelayLine  # timers: an event's item is its message's slot, its place the number of its local master
    last: np.ndarray  # float64[local_master], when the last of its rounds that were passed over began; -1 once that is
    # noted everywhere
    round: Round
    counts: BeatCounts


def build_beats(local_masters: int) -> Beats:
    """Return an empty line for the timers of *local_masters*; every heartbeat is made."""
    unknown = Round(next_beat=np.inf, binade_end=-np.inf)
    return Beats(build_line(local_masters), np.full(max(local_masters, 2), -1.0), unknown, BeatCounts())


def arm_beats(
    beats: Beats, settings: Federation, first: np.ndarray, service: np.ndarray, part: np.ndarray, charged: np.ndarray
) -> None:
    """Let heartbeats that change nothing be passed over, where rounds are the same over and over.

    *first*, *service* and *part* are the network's; *charged* is int32[local_master], or [1], how many entries an empty
    update is charged for. Where delays are drawn each round is another, and where requests are repeated so are signs of
    life, which are no heartbeats.
    """
    same = settings.delay_law == "constant" and np.unique(charged).size == 1
    if not same or math.isfinite(settings.retry) or math.isinf(settings.heartbeat):
        return
    beats.counts.is_on = 1
    beats.counts.masters = first[LOCAL_MASTER] - first[GLOBAL_MASTER]
    beats.counts.first_master, beats.counts.first_local = first[GLOBAL_MASTER], first[LOCAL_MASTER]
    beats.round.heartbeat, beats.round.delay = settings.heartbeat, settings.delay
    beats.round.beat_seconds, beats.round.noted_seconds = service[BEAT], service[NOTED]
    beats.round.update_seconds = service[UPDATE] + part[UPDATE] * charged[0]


# -- the line of timers ------------------------------------------------------------------------------------------------


@inlined
def may_join_beats(beats: Beats, time: float) -> bool:
    """Whether there is room for a timer that goes off at *time*, and it is the last."""
    return bool(beats.line.size[PUT] - beats.line.size[TAKEN] < beats.line.event.size) and may_join(beats.line, time)


@inlined
def join_beats(beats: Beats, time: float, sequence: int, slot: int, local: int) -> None:
    """Put the timer of a local master in."""
    if is_empty(beats.line):
        beats.round.next_beat = time
    join(beats.line, time, sequence, slot, local)


@inlined
def take_beat(beats: Beats) -> None:
    """Take the first timer out."""
    beats.line.size[TAKEN] += 1
    note_next(beats)


@inlined
def note_next(beats: Beats) -> None:
    """Note when the first timer goes off."""
    beats.round.next_beat = np.inf if is_empty(beats.line) else event_at(beats.line, beats.line.size[TAKEN])["time"]


def timers(beats: Beats) -> np.ndarray:
    """Return EVENT[event], the timers in line, in order."""
    return in_line(beats.line)


# -- a round in a binade -----------------------------------------------------------------------------------------------


@inlined
def moved(seconds: float, unit: float) -> float:
    """Return by how much a multiple of *unit* is moved to which *seconds* are added, inf where that depends on it."""
    units = seconds / unit
    whole = math.floor(units)
    part = units - whole
    return np.inf if part == 0.5 else (whole + (part > 0.5)) * unit


@noinline
def measure_round(beats: Beats, time: float) -> None:
    """Note what a round takes that begins in the binade of *time*; LENGTH is inf where none is to be passed over."""
    of, unit, masters = beats.round, 0.0, beats.counts.masters
    of.binade_end, of.length = time, np.inf
    if time <= 0.0:
        return
    _, exponent = math.frexp(time)
    of.binade_end, unit = math.ldexp(1.0, exponent), math.ldexp(1.0, exponent - 53)
    began, delay = moved(of.beat_seconds, unit), moved(of.delay, unit)
    served, of.turn = moved(of.update_seconds, unit), moved(of.noted_seconds, unit)
    of.step, of.heard = began + moved(of.heartbeat, unit), began + delay + served
    of.answered = of.heard + delay
    if of.step < np.inf:
        of.length = of.answered + masters * of.turn
    beats.counts.events_a_round = 1 + masters * (1 + (masters > 1 and served > 0.0)) + masters * (
        1 + (masters > 1 and of.turn > 0.0))


# -- what rounds cost --------------------------------------------------------------------------------------------------


@inlined
def add_round(total: float, first: float, base: float, slope: float, count: int) -> float:
    """Return *total* plus *first*, plus base, base + slope, ..., *count* of these: rounded after each, as in a run."""
    total += first
    for number in range(count):
        total += base + number * slope
    return total


@noinline
def add_rounds(total: float, first: float, base: float, slope: float, count: int, rounds: int) -> float:
    """Return what *total* becomes when what `add_round` adds is added so many times."""
    while rounds > 0:
        before = total
        middle = add_round(total, first, base, slope, count)
        if middle == before:
            return total
        total = middle
        rounds -= 1
        if rounds > 0:
            total = add_round(middle, first, base, slope, count)
            rounds -= 1
            _, exponent = math.frexp(before)
            end, step = math.ldexp(1.0, exponent), total - middle
            if before > 0.0 and total < end and step > 0.0:
                more = min(int((end - total) / step) - 1, rounds)
                if more > 0:
                    total += more * step
                    rounds -= more
    return total


@noinline
def settle(
    beats: Beats, owed: np.ndarray, busy: np.ndarray, worked: np.ndarray, queued: np.ndarray, address: int
) -> None:
    """Account for the rounds at a master that were passed over. The columns are those of the network."""
    rounds, of, masters = owed[address], beats.round, beats.counts.masters
    owed[address] = 0
    if address < beats.counts.first_local:
        worked[address] = add_rounds(worked[address], of.update_seconds, 0.0, 0.0, 0, rounds)
        busy[address] = max(busy[address], of.last + of.heard)
    else:
        worked[address] = add_rounds(worked[address], of.beat_seconds, of.noted_seconds, 0.0, masters, rounds)
        queued[address] = add_rounds(queued[address], 0.0, 0.0, of.turn, masters, rounds)
        busy[address] = max(busy[address], beats.last[address - beats.counts.first_local] + of.length)
