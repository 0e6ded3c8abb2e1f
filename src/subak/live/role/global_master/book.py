"""The jobs of a global master that have not ended, and what of each is on disk.

A task on disk is one row: its state, its row among the open tasks, its round, the cluster and the attempt it was last
sent to, and how often it was lost. It is written when one of these differs from what was written last, before anything
that follows from it leaves the role; and, of an attempt that goes on, a second after it began, to say so.
"""
import zlib
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct, json, msgpack

from subak.federation.counts import COMPARED, TOLD
from subak.federation.megha.admission import Admitted, JobAsked, StageAsked
from subak.federation.megha.global_master.losses import NOTHING_SENT
from subak.federation.megha.global_master.state import PHASE_RUNNING, GlobalMaster
from subak.federation.megha.jobs import SUBMISSION_ENDED, SUBMISSION_WITHDRAWN, Jobs
from subak.federation.megha.ledger import ENTRY_TOOK
from subak.federation.megha.submitter import Submitter
from subak.federation.megha.topology import INCARNATION_BITS
from subak.federation.messages import CONCLUSIVE, FAILURE, HAS_FAILED, MACHINE_STOPPED, NOBODY, NOT_FREE, REASONS
from subak.live.agent.attempts.codes import code_words
from subak.live.jobfile.spec import CPU, MEMORY, JobSpec, Stage
from subak.live.people.limits import InUse
from subak.live.role.base import Drop, DropRange, Put, PutLarge, Write
from subak.live.role.facts import JobFact, StageFact
from subak.live.role.global_master.history import (
    ATTEMPT_FAILED,
    ATTEMPT_LOST,
    ATTEMPT_STOPPED,
    BEGAN,
    OUTCOME_WORDS,
    PERHAPS,
    Happening,
    History,
)
from subak.live.role.waits import TASK_S, Waits

MIB = 1 << 20
BEGUN_S = 1.0  # that an attempt runs before the row of its task on disk says when it began
COMPRESSED_FROM = 10_000  # tasks of a job that has ended, on disk
ON_DISK = np.dtype([
    ("number", np.int64),
    ("state", np.int8),  # one of SUBMISSIONS
    ("outcome", np.int8),
    ("reason", np.int8),  # why it ended, or is withdrawn
    ("round", np.int16),
    ("row", np.int32),
    ("sent_to", np.int16),  # cluster it was last requested from, NOBODY for none
    ("sent", np.int64),  # number of that attempt, NOTHING_SENT when it is known to be over
    ("lost", COMPARED),  # attempts
    ("code", np.int16),
    ("failed", COMPARED),  # attempts
    ("preempted", TOLD),  # times
    ("attempts", np.int32),  # that began
    ("machine", np.int32),  # of the last
    ("attempt", np.int64),  # number of the last that began
    ("started", np.float64),  # Unix time at which the last began
    ("ended", np.float64),  # Unix time
])
AS_BYTES = f"V{ON_DISK.itemsize}"
FRESH = np.zeros(1, ON_DISK)  # a task that is not on disk, and has not arrived
FRESH["number"] = FRESH["row"] = FRESH["sent_to"] = FRESH["machine"] = NOBODY
# what has to be written when it differs
DECISIVE = ("number", "state", "outcome", "reason", "round", "row", "sent_to", "sent", "lost")
OF_ENDING = ("outcome", "reason", "code", "failed", "lost", "preempted")  # what a submitter keeps as well
NO_TRACE = "it left no trace, and may have begun"
DECISIVE_BYTES = sum(ON_DISK[name].itemsize for name in DECISIVE)  # they are the first


class StoredJob(Struct, frozen=True, array_like=True):
    """A job on disk."""

    spec: bytes  # JSON of a JobSpec
    client: str  # what whoever submitted it calls it
    queue: int
    shapes: tuple[int, ...]  # of the stages
    first: int  # place of its first task
    submitted: float  # Unix time
    submitter: str = ""  # who submitted it; empty in stores of versions before 5


@dataclass(eq=False)
class Job:
    """A job that is open."""

    number: int
    stored: StoredJob
    spec: JobSpec
    admitted: Admitted
    version: int = 0  # how often something of it has changed
    laid: int = 0  # tasks that are laid out in the tables: the first
    ended: int = 0  # tasks that have ended
    over: int = 0  # those that have no row any more
    failed: set[int] = field(default_factory=set)  # stages a task of which was given up, by their places in it
    cancelled: set[int] = field(default_factory=set)  # stages that were given up for one of those
    kept: int = 0  # tasks whose last rows were taken out of the tables: the first

    def __post_init__(self) -> None:
        self.history = History(self.number)
        self.last_rows = np.zeros(0, ON_DISK)  # as it ends with, once it is over

    @property
    def places(self) -> slice:
        """Where its tasks are."""
        return slice(self.admitted.places, self.admitted.places + self.admitted.tasks)

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of its tasks, int64[task]."""
        return self.admitted.numbers[0] if len(self.admitted.numbers) == 1 else np.concatenate(self.admitted.numbers)

    @property
    def has_ended(self) -> bool:
        """Whether all of its tasks have ended; some may have yet to be taken out of their lanes."""
        return self.ended == self.admitted.tasks

    @property
    def is_over(self) -> bool:
        """Whether all of its tasks have ended and none has a row any more."""
        return self.over == self.admitted.tasks


def asked_of(spec: JobSpec, queue: int, shapes: tuple[int, ...], rank: float) -> JobAsked:
    """Return a job in numbers."""
    stages = tuple(
        StageAsked(stage.tasks, shape, before, stage.priority, stage.gang, stage.retries, stage.losses_max,
                   stage.backoff_s, _or_forever(stage.wait_limit_s), _or_forever(stage.time_limit_s))
        for stage, shape, before in zip(spec.stages, shapes, spec.earlier_stages(), strict=True))
    return JobAsked(queue, stages, rank)


def _or_forever(seconds: float | None) -> float:
    return np.inf if seconds is None else seconds


def fact_of(name: str, spec: JobSpec, first: int, submitter: str) -> JobFact:
    """Return what those who run a job's tasks must know."""
    return JobFact(name, spec.queue, first, tuple(_stage_fact(stage) for stage in spec.stages), submitter)


def _stage_fact(stage: Stage) -> StageFact:
    return StageFact(
        stage.tasks, stage.command, stage.env, stage.workdir, stage.user or "", stage.umask,
        stage.resources.get(MEMORY, 0) * MIB, stage.resources.get(CPU, 0), stage.cpu_limited, stage.grace_s)


class Book:
    """All open jobs, and what is on disk of their tasks."""

    def __init__(self, jobs: Jobs, master: GlobalMaster, submitter: Submitter) -> None:
        self.jobs, self.master, self.submitter = jobs, master, submitter
        places = jobs.number.size
        self.disk = np.zeros(places, ON_DISK)
        self.now = np.zeros(places, ON_DISK)  # what is not in the tables of the roles: attempts, started, ended
        self.runs = np.zeros(places, bool)  # whether the last attempt was seen to run, since this master began
        self.young: deque[tuple[float, np.ndarray]] = deque()  # when attempts began, and places of their tasks, until
        # their beginnings are written
        self.stopped = 0.0  # Unix time at which this master was stopped before it began; 0 where it was not, or killed
        self.told: set[int] = set()  # places of tasks of whose lost attempts local masters told, since the last rows
        self.due: set[int] = set()  # jobs whose histories are to be written
        self.use = InUse()
        self.of_number: dict[int, Job] = {}
        self.waits = Waits(TASK_S)  # of tasks whose first attempts began since this master did
        self.outcomes = [0] * len(OUTCOME_WORDS)  # of those that ended since then

    def add(self, job: Job) -> None:
        """Note a job that was admitted."""
        self.of_number[job.number] = job
        self.use.note(job.stored.submitter, job.spec.queue, 1, job.admitted.tasks)

    def lay(self, job: Job, count: int) -> None:
        """Lay out the next *count* tasks of a job, as not on disk."""
        places = slice(job.places.start + job.laid, job.places.start + job.laid + count)
        for table in (self.disk, self.now):  # as bytes: field by field, many tasks hold all others up for long
            table[places].view(AS_BYTES)[:] = FRESH.view(AS_BYTES)
        self.runs[places] = False
        job.laid += count

    def look(self, job: Job, first: int, end: int) -> np.ndarray:
        """Return ON_DISK[task], a copy, of the tasks of a job from *first* on, up to *end*, as they stand."""
        rows = self.now[job.places.start + first : job.places.start + end].copy()
        rows[max(job.laid - first, 0) :] = FRESH
        return rows

    def state(self, job: Job) -> str:
        """Return the state of a job, as `JobView` has it."""
        if job.has_ended:
            return "ended"
        begin = job.places.start
        return "running" if (self.now["attempts"][begin : begin + job.laid] > 0).any() else "waiting"

    def remove(self, job: Job) -> None:
        """Forget a job that is over."""
        del self.of_number[job.number]
        self.use.note(job.stored.submitter, job.spec.queue, -1, -job.admitted.tasks)

    def rows_of(self, places: np.ndarray, clock: float) -> np.ndarray:
        """Return ON_DISK[row], tasks as they stand, and note when attempts began and tasks ended."""
        jobs, master = self.jobs, self.master
        self._note_losses(places, clock)
        now, row = self.now[places], jobs.row[places]
        open_, open_rows = row != NOBODY, row[row != NOBODY]
        ending = jobs.ending[places]
        now["number"], now["state"], now["row"] = jobs.number[places], jobs.state[places], row
        for name in OF_ENDING:
            now[name] = ending[name]
        withdrawn = open_ & (now["state"] == SUBMISSION_WITHDRAWN)
        now["reason"][withdrawn] = self.submitter.submission["reason"][row[withdrawn]]
        mine = master.task[open_rows]
        is_about = (mine["tenant"] == jobs.number[places][open_] + 1)
        runs = is_about & (mine["phase"] == PHASE_RUNNING)
        at = np.flatnonzero(open_)
        sent = np.where(is_about, mine["sent_to"], NOBODY)
        now["sent_to"][at], now["round"][at] = sent, np.where(is_about, mine["round"], now["round"][at])
        for name in ("preempted", "sent", "lost"):
            now[name][at] = np.where(is_about, mine[name], now[name][at])
        new = runs & ((mine["attempt"] != now["attempt"][at]) | (mine["machine"] != now["machine"][at]))
        begun = at[new]
        now["attempt"][begun], now["machine"][begun] = mine["attempt"][new], mine["machine"][new]
        now["attempts"][begun] += 1
        now["started"][begun] = clock
        if begun.size:
            self.young.append((clock, places[begun]))
        self.runs[places[at]] = runs
        ended = (now["state"] == SUBMISSION_ENDED) & (now["ended"] == 0)
        now["ended"][ended] = clock
        self.now[places] = now
        self._note_events(places[begun], False, clock)
        self._note_events(places[ended], True, clock)
        return now

    def _note_events(self, places: np.ndarray, are_ends: bool, clock: float) -> None:
        """Note that tasks have begun, or ended, in the history of their jobs."""
        if not places.size:
            return
        rows, size = self.now[places], self.disk.size
        names = ("number", "reason", "outcome", "machine", "attempts", "attempt", "code")
        columns = [rows[name].tolist() for name in names]
        for place, number, reason, outcome, machine, nth, attempt, code in zip(places.tolist(), *columns, strict=True):
            job = self.of_number.get(number // size)
            if job is not None:
                if are_ends:
                    self.outcomes[outcome] += 1
                elif nth == 1:
                    self.waits.note(clock - job.stored.submitted)
                word, why = (OUTCOME_WORDS[outcome], REASONS[reason]) if are_ends else (BEGAN, "")
                if are_ends and code < 0:
                    why += f", and {code_words(code)} ended it"
                job.history.note(Happening(clock, place - job.admitted.places, word, why, machine, nth, attempt))

    def note_entries(self, entries: np.ndarray, clock: float) -> None:
        """Note what local masters have entered of attempts, whose beginning nobody may have seen.

        *entries*: ENTRY[place], each of an end (ENTRY_GAVE, or ENTRY_GONE of a whole state), or ENTRY_TOOK. What a
        master is told when it has restarted may be of long ago.
        """
        entries = self._without_plain_ends(entries)
        names = ("task", "kind", "reason", "machine", "attempt", "round", "code", "heir", "held")
        columns, size = [entries[name].tolist() for name in names], self.disk.size
        for values in zip(*columns, strict=True):
            entry = dict(zip(names, values, strict=True))
            job = self.of_number.get(entry["task"] // size)
            if job is not None and entry["round"] >= self.now[entry["task"] & (size - 1)]["round"]:
                self._note_entry(job, entry, clock)

    def _without_plain_ends(self, entries: np.ndarray) -> np.ndarray:
        """Return the entries of which something is to be noted: not those of good ends of attempts that were seen."""
        places = entries["task"] & (self.disk.size - 1)
        row, reason = self.now[places], entries["reason"]
        plain = (entries["kind"] != ENTRY_TOOK) & CONCLUSIVE[reason] & ~FAILURE[reason]
        plain &= (row["number"] == entries["task"]) & (row["attempt"] == entries["attempt"])
        plain &= row["machine"] == entries["machine"]
        self.runs[places[plain]] = False
        return entries[~plain]

    def _note_entry(self, job: Job, entry: dict[str, int], clock: float) -> None:
        place, attempt, machine, reason = entry["task"] & (self.disk.size - 1), *_name_of(entry), entry["reason"]
        index, row, history = place - job.admitted.places, self.now[place], job.history
        if reason == MACHINE_STOPPED and self.stopped and self._is_former(attempt):
            clock = self.stopped  # tasks are ended just before masters, when a whole federation is stopped
        if entry["kind"] == ENTRY_TOOK and self._stands_by(place, attempt, machine):
            return  # seen with all others that run
        is_last = bool(row["attempt"] == attempt and row["machine"] == machine)
        if history.is_over(index, attempt, machine) or (history.is_full and not is_last and self._is_former(attempt)):
            return
        is_end = entry["kind"] != ENTRY_TOOK
        if is_end:
            self.runs[place] &= not is_last
        if not is_last and not history.has_begun(index, attempt, machine) and _has_begun(entry):
            self._begin(job, place, attempt, machine, "", clock)
        nth = int(row["attempts"])
        if is_end and FAILURE[reason]:
            self.due.add(job.number)
            why = code_words(entry["code"]) if reason == HAS_FAILED else REASONS[reason]
            history.note(Happening(clock, index, ATTEMPT_FAILED, why, machine, nth, attempt))
        elif is_end and not CONCLUSIVE[reason]:
            self.told.add(place)
            self.due.add(job.number)
            what = ATTEMPT_STOPPED if reason == MACHINE_STOPPED else ATTEMPT_LOST
            history.note(Happening(clock, index, what, REASONS[reason], machine, nth, attempt, entry["heir"]))

    def note_begun(self, job: Job, happening: Happening) -> None:
        """Take up a beginning that is on disk and not in the row of its task, which was written before."""
        row = self.now[job.admitted.places + happening.task]
        if happening.what == BEGAN and happening.nth > row["attempts"]:
            row["attempts"], row["started"] = happening.nth, happening.clock
            row["attempt"], row["machine"] = happening.attempt, happening.machine

    def _begin(self, job: Job, place: int, attempt: int, machine: int, why: str, clock: float) -> None:
        """Note that an attempt has begun; it is the last of its task where no other is known to run."""
        row = self.now[place]
        row["attempts"] += 1
        if not self.runs[place]:
            row["attempt"], row["machine"], row["started"] = attempt, machine, clock
        nth = int(row["attempts"])
        job.history.note(Happening(clock, place - job.admitted.places, BEGAN, why, machine, nth, attempt))

    def _stands_by(self, place: int, attempt: int, machine: int) -> bool:
        row = int(self.jobs.row[place])
        me = self.master.task[row]
        return row != NOBODY and bool(me["attempt"] == attempt and me["machine"] == machine)

    def _is_former(self, attempt: int) -> bool:
        return attempt >> INCARNATION_BITS != self.master.counts.incarnation

    def _note_losses(self, places: np.ndarray, clock: float) -> None:
        """Note which attempts were counted as lost since the last call."""
        lost, row = self.jobs.ending["lost"][places], self.jobs.row[places]
        mine = self.master.task[row[row != NOBODY]]
        is_about = mine["tenant"] == self.jobs.number[places][row != NOBODY] + 1
        lost[row != NOBODY] = np.where(is_about, mine["lost"], lost[row != NOBODY])
        more = lost > self.now["lost"][places]
        if more.any():
            self._note_untold(places[more], self.now[places[more]], clock)
        self.told.clear()

    def _note_untold(self, places: np.ndarray, before: np.ndarray, clock: float) -> None:
        """Note attempts that count as lost, and of whose end no local master has told: they may have begun.

        *before*: ON_DISK[place], as the rows were; the attempt that was sent last then is the one that was lost.
        """
        for place, row in zip(places.tolist(), before, strict=True):
            job = self.of_number.get(int(row["number"]) // self.disk.size)
            attempt = int(row["sent"])
            if job is None or place in self.told or attempt == NOTHING_SENT:
                continue
            index = place - job.admitted.places
            self.due.add(job.number)
            is_last = bool(self.now[place]["attempt"] == attempt)
            machine = int(self.now[place]["machine"]) if is_last else NOBODY
            self.runs[place] = False
            if not is_last:
                self._begin(job, place, attempt, machine, PERHAPS, clock)
            job.history.note(Happening(clock, index, ATTEMPT_LOST, NO_TRACE, machine,
                                       int(self.now[place]["attempts"]), attempt))

    def begun_before(self, clock: float) -> np.ndarray:
        """Return the places of tasks whose attempts began before then, and whose rows are to say so: each once.

        Most attempts are over sooner, and cost no write of their own.
        """
        found = [np.zeros(0, np.int64)]
        while self.young and self.young[0][0] <= clock:
            found.append(self.young.popleft()[1])
        places = np.unique(np.concatenate(found))
        rows = self.now[places]
        places = places[self.runs[places] & (rows["state"] != SUBMISSION_ENDED)
                        & (rows["number"] == self.jobs.number[places])]
        return places[[number // self.disk.size in self.of_number for number in self.now["number"][places].tolist()]]

    def writes(self, places: np.ndarray, clock: float, begun: np.ndarray | None = None) -> list[Write]:
        """Return what has to be written of the tasks at these places, and of *begun*: as well when an attempt began."""
        if begun is not None and begun.size:
            places = np.union1d(places, begun)
        now, before = self.rows_of(places, clock), self.disk[places]
        due = [self.of_number[number] for number in sorted(self.due) if number in self.of_number]
        histories = [each for job in due for each in job.history.writes()]
        self.due.clear()
        differs = (_decisive(now) != _decisive(before)).any(axis=1)
        if begun is not None and begun.size:
            differs |= np.isin(places, begun)
        if not differs.any():
            return histories
        rows = now[differs]
        self.count_over(rows, before[differs])
        self.disk[places[differs]] = rows
        return [*histories, Put("task", rows["number"].tolist(), [row.tobytes() for row in rows])]

    def count_over(self, now: np.ndarray, before: np.ndarray) -> None:
        """Count the tasks of each job that have ended, and that are over, ON_DISK[row], and were not."""
        ended, over = (test(now).astype(np.int64) - test(before) for test in (_has_ended, _is_over))
        jobs, place = np.unique(now["number"] // self.disk.size, return_inverse=True)
        for number, *more in zip(jobs.tolist(), np.bincount(place, ended).tolist(), np.bincount(place, over).tolist(),
                                 strict=True):
            if number in self.of_number:
                self.of_number[number].ended += int(more[0])
                self.of_number[number].over += int(more[1])

    @staticmethod
    def write_of(job: Job) -> Put:
        """Return what has to be written of a job."""
        return Put("job", [job.number], [msgpack.encode(job.stored)])

    def keep(self, job: Job, count: int) -> bool:
        """Take the last rows of the next *count* tasks of a job that is over; return whether those were all."""
        if not job.kept:
            job.last_rows = np.empty(job.admitted.tasks, ON_DISK)
        own = slice(job.kept, job.kept + count)
        there = slice(job.places.start + own.start, job.places.start + own.stop)
        job.last_rows[own].view(AS_BYTES)[:] = self.now[there].view(AS_BYTES)
        job.kept += count
        return job.kept == job.admitted.tasks

    def drop_of(self, job: Job) -> tuple[np.ndarray, list[Write]]:
        """Return the tasks of a job that is over, and what has to be written: it moves to those that have ended."""
        rows, first = job.last_rows, int(job.admitted.numbers[0][0])
        head = msgpack.encode(head_of(job))
        return rows, [PutLarge("ended", job.number, lambda: ended_body(job, rows)), Put("head", [job.number], [head]),
                      Drop("job", [job.number]), Drop("cancel", [job.number]),
                      DropRange("task", first, first + job.admitted.tasks), *job.history.drops()]


def _has_ended(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows["state"] == SUBMISSION_ENDED)


def _is_over(rows: np.ndarray) -> np.ndarray:
    return _has_ended(rows) & (rows["row"] == NOBODY)


def ended_body(job: Job, rows: np.ndarray) -> bytes:
    """Return a job that has ended as it is on disk; many rows are alike, and take a fiftieth when compressed."""
    data = rows.tobytes()
    if rows.size >= COMPRESSED_FROM:
        data = zlib.compress(data, 1)
    return msgpack.encode((job.stored, data, job.history.events))


def _name_of(entry: dict[str, int]) -> tuple[int, int]:
    return entry["attempt"], entry["machine"]


def _has_begun(entry: dict[str, int]) -> bool:
    """Whether an attempt has begun, or may have, that was taken, or whose end was told: not one held for its gang."""
    reason = entry["reason"]
    return not entry["held"] and (
        entry["kind"] == ENTRY_TOOK or reason != NOT_FREE)


def _decisive(rows: np.ndarray) -> np.ndarray:
    """Return the bytes of each row that have to be written when they differ."""
    return rows.view(np.uint8).reshape(rows.size, -1)[:, :DECISIVE_BYTES]


class Head(Struct, frozen=True, array_like=True):
    """What lists of jobs go by, of a job that has ended."""

    queue: str
    name: str
    submitter: str = ""


def head_of(job: Job) -> Head:
    """Return what lists of jobs go by."""
    return Head(job.spec.queue, job.spec.metadata.name, job.stored.submitter)


read_head = msgpack.Decoder(Head).decode


def read_job(body: bytes) -> tuple[StoredJob, JobSpec]:
    """Return a job as it is on disk."""
    stored = msgpack.decode(body, type=StoredJob)
    return stored, json.decode(stored.spec, type=JobSpec)
