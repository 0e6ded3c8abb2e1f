"""Proves a configuration by flooding its roles (flood.py) until nothing new comes."""
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from subak.federation.messages import ARRIVE, CANCEL, EXITED
from subak.federation.serving import compiled_service
from subak.kernels.kernel import by_address
from subak.simulator.exhaustive.flood import MARGIN_OF_SETS, WORD_BITS, Flood, spread
from subak.simulator.exhaustive.graph import (
    BAD,
    BROKEN,
    COMPLETE,
    CUTS,
    FLIGHT,
    FULL,
    GRAPH_MISSING,
    MOVES,
    NONE_THERE,
    STATES,
    TOO_WIDE,
    WRONGS,
)
from subak.simulator.exhaustive.moves import Moves
from subak.simulator.exhaustive.roles.configurations import Configuration
from subak.simulator.exhaustive.roles.opening import open_configuration
from subak.simulator.exhaustive.tables import Tables

ONCE = (ARRIVE, CANCEL, EXITED)  # come from outside, and nobody doubles them
AT_ONCE = 1 << 14  # states between two reports of progress


@dataclass
class Proof:
    """What came of it."""

    states: int = 0  # sets of role states
    moves: int = 0
    messages: int = 0  # that were ever sent
    cuts: int = 0  # moves that were not followed, since a number would have gone beyond its bound
    seconds: float = 0.0
    complete: bool = False
    wrong: str = ""  # which may be more than can be


class Sets:
    """The tables of a flood, with room for what comes."""

    def __init__(self, configuration: Configuration, compiled: bool, handlers: bool) -> None:
        unbounded = msgspec.structs.replace(configuration, lost=0, doubled=0, early=None)
        jit = compiled and by_address()
        self.moves = Moves(open_configuration(unbounded), unbounded, jit and handlers, waits=False)
        self.tables = Tables(unbounded, self.moves, jit, drops=False)
        self.compiled = jit
        row = self.tables.tables["row"][0]
        first = [int(message) for message in row[self.tables.slots + FLIGHT :] if message != NONE_THERE]
        once = [message for message in first if self.moves.messages[message].kind in ONCE]
        row[self.tables.slots + FLIGHT :] = NONE_THERE
        row[self.tables.slots + FLIGHT : self.tables.slots + FLIGHT + len(once)] = once
        self.sent = np.zeros((1, 1), np.uint64)
        self.queue = np.zeros(1, np.int32)
        self.is_queued = np.ones(1, np.uint8)
        self.ends = np.array([0, 1])
        self.make_room()
        for message in set(first) - set(once):
            self.sent[0, message // WORD_BITS] |= np.uint64(1) << np.uint64(message % WORD_BITS)
        self.tables.tables["place"][:] = 0
        self.tables.call["place_states"](0.0, 1)
        self.rebuild()

    def make_room(self) -> None:
        """See to it that there is room for more states, and for the messages that there are."""
        tables = self.tables
        tables.make_room(1 << 62, MARGIN_OF_SETS)
        rows, words = len(tables.tables["row"]), -(-len(self.moves.messages) // WORD_BITS)
        if self.sent.shape != (rows, words):
            sent = np.zeros((rows, 2 * words if words > self.sent.shape[1] else self.sent.shape[1]), np.uint64)
            sent[: len(self.sent), : self.sent.shape[1]] = self.sent[:rows]
            self.sent = sent
        if len(self.is_queued) < rows:
            self.is_queued = np.concatenate([self.is_queued, np.zeros(rows - len(self.is_queued), np.uint8)])
            waiting = self.queue[np.arange(*self.ends) % len(self.queue)]
            self.queue = np.zeros(rows, np.int32)
            self.queue[: len(waiting)] = waiting
            self.ends[:] = 0, len(waiting)

    def rebuild(self) -> None:
        """Let the compiled function work on the tables as they are now."""
        runs = np.array([message.kind in ONCE for message in self.moves.messages], np.uint8)
        flood = Flood(self.tables.graph, self.sent, np.zeros(self.sent.shape[1], np.uint64), runs, self.queue,
                      self.is_queued, self.ends)
        self.spread: Callable[[float, int], int] = (
            compiled_service(spread, flood) if self.compiled else lambda now, most: spread(flood, now, most))


def prove(
    configuration: Configuration, states_max: int, on_progress: Callable[[int, int], None] | None = None,
    compiled: bool = True, handlers: bool = True,
) -> Proof:
    """Flood a configuration until nothing new comes, something is wrong, or there are too many states."""
    began, sets = time.monotonic(), Sets(configuration, compiled, handlers)
    tally, why = sets.tables.count, GRAPH_MISSING
    while why not in (COMPLETE, BROKEN, TOO_WIDE) and int(tally[STATES]) <= states_max:
        why = sets.spread(0.0, AT_ONCE)
        if why == GRAPH_MISSING:
            sets.tables.make_good()
        if why in (GRAPH_MISSING, FULL):
            sets.make_room()
            sets.rebuild()
        if on_progress:
            on_progress(int(tally[STATES] - (sets.ends[1] - sets.ends[0])), int(tally[STATES]))
    return Proof(int(tally[STATES]), int(tally[MOVES]), len(sets.moves.messages), int(tally[CUTS]),
                 time.monotonic() - began, why == COMPLETE, WRONGS[int(tally[BAD])])
