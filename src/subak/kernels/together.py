"""Compiles the kernels of a run in parallel processes, through their shared cache.

A process is told by a pickle on its standard input where the package is found, which functions it is to compile, and
for which signatures; it says nothing. What it could not do is compiled where it is needed, and any fault is said there.
"""
import contextlib
import importlib
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from subak.kernels.files import kernel_folder
from subak.kernels.kernel import by_address, is_compiled, kernel_of
from subak.kernels.switch import is_fast
from subak.threads import usable_cores

if is_fast():
    from subak.kernels.numba_internals.key import reached_from

CHILD = """import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from subak.kernels.together import compile_told
compile_told()
"""
Job = tuple[Any, Callable[..., Any]]  # a signature, and the function to compile for it


def kernels_of(jobs: list[Job]) -> list[Callable[..., int]]:
    """Return the compiled function of each job, as `kernel_of` does."""
    missing = [] if not by_address() or kernel_folder() is None else [
        job for job in jobs if not is_compiled(job[1].__name__)]
    mine, *others = _shared_out(missing, min(usable_cores(), len(missing)))
    with _compiling(others):
        for signature, function in mine:
            kernel_of(signature, function)
    return [kernel_of(signature, function) for signature, function in jobs]


def _shared_out(jobs: list[Job], processes: int) -> list[list[Job]]:
    """Return the jobs of each process, the longest first, to whoever has least to do."""
    shares: list[list[Job]] = [[] for _ in range(max(processes, 1))]
    for job in sorted(jobs, key=_length, reverse=True):
        min(shares, key=lambda share: sum(_length(each) for each in share)).append(job)
    return shares


def _length(job: Job) -> int:
    """Return the bytes of bytecode that are compiled into a function: what it takes grows with them."""
    function: Any = job[1]
    assert isinstance(function, FunctionType)
    return sum(len(each.__code__.co_code) for each in reached_from(function))


@contextlib.contextmanager
def _compiling(shares: list[list[Job]]) -> Iterator[None]:
    """Let a process compile each share meanwhile; wait for all at the end, and end them where something is raised."""
    children = [_started(share) for share in shares]
    try:
        yield
        for child in children:
            child.wait()
    finally:
        for child in children:
            child.kill()
            child.wait()


def _started(share: list[Job]) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    told = [(function.__module__, function.__name__, signature) for signature, function in share]
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError), child.stdin:
        child.stdin.write(pickle.dumps(sys.path) + pickle.dumps(told))
    return child


def compile_told() -> None:
    """Compile what standard input tells, in a process of `kernels_of`."""
    for module, name, signature in pickle.load(sys.stdin.buffer):
        kernel_of(signature, getattr(importlib.import_module(module), name))
