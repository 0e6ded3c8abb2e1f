"""What the compiler of kernels promises: who is merged into callers, who stands once, and for which types."""
from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof, types

from subak.kernels.kernel import SETTINGS, kernel_of
from subak.kernels.numba_internals import compiler as kernel_compiler
from subak.marks import inlined, noinline

pytestmark = pytest.mark.skipif(bool(SETTINGS.DISABLE_JIT), reason="nothing is compiled")


@noinline
def apart(x):
    """Is called."""
    return x * 2 + 1


@inlined
def merged(x):
    """Is merged into its caller, and calls."""
    return apart(x) + apart(np.int32(x)) + apart(np.int8(3))


def outer(x):
    """Is the kernel."""
    return merged(x) + merged(np.int16(x))


def attributes(function):
    """Return the attributes of each inner function of a kernel, by name, a list for each of its versions."""
    kernel = kernel_of(types.int64(types.int64), function, cache=True)
    library = next(iter(kernel.overloads.values())).library
    found = {}
    for each in kernel_compiler._with_those_below(library._linking_libraries):
        if isinstance(each, kernel_compiler._InnerLibrary):
            for code in each._final_module.functions:
                name = next((name for name in ("apart", "merged") if f"{len(name) + 1}{name}_" in code.name
                             or f"{name}_" in code.name), None)
                if name and not code.is_declaration:
                    found.setdefault(name, []).append(b" ".join(code.attributes).decode())
    return found


@pytest.fixture
def found(tmp_path, monkeypatch):
    from subak.kernels import files as kernel_files

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel_files.kernel_folder.cache_clear()
    yield attributes(outer)
    kernel_files.kernel_folder.cache_clear()


def test_a_function_that_is_not_inlined_stays_so_below_one_that_is(found):
    assert all("alwaysinline" in each for each in found["merged"])
    assert not any("alwaysinline" in each for each in found["apart"])


def test_integers_of_every_width_are_one_version(found):
    assert {name: len(versions) for name, versions in found.items()} == {"apart": 1, "merged": 1}


class Own(NamedTuple):
    """A tuple of tables of a module of ours, as far as the compiler is told."""

    one: np.ndarray
    two: np.ndarray


@pytest.mark.parametrize("whole", [True, False])
def test_tables_of_our_own_are_one_argument_and_others_are_passed_as_numba_does(monkeypatch, whole):
    monkeypatch.setattr(kernel_compiler, "OWN_TABLES", (__name__,) if whole else ("nothing.",))
    kind = typeof(Own(np.zeros(3), np.zeros((2, 2))))
    model = kernel_compiler._TablesModel(kernel_compiler.MODELS, kind)
    assert isinstance(model.get_argument_type(), tuple) != whole
