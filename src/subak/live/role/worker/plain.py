"""The messages and tables of a role in plain Python, for handlers that are not compiled.

A row is a dict of its fields, in their order. One by one, its fields are read and written ten times as fast as those of
NumPy's records, and by the same words; so handlers that are compiled for masters serve a worker here as they are.
"""
from collections.abc import Iterable
from struct import Struct
from typing import Any

import numpy as np

from subak.federation.messages import EXECUTOR, MESSAGE, NOBODY, NOBODYS, Outbox, OutboxCounts
from subak.live.role.base import BATCH, CROSSES_OF, HANDLER_OF, POSTS, SECONDS, Role
from subak.live.role.facts import SHAPE
from subak.live.role.frames import Batch, FrameError
from subak.live.role.layout import Layout, Peer, Timing

CODES = {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u8": "Q", "f8": "d"}  # of NumPy's types, for `struct`
Row = dict[str, Any]


class Kind:
    """A kind of rows: their fields, and how they look as bytes, without gaps."""

    def __init__(self, dtype: np.dtype) -> None:
        self.names = dtype.names or ()
        self.struct = Struct("=" + "".join(CODES[dtype[name].str[1:]] for name in self.names))

    def blank(self, **fields: float) -> Row:
        """Return a row of zeros, but for these fields."""
        return {**dict(zip(self.names, self.struct.unpack(bytes(self.struct.size)), strict=True)), **fields}

    def read(self, data: bytes) -> list[Row]:
        """Return the rows that bytes stand for."""
        return [dict(zip(self.names, values, strict=True)) for values in self.struct.iter_unpack(data)]

    def written(self, row: Row) -> bytes:
        """Return the bytes of a row."""
        return self.struct.pack(*row.values())


class Rows(dict[int, Row]):
    """A table with room for *size* rows; those that nobody has asked for are not there yet, and blank."""

    def __init__(self, size: int, blank: Row) -> None:
        self.size, self.blank = size, blank

    def __missing__(self, place: int) -> Row:
        row = self.blank.copy()
        super().__setitem__(place, row)
        return row

    def __setitem__(self, place: int, row: Row) -> None:
        super().__setitem__(place, row.copy())


class Grid(dict[tuple[int, int], int]):
    """Amounts by resource and column; where none was written, there is nothing."""

    def __init__(self, resources: int) -> None:
        self.shape = (resources,)

    def __missing__(self, place: tuple[int, int]) -> int:
        return 0

    def write(self, column: int, amounts: Iterable[int]) -> None:
        """Write a column."""
        self.update(((resource, column), amount) for resource, amount in enumerate(amounts))


MESSAGES = Kind(MESSAGE)
BLANK = MESSAGES.blank(**dict.fromkeys(NOBODYS, NOBODY))


class PlainRole(Role):
    """See the head of the file."""

    def __init__(self, role: int, number: int, layout: Layout, timing: Timing, spare: int) -> None:
        """*spare*: messages that a handler may post which is served by itself."""
        super().__init__(role, number, layout, timing)
        self.inbox: list[Row] = []
        self.out: Any = Outbox(Rows(spare + BATCH * POSTS, BLANK), OutboxCounts(), spare, [BLANK])  # type: ignore[arg-type]

    def message(self, **fields: float) -> Row:
        """Return a message."""
        return BLANK | fields

    def taken(self, peer: Peer, batch: Batch) -> Iterable[tuple[int, Row]]:
        """Return the messages of a frame, with their kinds. Raises FrameError for those that nobody may send here."""
        rows = MESSAGES.read(batch.messages)
        self.check_kinds(peer, {row["kind"] for row in rows})
        if not all(row["sender"] == peer[1] and row["to"] == self.number and self.sound(row) for row in rows):
            raise FrameError("a message names what is not there")
        return ((row["kind"], row) for row in rows)

    def sound(self, row: Row) -> bool:
        """Whether numbers in a message from outside are within the tables."""
        return all(row[name] in bound for name, bound in self.bounds.items()) and all(
            row[name] >= 0.0 for name in SECONDS)

    def load(self, messages: list[Row]) -> None:
        """Lay messages into the inbox."""
        self.inbox[:] = messages

    def hand_on(self) -> None:
        """Let each message of the outbox go where it is to go: to a timer, a peer, or the agent."""
        for row in [self.out.row[place] for place in range(self.out.counts.posted)]:
            kind = row["kind"]
            role = HANDLER_OF[kind]
            if role == EXECUTOR:
                self.on_effect(kind, row)
            elif not CROSSES_OF[kind]:
                self._owe(kind, row, row["delay"])
            elif (link := self.links.get((role, row["to"]))) is not None and self.may_send(kind, row):
                link.rows.append(MESSAGES.written(row))  # where there is none it is lost, as on any network
                if row["shape"] != NOBODY:
                    link.names[SHAPE, row["shape"]] = None

    def may_send(self, kind: int, row: Row) -> bool:
        """Whether a message may leave now."""
        return True
