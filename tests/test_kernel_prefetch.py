"""What is looked at ahead is fetched by the processor, and nothing else comes of it."""
import numpy as np
import pytest
from numba import types

from subak.kernels.kernel import SETTINGS, kernel_of
from subak.marks import prefetch

NUMBERS, COLUMN = types.int32[:, ::1], types.int32[::1]


def looked_at(array, column, row, place):
    prefetch(array, (row, place))
    prefetch(array, (row, -1))
    prefetch(array, (row, 1 << 40))
    prefetch(column, place)
    prefetch(column, -1)
    return array[row, place] + column[place]


def test_it_changes_nothing_wherever_it_is():
    array, column = np.arange(6, dtype=np.int32).reshape(2, 3), np.arange(4, dtype=np.int32)
    kernel = kernel_of(types.int64(NUMBERS, COLUMN, types.int64, types.int64), looked_at)
    assert kernel(array, column, 1, 2) == looked_at(array, column, 1, 2) == 7
    assert (array.tolist(), column.tolist()) == ([[0, 1, 2], [3, 4, 5]], [0, 1, 2, 3])


@pytest.mark.skipif(bool(SETTINGS.DISABLE_JIT), reason="nothing is compiled")
def test_it_is_an_instruction():
    kernel = kernel_of(types.int64(NUMBERS, COLUMN, types.int32, types.int64), looked_at, cache=False)
    (code,) = kernel.inspect_asm().values()
    assert sum(line.strip().startswith("prefetch") for line in code.splitlines()) == 5
