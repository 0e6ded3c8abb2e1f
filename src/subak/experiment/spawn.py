"""Starts Python processes for runs, and makes sure that they end with the program."""
import fcntl
import functools
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import ModuleType

from subak.errors import RunError

LOG = "subak"  # the logger of what is to be said beside results and errors
NOTICE_BYTES = 3_000  # of a text between processes: a pipe takes as many at once
HEARD_S = 1.0  # for what was said last, when a pool ends
CONTEXT = multiprocessing.get_context("spawn")  # to fork a program with threads, such as those of polars, may hang
_ONE = threading.Lock()  # held by who starts a process


def new_pool(processes: int, begin: Callable[..., None], *told: object) -> ProcessPoolExecutor:
    """Return a pool of processes, each of which calls *begin* with the lifeline and what is *told*.

    Raises RunError where the system has no semaphores, which are files in /dev/shm.
    """
    try:
        return _Pool(processes, begin, *told)
    except (OSError, ImportError) as error:
        raise RunError(f"no processes can be started for runs: {error}; Python needs semaphores for that, which are "
                       "files in /dev/shm") from None


class _Pool(ProcessPoolExecutor):
    """Processes whose notices this process says, each once: what all of them have to say is one line."""

    def __init__(self, processes: int, begin: Callable[..., None], *told: object) -> None:
        heard, self._notices = CONTEXT.Pipe(duplex=False)
        super().__init__(processes, CONTEXT, functools.partial(_begun, begin, self._notices, lifeline(), *told))
        self._listener = threading.Thread(target=_hear, args=(heard,), daemon=True)
        self._listener.start()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes, as pools do, and say what they said last."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        self._notices.close()  # that of the last process ends the listener
        if wait:
            self._listener.join(HEARD_S)


class _Forward(logging.Handler):
    """Sends what is said to the first process: only one may write to the terminal."""

    def __init__(self, notices: "Connection[object, object]") -> None:
        super().__init__()
        self.notices = notices

    def emit(self, record: logging.LogRecord) -> None:
        self.notices.send_bytes(record.getMessage().encode()[:NOTICE_BYTES])


def _begun(begin: Callable[..., None], notices: "Connection[object, object]", *told: object) -> None:
    """Begin in a process of a pool."""
    logging.getLogger(LOG).addHandler(_Forward(notices))
    begin(*told)


def _hear(heard: "Connection[object, object]") -> None:
    said = set[str]()
    with suppress(EOFError):
        while True:
            text = heard.recv_bytes().decode(errors="replace")
            if text not in said:
                said.add(text)
                logging.getLogger(LOG).warning(text)


@contextmanager
def starting() -> Iterator[None]:
    """Start processes inside this: they never hear Ctrl-C, which is for the program, and do not run its file.

    A process would run the file of the program first: nothing of it is needed, and it may start us.
    """
    resource_tracker.ensure_running()  # starting it lets signals through again, so not while a process is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited, and kept through its imports
    with _ONE:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def lifeline() -> "Connection[object, object]":
    """Return the end of a pipe that a process is handed: nobody writes to it, and it closes when the program ends."""
    return _pipe()[0]


@functools.cache
def _pipe() -> "tuple[Connection[object, object], Connection[object, object]]":
    return multiprocessing.Pipe(duplex=False)


def end_with(line: "Connection[object, object]") -> None:
    """Let the kernel kill this process, whatever it does, when the program closes the other end of its lifeline.

    A thread that waits for that end would need the interpreter, which a solver may hold for minutes; and a process that
    asks to die with its parent dies with the thread that started it.
    """
    if sys.platform == "linux":
        # Opened anew, since whom to signal is kept with what was opened, and processes were handed the same.
        own = os.open(f"/proc/self/fd/{line.fileno()}", os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(own, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    if wait([line], 0):  # it ended before
        os._exit(1)
