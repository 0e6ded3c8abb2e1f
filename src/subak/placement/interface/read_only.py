"""Gives a user's policy read-only views of the run's arrays, and a way back for `claim`.

Fleet, tasks and claims are handed over as read-only arrays, so that a policy which writes to one does not compile.
Compiled, a view is the same words under another type and costs nothing; in plain Python it is an array that refuses to
be written to. The run's random numbers stay writable: to draw one is to change their state. Run times are not handed
over at all: their estimates stand in their places.
"""
from typing import Any, TypeVar

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from subak.marks import inlined
from subak.workload.tasks import Tasks

State = TypeVar("State")

STAYS_WRITABLE = frozenset({"random"})


def read_only_type(kind: types.Type) -> types.Type:
    """Return the type of an array, or of a tuple of arrays, as a policy sees it."""
    return _retyped(kind, readonly=True)


def read_only(state: State) -> State:
    """Return *state*, an array or a named tuple of arrays, as what can only be read."""
    return _views(state, writable=False)


def writable(state: State) -> State:
    """Return what *state* was before `read_only`; for functions that check what they write."""
    return _views(state, writable=True)


@inlined
def as_told(tasks: Tasks) -> Tasks:
    """Return the tasks as a policy may know them: with the estimates for run times, which only the engine knows."""
    return Tasks(tasks.arrival, tasks.estimate, tasks.estimate, tasks.rank, tasks.shape, tasks.request,
                 tasks.constraint_set)


def _views(state: Any, writable: bool) -> Any:
    if isinstance(state, np.ndarray):
        view = state.view()
        view.flags.writeable = writable
        return view
    return type(state)(*(
        _views(value, writable) if isinstance(value, np.ndarray) and name not in STAYS_WRITABLE else value
        for name, value in zip(state._fields, state, strict=True)
    ))


def _retyped(kind: Any, readonly: bool) -> Any:
    if isinstance(kind, types.Array):
        return kind.copy(readonly=readonly)
    fields = zip(kind.instance_class._fields, kind.types, strict=True)
    return types.NamedTuple(
        [_retyped(field, readonly) if isinstance(field, types.Array) and name not in STAYS_WRITABLE else field
         for name, field in fields], kind.instance_class)


def _cast(readonly: bool) -> Any:
    """Return what gives a value the other type; both have the same words in memory."""

    @intrinsic
    def cast(_context: Any, state: Any) -> Any:
        return _retyped(state, readonly)(state), lambda _context, _builder, _signature, arguments: arguments[0]

    return cast


_to_read_only, _to_writable = _cast(readonly=True), _cast(readonly=False)


@overload(read_only, strict=False)
def _read_only(state: Any) -> Any:
    def cast(state: Any) -> Any:
        return _to_read_only(state)

    return cast


@overload(writable, strict=False)
def _writable(state: Any) -> Any:
    def cast(state: Any) -> Any:
        return _to_writable(state)

    return cast
