"""The users of a federation: they resubmit until acknowledged, and change their minds.

A job is submitted under the same client's name each time. An acknowledgement may be lost on its way. Who was told that
a job is there can rely on it: it is looked for after every start of its global master, and at rest.
"""
from typing import TYPE_CHECKING

from subak.errors import InputError
from subak.federation.messages import LOCAL_MASTER, NOBODY
from subak.live.role.frames import Ask
from subak.live.role.global_master.global_role import GlobalRole, NoNumbersError
from subak.live.role.global_master.queues import QueuesFact, changed
from subak.live.role.local_role import LocalRole
from subak.live.role.worker.worker_role import WorkerRole
from subak.live.torture.case import JobCase, QueueChange, Wish
from subak.live.torture.process import Machine, Process
from subak.live.torture.watch import BrokenError

if TYPE_CHECKING:
    from subak.live.torture.world import World

AGAIN_S = 0.4  # after which what was not acknowledged is submitted again
UNHEARD = 0.15  # of the acknowledgements, while things go wrong


class People:
    """See the head of the file."""

    def __init__(self, world: "World") -> None:
        self.world, self.case = world, world.case
        self.told: dict[str, tuple[str, int]] = {}  # by client: at which master, and the job's number
        self.refused: dict[str, str] = {}  # by client: why
        self.asked = 0
        self.given: dict[tuple[str, int], str] = {}  # by global master and number of a job: its client
        world.acknowledged, world.started, world.replaced = self._acknowledge, self._look_for_jobs, self._forget_lost
        for job in self.case.jobs:
            world.at(job.at, lambda job=job: self._submit(job))  # type: ignore[misc]
        for wish in self.case.wishes:
            world.at(wish.at, lambda wish=wish: self._wish(wish))  # type: ignore[misc]
        for change in self.case.changes:
            world.at(change.at, lambda change=change: self._change(change))  # type: ignore[misc]

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def master_of(self, job: JobCase) -> Process | None:
        """Return the global master of a job's queue."""
        return self.world.masters[self.world.owner_of(job)]

    def _submit(self, job: JobCase) -> None:
        """Submit a job, and again until it is acknowledged."""
        process = self.master_of(job)
        if process is None or job.client in self.told or job.client in self.refused:
            return
        if process.is_dead:
            self.refused[job.client] = "its master never comes back"
            return
        self.world.after(AGAIN_S, lambda: self._submit(job))
        if isinstance(process.role, GlobalRole):
            process.role.now = max(process.role.now, self.world.now)
            try:
                process.role.submit(job.spec, job.client, 1e9 + self.world.now)
            except NoNumbersError:
                self.world.happened["no number for a job yet"] += 1
                return
            except InputError as error:
                if "wait for some jobs to end" in str(error):
                    self.world.happened["too many kinds of tasks for now"] += 1
                    return
                if "queue" not in str(error):
                    raise BrokenError(f"{job.client} is refused: {error}") from None
                self.refused[job.client] = str(error)
            self.world.call_soon(process)

    def _acknowledge(self, process: Process, number: int) -> None:
        role = process.role
        assert isinstance(role, GlobalRole)
        clients = [client for client, kept in role.kept.items() if kept == number]
        for client in clients:
            if self.given.setdefault((process.name, number), client) != client:
                raise BrokenError(f"{process.name} gives {client} number {number}, which is a job of "
                                  f"{self.given[process.name, number]}")
        if self.world.now < self.case.over_at and self.case.faults and self.world.random.random() < UNHEARD:
            self.world.happened["acknowledgement lost"] += 1
            return
        for client in clients:
            before = self.told.setdefault(client, (process.name, number))
            if before != (process.name, number):
                raise BrokenError(f"{client} is told of job {number} of {process.name}, and of {before}")

    def _look_for_jobs(self, process: Process) -> None:
        """Check that all acknowledged jobs of a global master that runs are open, or have ended."""
        role = process.role
        if not isinstance(role, GlobalRole):
            return
        there = {*role.book.of_number, *process.disk.get("ended", {})}
        for client, (name, number) in self.told.items():
            if name == process.name and number not in there:
                raise BrokenError(f"{name}: job {number} of {client} is neither open nor has it ended")

    def _forget_lost(self, process: Process) -> None:
        """Rely no more on jobs that the store of a global master does not have."""
        there = {*process.disk.get("job", {}), *process.disk.get("ended", {})}
        for client, (name, number) in list(self.told.items()):
            if name == process.name and number not in there:
                del self.told[client]
                self.refused[client] = "lost with a store"
                self.world.happened["job lost with a store"] += 1

    # -- wishes --------------------------------------------------------------------------------------------------------

    def _wish(self, wish: Wish) -> None:
        if wish.what == "cancel":
            self._cancel(wish)
            return
        machine = self.world.machines.all[wish.target]
        if wish.what == "leave":
            self._leave(machine)
            return
        if machine.process.peer is None:
            return
        running = [key for key, name in self.world.watch.alive.values() if name == machine.process.name]
        task = running[0].task if running and wish.what == "preempt" else NOBODY
        for number in self.world.layout.masters_of(machine.case.cluster):
            self._ask(number, wish.what, machine.process.peer[1], task)

    def _leave(self, machine: Machine) -> None:
        """Let the worker of a machine leave for good, and again when it was killed before it had."""
        if machine.process.is_dead:
            return
        if isinstance(machine.process.role, WorkerRole) and not machine.process.role.leaves:
            machine.process.role.leave()
            self.world.call_soon(machine.process)
        self.world.after(AGAIN_S, lambda: self._leave(machine))

    def _cancel(self, wish: Wish) -> None:
        told = self.told.get(self.case.jobs[wish.target].client)
        process = self.master_of(self.case.jobs[wish.target])
        if told is None or process is None or not isinstance(process.role, GlobalRole):
            return
        if told[1] in process.role.book.of_number:
            self.world.happened["cancelled"] += 1
            process.role.cancel(told[1], wish.index if wish.index >= 0 else None)
            self.world.call_soon(process)

    def _ask(self, local: int, words: str, machine: int, task: int = NOBODY) -> None:
        """Ask a local master by way of the first global master that reaches it."""
        for process in self.world.masters:
            if process.role is not None and (LOCAL_MASTER, local) in process.connections:
                self.asked += 1
                process.role.frame_to((LOCAL_MASTER, local), Ask(self.asked, words, machine, task))
                self.world.happened[f"asked to {words}"] += 1
                self.world.call_soon(process)
                return

    def uncordon_all(self) -> bool:
        """Ask local masters to let machines be used again; return whether there were none left."""
        left = False
        for process in self.world.locals:
            if isinstance(process.role, LocalRole):
                for number, machine in process.role.machines.items():
                    if machine.cordoned:
                        left = True
                        self._ask(process.role.number, "uncordon", number)
        return not left

    def _change(self, change: QueueChange) -> None:
        """Let the queues be others, as soon as there is a global master to tell it."""
        role = self.world.masters[0].role
        if not isinstance(role, GlobalRole):
            self.world.after(AGAIN_S, lambda: self._change(change))
            return
        before: QueuesFact = role.queues
        self.world.happened["queues changed"] += 1
        role.apply(changed(before, list(change.queues), (), before.order, self.world.layout.rooms.queues))
        self.world.call_soon(self.world.masters[0])
