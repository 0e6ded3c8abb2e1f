"""Connections between processes, on this machine."""
import asyncio
import socket
import time

import pytest

from live_federation import free_addresses
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER
from subak.live.process.links import SILENT_S, Links
from subak.live.process.trust import TokenTrust
from subak.live.role.layout import Layout, Rooms
from subak.live.tokens import hash_of

TCP_REPAIR = 19  # Linux: a socket under repair is closed without a word to the other end; CAP_NET_ADMIN alone may


class Driver:
    """Notes connections as they come and go."""

    def __init__(self):
        self.made, self.lost, self.wires = 0, [], []

    def connected(self, wire):
        self.made += 1
        self.wires.append(wire)

    def disconnected(self, _):
        self.lost.append(time.monotonic())

    def arrived(self, *_):
        pass

    def unreachable(self, *_):
        pass


async def until(holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def test_a_connection_whose_other_end_is_gone_without_a_word_is_dialled_anew():
    """As when a host loses its power: nothing says so, and who has nothing to say would never find out."""
    async def run():
        token = TokenTrust(hash_of("t" * 40))
        dialled, dials = Driver(), Driver()
        host, port = free_addresses(1)[0].split(":")
        server = Links((LOCAL_MASTER, 0), token, "file", dialled,
                       Layout(1, 1, ("cpu",), False, Rooms()))
        await server.listen(host, int(port))
        client = Links((GLOBAL_MASTER, 0), token, "file", dials)
        client.dial(host, int(port), 0)
        await until(lambda: dials.made == dialled.made == 1, 5.0)
        wire = dialled.wires[0].transport.get_extra_info("socket")
        try:
            wire.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        except PermissionError:
            pytest.skip("a connection cannot be closed without a word: CAP_NET_ADMIN is missing")
        await asyncio.sleep(0.3)  # so that all is acknowledged: an answer would tell
        gone = time.monotonic()
        dialled.wires[0].close()
        await until(lambda: dials.made == 2, SILENT_S + 5.0)
        assert dials.lost[0] - gone < SILENT_S + 1.0
        await client.close()
        await server.close()
    asyncio.run(run())
