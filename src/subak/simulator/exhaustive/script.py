"""Writes ways through the graph in words, and plays them again.

submitter <- ARRIVE, task 0
SUBMIT, task 0 -> global master 0
lost: SUBMIT, task 0 -> global master 0
worker 0 crashes
"""
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from subak.federation.messages import CHECK, HANDLER, MESSAGE, TICK, WATCH
from subak.simulator.exhaustive.explore import Walk
from subak.simulator.exhaustive.graph import (
    BAD,
    CRASH,
    DELIVERED,
    DOUBLED_LEFT,
    FLIGHT,
    LOST_LEFT,
    MISSES,
    MOVES,
    NONE_THERE,
    RETURN,
    STATES,
    WRONGS,
)
from subak.simulator.exhaustive.moves import CRASHED, FAIL, FIND_DEAD, FIND_DESERTED, FIND_LOST, Variant
from subak.simulator.exhaustive.roles.canonical import LATE
from subak.simulator.exhaustive.roles.configurations import Configuration
from subak.simulator.exhaustive.walk import finds_nobody, is_down, left, may, step
from subak.simulator.torture.message_text import words

ANSWER = "        "  # before each answer
MORE = ("incarnation", "count", "report", "seen", "start")  # fields that tell messages apart
NUMBER_BITS = 40


class Move(NamedTuple):
    """A move, as `step` takes it."""

    slot: int
    variant: int
    gone: int
    charge: int
    kind: int


def moves_from(walk: Walk, number: int) -> Iterator[Move]:
    """Yield the moves from a state, as `expand` makes them."""
    graph, row = walk.tables.graph, walk.tables.graph.row[number]
    flight = [int(message) for message in row[walk.tables.slots + FLIGHT :] if message != NONE_THERE]
    for message in flight:
        yield from _deliveries(walk, row, message)
    for slot in range(walk.tables.slots):
        crash, come_back = int(graph.crash[slot]), int(graph.come_back[slot])
        if is_down(graph, row, slot):
            if come_back != NONE_THERE:
                yield Move(slot, come_back, NONE_THERE, NONE_THERE, RETURN)
        elif crash != NONE_THERE and may(graph, row, slot, crash):
            yield Move(slot, crash, NONE_THERE, int(graph.cost[crash]), CRASH)


def _deliveries(walk: Walk, row: np.ndarray, message: int) -> Iterator[Move]:
    """Yield the moves in which a message comes, as `deliver` makes them."""
    graph, ways = walk.tables.graph, walk.moves.messages[message].variants
    slot = int(graph.message_to[message])
    if finds_nobody(graph, row, message):
        yield Move(slot, NONE_THERE, message, NONE_THERE, DELIVERED)
        return
    for variant in ways:
        if may(graph, row, slot, variant):
            yield Move(slot, variant, message, int(graph.cost[variant]), DELIVERED)
    if graph.crosses[message]:
        if left(graph, row, DOUBLED_LEFT) > 0:
            yield Move(slot, ways[0], NONE_THERE, DOUBLED_LEFT, DELIVERED)
        if left(graph, row, LOST_LEFT) > 0:
            yield Move(slot, NONE_THERE, message, LOST_LEFT, DELIVERED)


def taken(walk: Walk, number: int, move: Move, adds: bool = False) -> None:
    """Make the state to which a move leads, in the graph's `child`."""
    while step(walk.tables.graph, number, *move, adds) > 0:
        walk.tables.make_good()
        walk.tables.count[MISSES] = 0


def path_to(walk: Walk, number: int) -> list[str]:
    """Return the moves, in words, that lead from the first state to another."""
    path = [number]
    while walk.tables.graph.parent[path[-1]] != NONE_THERE:
        path.append(int(walk.tables.graph.parent[path[-1]]))
    path.reverse()
    lines: list[str] = []
    walk.tables.count[MISSES] = 0
    for before, after in pairwise(path):
        lines += _said(walk, before, after)
    return lines


def _said(walk: Walk, before: int, after: int) -> list[str]:
    """Say the move that leads from one state to the next."""
    for move in moves_from(walk, before):
        taken(walk, before, move)
        if (walk.tables.graph.child == walk.tables.graph.row[after]).all():
            return [move_words(walk, move), *answers_words(walk, before, move)]
    raise AssertionError("a state has a parent that does not lead to it")


def move_words(walk: Walk, move: Move) -> str:
    """Say a move."""
    moves = walk.moves
    if move.kind == CRASH:
        return f"{moves.name(move.slot)} crashes"
    if move.kind == RETURN:
        return f"{moves.name(move.slot)} comes back"
    variant: Variant | None = moves.variants[move.variant] if move.variant != NONE_THERE else None
    message = move.gone if move.gone != NONE_THERE else variant.message if variant else NONE_THERE
    said, receiver = message_words(walk, moves.messages[message].row), moves.receiver(message)
    if variant is None:
        return f"{'lost' if move.charge == LOST_LEFT else 'in vain'}: {said} -> {receiver}"
    doubled = "doubled: " if move.gone == NONE_THERE else ""
    return f"{doubled}{receiver} <- {said}{_what_it_finds(walk, variant)}"


def _what_it_finds(walk: Walk, variant: Variant) -> str:
    kind = walk.moves.messages[variant.message].kind
    if kind == TICK and variant.now == LATE:
        return ", finds its lease over"
    if kind == CHECK and variant.what in (FIND_LOST, FIND_DEAD, FIND_DESERTED):
        return f", finds worker {walk.moves.machines.index(variant.machine)} silent for a lease"
    if variant.what == FAIL:
        return ", having failed"
    return ", finds its master silent" if kind == WATCH else ""


def message_words(walk: Walk, row: bytes) -> str:
    """Say a message, with all that tells it from others."""
    message = as_row(row)
    said = [words(walk.moves.opened, message)]
    for name in MORE:
        value = int(message[name])
        if value and name == "start":
            value &= (1 << NUMBER_BITS) - 1
        if value and f"{name} " not in said[0]:
            said.append(f"{name} {value}")
    return ", ".join(said)


def as_row(row: bytes) -> np.void:
    """Return a message as a row."""
    return np.frombuffer(row, MESSAGE)[0]


def answers_words(walk: Walk, number: int, move: Move) -> list[str]:
    """Say what a role answers to a move, effects on the executor with it."""
    if move.variant == NONE_THERE:
        return []
    moves, variant = walk.moves, walk.moves.variants[move.variant]
    actor = moves.actors[move.slot]
    actor.load(moves.states[int(walk.tables.graph.row[number][move.slot])][1])
    answers = moves.happen(actor, variant) or []
    lines = []
    for row, _ in answers if variant.what != CRASHED else []:
        message = as_row(row)
        role, to = int(HANDLER[message["kind"]]), int(message["to"])
        lines.append(f"{ANSWER}{message_words(walk, row)} -> {moves.role_name(role, to)}")
    return lines


def play(configuration: Configuration, script: str) -> str:
    """Play a script again; return what is wrong after its last line, an empty text where nothing is.

    Raises ValueError where a line says what cannot happen there.
    """
    walk = Walk(configuration, 10_000, compiled=False, drops=False)
    number = 0
    for line in script.splitlines():
        if line.strip() and not line.startswith((ANSWER, "#")):
            number = _played(walk, number, line)
    return WRONGS[int(walk.tables.count[BAD])]


def _played(walk: Walk, number: int, line: str) -> int:
    """Make the move that a line says, and return the number of the state that it leads to."""
    for move in moves_from(walk, number):
        made = int(walk.tables.count[MOVES])
        if move_words(walk, move) == line:
            taken(walk, number, move, adds=True)
            if walk.tables.count[MOVES] > made:
                return _number(walk)
    raise ValueError(f"cannot happen there: {line}")


def _number(walk: Walk) -> int:
    states = int(walk.tables.count[STATES])
    same = (walk.tables.graph.row[:states] == walk.tables.graph.child).all(axis=1)
    return int(same.argmax())
