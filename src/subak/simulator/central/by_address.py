"""Compiles a loop with its states by address, or as tuples.

By address it is compiled in half of the time, and most are as fast or faster. Where a policy is asked for most of what
happens, all tables that it takes are read for each call, which the compiler otherwise does once: gangs and reservations
lose 6 % (and are compiled in 12 s in the place of 27), Tetris lost 8 %, which is given them as they are.
"""
from collections.abc import Callable
from typing import Any

from subak.kernels import kernel
from subak.kernels.state import At, StateAt, type_of, typed


def by_address(engine: Callable[..., Callable[..., int]], *states: object) -> Callable[..., int]:
    """Return a loop that is called with states as they are, and whatever else it takes, and compiled for addresses.

    *engine* compiles it, for the types of all that are tuples among *states*; what it is called with later must be of
    these types.
    """
    if kernel.SETTINGS.DISABLE_JIT:
        return engine(*(None for each in states if isinstance(each, tuple)))
    if not kernel.by_address():
        return as_they_are(engine, *states)
    kinds: list[Any] = [StateAt(typed(each, type_of)) if isinstance(each, tuple) else None for each in states]
    run = engine(*(kind for kind in kinds if kind is not None))

    last: list[At | None] = [None for _ in kinds]  # a state is called with again and again

    def at(place: int, state: object) -> At:
        found = last[place]
        if found is None or found.held.state is not state:
            found = last[place] = At(state, kinds[place])
        return found

    def loop(*arguments: object) -> int:
        return run(*(at(place, each) if place < len(kinds) and kinds[place] is not None else each
                     for place, each in enumerate(arguments)))

    return loop


def as_they_are(engine: Callable[..., Callable[..., int]], *states: object) -> Callable[..., int]:
    """Return a loop that is called with states and compiled for them as they are; see `by_address`."""
    return engine(*(typed(each) for each in states if isinstance(each, tuple)))
