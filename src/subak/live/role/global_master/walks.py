"""Does work for all tasks of a job in parts, so that no call of the role takes long.

The walks of a job follow each other in the order in which they were asked for; jobs take turns, so that a small job
does not wait for a large one. Nothing of a walk is on disk: what it was for is, and a role that is restarted begins it
anew.
"""
import math
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

STEP_TASKS = 1_000  # tasks that a call of the role takes, where each is handed on
STEP_ROWS = 10_000  # where only rows of tables are written


class Walk(NamedTuple):
    """Tasks that something has yet to be done to."""

    numbers: np.ndarray  # int64[task]
    do: Callable[[np.ndarray], None]
    step: int  # tasks that a call takes which does nothing else


class Walks:
    """The walks of all jobs."""

    def __init__(self) -> None:
        self.of_job: OrderedDict[int, deque[Walk]] = OrderedDict()

    def __bool__(self) -> bool:
        """Whether something is left to do."""
        return bool(self.of_job)

    def add(self, job: int, numbers: np.ndarray, do: Callable[[np.ndarray], None], step: int = STEP_TASKS) -> None:
        """Let *do* be called with all *numbers* of tasks of a job, *step* of them at most at a time."""
        if numbers.size:
            self.of_job.setdefault(job, deque()).append(Walk(numbers, do, step))

    def forget(self, job: int) -> None:
        """Do nothing more for a job."""
        self.of_job.pop(job, None)

    def step(self) -> None:
        """Do what a call takes, of one job or of several."""
        left = 1.0  # share of the call
        while self.of_job and left > 0.0:
            job, walks = next(iter(self.of_job.items()))
            walk = walks.popleft()
            count = math.ceil(left * walk.step)
            now, later = walk.numbers[:count], walk.numbers[count:]
            left -= now.size / walk.step
            if later.size:
                walks.appendleft(walk._replace(numbers=later))
            self.of_job.move_to_end(job)
            if not walks:
                del self.of_job[job]
            walk.do(now)
