"""The queues of a running federation: numbered for good, with weights that may change.

A queue keeps its number when others come and go. One that is removed takes no jobs any more, and leaves its master's
turns when the last of its tasks has ended.
"""
from msgspec import Struct, msgpack, structs

from subak.errors import InputError
from subak.federation.choices import ROUND_ROBIN
from subak.live.jobfile.spec import QUEUE


class QueueSetup(Struct, frozen=True, array_like=True):
    """A queue: its path, its global master, and what the tree of queues says of it."""

    path: str  # empty: it was removed
    owner: int
    weight: float = 1.0


class QueuesFact(Struct, frozen=True, array_like=True):
    """All queues, each at the place of its number; *inner*: weights of queues that have others below them."""

    version: int
    queues: tuple[QueueSetup, ...]
    order: str = ROUND_ROBIN
    inner: tuple[QueueSetup, ...] = ()

    def of_job(self, path: str) -> str:
        """Return the queue of a job that names this one: the first takes those of a `default` that does not exist."""
        there = [queue.path for queue in self.queues if queue.path]
        return path if path in there or path != QUEUE or not there else there[0]

    def number(self, path: str) -> int:
        """Return the number of a queue. Raises InputError where there is none of this name."""
        for number, queue in enumerate(self.queues):
            if queue.path == path and path:
                return number
        there = ", ".join(sorted(queue.path for queue in self.queues if queue.path)[:5])
        raise InputError(f"queue: there is none called {path!r}; there are {there}")


def changed(
    before: QueuesFact, wanted: list[QueueSetup], inner: tuple[QueueSetup, ...], order: str, room: int
) -> QueuesFact:
    """Return the queues as *wanted*: those that stay keep their numbers. Raises InputError where there is no room."""
    of = {queue.path: queue for queue in wanted}
    kept = [of.pop(queue.path, QueueSetup("", queue.owner)) for queue in before.queues]
    queues = (*kept, *of.values())
    if len(queues) > room:
        raise InputError(f"queues: there may be {room:,} with those that were removed, not {len(queues):,}")
    return QueuesFact(before.version + 1, queues, order, inner)


def beginning_with(body: bytes | None, of_file: QueuesFact) -> QueuesFact:
    """Return the queues with which a global master begins: those on its disk, or else those of the file.

    Those that were on a disk are later than those of a file: a master that is new, with a later file, learns from the
    others which queues there are.
    """
    if body is None:
        return of_file
    queues = read_queues(body)
    return structs.replace(queues, version=max(queues.version, of_file.version + 1))


read_queues = msgpack.Decoder(QueuesFact).decode
