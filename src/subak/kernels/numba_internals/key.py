"""Computes the cache key of a kernel: a hash of everything compiled into it.

Numba freezes a kernel's globals into its code: the functions that it calls, the constants that it reads. So the key is
a digest of the kernel's bytecode and of the values of its globals, through every function that it reaches, wherever
these are defined or imported from; then of the types of its arguments, the compiler's settings and versions, and the
processor. An edit of anything that the kernel does not reach, a comment or a docstring leave its key as it was.
"""
import functools
import hashlib
import os
import platform
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from types import CodeType, EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config as numba_config
from numba.core import sigutils, types
from numba.core.codegen import JITCPUCodegen
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import Signature

from subak.kernels.numba_internals.addresses import StateAt, StatesAt
from subak.marks import COMPILED_AS

DIGITS = 16  # of a digest
SETTINGS: Any = numba_config  # its settings are attributes made at run time
TUPLE: Any = types.BaseTuple
NAMED_TUPLE: Any = types.BaseNamedTuple
FUNCTION: Any = types.FunctionType
# Their functions are told by their names, since their versions are in the key.
LIBRARIES = sys.stdlib_module_names | {"numba", "llvmlite", "numpy"}
# flags, passes, types of our own, and what is kept
COMPILER = [Path(__file__).with_name(f"{name}.py")
            for name in ("dispatch", "compiler", "indices", "calls", "addresses", "cache")]


class UnknownValueError(TypeError):
    """A kernel's global has a value of a type that is not known to be the same in every process."""


def source_key(function: FunctionType) -> str:
    """Return the digest of *function*, of all that it reaches, and of the compiler. Raises UnknownValueError."""
    return _digest(_surroundings(), *sorted(_description(each)[0] for each in reached_from(function)))


def signature_key(signature: Signature, target: JITCPUCodegen) -> str:
    """Return the digest of a signature, or a tuple of types, and of the processor that *target* makes code for."""
    arguments, result = sigutils.normalize_signature(signature)
    return _digest(*(type_text(each) for each in (*arguments, result)), repr(target.magic_tuple()))


def reached_from(function: FunctionType) -> list[FunctionType]:
    """Return *function* and the functions that it reaches through globals and closures, each once."""
    found, due = {function}, [function]
    while due:
        new = set(_description(due.pop())[1]) - found
        found |= new
        due.extend(new)
    return list(found)


def type_text(kind: types.Type) -> str:
    """Return what tells a type of Numba from all others; Numba's own name of a tuple leaves out its fields' names."""
    if isinstance(kind, TUPLE):
        parts = ", ".join(type_text(each) for each in kind)
        return f"{_name(kind.instance_class)}{kind.fields}({parts})" if isinstance(kind, NAMED_TUPLE) else f"({parts})"
    if isinstance(kind, StateAt | StatesAt):
        return f"{type(kind).__name__} {type_text(kind.state)}"
    if isinstance(kind, FUNCTION):
        return f"{type_text(types.Tuple(kind.signature.args))} -> {type_text(kind.signature.return_type)}"
    return str(kind)


@functools.cache
def _surroundings() -> str:
    """Return the digest of what is the same for every kernel of this process."""
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    versions = (platform.python_version(), numba.__version__, llvmlite.__version__, np.__version__)
    return _digest(repr(versions), repr(settings), repr(SETTINGS.BOUNDSCHECK), *(each.read_text() for each in COMPILER))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:DIGITS]


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


# -- one function ------------------------------------------------------------------------------------------------------


@functools.cache
def _description(function: FunctionType) -> tuple[str, list[FunctionType]]:
    """Return a function's code, defaults, closure and globals as text, and the functions among the latter."""
    values = _Values(_names(function.__code__))
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = [_name(function), getattr(function, COMPILED_AS, ""), values.code(function.__code__, function.__doc__)]
    try:
        parts.append(values.text([function.__defaults__, function.__kwdefaults__, cells]))
        parts.append(values.members(function.__globals__))
    except UnknownValueError as error:
        raise UnknownValueError(f"{_name(function)} reaches {error}") from None
    return "\n".join(parts), values.functions


def _names(code: CodeType) -> set[str]:
    """Return the names that code looks up: globals, and attributes, which may share a name with a global."""
    return set(code.co_names).union(*(_names(each) for each in code.co_consts if isinstance(each, CodeType)))


class _Values:
    """Values as text that is the same in every process; collects the functions among them."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.functions: list[FunctionType] = []

    def text(self, value: Any) -> str:
        for kinds, describe in _KINDS:
            if isinstance(value, kinds):
                return describe(self, value)
        if _is_of_a_library(value):
            return _name(value)
        raise UnknownValueError(f"a value of type {_name(type(value))}")

    def members(self, values: dict[str, Any]) -> str:
        """Describe those of a module's values that are looked up."""
        return "\n".join(f"{name} = {self.text(values[name])}" for name in sorted(self.names & values.keys()))

    def code(self, code: CodeType, documentation: str | None = None) -> str:
        """Describe bytecode and its constants, without docstring, file and lines."""
        constants = [None if documentation is not None and each == documentation else each for each in code.co_consts]
        return repr([
            code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
            code.co_kwonlyargcount, code.co_flags, code.co_exceptiontable, [self.text(each) for each in constants],
        ])

    def function(self, function: FunctionType) -> str:
        if not _is_of_a_library(function):
            self.functions.append(function)
        return f"function {_name(function)}"

    def kernel(self, kernel: Any) -> str:
        return f"{self.function(kernel.py_func)} {sorted(kernel.targetoptions.items())!r}"

    def module(self, module: ModuleType) -> str:
        inside = "" if _is_of_a_library(module) else self.members(vars(module))
        return f"module {module.__name__}({inside})"

    def several(self, values: Iterable[Any]) -> str:
        texts = [self.text(each) for each in values]
        return f"{_name(type(values))}({', '.join(sorted(texts) if isinstance(values, set | frozenset) else texts)})"


def _array_text(_: _Values, array: np.ndarray) -> str:
    return f"{array.dtype!r}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"


def _is_of_a_library(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] in LIBRARIES
    return hasattr(value, "__qualname__") and str(value.__module__).partition(".")[0] in LIBRARIES


_KINDS: tuple[tuple[Any, Callable[[_Values, Any], str]], ...] = (
    (Enum, lambda _, value: f"{_name(type(value))} {value!r}"),
    ((bool, int, float, complex, str, bytes, NoneType, EllipsisType, range, np.generic, np.dtype),
     lambda _, value: f"{type(value).__name__} {value!r}"),
    (np.ufunc, lambda _, value: repr(value)),
    ((tuple, list, set, frozenset), _Values.several),
    (dict, lambda values, value: values.several(list(value.items()))),
    (np.ndarray, _array_text),
    (Dispatcher, _Values.kernel),
    (FunctionType, _Values.function),
    (CodeType, _Values.code),
    (ModuleType, _Values.module),
    (type, lambda _, value: f"class {_name(value)}{getattr(value, '_fields', '')}"),
    (types.Type, lambda _, value: type_text(value)),
)
