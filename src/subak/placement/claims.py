"""The outbox of a decision: which task starts where; checks every claim before it takes resources.

A task's status:
  NOT_ARRIVED -> BLOCKED (its stage waits for others) -> WAITING -> RUNNING -> FINISHED
  RUNNING -> WAITING when its machine leaves, or that of another of its gang;
  UNPLACEABLE from the start when no machine could ever hold it, or all together not its gang.
  RUNNING -> BLOCKED when an attempt fails, GIVEN_UP when the task is not tried again, or not wanted any more.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.amounts import give_back, take
from subak.fleet.feasible import fits
from subak.fleet.state import FleetState
from subak.marks import inlined, noinline
from subak.workload.tasks import Tasks

STATUSES = ("NOT_ARRIVED", "BLOCKED", "WAITING", "RUNNING", "FINISHED", "UNPLACEABLE", "GIVEN_UP")
(TASK_NOT_ARRIVED, TASK_BLOCKED, TASK_WAITING, TASK_RUNNING, TASK_FINISHED, TASK_UNPLACEABLE,
 TASK_GIVEN_UP) = range(len(STATUSES))

VIOLATED_RULE, VIOLATING_TASK, VIOLATING_MACHINE = range(3)  # of `violation`
VIOLATING_ROLE = VIOLATING_TASK  # of OUTBOX_FULL, which is about no task
KEPT, NO_SUCH_TASK, NOT_WAITING, NO_SUCH_MACHINE, DOES_NOT_FIT, OUTBOX_FULL = range(6)
RULES = (
    "",
    "answered a task that does not exist",
    "answered a task that is not waiting",
    "answered a machine that does not exist",
    "answered a machine that cannot hold the task",
    "posted more messages than its outbox holds",
)


class Claims(NamedTuple):
    """Claims of one decision, in order, and the first rule that a policy broke."""

    task: np.ndarray  # int32[claim]
    machine: np.ndarray  # int32[claim]
    status: np.ndarray  # int8[task]
    size: np.ndarray  # int64[1]: how many claims there are
    violation: np.ndarray  # int64[3] of the first: VIOLATED_RULE, VIOLATING_TASK, VIOLATING_MACHINE


def build_claims(tasks: int) -> Claims:
    """Return an empty outbox; its claims can never be more than the tasks."""
    return Claims(np.empty(tasks, np.int32), np.empty(tasks, np.int32), np.zeros(tasks, np.int8),
                  np.zeros(1, np.int64), np.zeros(3, np.int64))


@inlined
def broken_rule(claims: Claims, fleet: FleetState, tasks: Tasks, task: int, machine: int) -> int:
    """Return the rule that starting *task* on *machine* would break, KEPT if none."""
    if task < 0 or task >= claims.status.size:
        return NO_SUCH_TASK
    if claims.status[task] != TASK_WAITING:
        return NOT_WAITING
    if machine < 0 or machine >= fleet.machines:
        return NO_SUCH_MACHINE
    if not fits(fleet, tasks, task, machine):
        return DOES_NOT_FIT
    return KEPT


@inlined
def claim(claims: Claims, fleet: FleetState, tasks: Tasks, task: int, machine: int) -> bool:
    """Start a waiting task on a machine, if every rule is kept; the engine stops at the first broken one."""
    rule = broken_rule(claims, fleet, tasks, task, machine)
    if rule != KEPT:
        if claims.violation[VIOLATED_RULE] == KEPT:
            claims.violation[VIOLATED_RULE] = rule
            claims.violation[VIOLATING_TASK] = task
            claims.violation[VIOLATING_MACHINE] = machine
        return False
    take(fleet, tasks, tasks.shape[task], machine)
    claims.status[task] = TASK_RUNNING
    claims.task[claims.size[0]] = task
    claims.machine[claims.size[0]] = machine
    claims.size[0] += 1
    return True


@noinline
def take_back(claims: Claims, fleet: FleetState, tasks: Tasks, kept: int) -> None:
    """Undo all claims of this decision but the first *kept*: their tasks wait again."""
    while claims.size[0] > kept:
        claims.size[0] -= 1
        task = claims.task[claims.size[0]]
        give_back(fleet, tasks, tasks.shape[task], claims.machine[claims.size[0]])
        claims.status[task] = TASK_WAITING
