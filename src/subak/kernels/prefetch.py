"""What `marks.prefetch` is compiled to: the processor's own instruction, which no Python of Numba's stands for."""
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from subak.marks import prefetch

WILL_BE_WRITTEN, KEPT_LONG, DATA = 1, 3, 1  # as LLVM numbers them


@intrinsic
def _prefetched(_typing: Any, array: Any, place: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = signature.args[0]
        held = context.make_array(kind)(context, builder, values[0])
        numbers = cgutils.unpack_tuple(builder, values[1], len(signature.args[1]))
        at = [context.cast(builder, value, index, types.intp)
              for value, index in zip(numbers, signature.args[1], strict=True)]
        pointer = cgutils.get_item_pointer(context, builder, kind, held, at)
        number, address = ir.IntType(32), ir.IntType(8).as_pointer()
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [address], ir.FunctionType(ir.VoidType(), [address, number, number, number]))
        builder.call(function, [builder.bitcast(pointer, address), number(WILL_BE_WRITTEN), number(KEPT_LONG),
                                number(DATA)])
        return context.get_dummy_value()

    return types.void(array, place), code


@overload(prefetch, strict=False)
def _prefetch(_array: Any, place: Any) -> Any:
    if isinstance(place, types.BaseTuple):
        return lambda _array, place: _prefetched(_array, place)  # type: ignore[call-arg]  # noqa: PLW0108
    return lambda _array, place: _prefetched(_array, (place,))  # type: ignore[call-arg]
