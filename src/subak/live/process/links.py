"""Connections between processes: who dials, how they authenticate, and framing.

A global master and a standby dial local masters, a worker both masters of its cluster. Whoever was dialled sends a
challenge; each side proves that it knows the join token without saying it, and is told what the other is. A connection
that breaks is dialled again, after a while that doubles up to `PAUSE_MAX_S`. One whose other end has gone without a
word, with its host's power or behind a cut, is ended `SILENT_S` later, though nobody has anything to say on it.
"""
import asyncio
import functools
import hashlib
import hmac
import os
import socket
from collections.abc import Callable
from typing import Any

from msgspec import DecodeError, Struct, ValidationError, msgpack

from subak.errors import RunError
from subak.federation.messages import WORKER
from subak.live.role.frames import NODE_FRAME_BYTES_MAX, WIRE_VERSION, mismatch
from subak.live.role.layout import Layout, Peer, Timing
from subak.live.tokens import TokenHash

LENGTH_BYTES = 4
NONCE_BYTES = 16
HELLO_S = 5.0  # that a stranger has to say who it is
PAUSE_S, PAUSE_MAX_S = 0.05, 1.0
QUIET_S = 10.0  # that nobody need listen before it is said: processes do not start all at once
SILENT_S, PROBE_S = 5, 1  # after which a connection on which nothing is acknowledged is ended; between two questions
LINK_BYTES_MAX = 64 << 20  # of a connection: a peer that reads no more is let go


class Challenge(Struct, frozen=True, array_like=True):
    """Who was dialled speaks this version of the wire. These two fields are the same in every version."""

    version: str
    nonce: bytes


class Hello(Struct, frozen=True, array_like=True):
    """Who dials; *number* is below zero for a worker that has none yet. These fields are the same in every version."""

    version: str
    role: int
    number: int
    nonce: bytes
    proof: bytes


class Welcome(Struct, frozen=True, array_like=True):
    """The dialled one is a master of the same federation, or says in *words* why it does not speak with the other."""

    proof: bytes = b""
    role: int = 0
    number: int = 0
    federation: str = ""
    layout: Layout | None = None
    timing: Timing = Timing()
    words: str = ""


class LinkError(RunError):
    """The other side is not who it should be, or does not want to speak."""


def proof_of(token: TokenHash, side: str, nonce: bytes, role: int, number: int) -> bytes:
    """Return what only who knows the join token can say about a nonce."""
    return hmac.digest(token.text.encode(), repr((side, nonce, role, number)).encode(), hashlib.sha256)


class Trouble:
    """Why a master is out of reach, which is said when it changes; that nobody listens, after a while."""

    def __init__(self) -> None:
        self.since: float | None = None
        self.said = ""

    def is_news(self, now: float, error: Exception) -> bool:
        """Whether an error is to be said."""
        self.since = now if self.since is None else self.since
        if str(error) == self.said or (isinstance(error, OSError) and now - self.since < QUIET_S):
            return False
        self.said = str(error)
        return True


class Wire(asyncio.Protocol):
    """One connection: frames in and out."""

    def __init__(self, on_frame: Callable[["Wire", bytes], None], on_lost: Callable[["Wire"], None],
                 on_made: Callable[["Wire"], None] | None = None) -> None:
        self.on_frame, self.on_lost, self.on_made = on_frame, on_lost, on_made
        self.waiting = bytearray()
        self.transport: Any = None
        self.peer: Peer | None = None
        self.nonce = os.urandom(NONCE_BYTES)
        self.early: list[bytes] = []  # frames that came with the welcome

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = transport
        wire = transport.get_extra_info("socket")
        if wire is not None and wire.family in (socket.AF_INET, socket.AF_INET6):
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in ((socket.TCP_KEEPIDLE, PROBE_S), (socket.TCP_KEEPINTVL, PROBE_S),
                                  (socket.TCP_USER_TIMEOUT, 1000 * SILENT_S)):
                wire.setsockopt(socket.IPPROTO_TCP, option, value)
        if self.on_made is not None:
            self.on_made(self)

    def data_received(self, data: bytes) -> None:
        """Cut what was received into frames."""
        self.waiting += data
        at = 0
        while len(self.waiting) >= at + LENGTH_BYTES:
            length = int.from_bytes(self.waiting[at : at + LENGTH_BYTES], "big")
            if length > NODE_FRAME_BYTES_MAX:
                self.close()
                return
            end = at + LENGTH_BYTES + length
            if len(self.waiting) < end:
                break
            body = bytes(self.waiting[at + LENGTH_BYTES : end])
            at = end
            self.on_frame(self, body)
        del self.waiting[:at]

    def keep(self, body: bytes) -> None:
        """Keep a frame for whoever takes the connection over."""
        self.early.append(body)

    def connection_lost(self, _error: Exception | None) -> None:
        """End."""
        self.on_lost(self)

    def send(self, *frames: bytes) -> None:
        """Send frames."""
        if self.transport is None or self.transport.is_closing():
            return
        if self.transport.get_write_buffer_size() > LINK_BYTES_MAX:
            self.close()
            return
        self.transport.write(b"".join(len(frame).to_bytes(LENGTH_BYTES, "big") + frame for frame in frames))

    def close(self) -> None:
        """End the connection at once."""
        if self.transport is not None:
            self.transport.abort()


class Links:
    """All connections of a process; *me* is what it is, *serves* what it is told by whoever joins."""

    def __init__(self, me: Peer, token: TokenHash, federation: str, driver: Any,
                 layout: Layout | None = None, timing: Timing | None = None) -> None:
        self.me, self.token, self.federation, self.driver = me, token, federation, driver
        self.layout, self.timing = layout, timing or Timing()
        self.strangers: set[Wire] = set()
        self.guests = 0
        self.version = WIRE_VERSION
        self.dialling: set[asyncio.Task[None]] = set()
        self.server: asyncio.Server | None = None
        self.closing = False  # `asyncio.wait_for` may lose a cancellation when what it waits for ends just then

    # -- who is dialled ------------------------------------------------------------------------------------------------

    async def listen(self, host: str, port: int) -> None:
        """Let others connect. Raises RunError where nobody can listen there."""
        loop = asyncio.get_running_loop()
        try:
            self.server = await loop.create_server(
                lambda: Wire(self._on_hello, self._on_lost, self._on_stranger), host, port)
        except OSError as error:
            raise RunError(f"{host}:{port}: cannot listen there: {error.strerror}") from None

    def _on_stranger(self, wire: Wire) -> None:
        self.strangers.add(wire)
        wire.send(msgpack.encode(Challenge(str(self.version), wire.nonce)))
        asyncio.get_running_loop().call_later(HELLO_S, lambda: wire.close() if wire in self.strangers else None)

    def _on_hello(self, wire: Wire, body: bytes) -> None:
        if wire.peer is not None:
            self.driver.arrived(wire, body)
            return
        try:
            hello = msgpack.decode(body, type=Hello)
        except (DecodeError, ValidationError):
            wire.close()
            return
        words = self._refusal(hello, wire)
        if words:
            wire.send(msgpack.encode(Welcome(words=words)))
            asyncio.get_running_loop().call_later(0.1, wire.close)
            return
        self.strangers.discard(wire)
        proof = proof_of(self.token, "dialled", hello.nonce, *self.me)
        wire.send(msgpack.encode(Welcome(proof, *self.me, self.federation, self.layout, self.timing)))
        number = hello.number
        if number < 0:
            self.guests += 1
            number = -self.guests
        wire.peer = hello.role, number
        self.driver.connected(wire)

    def _refusal(self, hello: Hello, wire: Wire) -> str:
        if not self.version.speaks(hello.version):
            return mismatch(str(self.version), hello.version)
        wanted = proof_of(self.token, "dials", wire.nonce, hello.role, hello.number)
        if not hmac.compare_digest(wanted, hello.proof):
            return "the join token is not that of this federation"
        known = self.layout is not None and self.layout.is_peer((hello.role, hello.number))
        if not known and not (hello.role == WORKER and hello.number < 0):
            return f"there is no process {hello.number} of role {hello.role} in this federation"
        return ""

    # -- who dials -----------------------------------------------------------------------------------------------------

    def dial(self, host: str, port: int, number: int | None = None) -> None:
        """Keep a connection to a master, dialled anew whenever it breaks; *number*: which local master it must be."""
        task = asyncio.get_running_loop().create_task(self._keep(host, port, number))
        self.dialling.add(task)
        task.add_done_callback(self.dialling.discard)

    async def _keep(self, host: str, port: int, number: int | None) -> None:
        pause, trouble = PAUSE_S, Trouble()
        while not self.closing:
            try:
                wire, _ = await self.connect(host, port, number)
            except (TimeoutError, OSError, LinkError) as error:
                if trouble.is_news(asyncio.get_running_loop().time(), error):
                    self.driver.unreachable(host, port, str(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_MAX_S)
                continue
            pause, trouble = PAUSE_S, Trouble()
            lost = asyncio.get_running_loop().create_future()
            wire.on_frame, wire.on_lost = self.driver.arrived, functools.partial(self._on_kept_lost, lost)
            self.driver.connected(wire)
            for body in wire.early:
                self.driver.arrived(wire, body)
            if wire.transport.is_closing():
                self._on_lost(wire)
                continue
            await lost

    def _on_kept_lost(self, lost: "asyncio.Future[None]", wire: Wire) -> None:
        self._on_lost(wire)
        _fulfil(lost)

    async def connect(self, host: str, port: int, number: int | None = None) -> tuple[Wire, Welcome]:
        """Dial a master and make oneself known. Raises OSError, LinkError."""
        loop = asyncio.get_running_loop()
        frames: asyncio.Queue[bytes] = asyncio.Queue()
        ended = loop.create_future()
        wire = Wire(lambda _, body: frames.put_nowait(body), lambda _: _fulfil(ended))
        async with asyncio.timeout(HELLO_S):  # not `wait_for`, which may lose a cancellation
            await loop.create_connection(lambda: wire, host, port)
        try:
            challenge = await self._next(frames, ended, Challenge)
            if not self.version.speaks(challenge.version):
                raise LinkError(mismatch(challenge.version, str(self.version)))
            proof = proof_of(self.token, "dials", challenge.nonce, *self.me)
            wire.send(msgpack.encode(Hello(str(self.version), *self.me, wire.nonce, proof)))
            welcome = await self._next(frames, ended, Welcome)
            if welcome.words:
                raise LinkError(welcome.words)
            wanted = proof_of(self.token, "dialled", wire.nonce, welcome.role, welcome.number)
            if not hmac.compare_digest(wanted, welcome.proof):
                raise LinkError("it does not know the join token of this federation")
            if number is not None and welcome.number != number:
                raise LinkError(f"it is local master {welcome.number}, not {number}")
        except BaseException:
            wire.close()
            raise
        wire.peer = welcome.role, welcome.number
        while not frames.empty():
            wire.early.append(frames.get_nowait())
        wire.on_frame = Wire.keep
        return wire, welcome

    @staticmethod
    async def _next(frames: "asyncio.Queue[bytes]", ended: "asyncio.Future[None]", kind: Any) -> Any:
        getter: asyncio.Future[Any] = asyncio.ensure_future(frames.get())
        both: set[asyncio.Future[Any]] = {getter, ended}
        done, _ = await asyncio.wait(both, timeout=HELLO_S, return_when=asyncio.FIRST_COMPLETED)
        if getter not in done:
            getter.cancel()
            raise LinkError("the connection was ended before it was known who is there")
        try:
            return msgpack.decode(getter.result(), type=kind)
        except (DecodeError, ValidationError) as error:
            raise LinkError(f"it does not speak this protocol: {error}") from None

    def _on_lost(self, wire: Wire) -> None:
        self.strangers.discard(wire)
        if wire.peer is not None:
            self.driver.disconnected(wire)

    async def close(self) -> None:
        """Listen and dial no more."""
        self.closing = True
        dialling = list(self.dialling)
        for task in dialling:
            task.cancel()
        await asyncio.gather(*dialling, return_exceptions=True)
        if self.server is not None:
            self.server.close()


def _fulfil(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
