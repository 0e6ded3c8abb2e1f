"""What is looked at ahead is fetched by the processor, and nothing else comes of it."""
import numpy as np
import pytest
from numba import types

from subak.kernels.kernel import SETTINGS, kernel_of
from subak.marks import prefetch

NUMBERS = types.int32[:, ::1]


def looked_at(array, row, column):
    prefetch(array, row, column)
    prefetch(array, row, -1)
    prefetch(array, row, 1 << 40)
    return array[row, column]


def test_it_changes_nothing_wherever_it_is():
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    kernel = kernel_of(types.int64(NUMBERS, types.int64, types.int64), looked_at)
    assert kernel(array, 1, 2) == looked_at(array, 1, 2) == 5
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.skipif(bool(SETTINGS.DISABLE_JIT), reason="nothing is compiled")
def test_it_is_an_instruction():
    kernel = kernel_of(types.int64(NUMBERS, types.int32, types.int64), looked_at, cache=False)
    (code,) = kernel.inspect_asm().values()
    assert sum(line.strip().startswith("prefetch") for line in code.splitlines()) == 3
