"""The guard: the parent of an agent, which kills the agent's processes if it dies, and then ends.

A parent-death signal on each attempt would be the usual way. It reaches only an attempt's first process, is forgotten
when a program changes its user, and setting it takes a `fork` in Python or a program that is executed before each
command, which costs as much as the attempt's process itself (decision 26). The guard is a *subreaper*: what has lost
its parents becomes its child, in whatever session it is, so nothing of the agent's escapes it. If the guard dies, the
agent kills everything, and ends; if both are killed at once, the next agent finds what they left.
"""
import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from subak.live.agent.processes.proc import kill_children

GUARD_DIED = signal.SIGUSR1  # to the agent
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
LOCK_S = 10.0  # to wait for a former agent's guard, which may still be at work
KILL_S = 60.0
_libc = ctypes.CDLL(None, use_errno=True)


def watch_over(work: Callable[[], None]) -> int:
    """Do *work* in a child; when it is over, kill all that it left; return its exit code."""
    me = os.getpid()
    _control(PR_SET_CHILD_SUBREAPER, 1)
    ends = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    child = os.fork()
    if child == 0:
        _control(PR_SET_PDEATHSIG, GUARD_DIED)
        _control(PR_SET_CHILD_SUBREAPER, 1)
        signal.signal(signal.SIGHUP, lambda *_: None)  # not SIG_IGN, which attempts would inherit
        _end_with(work if os.getppid() == me else lambda: None, ends)
    for number in ends:
        signal.signal(number, lambda *_: os.kill(child, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            break
    kill_children(KILL_S)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_with(work: Callable[[], None], blocked: tuple[signal.Signals, ...]) -> None:
    """Do *work*, and end this process."""
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        work()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def lock(file: Path) -> int:
    """Take the lock of a state folder, for as long as this process lives; -1 where another keeps it."""
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return number
        except OSError:
            if time.monotonic() > until:
                os.close(number)
                return -1
        time.sleep(0.01)


def _control(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl: {os.strerror(number)}")
