"""The store of a master: keys and values in one SQLite file, write-ahead log, full synchronisation.

A commit makes all writes of a call durable at once, or none. The file says which version of the tables it has; those
of an earlier version are brought up to date when it is opened, those of a later one are refused. A body carries a
checksum of itself and its key (checking.py), which is compared whenever it is read.
"""
import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from subak.errors import InputError
from subak.live.role.base import DropRange, Put, PutLarge, Write
from subak.live.store.checking import check_log, check_pages, damage, sealed, unsealed
from subak.live.store.folder import lock_of

FIRST_TABLES = ("incarnation", "queues", "shape", "job", "task", "client", "ended", "epoch", "machine", "configuration")
MORE_TABLES = ("cancel", "head")  # of version 2
TABLES = (*FIRST_TABLES, *MORE_TABLES, "history", "claim", "identity")
NUMBERED = tuple(table for table in TABLES if table != "client")  # whose keys are numbers
MIGRATIONS = (  # from each version to the next; one with nothing to do where only a layout of bodies has changed
    tuple(f"CREATE TABLE {table} (key {'TEXT' if table == 'client' else 'INTEGER'} PRIMARY KEY, body BLOB NOT NULL)"
          + (" WITHOUT ROWID" if table == "client" else "") for table in FIRST_TABLES),
    tuple(f"CREATE TABLE {table} (key INTEGER PRIMARY KEY, body BLOB NOT NULL)" for table in MORE_TABLES),
    ("CREATE TABLE history (key INTEGER PRIMARY KEY, body BLOB NOT NULL)",),
    ("CREATE TABLE claim (key INTEGER PRIMARY KEY, body BLOB NOT NULL)",
     *(f"UPDATE {table} SET body = sealed(key, body)" for table in TABLES if table != "identity")),
    ("CREATE TABLE identity (key INTEGER PRIMARY KEY, body BLOB NOT NULL)",),  # jobs, heads: who submitted them
)
STORE_VERSION = len(MIGRATIONS)
SEALED = 4  # the version from which on bodies have checksums
FILE = "state.sqlite"
UPSERT = "INSERT INTO {} (key, body) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET body = excluded.body"


class SqliteStore:
    """See the head of the file. One process has it open; a second one is refused."""

    waits = True

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.lock = lock_of(folder)
        self.path = folder / FILE
        with contextlib.ExitStack() as opened:
            opened.callback(self.lock.close)
            check_log(self.path)  # before SQLite drops what is damaged
            self.wire = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            opened.callback(self.wire.close)
            self._open()
            opened.pop_all()

    def _open(self) -> None:
        self.wire.create_function("sealed", 2, sealed, deterministic=True)
        with damage(self.path):
            self.wire.execute("PRAGMA journal_mode = WAL")
            self.wire.execute("PRAGMA synchronous = FULL")
            check_pages(self.wire, self.path)
            self._migrate()

    def _migrate(self) -> None:
        (version,) = self.wire.execute("PRAGMA user_version").fetchone()
        if version > STORE_VERSION:
            raise InputError(f"{self.path}: has tables of version {version}; this program knows up to "
                             f"{STORE_VERSION}: it was written by a later one")
        for number in range(version, STORE_VERSION):
            self.wire.execute("BEGIN IMMEDIATE")
            for statement in MIGRATIONS[number]:
                self.wire.execute(statement)
            self.wire.execute(f"PRAGMA user_version = {number + 1}")
            self.wire.execute("COMMIT")

    def load(self, without: Iterable[str] = ("ended",)) -> dict[str, dict[int | str, bytes]]:
        """Return all tables; of those *without*, keys only. Raises StoreUnfitError where a body is damaged."""
        found: dict[str, dict[Any, bytes]] = {}
        with damage(self.path):
            for table in TABLES:
                if table in without:
                    found[table] = dict.fromkeys((key for key, in self.wire.execute(f"SELECT key FROM {table}")), b"")
                else:
                    found[table] = {key: unsealed(table, key, body)
                                    for key, body in self.wire.execute(f"SELECT key, body FROM {table}")}
        return found

    def body(self, table: str, key: int | str) -> bytes | None:
        """Return one body, or None; may be called beside a commit, from another thread."""
        return self.bodies(table, [key]).get(key)

    def bodies(self, table: str, keys: Iterable[int | str]) -> dict[int | str, bytes]:
        """Return the bodies of those keys that are there, as `body` does."""
        reader = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        try:
            with damage(self.path):
                rows = ((key, reader.execute(f"SELECT body FROM {table} WHERE key = ?", (key,)).fetchone())
                        for key in keys)
                return {key: unsealed(table, key, row[0]) for key, row in rows if row is not None}
        finally:
            reader.close()

    def commit(self, writes: Iterable[Write]) -> None:
        """Make writes durable, in their order, or none of them.

        Raises StoreError where the disk does not take them, StoreUnfitError where the file is damaged.
        """
        try:
            with damage(self.path):
                self._write(writes)
        finally:
            if self.wire.in_transaction:
                self.wire.execute("ROLLBACK")

    def _write(self, writes: Iterable[Write]) -> None:
        self.wire.execute("BEGIN IMMEDIATE")
        for each in writes:
            if isinstance(each, Put):
                rows = zip(each.keys, map(sealed, each.keys, each.bodies), strict=True)
                self.wire.executemany(UPSERT.format(each.table), rows)
            elif isinstance(each, PutLarge):
                self.wire.execute(UPSERT.format(each.table), (each.key, sealed(each.key, each.body())))
            elif isinstance(each, DropRange):
                self.wire.execute(f"DELETE FROM {each.table} WHERE key >= ? AND key < ?", (each.first, each.end))
            else:
                self.wire.executemany(f"DELETE FROM {each.table} WHERE key = ?", ((key,) for key in each.keys))
        self.wire.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self.wire.close()
        self.lock.close()
