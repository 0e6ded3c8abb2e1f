"""A scheduler with its parameters set for one run."""
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Instance:
    """The workload and the fleet in numbers."""

    units: np.ndarray  # float64[resource], natural size of a unit
    capacity: np.ndarray  # int32[resource, machine], units
    requests: np.ndarray  # int32[resource, shape], units
    shape: np.ndarray  # int32[task]
    estimate: np.ndarray  # float64[task], seconds; of the run times
    blocks: int  # of the index
