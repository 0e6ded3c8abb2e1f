"""Types and loads for states by address (kernels/state.py) in compiled functions."""
import hashlib
import operator
from typing import Any

from numba.core import cgutils, types
from numba.core.extending import (
    NativeValue,
    infer_getattr,
    lower_builtin,
    lower_cast,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
    unbox,
)
from numba.core.typeconv.castgraph import Conversion
from numba.core.typing.templates import AttributeTemplate
from numba.np.arrayobj import make_array, populate_array

WORD = 8  # bytes
TUPLE: Any = types.BaseTuple
ARRAY: Any = types.Array
RECORD: Any = types.Record


class StateAt(types.Type):
    """The address of the words of a state of type *state*."""

    def __init__(self, state: Any) -> None:
        self.state = state
        super().__init__(f"StateAt({_short(state)})")

    def can_convert_to(self, _typing: object, other: types.Type) -> Conversion | None:
        """Return whether it may be given where *other* is taken: a state as it is."""
        return Conversion.safe if other == self.state else None


class StatesAt(types.Type):
    """The address of the words of states of type *state*, one behind the other."""

    def __init__(self, state: Any) -> None:
        self.state = state
        super().__init__(f"StatesAt({_short(state)})")


def _short(state: Any) -> str:
    """Return a name of a state's type: Numba's own are 10,000 letters long."""
    return f"{state.instance_class.__qualname__} {hashlib.sha256(str(state).encode()).hexdigest()[:16]}"


def _count(kind: Any) -> int:
    """Return how many words a value of a type has."""
    if isinstance(kind, TUPLE):
        return sum(_count(each) for each in kind)
    return 1 + 2 * int(kind.ndim) if isinstance(kind, ARRAY) else 1


@unbox(StateAt)  # type: ignore[untyped-decorator]
def _unboxed(_kind: Any, at: Any, context: Any) -> Any:
    address = context.pyapi.object_getattr_string(at, "address")
    word = context.pyapi.long_as_longlong(address)
    context.pyapi.decref(address)
    return NativeValue(word)


# -- how compiled functions read them ----------------------------------------------------------------------------------


class _AddressModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, cgutils.intp_t)  # type: ignore[no-untyped-call]


register_model(StateAt)(_AddressModel)
register_model(StatesAt)(_AddressModel)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = StateAt

    def generic_resolve(self, at: Any, name: str) -> Any:  # type: ignore[override]
        """Return the type of an attribute."""
        if name not in at.state.fields:
            return None
        kind = at.state.types[at.state.fields.index(name)]
        return StateAt(kind) if isinstance(kind, types.BaseNamedTuple) else kind


@lower_getattr_generic(StateAt)  # type: ignore[untyped-decorator]
def _lower_attribute(context: Any, builder: Any, at: Any, address: Any, name: str) -> Any:
    place = at.state.fields.index(name)
    kind, before = at.state.types[place], sum(_count(each) for each in at.state.types[:place])
    there = builder.add(address, cgutils.intp_t(before * WORD))
    return there if isinstance(kind, types.BaseNamedTuple) else _Reader(context, builder, there).read(kind)


@lower_cast(StateAt, types.BaseNamedTuple)  # type: ignore[untyped-decorator]
def _lower_whole(context: Any, builder: Any, at: Any, _wanted: Any, address: Any) -> Any:
    return _Reader(context, builder, address).read(at.state)


@type_callable(operator.getitem)
def _type_item(_context: Any) -> Any:
    def typed(states: Any, number: Any) -> Any:
        is_one: bool = isinstance(states, StatesAt) and isinstance(number, types.Integer)
        return StateAt(states.state) if is_one else None

    return typed


@lower_builtin(operator.getitem, StatesAt, types.Integer)  # type: ignore[untyped-decorator]
def _lower_item(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    states, number = arguments
    place = context.cast(builder, number, signature.args[1], types.intp)
    return builder.add(states, builder.mul(place, cgutils.intp_t(_count(signature.args[0].state) * WORD)))


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
        if isinstance(kind, TUPLE):
            return self.context.make_tuple(self.builder, kind, [self.read(each) for each in kind])
        if isinstance(kind, ARRAY):
            return self.array(kind)
        if isinstance(kind, RECORD):
            return self.builder.inttoptr(self.word(), self.context.get_value_type(kind))
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
