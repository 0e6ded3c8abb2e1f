"""How every kernel is compiled: one decorator, so that flags, symbols and caching are decided once.

Nothing of Numba's is changed for others in the process: kernels have a compiler and a cache (`kernel_cache`) of theirs.
"""
import functools
import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import llvmlite.binding as ll
import numba
from numba.core import config as numba_config
from numba.core import types
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.datamodel import DataModelManager, default_manager
from numba.core.datamodel.models import TupleModel
from numba.core.itanium_mangler import mangle
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.typeinfer import register_dispatcher
from numba.core.typing.templates import _OverloadFunctionTemplate, infer, infer_global, make_overload_template
from numba.core.untyped_passes import TranslateByteCode

from subak.kernel_cache import KernelCache, is_kept
from subak.kernel_key import COMPILED_AS

Function = TypeVar("Function", bound=Callable[..., Any])

SETTINGS: Any = numba_config  # its settings are attributes made at run time
# error_model: floats divide as in NumPy. nogil: threads may run beside a kernel. boundscheck, fastmath: exact and
# unchecked. _nrt off: a kernel allocates nothing, so arrays need no reference counts; with them, passing the state
# to a function cost 220 ns a call, without 1 ns (docs/decisions/0003).
FLAGS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "boundscheck": False, "fastmath": False, "_nrt": False}


LINKED = "linkonce_odr"  # linkage of inner functions: merged into callers or left out at the compiler's wish


class _InnerLibrary(JITCodeLibrary):
    """The code of a function that only kernels call: it is optimised and turned into machine code there, not here.

    It holds this function alone: what it calls is linked once, into the kernel, not into each of its callers before.
    """

    def finalize(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the module of this function and of all that it calls, for a caller that knows nothing of this class."""
        if self._shared_module is None:
            self._shared_module = ll.parse_assembly(str(self._codegen._create_empty_module(self.name)))
            _link(self._shared_module, [self])
        return self._shared_module

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return _NoEnvironment(self._codegen)


def _link(module: Any, libraries: list[Any]) -> None:
    """Link *libraries* and those below them into *module*; their functions may be left out where nobody calls them."""
    libraries = _with_those_below(libraries)
    inner = [each._final_module.clone() for each in libraries if isinstance(each, _InnerLibrary)]
    names = [function.name for each in inner for function in each.functions if not function.is_declaration]
    if inner:
        module.link_in(_merged(inner))
    for name in names:
        module.get_function(name).linkage = LINKED
    for each in libraries:
        if not isinstance(each, _InnerLibrary):
            module.link_in(each._get_module_for_linking(), preserve=True)


def _merged(modules: list[Any]) -> Any:
    """Link modules in pairs, then these: what a link takes grows with the module that takes the other in."""
    while len(modules) > 1:
        for one, other in zip(modules[::2], modules[1::2], strict=False):
            one.link_in(other)
        modules = modules[::2]
    return modules[0]


def _with_those_below(libraries: list[Any]) -> list[Any]:
    """Return *libraries*, and those that inner ones among them are linked with, each once."""
    found: dict[Any, None] = {}
    due = list(libraries)
    while due:
        each = due.pop()
        if each not in found:
            found[each] = None
            due.extend(each._linking_libraries if isinstance(each, _InnerLibrary) else [])
    return list(found)


class _NoEnvironment:
    """A code generator that sets no environment: without machine code there is nowhere to set it."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, environment: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class _WholeLibrary(JITCodeLibrary):
    """The code of a function that is called from outside, with the inner functions that it reaches."""

    def finalize(self) -> None:
        direct = self._linking_libraries
        for each in _with_those_below(direct):
            self._reload_init.update(each._reload_init)
        _link(self._final_module, direct)
        self._linking_libraries = []
        super().finalize()  # type: ignore[no-untyped-call]
        self._linking_libraries = direct


class _OuterLibrary(_WholeLibrary):
    """The code of a kernel: without a first round of passes that only prepares the pruning of reference counts."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _UseLibrary(FunctionPass):
    """Let a function's code go into a library of a class of ours."""

    library_class: Any

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = self.library_class(state.targetctx.codegen(), state.func_id.func_qualname)
        if self.library_class is not _InnerLibrary:
            state.library.enable_object_caching()
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _UseInnerLibrary(_UseLibrary):
    _name, library_class = "use_inner_library", _InnerLibrary


@register_pass(mutates_CFG=False, analysis_only=True)
class _UseWholeLibrary(_UseLibrary):
    _name, library_class = "use_whole_library", _WholeLibrary


@register_pass(mutates_CFG=False, analysis_only=True)
class _UseOuterLibrary(_UseLibrary):
    _name, library_class = "use_outer_library", _OuterLibrary


class _TablesModel(TupleModel):
    """How a tuple of tables is passed: as one value, where Numba passes each number of each array.

    A tuple that users' functions pass to ours is passed as Numba does.
    """

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind)
        self.whole = kind.instance_class.__module__.startswith(OWN_TABLES)

    def get_argument_type(self) -> Any:
        return self.get_value_type() if self.whole else super().get_argument_type()

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value if self.whole else super().as_argument(builder, value)

    def from_argument(self, builder: Any, value: Any) -> Any:
        return value if self.whole else super().from_argument(builder, value)


OWN_TABLES = ("subak.simulator.", "subak.federation.")  # modules of tuples that no user's function ever has
MODELS = DataModelManager().chain(default_manager)
MODELS.register(types.NamedTuple, _TablesModel)


class _Compiler(CompilerBase):
    """Numba's compiler with short symbols."""

    def compile_extra(self, function: Any) -> Any:
        context = self.state.targetctx  # this function's own copy of Numba's
        context.mangler, context.data_model_manager = _short_name, MODELS
        return super().compile_extra(function)  # type: ignore[no-untyped-call]

    def define_pipelines(self) -> list[Any]:
        return [self.passes(_UseWholeLibrary)]

    def passes(self, *library_passes: Any) -> Any:
        """Return Numba's passes and those that choose where the code goes."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        for each in library_passes:
            manager.add_pass_after(each, TranslateByteCode)
        manager.finalize()
        return manager


class _OuterCompiler(_Compiler):
    def define_pipelines(self) -> list[Any]:
        return [self.passes(_UseOuterLibrary)]


class _InnerCompiler(_Compiler):
    def compile_extra(self, function: Any) -> Any:
        if _caller_is_checked():
            self.state.flags.boundscheck = self.state.targetctx.enable_boundscheck = True
        return super().compile_extra(function)

    def define_pipelines(self) -> list[Any]:
        return [self.passes(_UseInnerLibrary)]


def _short_name(name: str, argtypes: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    """Return the symbol of a compiled function, its argument types by a digest: their names are 10,000 letters long."""
    digest = hashlib.sha256(str(argtypes).encode()).hexdigest()[:16]
    return str(mangle(f"{name}_{digest}", (), abi_tags=abi_tags, uid=uid))


def _caller_is_checked() -> bool:
    """Whether what is compiled now is compiled for a function whose accesses to arrays are checked."""
    caller = ConfigStack.top_or_none()
    return caller is not None and caller.boundscheck


class _Kernel(CPUDispatcher):
    """Numba's compiled function with a cache of ours; a checked caller calls a checked twin of it."""

    py_func: Any
    _cache: Any

    def enable_caching(self) -> None:
        self._cache = KernelCache(self.py_func)

    def compile(self, signature: Any) -> Any:
        with global_compiler_lock, self._cache.compiling():
            return super().compile(signature)

    @functools.cached_property
    def _checked(self) -> Any:
        return CPUDispatcher(self.py_func, targetoptions={**self.targetoptions, "boundscheck": True},
                             pipeline_class=_Compiler)

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        called: Any = self._checked if _caller_is_checked() else super()
        return called.get_call_template(arguments, named)

    def get_overload(self, signature: Any) -> Any:
        called: Any = self._checked if _caller_is_checked() else super()
        return called.get_overload(signature)


# Numba compiles every function for its own sake, also those that only kernels call: half of the time was spent on
# machine code that nobody ran, and all of a small function's again for each of its callers (docs/decisions/0012).
INNER: dict[str, Any] = {
    **FLAGS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _InnerCompiler,
}
# A user's policy may allocate. It is not kept: what it reaches may change while the process lives.
USER: dict[str, Any] = {**FLAGS, "_nrt": True, "pipeline_class": _Compiler}


def is_compiled(name: str) -> bool:
    """Whether the kernel *name*, made of exactly what it is made of now, is kept (always, with the compiler off)."""
    return bool(SETTINGS.DISABLE_JIT) or is_kept(name)


def kernel(function: Function) -> Function:
    """Compile *function* on its first call for each set of types, cached on disk."""
    return _kept(function, _Compiler)


def inlined(function: Function) -> Function:
    """Compile *function* always into its callers; called from Python it is the plain function.

    For hot paths: passing the state by value cost 60 ns a call.
    """
    setattr(function, COMPILED_AS, "inlined")
    return _for_kernels(function, forceinline=True)


def cold(function: Function) -> Function:
    """Compile *function* for its callers only, but once: for what is rarely called, so that its code is not repeated.

    A call costs what passing the state costs.
    """
    setattr(function, COMPILED_AS, "cold")
    return _for_kernels(function, forceinline=False)


def _for_kernels(function: Function, **options: Any) -> Function:
    """Let kernels call *function*, compiled once for integers of every width: each width was a function of its own."""
    template: Any = make_overload_template(function, lambda *_, **__: function, {**INNER, **options}, False, "never")
    name = f"{template.__name__}_of_wide_integers"
    widened = infer(type(template)(name, (template,), {"generic": _typed_wide}))
    infer_global(function, types.Function(widened))
    return function


def _typed_wide(template: Any, arguments: Any, named: Any) -> Any:
    return _OverloadFunctionTemplate.generic(  # type: ignore[no-untyped-call]
        template, tuple(_wide(each) for each in arguments), {name: _wide(each) for name, each in named.items()})


def _wide(kind: Any) -> Any:
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind


def kernel_of(signature: Any, function: Function, cache: bool = True, checked: bool = False) -> Function:
    """Compile *function* now for exactly *signature*; with *cache* off as a user's policy: uncached, may allocate.

    *checked*, of a policy: an index out of bounds raises IndexError, in the policy, in what it calls of this package,
    and in the functions under `numba.njit` that its file names. The engine's own indices are not checked.
    """
    compiled: Any
    if cache:
        compiled = _kept(function, _OuterCompiler)
        if not SETTINGS.DISABLE_JIT:
            with register_dispatcher(compiled):
                compiled.compile(signature)
            compiled.disable_compile()
    else:
        if checked:
            _check_helpers(function)
        compiled = numba.njit(signature, **{**USER, "boundscheck": checked})(function)
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


@functools.cache
def function_type(signature: Any) -> Any:
    """Return the type of a compiled function passed as an argument: one engine serves every policy of a signature."""
    return types.FunctionType(signature)
