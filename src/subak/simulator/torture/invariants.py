"""What holds after every message of a Megha federation; plain Python, so that it shares nothing with the kernels.

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
    that gained launched more where there was room (rule STRICT)
(h) messages on their way are counted rightly
(i) at rest nothing is lost and nothing is left behind (at_rest.py)
(k) nobody spins: an instant holds a bounded number of messages
(l) a row of the table of open tasks is one task's, and is given back when nobody needs it any more
(j) what a message meets becomes what the table of transitions says (coverage.py)
"""
from typing import Any

import numpy as np

from subak.federation.megha.global_master.gangs import gang_is_settled, is_settled
from subak.federation.megha.global_master.state import (
    INCARNATION,
    NEVER_SEEN,
    PHASE_ENDED,
    PHASE_FLYING,
    PHASE_HELD,
    PHASE_LEAVING,
    PHASE_RUNNING,
    PHASE_WAITING,
    PHASES,
    QUEUED,
)
from subak.federation.megha.ledger import ENTRY, ENTRY_GAVE, ENTRY_SIZED, ENTRY_TOOK, ENTRY_WHOLE, VERSION
from subak.federation.megha.local_master.state import (
    ACTIVE,
    ATTEMPT_KILLING,
    ATTEMPT_OVER,
    ATTEMPT_PENDING,
    EPOCH,
    LISTED,
)
from subak.federation.megha.local_master.state import ATTEMPT_HELD as HELD_ROW
from subak.federation.megha.local_master.state import ATTEMPT_RUNNING as RUNNING_ROW
from subak.federation.megha.local_master.state import ATTEMPT_STARTING as STARTING_ROW
from subak.federation.megha.open_tasks import FREE_TASK, TASKS_EVER, TASKS_OPEN, OpenTasks
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
    PLACE,
    SETTLE,
    WORKER,
)
from subak.fleet.state import BLOCK
from subak.placement.claims import TASK_RUNNING as PHYSICALLY
from subak.queues.lanes import ACTIVE_LANES as LANES_ACTIVE
from subak.simulator.engine.heap import SIZE
from subak.simulator.engine.state import NEXT_ARRIVAL, NOW, Simulation
from subak.simulator.federated.by_task import row_of_each, states_by_task
from subak.simulator.federated.network import FREE, LIVELY, PERIODIC, Network

MACHINE_OF, TASK_OF, ATTEMPT_OF = (list(ENTRY.fields or ()).index(name) for name in ("machine", "task", "attempt"))
INSTANT_MAX = 3_000  # events at one time
HOLDING = (HELD_ROW, STARTING_ROW, RUNNING_ROW, ATTEMPT_KILLING)  # rows of a local master that have their amounts


class Broken(AssertionError):  # noqa: N818  (an invariant is broken)
    """An invariant does not hold; the text names it, with the numbers."""


def must(truth: Any, rule: str, said: str) -> None:
    """Raise Broken unless a rule holds."""
    if not truth:
        raise Broken(f"({rule}) {said}")


class Fold:
    """A cluster as its ledger tells it."""

    def __init__(self, first: int, capacity: np.ndarray, queues: int) -> None:
        self.first = first
        self.capacity = capacity.copy()  # int64[resource, machine of the cluster]
        self.free = capacity.copy()
        self.consumed = np.zeros((queues, len(capacity)), np.int64)
        self.held: set[tuple[int, int, int]] = set()  # machine, task, attempt
        self.epoch, self.seen = 0, 0

    def forget(self) -> None:
        """Know nothing."""
        self.capacity[:] = 0
        self.free[:] = 0
        self.consumed[:] = 0
        self.held.clear()

    def apply(self, entry: Any, watch: "Watch") -> None:
        """Apply one entry."""
        kind, machine, task, attempt = entry[0], entry[MACHINE_OF], entry[TASK_OF], entry[ATTEMPT_OF]
        if kind == ENTRY_WHOLE:
            self.forget()
        elif kind in (ENTRY_TOOK, ENTRY_GAVE):
            sign = 1 if kind == ENTRY_TOOK else -1
            self.free[:, machine - self.first] -= sign * watch.request[task]
            self.consumed[watch.queue[task]] += sign * watch.request[task]
            (self.held.add if kind == ENTRY_TOOK else self.held.discard)((machine, task, attempt))
        elif kind == ENTRY_SIZED:
            capacity = watch.capacity[task] if task != NOBODY else 0
            self.free[:, machine - self.first] += capacity - self.capacity[:, machine - self.first]
            self.capacity[:, machine - self.first] = capacity


class Watch:
    """Checks a run after every message."""

    def __init__(self, sim: Simulation, net: Network, roles: Megha) -> None:
        self.sim, self.net, self.roles = sim, net, roles
        topology = roles.topology
        self.masters, self.clusters = topology.global_masters, topology.local_masters
        self.instances = len(roles.locals)
        self.request = [sim.tasks.request[:, shape].astype(np.int64) for shape in sim.tasks.shape]
        self.queue = roles.jobs.asked["queue"].tolist()
        self.owner = roles.jobs.asked["owner"]
        self.capacity = [topology.capacity[:, number].astype(np.int64) for number in range(topology.capacity.shape[1])]
        self.gang = roles.jobs.gang if roles.jobs.gang.size else np.full(len(self.queue), NOBODY)
        bounds = topology.block[:: self.masters] * BLOCK
        self.span = [(int(bounds[cluster]), int(bounds[cluster + 1])) for cluster in range(self.clusters)]
        self.machines = np.flatnonzero(np.bincount(
            np.concatenate([np.flatnonzero(topology.machine["configuration"] != NOBODY), sim.changes.machine]),
            minlength=topology.machine.size)).tolist()
        start = np.zeros((len(sim.fleet.free), topology.machine.size), np.int64)
        for machine in np.flatnonzero(topology.machine["configuration"] != NOBODY):
            start[:, machine] = self.capacity[topology.machine["configuration"][machine]]
        queues = topology.queue.size

        def fold(cluster: int) -> Fold:
            first, end = self.span[cluster]
            return Fold(first, start[:, first:end], queues)

        self.history: dict[tuple[int, int], list[Any]] = {
            (number, 0): [] for number in range(self.instances)}  # by instance and epoch
        self.book = [fold(number % self.clusters) for number in range(self.instances)]
        self.view = [[fold(cluster) for cluster in range(self.clusters)] for _ in range(self.masters)]
        self.start = [fold(cluster) for cluster in range(self.clusters)]
        self.incarnation = [int(master.scalar[INCARNATION]) for master in roles.masters]
        self.incarnations = net.incarnation.copy()
        self.changed = False  # whether the fleet has ever changed
        self.before: dict[int, Any] = {}  # of each global master, for (f)
        self.swaps: set[tuple[int, int]] = set()  # (for whom, who was preempted) since the last news
        self.killing: set[tuple[int, int, int]] = set()
        self.restarted = False  # whether somebody crashed or restarted just before the last event
        self.instant, self.handled = -1.0, 0
        self.heirs: set[int] = set()  # tasks for whom others are being preempted
        self.arrived = 0
        self.entries: list[tuple[int, int, int]] = []  # (kind, task, phase before) that the last message brought
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
        if self.sim.counts[NEXT_ARRIVAL] != self.arrived or kind == EXITED:
            self.arrived = int(self.sim.counts[NEXT_ARRIVAL])
            self.swaps.clear()
        self.check_messages()

    def check_role(self, kind: int, number: int) -> None:
        """Check the role that handled a message of a kind."""
        role = HANDLER[kind]
        if role == GLOBAL_MASTER:
            self.check_master(number, kind)
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
            self.check_master(number, NOBODY)
        self.check_owners()
        self.check_workers()

    # -- local masters ----------------------------------------------------------------------------------------------

    def note_ledger(self, number: int) -> None:
        """Remember what a local master has entered, and fold it."""
        local, book = self.roles.locals[number], self.book[number]
        epoch, version = int(local.scalar[EPOCH]), int(local.ledger.size[VERSION])
        if not local.scalar[ACTIVE]:
            return
        if epoch != book.epoch:
            book.forget()
            book.epoch, book.seen = epoch, 0
        known = self.history.setdefault((number, epoch), [])
        ring = local.ledger.entry
        must(version - len(known) <= len(ring), "d", f"local master {number} entered {version - len(known)} at once")
        for place in range(len(known), version):
            known.append(ring[place % len(ring)].item())
            book.apply(known[-1], self)
            if known[-1][0] == ENTRY_TOOK:
                self.note_launch(known[-1][TASK_OF])
        book.seen = version

    def check_local(self, number: int) -> None:
        """Check (a): the books of an active local master are the fold of its ledger, and what its rows hold."""
        local, cluster = self.roles.locals[number], number % self.clusters
        if not local.scalar[ACTIVE]:
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
                if state == LISTED and not self.changed:
                    must((free[:, machine - first] >= 0).all(), "a", f"local master {number} oversubscribes machine "
                                                                     f"{machine}: {free[:, machine - first]}")
        must(held == book.held, "a", f"local master {number} holds {sorted(held ^ book.held)} or does not: rows and "
                                     "ledger differ in it")
        self.check_summary(local.fleet.free, local.fleet.block_free_max, first, end, f"local master {number}")

    def rows(self, row: np.ndarray, heads: np.ndarray, machine: int) -> list[Any]:
        """Return the rows of a machine, and check their links."""
        found, before, number = [], NOBODY, heads[machine]
        while number != NOBODY:
            must(row[number]["machine"] == machine and row[number]["before"] == before, "a",
                 f"row {number} is not where the list of machine {machine} has it")
            found.append(row[number])
            must(len(found) <= row.size, "a", f"the list of machine {machine} is a ring")
            before, number = number, row[number]["next"]
        return found

    def check_summary(self, free: np.ndarray, summary: np.ndarray, first: int, end: int, who: str) -> None:
        """Check (a): what a block has free at most is what is noted."""
        truth = free[:, first:end].reshape(len(free), -1, BLOCK).max(axis=2)
        must(np.array_equal(truth, summary[:, first // BLOCK : end // BLOCK]), "a", f"{who} notes wrong summaries")

    def speaker(self, cluster: int) -> int:
        """Return the local master that speaks for a cluster: of those alive and active the one of the latest epoch."""
        best = NOBODY
        for number in range(cluster, self.instances, self.clusters):
            alive = self.net.incarnation[self.net.first[LOCAL_MASTER] + number] > 0
            if alive and self.roles.locals[number].scalar[ACTIVE]:  # noqa: SIM102
                if best == NOBODY or self.roles.locals[number].scalar[EPOCH] > self.roles.locals[best].scalar[EPOCH]:
                    best = number
        return best

    def check_owners(self) -> None:
        """(c) A task has at most one live attempt."""
        owner: dict[int, int] = {}
        for cluster in range(self.clusters):
            number = self.speaker(cluster)
            if number == NOBODY:
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
            must((victim, heir) not in self.swaps, "g", f"task {victim} gives way to task {heir}, which gave way to it")
            self.swaps.add((heir, victim))

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
        believed = []
        for machine in self.machines:
            for row in self.rows(workers.rows.row, workers.rows.first, machine):
                if row["state"] == RUNS:
                    believed.append((int(row["task"]), machine))
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

    # -- global masters ---------------------------------------------------------------------------------------------

    def check_master(self, number: int, kind: int) -> None:
        """Check one global master after a message of a kind."""
        mine, table = np.flatnonzero(self.owner == number), states_by_task(self.roles)
        self.check_view(number, mine, table)
        self.check_lanes(number, mine, table)
        self.check_gangs(number, table)
        self.check_idle(number, kind)
        self.check_rows(number)

    def check_rows(self, number: int) -> None:
        """(l) A row is that of one open task, or free; nothing of a former one is left in it."""
        tasks, master = self.roles.submitters[number].tasks, self.roles.masters[number]
        ever = int(tasks.size[TASKS_EVER])
        numbers = tasks.number[:ever]
        is_open = numbers[numbers != NOBODY].tolist()
        must(len(is_open) == len(set(is_open)) == tasks.size[TASKS_OPEN], "l",
             f"global master {number} has rows for tasks {is_open}, and counts {tasks.size[TASKS_OPEN]}")
        must(all(self.owner[task] == number for task in is_open), "l",
             f"of tasks {is_open} some are not of global master {number}")
        free: list[int] = []
        row = int(tasks.size[FREE_TASK])
        while row != NOBODY and len(free) <= ever:
            free.append(row)
            row = int(tasks.next[row])
        must(sorted(free) == np.flatnonzero(numbers == NOBODY).tolist(), "l",
             f"rows {free} are listed as free, those of nobody are {np.flatnonzero(numbers == NOBODY).tolist()}")
        busy = master.task["queued"][:ever] | master.task["flying"][:ever]
        stale = np.flatnonzero(busy & (master.task["tenant"][:ever] != numbers + 1)).tolist()
        must(not stale, "l", f"rows {stale} of global master {number} were given back while they were in use")

    def check_view(self, number: int, mine: np.ndarray, table: np.ndarray) -> None:
        """(d) Its view is a fold of each local master's ledger, plus its launches in flight."""
        master = self.roles.masters[number]
        reborn = master.scalar[INCARNATION] != self.incarnation[number]
        self.incarnation[number] = master.scalar[INCARNATION]
        flying = mine[table["flying"][mine]]
        must(np.isin(table["phase"][flying], (PHASE_FLYING, PHASE_LEAVING)).all(), "d",
             f"tasks {flying.tolist()} fly in phases {[PHASES[phase] for phase in table['phase'][flying]]}")
        for cluster, fold in enumerate(self.view[number]):
            if reborn:
                fold.forget()
                fold.seen = NEVER_SEEN
            self.bring_up(number, cluster, fold, mine)
            first, end = self.span[cluster]
            free, consumed = fold.free.copy(), fold.consumed.copy()
            for task in flying:
                machine = table["machine"][task]
                if first <= machine < end:
                    free[:, machine - first] -= self.request[task]
                    consumed[self.queue[task]] += self.request[task]
            if not np.array_equal(free, master.fleet.free[:, first:end]):
                raise Broken(self.differs(number, cluster, free))
            must(np.array_equal(consumed, master.consumed[cluster]), "d",
                 f"global master {number} counts other amounts for queues in cluster {cluster} than the ledger")
            if self.roles.rules.preemption != OFF:
                self.check_held(number, cluster, fold)
            self.check_bins(number, cluster, fold, {int(task): int(table["machine"][task]) for task in flying})
        must(np.array_equal(master.consumed.sum(axis=0), master.total), "d",
             f"global master {number} has totals that are no sums")
        self.check_summary(master.fleet.free, master.fleet.block_free_max, 0, master.fleet.free.shape[1],
                           f"global master {number}")

    def bring_up(self, number: int, cluster: int, fold: Fold, mine: np.ndarray) -> None:
        """Fold what the master has seen since."""
        row = self.roles.masters[number].cluster[cluster]
        epoch, seen = int(row["epoch"]), int(row["seen"])
        if seen == NEVER_SEEN or (epoch, seen) == (fold.epoch, fold.seen):
            return
        history = self.history.get((cluster + self.clusters * (epoch % 2), epoch), [])
        must(seen <= len(history), "d", f"global master {number} has seen version {seen} of epoch {epoch} of cluster "
                                        f"{cluster}, which has {len(history)}")
        if fold.seen == NEVER_SEEN or epoch != fold.epoch:
            begin = max(place for place in range(seen) if history[place][0] == ENTRY_WHOLE)
        else:
            begin = fold.seen
        whole = next((place for place in range(seen - 1, begin - 1, -1) if history[place][0] == ENTRY_WHOLE), begin)
        for place in range(whole, seen):
            fold.apply(history[place], self)
            self.entries.append((history[place][0], history[place][TASK_OF], history[place][ATTEMPT_OF]))
        fold.epoch, fold.seen = epoch, seen

    def differs(self, number: int, cluster: int, free: np.ndarray) -> str:
        """Say where a view differs."""
        first, end = self.span[cluster]
        there = self.roles.masters[number].fleet.free[:, first:end]
        place = int(np.flatnonzero((free != there).any(axis=0))[0])
        return (f"(d) global master {number} believes machine {first + place} has {there[:, place].tolist()} free; its "
                f"ledger and the launches in flight leave {free[:, place].tolist()}")

    def check_held(self, number: int, cluster: int, fold: Fold) -> None:
        """(d) It knows who holds what."""
        master, (first, end) = self.roles.masters[number], self.span[cluster]
        held = set()
        for machine in self.machines:
            if first <= machine < end:
                for row in self.rows(master.held.row, master.held.first, machine):
                    held.add((machine, int(row["task"]), int(row["attempt"])))
        must(held == fold.held, "d", f"global master {number} differs from its ledger in who holds what: "
                                     f"{sorted(held ^ fold.held)}")

    def check_bins(self, number: int, cluster: int, fold: Fold, flying: dict[int, int]) -> None:
        """(d) It knows how many of each class run where, if machines emulate bins."""
        master, (first, end) = self.roles.masters[number], self.span[cluster]
        held = [(machine, task) for machine, task, _ in fold.held]
        held += [(machine, task) for task, machine in flying.items()]
        counted = np.zeros_like(master.bins.running)
        for machine, task in held if len(counted) else []:
            if first <= machine < end:
                counted[master.bins.class_of_shape[self.sim.tasks.shape[task]], machine] += 1
        must(np.array_equal(counted[:, first:end], master.bins.running[:, first:end]), "d",
             f"global master {number} counts other tasks in the bins of cluster {cluster} than the ledger has")

    def check_lanes(self, number: int, mine: np.ndarray, table: np.ndarray) -> None:
        """(e) Every waiting task is in its lane, once; flags and counts agree."""
        master, topology = self.roles.masters[number], self.roles.topology
        first, end = master.queue_first[number], master.queue_first[number + 1]
        members: list[int] = []
        lane_of, rows = self.roles.jobs.asked["lane"], row_of_each(self.roles)
        for queue in range(first, end):
            low, high = topology.lane_first[queue], topology.lane_first[queue + 1]
            active = sorted(master.lanes.active[low : low + master.lane_size[queue, LANES_ACTIVE]].tolist())
            full = [lane for lane in range(low, high) if master.lanes.root[lane] != NOBODY]
            must(active == full, "e", f"queue {queue} lists lanes {active} as active, {full} hold tasks")
            for lane in full:
                inside = self.lane(number, int(master.lanes.root[lane]))
                must(all(lane_of[task] == lane for task in inside), "e", f"lane {lane} holds {inside}")
                members += inside
        must(len(members) == len(set(members)), "e",
             f"a task is twice in the lanes of global master {number}: {members}")
        flags = mine[table["queued"][mine]].tolist()
        must(sorted(members) == flags, "e", f"in lanes {sorted(members)}, flagged {flags}")
        must(master.scalar[QUEUED] == len(members), "e", f"{master.scalar[QUEUED]} noted in lanes, there "
                                                                f"are {len(members)}")
        waiting = mine[(table["phase"][mine] == PHASE_WAITING) & (self.gang[mine] == NOBODY)]
        lost = sorted(task for task in set(waiting.tolist()) - set(members) if is_settled(master, rows[task]))
        must(not lost or self.is_settling(number), "e", f"tasks {lost} wait in no lane")

    def is_settling(self, number: int) -> bool:
        """Whether a global master has yet to go on with what a whole state settles."""
        used = self.net.events.slot["item"][: self.net.events.size[SIZE]]
        return bool(((self.net.flight["kind"][used] == SETTLE) & (self.net.flight["to"][used] == number)).any())

    def lane(self, master: int, root: int) -> list[int]:
        """Return the tasks of a lane."""
        lanes, found, open_tasks = self.roles.masters[master].lanes, [], [root]
        while open_tasks:
            task = open_tasks.pop()
            found.append(int(lanes.number[task]))
            must(len(found) <= len(self.queue), "e", "a lane is a ring")
            child = int(lanes.child[task])
            while child != NOBODY:
                open_tasks.append(child)
                child = int(lanes.sibling[child])
        return found

    def check_gangs(self, number: int, table: np.ndarray) -> None:
        """(e) Gangs count their members rightly, none of a gang runs while another is only held or requested."""
        master, tasks = self.roles.masters[number], self.roles.submitters[number].tasks
        for gang, row in enumerate(self.roles.jobs.gang_row):
            is_here = row != NOBODY and self.owner[np.flatnonzero(self.gang == gang)[0]] == number
            if not is_here or master.gang["tenant"][row] != gang + 1:
                continue
            members = self.members(tasks, row)
            phase = table["phase"][members]
            waiting = int(np.isin(phase, (PHASE_WAITING, PHASE_ENDED)).sum())
            must(master.gang["waiting"][row] == waiting, "e", f"gang {gang} counts {master.gang['waiting'][row]} "
                                                               f"that wait or have ended, there are {waiting}")
            apart = np.isin(phase, (PHASE_FLYING, PHASE_HELD)).any() and (phase == PHASE_RUNNING).any()
            must(not apart, "e", f"gang {gang} starts in parts: {[PHASES[code] for code in phase]}")
            settled = gang_is_settled(master, tasks, row)
            all_wait = waiting == self.roles.jobs.gang_size[gang] and (phase == PHASE_WAITING).any()
            if settled and all_wait and not self.is_settling(number):
                must(table["queued"][members].any(), "e", f"gang {gang} waits in no lane")
            for task in members[(self.sim.claims.status[members] == PHYSICALLY)]:
                must(table["phase"][task] not in (PHASE_FLYING, PHASE_HELD), "e",
                     f"task {task} of gang {gang} runs before its gang may go")

    def members(self, tasks: OpenTasks, gang: int) -> np.ndarray:
        """Return the tasks of a gang that were submitted."""
        found: list[int] = []
        row = int(tasks.gangs[gang]["first"])
        while row != NOBODY:
            found.append(int(tasks.number[row]))
            must(len(found) <= len(self.queue), "l", f"the list of gang {gang} is a ring")
            row = int(tasks.next[row])
        return np.array(found, np.int64)

    def check_idle(self, number: int, kind: int) -> None:
        """(f) A turn that requested nothing has left the view and the tasks as they were."""
        master = self.roles.masters[number]
        now = (master.fleet.free.copy(), master.total.copy(), master.task["phase"].copy(),
               master.cluster["numbers"].sum())
        if kind == PLACE and number in self.before and now[3] == self.before[number][3]:
            for before, after in zip(self.before[number], now, strict=True):
                must(np.array_equal(before, after), "f", f"global master {number} changed in a turn without a request")
        self.before[number] = now

    # -- messages ---------------------------------------------------------------------------------------------------

    def check_messages(self) -> None:
        """(h) Slots are free or in the heap, and lively ones are counted."""
        sim, net = self.sim, self.net
        used = self.net.events.slot["item"][: self.net.events.size[SIZE]]
        must(len(used) == net.slot.size - net.size[FREE], "h", f"{len(used)} messages are on their way, "
                                                               f"{net.slot.size - net.size[FREE]} slots are taken")
        lively = int((~PERIODIC[net.flight["kind"][used]]).sum())
        status = sim.claims.status
        seconds = np.where(sim.cut >= 0, sim.cut, sim.tasks.run_time) if sim.cut.size else sim.tasks.run_time
        lively += int(((status == PHYSICALLY) & (seconds < np.inf)).sum())
        must(lively == net.size[LIVELY], "h", f"{net.size[LIVELY]} things are noted to go on, there are {lively}")

    @property
    def now(self) -> float:
        """The time of the run, in seconds."""
        return float(self.sim.clock[NOW])


