"""What a scheduler sees of the tasks: numbers only, alike tasks sharing a shape."""
from typing import NamedTuple

import numpy as np


class Tasks(NamedTuple):
    """The tasks of a run; a shape is a request and a set of constraints, and most tasks share few shapes."""

    arrival: np.ndarray  # float64[task], seconds
    run_time: np.ndarray  # float64[task], seconds; only the engine may look at it
    expected: np.ndarray  # float64[task], seconds; what a policy may know: the estimate, else the run time
    rank: np.ndarray  # float64[task], the order's key: the least is served first, ties by task number
    shape: np.ndarray  # int32[task]
    request: np.ndarray  # int32[resource, shape], units
    constraint_set: np.ndarray  # int32[shape]
