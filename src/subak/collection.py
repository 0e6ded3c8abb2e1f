"""When Python looks for garbage: not while modules load, of which nothing is, nor at the end; seldom in a compiler.

Of the second that the libraries take to load, a fifth went into looking, and a quarter of a second more into looking
once again before the process ended. Of what Numba makes of a kernel most is garbage soon: left lying it is 200 MB for
an engine, scattered so that Python gives little of it back.
"""
import atexit
import contextlib
import gc
from collections.abc import Iterator

SELDOM = (20_000, 5, 5)  # new objects, and rounds of them, before a generation is looked through


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Let no garbage be looked for meanwhile."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextlib.contextmanager
def seldom_collection() -> Iterator[None]:
    """Let garbage be looked for meanwhile, after so many objects that it takes no time to speak of."""
    collects, usual = gc.isenabled(), gc.get_threshold()
    gc.set_threshold(*SELDOM)
    gc.enable()
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        if not collects:
            gc.disable()


def end_without_collection() -> None:
    """Let no garbage be looked for when this process ends: its memory goes back as a whole."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
