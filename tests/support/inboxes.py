"""What roles are told in a simulated run in plain Python, and roles with tables of their own that are told it again."""
import time
from collections import defaultdict
from copy import copy
from typing import NamedTuple

import numpy as np

from subak.federation.megha.ledger import bring, build_ledger, carried
from subak.federation.megha.roles import Megha
from subak.federation.messages import (
    CATCH_UP,
    ENDED,
    GLOBAL_MASTER,
    LAUNCHED,
    MESSAGE,
    RECONFIGURE,
    REFUSED,
    SUBMITTER,
    UPDATE,
    WORKER,
    build_outbox,
)
from subak.records import Numbers
from subak.simulator.federated.engine import Services

NEWS = (LAUNCHED, REFUSED, ENDED, UPDATE, CATCH_UP)
INBOX = 8
ALL_ROLES = (SUBMITTER, GLOBAL_MASTER, GLOBAL_MASTER + 1, WORKER)


class Told(NamedTuple):
    """A message that a role was told, and what became of it."""

    role: int
    now: float
    message: np.ndarray  # MESSAGE[1]
    brought: np.ndarray | None  # of a ledger, by what carries news
    lost: np.ndarray | None  # tasks that it cost, where a machine changed
    answers: np.ndarray  # MESSAGE[answer]
    task: int
    seconds: float  # in plain Python


class Recorder:
    """Notes what each role was told, what its messages brought of a ledger, and what it answered."""

    def __init__(self, opened):
        self.opened, self.calls = opened, defaultdict(list)  # of each process, see `process`
        self.is_megha = isinstance(opened.roles, Megha)
        services = opened.services
        opened.services = Services(services.loop, tuple(self.recorded(role, serve) for role, serve in enumerate(
            services.serve)), services.tables)

    def recorded(self, role, serve):
        def note(address, now, count):
            message, before = self.opened.due.copy(), self.opened.out.counts.posted
            brought = self.brought(message[0]) if self.is_megha and role == GLOBAL_MASTER else None
            lost = self.opened.simulation.losses.task.copy() if message[0]["kind"] == RECONFIGURE else None
            began = time.perf_counter()
            task = serve(address, now, count)
            seconds = time.perf_counter() - began
            answers = self.opened.out.row[before : self.opened.out.counts.posted].copy()
            self.calls[self.process(role, int(message[0]["to"]))].append(
                Told(role, now, message, brought, lost, answers, task, seconds))
            return task
        return note

    def process(self, role, number):
        """The roles that are in one process: workers share a pool whose rows they name, and a global master has its
        submitter beside it, with the table of open tasks on one disk; those that do not mend share all their tables.
        """
        if not self.is_megha:
            return ALL_ROLES, 0
        if role == WORKER:
            return (WORKER,), 0
        return ((SUBMITTER, GLOBAL_MASTER) if role in (SUBMITTER, GLOBAL_MASTER) else (role,)), number

    def brought(self, message):
        if message["kind"] not in NEWS:
            return None
        ledger = self.opened.roles.locals[message["sender"]].ledger
        return carried(ledger, message["epoch"], message["first"], message["last"])


def as_far_apart(array):
    """Return a copy of an array whose numbers lie as far apart where they do: what is compiled for one serves both."""
    return array.copy() if array.flags.c_contiguous else np.repeat(array[..., np.newaxis], 2, axis=-1)[..., 0]


def copied(state, copies):
    """Return a state with arrays of its own; what it had in common with another of *copies* it has in common again."""
    if isinstance(state, np.ndarray):
        return copies.setdefault(id(state), as_far_apart(state))
    if isinstance(state, Numbers):
        return copies.setdefault(id(state), copy(state))
    if isinstance(state, list):
        return [copied(each, copies) for each in state]
    if isinstance(state, tuple):
        parts = [copied(each, copies) for each in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state


def alone(opened, roles):
    """Return the tables of a process of a federation that has not begun, by role: no other process shares any."""
    out = build_outbox(opened.out.spare, opened.out.row.size - opened.out.spare)
    inbox, copies = np.zeros(INBOX, MESSAGE), {}
    tables = {role: copied(opened.services.tables[role].state, copies)._replace(inbox=inbox, out=out)
              for role in roles}
    if roles != ALL_ROLES and GLOBAL_MASTER in tables:
        ledgers = [build_ledger(each.entry.size, each.entry.size) for each in tables[GLOBAL_MASTER].ledgers]
        tables[GLOBAL_MASTER] = tables[GLOBAL_MASTER]._replace(ledgers=ledgers)
    return tables


def hand_over(tables, calls):
    """Lay before a role what it was told at one instant."""
    for place, told in enumerate(calls):
        tables.inbox[place] = told.message[0]
        if told.brought is not None:
            bring(tables.ledgers[told.message[0]["sender"]], told.message[0]["epoch"], told.message[0]["first"],
                  told.brought)
        if told.lost is not None:
            tables.lost[:] = told.lost
    tables.out.counts.posted = 0
