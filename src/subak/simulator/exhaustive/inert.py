"""Finds messages that do nothing to their receiver in any state, which may be dropped.

A walk drops a message at once where it would do nothing. Afterwards the states that each role went through are a graph,
and it can be told of each message that was dropped whether it would have acted in a state that its receiver could come
to later. If none would, the walk has left nothing out: any walk that keeps them differs first where one acts, at a role
state that the role's graph, by the moves so far, leads to. If some would, they are kept, and it is walked again.
"""
from collections import defaultdict

import numpy as np

from subak.simulator.exhaustive.graph import VARIANT_BITS
from subak.simulator.exhaustive.moves import Moves

VARIANT_MASK = (1 << VARIANT_BITS) - 1


class Results:
    """What came of what in a walk."""

    def __init__(self, moves: Moves, count: int, tables: dict[str, np.ndarray]) -> None:
        self.moves = moves
        key = tables["result_key"][:count] - 1
        self.state, self.variant = (key >> VARIANT_BITS).tolist(), (key & VARIANT_MASK).tolist()
        self.next = tables["next_state"][:count].tolist()
        self.used = np.flatnonzero(tables["used"][:count]).tolist()
        self.voided = np.flatnonzero(tables["voided"][:count]).tolist()

    def matters(self) -> list[int]:
        """Return the results by which messages were dropped that may act later."""
        after, before = self.edges()
        dropped: dict[int, int] = defaultdict(int)  # role state: variants, a bit each
        for result in self.voided:
            dropped[self.state[result]] |= 1 << self.variant[result]
        carried = spread(dict(dropped), after)
        acting = {state: self.acts(state, bits & ~dropped[state]) for state, bits in carried.items()}
        needed = spread({state: bits for state, bits in acting.items() if bits}, before)
        return [result for result in self.voided if needed.get(self.state[result], 0) >> self.variant[result] & 1]

    def edges(self) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
        """Return which states of a role lead to which others, and which to it."""
        after, before = defaultdict(set), defaultdict(set)
        for result in self.used:
            state, then = self.state[result], self.next[result]
            if then >= 0 and then != state:
                after[state].add(then)
                before[then].add(state)
        return after, before

    def acts(self, state: int, bits: int) -> int:
        """Return those of some variants that do something in a role's state."""
        found = 0
        while bits:
            variant = (bits & -bits).bit_length() - 1
            bits &= bits - 1
            if not self.nothing(state, variant):
                found |= 1 << variant
        return found

    def nothing(self, state: int, variant: int) -> bool:
        """Whether a variant does nothing in a role's state."""
        known = self.moves.does_nothing.get((state, variant))
        if known is None:
            known = self.moves.result(state, variant).is_void
        return known


def spread(bits: dict[int, int], edges: dict[int, set[int]]) -> dict[int, int]:
    """Return what comes to each node when all that is at a node goes along its edges."""
    result, pending = dict(bits), list(bits)
    while pending:
        node = pending.pop()
        for other in edges.get(node, ()):
            more = result.get(other, 0) | result[node]
            if more != result.get(other, 0):
                result[other] = more
                pending.append(other)
    return result
