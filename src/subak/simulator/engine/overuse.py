"""Wrong requests: tasks that use less or more than they ask for, and are killed when over.

A task uses what the workload says. It asks for that times 1 + x, where x is one of LEVELS times the stated error, each
equally often, by the run's seed. Who asked for too little is ended at a point of its attempt that is uniform in time
(as a task beyond its memory limit is), waits again, and then asks for what it uses. Who asked for too much keeps it.
Where tasks share CPU (interference.py), who asked for too little of that alone is not ended.

Or usage that varies within a task's life: up to a point of its attempt, uniform in time, it uses all that it asks for,
and then a share less of it, or less first and all then, each equally often, and it holds what it uses. When the use of
a task rises and its machine has no room, its attempt is lost; it waits again, for all it asks for, and keeps that.
"""
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from subak.fleet.shapes import Shapes

LEVELS = (0.0, -1.0, -0.5, 0.5, 1.0)  # times the error: one of five, the first asks for what it uses
STREAM = 0x0E55  # of the run's seed


class Overuse(NamedTuple):
    """What comes of wrong requests, or of usage that varies; all arrays are empty where neither is so."""

    part: np.ndarray  # float64[task], of an attempt, after which it is ended; infinite for those that go on to the end
    shape: np.ndarray  # int32[task], what is asked for from then on
    first: np.ndarray  # int32[task], what an attempt holds at first, where usage varies; empty where requests are wrong


def no_overuse() -> Overuse:
    """Return that every request is right."""
    return Overuse(np.zeros(0), np.zeros(0, np.int32), np.zeros(0, np.int32))


def with_errors(shapes: Shapes, error: float, largest: np.ndarray) -> Shapes:
    """Return the shapes of every level, those of each behind those of the one before.

    What is asked for is at most the *largest* machine's (int[resource], units), and at least a unit where anything is
    used: nobody asks for what no machine has. ``of_stage`` is of the first level.
    """
    return _levels(shapes, [1.0 + error * level for level in LEVELS], np.maximum(largest[:, None], shapes.request))


def with_swing(shapes: Shapes, swing: float) -> Shapes:
    """Return the shapes, and behind them what is held of each while a share *swing* of it is not used."""
    return _levels(shapes, [1.0, 1.0 - swing], shapes.request)


def _levels(shapes: Shapes, factors: list[float], most: np.ndarray) -> Shapes:
    asked = [np.rint(shapes.request * factor) for factor in factors]
    request = np.hstack([np.where(shapes.request > 0, np.clip(each, 1, most), 0) for each in asked])
    return replace(shapes, request=np.ascontiguousarray(request.astype(np.int32)),
                   constraint_set=np.tile(shapes.constraint_set, len(factors)),
                   speed_group=np.tile(shapes.speed_group, len(factors)))


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
    return asked.astype(np.int32), Overuse(np.where(lacks, point, np.inf), used.astype(np.int32), np.zeros(0, np.int32))


def draw_swings(asked: np.ndarray, shapes: int, seed: int) -> tuple[np.ndarray, Overuse]:
    """Return int32[task], the shape each holds at first, and what becomes of it.

    *asked* (int32[task]) is the shape of what each asks for, one of so many *shapes*; those of less are behind them.
    """
    random = np.random.default_rng((seed, STREAM))
    rises = random.integers(0, 2, asked.size)
    first, then = ((asked + shapes * which).astype(np.int32) for which in (rises, 1 - rises))
    return first.copy(), Overuse(random.random(asked.size), then, first)
