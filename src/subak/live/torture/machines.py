"""The machines of a world: an agent that survives its worker, and a worker that attaches to it.

What runs is lost when the machine is switched off, or the agent dies; what the agent has on disk is not, nor what
its worker has synced. What the worker wrote without a sync outlives the worker; of the machine's end the last that was
written is left, or what was there when the machine was switched on.
"""
from typing import Any

import numpy as np

from subak.federation.messages import WORKER
from subak.live.agent.attempts.attempt import EXITED, AttemptToRun, Ending
from subak.live.agent.attempts.ledger import Lease
from subak.live.agent.attempts.records import SYNCED
from subak.live.agent.attempts.simulated import SimulatedAgent
from subak.live.role.base import Role
from subak.live.role.frames import Dismissed, Incoming, Join, Joined, Outgoing
from subak.live.role.worker.worker_role import End, Forget, Inquire, Ping, Start, WorkerRole
from subak.live.torture.case import MachineCase
from subak.live.torture.network import Network
from subak.live.torture.process import Machine, Process, write
from subak.live.torture.scene import Scene
from subak.live.torture.watch import BrokenError

ASK_AGAIN_S = 0.2  # for a number
TICK_S = 0.001  # between two looks at an agent, at least


class Machines:
    """See the head of the file."""

    def __init__(self, world: Scene, network: Network) -> None:
        self.world, self.network = world, network
        self.all: list[Machine] = []
        self.reboots = np.random.default_rng([world.case.seed, 73])  # what each leaves of a worker's tables

    def add(self, case: MachineCase) -> Machine:
        """Let a machine join: its worker asks a local master for a number, and keeps it."""
        name = f"m{len(self.all)}"

        def make(process: Process) -> Role:
            assert process.peer is not None
            return WorkerRole(process.peer[1], self.world.layout, self.world.timing, process.disk, machine.join,
                              f"{name} boot {machine.boots}")

        process = Process(name, make, None)
        machine = Machine(process, Join(-1, f"identity of {name}", name, case.capacity, case.attributes), case)
        process.machine = machine
        self.all.append(machine)
        self.switch_on(machine)
        return machine

    def _retire(self, machine: Machine) -> None:
        """Let a machine be gone that was told that it left, and another join in its place."""
        name = machine.process.name
        running = [task for task, (_, other) in self.world.watch.alive.items() if other == name]
        if running:
            raise BrokenError(f"{name} was let go while {running[0]} runs there")
        self.world.note(f"{name} has left")
        self.world.happened["a machine left"] += 1
        self.world.kill(machine.process)
        machine.process.is_dead, machine.agent = True, None
        self.add(machine.case)

    def switch_on(self, machine: Machine) -> None:
        """Switch a machine on, with an agent and a worker."""
        if machine.agent is None:
            machine.boots += 1
            machine.state_at_boot = machine.process.disk.get("state", {}).get(0)
            self.world.note(f"{machine.process.name} is switched on")
            self._begin_agent(machine)
        self.start_worker(machine)

    def switch_off(self, machine: Machine) -> None:
        """Switch a machine off: nothing runs on it any more, and what was written without a sync is lost."""
        if machine.agent is None:
            return
        self.world.kill(machine.process)
        self.world.note(f"{machine.process.name} is switched off")
        self.news(machine)
        if self.reboots.random() < 0.5:
            machine.process.disk.pop("state", None)
            if machine.state_at_boot is not None:
                machine.process.disk["state"] = {0: machine.state_at_boot}
        machine.records, machine.agent = self._synced(machine.agent.records), None
        self.world.watch.machine_died(machine, self.world.now)

    def _synced(self, records: list[Any]) -> list[Any]:
        """Return what a loss of power leaves of an agent's records: all up to some place behind the last synced."""
        least = max((place for place, record in enumerate(records, 1) if isinstance(record, SYNCED)), default=0)
        return records[: int(self.world.random.integers(least, len(records) + 1))]

    def kill_agent(self, machine: Machine) -> None:
        """Kill the agent, and with it what runs; its worker attaches to the next one."""
        if machine.agent is None:
            return
        self.world.note(f"the agent of {machine.process.name} is killed")
        self.news(machine)
        was_there = machine.process.role is not None
        self.world.kill(machine.process)
        machine.records = machine.agent.records
        self.world.watch.agent_died(machine)
        self._begin_agent(machine)
        if was_there:
            self.start_worker(machine)

    def _begin_agent(self, machine: Machine) -> None:
        machine.agent = SimulatedAgent(
            lambda: self.world.now, self._seconds_of, self._ending_of, self._lease(),
            machine.case.stubborn, machine.records)
        self.look_soon(machine)

    def _lease(self) -> Lease:
        timing = self.world.timing
        return Lease(timing.agent_lease, timing.agent_grace)

    def _seconds_of(self, attempt: AttemptToRun) -> float:
        return self.world.watch.ending(attempt)[0]

    def _ending_of(self, attempt: AttemptToRun) -> Ending:
        return Ending(EXITED, self.world.watch.ending(attempt)[1])

    # -- workers -------------------------------------------------------------------------------------------------------

    def start_worker(self, machine: Machine) -> None:
        """Start the worker of a machine; one that has no number yet asks for it first."""
        process = machine.process
        if process.role is not None or machine.agent is None:
            return
        if process.peer is None:
            self._ask_for_number(machine)
            return
        role = process.make(process)
        assert isinstance(role, WorkerRole)
        why = machine.agent.attach(int(role.me["incarnation"]), int(role.me["epoch"]))
        if why:
            raise BrokenError(f"{process.name}: its agent refuses it: {why}")
        role.reconcile(machine.agent.list())
        process.life += 1
        process.begin(role)
        self.world.note(f"{process.name} starts")
        self.news(machine)
        self.world.call(process)
        self.network.meet_all(process)

    def _ask_for_number(self, machine: Machine) -> None:
        for number in self.world.layout.masters_of(machine.case.cluster):
            process = self.world.local(number)
            if process.role is not None and not process.writing and machine.agent is not None:
                guest = WORKER, -1 - self.all.index(machine)
                process.role.connect(guest)
                ready = process.role.receive(self.world.now, [(guest, Outgoing().frame(machine.join))])
                process.role.disconnect(guest)
                write(process, ready.writes)
                self.world.release(process, ready, dict(process.connections))
                incoming = Incoming()
                answers = [incoming.read(data) for peer, data in ready.frames if peer == guest]
                joined = [frame for frame in answers if isinstance(frame, Joined)]
                if joined:
                    machine.process.peer = WORKER, joined[0].machine
                    self.start_worker(machine)
                    return
        self.world.after(ASK_AGAIN_S, lambda: self.start_worker(machine))

    # -- agents -----------------------------------------------------------------------------------------------------

    def carry_out(self, machine: Machine, effect: object) -> None:
        """Hand the agent what a worker wants of it."""
        agent, role = machine.agent, machine.process.role
        if agent is None or role is None:
            return
        self.news(machine)
        if isinstance(effect, Start):
            self.world.watch.ordered(machine, effect.attempt)
            agent.start(effect.attempt)
        elif isinstance(effect, End):
            agent.end(effect.key, effect.grace_s)
        elif isinstance(effect, Forget):
            agent.forget(*effect.keys)
        elif isinstance(effect, Ping):
            agent.ping()
        elif isinstance(effect, Dismissed) and isinstance(role, WorkerRole) and role.leaves:
            self._retire(machine)
            return
        elif isinstance(effect, Inquire) and isinstance(role, WorkerRole):
            role.answer(effect.peer, effect.ask.number, b"said")
            self.world.call_soon(machine.process)
        self.look_soon(machine)

    def look_soon(self, machine: Machine) -> None:
        """Look at an agent at once, and whenever something happens there."""
        machine.look_at = self.world.now
        self.world.after(0.0, lambda: self._look(machine, self.world.now))

    def _look(self, machine: Machine, when: float) -> None:
        if machine.look_at != when or machine.agent is None:
            return
        self.news(machine)
        if machine.agent is not None:
            due = machine.agent.due()
            machine.look_at = max(due, self.world.now + TICK_S) if due < float("inf") else due
            if due < float("inf"):
                at = machine.look_at
                self.world.at(at, lambda: self._look(machine, at))

    def news(self, machine: Machine) -> None:
        """Let the watch, and the worker, know what has happened at an agent up to now."""
        if machine.agent is None:
            return
        news = list(machine.agent.watch())
        if not news:
            return
        for other in self.all:  # what has ended elsewhere has ended before this begins
            if other is not machine and other.agent is not None and other.agent.due() <= self.world.now:
                self.news(other)
        self.world.watch.see(machine, news, self.world.now)
        role = machine.process.role
        if isinstance(role, WorkerRole):
            role.on_events(news)
            self.world.call_soon(machine.process)
