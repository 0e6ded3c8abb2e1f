"""Counts which messages met tasks and attempts in which states.

The rows are those of federation/megha/transitions.py, and nothing may become what is not in its row.
"""
from collections import Counter
from typing import Any

import numpy as np

from subak.federation.megha import worker
from subak.federation.megha.attempts import find_attempt
from subak.federation.megha.global_master.state import PHASES
from subak.federation.megha.jobs import SUBMISSIONS
from subak.federation.megha.ledger import ENTRY_GAVE, ENTRY_GONE, ENTRY_SIZED, ENTRY_TOOK
from subak.federation.megha.local_master import state as local_state
from subak.federation.megha.local_master.state import MACHINE_STATES
from subak.federation.megha.roles import Megha
from subak.federation.megha.transitions import ANY, TRANSITIONS
from subak.federation.messages import (
    CATCH_UP,
    CHANGE,
    GLOBAL_MASTER,
    HANDLER,
    KINDS,
    LOCAL_MASTER,
    MACHINE,
    MASTER,
    MEETS,
    NOBODY,
    PLACE,
    REFUSED,
    SUBMITTER,
    WORKER,
)
from subak.simulator.federated.by_task import phases_by_task, states_by_task
from subak.simulator.federated.network import on_the_way
from subak.simulator.federated.simulate import Opened
from subak.simulator.torture.folds import must
from subak.simulator.torture.invariants import Watch

Before = tuple[np.void | None, str, np.ndarray]  # the message of the next event, what it meets, phases of all tasks

ENTRIES = {ENTRY_TOOK: "TOOK", ENTRY_GAVE: "GAVE", ENTRY_GONE: "GONE", ENTRY_SIZED: "SIZED"}
BRINGS_NEWS = ("LAUNCHED", "REFUSED", "ENDED", "TOOK", "GAVE", "GONE")  # of others too
UNSEEN = ("ARRIVE", "CANCEL")  # kinds that are not seen coming, about tasks of which their submitter knows the state

# Every row of the tables: a kind of message, and what it meets; and what that may become.
ALLOWED: dict[tuple[str, str], tuple[str, ...]] = {
    (row.message, row.state): row.becomes for row in TRANSITIONS if not row.aside
}
ASIDE = {state: tuple(each for row in TRANSITIONS for each in row.becomes  # what befalls a task by news of others
                      if row.aside and (row.role, row.state) == (GLOBAL_MASTER, state)) for state in PHASES}
REQUIRED: tuple[tuple[str, str], ...] = tuple(ALLOWED)


class Coverage:
    """Counts of (kind, state) over any number of cases."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, str]] = Counter()
        self.kinds: Counter[str] = Counter()
        self.machine_state = ""  # of the machine that changes next
        self.submitted: Any = ()  # states of all tasks at their submitters, before what happens next

    def look(self, opened: Opened) -> Before:
        """Return what the next event is about, before it happens: (message, state, phases of all tasks)."""
        sim, net = opened.simulation, opened.network
        phases = phases_by_task(opened.roles)
        self.submitted = opened.roles.jobs.state.copy()
        change = sim.counts.next_change
        if change < sim.changes.time.size:
            self.machine_state = MACHINE_STATES[opened.roles.locals[0].machine["state"][sim.changes.machine[change]]]
        slots = on_the_way(net)
        if slots.size == 0:
            return None, "", phases
        message = net.flight[slots[0]].copy()
        return message, self.state(opened.roles, message, phases), phases

    def state(self, roles: Megha, message: np.void, phases: np.ndarray | None = None) -> str:  # noqa: PLR0911
        """Return what a message meets at its receiver; *phases* are those of all tasks, where they are known."""
        kind, task, machine, to = KINDS[message["kind"]], message["task"], message["machine"], int(message["to"])
        role = HANDLER[message["kind"]]
        if role == LOCAL_MASTER:
            local = roles.locals[to]
            if MEETS[kind] == MACHINE:
                return MACHINE_STATES[local.machine["state"][machine]]
            if MEETS[kind] == MASTER:
                return "active" if local.standing.active else "standby"
            number = find_attempt(local.rows, machine, task, message["attempt"])
            state = "new" if number == NOBODY else local_state.STATES[local.rows.row[number]["state"]]
            return state if local.standing.active else f"{state}, at a standby"
        if task == NOBODY:
            return ANY
        if role == WORKER:
            number = find_attempt(roles.workers.rows, machine, task, message["attempt"])
            return "new" if number == NOBODY else worker.STATES[roles.workers.rows.row[number]["state"]]
        if role == SUBMITTER:
            return SUBMISSIONS[roles.jobs.state[task]]
        return PHASES[(phases_by_task(roles) if phases is None else phases)[task]]

    def count(self, before: Before, opened: Opened, watch: Watch) -> None:
        """Count what was handled, and check what has become of what it met. Raises Broken."""
        message, state, phases = before
        handled = opened.due[0]
        if handled["kind"] < 0:
            return
        kind = KINDS[handled["kind"]]
        self.kinds[kind] += 1
        if handled["kind"] == CATCH_UP:  # counts as what it goes on with, too
            self.seen[kind, ANY] += 1
            kind = KINDS[handled["repeats"]]
        entries = self.of_entries(opened, watch, phases) if HANDLER[handled["kind"]] == GLOBAL_MASTER else set()
        if kind in UNSEEN:
            self.take(kind, SUBMISSIONS[self.submitted[handled["task"]]], self.state(opened.roles, handled))
        elif kind == "EXITED":
            self.take(kind, "RUNNING", self.state(opened.roles, handled))
        elif handled["kind"] == CHANGE:
            self.seen[kind, self.machine_state] += 1
        elif handled["kind"] == PLACE:
            self.seen[kind, ANY] += 1
        elif message is not None and not watch.restarted and self.is_same(message, handled):
            after = self.state(opened.roles, handled)
            self.take(kind, state, state if handled["task"] in entries else after)

    def of_entries(self, opened: Opened, watch: Watch, phases: np.ndarray) -> set[int]:
        """Count what an update told of tasks; return these."""
        if not watch.entries:
            return set()
        told, now = Counter(task for _, task, *_ in watch.entries), states_by_task(opened.roles)
        answer = opened.due[0]
        refuses = REFUSED in (answer["kind"], answer["repeats"])
        for entry, task, round_, attempt in watch.entries:
            if entry in ENTRIES and entry != ENTRY_SIZED and watch.owner[task] == answer["to"]:
                refused = refuses and answer["task"] == task
                is_over = entry == ENTRY_TOOK and now["sent"][task] != attempt  # GAVE follows in the next part
                is_of_now = told[task] == 1 and round_ == now["round"][task] and not is_over
                if is_of_now and not refused and not watch.restarted:
                    self.take(ENTRIES[entry], PHASES[phases[task]], PHASES[now["phase"][task]])
                else:
                    self.seen[ENTRIES[entry], PHASES[phases[task]]] += 1
        return set(told)

    def take(self, kind: str, state: str, after: str) -> None:
        """Count that a message met a state; what that has become must be in the row, or the same without one."""
        self.seen[kind, state] += 1
        may = ALLOWED.get((kind, state), (state,)) + (ASIDE.get(state, ()) if kind in BRINGS_NEWS else ())
        must(after in may, "j", f"{kind} made {state} {after}; it may be {', '.join(may)}")

    @staticmethod
    def is_same(message: np.void, handled: np.void) -> bool:
        """Whether the message that was next is the one that was handled; only the time it travelled is counted up."""
        message["travelled"] = handled["travelled"]
        return bool(message.item() == handled.item())  # as tuples: NumPy compares field by field, 20 times as slowly

    def missing(self) -> list[tuple[str, str]]:
        """Return the rows that were never taken."""
        return [row for row in REQUIRED if not self.seen[row]]

    def merge(self, other: "Coverage") -> None:
        """Add the counts of another."""
        self.seen += other.seen
        self.kinds += other.kinds
