"""The store of a worker: one file survives a reboot, the other only the process.

What outlives the machine is written beside, synchronised, and put in its place. What outlives the process alone is
written in turn into one of two halves of a file, with a number and a digest, and never waits for the disk: a worker
that is killed in the midst of it finds the other half.
"""
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import msgpack

from subak.errors import InputError
from subak.live.role.base import Put, Write
from subak.live.role.worker.worker_role import Identity
from subak.live.store.folder import lock_of

HALF_BYTES = 1 << 20
HEAD_BYTES = 16  # bytes: number, length, digest


class FileStore:
    """See the head of the file. One process has it open; a second one is refused."""

    waits = False

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError(f"data: {folder} cannot be a folder: {error.strerror}") from None
        self.folder = folder
        self.lock = lock_of(folder)
        self.halves = os.open(folder / "state", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.number = 0

    def load(self) -> dict[str, dict[int | str, bytes]]:
        """Return what is there: tables as of `SqliteStore`."""
        found: dict[str, dict[Any, bytes]] = {}
        identity = self.folder / "identity"
        if identity.exists():
            found["identity"] = {0: identity.read_bytes()}
        halves = [half for half in (self._half(0), self._half(1)) if half is not None]
        if halves:
            self.number, state = max(halves)
            found["state"] = {0: state}
        return found

    def _half(self, side: int) -> tuple[int, bytes] | None:
        head = os.pread(self.halves, HEAD_BYTES, side * HALF_BYTES)
        if len(head) < HEAD_BYTES:
            return None
        number, length = int.from_bytes(head[:8], "big"), int.from_bytes(head[8:12], "big")
        state = os.pread(self.halves, length, side * HALF_BYTES + HEAD_BYTES)
        if zlib.crc32(head[:12] + state) != int.from_bytes(head[12:], "big"):
            return None
        return number, state

    def commit(self, writes: Iterable[Write]) -> None:
        """Write; what is to outlive the machine is durable when this returns."""
        for each in writes:
            if isinstance(each, Put) and each.table == "identity":
                self._replace(each.bodies[0])
            elif isinstance(each, Put) and each.table == "state":
                self._write_half(each.bodies[0])

    def commit_identity(self, machine: int) -> None:
        """Note the number of a machine that has just been given one."""
        self._replace(msgpack.encode(Identity(machine, 0, 0)))

    def _replace(self, body: bytes) -> None:
        beside = self.folder / "identity.new"
        with beside.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.folder / "identity")
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _write_half(self, state: bytes) -> None:
        if len(state) > HALF_BYTES - HEAD_BYTES:
            raise InputError(f"attempts_each: the state of a worker takes {len(state):,} bytes, of {HALF_BYTES:,} at "
                             "most; let a machine have fewer attempts")
        self.number += 1
        head = self.number.to_bytes(8, "big") + len(state).to_bytes(4, "big")
        digest = zlib.crc32(head + state).to_bytes(4, "big")
        os.pwrite(self.halves, head + digest + state, self.number % 2 * HALF_BYTES)

    def close(self) -> None:
        """Close the files."""
        os.close(self.halves)
        self.lock.close()
