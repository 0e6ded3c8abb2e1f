"""Fake services behind real HTTP servers, in a thread of their own."""
import asyncio
import threading

import msgspec

from fake_service import FakeService
from subak.errors import InputError
from subak.live.api.server import HttpServer, ServerSettings
from subak.live.jobfile.spec import JobSpec
from subak.live.tokens import PEOPLE, hash_of, new_token


def read_job(text):
    """Read a job in JSON, until job files are there."""
    try:
        return msgspec.json.decode(text, type=JobSpec)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InputError(f"job: {error}") from None


class Serving:
    """Masters by name, each with its address; all take the same token."""

    def __init__(self, names=("g0",), **settings):
        self.token = new_token(PEOPLE)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        addresses, queues = {}, {}
        self.services = {name: FakeService(name, addresses, queues) for name in names}
        self.queues = queues
        self.servers = {name: HttpServer(service, read_job, hash_of(self.token), ServerSettings(port=0, **settings))
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
