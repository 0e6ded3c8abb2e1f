"""When Python looks for garbage: not while modules load or kernels compile, of which nothing is, nor at the end.

Of the second that the libraries take to load, a fifth went into looking, and a quarter of a second more into looking
once again before the process ended.
"""
import atexit
import contextlib
import gc
from collections.abc import Iterator


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


def end_without_collection() -> None:
    """Let no garbage be looked for when this process ends: its memory goes back as a whole."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
