"""The memory that a policy with two hooks may keep between calls."""
from typing import NamedTuple

import numpy as np

from subak.errors import InputError
from subak.placement.interface.instance import Instance

CELLS_MAX = 2**28  # of a table: 2 GB


class Memory(NamedTuple):
    """Arrays of a policy's own; their sizes are declared with the policy, all are zero at the start."""

    whole: np.ndarray  # int64[row, column]
    real: np.ndarray  # float64[row, column]
    number: np.ndarray  # float64[number], parameters


def build_memory(whole: tuple[int, int], real: tuple[int, int], number: list[float]) -> Memory:
    """Return memory of the given (rows, columns) and parameters."""
    return Memory(np.zeros(whole, np.int64), np.zeros(real), np.array(number, np.float64))


def no_memory(_: Instance) -> Memory:
    """Return the memory of a policy that keeps nothing, whatever it is tuned to."""
    return build_memory((0, 0), (0, 0), [])


def refuse_memory(memory: object) -> None:
    """Raise InputError unless *memory* is what `build_memory` takes: twice rows and columns, and a list of numbers."""
    parts = memory if isinstance(memory, tuple | list) else ()
    if len(parts) != 3 or not all(isinstance(part, tuple | list) for part in parts):
        raise InputError(f"memory must be ((rows, columns), (rows, columns), [numbers]), not {memory!r:.100}")
    for what, size in zip(("whole", "real"), parts, strict=False):
        if len(size) != 2 or not all(type(count) is int and count >= 0 for count in size):
            raise InputError(f"memory: the table of {what} numbers must have rows and columns, 0 or more of each, "
                             f"not {size!r:.100}")
        if size[0] * size[1] > CELLS_MAX:
            raise InputError(f"memory: a table must have at most {CELLS_MAX:,} numbers, not {size[0] * size[1]:,}")
    for number in parts[2]:
        if not isinstance(number, int | float):
            raise InputError(f"memory: the parameters must be numbers, not {number!r:.100}")
