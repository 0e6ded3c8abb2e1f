"""Checks how often tasks start (rule m): at most once more than attempts may be lost.

Attempts do not count that failed, were preempted, or were given up with their gang.
"""
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from subak.federation.megha.jobs import Jobs, terms_of
from subak.federation.megha.local_master.state import ATTEMPT_KILLING
from subak.federation.messages import FAILURE, GANG_LOST, PREEMPTED
from subak.simulator.torture.folds import must

Attempt = tuple[int, int, int]  # task, number, machine: each cluster numbers by itself


class Beginnings:
    """Which attempts of each task have begun, and which of them do not count as lost."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.begun: set[Attempt] = set()
        self.times: Counter[int] = Counter()  # of each task
        self.spared: set[Attempt] = set()  # attempts that do not count
        self.of_task: Counter[int] = Counter()  # how many of them each task has

    def see_running(self, rows: Iterable[Attempt]) -> None:
        """Note what workers run."""
        for each in set(rows) - self.begun:
            task = each[0]
            self.begun.add(each)
            self.times[task] += 1
            most = 1 + int(terms_of(self.jobs, task)["losses_max"]) + self.of_task[task]
            must(self.times[task] <= most, "m", f"task {task} begins for the {self.times[task]}. time, {most} times "
                                                "is the most that it may")

    def see_attempt(self, row: np.void) -> None:
        """Note what a local master has of an attempt: one that it ends for others does not count."""
        if row["state"] == ATTEMPT_KILLING and row["reason"] in (PREEMPTED, GANG_LOST):
            self._spare(row)

    def see_exit(self, message: np.void) -> None:
        """Note that an attempt has come to its end: one that failed does not count."""
        if FAILURE[message["reason"]]:
            self._spare(message)

    def _spare(self, of: Any) -> None:
        attempt = int(of["task"]), int(of["attempt"]), int(of["machine"])
        if attempt not in self.spared:
            self.spared.add(attempt)
            self.of_task[attempt[0]] += 1
