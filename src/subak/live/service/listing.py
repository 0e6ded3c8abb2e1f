"""Lists jobs from a small in-memory summary of each, without looking at tasks."""
import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence

from subak.live.role.global_master.global_role import GlobalRole

JOBS_AT_ONCE = 2_000  # jobs that are looked at in one go, some 4 ms
READ_TOGETHER = 64  # jobs that are read from the disk, and shown, in one go


def numbers_below(role: GlobalRole, below: int, state: str | None) -> list[int]:
    """Return the jobs of lower numbers that may be in a state, the latest first."""
    ended = role.ended if state in (None, "ended") else ()
    numbers = sorted([*ended, *role.book.of_number])  # nearly in order as they are: a set would mix them
    return numbers[:bisect_left(numbers, below)][::-1]


async def chosen(numbers: Sequence[int], may_be: Callable[[int], bool]) -> AsyncIterator[list[int]]:
    """Yield those that *may_be*, READ_TOGETHER of them at most at a time; others are answered in between."""
    for first in range(0, len(numbers), JOBS_AT_ONCE):
        found = [number for number in numbers[first : first + JOBS_AT_ONCE] if may_be(number)]
        for place in range(0, len(found), READ_TOGETHER):
            yield found[place : place + READ_TOGETHER]
            await asyncio.sleep(0)
        await asyncio.sleep(0)
