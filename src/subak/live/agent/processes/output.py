"""Bounds the output files that attempts write: the oldest part goes back to the disk.

An attempt writes to the file without anybody between: it is never held up, and does not notice when its agent dies.
Every now and then the agent looks at the files, and punches a hole over what is more than the limit from the end. So
offsets stay what they were, and a file takes the limit and what is written between two looks. The blocks of a hole are
not there; files of attempts that have ended are kept until they take more than *kept_bytes* together, or there are too
many, the oldest first.
"""
import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from subak.live.agent.attempts.attempt import Key
from subak.live.agent.attempts.wire import OUTPUT_BYTES_MAX

OUT, ERROR = "out", "err"
STREAMS = (OUT, ERROR)
HOLE_BLOCK = 4096
PUNCH_HOLE = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, linux/falloc.h
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


class Outputs:
    """The files in *folder*. *limit* bytes are kept of each; of attempts that have ended, *kept_bytes* and *kept*."""

    def __init__(self, folder: Path, limit: int = 16 << 20, kept_bytes: int = 1 << 30, kept: int = 10_000) -> None:
        self.folder, self.limit, self.kept_bytes, self.kept = folder, limit, kept_bytes, kept
        folder.mkdir(mode=0o700, exist_ok=True)
        self.holes: dict[Path, int] = {}  # where the kept part of a file begins that is longer than the limit
        self.ended: dict[Path, int] = {}  # bytes on disk of files that nobody writes to, the oldest first
        self.ended_bytes = 0
        for file in sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime):
            self._keep(file)
        self._refuse_folders_without_holes()

    def open(self, key: Key) -> tuple[int, int]:
        """Make the files of an attempt; return them opened, to be closed by the caller."""
        opened = [os.open(self.name(key, stream), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                  for stream in STREAMS]
        return opened[0], opened[1]

    def name(self, key: Key, stream: str) -> str:
        """Return the file of a stream of an attempt."""
        return f"{self.folder}/{key.task}.{key.attempt}.{stream}"

    def trim(self, keys: Iterable[Key]) -> None:
        """Give back what is more than the limit of running attempts' files."""
        for key in keys:
            for stream in STREAMS:
                self._trim(Path(self.name(key, stream)))

    def end(self, key: Key) -> None:
        """Note that nobody writes to an attempt's files any more; empty ones go, and old ones of others."""
        for stream in STREAMS:
            name = self.name(key, stream)
            with suppress(FileNotFoundError):
                if os.stat(name).st_size == 0:  # noqa: PTH116  (as most are: a path takes longer to make than to look at)
                    os.unlink(name)  # noqa: PTH108
                    continue
            path = Path(name)
            self._trim(path)
            self.holes.pop(path, None)
            self._keep(path)
        while self.ended and (len(self.ended) > self.kept or self.ended_bytes > self.kept_bytes):
            oldest = next(iter(self.ended))
            self.ended_bytes -= self.ended.pop(oldest)
            oldest.unlink(missing_ok=True)

    def read(self, key: Key, stream: str, offset: int, size: int, lines: int = 0) -> tuple[int, bytes, int]:
        """Return where a part of a stream begins, the part, at most *size* bytes of it, and how many were written.

        It begins at *offset*, counted from the end where it is below zero, or with the last *lines*; later where that
        is not kept.
        """
        try:
            file = os.open(self.name(key, stream), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return max(offset, 0), b"", 0
        try:
            written, first = os.fstat(file).st_size, _first_kept(file)
            if lines:
                offset = _last_lines(file, lines, first, written)
            elif offset < 0:
                offset += written
            offset = max(offset, first)
            return offset, os.pread(file, min(size, OUTPUT_BYTES_MAX), offset), written
        finally:
            os.close(file)

    def _trim(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            excess = path.stat().st_size - self.limit
            begin, end = self.holes.get(path, 0), excess - excess % HOLE_BLOCK
            if end > begin:
                self.holes[path] = end
                punch(path, begin, end - begin)

    def _keep(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            status = path.stat()
            if status.st_size == 0:
                path.unlink()
            else:
                self.ended[path] = 512 * status.st_blocks
                self.ended_bytes += self.ended[path]

    def _refuse_folders_without_holes(self) -> None:
        probe = self.folder / ".probe"
        probe.write_bytes(bytes(2 * HOLE_BLOCK))
        try:
            punch(probe, 0, HOLE_BLOCK)
        finally:
            probe.unlink()


def _first_kept(file: int) -> int:
    """Return the offset of the first byte that is kept: behind the hole at the beginning, if there is one."""
    try:
        return os.lseek(file, 0, os.SEEK_DATA)
    except OSError:  # there is no data
        return 0


def _last_lines(file: int, lines: int, first: int, end: int) -> int:
    """Return where the last *lines* of the bytes from *first* to *end* begin; the last may lack its end of line."""
    at, missing = end, lines
    if end > first and os.pread(file, 1, end - 1) == b"\n":
        missing += 1  # the end of the last line begins none
    while at > first:
        begin = max(at - OUTPUT_BYTES_MAX, first)
        block = os.pread(file, at - begin, begin)
        found = block.count(b"\n")
        if found >= missing:
            place = len(block)
            for _ in range(missing):
                place = block.rindex(b"\n", 0, place)
            return begin + place + 1
        missing, at = missing - found, begin
    return first


def punch(path: Path, begin: int, size: int) -> None:
    """Give *size* bytes of a file back to the disk; they read as nulls; raise OSError where the disk cannot."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if _libc.fallocate(file, PUNCH_HOLE, begin, size) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(file)
