"""Limits the number and duration of connections without a token.

A connection is a stranger's until a request over it carried the token. When there are too many, the oldest goes. A head
of a request that is not whole in time ends its connection, a stranger's or not.
"""
import asyncio
from typing import Any

from subak.live.api.host_socket import user_of

CONNECTION = "subak.connection"  # the key of a connection in the state of a request


class Strangers:
    """The strangers of a server, the oldest first; *head_s*: seconds that one has to send a head with the token."""

    def __init__(self, most: int, head_s: float) -> None:
        self.most, self.head_s = most, head_s
        self.all: dict[Watched, None] = {}

    def add(self, connection: "Watched") -> None:
        """Take in a stranger, and let the oldest go where there are too many."""
        self.all[connection] = None
        if len(self.all) > self.most:
            oldest = next(iter(self.all))
            self.discard(oldest)
            oldest.transport.abort()

    def discard(self, connection: "Watched") -> None:
        """Note that a connection is no stranger's any more."""
        self.all.pop(connection, None)


class Watched(asyncio.Protocol):
    """What uvicorn's protocols do beside parsing: see the head of the file. Comes before one of them as a base."""

    strangers: Strangers
    transport: Any
    app_state: dict[str, Any]

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.app_state = {**self.app_state, CONNECTION: self}
        self.uid: int | None = None  # of the user of this host at its other end, where the kernel says so
        self.answering = 0  # requests that are being answered
        self.late: asyncio.TimerHandle | None = None  # ends the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, as a stranger."""
        super().connection_made(transport)
        self.uid = user_of(transport)
        self._expect_head()
        self.strangers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.strangers.discard(self)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in what was received: between two requests it begins a head."""
        if self.late is None and not self.answering:
            self._expect_head()
        super().data_received(data)

    def begin(self, *, is_known: bool) -> None:
        """Note that the head of a request is whole; *is_known*: with the token."""
        self.answering += 1
        if is_known:
            self.strangers.discard(self)
            self._stop_waiting()

    def end(self) -> None:
        """Note that a request was answered."""
        self.answering -= 1

    def _expect_head(self) -> None:
        self.late = asyncio.get_running_loop().call_later(self.strangers.head_s, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None


def watched(parser: type, strangers: Strangers) -> type:
    """Return one of uvicorn's protocols with an eye on strangers."""
    return type("WatchedProtocol", (Watched, parser), {"strangers": strangers})
