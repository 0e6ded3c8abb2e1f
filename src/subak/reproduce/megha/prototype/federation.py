"""Starts and stops the prototype's federation, and measures what a message costs its masters."""
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from subak.errors import InputError, RunError
from subak.live.api.errors import ServiceError
from subak.live.client import Client, ClientSettings
from subak.live.config import (
    ClusterEntry,
    FederationFile,
    GlobalMasterEntry,
    GlobalMasterFile,
    LocalMasterFile,
    QueueEntry,
    RoomsEntry,
    TimingEntry,
    WorkerFile,
    document_of,
)
from subak.live.tokens import JOIN, PEOPLE, make_token, read_token
from subak.live.up.folder import free_ports
from subak.reproduce import workloads as made
from subak.reproduce.megha.prototype.work import GLOBALS, LOCALS, QUEUES, Work, met_by
from subak.toml_files import write_toml

HOST, PORTS_FROM = "127.0.0.1", 17_433
HEARTBEAT_S = 10.0  # section V
TIMING = TimingEntry(heartbeat=HEARTBEAT_S, retry=HEARTBEAT_S, lease=12 * HEARTBEAT_S, timer_slack=1.0)
ROOMS = RoomsEntry(tasks=1 << 14)  # nearly every task has a shape of its own
READY_S, END_S = 120.0, 30.0  # for processes to begin, and to end
LINGER_S = 0.1
SERVED = re.compile(r"served (\d+) messages in ([\d.]+) s")
MEMORY_MIB = 1500  # that all processes take together


def refuse_unable() -> None:
    """Raise InputError where this machine cannot run the prototype, and say what it lacks."""
    lacks = []
    if not sys.platform.startswith("linux"):
        lacks.append("Linux")
    for module in ("litestar", "uvicorn"):
        try:
            __import__(module)
        except ImportError:
            lacks.append("what pip install 'subak[live]' installs")
            break
    if os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") >> 20 < MEMORY_MIB and not _available(MEMORY_MIB):
        lacks.append(f"{MEMORY_MIB:,} MiB of free memory")
    if lacks:
        raise InputError(f"prototype: a live federation on this machine needs {' and '.join(lacks)}")


def _available(mib: int) -> bool:
    """Whether Linux can make so much memory free."""
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text()
        return int(text.split("MemAvailable:")[1].split()[0]) >> 10 >= mib
    return False


class Federation:
    """Three global masters, three clusters of workers: processes in a folder, ended with this object."""

    def __init__(self, folder: Path, work: Work) -> None:
        self.folder, self.work = folder, work
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        ports = free_ports(GLOBALS + LOCALS, PORTS_FROM)
        self.http = [f"{HOST}:{port}" for port in ports[:GLOBALS]]
        self.local = [f"{HOST}:{port}" for port in ports[GLOBALS:]]
        self.lifeline, self.held = os.pipe()
        self._write()

    def _write(self) -> None:
        for audience in (PEOPLE, JOIN):
            make_token(self.folder / f"{audience}.token", audience)
        names = [f"g{number}" for number in range(GLOBALS)]
        clusters = self.work.fleet.machines["cluster"].unique(maintain_order=True).to_list()
        self.clusters = clusters
        write_toml(FederationFile(
            "prototype", tuple(GlobalMasterEntry(name, http) for name, http in zip(names, self.http, strict=True)),
            tuple(ClusterEntry(name, local) for name, local in zip(clusters, self.local, strict=True)),
            tuple(QueueEntry(queue, owner=name) for queue, name in zip(QUEUES, names, strict=True)),
            timing=TIMING, rooms=ROOMS), self.folder / "federation.toml")
        for name in names:
            write_toml(GlobalMasterFile(name, f"data/{name}", handlers="python"), self.folder / f"{name}.toml")
        for cluster in clusters:
            write_toml(LocalMasterFile(cluster, f"data/{cluster}", handlers="python"), self.folder / f"{cluster}.toml")
        self._write_workers()

    def _write_workers(self) -> None:
        met = met_by(self.work.fleet)
        local = dict(zip(self.clusters, self.local, strict=True))
        for row, machine in enumerate(self.work.fleet.machines.iter_rows(named=True)):
            attributes = {made.constraint_name(int(number)): "1" for number in met[row].nonzero()[0]}
            write_toml(document_of(WorkerFile(
                machine["machine"], (local[machine["cluster"]],), f"data/{machine['machine']}", attributes=attributes,
                capacity={"cpu": machine["cpu"], "memory": machine["memory"]}, agent="none")),
                self.folder / f"worker-{machine['cluster']}-{machine['machine']}.toml")

    # -- processes -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all, and wait until every global master sees every worker."""
        for cluster in self.clusters:
            self._begin(cluster, "subak.live.process", "local-master", str(self.folder / f"{cluster}.toml"))
        for number in range(GLOBALS):
            self._begin(f"g{number}", "subak.live.process", "global-master", str(self.folder / f"g{number}.toml"))
        for cluster in self.clusters:
            self._begin(f"workers of {cluster}", "subak.reproduce.megha.prototype.hosts", str(self.folder), cluster)
        wanted = len(self.work.fleet.machines)
        until = time.monotonic() + READY_S
        for number in range(GLOBALS):
            with self.client(number) as client:
                while self._ready(client) < wanted:
                    if time.monotonic() > until or self._ended():
                        raise RunError(f"prototype: of {wanted} workers {self._ready(client)} joined within "
                                       f"{READY_S:g} s{self._ended()}")
                    time.sleep(LINGER_S)

    def _begin(self, name: str, module: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", module, *arguments, "--lifeline", str(self.lifeline)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, pass_fds=(self.lifeline,), start_new_session=True)

    def _ended(self) -> str:
        """Say which process has ended that should run, and its last words; empty where none has."""
        for name, process in self.running.items():
            if process.poll() is not None:
                words = (self.folder / f"{name}.log").read_text(errors="replace").strip().splitlines()[-1:]
                return f"; {name} has ended: {' '.join(words)}"
        return ""

    @staticmethod
    def _ready(client: Client) -> int:
        with suppress(ServiceError):
            return sum(machine.state == "ready" for machine in client.machines())
        return 0

    def stop(self) -> None:
        """End all: workers and what they run, then masters."""
        for name in sorted(self.running, reverse=True):  # workers first, then masters
            self.running[name].terminate()
        for process in self.running.values():
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for number in (self.lifeline, self.held):
            os.close(number)

    def client(self, first: int) -> Client:
        """Return a client of its own, which asks global master *first* first."""
        addresses = tuple(f"http://{http}" for http in (*self.http[first:], *self.http[:first]))
        return Client(ClientSettings(addresses, read_token(self.folder / "people.token", PEOPLE)))

    def service_seconds(self) -> tuple[float, float]:
        """Return what a message took its global master, and its local master, once they have ended: the means.

        Serving it, making durable what that wrote, and a part of what each call of a node costs.
        """
        return self._mean([f"g{number}" for number in range(GLOBALS)]), self._mean(self.clusters)

    def _mean(self, names: list[str]) -> float:
        texts = [(self.folder / f"{name}.log").read_text(errors="replace") for name in names]
        found = [(int(count), float(seconds)) for text in texts for count, seconds in SERVED.findall(text)]
        if len(found) != len(names):
            raise RunError(f"prototype: only {len(found)} of {', '.join(names)} said what they served")
        return sum(seconds for _, seconds in found) / max(sum(count for count, _ in found), 1)


@contextmanager
def federation(folder: Path, work: Work, notify: Callable[[float], None]) -> Iterator[Federation]:
    """Run the federation of *work* in a folder that is there and empty."""
    found = Federation(folder, work)
    try:
        notify(0.0)
        found.start()
        yield found
    finally:
        found.stop()
