"""States by address: what is written in words is what a compiled function reads there, and changes."""
import ctypes
from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof, types

from subak.kernel import SETTINGS, kernel_of
from subak.kernel_state import StateAt, opened, words_of

ROW = np.dtype([("count", np.int32), ("weight", np.float64)])


class Inner(NamedTuple):
    """Tables within tables."""

    row: np.ndarray  # ROW[row]
    factor: float


class State(NamedTuple):
    """Every kind of member."""

    amount: np.ndarray  # int32[resource, machine]
    inner: Inner
    is_open: bool
    limit: int
    flags: np.ndarray  # bool[flag]
    seed: np.ndarray  # uint64[1]
    nothing: np.ndarray  # float64[0, 3]
    sparse: np.ndarray  # int64[place], every second of a longer array


def make(is_open=True):
    return State(np.arange(12, dtype=np.int32).reshape(3, 4), Inner(np.zeros(5, ROW), 2.5), is_open, -7,
                 np.array([True, False, True]), np.array([2**64 - 1], np.uint64), np.zeros((0, 3)),
                 np.arange(100, 110)[::2])


def work(state, now, count):
    """Read every member, and change some."""
    held = opened(state)
    total = held.limit + 1000 * held.is_open + int(held.inner.factor * 2) + held.nothing.shape[0]
    for place in range(held.sparse.size):
        total += held.sparse[place]
    for flag in held.flags:
        total += 10 * flag
    for machine in held.amount[1]:  # a slice: strides are read
        total += machine
    held.inner.row[2]["weight"] = now
    for row in range(1, 4):
        held.inner.row[row]["count"] += count
    held.seed[0] >>= np.uint64(1)
    return total + held.amount.size


def compiled(state):
    kernel = kernel_of(types.int64(StateAt(typeof(state)), types.float64, types.int64), work)
    result = next(iter(kernel.overloads.values()))
    address = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_int64)(address)


@pytest.mark.skipif(bool(SETTINGS.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize("is_open", [True, False])
def test_a_compiled_function_reads_and_changes_the_state_at_an_address(is_open):
    plain, there = make(is_open), make(is_open)
    function, words = compiled(there), words_of(there)
    assert function(words.ctypes.data, 3.5, 2) == work(plain, 3.5, 2)
    for one, other in zip((*there.inner[:1], *there[4:], there.amount), (*plain.inner[:1], *plain[4:], plain.amount),
                          strict=True):
        assert one.tobytes() == other.tobytes()
    assert there.inner.row["weight"].tolist() == [0, 0, 3.5, 0, 0]
    assert there.seed[0] == 2**63 - 1


def test_in_plain_python_a_state_is_open_already():
    state = make()
    assert opened(state) is state


def test_a_state_of_anything_else_is_refused():
    with pytest.raises(TypeError, match="holds arrays, numbers and tuples of them, no str"):
        words_of((np.zeros(1), ("a",)))
