"""Indices of kernels are places: none counts from behind, but a user's may."""
import numba as compiler
import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError

from subak.kernels.kernel import SETTINGS, USER, kernel_of

pytestmark = pytest.mark.skipif(bool(SETTINGS.DISABLE_JIT), reason="plain Python counts from behind")
FLOATS, GRID, RECORDS = types.float64[::1], types.float64[:, ::1], np.dtype([("a", np.float64), ("b", np.int32)])


def last(values, place):
    return values[place] + place


def of_all_kinds(values, grid, records, small, wide):
    values[small] += 1.0
    grid[small, wide] = values[small]
    grid[wide][small] = 7.0
    records[wide]["a"] = grid[small, wide]
    records[small]["b"] = 5
    total = 0.0
    for each in grid[wide, 1:]:
        total += each
    return total + records[wide]["a"] + values[0]


def from_behind(values):
    return values[-1]


def from_behind_in_a_grid(grid):
    grid[0, -1] = 1.0


def ours(function):
    """Return a function as if it were one of the package's."""
    function.__module__ = "subak.test_kernel_indices"
    return function


@pytest.fixture
def _as_it_was():
    before = {each: each.__module__ for each in (last, of_all_kinds, from_behind, from_behind_in_a_grid)}
    yield
    for each, module in before.items():
        each.__module__ = module


def compiled(function, *kinds, checked=False):
    return compiler.njit(kinds, **{**USER, "boundscheck": checked})(function)


@pytest.mark.usefixtures("_as_it_was")
def test_places_of_every_kind_are_found():
    def tables():
        return np.arange(3.0), np.arange(9.0).reshape(3, 3), np.zeros(3, RECORDS)

    kinds = FLOATS, GRID, types.Array(compiler.from_dtype(RECORDS), 1, "C"), types.int32, types.int64
    plain, fast = tables(), tables()
    assert compiled(ours(of_all_kinds), *kinds)(*fast, 1, 2) == of_all_kinds(*plain, 1, 2)
    for one, other in zip(plain, fast, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.usefixtures("_as_it_was")
@pytest.mark.parametrize(("function", "kind"), [(from_behind, FLOATS), (from_behind_in_a_grid, GRID)])
def test_a_place_from_behind_is_an_error_of_the_compiler(function, kind):
    with pytest.raises(TypingError, match="an index of a kernel is a place, and -1 is none"):
        compiled(ours(function), kind)


@pytest.mark.usefixtures("_as_it_was")
@pytest.mark.parametrize("kind", [types.int32, types.int64])
def test_a_negative_index_is_out_of_bounds_where_bounds_are_checked(kind):
    checked = compiled(ours(last), FLOATS, kind, checked=True)
    assert checked(np.arange(3.0), 2) == 4.0
    for place in (-1, -3, 3):
        with pytest.raises(IndexError, match="index is out of bounds"):
            checked(np.arange(3.0), place)


def test_a_users_function_counts_from_behind_as_in_python():
    policy = kernel_of(types.float64(FLOATS, types.int64), last, cache=False, checked=True)
    assert policy(np.arange(3.0), -1) == 1.0
    assert kernel_of(types.float64(FLOATS), from_behind, cache=False)(np.arange(3.0)) == 2.0


@pytest.mark.usefixtures("_as_it_was")
def test_no_length_is_added():
    """What stands beside an access is no choice between two places: it is what made accesses slow."""
    texts = [compiled(of(last), FLOATS, types.int64).inspect_llvm() for of in (lambda function: function, ours)]
    assert ["select" in code for text in texts for code in text.values()] == [True, False]
