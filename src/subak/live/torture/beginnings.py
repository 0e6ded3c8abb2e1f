"""Checks that no task starts more often than its attempts may be lost, plus one.

Attempts do not count that failed, were preempted, or were given up with their gang. The simulator's torture holds the
same as its rule m.
"""
from collections import Counter

from subak.federation.megha.local_master.state import ATTEMPT_KILLING, LocalMaster
from subak.federation.messages import GANG_LOST, PREEMPTION
from subak.live.agent.attempts.attempt import Ending, Key
from subak.live.role.worker.worker_role import LOSSES_OF_AGENT

Attempt = tuple[Key, int]  # and on which machine: each cluster numbers by itself


class Beginnings:
    """How often each task has begun, and which of its attempts do not count as lost."""

    def __init__(self) -> None:
        self.times: Counter[tuple[int, int]] = Counter()  # of each task
        self.spared: set[Attempt] = set()
        self.of_task: Counter[int] = Counter()  # how many of them each task has, by its number

    def begin(self, task: tuple[int, int], number: int, losses_max: int) -> str:
        """Note that a task of a *number* begins; say what is wrong with that, if anything is."""
        self.times[task] += 1
        most = 1 + losses_max + self.of_task[number]
        return "" if self.times[task] <= most else f"begins for the {self.times[task]}. time, {most} is the most"

    def end(self, key: Key, machine: int, ending: Ending) -> None:
        """Note how an attempt has ended: one that failed does not count."""
        if not ending.is_good and ending.reason not in LOSSES_OF_AGENT:
            self._spare((key, machine))

    def look(self, local: LocalMaster) -> None:
        """Note which attempts a local master ends for others."""
        rows = local.rows.row[: local.rows.counts.rows_ever]
        for_others = PREEMPTION[rows["reason"]] | (rows["reason"] == GANG_LOST)
        for row in rows[(rows["state"] == ATTEMPT_KILLING) & for_others]:
            self._spare((Key(int(row["task"]), int(row["attempt"])), int(row["machine"])))

    def _spare(self, attempt: Attempt) -> None:
        if attempt not in self.spared:
            self.spared.add(attempt)
            self.of_task[attempt[0].task] += 1
