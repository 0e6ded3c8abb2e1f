"""Reports the progress of a row of simulations, two at a time in threads.

The engine lets other threads run beside it, so that two runs on one workload share its tables and use two cores.
"""
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from subak.report.number_text import seconds_text
from subak.reproduce.claims import Notify

Key = TypeVar("Key")
Value = TypeVar("Value")
THREADS = 2
TOLD_FROM_S = 5.0  # seconds after which what is left can be told
PART_MIN = 1e-6  # a part of 0 begins a new bar
Part = Callable[[float], None]  # told which part of a simulation is done


class Stopped(Exception):  # noqa: N818  (nothing is wrong)
    """Another simulation has failed, or the program is to end."""


class Course:
    """The simulations in their order, each with a weight, which is about how long it takes."""

    def __init__(self, notify: Notify, parts: list[tuple[str, float]], clock: Callable[[], float] = time.monotonic
                 ) -> None:
        """Begin with nothing done."""
        self.notify, self.parts, self.clock = notify, parts, clock
        self.done = [0.0] * len(parts)  # share of each
        self.total = sum(weight for _, weight in parts)
        self.began, self.lock, self.stop = clock(), threading.Lock(), threading.Event()
        notify(parts[0][0], 0.0)

    def part(self, number: int) -> Part:
        """Return what a simulation tells its progress to."""
        def told(share: float) -> None:
            if self.stop.is_set():
                raise Stopped
            with self.lock:
                self.done[number] = share
            self.say(self.parts[number][0], number)
        return told

    def say(self, words: str, number: int) -> None:
        """Show what is going on: *words*, of the simulation *number*."""
        with self.lock:
            whole = sum(share * weight for share, (_, weight) in zip(self.done, self.parts, strict=True)) / self.total
        self.notify(f"{number + 1} of {len(self.parts)}, {words}{self._left(whole)}", max(whole, PART_MIN))

    def _left(self, whole: float) -> str:
        spent = self.clock() - self.began
        if spent < TOLD_FROM_S or whole <= 0.0 or whole >= 1.0:
            return ""
        return f", about {seconds_text(spent * (1.0 - whole) / whole)} left"


def at_once(tasks: Iterable[Callable[[], tuple[Key, Value]]], stop: threading.Event) -> dict[Key, Value]:
    """Do the tasks, THREADS at a time and begun in their order, and return the pairs that they return.

    When one raises, or Ctrl-C comes, *stop* is set, and that is raised when the others have heard it.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        begun = [pool.submit(each) for each in tasks]
        try:
            wait(begun, return_when=FIRST_EXCEPTION)
            failed = [each.exception() for each in begun if each.done()]
            for error in failed:
                if error is not None:
                    raise error
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return dict(each.result() for each in begun)
