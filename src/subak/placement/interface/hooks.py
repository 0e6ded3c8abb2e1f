"""What a policy that chooses task and machine together may keep between calls."""
from typing import NamedTuple

import numpy as np


class Memory(NamedTuple):
    """Arrays of a policy's own; their sizes are declared with the policy, all are zero at the start."""

    whole: np.ndarray  # int64[row, column]
    real: np.ndarray  # float64[row, column]
    number: np.ndarray  # float64[number], parameters


def build_memory(whole: tuple[int, int], real: tuple[int, int], number: list[float]) -> Memory:
    """Return memory of the given (rows, columns) and parameters."""
    return Memory(np.zeros(whole, np.int64), np.zeros(real), np.array(number, np.float64))
