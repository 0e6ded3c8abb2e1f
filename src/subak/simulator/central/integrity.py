"""Checks the run's tables after each budget of steps of a user's policy.

A policy that writes to what it was given does not compile (placement/read_only.py). This finds the ways round that,
such as `array.flat`, and a policy that writes outside its own arrays.
"""
import time
import zlib
from collections.abc import Iterator

import numpy as np

from subak.fleet.state import FREE_WHEN_ABSENT
from subak.placement.claims import TASK_RUNNING
from subak.simulator.engine.state import Simulation

SHARE_MAX = 0.05  # of a run's time that is spent looking


class Integrity:
    """Remembers what a run began with, and finds what was changed since."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.capacity = simulation.fleet.capacity.copy()  # as the changes of the fleet applied so far make it
        self.applied = 0
        self.digests = dict(self._digests())
        self.next_look = 0.0  # of the monotonic clock

    def broken(self, last: bool = False) -> str:
        """Return the name of a table that is not as the engine made it, empty if all are.

        Unless it is the *last* time, it may put looking off, so that it takes a small share of the time.
        """
        before = time.monotonic()
        if before < self.next_look and not last:
            return ""
        found = next(self._differences(), "")
        after = time.monotonic()
        self.next_look = after + (after - before) / SHARE_MAX
        return found

    def _digests(self) -> Iterator[tuple[str, int]]:
        sim = self.simulation
        tables = {f"tasks.{name}": array for name, array in sim.tasks._asdict().items()}
        if sim.overuse.part.size:  # who used more than it asked for asks anew
            del tables["tasks.shape"]
        tables |= {"fleet.allowed": sim.fleet.allowed, "fleet.scale": sim.fleet.scale}
        for name, array in tables.items():
            yield name, zlib.crc32(np.ascontiguousarray(array).data)

    def _differences(self) -> Iterator[str]:
        yield from (name for name, digest in self._digests() if digest != self.digests[name])
        sim = self.simulation
        self._follow_changes(sim.counts.next_change)
        if not np.array_equal(self.capacity, sim.fleet.capacity):
            yield "fleet.capacity"
        there = sim.fleet.free != FREE_WHEN_ABSENT
        if not np.array_equal(np.where(there, sim.fleet.capacity - sim.fleet.free, 0), self._held()):
            yield "fleet.free"

    def _follow_changes(self, end: int) -> None:
        changes, rows = self.simulation.changes, slice(self.applied, end)
        self.capacity[:, changes.machine[rows]] = np.where(changes.present[rows], changes.capacity[:, rows], 0)
        self.applied = end

    def _held(self) -> np.ndarray:
        """Return int64[resource, machine], what the tasks that run on each machine have asked for."""
        sim = self.simulation
        running = np.flatnonzero(sim.claims.status == TASK_RUNNING)
        machine, shape = sim.progress.machine[running], sim.tasks.shape[running]
        held = np.zeros(self.capacity.shape, np.int64)
        for resource, amounts in enumerate(sim.tasks.request):
            held[resource] = np.bincount(machine, amounts[shape], self.capacity.shape[1])
        return held
