"""The temporary places where output grows, and their cleanup when a writer dies.

A folder NAME grows in a workplace beside its place, the hidden folder `.NAME.partial-TOKEN`, which holds

    owner   a file that the writer keeps locked; the kernel lets go of the lock when the writer is gone, however it went
    new     what is being written
    old     what was in the place, between two renames, where the file system cannot exchange two names in one step

A single file grows as `.NAME.partial-TOKEN` itself, locked in the same way. Whoever writes beside it clears what dead
writers left; whoever looks for a NAME that is gone puts `old` back. Nobody's process id is asked: they come again.
"""
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OWNER, NEW, OLD = "owner", "new", "old"
TOKEN_LETTERS = 12
PARTIAL = re.compile(rf"\.(?P<name>.+)\.partial-[0-9a-f]{{{TOKEN_LETTERS}}}", re.DOTALL)
LONGER = len("..partial-") + TOKEN_LETTERS  # bytes by which a partial name is longer


@contextmanager
def workplace(place: Path) -> Iterator[Path]:
    """Give a new workplace for *place*; afterwards it is gone, and its `old` is back if nothing took its place."""
    found, lock = _made(place)
    try:
        yield found
    finally:
        try:
            _settle(found, place)
        finally:
            os.close(lock)


@contextmanager
def partial_file(place: Path) -> Iterator[tuple[Path, int]]:
    """Give a new file for *place*, and its descriptor; afterwards it is gone, unless it was renamed."""
    partial, lock = _made_file(place)
    try:
        yield partial, lock
    finally:
        partial.unlink(missing_ok=True)
        os.close(lock)


def is_folder(path: Path) -> bool:
    """Whether *path* is a folder, once it is recovered."""
    recover(path)
    return path.is_dir()


def recover(path: Path) -> None:
    """Put *path*, or what is missing above it, back if a writer that died had set it aside."""
    missing = [each for each in (path, *path.parents) if not os.path.lexists(each)]
    if missing:
        clear(missing[-1].parent)


def clear(folder: Path) -> set[str]:
    """Remove what dead writers left in *folder*, put back what they had set aside; return the names now being written.

    What belongs to other users is let be, and so is that of writers of which the file system cannot say whether they
    live.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError:  # what cannot be listed cannot be cleared
        return set()
    found = {name: match["name"] for name in names if (match := PARTIAL.fullmatch(name))}
    return {name for partial, name in found.items() if _is_alive(folder / partial, folder / name)}


def _is_alive(partial: Path, place: Path) -> bool:
    """Whether the writer of *partial* lives; what a dead one left is removed."""
    with suppress(OSError):  # it is gone by now, or cannot be removed: the next one tries again
        if partial.lstat().st_uid != os.geteuid():
            return False
        lock = _lock_of(partial)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(partial, place, lock)
        except BlockingIOError:
            return True
        except OSError:
            _put_back(partial, place)
        finally:
            os.close(lock)
    return False


def _lock_of(partial: Path) -> int:
    """Open the file that the writer of *partial* keeps locked. A workplace without one is empty, and removed."""
    is_workplace = stat.S_ISDIR(partial.lstat().st_mode)
    try:
        return os.open(partial / OWNER if is_workplace else partial, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        partial.rmdir()
        raise


def _remove(partial: Path, place: Path, lock: int) -> None:
    """Remove what a dead writer left; *lock* is held."""
    if partial.is_dir():
        _settle(partial, place)
    elif os.path.samestat(partial.lstat(), os.fstat(lock)):
        partial.unlink()


def _settle(found: Path, place: Path) -> None:
    """End a workplace: what was set aside goes back where nothing took its place, all else goes for good."""
    _put_back(found, place)
    for name in (NEW, OLD):
        shutil.rmtree(found / name, ignore_errors=True)
    if not any(os.path.lexists(found / name) for name in (NEW, OLD)):  # else the next one tries again
        (found / OWNER).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            found.rmdir()


def _put_back(found: Path, place: Path) -> None:
    if os.path.lexists(found / OLD) and not os.path.lexists(place):
        (found / OLD).rename(place)


def _made(place: Path) -> tuple[Path, int]:
    """Make a workplace and lock it. Somebody may clear it before it is locked: then another is made."""
    while True:
        found = _partial(place)
        found.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            return found, _locked(found / OWNER)


def _made_file(place: Path) -> tuple[Path, int]:
    while True:
        partial = _partial(place)
        with suppress(FileNotFoundError):
            return partial, _locked(partial)


def _partial(place: Path) -> Path:
    return place.with_name(f".{place.name}.partial-{secrets.token_hex(TOKEN_LETTERS // 2)}")


def _locked(path: Path) -> int:
    """Create a file and lock it. Raises FileNotFoundError if somebody cleared it before it was locked."""
    lock = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(lock, fcntl.LOCK_EX)
    if os.fstat(lock).st_nlink == 0:
        os.close(lock)
        raise FileNotFoundError(path)
    return lock
