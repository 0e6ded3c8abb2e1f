"""A federation of real processes in a folder of its own, on ports that are free: for chaos, tests and benchmarks."""
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import tomli_w

from subak.live.agent.processes.proc import ENDED_STATES, all_processes, look_at
from subak.live.api.errors import ServiceError
from subak.live.certificates import make_authority, write_pair
from subak.live.client.client import Client
from subak.live.client.settings import ClientSettings
from subak.live.jobfile.quantities import print_amount
from subak.live.tokens import JOIN, PEOPLE, new_token

NAME, STANDBY = "home", "standby"
PATIENCE_S = 120.0  # for what takes seconds on a machine that is not busy
GLOBAL_MASTER, LOCAL_MASTER, WORKER = "global-master", "local-master", "worker"
LINGER_S, END_S = 0.02, 30.0



class Member(NamedTuple):
    """A process of the federation: its role, its file, and for local masters and workers the cluster."""

    role: str
    file: Path
    cluster: str = ""


class Agent(NamedTuple):
    """The processes of a machine's agent, and the name that its attempts carry."""

    guard: int
    agent: int
    identity: str


class Federation:
    """Processes by name: g0, g1, ..., the clusters a, b, ... with a standby "a standby" each, and workers w0, w1, ...

    *timing* is that of the federation's file; *data* says where a member's data are that are not in the folder; *tls*:
    whether each has a certificate, and none speaks in clear.
    """

    def __init__(self, folder: Path, masters: int = 2, clusters: int = 2, workers: int = 4, *, standby: bool = True,
                 capacity: tuple[int, int] = (2000, 2048), queues: tuple[str, ...] = ("research", "web"),
                 timing: dict[str, float] | None = None, rooms: dict[str, int] | None = None, agent: str = "processes",
                 data: dict[str, Path] | None = None, tls: bool = False) -> None:
        self.authority = make_authority(folder / "ca", NAME) if tls else None
        self.folder, self.data, self.members = folder, data or {}, {}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.said: dict[str, int] = {}  # bytes that were in the log of a member when it was started
        self.people, self.join = new_token(PEOPLE), new_token(JOIN)
        folder.mkdir(parents=True, exist_ok=True)
        for name, token in (("people.token", self.people), ("join.token", self.join)):
            (folder / name).write_text(token)
            (folder / name).chmod(0o600)
        self.clusters = [chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")
                         for number in range(clusters)]
        addresses = self.addresses(masters + (1 + standby) * clusters)
        self.http = addresses[:masters]
        self.local = {name: addresses[masters + number :: clusters][: 1 + standby]
                      for number, name in enumerate(self.clusters)}
        self._write("federation", {
            "name": NAME, "timing": timing or {}, "rooms": rooms or {},
            "global_master": [{"name": f"g{number}", "http": http} for number, http in enumerate(self.http)],
            "cluster": [dict(zip(("local_master", "standby"), places, strict=False), name=name)
                        for name, places in self.local.items()],
            "queue": [{"name": name} for name in queues]})
        for number in range(masters):
            self._add(f"g{number}", GLOBAL_MASTER, "", {"name": f"g{number}"})
        for name in self.clusters:
            for place in range(1 + standby):
                self._add(f"{name} standby" if place else name, LOCAL_MASTER, name,
                          {"cluster": name, "standby": bool(place)})
        for number in range(workers):
            cluster = self.clusters[number % clusters]
            self._add(f"w{number}", WORKER, cluster, {
                "name": f"w{number}", "local_masters": self.local[cluster], "agent": agent,
                "capacity": {name: print_amount(name, amount)
                             for name, amount in zip(("cpu", "memory"), capacity, strict=True)}})

    def _write(self, name: str, content: dict[str, object]) -> Path:
        path = self.folder / f"{name}.toml"
        path.write_text(tomli_w.dumps(content))
        return path

    def _add(self, name: str, role: str, cluster: str, content: dict[str, object]) -> None:
        stem = name.replace(" ", "-")
        data = self.data.setdefault(name, self.folder / "data" / stem)
        if self.authority is not None:
            whose = {LOCAL_MASTER: STANDBY if content.get("standby") else LOCAL_MASTER}.get(role, role)
            hosts = [http.rpartition(":")[0] for http in self.http] if role == GLOBAL_MASTER else []
            write_pair(self.folder, stem, self.authority.issue(whose, cluster if role == LOCAL_MASTER else name, hosts))
            content = {**content, "tls": {"certificate": f"{stem}.crt", "key": f"{stem}.key", "ca": "ca/ca.crt",
                                          "revoked": "ca/ca.crl"}}
        self.members[name] = Member(role, self._write(stem, {**content, "data": str(data)}), cluster)

    def addresses(self, count: int) -> list[str]:
        """Return addresses where nobody listens yet."""
        return free_addresses(count)

    # -- processes -----------------------------------------------------------------------------------------------------

    def start(self, *names: str) -> None:
        """Start members, all of them where none is named."""
        for name in names or self.members:
            member = self.members[name]
            with (self.folder / f"{member.file.stem}.log").open("ab") as log:
                self.said[name] = log.tell()
                self.running[name] = self.begin(
                    name, [sys.executable, "-m", "subak.live.process", member.role, member.file], log)

    def begin(self, name: str, words: list[Any], log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Begin the process of a member."""
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        """Kill a member with signal 9."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def names(self, role: str) -> list[str]:
        """Return the members of a role."""
        return [name for name, member in self.members.items() if member.role == role]

    def log(self, name: str, since: int = 0) -> str:
        """Return what a member has said."""
        return self.members[name].file.with_suffix(".log").read_bytes()[since:].decode(errors="replace")

    def has_begun(self, name: str) -> bool:
        """Whether a member runs, and serves already."""
        return name in self.running and ": ready" in self.log(name, self.said[name])

    def agents(self) -> dict[str, Agent]:
        """Return the agents that are at work, by the name of the worker."""
        states = {str(self.data[name] / "agent"): name for name in self.names(WORKER)}
        pids: dict[str, list[int]] = {}
        for pid, words in commands():
            if "subak.live.agent" in words:
                name = next((states[word] for word in words if word in states), None)
                if name is not None:
                    pids.setdefault(name, []).append(pid)
        found = {}
        for name, of_name in pids.items():
            pairs = [(look.parent, pid) for pid in of_name if (look := look_at(pid)) and look.parent in of_name]
            identity = self.data[name] / "agent" / "identity"
            if pairs and identity.exists():
                found[name] = Agent(*pairs[0], identity.read_text())
        return found

    def _agents_end(self, told: set[int]) -> bool:
        """Tell agents to end that were not told yet, such as have only just begun; return whether none is left."""
        for agent in self.agents().values():
            if agent.guard not in told:
                told.add(agent.guard)
                with suppress(ProcessLookupError):
                    os.kill(agent.guard, signal.SIGTERM)
        return not self.left()

    def stop(self, seconds: float = END_S) -> list[str]:
        """End everything in order, and return what did not end by itself within *seconds*, as lines."""
        left = []
        for process in self.running.values():
            process.terminate()
        for name, process in self.running.items():
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                left.append(f"{name} did not end when it was told to")
                process.kill()
                process.wait()
        self.running.clear()
        told: set[int] = set()
        with suppress(AssertionError):
            until(lambda: self._agents_end(told), seconds)
        for pid, words in self.left():
            left.append(f"process {pid} was left: {' '.join(words)[:100]}")
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left

    def left(self) -> list[tuple[int, list[str]]]:
        """Return the processes that name the folder, in their command or their environment."""
        return [(pid, words) for pid, words in commands(environments=True)
                if pid != os.getpid() and any(str(self.folder) in word for word in words)]

    # -- people --------------------------------------------------------------------------------------------------------

    def client(self, patience_s: float = PATIENCE_S, first: int = 0) -> Client:
        """Return a client of its own, which asks global master *first* first."""
        return Client(self.settings(*self.http[first:], *self.http[:first]), patience_s=patience_s)

    def settings(self, *http: str) -> ClientSettings:
        """Return how to ask global masters at these addresses."""
        if self.authority is None:
            return ClientSettings(tuple(f"http://{each}" for each in http), self.people)
        return ClientSettings(tuple(f"https://{each}" for each in http), self.people,
                              ca=str(self.authority.folder / "ca.crt"))

    def wait_ready(self, seconds: float = PATIENCE_S) -> None:
        """Wait until every global master sees every machine."""
        wanted = {(name, "ready") for name in self.names(WORKER)}
        for http in self.http:  # each by itself: another would answer for one that does not listen yet
            with Client(self.settings(http), patience_s=0.0) as client:
                until(lambda client=client: set(_states(client).items()) >= wanted, seconds,
                      lambda client=client, http=http: f"the global master at {http} sees {_states(client)}")


def _states(client: Client) -> dict[str, str]:
    with suppress(ServiceError):
        return {machine.name: machine.state for machine in client.machines()}
    return {}


def commands(environments: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Return the commands of all processes, word by word, with *environments* behind them."""
    for pid, process in all_processes().items():
        if not process.has_ended:
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
                words += Path(f"/proc/{pid}/environ").read_bytes() if environments else b""
                yield pid, words.decode(errors="replace").split("\0")


def free_addresses(count: int) -> list[str]:
    """Return addresses where nobody listens."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


def until(holds: Callable[[], object], seconds: float = PATIENCE_S, why: Callable[[], str] = str) -> None:
    """Wait until something holds; *why* says what is instead."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"it did not come to be within {seconds:g} s: {why()}"
        time.sleep(LINGER_S)


def alive(pid: int) -> bool:
    """Whether a process is there, and has not ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in ENDED_STATES
    return False
