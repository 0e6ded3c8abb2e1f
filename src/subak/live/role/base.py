"""The common part of all role processes: inbox, timers, connections, and `receive`, which returns what to do.

A role process reads no clock, no socket and no file. It is told the time and what has arrived, and returns what is
to be written and, once that is durable, what may be sent and done. Whoever drives it calls again when `due` has come,
or something arrives. Messages that a role owes itself are served before it returns, all but very many: then `due` is
now.
"""
import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from subak.federation.messages import (
    CROSSES,
    HANDLER,
    KINDS,
    LOCAL_MASTER,
    NOBODY,
    REASONS,
    ROLES,
    SPOKEN,
    WORKER,
)
from subak.live.role.facts import CONFIGURATION, JOB, MACHINE, SHAPE, Fact, Facts
from subak.live.role.frames import Batch, Frame, FrameError, Incoming, Outgoing, Retract, entries_of
from subak.live.role.layout import Layout, Peer, Timing, cluster_of_local

BATCH = 256  # messages that a role is handed at once
POSTS = 16  # messages that one of a batch posts at most, usually
PATIENCE = 0.1  # share of its delay, and of the slack of timers, that a timer waits for a call that comes anyway
SERVED_MAX = 4_000  # messages that are served before what they led to is sent: some 20 ms of them
HANDLER_OF, CROSSES_OF = HANDLER.tolist(), CROSSES.tolist()
# From whom each kind may come; what is in none of them is said within a process only.
SECONDS = ("limit", "delay")  # in messages: from outside they are numbers, and none is negative
Serve = Callable[[float, int], int]


class Put(NamedTuple):
    """Write bodies under keys into a table, over what was there."""

    table: str
    keys: list[Any]
    bodies: list[bytes]


class PutLarge(NamedTuple):
    """Write a body under a key, which is made where it is written: beside the event loop."""

    table: str
    key: int
    body: Callable[[], bytes]


class Drop(NamedTuple):
    """Remove keys from a table."""

    table: str
    keys: list[Any]


class DropRange(NamedTuple):
    """Remove the keys of a table, which are numbers, from *first* on, up to *end*."""

    table: str
    first: int
    end: int


Write = Put | PutLarge | Drop | DropRange


class Cut(NamedTuple):
    """An effect: end the connection with a peer, for a reason in words."""

    peer: Peer
    words: str


class Ready(NamedTuple):
    """What is to be done: *writes*, and when they are durable *frames* and *effects*."""

    writes: list[Write]
    frames: list[tuple[Peer, bytes]]
    effects: list[Any]


def within(rows: np.ndarray, bounds: Mapping[str, range]) -> bool:
    """Whether fields are in their ranges: an index is taken as it is.

    Rows are few: a list takes a tenth of what NumPy takes for one, and as long for a hundred.
    """
    columns = ((rows[name].tolist(), bound) for name, bound in bounds.items())
    return not rows.size or all(min(column) in bound and max(column) in bound for column, bound in columns)


class Link:
    """A connection with a peer, and what is to be sent on it."""

    def __init__(self) -> None:
        self.outgoing, self.incoming = Outgoing(), Incoming()
        self.rows: list[bytes] = []  # messages
        self.names: dict[tuple[int, int], None] = {}  # facts that they name, in order
        self.low, self.high = 0, 0  # entries of the own ledger that they carry: low .. high - 1
        self.heard: set[tuple[int, int]] = set()  # facts about jobs that the peer has said on it, and not taken back
        self.name = ""  # that the certificate of its other end proves, where there is one
        self.has_joined = False  # whether the worker at its other end has said which machine it is, and was admitted
        self.has_claimed = False  # whether the global master at its other end has said from which store it speaks
        self.is_deaf = False  # whether that is not the one in use, and nothing more of it is heard (claims.py)
        self.frames: list[bytes] = []


class DefectError(AssertionError):
    """A role has done what it must not: an outbox ran over, or its tables contradict each other."""


class Role:
    """A role in a process; see the head of the file."""

    out: Any  # Outbox

    def __init__(self, role: int, number: int, layout: Layout, timing: Timing) -> None:
        self.own_role, self.number, self.layout, self.timing = role, number, layout, timing
        rooms = layout.rooms
        self.bounds = {  # of numbers in messages from outside: they are within the tables
            "machine": range(NOBODY, layout.machines), "row": range(NOBODY, layout.places),
            "owner": range(NOBODY, layout.global_masters), "queue": range(NOBODY, rooms.queues),
            "shape": range(NOBODY, layout.shapes), "victims": range(NOBODY, rooms.queues),
            "reason": range(len(REASONS))}
        self.services: dict[int, Serve] = {}  # of the roles that are here
        self.facts = Facts()
        self.links: dict[Peer, Link] = {}
        self.pending: deque[tuple[int, int, Any]] = deque()  # role, kind, message
        self.timers: list[tuple[float, int, float, int, Any]] = []  # a heap: at the latest, a tie-breaker, when, kind,
        # message
        self.armed = 0  # timers ever
        self.early: list[tuple[int, Any, float]] | None = []  # kind, message, delay: owed before it was told the time
        self.now = 0.0
        self.handled = 0  # messages ever
        self.writes: list[Write] = []
        self.effects: list[Any] = []

    # -- for whoever drives it -----------------------------------------------------------------------------------------

    def receive(self, now: float, arrivals: Iterable[tuple[Peer, bytes]] = ()) -> Ready:
        """Take in what has arrived, serve all that is due, and return what is to be done."""
        self.now = max(self.now, now)
        early, self.early = self.early or (), None
        for owed in early:
            self._owe(*owed)
        for peer, data in arrivals:
            self._take(peer, data)
        while self.timers and self.timers[0][2] <= self.now:
            *_, kind, message = heapq.heappop(self.timers)
            self.pending.append((HANDLER_OF[kind], kind, message))
        self.go_on()
        self._serve_pending()
        self.settle()
        ready = Ready(self.writes, self._frames(), self.effects)
        self.writes, self.effects = [], []
        return ready

    def due(self) -> float:
        """Return when `receive` is to be called at the latest."""
        if self.pending:
            return self.now
        return self.timers[0][0] if self.timers else float("inf")

    def connect(self, peer: Peer, name: str = "") -> None:
        """Note that a peer is connected, on a new connection; *name*: what its certificate proves."""
        self.links[peer] = link = Link()
        link.name = name
        self.on_connected(peer)

    def disconnect(self, peer: Peer) -> None:
        """Note that a peer is connected no more."""
        self.links.pop(peer, None)

    # -- for each kind of role -----------------------------------------------------------------------------------------

    def hears(self, peer: Peer, frame: Frame) -> bool:
        """Whether a frame is taken in. Raises FrameError for one that may not be sent here."""
        return True

    def on_connected(self, peer: Peer) -> None:
        """Say what a peer must know first."""

    def may_say(self, peer: Peer, fact: Fact) -> bool:
        """Whether a fact is a peer's to say: a worker's of its attempts, a local master's of its cluster's machines."""
        if peer[0] == WORKER:
            return fact.kind == SHAPE
        if fact.kind in (MACHINE, CONFIGURATION):
            return peer[0] == LOCAL_MASTER and (
                fact.kind == CONFIGURATION or self.layout.cluster_of(fact.number) == cluster_of_local(peer[1]))
        return True

    def on_fact(self, fact: Fact) -> None:
        """Write a fact down that is news."""

    def on_entries(self, peer: Peer, epoch: int, first: int, entries: np.ndarray) -> None:
        """Note entries of a peer's ledger."""

    def entries(self, first: int, last: int) -> tuple[int, int, int]:
        """Return the epoch of the own ledger, and of which entries there are any: first .. last - 1."""
        return 0, first, last

    def entry_bytes(self, link: Link, epoch: int, first: int, last: int) -> bytes:
        """Return entries of the own ledger, and let the link carry the facts that they name."""
        return b""

    def on_frame(self, peer: Peer, frame: Frame) -> None:
        """Take in a frame without messages."""

    def on_effect(self, kind: int, row: Any) -> None:
        """Carry out what a handler posts to the agent; the row is there until this returns."""

    def go_on(self) -> None:
        """Do a part of what takes many calls."""

    def settle(self) -> None:
        """Do what follows from all that was served, before it is returned."""

    # -- messages ------------------------------------------------------------------------------------------------------

    def tell(self, kind: int, delay: float = 0.0, **fields: float) -> None:
        """Hand an own role a message, now or after *delay* seconds."""
        about = {"task": NOBODY, "machine": NOBODY, **fields}
        self._owe(kind, self.message(kind=kind, to=self.number, sender=self.number, delay=delay, **about), delay)

    def message(self, **fields: float) -> Any:
        """Return a message."""
        raise NotImplementedError

    def taken(self, peer: Peer, batch: Batch) -> Iterable[tuple[int, Any]]:
        """Return the messages of a frame, with their kinds. Raises FrameError for those that nobody may send here."""
        raise NotImplementedError

    def load(self, messages: list[Any]) -> None:
        """Lay messages into the inbox."""
        raise NotImplementedError

    def served(self, count: int) -> int:
        """Do what follows when the first *count* messages of the inbox were served; return how many more were."""
        return 0

    def hand_on(self) -> None:
        """Let each message of the outbox go where it is to go: to the own inbox, a timer, a peer, or the agent."""
        raise NotImplementedError

    def frame_to(self, peer: Peer, frame: Frame) -> bool:
        """Send a frame, behind the messages that are to be sent already; return whether the peer is connected."""
        link = self.links.get(peer)
        if link is None:
            return False
        self._close_batch(link)
        link.frames.append(link.outgoing.frame(frame))
        return True

    def learn(self, fact: Fact) -> None:
        """Note a fact of one's own."""
        if self.facts.note(fact):
            self.on_fact(fact)

    def retract(self, names: Iterable[tuple[int, int]]) -> None:
        """Drop facts that no message will name any more; who has them from here, in the layer below, drops them too."""
        for kind, number in names:
            self.facts.forget(kind, number)
            for peer, link in self.links.items():
                link.heard.discard((kind, number))
                if link.outgoing.said.pop((kind, number), None) is not None and peer[0] > self.own_role:
                    self.frame_to(peer, Retract(((kind, number),)))

    def retract_unneeded(self, role: int, used: Callable[[], set[int]]) -> None:
        """Drop facts about jobs that nobody of a role has said on a connection that there is, nor any row is about.

        They were said on former ones, where nobody can take them back any more. *used*: the jobs that rows are about.
        """
        heard = set().union(*(link.heard for peer, link in self.links.items() if peer[0] == role))
        left = [(JOB, number) for number in self.facts.of_kind(JOB) if (JOB, number) not in heard]
        if left:
            rows = used()
            self.retract(name for name in left if name[1] not in rows)

    def _owe(self, kind: int, message: Any, delay: float) -> None:
        if delay > 0.0 and self.early is not None:
            self.early.append((kind, message, delay))
        elif delay > 0.0:
            self.armed += 1
            when, patience = self.now + delay, PATIENCE * min(delay, self.timing.timer_slack)
            heapq.heappush(self.timers, (when + patience, self.armed, when, kind, message))
        else:
            role = HANDLER_OF[kind]
            self.pending.append((role if role in self.services else self.own_role, kind, message))

    def _take(self, peer: Peer, data: bytes) -> None:
        """Take in a frame; one that is none ends the connection."""
        link = self.links.get(peer)
        if link is None:
            return
        try:
            frame = link.incoming.read(data)
            if not self.hears(peer, frame):
                return
            if not isinstance(frame, Batch):
                self.on_frame(peer, frame)
                return
            messages = self.taken(peer, frame)
            for fact in frame.facts:
                if not self.may_say(peer, fact):
                    raise FrameError(f"a {ROLES[peer[0]]} said a fact of kind {fact.kind} that it has no right to")
                self.learn(fact)
                if fact.kind == JOB:
                    link.heard.add((JOB, fact.number))
            if frame.entries:
                self.on_entries(peer, frame.epoch, frame.first, entries_of(frame))
        except FrameError as error:
            self.disconnect(peer)
            self.effects.append(Cut(peer, str(error)))
            return
        self.pending.extend((HANDLER_OF[kind], kind, message) for kind, message in messages)

    def check_kinds(self, peer: Peer, kinds: Iterable[int]) -> None:
        """Raise FrameError for kinds of messages that a peer may not send here."""
        for kind in kinds:
            if kind not in SPOKEN[peer[0]] or HANDLER_OF[kind] not in self.services:
                raise FrameError(f"a {ROLES[peer[0]]} sent a message of kind {kind}")

    def _serve_pending(self) -> None:
        """Serve what is pending, in its order, and what that leads to."""
        served = 0
        while self.pending and served < SERVED_MAX:
            role = self.pending[0][0]
            batch = [self.pending.popleft()]
            while self.pending and len(batch) < BATCH and self.pending[0][0] == role:
                batch.append(self.pending.popleft())
            served += self._serve(role, batch)

    def _serve(self, role: int, batch: list[tuple[int, int, Any]]) -> int:
        """Hand messages to a role until its outbox is filling, and its answers on; return how many it has served."""
        self.load([message for _, _, message in batch])
        self.out.counts.posted = 0
        self.services[role](self.now, len(batch))
        count = self.out.counts.served
        self.pending.extendleft(reversed(batch[count:]))
        kind = batch[count - 1][1]
        count += self.served(count)
        if self.out.counts.overrun:
            raise DefectError(f"the outbox of a {ROLES[role]} ran over: {KINDS[kind]}")
        if self.out.counts.posted:
            self.hand_on()
        self.handled += count
        return count

    # -- frames --------------------------------------------------------------------------------------------------------

    def _close_batch(self, link: Link) -> None:
        """Make a frame of the messages that are to be sent on a link, with what their receiver needs for them."""
        if not link.rows:
            return
        epoch, first, entries = 0, 0, b""
        if link.high > link.low:
            epoch, low, high = self.entries(link.low, link.high)
            first, last = link.outgoing.unsaid_entries(epoch, low, high)
            entries = self.entry_bytes(link, epoch, first, last)
        facts = tuple(self.facts.unsaid(link.outgoing.said, link.names))
        link.frames.append(link.outgoing.frame(Batch(b"".join(link.rows), facts, entries, epoch, first)))
        link.rows, link.names, link.low, link.high = [], {}, 0, 0

    def _frames(self) -> list[tuple[Peer, bytes]]:
        """Return the frames that are to be sent, in their order on each link."""
        frames = []
        for peer, link in self.links.items():
            if link.rows:
                self._close_batch(link)
            if link.frames:
                frames += [(peer, frame) for frame in link.frames]
                link.frames = []
        return frames

    def say(self, peer: Peer, names: Iterable[tuple[int, int]]) -> None:
        """Say facts to a peer that no message names."""
        link = self.links.get(peer)
        if link is not None:
            facts = tuple(self.facts.unsaid(link.outgoing.said, names))
            if facts:
                self._close_batch(link)
                link.frames.append(link.outgoing.frame(Batch(facts=facts)))

