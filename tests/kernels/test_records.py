import copy
import pickle
from typing import NamedTuple

import numba
import numpy as np
import pytest

from subak.kernels.kernel import FLAGS, kernel_of, types
from subak.kernels.state import At, StateAt, type_of, typed
from subak.records import Numbers


class Mixed(Numbers):
    steps: int
    level: float
    last: int


class State(NamedTuple):
    rows: np.ndarray
    mixed: Mixed


def work(state, steps):
    for step in range(steps):
        state.mixed.steps += 1
        state.mixed.level += state.mixed.steps / 4
        state.rows[0] += state.mixed.level
        state.mixed.last = step
    return state.mixed.last


def begun():
    return State(np.zeros(1), Mixed(steps=2, level=0.5))


def stands(state):
    return state.rows[0], state.mixed.steps, state.mixed.level, state.mixed.last


def test_compiled_functions_read_and_write_what_python_does():
    plain, whole, there = begun(), begun(), begun()
    work(plain, 5)
    assert numba.njit(**FLAGS)(work)(whole, 5) == 4
    kind = StateAt(typed(there, type_of))
    assert kernel_of(types.int64(kind, types.int64), work)(At(there, kind), 5) == 4
    assert stands(plain) == stands(whole) == stands(there) != stands(begun())


def test_a_record_has_the_fields_that_are_declared_and_no_others():
    mixed = Mixed()
    assert (mixed.steps, mixed.level, mixed.last) == (0, 0.0, 0)
    with pytest.raises(AttributeError):
        mixed.stpes = 1
    with pytest.raises(AttributeError):
        Mixed(stpes=1)
    with pytest.raises(TypeError):
        mixed.steps = np.float64(0.5)
    with pytest.raises(KeyError):
        class Word(Numbers):
            word: str


def test_numpy_sees_the_same_memory():
    mixed = Mixed(steps=1)
    mixed.array["level"] = 2.5
    assert (mixed.level, mixed.array.dtype.names) == (2.5, ("steps", "level", "last"))
    other = Mixed.at(mixed.array)
    other.steps = 7
    assert mixed.steps == 7


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_are_records_of_their_own(copied):
    mixed = Mixed(1, 2.5, 3)
    other = copied(mixed)
    mixed.steps = 9
    assert (type(other), other.steps, other.level, other.last) == (Mixed, 1, 2.5, 3)
