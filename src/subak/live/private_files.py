"""Reads and writes files that nobody else may read: tokens, keys."""
import os
from contextlib import suppress
from pathlib import Path

from subak.errors import InputError

PRIVATE = 0o600
FILE_BYTES_MAX = 16_384


def read_private(file: Path) -> str | None:
    """Return what a private file holds, None where there is none.

    Raises InputError for one that others may read, that belongs to others, or that is no text.
    """
    try:
        number = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    with os.fdopen(number, "rb") as opened:
        status = os.fstat(number)
        if status.st_mode & 0o077:
            raise InputError(f"{file}: others may read it (mode {status.st_mode & 0o777:o}); its mode must be 600")
        if status.st_uid not in (0, os.geteuid()):
            raise InputError(f"{file}: belongs to user {status.st_uid}, and must belong to whoever uses it")
        try:
            return opened.read(FILE_BYTES_MAX).decode("ascii").strip()
        except (UnicodeDecodeError, OSError):
            raise InputError(f"{file}: must be a text file") from None


def write_private(file: Path, text: str, once: bool = False, mode: int = PRIVATE) -> None:
    """Write a file that appears whole, and is on disk afterwards; with *once* not over one that is there.

    Raises InputError where it can't be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise InputError(f"{file.parent}: cannot be made: {error.strerror}") from None
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
        with os.fdopen(number, "wb") as opened:
            os.fchmod(number, mode)
            opened.write(f"{text.rstrip()}\n".encode("ascii"))
            opened.flush()
            os.fsync(number)
        if once:
            with suppress(FileExistsError):
                file.hardlink_to(beside)
            beside.unlink()
        else:
            beside.replace(file)
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}") from None
