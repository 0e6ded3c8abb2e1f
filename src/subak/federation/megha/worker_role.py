"""Serves the worker's role without loading anything of the masters."""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.topology import Rules, Topology
from subak.federation.megha.worker import (
    Workers,
    begin_ticks,
    on_exited,
    on_forget,
    on_kill,
    on_lease,
    on_power_off,
    on_reconfigure,
    on_report,
    on_start,
    on_tick,
    restart_worker,
)
from subak.federation.messages import (
    BOOT,
    EXITED,
    FORGET,
    KILL,
    LEASE,
    NOBODY,
    POWER_OFF,
    RECONFIGURE,
    REPORT,
    RESTART,
    START,
    TICK,
    Outbox,
    may_serve,
)
from subak.marks import noinline
from subak.workload.tasks import Requests


class WorkerTables(NamedTuple):
    """What `serve_worker` works on."""

    workers: Workers
    topology: Topology
    rules: Rules
    shapes: Requests
    lost: np.ndarray  # int32[loss], places of the tasks that the operator's changes of machines cost
    number: np.ndarray  # int64[place], of the task there
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox


def serve_worker(tables: WorkerTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their workers."""
    inbox = tables.inbox
    for place in range(count):
        if not may_serve(tables.out, place):
            break
        to_worker(tables, now, inbox[place])
    return NOBODY


@noinline
def to_worker(tables: WorkerTables, now: float, message: np.void) -> None:  # noqa: C901
    """Hand a message to a worker."""
    kind = message["kind"]
    workers, topology, rules = tables.workers, tables.topology, tables.rules
    shapes, out = tables.shapes, tables.out
    if kind == START:
        on_start(workers, topology, rules, shapes, now, message, out)
    elif kind == EXITED:
        on_exited(workers, topology, rules, shapes, message, out)
    elif kind == KILL:
        on_kill(workers, topology, rules, shapes, message, out)
    elif kind == FORGET:
        on_forget(workers, message)
    elif kind == REPORT:
        on_report(workers, topology, rules, message, now, out)
    elif kind == LEASE:
        on_lease(workers, message)
    elif kind == TICK:
        on_tick(workers, topology, rules, shapes, now, message, out)
    elif kind == BOOT:
        begin_ticks(workers, topology, rules, message["to"], out)
    elif kind == RESTART:
        restart_worker(workers, topology, rules, message["to"], now, out)
    elif kind == POWER_OFF:
        on_power_off(workers, topology, message["to"], out)
    elif kind == RECONFIGURE:
        on_reconfigure(workers, topology, rules, shapes, now, message, tables.lost, tables.number,
                       out)
