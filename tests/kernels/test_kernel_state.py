"""States by address: what is written in words is what a compiled function reads there, and changes."""
import ctypes
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba import types

from subak.kernels.kernel import SETTINGS, function_type, kernel_of
from subak.kernels.state import At, StateAt, addressed, type_of, typed
from subak.marks import inlined, noinline
from subak.simulator.central.by_address import by_address

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
    roles: list[Inner]
    pair: tuple[int, float]


def make(is_open=True):
    return State(np.arange(12, dtype=np.int32).reshape(3, 4), Inner(np.zeros(5, ROW), 2.5), is_open, -7,
                 np.array([True, False, True]), np.array([2**64 - 1], np.uint64), np.zeros((0, 3)),
                 np.arange(100, 110)[::2], [Inner(np.zeros(size, ROW), size / 2) for size in (3, 1, 2)], (9, 0.25))


def work(state, now, count):
    """Read every member, and change some."""
    total = state.limit + 1000 * state.is_open + int(state.inner.factor * 2) + state.nothing.shape[0]
    for place in range(state.sparse.size):
        total += state.sparse[place]
    for flag in state.flags:
        total += 10 * flag
    for machine in state.amount[1]:  # a slice: strides are read
        total += machine
    state.inner.row[2]["weight"] = now
    for row in range(1, 4):
        add(state.inner.row, row, count)
    for number in range(3):
        total += grow(state.roles[number], number) * state.pair[0]
    state.seed[0] >>= np.uint64(1)
    return total + state.amount.size


@inlined
def add(rows, row, count):
    rows[row]["count"] += count


@noinline
def grow(role, number):
    """Change a state of a list; handed on, it is one number."""
    role.row[role.row.size - 1]["weight"] += number
    return role.row.size + int(role.factor * 2)


def compiled(state):
    kernel = kernel_of(types.int64(StateAt(type_of(state)), types.float64, types.int64), work)
    result = next(iter(kernel.overloads.values()))
    address = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_int64)(address)


@pytest.mark.skipif(bool(SETTINGS.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize("is_open", [True, False])
def test_a_compiled_function_reads_and_changes_the_state_at_an_address(is_open):
    plain, there = make(is_open), make(is_open)
    function, held = compiled(there), addressed(there)
    assert function(held.address, 3.5, 2) == work(plain, 3.5, 2)
    for one, other in zip(arrays(there), arrays(plain), strict=True):
        assert one.tobytes() == other.tobytes()
    assert there.inner.row["weight"].tolist() == [0, 0, 3.5, 0, 0]
    assert [role.row["weight"].sum() for role in there.roles] == [0, 1, 2]
    assert there.seed[0] == 2**63 - 1


def arrays(value):
    if isinstance(value, tuple | list):
        return [array for each in value for array in arrays(each)]
    return [np.asarray(value)]


def test_states_of_a_list_are_of_one_type():
    other = Inner(np.zeros(1, np.int32), 1.0)
    with pytest.raises(TypeError, match="states of a list must be of one type, not 2"):
        type_of([make().inner, other])


def test_a_state_holds_nothing_else():
    with pytest.raises(TypeError, match="a state holds arrays, records, numbers, tuples and lists of states, no str"):
        addressed(Inner(np.zeros(1, ROW), "much"))


def test_a_type_is_found_once_for_all_that_is_alike():
    """Numbers, lengths and how many states a list has are no matter; what kinds of them there are is."""
    found = []

    def number(value):
        found.append(value)
        return len(found)

    state = make()
    alike = [state, make(is_open=False), state._replace(limit=3, roles=state.roles[:1], sparse=np.arange(99)[::3])]
    others = [state._replace(limit=3.0), state._replace(sparse=np.arange(5)), state._replace(flags=np.zeros(3)),
              state._replace(roles=[Inner(np.zeros(1), 1.0)]), state._replace(pair=(9, 1))]
    assert [typed(each, number) for each in [*alike, *others, *alike]] == [1, 1, 1, 2, 3, 4, 5, 6, 1, 1, 1]


def total_of(tables):
    return tables.numbers.sum() + tables.inner.numbers[0]


class Within(NamedTuple):
    numbers: np.ndarray  # int64[place]


class Around(NamedTuple):
    numbers: np.ndarray  # int64[place]
    inner: Within


def test_a_state_by_address_is_given_as_it_is_to_a_function_that_takes_it_so():
    state = Around(np.arange(4), Within(np.array([100, 7])))
    kind = typed(state, type_of)
    whole = kernel_of(types.int64(kind), total_of, cache=False)
    taken = function_type(types.int64(kind))

    def through(at, function):
        return function(at) + at.numbers[1]

    asked = kernel_of(types.int64(StateAt(kind), taken), through, cache=False)
    assert asked(At(state, StateAt(kind)), whole) == 6 + 100 + 1
    state.inner.numbers[0] = 200
    at = At(state, StateAt(kind))
    references = sys.getrefcount(at.address)
    found = [asked(at, whole) for _ in range(9)]
    references -= sys.getrefcount(at.address)
    assert (found, references) == ([207] * 9, 0)


def step(state, places, other, budget):
    other.numbers[0] += budget
    return state.inner.numbers[1] * places[0] + other.numbers[0]


def test_a_loop_takes_states_as_they_are_and_works_on_them_by_address():
    def engine(state, other):
        if SETTINGS.DISABLE_JIT:
            assert (state, other) == (None, None)
            return step
        assert [type(each) for each in (state, other)] == [StateAt, StateAt]
        return kernel_of(types.int64(state, types.int64[::1], other, types.int64), step, cache=False)

    states = Around(np.arange(4), Within(np.array([100, 7]))), np.array([3]), Within(np.array([50]))
    loop = by_address(engine, *states)
    assert loop(*states, 2) == 7 * 3 + 50 + 2
    assert states[2].numbers[0] == 52
    others = Around(np.arange(9), Within(np.array([0, 1]))), np.array([4, 5]), Within(np.array([0, 0]))
    assert loop(*others, 1) == 4 + 1
