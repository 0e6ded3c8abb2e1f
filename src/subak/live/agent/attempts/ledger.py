"""The node agent's ledger: which attempts run, have ended, or may still start; no clock, process or file.

A method takes an order or what has happened, changes the ledger, and leaves in `out` what is to be done: records that
must be on disk first, then processes to begin and news to tell. Signals need not wait for the disk.

| state | start | end | exited | forget |
|---|---|---|---|---|
| unknown | RUNNING: begin | ENDED: NEVER_BEGAN | - | - |
| RUNNING | told that it runs | ENDING: SIGTERM, later SIGKILL | ENDED | - |
| ENDING | told that it runs | SIGKILL if that is sooner | ENDED, for the reason it was ended for | - |
| ENDED | told how | told how | - | unknown |

Rules:
- No order of an older incarnation or epoch than the latest is obeyed, no number of a start is used twice.
- An attempt is begun only after the record of its start is written, its end is told only after that of its end is
  synced.
- The first reason to end an attempt is the one that is kept; SIGKILL comes no later than was ever promised.
- When the worker has been silent for its lease, nothing runs any more: SIGTERM comes `grace_s` before, SIGKILL then;
  from SIGTERM on nothing begins. Only a ping, which says that a master has just heard the worker, begins the lease
  anew.
"""
import math
from collections.abc import Iterable, Iterator
from signal import SIGKILL, SIGTERM

from msgspec import Struct, field, structs

from subak.live.agent.attempts.attempt import (
    HALTED,
    LEASE_LOST,
    NEVER_BEGAN,
    NO_DISK,
    NO_ROOM,
    OLD_EPOCH,
    OLD_INCARNATION,
    OLD_START,
    RAN_TOO_LONG,
    STOPPING,
    WORDS_MAX,
    AttemptToRun,
    Begun,
    Ending,
    Event,
    Exited,
    Fence,
    Key,
    Known,
    Refused,
)
from subak.live.agent.attempts.records import Ended, Forgotten, Record, Seen, Started

NEVER = math.inf
WINDOW = 64  # starts that may overtake each other
WINDOW_BITS = (1 << WINDOW) - 1
NONE_SEEN = Seen(0, 0, -1, 0)


class Signal(Struct, frozen=True):
    """Send a signal to all processes of an attempt."""

    key: Key
    number: int


class Step(Struct):
    """What is to be done: *signals* at once, *begins* and *news* when *records* are on disk."""

    signals: list[Signal] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    begins: list[AttemptToRun] = field(default_factory=list)
    news: list[Event] = field(default_factory=list)


class Lease(Struct, frozen=True):
    """For how long a worker may be silent, in seconds, and how much of it is grace for what then runs."""

    lease_s: float = NEVER
    grace_s: float = 0.0


class Row(Struct):
    """What is kept of an attempt."""

    fence: Fence | None
    pid: int = 0
    grace_s: float = 0.0  # where the agent itself ends it
    limit_at: float = NEVER  # when it has run for as long as it may
    kill_at: float = NEVER
    end_reason: str = ""  # why it is being ended; "" while it is not
    is_killed: bool = False  # SIGKILL was sent: nothing more can be done
    ending: Ending | None = None


class Ledger:
    """All attempts of a machine. *room* bounds how many are kept; times are seconds of one clock."""

    def __init__(self, lease: Lease | None = None, room: int = 100_000) -> None:
        self.lease = lease or Lease()
        self.room = room
        self.rows: dict[Key, Row] = {}
        self.running: dict[Key, Row] = {}  # those of `rows` that have not ended
        self.seen = NONE_SEEN
        self.touched = 0.0  # when the worker was last heard
        self.disk_is_full = False  # nothing is started while it is
        self.is_stopping = False  # nor then
        self.next_due = NEVER  # nothing is due before
        self.out = Step()

    def take(self) -> Step:
        """Return what is to be done, and begin anew."""
        step, self.out = self.out, Step()
        return step

    # orders

    def touch(self, now: float) -> None:
        """Note that the worker was heard."""
        self.touched = max(self.touched, now)

    def attach(self, incarnation: int, epoch: int) -> str:
        """Note who gives the orders from now on; return why it may not, or ""."""
        return self._raise_fence(Fence(incarnation, epoch, 0))

    def start(self, attempt: AttemptToRun, now: float) -> None:
        """Begin an attempt, or say why not, or what is known of it."""
        why = self._raise_fence(attempt.fence)
        row = self.rows.get(attempt.key)
        if row is None:
            why = why or self._no_place(attempt.fence)
        if row is None and not why and now >= self.lease_ends_at():
            why = STOPPING  # the order was held up until the lease was over: another machine may have the task by now
        if why:
            self._refuse(attempt.key, why, attempt.fence)
        elif row is not None:
            self._tell(attempt.key, row)
        else:
            self._begin(attempt, now)

    def end(self, key: Key, grace_s: float, now: float, fence: Fence | None = None) -> None:
        """End an attempt, or see to it that it never begins."""
        why, row = self._raise_fence(fence) if fence else "", self.rows.get(key)
        if not why and row is None and len(self.rows) >= self.room:
            why = NO_ROOM
        if why:
            self._refuse(key, why, fence)
        elif row is None:
            self._bar(key, fence)
        elif row.ending is not None:
            self._tell(key, row)
        else:
            self._end(key, row, HALTED, now, now + grace_s)

    def forget(self, key: Key) -> bool:
        """Drop an attempt that has ended; return whether there was one."""
        row = self.rows.get(key)
        if row is None or row.ending is None:
            return False
        del self.rows[key]
        self.out.records.append(Forgotten(key))
        return True

    def known(self) -> Iterator[Known]:
        """Return all that is kept, in the order of the starts."""
        return (Known(key, row.fence, row.pid, row.ending) for key, row in self.rows.items())

    def tell_ends(self) -> None:
        """Tell all ends that are not forgotten: to somebody who may not have heard of them."""
        for key, row in self.rows.items():
            if row.ending is not None:
                self._tell(key, row)

    # what has happened

    def began(self, key: Key, pid: int) -> None:
        """Note that the attempt's process runs."""
        self.running[key].pid = pid
        self.out.news.append(Begun(key, pid))

    def exited(self, key: Key, ending: Ending) -> None:
        """Note that no process of the attempt is left; why it was ended, if it was, overrules how."""
        row = self.running.pop(key)
        ending = structs.replace(ending, reason=row.end_reason or ending.reason, words=ending.words[:WORDS_MAX])
        row.ending, row.pid, row.kill_at, row.limit_at = ending, 0, NEVER, NEVER
        self.out.records.append(Ended(key, row.fence, ending))
        self.out.news.append(Exited(key, ending))

    def end_for(self, key: Key, reason: str, now: float, grace_s: float = NEVER) -> None:
        """End an attempt that runs, for a reason of the agent's own, with the grace that it asked for, or less."""
        row = self.running.get(key)
        if row is not None:
            self._end(key, row, reason, now, now + min(grace_s, row.grace_s))

    def tick(self, now: float) -> None:
        """Do what is due: the lease, limits, SIGKILL after the grace."""
        if now >= self.lease_ends_at():
            for key, row in self.running.items():
                self._end(key, row, LEASE_LOST, now, self.touched + self.lease.lease_s)
        for key, row in self.running.items():
            if now >= row.limit_at:
                row.limit_at = NEVER
                self._end(key, row, RAN_TOO_LONG, now, now + row.grace_s)
            if now >= row.kill_at:
                row.kill_at, row.is_killed = NEVER, True
                self.out.signals.append(Signal(key, SIGKILL))
        self.next_due = min((min(row.limit_at, row.kill_at) for row in self.running.values()), default=NEVER)

    def due(self) -> float:
        """Return a time before which nothing is due: the lease ends, too, what has been given a longer grace."""
        lease_over = self.touched + self.lease.lease_s
        if lease_over < NEVER and any(row.kill_at > lease_over and not row.is_killed for row in self.running.values()):
            return min(self.next_due, self.lease_ends_at())
        return self.next_due

    def lease_ends_at(self) -> float:
        """Return when the worker has been silent for so long that attempts are ended, and none begins."""
        return self.touched + self.lease.lease_s - self.lease.grace_s

    # after a restart

    def restore(self, records: Iterable[Record]) -> None:
        """Take back what is on disk; attempts that are not known to have ended are in `running`."""
        for record in records:
            match record:
                case Seen():
                    self.seen = record
                case Started(key, fence):
                    self._note(fence)
                    self._add(key, Row(fence))
                case Ended(key, fence, ending):
                    self._note(fence)
                    self.running.pop(key, None)
                    self.rows.setdefault(key, Row(fence)).ending = ending
                case Forgotten(key):
                    self.rows.pop(key, None)

    def snapshot(self) -> Iterator[Record]:
        """Return the fewest records from which the ledger can be restored."""
        for key, row in self.rows.items():
            yield Ended(key, row.fence, row.ending) if row.ending else Started(key, row.fence or Fence(0, 0, 0))
        yield self.seen  # last, since it is later than what the others say of starts

    # within

    def _raise_fence(self, fence: Fence) -> str:
        """Note a later incarnation or epoch, in which starts are numbered anew; return why an older one is refused."""
        if fence.incarnation < self.seen.incarnation:
            return OLD_INCARNATION
        if fence.epoch < self.seen.epoch:
            return OLD_EPOCH
        if (fence.incarnation, fence.epoch) != (self.seen.incarnation, self.seen.epoch):
            self.seen = Seen(fence.incarnation, fence.epoch, -1, 0)
            self.out.records.append(self.seen)
        return ""

    def _no_place(self, fence: Fence) -> str:
        """Return why nothing may start under *fence*, which is not older than the latest, or ""."""
        behind = self.seen.top - fence.start
        if behind >= WINDOW or (behind >= 0 and self.seen.bits >> behind & 1):
            return OLD_START
        if len(self.rows) >= self.room:
            return NO_ROOM
        if self.is_stopping:
            return STOPPING
        return NO_DISK if self.disk_is_full else ""

    def _note(self, fence: Fence | None) -> None:
        """Note the number of a start, which is then used."""
        if fence is None or (fence.incarnation, fence.epoch) != (self.seen.incarnation, self.seen.epoch):
            return
        behind = self.seen.top - fence.start
        if behind < 0:
            bits = (self.seen.bits << -behind | 1) & WINDOW_BITS if -behind < WINDOW else 1
            self.seen = Seen(fence.incarnation, fence.epoch, fence.start, bits)
        elif behind < WINDOW:
            self.seen = structs.replace(self.seen, bits=self.seen.bits | 1 << behind)

    def _begin(self, attempt: AttemptToRun, now: float) -> None:
        self._note(attempt.fence)
        limit_at = now + attempt.limit_s if attempt.limit_s else NEVER
        self._add(attempt.key, Row(attempt.fence, grace_s=attempt.grace_s, limit_at=limit_at))
        self.next_due = min(self.next_due, limit_at)
        self.out.records.append(Started(attempt.key, attempt.fence))
        self.out.begins.append(attempt)

    def _add(self, key: Key, row: Row) -> None:
        self.rows[key] = self.running[key] = row

    def _bar(self, key: Key, fence: Fence | None) -> None:
        """Keep an attempt as ended that was never begun, so that a late start finds it."""
        self._note(fence)
        row = self.rows[key] = Row(fence, ending=Ending(NEVER_BEGAN))
        self.out.records.append(Ended(key, fence, Ending(NEVER_BEGAN)))
        self._tell(key, row)

    def _end(self, key: Key, row: Row, reason: str, now: float, kill_at: float) -> None:
        """Send SIGTERM where nothing has yet, and SIGKILL at *kill_at*, or when it was due before."""
        if row.is_killed:
            return
        if not row.end_reason:
            row.end_reason = reason
            if kill_at > now:
                self.out.signals.append(Signal(key, SIGTERM))
        row.kill_at = min(row.kill_at, kill_at)
        self.next_due = min(self.next_due, row.kill_at)

    def _tell(self, key: Key, row: Row) -> None:
        if row.ending is not None:
            self.out.news.append(Exited(key, row.ending))
        elif row.pid:  # else it is about to be told
            self.out.news.append(Begun(key, row.pid))

    def _refuse(self, key: Key, why: str, fence: Fence | None) -> None:
        self.out.news.append(Refused(key, why, self._words(why, fence)))

    def _words(self, why: str, fence: Fence | None) -> str:
        given, seen = fence or Fence(0, 0, 0), self.seen
        return {
            OLD_INCARNATION: f"incarnation {given.incarnation} of the worker, after {seen.incarnation}",
            OLD_EPOCH: f"epoch {given.epoch}, after {seen.epoch}",
            OLD_START: f"start {given.start} was used, or is {WINDOW} behind {seen.top}",
            NO_ROOM: f"{self.room} attempts are kept; forget some that have ended",
            NO_DISK: "the disk of the agent's folder is full",
            STOPPING: "the agent is being stopped",
        }[why]
