"""States by address, so that kernels compiled apart work on the same tables.

A state is a NamedTuple of arrays, records, numbers, such tuples, and lists of states of one type. To hand it to a
compiled function as it is copies every number of every array, at each call. A kernel that is called for every message
is given one number instead, the address of the state's words; it passes addresses on, and reads an attribute where it
is used.

The words (int64) of an array are its address, its shape and its strides; a record is one word, its address, and a
number is one, itself; a tuple's words are those of its members, and a list is the address of its states' words, one
state behind the other. They are written once, and never change: arrays and records are changed in place. In plain
Python a state is itself.

A state by address may be given to a function that takes it as it is, such as a user's policy: all is read then.
"""
from collections.abc import Callable
from ctypes import addressof
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof, types

from subak.kernels.switch import is_fast
from subak.records import Numbers

if is_fast():
    from subak.kernels.numba_internals.addresses import StateAt, StatesAt
else:  # nothing is compiled for addresses
    StateAt = StatesAt = None  # type: ignore[misc, assignment]


def type_of(state: object) -> types.Type:
    """Return the type of a state, to compile for its address. Raises TypeError where states of a list differ."""
    if isinstance(state, tuple):
        kinds = [type_of(each) for each in state]
        return types.NamedTuple(kinds, type(state)) if hasattr(state, "_fields") else types.Tuple(kinds)
    if isinstance(state, list):
        kind, *others = {type_of(each) for each in state}
        if others:
            raise TypeError(f"states of a list must be of one type, not {len(others) + 1}")
        return StatesAt(kind)
    return typeof(state)


def typed(value: object, by: Callable[[object], types.Type] = typeof) -> types.Type:
    """Return the type that *by* finds for a value; found once for all that are alike, as it takes Numba 50 ms."""
    key = by, _kind(value)
    if key not in TYPES:
        TYPES[key] = by(value)
    return TYPES[key]


TYPES: dict[Any, Any] = {}


def _kind(value: Any) -> Any:
    """Return all that Numba types a value by."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        return value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    if isinstance(value, tuple):
        return type(value), *map(_kind, value)
    return (list, *dict.fromkeys(map(_kind, value))) if isinstance(value, list) else type(value)


# -- the words ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Addressed:
    """A state and its words, which hold as long as this does."""

    state: Any
    words: np.ndarray  # int64[word]
    inner: tuple[np.ndarray, ...]  # int64[state, word] of its lists

    @property
    def address(self) -> int:
        """Where the words are."""
        return self.words.ctypes.data


def addressed(state: object) -> Addressed:
    """Write the words of a state. Raises TypeError where it holds something else."""
    inner: list[np.ndarray] = []
    return Addressed(state, np.array(_words(state, inner), np.int64), tuple(inner))


class At:
    """A state, as Python hands its address to a compiled function that Numba calls."""

    def __init__(self, state: Any, kind: StateAt) -> None:
        self.held = addressed(state)
        self.address = self.held.address
        self._numba_type_ = kind


def _words(value: Any, inner: list[np.ndarray]) -> list[int]:
    if isinstance(value, tuple):
        return [word for each in value for word in _words(each, inner)]
    if isinstance(value, list):
        words = np.array([_words(each, inner) for each in value], np.int64)
        inner.append(words)
        return [words.ctypes.data]
    if isinstance(value, np.ndarray):
        return [value.ctypes.data, *value.shape, *value.strides]
    if isinstance(value, Numbers):
        return [addressof(value)]
    if isinstance(value, float | np.float64):
        return [int(np.float64(value).view(np.int64))]
    if isinstance(value, int | np.integer):
        return [int(value)]
    raise TypeError(f"a state holds arrays, records, numbers, tuples and lists of states, no {type(value).__name__}")


__all__ = ["Addressed", "At", "StateAt", "StatesAt", "addressed", "type_of", "typed"]
