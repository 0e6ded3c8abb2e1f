"""Computes a view independently from a ledger, and words broken invariants."""
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from subak.federation.megha.ledger import ENTRY, ENTRY_GAVE, ENTRY_SIZED, ENTRY_TOOK, ENTRY_WHOLE
from subak.federation.megha.local_master.state import ATTEMPT_HELD as HELD_ROW
from subak.federation.megha.local_master.state import (
    ATTEMPT_KILLING,
)
from subak.federation.megha.local_master.state import ATTEMPT_RUNNING as RUNNING_ROW
from subak.federation.megha.local_master.state import ATTEMPT_STARTING as STARTING_ROW
from subak.federation.messages import (
    NOBODY,
)

MACHINE_OF, TASK_OF, ATTEMPT_OF, ROUND_OF, OWNER_OF = (
    list(ENTRY.fields or ()).index(name) for name in ("machine", "task", "attempt", "round", "owner"))

HOLDING = (HELD_ROW, STARTING_ROW, RUNNING_ROW, ATTEMPT_KILLING)  # rows of a local master that have their amounts


class Broken(AssertionError):  # noqa: N818  (an invariant is broken)
    """An invariant does not hold; the text names it, with the numbers."""


def must(truth: object, rule: str, said: str) -> None:
    """Raise Broken unless a rule holds."""
    if not truth:
        raise Broken(f"({rule}) {said}")


class Asked(NamedTuple):
    """What tasks ask for, by task, and what machines have, by configuration."""

    request: list[np.ndarray]  # int64[resource]
    queue: list[int]
    capacity: list[np.ndarray]  # int64[resource]


class Fold:
    """A cluster as its ledger tells it."""

    def __init__(self, first: int, capacity: np.ndarray, queues: int) -> None:
        self.first = first
        self.capacity = capacity.copy()  # int64[resource, machine of the cluster]
        self.free = capacity.copy()
        self.consumed = np.zeros((queues, len(capacity)), np.int64)
        self.held: set[tuple[int, int, int]] = set()  # machine, task, attempt
        self.holder = np.full(capacity.shape[1], NOBODY)  # of each machine, for whom it is held back
        self.epoch, self.seen = 0, 0

    def forget(self) -> None:
        """Know nothing."""
        self.capacity[:] = 0
        self.free[:] = 0
        self.consumed[:] = 0
        self.held.clear()
        self.holder[:] = NOBODY

    def apply(self, entry: Sequence[int], asked: Asked) -> None:
        """Apply one entry."""
        kind, machine, task, attempt = entry[0], entry[MACHINE_OF], entry[TASK_OF], entry[ATTEMPT_OF]
        if kind == ENTRY_WHOLE:
            self.forget()
        elif kind in (ENTRY_TOOK, ENTRY_GAVE):
            sign = 1 if kind == ENTRY_TOOK else -1
            self.free[:, machine - self.first] -= sign * asked.request[task]
            self.consumed[asked.queue[task]] += sign * asked.request[task]
            (self.held.add if kind == ENTRY_TOOK else self.held.discard)((machine, task, attempt))
        elif kind == ENTRY_SIZED:
            capacity = asked.capacity[task] if task != NOBODY else 0
            self.free[:, machine - self.first] += capacity - self.capacity[:, machine - self.first]
            self.capacity[:, machine - self.first] = capacity
            self.holder[machine - self.first] = entry[OWNER_OF]
