"""The folder of compiled kernels: private to the user, each file whole and written by one process.

Rules:

1. What is loaded may run anything. So it is loaded only from a file, and a folder, that belong to this user and that
   nobody else may write; the normal one is in the user's cache folder, the next best in the temporary one. Where
   neither will do, nothing is kept.
2. A file appears whole or not at all, and begins with a digest of the rest.
3. Of the processes that need the same kernel, one holds its lock and the others wait. A lock ends with its process.
4. What nobody used for `KEPT_DAYS` is removed.
"""
import contextlib
import fcntl
import functools
import hashlib
import logging
import os
import pickle
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

KEPT_DAYS = 14
DAY_S = 86_400.0
PATIENCE_S = 2.0  # small kernels take less
FORMAT = b"subak kernel 1\n"  # then the digest of the rest, a line too
KERNEL, LOCK, PART = ".kernel", ".lock", ".part"
OLD_FOLDER = re.compile("[0-9a-f]{16}")  # before there were keys, a folder held all kernels of a version

_LOG = logging.getLogger("subak")


class DamagedError(Exception):
    """A file cannot be used; says why."""


@functools.cache
def say(text: str) -> None:
    """Tell the user, once for a process."""
    _LOG.warning(text)


# -- the folder --------------------------------------------------------------------------------------------------------


@functools.cache
def kernel_folder() -> Path | None:
    """Return the folder that kernels are kept in, made where it was missing; None where none is safe to use."""
    refused: list[str] = []
    for place in _places():
        reason = _refusal(place) or _refusal(place / "kernels")
        if not reason:
            if refused:
                say(f"{refused[0]}; compiled kernels are kept in {place} instead")
            return place / "kernels"
        refused.append(reason)
    say(f"{', '.join(refused) or 'there is no folder'}; compiled kernels are not kept, every process compiles its own")
    return None


def _places() -> Iterator[Path]:
    with contextlib.suppress(RuntimeError, OSError):  # the user has no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "subak").resolve()
    with contextlib.suppress(RuntimeError, OSError):  # there is no temporary folder
        yield Path(tempfile.gettempdir()).resolve() / f"subak-{os.geteuid()}"


def _refusal(folder: Path) -> str:
    """Say why kernels cannot be kept in *folder*, which is made where it is missing; empty where they can."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.lstat()
    except OSError as error:
        return f"{folder} cannot be used ({error.strerror})"
    if not stat.S_ISDIR(state.st_mode):
        return f"{folder} is a link or a file, not a folder"
    if not _is_ours_alone(state):
        return f"{folder} belongs to another user, or others may write to it (chmod go-w)"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"{folder} cannot be written"


def _is_ours_alone(state: os.stat_result) -> bool:
    return state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def remove_unused(folder: Path) -> None:
    """Remove kernels that nobody used for a while, what a process that died left, and folders as they once were."""
    oldest = time.time() - KEPT_DAYS * DAY_S
    with contextlib.suppress(OSError):
        for path in (*folder.iterdir(), *folder.parent.iterdir()):
            if path.lstat().st_mtime > oldest:
                continue
            if path.suffix in (KERNEL, LOCK, PART):
                path.unlink(missing_ok=True)
            elif OLD_FOLDER.fullmatch(path.name) and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)


# -- a file ------------------------------------------------------------------------------------------------------------


def read(path: Path) -> Any:
    """Return what a file holds, None if there is none. Raises DamagedError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedError(error.strerror) from None
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or not _is_ours_alone(state):
            raise DamagedError("others may have written it")
        try:
            found = _unpacked(file.read())
        except OSError as error:
            raise DamagedError(error.strerror) from None
        if time.time() - state.st_mtime > DAY_S:
            os.utime(descriptor)  # it is in use
    return found


def _unpacked(content: bytes) -> Any:
    digest, _, body = content.removeprefix(FORMAT).partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise DamagedError("not what was written")
    return pickle.loads(body)


def write(path: Path, value: object, dumps: Callable[[object], bytes] = pickle.dumps) -> None:
    """Write a file that appears whole, of what *dumps* makes of a value.

    A digest, not fsync, guards against what a crash of the machine leaves.
    """
    body = dumps(value)
    descriptor, part = tempfile.mkstemp(suffix=PART, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def lock(path: Path, what: str) -> int | None:
    """Take the lock file *path* and return its descriptor; None when another had it, and has now let it go."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    taken = False
    try:
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = os.path.samestat(os.fstat(descriptor), path.stat())
            if taken:
                _name_holder(descriptor)
                return descriptor
        _wait(descriptor, what)
    finally:
        if not taken:
            os.close(descriptor)
    return None


def _name_holder(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # a full disk: those who wait know less
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)


def unlock(path: Path, descriptor: int) -> None:
    """Let a lock go that `lock` has taken, and remove its file."""
    with contextlib.suppress(OSError):
        path.unlink()  # first: whoever opens it now waits, and then sees that it has gone
    os.close(descriptor)


def _wait(descriptor: int, what: str) -> None:
    """Wait until a lock is let go, together with all others who do; what takes longer than a moment is said."""
    patient_until = time.monotonic() + PATIENCE_S
    while time.monotonic() < patient_until:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return
        time.sleep(PATIENCE_S / 20)
    process = os.pread(descriptor, 20, 0).decode(errors="replace") or "another"
    say(f"waiting for process {process}, which compiles {what}")
    fcntl.flock(descriptor, fcntl.LOCK_SH)
