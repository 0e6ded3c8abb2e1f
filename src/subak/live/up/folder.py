"""The folder of a federation on this machine: created at the first start, reused later.

```
federation.toml, global-master-*.toml, local-master-*.toml, worker-*.toml    what is started: a process for each
client.toml, people.token, join.token    for people's commands; for masters and workers without certificates
data/NAME/, log/NAME.log                 of each process
lock, up.pid                             of the `subak up` that runs here, or ran last, and whether all is ready
```
"""
import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from subak.errors import InputError
from subak.live.agent.connections import PATH_BYTES_MAX
from subak.live.agent.processes.proc import ENDED_STATES
from subak.live.client import ClientSettings, read_settings
from subak.live.client.settings import CLIENT, PID
from subak.live.config import (
    FederationFile,
    GlobalMasterFile,
    LocalMasterFile,
    WorkerFile,
    check,
    decoded,
    read,
    split_address,
)
from subak.live.store.folder import lock_of
from subak.live.tokens import JOIN, PEOPLE, make_token
from subak.live.up.plan import HOST, Wish, files_of, name_of, planned, worker_text

FEDERATION = "federation.toml"
WORKER = "worker"
WORKER_FILES = f"{WORKER}-*.toml"
WITHOUT_WORKER = "this worker does not start, all others do"
STARTING, READY = "starting", "ready"  # how far a federation is
KINDS: dict[str, Any] = {  # in the order in which they are started
    "local-master": LocalMasterFile, "global-master": GlobalMasterFile, WORKER: WorkerFile,
}
FIRST_PORT, PORT_MAX = 7433, 65_535
FREED_S = 15.0  # that processes of a federation which was killed have to end
SOCKET = Path("agent", "socket")


class Member(NamedTuple):
    """A process of the federation: its role, its name within the folder, its file."""

    role: str
    name: str
    file: Path


class Home:
    """A folder, and what it says of the federation. One process has it open; a second one is refused."""

    def __init__(self, folder: Path, wish: Wish, first_port: int = FIRST_PORT) -> None:
        """Make the folder, or take it up. Raises InputError where that is not possible."""
        self.folder = folder
        self.is_new = not (folder / FEDERATION).exists()
        if not self.is_new:
            _refuse(folder, wish)
        elif any(next(folder.glob(f"{role}-*.toml"), None) for role in KINDS):
            raise InputError(f"{folder}: has files of processes and no {FEDERATION}: copy that of another host here, "
                             "it is the same on all")
        files = _checked(folder, wish, first_port) if self.is_new else {}
        _make(folder)
        self.lock = lock_of(folder)
        if not (folder / FEDERATION).exists():
            self._write(files)
        self.file = read(folder / FEDERATION, FederationFile)
        if not self.is_new and wish.workers is not None:
            _add_workers(folder, wish.workers, self.file)
        self.members, self.broken = members_of(folder)
        self.is_whole = (folder / CLIENT).exists()  # and not the part of a federation that is on this host
        if self.is_whole:
            for audience in (PEOPLE, JOIN):
                make_token(folder / f"{audience}.token", audience)
        if not self.members and not self.broken:
            raise InputError(f"{folder}: holds no file of a process, such as worker-w1.toml")
        self._free()

    def _write(self, files: dict[str, str]) -> None:
        """Write all files; that of the federation last, for it says that all are there."""
        for name, text in files.items():
            if name != FEDERATION:
                (self.folder / name).write_text(text)
        write_whole(self.folder / FEDERATION, files[FEDERATION])

    def _free(self) -> None:
        """Wait until processes of a former start have ended. Raises InputError for addresses that others use."""
        until = time.monotonic() + FREED_S
        problem = "a"
        while problem and time.monotonic() < until:
            problem = self._in_use()
            if problem:
                time.sleep(0.05)
        if problem:
            raise InputError(problem)

    def _in_use(self) -> str:
        for lock in sorted(self.folder.glob("data/*/lock")):
            with lock.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    return f"{lock.parent}: another process uses this folder"
        for address in [*(master.http for master in self.file.global_master), *self.file.local_addresses().values()]:
            host, port = split_address("address", address)
            if host == HOST and not _is_free(port):
                return (f"{address}: another process listens there; end it, or change the address in "
                        f"{self.folder / FEDERATION} and the other files")
        return ""

    def settings(self) -> ClientSettings | None:
        """Return how people's commands reach this federation; None of the part of one that is on this host."""
        return read_settings(self.folder / CLIENT) if self.is_whole else None

    def log_of(self, member: Member) -> Path:
        """Return the file that a process says things into."""
        return self.folder / "log" / f"{member.name}.log"

    def note(self, state: str) -> None:
        """Write down for others who runs this federation, and how far it is."""
        write_whole(self.folder / PID, f"{os.getpid()} {_began(os.getpid())} {state}\n")

    def close(self) -> None:
        """Let others open the folder; the note stays, by which commands know that the federation has ended."""
        self.lock.close()


def _checked(folder: Path, wish: Wish, first_port: int) -> dict[str, str]:
    """Return the files that a wish makes, by name. Raises InputError for one that no federation could be."""
    plan = planned(wish)
    if wish.order is not None:
        from subak.live.service.planning import check_order  # noqa: PLC0415  (loads the scheduler)

        check_order(wish.order)
    longest = max(len(name) for name, _ in plan.workers)
    length = len(os.fsencode((folder / "data" / ("x" * longest) / SOCKET).absolute()))
    if length > PATH_BYTES_MAX:
        raise InputError(f"{folder}: its name is too long by {length - PATH_BYTES_MAX} bytes for the sockets in it")
    files = files_of(plan, name_of(folder), free_ports(plan.ports, first_port))
    try:
        check(decoded(files[FEDERATION], FederationFile))
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from None
    return files


def _refuse(folder: Path, wish: Wish) -> None:
    """Raise InputError for what cannot be wished of a federation that is there: all but more workers."""
    ways = {"clusters": "docs/live.md says how clusters are added",
            "queues": "subak apply changes queues while it runs",
            "capacity": f"change [capacity] in each {folder}/worker-*.toml",
            "order": f"change {folder}/{FEDERATION}", "preemption": f"change {folder}/{FEDERATION}"}
    for name in wish.said():
        if name in ways:
            option = {"queues": "queue"}.get(name, name)
            raise InputError(f"--{option}: {folder} was made before, and says so itself: {ways[name]}; or take another "
                             "folder")
    there = len([*folder.glob(WORKER_FILES)])
    if wish.workers is not None and wish.workers < there:
        raise InputError(f"--workers: {folder} has {there}; to take one out, remove its file while nothing runs here, "
                         "start again, and then say `subak machines remove NAME`")


def _add_workers(folder: Path, count: int, file: FederationFile) -> None:
    """Write files of workers until there are *count*, each with what an equal part of this machine then is.

    Raises InputError for more than there may be.
    """
    clusters = [cluster.name for cluster in file.cluster if not cluster.removed]
    capacity = planned(Wish(clusters=1, workers=count)).capacity
    there, number = len([*folder.glob(WORKER_FILES)]), 1
    while there < count:
        for cluster in clusters:
            path = folder / f"{WORKER}-{cluster}{number}.toml"
            if there < count and not path.exists():
                write_whole(path, worker_text(f"{cluster}{number}", local_masters_of(file, cluster), capacity))
                there += 1
        number += 1


def local_masters_of(file: FederationFile, cluster: str) -> tuple[str, ...]:
    """Return the addresses of a cluster's local master and of its standby, if it has one."""
    entry = next(each for each in file.cluster if each.name == cluster)
    return tuple(address for address in (entry.local_master, entry.standby) if address)


def _make(folder: Path) -> None:
    try:
        for each in (folder, folder / "log", folder / "data"):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None


def members_of(folder: Path) -> tuple[list[Member], list[str]]:
    """Return the processes that files in a folder are for, as they are started, and a line for each broken worker's.

    Raises InputError for a mistake in a master's file.
    """
    found, broken = [], []
    for role, kind in KINDS.items():
        for file in sorted(folder.glob(f"{role}-*.toml"), key=lambda file: file.stem):
            try:
                read(file, kind)
            except InputError as error:
                if role != WORKER:
                    raise
                broken.append(f"{' '.join(str(error).split())}; {WITHOUT_WORKER}")
                continue
            found.append(Member(role, file.stem.removeprefix(f"{role}-"), file))
    return found, broken


class Running(NamedTuple):
    """A `subak up`: its number, when it began in ticks since the machine did, and how far it is."""

    pid: int
    began: int
    state: str

    def is_there(self) -> bool:
        """Whether it still runs."""
        return _began(self.pid) == self.began


def runs_in(folder: Path) -> Running | None:
    """Return the `subak up` that runs in a folder; None where none does."""
    try:
        pid, began, state = (folder / PID).read_text().split()
        found = Running(int(pid), int(began), state)
    except (OSError, ValueError):
        return None
    return found if found.is_there() else None


def _began(pid: int) -> int:
    """Return when a process began, in ticks since the machine did; -1 where there is none."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return -1
    return -1 if words[0] in ENDED_STATES else int(words[19])


def write_whole(file: Path, text: str) -> None:
    """Write a file that appears whole."""
    beside = file.with_name(f"{file.name}.new")
    beside.write_text(text)
    beside.replace(file)


def free_ports(count: int, first: int) -> list[int]:
    """Return ports that nobody listens at, from *first* on. Raises InputError where there are too few."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in range(first, PORT_MAX + 1):
            wire = _bound(port)
            if wire is not None:
                held.enter_context(wire)
                found.append(port)
                if len(found) == count:
                    return found
    raise InputError(f"--port: there are no {count} free ports from {first} on")


def _is_free(port: int) -> bool:
    wire = _bound(port)
    if wire is not None:
        wire.close()
    return wire is not None


def _bound(port: int) -> socket.socket | None:
    wire = socket.socket(socket.AF_INET)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as asyncio has it
    try:
        wire.bind((HOST, port))
    except OSError:
        wire.close()
        return None
    return wire


def lines_after(file: Path, offset: int) -> Iterator[tuple[str, int]]:
    """Yield the whole lines of a file from *offset* on, each with where the next one begins."""
    try:
        with file.open("rb") as opened:
            opened.seek(offset)
            for line in opened:
                if not line.endswith(b"\n"):
                    return
                offset += len(line)
                yield line.decode(errors="replace").rstrip("\n"), offset
    except FileNotFoundError:
        return
