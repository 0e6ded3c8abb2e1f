"""The decorator that compiles every kernel, with one set of flags and one cache.

`kernel` and `kernel_of` are those of numba_internals/dispatch.py, or of plain.py; switch.py chooses.
"""
import functools
from typing import Any

from numba import config as numba_config
from numba import from_dtype, types
from numba.extending import typeof_impl

from subak.kernels.switch import is_fast
from subak.records import Numbers, dtype_of

if is_fast():
    from subak.kernels.numba_internals.dispatch import FLAGS, USER, is_compiled, kernel, kernel_of
else:
    from subak.kernels.plain import FLAGS, USER, is_compiled, kernel, kernel_of

SETTINGS: Any = numba_config  # its settings are attributes made at run time


@typeof_impl.register(Numbers)
def _type_of_record(record: Numbers, _context: object) -> types.Type:
    """Let kernels read and write the fields of a record."""
    return kind_of(type(record))


@functools.cache
def kind_of(record: type[Numbers]) -> types.Type:
    """Return the type of a class of records."""
    kind: types.Type = from_dtype(dtype_of(record))
    return kind


def by_address() -> bool:
    """Whether what is compiled apart works on tables by their addresses; else it runs as plain Python."""
    return is_fast() and not SETTINGS.DISABLE_JIT


@functools.cache
def function_type(signature: Any) -> types.FunctionType:
    """Return the type of a compiled function passed as an argument: one engine serves every policy of a signature."""
    return types.FunctionType(signature)


__all__ = ["FLAGS", "SETTINGS", "USER", "by_address", "function_type", "is_compiled", "kernel", "kernel_of"]
