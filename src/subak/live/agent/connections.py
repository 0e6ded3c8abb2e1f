"""The node agent's connections over a Unix socket; none can block it or fill its memory."""
import os
import selectors
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from subak.errors import InputError
from subak.live.agent.attempts.wire import Answer, Frames, Wrong, frame

READ_BYTES = 262_144  # from one connection, at a turn
HELD_BYTES = 1 << 20  # with so much unsent nothing more is read from a connection
UNSENT_BYTES_MAX = 32 << 20  # with so much unsent it is ended
CONNECTIONS_MAX = 64
PATH_BYTES_MAX = 107  # Linux's, of a Unix socket
CREDENTIALS = struct.Struct("3i")  # of a peer: process, user, group


class Connection:
    """A connection: what was received and is no whole frame, and what is to be sent."""

    def __init__(self, wire: socket.socket) -> None:
        self.wire = wire
        self.frames = Frames()
        self.unsent = bytearray()
        self.is_closing = False  # when all is sent
        self.is_open = True

    def send(self, number: int, answer: Answer) -> None:
        """Have an answer sent, when the other side takes it."""
        if self.is_open and len(self.unsent) < UNSENT_BYTES_MAX:
            self.unsent += frame(number, answer)
        else:
            self.is_open = False

    def refuse(self, words: str) -> None:
        """End the connection, and say why."""
        self.send(0, Wrong(words))
        self.is_closing = True

    def read(self) -> None:
        """Take in what has come."""
        try:
            data = self.wire.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.is_open = self.is_open and bool(data)
        self.frames.add(data)

    def write(self) -> None:
        """Send what the other side takes."""
        try:
            while self.unsent:
                del self.unsent[:self.wire.send(self.unsent[:READ_BYTES])]
        except BlockingIOError:
            pass
        except OSError:
            self.is_open = False
        self.is_open = self.is_open and not (self.is_closing and not self.unsent)

    def wants(self) -> int:
        """Return what to wait for, as `selectors` has it."""
        reading = len(self.unsent) < HELD_BYTES and not self.is_closing
        return (selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if self.unsent else 0)


class Connections:
    """All connections to the socket at *path*, which only the agent's user, and root, may reach."""

    def __init__(self, path: Path) -> None:
        if len(os.fsencode(path)) > PATH_BYTES_MAX:
            raise InputError(f"{path}: a socket's path has at most {PATH_BYTES_MAX} bytes")
        path.unlink(missing_ok=True)
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))  # in a folder that is the agent's own
        path.chmod(0o600)
        self.listener.listen(CONNECTIONS_MAX)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.all: dict[int, Connection] = {}
        self.awake, waker = socket.socketpair()
        self.awake.setblocking(False)
        waker.setblocking(False)
        self.waker = waker  # what is written to it ends a wait: signals are
        self.selector.register(self.awake, selectors.EVENT_READ)

    def wait(self, timeout_s: float | None) -> list[Connection]:
        """Wait for something to happen; return the connections from which something was received."""
        read = []
        for key, events in self.selector.select(timeout_s):
            if key.fileobj is self.listener:
                self._accept()
            elif key.fileobj is self.awake:
                with suppress(BlockingIOError):
                    self.awake.recv(4096)
            elif key.data is not None:
                self.selector.unregister(key.fd)
                key.data()
            elif events & selectors.EVENT_READ:
                self.all[key.fd].read()
                read.append(self.all[key.fd])
        return read

    def watch(self, number: int, on_end: Callable[[], None]) -> None:
        """Call *on_end* once when an open file, to which nobody writes, is at its end."""
        self.selector.register(number, selectors.EVENT_READ, on_end)

    def flush(self) -> None:
        """Send what can be sent, and end what is to be ended."""
        for number, connection in [*self.all.items()]:
            if connection.unsent or connection.is_closing:
                connection.write()
            if connection.is_open:
                self._await(number, connection.wants())
            else:
                self._drop(number)

    def close(self) -> None:
        """End all connections."""
        for number in [*self.all]:
            self._drop(number)
        for each in (self.listener, self.awake, self.waker):
            each.close()
        self.selector.close()

    def _accept(self) -> None:
        for wire in _accepted(self.listener):
            wire.setblocking(False)
            _, uid, _ = CREDENTIALS.unpack(wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
            if len(self.all) >= CONNECTIONS_MAX or uid not in (0, os.geteuid()):
                wire.close()
                continue
            self.all[wire.fileno()] = Connection(wire)
            self.selector.register(wire, selectors.EVENT_READ)

    def _await(self, number: int, wanted: int) -> None:
        known = self.selector.get_map().get(number)
        if known is None and wanted:
            self.selector.register(number, wanted)
        elif known is not None and not wanted:
            self.selector.unregister(number)
        elif known is not None and known.events != wanted:
            self.selector.modify(number, wanted)

    def _drop(self, number: int) -> None:
        connection = self.all.pop(number)
        connection.is_open = False
        with suppress(KeyError):
            self.selector.unregister(number)
        connection.wire.close()


def _accepted(listener: socket.socket) -> Iterator[socket.socket]:
    with suppress(OSError):  # nobody is left, or there are no more files to be had
        while True:
            yield listener.accept()[0]
