"""Copies a store while its master runs, and restores it; a copy is whole or absent.

A copy is a folder with the same files as the data folder of a master, without the log, which is in the file by then.
What is written is written beside its place, looked through, synchronised, and then put there by one rename.
"""
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from subak.errors import InputError
from subak.live.store.checking import check_all, check_log, damage
from subak.live.store.folder import idle, lock_of
from subak.live.store.sqlite import FILE, SEALED, TABLES

PAGES = 2048  # that are copied at once; commits of the master go on in between
PARTIAL = ".partial"


def store_of(folder: Path) -> Path:
    """Return the file of the store in a folder. Raises InputError where there is none."""
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"{folder}: there is no store of a master ({FILE})")
    return path


def check(folder: Path) -> int | None:
    """Look at all of a store; return how many bodies it has, None where they have no checksums yet.

    Raises InputError, StoreError, StoreUnfitError.
    """
    with _reading(store_of(folder)) as wire:
        return _check(wire)


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Read a store as it is at one moment, also while a process uses it. Raises StoreError, StoreUnfitError."""
    with idle(path.parent) as is_idle:
        if is_idle:  # else its master looked at the log when it began
            check_log(path)  # before SQLite drops what is damaged
    with damage(path), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)) as wire:
        wire.execute("BEGIN")
        yield wire


def _check(wire: sqlite3.Connection) -> int | None:
    (version,) = wire.execute("PRAGMA user_version").fetchone()
    found = check_all(wire, TABLES if version >= SEALED else ())
    return found if version >= SEALED else None


def back_up(folder: Path, to: Path) -> int | None:
    """Copy a store, as it is at one moment, to a new folder, also while its master runs; return what `check` does.

    Raises InputError, StoreError, StoreUnfitError.
    """
    source = store_of(folder)
    if to.exists():
        raise InputError(f"{to}: is there already; a copy goes to a new folder")
    partial = to.with_name(to.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)
    with _reading(source) as reader, closing(sqlite3.connect(partial / FILE)) as writer:
        reader.backup(writer, pages=PAGES)
        writer.execute("PRAGMA journal_mode = DELETE")
    count = _finish(partial / FILE)
    _copy_tokens(folder, partial)
    _sync(partial)
    partial.rename(to)
    _sync(to.parent)
    return count


def restore(copy: Path, folder: Path) -> int | None:
    """Put a copy into a folder where no store is; return what `check` does. Raises as `back_up` does."""
    source, partial = store_of(copy), folder / f"{FILE}{PARTIAL}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock_of(folder):  # a master that runs there has it
        left = sorted(path.name for path in folder.iterdir() if path.name.startswith(FILE) and path != partial)
        if left:
            raise InputError(f"{folder}: has a store ({', '.join(left)}); move it away, it may be the one in use last")
        shutil.copyfile(source, partial)
        partial.chmod(0o600)
        count = _finish(partial)
        _copy_tokens(copy, folder)
        partial.rename(folder / FILE)
        _sync(folder)
    return count


def _finish(path: Path) -> int | None:
    """Look through a file that was written, and synchronise it; return what `check` does."""
    with _reading(path) as wire:
        count = _check(wire)
    _sync(path)
    return count


def _copy_tokens(source: Path, to: Path) -> None:
    """Copy what a master keeps of tokens, where it is not there."""
    for path in source.glob("*.hash"):
        if not (to / path.name).exists():
            shutil.copyfile(path, to / path.name)
            (to / path.name).chmod(0o600)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
