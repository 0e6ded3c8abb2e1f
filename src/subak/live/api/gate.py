"""Refuses submissions beyond the limits of a person or a queue, with what is used and what is allowed.

How fast somebody submits is looked at before a job file is read, so refusing a flood costs little.
"""
from collections.abc import Iterator, Mapping

from subak.live.api.errors import LimitedError, RefusedError, TooLargeError
from subak.live.people.limits import InUse, Limits, PeopleLimits, upwards

BUCKETS_MAX = 4096  # that are kept; of those that are full nothing is to be remembered


class Gate:
    """The limits of a global master: of persons, and of queues by their paths."""

    def __init__(self, people: PeopleLimits | None = None, queues: Mapping[str, Limits] | None = None) -> None:
        self.people, self.queues = people or PeopleLimits(), queues or {}
        self.left: dict[str, tuple[float, float]] = {}  # submissions that may come now, and when that was counted

    def pass_person(self, person: str, size: int, now: float) -> None:
        """Let a person submit a job file of so many bytes. Raises TooLargeError, or LimitedError for one too many."""
        self._pass(f"person {person}", self.people.of(person), size, now)

    def pass_queue(self, queue: str, size: int, now: float) -> None:
        """Let a job file come into a queue, as `pass_person` does."""
        for path, limits in self._of(queue):
            self._pass(f"queue {path}", limits, size, now)

    def check_use(self, person: str, queue: str, tasks: int, use: InUse) -> None:
        """Raise RefusedError where a job of so many tasks would be more than a person, or a queue, may have open."""
        _check(f"person {person}", self.people.of(person), use.of_person.get(person, (0, 0)), tasks)
        for path, limits in self._of(queue):
            _check(f"queue {path}", limits, use.of_queue.get(path, (0, 0)), tasks)

    def _of(self, queue: str) -> Iterator[tuple[str, Limits]]:
        return ((path, self.queues[path]) for path in upwards(queue) if path in self.queues)

    def _pass(self, who: str, limits: Limits, size: int, now: float) -> None:
        if limits.job_file_bytes and size > limits.job_file_bytes:
            raise TooLargeError(f"job file: has {size:,} bytes, and those of {who} may have {limits.job_file_bytes:,}")
        rate = limits.submissions_per_s
        if not rate:
            return
        most = max(rate, 1.0)
        left, counted = self.left.get(who, (most, now))
        left = min(most, left + rate * max(now - counted, 0.0))
        if left < 1.0:
            self.left[who] = left, now
            raise LimitedError(f"{who} submits too fast: {rate:g} submissions a second are allowed, in the mean",
                               retry_after_s=max(1, round((1.0 - left) / rate + 0.5)))
        self.left[who] = left - 1.0, now
        if len(self.left) > BUCKETS_MAX:
            self._forget_full(now)

    def _forget_full(self, now: float) -> None:
        """Drop what was counted longest ago: the earliest half, each of which has most again, or nearly."""
        earliest = sorted(self.left, key=lambda who: self.left[who][1])
        for who in earliest[: BUCKETS_MAX // 2]:
            if self.left[who][1] < now - 1.0:
                del self.left[who]


def _check(who: str, limits: Limits, used: tuple[int, int], tasks: int) -> None:
    jobs, open_tasks = used
    if limits.jobs and jobs + 1 > limits.jobs:
        raise RefusedError(f"{who}: {jobs:,} of {limits.jobs:,} open jobs are used here: wait until some have ended")
    if limits.tasks and open_tasks + tasks > limits.tasks:
        raise RefusedError(f"{who}: {open_tasks:,} of {limits.tasks:,} tasks of open jobs are used here, and this job "
                           f"has {tasks:,}")
