"""The node agent's journal: records appended to disk in groups before any effect.

A record is its length, its checksum (CRC-32) and its MessagePack. Reading ends at the first that is not whole, which is
where a write was cut off; the rest is dropped. When much of the file says nothing any more it is written anew, beside
the old one, and takes its place.
"""
import errno
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from struct import Struct as Layout

from msgspec import DecodeError, ValidationError, msgpack

from subak.errors import InputError
from subak.live.agent.attempts.records import SYNCED, Record

HEAD = Layout("<II")  # length, CRC-32
RECORD_BYTES_MAX = 1 << 20
SLACK_BYTES = 1 << 20  # that say nothing any more are not worth writing the file anew for
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(Record).decode


class DiskFullError(Exception):
    """The records are not on disk, and nothing of them is; it may be tried again."""


class Journal:
    """The journal in the file *path*, which is made where there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.size = 0  # bytes that are whole
        self.rewrite_at = SLACK_BYTES
        self.dropped = 0  # bytes at the end that were not

    def read(self) -> list[Record]:
        """Return all whole records, and cut off what is behind them."""
        text = self.path.read_bytes()
        records, self.size = _parse(text)
        self.dropped = len(text) - self.size
        self._cut()
        sync_folder(self.path.parent)  # which may not have had the file before
        self.rewrite_at = max(SLACK_BYTES, 2 * self.size)
        return records

    def append(self, records: Iterable[Record]) -> None:
        """Write records behind the others, and see that they last as they must; raise DiskFullError for no room."""
        records = list(records)
        if records:
            self._write(b"".join(map(_frame, records)))
            if any(isinstance(record, SYNCED) for record in records):
                os.fdatasync(self.file)  # where that fails nobody knows what is on disk: it is an end

    def is_long(self) -> bool:
        """Whether it is time to write the file anew."""
        return self.size > self.rewrite_at

    def rewrite(self, records: Iterable[Record]) -> None:
        """Let these records take the place of all others; leave all as it is where there is no room for them."""
        beside = self.path.with_suffix(".new")
        text = b"".join(map(_frame, records))
        self.rewrite_at = 2 * self.size + SLACK_BYTES  # if it does not work now
        file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write_all(file, text)
            os.fsync(file)
        except OSError as error:
            os.close(file)
            beside.unlink()
            _reraise(error)
            return
        beside.replace(self.path)
        sync_folder(self.path.parent)
        os.close(self.file)
        self.file, self.size, self.rewrite_at = file, len(text), 2 * len(text) + SLACK_BYTES

    def close(self) -> None:
        """Close the file."""
        os.close(self.file)

    def _write(self, group: bytes) -> None:
        try:
            os.lseek(self.file, self.size, os.SEEK_SET)
            _write_all(self.file, group)
        except OSError as error:
            self._cut()
            _reraise(error)
            raise DiskFullError(f"{self.path}: {error.strerror}") from None
        self.size += len(group)

    def _cut(self) -> None:
        os.ftruncate(self.file, self.size)


def sync_folder(folder: Path) -> None:
    """See to it that the names in a folder are on disk."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _frame(record: Record) -> bytes:
    text = _encode(record)
    return HEAD.pack(len(text), zlib.crc32(text)) + text


def _parse(text: bytes) -> tuple[list[Record], int]:
    """Return the whole records at the beginning of *text*, and how many bytes they are."""
    records: list[Record] = []
    at = 0
    while at + HEAD.size <= len(text):
        length, checksum = HEAD.unpack_from(text, at)
        end = at + HEAD.size + length
        body = text[at + HEAD.size:end]
        if not 0 < length <= RECORD_BYTES_MAX or end > len(text) or zlib.crc32(body) != checksum:
            break
        try:
            records.append(_decode(body))
        except (DecodeError, ValidationError):  # of a later version: what it says must not be passed over
            raise InputError(f"the record at byte {at} of the journal is of no kind that this version knows") from None
        at = end
    return records, at


def _write_all(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text):]


def _reraise(error: OSError) -> None:
    """Raise what is not want of space."""
    if error.errno not in NO_SPACE:
        raise error
