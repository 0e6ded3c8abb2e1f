"""Locks the folder of a store to one process at a time."""
import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from subak.errors import InputError

LOCK = "lock"
LOOKS, LOOK_S = 5, 0.1  # how often a lock is tried, and the pause: who was killed, or checks, has it for a moment


def lock_of(folder: Path) -> IO[bytes]:
    """Return the lock of a folder, held as long as it is open. Raises InputError where another process has it."""
    lock = (folder / LOCK).open("wb")
    for look in range(LOOKS):
        if look:
            time.sleep(LOOK_S)
        if _is_taken(lock):
            return lock
    lock.close()
    raise InputError(f"{folder}: another process uses this folder")


@contextmanager
def idle(folder: Path) -> Iterator[bool]:
    """Say whether no process uses a folder, and keep it so meanwhile; it may be on a disk that takes no writes."""
    if not (folder / LOCK).exists():
        yield True
        return
    with (folder / LOCK).open("rb") as lock:
        yield _is_taken(lock)


def _is_taken(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
