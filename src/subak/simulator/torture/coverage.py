"""What torture has covered: which kinds of message met a task, or an attempt, in which state at their receiver.

The rows are those of the transition tables at the heads of the roles' files.
"""
from collections import Counter
from typing import Any

from subak.federation.megha import worker
from subak.federation.megha.attempts import find_attempt
from subak.federation.megha.global_master.state import PHASES
from subak.federation.megha.ledger import ENTRY_GAVE, ENTRY_GONE, ENTRY_SIZED, ENTRY_TOOK
from subak.federation.megha.local_master import state as local_state
from subak.federation.megha.local_master.state import ACTIVE, MACHINE_STATES
from subak.federation.messages import (
    CHANGE,
    EXITED,
    GLOBAL_MASTER,
    HANDLER,
    KINDS,
    LOCAL_MASTER,
    NOBODY,
    PLACE,
    SUBMITTER,
    WORKER,
)
from subak.simulator.engine.heap import SIZE
from subak.simulator.engine.state import NEXT_CHANGE
from subak.simulator.torture.invariants import Watch

SUBMITTED = ("NEW", "BLOCKED", "OPEN", "ENDED")
ENTRIES = {ENTRY_TOOK: "TOOK", ENTRY_GAVE: "GAVE", ENTRY_GONE: "GONE", ENTRY_SIZED: "SIZED"}
OF_MACHINE = ("ALIVE", "HOLDS", "CHANGE")  # kinds that are about a machine
OF_MASTER = ("PULSE", "WATCH", "CHECK", "BEAT", "ASK", "NOTED")

# Every row of the tables: a kind of message, and what it meets.
REQUESTS = ("LAUNCH", "REPARTITION", "PREEMPT")
REQUIRED: tuple[tuple[str, str], ...] = (
    ("ARRIVE", "NEW"), ("DONE", "OPEN"), ("DONE", "ENDED"), ("RESUBMIT", "OPEN"), ("RESUBMIT", "ENDED"),
    ("REBUILD", "any"),
    ("SUBMIT", "UNKNOWN"), ("SUBMIT", "WAITING"), ("SUBMIT", "RUNNING"), ("SUBMIT", "ENDED"), ("PLACE", "any"),
    ("TOOK", "FLYING"), ("TOOK", "UNKNOWN"), ("TOOK", "WAITING"), ("TOOK", "LEAVING"),
    ("REFUSED", "FLYING"), ("REFUSED", "LEAVING"), ("REFUSED", "WAITING"),
    ("GAVE", "RUNNING"), ("GAVE", "HELD"), ("GAVE", "LEAVING"), ("GAVE", "FLYING"), ("GONE", "RUNNING"),
    ("LAUNCHED", "RUNNING"), ("LAUNCHED", "FLYING"), ("LAUNCHED", "LEAVING"),
    ("ENDED", "RUNNING"), ("UPDATE", "any"), ("RETRY", "FLYING"), ("RETRY", "LEAVING"), ("RETRY", "RUNNING"),
    ("WAKE", "any"),
    *((kind, state) for kind in REQUESTS for state in ("new",)),
    ("LAUNCH", "STARTING"), ("LAUNCH", "OVER"), ("LAUNCH", "HELD"), ("PREEMPT", "PENDING"),
    ("GO", "HELD"), ("GO", "STARTING"), ("GO", "new"),
    ("ABANDON", "HELD"), ("ABANDON", "STARTING"), ("ABANDON", "KILLING"), ("ABANDON", "OVER"), ("ABANDON", "new"),
    ("STARTED", "STARTING"), ("STARTED", "RUNNING"),
    ("OVER", "STARTING"), ("OVER", "RUNNING"), ("OVER", "KILLING"), ("OVER", "OVER"), ("OVER", "new"),
    ("NOTED", "active"), ("ASK", "active"), ("BEAT", "active"), ("CHECK", "active"), ("PULSE", "active"),
    ("PULSE", "standby"), ("WATCH", "standby"), ("CHECK", "standby"),
    ("ALIVE", "LISTED"), ("ALIVE", "SILENT"), ("ALIVE", "LOST"), ("ALIVE", "ABSENT"), ("HOLDS", "SILENT"),
    ("HOLDS", "LISTED"), ("CHANGE", "LISTED"), ("CHANGE", "ABSENT"), ("CHANGE", "LOST"), ("CHANGE", "SILENT"),
    ("START", "new"), ("START", "RUNNING"), ("START", "ENDED"), ("KILL", "RUNNING"), ("KILL", "ENDED"), ("KILL", "new"),
    ("EXITED", "RUNNING"), ("FORGET", "ENDED"), ("FORGET", "new"), ("REPORT", "any"), ("LEASE", "any"),
    ("TICK", "any"),
)


class Coverage:
    """Counts of (kind, state) over any number of cases."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, str]] = Counter()
        self.kinds: Counter[str] = Counter()
        self.machine_state = ""  # of the machine that changes next

    def look(self, opened: Any) -> tuple[Any, str, Any]:
        """Return what the next event is about, before it happens: (message, state, phases of all tasks)."""
        sim, net = opened.simulation, opened.network
        phases = opened.roles.task["phase"].copy()
        change = sim.counts[NEXT_CHANGE]
        if change < sim.changes.time.size:
            self.machine_state = MACHINE_STATES[opened.roles.locals[0].machine["state"][sim.changes.machine[change]]]
        if net.events.size[SIZE] == 0:
            return None, "", phases
        message = net.flight[net.events.slot[0]["item"]].copy()
        return message, self.state(opened.roles, message), phases

    def state(self, roles: Any, message: Any) -> str:  # noqa: PLR0911
        """Return what a message meets at its receiver."""
        kind, task, machine, to = KINDS[message["kind"]], message["task"], message["machine"], int(message["to"])
        role = HANDLER[message["kind"]]
        if role == LOCAL_MASTER:
            local = roles.locals[to]
            if kind in OF_MACHINE:
                return MACHINE_STATES[local.machine["state"][machine]]
            if kind in OF_MASTER:
                return "active" if local.scalar[ACTIVE] else "standby"
            number = find_attempt(local.rows, machine, task, message["attempt"])
            return "new" if number == NOBODY else local_state.STATES[local.rows.row[number]["state"]]
        if task == NOBODY:
            return "any"
        if role == WORKER:
            number = find_attempt(roles.workers.rows, machine, task, message["attempt"])
            return "new" if number == NOBODY else worker.STATES[roles.workers.rows.row[number]["state"]]
        if role == SUBMITTER:
            return SUBMITTED[roles.submitter.state[task]]
        return PHASES[roles.task["phase"][task]]

    def count(self, before: tuple[Any, str, Any], opened: Any, watch: Watch) -> None:
        """Count what was handled."""
        message, state, phases = before
        handled = opened.due[0]
        if handled["kind"] < 0:
            return
        kind = KINDS[handled["kind"]]
        self.kinds[kind] += 1
        if handled["kind"] == EXITED:
            self.seen[kind, "RUNNING"] += 1
        elif handled["kind"] == CHANGE:
            self.seen[kind, self.machine_state] += 1
        elif kind == "ARRIVE":
            self.seen[kind, "NEW"] += 1
        elif message is not None and self.is_same(message, handled):
            self.seen[kind, state if handled["kind"] != PLACE else "any"] += 1
        for entry, task, _ in watch.entries:
            told = entry in ENTRIES and entry != ENTRY_SIZED and HANDLER[handled["kind"]] == GLOBAL_MASTER
            if told and watch.owner[task] == handled["to"]:
                self.seen[ENTRIES[entry], PHASES[phases[task]]] += 1

    @staticmethod
    def is_same(message: Any, handled: Any) -> bool:
        """Whether the message that was next is the one that was handled; only the time it travelled is counted up."""
        message["travelled"] = handled["travelled"]
        return bool(message == handled)

    def missing(self) -> list[tuple[str, str]]:
        """Return the rows that were never taken."""
        return [row for row in REQUIRED if not self.seen[row]]

    def merge(self, other: "Coverage") -> None:
        """Add the counts of another."""
        self.seen += other.seen
        self.kinds += other.kinds
