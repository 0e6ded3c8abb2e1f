"""How every kernel is compiled: one decorator, so that flags and caching are decided once.

Numba's disk cache notices an edit in a function's own file, never in the files it calls. So the cache folder
is named by the content of all kernel sources, Numba and NumPy: any edit or upgrade starts a fresh one.
"""
import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import config as numba_config
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.itanium_mangler import mangle
from numba.core.registry import cpu_target
from numba.core.untyped_passes import TranslateByteCode
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

SETTINGS: Any = numba_config  # its settings are attributes made at run time
PACKAGE = Path(__file__).parent
SOURCES = ("kernel.py", "workload/tasks.py", "fleet", "queues", "placement", "federation", "simulator")
# error_model: floats divide as in NumPy. nogil: threads may run beside a kernel. boundscheck, fastmath: exact and
# unchecked. _nrt off: a kernel allocates nothing, so arrays need no reference counts; with them, passing the state
# to a function cost 220 ns a call, without 1 ns (docs/decisions/0003).
FLAGS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "boundscheck": False, "fastmath": False, "_nrt": False}


class _InnerLibrary(JITCodeLibrary):
    """The code of a function that only kernels call: it is optimised and turned into machine code there, not here."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return _NoEnvironment(self._codegen)


class _NoEnvironment:
    """A code generator that sets no environment: without machine code there is nowhere to set it."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, environment: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class _OuterLibrary(JITCodeLibrary):
    """The code of a kernel: without a first round of passes that only prepares the pruning of reference counts."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


@register_pass(mutates_CFG=False, analysis_only=True)
class _UseInnerLibrary(FunctionPass):
    _name = "use_inner_library"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        library: Any = _InnerLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _UseOuterLibrary(FunctionPass):
    _name = "use_outer_library"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        library: Any = _OuterLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


def _compiler_with(library_pass: Any) -> Any:
    """Return Numba's compiler with a pass more, which chooses where the code goes."""

    class Compiler(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
            manager.add_pass_after(library_pass, TranslateByteCode)
            manager.finalize()
            return [manager]

    return Compiler


# Numba compiles every function for its own sake, also those that only kernels call: half of the time was spent on
# machine code that nobody ran, and all of a small function's again for each of its callers (docs/decisions/0003).
INNER: dict[str, Any] = {
    **FLAGS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _compiler_with(_UseInnerLibrary),
}
OUTER: dict[str, Any] = {**FLAGS, "pipeline_class": _compiler_with(_UseOuterLibrary)}
USER_FLAGS: dict[str, Any] = {**FLAGS, "_nrt": True}  # a user's policy may allocate


def _short_name(name: str, argtypes: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    """Return the symbol of a compiled function, its argument types by a digest: their names are 10,000 letters long."""
    digest = hashlib.sha256(str(argtypes).encode()).hexdigest()[:16]
    return str(mangle(f"{name}_{digest}", (), abi_tags=abi_tags, uid=uid))


cpu_target.target_context.mangler = _short_name


def _digest() -> str:
    text = hashlib.sha256(f"{numba.__version__} {np.__version__}".encode())
    for name in SOURCES:
        for path in sorted([PACKAGE / name] if name.endswith(".py") else (PACKAGE / name).rglob("*.py")):
            text.update(path.read_bytes())
    return text.hexdigest()[:16]


def _cache_home() -> Path:
    """Return the user's cache folder, or a temporary one where that cannot be written."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "subak"
    with contextlib.suppress(OSError):
        home.mkdir(parents=True, exist_ok=True)
    return home if os.access(home, os.W_OK) else Path(tempfile.gettempdir()) / f"subak-{os.getuid()}"


CACHE = _cache_home() / _digest()


def is_compiled(name: str) -> bool:
    """Whether the function *name*, compiled from exactly these sources, is cached (always, with the compiler off)."""
    return bool(SETTINGS.DISABLE_JIT) or any(CACHE.rglob(f"*.{name}-*.nbc"))


@contextlib.contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    before = SETTINGS.CACHE_DIR
    SETTINGS.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        SETTINGS.CACHE_DIR = before


def kernel(function: Function) -> Function:
    """Compile *function* on its first call for each set of types, cached on disk."""
    with _cache_in(CACHE):
        compiled: Function = numba.njit(cache=True, **FLAGS)(function)
    return compiled


def inlined(function: Function) -> Function:
    """Compile *function* always into its callers; called from Python it is the plain function.

    For hot paths: passing the state by value cost 60 ns a call.
    """
    jitable: Function = register_jitable(forceinline=True, **INNER)(function)
    return jitable


def cold(function: Function) -> Function:
    """Compile *function* for its callers only, but once: for what is rarely called, so that its code is not repeated.

    A call costs what passing the state costs.
    """
    jitable: Function = register_jitable(**INNER)(function)
    return jitable


@contextlib.contextmanager
def _bounds_checked() -> Iterator[None]:
    """Compile with bounds checks, also what is inlined, whatever its own flags say."""
    before = SETTINGS.BOUNDSCHECK
    SETTINGS.BOUNDSCHECK = 1
    try:
        yield
    finally:
        SETTINGS.BOUNDSCHECK = before


def kernel_of(signature: Any, function: Function, cache: bool = True, checked: bool = False) -> Function:
    """Compile *function* now for exactly *signature*; with *cache* off as a user's policy: uncached, may allocate.

    *checked*: it, and all that is compiled into it, raises IndexError where it leaves an array.
    """
    with _cache_in(CACHE), _bounds_checked() if checked else contextlib.nullcontext():
        flags = OUTER if cache else USER_FLAGS
        compiled: Function = numba.njit(signature, cache=cache, **flags)(function)
    return compiled


@functools.cache
def function_type(signature: Any) -> Any:
    """Return the type of a compiled function passed as an argument: one engine serves every policy of a signature."""
    return types.FunctionType(signature)
