"""Marks the functions that kernels call, without loading the compiler.

A process that serves messages in plain Python, such as a worker, loads no Numba; `subak.kernels.kernel` does, and makes
what is marked, before and after, known to it.
"""
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

Function = TypeVar("Function", bound=Callable[..., object])
Functions = Sequence[Callable[..., int]]  # of all roles: of their tables, the time, and how many messages they serve


class Signature(Protocol):
    """What a function is compiled for, as Numba has it."""

    @property
    def args(self) -> tuple[object, ...]:
        """The types of its arguments."""

    @property
    def return_type(self) -> object:
        """The type of its result."""


COMPILED_AS = "subak_compiled_as"  # attribute of a function: how its callers compile it
INLINED, NOINLINE = "inlined", "noinline"
STANDS_FOR = "subak_stands_for"  # likewise: another function that is compiled in its place
marked: list[Callable[..., object]] = []  # all of them, in the order of their definition
known_to: list[Callable[[Callable[..., object]], object]] = []  # who has to know: the compiler, once loaded


def inlined(function: Function) -> Function:
    """Compile *function* always into its callers; called from Python it is the plain function.

    For hot paths: passing the state by value cost 60 ns a call.
    """
    return _mark(function, INLINED)


def noinline(function: Function) -> Function:
    """Compile *function* for its callers only, but once: for what is rarely called, so that its code is not repeated.

    A call costs what passing the state costs.
    """
    return _mark(function, NOINLINE)


def standing_for(compiled: Callable[..., object]) -> Callable[[Function], Function]:
    """Compile *compiled* into the callers of a function, which is what plain Python calls."""
    def stand(function: Function) -> Function:
        setattr(function, STANDS_FOR, compiled)
        return inlined(function)

    return stand


def _mark(function: Function, how: str) -> Function:
    setattr(function, COMPILED_AS, how)
    marked.append(function)
    for make_known in known_to:
        make_known(function)
    return function


def make_known_to(compiler: Callable[[Callable[..., object]], object]) -> None:
    """Let a compiler know of every marked function, now and from now on."""
    known_to.append(compiler)
    for function in marked:
        compiler(function)


def call(functions: Functions, number: int, tables: object, now: float, count: int) -> int:
    """Return functions[number](tables, now, count).

    In kernels *functions* is int64[number], addresses of functions that were compiled apart, and *tables* the address
    of what this one works on (kernels/state.py).
    """
    return int(functions[number](tables, now, count))
