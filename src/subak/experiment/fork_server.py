"""How processes of runs begin: forked by a server that has loaded most of what a run needs, and that computes nothing.

The server is that of `multiprocessing`. It is started for the first process that is asked for, and ends with the
program. What its callers have may have changed since: a process is told of it. Where variables differ that are read but
once, while Python and its libraries load, and where there is no such server, a process loads everything for itself.
"""
import fcntl
import functools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from types import ModuleType
from typing import Any, NamedTuple

from subak.errors import RunError

PRELOADED = "subak.experiment.preloaded"
# How the names of variables begin that are read but once, while Python, C's library and what is preloaded load.
READ_ONCE = ("PYTHON", "NUMBA_", "LLVM", "NPY_", "NUMPY_", "SCIPY_", "OPENBLAS_", "GOTO_", "OMP_", "MKL_", "LD_",
             "GLIBC_", "MALLOC_", "LC_", "LANG", "TZ")


class Caller(NamedTuple):
    """What a process is told of the one that asked for it."""

    variables: dict[str, str]
    lifeline: "Connection[Any, Any]"  # nobody writes to it; it is at its end when the caller is


def process_context() -> ForkServerContext | SpawnContext:
    """Return how a process is started that shall find the variables of this one: forked, or anew."""
    # Elsewhere libraries of the system may not survive a fork.
    if sys.platform == "linux" and _read_once() == _of_the_server():
        return multiprocessing.get_context("forkserver")
    return multiprocessing.get_context("spawn")


@functools.cache
def _of_the_server() -> dict[str, str]:
    """Return the variables that the server is started with, which is to be started next."""
    multiprocessing.get_context("forkserver").set_forkserver_preload([PRELOADED])
    return _read_once()


def _read_once() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(READ_ONCE)}


def new_pool(processes: int, begin: Callable[..., None], *told: object) -> ProcessPoolExecutor:
    """Return a pool of processes, each of which begins with *told*, and what it is told of this one before it.

    Raises RunError where the system has no semaphores, which are files in /dev/shm.
    """
    try:
        return ProcessPoolExecutor(processes, process_context(), begin, (caller(), *told))
    except (OSError, ImportError) as error:
        raise RunError(f"no processes can be started for runs: {error}; Python needs semaphores for that, which are "
                       "files in /dev/shm") from None


@contextmanager
def starting() -> Iterator[None]:
    """Let processes that are started meanwhile never hear Ctrl-C, which is for this one, nor run the program's file.

    The file of the program is what a process would run first: nothing of it is needed, and it may start us.
    """
    resource_tracker.ensure_running()  # starting it lets signals through again, so not while a process is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited, and kept through its imports
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def caller(environment: Mapping[str, str] | None = None) -> Caller:
    """Return what a process is told of this one: its variables, and those of *environment* beside them."""
    return Caller({**os.environ, **(environment or {})}, _lifeline()[0])


@functools.cache
def _lifeline() -> "tuple[Connection[Any, Any], Connection[Any, Any]]":
    """Return both ends of the pipe that ends with this process."""
    return multiprocessing.Pipe(duplex=False)


def take_over(told: Caller) -> None:
    """Take the variables of the caller over, and end when it does: nobody would hear of a job any more."""
    os.environ.clear()
    os.environ.update(told.variables)
    end_with(told.lifeline)


def end_with(lifeline: "Connection[Any, Any]") -> None:
    """Let the kernel kill this process, whatever it does, when the pipe's other end is closed.

    The parent of a process that was forked is the server, which lives as long as somebody whom it forked.
    """
    if sys.platform == "linux":
        # Opened anew, since whom to signal is kept with what was opened, and processes were handed the same.
        own = os.open(f"/proc/self/fd/{lifeline.fileno()}", os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(own, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    if wait([lifeline], 0):  # it ended before
        os._exit(1)
