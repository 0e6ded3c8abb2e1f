"""What is done once for all that is alike (columns, sizes of machines, types of tables) against each by itself."""
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from numba import typeof, types

from small import staged
from subak.fleet.shapes import Shapes
from subak.kernels.state import type_of, typed
from subak.resources import Resource
from subak.simulator.engine.distinct import distinct_columns
from subak.simulator.engine.setup import unplaceable_reasons
from subak.simulator.engine.state import Changes
from subak.workload.predicates import Constraint

SIZES = some.tuples(some.integers(1, 3), some.integers(0, 12))
SETS = [(), (Constraint("rack", "EQUAL", "a"),), (Constraint("rack", "EQUAL", "a"), Constraint("disk", "PRESENT", ""))]


@given(SIZES.flatmap(lambda size: arrays(np.int64, size, elements=some.integers(-3, 3))))
def test_distinct_columns_are_those_of_numpy(table):
    distinct, which = distinct_columns(table)
    if table.shape[1]:
        expected, inverse = np.unique(table, axis=1, return_inverse=True)
        assert np.array_equal(distinct, expected)
        assert np.array_equal(which, inverse.reshape(-1))
    assert np.array_equal(distinct[:, which], table)


@given(some.data())
def test_reasons_are_those_of_each_machine_by_itself(data):
    machines, later, shapes = (data.draw(some.integers(least, most)) for least, most in ((0, 6), (0, 2), (1, 5)))

    def amounts(rows, count):
        return data.draw(arrays(np.int32, (rows, count), elements=some.integers(0, 4)))
    capacity, changed, request = amounts(2, machines), amounts(2, later), amounts(2, shapes)
    truth = data.draw(arrays(np.bool_, (len(SETS), max(machines, 1))))[:, :machines]
    truth[0] = True
    present = data.draw(arrays(np.bool_, machines))
    of_set = data.draw(arrays(np.int32, shapes, elements=some.integers(0, len(SETS) - 1)))
    machine = data.draw(arrays(np.int64, later if machines else 0, elements=some.integers(0, max(machines - 1, 0))))
    changed = changed[:, : machine.size]
    changes = Changes(np.zeros(machine.size), machine.astype(np.int32), np.ones(machine.size, bool), changed)
    workload = staged([{"request": (1, 1)}], [(0, 0.0, 1.0)],
                      resources=(Resource("cpu", 1.0, "cores"), Resource("memory", 1.0, "MiB")))
    found = unplaceable_reasons(Shapes(np.zeros(1, np.int32), request, of_set, SETS, np.zeros(shapes, np.int32)), truth,
                                capacity, present, changes, workload)
    there = [(capacity[:, place], truth[:, place]) for place in range(machines) if present[place]]
    there += [(changed[:, number], truth[:, place]) for number, place in enumerate(machine)]
    for shape, reason in enumerate(found):
        allowed = [amount for amount, met in there if met[of_set[shape]]]
        fits = any((amount >= request[:, shape]).all() for amount in allowed)
        assert (reason == "") == fits
        if not allowed:
            met = " and ".join(map(str, SETS[of_set[shape]]))
            assert reason == ("no machine" if not met else f"no machine that meets {met}")
        elif not fits:
            lacking = [name for name, asked, most in zip(
                ("cpu", "memory"), request[:, shape], np.max(allowed, axis=0), strict=True) if asked > most]
            asked = request[:, shape][("cpu", "memory").index(lacking[0])] if lacking else 0
            assert reason.startswith(f"asks {lacking[0]} {asked} " if lacking else "no machine")


class Pair(NamedTuple):
    one: np.ndarray
    other: object


ARRAY = np.zeros(3)
STEPPED, FIXED = np.zeros(6)[::2], np.zeros(3)
FIXED.flags.writeable = False
VALUES = [ARRAY, np.ones(7), STEPPED, FIXED, np.zeros((2, 3)), np.zeros((2, 3), order="F"), np.zeros(3, np.int32), 3,
          2.5, True, np.zeros(2, [("a", np.int32)]), np.zeros(2, [("b", np.int32)]), (1, 2), (1, 2.0)]


@pytest.mark.parametrize("value", [*VALUES, *(Pair(ARRAY, each) for each in VALUES)])
def test_types_that_are_remembered_are_numba_s(value):
    assert typed(value) == typeof(value)
    assert typed(value, type_of) == type_of(value)


def test_states_of_a_list_are_of_one_type():
    same, unlike = [Pair(ARRAY, 1), Pair(np.ones(9), 2)], [Pair(ARRAY, 1), Pair(ARRAY, 2.0)]
    assert str(typed(same, type_of)) == str(type_of(same))
    for _ in range(2):
        with pytest.raises(TypeError, match="must be of one type"):
            typed(unlike, type_of)
    assert isinstance(typed(ARRAY), types.Array)
