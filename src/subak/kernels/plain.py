"""Compiles kernels by `numba.njit` alone, in each process, with documented Numba only."""
from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.extending import overload

from subak.marks import STANDS_FOR, Function, Signature, make_known_to

# as in numba_internals/dispatch.py, without what is private
FLAGS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "boundscheck": False, "fastmath": False}
USER = FLAGS


def is_compiled(name: str) -> bool:
    """Whether a kernel is kept: none is (with the compiler off, none has to be)."""
    settings: Any = numba.config  # its settings are attributes made at run time
    return bool(settings.DISABLE_JIT)


def kernel(function: Function) -> Function:
    """Compile *function* on its first call for each set of types."""
    compiled: Any = numba.njit(**FLAGS)(function)
    return compiled


def kernel_of(
    signature: Signature | tuple[types.Type, ...], function: Function, cache: bool = True, checked: bool = False,
    by_python: bool = True,
) -> Function:
    """Compile *function* now for exactly *signature*; *checked*: an index of its own out of bounds raises IndexError.

    What it calls is not checked. Python may call it in any case, and nothing is kept.
    """
    compiled: Any = numba.njit(signature, **{**FLAGS, "boundscheck": checked})(function)
    return compiled


def _for_kernels(function: Callable[..., Any]) -> None:
    """Let kernels call *function*, compiled as they are."""
    compiled = getattr(function, STANDS_FOR, function)
    overload(function, strict=False)(lambda *_, **__: compiled)


make_known_to(_for_kernels)
