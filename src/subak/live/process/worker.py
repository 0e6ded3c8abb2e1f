"""The process of a worker, between the local masters and the agent of this machine.

The agent is begun where there is none, in a session of its own, and is left behind when the worker ends: another
worker finds it, and what it runs, again.
"""
import asyncio
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import msgpack, structs

from subak.errors import InputError, RunError
from subak.federation.messages import WORKER
from subak.live import identities
from subak.live.agent.attempts.attempt import INVALID, Event, Key, Refused, User
from subak.live.agent.attempts.client import AgentClient, AgentError
from subak.live.agent.attempts.simulated import SimulatedAgent
from subak.live.agent.connections import PATH_BYTES_MAX
from subak.live.config import WorkerFile, capacity_of, split_address
from subak.live.process.driver import Driver, clock
from subak.live.process.lifeline import NO_FILE, handed_on
from subak.live.process.links import LinkError, Links, Trouble
from subak.live.process.trust import CertificateTrust, TokenTrust, Trust, check_plaintext
from subak.live.role.frames import LOGS, TAIL, Dismissed, Incoming, Join, Joined, Outgoing
from subak.live.role.layout import Layout, Timing
from subak.live.role.worker.worker_role import End, Forget, Identity, Inquire, Ping, Start, WorkerRole
from subak.live.store.files import FileStore
from subak.live.tokens import JOIN, hash_of, read_token

SOCKET = Path("agent", "socket")  # of the agent, in the folder of the worker
AGENT_S = 10.0  # that an agent has to begin
GUEST = WORKER, -1
PEOPLES_UID = 1000  # from which on accounts are people's, and not the system's
SUBMITTER, NOBODYS = "submitter", "nobody"  # words of run_as; an account that every Linux has
TRY_AGAIN_S = 0.5


def boot_id() -> str:
    """Return the name of the time since this machine was switched on."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Worker:
    """See the head of the file."""

    def __init__(self, file: WorkerFile, folder: Path, say: Callable[[str], None]) -> None:
        """*folder*: that of the file, from which its paths are meant."""
        self.file, self.say = file, say
        self.lifeline = NO_FILE
        self.data = folder / file.data
        length = len(os.fsencode((self.data / SOCKET).absolute()))
        if length > PATH_BYTES_MAX:
            raise InputError(f"data: {self.data / SOCKET} has {length} bytes, and a socket's path at most "
                             f"{PATH_BYTES_MAX}: take a folder with a shorter name")
        self.trust: Trust
        if file.tls is None:
            for address in file.local_masters:
                check_plaintext("local_masters", address, file.plaintext)
            self.trust = TokenTrust(hash_of(read_token(folder / file.join_token_file, JOIN)))
        else:
            self.trust = CertificateTrust(file.tls, folder, identities.WORKER, file.name)
        self.store = FileStore(self.data)
        self.disk = self.store.load()
        self.agent: Any = None
        self.driver: Driver | None = None
        self.links: Links | None = None
        self.stopping = False
        self.leave, self.leaves = file.leave, False  # for good, when it is told to end; whether it was
        self.dismissed = ""  # why this machine may not be here any more
        self.attached = False
        self.has_news = False  # of an agent that runs nothing
        self.environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": os.environ.get("HOME", "/")}

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Join, and work until `stop`."""
        found = await self._join()
        if found is None:
            self.store.close()
            if self.dismissed:
                raise RunError(self.dismissed)
            return
        layout, timing, number = found
        role = WorkerRole(number, layout, timing, self.disk, self._join_frame(layout), boot_id())
        self.driver = driver = Driver(role, self.store, self.say)
        driver.on_effect = self._carry_out
        await self._reach_agent(number, role)
        self.links = Links((WORKER, number), self.trust, "", driver)
        self.links.watch()
        for address in self.file.local_masters:
            self.links.dial(*split_address("local_masters", address))
        ready()
        watch = asyncio.create_task(self._watch_agent())
        await driver.run()
        watch.cancel()
        await self.links.close()
        self.store.close()
        if self.dismissed and not self.leaves:
            raise RunError(self.dismissed)

    def stop(self) -> None:
        """End the worker; what runs goes on, under its agent, for a lease.

        One that is to leave does that first: what runs is ended, and is run elsewhere. Told again, it ends at once.
        """
        if self.leave and not self.leaves and self.driver is not None:
            self.leaves = True
            self.say("leaves the federation: what runs here is ended first; told again to end, it ends at once")
            self.driver.role.leave()  # type: ignore[attr-defined]
            self.driver.wake.set()
            return
        self.stopping = True
        if self.driver is not None:
            self.driver.stop()

    # -- joining -------------------------------------------------------------------------------------------------------

    def _identity(self) -> str:
        file = self.data / "identity.name"
        if not file.exists():
            beside = self.data / "identity.name.new"
            beside.write_text(os.urandom(16).hex())
            beside.replace(file)
        return file.read_text()

    def _join_frame(self, layout: Layout) -> Join:
        return Join(self._number(), self._identity(), self.file.name, capacity_of(self.file, layout),
                    self.file.attributes)

    def _number(self) -> int:
        body = self.disk.get("identity", {}).get(0)
        return -1 if body is None else int(msgpack.decode(body, type=Identity).machine)

    async def _join(self) -> tuple[Layout, Timing, int] | None:
        """Return what is asked of a local master, the first that answers: the federation, and a number.

        None: it was stopped before.
        """
        troubles = {address: Trouble() for address in self.file.local_masters}
        while not self.stopping:
            for address in self.file.local_masters:
                try:
                    found = await self._ask(*split_address("local_masters", address))
                except (OSError, LinkError, TimeoutError) as error:
                    if troubles[address].is_news(clock(), error):
                        self.say(f"{address}: {error}")
                else:
                    if found is not None:
                        return found
            await asyncio.sleep(TRY_AGAIN_S)
        return None

    async def _ask(self, host: str, port: int) -> tuple[Layout, Timing, int] | None:
        answers: asyncio.Queue[bytes] = asyncio.Queue()
        links = Links(GUEST, self.trust, "", None)
        wire, welcome = await links.connect(host, port)
        for body in wire.early:
            answers.put_nowait(body)
        wire.on_frame, wire.on_lost = lambda _, body: answers.put_nowait(body), lambda _: answers.put_nowait(b"")
        try:
            if welcome.layout is None:
                raise LinkError("it is no local master")
            number = self._number()
            if number >= 0:
                return welcome.layout, welcome.timing, number
            wire.send(Outgoing().frame(self._join_frame(welcome.layout)))
            incoming = Incoming()
            while (body := await asyncio.wait_for(answers.get(), AGENT_S)) != b"":
                frame = incoming.read(body)
                if isinstance(frame, Dismissed):
                    self.dismissed = frame.words
                    self.stop()
                    return None
                if isinstance(frame, Joined):
                    self.store.commit_identity(frame.machine)
                    self.disk = self.store.load()
                    return welcome.layout, welcome.timing, frame.machine
            return None
        finally:
            wire.close()

    # -- the agent --------------------------------------------------------------------------------------------------

    async def _reach_agent(self, number: int, role: WorkerRole) -> None:
        if self.file.agent == "none":
            self.agent = _Instant()
            self.attached = True
            return
        while not self.stopping:
            try:
                self._attach(number, role)
            except (AgentError, FileNotFoundError):
                self._begin_agent(number, role.timing)
                await asyncio.sleep(0.05)
            else:
                return

    def _attach(self, number: int, role: WorkerRole) -> None:
        agent = AgentClient(self.data / SOCKET)
        agent.attach(number, int(role.me["incarnation"]), int(role.me["epoch"]))
        known = agent.list()
        self.agent, self.attached = agent, True
        self.say(f"attached to the node agent; {agent.limits}")
        self.say(_runs_as(self.file, os.geteuid()))
        role.reconcile(known)
        asyncio.get_running_loop().add_reader(agent.fileno(), self._news)
        self._news()

    def _begin_agent(self, number: int, timing: Timing) -> None:
        lease, grace = timing.agent_lease, timing.agent_grace
        began = time.monotonic()
        options, files = handed_on(self.lifeline)
        log = (self.data / "agent.log").open("ab")
        with log:
            agent = subprocess.Popen(
                [sys.executable, "-m", "subak.live.agent", "--state", str(self.data / "agent"), "--machine",
                 str(number), "--lease", f"{lease:g}", "--lease-grace", f"{grace:g}", "--cgroups", self.file.cgroups,
                 "--output",
                 str(self.file.output_bytes), *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, pass_fds=files)
        while not (self.data / SOCKET).exists() and time.monotonic() - began < AGENT_S:
            if agent.poll() is not None:
                words = (self.data / "agent.log").read_text(errors="replace").strip().splitlines()[-1:]
                raise RunError(f"the node agent did not begin: {words[0] if words else 'it said nothing'}")
            time.sleep(0.01)

    def _news(self) -> None:
        """Take in what has happened at the agent."""
        self.has_news = False
        if self.driver is None or not self.attached:
            return
        try:
            events = self.agent.watch()
        except AgentError as error:
            self._lose_agent(str(error))
            return
        if events:
            self.driver.role.on_events(events)  # type: ignore[attr-defined]
            self.driver.wake.set()

    def _lose_agent(self, words: str) -> None:
        self.say(f"the agent is gone: {words}")
        self.attached = False
        if isinstance(self.agent, AgentClient):
            asyncio.get_running_loop().remove_reader(self.agent.fileno())
            self.agent.close()

    async def _watch_agent(self) -> None:
        """Reach the agent again whenever it is gone."""
        while True:
            await asyncio.sleep(0.1)
            if not self.attached and self.driver is not None:
                role = self.driver.role
                assert isinstance(role, WorkerRole)
                await self._reach_agent(role.number, role)
                self.driver.wake.set()

    def _carry_out(self, effect: Any) -> None:
        try:
            if isinstance(effect, Inquire):
                self._answer(effect)
            elif isinstance(effect, Dismissed):
                self.dismissed = effect.words
                self.leave = False
                self.stop()
            elif not self.attached:
                return  # what the agent should run is found missing when it is reached again
            elif isinstance(effect, Start):
                self._start(effect)
            elif isinstance(effect, End):
                self.agent.end(effect.key, effect.grace_s)
            elif isinstance(effect, Forget):
                self.agent.forget(*effect.keys)
            elif isinstance(effect, Ping):
                self.agent.ping()
        except AgentError as error:
            self._lose_agent(str(error))
        if self.file.agent == "none" and not self.has_news:
            self.has_news = True
            asyncio.get_running_loop().call_soon(self._news)  # of all that is carried out together

    def _start(self, start: Start) -> None:
        attempt = start.attempt
        try:
            attempt = structs.replace(attempt, user=account_of(start, self.file.run_as, self.file.root, os.geteuid()))
        except InputError as error:
            self.say(f"{attempt.key}: {error}")
            self._refuse(attempt.key, str(error))
            return
        home = {"HOME": pwd.getpwuid(attempt.user.uid).pw_dir} if attempt.user is not None else {}
        self.agent.start(structs.replace(attempt, environment=self.environment | home | attempt.environment))

    def _refuse(self, key: Key, words: str) -> None:
        """Let an attempt fail that no agent on this machine can run."""
        assert self.driver is not None
        role = self.driver.role
        assert isinstance(role, WorkerRole)
        role.on_events([Refused(key, INVALID, words)])
        self.driver.wake.set()

    def _answer(self, inquire: Inquire) -> None:
        """Answer a question about what an attempt has written."""
        ask, role = inquire.ask, self.driver.role if self.driver is not None else None
        assert isinstance(role, WorkerRole)
        what, _, name = ask.words.partition(" ")
        stream = {"stdout": "out", "stderr": "err"}.get(name, "")
        is_known = what in (LOGS, TAIL) and stream
        if not is_known or not self.attached or not isinstance(self.agent, AgentClient):
            role.answer(inquire.peer, ask.number, problem="this worker has nothing written down")
        else:
            try:
                offset, lines = (ask.offset, 0) if what == LOGS else (0, ask.offset)
                part = self.agent.read(Key(ask.task, ask.attempt), stream, offset, ask.size, lines)
            except AgentError as error:
                role.answer(inquire.peer, ask.number, problem=str(error))
            else:
                role.answer(inquire.peer, ask.number, msgpack.encode((part.offset, part.data, part.is_end)))
        if self.driver is not None:
            self.driver.wake.set()


class _Instant(SimulatedAgent):
    """An agent that runs nothing: every attempt ends at once, well. For benchmarks."""

    def __init__(self) -> None:
        super().__init__(clock)

    def watch(self, timeout_s: float = 0.0) -> Sequence[Event]:
        """Return what has happened; nobody will restore it, so no records are kept."""
        self.records.clear()
        return super().watch(timeout_s)

    def read(self, *_: object) -> None:
        """There is nothing to read."""


def account_of(start: Start, run_as: str, may_be_root: bool, own: int) -> User | None:
    """Return as whom an attempt runs, None for the worker's own account; *own*: the number of that.

    The user that its job names; else *run_as*, which may be "submitter": the account of the name of whoever submitted
    the job, or nobody's where this machine has none. Raises InputError for an account that there is not, or that a
    worker may not become.
    """
    if own != 0:
        if start.user and _user(start.user).uid != own:
            raise InputError(f"user: {start.user}: the worker of this machine is not root, so tasks run as its own "
                             "user")
        return None
    if not start.user and not run_as:
        return None
    if not start.user and run_as == SUBMITTER:
        return _own_account(start.submitter)
    user = _user(start.user or run_as)
    if user.uid == 0 and not may_be_root:
        raise InputError(f"user: {start.user or run_as}: no task runs as root on this machine, unless "
                         "the file of its worker says root = true")
    return user


def _own_account(submitter: str) -> User:
    """Return the account of a person, or nobody's where this machine has none of this name, and for root."""
    try:
        user = _user(submitter)
    except InputError:
        return _user(NOBODYS)
    return user if user.uid >= PEOPLES_UID else _user(NOBODYS)


def _runs_as(file: WorkerFile, own: int) -> str:
    """Return as whom tasks run, in words."""
    if own != 0:
        return f"tasks run as user {own}, like this worker, and are not separated from it"
    if not file.run_as:
        return "tasks run as root, unless their jobs name a user"
    whose = "whoever submitted them" if file.run_as == SUBMITTER else file.run_as
    return f"tasks run as {whose}, unless their jobs name a user; {'also' if file.root else 'never'} as root"


def _user(name: str) -> User:
    try:
        entry = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        raise InputError(f"user: there is none called {name!r} on this machine") from None
    return User(entry.pw_uid, entry.pw_gid, tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)))

