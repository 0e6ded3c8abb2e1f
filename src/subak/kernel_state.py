"""States by address: how kernels that are compiled apart work on the same tables.

A state is a NamedTuple of arrays, numbers and such tuples. To hand it to a compiled function costs some nanoseconds for
each of its arrays, and from Python a microsecond; so a kernel that is called for every message is given one number
instead, the address of the state's words, and opens the state there: what it does not use is never read.

The words (int64) of an array are its address, its shape and its strides; a number is one word, and a tuple's words are
those of its members. They are written once, and never change: arrays are changed in place.
"""
from typing import Any, TypeVar

import numpy as np
from numba.core import cgutils, types
from numba.core.extending import lower_builtin, models, register_model, type_callable
from numba.np.arrayobj import make_array, populate_array

State = TypeVar("State")
COMPILED_AS = "subak_compiled_as"  # attribute of a function: how its callers compile it


class StateAt(types.Type):
    """The address of the words of a state of type *state*."""

    def __init__(self, state: Any) -> None:
        self.state = state
        super().__init__(f"StateAt({state})")


@register_model(StateAt)
class _StateAtModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, cgutils.intp_t)  # type: ignore[no-untyped-call]


def opened(state: State) -> State:
    """Return the state at an address (a kernel's argument of type StateAt); a state itself, in plain Python."""
    return state


setattr(opened, COMPILED_AS, "as below")


@type_callable(opened)
def _type_opened(_context: Any) -> Any:
    return lambda state: state.state if isinstance(state, StateAt) else state


@lower_builtin(opened, StateAt)  # type: ignore[untyped-decorator]
def _lower_opened(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return _Reader(context, builder, arguments[0]).read(signature.return_type)


@lower_builtin(opened, types.BaseTuple)  # type: ignore[untyped-decorator]
def _lower_open_already(_context: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
    return arguments[0]


class _Reader:
    """Loads of one word after the other, which the compiler drops where nobody uses them."""

    def __init__(self, context: Any, builder: Any, address: Any) -> None:
        self.context, self.builder = context, builder
        self.words = builder.inttoptr(address, cgutils.intp_t.as_pointer())
        self.next = 0
        self.constant = builder.module.add_metadata([])

    def word(self) -> Any:
        place = self.builder.gep(self.words, [cgutils.intp_t(self.next)], inbounds=True)
        self.next += 1
        value = self.builder.load(place)
        value.set_metadata("invariant.load", self.constant)
        return value

    def read(self, kind: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            return self.context.make_tuple(self.builder, kind, [self.read(each) for each in iter(kind)])  # type: ignore[call-overload]
        if isinstance(kind, types.Array):
            return self.array(kind)
        return self.number(kind)

    def array(self, kind: Any) -> Any:
        array = make_array(kind)(self.context, self.builder)
        data = self.builder.inttoptr(self.word(), array.data.type)
        shape, strides = ([self.word() for _ in range(kind.ndim)] for _ in range(2))
        itemsize = cgutils.intp_t(self.context.get_abi_sizeof(self.context.get_data_type(kind.dtype)))
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
        return array._getvalue()

    def number(self, kind: Any) -> Any:
        word, wanted = self.word(), self.context.get_value_type(kind)
        if isinstance(kind, types.Float):
            return self.builder.bitcast(word, wanted)
        return self.builder.trunc(word, wanted) if wanted.width < word.type.width else word


def words_of(state: Any) -> np.ndarray:
    """Return int64[word] of a state; it is valid as long as the arrays of the state are kept. Raises TypeError."""
    return np.array(_words(state), np.int64)


def _words(value: Any) -> list[int]:
    if isinstance(value, tuple):
        return [word for each in value for word in _words(each)]
    if isinstance(value, np.ndarray):
        return [value.ctypes.data, *value.shape, *value.strides]
    if isinstance(value, float | np.float64):
        return [int(np.float64(value).view(np.int64))]
    if isinstance(value, int | np.integer):
        return [int(value)]
    raise TypeError(f"a state holds arrays, numbers and tuples of them, no {type(value).__name__}")
