"""Fake services behind real HTTP servers, in a thread of their own."""
import asyncio
import tempfile
import threading
from pathlib import Path

from fake_service import FakeService
from subak.live.api.server import HttpServer, ServerSettings
from subak.live.people.audit import Audit
from subak.live.tokens import PEOPLE, hash_of, new_token


class Serving:
    """Masters by name, each with its address; all take the same token. *make* returns the service of one."""

    def __init__(self, names=("g0",), make=FakeService, **settings):
        self.token = new_token(PEOPLE)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        addresses, queues = {}, {}
        self.services = {name: make(name, addresses, queues) for name in names}
        for service in self.services.values():
            service.people = self.services[names[0]].people  # as tokens become known to all
        self.queues = queues
        self.folder = tempfile.TemporaryDirectory()
        self.audits = {name: Audit(self._folder_of(name)) for name in names}
        self.servers = {name: HttpServer(service, hash_of(self.token), ServerSettings(port=0, **settings),
                                         audit=self.audits[name]) for name, service in self.services.items()}
        for name, server in self.servers.items():
            addresses[name] = self.do(server.start())
        self.addresses = addresses

    def _folder_of(self, name):
        folder = Path(self.folder.name, name)
        folder.mkdir()
        return folder

    def do(self, work):
        """Run a coroutine beside the servers, and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def stop(self, *names):
        for name in names or tuple(self.servers):
            self.do(self.servers.pop(name).stop())
        if not self.servers:
            for audit in self.audits.values():
                audit.close()
            self.folder.cleanup()
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10)
            self.loop.close()
