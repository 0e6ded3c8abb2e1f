"""Connections between processes: who dials, how they authenticate, and framing.

A global master and a standby dial local masters, a worker both masters of its cluster. Whoever was dialled sends a
challenge; each side proves who it is (trust.py), and is told what the other is. A connection that breaks is dialled
again, after a while that doubles up to `PAUSE_MAX_S`. One whose other end has gone without a word, with its host's
power or behind a cut, is ended `SILENT_S` later, though nobody has anything to say on it.
"""
import asyncio
import errno
import functools
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any

from msgspec import DecodeError, Struct, ValidationError, msgpack

from subak.errors import RunError
from subak.federation.messages import WORKER
from subak.live.process.trust import REFRESH_S, Trust, words_of
from subak.live.role.frames import NODE_FRAME_BYTES_MAX, WIRE_VERSION, mismatch
from subak.live.role.layout import Layout, Peer, Timing

LENGTH_BYTES = 4
NONCE_BYTES = 16
HELLO_S = 5.0  # that a stranger has to say who it is
PAUSE_S, PAUSE_MAX_S = 0.05, 1.0
QUIET_S = 10.0  # that nobody need listen before it is said: processes do not start all at once
SILENT_S, PROBE_S = 5, 1  # after which a connection on which nothing is acknowledged is ended; between two questions
# With TLS 1.3 a server looks at a client's certificate last, and asyncio ends the connection without saying why.
UNTRUSTED = ("it ended the connection when it saw the certificate of this process: that has expired or is not valid "
             "yet by its clock, or is of an authority that it does not trust")
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
        self.name = ""  # that its certificate proves
        self.error: Exception | None = None  # with which it ended

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

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        self.error = error
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

    def __init__(self, me: Peer, trust: Trust, federation: str, driver: Any,
                 layout: Layout | None = None, timing: Timing | None = None) -> None:
        self.me, self.trust, self.federation, self.driver = me, trust, federation, driver
        self.layout, self.timing = layout, timing or Timing()
        self.strangers: set[Wire] = set()
        self.wires: set[Wire] = set()  # with peers
        self.guests = 0
        self.version = WIRE_VERSION
        self.dialling: set[asyncio.Task[None]] = set()
        self.server: asyncio.Server | None = None
        self.refreshing: asyncio.Task[None] | None = None
        self.closing = False  # `asyncio.wait_for` may lose a cancellation when what it waits for ends just then

    # -- who is dialled ------------------------------------------------------------------------------------------------

    async def listen(self, host: str, port: int) -> None:
        """Let others connect, as soon as this host has the address. Raises RunError where nobody can listen there."""
        loop, is_said = asyncio.get_running_loop(), False
        while not self.closing:
            try:
                self.server = await loop.create_server(
                    lambda: Wire(self._on_hello, self._on_lost, self._on_stranger), host, port, ssl=self.trust.server,
                    ssl_handshake_timeout=HELLO_S if self.trust.server is not None else None)
                return
            except OSError as error:
                if not is_absent(error):
                    raise RunError(f"{host}:{port}: cannot listen there: {error.strerror}") from None
                if not is_said:
                    self.driver.unreachable(host, port, "this host does not have the address yet; waits for it")
                is_said = True
            await asyncio.sleep(PAUSE_MAX_S)

    def watch(self) -> None:
        """Take in new certificates from now on, and end connections of those that count no more."""
        self.refreshing = asyncio.get_running_loop().create_task(self._refresh())

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            words = self.trust.refresh()
            if words:
                self.driver.say(words)
            for wire in [wire for wire in self.wires if self.trust.is_over(wire.transport)]:
                self.driver.say(f"ends the connection of {wire.name}: its certificate was revoked, or has expired")
                wire.close()

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
        proof = self.trust.proof("dialled", hello.nonce, self.me)
        wire.send(msgpack.encode(Welcome(proof, *self.me, self.federation, self.layout, self.timing)))
        number = hello.number
        if number < 0:
            self.guests += 1
            number = -self.guests
        self._trusted(wire, (hello.role, number))
        self.driver.connected(wire)

    def _refusal(self, hello: Hello, wire: Wire) -> str:
        if not self.version.speaks(hello.version):
            return mismatch(str(self.version), hello.version)
        problem = self.trust.problem("dials", wire.nonce, (hello.role, hello.number), hello.proof, wire.transport)
        if problem:
            return f"refused there: {problem}"
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
            try:
                await loop.create_connection(lambda: wire, host, port, ssl=self.trust.client,
                                             server_hostname="" if self.trust.client is not None else None)
            except ssl.SSLError as error:
                raise LinkError(words_of(error)) from None
        try:
            challenge = await self._next(frames, ended, Challenge, wire)
            if not self.version.speaks(challenge.version):
                raise LinkError(mismatch(challenge.version, str(self.version)))
            proof = self.trust.proof("dials", challenge.nonce, self.me)
            wire.send(msgpack.encode(Hello(str(self.version), *self.me, wire.nonce, proof)))
            welcome = await self._next(frames, ended, Welcome, wire)
            if welcome.words:
                raise LinkError(welcome.words)
            problem = self.trust.problem("dialled", wire.nonce, (welcome.role, welcome.number), welcome.proof,
                                         wire.transport)
            if problem:
                raise LinkError(problem)
            if number is not None and welcome.number != number:
                raise LinkError(f"it is local master {welcome.number}, not {number}")
        except BaseException:
            wire.close()
            raise
        self._trusted(wire, (welcome.role, welcome.number))
        while not frames.empty():
            wire.early.append(frames.get_nowait())
        wire.on_frame = Wire.keep
        return wire, welcome

    def _trusted(self, wire: Wire, peer: Peer) -> None:
        wire.peer, wire.name = peer, self.trust.name_of(wire.transport)
        self.wires.add(wire)

    @staticmethod
    async def _next(frames: "asyncio.Queue[bytes]", ended: "asyncio.Future[None]", kind: Any, wire: Wire) -> Any:
        getter: asyncio.Future[Any] = asyncio.ensure_future(frames.get())
        both: set[asyncio.Future[Any]] = {getter, ended}
        done, _ = await asyncio.wait(both, timeout=HELLO_S, return_when=asyncio.FIRST_COMPLETED)
        if getter not in done:
            getter.cancel()
            if isinstance(wire.error, ssl.SSLError):
                raise LinkError(words_of(wire.error))
            raise LinkError("the connection was ended before it was known who is there" if
                            wire.transport.get_extra_info("ssl_object") is None else UNTRUSTED)
        try:
            return msgpack.decode(getter.result(), type=kind)
        except (DecodeError, ValidationError) as error:
            raise LinkError(f"it does not speak this protocol: {error}") from None

    def _on_lost(self, wire: Wire) -> None:
        self.strangers.discard(wire)
        self.wires.discard(wire)
        if wire.peer is not None:
            self.driver.disconnected(wire)

    async def close(self) -> None:
        """Listen and dial no more."""
        self.closing = True
        if self.refreshing is not None:
            self.refreshing.cancel()
        dialling = list(self.dialling)
        for task in dialling:
            task.cancel()
        await asyncio.gather(*dialling, return_exceptions=True)
        if self.server is not None:
            self.server.close()


def is_absent(error: OSError) -> bool:
    """Whether nobody can listen at an address because this host does not have it, or does not know the name, yet."""
    return error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror)


def _fulfil(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
