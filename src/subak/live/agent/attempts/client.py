"""The worker's client of the agent on its machine: orders and news over a Unix socket."""
import selectors
import socket
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from subak.errors import RunError
from subak.live.agent.attempts.attempt import (
    INVALID,
    AttemptToRun,
    Begun,
    Event,
    Exited,
    Fence,
    Key,
    Known,
    NodeAgent,
    Refused,
    Used,
)
from subak.live.agent.attempts.wire import (
    LENGTH_BYTES,
    Answer,
    Attach,
    Done,
    End,
    Forget,
    Frames,
    List,
    Listing,
    Part,
    Ping,
    Read,
    Request,
    Start,
    WireError,
    Wrong,
    frame,
    read_answer,
    read_request,
)

ANSWER_S = 10.0  # to wait for an answer
READ_BYTES = 262_144
NEWS = 0  # the number of what answers no request
A = TypeVar("A", Done, Listing, Part)


class AgentError(RunError):
    """The agent cannot be reached any more, or refuses; connect anew, and attach: all ends are said again."""


class AgentClient(NodeAgent):
    """A node agent behind a socket: see `attempt.NodeAgent`. Orders wait only for room in the socket.

    Call `ping` more often than the agent's lease, or watch `fileno` with a loop of your own, and call `watch`.
    """

    def __init__(self, path: Path) -> None:
        self.wire = socket.socket(socket.AF_UNIX)
        self.wire.settimeout(ANSWER_S)
        try:
            self.wire.connect(str(path))
        except OSError as error:
            self.wire.close()
            raise AgentError(f"{path}: no node agent answers: {error.strerror}") from None
        self.frames = Frames()
        self.news: deque[Event] = deque()
        self.answers: dict[int, Answer] = {}
        self.number = NEWS
        self.limits = ""  # how the agent keeps limits, in words
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.wire, selectors.EVENT_READ)

    def attach(self, machine: int, incarnation: int, epoch: int) -> None:
        """Say that this is the worker of the machine, which gives the orders from now on; all ends are then said again.

        AgentError: it is another machine, or there was a later worker.
        """
        self.limits = self._answer(Attach(machine, incarnation, epoch), Done).limits

    def start(self, attempt: AttemptToRun) -> None:
        """Run an attempt: Begun and later Exited follow, or Refused."""
        try:
            read_request(frame(NEWS, Start(attempt))[LENGTH_BYTES:])
        except WireError as error:  # else the agent would end the connection, and with it all other attempts' news
            self.news.append(Refused(attempt.key, INVALID, str(error)))
        else:
            self._send(Start(attempt))

    def end(self, key: Key, grace_s: float, fence: Fence | None = None) -> None:
        """End an attempt: Exited follows."""
        self._send(End(key, grace_s, fence))

    def forget(self, *keys: Key) -> None:
        """Drop what is kept of attempts that have ended."""
        self._send(Forget(keys))

    def ping(self) -> None:
        """Say that the worker is still here; nothing else begins the agent's lease anew."""
        self._send(Ping())

    def list(self) -> list[Known]:
        """Return all attempts that run, or have ended and are not forgotten; `limits` then says how limits are kept."""
        known, first = [], 0
        while True:
            listing = self._answer(List(first), Listing)
            known += listing.known
            self.limits = listing.limits
            if not listing.next:
                return known
            first = listing.next

    def read(self, key: Key, stream: str = "out", offset: int = 0, size: int = 65_536, lines: int = 0) -> Part:
        """Return what an attempt has written to *stream*, "out" or "err", from *offset* on, or the last *lines*."""
        return self._answer(Read(key, "err" if stream == "err" else "out", offset, size, lines), Part)

    def watch(self, timeout_s: float = 0.0) -> Sequence[Event]:
        """Return what has happened since the last call; wait at most *timeout_s* seconds for something to happen."""
        until = time.monotonic() + timeout_s
        while self._receive(0.0 if self.news else until - time.monotonic()):
            pass
        news, self.news = list(self.news), deque()
        return news

    def fileno(self) -> int:
        """Return the file to wait for: when it can be read, `watch` has something."""
        return self.wire.fileno()

    def close(self) -> None:
        """Leave the agent; what runs goes on for its lease."""
        self.selector.close()
        self.wire.close()

    def _send(self, request: Request) -> int:
        self.number += 1
        try:
            self.wire.sendall(frame(self.number, request))
        except WireError as error:
            raise AgentError(str(error)) from None
        except OSError as error:
            raise AgentError(f"the node agent has gone: {error.strerror or error}") from None
        return self.number

    def _answer(self, request: Request, kind: type[A]) -> A:
        number, until = self._send(request), time.monotonic() + ANSWER_S
        while number not in self.answers:
            if not self._receive(until - time.monotonic()):
                raise AgentError(f"the node agent has not answered for {ANSWER_S} s")
        answer = self.answers.pop(number)
        if not isinstance(answer, kind):
            raise AgentError(answer.words if isinstance(answer, Wrong) else f"an answer of another kind: {answer}")
        return answer

    def _receive(self, timeout_s: float) -> bool:
        """Take in what has come, or comes within *timeout_s* seconds; return whether there was anything."""
        if not self.selector.select(max(0.0, timeout_s)):
            return False
        try:
            data = self.wire.recv(READ_BYTES)
        except OSError as error:
            raise AgentError(f"the node agent has gone: {error.strerror}") from None
        if not data:
            raise AgentError("the node agent has gone")
        self.frames.add(data)
        for body in self.frames.cut():
            self._note(*read_answer(body))
        return True

    def _note(self, number: int, answer: Answer) -> None:
        if isinstance(answer, Begun | Exited | Refused | Used):
            self.news.append(answer)
        elif number == NEWS and isinstance(answer, Wrong):
            raise AgentError(answer.words)
        elif isinstance(answer, Done) and not answer.limits:
            pass  # to a ping
        else:
            self.answers[number] = answer
