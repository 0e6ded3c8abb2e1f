"""The role of a global master, with the submitter of its queues and their jobs on disk.

A job is admitted, its tasks are submitted and, where there is room, requested from local masters in one call; so one
write makes all of it durable, and an acknowledgement and the requests leave together. After a restart the tables are
made as the disk says, and the master asks every local master what it holds, as a new incarnation (rebuild.py).
"""
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import json, structs

from subak.errors import InputError, RunError
from subak.federation.megha.admission import Admission
from subak.federation.megha.bounds import most_posted
from subak.federation.megha.catalog import Catalog, empty_fleet
from subak.federation.megha.global_master.placement import Bins
from subak.federation.megha.global_master.trees import build_queue_order, shares_of
from subak.federation.megha.jobs import Jobs
from subak.federation.megha.ledger import (
    ENTRY_GAVE,
    ENTRY_GONE,
    ENTRY_SIZED,
    ENTRY_TOOK,
    bring,
    build_ledger,
    entries_between,
)
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.roles import (
    GlobalMasterTables,
    SubmitterTables,
    serve_global_master,
    serve_submitter,
)
from subak.federation.megha.tables import build_global_master, build_jobs, build_submitter
from subak.federation.megha.topology import OFF, speaker
from subak.federation.messages import (
    ARRIVE,
    CANCEL,
    GIVEN_UP,
    GLOBAL_MASTER,
    LOCAL_MASTER,
    NOBODY,
    PLACE,
    RESTART,
    SUBMITTER,
)
from subak.live.jobfile.spec import JobSpec
from subak.live.people.identity import Identity, People, encoded_identity, read_identity
from subak.live.role.base import Drop, Put, Serve, Write, within
from subak.live.role.facts import (
    CONFIGURATION,
    IDENTITY,
    JOB,
    MACHINE,
    QUEUES,
    SHAPE,
    Fact,
    ShapeFact,
    encoded,
    read_configuration,
    read_machine,
    read_shape,
)
from subak.live.role.frames import Answer, Ask, Claimed, Frame, FrameError
from subak.live.role.global_master.base import Disk, GlobalRoleBase
from subak.live.role.global_master.book import BEGUN_S, Book, Job, StoredJob, asked_of, fact_of, head_of, read_head
from subak.live.role.global_master.own_shapes import OwnShapes
from subak.live.role.global_master.queues import QueuesFact, beginning_with, read_queues
from subak.live.role.global_master.restore import restore_jobs
from subak.live.role.global_master.walks import STEP_ROWS, Walks
from subak.live.role.layout import OF_A_KIND_MAX, STANDBYS, Layout, Peer, Timing, serial_of_job
from subak.live.role.master import cut_rows
from subak.live.role.removal import settle_removal, tell_removed
from subak.live.role.store_claims import INCARNATION_KEY, LATEST_JOB_KEY, STOPPED_KEY, WRITTEN_FOR_KEY, Claims
from subak.live.role.written_for import refuse_another, refuse_removed, written_for
from subak.queues.tree import Queue, TreeFile
from subak.workload.tasks import Requests

ENDED_MAX = 100_000  # jobs that have ended and are kept, the latest
LASTING = ("cordon", "uncordon", "drain")  # questions that change what both local masters of a cluster keep
UNANSWERED = 0  # number of a question whose answer nobody waits for
GANG_MAX = 4096  # tasks that start together
PRUNE_S = 3_600.0  # between two looks for tokens to forget


class Acknowledged(NamedTuple):
    """An effect: the job is on disk."""

    job: int


class Answered(NamedTuple):
    """An effect: the question of this number was answered."""

    answer: Answer


class Ended(NamedTuple):
    """An effect: all tasks of the job have ended, and are on disk as ON_DISK[task]."""

    job: Job
    rows: np.ndarray


class NoNumbersError(RunError):
    """No local master has said yet that further jobs may be given numbers."""


class Changed(NamedTuple):
    """An effect: something of these jobs is no longer as it was."""

    jobs: tuple[int, ...]


class GlobalRole(GlobalRoleBase):
    """See the head of the file."""

    def __init__(
        self, number: int, layout: Layout, timing: Timing, queues: QueuesFact, disk: Disk, name: str, life: str
    ) -> None:
        """*queues*: those of the federation's file, where the disk has no later ones; *life*: see `Claims`."""
        spare = max(most_posted(role, layout.sizes(GANG_MAX)) for role in (SUBMITTER, GLOBAL_MASTER))
        super().__init__(GLOBAL_MASTER, number, layout, timing, spare)
        self.name, self.disk = name, disk
        self.writes += refuse_another(disk, WRITTEN_FOR_KEY, written_for(GLOBAL_MASTER, number, layout))
        self.clock = 0.0  # Unix time, of the call that is being served
        self.compiled: Callable[[GlobalRole], list[Serve]] | None = None  # who makes compiled functions for the tables
        self._build()
        self.asked: list[int] = []  # jobs to acknowledge
        self.kept: dict[str, int] = {str(client): int.from_bytes(body, "big")
                                     for client, body in disk.get("client", {}).items()}  # jobs by client's name
        self.client_of = {number: client for client, number in self.kept.items()}
        self.ended = deque(sorted(int(number) for number in disk.get("ended", {})))  # jobs that are kept
        self.heads = {int(number): read_head(body) for number, body in disk.get("head", {}).items()}
        self.touched: set[int] = set()  # tasks
        self.held_back: list[bytes] = []  # messages by which tasks are placed
        self.walks = Walks()
        self.brought: list[tuple[int, int, int, np.ndarray]] = []  # entries since: of whom, epoch, from which on
        self.applied = [(-1, 0)] * layout.clusters  # epoch, and how much of its ledger
        before = disk.get("queues", {}).get(0)
        self.queues = queues
        self.people = People()
        self.pruned = 0.0  # Unix time, of the last look for tokens to forget
        for body in disk.get("identity", {}).values():
            self._take_identity(read_identity(body))
        self._take_queues(beginning_with(before, queues))
        self._begin(life)

    def _build(self) -> None:
        """Make the tables: empty, with room."""
        layout, rooms, resources = self.layout, self.layout.rooms, len(self.layout.resources)
        shapes = layout.shapes
        self.topology, self.rules = layout.topology(), self.timing.rules(layout.standby)
        self.shapes = Requests(np.zeros((resources, shapes), np.int32), np.zeros(shapes, np.int32))
        view = empty_fleet(resources, layout.machines, shapes, shapes)
        self.catalog = Catalog(self.shapes.request, self.shapes.constraint_set, self.topology.capacity, view.allowed)
        places = layout.places
        submitter = build_submitter(0, places, places, *self.shapes, np.inf)._replace(number=self.number)
        lanes, nothing = 4 * rooms.shapes, np.zeros((0, layout.machines), np.int16)
        self.tasks: OpenTasks = submitter.tasks
        self.submitter = submitter
        self.jobs: Jobs = build_jobs(places, places, places, places)
        held = layout.clusters * layout.attempts if self.rules.preemption != OFF else 0
        self.master = build_global_master(
            submitter, self.topology, view, own=np.zeros(0, np.int32), lanes=lanes,
            lane_span=np.zeros((rooms.queues, 2), np.int32), lane_places=8 * lanes,
            queue_order=build_queue_order("round-robin", [], None, layout.resources),
            bins=Bins(nothing, np.zeros(0, np.int32), nothing), held=held, counted=resources)
        nobodys = build_ledger(1, 1)
        self.ledgers = [build_ledger(layout.ledger, layout.ledger) if number in layout.locals else nobodys
                        for number in range(STANDBYS + layout.clusters)]
        self.admission = Admission(self.jobs, self.master, OF_A_KIND_MAX)
        self.book = Book(self.jobs, self.master, submitter)

    def use(self, services: Iterable[Serve] = ()) -> None:
        """Serve by plain Python, or by compiled functions that were made for the tables of `tables`."""
        submitters, masters = self.tables()
        given = list(services) or [lambda now, count: serve_submitter(submitters, now, count),
                                   lambda now, count: serve_global_master(masters, now, count)]
        self.services = dict(zip((SUBMITTER, GLOBAL_MASTER), given, strict=True))

    def tables(self) -> tuple[SubmitterTables, GlobalMasterTables]:
        """Return what the roles that are here work on: lists have one state at the place of its number."""
        count = self.number + 1  # states of others are never looked up
        return (
            SubmitterTables([self.submitter] * count, self.jobs, self.inbox, self.out),
            GlobalMasterTables([self.master] * count, [self.tasks] * count, self.ledgers, self.topology, self.rules,
                               self.inbox, self.out))

    def _begin(self, life: str) -> None:
        """Begin a new incarnation with what is on disk."""
        numbers = self.disk.get("incarnation", {})
        refuse_removed(self.disk, self.queues, self.layout)
        incarnation = int.from_bytes(numbers.get(INCARNATION_KEY, b""), "big")
        self.admission.latest = max(self.admission.latest, int.from_bytes(numbers.get(LATEST_JOB_KEY, b""), "big"))
        self.use()
        self.master.counts.incarnation = incarnation  # `restart` makes it one more
        self.own_shapes = OwnShapes(self, incarnation + 1)
        self.own_shapes.restore()
        self.admission.latest = max([self.admission.latest, *self.ended])  # no number is given twice
        restore_jobs(self)
        self.book.stopped = int.from_bytes(numbers.get(STOPPED_KEY, b""), "big") / 1e3
        self.claims = Claims(self, life)
        self.writes.append(Put("incarnation", [INCARNATION_KEY], [(incarnation + 1).to_bytes(8, "big")]))
        if STOPPED_KEY in numbers:  # it may be killed next time
            self.writes.append(Drop("incarnation", [STOPPED_KEY]))
        self.tell(RESTART)

    # -- what people ask for -------------------------------------------------------------------------------------------

    def job_name(self, number: int) -> str:
        """Return how people call a job."""
        return f"{self.name}-{serial_of_job(number)}"

    def submit(self, spec: JobSpec, client: str, clock: float, submitter: str = "") -> int:
        """Admit a job, and return its number; `Acknowledged` follows when it is on disk.

        Raises InputError for a job that cannot be taken, NoNumbersError while none can be.
        *clock*: Unix time. *submitter*: who submits it. A job of the same *client* name is returned in its place.
        """
        if client and client in self.kept:
            self.asked.append(self.kept[client])
            return self.kept[client]
        queue = self.queues.number(spec.queue)
        if self.queues.queues[queue].owner != self.number:
            raise InputError(f"queue: {spec.queue!r} is another global master's")
        if not self.claims.left:
            raise NoNumbersError(self.claims.problem or "no local master has confirmed that this is the store in use")
        for number, stage in enumerate(spec.stages):
            if stage.gang and stage.tasks > GANG_MAX:
                raise InputError(f"stages[{number}].tasks: a gang may have {GANG_MAX:,} at most, not {stage.tasks:,}")
        shapes = self.own_shapes.numbers(spec.stages)
        admitted = self.admission.admit(asked_of(spec, queue, shapes, clock))
        stored = StoredJob(json.encode(spec), client, queue, shapes, admitted.places, clock, submitter)
        job = Job(admitted.number, stored, spec, admitted)
        self.open_job(job)
        self.writes.append(self.book.write_of(job))
        self.writes.append(Put("incarnation", [LATEST_JOB_KEY], [job.number.to_bytes(8, "big")]))
        self.claims.reserve()
        if client:
            self.kept[client], self.client_of[job.number] = job.number, client
            self.writes.append(Put("client", [client], [job.number.to_bytes(8, "big")]))
        self.asked.append(job.number)
        numbers = job.numbers
        self.lay(numbers[:STEP_ROWS])
        self.walks.add(job.number, numbers[STEP_ROWS:], self.lay, STEP_ROWS)
        self.walks.add(job.number, numbers, self.arrive)
        return job.number

    def lay(self, numbers: np.ndarray) -> None:
        """Lay out the next tasks of a job in the tables: these."""
        job = self.book.of_number[self.layout.job_of(int(numbers[0]))]
        self.admission.lay(job.admitted, job.laid, job.laid + numbers.size)
        self.book.lay(job, numbers.size)

    def arrive(self, numbers: np.ndarray) -> None:
        """Let tasks arrive."""
        self._hand_all(ARRIVE, numbers)

    def cancel_tasks(self, numbers: np.ndarray) -> None:
        """Cancel tasks."""
        self._hand_all(CANCEL, numbers)

    def _hand_all(self, kind: int, numbers: np.ndarray) -> None:
        """Hand the submitter a message about each of these tasks."""
        rows = np.repeat(self.out.blank, numbers.size)
        rows["kind"], rows["to"], rows["sender"], rows["task"], rows["machine"] = (
            kind, self.number, self.number, numbers, NOBODY)
        self.pending.extend((SUBMITTER, kind, row) for row in cut_rows(rows.tobytes()))

    def cancel(self, job: int, index: int | None = None) -> None:
        """Cancel a job that is open, or one task of it; that the whole is cancelled is on disk before its tasks are."""
        numbers = self.book.of_number[job].numbers
        if index is None:
            self.writes.append(Put("cancel", [job], [b""]))
        self.walks.add(job, numbers if index is None else numbers[index : index + 1], self.cancel_tasks)

    def open_job(self, job: Job) -> None:
        """Note a job, and what those who run it must know."""
        self.book.add(job)
        self.own_shapes.use(job.stored.shapes)
        fact = fact_of(self.job_name(job.number), job.spec, job.admitted.places, job.stored.submitter)
        self.learn(Fact(JOB, job.number, encoded(fact)))

    # -- queues --------------------------------------------------------------------------------------------------------

    def apply(self, queues: QueuesFact) -> None:
        """Let the queues be these from now on, for all global masters."""
        self.learn(Fact(QUEUES, 0, encoded(queues), queues.version))
        for peer in self.links:
            self.say(peer, [(QUEUES, 0)])

    def note_identity(self, identity: Identity) -> None:
        """Let a token stand as it does from now on, at all global masters."""
        self.learn(Fact(IDENTITY, identity.number, encoded_identity(identity), identity.version))
        for peer in self.links:
            self.say(peer, [(IDENTITY, identity.number)])

    def _take_identity(self, identity: Identity) -> None:
        self.facts.note(Fact(IDENTITY, identity.number, encoded_identity(identity), identity.version))
        self.people.note(identity)

    def _hear_identity(self, fact: Fact) -> None:
        """Take in a token of which another master says how it stands; one that was forgotten stays so."""
        identity = read_identity(fact.body)
        if identity.is_over(self.clock):
            self.facts.forget(IDENTITY, fact.number)
            return
        self.people.note(identity)
        self.writes.append(Put("identity", [fact.number], [fact.body]))

    def _prune_people(self) -> None:
        """Forget tokens that expired, or were revoked, long ago."""
        if self.clock < self.pruned + PRUNE_S:
            return
        self.pruned = self.clock
        over = self.people.over(self.clock)
        for identity in over:
            self.people.forget(identity)
        if over:
            self.writes.append(Drop("identity", [identity.number for identity in over]))
            self.retract((IDENTITY, identity.number) for identity in over)

    def _take_queues(self, queues: QueuesFact) -> None:
        self.queues = queues
        self.facts.note(Fact(QUEUES, 0, encoded(queues), queues.version))
        self.writes.append(Put("queues", [0], [encoded(queues)]))
        table = self.topology.queue
        names = [queue.path or f"removed {number}" for number, queue in enumerate(queues.queues)]
        listed = [Queue(name=name, weight=queue.weight) for name, queue in zip(names, queues.queues, strict=True)]
        listed += [Queue(name=queue.path, weight=queue.weight) for queue in queues.inner]
        order = build_queue_order(queues.order, names, TreeFile(queue=listed), self.layout.resources)
        table["share"][: len(names)] = shares_of(names, TreeFile(queue=listed),
                                                 [bool(queue.path) for queue in queues.queues])
        table["owner"][: len(names)] = [queue.owner for queue in queues.queues]
        own = np.full(self.layout.rooms.queues, NOBODY, np.int32)
        own[: self.master.own.size] = self.master.own
        self.master = self.master._replace(queue_order=order, own=own)
        self.admission.master = self.book.master = self.master
        for number, queue in enumerate(queues.queues):
            if queue.owner == self.number and queue.path:
                self.admission.add_queue(number)
        self._leave_removed()
        if self.services:
            self.use(self.compiled(self) if self.compiled is not None else ())

    def _leave_removed(self) -> None:
        """Let queues that were removed, and have no tasks any more, have no turn."""
        for number, queue in enumerate(self.queues.queues):
            if not queue.path and number in self.master.own:
                try:
                    self.admission.remove_queue(number)
                except InputError:  # not empty yet: looked at again with every job that ends
                    continue

    # -- what arrives --------------------------------------------------------------------------------------------------

    def on_connected(self, peer: Peer) -> None:
        """Say from which store this is, which queues and tokens there are: others hear of them by a local master."""
        if peer[0] == LOCAL_MASTER:
            self.frame_to(peer, self.claims.to(peer[1]))
            self.say(peer, [(SHAPE, number) for number in self.own_shapes.shape])
        self.say(peer, [(QUEUES, 0), *((IDENTITY, number) for number in self.facts.of_kind(IDENTITY))])
        if peer[0] == LOCAL_MASTER:
            tell_removed(self, peer[1])

    def on_fact(self, fact: Fact) -> None:
        """Write a fact down that is news."""
        if fact.kind == SHAPE:
            self._learn_shape(fact.number, read_shape(fact.body))
        elif fact.kind == CONFIGURATION:
            self.catalog.learn_configuration(fact.number, read_configuration(fact.body).capacity)
        elif fact.kind == MACHINE:
            machine = read_machine(fact.body)
            self.catalog.describe(fact.number, machine.attributes)
            if machine.removed:
                settle_removal(self, fact.number)
        elif fact.kind == QUEUES:
            self._take_queues(read_queues(fact.body))
        elif fact.kind == IDENTITY:
            self._hear_identity(fact)

    def _learn_shape(self, number: int, shape: ShapeFact) -> None:
        if number in self.layout.shapes_of(self.number) and self.own_shapes.shape.get(number) != shape:
            self.own_shapes.hear(number, shape)
            if self.own_shapes.shape[number] != shape:
                return  # that it stands for something else was said
        self.catalog.learn_shape(number, shape.request, shape.predicates)
        self.master.fleet.frontier[:, number] = 0  # of a search for something else

    def on_frame(self, peer: Peer, frame: Frame) -> None:
        """Take in a frame without messages."""
        if isinstance(frame, Answer) and peer[0] == LOCAL_MASTER:
            self.effects.append(Answered(frame))
        elif isinstance(frame, Claimed) and peer[0] == LOCAL_MASTER:
            self.claims.answered(peer, frame)
        else:
            raise FrameError(f"a frame {type(frame).__name__} that is not for a global master")

    def speakers(self) -> set[int]:
        """Return the local masters that speak for their clusters, as far as is known."""
        epochs = self.master.cluster["epoch"].tolist()
        return {speaker(self.topology, cluster, epoch) for cluster, epoch in enumerate(epochs)}

    def ask(self, ask: Ask) -> bool:
        """Ask the local master that speaks for a machine's cluster; return whether it is connected.

        What is to hold beyond a failover is said to its partner too, whose answer nobody waits for.
        """
        cluster = self.layout.cluster_of(ask.machine)
        local = speaker(self.topology, cluster, int(self.master.cluster[cluster]["epoch"]))
        if ask.words in LASTING:
            for partner in self.layout.masters_of(cluster):
                if partner != local:
                    self.frame_to((LOCAL_MASTER, partner), structs.replace(ask, number=UNANSWERED))
        return self.frame_to((LOCAL_MASTER, local), ask)

    def on_entries(self, peer: Peer, epoch: int, first: int, entries: np.ndarray) -> None:
        """Note entries of a local master's ledger."""
        kind = entries["kind"]
        amounts = {name: range(self.bounds[name].stop) for name in ("shape", "queue")}
        inside = (
            within(entries, {name: self.bounds[name] for name in ("row", "owner", "shape", "queue", "reason")})
            and within(entries, {"machine": range(self.layout.machines)})
            and within(entries[(kind == ENTRY_TOOK) | (kind == ENTRY_GAVE)], amounts)
            and within(entries[kind == ENTRY_SIZED], {"task": range(NOBODY, self.topology.capacity.shape[1])}))
        if peer[0] != LOCAL_MASTER or not inside:
            raise FrameError("an entry names what is not there")
        bring(self.ledgers[peer[1]], epoch, first, entries)
        self.brought.append((peer[1], epoch, first, entries))

    # -- what follows --------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Do a part of what is done to all tasks of a job; place what was held back, when it may be."""
        self.walks.step()
        if self.held_back and not self.claims.holds(self.now):
            self.pending.extend((GLOBAL_MASTER, PLACE, message) for message in self.held_back)
            self.held_back.clear()

    def due(self) -> float:
        """Return when `receive` is to be called at the latest: at once, while a walk is under way."""
        if self.walks or (self.held_back and not self.claims.holds(self.now)):
            return self.now
        is_held = self.held_back and self.now < self.claims.until
        return min(super().due(), self.claims.until) if is_held else super().due()

    def touch(self, numbers: np.ndarray) -> None:
        """Look at tasks again, and write what has changed of them."""
        self.touched.update(numbers.tolist())

    def served(self, count: int) -> int:
        """Note which tasks messages were about, and take turns."""
        self.touched.update(self.inbox["task"][:count].tolist())
        return 0 if self.claims.holds(self.now) else self.take_turns(GLOBAL_MASTER)

    def _owe(self, kind: int, message: bytes, delay: float) -> None:
        if kind == PLACE and self.claims.holds(self.now):
            self.held_back.append(message)
        else:
            super()._owe(kind, message, delay)

    def hand_on(self) -> None:
        """Note which tasks messages are about that are to be sent."""
        self.touched.update(self.out.row["task"][: self.out.counts.posted].tolist())
        super().hand_on()

    def _applied(self) -> list[int]:
        """Return the own tasks that entries were about which were applied since the last call."""
        found: list[int] = []
        for cluster, (epoch, seen) in enumerate(self.applied):
            row = self.master.cluster[cluster]
            now = int(row["epoch"]), int(row["seen"])
            if now == (epoch, seen):
                continue
            self.applied[cluster] = now
            ledger = self.ledgers[speaker(self.topology, cluster, now[0])]
            since = seen if epoch == now[0] and now[1] >= seen else 0
            entries = entries_between(ledger, max(since, now[1] - ledger.entry.size, 0), now[1])
            own = entries[entries["owner"] == self.number]
            found += own["task"].tolist()
            if epoch not in (NOBODY, now[0]):
                found += self._note_last_of(cluster, epoch, seen)
            self.book.note_entries(own[(own["kind"] == ENTRY_GAVE) | (own["kind"] == ENTRY_GONE)], self.clock)
        self.brought.clear()
        return found

    def _note_last_of(self, cluster: int, epoch: int, seen: int) -> list[int]:
        """Note what a local master that has been replaced told of attempts since the last call; return their tasks."""
        found: list[int] = []
        former = speaker(self.topology, cluster, epoch)
        for local, told_in, first, entries in self.brought:
            if (local, told_in) == (former, epoch):
                news = entries[max(seen - first, 0) :]
                is_known = np.isin(news["kind"], (ENTRY_TOOK, ENTRY_GAVE, ENTRY_GONE))
                news = news[is_known & (news["owner"] == self.number)]
                found += news["task"].tolist()
                self.book.note_entries(news, self.clock)
        return found

    def on_effect(self, kind: int, row: np.void) -> None:
        """Note that a task was given up. Stages that depend on its own may be given up too: look at them now."""
        if kind != GIVEN_UP:
            return
        task = int(row["task"])
        job = self.book.of_number.get(self.layout.job_of(task))
        if job is None:
            return
        self.touched.add(task)
        given_up, first = self.jobs.given_up, job.admitted.stages
        stage = int(self.jobs.stages.of_task[task & self.jobs.mask]) - first
        if stage not in job.failed:
            job.failed.add(stage)
            for number, numbers in enumerate(job.admitted.numbers):
                if given_up[first + number] and number not in job.cancelled:
                    job.cancelled.add(number)
                    self.walks.add(job.number, numbers, self.touch)

    def settle(self) -> None:
        """Write what has changed of tasks; let jobs go that are over."""
        touched, self.touched = self.touched.union(self._applied()), set()
        tasks = np.array(sorted(task for task in touched if task >= 0), np.int64)
        places = tasks & self.jobs.mask
        places = self._with_gangs(places[self.jobs.number[places] == tasks])
        begun = self.book.begun_before(self.clock - BEGUN_S)
        if places.size or begun.size:
            self.writes += self.book.writes(places, self.clock, begun)
        changed = {self.layout.job_of(int(number)) for number in self.jobs.number[places]}
        for number in sorted(changed):
            job = self.book.of_number[number]
            job.version += 1
            if job.is_over and not job.kept:
                numbers = job.numbers
                self.keep(numbers[:STEP_ROWS])
                self.walks.add(number, numbers[STEP_ROWS:], self.keep, STEP_ROWS)
        self._prune_people()
        self.claims.note_requests()
        self.claims.catch_up()
        if changed:
            self.effects.append(Changed(tuple(sorted(changed))))
        self.effects += [Acknowledged(job) for job in self.asked]
        self.asked = []

    def last_writes(self, clock: float) -> list[Write]:
        """Return what has to be written when this master is stopped at *clock*, and gets no further call."""
        begun = self.book.begun_before(clock)
        nobody = np.zeros(0, np.int64)
        return [*(self.book.writes(nobody, clock, begun) if begun.size else ()),
                Put("incarnation", [STOPPED_KEY], [round(1e3 * clock).to_bytes(8, "big")])]

    def _with_gangs(self, places: np.ndarray) -> np.ndarray:
        """Return places with those of gangs that are over, whose rows were all given back with the last of them."""
        jobs = self.jobs
        gangs = np.unique(jobs.gang[places])
        over = gangs[(gangs != NOBODY) & (jobs.gang_left[gangs] == 0) & (jobs.gang_row[gangs] == NOBODY)]
        if not over.size:
            return places
        stages = np.unique(jobs.stages.of_task[places[np.isin(jobs.gang[places], over)]])
        spans = [np.arange(*jobs.stages.task_first[stage : stage + 2]) for stage in stages]
        return np.union1d(places, np.concatenate(spans))

    def keep(self, numbers: np.ndarray) -> None:
        """Take the last rows of the next tasks of a job that is over, these, and let it go when those are all."""
        job = self.book.of_number[self.layout.job_of(int(numbers[0]))]
        if self.book.keep(job, numbers.size):
            self._close(job)

    def _close(self, job: Job) -> None:
        """Let a job go of which all tasks have ended."""
        rows, writes = self.book.drop_of(job)
        self.writes += writes
        self.effects.append(Ended(job, rows))
        self.ended.append(job.number)
        self.heads[job.number] = head_of(job)
        if len(self.ended) > ENDED_MAX:
            self._drop_ended(self.ended.popleft())
        self.book.remove(job)
        self.own_shapes.leave(job.stored.shapes)
        self.walks.forget(job.number)
        self.admission.forget(job.admitted)
        self.retract([(JOB, job.number)])
        self._leave_removed()

    def forget_ended(self, numbers: Sequence[int]) -> None:
        """Forget jobs that have ended."""
        gone = set(numbers)
        self.ended = deque(number for number in self.ended if number not in gone)
        for number in numbers:
            self._drop_ended(number)

    def _drop_ended(self, number: int) -> None:
        """Forget a job that ended long ago, and what whoever submitted it called it."""
        self.writes += [Drop("ended", [number]), Drop("head", [number])]
        self.heads.pop(number, None)
        client = self.client_of.pop(number, "")
        if client:
            self.kept.pop(client, None)
            self.writes.append(Drop("client", [client]))
