"""Limits of persons and queues: what a file says, and what is in use at a global master."""
from collections.abc import Iterator

from msgspec import Struct

NO_LIMIT = 0


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """What one person, or one queue, may have or do at one global master; 0: as much as it likes."""

    jobs: int = NO_LIMIT  # that are open
    tasks: int = NO_LIMIT  # of jobs that are open
    submissions_per_s: float = NO_LIMIT  # in the mean; as many may come at once
    job_file_bytes: int = NO_LIMIT

    def is_sound(self) -> bool:
        """Whether none is below zero, or no number."""
        return all(0 <= getattr(self, name) < float("inf") for name in Limits.__struct_fields__)


class PeopleLimits(Limits, frozen=True, forbid_unknown_fields=True):
    """Those of each person; *people*: others, for some, in place of all of these."""

    people: dict[str, Limits] = {}

    def of(self, person: str) -> Limits:
        """Return the limits of a person."""
        return self.people.get(person, self)


class InUse:
    """How many open jobs, and tasks of those, each person and each queue has, with all queues below it."""

    def __init__(self) -> None:
        self.of_person: dict[str, tuple[int, int]] = {}
        self.of_queue: dict[str, tuple[int, int]] = {}

    def note(self, person: str, queue: str, jobs: int, tasks: int) -> None:
        """Note that so many more are open, or fewer, below zero."""
        _count(self.of_person, person, jobs, tasks)
        for path in upwards(queue):
            _count(self.of_queue, path, jobs, tasks)


def _count(counts: dict[str, tuple[int, int]], name: str, jobs: int, tasks: int) -> None:
    before = counts.get(name, (0, 0))
    counts[name] = before[0] + jobs, before[1] + tasks
    if counts[name] == (0, 0):
        del counts[name]


def upwards(queue: str) -> Iterator[str]:
    """Yield a queue, and those that it is in, up to the first part of its path."""
    while queue:
        yield queue
        queue = queue.rpartition("/")[0]
