"""Skips Megha's idle heartbeats in one call, however many they are."""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.global_master.state import GlobalMaster
from subak.federation.megha.local_master.state import LocalMaster
from subak.federation.megha.topology import Rules
from subak.marks import inlined, noinline
from subak.simulator.engine.heap import SEQUENCE
from subak.simulator.federated.delay_line import PUT, TAKEN, event_at
from subak.simulator.federated.heartbeats.beats import (
    ROUNDS_MAX,
    TOUCHED,
    Beats,
    note_next,
)
from subak.simulator.federated.heartbeats.no_news import has_no_news, hear, note_beats, waits_for_news

HEAR, PASS_OVER = range(2)  # what `serve_idle` is asked for


class IdleTables(NamedTuple):
    """What `serve_idle` works on."""

    masters: list[GlobalMaster]
    locals: list[LocalMaster]
    rules: Rules
    beats: Beats
    owed: np.ndarray  # int32[address], as of the network
    events: np.ndarray  # int64[2], `size` of the network's heap


def serve_idle(tables: IdleTables, horizon: float, what: int) -> int:
    """PASS_OVER all rounds that change nothing and are over before *horizon*; return how many. HEAR: note the last."""
    if what == HEAR:
        hear_all(tables)
        return 0
    return pass_over(tables, horizon)


@noinline
def hear_all(tables: IdleTables) -> None:
    """Note when each master was heard last, as far as that was passed over."""
    beats, of = tables.beats, tables.beats.round
    for number in range(beats.last.size):
        if beats.last[number] >= 0.0:
            for master in range(beats.counts.masters):
                hear(tables.locals[number], tables.masters[master], master, beats.last[number] + of.heard,
                     beats.last[number] + of.answered + (master + 1) * of.turn)
            beats.last[number] = -1.0


@noinline
def pass_over(tables: IdleTables, horizon: float) -> int:
    """Pass over rounds; return how many. They are those that come next, so all local masters have as many or one less.

    A round is passed over that is over before the next begins. One that may not be stops all that come after it.
    """
    beats, of = tables.beats, tables.beats.round
    line, count = beats.line, beats.line.size[PUT] - beats.line.size[TAKEN]
    first = float(event_at(line, line.size[TAKEN])["time"])
    horizon = min(horizon, of.binade_end, first + ROUNDS_MAX * of.step)
    for master in range(beats.counts.masters):
        if not may_be_told(tables, master):
            return 0
    once, end = 0, first
    while once < count and end + of.length < horizon and is_settled(tables, once):
        begin, once = end, once + 1
        end = float(event_at(line, line.size[TAKEN] + once)["time"]) if once < count else first + of.step
        if begin + of.length >= end:
            once -= 1
            break
    if once == 0:
        return 0
    rounds, more = 1, once
    if once == count:
        rounds = rounds_before(first + of.length, of.step, horizon)
        more = 1
        while more < count and float(event_at(line, line.size[TAKEN] + more)["time"]) + of.length + (
            rounds - 1) * of.step < horizon:
            more += 1
    return move_on(tables, count, rounds, more)


@inlined
def may_be_told(tables: IdleTables, master: int) -> bool:
    """Whether heartbeats change nothing at a global master, which is looked at when something has arrived there."""
    address = tables.beats.counts.first_master + master
    if tables.owed[address] == TOUCHED and waits_for_news(tables.masters[master], tables.rules):
        tables.owed[address] = 0
    return bool(tables.owed[address] != TOUCHED)


@inlined
def is_settled(tables: IdleTables, place: int) -> bool:
    """Whether the local master whose timer is at a place in line has no news for anybody, likewise."""
    beats = tables.beats
    number = event_at(beats.line, beats.line.size[TAKEN] + place)["place"]
    address = beats.counts.first_local + number
    if tables.owed[address] == TOUCHED:
        for master in range(beats.counts.masters):
            if not has_no_news(tables.locals[number], tables.masters[master], master):
                return False
        tables.owed[address] = 0
    return True


@inlined
def rounds_before(first: float, step: float, horizon: float) -> int:
    """Return how many of first, first + step, ... are before *horizon*; the first is. All are in one binade."""
    rounds = int((horizon - first) / step)
    while first + rounds * step < horizon:
        rounds += 1
    while first + (rounds - 1) * step >= horizon:
        rounds -= 1
    return rounds


@noinline
def move_on(tables: IdleTables, count: int, rounds: int, more: int) -> int:
    """Pass over *rounds* of the first *more* local masters in line, and one less of the others; return how many."""
    beats, of = tables.beats, tables.beats.round
    line, taken, passed = beats.line, beats.line.size[TAKEN], 0
    for place in range(count if rounds > 1 else more):
        event, own = event_at(line, taken + place), rounds - (place >= more)
        last = float(event["time"]) + (own - 1) * of.step
        tables.owed[beats.counts.first_local + event["place"]] += own
        beats.last[event["place"]] = last
        event["time"], event["sequence"] = last + of.beat_seconds + of.heartbeat, tables.events[SEQUENCE]
        passed += own
        if place == more - 1:
            of.last = last
    tables.events[SEQUENCE] += 1
    for _ in range(more):
        line.event[line.size[PUT] & (line.event.size - 1)] = event_at(line, line.size[TAKEN])
        line.size[TAKEN] += 1
        line.size[PUT] += 1
    note_next(beats)
    for master in range(beats.counts.masters):
        tables.owed[beats.counts.first_master + master] += passed
        note_beats(tables.masters[master], tables.rules, passed)
    return passed
