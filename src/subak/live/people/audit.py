"""The audit log of a global master: who changed what, from where, and how that ended, as lines of JSON in files.

A change has two lines: one before it is made, which says who and what, and one afterwards with the outcome. So a change
whose line cannot be written is not made, and one that was under way when the master was killed is seen to have no
outcome. Lines hold no tokens, and nothing of what was sent but the path. Files are private and only appended to; a full
one is renamed, and the oldest is removed.
"""
import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import DecodeError, Struct, json, structs

FILE = "audit.log"
FILE_BYTES, LOG_FILES = 8 << 20, 8  # of one, and how many are kept
PATH_CHARACTERS = 300  # of a path that are kept
NO_OUTCOME = 0
PRIVATE = 0o600


class Line(Struct, frozen=True, omit_defaults=True):
    """A line of the log: what was asked, or (with a code) how that of the same request ended."""

    request: str
    at: float  # Unix time
    who: str = ""
    role: str = ""
    token: str = ""  # its id
    origin: str = ""  # an address, or a user of this host
    what: str = ""  # method and path
    object: str = ""  # such as a job
    code: int = NO_OUTCOME  # of the HTTP answer


class Audit:
    """The log in a folder; see the head of the file."""

    def __init__(self, folder: Path, file_bytes: int = FILE_BYTES, files: int = LOG_FILES) -> None:
        self.path, self.file_bytes, self.files = folder / FILE, file_bytes, files
        self.begun, self.life = 0, os.urandom(4).hex()
        self.number = -1  # of the open file

    def close(self) -> None:
        """Close the file."""
        if self.number >= 0:
            os.close(self.number)
            self.number = -1

    def begin(self, line: Line) -> str:
        """Write what is asked, and return the name of the request. Raises OSError where that cannot be written."""
        self.begun += 1
        request = f"{self.life}-{self.begun}"
        self._write(structs.replace(line, request=request, at=time.time(), what=line.what[:PATH_CHARACTERS]))
        return request

    def end(self, request: str, code: int, object: str = "") -> None:
        """Write how a request has ended. Raises OSError where that cannot be written."""
        self._write(Line(request, time.time(), code=code, object=object))

    def _write(self, line: Line) -> None:
        data = json.encode(line) + b"\n"
        if self.number < 0:
            self._open()
        size = os.fstat(self.number).st_size
        if size and size + len(data) > self.file_bytes:
            self._rotate()
            size = 0
        if os.write(self.number, data) < len(data):  # the disk is full: what is there of it is no line
            os.ftruncate(self.number, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self.number = os.open(self.path, flags, PRIVATE)

    def _rotate(self) -> None:
        """Begin another file; the oldest is removed."""
        self.close()
        for number in reversed(range(1, self.files)):
            with suppress(FileNotFoundError):
                self._former(number - 1).replace(self._former(number))
        self._open()

    def _former(self, number: int) -> Path:
        return self.path.with_name(f"{FILE}.{number}") if number else self.path

    def read(self, since: float, who: str, object: str, limit: int) -> list[Line]:
        """Return the latest *limit* changes since a Unix time, the earliest first, each with its outcome.

        *who*: only those of this person; *object*: only those of this job (and its tasks), machine or person.
        """
        ends: dict[str, Line] = {}
        found: dict[str, Line] = {}  # each once: a file may be renamed meanwhile
        for line in self._backwards():
            if not line.who:
                ends[line.request] = line
                continue
            if line.at < since or len(found) >= limit:
                break
            end = ends.pop(line.request, line)
            whole = structs.replace(line, code=end.code, object=line.object or end.object)
            if who in ("", whole.who) and (not object or f"{whole.object}.".startswith(f"{object}.")):
                found[line.request] = whole
        return list(found.values())[::-1]

    def _backwards(self) -> Iterator[Line]:
        """Yield all lines, the latest first; what is none (a kill can cut the last one short) is passed over."""
        for number in range(self.files):
            with suppress(FileNotFoundError):
                for each in reversed(self._former(number).read_bytes().splitlines()):
                    with suppress(DecodeError):
                        yield json.decode(each, type=Line)
