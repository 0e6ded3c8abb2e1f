"""The wire format of the agent: MessagePack frames, each behind a length of four bytes.

Every request has a number of the sender's own, which the answer repeats; news have number 0. Answers come in the order
of the requests. A frame that is too long or says what nobody understands ends the connection, with the reason in words.
"""
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import DecodeError, Meta, Struct, ValidationError, msgpack

from subak.live.agent.attempts.attempt import AttemptToRun, Event, Fence, Key, Known, Natural, Seconds

LENGTH_BYTES = 4
FRAME_BYTES_MAX = 1 << 20
OUTPUT_BYTES_MAX = 262_144  # of what an attempt has written, in one answer; people's questions have the same limit


class Attach(Struct, frozen=True, tag=True):
    """I am the worker: I give the orders from now on, and am told the news, with all ends that are not forgotten."""

    machine: Natural
    incarnation: Natural
    epoch: Natural


class Start(Struct, frozen=True, tag=True):
    """Run an attempt. Answered by news."""

    attempt: AttemptToRun


class End(Struct, frozen=True, tag=True):
    """End an attempt. Answered by news."""

    key: Key
    grace_s: Seconds = 10.0
    fence: Fence | None = None


class Forget(Struct, frozen=True, tag=True):
    """Forget attempts that have ended. Not answered."""

    keys: Annotated[tuple[Key, ...], Meta(max_length=10_000)]


class Ping(Struct, frozen=True, tag=True):
    """I am still here, and a master has just heard of it: only this begins the lease anew."""


class List(Struct, frozen=True, tag=True):
    """Say what is known, from the attempt at place *first* on."""

    first: Natural = 0


class Read(Struct, frozen=True, tag=True):
    """Say what an attempt has written from byte *offset* on, below zero from the end; or its last *lines*."""

    key: Key
    stream: Literal["out", "err"] = "out"
    offset: int = 0
    size: Natural = 65_536
    lines: Natural = 0  # 0: not by lines


Request = Attach | Start | End | Forget | Ping | List | Read
OF_THE_WORKER = (Attach, Start, End, Forget, Ping)  # who sends another is only told what there is


class Done(Struct, frozen=True, tag=True):
    """To Attach and Ping: so it is. *limits* says in words how limits are kept."""

    limits: str = ""


class Listing(Struct, frozen=True, tag=True):
    """To List: a part of what is known, and where the next begins, 0 where there is none; *limits* as in Done."""

    known: list[Known]
    next: int = 0
    limits: str = ""


class Part(Struct, frozen=True, tag=True):
    """To Read: what a stream holds from *offset* on, which is later than was asked for where the rest is not kept."""

    offset: int
    data: bytes
    is_end: bool  # nothing stands behind *data*, and nothing will be written any more


class Wrong(Struct, frozen=True, tag=True):
    """The request was refused, as a whole, for the reason given."""

    words: str


Answer = Done | Listing | Part | Wrong | Event

_encode = msgpack.Encoder().encode
_request = msgpack.Decoder(tuple[int, Request], strict=True).decode
_answer = msgpack.Decoder(tuple[int, Answer]).decode


class WireError(Exception):
    """What was received is no frame, or nothing that is understood."""


class Frames:
    """What has been received of a connection, cut into frames."""

    def __init__(self) -> None:
        self.waiting = bytearray()

    def add(self, data: bytes) -> None:
        """Note what was received."""
        self.waiting += data

    def cut(self) -> Iterator[bytes]:
        """Return the frames that are whole; raise WireError for one that is too long, or empty."""
        at = 0
        try:
            while len(self.waiting) >= at + LENGTH_BYTES:
                length = int.from_bytes(self.waiting[at:at + LENGTH_BYTES], "big")
                if not 0 < length <= FRAME_BYTES_MAX:
                    raise WireError(f"a frame of {length} bytes; at most {FRAME_BYTES_MAX} are allowed")
                end = at + LENGTH_BYTES + length
                if len(self.waiting) < end:
                    return
                at, body = end, bytes(self.waiting[at + LENGTH_BYTES:end])
                yield body
        finally:
            del self.waiting[:at]


def frame(number: int, message: Request | Answer) -> bytes:
    """Return a message as it is sent."""
    body = _encode((number, message))
    if len(body) > FRAME_BYTES_MAX:
        raise WireError(f"a message of {len(body)} bytes; at most {FRAME_BYTES_MAX} are allowed")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def read_request(body: bytes) -> tuple[int, Request]:
    """Return the request in a frame, and its number; raise WireError where there is none."""
    try:
        return _request(body)
    except (DecodeError, ValidationError) as error:
        raise WireError(str(error)) from None


def read_answer(body: bytes) -> tuple[int, Answer]:
    """Return the answer in a frame, and the number of its request; 0 for news."""
    try:
        return _answer(body)
    except (DecodeError, ValidationError) as error:
        raise WireError(str(error)) from None
