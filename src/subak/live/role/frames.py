"""The frames between role processes: MessagePack, numbered on each connection, with messages as raw rows.

A connection is ordered; a frame whose number is not the next one shows that something was lost, or doubled, on it, and
ends it: both sides begin anew, and handlers take it that messages may be lost. So facts and entries of ledgers that
were said once on a connection need not be said again. Rows are what handlers read and write, in the byte order of this
machine. `WIRE_VERSION` numbers all of it; docs/stability.md says which versions speak with each other.
"""
import re
import sys
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import DecodeError, Meta, Struct, ValidationError, msgpack, structs

from subak.federation.megha.ledger import ENTRY
from subak.federation.messages import MESSAGE
from subak.live.role.facts import Fact

NODE_FRAME_BYTES_MAX = 1 << 26
Number = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class WireVersion(NamedTuple):
    """The version of what processes send each other: those of one major number speak with each other."""

    major: int
    minor: int
    order: str = sys.byteorder  # of the bytes in rows

    def __str__(self) -> str:
        """Return it as it is sent."""
        return f"{self.major}.{self.minor}" + ("" if self.order == "little" else f"-{self.order}")

    def speaks(self, text: str) -> bool:
        """Whether a process of this version understands one that says it has the version *text*."""
        found = re.fullmatch(r"([0-9]{1,9})\.[0-9]{1,9}(?:-(big))?", text)
        return found is not None and (int(found[1]), found[2] or "little") == (self.major, self.order)


# Minor: fields were added behind the others, with defaults. Major: all other changes. tests/live/test_wire_version.py
# compares the layouts with those of the version, and says which number to raise.
WIRE_VERSION = WireVersion(1, 2)
# Bytes of a row in minor version 0: a peer's rows are as long, or longer by fields of later minor versions.
MESSAGE_BYTES_MIN, ENTRY_BYTES_MIN = 160, 50


def mismatch(there: str, here: str) -> str:
    """Return why two processes do not speak with each other, as the one that dials says it."""
    return (f"wire version {_plain(there)} there, {_plain(here)} here: run releases of subak with the same major wire "
            "version on both")


def _plain(version: str) -> str:
    """Return a version as a stranger says it, shortened, and quoted unless it looks like one."""
    return version if re.fullmatch(r"[0-9a-z.-]{1,16}", version) else ascii(version[:16])


class FrameError(Exception):
    """What was received is no frame, or not the next one of its connection."""


class Batch(Struct, frozen=True, array_like=True, tag=0):
    """Messages, and what their receiver needs for them: facts, and entries of the sender's ledger from *first* on."""

    messages: bytes = b""  # MESSAGE[row]
    facts: tuple[Fact, ...] = ()
    entries: bytes = b""  # ENTRY[row]
    epoch: Number = 0  # of the ledger
    first: int = 0
    message_bytes: Annotated[int, Meta(ge=MESSAGE_BYTES_MIN)] = MESSAGE.itemsize  # of each row
    entry_bytes: Annotated[int, Meta(ge=ENTRY_BYTES_MIN)] = ENTRY.itemsize


class Retract(Struct, frozen=True, array_like=True, tag=1):
    """No message will name these facts any more."""

    names: tuple[tuple[int, int], ...]  # kind, number


class Join(Struct, frozen=True, array_like=True, tag=2):
    """A worker: this is a machine; *machine* is its number, below zero where it has none yet.

    *is_known*: whether every local master of its cluster knows it; before that nothing is to run there.
    """

    machine: int
    identity: str
    name: str
    capacity: tuple[int, ...]
    attributes: dict[str, str]
    is_known: bool = False


class Joined(Struct, frozen=True, array_like=True, tag=3):
    """A local master: the machine has this number from now on, is of this configuration, and obeys this epoch."""

    machine: int
    configuration: int
    epoch: int


LOGS, TAIL = "logs", "tail"  # words of questions, with a stream: from *offset* on; the last *offset* lines


class Ask(Struct, frozen=True, array_like=True, tag=4):
    """A question that people have, about what is done or written on a machine; *words* tell which."""

    number: Number
    words: str
    machine: int
    task: int = 0
    attempt: int = 0
    offset: int = 0
    size: int = 0


class Answer(Struct, frozen=True, array_like=True, tag=5):
    """The answer to the question of this number; *problem* says why there is none."""

    number: Number
    body: bytes = b""
    problem: str = ""


class Dismissed(Struct, frozen=True, array_like=True, tag=6):
    """A local master: this machine was removed, and its worker ends."""

    words: str


class Claim(Struct, frozen=True, array_like=True, tag=7):
    """A global master: it speaks from the store of this identity, in this incarnation of it, which began as this life.

    Serial numbers of jobs: the *latest* that was given when the incarnation began, up to which they were reserved then,
    and are now. *attempt*: the number of the last that was requested from the cluster of the receiver before.
    *supersedes*: stores from which this one has taken over; *fence*: the last incarnation of theirs, whose attempts
    end; *behind*: this one has yet to hear from every cluster that they have.
    """

    identity: str
    incarnation: Number
    life: str
    latest: Number
    began: Number
    reserved: Number
    attempt: Number
    supersedes: tuple[str, ...] = ()
    fence: Number = 0
    behind: bool = False


class Claimed(Struct, frozen=True, array_like=True, tag=8):
    """A local master: it has written the claim down; or it has not, since it knows another, and *jobs* of that one.

    *shapes*: facts of those to which the global master has given numbers, for a store that took over.
    """

    reserved: Number
    behind: bool = False  # as it was claimed
    shapes: tuple[Fact, ...] = ()
    known: Claim | None = None
    jobs: tuple[int, ...] = ()


class Leave(Struct, frozen=True, array_like=True, tag=9):
    """A worker: this machine leaves for good; what runs there is to end, and it is dismissed when nothing is left."""


Frame = Batch | Retract | Join | Joined | Ask | Answer | Dismissed | Claim | Claimed | Leave
_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(tuple[Number, Frame]).decode


class Outgoing:
    """The sending side of a connection: which frame is next, and what the other side was told on it."""

    def __init__(self) -> None:
        self.number = 0
        self.said: dict[tuple[int, int], int] = {}  # version of each fact
        self.epoch, self.low, self.high = -1, 0, 0  # entries low .. high - 1 of this epoch were said

    def frame(self, frame: Frame) -> bytes:
        """Return a frame as it is sent."""
        self.number += 1
        return _encode((self.number, frame))

    def unsaid_entries(self, epoch: int, first: int, last: int) -> tuple[int, int]:
        """Return which of the entries first .. last - 1 have to be said, as a range, and note that they were."""
        if epoch != self.epoch or first > self.high or first < self.low:
            self.epoch, self.low, self.high = epoch, first, max(last, first)
            return first, last
        begin, self.high = self.high, max(self.high, last)
        return min(begin, self.high), self.high


class Incoming:
    """The receiving side of a connection."""

    def __init__(self) -> None:
        self.number = 0

    def read(self, data: bytes) -> Frame:
        """Return the frame that was received. Raises FrameError for what is none, or not the next one."""
        try:
            number, frame = _decode(data)
        except (DecodeError, ValidationError) as error:
            raise FrameError(f"no frame: {error}") from None
        if number != self.number + 1:
            raise FrameError(f"frame {number} follows {self.number}")
        self.number = number
        return _in_own_rows(frame) if isinstance(frame, Batch) else frame


def _in_own_rows(batch: Batch) -> Batch:
    """Return a batch with rows of this version's length. Raises FrameError where a row is incomplete."""
    if len(batch.messages) % batch.message_bytes or len(batch.entries) % batch.entry_bytes:
        raise FrameError("rows of another length")
    if (batch.message_bytes, batch.entry_bytes) == (MESSAGE.itemsize, ENTRY.itemsize):
        return batch
    return structs.replace(
        batch, messages=resized(batch.messages, batch.message_bytes, MESSAGE.itemsize), message_bytes=MESSAGE.itemsize,
        entries=resized(batch.entries, batch.entry_bytes, ENTRY.itemsize), entry_bytes=ENTRY.itemsize)


def resized(rows: bytes, theirs: int, own: int) -> bytes:
    """Return rows of *theirs* bytes each as rows of *own*: trailing fields are skipped, missing ones zero."""
    held = min(theirs, own)
    there = np.frombuffer(rows, np.uint8).reshape(-1, theirs)
    found = np.zeros((len(there), own), np.uint8)
    found[:, :held] = there[:, :held]
    return found.tobytes()


def messages_of(batch: Batch) -> np.ndarray:
    """Return MESSAGE[row] of a batch; it may not be written to."""
    return np.frombuffer(batch.messages, MESSAGE)


def entries_of(batch: Batch) -> np.ndarray:
    """Return ENTRY[row] of a batch; it may not be written to."""
    return np.frombuffer(batch.entries, ENTRY)
