"""Piecewise-constant series such as a price, with exact integrals."""
from typing import NamedTuple

import numpy as np

from subak.measures.energy.settings import Points


class Steps(NamedTuple):
    """A step function of time: each value holds until the next one's time, the first one before it, too."""

    time: np.ndarray  # float64[step], seconds, rising
    value: np.ndarray  # float64[step]
    area: np.ndarray  # float64[step], the integral from the first time to each
    every: float | None = None  # seconds, after which all begins again; the first time is then 0

    def integral(self, time: np.ndarray) -> np.ndarray:
        """Return the integral from the first step's time to each of *time* (float64[any], seconds)."""
        if self.every is None:
            return self._of_one(time)
        laps, rest = np.divmod(time, self.every)
        return laps * self._of_one(np.array(self.every)) + self._of_one(rest)

    def _of_one(self, time: np.ndarray) -> np.ndarray:
        step = np.maximum(np.searchsorted(self.time, time, side="right") - 1, 0)
        return np.asarray(self.area[step] + self.value[step] * (time - self.time[step]))


def steps_of(points: Points, every: float | None = None) -> Steps | None:
    """Return points as a step function that begins again *every* so many seconds; None where there are none.

    Where it does, the last value also holds from 0 to the first time: a night goes on after midnight.
    """
    if not points:
        return None
    night = [(0.0, points[-1][1])] if every is not None and points[0][0] > 0 else []
    time, value = np.array([*night, *points], np.float64).T
    return Steps(time, value, np.concatenate([[0.0], np.cumsum(value[:-1] * np.diff(time))]), every)
