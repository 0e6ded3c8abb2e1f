"""Compiles indices without Python's wraparound: a negative index does not count from the end.

To see whether an index is negative, and to add the length if so, took four instructions and a register at each access:
a federation's loop was a quarter slower (docs/decisions/0050). Checked code raises IndexError for a negative index, and
one that is written down as a number is an error of the compiler.
"""
import operator
from typing import Any

from llvmlite.ir import Constant
from llvmlite.ir.instructions import InsertValue
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import signature

INDEXED = (operator.getitem, operator.setitem)
INTEGER: Any = types.Integer  # Numba says little of its types
TUPLE: Any = types.BaseTuple


def without_wrapping(context: Any) -> Any:
    """Return what `context.get_function` returns, for indices that are places where it is an array that is indexed."""
    found = context.get_function

    def find(function: Any, kinds: Any, *more: Any, **named: Any) -> Any:
        key = function.get_impl_key(kinds) if isinstance(function, types.Callable) else function
        if key not in INDEXED or not isinstance(kinds.args[0], types.Array):
            return found(function, kinds, *more, **named)
        array, index, *value = kinds.args
        code = found(key, signature(kinds.return_type, array, _unsigned(index), *value), *more, **named)

        def at_place(builder: Any, values: Any, *rest: Any) -> Any:
            place = _place(context, builder, values[1], index)
            return code(builder, (values[0], place, *values[2:]), *rest)

        return at_place

    return find


def _unsigned(kind: Any) -> Any:
    """Return the type of an index to which Numba adds no length."""
    if isinstance(kind, INTEGER):
        return types.uint64
    return types.Tuple([_unsigned(each) for each in kind]) if isinstance(kind, TUPLE) else kind


def _place(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    """Return an index of the type that `_unsigned` says."""
    if isinstance(kind, INTEGER):
        if isinstance(value, Constant) and kind.signed and value.constant < 0:
            raise TypingError(f"an index of a kernel is a place, and {value.constant} is none")
        return context.cast(builder, value, types.unliteral(kind), types.int64 if kind.signed else types.uint64)
    if not isinstance(kind, TUPLE):
        return value
    places = [_place(context, builder, *each) for each in zip(_parts(builder, value, len(kind)), kind, strict=True)]
    return context.make_tuple(builder, _unsigned(kind), places)


def _parts(builder: Any, value: Any, count: int) -> list[Any]:
    """Return the values in a tuple: those that it was just put together of, where that can be seen."""
    parts = [builder.extract_value(value, number) for number in range(count)]
    while isinstance(value, InsertValue):
        parts[value.indices[0]] = value.operands[1]
        value = value.operands[0]
    return parts
