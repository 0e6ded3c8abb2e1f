"""Serves the roles of Megha: `serve_*` dispatches messages to the handlers of a role.

The same four functions serve in the simulator and in a process of its own. A process may hold several roles of a kind
side by side, each a state of its own. Each kind of role is compiled apart, and is called with the address of what it
works on (kernels/state.py).

Entries of a ledger are read from `ledgers`. In one process that is the local master's own ring. Live it is a copy,
which `bring` of ledger.py fills from each message first.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.global_master.handlers import (
    on_place,
    on_reopen,
    on_retry,
    on_submit,
    on_update,
    on_withdraw,
)
from subak.federation.megha.global_master.passed_over import on_passed_over
from subak.federation.megha.global_master.rebuild import on_settle, on_wake, restart
from subak.federation.megha.global_master.state import GlobalMaster
from subak.federation.megha.jobs import Jobs
from subak.federation.megha.ledger import Ledger
from subak.federation.megha.local_master.handlers import (
    on_abandon,
    on_beat,
    on_go,
    on_hold_back,
    on_noted,
    on_over,
    on_request,
    on_started,
)
from subak.federation.megha.local_master.leases import begin_timers, on_change, on_check
from subak.federation.megha.local_master.reports import on_alive, on_holds
from subak.federation.megha.local_master.state import LocalMaster
from subak.federation.megha.local_master.takeover import on_ask, on_pulse, on_watch, restart_local
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.submitter import (
    Submitter,
    on_arrive,
    on_cancel,
    on_done,
    on_expire,
    on_hand_over,
    on_rebuild,
    on_release,
    on_resubmit,
    on_try_again,
)
from subak.federation.megha.topology import Rules, Topology
from subak.federation.megha.worker import Workers
from subak.federation.megha.worker_role import WorkerTables, serve_worker
from subak.federation.messages import (
    ABANDON,
    ALIVE,
    ARRIVE,
    ASK,
    BEAT,
    BOOT,
    CANCEL,
    CATCH_UP,
    CHANGE,
    CHECK,
    DONE,
    ENDED,
    EXPIRE,
    GO,
    HAND_OVER,
    HOLD_BACK,
    HOLDS,
    LAUNCH,
    LAUNCHED,
    NOBODY,
    NOTED,
    OVER,
    PASSED_OVER,
    PLACE,
    PREEMPT,
    PULSE,
    REBUILD,
    REFUSED,
    RELEASE,
    REOPEN,
    REPARTITION,
    RESTART,
    RESUBMIT,
    RETRY,
    SETTLE,
    STARTED,
    SUBMIT,
    TRY_AGAIN,
    UPDATE,
    WAKE,
    WATCH,
    WITHDRAW,
    Outbox,
    may_serve,
)
from subak.marks import noinline
from subak.workload.tasks import Requests, Tasks


class Megha(NamedTuple):
    """The roles of a federation, and what all of them know."""

    topology: Topology
    rules: Rules
    jobs: Jobs
    submitters: list[Submitter]  # one beside each global master
    masters: list[GlobalMaster]
    locals: list[LocalMaster]  # of every cluster, behind them their standbys
    workers: Workers


class SubmitterTables(NamedTuple):
    """What `serve_submitter` works on."""

    submitters: list[Submitter]
    jobs: Jobs
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox


class GlobalMasterTables(NamedTuple):
    """What `serve_global_master` works on."""

    masters: list[GlobalMaster]
    tasks: list[OpenTasks]  # of each of them
    ledgers: list[Ledger]  # of the local masters and standbys, or copies of them
    topology: Topology
    rules: Rules
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox


class LocalMasterTables(NamedTuple):
    """What `serve_local_master` works on."""

    locals: list[LocalMaster]
    topology: Topology
    rules: Rules
    shapes: Requests
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox


def tables_of(
    roles: Megha, tasks: Tasks, lost: np.ndarray, inbox: np.ndarray, out: Outbox
) -> tuple[SubmitterTables, GlobalMasterTables, LocalMasterTables, WorkerTables]:
    """Return what the roles of a federation in one process work on, which share an inbox and an outbox."""
    topology, rules, shapes = roles.topology, roles.rules, Requests(tasks.request, tasks.constraint_set)
    of_submitters, ledgers = [each.tasks for each in roles.submitters], [each.ledger for each in roles.locals]
    return (
        SubmitterTables(roles.submitters, roles.jobs, inbox, out),
        GlobalMasterTables(roles.masters, of_submitters, ledgers, topology, rules, inbox, out),
        LocalMasterTables(roles.locals, topology, rules, shapes, inbox, out),
        WorkerTables(roles.workers, topology, rules, shapes, lost, roles.jobs.number, inbox, out),
    )


# -- serving: each returns the task that a global master's last turn placed, or tried to, else NOBODY ------------------
#
# A message is handed on in a function of its own: in the loop, what any handler may need was made ready at every call.


def serve_submitter(tables: SubmitterTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their submitters."""
    inbox = tables.inbox
    for place in range(count):
        if not may_serve(tables.out, place):
            break
        to_submitter(tables, inbox[place])
    return NOBODY


def serve_global_master(tables: GlobalMasterTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their global masters."""
    inbox, task = tables.inbox, NOBODY
    for place in range(count):
        if not may_serve(tables.out, place):
            break
        task = to_global_master(tables, now, inbox[place])
    return task


def serve_local_master(tables: LocalMasterTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their local masters, or standbys."""
    inbox = tables.inbox
    for place in range(count):
        if not may_serve(tables.out, place):
            break
        to_local_master(tables, now, inbox[place])
    return NOBODY


SERVE = (serve_submitter, serve_global_master, serve_local_master, serve_worker)  # by role


@noinline
def to_submitter(tables: SubmitterTables, message: np.void) -> None:
    """Hand a message to a submitter."""
    kind = message["kind"]
    submitter, jobs, out = tables.submitters[message["to"]], tables.jobs, tables.out
    if kind == ARRIVE:
        on_arrive(submitter, jobs, message, out)
    elif kind == DONE:
        on_done(submitter, jobs, message, out)
    elif kind == CANCEL:
        on_cancel(submitter, jobs, message, out)
    elif kind == EXPIRE:
        on_expire(submitter, jobs, message, out)
    elif kind == TRY_AGAIN:
        on_try_again(submitter, jobs, message, out)
    elif kind == HAND_OVER:
        on_hand_over(submitter, jobs, message, out)
    elif kind == RELEASE:
        on_release(submitter, jobs, message, out)
    elif kind == RESUBMIT:
        on_resubmit(submitter, jobs, message, out)
    elif kind == REBUILD:
        on_rebuild(submitter, jobs, message, out)


@noinline
def to_global_master(tables: GlobalMasterTables, now: float, message: np.void) -> int:  # noqa: C901
    """Hand a message to a global master; return the task that it placed, or tried to, in a turn."""
    kind = message["kind"]
    master, topology, rules = tables.masters[message["to"]], tables.topology, tables.rules
    tasks, out = tables.tasks[message["to"]], tables.out
    if kind == SUBMIT:
        on_submit(master, topology, rules, tasks, message, out)
    elif kind == PLACE:
        return on_place(master, topology, rules, tasks, now, out)
    elif kind in (LAUNCHED, REFUSED, ENDED, UPDATE, CATCH_UP):
        on_update(master, topology, rules, tasks, now, message, tables.ledgers[message["sender"]], out)
    elif kind == WITHDRAW:
        on_withdraw(master, topology, rules, tasks, message, out)
    elif kind == RETRY:
        on_retry(master, topology, rules, tasks, message, out)
    elif kind == REOPEN:
        on_reopen(master, topology, message, out)
    elif kind == PASSED_OVER:
        on_passed_over(master, topology, rules, tasks, now, message, out)
    elif kind == SETTLE:
        on_settle(master, topology, rules, tasks, message, out)
    elif kind == WAKE:
        on_wake(master, topology, rules, out)
    elif kind == RESTART:
        restart(master, topology, rules, tasks, out)
    return NOBODY


@noinline
def to_local_master(tables: LocalMasterTables, now: float, message: np.void) -> None:  # noqa: C901, PLR0912
    """Hand a message to a local master."""
    kind = message["kind"]
    local, topology, rules = tables.locals[message["to"]], tables.topology, tables.rules
    shapes, out = tables.shapes, tables.out
    if kind in (LAUNCH, REPARTITION, PREEMPT):
        on_request(local, topology, rules, shapes, now, message, out)
    elif kind == OVER:
        on_over(local, topology, rules, shapes, now, message, out)
    elif kind == BEAT:
        on_beat(local, topology, rules, message, out)
    elif kind == NOTED:
        on_noted(local, now, message, out)
    elif kind == GO:
        on_go(local, topology, now, message, out)
    elif kind == HOLD_BACK:
        on_hold_back(local, topology, rules, now, message, out)
    elif kind == ABANDON:
        on_abandon(local, topology, rules, shapes, now, message, out)
    elif kind == STARTED:
        on_started(local, now, message)
    elif kind == CHECK:
        on_check(local, topology, rules, shapes, now, message, out)
    elif kind == ALIVE:
        on_alive(local, topology, rules, shapes, now, message, out)
    elif kind == HOLDS:
        on_holds(local, topology, rules, shapes, now, message, out)
    elif kind == PULSE:
        on_pulse(local, topology, rules, now, message, out)
    elif kind == WATCH:
        on_watch(local, topology, rules, shapes, now, out)
    elif kind == ASK:
        on_ask(local, topology, rules, message, out)
    elif kind == CHANGE:
        on_change(local, topology, rules, shapes, now, message, out)
    elif kind == BOOT:
        begin_timers(local, topology, rules, out)
    elif kind == RESTART:
        restart_local(local, topology, rules, now, out)
