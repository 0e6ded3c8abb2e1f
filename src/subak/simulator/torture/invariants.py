"""The invariants of a Megha federation after every message, in plain Python.

A role's own state changes only when it handles a message, so after each message that role is checked, and all of them
whenever a role crashes, comes back or a machine changes. The watch keeps every ledger entry ever written, and folds it
by itself: a local master's books are the fold of its ledger, a global master's view is the fold of a past one plus
its own launches in flight.

(a) no machine is oversubscribed, physically or in an active local master's books; summaries are true
(b) a task runs at most once, and what workers believe to run is what runs
(c) a task has at most one live attempt at the local masters that speak for their clusters
(d) views are folds of ledgers, plus launches in flight
(e) every task of a global master is in one phase; lanes, counters and gangs agree with the phases
(f) a turn that requests nothing changes nothing
(g) no two tasks are preempted for each other without news in between: an arrival, an end, a failure, or that the queue
    that gained launched more where there was room (rule STRICT); nor by a master that has not heard of an end: to that
    one a queue is larger than it is
(h) messages on their way are counted rightly
(i) at rest nothing is lost and nothing is left behind (at_rest.py)
(k) nobody spins: an instant holds a bounded number of messages
(l) a row of the table of open tasks is one task's, and is given back when nobody needs it any more
(m) a task begins at most once more than its attempts may be lost (beginnings.py)
(j) what a message meets becomes what the table of transitions says (coverage.py)
"""

import numpy as np

from subak.federation.megha.ledger import ENTRY_TOOK, entries_between, still_holds
from subak.federation.megha.local_master.state import (
    ATTEMPT_KILLING,
    ATTEMPT_OVER,
    ATTEMPT_PENDING,
    LISTED,
)
from subak.federation.megha.roles import Megha
from subak.federation.megha.topology import OFF, PAPER
from subak.federation.megha.worker import WORKER_RUNNING as RUNS
from subak.federation.messages import (
    CHANGE,
    EXITED,
    GLOBAL_MASTER,
    HANDLER,
    KINDS,
    LOCAL_MASTER,
    NOBODY,
    PERIODIC,
    PLACE,
    WORKER,
)
from subak.placement.claims import TASK_RUNNING as PHYSICALLY
from subak.simulator.engine.state import Simulation
from subak.simulator.federated.network import Network, on_the_way
from subak.simulator.torture.beginnings import Beginnings
from subak.simulator.torture.folds import HOLDING, TASK_OF, must
from subak.simulator.torture.master_invariants import check_master
from subak.simulator.torture.watched import Watched

INSTANT_MAX = 3_000  # events at one time


class Watch(Watched):
    """Checks a run after every message."""

    def __init__(self, sim: Simulation, net: Network, roles: Megha) -> None:
        super().__init__(sim, net, roles)
        self.incarnations = net.incarnation.copy()
        self.changed = False  # whether the fleet has ever changed
        self.swaps: set[tuple[int, int]] = set()  # (for whom, who was preempted) since the last news
        self.killing: set[tuple[int, int, int]] = set()
        self.exited: set[tuple[int, int]] = set()  # (task, attempt), all that came to their ends
        self.misled: dict[tuple[int, int], bool] = {}  # of each attempt, whether its master had not heard of an end
        self.beginnings = Beginnings(roles.jobs)
        self.restarted = False  # whether somebody crashed or restarted just before the last event
        self.instant, self.handled = -1.0, 0
        self.heirs: set[int] = set()  # tasks for whom others are being preempted
        self.arrived = 0
        self.check_all()

    # -- after a message ------------------------------------------------------------------------------------------

    def __call__(self, handled: bool, message: np.void) -> None:
        """Check what the last event may have changed: a message, if one was handled."""
        self.entries.clear()
        kind = int(message["kind"]) if handled else NOBODY
        self.instant, self.handled = self.now, self.handled + 1 if self.now == self.instant else 1
        must(self.handled <= INSTANT_MAX, "k", f"{self.handled} events at one instant, the last of them {KINDS[kind]}")
        self.restarted = not np.array_equal(self.incarnations, self.net.incarnation)
        if self.restarted or kind == CHANGE:
            self.changed |= kind == CHANGE
            self.swaps.clear()
            self.incarnations = self.net.incarnation.copy()
            self.check_all()
        elif kind >= 0:
            self.check_role(kind, int(message["to"]))
        if kind == EXITED:
            self.beginnings.see_exit(message)
            self.exited.add((int(message["task"]), int(message["attempt"])))
        elif kind == PLACE and self.roles.rules.preemption not in (OFF, PAPER):
            self.note_requests(int(message["to"]))
        if self.sim.counts.next_arrival != self.arrived or kind == EXITED:
            self.arrived = self.sim.counts.next_arrival
            self.swaps.clear()
        self.check_messages()

    def check_role(self, kind: int, number: int) -> None:
        """Check the role that handled a message of a kind."""
        role = HANDLER[kind]
        if role == GLOBAL_MASTER:
            check_master(self, number, kind)
        elif role == LOCAL_MASTER:
            self.note_ledger(number)
            self.check_local(number)
            self.check_owners()
        elif role == WORKER:
            self.check_workers()

    def check_all(self) -> None:
        """Check every role."""
        for number in range(self.instances):
            self.note_ledger(number)
        for number in range(self.instances):
            self.check_local(number)
        for number in range(self.masters):
            check_master(self, number, NOBODY)
        self.check_owners()
        self.check_workers()

    # -- local masters ----------------------------------------------------------------------------------------------

    def note_ledger(self, number: int) -> None:
        """Remember what a local master has entered, and fold it."""
        local, book = self.roles.locals[number], self.book[number]
        epoch, version = local.standing.epoch, local.ledger.counts.version
        if not local.standing.active:
            return
        if epoch != book.epoch:
            book.forget()
            book.epoch, book.seen = epoch, 0
        known = self.history.setdefault((number, epoch), [])
        must(still_holds(local.ledger, epoch, len(known)), "d",
             f"local master {number} entered {version - len(known)} at once")
        for entry in entries_between(local.ledger, len(known), version).tolist():
            known.append(entry)
            book.apply(known[-1], self.asked)
            if known[-1][0] == ENTRY_TOOK:
                self.note_launch(known[-1][TASK_OF])
        book.seen = version

    def check_local(self, number: int) -> None:
        """Check (a): the books of an active local master are the fold of its ledger, and what its rows hold."""
        local, cluster = self.roles.locals[number], number % self.clusters
        if not local.standing.active:
            return
        first, end = self.span[cluster]
        free, book = local.fleet.free[:, first:end], self.book[number]
        must(np.array_equal(free, book.free), "a", f"local master {number} has other amounts free than its ledger says")
        held = set()
        for machine in self.machines:
            if first <= machine < end:
                state = local.machine["state"][machine]
                for row in self.rows(local.rows.row, local.rows.first, machine):
                    if row["state"] in HOLDING:
                        held.add((machine, int(row["task"]), int(row["attempt"])))
                    if row["state"] == ATTEMPT_PENDING:
                        must(state == LISTED, "a", f"task {row['task']} waits for victims on machine {machine}, which "
                                                   f"is in state {state}")
                    self.note_swap(row, local.rows.row)
                    self.beginnings.see_attempt(row)
                if state == LISTED and not self.changed:
                    left = free[:, machine - first].tolist()  # whose text, unlike an array's, costs nothing
                    must(min(left) >= 0, "a", f"local master {number} oversubscribes machine {machine}: {left}")
        must(held == book.held, "a", f"local master {number} holds {sorted(held ^ book.held)} or does not: rows and "
                                     "ledger differ in it")
        self.check_summary(local.fleet, first, end, f"local master {number}")

    def speaker(self, cluster: int) -> int:
        """Return the local master that speaks for a cluster: of those alive and active the one of the latest epoch."""
        best = NOBODY
        for number in range(cluster, self.instances, self.clusters):
            alive = self.net.incarnation[self.net.first[LOCAL_MASTER] + number] > 0
            if alive and self.roles.locals[number].standing.active:  # noqa: SIM102
                if best == NOBODY or self.roles.locals[number].standing.epoch > self.roles.locals[best].standing.epoch:
                    best = number
        return best

    def is_deposed(self, number: int) -> bool:
        """Whether the other one of a pair is of a later epoch, even where it is down: what this one knows is old."""
        epoch = self.roles.locals[number].standing.epoch
        pair = range(number % self.clusters, self.instances, self.clusters)
        return any(self.roles.locals[other].standing.epoch > epoch for other in pair)

    def check_owners(self) -> None:
        """(c) A task has at most one live attempt."""
        owner: dict[int, int] = {}
        for cluster in range(self.clusters):
            number = self.speaker(cluster)
            if number == NOBODY or self.is_deposed(number):
                continue
            local, (first, end) = self.roles.locals[number], self.span[cluster]
            for machine in self.machines:
                if first <= machine < end:
                    for row in self.rows(local.rows.row, local.rows.first, machine):
                        if row["state"] != ATTEMPT_OVER:
                            task = int(row["task"])
                            must(task not in owner, "c", f"task {task} has two attempts: on machine {machine} and on "
                                                         f"{owner.get(task)}")
                            owner[task] = machine

    def note_swap(self, row: np.void, rows: np.ndarray) -> None:
        """(g) Remember who is preempted for whom."""
        if row["state"] != ATTEMPT_KILLING or row["heir"] == NOBODY or self.roles.rules.preemption == PAPER:
            return
        victim, heir = int(row["task"]), int(rows[row["heir"]]["task"])
        key = (victim, heir, int(row["attempt"]))
        if key not in self.killing:
            self.killing.add(key)
            self.heirs.add(heir)
            is_misled = self.misled.get((heir, int(rows[row["heir"]]["attempt"])), False)
            must((victim, heir) not in self.swaps or is_misled, "g",
                 f"task {victim} gives way to task {heir}, which gave way to it")
            self.swaps.add((heir, victim))

    def note_requests(self, number: int) -> None:
        """(g) Remember of what a global master has just asked for whether it had not heard of an end."""
        task = self.roles.masters[number].task
        rows = np.flatnonzero(task["flying"])
        asked = zip((task["tenant"][rows] - 1).tolist(), task["attempt"][rows].tolist(), strict=True)
        new = [key for key in asked if key not in self.misled]
        if new:
            self.misled.update(dict.fromkeys(new, self.has_not_heard(number)))

    def has_not_heard(self, number: int) -> bool:
        """(g) Whether to a global master something runs whose end its local master, or the executor, knows."""
        for cluster, view in enumerate(self.view[number]):
            speaker = self.speaker(cluster)
            known = self.book[speaker].held if speaker != NOBODY else set()
            if any(each not in known or each[1:] in self.exited for each in view.held):
                return True
        return False

    def note_launch(self, task: int) -> None:
        """(g) A queue that takes what is free may come above its share, and then lose what it gained by preemption."""
        if task in self.heirs:
            self.heirs.remove(task)
        else:
            self.swaps = {(gained, lost) for gained, lost in self.swaps if self.queue[gained] != self.queue[task]}

    # -- workers ----------------------------------------------------------------------------------------------------

    def check_workers(self) -> None:
        """Check (a, b): what workers believe to run is what runs, and what they have free is free."""
        workers, sim = self.roles.workers, self.sim
        believed, attempts = [], []
        for machine in self.machines:
            for row in self.rows(workers.rows.row, workers.rows.first, machine):
                if row["state"] == RUNS:
                    believed.append((int(row["task"]), machine))
                    attempts.append((int(row["task"]), int(row["attempt"]), machine))
        self.beginnings.see_running(attempts)
        running = np.flatnonzero(sim.claims.status == PHYSICALLY).tolist()
        real = [(task, int(sim.progress.machine[task])) for task in running]
        must(sorted(believed) == real, "b", f"workers believe to run {sorted(believed)}, there run {real}")
        used = np.zeros_like(sim.fleet.free, np.int64)
        for task, machine in real:
            used[:, machine] += self.request[task]
        free = np.maximum(sim.fleet.free, 0)
        must((sim.fleet.free + used <= np.maximum(sim.fleet.capacity, 0)).all() and (sim.fleet.free >= -1).all(), "a",
             "a machine is oversubscribed")
        must(np.array_equal(workers.free[:, self.machines], free[:, self.machines]), "b",
             "a worker has other amounts free than its machine")

    # -- messages ---------------------------------------------------------------------------------------------------

    def check_messages(self) -> None:
        """(h) Slots are free, or in the line or the heap, and lively ones are counted."""
        sim, net = self.sim, self.net
        used = on_the_way(self.net)
        must(len(used) == net.slot.size - net.counts.free, "h", f"{len(used)} messages are on their way, "
                                                               f"{net.slot.size - net.counts.free} slots are taken")
        lively = int((~PERIODIC[net.flight["kind"][used]]).sum())
        status = sim.claims.status
        seconds = np.where(sim.cut >= 0, sim.cut, sim.tasks.run_time) if sim.cut.size else sim.tasks.run_time
        lively += int(((status == PHYSICALLY) & (seconds < np.inf)).sum())
        must(lively == net.counts.lively, "h", f"{net.counts.lively} things are noted to go on, there are {lively}")

    @property
    def now(self) -> float:
        """The time of the run, in seconds."""
        return self.sim.clock.now


