"""Reads a workload from a pipe: a tar of its folder, unpacked in bounded memory.

What a run must know before its first task, all jobs and stages and how many tasks each has, is known when the last task
has been made. So the tasks go through the disk, of which a scratch folder takes as much as the workload's.
"""
import posixpath
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from subak.errors import InputError, RunError, first_line
from subak.output.writing import scratch_folder

PIPE = "-"  # in the place of a folder's name: standard input, or output
OURS = re.compile(r"(fleet/)?[a-z_]+\.(parquet|toml)")  # files of a workload's folder; others are passed over

_folder: ContextVar[Path | None] = ContextVar("_folder", default=None)


def pack(folder: Path, stream: IO[bytes]) -> None:
    """Write a workload's folder to *stream* as a tar; workload.toml, without which it is none, comes last.

    Raises RunError where nobody reads it.
    """
    files = [path for path in folder.rglob("*") if OURS.fullmatch(path.relative_to(folder).as_posix())]
    try:
        with tarfile.open(fileobj=stream, mode="w|") as tar:
            for path in sorted(files, key=lambda path: (path == folder / "workload.toml", path)):
                tar.add(path, path.relative_to(folder).as_posix())
        stream.flush()
    except OSError as error:
        raise RunError(f"standard output: could not be written: {error.strerror or error}") from None


def unpack(stream: IO[bytes], folder: Path) -> None:
    """Unpack the tar of a workload's folder into *folder*. Raises InputError, naming what is wrong, for another."""
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                name = posixpath.normpath(member.name)
                content = tar.extractfile(member) if member.isfile() and OURS.fullmatch(name) else None
                if content is not None:
                    (folder / name).parent.mkdir(exist_ok=True)
                    with (folder / name).open("wb") as file:
                        shutil.copyfileobj(content, file)
    except tarfile.TarError as error:
        raise InputError("standard input: must be a workload's folder as a tar, as `subak generate --out -` writes it "
                         f"({first_line(error)})") from None
    if not (folder / "workload.toml").is_file():
        raise InputError("standard input: must be a workload's folder as a tar, in which there is no workload.toml")


@contextmanager
def piped_workload(stream: IO[bytes]) -> Iterator[None]:
    """Let the workload named PIPE be what comes through *stream*, until the end. Raises InputError as `unpack`."""
    if stream.isatty():
        raise InputError(f"workload {PIPE}: standard input is a terminal; give it a workload through a pipe")
    with scratch_folder() as folder:
        unpack(stream, folder)
        token = _folder.set(folder)
        try:
            yield
        finally:
            _folder.reset(token)


def piped_folder() -> Path | None:
    """Return the folder of the workload that came through a pipe, None where none did."""
    return _folder.get()
