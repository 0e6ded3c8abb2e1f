"""An attempt as a node agent sees it: command, fence and outcome, and the agent's interface.

Bounds are those of what a worker may send; a message outside them is refused before it is looked at.
"""
from collections.abc import Sequence
from typing import Annotated, Protocol

from msgspec import Meta, Struct

Natural = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]
Name = Annotated[str, Meta(max_length=1024)]
Text = Annotated[str, Meta(max_length=131_072)]  # what Linux takes as one argument

# How an attempt ended, for whoever ran it.
EXITED = "exited"  # by itself, with an exit code
SIGNALLED = "signalled"  # by a signal that the agent did not send
NOT_BEGUN = "not begun"  # it could not be started; the code is 127 (not found) or 126, as a shell's
OUT_OF_MEMORY = "out of memory"  # it used more than it asked for
RAN_TOO_LONG = "ran too long"
HALTED = "halted"  # it was asked for, with `end`
LEASE_LOST = "lease lost"  # the worker was silent for a lease
STOPPED = "stopped"  # the agent was told to stop
AGENT_LOST = "agent lost"  # its agent died, and it with the agent
NEVER_BEGAN = "never began"  # it was ended before it was started, and will not start

# Why a start is refused: nothing of it is kept, and nothing runs.
OLD_INCARNATION, OLD_EPOCH, OLD_START = "old incarnation", "old epoch", "old start"
NO_ROOM = "no room"  # for the record of another attempt
NO_DISK = "no disk"  # its record cannot be written now
STOPPING = "stopping"  # the agent is being stopped
INVALID = "invalid"  # out of the bounds given here: no agent can run it
REFUSALS = (OLD_INCARNATION, OLD_EPOCH, OLD_START, NO_ROOM, NO_DISK, STOPPING, INVALID)
WORDS_MAX = 400  # characters of an ending


class Key(Struct, frozen=True, array_like=True):
    """The name of an attempt: number of the task, and of the attempt, which its global master gives only once."""

    task: Natural
    attempt: Natural

    def __str__(self) -> str:
        return f"task {self.task}, attempt {self.attempt}"


class Fence(Struct, frozen=True, array_like=True):
    """When an order was given: what is older than the latest that was seen is refused.

    *start* numbers the starts of an epoch and incarnation; it comes in any order within a window of 64, and only once.
    """

    incarnation: Natural  # of the machine's worker
    epoch: Natural  # of the local master that gave the order
    start: Natural


class User(Struct, frozen=True):
    """As whom to run; only an agent that was started as root can."""

    uid: Annotated[int, Meta(ge=0, lt=1 << 32)]
    gid: Annotated[int, Meta(ge=0, lt=1 << 32)]
    groups: Annotated[tuple[Annotated[int, Meta(ge=0, lt=1 << 32)], ...], Meta(max_length=1024)] = ()


class AttemptToRun(Struct, frozen=True):
    """All that an agent needs to run an attempt."""

    key: Key
    fence: Fence
    command: Annotated[tuple[Text, ...], Meta(min_length=1, max_length=4096)]  # never through a shell
    job: Name = ""
    queue: Name = ""
    index: Natural = 0  # of the task within its job
    environment: Annotated[dict[Name, Text], Meta(max_length=4096)] = {}
    folder: Annotated[str, Meta(max_length=4095)] = "/"  # where it runs
    user: User | None = None
    umask: Annotated[int, Meta(ge=0, le=0o777)] = 0o022
    memory: Natural = 0  # bytes it may use; 0 for no limit
    cpu: Natural = 0  # thousandths of a core that it asks for; 0 for no share and no limit
    cpu_limited: bool = False  # whether it may not use more than it asks for
    limit_s: Seconds = 0.0  # seconds it may run; 0 for no limit
    grace_s: Seconds = 10.0  # between SIGTERM and SIGKILL where the agent itself ends it


class Usage(Struct, frozen=True, array_like=True):
    """What an attempt uses, or used: bytes of memory at most (so far as was seen), seconds of processor time."""

    memory: int = 0
    cpu_s: float = 0.0


class Ending(Struct, frozen=True, array_like=True):
    """How an attempt ended: reason, code (see `codes`), words, what it used."""

    reason: str
    code: int = 0
    words: str = ""
    usage: Usage = Usage()

    @property
    def is_good(self) -> bool:
        """Whether the attempt came to its own end, with exit code 0."""
        return self.reason == EXITED and self.code == 0


class Begun(Struct, frozen=True, tag=True):
    """The attempt runs, as process *pid* (0 where there is none)."""

    key: Key
    pid: int


class Refused(Struct, frozen=True, tag=True):
    """The start is refused, for one of REFUSALS: it has no effect, now or later."""

    key: Key
    why: str
    words: str = ""


class Exited(Struct, frozen=True, tag=True):
    """The attempt has ended; said again to each new watcher, until it is forgotten."""

    key: Key
    ending: Ending


class Used(Struct, frozen=True, tag=True):
    """What a running attempt uses, now and then."""

    key: Key
    usage: Usage


Event = Begun | Refused | Exited | Used


class Known(Struct, frozen=True):
    """What an agent knows of an attempt: it runs as *pid*, or has ended and is not forgotten."""

    key: Key
    fence: Fence | None  # None: it was ended before any start of it was seen
    pid: int = 0
    ending: Ending | None = None


class NodeAgent(Protocol):
    """Runs attempts. Orders return at once; what becomes of them are events."""

    def start(self, attempt: AttemptToRun) -> None:
        """Run an attempt, at most once: Begun and later Exited follow, or Refused.

        A repeated start is answered with what is known of the attempt, and begins nothing.
        """

    def end(self, key: Key, grace_s: float, fence: Fence | None = None) -> None:
        """End an attempt: SIGTERM, after *grace_s* seconds SIGKILL. Exited follows, with HALTED unless it ended before.

        An attempt that has not been started never will be: Exited says NEVER_BEGAN. With *fence*, the order to start it
        that was given under that fence is refused also when the attempt has been forgotten.
        """

    def forget(self, *keys: Key) -> None:
        """Drop what is kept of attempts that have ended: their ends are noted elsewhere."""

    def list(self) -> "Sequence[Known]":
        """Return all attempts that run, or have ended and are not forgotten."""

    def watch(self, timeout_s: float = 0.0) -> "Sequence[Event]":
        """Return what has happened since the last call; wait at most *timeout_s* seconds for something to happen."""
