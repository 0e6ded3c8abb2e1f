"""Runs work on threads and yields the results in the order in which the work was given.

It pays for what lets the interpreter go: NumPy on long arrays, polars, kernels, files.
"""
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def in_order(
    work: Callable[..., Result], asked: Iterable[tuple[object, ...]], threads: int
) -> Generator[Result, None, None]:
    """Yield what *work* makes of each of *asked* (its arguments), of which *threads* and one more are under way."""
    ahead: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for arguments in asked:
            ahead.append(pool.submit(work, *arguments))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


@contextmanager
def one_by_one(ahead: int = 1) -> Iterator[Callable[..., None]]:
    """Give what lets a thread do something after what it was told before; at most *ahead* of it waits.

    In the end all has been done. What one raised is raised by whoever comes next.
    """
    told: deque[Future[object]] = deque()

    def tell(work: Callable[..., object], *arguments: object) -> None:
        told.append(pool.submit(work, *arguments))
        while len(told) > ahead + 1:
            told.popleft().result()

    with ThreadPoolExecutor(1) as pool:
        try:
            yield tell
        except BaseException:
            for each in told:
                each.cancel()
            raise
        while told:
            told.popleft().result()
