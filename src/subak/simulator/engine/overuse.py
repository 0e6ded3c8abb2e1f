"""Wrong requests: tasks that ask for less or more than they use, and are ended when they use more.

A task uses what the workload says. It asks for that times 1 + x, where x is one of LEVELS times the stated error, each
equally often, by the run's seed. Who asked for too little is ended at a point of its attempt that is uniform in time
(as a task beyond its memory limit is), waits again, and then asks for what it uses. Who asked for too much keeps it.
Where tasks share CPU (interference.py), who asked for too little of that alone is not ended.
"""
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from subak.fleet.shapes import Shapes

LEVELS = (0.0, -1.0, -0.5, 0.5, 1.0)  # times the error: one of five, the first asks for what it uses
STREAM = 0x0E55  # of the run's seed


class Overuse(NamedTuple):
    """What comes of wrong requests; both arrays are empty where all are right."""

    part: np.ndarray  # float64[task], of an attempt, after which it is ended; infinite for those that go on to the end
    shape: np.ndarray  # int32[task], what is asked for from then on


def no_overuse() -> Overuse:
    """Return that every request is right."""
    return Overuse(np.zeros(0), np.zeros(0, np.int32))


def with_errors(shapes: Shapes, error: float, largest: np.ndarray) -> Shapes:
    """Return the shapes of every level, those of each behind those of the one before.

    What is asked for is at most the *largest* machine's (int[resource], units), and at least a unit where anything is
    used: nobody asks for what no machine has. ``of_stage`` is of the first level.
    """
    asked = [np.rint(shapes.request * (1.0 + error * level)) for level in LEVELS]
    room = np.maximum(largest[:, None], shapes.request)
    request = np.hstack([np.where(shapes.request > 0, np.clip(each, 1, room), 0) for each in asked])
    return replace(shapes, request=np.ascontiguousarray(request.astype(np.int32)),
                   constraint_set=np.tile(shapes.constraint_set, len(LEVELS)))


def draw_overuse(
    shapes: Shapes, used: np.ndarray, seed: int, shared: int | None = None
) -> tuple[np.ndarray, Overuse]:
    """Return int32[task], the shape each asks for, and what comes of it.

    *shapes* are those of every level, *used* (int32[task]) is the shape of what each task uses, *shared* the row of a
    resource of which tasks may use more than they asked for.
    """
    random = np.random.default_rng((seed, STREAM))
    levels = random.integers(0, len(LEVELS), used.size)
    point = random.random(used.size)
    asked = used + levels * (shapes.request.shape[1] // len(LEVELS))
    limits = [row for row in range(len(shapes.request)) if row != shared]
    lacks = (shapes.request[limits][:, asked] < shapes.request[limits][:, used]).any(axis=0)
    return asked.astype(np.int32), Overuse(np.where(lacks, point, np.inf), used.astype(np.int32))
