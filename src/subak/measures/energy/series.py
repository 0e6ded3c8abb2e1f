"""Values over time in steps, such as a price, and their exact integrals."""
from typing import NamedTuple

import numpy as np

from subak.measures.energy.settings import Points


class Steps(NamedTuple):
    """A step function of time: each value holds until the next one's time, the first one before it, too."""

    time: np.ndarray  # float64[step], seconds, rising
    value: np.ndarray  # float64[step]
    area: np.ndarray  # float64[step], the integral from the first time to each

    def integral(self, time: np.ndarray) -> np.ndarray:
        """Return the integral from the first step's time to each of *time* (float64[any], seconds)."""
        step = np.maximum(np.searchsorted(self.time, time, side="right") - 1, 0)
        return np.asarray(self.area[step] + self.value[step] * (time - self.time[step]))


def steps_of(points: Points) -> Steps | None:
    """Return points as a step function; None where there are none."""
    if not points:
        return None
    time, value = np.array(points, np.float64).T
    return Steps(time, value, np.concatenate([[0.0], np.cumsum(value[:-1] * np.diff(time))]))
