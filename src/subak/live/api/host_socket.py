"""The socket of a global master for people on its own host: the kernel says which user asks, so no token is needed.

Whoever may reach the file may connect; what it may do is that of its user: the user of the master, and root, are
admins, others what `subak people add NAME --on-host` gave them.
"""
import asyncio
import os
import pwd
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from subak.errors import RunError
from subak.live.people.identity import Identity, People

CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: pid, uid, gid
PATH_BYTES_MAX = 107  # of the name of a Unix socket


def user_of(transport: asyncio.BaseTransport) -> int | None:
    """Return the user at the other end of a connection over a Unix socket, None of any other."""
    end = transport.get_extra_info("socket")
    if end is None or end.family != socket.AF_UNIX:
        return None
    uid: int = CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[1]
    return uid


def is_short(path: Path) -> bool:
    """Whether a socket may have this name."""
    return len(os.fsencode(path)) <= PATH_BYTES_MAX


def name_of(uid: int) -> str:
    """Return the name of a user of this host, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def holder(people: People, uid: int) -> Identity | str:
    """Return who a user of this host is; or why it is nobody."""
    if uid in (0, os.geteuid()):
        return people.of_hash[people.first]
    name = name_of(uid)
    found = people.of_user.get(name)
    return found if found is not None else (f"user {name} of this host is nobody here: an admin runs `subak people add "
                                            f"{name} --role ROLE --on-host`, or give a token")


class HostSocket:
    """See the head of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._server: asyncio.Server | None = None

    async def start(self, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Begin to listen. Raises RunError where that cannot be."""
        if not is_short(self.path):
            raise RunError(f"{self.path}: the name of a socket may have {PATH_BYTES_MAX} bytes at most")
        listener = socket.socket(socket.AF_UNIX)
        try:
            if self.path.is_socket():  # of a master that was killed: one store has one master
                self.path.unlink()
            listener.bind(os.fspath(self.path))
            self.path.chmod(0o666)
            listener.listen(1024)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise RunError(f"{self.path}: cannot listen there: {error.strerror}") from None
        self._server = await asyncio.get_running_loop().create_server(protocol, sock=listener)

    def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
            with suppress(FileNotFoundError):
                self.path.unlink()
