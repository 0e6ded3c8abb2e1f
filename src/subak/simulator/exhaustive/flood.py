"""The walk in which every message ever sent may arrive at any time, any number of times.

Loss, doubling, delay and overtaking have no bound in it, and timers ring whenever they like, also those of a former
life. Of each set of role states, and of what is true of tasks beyond them, there is one set of messages that only
grows: all that were sent on any way there. That is more than can be under way, so a state that it finds wrong may be
one that cannot be; but if it ends, and nothing is wrong, nothing is wrong however the network behaves: a proof for its
configuration. How often roles crash, leases run out and standbys take over is bounded as in the other walk.
"""
from typing import NamedTuple

import numpy as np

from subak.marks import inlined, noinline
from subak.simulator.exhaustive.graph import (
    BAD,
    BAD_STATE,
    BROKEN,
    COMPLETE,
    CRASH,
    CUT,
    CUTS,
    DELIVERED,
    DOWN_AT,
    FINE,
    FLIGHT,
    FULL,
    GRAPH_MISSING,
    MISSES,
    MOVES,
    NONE_THERE,
    PAUSED,
    RETURN,
    STATES,
    TOO_WIDE,
    TRUTH,
    WIDEST,
    Graph,
    add_state,
    look_up,
)
from subak.simulator.exhaustive.walk import (
    add_to_flight,
    begin_child,
    excuse,
    finds_nobody,
    happen_also,
    is_down,
    may,
    note_truth,
    take_from_flight,
)

WORD_BITS = 64  # bits
NONE, ONE = np.uint64(0), np.uint64(1)
QUEUE_BEGINS, QUEUE_ENDS = range(2)  # of `ends`: where the queue begins, and ends
LACKING_MAX = 64  # states that lack something, before what they lack is made good
MARGIN_OF_SETS = 1 << 13  # states that one state may add


class Flood(NamedTuple):
    """The tables of such a walk, beside those of the graph.

    Rows have under way only what comes once: arrivals, and the timers of the executor.
    """

    graph: Graph
    sent: np.ndarray  # uint64[state, word], messages that were ever sent on a way to the state, a bit each
    answers: np.ndarray  # uint64[word], what is sent in the move that is being made
    runs: np.ndarray  # uint8[message], whether it comes once: a timer of the executor, until which an attempt runs
    queue: np.ndarray  # int32[place], states to be looked at, in a ring
    is_queued: np.ndarray  # uint8[state]
    ends: np.ndarray  # int64[2]


@inlined
def push(flood: Flood, state: int) -> None:
    """Let a state be looked at (again)."""
    if not flood.is_queued[state]:
        flood.is_queued[state] = 1
        flood.queue[flood.ends[QUEUE_ENDS] % flood.queue.size] = state
        flood.ends[QUEUE_ENDS] += 1


@inlined
def pop(flood: Flood) -> int:
    """Return the next state to look at."""
    state = flood.queue[flood.ends[QUEUE_BEGINS] % flood.queue.size]
    flood.ends[QUEUE_BEGINS] += 1
    flood.is_queued[state] = 0
    return int(state)


@noinline
def go(
    flood: Flood, number: int, slot: int, variant: int, gone: int, charge: int, kind: int
) -> int:
    """Make the move of a variant, and let what was sent come along; return whether something is lacking."""
    graph = flood.graph
    row, child = graph.row[number], graph.child
    result = look_up(graph, row[slot], variant)
    if result == NONE_THERE:
        return 1
    if graph.next_state[result] < 0:
        graph.tally[CUTS] += graph.next_state[result] == CUT
        return 0
    begin_child(graph, row, gone, charge)
    for word in range(flood.answers.size):
        flood.answers[word] = NONE
    child[slot] = graph.next_state[result]
    for place in range(graph.halted_first[result], graph.halted_first[result + 1]):
        take_from_flight(graph, graph.halted[place])
    for place in range(graph.out_first[result], graph.out_first[result + 1]):
        send(flood, graph.out[place])
    if happen_also(graph, variant, True):
        return 1
    befall(graph, row, slot, kind)
    if graph.lapse[variant] != NONE_THERE:
        excuse(graph, graph.lapse[variant], 0)
    wrong = note_truth(graph, result)
    graph.tally[MOVES] += 1
    new = add_state(graph, number)
    carry(flood, number, new)
    if wrong != FINE and graph.tally[BAD] == FINE:
        graph.tally[BAD], graph.tally[BAD_STATE] = wrong, new
    return 0


@inlined
def send(flood: Flood, message: int) -> None:
    """Let a message have been sent, or an attempt run."""
    if flood.runs[message]:
        add_to_flight(flood.graph, message)
    else:
        flood.answers[message // WORD_BITS] |= ONE << np.uint64(message % WORD_BITS)


@inlined
def befall(graph: Graph, row: np.ndarray, slot: int, kind: int) -> None:
    """Let a role be down, or not any more."""
    child, at = graph.child, graph.slots + TRUTH
    if kind == CRASH:
        child[at] |= 1 << (DOWN_AT + slot)
        excuse(graph, NONE_THERE, graph.knows[row[slot]] if slot < graph.first_local else 0)
    elif kind == RETURN:
        child[at] &= ~(1 << (DOWN_AT + slot))


@inlined
def carry(flood: Flood, number: int, new: int) -> None:
    """Let all that was sent on a way to one state have been sent on a way to the next, and what is sent between."""
    changed = new + 1 == flood.graph.tally[STATES] and not flood.sent[new].any()
    for word in range(flood.answers.size):
        more = flood.sent[number, word] | flood.answers[word]
        if more & ~flood.sent[new, word] != NONE:
            flood.sent[new, word] |= more
            changed = True
    if changed:
        push(flood, new)


@noinline
def deliver_all(flood: Flood, number: int, message: int, gone: int) -> int:
    """Make the moves in which a message comes, in each way."""
    graph, lacking = flood.graph, 0
    slot = graph.message_to[message]
    if finds_nobody(graph, graph.row[number], message):
        return 0
    for way in range(graph.way_first[message], graph.way_first[message + 1]):
        variant = graph.way[way]
        if may(graph, graph.row[number], slot, variant):
            lacking += go(flood, number, slot, variant, gone, graph.cost[variant], DELIVERED)
    return lacking


@noinline
def look_at(flood: Flood, number: int) -> int:
    """Make all moves from a state; return how many lack something."""
    graph, lacking = flood.graph, 0
    row = graph.row[number]
    for place in range(graph.slots + FLIGHT, graph.width):
        if row[place] == NONE_THERE:
            break
        lacking += deliver_all(flood, number, row[place], row[place])
    for word in range(flood.answers.size):
        bits = flood.sent[number, word]
        for bit in range(WORD_BITS):
            if bits != NONE and (bits >> np.uint64(bit)) & ONE != NONE:
                lacking += deliver_all(flood, number, word * WORD_BITS + bit, NONE_THERE)
    for slot in range(graph.slots):
        crash, come_back = graph.crash[slot], graph.come_back[slot]
        if is_down(graph, row, slot):
            if come_back != NONE_THERE:
                lacking += go(flood, number, slot, come_back, NONE_THERE, NONE_THERE, RETURN)
        elif crash != NONE_THERE and may(graph, row, slot, crash):
            lacking += go(flood, number, slot, crash, NONE_THERE, graph.cost[crash], CRASH)
    return lacking


def spread(flood: Flood, _now: float, most: int) -> int:
    """Look at states until none has more messages than when it was looked at; *most* at once. Return why it stops."""
    tally, lacking = flood.graph.tally, 0
    tally[MISSES] = 0
    for _ in range(most):
        if flood.ends[QUEUE_BEGINS] == flood.ends[QUEUE_ENDS]:
            return GRAPH_MISSING if lacking else COMPLETE
        if tally[STATES] + MARGIN_OF_SETS > flood.graph.row.shape[0]:
            return FULL
        state = pop(flood)
        if look_at(flood, state) > 0:
            push(flood, state)
            lacking += 1
            if lacking >= LACKING_MAX or tally[MISSES] >= flood.graph.miss.shape[0]:
                return GRAPH_MISSING
        if tally[WIDEST] > flood.graph.width:
            return TOO_WIDE
        if tally[BAD] != FINE:
            return BROKEN
    return GRAPH_MISSING if lacking else PAUSED
