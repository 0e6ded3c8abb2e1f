"""The moves of a role by number: its states, messages, deliveries and answers.

Most messages are delivered in one way. Where a handler looks at the clock, each answer that it can get is a way of its
own: a TICK finds the lease of its worker over or not, a CHECK declares nobody lost, or one machine of which nothing was
heard for a lease, and a WATCH takes over. What the passing of time does to others happens in the same step: when a
worker finds its lease over, the local masters have heard nothing of it for a lease; when a standby takes over, it has
not confirmed the other for a third of one. docs/decisions/0023 says why this leaves nothing out. An attempt that comes
to its end has finished, or failed.
"""
from dataclasses import dataclass, field

import numpy as np

from subak.federation.messages import (
    ARRIVE,
    BEAT,
    BEGIN,
    BOOT,
    CANCEL,
    CHECK,
    EXECUTOR,
    EXITED,
    GLOBAL_MASTER,
    HALT,
    HANDLER,
    HAS_FAILED,
    LEASE,
    LOCAL_MASTER,
    MESSAGE,
    NOBODY,
    PASSED_OVER,
    POWER_OFF,
    PULSE,
    READY,
    RESTART,
    RESUBMIT,
    RETRY,
    SUBMITTER,
    TICK,
    WAKE,
    WATCH,
    WORKER,
)
from subak.simulator.exhaustive.graph import (
    BOOKS,
    CRASHES_LEFT,
    CUT,
    DISABLED,
    DISAGREES,
    FAILURES_LEFT,
    FINE,
    LEASES_LEFT,
    NEEDS_DOWN,
    NEEDS_NOTHING,
    NEEDS_QUIET,
    NEEDS_RIVAL,
    NEEDS_SPEAKER,
    NONE_THERE,
    OVERFULL,
    STRAY,
    TAKEOVERS_LEFT,
)
from subak.simulator.exhaustive.roles import canonical
from subak.simulator.exhaustive.roles.actor import Actor
from subak.simulator.exhaustive.roles.canonical import LATE, NOW, bits_of, canonical_message
from subak.simulator.exhaustive.roles.configurations import Configuration
from subak.simulator.federated.simulate import Opened
from subak.simulator.torture.message_text import role_name

(DELIVER, FIND_NOBODY_LOST, FIND_LOST, FIND_DEAD, FIND_DESERTED, TAKE_OVER, LEASE_EXPIRES, DECONFIRM, CRASHED,
 RETURNED, FAIL) = range(11)
PERIODIC = (RESUBMIT, RETRY, PASSED_OVER, WAKE, BEAT, CHECK, TICK)  # timers that ring again and again
UNHEARD = (READY, LEASE)  # not followed: an effect that only counts, and a message that only sets a time


@dataclass(frozen=True)
class Variant:
    """One way in which something happens to a role."""

    slot: int
    what: int = DELIVER
    message: int = NONE_THERE
    now: float = NOW
    machine: int = NOBODY
    cost: int = NONE_THERE  # a budget
    needs: int = NEEDS_NOTHING
    needs_slot: int = 0
    repeats: bool = False  # whether it is a timer that waits while what it would send is still under way
    lapse: int = NONE_THERE  # slot of a worker that is declared lost
    also: tuple[tuple[int, int], ...] = ()  # (slot, variant)


@dataclass(frozen=True)
class Result:
    """What comes of it."""

    state: int  # DISABLED where it cannot happen, CUT where a number would go beyond its bound
    answers: tuple[int, ...] = ()
    halted: tuple[int, ...] = ()  # timers of the executor
    begins: int = 0  # tasks, a bit each
    halts: int = 0
    ends: int = 0
    wrong: int = FINE
    is_void: bool = False


@dataclass
class Message:
    """A message in its canonical form, and what it carries of a ledger."""

    row: bytes
    entries: bytes
    slot: int
    kind: int
    group: int  # the same for all of a kind from one role to another
    variants: list[int] = field(default_factory=list)

    @property
    def fields(self) -> np.void:
        """The message as a row."""
        return np.frombuffer(self.row, MESSAGE)[0]


class Moves:
    """The roles of a configuration, and all that was found out about them; *waits*: whether timers may have to wait."""

    def __init__(self, opened: Opened, configuration: Configuration, compiled: bool, waits: bool) -> None:
        self.opened, self.configuration, self.waits = opened, configuration, waits
        sides = 2 if configuration.standby else 1
        self.machines = np.flatnonzero(opened.roles.topology.machine["configuration"] >= 0).tolist()
        self.who = [*((GLOBAL_MASTER, number) for number in range(configuration.global_masters)),
                    *((LOCAL_MASTER, number) for number in range(sides)),
                    *((WORKER, machine) for machine in self.machines)]
        self.slot = {who: slot for slot, who in enumerate(self.who)}
        self.slot |= {(SUBMITTER, number): self.slot[GLOBAL_MASTER, number]  # they share a process, and its disk
                      for number in range(configuration.global_masters)}
        self.actors = [Actor(opened, role, number, compiled) for role, number in self.who]
        self.local_slots = [slot for slot, (role, _) in enumerate(self.who) if role == LOCAL_MASTER]
        tasks = opened.simulation.tasks
        self.request = tasks.request[:, tasks.shape]
        self.capacity = opened.roles.topology.capacity[:, opened.roles.topology.machine["configuration"]]
        self.messages: list[Message] = []
        self.message_ids: dict[tuple[bytes, bytes], int] = {}
        self.groups: dict[tuple[int, int, int], int] = {}
        self.variants: list[Variant] = []
        self.variant_ids: dict[Variant, int] = {}
        self.states: list[tuple[int, bytes]] = []  # slot and key
        self.state_ids: list[dict[bytes, int]] = [{} for _ in self.who]
        self.knows: list[int] = []
        self.over: list[int] = []  # of each state, the tasks (bits) that have ended, and whose rows are free
        self.speaks: list[bool] = []
        self.epoch: list[int] = []
        self.wrong: list[int] = []
        self.calls = 0
        self.does_nothing: dict[tuple[int, int], bool] = {}  # role state and variant
        self.crash = [self.crash_variant(slot) for slot in range(len(self.who))]
        self.come_back = [
            self.variant(Variant(slot, RETURNED)) if self.crash[slot] != NONE_THERE and configuration.returns
            else NONE_THERE for slot in range(len(self.who))]

    # -- numbers ------------------------------------------------------------------------------------------------------

    def name(self, slot: int) -> str:
        """Return the name of a role: "worker 0"."""
        role, number = self.who[slot]
        return role_name(self.opened, role, number)

    def receiver(self, message: int) -> str:
        """Return the name of whom a message is for."""
        row = self.messages[message].fields
        return self.role_name(int(HANDLER[row["kind"]]), int(row["to"]))

    def role_name(self, role: int, number: int) -> str:
        """Return the name of a role; submitters are numbered where there are several."""
        name = role_name(self.opened, role, number)
        return f"{name} {number}" if role == SUBMITTER and self.configuration.global_masters > 1 else name

    def crash_variant(self, slot: int) -> int:
        """Return the variant in which a role crashes, NONE_THERE where it may not."""
        if self.name(slot) not in self.configuration.crashing:
            return NONE_THERE
        return self.variant(Variant(slot, CRASHED, cost=CRASHES_LEFT))

    def variant(self, variant: Variant) -> int:
        """Return the number of a variant."""
        number = self.variant_ids.setdefault(variant, len(self.variants))
        if number == len(self.variants):
            self.variants.append(variant)
        return number

    def message(self, row: bytes, entries: bytes) -> int:
        """Return the number of a message."""
        number = self.message_ids.setdefault((row, entries), len(self.messages))
        if number == len(self.messages):
            fields = np.frombuffer(row, MESSAGE)[0]
            kind = int(fields["kind"])
            group = self.groups.setdefault((kind, int(fields["to"]), int(fields["sender"])), len(self.groups))
            message = Message(row, entries, self.slot[int(HANDLER[kind]), int(fields["to"])], kind, group)
            self.messages.append(message)
            message.variants += [self.variant(variant) for variant in self.ways(number, message)]
        return number

    def ways(self, number: int, message: Message) -> list[Variant]:
        """Return the ways in which a message can be delivered; by the first it is told whether a timer is void."""
        slot, machine = message.slot, int(message.fields["machine"])
        patient = self.waits and message.kind in PERIODIC
        if message.kind == TICK:
            expire = tuple((other, self.variant(Variant(other, LEASE_EXPIRES, machine=machine)))
                           for other in self.local_slots)
            return [Variant(slot, message=number, repeats=patient),
                    Variant(slot, message=number, now=LATE, cost=LEASES_LEFT, also=expire)]
        if message.kind == EXITED and self.configuration.failures:
            return [Variant(slot, message=number), Variant(slot, FAIL, number, cost=FAILURES_LEFT)]
        if message.kind == CHECK:
            lost = [Variant(slot, what, number, machine=one, lapse=self.slot[WORKER, one], needs=needs,
                            needs_slot=self.slot[WORKER, one])
                    for one in self.machines for what, needs in ((FIND_LOST, NEEDS_NOTHING), (FIND_DEAD, NEEDS_DOWN))]
            deserted = [Variant(slot, FIND_DESERTED, number, machine=one, needs=NEEDS_RIVAL,
                                needs_slot=self.slot[WORKER, one]) for one in self.machines] if (
                self.configuration.standby) else []
            return [Variant(slot, FIND_NOBODY_LOST, number, repeats=patient), *lost, *deserted]
        if message.kind == WATCH:
            other = next(one for one in self.local_slots if one != slot)
            also = ((other, self.variant(Variant(other, DECONFIRM))),)
            return [Variant(slot, TAKE_OVER, number, needs=NEEDS_QUIET, needs_slot=other, also=also),
                    Variant(slot, TAKE_OVER, number, cost=TAKEOVERS_LEFT, needs=NEEDS_SPEAKER, needs_slot=other,
                            also=also)]
        return [Variant(slot, message=number, repeats=patient)]

    def state(self, slot: int) -> int:
        """Return the number of the state that a role is in."""
        actor = self.actors[slot]
        key = actor.key()
        number = self.state_ids[slot].setdefault(key, len(self.states))
        if number == len(self.states):
            self.states.append((slot, key))
            self.knows.append(canonical.knows_ended(actor.state))
            self.over.append(canonical.closed(actor.state))
            self.speaks.append(canonical.speaks(actor.state))
            self.epoch.append(canonical.epoch_of(actor.state))
            self.wrong.append(self.what_is_wrong(actor))
        return number

    def what_is_wrong(self, actor: Actor) -> int:
        """Return what is wrong with the state of a role."""
        if actor.role == LOCAL_MASTER and canonical.has_wrong_books(actor.state, self.machines, self.request):
            return BOOKS
        if actor.role == WORKER and canonical.has_too_much(
            actor.state, actor.number, self.request, self.capacity[:, actor.number]
        ):
            return OVERFULL
        return FINE

    # -- what comes of it ---------------------------------------------------------------------------------------------

    def begin(self) -> tuple[list[int], list[int]]:
        """Return the states of all roles, and what is under way when tasks arrive."""
        owner = self.opened.roles.jobs.asked["owner"].tolist()
        flight = [self.message(self.told(ARRIVE, owner[task], task), b"") for task in range(self.configuration.tasks)]
        flight += [self.message(self.told(CANCEL, owner[task], task), b"")
                   for task in range(self.configuration.cancelled)]
        states = []
        for slot, (role, number) in enumerate(self.who):
            actor = self.actors[slot]
            if role in (LOCAL_MASTER, WORKER):
                flight += self.heard(actor.tell(self.told(BOOT, number, NOBODY), b"", NOW))
            states.append(self.state(slot))
        return states, flight

    def told(self, kind: int, to: int, task: int, machine: int = NOBODY, attempt: int = 0) -> bytes:
        """Return a message that no role sends."""
        row = np.zeros(1, MESSAGE)[0]
        row["kind"], row["to"] = kind, to
        row["task"], row["machine"], row["attempt"], row["sender"] = task, machine, attempt, NOBODY
        return canonical_message(row)

    def heard(self, answers: list[tuple[bytes, bytes]]) -> list[int]:
        """Return the numbers of answers that are handed on."""
        kinds = [int(np.frombuffer(row, np.int16, 1)[0]) for row, _ in answers]
        return [self.message(*answer) for answer, kind in zip(answers, kinds, strict=True)
                if kind not in UNHEARD and HANDLER[kind] != EXECUTOR]

    def result(self, state: int, number: int) -> Result:
        """Return what comes of a variant in a state of its role."""
        result = self.found_out(state, number)
        self.does_nothing[state, number] = result.is_void
        return result

    def found_out(self, state: int, number: int) -> Result:
        """Return the same, by calling the role's handler."""
        self.calls += 1
        variant = self.variants[number]
        actor = self.actors[variant.slot]
        actor.load(self.states[state][1])
        runs = canonical.running_on(actor.state, actor.number) if actor.role == WORKER else {}
        answers = self.happen(actor, variant)
        if answers is None:
            return Result(DISABLED)
        if canonical.highest_number(actor.state, actor.machines) > self.configuration.numbers:
            return Result(CUT)
        after = self.state(variant.slot)
        effects = self.effects(actor, runs, variant, answers)
        handed_on = tuple(sorted({*self.heard(answers), *effects.answers}))
        if variant.what == CRASHED:
            handed_on = ()
        kind = self.messages[variant.message].kind if variant.message != NONE_THERE else NONE_THERE
        is_void = after == state and not handed_on and kind not in (NONE_THERE, EXITED)
        return Result(after, handed_on, effects.halted, effects.begins, effects.halts, effects.ends,
                      self.wrong[after] or effects.wrong, is_void)

    def happen(self, actor: Actor, variant: Variant) -> list[tuple[bytes, bytes]] | None:
        """Let a variant happen to a role; return the answers, None where it cannot happen."""
        state, what, machine = actor.state, variant.what, variant.machine
        if what in (CRASHED, RETURNED):
            lost = actor.tell(self.told(POWER_OFF, actor.number, NOBODY), b"", NOW) if actor.role == WORKER else []
            return lost + actor.tell(self.told(RESTART, actor.number, NOBODY), b"", NOW)
        if what in (LEASE_EXPIRES, DECONFIRM):
            canonical.expire(state, machine) if what == LEASE_EXPIRES else canonical.deconfirm(state)
            return []
        message = self.messages[variant.message]
        if what in (FIND_NOBODY_LOST, FIND_LOST, FIND_DEAD, FIND_DESERTED):
            return self.look_after(actor, variant, message)
        if what == TAKE_OVER:
            canonical.hear_no_pulse(state)
        if what == FAIL:
            return actor.tell(failed(message.fields), b"", variant.now)
        deconfirmed = message.kind == PULSE and canonical.is_deconfirmed(state)
        answers = actor.tell(message.row, message.entries, variant.now)
        if deconfirmed:
            canonical.deconfirm(state)
        return answers

    def look_after(self, actor: Actor, variant: Variant, message: Message) -> list[tuple[bytes, bytes]] | None:
        """Let a local master find nobody lost, or one worker silent for a lease; return as `happen` does.

        FIND_LOST: the worker found its lease over; FIND_DEAD: it is down; FIND_DESERTED: it obeys the other master.
        """
        state, what, machine = actor.state, variant.what, variant.machine
        if what != FIND_NOBODY_LOST:
            if canonical.is_over(state, machine) != (what == FIND_LOST):
                return None
            canonical.expire(state, machine)
            if not canonical.is_over(state, machine):
                return None
        spared = canonical.spare(state, machine)
        answers = actor.tell(message.row, message.entries, variant.now)
        canonical.unspare(state, spared)
        if what != FIND_NOBODY_LOST and not canonical.is_lost(state, machine):
            return None  # its partner does not confirm it: it finds nobody lost
        return answers

    def effects(
        self, actor: Actor, runs: dict[int, int], variant: Variant, answers: list[tuple[bytes, bytes]]
    ) -> Result:
        """Return what a role's answers do to what runs on its machine: whose exit is now to come, whose is not."""
        if actor.role != WORKER:
            return Result(NONE_THERE)
        begun, halted, exits = [], [], []
        ended: list[int] = []
        failing: list[int] = []
        runs = dict(runs)
        for row, _ in answers:
            told = np.frombuffer(row, MESSAGE)[0]
            task = int(told["task"])
            if told["kind"] == BEGIN:
                begun.append(task)
                runs[task] = int(told["attempt"])
                exits.append(self.message(self.told(EXITED, actor.number, task, actor.number, runs[task]), b""))
            elif told["kind"] == HALT and task in runs:
                halted.append((task, self.message(self.told(EXITED, actor.number, task, actor.number, runs.pop(task)),
                                                  b"")))
        if variant.message != NONE_THERE and self.messages[variant.message].kind == EXITED:
            task = int(self.messages[variant.message].fields["task"])
            (failing if variant.what == FAIL else ended).append(task)
            runs.pop(task, None)
        wrong = FINE if canonical.running_on(actor.state, actor.number) == runs else DISAGREES
        return Result(NONE_THERE, tuple(exits), tuple(number for _, number in halted), bits_of(begun),
                      bits_of([task for task, _ in halted] + failing), bits_of(ended),
                      STRAY if NOBODY in begun else wrong)


def failed(exited: np.void) -> bytes:
    """Return the end of an attempt as one that failed."""
    row = exited.copy()
    row["reason"], row["code"] = HAS_FAILED, 1
    return bytes(row.tobytes())
