"""Polls the masters for what `subak up` shows, in a thread of its own."""
import threading
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import structs

from subak.errors import SubakError
from subak.live.api.models import MachineView, MasterView, QueueView
from subak.live.client import Client, ClientSettings

EVERY_S, TIMEOUT_S = 0.5, 2.0
NO_MACHINE = "no machine has joined, so all tasks wait"
AGAIN = "again from the beginning at the next subak up"


class Picture(NamedTuple):
    """Masters, machines and queues, as the first global master that answers sees them; nothing where none does."""

    masters: tuple[MasterView, ...] = ()
    machines: tuple[MachineView, ...] = ()
    queues: tuple[QueueView, ...] = ()

    def is_ready(self, machines: int) -> bool:
        """Whether all masters serve, and that many machines may be used."""
        return bool(self.masters) and all(master.state == "ready" for master in self.masters) and (
            sum(machine.state == "ready" for machine in self.machines) >= machines)

    def missing(self, workers: Iterable[str]) -> list[str]:
        """Return which masters do not serve, and which workers' machines are not ready, by their names."""
        joined = {machine.name for machine in self.machines if machine.state == "ready"}
        return [*(master.name for master in self.masters if master.state != "ready"),
                *(f"worker {name}" for name in workers if name not in joined)]

    def of_before(self) -> list[str]:
        """Say that jobs which were open before a start still are, and what their tasks do: a line, or none."""
        jobs = sum(queue.jobs for queue in self._top())
        are, them = ("job from before is", "it") if jobs == 1 else ("jobs from before are", "them")
        return [f"{jobs:,} {are} open (subak list): tasks that were stopped start again from the beginning; subak "
                f"cancel --all ends {them}"] if jobs else []

    def would_stop(self) -> str:
        """Say that tasks run, and what becomes of them when all is ended; empty where none runs."""
        tasks = sum(queue.running for queue in self._top())
        run, start = ("task runs", "it starts") if tasks == 1 else ("tasks run", "they start")
        return f"{tasks:,} {run}; {start} {AGAIN}" if tasks else ""

    def stopped(self) -> list[str]:
        """Say what becomes of tasks that run when all is ended: a line, or none."""
        if not self.queues:
            return [f"tasks that ran, if any, start {AGAIN}"]
        tasks = sum(queue.running for queue in self._top())
        were, start = ("task was", "it starts") if tasks == 1 else ("tasks were", "they start")
        return [f"{tasks:,} running {were} stopped; {start} {AGAIN}"] if tasks else []

    def _top(self) -> list[QueueView]:
        """Return the queues at the top, whose numbers hold those below them."""
        return [queue for queue in self.queues if queue.path and "/" not in queue.path]


class Watcher:
    """Keeps the latest picture of a federation."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.picture = Picture()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True, name="picture")

    def start(self) -> None:
        """Begin to ask."""
        self.thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self.over.set()

    def _watch(self) -> None:
        while not self.over.wait(EVERY_S):
            self.picture = look(self.settings)


def look(settings: ClientSettings) -> Picture:
    """Return what is to be seen of a federation now."""
    answering = {address for address in settings.addresses if _answers(settings, address)}
    if not answering:
        return Picture()
    there = structs.replace(settings, addresses=tuple(each for each in settings.addresses if each in answering))
    try:
        with Client(there, timeout_s=TIMEOUT_S, patience_s=0.0) as client:
            masters = tuple(_seen(master, answering) for master in client.masters())
            return Picture(masters, tuple(client.machines()), client.queues().items)
    except SubakError:
        return Picture()


def _answers(settings: ClientSettings, address: str) -> bool:
    try:
        with Client(structs.replace(settings, addresses=(address,)), timeout_s=TIMEOUT_S, patience_s=0.0) as client:
            return client.health().state == "ready"
    except SubakError:
        return False


def _seen(master: MasterView, answering: set[str]) -> MasterView:
    """Return a global master as it is seen from here, and not from another one."""
    if master.role != "global":
        return master
    return structs.replace(master, state="ready" if master.address in answering else "lost")
