"""Fake services behind real HTTP servers, in a thread of their own."""
import asyncio
import threading

from fake_service import FakeService
from subak.live.api.server import HttpServer, ServerSettings
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
        self.queues = queues
        self.servers = {name: HttpServer(service, hash_of(self.token), ServerSettings(port=0, **settings))
                        for name, service in self.services.items()}
        for name, server in self.servers.items():
            addresses[name] = self.do(server.start())
        self.addresses = addresses

    def do(self, work):
        """Run a coroutine beside the servers, and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def stop(self, *names):
        for name in names or tuple(self.servers):
            self.do(self.servers.pop(name).stop())
        if not self.servers:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10)
            self.loop.close()
