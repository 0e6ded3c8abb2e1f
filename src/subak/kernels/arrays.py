"""The arrays of a state: by name, replaceable, the small ones in one block of memory.

Memory of a process comes in pages, of which a processor knows where some thousand are. A large array comes in large
pages of its own (NumPy asks for them from 4 MB on); the hundreds of small ones of a federation lie in thousands of
ordinary pages, unless they lie one behind another in an array that is large (docs/decisions/0056).
"""
from typing import Any

import numpy as np

from subak.records import Numbers

LARGE = 1 << 22  # bytes of an array for which NumPy asks for large pages
LINE = 64  # bytes that a processor's cache takes at once


def arrays_of(state: object, name: str = "") -> dict[str, np.ndarray]:
    """Return every array of a state of tuples and lists, and each record as an array of one, by its place in them."""
    if isinstance(state, np.ndarray):
        return {name: state}
    if isinstance(state, Numbers):
        return {name: state.array}
    return {place: array for key, each in _members(state).items()
            for place, array in arrays_of(each, f"{name}/{key}").items()}


def with_arrays(state: Any, arrays: dict[str, np.ndarray], name: str = "") -> Any:
    """Return a state with *arrays* (by `arrays_of`) in the place of its own."""
    if isinstance(state, np.ndarray):
        return arrays[name]
    if isinstance(state, Numbers):
        return type(state).at(arrays[name])
    members = [with_arrays(each, arrays, f"{name}/{key}") for key, each in _members(state).items()]
    if hasattr(state, "_asdict"):
        return type(state)(*members)
    return type(state)(members) if type(state) in (tuple, list) else state


def _members(state: Any) -> dict[Any, Any]:
    if hasattr(state, "_asdict"):
        return dict(state._asdict())
    return dict(enumerate(state)) if type(state) in (tuple, list) else {}


def in_one_block(state: Any) -> Any:
    """Return a state with copies of its arrays of less than LARGE bytes, which lie one behind another.

    Arrays that share memory do so afterwards, columns of records stay where they are in them, and what was one array in
    several places is one.
    """
    arrays = arrays_of(state)
    owners = {_memory(owner): owner for owner in map(_owner, arrays.values())
              if owner.nbytes < LARGE and owner.flags.forc}
    ends = np.cumsum([-(-owner.nbytes // LINE) * LINE for owner in owners.values()], dtype=np.int64)
    block = _at_a_line(int(ends.max(initial=0)))
    places = dict(zip(owners, [0, *ends.tolist()], strict=False))
    for place, owner in zip(places.values(), owners.values(), strict=True):
        held = owner.ravel(order="K").view(np.uint8)
        if held.any():  # what nobody has written to takes no memory yet
            block[place : place + held.size] = held
    moved = {id(array): _moved(array, block, places) for array in arrays.values()}
    return with_arrays(state, {name: moved[id(array)] for name, array in arrays.items()})


def _owner(array: np.ndarray) -> np.ndarray:
    """Return the array whose memory an array is a part of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _memory(owner: np.ndarray) -> tuple[int, int]:
    """Return where an array's memory begins, and its bytes: of a record each place in a state sees another array."""
    return owner.ctypes.data, owner.nbytes


def _at_a_line(size: int) -> np.ndarray:
    """Return uint8[size], zeros that begin where a line of the cache does."""
    block = np.zeros(size + LINE, np.uint8)
    first = -block.ctypes.data % LINE
    return block[first : first + size]


def _moved(array: np.ndarray, block: np.ndarray, places: dict[tuple[int, int], int]) -> np.ndarray:
    """Return the array as it is in *block*, where its owner begins at one of *places*; itself, if at none or empty."""
    owner = _owner(array)
    if _memory(owner) not in places or array.size == 0:
        return array
    place = places[_memory(owner)] + array.ctypes.data - owner.ctypes.data
    moved = np.ndarray(array.shape, array.dtype, block, place, array.strides)
    moved.flags.writeable = array.flags.writeable
    return moved
