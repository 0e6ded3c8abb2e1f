"""Watches the agents, whose actions are the truth, and stops the run at a broken rule.

- No task has two live attempts; nothing begins that its machine has no room for, or whose constraints it does not meet,
  or whose stage waits for others.
- A task that finished well is not begun again, unless its machine and what it had written were lost together, or the
  machine was declared lost: nobody had heard of it for a lease.
- A task begins at most once more than its attempts may be lost (beginnings.py).
- The number of an attempt stands for one attempt of one task; what runs is what was submitted.
- A gang is not begun while one of it is only held or requested; a process serves so many messages in a call at most.
"""
from collections import Counter
from collections.abc import Sequence

import numpy as np

from subak.federation.megha.global_master.state import (
    PHASE_FLYING,
    PHASE_HELD,
    PHASE_RUNNING,
    PHASES,
)
from subak.federation.megha.local_master.state import LOST_MACHINE
from subak.federation.messages import NOBODY
from subak.live.agent.attempts.attempt import AttemptToRun, Begun, Ending, Event, Exited, Key
from subak.live.role.global_master.global_role import GlobalRole
from subak.live.role.local_role import LocalRole
from subak.live.torture.beginnings import Beginnings
from subak.live.torture.case import Case
from subak.live.torture.process import Machine, Process
from subak.workload.predicates import Constraint, is_met

Task = tuple[int, int]  # a job's place in the case as it was drawn, and the index of the task
ALWAYS = -1.0  # before all


class BrokenError(AssertionError):
    """The federation has done what it must not."""


class Watch:
    """See the head of the file. Tasks are known by what was submitted, not by the numbers that masters give."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.jobs = {job.spec.stages[0].command[1]: job for job in case.jobs}
        self.stage = {(int(name), index): stage for name, job in self.jobs.items()
                      for index, stage in enumerate([each for each in job.spec.stages for _ in range(each.tasks)])}
        self.attempts: dict[Key, tuple[Task, int]] = {}  # and the how manieth of its task each is
        self.tries: Counter[Task] = Counter()
        self.alive: dict[Task, tuple[Key, str]] = {}  # and on which machine
        self.finished: dict[Task, tuple[str, float]] = {}  # tasks that came to a good end: where, and when
        self.good: set[Key] = set()  # attempts that came to one
        self.failed: dict[Task, list[int]] = {}  # exit codes
        self.ended: dict[Task, list[str]] = {}  # why its attempts ended
        self.beginnings = Beginnings()
        self.forgiven: set[str] = set()  # jobs, by place: their global master has another store than it had
        self.gone: dict[str, float] = {}  # when a machine was switched off, or nobody had heard of it, last
        self.happened: Counter[str] = Counter()

    # -- what agents do ---------------------------------------------------------------------------------------------

    def ordered(self, machine: Machine, attempt: AttemptToRun) -> None:
        """Note an order to begin an attempt."""
        task = int(attempt.command[1]), attempt.index
        if self.stage[task].command != attempt.command:
            raise BrokenError(f"{attempt.key} runs {attempt.command}, not {self.stage[task].command}")
        before = self.attempts.get(attempt.key)
        if before is None:
            self.attempts[attempt.key] = task, self.tries[task]
            self.tries[task] += 1
        elif before[0] != task:
            raise BrokenError(f"{attempt.key} is of task {task} on {machine.process.name}, and of {before[0]}")

    def ending(self, attempt: AttemptToRun) -> tuple[float, int]:
        """Return for how many seconds an attempt runs, and its exit code."""
        (job, index), number = self.attempts[attempt.key]
        endings = self.jobs[str(job)].endings[index]
        return endings[min(number, len(endings) - 1)]

    def see(self, machine: Machine, news: Sequence[Event], now: float) -> None:
        """Take in what has happened at an agent."""
        for event in news:
            if isinstance(event, Begun):
                self._begin(machine, event.key, now)
            elif isinstance(event, Exited):
                self._end(machine, event.key, event.ending, now)
            else:
                self.happened[type(event).__name__.lower()] += 1

    def _begin(self, machine: Machine, key: Key, now: float) -> None:
        task, name = self.attempts[key][0], machine.process.name
        there = self.alive.get(task)
        if there == (key, name):
            return
        is_forgiven = str(task[0]) in self.forgiven
        if there is not None and not (is_forgiven and there[0].task != key.task):  # then they are of two jobs
            raise BrokenError(f"task {task}: {key} begins on {name} while {there[0]} runs on {there[1]}")
        where, when = self.finished.get(task, ("", 0.0))
        if where and self.gone.get(where, ALWAYS) < when and not is_forgiven:
            raise BrokenError(f"task {task}: {key} begins on {name}, though it has finished on {where} at {when:.4f}")
        self.alive[task] = key, name
        wrong = self.beginnings.begin(task, key.task, self.stage[task].losses_max)
        if wrong and not is_forgiven:
            raise BrokenError(f"task {task}: {key} on {name}: it {wrong}")
        self._check_fit(machine, task)
        self._check_stages(task)
        self.happened["begun again after a good end that nobody heard of"] += bool(where)

    def _end(self, machine: Machine, key: Key, ending: Ending, now: float) -> None:
        if key not in self.attempts:  # ended before it was begun
            return
        task, name = self.attempts[key][0], machine.process.name
        if self.alive.get(task) != (key, name):
            return
        del self.alive[task]
        assert machine.process.peer is not None
        self.beginnings.end(key, machine.process.peer[1], ending)
        self.happened[f"an attempt ended: {ending.reason}"] += 1
        if ending.is_good:
            self.finished[task] = name, now
            self.good.add(key)
        else:
            self.ended.setdefault(task, []).append(ending.reason)
            self.failed.setdefault(task, []).append(ending.code)

    def machine_died(self, machine: Machine, now: float) -> None:
        """Note that a machine was switched off."""
        self.agent_died(machine)
        self.gone[machine.process.name] = now

    def agent_died(self, machine: Machine) -> None:
        """Note that nothing of what ran on a machine runs any more."""
        for task, (_, name) in list(self.alive.items()):
            if name == machine.process.name:
                del self.alive[task]
                self.ended.setdefault(task, []).append("agent lost")

    def _check_fit(self, machine: Machine, task: Task) -> None:
        case, name = self.case, machine.process.name
        used = np.zeros(len(case.layout.resources), np.int64)
        for other, (_, where) in self.alive.items():
            if where == name:
                used += case.layout.amounts(self.stage[other].resources, tasks=1)
        if (used > machine.case.capacity).any():
            raise BrokenError(f"{name} has {machine.case.capacity}, and {used.tolist()} of it are used")
        for each in self.stage[task].constraints:
            if not is_met(Constraint(each.attribute, each.operator, each.value), machine.case.attributes):
                raise BrokenError(f"task {task} begins on {name}, which does not meet {each}")

    def _check_stages(self, task: Task) -> None:
        stage = self.stage[task]
        for other, before in self.stage.items():
            if other[0] == task[0] and before.name in stage.depends_on and other not in self.finished:
                raise BrokenError(f"task {task} begins before {other}, on which it depends, has finished")

    # -- what roles keep -----------------------------------------------------------------------------------------------

    def look(self, process: Process, now: float) -> None:
        """Look at a role after it was called."""
        role = process.role
        if isinstance(role, LocalRole):
            self.beginnings.look(role.local)
            lost = np.flatnonzero(role.local.machine["state"] == LOST_MACHINE).tolist()
            for number in lost:
                if number in role.machines:
                    self.happened["a machine is declared lost"] += 1
                    self.gone[role.machines[number].name] = now
        elif isinstance(role, GlobalRole):
            self._check_gangs(process.name, role)

    @staticmethod
    def _check_gangs(name: str, role: GlobalRole) -> None:
        tasks, table = role.tasks, role.master.task
        for gang in range(tasks.counts.gangs_ever):
            if tasks.gangs[gang]["number"] == NOBODY:
                continue
            phases, row = [], int(tasks.gangs[gang]["first"])
            while row != NOBODY:
                if table[row]["tenant"] == tasks.number[row] + 1:
                    phases.append(int(table[row]["phase"]))
                row = int(tasks.next[row])
            if PHASE_RUNNING in phases and (PHASE_FLYING in phases or PHASE_HELD in phases):
                raise BrokenError(f"{name}: a gang starts in parts: {[PHASES[phase] for phase in phases]}")
