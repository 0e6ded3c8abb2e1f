"""For which federation a store was written: numbers of jobs and tasks mean something else in another.

The number of a job is that of its global master plus a multiple of how many there are, and the number of a task is the
job's times the places that a master has. With a global master more, jobs would vanish or appear under other queues.
"""
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import msgpack

from subak.errors import RunError


class WrittenFor(NamedTuple):
    """What numbers of jobs and tasks depend on."""

    number: int  # of the global master
    global_masters: int
    places: int  # for open tasks

    def words(self) -> str:
        """Return it in words."""
        return (f"global master {self.number + 1} of {self.global_masters}, with room for {self.places:,} open tasks "
                "([rooms] tasks)")


def refuse_another(body: bytes | None, disk: Mapping[str, Mapping[Any, bytes]], now: WrittenFor) -> None:
    """Raise RunError where a store has jobs, and was written for another federation than *now*."""
    if not any(disk.get(table) for table in ("job", "ended", "client")):
        return
    before = WrittenFor(*msgpack.decode(body)).words() if body is not None else "a former version of subak"
    raise RunError(f"the store was written for {before}; the file of the federation now makes this {now.words()}, in "
                   "which the numbers of its jobs mean others. Put the former file back, or begin with another folder")
