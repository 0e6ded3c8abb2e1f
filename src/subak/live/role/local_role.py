"""The role of a local master or its standby: admits machines, keeps their names and its epoch on disk.

A machine is given a number when its worker joins for the first time, and keeps it; the worker names it to both masters
of its cluster, each of which writes it down. The active one and the standby give different numbers, so neither has to
ask the other. Everything else a local master knows comes from its workers, and is learnt again after a restart.
"""
from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import msgpack, structs

from subak.federation.megha.bounds import most_posted
from subak.federation.megha.catalog import Catalog, empty_fleet
from subak.federation.megha.ledger import ENTRY_SIZED, build_ledger, carried, names_shape
from subak.federation.megha.local_master.handlers import finish, kill
from subak.federation.megha.local_master.state import (
    ATTEMPT_HELD,
    ATTEMPT_RUNNING,
    ATTEMPT_STARTING,
    write_whole,
)
from subak.federation.megha.roles import LocalMasterTables, serve_local_master
from subak.federation.megha.tables import build_by_machine, build_local_master
from subak.federation.messages import (
    BOOT,
    CHANGE,
    CHECK,
    DRAINED,
    FIELDS,
    GANG_LOST,
    GLOBAL_MASTER,
    HANDLER,
    HOLDS,
    LAUNCH,
    LOCAL_MASTER,
    NOBODY,
    NOTED,
    PREEMPT,
    PREEMPTED_BY_OPERATOR,
    REPARTITION,
    RESTART,
    SPOKEN,
    WATCH,
    WORKER,
)
from subak.fleet.amounts import give_back, take
from subak.live.role.base import Link, Put, Serve
from subak.live.role.facts import (
    CONFIGURATION,
    IDENTITY,
    MACHINE,
    QUEUES,
    SHAPE,
    ConfigurationFact,
    Fact,
    MachineFact,
    ShapeFact,
    encoded,
    read_configuration,
    read_shape,
)
from subak.live.role.frames import (
    Answer,
    Ask,
    Batch,
    Claim,
    Frame,
    FrameError,
    Join,
    Joined,
    Leave,
    Retract,
    messages_of,
)
from subak.live.role.layout import Layout, Peer, Timing, cluster_of_local
from subak.live.role.local_role_base import LocalRoleBase, StoredMachine
from subak.live.role.removal import (
    REMOVE,
    begin_anew,
    dismissal,
    end_removed,
    is_free_again,
    let_leave,
    no_more_kinds,
    no_room,
    number_for_another,
    remove,
    was_removed,
)
from subak.live.role.store_claims import HOLDING, WRITTEN_FOR_KEY, Known
from subak.live.role.written_for import refuse_another, written_for
from subak.workload.tasks import Requests

Disk = Mapping[str, Mapping[int | str, bytes]]
PERIODIC = frozenset((CHECK, WATCH))
WITHOUT_MACHINE = frozenset(kind for kinds in SPOKEN.values() for kind in kinds
                            if HANDLER[kind] == LOCAL_MASTER and "machine" not in FIELDS[kind])
WITH_FACTS = frozenset((LAUNCH, REPARTITION, PREEMPT, HOLDS))
UNREACHABLE = "its worker is not connected"
SILENT = "the worker of its machine is not connected: what runs there ends when it is back, or was silent for a lease"


class LocalRole(LocalRoleBase):
    """See the head of the file."""

    def __init__(self, number: int, layout: Layout, timing: Timing, disk: Disk) -> None:
        super().__init__(LOCAL_MASTER, number, layout, timing, most_posted(LOCAL_MASTER, layout.sizes()))
        self.writes += refuse_another(disk, WRITTEN_FOR_KEY, written_for(LOCAL_MASTER, number, layout))
        self.cluster = cluster_of_local(number)
        self._build()
        self.machines: dict[int, StoredMachine] = {}
        self.questions: dict[int, tuple[Peer, int, int]] = {}  # own number: who asked, the number there, the machine
        self.asked = 0
        self.news: list[tuple[int, int]] = []  # facts that one global master said, for the others
        self.leaving: set[int] = set()  # machines whose workers have said, on this connection, that they leave for good
        self.free = [place for place in layout.machines_of(number) if place not in disk.get("machine", {})][::-1]
        self.claims = Known(self, disk.get("claim", {}))
        self._begin(disk)

    def _build(self) -> None:
        layout, shapes, resources = self.layout, self.layout.shapes, len(self.layout.resources)
        self.topology, self.rules = layout.topology(), self.timing.rules(layout.standby)
        self.shapes = Requests(np.zeros((resources, shapes), np.int32), np.zeros(shapes, np.int32))
        books = empty_fleet(resources, layout.machines, shapes, shapes)
        self.catalog = Catalog(self.shapes.request, self.shapes.constraint_set, self.topology.capacity, books.allowed,
                               configurations=layout.configurations_of(self.number))
        self.local = build_local_master(
            self.number, self.topology, build_by_machine(self.topology, books), layout.attempts,
            build_ledger(layout.ledger, layout.ledger))

    def use(self, services: Iterable[Serve] = ()) -> None:
        """Serve by plain Python, or by a compiled function that was made for `tables`."""
        tables = self.tables()
        given = list(services) or [lambda now, count: serve_local_master(tables, now, count)]
        self.services = {LOCAL_MASTER: given[0]}

    def tables(self) -> LocalMasterTables:
        """Return what the role works on: a list with the state at the place of its number."""
        return LocalMasterTables([self.local] * (self.number + 1), self.topology, self.rules, self.shapes, self.inbox,
                                 self.out)

    def _begin(self, disk: Disk) -> None:
        """Begin with what is on disk: for the first time, or anew, with the epoch and the machines."""
        self.use()
        for number, body in sorted(disk.get("configuration", {}).items()):
            capacity = read_configuration(body).capacity
            self.catalog.configurations.learn(capacity, int(number))
            self.catalog.learn_configuration(int(number), capacity)
            self.facts.note(Fact(CONFIGURATION, int(number), body))
        for number, body in sorted(disk.get("machine", {}).items()):
            machine = msgpack.decode(body, type=StoredMachine)
            self._know(int(number), machine)
            if not machine.gone:
                self.local.machine[int(number)]["configuration"] = self._configuration(machine)
        epoch = disk.get("epoch", {}).get(0)
        if epoch is not None:
            self.local.standing.epoch = int.from_bytes(epoch, "big")
        self.written = -1
        self.tell(BOOT if epoch is None else RESTART)

    # -- machines ------------------------------------------------------------------------------------------------------

    def _configuration(self, machine: StoredMachine) -> int:
        """Return the configuration that a machine is of; where nothing may start, that of nothing."""
        nothing = machine.cordoned or machine.joining
        capacity = tuple(0 for _ in machine.capacity) if nothing else machine.capacity
        return self._number_of(capacity)

    def _number_of(self, capacity: tuple[int, ...]) -> int:
        """Return the number of a configuration, and write down what a new one stands for."""
        number = self.catalog.configuration(capacity)
        body = encoded(ConfigurationFact(capacity))
        if self.facts.note(Fact(CONFIGURATION, number, body)):
            self.writes.append(Put("configuration", [number], [body]))
        return number

    def _know(self, number: int, machine: StoredMachine) -> None:
        """Note a machine, and what others must know of it."""
        self.machines[number] = machine
        self.catalog.describe(number, machine.attributes)
        body = encoded(MachineFact(machine.name, machine.identity, machine.attributes, machine.cordoned,
                                   machine.gone, machine.joining, machine.capacity, machine.removed))
        if self.facts.note(Fact(MACHINE, number, body, machine.version)):
            for peer in self.links:
                if peer[0] == GLOBAL_MASTER:
                    self.say(peer, [(MACHINE, number)])

    def write_machine(self, number: int, machine: StoredMachine) -> None:
        """Note a machine on disk, and let the local master know what it has."""
        machine = self._with(machine, version=machine.version + 1)
        self._know(number, machine)
        self.writes.append(Put("machine", [number], [msgpack.encode(machine)]))
        self.tell(CHANGE, machine=number, shape=NOBODY if machine.gone else self._configuration(machine))

    def _join(self, peer: Peer, join: Join) -> bool:
        """Admit a machine: one that has no number yet is given one; return whether it is in.

        Raises FrameError for one that may not join.
        """
        if was_removed(self, join):
            self.frame_to(peer, dismissal(join.name))
            return False
        problem = self._refusal(peer, join)
        if problem:
            raise FrameError(problem)
        number = join.machine
        if number < 0:
            known = [place for place, machine in self.machines.items() if machine.identity == join.identity]
            found = known[0] if known else number_for_another(self)
            if found is None:
                raise FrameError(no_room(self, join.name))
            number = found
        elif number in self.free:
            self.free.remove(number)
        for place, machine in list(self.machines.items()):
            if machine.name == join.name and machine.identity != join.identity and not machine.gone:
                self.write_machine(place, self._with(machine, gone=True))
        before = self.machines.get(number)
        if before is not None and before.identity != join.identity:
            begin_anew(self, number)
            before = structs.replace(before, cordoned=False)
        machine = StoredMachine(join.name, join.identity, join.capacity, join.attributes,
                                before is not None and before.cordoned, version=before.version if before else 0,
                                joining=not join.is_known)
        if machine != before:
            self.write_machine(number, machine)
        configuration = self._number_of(join.capacity)
        self.say(peer, [(CONFIGURATION, configuration)])
        self.frame_to(peer, Joined(number, configuration, self.local.standing.epoch))
        return True

    def _refusal(self, peer: Peer, join: Join) -> str:
        """Return why a machine may not join, or nothing."""
        others = [place for place, machine in self.machines.items()
                  if machine.name == join.name and machine.identity != join.identity and not machine.gone]
        if len(join.capacity) != len(self.layout.resources) or min(join.capacity, default=0) < 0:
            return f"machine {join.name}: has {len(join.capacity)} resources, not {len(self.layout.resources)}"
        if any((WORKER, place) in self.links for place in others):
            return f"machine {join.name}: another worker of this name is connected"
        return no_more_kinds(self, join) or self._refusal_of_number(peer, join)

    def _refusal_of_number(self, peer: Peer, join: Join) -> str:
        """Return why a machine may not join under its number, or nothing; one that has none yet may."""
        if join.machine < 0:
            return ""
        if join.machine != peer[1] or self.layout.cluster_of(join.machine) != self.cluster:
            return f"machine {join.name}: number {join.machine} is of another cluster"
        there = self.machines.get(join.machine)
        if there is not None and (there.identity != join.identity or there.gone) \
                and not is_free_again(self, join.machine):
            return f"machine {join.name}: its number is {there.name}'s"
        return ""

    @staticmethod
    def _with(machine: StoredMachine, **changes: object) -> StoredMachine:
        return msgpack.decode(msgpack.encode([
            changes.get(name, getattr(machine, name)) for name in machine.__struct_fields__]), type=StoredMachine)

    def cordon(self, number: int, on: bool) -> None:
        """Let nothing new start on a machine, or let it again."""
        machine = self.machines[number]
        if machine.cordoned != on:
            self.write_machine(number, self._with(machine, cordoned=on))

    def end_attempts(self, number: int, task: int = NOBODY) -> int:
        """End what runs on a machine, which is drained, or one task there; it waits again; return how many attempts."""
        reason = DRAINED if task == NOBODY else PREEMPTED_BY_OPERATOR
        rows, row = [], int(self.local.rows.first[number])
        while row != NOBODY:
            each = self.local.rows.row[row]
            if task in (NOBODY, int(each["task"])):
                rows.append(row)
            row = int(each["next"])
        return self.end_rows(rows, reason)

    def end_fenced(self) -> None:
        """End what global masters have begun from stores from which others have taken over."""
        for owner in self.claims.fenced:
            if self.local.standing.active:
                left = self.claims.left(owner)
                self.end_rows(left, PREEMPTED_BY_OPERATOR)
                self._give_up_held(left)

    def _give_up_held(self, rows: list[int]) -> None:
        """Give up those of attempts that wait for their gangs: who knew of these will not say that they may start."""
        held = [row for row in rows if self.local.rows.row[row]["state"] == ATTEMPT_HELD]
        if held:
            self.out.counts.posted = 0
            for row in held:
                finish(self.local, self.topology, self.rules, self.shapes, row, GANG_LOST, self.now, self.out)
            self.hand_on()

    def end_rows(self, rows: Iterable[int], reason: int) -> int:
        """End attempts that run, or begin; return how many those are."""
        states = self.local.rows.row["state"]
        running = [row for row in rows if states[row] in (ATTEMPT_STARTING, ATTEMPT_RUNNING)]
        if running:
            self.out.counts.posted = 0
            for row in running:
                kill(self.local, row, reason, self.now, self.out)
            self.hand_on()
        return len(running)

    def note_for(self, owner: int) -> None:
        """Take it that a global master, which was removed, has seen all that is known here."""
        noted = self.message(
            kind=NOTED, to=self.number, sender=owner, task=NOBODY, machine=NOBODY, epoch=self.local.standing.epoch,
            seen=self.local.ledger.counts.version, incarnation=self.local.asker[owner]["incarnation"])
        self.pending.append((LOCAL_MASTER, NOTED, noted))

    # -- what arrives --------------------------------------------------------------------------------------------------

    def on_connected(self, peer: Peer) -> None:
        """Say to a global master which queues, tokens and machines there are."""
        if peer[0] == GLOBAL_MASTER:
            tokens = [(IDENTITY, number) for number in self.facts.of_kind(IDENTITY)]
            self.say(peer, [(QUEUES, 0), *tokens, *((MACHINE, number) for number in self.machines)])

    def on_fact(self, fact: Fact) -> None:
        """Write a fact down that is news."""
        if fact.kind == SHAPE:
            self._learn_shape(fact.number, read_shape(fact.body))
        elif fact.kind in (QUEUES, IDENTITY):
            self.news.append((fact.kind, fact.number))

    def _learn_shape(self, number: int, shape: ShapeFact) -> None:
        """Let a number stand for a shape from now on; what attempts hold that name it is counted anew."""
        local, rows = self.local, self.local.rows.row[: self.local.rows.counts.rows_ever]
        named = (rows["machine"] != NOBODY) & (rows["shape"] == number) & np.isin(rows["state"], HOLDING)
        machines = rows["machine"][named].tolist()
        for machine in machines:
            give_back(local.fleet, self.shapes, number, machine)
        self.catalog.learn_shape(number, shape.request, shape.predicates)
        local.fleet.frontier[:, number] = 0  # of a search for something else
        for machine in machines:
            take(local.fleet, self.shapes, number, machine)
        if names_shape(local.ledger, number):
            write_whole(local, self.topology)

    def on_frame(self, peer: Peer, frame: Frame) -> None:
        """Take in a frame without messages."""
        if isinstance(frame, Claim) and peer[0] == GLOBAL_MASTER:
            self.claims.take(peer, frame)
        elif isinstance(frame, Join) and peer[0] == WORKER:
            link = self.links[peer]
            if link.name not in ("", frame.name):
                raise FrameError(f"machine {frame.name}: the certificate of its worker is of {link.name}")
            link.has_joined = self._join(peer, frame)
        elif isinstance(frame, Leave) and peer[0] == WORKER and peer[1] in self.machines:
            self.cordon(peer[1], True)
            self.end_attempts(peer[1])
            self.leaving.add(peer[1])
        elif isinstance(frame, Retract) and peer[0] == GLOBAL_MASTER:
            self.retract(frame.names)
        elif isinstance(frame, Ask) and peer[0] == GLOBAL_MASTER:
            self._ask(peer, frame)
        elif isinstance(frame, Answer) and peer[0] == WORKER and self._is_asked(peer, frame):
            asker, number, _ = self.questions.pop(frame.number)
            self.frame_to(asker, Answer(number, frame.body, frame.problem))
        else:
            raise FrameError(f"a frame {type(frame).__name__} that is not for a local master")

    def _is_asked(self, peer: Peer, answer: Answer) -> bool:
        """Whether a worker was asked what it answers, and not that of another machine."""
        return answer.number in self.questions and self.questions[answer.number][2] == peer[1]

    def hears(self, peer: Peer, frame: Frame) -> bool:
        """Whether a frame is taken in.

        Of a worker: once its machine was admitted. Of a global master: while it speaks from the store in use.
        """
        if peer[0] == WORKER and not isinstance(frame, Join) and not self.links[peer].has_joined:
            return False
        return peer[0] != GLOBAL_MASTER or isinstance(frame, Claim) or self.claims.hears(peer)

    def taken(self, peer: Peer, batch: Batch) -> Iterable[tuple[int, bytes]]:
        """Return the messages of a frame."""
        messages = super().taken(peer, batch)
        if peer[0] == GLOBAL_MASTER:
            self.claims.see(peer[1], messages_of(batch)["attempt"])
        return messages

    def served(self, count: int) -> int:
        """Drop, now and then, what was said of jobs on former connections."""
        if not PERIODIC.isdisjoint(self.inbox["kind"][:count].tolist()):
            self.end_fenced()
            self.retract_unneeded(GLOBAL_MASTER, self._jobs_held)
            end_removed(self)
        return 0

    def _jobs_held(self) -> set[int]:
        """Return the jobs of which attempts are known; a standby knows of none."""
        if not self.local.standing.active:
            return set()
        rows = self.local.rows.row[: self.local.rows.counts.rows_ever]
        return set((rows["task"][rows["machine"] != NOBODY] // self.layout.places).tolist())

    def _ask(self, peer: Peer, ask: Ask) -> None:
        """Answer a question about a machine, or hand it on to its worker."""
        if ask.machine not in self.machines:
            self.frame_to(peer, Answer(ask.number, problem=f"machine {ask.machine}: there is none"))
        elif ask.words in ("cordon", "uncordon", "drain", "preempt"):
            if ask.words != "preempt":
                self.cordon(ask.machine, ask.words != "uncordon")
            ended = self.end_attempts(ask.machine, ask.task if ask.words == "preempt" else NOBODY) \
                if ask.words in ("drain", "preempt") else 0
            problem = SILENT if ended and (WORKER, ask.machine) not in self.links else ""
            self.frame_to(peer, Answer(ask.number, msgpack.encode(ended), problem))
        elif ask.words.startswith(REMOVE):
            self.frame_to(peer, Answer(ask.number, problem=remove(self, ask)))
        else:
            self.asked += 1
            forwarded = Ask(self.asked, ask.words, ask.machine, ask.task, ask.attempt, ask.offset, ask.size)
            if self.frame_to((WORKER, ask.machine), forwarded):
                self.questions[self.asked] = peer, ask.number, ask.machine
            else:
                self.frame_to(peer, Answer(ask.number, problem=UNREACHABLE))

    def disconnect(self, peer: Peer) -> None:
        """Note that a peer is connected no more: what it was asked is not answered."""
        super().disconnect(peer)
        if peer[0] == WORKER:
            self.leaving.discard(peer[1])
        for own, (asker, number, machine) in list(self.questions.items()):
            if (WORKER, machine) == peer:
                del self.questions[own]
                self.frame_to(asker, Answer(number, problem=UNREACHABLE))

    def sound(self, rows: np.ndarray) -> bool:
        """Whether numbers in messages are within the tables, and machines of this cluster."""
        first = self.layout.machine_of(self.cluster)
        machines = range(first, first + self.layout.machines_each)
        columns = [rows[name].tolist() for name in ("kind", "machine", "sender", "shape", "queue", "owner", "row")]
        return super().sound(rows) and all(
            (kind in WITHOUT_MACHINE or machine in machines)
            and (kind not in SPOKEN[WORKER] or machine == sender)
            and (kind not in WITH_FACTS or min(facts) >= 0)
            for kind, machine, sender, *facts in zip(*columns, strict=True))

    # -- what is sent --------------------------------------------------------------------------------------------------

    def entries(self, first: int, last: int) -> tuple[int, int, int]:
        """Return the epoch of the ledger, and the range."""
        return self.local.ledger.counts.epoch, first, last

    def entry_bytes(self, link: Link, epoch: int, first: int, last: int) -> bytes:
        """Return entries, and let the link carry the shapes, machines and configurations that they name."""
        entries = carried(self.local.ledger, epoch, first, last)
        for shape in sorted(set(entries["shape"].tolist())):
            if shape != NOBODY:
                link.names[SHAPE, shape] = None
        sized = entries[entries["kind"] == ENTRY_SIZED]
        for machine, configuration in zip(sized["machine"].tolist(), sized["task"].tolist(), strict=True):
            if configuration != NOBODY:
                link.names[CONFIGURATION, configuration] = link.names[MACHINE, machine] = None
        return entries.tobytes()

    def settle(self) -> None:
        """Write the epoch, before anything is said in it; hand on what one global master said to the others."""
        if self.news:
            for peer in self.links:
                if peer[0] == GLOBAL_MASTER:
                    self.say(peer, self.news)  # together: there may be many tokens
            self.news.clear()
        let_leave(self)
        epoch = self.local.standing.epoch
        if epoch != self.written:
            self.written = epoch
            self.writes.append(Put("epoch", [0], [epoch.to_bytes(8, "big")]))

