"""The service of a global master's role, with local masters, workers and agents, all in this process.

Time goes on by itself, and much faster than on the clock. Attempts do what those of the fake service do: `true`,
`false`, `echo WORDS` and `exit CODE` end at once; whatever else goes on.
"""
import asyncio

import tomli_w
from msgspec import msgpack, structs, to_builtins

from subak.live.agent.attempts.attempt import Key
from subak.live.config import ClusterEntry, FederationFile, GlobalMasterEntry, QueueEntry, RoomsEntry, TimingEntry
from subak.live.role.frames import TAIL
from subak.live.role.worker.worker_role import Inquire, Start
from subak.live.service.planning import first_queues
from subak.live.service.service import GlobalMasterService
from subak.live.torture.case import ROOMS, Case, MachineCase
from subak.live.torture.world import World

CLUSTERS = ("west", "east")
MACHINES = (0, 0, 1)  # the cluster of each
CAPACITY = {"cpu": 4000, "memory": 8192}
STEP_S, PAUSE_S = 0.02, 0.001  # of the federation's time, and of the clock


class Attempts:
    """What agents are told to run, and how it ends; in the place of torture's watch."""

    def ending(self, attempt):
        word, *rest = attempt.command
        seconds = 0.0 if word in ("true", "echo", "false", "exit") else 1e9
        return seconds, int(rest[0]) if word == "exit" else int(word == "false")

    def __getattr__(self, name):  # what else torture looks at
        return lambda *arguments: None


class RealService(GlobalMasterService):
    """The service of g0; see the head of the file."""

    def __init__(self):
        self.file = FederationFile(
            "real", (GlobalMasterEntry("g0", "127.0.0.1:1"),),
            tuple(ClusterEntry(cluster, f"127.0.0.1:{number + 2}") for number, cluster in enumerate(CLUSTERS)),
            (QueueEntry("research/ada"), QueueEntry("web")), timing=TimingEntry(),
            rooms=RoomsEntry(**structs.asdict(ROOMS)))
        layout = self.file.layout()
        capacity = layout.amounts(CAPACITY, layout.tasks_each)
        machines = tuple(MachineCase(cluster, capacity, "", False) for cluster in MACHINES)
        world = self.world = World(Case(1, layout, self.file.timing, machines, (), "round-robin", (), (),
                                        (), (), 0.0, 0.0, 0.0, 0.0))
        world.queues, world.watch = first_queues(self.file), Attempts()
        self.written = {}  # by attempt
        self.process = world.masters[0]
        for process in (self.process, *world.locals):
            world.start(process)
        self.problem, self.when_written, self.untold, self.role = "", [], [], self.process.role
        self.wake = asyncio.Event()
        super().__init__(self, self, self.file)
        self._plain, self._carry = world.machines.carry_out, world._carry_out
        world.machines.carry_out, world._carry_out = self._of_machine, self._of_any
        for machine in machines:
            world.machines.add(machine)
        world.until(5.0)

    # -- as what drives the role, and as its store ---------------------------------------------------------------------

    async def run(self):
        while True:
            self.untold += self.when_written
            self.when_written = []
            if self.wake.is_set():
                self.wake.clear()
                self.world.call(self.process)
            self.world.until(self.world.now + STEP_S)
            if not self.role.writes and not self.process.writing:
                for future in self.untold:
                    if not future.done():
                        future.set_result(None)
                self.untold = []
            await asyncio.sleep(PAUSE_S)

    def found_at(self, address):
        """Note where its server is, which clients ask who have asked for all masters."""
        master = GlobalMasterEntry("g0", address.removeprefix("http://"))
        self.file = structs.replace(self.file, global_master=(master,))

    def held_s(self):
        return 0.0

    def bodies(self, table, numbers):
        on_disk = self.process.disk.get(table, {})
        return {number: on_disk[number] for number in numbers if number in on_disk}

    # -- what happens --------------------------------------------------------------------------------------------------

    def _of_any(self, process, effect, on):
        if process is self.process:
            self.on_effect(effect)
        self._carry(process, effect, on)

    def _of_machine(self, machine, effect):
        if isinstance(effect, Start):
            word, *rest = effect.attempt.command
            self.written[effect.attempt.key] = (" ".join(rest) + "\n").encode() if word == "echo" else b""
        if isinstance(effect, Inquire):
            machine.process.role.answer(effect.peer, effect.ask.number, self._output(machine, effect.ask))
            self.world.call_soon(machine.process)
            return
        self._plain(machine, effect)

    def _output(self, machine, ask):
        """Return a part of what an attempt has written, as an agent's machine does."""
        data = self.written[Key(ask.task, ask.attempt)] if ask.words.endswith("stdout") else b""
        first = ask.offset if ask.offset >= 0 else max(0, len(data) + ask.offset)
        if ask.words.startswith(TAIL):
            first = len(data) - len(b"".join(data.splitlines(keepends=True)[-ask.offset:]))
        part = data[first:first + ask.size]
        is_over = any(each.key == Key(ask.task, ask.attempt) and each.ending is not None
                      for each in machine.agent.list())
        return msgpack.encode((first, part, is_over and first + len(part) >= len(data)))

    def config(self, **weights):
        """Return a configuration with these queues beside the others."""
        queues = (*self.file.queue, *(QueueEntry(name, weight) for name, weight in weights.items()))
        words = to_builtins(structs.replace(self.file, queue=queues))
        return tomli_w.dumps(words).encode()
