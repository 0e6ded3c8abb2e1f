"""A federation of Megha's roles without a simulator, in which jobs, queues, shapes and machines come and go.

It drives the handlers as processes would: it begins with empty tables that have room, delivers messages after a while,
some of them twice or late, keeps timers, and runs attempts for as long as their tasks say.
"""
import heapq
import itertools

import numpy as np

from subak.federation.megha.admission import Admission
from subak.federation.megha.catalog import Catalog, empty_fleet
from subak.federation.megha.global_master.placement import Bins
from subak.federation.megha.global_master.queue_order import QueueOrder
from subak.federation.megha.ledger import build_ledger
from subak.federation.megha.roles import SERVE, Megha, tables_of
from subak.federation.megha.tables import (
    build_by_machine,
    build_global_master,
    build_jobs,
    build_local_master,
    build_submitter,
)
from subak.federation.megha.topology import MACHINE_PLACE, OFF, QUEUE_PLACE, Rules, Topology, records
from subak.federation.megha.worker import build_workers
from subak.federation.messages import (
    ARRIVE,
    BEGIN,
    BOOT,
    CANCEL,
    CHANGE,
    CROSSES,
    EXECUTOR,
    EXITED,
    GIVEN_UP,
    GLOBAL_MASTER,
    HALT,
    HANDLER,
    KINDS,
    LOCAL_MASTER,
    MESSAGE,
    NOBODY,
    RECONFIGURE,
    RESTART,
    SUBMITTER,
    WORKER,
    build_outbox,
)
from subak.fleet.state import BLOCK
from subak.queues.fair_orders import branches_of, hierarchy_of
from subak.queues.tree import tree_of_paths
from subak.workload.tasks import Requests

RESOURCES, SHAPES, SETS, CONFIGURATIONS, QUEUES, LANES = 2, 64, 16, 16, 16, 64


def no_order():
    """Queues are served in turns."""
    tree = hierarchy_of("drf", branches_of(tree_of_paths(["none"])), np.ones((1, RESOURCES)), ["cpu", "memory"])
    nothing = np.zeros(0, np.int32)
    return QueueOrder(tree, nothing, nothing, np.zeros((0, RESOURCES + 1), np.int64))


class Growing:
    """Global masters, one local master, and machines that join."""

    def __init__(self, seed, masters=1, places=64, rows=64, doubled=0.0, retry=1.0):
        self.random, self.now, self.events, self.order = np.random.default_rng(seed), 0.0, [], itertools.count()
        self.doubled, self.masters = doubled, masters
        machines = masters * BLOCK
        self.topology = topology = Topology(
            masters, 1, records(MACHINE_PLACE, cluster=np.zeros(machines), home=np.arange(machines) // BLOCK,
                                configuration=np.full(machines, NOBODY)),
            np.zeros(1, np.int32), np.arange(masters + 1), np.zeros(QUEUES, QUEUE_PLACE),
            np.zeros((RESOURCES, CONFIGURATIONS), np.int32), 0, 1, np.ones(1, np.bool_))
        rules = Rules(1.0, retry, 10.0, 0.1, False, OFF, 0, False, np.inf)
        shapes = Requests(np.zeros((RESOURCES, SHAPES), np.int32), np.zeros(SHAPES, np.int32))
        books = empty_fleet(RESOURCES, machines, SETS, SHAPES)
        views = [empty_fleet(RESOURCES, machines, SETS, SHAPES)._replace(allowed=books.allowed) for _ in range(masters)]
        self.catalog = Catalog(shapes.request, shapes.constraint_set, topology.capacity, books.allowed)
        # beside its master, in one process with it, a submitter says nothing twice
        submitters = [build_submitter(number, rows, rows, *shapes, np.inf) for number in range(masters)]
        globals_ = [build_global_master(
            submitter, topology, view, own=np.zeros(0, np.int32), lanes=LANES,
            lane_span=np.zeros((QUEUES, 2), np.int32), lane_places=4 * LANES, queue_order=no_order(), bins=Bins(
                np.zeros((0, machines), np.int16), np.zeros(0, np.int32), np.zeros((0, machines), np.int16)), held=0,
            counted=RESOURCES,
        ) for submitter, view in zip(submitters, views, strict=True)]
        local = build_local_master(0, topology, build_by_machine(topology, books), 4 * rows,
                                   build_ledger(1 << 14, 1 << 14))
        workers = build_workers(topology, np.zeros((RESOURCES, machines), np.int32), 4 * rows)
        self.jobs = [build_jobs(places, places, places, places) for _ in range(masters)]
        self.admission = [Admission(jobs, master) for jobs, master in zip(self.jobs, globals_, strict=True)]
        self.roles = Megha(topology, rules, self.jobs[0], submitters, globals_, [local], workers)
        self.inbox, self.out = np.zeros(1, MESSAGE), build_outbox(4 * rows, 8)
        tables = tables_of(self.roles, shapes, np.zeros(1, np.int32), self.inbox, self.out)
        self.of_submitter = [tables[SUBMITTER]._replace(jobs=jobs) for jobs in self.jobs]
        self.tables = tables
        self.run_times, self.running, self.held = {}, {}, np.zeros((RESOURCES, machines), np.int64)
        self.begun, self.ended, self.given_up, self.told = {}, {}, {}, []
        self.shape_of, self.capacity = {}, {}  # of each task; of each machine
        self.tell(LOCAL_MASTER, 0, BOOT)

    # -- messages ------------------------------------------------------------------------------------------------------

    def tell(self, role, to, kind, delay=0.0, **fields):
        """Hand a role a message from outside, after a while."""
        message = np.zeros(1, MESSAGE)
        message["task"] = message["machine"] = message["handle"] = message["shape"] = NOBODY
        message["kind"], message["to"], message["sender"] = kind, to, NOBODY
        for name, value in fields.items():
            message[name] = value
        self.send(role, message[0], delay)

    def send(self, role, message, delay):
        heapq.heappush(self.events, (self.now + delay, next(self.order), role, message.copy()))

    def step(self):
        """Deliver the next message; return whether there was one."""
        if not self.events:
            return False
        self.now, _, role, message = heapq.heappop(self.events)
        kind, to = int(message["kind"]), int(message["to"])
        if kind == EXITED and not self.leave(message):
            return True
        self.told.append((self.now, KINDS[kind], role, to, int(message["task"])))
        self.inbox[0] = message
        self.out.counts.posted = 0
        with np.errstate(over="ignore"):
            SERVE[role](self.of_submitter[to] if role == SUBMITTER else self.tables[role], self.now, 1)
        assert self.out.counts.overrun == 0, "an outbox overran"
        for answer in self.out.row[: self.out.counts.posted].copy():
            self.carry_out(answer)
        return True

    def carry_out(self, message):
        kind = int(message["kind"])
        if kind == BEGIN:
            self.begin(message)
        elif kind == HALT:
            self.leave(message)
        elif kind == GIVEN_UP:
            self.given_up[int(message["task"])] = int(message["reason"])
        elif HANDLER[kind] != EXECUTOR:
            crosses = bool(CROSSES[kind])
            delay = self.random.uniform(0.0005, 0.002) if crosses else float(message["delay"])
            self.send(int(HANDLER[kind]), message, delay)
            if crosses and self.random.random() < self.doubled:
                self.send(int(HANDLER[kind]), message, float(self.random.exponential(3.0)))

    # -- the agent --------------------------------------------------------------------------------------------------

    def begin(self, message):
        """Run an attempt: on a machine that has what it asks and meets its constraints, and no second one of a task."""
        task, machine = int(message["task"]), int(message["machine"])
        assert task not in self.running, f"task {task} runs twice"
        assert task not in self.ended, f"task {task} has ended"
        shape = self.shape_of[task]
        self.held[:, machine] += self.catalog.request[:, shape]
        assert (self.held[:, machine] <= self.capacity[machine]).all(), f"machine {machine} is oversubscribed"
        bits = self.catalog.allowed[self.catalog.constraint_set[shape], machine // BLOCK]
        assert (int(bits) >> machine % BLOCK) & 1, f"task {task} may not run on machine {machine}"
        self.begun[task] = self.now
        self.running[task] = machine, int(message["attempt"])
        self.send(WORKER, self.exit_of(message), self.run_times[task])

    @staticmethod
    def exit_of(message):
        over = message.copy()
        over["kind"], over["to"] = EXITED, message["machine"]
        return over

    def leave(self, message):
        """Take an attempt off its machine; return whether it was there."""
        task = int(message["task"])
        if message["kind"] == EXITED and self.running.get(task) != (int(message["machine"]), int(message["attempt"])):
            return False
        if self.running.pop(task, None) is None:
            return False
        self.held[:, int(message["machine"])] -= self.catalog.request[:, self.shape_of[task]]
        if message["kind"] == EXITED:
            self.ended[task] = self.now
        return True

    # -- what comes and goes -------------------------------------------------------------------------------------------

    def join(self, machine, capacity, **attributes):
        """Let a machine join, or take another capacity."""
        self.catalog.describe(machine, attributes)
        self.capacity[machine] = np.array(capacity)
        configuration = self.catalog.configuration(capacity)
        self.tell(WORKER, machine, RECONFIGURE, machine=machine, shape=configuration)
        self.tell(LOCAL_MASTER, 0, CHANGE, machine=machine, shape=configuration)

    def submit(self, job, run_times, master=0):
        """Admit a job whose tasks arrive now; *run_times*: of the tasks of each stage."""
        self.admission[master].add_queue(job.queue)
        admitted = self.admission[master].admit(job)
        self.admission[master].lay(admitted, 0, admitted.tasks)
        for stage, numbers, seconds in zip(job.stages, admitted.numbers, run_times, strict=True):
            for number in numbers.tolist():
                key = number * self.masters + master if self.masters > 1 else number
                assert key not in self.run_times, "a number was given twice"
                self.run_times[number], self.shape_of[number] = seconds, stage.shape
                self.tell(SUBMITTER, master, ARRIVE, task=number)
        return admitted

    def cancel(self, number, master=0):
        self.tell(SUBMITTER, master, CANCEL, task=number)

    def restart(self, master=0):
        """Let a global master lose its memory, and begin again."""
        self.tell(GLOBAL_MASTER, master, RESTART)

    def until(self, seconds):
        """Go on up to an instant."""
        while self.events and self.events[0][0] <= seconds:
            self.step()
        self.now = seconds

