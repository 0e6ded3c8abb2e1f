"""The history of the tasks of open jobs: each known start of an attempt, and its end.

A beginning, and an end, is known by its task, the number of the attempt and the machine. Local masters tell of it in
any order, and anew when they or their global master were restarted; it is noted once. The first things are kept.

Whenever an attempt is over and its task is not, all that was noted is written. So what is not on disk is the last
attempt of each task, which its row tells of, or which local masters tell of again: an attempt that began less than a
second before its global master was killed seems to begin when that one is back.
"""
from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct, msgpack

from subak.federation.megha.jobs import SUBMISSION_ENDED
from subak.federation.messages import NOBODY, REASONS
from subak.live.role.base import Drop, Put, Write

EVENTS_EACH = 2_000  # of a job
KEYS_EACH = 2_048  # numbers of rows on disk that a job has for them
BEGAN, ATTEMPT_FAILED, ATTEMPT_LOST = "began", "attempt failed", "attempt lost"
ATTEMPT_STOPPED = "attempt stopped"  # with its machine, on purpose
ATTEMPT_ENDS = (ATTEMPT_FAILED, ATTEMPT_LOST, ATTEMPT_STOPPED)  # after which its task goes on
PERHAPS = "it may have: nobody knows"  # why a beginning is noted that was not seen
OUTCOME_WORDS = ("", "finished", "failed", "cancelled", "timed out", "lost")


class Happening(Struct, frozen=True, array_like=True, gc=False):
    """Something that happened to a task."""

    clock: float  # Unix time
    task: int  # its index
    what: str
    why: str
    machine: int  # of the last attempt that began; NOBODY where there is none
    nth: int  # the how manieth of its task that attempt is, from 1 on; 0 where there is none
    attempt: int  # its number
    heir: int = NOBODY  # queue for which it was preempted


class History:
    """See the head of the file."""

    def __init__(self, job: int) -> None:
        self.job = job
        self.events: list[Happening] = []
        self.saved = 0  # how many of them are on disk
        self.known: set[tuple[bool, int, int, int]] = set()  # is it an end, task, attempt, machine

    def note(self, happening: Happening) -> None:
        """Note what has happened."""
        if len(self.events) >= EVENTS_EACH:
            return
        self.events.append(happening)
        is_end = happening.what in ATTEMPT_ENDS
        if is_end or happening.what == BEGAN:
            self.known.add((is_end, happening.task, happening.attempt, happening.machine))

    def has_begun(self, task: int, attempt: int, machine: int) -> bool:
        """Whether the beginning of an attempt was noted."""
        return (False, task, attempt, machine) in self.known

    def is_over(self, task: int, attempt: int, machine: int) -> bool:
        """Whether the end of an attempt was noted after which its task went on."""
        return (True, task, attempt, machine) in self.known

    @property
    def is_full(self) -> bool:
        """Whether nothing more is noted, so that nobody can say what is news."""
        return len(self.events) >= EVENTS_EACH

    def writes(self) -> list[Write]:
        """Return what has to be written."""
        first, self.saved = self.saved, len(self.events)
        if first == self.saved:
            return []
        return [Put("history", self._keys(first), [msgpack.encode(each) for each in self.events[first:]])]

    def drops(self) -> list[Write]:
        """Return what has to be written when the job is over, whose history is kept with it."""
        return [Drop("history", self._keys(0))] if self.saved else []

    def _keys(self, first: int) -> list[int]:
        return [self.job * KEYS_EACH + number for number in range(first, self.saved)]

    def restore(self, saved: Iterable[Happening], rows: np.ndarray, first: int, mask: int) -> None:
        """Note what is on disk, and of the last attempt of each task what its row says.

        *rows*: ON_DISK[task], the tasks of which something is there; their places, from *first* on, by *mask*.
        """
        for happening in saved:
            self.note(happening)
        self.saved = len(self.events)
        for row in rows[rows["attempts"] > 0]:
            index, machine, attempt = int(row["number"] & mask) - first, int(row["machine"]), int(row["attempt"])
            if not self.has_begun(index, attempt, machine):
                self.note(Happening(float(row["started"]), index, BEGAN, "", machine, int(row["attempts"]), attempt))
        told = {happening.task for happening in self.events if happening.what in OUTCOME_WORDS}
        for row in rows[rows["state"] == SUBMISSION_ENDED]:
            if int(row["number"] & mask) - first in told:
                continue
            word, why = OUTCOME_WORDS[row["outcome"]], REASONS[row["reason"]]
            self.note(Happening(float(row["ended"]), int(row["number"] & mask) - first, word, why,
                                int(row["machine"]), int(row["attempts"]), int(row["attempt"])))


def saved_by_job(rows: Mapping[int | str, bytes]) -> dict[int, list[Happening]]:
    """Return what is on disk of open jobs, by the number of the job."""
    found: dict[int, list[Happening]] = {}
    for key in sorted(int(key) for key in rows):
        found.setdefault(key // KEYS_EACH, []).append(msgpack.decode(rows[key], type=Happening))
    return found
