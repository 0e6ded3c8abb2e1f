"""Checks where a command may write, before it computes and before it replaces a folder."""
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from subak.errors import InputError
from subak.output.plain import shortened
from subak.output.workplaces import LONGER, recover

NAME_BYTES, PATH_BYTES = 255, 4095  # Linux's, of a name and of a path
INSIDE = 600  # bytes kept for names within a folder: a workplace, runs, the name of one, its workplace
SHOWN = 200  # characters of a path that is too long


def located(path: Path) -> Path:
    """Return where *path* is, without links and dots; its last name may itself be a link."""
    if path.name in ("", ".."):
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent)) / path.name


def refuse_bytes(path: Path) -> None:
    """Raise InputError for a name that is no text in UTF-8, which neither Polars nor TOML can hold, or has a null."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(path)!a}: a name must be text in UTF-8") from None
    if "\0" in str(path):
        raise InputError(f"{str(path)!a}: a name must have no null character")


def refuse_folder(folder: Path, marker: str, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Raise InputError, in one line, unless a folder may be written as *folder*.

    It may where nothing is, or an empty folder, or with *overwrite* one that holds the file *marker*; never through a
    link, at or above the working directory or one of the *inputs*, at a mount point, or where nothing can be written.
    """
    recover(folder)
    with _worded(folder):
        place = located(folder)
        _refuse_long(folder, place, INSIDE)
        _refuse_above(folder, place, inputs)
        _refuse_unwritable(folder, place)
        if not place.exists() or (place.is_dir() and not any(place.iterdir())):
            return
        if not (place / marker).exists():
            raise InputError(f"{folder}: exists and holds no {marker}; it is not replaced, choose another folder")
        if not overwrite:
            raise InputError(f"{folder}: exists already; choose another folder or pass --overwrite")
        if not os.access(place, os.W_OK | os.X_OK):
            raise InputError(f"{folder}: could not be written: what it holds may not be removed")


def refuse_file(path: Path) -> None:
    """Raise InputError, in one line, unless a file may be written as *path*: not through a link, nor over a folder."""
    with _worded(path):
        place = located(path)
        _refuse_long(path, place, 0)
        if place.is_dir() and not place.is_symlink():
            raise InputError(f"{path}: is a folder; a file is to be written")
        _refuse_unwritable(path, place)
        if place.exists() and not place.is_file():
            raise InputError(f"{path}: exists and is no file; choose another name")


def refuse_room(folder: Path) -> None:
    """Raise InputError, in one line, unless files may be written into *folder*, which need not be there yet."""
    with _worded(folder):
        place = Path(os.path.realpath(folder))
        _refuse_long(folder, place, INSIDE)
        _refuse_nowhere(folder, place / "file")


@contextmanager
def _worded(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # the latter for a name with a null character
        raise _unwritable(path, getattr(error, "strerror", str(error))) from None


def _unwritable(path: Path, why: str) -> InputError:
    return InputError(f"{shortened(str(path), SHOWN)}: could not be written: {why}")


def _refuse_above(folder: Path, place: Path, inputs: Iterable[Path]) -> None:
    """Refuse to replace a folder that holds more than a result."""
    here = Path.cwd()
    if place in (here, *here.parents):
        raise InputError(f"{folder}: is or holds the working directory; it is not replaced, choose a folder in it, "
                         f"such as {folder / 'result'}")
    if os.path.ismount(place) or place in _mount_points():
        raise InputError(f"{folder}: is a mount point, which nothing can replace; choose a folder in it, such as "
                         f"{folder / 'result'}")
    for each in inputs:
        if any(place in (where, *where.parents) for where in (located(each), Path(os.path.realpath(each)))):
            raise InputError(f"{folder}: is or holds {each}, which is read; it is not replaced, choose another folder")


def _mount_points() -> set[Path]:
    """Return all mount points that the kernel tells: `ismount` misses those within one file system."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return set()
    octal = re.compile(rb"\\([0-7]{3})")
    names = (octal.sub(lambda found: bytes([int(found[1], 8)]), line.split()[4]) for line in lines)
    return {Path(os.fsdecode(name)) for name in names}


def _refuse_long(path: Path, place: Path, inside: int) -> None:
    """Refuse names that are too long for a workplace, and a path that is with *inside* more bytes."""
    refuse_bytes(place)
    longest, whole = max(len(os.fsencode(name)) for name in place.parts), len(os.fsencode(place))
    if longest > NAME_BYTES - LONGER:
        raise _unwritable(path, f"a name of {longest} bytes is too long, at most {NAME_BYTES - LONGER} are possible")
    if whole > PATH_BYTES - LONGER - inside:
        raise _unwritable(path, f"a path of {whole} bytes is too long")


def _refuse_unwritable(path: Path, place: Path) -> None:
    """Refuse a link, and a place above which nothing can be made."""
    if place.is_symlink():
        raise InputError(f"{path}: is a link, to {place.readlink()}; name what it leads to, or another place")
    _refuse_nowhere(path, place)


def _refuse_nowhere(path: Path, place: Path) -> None:
    """Refuse what would be below a file, or where nothing may be made."""
    above = next(each for each in place.parents if os.path.lexists(each))
    if not above.is_dir():
        raise InputError(f"{path}: could not be written: {above} is not a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"{path}: could not be written: nothing may be made in {above}")
