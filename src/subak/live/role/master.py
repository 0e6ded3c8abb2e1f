"""The common part of masters' roles: messages as rows of arrays, as compiled handlers take them."""
from collections.abc import Iterable

import numpy as np

from subak.federation.messages import (
    EXECUTOR,
    GLOBAL_MASTER,
    GO,
    LAUNCH,
    MESSAGE,
    NOBODY,
    PLACE,
    PREEMPT,
    REPARTITION,
    START,
    Outbox,
    build_outbox,
    is_filling,
)
from subak.live.role.base import BATCH, CROSSES_OF, HANDLER_OF, POSTS, SECONDS, SERVED_MAX, Role, within
from subak.live.role.facts import JOB, SHAPE
from subak.live.role.frames import Batch, FrameError, messages_of
from subak.live.role.layout import Layout, Peer, Timing

MESSAGE_BYTES = MESSAGE.itemsize
BEGINNING = frozenset((LAUNCH, REPARTITION, PREEMPT, GO, START))  # an attempt may begin by: of which job, is said


class MasterRole(Role):
    """See the head of the file; a message by itself is its bytes."""

    def __init__(self, role: int, number: int, layout: Layout, timing: Timing, spare: int) -> None:
        """*spare*: messages that a handler may post which is served by itself."""
        super().__init__(role, number, layout, timing)
        self.inbox = np.zeros(BATCH, MESSAGE)
        self.out: Outbox = build_outbox(spare, BATCH * POSTS)
        # NumPy copies rows with fields field by field: slowly
        self.inbox_bytes, self.out_bytes = self.inbox.view(np.uint8), self.out.row.view(np.uint8)
        self.blank = self.out.blank.tobytes()

    def message(self, **fields: float) -> bytes:
        """Return a message."""
        message = bytearray(self.blank)
        row = np.frombuffer(message, MESSAGE)[0]
        for name, value in fields.items():
            row[name] = value
        return bytes(message)

    def taken(self, peer: Peer, batch: Batch) -> Iterable[tuple[int, bytes]]:
        """Return the messages of a frame, with their kinds. Raises FrameError for those that nobody may send here."""
        rows = messages_of(batch)
        kinds = rows["kind"].tolist()
        self.check_kinds(peer, set(kinds))
        if {*rows["sender"].tolist()} - {peer[1]} or {*rows["to"].tolist()} - {self.number} or not self.sound(rows):
            raise FrameError("a message names what is not there")
        return zip(kinds, cut_rows(batch.messages), strict=True)

    def sound(self, rows: np.ndarray) -> bool:
        """Whether numbers in messages from outside are within the tables."""
        return within(rows, self.bounds) and all(
            seconds >= 0.0 for name in SECONDS for seconds in rows[name].tolist())

    def load(self, messages: list[bytes]) -> None:
        """Lay messages into the inbox."""
        self.inbox_bytes[: len(messages) * MESSAGE_BYTES] = np.frombuffer(b"".join(messages), np.uint8)

    def take_turns(self, role: int) -> int:
        """Serve turn after turn of a global master into one outbox, while nothing else waits; return how many."""
        out, turns, kinds, delays = self.out, 0, self.out.row["kind"], self.out.row["delay"]
        while not self.pending and turns < SERVED_MAX and not is_filling(out):
            last = out.counts.posted - 1
            if last < 0 or kinds[last] != PLACE or delays[last] > 0.0:
                break
            self.inbox_bytes[:MESSAGE_BYTES] = self.out_bytes[last * MESSAGE_BYTES : (last + 1) * MESSAGE_BYTES]
            out.counts.posted = last
            self.services[role](self.now, 1)
            turns += 1
        return turns

    def hand_on(self) -> None:
        """Let each message of the outbox go where it is to go: to the own inbox, a timer, a peer, or the agent."""
        rows = self.out.row[: self.out.counts.posted]
        columns = [rows[name].tolist() for name in ("kind", "to", "delay", "task", "shape", "first", "last")]
        for place, (row, kind, receiver, delay, task, shape, first, last) in enumerate(
                zip(cut_rows(rows.tobytes()), *columns, strict=True)):
            role = HANDLER_OF[kind]
            if role == EXECUTOR:
                self.on_effect(kind, rows[place])
            elif not CROSSES_OF[kind]:
                self._owe(kind, row, delay)
            elif role in self.services and receiver == self.number:
                self.pending.append((role, kind, row))
            elif (link := self.links.get((role, receiver))) is not None:
                link.rows.append(row)  # where there is none it is lost, as on any network
                if shape != NOBODY:
                    link.names[SHAPE, shape] = None
                if kind in BEGINNING:
                    link.names[JOB, self.layout.job_of(task)] = None
                if role == GLOBAL_MASTER and last > first:
                    link.low, link.high = (min(link.low, first), max(link.high, last)) if link.high else (first, last)


def cut_rows(data: bytes) -> Iterable[bytes]:
    """Return the rows of messages, each by itself."""
    return (data[at : at + MESSAGE_BYTES] for at in range(0, len(data), MESSAGE_BYTES))
