"""Saves the arrays of a state by name, and loads them into a new one."""

import numpy as np

from subak.kernels.arrays import arrays_of

BYTES_AT_ONCE = 1 << 20  # that are looked through for zeros


def own_arrays(state: object) -> dict[str, np.ndarray]:
    """Return the arrays of a state, each once, though several of its parts share it."""
    seen: dict[tuple[int, tuple[int, ...]], str] = {}
    arrays = {name: array for name, array in arrays_of(state).items() if array.size}
    for name, array in arrays.items():
        seen.setdefault((array.ctypes.data, array.shape), name)
    return {name: arrays[name] for name in seen.values()}


def take_on(state: object, arrays: dict[str, np.ndarray]) -> None:
    """Write *arrays* (by `own_arrays`) into those of a state that was built alike, with as much room or more.

    What is shared stays so, and columns of records stay where they are.
    """
    for name, array in own_arrays(state).items():
        former = arrays[name]
        array[tuple(slice(size) for size in former.shape)] = former


def packed(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays as they are kept: flat, without the zeros behind, since most room is empty; and their shapes."""
    kept: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array).reshape(-1)
        kept[f"{name}:values"], kept[f"{name}:shape"] = flat[: _used(flat)], np.array(array.shape)
    return kept


def unpacked(kept: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays that were `packed`; of other names nothing."""
    arrays: dict[str, np.ndarray] = {}
    for name in [key.removesuffix(":values") for key in kept if key.endswith(":values")]:
        values, shape = kept[f"{name}:values"], kept[f"{name}:shape"]
        flat = np.zeros(int(shape.prod()), values.dtype)
        flat[: values.size] = values
        arrays[name] = flat.reshape(shape)
    return arrays


def _used(flat: np.ndarray) -> int:
    """Return how many items there are up to the last megabyte that is not all zeros."""
    raw = flat.view(np.uint8)
    end = raw.size
    while end > 0 and not raw[max(end - BYTES_AT_ONCE, 0) : end].any():
        end -= BYTES_AT_ONCE
    return -(-max(end, 0) // flat.itemsize)
