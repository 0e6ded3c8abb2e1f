"""Decides how long ended jobs are kept: by age, and by their bytes on disk."""
import asyncio
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import MsgspecError

from subak.errors import RunError, StoreUnfitError
from subak.live.config import HistoryEntry
from subak.live.role.global_master.rows import read_ended

SWEEP_S = 60.0  # between two looks
SLICE = 64  # jobs that are read, or deleted, at once


class Bodies(Protocol):
    """Where jobs are kept that have ended."""

    def bodies(self, table: str, keys: Iterable[int | str]) -> dict[int | str, bytes]:
        """Return what is kept of those that are there."""


class Keeper:
    """Deletes jobs that ended too long ago, and the earliest where they take too many bytes, a slice at a time.

    *ended* returns the numbers of all jobs that are kept; *forget* deletes some; *say* is told what goes wrong.
    """

    def __init__(self, entry: HistoryEntry, store: Bodies, ended: Callable[[], Iterable[int]],
                 forget: Callable[[Sequence[int]], None], say: Callable[[str], None]) -> None:
        self.keep_s, self.bytes_max = entry.keep_s(), entry.bytes
        self.store, self.ended, self.forget, self.say = store, ended, forget, say
        self.known: dict[int, tuple[float, int]] = {}  # when a job ended, and the bytes that it takes

    async def run(self) -> None:
        """Sweep now and then, for ever."""
        while True:
            try:
                await self.sweep(time.time())
            except (sqlite3.Error, MsgspecError, ValueError, RunError) as error:
                self.say(f"old jobs are not deleted now: {error}")
            await asyncio.sleep(SWEEP_S)

    async def sweep(self, now: float) -> None:
        """Delete what is not to be kept at *now*, a Unix time."""
        there = set(self.ended())
        for number in self.known.keys() - there:
            del self.known[number]
        for part in _slices(sorted(there - self.known.keys())):
            self.known |= await asyncio.to_thread(self._read, part)
        for part in _slices(self.due(now)):
            self.forget(part)
            for number in part:
                del self.known[number]
            await asyncio.sleep(0)

    def due(self, now: float) -> list[int]:
        """Return the jobs that are not to be kept, those first that ended first."""
        left, found = sum(size for _, size in self.known.values()), []
        for number, (ended, size) in sorted(self.known.items(), key=lambda each: (each[1][0], each[0])):
            if ended >= now - self.keep_s and left <= self.bytes_max:
                break
            left -= size
            found.append(number)
        return found

    def _read(self, numbers: Sequence[int]) -> dict[int, tuple[float, int]]:
        """Return when jobs ended and what they take; those that are on their way to the disk are read next time.

        A job that is damaged on disk is left there, for whoever mends it.
        """
        try:
            bodies = self.store.bodies("ended", numbers)
        except StoreUnfitError as error:
            if len(numbers) > 1:
                return {number: found for each in numbers for number, found in self._read([each]).items()}
            self.say(f"an old job is never deleted: {error}")
            return {numbers[0]: (math.inf, 0)}
        return {int(number): (float(read_ended(body)[2]["ended"].max()), len(body)) for number, body in bodies.items()}


def _slices(numbers: Sequence[int]) -> Iterable[Sequence[int]]:
    return (numbers[first:first + SLICE] for first in range(0, len(numbers), SLICE))
