"""The main loop of the node agent: starts attempts, keeps their ends on disk, outlives its worker.

A turn of its loop: take in what was sent, note what has ended, look at memory and output, do what is due; then send
signals; then write and sync the records of all that; and only then begin attempts and tell the news. When the disk is
full the last three wait, nothing new is started, and what has to be ended is.
"""
import os
import signal
import sys
import time

from subak.errors import InputError
from subak.live.agent.attempts.attempt import (
    AGENT_LOST,
    NOT_BEGUN,
    OUT_OF_MEMORY,
    STOPPED,
    AttemptToRun,
    Ending,
    Key,
    Refused,
    Used,
)
from subak.live.agent.attempts.ledger import NEVER, Lease, Ledger
from subak.live.agent.attempts.records import Life, Record
from subak.live.agent.attempts.wire import (
    OF_THE_WORKER,
    Answer,
    Attach,
    Done,
    End,
    Forget,
    List,
    Listing,
    Part,
    Ping,
    Read,
    Request,
    Start,
    WireError,
    Wrong,
    read_request,
)
from subak.live.agent.connections import Connection, Connections
from subak.live.agent.guard import GUARD_DIED
from subak.live.agent.journal import DiskFullError, Journal
from subak.live.agent.processes import proc
from subak.live.agent.processes.cgroups import Cgroups, find_home
from subak.live.agent.processes.output import Outputs
from subak.live.agent.processes.running import LOOK_S, Running
from subak.live.agent.settings import Settings, open_state
from subak.live.agent.vigil import Vigil
from subak.output.plain import plain

BEGINS_MAX = 32  # in a turn: it takes about a millisecond to begin one
LINGER_S = 0.02  # until what is left of attempts is looked at again
DISK_S = 0.2  # until a full disk is tried again
WAIT_S = 1.0  # while anything runs: a wait does not count the time that a machine sleeps, but a lease does
USED_S = 5.0  # from one word on what attempts use to the next
LISTED_AT_ONCE = 500  # attempts in one answer
PYTHONS = (signal.SIGPIPE, signal.SIGXFSZ)  # that Python ignores, and `subprocess` does not hand on
SURVIVORS_S = 10.0  # for what a former agent has left to be gone


def clock() -> float:
    """Return seconds since the machine was booted, also those that it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Agent:
    """The agent of a machine, with its state folder open."""

    def __init__(self, settings: Settings, pids: tuple[int, ...] = ()) -> None:
        self.settings = settings
        self.identity = open_state(settings.state)
        self.cgroups = _cgroups(settings.cgroups, self.identity, pids)
        self.journal = Journal(settings.state / "journal")
        self.ledger = Ledger(Lease(settings.lease_s, settings.lease_grace_s), settings.room)
        self.outputs = Outputs(settings.state / "output", settings.output_bytes, settings.kept_bytes)
        self.running = Running(self.identity, self.outputs, self.cgroups)
        self.records: list[Record] = []  # to be written
        self.to_begin: dict[Key, AttemptToRun] = {}  # when they are
        self.to_send: list[tuple[int, Answer, Connection | None]] = []  # when they are; None for the worker
        self.worker: Connection | None = None
        self.asked_to_stop: tuple[str, float] | None = None  # why, and with which grace
        self.try_disk_at = 0.0
        self.vigil = Vigil(settings.state, settings.idle_s, clock())
        self.told_used_at = 0.0
        self._recover()
        self.connections = Connections(settings.state / "socket")

    def run(self) -> None:
        """Work until told to stop, and nothing runs any more."""
        while not (self.ledger.is_stopping and not self.ledger.running and not self.records):
            self.turn()
        self.connections.flush()
        self.close()

    def turn(self) -> None:
        """Wait for something to happen, and do what it takes."""
        for connection in self.connections.wait(self._timeout()):
            self._take_in(connection)
        for key, ending in self.running.reap():
            self.ledger.exited(key, ending)
        now = clock()
        if self.asked_to_stop:
            self._end_all(now, *self.asked_to_stop)
        if self.running.runs and now >= self.running.look_at:
            self._look(now)
        if now >= self.ledger.due():
            self.ledger.tick(now)
        if now >= self.vigil.look_at:
            self._end_if_unneeded(now)
        self._release(now)
        self.connections.flush()

    def stop(self, reason: str = STOPPED, grace_s: float = NEVER) -> None:
        """End everything, and then stop; may be called at any time, by a handler of signals."""
        self.asked_to_stop = reason, grace_s

    def _end_if_unneeded(self, now: float) -> None:
        has_worker = self.worker is not None and self.worker.is_open
        why = self.vigil.why_to_end(now, has_worker or bool(self.ledger.running))
        if why and not self.ledger.is_stopping:
            say(f"ends: {why}")
            self._end_all(now, STOPPED, NEVER)

    def _end_all(self, now: float, reason: str, grace_s: float) -> None:
        self.asked_to_stop, self.ledger.is_stopping = None, True
        for key in self.ledger.running:
            self.ledger.end_for(key, reason, now, grace_s)

    def limits(self) -> str:
        """Return in words how limits of memory and processor time are kept."""
        kept = self.cgroups.controllers if self.cgroups else frozenset()
        memory = "its control group" if "memory" in kept else f"looking at it every {LOOK_S} s"
        cpu = "its control group" if "cpu" in kept else "nothing"
        group = f"; {self.cgroups.describe()}" if self.cgroups else "; no control groups"
        return f"memory is limited by {memory}, processor time by {cpu}{group}"

    def close(self) -> None:
        """Close all files."""
        if self.cgroups:
            self.cgroups.close()
        self.connections.close()
        self.running.close()
        self.journal.close()

    # orders

    def _take_in(self, connection: Connection) -> None:
        """Carry out the requests that a connection has sent."""
        try:
            for body in connection.frames.cut():
                number, request = read_request(body)
                self._carry_out(connection, number, request)
        except WireError as error:
            connection.refuse(str(error))

    def _carry_out(self, connection: Connection, number: int, request: Request) -> None:
        now = clock()
        if isinstance(request, Attach):
            self._attach(connection, number, request)
        elif isinstance(request, OF_THE_WORKER):
            if connection is self.worker:
                self._obey(connection, number, request, now)
            else:
                connection.send(number, Wrong("only the worker may ask for this, which says so with Attach first"))
        elif isinstance(request, List):
            connection.send(number, self._list(request.first))
        else:
            connection.send(number, self._read(request))

    def _attach(self, connection: Connection, number: int, request: Attach) -> None:
        if request.machine != self.settings.machine:
            connection.refuse(f"this is the node agent of machine {self.settings.machine}, not {request.machine}")
            return
        why = self.ledger.attach(request.incarnation, request.epoch)
        if why:
            connection.refuse(f"{why}: the latest worker is incarnation {self.ledger.seen.incarnation}, of epoch "
                              f"{self.ledger.seen.epoch}")
            return
        if self.worker is not None and self.worker is not connection:
            self.worker.refuse("another connection is the worker's now")
        self.worker = connection
        self.to_send.append((number, Done(self.limits()), connection))
        self.ledger.tell_ends()

    def _obey(self, connection: Connection, number: int, request: Request, now: float) -> None:
        match request:
            case Start(attempt):
                self.ledger.start(attempt, now)
            case End(key, grace_s, fence):
                self.ledger.end(key, grace_s, now, fence)
            case Forget(keys):
                for key in keys:
                    self.ledger.forget(key)
            case Ping():
                self.ledger.touch(now)
                connection.send(number, Done())

    def _list(self, first: int) -> Listing:
        known = [each for place, each in enumerate(self.ledger.known()) if first <= place < first + LISTED_AT_ONCE]
        following = first + LISTED_AT_ONCE
        return Listing(known, following if following < len(self.ledger.rows) else 0, self.limits())

    def _read(self, request: Read) -> Answer:
        try:
            offset, data, written = self.outputs.read(request.key, request.stream, request.offset, request.size,
                                                      request.lines)
        except OSError as error:
            return Wrong(f"{request.key}: {error.strerror}")
        return Part(offset, data, request.key not in self.ledger.running and offset + len(data) >= written)

    # what happens

    def _look(self, now: float) -> None:
        seen = self.running.look(now)
        for key in seen.too_large:
            self.ledger.end_for(key, OUT_OF_MEMORY, now, 0.0)
        if now >= self.told_used_at + USED_S and self.worker is not None and not self.worker.unsent:
            self.told_used_at = now
            for key, usage in seen.used.items():
                self.worker.send(0, Used(key, usage))

    def _release(self, now: float) -> None:
        """Send signals; then, when all records are in the journal, begin attempts and tell the news."""
        self._take()
        while self._sync(now):
            for number, answer, connection in self.to_send:
                self._tell(number, answer, connection)
            self.to_send.clear()
            self._begin(now)
            if self._take() == 0:
                return

    def _take(self) -> int:
        """Take what is to be done from the ledger, and send the signals; return how much there was."""
        count = 0
        while (step := self.ledger.take()).signals or step.records or step.begins or step.news:
            count += 1
            self.records += step.records
            self.to_begin.update((attempt.key, attempt) for attempt in step.begins)
            for news in step.news:
                if self.ledger.disk_is_full and isinstance(news, Refused):
                    self._tell(0, news, None)
                else:
                    self.to_send.append((0, news, None))
            for each in step.signals:
                self._signal(each.key, each.number)
        return count

    def _signal(self, key: Key, number: int) -> None:
        if self.to_begin.pop(key, None) is not None:
            self.ledger.exited(key, Ending(NOT_BEGUN, 0, "it was ended before its process began"))
        else:
            self.running.signal(key, number)

    def _sync(self, now: float) -> bool:
        """Write all records; return whether the journal has them."""
        if self.records and now < self.try_disk_at:
            return False
        try:
            self.journal.append(self.records)
        except DiskFullError as error:
            if not self.ledger.disk_is_full:
                say(f"{error}; nothing is started until there is room")
            self.ledger.disk_is_full, self.try_disk_at = True, now + DISK_S
            return False
        if self.ledger.disk_is_full and self.records:
            say("there is room on the disk again")
            self.ledger.disk_is_full = False
        self.records.clear()
        if self.journal.is_long():
            self.journal.rewrite([Life(proc.boot()), *self.ledger.snapshot()])
        return True

    def _begin(self, now: float) -> None:
        for key in [*self.to_begin][:BEGINS_MAX]:
            outcome = self.running.begin(self.to_begin.pop(key))
            if isinstance(outcome, Ending):
                self.ledger.exited(key, outcome)
            else:
                self.ledger.began(key, outcome)
                self.running.look_at = min(self.running.look_at, now + LOOK_S)

    def _tell(self, number: int, answer: Answer, connection: Connection | None) -> None:
        to = connection or self.worker
        if to is not None:
            to.send(number, answer)

    def _timeout(self) -> float | None:
        if self.to_begin and not self.records:
            return 0.0
        now, times = clock(), [self.ledger.due(), self.vigil.look_at]
        if self.running.runs:
            times += [self.running.look_at, now + WAIT_S]
        if self.running.ended:
            times.append(now + LINGER_S)
        if self.records:
            times.append(self.try_disk_at)
        first = min(times)
        return None if first == NEVER else max(0.0, first - now)

    # after a restart

    def _recover(self) -> None:
        """Take back what is known, and end what a former agent has left."""
        records = self.journal.read()
        if self.journal.dropped:
            say(f"{self.journal.path}: {self.journal.dropped} bytes at the end were not whole, and are dropped")
        self.ledger.restore(records)
        boots = [record.boot for record in records if isinstance(record, Life)]
        same_boot = bool(boots) and boots[-1] == proc.boot()
        if same_boot:
            _end_survivors(self.identity, self.cgroups)
        words = "its node agent died" if same_boot else "its machine was restarted"
        for key in [*self.ledger.running]:
            self.ledger.exited(key, Ending(AGENT_LOST, 0, words))
        self.journal.append([Life(proc.boot()), *self.ledger.take().records])


def _end_survivors(identity: str, cgroups: Cgroups | None) -> None:
    """Kill what a former agent has left, before anything new begins; raise InputError if that is not possible."""
    left = proc.kill_marked(identity, SURVIVORS_S)
    until = time.monotonic() + SURVIVORS_S
    while cgroups and cgroups.clear() and time.monotonic() < until:
        time.sleep(LINGER_S)
    if left or (cgroups and cgroups.clear()):
        where = left or (cgroups and cgroups.home)
        raise InputError(f"processes of former attempts cannot be killed: {where}")


def _cgroups(mode: str, identity: str, pids: tuple[int, ...]) -> Cgroups | None:
    """Return the control groups to use: with `auto` where limits can be kept, with `always` to kill by, too."""
    if mode == "never":
        return None
    found = find_home(identity, pids)
    if found is None and mode == "always":
        raise InputError("--cgroups always: the agent may make no control groups of version 2 here")
    if found is not None and mode == "auto" and "memory" not in found.controllers:
        found.close()
        return None
    return found


def say(words: str) -> None:
    """Say something on standard error, for the machine's log, as plain text: attempts have names from outside."""
    sys.stderr.write(f"node agent: {plain(words)}\n")
    sys.stderr.flush()


def work(settings: Settings, guard: int) -> None:
    """Be the agent, whose guard is process *guard*, until told to stop."""
    agent = Agent(settings, (os.getpid(), guard))
    signal.set_wakeup_fd(agent.connections.waker.fileno(), warn_on_full_buffer=False)
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN and number not in PYTHONS:
            signal.signal(number, signal.SIG_DFL)  # it is ignored under nohup: attempts would inherit that
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.stop())
    if settings.lifeline >= 0:
        os.set_inheritable(settings.lifeline, False)
        agent.connections.watch(settings.lifeline, agent.stop)
    signal.signal(GUARD_DIED, lambda *_: agent.stop(AGENT_LOST, 0.0))
    say(f"machine {settings.machine}: {settings.state}; {agent.limits()}")
    agent.run()

