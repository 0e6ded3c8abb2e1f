"""Hands signals to the main thread one after the other.

They are not blocked and waited for, as `sigtimedwait` would have it: libraries have threads of their own, which do not
block them, and get them.
"""
import os
import select
import signal
from types import FrameType, TracebackType
from typing import Any

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Signals:
    """Within its context, signals of ENDS are noted, and `wait` returns them; that a child has ended ends a wait."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        self.awake, self.waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.woken_before = signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        self.before = {number: signal.signal(number, self._note) for number in (*ENDS, signal.SIGCHLD)}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self.woken_before)
        os.close(self.awake)
        os.close(self.waker)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number in ENDS:
            self.came.append(number)

    def wait(self, seconds: float) -> int:
        """Return the next signal that tells to end; 0 where none comes within some seconds, or a child has ended."""
        if not self.came and select.select([self.awake], [], [], seconds)[0]:
            os.read(self.awake, 4096)
        return self.came.pop(0) if self.came else 0
