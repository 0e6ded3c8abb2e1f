"""The outbox of a decision: which tasks start where. Every claim is checked here before it takes resources.

A task's status:
  NOT_ARRIVED -> BLOCKED (its stage waits for others) -> WAITING -> RUNNING -> FINISHED
  RUNNING -> WAITING when its machine leaves; UNPLACEABLE from the start when no machine could ever hold it.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.amounts import take
from subak.fleet.feasible import fits
from subak.fleet.state import FleetState
from subak.kernel import inlined
from subak.workload.tasks import Tasks

STATUSES = ("NOT_ARRIVED", "BLOCKED", "WAITING", "RUNNING", "FINISHED", "UNPLACEABLE")
TASK_NOT_ARRIVED, TASK_BLOCKED, TASK_WAITING, TASK_RUNNING, TASK_FINISHED, TASK_UNPLACEABLE = range(6)

SIZE, RULE, TASK, MACHINE = 0, 1, 2, 3
KEPT, NO_SUCH_TASK, NOT_WAITING, NO_SUCH_MACHINE, DOES_NOT_FIT = range(5)
RULES = (
    "",
    "answered a task that does not exist",
    "answered a task that is not waiting",
    "answered a machine that does not exist",
    "answered a machine that cannot hold the task",
)


class Starts(NamedTuple):
    """Claims of one decision, in order, and the first rule that a policy broke."""

    task: np.ndarray  # int32[claim]
    machine: np.ndarray  # int32[claim]
    status: np.ndarray  # int8[task]
    note: np.ndarray  # int64[4]: SIZE (claims so far), RULE (first one broken), TASK and MACHINE of it


def build_starts(tasks: int) -> Starts:
    """Return an empty outbox; its claims can never be more than the tasks."""
    return Starts(np.empty(tasks, np.int32), np.empty(tasks, np.int32), np.zeros(tasks, np.int8), np.zeros(4, np.int64))


@inlined
def broken_rule(starts: Starts, fleet: FleetState, tasks: Tasks, task: int, machine: int) -> int:
    """Return the rule that starting *task* on *machine* would break, KEPT if none."""
    if task < 0 or task >= starts.status.size:
        return NO_SUCH_TASK
    if starts.status[task] != TASK_WAITING:
        return NOT_WAITING
    if machine < 0 or machine >= fleet.machines:
        return NO_SUCH_MACHINE
    if not fits(fleet, tasks, task, machine):
        return DOES_NOT_FIT
    return KEPT


@inlined
def claim(starts: Starts, fleet: FleetState, tasks: Tasks, task: int, machine: int) -> bool:
    """Start a waiting task on a machine, if every rule is kept; the engine stops at the first broken one."""
    rule = broken_rule(starts, fleet, tasks, task, machine)
    if rule != KEPT:
        if starts.note[RULE] == KEPT:
            starts.note[RULE] = rule
            starts.note[TASK] = task
            starts.note[MACHINE] = machine
        return False
    take(fleet, tasks, task, machine)
    starts.status[task] = TASK_RUNNING
    starts.task[starts.note[SIZE]] = task
    starts.machine[starts.note[SIZE]] = machine
    starts.note[SIZE] += 1
    return True
