"""A live federation in one process, under a seed: nodes as they are, and around them a world that breaks.

A process takes in what has arrived, has what it must write made durable, which takes a while, and only then sends and
does what follows; it can be killed between any two of these steps. A connection delivers frames in their order, late,
until it is cut; a frame may be lost, or doubled, on it. What a master has not written is lost with it; what a worker
wrote outlives it, and what runs goes on, for as long as the executor of its machine holds out.
"""
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, WORKER
from subak.live.executor.attempt import EXITED, AttemptToRun, Begun, Ending, Exited, Key
from subak.live.executor.ledger import Lease
from subak.live.executor.simulated import SimulatedExecutor
from subak.live.node.base import Cut, Drop, Node, Put, Write
from subak.live.node.frames import Incoming, Join, Joined, Outgoing
from subak.live.node.global_node import Acknowledged, GlobalNode
from subak.live.node.layout import Layout, Peer, Timing
from subak.live.node.local_node import LocalNode
from subak.live.node.queues import QueuesFact
from subak.live.node.worker_node import End, Forget, Ping, Start, WorkerNode

SYNC_S = (0.0005, 0.004)  # seconds that a write takes
DELAY_S = (0.0002, 0.002)  # that a frame is under way
RECONNECT_S = 0.2
Disk = dict[str, dict[Any, bytes]]


class BrokenError(AssertionError):
    """The federation has done what it must not."""


@dataclass(eq=False)
class Process:
    """A node, or the place where one will be again, and what it has on disk."""

    name: str
    make: Callable[["Process"], Node]
    disk: Disk = field(default_factory=dict)
    node: Node | None = None
    inbox: list[tuple[Peer, bytes]] = field(default_factory=list)
    writing: bool = False  # whether a write is under way
    life: int = 0  # how often it was started: what belongs to a former life does not happen
    full: bool = False  # whether its disk is
    slow: float = 0.0  # seconds that a write takes beyond the usual
    wake: float = float("inf")  # when it is called next


@dataclass(eq=False)
class Connection:
    """Two ends, each with the peer that it sees, and when the last frame that each has sent arrives."""

    ends: tuple[Process, Process]
    peers: tuple[Peer, Peer]  # as whom each end sees the other
    is_open: bool = True
    lives: tuple[int, int] = (0, 0)
    last: list[float] = field(default_factory=lambda: [0.0, 0.0])


@dataclass(eq=False)
class Machine:
    """A machine: its executor, and what it has."""

    process: Process
    join: Join
    cluster: int
    executor: SimulatedExecutor | None = None
    number: int = -1
    boots: int = 0
    capacity: tuple[int, ...] = ()


class World:
    """See the head of the file. Everything happens in `step`, in the order of time."""

    def __init__(self, seed: int, layout: Layout, timing: Timing, queues: QueuesFact) -> None:
        self.random = np.random.default_rng(seed)
        self.layout, self.timing, self.queues = layout, timing, queues
        self.now, self.order = 0.0, itertools.count()
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.connections: dict[frozenset[str], Connection] = {}
        self.masters = [self._process(f"g{number}", GLOBAL_MASTER, number) for number in range(layout.global_masters)]
        self.locals = [self._process(f"l{number}", LOCAL_MASTER, number) for number in range(layout.local_masters)]
        self.machines: list[Machine] = []
        self.apart: set[frozenset[str]] = set()  # pairs that cannot reach each other
        self.loss = self.doubling = self.lateness = 0.0
        self.seconds: dict[int, Callable[[int], tuple[float, int]]] = {}  # of a job: (index) -> (seconds, exit code)
        self.alive: dict[int, tuple[Key, str]] = {}  # what runs of each task
        self.begun: dict[int, int] = {}  # how often each task was begun
        self.finished: dict[int, str] = {}  # tasks that came to a good end, and on which machine
        self.acknowledged: list[tuple[str, int]] = []  # process, job
        self.lost_machines: set[str] = set()
        self.requests: dict[tuple[int, int], tuple[int, ...]] = {}  # units that a stage's tasks ask for
        self.log: list[str] = []

    # -- processes -----------------------------------------------------------------------------------------------------

    def _process(self, name: str, role: int, number: int) -> Process:
        def make(process: Process) -> Node:
            if role == GLOBAL_MASTER:
                return GlobalNode(number, self.layout, self.timing, self.queues, process.disk, name)
            return LocalNode(number, self.layout, self.timing, process.disk)

        return Process(name, make)

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Let something happen at a time."""
        heapq.heappush(self.events, (when, next(self.order), what))

    def after(self, delay: float, what: Callable[[], None]) -> None:
        """Let something happen after a while."""
        self.at(self.now + delay, what)

    def step(self) -> bool:
        """Let the next thing happen; return whether there was one."""
        if not self.events:
            return False
        self.now, _, what = heapq.heappop(self.events)
        what()
        return True

    def until(self, when: float) -> None:
        """Go on up to a time."""
        while self.events and self.events[0][0] <= when:
            self.step()
        self.now = max(self.now, when)

    def start(self, process: Process) -> None:
        """Start a process that is not there, with what it has on disk."""
        if process.node is not None:
            return
        process.life += 1
        process.node = process.make(process)
        process.inbox, process.writing, process.wake = [], False, float("inf")
        self.note(f"{process.name} starts")
        self.call(process)
        for other in [*self.masters, *self.locals, *(machine.process for machine in self.machines)]:
            self._meet(process, other)

    def kill(self, process: Process) -> None:
        """Kill a process: what it has not written is lost, what it has not sent is not sent."""
        if process.node is None:
            return
        self.note(f"{process.name} is killed")
        process.node, process.life = None, process.life + 1
        for pair, connection in list(self.connections.items()):
            if process.name in pair:
                self.cut(connection)

    def call(self, process: Process) -> None:
        """Let a process take in what has arrived, and do what is due, unless it waits for its disk."""
        if process.node is None or process.writing:
            return
        arrived, process.inbox = process.inbox, []
        if isinstance(process.node, GlobalNode):
            process.node.clock = 1e9 + self.now
        ready = process.node.receive(self.now, arrived)
        life = process.life
        if isinstance(process.node, WorkerNode):
            self._write(process, [each for each in ready.writes if each.table == "state"])
        process.writing = True
        delay = float(self.random.uniform(*SYNC_S)) + process.slow if ready.writes else 0.0

        def written() -> None:
            if process.life != life:
                return
            if process.full and ready.writes:
                self.after(0.1, written)
                return
            self._write(process, ready.writes)
            self._release(process, ready.frames, ready.effects)
            process.writing = False
            if process.life == life:
                self._schedule(process)

        if delay:
            self.after(delay, written)
        else:
            written()

    def _schedule(self, process: Process) -> None:
        node = process.node
        if node is None:
            return
        when = self.now if process.inbox else max(node.due(), self.now)
        if when < process.wake:
            process.wake, life = when, process.life
            late = float(self.random.exponential(self.lateness)) if self.lateness and when > self.now else 0.0
            late = min(late, self.timing.timer_slack * 0.9)
            self.at(when + late, lambda: self._wake(process, life))

    def _wake(self, process: Process, life: int) -> None:
        if process.life == life:
            process.wake = float("inf")
            self.call(process)

    @staticmethod
    def _write(process: Process, writes: list[Write]) -> None:
        for each in writes:
            table = process.disk.setdefault(each.table, {})
            if isinstance(each, Put):
                table.update(zip(each.keys, each.bodies, strict=True))
            elif isinstance(each, Drop):
                for key in each.keys:
                    table.pop(key, None)

    def _release(self, process: Process, frames: list[tuple[Peer, bytes]], effects: list[Any]) -> None:
        life = process.life
        for effect in effects:
            self._carry_out(process, effect)
            if process.life != life:
                return
        for peer, data in frames:
            connection = self._connection(process, peer)
            if connection is not None:
                self._transmit(connection, process, data)

    # -- the network ---------------------------------------------------------------------------------------------------

    def _peer_of(self, process: Process) -> Peer | None:
        for role, group in ((GLOBAL_MASTER, self.masters), (LOCAL_MASTER, self.locals)):
            if process in group:
                return role, group.index(process)
        machine = self.machine_of(process)
        return (WORKER, machine.number) if machine is not None and machine.number >= 0 else None

    def machine_of(self, process: Process) -> Machine | None:
        """Return the machine of a worker."""
        return next((machine for machine in self.machines if machine.process is process), None)

    def _speak(self, first: Process, second: Process) -> bool:
        """Whether two processes have a connection when both are there."""
        peers = self._peer_of(first), self._peer_of(second)
        if None in peers or first is second:
            return False
        (one, a), (other, b) = sorted(peer for peer in peers if peer is not None)
        if (one, other) == (GLOBAL_MASTER, LOCAL_MASTER):
            return True
        if (one, other) == (LOCAL_MASTER, LOCAL_MASTER):
            return a % self.layout.clusters == b % self.layout.clusters
        return (one, other) == (LOCAL_MASTER, WORKER) and a % self.layout.clusters == self.layout.cluster_of(b)

    def _meet(self, first: Process, second: Process) -> None:
        """Connect two processes that speak with each other, now or as soon as they can."""
        if not self._speak(first, second):
            return
        pair = frozenset((first.name, second.name))
        if first.node is None or second.node is None or pair in self.connections:
            return
        if pair in self.apart:
            self.after(RECONNECT_S, lambda: self._meet(first, second))
            return
        peers = self._peer_of(second), self._peer_of(first)
        connection = Connection((first, second), peers, lives=(first.life, second.life))  # type: ignore[arg-type]
        self.connections[pair] = connection
        for end, peer in zip(connection.ends, connection.peers, strict=True):
            assert end.node is not None
            end.node.connect(peer)
            self._schedule_now(end)

    def _schedule_now(self, process: Process) -> None:
        life = process.life
        self.after(0.0, lambda: self.call(process) if process.life == life else None)

    def _connection(self, process: Process, peer: Peer) -> Connection | None:
        for connection in self.connections.values():
            for end, seen in zip(connection.ends, connection.peers, strict=True):
                if end is process and seen == peer:
                    return connection
        return None

    def _transmit(self, connection: Connection, sender: Process, data: bytes) -> None:
        side = connection.ends.index(sender)
        if self.random.random() < self.loss:
            return
        times = 2 if self.random.random() < self.doubling else 1
        for _ in range(times):
            late = float(self.random.exponential(0.5)) if self.random.random() < 0.02 * bool(self.lateness) else 0.0
            when = max(connection.last[side], self.now + float(self.random.uniform(*DELAY_S)) + late)
            connection.last[side] = when
            self.at(when, lambda: self._deliver(connection, 1 - side, data))

    def _deliver(self, connection: Connection, side: int, data: bytes) -> None:
        if not connection.is_open:
            return
        receiver = connection.ends[side]
        receiver.inbox.append((connection.peers[side], data))
        self._schedule(receiver)

    def cut(self, connection: Connection) -> None:
        """End a connection: what is under way on it is lost; both sides notice, and connect anew."""
        if not connection.is_open:
            return
        connection.is_open = False
        first, second = connection.ends
        self.connections.pop(frozenset((first.name, second.name)), None)
        for end, peer, life in zip(connection.ends, connection.peers, connection.lives, strict=True):
            if end.node is not None and end.life == life:
                end.inbox = [(seen, data) for seen, data in end.inbox if seen != peer]
                end.node.disconnect(peer)
        self.after(RECONNECT_S, lambda: self._meet(first, second))

    # -- machines ------------------------------------------------------------------------------------------------------

    def add_machine(self, name: str, cluster: int, capacity: tuple[int, ...], attributes: dict[str, str]) -> Machine:
        """Let a machine join: its worker asks a local master for a number, and keeps it."""
        def make(process: Process) -> Node:
            return WorkerNode(machine.number, self.layout, self.timing, process.disk, machine.join,
                              f"{name} boot {machine.boots}")

        process = Process(name, make)
        machine = Machine(process, Join(-1, f"identity of {name}", name, capacity, attributes), cluster,
                          capacity=capacity)
        self.machines.append(machine)
        self._switch_on(machine)
        return machine

    def _switch_on(self, machine: Machine) -> None:
        machine.boots += 1
        lease = Lease(self.timing.lease * (1 - 1 / 6) - 2 * self.timing.timer_slack, 0.1)
        machine.executor = SimulatedExecutor(lambda: self.now, self._seconds_of, self._ending_of, lease,
                                             records=[] if machine.executor is None else machine.executor.records)
        self._run_executor(machine)
        self.start_worker(machine)

    def start_worker(self, machine: Machine) -> None:
        """Start the worker of a machine; one that has no number yet asks for it first."""
        if machine.number < 0:
            self._ask_for_number(machine)
            return
        process = machine.process
        if process.node is not None or machine.executor is None:
            return
        self.start(process)
        node = process.node
        assert isinstance(node, WorkerNode)
        why = machine.executor.attach(int(node.me["incarnation"]), int(node.me["epoch"]))
        if why:
            raise BrokenError(f"{process.name}: its executor refuses it: {why}")
        node.reconcile(machine.executor.list())
        self._news(machine)
        self.call(process)

    def _ask_for_number(self, machine: Machine) -> None:
        for number in self.layout.masters_of(machine.cluster):
            process = self.locals[number]
            if process.node is not None and not process.writing:
                guest = WORKER, -1 - self.machines.index(machine)
                process.node.connect(guest)
                ready = process.node.receive(self.now, [(guest, Outgoing().frame(machine.join))])
                process.node.disconnect(guest)
                self._write(process, ready.writes)
                others = [(peer, data) for peer, data in ready.frames if peer != guest]
                self._release(process, others, ready.effects)
                self._schedule(process)
                incoming = Incoming()
                answers = [incoming.read(data) for peer, data in ready.frames if peer == guest]
                joined = [frame for frame in answers if isinstance(frame, Joined)]
                if joined:
                    machine.number = joined[0].machine
                    self.start_worker(machine)
                    return
        self.after(RECONNECT_S, lambda: self._ask_for_number(machine))

    def power_off(self, machine: Machine) -> None:
        """Switch a machine off: nothing runs on it any more, and what was written without a sync is lost."""
        self.kill(machine.process)
        self.note(f"{machine.process.name} is switched off")
        machine.process.disk.pop("state", None)
        for task, (_, name) in list(self.alive.items()):
            if name == machine.process.name:
                del self.alive[task]
        if machine.executor is not None:
            records = machine.executor.records
            machine.executor = None
            self.lost_machines.add(machine.process.name)
            self.after(float(self.random.uniform(0.5, 3 * self.timing.lease)), lambda: self._boot(machine, records))

    def _boot(self, machine: Machine, records: list[Any]) -> None:
        if machine.executor is None:
            machine.executor = SimulatedExecutor(lambda: self.now, records=records)
            self._switch_on(machine)

    def _seconds_of(self, attempt: AttemptToRun) -> float:
        return self.seconds[self.layout.job_of(attempt.key.task)](attempt.index)[0]

    def _ending_of(self, attempt: AttemptToRun) -> Ending:
        return Ending(EXITED, self.seconds[self.layout.job_of(attempt.key.task)](attempt.index)[1])

    def _run_executor(self, machine: Machine) -> None:
        """Look at the executor whenever something happens there, whether its worker lives or not."""
        executor = machine.executor

        def look() -> None:
            if machine.executor is executor and executor is not None:
                self._news(machine)
                self.at(max(min(executor.due(), self.now + 1.0), self.now + 0.001), look)

        self.after(0.001, look)

    def _news(self, machine: Machine) -> None:
        assert machine.executor is not None
        news = list(machine.executor.watch())
        for event in news:
            if isinstance(event, Exited):
                self._leave(machine, event)
            elif isinstance(event, Begun):
                self._enter(machine, event.key)
        node = machine.process.node
        if news and isinstance(node, WorkerNode):
            node.on_events(news)
            self.call(machine.process)

    def _enter(self, machine: Machine, key: Key) -> None:
        """Check that an attempt may begin."""
        there = self.alive.get(key.task)
        if there == (key, machine.process.name):
            return
        if there is not None:
            raise BrokenError(f"{key} begins on {machine.process.name} while {there[0]} runs on {there[1]}")
        where = self.finished.get(key.task)
        if where is not None and where not in self.lost_machines:
            raise BrokenError(f"{key} begins, though its task has finished on {where}")
        self.alive[key.task] = key, machine.process.name
        self.begun[key.task] = self.begun.get(key.task, 0) + 1
        self.check_room(machine)

    def _leave(self, machine: Machine, event: Exited) -> None:
        if self.alive.get(event.key.task) == (event.key, machine.process.name):
            del self.alive[event.key.task]
            if event.ending.is_good:
                self.finished[event.key.task] = machine.process.name

    def check_room(self, machine: Machine) -> None:
        """Check that what runs on a machine fits."""
        used = np.zeros(len(machine.capacity), np.int64)
        for key, name in self.alive.values():
            if name == machine.process.name:
                used += self.request_of(key.task)
        if (used > np.array(machine.capacity)).any():
            raise BrokenError(f"{name} has {machine.capacity}, and {used.tolist()} of it are used")

    def request_of(self, task: int) -> np.ndarray:
        """Return the units that a task asks for."""
        return np.array(self.requests[self.layout.job_of(task), 0])

    # -- effects -------------------------------------------------------------------------------------------------------

    def _carry_out(self, process: Process, effect: Any) -> None:
        machine = self.machine_of(process)
        if isinstance(effect, Acknowledged):
            self.acknowledged.append((process.name, effect.job))
        elif isinstance(effect, Cut):
            connection = self._connection(process, effect.peer)
            self.note(f"{process.name} cuts {effect.peer}: {effect.words}")
            if connection is not None:
                self.cut(connection)
        elif machine is not None and machine.executor is not None:
            executor = machine.executor
            if isinstance(effect, Start):
                executor.start(effect.attempt)
            elif isinstance(effect, End):
                executor.end(effect.key, effect.grace_s)
            elif isinstance(effect, Forget):
                executor.forget(*effect.keys)
            elif isinstance(effect, Ping):
                executor.ping()
            self.after(0.0, lambda: self._news(machine) if machine.executor is executor else None)

    def note(self, words: str) -> None:
        """Keep what has happened, for whoever looks for a fault."""
        self.log.append(f"{self.now:10.4f} {words}")


__all__ = ["BrokenError", "Machine", "Process", "World"]
