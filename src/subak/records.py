"""Declares records of numbers, whose fields kernels and plain Python read and write by name.

A record is a class of annotated fields, each `int` (an int64 in memory) or `float` (a float64), all zero at first. The
declaration is all there is: Python has an attribute for each field, compiled functions a place in memory, and NumPy
sees the same memory as `array`. Records stand among the arrays of a state, are changed in place and never replaced.
(docs/decisions/0086)
"""
import ctypes
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

_KINDS = {int: ctypes.c_int64, float: ctypes.c_double}
if TYPE_CHECKING:
    from _ctypes import _PyCStructType as Structured
else:
    Structured = type(ctypes.Structure)


class _Declared(Structured):
    """Makes the fields of a record of its annotations, and lets it have no other attributes."""

    def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, object]) -> type:
        made: type = super().__new__(cls, name, bases, {**space, "__slots__": ()})
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, object]) -> None:  # noqa: N805
        super().__init__(name, bases, space)
        cls._fields_ = [(field, _KINDS[kind]) for field, kind in cls.__annotations__.items()]


class Numbers(ctypes.Structure, metaclass=_Declared):
    """A record; subclasses declare its fields."""

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        """Return what copies of it, in this process or another, are made of."""
        return type(self), self.values()

    def values(self) -> tuple[Any, ...]:
        """Return its numbers, in the order of the fields."""
        return tuple(getattr(self, name) for name in type(self).__annotations__)

    def write(self, *values: float) -> None:
        """Take on numbers, in the order of the fields."""
        for name, value in zip(type(self).__annotations__, values, strict=True):
            setattr(self, name, value)

    @property
    def data(self) -> memoryview:
        """Its memory, by which Numba finds it."""
        return memoryview(self)

    @property
    def array(self) -> np.ndarray:
        """Its memory as an array of one, with the names of its fields."""
        return np.frombuffer(self.data, dtype_of(type(self)))

    @classmethod
    def at(cls, array: np.ndarray) -> Self:
        """Return the record whose memory is that of an array of one."""
        return cls.from_buffer(array.view(np.uint8).data)


Record = TypeVar("Record", bound=Numbers)


def total(records: Sequence[Record]) -> Record:
    """Return the sums of the fields of some records, of which there is one at least."""
    return type(records[0])(*map(sum, zip(*(each.values() for each in records), strict=True)))


@functools.cache
def dtype_of(record: type[Numbers]) -> np.dtype:
    """Return how NumPy sees a class of records."""
    kind: np.dtype = np.dtype(record)
    return kind
