"""The walks' assumption on time: a worker stops before its local master declares it lost.

Here it is found out by the handlers themselves, for every phase of their timers on a grid of times, each as late as
timers may be. A worker's last sign of life is sent, and comes, at time 0; all after it is lost.
"""
from collections.abc import Iterator

import numpy as np

from subak.federation.megha.topology import INCARNATION_BITS, Rules
from subak.federation.messages import (
    ALIVE,
    CHECK,
    ENDED,
    HALT,
    LAUNCH,
    LEASE,
    LOCAL_MASTER,
    MESSAGE,
    NOBODY,
    START,
    TICK,
    WORKER,
)
from subak.simulator.exhaustive.roles.actor import Actor
from subak.simulator.exhaustive.roles.configurations import Configuration
from subak.simulator.exhaustive.roles.opening import open_configuration

GRID = 1.0 / 64.0  # seconds between times that are tried
TICKS = 6.0  # in a lease


class Pair:
    """A worker and its local master, which hear of each other for the last time at 0, while an attempt runs."""

    def __init__(self, compiled: bool) -> None:
        opened = open_configuration(Configuration(name="leases"))
        self.rules: Rules = opened.roles.rules
        self.worker = Actor(opened, WORKER, 0, compiled)
        self.local = Actor(opened, LOCAL_MASTER, 0, compiled)
        first = (1 << INCARNATION_BITS) + 1
        launch = message(LAUNCH, task=0, attempt=first, incarnation=1)
        self.worker.answered(only(self.local.answered(launch, b"", 0.0), START), b"", 0.0)
        alive = only(self.worker.answered(message(TICK, incarnation=1), b"", 0.0), ALIVE)
        self.worker.answered(only(self.local.answered(alive, b"", 0.0), LEASE), b"", 0.0)
        self.memory = self.worker.image.memory.copy(), self.local.image.memory.copy()

    def stops_at(self, now: float) -> bool:
        """Whether a worker whose timer rings at a time stops what it runs."""
        self.worker.image.memory[:] = self.memory[0]
        return HALT in self.worker.answered(message(TICK, incarnation=1), b"", now)["kind"]

    def loses_at(self, now: float) -> bool:
        """Whether a local master whose timer rings at a time declares the worker lost."""
        self.local.image.memory[:] = self.memory[1]
        return ENDED in self.local.answered(message(CHECK), b"", now)["kind"]


def message(kind: int, **fields: int) -> bytes:
    """Return a message to the first of a role, from the first of another."""
    row = np.zeros(1, MESSAGE)[0]
    row["kind"], row["task"], row["handle"] = kind, NOBODY, NOBODY
    for name, value in fields.items():
        row[name] = value
    return row.tobytes()


def only(answers: np.ndarray, kind: int) -> bytes:
    """Return the answer of a kind."""
    (answer,) = answers[answers["kind"] == kind]
    return answer.tobytes()


def lease_bounds(compiled: bool = True) -> tuple[float, float]:
    """Return until when a worker may run what it runs, and from when on it may be declared lost; seconds."""
    pair = Pair(compiled)
    period, slack = pair.rules.lease / TICKS, pair.rules.timer_slack
    waiting, seen, latest = [0.0], {0.0}, 0.0
    while waiting:
        before = waiting.pop()
        for now in times(before + period, before + period + slack):
            if now not in seen:
                seen.add(now)
                if pair.stops_at(now):
                    latest = max(latest, now)
                else:
                    waiting.append(now)
    return latest, next(now for now in times(0.0, 4.0 * pair.rules.lease) if pair.loses_at(now))


def times(first: float, last: float) -> Iterator[float]:
    """Yield the times of the grid from one to another."""
    for step in range(round((last - first) / GRID) + 1):
        yield first + step * GRID
