"""The tasks as a scheduler sees them: arrays of numbers; alike tasks share a shape."""
from typing import NamedTuple, Protocol

import numpy as np

SLOWDOWN_FLOOR_S = 10.0  # a run time below it counts as this long (Feitelson's bounded slowdown)


class Shapes(Protocol):
    """What shapes ask for: `Tasks`, or any other table of tasks that has these columns."""

    @property
    def request(self) -> np.ndarray:
        """int32[resource, shape], units."""

    @property
    def constraint_set(self) -> np.ndarray:
        """int32[shape]."""


class Requests(NamedTuple):
    """What shapes ask for, and nothing else."""

    request: np.ndarray  # int32[resource, shape], units
    constraint_set: np.ndarray  # int32[shape]


class Tasks(NamedTuple):
    """The tasks of a run; a shape is a request and a set of constraints, and most tasks share few shapes."""

    arrival: np.ndarray  # float64[task], seconds
    run_time: np.ndarray  # float64[task], seconds; the engine's: a policy from a file finds the estimate here, too
    estimate: np.ndarray  # float64[task], seconds; what a scheduler is told of the run time: see --estimates
    rank: np.ndarray  # float64[task], the order's key: the least is served first, ties by task number
    shape: np.ndarray  # int32[task]
    request: np.ndarray  # int32[resource, shape], units
    constraint_set: np.ndarray  # int32[shape]


class Stages(NamedTuple):
    """Which stage waits for which; all arrays are empty in a workload without dependencies."""

    of_task: np.ndarray  # int32[task]
    left: np.ndarray  # int32[stage], tasks that have not ended
    waits: np.ndarray  # int32[stage], stages it waits for
    child_first: np.ndarray  # int64[stage + 1], where its dependents begin in child
    child: np.ndarray  # int32[edge]
    task_first: np.ndarray  # int64[stage + 1], where its tasks begin in task
    task: np.ndarray  # int32[task]
