"""Compiles kernels with fixed flags, symbols and cache.

Nothing of Numba's is changed for others in the process: kernels have a compiler and a cache (`cache.py`) of theirs.
"""
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numba.experimental.function_type  # functions that are arguments have types from then on
from numba.core import config as numba_config
from numba.core import types
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.typeinfer import register_dispatcher
from numba.core.typing.templates import (
    _OverloadFunctionTemplate,
    infer,
    infer_global,
    make_overload_template,
)

import subak.kernels.numba_internals.calls  # noqa: F401  (Numba knows of it from then on)
from subak.kernels.numba_internals.cache import KernelCache, is_kept
from subak.kernels.numba_internals.compiler import Compiler, InnerCompiler, OuterCompiler, caller_is_checked
from subak.kernels.numba_internals.interrupts import heard_outside_of_llvm
from subak.marks import COMPILED_AS, INLINED, STANDS_FOR, Signature, make_known_to

Function = TypeVar("Function", bound=Callable[..., Any])

_OVERLOADED: Any = _OverloadFunctionTemplate
SETTINGS: Any = numba_config  # its settings are attributes made at run time
# error_model: floats divide as in NumPy. nogil: threads may run beside a kernel. boundscheck, fastmath: exact and
# unchecked. _nrt off: a kernel allocates nothing, so arrays need no reference counts; with them, passing the state
# to a function cost 220 ns a call, without 1 ns (docs/decisions/0003).
FLAGS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "boundscheck": False, "fastmath": False, "_nrt": False}


class _Kernel(CPUDispatcher):
    """Numba's compiled function with a cache of ours; a checked caller calls a checked twin of it."""

    py_func: Any
    _cache: Any

    def enable_caching(self) -> None:
        self._cache = KernelCache(self.py_func)

    def compile(self, signature: Any) -> Any:
        with global_compiler_lock, heard_outside_of_llvm(), self._cache.compiling():
            return super().compile(signature)

    @functools.cached_property
    def _checked(self) -> Any:
        return self._inner(True)

    @functools.cached_property
    def _unchecked(self) -> Any:
        return self._inner(False)

    def _inner(self, checked: bool) -> Any:
        options = {**INNER, "nopython": True, "boundscheck": checked}
        del options["pipeline_class"]
        return CPUDispatcher(self.py_func, targetoptions=options, pipeline_class=InnerCompiler)

    @property
    def _called(self) -> Any:
        return self._checked if caller_is_checked() else self._unchecked

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        return self._called.get_call_template(tuple(map(_wide, arguments)), named)

    def get_overload(self, signature: Any) -> Any:
        return self._called.get_overload(signature)


# Numba compiles every function for its own sake, also those that only kernels call: half of the time was spent on
# machine code that nobody ran, and all of a small function's again for each of its callers (docs/decisions/0012).
INNER: dict[str, Any] = {
    **FLAGS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": InnerCompiler,
}
# A user's policy may allocate. It is not kept: what it reaches may change while the process lives.
USER: dict[str, Any] = {**FLAGS, "_nrt": True, "pipeline_class": Compiler}


def is_compiled(name: str) -> bool:
    """Whether the kernel *name*, made of exactly what it is made of now, is kept (always, with the compiler off)."""
    return bool(SETTINGS.DISABLE_JIT) or is_kept(name)


def kernel(function: Function) -> Function:
    """Compile *function* on its first call for each set of types, cached on disk."""
    return _kept(function, Compiler)


def _for_kernels(function: Callable[..., Any]) -> None:
    """Let kernels call *function*, compiled once for integers of every width: each width was a function of its own."""
    options = {**INNER, "forceinline": getattr(function, COMPILED_AS) == INLINED}
    compiled = getattr(function, STANDS_FOR, function)
    template: Any = make_overload_template(function, lambda *_, **__: compiled, options, False, "never")
    name = f"{template.__name__}_of_wide_integers"
    widened = infer(type(template)(name, (template,), {"generic": _typed_wide, "_get_impl": _found}))
    infer_global(function, types.Function(widened))


def _typed_wide(template: Any, arguments: Any, named: Any) -> Any:
    return _OVERLOADED.generic(
        template, tuple(_wide(each) for each in arguments), {name: _wide(each) for name, each in named.items()})


def _found(template: Any, arguments: Any, named: Any) -> Any:
    """Return what was compiled for these types: of a caller's flags only the checks are inherited."""
    key = (template.context, arguments, tuple(named.items()), caller_is_checked())
    found = template._impl_cache.get(key)
    return template._build_impl(key, arguments, named) if found is None else found


def _wide(kind: Any) -> Any:
    integer: Any = types.Integer
    return types.int64 if isinstance(kind, integer) and kind.signed else kind


def kernel_of(
    signature: Signature | tuple[types.Type, ...], function: Function, cache: bool = True, checked: bool = False,
    by_python: bool = True,
) -> Function:
    """Compile *function* now for exactly *signature*; with *cache* off as a user's policy: uncached, may allocate.

    *checked*, of a policy: an index out of bounds raises IndexError, in the policy, in what it calls of this package,
    and in the functions under `numba.njit` that its file names. The engine's own indices are not checked.
    *by_python*: whether Python may call a policy, too; an engine has its address. Without, it is compiled in three
    fifths of the time.
    """
    compiled: Any
    if cache:
        compiled = _kept(function, OuterCompiler)
        if not SETTINGS.DISABLE_JIT:
            with register_dispatcher(compiled):
                compiled.compile(signature)
            compiled.disable_compile()
    else:
        options = {**USER, "boundscheck": checked, "no_cpython_wrapper": not by_python}
        with heard_outside_of_llvm():
            if checked:
                _check_helpers(function)
            compiled = numba.njit(signature, **options)(function)
    return compiled


def _kept(function: Any, compiler: Any) -> Any:
    if SETTINGS.DISABLE_JIT:
        return function
    compiled = _Kernel(function, targetoptions={**FLAGS, "nopython": True}, pipeline_class=compiler)
    compiled.enable_caching()
    return compiled


def _check_helpers(policy: Any) -> None:
    """Let the compiled functions that a policy's file names check their indices too, from now on."""
    dispatchers = (each for each in policy.__globals__.values() if isinstance(each, CPUDispatcher))
    helper: Any
    for helper in dispatchers:
        if not isinstance(helper, _Kernel):
            helper._cache = NullCache()
            helper.targetoptions["boundscheck"] = True
            helper.recompile()


make_known_to(_for_kernels)
