"""Writes folders and files that appear whole or not at all, even if the process is killed.

What has been written is flushed to the disk and then changes names with what is in its place, in one step of the
kernel. So a place holds what was there before or all of the new at every instant.
"""
import ctypes
import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from subak.errors import InputError, RunError
from subak.output.places import located, refuse_file, refuse_folder
from subak.output.workplaces import NEW, OLD, PARTIAL, clear, partial_file, workplace

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # <fcntl.h>, <linux/fs.h>
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)  # what kernels and file systems without it say
IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST)

written: list[Path] = []  # what this process has written, for those who interrupt it


@contextmanager
def new_folder(folder: Path, marker: str, overwrite: bool = False, inputs: Iterable[Path] = ()) -> Iterator[Path]:
    """Give a hidden folder to write into, which takes the place of *folder* only when all went well.

    *marker* is a file that every folder of this kind holds: only such a folder is ever replaced. Raises InputError
    when *folder* may not be written (see `refuse_folder`) or another process is at it, RunError when the disk refuses.
    """
    refuse_folder(folder, marker, overwrite, inputs)
    place = located(folder)
    with _worded(folder), _parents(place):
        if place.name in clear(place.parent):
            raise InputError(f"{folder}: another process is writing it; choose another folder, or wait")
        with workplace(place) as found:
            (found / NEW).mkdir()
            yield found / NEW
            _flush(found / NEW)
            try:
                (found / NEW).rename(place)
            except OSError as error:
                if error.errno not in IN_THE_WAY:
                    raise
                refuse_folder(folder, marker, overwrite)  # it may have come meanwhile
                _replace(found, place)
            _note(folder, place)
            _flush_names(place.parent)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a folder that is gone afterwards; one that a killed process left goes with the next one's."""
    place = Path(os.path.realpath(tempfile.gettempdir())) / "subak"
    with _worded(place):
        clear(place.parent)
        with workplace(place) as found:
            (found / NEW).mkdir()
            yield found / NEW


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole: whoever reads *path* meets what was there before, or all of *content*.

    Missing folders above it are made. Raises InputError when it may not be written, RunError when the disk refuses.
    """
    refuse_file(path)
    place = located(path)
    with _worded(path), _parents(place):
        clear(place.parent)
        with partial_file(place) as (partial, number):
            with os.fdopen(os.dup(number), "wb") as file:
                file.write(content)
            os.fsync(number)
            partial.replace(place)
        _note(path, place)
        _flush_names(place.parent)


@contextmanager
def _worded(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: could not be written: {error.strerror or error}") from None


@contextmanager
def _parents(place: Path) -> Iterator[None]:
    """Make what is missing above *place*; it goes again when nothing came of it."""
    missing = [each for each in place.parents if not each.exists()]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise
    for each in missing:
        _flush_names(each.parent)


def _note(path: Path, place: Path) -> None:
    if not any(PARTIAL.fullmatch(each.name) for each in place.parents):
        written.append(path)


def _flush(folder: Path) -> None:
    """Bring a folder to the disk, without what writers that died within it left."""
    for path, _, _ in os.walk(folder):
        clear(Path(path))
    for path, _, names in os.walk(folder, topdown=False):
        for name in names:
            _flush_names(Path(path, name))
        _flush_names(Path(path))


def _flush_names(path: Path) -> None:
    """Bring what a file holds, or the names in a folder, to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _replace(found: Path, place: Path) -> None:
    """Put what is new in the place of what is there; a kill between the two renames is mended by `recover`."""
    if not _exchanged(found / NEW, place):
        place.rename(found / OLD)
        (found / NEW).rename(place)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the kernel or the file system knows no such step."""
    renameat2 = getattr(_library(), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number))


@cache
def _library() -> Any:
    return ctypes.CDLL(None, use_errno=True)
