"""The role of a worker: between the local masters of its cluster and the agent of its machine.

Its tables are written, as a whole, with every change, and outlive the process: a worker that is killed and begins again
was only slow. After a reboot nothing runs on the machine any more, and what is there of the tables may be old: the
worker begins a new incarnation with it, to report how its attempts ended. The agent's journal says so of those that
came to an end; the others were lost with their machine. Incarnation and epoch outlive the machine in any case.

An attempt that is to end is over when the agent says so, and not before: what the role says of it is held back until
then. So nothing else begins in its place, here or on another machine, while it still runs. If it had come to its own
end meanwhile, that is what became of it.
"""
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import DecodeError, Struct, msgpack

from subak.errors import RunError
from subak.federation.megha.attempts import ROW, Attempts, RowCounts
from subak.federation.megha.bounds import most_posted
from subak.federation.megha.topology import INCARNATION_BITS
from subak.federation.megha.worker import (
    FOREVER,
    NUMBER_MASK,
    WORKER_ENDED,
    WORKER_ROW,
    WORKER_RUNNING,
    Workers,
    adopt,
    begin_incarnation,
    hold,
    report_end,
)
from subak.federation.megha.worker_role import WorkerTables, serve_worker
from subak.federation.messages import (
    BEGIN,
    EXITED,
    FINISHED_WELL,
    FORGET,
    HALT,
    HAS_FAILED,
    HOLDS,
    LEASE,
    LEASE_LOST,
    LOCAL_MASTER,
    MACHINE_LOST,
    MACHINE_STOPPED,
    NO_REASON,
    NOBODY,
    NOT_FREE,
    OVER,
    RAN_TOO_LONG,
    RECONFIGURE,
    START,
    TICK,
    UNKNOWN,
    USED_TOO_MUCH,
    WORKER,
)
from subak.live.agent.attempts import attempt as agent
from subak.live.agent.attempts.attempt import AttemptToRun, Ending, Event, Exited, Fence, Key, Known, Refused
from subak.live.role.base import Put
from subak.live.role.facts import CONFIGURATION, JOB, SHAPE, Fact, read_configuration, read_job, read_shape
from subak.live.role.frames import Answer, Ask, Dismissed, Frame, FrameError, Join, Joined, Leave, Retract
from subak.live.role.layout import OF_A_KIND_MAX, Layout, Peer, Timing
from subak.live.role.worker.plain import Grid, Kind, PlainRole, Row, Rows
from subak.workload.tasks import Requests

Disk = Mapping[str, Mapping[int | str, bytes]]
GRACE_MIN = 0.05  # seconds
ATTEMPT, ME = Kind(ROW), Kind(WORKER_ROW)
STATE_VERSION = 2  # of what outlives the process; raised with each change of a layout in it. 2: submitters of jobs
# what an end at the agent is for the federation; what is in neither has failed
LOSSES_OF_AGENT = {
    agent.LEASE_LOST: LEASE_LOST, agent.STOPPED: MACHINE_STOPPED, agent.AGENT_LOST: MACHINE_LOST,
    agent.HALTED: MACHINE_LOST, agent.NEVER_BEGAN: MACHINE_LOST,
}
REASON_OF = {**LOSSES_OF_AGENT, agent.RAN_TOO_LONG: RAN_TOO_LONG, agent.OUT_OF_MEMORY: USED_TOO_MUCH}
REFUSALS = {agent.NO_ROOM: NOT_FREE, agent.NO_DISK: NOT_FREE, agent.STOPPING: MACHINE_LOST}


class Start(NamedTuple):
    """An effect on the agent: run an attempt, as *user* where that is not empty; *submitter*: who submitted its job."""

    attempt: AttemptToRun
    user: str
    submitter: str = ""


class End(NamedTuple):
    """An effect on the agent: end an attempt."""

    key: Key
    grace_s: float


class Forget(NamedTuple):
    """An effect on the agent: forget attempts that have ended."""

    keys: tuple[Key, ...]


class Ping(NamedTuple):
    """An effect on the agent: the worker is still here, and its local master has just heard of it.

    Were it told so whenever the worker lives, one that was cut off and then killed would leave behind what another
    machine runs already.
    """


class Inquire(NamedTuple):
    """An effect: answer a question about an attempt."""

    peer: Peer
    ask: Ask


class Identity(Struct, frozen=True, array_like=True):
    """What outlives the machine."""

    machine: int
    incarnation: int
    epoch: int
    known_to: tuple[int, ...] = ()  # local masters of the cluster that have the machine on disk


class Snapshot(Struct, frozen=True, array_like=True):
    """What outlives the process: the tables, and the facts that they name. After a reboot it may be an old one."""

    boot: str
    me: bytes  # WORKER_ROW
    first: int
    size: tuple[int, ...]
    places: tuple[int, ...]  # of the rows that attempts are in
    rows: bytes  # ROW of each
    free: tuple[int, ...]
    facts: tuple[Fact, ...]
    graces: dict[int, float]  # by row
    version: int = 1  # STATE_VERSION of whoever wrote it


def _snapshot_of(state: bytes) -> Snapshot:
    """Return what outlived the process. Raises RunError for what another version wrote."""
    try:
        snapshot = msgpack.decode(state, type=Snapshot)
    except DecodeError as error:  # a ValidationError, too
        raise _another_state(str(error)) from None
    if not 1 <= snapshot.version <= STATE_VERSION:  # earlier ones lack fields that have defaults
        raise _another_state(f"version {snapshot.version} there, {STATE_VERSION} here")
    return snapshot


def _another_state(why: str) -> RunError:
    return RunError("the worker's folder holds what another version of subak wrote; let that version end its tasks, "
                    f"then remove the folder ({why})")


class WorkerRole(PlainRole):
    """See the head of the file."""

    def __init__(self, number: int, layout: Layout, timing: Timing, disk: Disk, join: Join, boot: str) -> None:
        """*join*: what the machine is called and has; *boot*: names the time since it was switched on."""
        super().__init__(WORKER, number, layout, timing, most_posted(WORKER, layout.sizes()))
        self.bounds |= {  # its tables have no size: masters may come while it runs
            "owner": range(NOBODY, OF_A_KIND_MAX), "shape": range(NOBODY, OF_A_KIND_MAX * layout.rooms.shapes)}
        self.join, self.boot = join, boot
        self.rules = timing.rules(layout.standby)
        topology: Any = layout.topology()
        self.topology = topology._replace(
            machine={number: {"cluster": layout.cluster_of(number)}}, capacity=Grid(len(layout.resources)))
        self.requests = Grid(len(layout.resources))  # by shape
        rows = Rows(layout.rooms.attempts_each, ATTEMPT.blank())
        self.workers: Any = Workers(
            Attempts(rows, {number: NOBODY}, RowCounts(free_row=NOBODY)), Grid(len(layout.resources)),  # type: ignore[arg-type]
            {number: ME.blank(incarnation=1, top=NOBODY, configuration=NOBODY)})  # type: ignore[arg-type]
        self.alive: set[Key] = set()  # attempts that the agent was told to begin, and has not said to have ended
        self.halting: set[Key] = set()  # those of them that are being ended
        self.pinged = float("-inf")  # when the agent's lease last began anew
        self.held_back: list[Start] = []  # until it does again
        self.graces: dict[int, float] = {}  # by row
        self.row_at: dict[Key, int] = {}  # where attempts are, or were
        self.written = b""
        self.goes_on = False  # whether it begins as it was, so that it has a timer at once
        self.identity = Identity(number, 0, 0)
        self.known_to: set[int] = set()
        self.leaves = False  # whether the machine leaves for good
        self._serve_plainly()
        self._begin(disk)

    def _serve_plainly(self) -> None:
        rows: Any = self.inbox  # dicts, where masters have records
        amounts: Any = Requests(self.requests, None)  # type: ignore[arg-type]
        nothing: Any = ()  # no operator changes a live machine under its worker
        tables = WorkerTables(self.workers, self.topology, self.rules, amounts, nothing, nothing, rows, self.out)
        self.services = {WORKER: lambda now, count: serve_worker(tables, now, count)}

    # -- what was ------------------------------------------------------------------------------------------------------

    @property
    def me(self) -> Row:
        """The row of this worker."""
        row: Row = self.workers.machine[self.number]
        return row

    def _used(self) -> dict[int, Row]:
        """Return the rows that attempts are in."""
        return {place: row for place, row in self.workers.rows.row.items() if row["machine"] != NOBODY}

    def _begin(self, disk: Disk) -> None:
        """Begin with what outlived the process, or the machine."""
        identity = disk.get("identity", {}).get(0)
        if identity is not None:
            self.identity = msgpack.decode(identity, type=Identity)
            self.me["incarnation"], self.me["epoch"] = max(self.identity.incarnation, 1), self.identity.epoch
            self.known_to = set(self.identity.known_to)
        state = disk.get("state", {}).get(0)
        snapshot = _snapshot_of(state) if state is not None else None
        if snapshot is None:
            return
        self._restore(snapshot)
        if snapshot.boot != self.boot:
            self._begin_after_reboot()

    def _begin_after_reboot(self) -> None:
        """Begin a new incarnation: nothing that a former one was told to start begins any more."""
        self.me["incarnation"] = max(self.me["incarnation"], self.identity.incarnation)
        adopt(self.workers, self.number, self.identity.epoch)
        begin_incarnation(self.workers, self.number, 0.0)  # its clock has begun anew

    def _restore(self, snapshot: Snapshot) -> None:
        """Fill the tables with what was written last."""
        self.me.update(ME.read(snapshot.me)[0])
        rows = self.workers.rows
        rows.first[self.number] = snapshot.first
        rows.counts.write(*snapshot.size)
        rows.row.update(zip(snapshot.places, ATTEMPT.read(snapshot.rows), strict=True))
        self.row_at = {Key(row["task"], row["attempt"]): place for place, row in rows.row.items()}
        rows.counts.free_row = NOBODY
        for place in set(range(rows.counts.rows_ever)).difference(snapshot.places):
            rows.row[place]["machine"], rows.row[place]["next"] = NOBODY, rows.counts.free_row
            rows.counts.free_row = place
        self.workers.free.write(self.number, snapshot.free)
        for fact in snapshot.facts:
            self.learn(fact)
        self.graces = dict(snapshot.graces)
        self.goes_on = True

    def _snapshot(self) -> bytes:
        rows, me, used = self.workers.rows, self.me, self._used()
        names = {(SHAPE, row["shape"]) for row in used.values()}
        if me["configuration"] != NOBODY:
            names.add((CONFIGURATION, me["configuration"]))
        facts = tuple(self.facts.known[name] for name in sorted(names) if name in self.facts.known)
        free = tuple(self.workers.free[resource, self.number] for resource in range(len(self.layout.resources)))
        return msgpack.encode(Snapshot(
            self.boot, ME.written(me), rows.first[self.number], rows.counts.values(), tuple(used),
            b"".join(map(ATTEMPT.written, used.values())), free, facts, self.graces, STATE_VERSION))

    def settle(self) -> None:
        """Write what outlives the process, and the machine, where it differs."""
        identity = Identity(self.number, self.me["incarnation"], self.me["epoch"],
                            tuple(sorted(self.known_to)))
        if identity != self.identity:
            self.identity = identity
            self.writes.append(Put("identity", [0], [msgpack.encode(identity)]))
        state = self._snapshot()
        if state != self.written:
            self.written = state
            self.writes.append(Put("state", [0], [state]))

    # -- the local masters ---------------------------------------------------------------------------------------------

    def on_connected(self, peer: Peer) -> None:
        """Say to a local master what machine this is."""
        if peer[0] == LOCAL_MASTER:
            self.frame_to(peer, self._joins())
            if self.leaves:
                self.frame_to(peer, Leave())

    def leave(self) -> None:
        """Leave the federation for good: `Dismissed` follows when what runs here has ended, and that is noted."""
        self.leaves = True
        for peer in self.links:
            if peer[0] == LOCAL_MASTER:
                self.frame_to(peer, Leave())

    def _joins(self) -> Join:
        return Join(self.number, self.join.identity, self.join.name, self.join.capacity, self.join.attributes,
                    self._is_known())

    def _is_known(self) -> bool:
        """Whether every local master of the cluster has the machine on disk."""
        return self.known_to.issuperset(self.layout.masters_of(self.layout.cluster_of(self.number)))

    def on_fact(self, fact: Fact) -> None:
        """Write a fact down that is news."""
        if fact.kind == SHAPE:
            self._learn_shape(fact.number, read_shape(fact.body).request)
        elif fact.kind == CONFIGURATION:
            self.topology.capacity.write(fact.number, read_configuration(fact.body).capacity)

    def _learn_shape(self, number: int, request: tuple[int, ...]) -> None:
        """Let a number stand for a shape from now on; what attempts hold that name it is counted anew."""
        named = [row for row in self._used().values() if row["shape"] == number and row["state"] == WORKER_RUNNING] \
            if (0, number) in self.requests else []
        amounts: Any = Requests(self.requests, None)  # type: ignore[arg-type]
        for sign in (1, -1):
            for _ in named:
                hold(self.workers, amounts, number, self.number, sign)
            self.requests.write(number, request)

    def on_frame(self, peer: Peer, frame: Frame) -> None:
        """Take in a frame without messages."""
        if isinstance(frame, Joined) and frame.machine == self.number:
            self._note_joined(peer[1], frame)
        elif isinstance(frame, Retract):
            self.retract(frame.names)
        elif isinstance(frame, Ask):
            self.effects.append(Inquire(peer, frame))
        elif isinstance(frame, Dismissed):
            self.effects.append(frame)
        else:
            raise FrameError(f"a frame {type(frame).__name__} that is not for a worker")

    def _note_joined(self, local: int, joined: Joined) -> None:
        """Note that a local master knows the machine, which runs nothing before the other one does as well.

        A master that took over, and did not know it, says that nothing runs there: so nobody who speaks in an older
        epoch than it is obeyed from now on. When both know it, both are told.
        """
        was_known = self._is_known()
        self.known_to.add(local)
        adopt(self.workers, self.number, joined.epoch)
        if not self._is_known():
            return
        if joined.configuration != self.me["configuration"]:
            self.tell(RECONFIGURE, machine=self.number, shape=joined.configuration)
        if not was_known:
            for peer in [peer for peer in self.links if peer[0] == LOCAL_MASTER]:
                self.frame_to(peer, self._joins())

    def answer(self, peer: Peer, number: int, body: bytes = b"", problem: str = "") -> None:
        """Answer a question that `Inquire` passed on."""
        self.frame_to(peer, Answer(number, body, problem))

    def sound(self, row: Row) -> bool:
        """Whether a message is about this machine, and names a shape where it begins something."""
        return super().sound(row) and row["machine"] == self.number and (row["kind"] != START or row["shape"] >= 0)

    def may_send(self, kind: int, row: Row) -> bool:
        """Whether a message may leave: none of an attempt that is being ended."""
        if not self.halting or kind not in (OVER, HOLDS):
            return True
        return Key(row["task"], row["attempt"]) not in self.halting

    # -- the agent --------------------------------------------------------------------------------------------------

    def on_effect(self, kind: int, row: Row) -> None:
        """Begin, or end, an attempt."""
        if kind == BEGIN:
            self._start(row)
        elif kind == HALT:
            self._halt(row["task"], row["reason"])

    def _start(self, row: Row) -> None:
        key, number = Key(row["task"], row["attempt"]), row["handle"]
        self.row_at[key] = number
        fact = self.facts.known.get((JOB, self.layout.job_of(key.task)))
        if fact is None:  # it always comes with the order
            self._exited(number, key, UNKNOWN, 0)
            return
        job, start = read_job(fact.body), self.workers.rows.row[number]["start"]
        place = key.task & (self.layout.places - 1)
        stage = job.stage_of(place)
        self.graces[number] = stage.grace_s
        limit = row["limit"]
        start_ = Start(AttemptToRun(
            key, Fence(start >> INCARNATION_BITS, self.me["epoch"], start & NUMBER_MASK), stage.command, job.name,
            job.queue, place - job.first, stage.environment, stage.folder, None, stage.umask, stage.memory, stage.cpu,
            stage.cpu_limited, limit if limit < FOREVER else 0.0, stage.grace_s), stage.user, job.submitter)
        # an agent near the end of its lease refuses; the task would be lost, placed again at once, and refused again
        in_time = self.now < self.pinged + self.timing.agent_lease - self.timing.agent_grace
        (self.effects if in_time else self.held_back).append(start_)
        self.alive.add(key)

    def _halt(self, task: int, reason: int) -> None:
        """End the attempt of a task that the role has just ended: in time for the lease, where that is why."""
        for key in sorted(self.alive - self.halting, key=lambda key: key.attempt):
            if key.task == task:
                grace = self.graces.get(self._row_of(key), GRACE_MIN)
                if reason == LEASE_LOST:
                    grace = max(min(grace, self._lease_left()), GRACE_MIN)
                self.halting.add(key)
                self.held_back = [start for start in self.held_back if start.attempt.key != key]
                self.effects.append(End(key, grace))

    def _lease_left(self) -> float:
        return float(self.me["heard"]) + self.timing.lease - self.now

    def on_events(self, events: Iterable[Event]) -> None:
        """Take in what has happened at the agent. Begun needs nothing: START has already said that the attempt runs."""
        for event in events:
            if isinstance(event, Exited):
                self._note_end(event.key, event.ending)
            elif isinstance(event, Refused):
                self._note_refusal(event)

    def _row_of(self, key: Key) -> int:
        """Return the row of an attempt, NOBODY if it is not there; as `find_attempt`, which is slow uncompiled."""
        number = self.row_at.get(key, NOBODY)
        if number != NOBODY:
            row = self.workers.rows.row[number]
            if row["task"] != key.task or row["attempt"] != key.attempt or row["machine"] != self.number:
                return NOBODY
        return number

    def _note_end(self, key: Key, ending: Ending) -> None:
        number, was_halting = self._row_of(key), key in self.halting
        self.alive.discard(key)
        self.halting.discard(key)
        if number == NOBODY:
            self.effects.append(Forget((key,)))
            return
        row = self.workers.rows.row[number]
        if row["state"] == WORKER_RUNNING:
            reason = NO_REASON if ending.is_good else REASON_OF.get(ending.reason, HAS_FAILED)
            self._exited(number, key, reason, ending.code)
        elif was_halting:
            row["code"] = ending.code
            if ending.is_good:
                row["reason"] = FINISHED_WELL
            self.out.counts.posted = 0
            report_end(self.workers, self.topology, number, self.out)
            self.hand_on()

    def _note_refusal(self, event: Refused) -> None:
        number = self._row_of(event.key)
        self.alive.discard(event.key)
        self.halting.discard(event.key)
        if number != NOBODY and self.workers.rows.row[number]["state"] == WORKER_RUNNING:
            reason = REFUSALS.get(event.why, HAS_FAILED if event.why == agent.INVALID else UNKNOWN)
            self._exited(number, event.key, reason, 126 if reason == HAS_FAILED else 0)

    def _exited(self, number: int, key: Key, reason: int, code: int) -> None:
        self.tell(EXITED, machine=self.number, task=key.task, attempt=key.attempt, handle=number, reason=reason,
                  code=code)

    def reconcile(self, known: Iterable[Known]) -> None:
        """Compare what the agent knows with the tables, when the worker begins: what it does not know is lost.

        What has ended meanwhile is noted before the first tick, which ends what runs where the lease is over.
        """
        there = {each.key: each for each in known}
        self.alive, self.held_back = {key for key, each in there.items() if each.ending is None}, []
        number = self.workers.rows.first[self.number]
        while number != NOBODY:
            row = self.workers.rows.row[number]
            key = Key(row["task"], row["attempt"])
            each = there.pop(key, None)
            if each is not None and each.ending is None and row["state"] == WORKER_ENDED:
                self.halting.add(key)
                self.effects.append(End(key, GRACE_MIN))
            elif each is not None and each.ending is not None:
                if row["state"] == WORKER_ENDED:
                    self.halting.add(key)
                self._note_end(key, each.ending)
            elif each is None and row["state"] == WORKER_RUNNING:
                self._exited(number, key, MACHINE_LOST, 0)
            number = row["next"]
        for key, each in there.items():
            self.effects.append(Forget((key,)) if each.ending is not None else End(key, GRACE_MIN))
        if self.goes_on:
            self.tell(TICK, machine=self.number, incarnation=self.me["incarnation"])
            self.goes_on = False

    def _jobs_held(self) -> set[int]:
        return {row["task"] // self.layout.places for row in self._used().values()}

    def load(self, messages: list[Row]) -> None:
        """Lay messages into the inbox, and say where attempts are that are to be forgotten: a search takes long."""
        super().load(messages)
        for row in messages:
            if row["kind"] == FORGET:
                row["handle"] = self.row_at.get(Key(row["task"], row["attempt"]), NOBODY)

    def served(self, count: int) -> int:
        """Let the agent forget what was forgotten, and know that the worker lives."""
        kinds = {row["kind"] for row in self.inbox}
        if LEASE in kinds and self.now - self.me["heard"] <= self.timing.fresh:
            self.pinged = self.now
            self.effects += [Ping(), *self.held_back]
            self.held_back = []
        if TICK in kinds:
            self.retract_unneeded(LOCAL_MASTER, self._jobs_held)
            self.row_at = {key: number for key, number in self.row_at.items() if self._row_of(key) != NOBODY}
        if FORGET in kinds:
            keys = [Key(row["task"], row["attempt"]) for row in self.inbox if row["kind"] == FORGET]
            forgotten = tuple(key for key in keys if self._row_of(key) == NOBODY)
            if forgotten:
                self.effects.append(Forget(forgotten))
        return 0
