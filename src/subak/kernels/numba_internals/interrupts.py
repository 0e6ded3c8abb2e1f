"""Lets Ctrl-C interrupt a compilation at once, except while LLVM calls Python back.

LLVM hands the machine code that it has made to a function in Python, and asks another for what it made before. What is
raised there is lost: the kernel would be without its code, and the process might die of SIGSEGV. A signal that comes
while LLVM works, for seconds, is heard when it is Python's turn again, which may be just there.
"""
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from llvmlite.binding import ExecutionEngine

CALLED_BY_LLVM = {ExecutionEngine._raw_object_cache_notify.__code__,
                  ExecutionEngine._raw_object_cache_getbuffer.__code__}


@contextmanager
def heard_outside_of_llvm() -> Iterator[None]:
    """Let handlers of SIGINT and SIGTERM that would run while LLVM calls Python run at the end instead."""
    if threading.current_thread() is not threading.main_thread():  # no other runs handlers
        yield
        return
    late: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if _is_called_by_llvm(frame):
            late.append(number)
        else:
            before[number](number, frame)

    before: dict[int, Callable[[int, FrameType | None], object]] = {
        number: handler for number in (signal.SIGINT, signal.SIGTERM)
        if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in late[:1]:
            before[number](number, None)


def _is_called_by_llvm(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code not in CALLED_BY_LLVM:
        frame = frame.f_back
    return frame is not None
