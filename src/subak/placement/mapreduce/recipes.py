"""How maps are dispatched, in which order each machine runs them, and how reduces are dispatched: plans by name."""
from dataclasses import dataclass

import numpy as np

from subak.placement.mapreduce.baselines import by_rank, in_job_order, max_min, sufferage
from subak.placement.mapreduce.batch import Batch
from subak.placement.mapreduce.dispatch import Assignment, Problem
from subak.placement.mapreduce.min_min import min_min

MIN_MIN, MAX_MIN, SUFFERAGE, RANK, JOB_ORDER = "min-min", "max-min", "sufferage", "rank", "job-order"
ASSIGNED, JOHNSON, REVERSED = "assigned", "johnson", "johnson-reversed"


@dataclass(frozen=True)
class Recipe:
    """A way to plan."""

    summary: str
    maps: str = MIN_MIN  # dispatcher
    sequence: str = ASSIGNED  # of the maps of a machine: as they were assigned, or by their job's Pri
    reduces: str = MIN_MIN  # dispatcher
    searches: bool = False  # whether a search improves it


RECIPES = {
    "hmhs": Recipe("Min-Min for maps, each machine's by Johnson's rule, Dynamic-Min-Min for reduces (HMHS).",
                   sequence=JOHNSON),
    "r-hmhs": Recipe("HMHS with the maps of each machine in the reverse order (R-HMHS).", sequence=REVERSED),
    "hmhs-search": Recipe("HMHS, improved by a search: `search_seconds`, or as many moves as `search_moves` says.",
                          sequence=JOHNSON, searches=True),
    "min-min": Recipe("Min-Min for maps alone, in its own order; reduces job by job, to machines as they are free.",
                      reduces=JOB_ORDER),
    "dynamic-min-min": Recipe("Dynamic-Min-Min for reduces alone; maps job by job, to machines as they are free.",
                              maps=JOB_ORDER),
    "max-min": Recipe("The job whose best completion is the latest goes next, maps and reduces (Max-Min).",
                      MAX_MIN, ASSIGNED, MAX_MIN),
    "sufferage": Recipe("The job that would suffer most without its best machine goes next (Sufferage).",
                        SUFFERAGE, ASSIGNED, SUFFERAGE),
    "heft": Recipe("The job with the longest way still to go for a task goes next, to its best machine (as in HEFT).",
                   RANK, ASSIGNED, RANK),
}


def dispatch(rule: str, problem: Problem, upward: np.ndarray) -> Assignment:
    """Dispatch every task by the rule of that name; *upward* is float64[job], the upward rank."""
    if rule == RANK:
        return by_rank(problem, upward)
    return {MIN_MIN: min_min, MAX_MIN: max_min, SUFFERAGE: sufferage, JOB_ORDER: in_job_order}[rule](problem)


def upward_ranks(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Return float64[job] for maps and for reduces, seconds: of a task and what follows it, on machines of mean speed.

    A job's graph has two levels, so the rank of a map is its mean time plus that of a reduce (HEFT, without costs of
    communication other than the shuffle).
    """
    reduces = batch.reduces.mean_seconds()
    return batch.maps.mean_seconds() + reduces, reduces
