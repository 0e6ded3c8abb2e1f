"""Whether a store is as it was written: checksums of bodies, the pages of the file, and the log ahead of it.

SQLite drops what follows a damaged frame of its write-ahead log without a word, as it must for a commit that was cut
short by a loss of power. Only the last commit can have been: where more of them follow, the log was damaged later.
"""
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from subak.errors import StoreUnfitError

SEAL_BYTES = 4
PAGES_QUICK_BYTES = 128 << 20  # a file up to which all pages are looked at when it is opened: a fifth of a second
# the log as SQLite documents it (fileformat2.html, section 4)
MAGICS = {0x377F0682: "<", 0x377F0683: ">"}  # and the byte order of its checksums
LOG_HEAD, FRAME_HEAD = struct.Struct(">8I"), struct.Struct(">6I")
HELP = "put a copy back, or let the store of another begin: see docs/stores.md"


def sealed(key: int | str, body: bytes) -> bytes:
    """Return a body as it is on disk: with a checksum of it and its key behind it."""
    return body + zlib.crc32(body, _seed(key)).to_bytes(SEAL_BYTES, "big")


def unsealed(table: str, key: int | str, data: bytes) -> bytes:
    """Return a body without its checksum. Raises StoreUnfitError where it is not that of the body and its key."""
    body = data[:-SEAL_BYTES]
    if len(data) < SEAL_BYTES or zlib.crc32(body, _seed(key)).to_bytes(SEAL_BYTES, "big") != data[-SEAL_BYTES:]:
        raise StoreUnfitError(f"row {key} of table {table} is not as it was written")
    return body


def _seed(key: int | str) -> int:
    return key & 0xFFFFFFFF if isinstance(key, int) else zlib.crc32(key.encode())


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Say of whatever shows that a store is damaged which it is, and what helps. Raises StoreUnfitError."""
    try:
        yield
    except StoreUnfitError as error:
        words = str(error)
    except sqlite3.OperationalError:  # the disk does not work, or is full
        raise
    except sqlite3.DatabaseError as error:
        words = str(error)
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


class Commits(NamedTuple):
    """Commits of a log that was there before a store was opened: the number of the last frame of each, from 1 on."""

    last_frames: list[int]


def commits_of(path: Path) -> Commits:
    """Return the commits that are in the log of a store, whether their frames are whole or not.

    Raises StoreUnfitError where the head of the log is damaged.
    """
    log = path.with_name(f"{path.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size <= LOG_HEAD.size:
        return Commits([])
    with log.open("rb") as file:
        head = file.read(LOG_HEAD.size)
        magic, _, page, _, *salts, first, second = LOG_HEAD.unpack(head)
        if magic not in MAGICS or _checksum(head[:-8], MAGICS[magic]) != (first, second):
            raise StoreUnfitError(f"{path}: damaged: the head of its write-ahead log is not as it was written; {HELP}")
        found, frame = list[int](), FRAME_HEAD.size + page
        for number in range((size - LOG_HEAD.size) // frame):
            file.seek(LOG_HEAD.size + number * frame)
            _, pages, *own, _, _ = FRAME_HEAD.unpack(file.read(FRAME_HEAD.size))
            if own == salts and pages:
                found.append(number + 1)
        return Commits(found)


def _checksum(data: bytes, order: str) -> tuple[int, int]:
    """Return SQLite's checksum of some pairs of words."""
    first = second = 0
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


def check_log(wire: sqlite3.Connection, path: Path, commits: Commits) -> None:
    """Compare the log that was there with what SQLite took of it. Raises StoreUnfitError where commits are missing."""
    if not commits.last_frames:
        return
    wire.execute("SELECT count(*) FROM sqlite_master").fetchone()  # it recovers the log now
    _, taken, _ = wire.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    dropped = [last for last in commits.last_frames if last > taken]
    if len(dropped) > 1:
        whole = len(commits.last_frames) - len(dropped)
        raise StoreUnfitError(f"its write-ahead log is damaged behind commit {whole} of {len(commits.last_frames)}")


def check_all(path: Path, tables: tuple[str, ...]) -> int:
    """Look at every page and every body of a store, also while a process uses it; return how many bodies there are.

    Raises StoreUnfitError where one is not as it was written.
    """
    wire = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        with damage(path):
            _check(wire, "integrity_check")
            count = 0
            for table in tables:
                for key, body in wire.execute(f"SELECT key, body FROM {table}"):
                    unsealed(table, key, body)
                    count += 1
            return count
    finally:
        wire.close()
