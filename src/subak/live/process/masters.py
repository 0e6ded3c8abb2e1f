"""The processes of masters: a global master with store and HTTP server, a local master, a standby.

Handlers are compiled functions where they were compiled before; else plain Python serves until a process beside has
compiled them, which takes a minute, and is said. The tables are the same, so a process changes over between two calls.
"""
import asyncio
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak.errors import InputError, StoreUnfitError
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, WORKER
from subak.live import identities
from subak.live.config import FederationFile, GlobalMasterFile, LocalMasterFile, read, split_address
from subak.live.people.audit import Audit
from subak.live.process.driver import Driver
from subak.live.process.lifeline import NO_FILE, handed_on
from subak.live.process.links import Links
from subak.live.process.trust import CertificateTrust, TokenTrust, Trust, check_plaintext
from subak.live.role.global_master.global_role import GlobalRole
from subak.live.role.layout import Peer, cluster_of_local, standby_of
from subak.live.role.local_role import LocalRole
from subak.live.role.store_claims import StoreRefused, TookOver
from subak.live.service.planning import check_order, first_queues
from subak.live.store.checking import StoreError
from subak.live.store.sqlite import SqliteStore
from subak.live.tokens import JOIN, PEOPLE, TokenHash, kept_hash

if TYPE_CHECKING:
    from subak.live.service.service import GlobalMasterService

OWN_SOCKET = "people.sock"  # in the folder of its data, for users of its host
OTHERS_S = 0.5  # that other local masters have to say what they know, when one has refused a store
COMPILE = [sys.executable, "-m", "subak.live.process.compiled"]


class Master:
    """What the processes of both kinds of masters have in common."""

    def __init__(self, own: GlobalMasterFile | LocalMasterFile, folder: Path, say: Callable[[str], None]) -> None:
        """*folder*: that of its file, *own*, from which its paths are meant."""
        self.own, self.folder, self.say = own, folder, say
        self.lifeline = NO_FILE
        self.stopping = False
        self.file = read(folder / own.federation, FederationFile)
        check_order(self.file.order)
        self.data = folder / own.data
        self.store = SqliteStore(self.data)
        self.driver: Driver | None = None
        self.compiling: asyncio.Task[None] | None = None

    def token(self, audience: str, file: str) -> TokenHash:
        """Return what is kept of a token, which is made where there is none."""
        return kept_hash(self.data / f"{audience}.hash", self.folder / file, audience)

    def trust_of(self, role: str, name: str, machine: Callable[[int], str] = lambda number: "") -> Trust:
        """Return how this process and others know each other; *machine*: what a machine is called, where it is known.

        Raises InputError where all would go over a network in clear, and the file does not say that it may.
        """
        if self.own.tls is None:
            for address in (*self.file.local_addresses().values(), *filter(None, [self.own.listen])):
                check_plaintext("address", address, self.own.plaintext)
            return TokenTrust(self.token(JOIN, self.own.join_token_file))
        masters, clusters = self.file.masters(), self.file.clusters()

        def called(peer: Peer) -> str:
            if peer[0] == WORKER:
                return machine(peer[1])
            if peer[0] == GLOBAL_MASTER:
                return masters[peer[1]].name if peer[1] in masters else ""
            cluster = cluster_of_local(peer[1])
            return clusters[cluster].name if cluster in clusters else ""

        return CertificateTrust(self.own.tls, self.folder, role, name, called, self.file.name)

    def stop(self) -> None:
        """End the process after what is under way."""
        self.stopping = True
        if self.driver is not None:
            self.driver.stop()

    def compile_beside(self, role: GlobalRole | LocalRole, name: str, handlers: str) -> None:
        """Let compiled handlers serve where they are wanted, at once or as soon as they are there."""
        if handlers == "python":
            return
        from subak.kernels.kernel import by_address  # noqa: PLC0415  (loads the compiler)
        from subak.live.process.compiled import are_kept  # noqa: PLC0415  (as above)

        if not by_address():
            return
        if are_kept(name):
            _use_compiled(role)
        else:
            self.say("compiling, which takes up to a minute once; plain Python serves until then")
            self.compiling = asyncio.create_task(self._compile(role, name))

    async def _compile(self, role: GlobalRole | LocalRole, name: str) -> None:
        options, files = handed_on(self.lifeline)
        process = await asyncio.create_subprocess_exec(*COMPILE, name, *options, stdin=subprocess.DEVNULL,
                                                       stdout=subprocess.DEVNULL, pass_fds=files)
        try:
            if await process.wait() == 0:
                _use_compiled(role)
                self.say("compiled handlers serve from now on")
            else:
                self.say("could not compile; plain Python goes on")
        finally:
            if process.returncode is None:
                process.kill()

    async def drive(self, driver: Driver) -> None:
        """Drive the role until it is stopped, and end what was begun beside it."""
        if self.stopping:
            driver.stop()
        await driver.run()
        self.write_last(driver)
        if self.compiling is not None:
            self.compiling.cancel()
        self.store.close()


    def write_last(self, driver: Driver) -> None:
        """Write what a role that is stopped has yet to write."""


def _use_compiled(role: GlobalRole | LocalRole) -> None:
    from subak.live.process.compiled import services_of  # noqa: PLC0415  (as above)

    role.use(services_of(role))
    if isinstance(role, GlobalRole):
        role.compiled = services_of


class GlobalMasterProcess(Master):
    """A global master; see the head of the file."""

    def __init__(self, file: GlobalMasterFile, folder: Path, say: Callable[[str], None]) -> None:
        super().__init__(file, folder, say)
        self.number = self.file.number_of(file.name)
        self.people = self.token(PEOPLE, file.people_token_file)
        self.trust = self.trust_of(identities.GLOBAL_MASTER, file.name)
        if file.tls is None:
            check_plaintext("http", file.listen or self.file.masters()[self.number].http, file.plaintext)
        self.socket = file.socket
        self.handlers = file.handlers
        self.refused = ""  # why the store may not be used

    async def run(self, ready: Callable[[str], None] = lambda address: None) -> None:
        """Serve until `stop`; *ready* is told the address as soon as people are answered.

        Raises StoreUnfitError when a local master knows that the store is not the one in use.
        """
        from subak.live.api.server import HttpServer, ServerSettings  # noqa: PLC0415  (local masters do without)
        from subak.live.service.keeping import Keeper  # noqa: PLC0415
        from subak.live.service.service import GlobalMasterService  # noqa: PLC0415

        layout = self.file.layout()
        entry = self.file.masters()[self.number]
        role = GlobalRole(self.number, layout, self.file.timing, first_queues(self.file), self.store.load(), entry.name,
                          secrets.token_hex(8))
        self.driver = driver = Driver(role, self.store, self.say)
        driver.before.append(lambda _: setattr(role, "clock", time.time()))
        service = GlobalMasterService(driver, self.store, self.file,
                                      "http" if self.trust.people is None else "https")
        driver.on_effect = lambda effect: self._take(effect, service)
        links = Links((GLOBAL_MASTER, self.number), self.trust, self.file.name, driver)
        links.watch()
        host, port = split_address("http", self.own.listen or entry.http)
        audit = Audit(self.data)
        settings = ServerSettings(host=host, port=port)
        server = HttpServer(service, self.people, settings, self.trust.people, self.say, audit,
                            self._own_socket())
        address = await server.start()
        for number, local in self.file.local_addresses().items():
            links.dial(*split_address("address", local), number)
        self.compile_beside(role, "global-master", self.handlers)
        there = {queue.path for queue in role.queues.queues}
        for queue in first_queues(self.file).queues:
            if queue.path not in there:
                self.say(f"queue {queue.path} of the file is not in force: `subak apply` makes it so")
        if role.claims.is_behind:
            self.say("the store is taking over: no jobs are taken until all that was begun before has ended everywhere")
        ready(address)
        keeper = Keeper(self.file.history, self.store, lambda: role.ended, service.forget, self.say)
        service.ended_at = keeper.known
        keeping = asyncio.create_task(keeper.run())
        await self.drive(driver)
        keeping.cancel()
        await links.close()
        await server.stop()
        audit.close()
        if self.refused:
            raise StoreUnfitError(self.refused)

    def _own_socket(self) -> Path | None:
        """Return where users of this host ask; None where the usual name is too long for a socket."""
        from subak.live.api.host_socket import is_short  # noqa: PLC0415  (local masters do without)

        if self.socket:
            return self.folder / self.socket
        usual = self.data / OWN_SOCKET
        if is_short(usual):
            return usual
        self.say(f"{usual}: too long for a socket, so users of this host need tokens; socket = \"FILE\" in the file of "
                 "this master names another one")
        return None

    def write_last(self, driver: Driver) -> None:
        """Write when attempts began, and that this master was stopped now; without it history is less exact."""
        if isinstance(driver.role, GlobalRole) and not driver.problem:
            try:
                self.store.commit(driver.role.last_writes(time.time()))
            except StoreError as error:
                self.say(f"the last instants are not written: {error}")

    def _take(self, effect: Any, service: "GlobalMasterService") -> None:
        """Take in what the role has done; a store that is not the one in use ends the process."""
        if isinstance(effect, StoreRefused):
            if not self.refused:
                asyncio.get_running_loop().call_later(OTHERS_S, self.stop)
            self.refused = f"{self.file.name_of_local(effect.local)} {effect.words}"
        elif isinstance(effect, TookOver):
            self.say("the store has taken over: jobs are taken, and tasks placed")
        else:
            service.on_effect(effect)


class LocalMasterProcess(Master):
    """A local master, or its standby; see the head of the file."""

    def __init__(self, file: LocalMasterFile, folder: Path, say: Callable[[str], None]) -> None:
        super().__init__(file, folder, say)
        cluster = self.file.number_of_cluster(file.cluster)
        if file.standby and not self.file.clusters()[cluster].standby:
            raise InputError(f"standby: cluster {file.cluster!r} has none in the file of the federation")
        self.number = standby_of(cluster) if file.standby else cluster
        self.role_name = identities.STANDBY if file.standby else identities.LOCAL_MASTER
        self.cluster = file.cluster
        self.handlers = file.handlers

    async def run(self, ready: Callable[[str], None] = lambda address: None) -> None:
        """Serve until `stop`; *ready* is told the address as soon as others may join."""
        layout, addresses = self.file.layout(), self.file.local_addresses()
        role = LocalRole(self.number, layout, self.file.timing, self.store.load())
        self.driver = driver = Driver(role, self.store, self.say)
        trust = self.trust_of(self.role_name, self.cluster,
                              lambda number: role.machines[number].name if number in role.machines else "")
        links = Links((LOCAL_MASTER, self.number), trust, self.file.name, driver, layout, self.file.timing)
        links.watch()
        await links.listen(*split_address("address", self.own.listen or addresses[self.number]))
        active = cluster_of_local(self.number)
        if self.number != active:
            links.dial(*split_address("address", addresses[active]), active)
        self.compile_beside(role, "local-master", self.handlers)
        ready(addresses[self.number])
        await self.drive(driver)
        await links.close()
