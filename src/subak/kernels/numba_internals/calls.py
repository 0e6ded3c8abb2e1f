"""Compiles `marks.call`: a call of a function known by its address alone.

It has the signature of all functions that serve (federation/serving.py), as C has it: `int64 (int64, double, int64)`.
"""
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from subak.marks import call

WORD, REAL = ir.IntType(64), ir.DoubleType()
FUNCTION = ir.FunctionType(WORD, [WORD, REAL, WORD])


@intrinsic
def _called(_typing: Any, address: Any, tables: Any, now: Any, count: Any) -> Any:
    def code(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.call(builder.inttoptr(values[0], FUNCTION.as_pointer()), values[1:])

    return types.int64(types.int64, types.int64, types.float64, types.int64), code


@overload(call, strict=False)
def _call(functions: Any, number: Any, tables: Any, now: Any, count: Any) -> Any:
    return lambda functions, number, tables, now, count: _called(  # type: ignore[call-arg]
        functions[number], tables, now, count)
