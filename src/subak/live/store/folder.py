"""The folder of a store: one process uses it at a time."""
import fcntl
from pathlib import Path
from typing import IO

from subak.errors import InputError


def lock_of(folder: Path) -> IO[bytes]:
    """Return the lock of a folder, held as long as it is open. Raises InputError where another process has it."""
    lock = (folder / "lock").open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise InputError(f"{folder}: another process uses this folder") from None
    return lock
