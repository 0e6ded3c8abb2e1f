"""Looking ahead in a federation of Megha: rows that a message will change are fetched when it is sent.

What the end of a task changes was last looked at when it began, as many tasks ago as run at once, and is in no cache by
then: the task's rows at its worker, its masters and its submitter, and its machine's. While a message is under way some
ten others are handled, and the processor fetches its rows. Nothing else comes of it.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.global_master.state import GlobalMaster
from subak.federation.megha.jobs import Jobs
from subak.federation.megha.local_master.state import LocalMaster
from subak.federation.megha.submitter import Submitter
from subak.federation.megha.worker import Workers
from subak.federation.messages import DONE, ENDED, EXITED, LAUNCH, OVER, POSTED, REPARTITION, START, Outbox
from subak.fleet.state import FleetState
from subak.marks import inlined, prefetch
from subak.simulator.engine.heap import SIZE, Events


class AheadTables(NamedTuple):
    """What `look_ahead` goes by, and what it has fetched."""

    submitters: list[Submitter]
    masters: list[GlobalMaster]
    locals: list[LocalMaster]
    workers: Workers
    jobs: Jobs
    fleet: FleetState  # what is really free
    events: Events  # ends of the attempts that run
    handle: np.ndarray  # int32[place of a task], the worker's row of the attempt that runs
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox


def look_ahead(tables: AheadTables, _now: float, count: int) -> int:
    """Fetch what the messages will change that were posted in answer to the first *count* of the inbox; return 0.

    With the end of an attempt, fetch what is changed by that which comes next.
    """
    for place in range(count):
        if tables.inbox[place]["kind"] == EXITED and tables.events.size[SIZE] > 0:
            fetch_row(tables.workers.rows.row, tables.handle[tables.events.slot[0]["item"]])
    for place in range(tables.out.size[POSTED]):
        message = tables.out.row[place]
        kind = message["kind"]
        if kind == OVER:
            local = tables.locals[message["to"]]
            fetch_row(local.rows.row, message["handle"])
            fetch_machine(local, message["machine"])
        elif kind == ENDED:
            fetch_row(tables.masters[message["to"]].task, message["row"])
            fetch_row(tables.submitters[message["to"]].tasks.number, message["row"])
        elif kind == DONE:
            fetch_submission(tables, message)
        elif kind in (LAUNCH, REPARTITION):
            local = tables.locals[message["to"]]
            fetch_machine(local, message["machine"])
            fetch_row(local.rows.row, local.rows.first[message["machine"]])
        elif kind == START:
            fetch_worker(tables, message["machine"])
    return 0


@inlined
def fetch_row(table: np.ndarray, row: int) -> None:
    """Fetch a row of a table: it lies in two lines of a cache, or three, of which the next row is in the last."""
    prefetch(table, row)
    prefetch(table, row + 1)


@inlined
def fetch_machine(local: LocalMaster, machine: int) -> None:
    """Fetch what a local master knows of a machine."""
    prefetch(local.machine, machine)
    prefetch(local.rows.first, machine)
    for resource in range(local.fleet.free.shape[0]):
        prefetch(local.fleet.free, (resource, machine))


@inlined
def fetch_worker(tables: AheadTables, machine: int) -> None:
    """Fetch what a worker knows, the row of its newest attempt, and what it really has free."""
    workers = tables.workers
    prefetch(workers.machine, machine)
    for resource in range(workers.free.shape[0]):
        prefetch(workers.free, (resource, machine))
        prefetch(tables.fleet.free, (resource, machine))
    fetch_row(workers.rows.row, workers.rows.first[machine])


@inlined
def fetch_submission(tables: AheadTables, message: np.void) -> None:
    """Fetch what a submitter knows of a task."""
    jobs, place = tables.jobs, message["task"] & tables.jobs.mask
    prefetch(jobs.state, place)
    prefetch(jobs.row, place)
    prefetch(jobs.number, place)
    prefetch(jobs.ending, place)
    prefetch(tables.submitters[message["to"]].submission, message["row"])


__all__ = ["AheadTables", "look_ahead"]
