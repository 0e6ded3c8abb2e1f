"""Checks a store: checksums of values, the pages of the file, and its log.

SQLite drops what follows a damaged frame of its write-ahead log without a word, as it must for a commit that was cut
short by a loss of power. Only the last commit can have been: where more of them follow, the log was damaged later.
"""
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from subak.errors import RunError, StoreUnfitError

SEAL_BYTES = 4
PAGES_QUICK_BYTES = 128 << 20  # a file up to which all pages are looked at when it is opened: a fifth of a second
# the log as SQLite documents it (fileformat2.html, section 4)
MAGICS = {0x377F0682: "<", 0x377F0683: ">"}  # and the byte order of its checksums
LOG_HEAD, FRAME_HEAD = struct.Struct(">8I"), struct.Struct(">6I")
HELP = "put a copy back, or let the store of another begin: see docs/stores.md"


class StoreError(RunError):
    """The disk is full, or does not work: nothing of the commit was written."""


def sealed(key: int | str, body: bytes) -> bytes:
    """Return a body as it is on disk: with a checksum of it and its key behind it."""
    return body + zlib.crc32(body, _seed(key)).to_bytes(SEAL_BYTES, "big")


def unsealed(table: str, key: int | str, data: bytes) -> bytes:
    """Return a body without its checksum. Raises StoreUnfitError where it is not that of the body and its key."""
    if not (isinstance(key, int | str) and isinstance(data, bytes) and len(data) >= SEAL_BYTES
            and sealed(key, data[:-SEAL_BYTES]) == data):  # damage may change the type of a value as well
        raise StoreUnfitError(f"row {key} of table {table} is not as it was written")
    return data[:-SEAL_BYTES]


def _seed(key: int | str) -> int:
    return key & 0xFFFFFFFF if isinstance(key, int) else zlib.crc32(key.encode())


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Say of whatever shows that a store is damaged which it is, and what helps.

    Raises StoreUnfitError, and StoreError where the disk does not work.
    """
    try:
        yield
    except StoreUnfitError as error:
        words = str(error)
    except sqlite3.DatabaseError as error:
        words = str(error)
        if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_ERROR:
            raise StoreError(f"{path}: {words}") from None
    else:
        return
    raise StoreUnfitError(f"{path}: damaged: {words}; {HELP}") from None


def check_pages(wire: sqlite3.Connection, path: Path) -> None:
    """Look at all pages of a file that is not too large for that. Raises StoreUnfitError."""
    if path.stat().st_size <= PAGES_QUICK_BYTES:
        _check(wire, "quick_check")


def _check(wire: sqlite3.Connection, what: str) -> None:
    found = [words for words, in wire.execute(f"PRAGMA {what}(1)")]
    if found != ["ok"]:
        raise StoreUnfitError(found[0].splitlines()[-1])


class Log(NamedTuple):
    """How many commits of a write-ahead log are whole, and how many more end behind the first damaged frame."""

    whole: int
    behind: int


def check_log(path: Path) -> Log:
    """Read the log of a store that no process has open; return what is in it.

    Raises StoreUnfitError where it was damaged after it was written: its head, or a frame ahead of another commit.
    """
    log = path.with_name(f"{path.name}-wal")
    data = np.fromfile(log, np.uint8) if log.exists() else np.empty(0, np.uint8)
    if len(data) <= LOG_HEAD.size:
        return Log(0, 0)
    magic, _, page, _, *salts = LOG_HEAD.unpack(data[: LOG_HEAD.size].tobytes())[:6]
    order = MAGICS.get(magic, "")
    if not order or _checksum(data[: LOG_HEAD.size - 8], order, (0, 0)) != _kept_checksum(data[: LOG_HEAD.size]):
        raise StoreUnfitError(f"{path}: damaged: the head of its write-ahead log is not as it was written; {HELP}")
    sums, is_whole, found = _kept_checksum(data[: LOG_HEAD.size]), True, Log(0, 0)
    for first in range(LOG_HEAD.size, len(data) - FRAME_HEAD.size - page + 1, FRAME_HEAD.size + page):
        head = data[first : first + FRAME_HEAD.size]
        _, pages, *own = FRAME_HEAD.unpack(head.tobytes())[:4]
        if is_whole:
            sums = _checksum(head[:8], order, sums)
            sums = _checksum(data[first + FRAME_HEAD.size : first + FRAME_HEAD.size + page], order, sums)
            is_whole = own == salts and sums == _kept_checksum(head)
        if own == salts and pages:
            found = Log(found.whole + is_whole, found.behind + (not is_whole))
    if found.behind > 1:
        raise StoreUnfitError(f"{path}: damaged: its write-ahead log is damaged behind commit {found.whole} of "
                              f"{found.whole + found.behind}; {HELP}")
    return found


def _kept_checksum(head: np.ndarray) -> tuple[int, int]:
    """Return the checksum that stands at the end of a head."""
    first, second = head[-8:].view(">u4")
    return int(first), int(second)


def _checksum(data: np.ndarray, order: str, before: tuple[int, int]) -> tuple[int, int]:
    """Return SQLite's checksum of pairs of words, that goes on from *before*.

    Each pair makes a += x + b, b += y + a, modulo 2^32: linear, so that a word counts by how many pairs follow it.
    """
    words = data.view(f"{order}u4").astype(np.uint32)
    weights = _weights(len(words) // 2)
    found = weights[:, :2] @ np.array(before, np.uint32) + weights[:, 2:] @ words
    return int(found[0]), int(found[1])


@cache
def _weights(pairs: int) -> np.ndarray:
    """Return by how much *before* and each word of pairs count: two rows, two columns and two for each pair."""
    found = np.empty((2, 2 + 2 * pairs), np.uint32)
    a_of, b_of = np.array([1, 0], np.uint32), np.array([0, 1], np.uint32)  # by how much a and b count, behind a pair
    for pair in reversed(range(pairs)):
        found[:, 2 + 2 * pair], found[:, 3 + 2 * pair] = a_of + b_of, b_of  # x is in a and in b, y in b
        a_of, b_of = a_of + b_of, a_of + 2 * b_of
    found[:, 0], found[:, 1] = a_of, b_of
    return found


def check_all(wire: sqlite3.Connection, tables: tuple[str, ...]) -> int:
    """Look at every page of a store, and at every body of *tables*; return how many bodies there are.

    Raises StoreUnfitError where one is not as it was written.
    """
    _check(wire, "integrity_check")
    count = 0
    for table in tables:
        for key, body in wire.execute(f"SELECT key, body FROM {table}"):
            unsealed(table, key, body)
            count += 1
    return count
