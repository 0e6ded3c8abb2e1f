"""Adapts Numba's compiler: links inner functions once, passes tables whole, shortens symbols.

Nothing of Numba's is changed for others in the process: what differs is in classes of ours.
"""
import hashlib
from types import FunctionType
from typing import Any

import llvmlite.binding as ll
from numba.core import datamodel, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.datamodel.models import TupleModel
from numba.core.itanium_mangler import mangle
from numba.core.targetconfig import ConfigStack
from numba.core.untyped_passes import TranslateByteCode

from subak.kernels.numba_internals.indices import without_wrapping

_DATA_MODELS: Any = datamodel  # Numba says nothing of its types
LINKED = "linkonce_odr"  # linkage of inner functions: merged into callers or left out at the compiler's wish


class _InnerLibrary(JITCodeLibrary):
    """The code of a function that only kernels call: it is optimised and turned into machine code there, not here.

    It holds this function alone: what it calls is linked once, into the kernel, not into each of its callers before.
    """

    def finalize(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the module of this function and of all that it calls, for callers that do not know this class."""
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

    def serialize_using_object_code(self) -> Any:
        """Return what is kept: machine code, and the names in it.

        A kernel is entered by its address. What Numba keeps for callers to be linked with is as large as the machine
        code, and takes longer to read.
        """
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        module = self._final_module
        names = [each.name for each in (*module.functions, *module.global_variables) if not each.is_declaration]
        code = self._get_compiled_object()  # type: ignore[no-untyped-call]
        return self.name, "object", (code, _module_of(names).as_bitcode())


def _module_of(names: list[str]) -> Any:
    """Return a module that defines names, and nothing else: Numba's cache asks one which there are."""
    return ll.parse_assembly("\n".join(f'@"{name}" = global i8 0' for name in names))


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
        super().__init__(manager, kind)  # type: ignore[no-untyped-call]
        self.whole = kind.instance_class.__module__.startswith(OWN_TABLES)

    def get_argument_type(self) -> Any:
        model: Any = super()
        return model.get_value_type() if self.whole else model.get_argument_type()

    def as_argument(self, builder: Any, value: Any) -> Any:
        model: Any = super()
        return value if self.whole else model.as_argument(builder, value)

    def from_argument(self, builder: Any, value: Any) -> Any:
        model: Any = super()
        return value if self.whole else model.from_argument(builder, value)


OWN = "subak."  # modules whose indices are places; a user's policy may count from behind
OWN_TABLES = ("subak.simulator.", "subak.federation.")  # modules of tuples that no user's function ever has
MODELS = _DATA_MODELS.DataModelManager().chain(_DATA_MODELS.default_manager)
MODELS.register(types.NamedTuple, _TablesModel)


class Compiler(CompilerBase):
    """Numba's compiler with short symbols, and tables that are passed whole."""

    def compile_extra(self, function: FunctionType) -> CompileResult:
        """Compile a function."""
        context = self.state.targetctx  # this function's own copy of Numba's
        context.mangler, context.data_model_manager = _short_name, MODELS
        if function.__module__.startswith(OWN):
            context.get_function = without_wrapping(context)
        return super().compile_extra(function)  # type: ignore[no-untyped-call]

    def define_pipelines(self) -> list[PassManager]:
        """Return the one list of passes."""
        return [self.passes(_UseWholeLibrary)]

    def passes(self, *library_passes: Any) -> PassManager:
        """Return Numba's passes and those that choose where the code goes."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        for each in library_passes:
            manager.add_pass_after(each, TranslateByteCode)
        manager.finalize()
        return manager


class OuterCompiler(Compiler):
    """Compiles a kernel of one signature."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the one list of passes."""
        return [self.passes(_UseOuterLibrary)]


class InnerCompiler(Compiler):
    """Compiles a function that only kernels call."""

    def compile_extra(self, function: FunctionType) -> CompileResult:
        """Compile a function; with checked accesses to arrays, where its caller has them."""
        if caller_is_checked():
            self.state.flags.boundscheck = self.state.targetctx.enable_boundscheck = True
        return super().compile_extra(function)

    def define_pipelines(self) -> list[PassManager]:
        """Return the one list of passes."""
        return [self.passes(_UseInnerLibrary)]


def _short_name(name: str, argtypes: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    """Return the symbol of a compiled function, its argument types by a digest: their names are 10,000 letters long."""
    digest = hashlib.sha256(str(argtypes).encode()).hexdigest()[:16]
    return str(mangle(f"{name}_{digest}", (), abi_tags=abi_tags, uid=uid))


def caller_is_checked() -> bool:
    """Whether what is compiled now is compiled for a function whose accesses to arrays are checked."""
    caller = ConfigStack.top_or_none()
    return caller is not None and caller.boundscheck
