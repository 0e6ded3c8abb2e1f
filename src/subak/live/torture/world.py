"""A live federation in one process under a seed: real roles in a simulated, faulty world.

A process takes in what has arrived, has what it must write made durable, which takes a while, and only then sends and
does what follows; it can be killed between any two of these steps. What a master has not written is lost with it; what
a worker wrote outlives it, and what runs goes on, for as long as the agent of its machine holds out (machines.py).
Connections deliver frames in their order until they are cut (network.py). What agents do is watched (watch.py).
"""
import heapq
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER
from subak.live.role.base import Cut, Ready, Role
from subak.live.role.global_master.global_role import Acknowledged, GlobalRole
from subak.live.role.global_master.queues import QueuesFact
from subak.live.role.layout import Peer
from subak.live.role.local_role import LocalRole
from subak.live.role.store_claims import StoreRefused
from subak.live.role.worker.worker_role import WorkerRole
from subak.live.torture import stores
from subak.live.torture.case import Case
from subak.live.torture.machines import Machines
from subak.live.torture.network import Network
from subak.live.torture.process import Connection, Process, write
from subak.live.torture.scene import Scene
from subak.live.torture.watch import BrokenError

SYNC_S = (0.0005, 0.004)  # seconds that a write takes
FULL_S = 0.1  # after which a full disk is tried again
CALLS_MAX = 500  # of a process in one instant
CALL_SERVED_MAX = 20_000  # messages that a process serves in one call
FIRST_CLOCK = 1e9  # Unix time of the beginning


class Step(NamedTuple):
    """What a role has returned, in which life of its process, and the connections that it had then."""

    ready: Ready
    life: int
    connections: dict[Peer, Connection]


class World(Scene):
    """See the head of the file. Everything happens in `step`, in the order of time."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.queues = QueuesFact(1, case.queues, case.order)
        self.calls: tuple[float, Counter[str]] = (0.0, Counter())  # of each process, in an instant
        self.network = Network(self)
        self.machines = Machines(self, self.network)
        for number in range(self.layout.global_masters):
            self.add_master(GLOBAL_MASTER, number)
        for number in self.layout.locals:
            self.add_master(LOCAL_MASTER, number)
        self.acknowledged: Callable[[Process, int], None] = lambda process, job: None
        self.started: Callable[[Process], None] = lambda process: None

    def add_master(self, role: int, number: int) -> Process:
        """Return the place of a master, where none is yet."""
        there = self.masters if role == GLOBAL_MASTER else self.locals
        name = f"{'g' if role == GLOBAL_MASTER else 'l'}{len(there)}"

        def make(process: Process) -> Role:
            if role == GLOBAL_MASTER:
                return GlobalRole(number, self.layout, self.timing, self.queues, process.disk, name,
                                  f"{name} life {process.life}")
            return LocalRole(number, self.layout, self.timing, process.disk)

        there.append(Process(name, make, (role, number)))
        return there[-1]

    @property
    def processes(self) -> list[Process]:
        """All places where a process is, or may be."""
        return [*self.masters, *self.locals, *(machine.process for machine in self.machines.all)]

    def process(self, name: str) -> Process:
        """Return a process by its name."""
        return next(process for process in self.processes if process.name == name)

    # -- time ----------------------------------------------------------------------------------------------------------

    def until(self, when: float) -> None:
        """Go on up to a time."""
        while self.events and self.events[0][0] <= when:
            self.now, _, what = heapq.heappop(self.events)
            self.steps += 1
            what()
        self.now = max(self.now, when)

    # -- processes -----------------------------------------------------------------------------------------------------

    def start(self, process: Process) -> None:
        """Start a process that is not there, with what it has on disk."""
        if process.role is not None:
            return
        process.life += 1
        process.begin(process.make(process))
        self.note(f"{process.name} starts")
        self.started(process)
        self.call(process)
        self.network.meet_all(process)

    def kill(self, process: Process) -> None:
        """Kill a process: what it has not written is lost, what it has not sent is not sent."""
        if process.role is None:
            return
        self.note(f"{process.name} is killed")
        process.role, process.life, process.trap = None, process.life + 1, ""
        for connection in list(process.connections.values()):
            self.network.cut(connection)

    def call(self, process: Process) -> None:
        """Let a process take in what has arrived, and do what is due, unless it waits for its disk."""
        role = process.role
        if role is None or process.writing:
            process.is_wanted = True
            return
        process.is_wanted = False
        self._count_call(process)
        arrived, process.inbox = process.inbox, []
        if isinstance(role, GlobalRole):
            role.clock = FIRST_CLOCK + self.now
        ready = role.receive(self.now, arrived)
        self.watch.look(process, self.now)
        process.writing = True
        step = Step(ready, process.life, dict(process.connections))
        if not ready.writes:
            self._release_step(process, step)
            return
        if isinstance(role, WorkerRole) and not process.full:  # what outlives it without a sync
            write(process, [each for each in ready.writes if each.table == "state"])
        self.after(float(self.random.uniform(*SYNC_S)) + process.slow, lambda: self._make_durable(process, step))

    def _make_durable(self, process: Process, step: Step) -> None:
        if process.life != step.life:
            return
        if process.full:
            self.happened["written to a full disk"] += 1
            self.after(FULL_S, lambda: self._make_durable(process, step))
        elif not self._trapped(process, "unsynced"):
            write(process, step.ready.writes)
            if not self._trapped(process, "durable"):
                self._release_step(process, step)

    def _release_step(self, process: Process, step: Step) -> None:
        """Send and do what follows from a step, and go on."""
        self.release(process, step.ready, step.connections)
        if process.life == step.life:
            process.writing = False
            self.schedule(process)

    def _count_call(self, process: Process) -> None:
        if self.calls[0] != self.now:
            self.calls = self.now, Counter()
        self.calls[1][process.name] += 1
        if self.calls[1][process.name] > CALLS_MAX:
            raise BrokenError(f"{process.name} is called {CALLS_MAX} times in an instant")

    def _trapped(self, process: Process, step: str) -> bool:
        """Kill a process that is to die at this step of a write."""
        if process.trap != step:
            return False
        self.happened[f"killed at a write: {step}"] += 1
        self.kill(process)
        return True

    def schedule(self, process: Process) -> None:
        """Call a process when something has arrived, or is due; timers may be late."""
        if process.role is None or process.writing:
            return
        when = self.now if process.inbox or process.is_wanted else max(process.role.due(), self.now)
        if when < process.wake:
            process.wake, life = when, process.life
            late = min(float(self.random.exponential(self.lateness)), 0.9 * self.timing.timer_slack) \
                if self.lateness and when > self.now else 0.0
            self.at(when + late, lambda: self._wake(process, when, life))

    def _wake(self, process: Process, when: float, life: int) -> None:
        if process.life == life and process.wake == when:
            process.wake = float("inf")
            self.call(process)

    def call_soon(self, process: Process) -> None:
        """Call a process of which something was asked, as soon as it can be."""
        life = process.life
        self.after(0.0, lambda: self.call(process) if process.life == life else None)

    def release(self, process: Process, ready: Ready, connections: dict[Peer, Connection]) -> None:
        """Send and do what a role has returned; *connections*: those that it had then."""
        life = process.life
        for effect in ready.effects:
            self._carry_out(process, effect, connections)
            if process.life != life:
                return
        for peer, data in ready.frames:
            if peer in connections:
                self.network.transmit(connections[peer], process, data)

    def _carry_out(self, process: Process, effect: Any, on: dict[Peer, Connection]) -> None:
        if isinstance(effect, Acknowledged):
            self.acknowledged(process, effect.job)
        elif isinstance(effect, Cut):
            self.note(f"{process.name} cuts {effect.peer}: {effect.words}")
            self.happened["cut for a frame"] += 1
            if effect.peer in on:
                self.network.cut(on[effect.peer])
        elif isinstance(effect, StoreRefused):
            stores.refused(self, process, effect.words)
        elif process.machine is not None:
            self.machines.carry_out(process.machine, effect)


__all__ = ["BrokenError", "Process", "World"]
