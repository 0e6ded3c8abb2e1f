"""Ends a command early: with its exit code, or on Ctrl-C while modules load."""
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from subak import exit_codes

INTERRUPTION = "interrupted; nothing was written"
# What the extra `live` installs.
OF_LIVE = ("yaml", "litestar", "uvicorn", "httptools", "uvloop", "cryptography", "prometheus_client")


class CommandEndedError(Exception):
    """The command has said all it has to say, and ends with an exit code, such as that of a task."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def without_live(lacking: Iterable[str]) -> str:
    """Return what to say where a module of the extra `live` is not installed."""
    return (f"a live federation needs {', '.join(lacking)}, which the extra `live` installs: pip install "
            "'subak[live]', or in a clone pip install '.[live]'")


@contextmanager
def loading() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the process at once: an import that an exception cuts short may say anything.

    For what loads before a command has begun, and so has nothing to clear away.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = callable(signal.getsignal(signal.SIGINT))  # not where a shell told us to ignore it
    before = {number: signal.signal(number, _end)
              for number in ((signal.SIGINT, signal.SIGTERM) if heard else (signal.SIGTERM,))}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: object) -> None:
    if number == signal.SIGINT:
        os.write(2, f"subak: {INTERRUPTION}\n".encode())
    os._exit(exit_codes.INTERRUPTED if number == signal.SIGINT else exit_codes.EXIT_ENDED)
