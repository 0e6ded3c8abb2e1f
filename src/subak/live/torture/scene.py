"""The interface through which parts of a world see its time, processes and events."""
import heapq
import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np

from subak.federation.messages import LOCAL_MASTER
from subak.live.role.base import Ready
from subak.live.role.layout import Peer
from subak.live.torture.case import Case, JobCase
from subak.live.torture.process import Connection, Process
from subak.live.torture.watch import Watch


class Scene:
    """What machines, the network and lost stores know of their world, and ask of it."""

    def __init__(self, case: Case) -> None:
        self.case, self.layout, self.timing = case, case.layout, case.timing
        self.random = np.random.default_rng([case.seed, 72])
        self.now, self.order = 0.0, itertools.count()
        self.events: list[tuple[float, int, Callable[[], object]]] = []
        self.loss, self.doubling, self.lateness = case.loss, case.doubling, case.lateness
        self.log: list[str] = []
        self.happened: Counter[str] = Counter()  # what went wrong
        self.steps = 0
        self.watch = Watch(case)
        self.masters: list[Process] = []
        self.locals: list[Process] = []
        self.replaced: Callable[[Process], None] = lambda process: None  # the store of a process is another

    @property
    def processes(self) -> list[Process]:
        """All places where a process is, or may be."""
        raise NotImplementedError

    def local(self, number: int) -> Process:
        """Return the local master, or the standby, of a number."""
        return next(process for process in self.locals if process.peer == (LOCAL_MASTER, number))

    def owner_of(self, job: JobCase) -> int:
        """Return the global master of a job's queue, which keeps it for good."""
        every = self.case.queues + tuple(queue for change in self.case.changes for queue in change.queues)
        return next(queue.owner for queue in every if queue.path == job.spec.queue)

    def at(self, when: float, what: Callable[[], object]) -> None:
        """Let something happen at a time."""
        heapq.heappush(self.events, (when, next(self.order), what))

    def after(self, delay: float, what: Callable[[], object]) -> None:
        """Let something happen after a while."""
        self.at(self.now + delay, what)

    def note(self, words: str) -> None:
        """Keep what has happened, for whoever looks for a fault."""
        self.log.append(f"{self.now:10.4f} {words}")

    def start(self, process: Process) -> None:
        """Start a process that is not there, with what it has on disk."""
        raise NotImplementedError

    def kill(self, process: Process) -> None:
        """Kill a process: what it has not written is lost, what it has not sent is not sent."""
        raise NotImplementedError

    def call(self, process: Process) -> None:
        """Let a process take in what has arrived, and do what is due, unless it waits for its disk."""
        raise NotImplementedError

    def schedule(self, process: Process) -> None:
        """Call a process when something has arrived, or is due; timers may be late."""
        raise NotImplementedError

    def call_soon(self, process: Process) -> None:
        """Call a process of which something was asked, as soon as it can be."""
        raise NotImplementedError

    def release(self, process: Process, ready: Ready, connections: dict[Peer, Connection]) -> None:
        """Send and do what a role has returned; *connections*: those that it had then."""
        raise NotImplementedError
