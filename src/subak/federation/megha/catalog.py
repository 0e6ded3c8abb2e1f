"""Adds shapes, constraint sets, configurations and machines while a federation runs.

Each is a row, or a column, of a table with room for more; whoever drives roles writes it before any message names it.
Handlers look up what messages name and walk over nothing else, so what nobody names yet is not there for them.
"""
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from subak.errors import InputError
from subak.fleet.shortlists import no_shortlists
from subak.fleet.state import BLOCK, LOG, FleetState, all_open, summaries
from subak.workload.predicates import Constraint, is_met

Key = TypeVar("Key", bound=Hashable)


class Numbers(Generic[Key]):
    """Numbers of things by what they are, from *first* on; one that was given back is another's later."""

    def __init__(self, room: int, what: str, first: int = 0) -> None:
        self.room, self.what, self.first = room, what, first
        self.of: dict[Key, int] = {}
        self.free: list[int] = []  # given back
        self.next = first

    @property
    def left(self) -> int:
        """For how many more there is room."""
        return len(self.free) + self.first + self.room - self.next

    def number(self, key: Key) -> tuple[int, bool]:
        """Return the number of a thing, and whether it is new. Raises InputError where there is no room for it."""
        if key in self.of:
            return self.of[key], False
        if not self.left:
            raise InputError(f"{self.what}: there may be {self.room:,} at most, and there are so many")
        number = self.free.pop() if self.free else self.next
        self.learn(key, number)
        return number, True

    def learn(self, key: Key, number: int) -> None:
        """Note the number of a thing that was given before."""
        self.of[key], self.next = number, max(self.next, number + 1)

    def give_back(self, key: Key) -> int:
        """Let the number of a thing be another's, and return it."""
        number = self.of.pop(key)
        self.free.append(number)
        return number


class Catalog:
    """The shapes that tasks have, and the configurations and attributes that machines have, in the tables of roles."""

    def __init__(
        self, request: np.ndarray, constraint_set: np.ndarray, capacity: np.ndarray, allowed: np.ndarray, *,
        configurations: range | None = None,
    ) -> None:
        """All tables are empty, with room: *request*, int32[resource, shape]; *constraint_set*, int32[shape];
        *capacity*, int32[resource, configuration]; *allowed*, uint64[constraint set, block], of every fleet.

        *configurations*: the numbers that are given here, all where nobody else gives any.
        """
        self.request, self.constraint_set, self.capacity, self.allowed = request, constraint_set, capacity, allowed
        self.shapes = Numbers[tuple[tuple[int, ...], tuple[Constraint, ...]]](request.shape[1], "shapes of tasks")
        self.sets = Numbers[tuple[Constraint, ...]](len(allowed), "sets of constraints")
        own = range(capacity.shape[1]) if configurations is None else configurations
        self.configurations = Numbers[tuple[int, ...]](len(own), "capacities of machines", own.start)
        self.attributes: dict[int, dict[str, str]] = {}  # of machines
        self.set_of: dict[int, tuple[Constraint, ...]] = {}  # of each shape
        self.shapes_with: Counter[tuple[Constraint, ...]] = Counter()  # how many have each set

    def shape(self, request: Sequence[int], constraints: Sequence[Constraint] = ()) -> int:
        """Return the shape of tasks that ask for so much (units), of machines that meet all constraints."""
        shape, is_new = self.shapes.number((tuple(request), tuple(sorted(set(constraints)))))
        if is_new:
            self.learn_shape(shape, request, constraints)
        return shape

    def learn_shape(self, shape: int, request: Sequence[int], constraints: Sequence[Constraint] = ()) -> None:
        """Write down what tasks of a shape ask for from now on, whoever gave it its number."""
        key, before = tuple(sorted(set(constraints))), self.set_of.get(shape)
        if before is not None:
            self.shapes_with[before] -= 1
            if not self.shapes_with[before] and before != key:
                self.sets.give_back(before)
        self.set_of[shape] = key
        self.shapes_with[key] += 1
        self.request[:, shape], self.constraint_set[shape] = request, self.constraint_set_of(key)

    def constraint_set_of(self, constraints: Sequence[Constraint]) -> int:
        """Return the number of a set of constraints."""
        key = tuple(sorted(set(constraints)))
        number, is_new = self.sets.number(key)
        if is_new:
            for machine, attributes in self.attributes.items():
                self._allow(number, key, machine, attributes)
        return number

    def configuration(self, capacity: Sequence[int]) -> int:
        """Return the configuration of machines that have so much, in units."""
        number, is_new = self.configurations.number(tuple(capacity))
        if is_new:
            self.learn_configuration(number, capacity)
        return number

    def learn_configuration(self, configuration: int, capacity: Sequence[int]) -> None:
        """Write down what machines of a configuration have, whoever gave it its number."""
        self.capacity[:, configuration] = capacity

    def describe(self, machine: int, attributes: dict[str, str]) -> None:
        """Let a machine have attributes, those it had before no more."""
        self.attributes[machine] = attributes
        for constraints, number in self.sets.of.items():
            self._allow(number, constraints, machine, attributes)

    def _allow(
        self, number: int, constraints: tuple[Constraint, ...], machine: int, attributes: dict[str, str]
    ) -> None:
        """Note whether a machine meets a set of constraints."""
        meets = all(is_met(each, attributes) for each in constraints)
        bit = np.uint64(1) << np.uint64(machine % BLOCK)
        word = self.allowed[number, machine // BLOCK]
        self.allowed[number, machine // BLOCK] = word | bit if meets else word & ~bit


def empty_fleet(resources: int, machines: int, sets: int, shapes: int) -> FleetState:
    """Return a fleet none of whose machines is there, with room for so many sets of constraints and shapes."""
    blocks = -(-machines // BLOCK)
    free = np.zeros((resources, blocks * BLOCK), np.int32)
    largest, at_largest = summaries(free)
    return FleetState(
        free=free, capacity=np.zeros_like(free), block_free_max=largest, block_at_max=at_largest,
        allowed=np.zeros((sets, blocks), np.uint64), open=all_open(free.shape[1]),
        freed_blocks=np.zeros(LOG + 1, np.int64),
        frontier=np.zeros((2, shapes), np.int64), used=np.zeros(resources, np.int64),
        present=np.zeros(resources, np.int64), scale=np.ones(resources), random=np.ones(1, np.uint64),
        lists=no_shortlists(), machines=machines,
    )
