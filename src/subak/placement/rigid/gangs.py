"""Numbers gangs, tasks that start together; a single task is a gang of one.

Rules: a gang waits when each of its tasks waits or has ended; it starts as a whole, and when an attempt of it is lost
the others are, too (the loop sees to that). It is expected to hold its machines until the longest of its estimates is
over.

This is the one place where estimates enter backfilling: `Tasks.estimate`. One that proves too short is doubled until it
is not; growing corrections are what Tsafrir, Etsion and Feitelson found good ("Backfilling using system-generated
predictions rather than user runtime estimates", IEEE TPDS 18(6), 2007).
"""
from typing import NamedTuple

import numpy as np

from subak.marks import inlined
from subak.workload.tasks import Tasks

NOBODY = -1  # no gang
NOT_RUNNING = -np.inf  # of `until`
ESTIMATE_MIN_S = 1.0  # that can be doubled


class Gangs(NamedTuple):
    """Every task's gang, and how it stands."""

    of_task: np.ndarray  # int32[task]
    first: np.ndarray  # int64[gang + 1], where its tasks begin in `task`
    task: np.ndarray  # int32[task], the tasks gang by gang
    rank: np.ndarray  # float64[gang]: the order's key, of its first task
    seconds: np.ndarray  # float64[gang]: the longest estimate of its tasks
    lane: np.ndarray  # int32[gang]: gangs of one lane are as large, and their tasks alike
    missing: np.ndarray  # int32[gang]: tasks that neither wait nor have ended
    left: np.ndarray  # int32[gang]: tasks that have not ended
    until: np.ndarray  # float64[gang], seconds: when what runs of it is expected to end; NOT_RUNNING
    reserved: np.ndarray  # float64[gang], seconds: from when on it has a reservation; inf for none
    pool: np.ndarray  # int32[task], where in the profile it runs, or has a reservation


class LaneTable(NamedTuple):
    """What the gangs of a lane have in common."""

    shape: np.ndarray  # int32[lane]
    first: np.ndarray  # int64[lane + 1], where its gangs' places begin


def build_gangs(tasks: Tasks, gang_of_task: np.ndarray) -> tuple[Gangs, LaneTable]:
    """Return the gangs of int32[task] (each task's, numbered by their first tasks), none of which waits."""
    gangs = int(gang_of_task.max()) + 1
    size = np.bincount(gang_of_task, minlength=gangs)
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    task = np.argsort(gang_of_task, kind="stable").astype(np.int32)
    kinds, lane = np.unique(np.stack([tasks.shape[task[first[:-1]]], size]), axis=1, return_inverse=True)
    lane = lane.reshape(-1).astype(np.int32)
    counts = np.bincount(lane, minlength=kinds.shape[1])
    return Gangs(
        of_task=gang_of_task.astype(np.int32), first=first, task=task, rank=tasks.rank[task[first[:-1]]],
        seconds=np.maximum.reduceat(tasks.estimate[task], first[:-1]), lane=lane, missing=size.astype(np.int32),
        left=size.astype(np.int32), until=np.full(gangs, NOT_RUNNING), reserved=np.full(gangs, np.inf),
        pool=np.zeros(task.size, np.int32),
    ), LaneTable(kinds[0].astype(np.int32), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))


@inlined
def expected_end(begin: float, seconds: float) -> float:
    """Return when what begins then and takes so long is expected to end: after it has begun.

    What takes no time holds its place at an instant: else others would be put there, and it would wait for them.
    """
    return max(begin + seconds, np.nextafter(begin, np.inf))


@inlined
def corrected_end(start: float, seconds: float, now: float) -> float:
    """Return when a task that has outlived its estimate is expected to end, which is after *now*."""
    longer = max(seconds, ESTIMATE_MIN_S)
    while start + longer <= now:
        longer *= 2.0
    return start + longer
