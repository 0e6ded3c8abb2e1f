"""Measures how long the event loop of a process was blocked."""
import asyncio

EVERY_S = 0.02  # between two looks
SPAN_S = 60.0  # the longest of the last one to two spans is told


class Held:
    """Asks to be called every now and then, and notes how much later than that it is."""

    def __init__(self) -> None:
        self.longest = 0.0  # seconds, ever
        self.before = self.now = 0.0  # the longest of the former span, and of this one
        self.until = 0.0  # when this span ends
        self.timer: asyncio.TimerHandle | None = None

    @property
    def lately(self) -> float:
        """The longest of the last minute or two, in seconds."""
        return max(self.before, self.now)

    def start(self) -> None:
        """Begin to look, in the running event loop."""
        loop = asyncio.get_running_loop()
        self.until = loop.time() + SPAN_S
        self._look_again(loop)

    def stop(self) -> None:
        """Look no more."""
        if self.timer is not None:
            self.timer.cancel()

    def note(self, now: float, due: float) -> None:
        """Note that a call that was *due* comes *now*."""
        if now >= self.until:
            self.before, self.now, self.until = self.now, 0.0, now + SPAN_S
        self.now = max(self.now, now - due)
        self.longest = max(self.longest, self.now)

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self.timer = loop.call_later(EVERY_S, self._look, loop, loop.time() + EVERY_S)

    def _look(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self.note(loop.time(), due)
        self._look_again(loop)
