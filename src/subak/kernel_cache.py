"""Where compiled kernels are kept between processes: a file each, in a folder that is the user's alone.

A file is named by its kernel and by the key of all that was compiled into it (`kernel_key`), so it never is out of
date, only unused; what nobody used for `KEPT_DAYS` is removed. Rules:

1. What is loaded may run anything. So it is loaded only from a file, and a folder, that belong to this user and that
   nobody else may write; the normal one is in the user's cache folder, the next best in the temporary one. Where
   neither will do, nothing is kept.
2. A file appears whole or not at all, and begins with a digest of the rest. One that is damaged is compiled anew.
3. Of the processes that need the same kernel, one compiles it and the others wait. Its lock ends with the process.
4. No fault of the cache ends a run. It is said once, in one line, to the logger `subak`.
"""
import contextlib
import fcntl
import functools
import hashlib
import importlib
import logging
import os
import pickle
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from subak.kernel_key import UnknownValueError, signature_key, source_key

KEPT_DAYS = 14
DAY_S = 86_400.0
FORMAT = b"subak kernel 1\n"  # then the digest of the rest, a line too
KERNEL, LOCK, PART = ".kernel", ".lock", ".part"
OLD_FOLDER = re.compile("[0-9a-f]{16}")  # before there were keys, a folder held all kernels of a version

_LOG = logging.getLogger("subak")


class _DamagedError(Exception):
    """A file cannot be used; says why."""


@functools.cache
def _say(text: str) -> None:
    """Tell the user, once for a process."""
    _LOG.warning(text)


# -- the folder --------------------------------------------------------------------------------------------------------


@functools.cache
def kernel_folder() -> Path | None:
    """Return the folder that kernels are kept in, made where it was missing; None where none is safe to use."""
    refused = ""
    for place in _places():
        reason = _refusal(place) or _refusal(place / "kernels")
        if not reason:
            if refused:
                _say(f"{refused}; compiled kernels are kept in {place} instead")
            return place / "kernels"
        refused = refused or reason
    _say(f"{refused}; compiled kernels are not kept, every process compiles its own")
    return None


def _places() -> Iterator[Path]:
    with contextlib.suppress(RuntimeError, OSError):  # the user has no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "subak").resolve()
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


def _read(path: Path) -> Any:
    """Return what a file holds, None if there is none. Raises _DamagedError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _DamagedError(error.strerror) from None
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or not _is_ours_alone(state):
            raise _DamagedError("others may have written it")
        try:
            found = _unpacked(file.read())
        except OSError as error:
            raise _DamagedError(error.strerror) from None
        if time.time() - state.st_mtime > DAY_S:
            os.utime(descriptor)  # it is in use
    return found


def _unpacked(content: bytes) -> Any:
    digest, _, body = content.removeprefix(FORMAT).partition(b"\n")
    if not content.startswith(FORMAT) or hashlib.sha256(body).hexdigest().encode() != digest:
        raise _DamagedError("not what was written")
    return pickle.loads(body)


def _write(path: Path, value: Any) -> None:
    """Write a file that appears whole; a digest, not fsync, guards against what a crash of the machine leaves."""
    body = dumps(value)
    descriptor, part = tempfile.mkstemp(suffix=PART, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file *path*, or nothing where locks do not work; say whom it waits for."""
    try:
        descriptor = _lock(path, what)
    except OSError:  # a full disk, a file system without locks
        yield
        return
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # whoever waits for it sees that it has gone, and makes another
        os.close(descriptor)


def _lock(path: Path, what: str) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _wait(descriptor, what)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                with contextlib.suppress(OSError):  # a full disk: those who wait know less
                    os.truncate(descriptor, 0)
                    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
                return descriptor
        except FileNotFoundError:  # whoever held it has removed it
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _wait(descriptor: int, what: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.pread(descriptor, 20, 0).decode(errors="replace") or "another"
        _say(f"waiting for process {process}, which compiles {what}")
        fcntl.flock(descriptor, fcntl.LOCK_EX)


# -- a kernel ----------------------------------------------------------------------------------------------------------


class KernelCache:
    """The cache of one kernel, as Numba's dispatchers use it. Every method may be called under its compiler lock."""

    def __init__(self, function: FunctionType) -> None:
        """Look at nothing yet: most kernels are never called."""
        self.function = function
        self.name = function.__name__
        self._held = contextlib.ExitStack()

    @property
    def cache_path(self) -> str | None:
        """The folder, for Numba's statistics."""
        folder = kernel_folder()
        return None if folder is None else str(folder)

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """End the lock that `load_overload` may begin, whether or not the kernel compiles."""
        outer, self._held = self._held, contextlib.ExitStack()
        try:
            with self._held:
                yield
        finally:
            self._held = outer

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the kernel compiled for *signature*; None if this process is to compile it."""
        target.refresh()  # knows then what the code may refer to
        path = self._path(signature, target.codegen())
        if path is None:
            return None
        with contextlib.suppress(_DamagedError):
            found = self._load(path, target)
            if found is not None:
                return found
        self._held.enter_context(_locked(path.with_suffix(LOCK), self.name))
        try:
            return self._load(path, target)  # by whoever held the lock
        except _DamagedError as error:
            _say(f"the kept kernel {path} cannot be used ({error}); {self.name} is compiled anew")
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled kernel, where that is possible."""
        path = self._path(signature, compiled.codegen)
        if path is None or compiled.library.has_dynamic_globals:
            return
        try:
            _write(path, compiled._reduce())
        except OSError as error:
            _say(f"compiled kernels cannot be kept in {path.parent} ({error.strerror}); the next process compiles them "
                 "again")
        remove_unused(path.parent)

    def flush(self) -> None:
        """Forget nothing: a file is never out of date. For Numba's `recompile`."""

    def _load(self, path: Path, target: Any) -> Any:
        try:
            content = _read(path)
            return None if content is None else CompileResult._rebuild(target, *content)
        except (_DamagedError, MemoryError):
            raise
        except Exception as error:  # what bytes that passed the check may yet do to the reader
            raise _DamagedError(f"{type(error).__name__}: {error}") from None

    def _path(self, signature: Any, code: Any) -> Path | None:
        folder = kernel_folder()
        if folder is None:
            return None
        try:
            return folder / f"{_stem(self.function)}{signature_key(signature, code)}{KERNEL}"
        except UnknownValueError as error:
            _say(f"{error}; the kernel is not kept")
            return None


def is_kept(name: str) -> bool:
    """Whether a kernel of this name, made of exactly what it is made of now, is in the folder."""
    folder = kernel_folder()
    return folder is not None and any(_is_current(path.name) for path in folder.glob(f"*.{name}-*{KERNEL}"))


def _is_current(file: str) -> bool:
    module, _, name = file.partition("-")[0].rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
        return file.startswith(_stem(getattr(found, "py_func", found)))
    except (ImportError, AttributeError, UnknownValueError):  # of another version
        return False


def _stem(function: FunctionType) -> str:
    """Return how the names of a kernel's files begin."""
    name = f"{function.__module__}.{function.__qualname__}".translate({ord(each): None for each in "<>/"})
    return f"{name}-{source_key(function)}-"
