"""Declares every kind of message, and the outbox that a handler answers through.

A handler takes its role's state, the time and one message, changes nothing but that state, and posts its answers.
A kind of message is handled by exactly one role. Kinds that a role sends to itself are timers and turns: they cross no
network, and a live master owes them to itself. BEGIN and HALT are effects on the executor, which runs attempts: in the
simulator it is the driver's clock, live it is a process.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.counts import COMPARED, TOLD
from subak.marks import inlined
from subak.records import Numbers

MESSAGE = np.dtype([
    ("kind", np.int16),  # one of KINDS
    ("reason", np.int16),  # why, one of REASONS; 0 where there is nothing to say
    ("to", np.int32),  # number of the receiver within its role
    ("sender", np.int32),  # number of the sender within its role
    ("machine", np.int32),  # -1 where it is about no machine
    ("task", np.int64),  # -1 where it is about no task
    ("row", np.int32),  # of the task among the open tasks of its global master
    ("shape", np.int32),  # of the task: what it asks for, as a column of the table of requests; of a machine that
    # changes: what it has, as a column of the table of capacities, or NOBODY
    ("queue", np.int32),  # of the task
    ("owner", np.int32),  # of the task: its global master
    ("priority", np.int32),  # of the task
    ("epoch", np.int32),  # of the local master that is meant or that speaks; of a change of a machine, the latest of
    # those of its cluster
    ("count", np.int32),  # how many entries, tasks, attempts or reservations it is about; of DONE, whether the master
    # needs the row yet; of a change of a machine, which of the run's it is
    ("victims", np.int32),  # queue whose tasks are to be preempted; -1 for nobody's
    ("batch", np.int32),  # tasks that were submitted together
    ("handle", np.int32),  # a row of the receiver's own, which it gave the sender
    ("round", np.int16),  # of the task: how often it was submitted anew after an attempt that failed
    ("code", np.int16),  # exit code
    ("in_gang", np.int8),  # whether the task starts together with others
    ("repeats", np.int8),  # the kind of the message that a timer sends again, or that a master goes on with
    ("preempted", TOLD),  # how often the task has been
    ("refusals", TOLD),  # how often a request for the task was refused
    ("repartitions", TOLD),  # how often it was requested on another's partition
    ("lost", COMPARED),  # how many of its attempts were lost
    ("attempt", np.int64),  # number of the attempt, of its global master
    ("start", np.int64),  # number of the start, of its machine; of STOLEN the first reservation of a chain
    ("seen", np.int64),  # version of its local master that the sender has seen; of REJECTED what the sender knows
    ("incarnation", np.int64),  # of the global master, or worker, that speaks or is spoken to
    ("report", np.int64),  # number of a worker's report
    ("first", np.int64),  # the update it carries: entries first .. last - 1 of the sender's ledger
    ("last", np.int64),
    ("limit", np.float64),  # seconds that the attempt may run
    ("delay", np.float64),  # seconds from now, of a timer; else of something that the sender knows, by kind
    ("travelled", np.float64),  # seconds that the messages about no task yet, of which this is the last, were under way
])
ALWAYS = ("kind", "to", "sender")  # fields of every message

SUBMITTER, GLOBAL_MASTER, LOCAL_MASTER, WORKER, EXECUTOR = range(5)
ROLES = ("submitter", "global master", "local master", "worker", "executor")

_OF_TASK = "task row round"
_OF_ATTEMPT = f"{_OF_TASK} machine attempt"
FACTS = "shape queue owner priority in_gang preempted limit"  # of a task: what whoever runs it must know
_NEWS = "incarnation epoch first last count"  # an update
_REQUEST, _ORDER = f"{_OF_ATTEMPT} {FACTS} incarnation epoch seen", f"{_OF_ATTEMPT} {FACTS} start epoch handle"
ANY = -1  # one role or another, in the federations that sample
ATTEMPT, MACHINE, MASTER = "attempt", "machine", "master"  # what a message meets


class Kind(NamedTuple):
    """What is known of a kind of message: the tables below, service times, and who believes it live follow from it."""

    name: str
    says: str  # in the reference
    handler: int  # the role that serves it
    sender: int | None  # the role that sends it over the network; None: it crosses none
    fields: str = ""  # beyond ALWAYS
    costs: tuple[float, float] = (0.0, 0.0)  # seconds of service: of compiled masters, of plain Python's
    carries: bool = False  # entries or machines, of which each costs its receiver time
    on_path: bool = False  # its travel and service are part of its task's allocation time
    periodic: bool = False  # it goes on when all tasks have ended
    meets: str = ATTEMPT  # in the table of transitions


_KINDS = (
    Kind("ARRIVE", "a task arrives at its submitter", SUBMITTER, None, "task"),
    Kind("CANCEL", "its user does not want a task any more", SUBMITTER, None, "task"),
    Kind("RESUBMIT", "timer: has the global master heard of the task?",
         SUBMITTER, None, f"{_OF_TASK} delay", periodic=True),
    Kind("EXPIRE", "timer: does the task wait for longer than it may?",
         SUBMITTER, None, f"{_OF_TASK} delay", periodic=True),
    Kind("TRY_AGAIN", "timer: submit a task anew that failed", SUBMITTER, None, f"{_OF_TASK} delay"),
    Kind("DONE", "the task has ended, or its attempt in a way that its submitter must know",
         SUBMITTER, GLOBAL_MASTER,
         f"{_OF_TASK} machine reason code incarnation count refusals repartitions preempted lost"),
    Kind("HAND_OVER", "goes on with a REBUILD, from a row on", SUBMITTER, None, "row incarnation"),
    Kind("RELEASE", "goes on to submit the tasks of stage `count`, from a place on, and those behind it",
         SUBMITTER, None, "count row first last"),
    Kind("REBUILD", "a restarted global master asks for its open tasks, or again for one",
         SUBMITTER, GLOBAL_MASTER, f"{_OF_TASK} incarnation"),
    Kind("SUBMIT", "a task, or a batch of them, to be placed",
         GLOBAL_MASTER, SUBMITTER, f"{_OF_TASK} reason incarnation batch count", costs=(1e-6, 20e-6), on_path=True),
    Kind("WITHDRAW", "end the task, for a reason", GLOBAL_MASTER, SUBMITTER, f"{_OF_TASK} reason incarnation"),
    Kind("PLACE", "a turn: place one task of one queue", GLOBAL_MASTER, None, costs=(1e-6, 130e-6)),
    Kind("LAUNCHED", "the attempt has its amounts, and starts (a gang's: is held)",
         GLOBAL_MASTER, LOCAL_MASTER, f"{_OF_ATTEMPT} reason {_NEWS}", costs=(1e-6, 30e-6), carries=True),
    Kind("REFUSED", "the attempt has nothing, and never will",
         GLOBAL_MASTER, LOCAL_MASTER, f"{_OF_ATTEMPT} reason {_NEWS}", costs=(1.2e-6, 30e-6), carries=True,
         on_path=True),
    Kind("ENDED", "the attempt is over: FINISHED, or lost for a reason",
         GLOBAL_MASTER, LOCAL_MASTER, f"{_OF_ATTEMPT} reason {_NEWS}", costs=(1.3e-6, 30e-6), carries=True),
    Kind("UPDATE", "the state of a cluster, periodic or asked for",
         GLOBAL_MASTER, LOCAL_MASTER, _NEWS, costs=(1e-6, 20e-6), carries=True, periodic=True),
    Kind("CATCH_UP", "goes on with an update, or an answer, from an entry on",
         GLOBAL_MASTER, None, f"{_OF_ATTEMPT} reason repeats {_NEWS}"),
    Kind("SETTLE", "goes on to settle doubts, a cluster: task, gang", GLOBAL_MASTER, None, "machine row count"),
    Kind("RETRY", "timer: has the request been answered?",
         GLOBAL_MASTER, None, f"{_OF_ATTEMPT} victims count repeats delay", periodic=True),
    Kind("REOPEN", "timer: ask the cluster of a machine again", GLOBAL_MASTER, None, "machine delay", periodic=True),
    Kind("PASSED_OVER", "timer: for whom are machines to be held back? Goes on from a machine",
         GLOBAL_MASTER, None, "machine count delay", periodic=True),
    Kind("WAKE", "timer of a new global master: have all local masters answered?",
         GLOBAL_MASTER, None, "delay", periodic=True),
    Kind("LAUNCH", "on the global master's own partition",
         LOCAL_MASTER, GLOBAL_MASTER, _REQUEST, costs=(1.2e-6, 75e-6), on_path=True),
    Kind("REPARTITION", "on another's partition: move the amounts, and launch",
         LOCAL_MASTER, GLOBAL_MASTER, _REQUEST, costs=(1.2e-6, 75e-6), on_path=True),
    Kind("PREEMPT", "take the amounts from attempts of a queue on the machine, and launch",
         LOCAL_MASTER, GLOBAL_MASTER, f"{_REQUEST} victims", costs=(1.1e-6, 100e-6), on_path=True),
    Kind("GO", "all of a gang are held: start this one",
         LOCAL_MASTER, GLOBAL_MASTER, _REQUEST, costs=(1e-6, 30e-6), on_path=True),
    Kind("ABANDON", "give up the attempt, held or running",
         LOCAL_MASTER, GLOBAL_MASTER, f"{_REQUEST} reason", costs=(1.2e-6, 40e-6)),
    Kind("HOLD_BACK", "hold a machine back for a task passed over for `delay`; for NOBODY: no longer",
         LOCAL_MASTER, GLOBAL_MASTER, "task machine incarnation epoch seen delay", costs=(0.8e-6, 20e-6), meets=MASTER),
    Kind("NOTED", "the global master has noted the end of the attempt",
         LOCAL_MASTER, GLOBAL_MASTER, "incarnation epoch seen", costs=(0.8e-6, 10e-6), periodic=True, meets=MASTER),
    Kind("ASK", "a global master asks for the whole state",
         LOCAL_MASTER, GLOBAL_MASTER, "incarnation seen", meets=MASTER),
    Kind("BEAT", "timer: send an update to every global master",
         LOCAL_MASTER, None, "epoch delay", periodic=True, meets=MASTER),
    Kind("CHECK", "timer: which workers, from one on, are silent, and what is unanswered?",
         LOCAL_MASTER, None, "machine epoch delay", periodic=True, meets=MASTER),
    Kind("OVER", "a worker: the attempt is over, for a reason",
         LOCAL_MASTER, WORKER, "task machine attempt reason code epoch handle", costs=(1.1e-6, 40e-6)),
    Kind("STARTED", "a worker has begun the attempt", LOCAL_MASTER, WORKER, "task machine attempt epoch"),
    Kind("ALIVE", "a worker lives, and runs count attempts",
         LOCAL_MASTER, WORKER, "machine reason epoch incarnation count delay", periodic=True, meets=MACHINE),
    Kind("HOLDS", "a worker runs this attempt, one of count, as it says at `delay`",
         LOCAL_MASTER, WORKER, f"{_OF_ATTEMPT} {FACTS} start reason code epoch incarnation report count delay",
         meets=MACHINE),
    Kind("PULSE", "the active one to the standby: I live",
         LOCAL_MASTER, LOCAL_MASTER, "epoch count delay", periodic=True, meets=MASTER),
    Kind("WATCH", "timer of the standby: does the active one live?",
         LOCAL_MASTER, None, "epoch delay", periodic=True, meets=MASTER),
    Kind("CHANGE", "the operator: a machine leaves, joins or takes another capacity",
         LOCAL_MASTER, None, "machine count shape epoch first last", meets=MACHINE),
    Kind("START", "begin the attempt", WORKER, LOCAL_MASTER, _ORDER, on_path=True),
    Kind("KILL", "end the attempt, or never begin it", WORKER, LOCAL_MASTER, f"{_ORDER} reason"),
    Kind("FORGET", "the end of the attempt is noted", WORKER, LOCAL_MASTER, f"{_ORDER} reason"),
    Kind("REPORT", "a new local master: obey me, and say what you run", WORKER, LOCAL_MASTER, "machine epoch report"),
    Kind("LEASE", "the local master has heard the worker's sign of life (sent at `delay`)",
         WORKER, LOCAL_MASTER, "machine epoch incarnation delay", periodic=True),
    Kind("TICK", "timer: send a sign of life, or stop what runs when the lease is over",
         WORKER, None, "machine incarnation delay", periodic=True),
    Kind("EXITED", "the executor: the attempt has ended", WORKER, None, "task machine attempt handle reason code"),
    Kind("READY", "effect: the task waits from now on (its stage need not wait for others)", EXECUTOR, None, "task"),
    Kind("GIVEN_UP", "effect: the task has ended without having finished", EXECUTOR, None, "task reason"),
    Kind("BEGIN", "effect: run the attempt of a task that waited `delay` in the queue of its machine",
         EXECUTOR, None, "task machine attempt handle limit delay"),
    Kind("HALT", "effect: end the attempt now", EXECUTOR, None, "task machine reason"),
    # Sparrow, Hawk, Eagle, Dodoor, Pigeon; SUBMIT carries count tasks of a batch
    Kind("PROBE", "reserve a place in the queue for a task of the batch",
         WORKER, ANY, "machine batch count delay travelled", on_path=True),
    Kind("FETCH", "the reservation's turn has come: which task?",
         GLOBAL_MASTER, ANY, "machine batch handle delay travelled", costs=(0.8e-6, 10e-6), on_path=True),
    Kind("ASSIGN", "this task", WORKER, ANY, "task machine batch handle delay travelled", on_path=True),
    Kind("NOTHING_LEFT", "all tasks of the batch are taken", WORKER, ANY, "machine batch handle"),
    Kind("BOUNCED", "the worker left or shrank: place the reservation, or the task, elsewhere",
         GLOBAL_MASTER, ANY, "task machine batch count reason", costs=(0.8e-6, 10e-6)),
    Kind("REJECTED", "the worker holds a long task: probe elsewhere",
         GLOBAL_MASTER, ANY, "machine batch count seen travelled", costs=(0.9e-6, 10e-6)),
    Kind("ENQUEUE", "a task joins the queue (in Hawk and Eagle a long one)",
         WORKER, ANY, "task machine batch travelled", on_path=True),
    Kind("LONG_BEGUN", "it has begun", GLOBAL_MASTER, ANY, "task machine batch", costs=(0.9e-6, 5e-6)),
    Kind("LONG_OVER", "it has ended", GLOBAL_MASTER, ANY, "task machine batch", costs=(0.9e-6, 5e-6)),
    Kind("STEAL", "an idle worker asks for reservations", WORKER, ANY, "machine"),
    Kind("STOLEN", "count reservations, a chain that begins at `start`", WORKER, ANY, "machine count start"),
    Kind("DEAL", "a distributor hands a group a task",
         LOCAL_MASTER, ANY, "task batch travelled", costs=(0.8e-6, 20e-6), on_path=True),
    Kind("ADD_LOAD", "a scheduler's last decisions, a chain that begins with a task",
         LOCAL_MASTER, ANY, "task count", costs=(0.6e-6, 25e-6)),
    Kind("SET_LOAD", "what a worker has to do", LOCAL_MASTER, ANY, "machine", costs=(0.5e-6, 3e-6)),
    Kind("LOADS", "what count workers have to do, as the data store knows",
         GLOBAL_MASTER, ANY, "seen count", costs=(0.5e-6, 3e-6)),
    # what whoever drives the roles hands to one of them, BOOT and RESTART to one of any kind; no role sends it
    Kind("BOOT", "begin, for the first time", EXECUTOR, None),
    Kind("RESTART", "begin anew, with nothing but what is on disk", EXECUTOR, None),
    Kind("POWER_OFF", "to a worker: the machine has failed, with everything that ran on it", EXECUTOR, None),
    Kind("RECONFIGURE", "to a worker: the machine leaves, joins or takes another capacity",
         EXECUTOR, None, "machine count shape epoch first last"),
)
KINDS = tuple(kind.name for kind in _KINDS)
HANDLER = np.array([kind.handler for kind in _KINDS], np.int8)
CROSSES = np.array([kind.sender is not None for kind in _KINDS])
ON_PATH = np.array([kind.on_path for kind in _KINDS])
PERIODIC = np.array([kind.periodic for kind in _KINDS])
FIELDS = tuple((*ALWAYS, *kind.fields.split()) for kind in _KINDS)  # of each kind
SAYS = {kind.name: kind.says for kind in _KINDS}
MEETS = {kind.name: kind.meets for kind in _KINDS}
CARRIES = tuple(kind.name for kind in _KINDS if kind.carries)


class Profile(NamedTuple):
    """How long each kind of message occupies its receiver, by what runs the handlers (bench/handlers.py)."""

    service: dict[str, float]  # seconds; kinds that are not listed cost nothing
    part: dict[str, float]  # further seconds for each entry or machine that an update carries


def _profile(place: int, entry_s: float) -> Profile:
    return Profile({kind.name: kind.costs[place] for kind in _KINDS if kind.costs[place]},
                   dict.fromkeys(CARRIES, entry_s))


PROFILES = {"compiled": _profile(0, 0.05e-6), "python": _profile(1, 18e-6)}
# kinds that a live process hears from another, by the role that sends them; a submitter is beside its global master
SPOKEN = {sender: frozenset(number for number, kind in enumerate(_KINDS)
                            if kind.sender == sender and SUBMITTER not in (kind.sender, kind.handler))
          for sender in (GLOBAL_MASTER, LOCAL_MASTER, WORKER)}
(ARRIVE, CANCEL, RESUBMIT, EXPIRE, TRY_AGAIN, DONE, HAND_OVER, RELEASE, REBUILD, SUBMIT, WITHDRAW, PLACE,
 LAUNCHED, REFUSED, ENDED, UPDATE, CATCH_UP, SETTLE, RETRY, REOPEN, PASSED_OVER, WAKE,
 LAUNCH, REPARTITION, PREEMPT, GO, ABANDON, HOLD_BACK, NOTED, ASK, BEAT, CHECK, OVER, STARTED, ALIVE, HOLDS, PULSE,
 WATCH, CHANGE, START, KILL, FORGET, REPORT, LEASE, TICK, EXITED, READY, GIVEN_UP, BEGIN, HALT,
 PROBE, FETCH, ASSIGN, NOTHING_LEFT, BOUNCED, REJECTED, ENQUEUE, LONG_BEGUN, LONG_OVER, STEAL, STOLEN,
 DEAL, ADD_LOAD, SET_LOAD, LOADS, BOOT, RESTART, POWER_OFF, RECONFIGURE) = range(len(KINDS))

REASONS = (
    "",
    "finished",
    "its machine had less free than the view said",
    "the machine was not there",
    "the request was an old one",
    "the local master had been replaced",
    "the tasks to preempt had gone",
    "preempted for a queue below its share",
    "its machine was lost",
    "its gang was given up",
    "its worker lost contact with its masters and stopped it",
    "unknown to the new local master",
    "held for long: does it go?",
    "its local master had no room to note it",
    "it failed",
    "it ran longer than its time limit",
    "it waited longer than its wait limit",
    "cancelled by a user",
    "a stage that it depends on failed",
    "another task of its gang failed",
    "its attempts were lost more often than losses_max allows",
    "it used more memory than it asked for",
    "preempted because its machine is drained",
    "preempted by an operator",
    "its machine is held back for another",
    "its machine was stopped",
)
(NO_REASON, FINISHED_WELL, NOT_FREE, NOT_THERE, OLD_REQUEST, OLD_EPOCH, NO_VICTIMS, PREEMPTED, MACHINE_LOST, GANG_LOST,
 LEASE_LOST, UNKNOWN, STILL_HELD, NO_ROOM,
 HAS_FAILED, RAN_TOO_LONG, WAITED_TOO_LONG, CANCELLED, STAGE_FAILED, GANG_FAILED, LOST_TOO_OFTEN,
 USED_TOO_MUCH, DRAINED, PREEMPTED_BY_OPERATOR, HELD_FOR_ANOTHER, MACHINE_STOPPED) = range(len(REASONS))
# ends of an attempt whose machine was taken from it on purpose
PREEMPTION = np.array([each in (PREEMPTED, DRAINED, PREEMPTED_BY_OPERATOR) for each in range(len(REASONS))])
# ends of an attempt that has failed: whether its task is tried again, its submitter says
FAILURE = np.array([each in (HAS_FAILED, RAN_TOO_LONG, USED_TOO_MUCH) for each in range(len(REASONS))])
# ends of an attempt after which its global master does not place the task again
CONCLUSIVE = FAILURE | np.array([each in (FINISHED_WELL, CANCELLED) for each in range(len(REASONS))])

NOBODY = -1  # no task, no machine, no row


NOBODYS = ("row", "shape", "queue", "owner", "victims", "handle")  # fields that say so where nothing is said



class OutboxCounts(Numbers):
    """How many messages were posted and served."""

    posted: int
    overrun: int  # messages for which there was no room, which is a defect
    served: int  # of the inbox


class Outbox(NamedTuple):
    """The messages of one handler after another, in order.

    A handler begins with room for `spare` messages (`may_serve`). It posts no more (megha/bounds.py), unless it walks
    over tasks or entries, of which there may be any number. Such a walk asks `is_filling` before each step; when it has
    to stop, its role goes on after this handler with a message to itself (`go_on`).
    """

    row: np.ndarray  # MESSAGE[place]
    counts: OutboxCounts
    spare: int  # messages that one step of a walk and all behind it, or a handler that does not walk, may post
    blank: np.ndarray  # MESSAGE[1], what a message says of which nothing is said


def build_outbox(spare: int, more: int = 256) -> Outbox:
    """Return an empty outbox for handlers and steps of up to *spare* messages, and for *more* before a walk stops."""
    blank = np.zeros(1, MESSAGE)
    for name in NOBODYS:
        blank[name] = NOBODY
    return Outbox(np.zeros(spare + more, MESSAGE), OutboxCounts(), spare, blank)


def part_of(out: Outbox, spare: int) -> Outbox:
    """Return the outbox of a role whose handlers post up to *spare* messages, in the rows of one with room for more."""
    return out._replace(row=out.row[: out.row.size - out.spare + spare], spare=spare)


@inlined
def is_filling(out: Outbox) -> bool:
    """Whether a walk has to stop: there may be no room for another step."""
    return bool(out.counts.posted > out.row.size - out.spare)


@inlined
def may_serve(out: Outbox, place: int) -> bool:
    """Whether the message at a place of the inbox is served: there is room for what its handler posts; else later."""
    if is_filling(out):
        return False
    out.counts.served = place + 1
    return True


@inlined
def go_on(out: Outbox, kind: int, me: int, machine: int) -> np.void:
    """Post the message by which a role goes on with a walk after this handler; return it, to say from where on."""
    return post(out, kind, me, me, NOBODY, machine)


@inlined
def post(out: Outbox, kind: int, sender: int, to: int, task: int, machine: int) -> np.void:
    """Append a message and return its row, for the fields beyond these."""
    place = out.counts.posted
    if place < out.row.size:
        out.counts.posted += 1
    else:
        place = out.row.size - 1
        out.counts.overrun += 1
    out.row[place] = out.blank[0]
    row = out.row[place]
    row["kind"], row["sender"], row["to"], row["task"], row["machine"] = kind, sender, to, task, machine
    return row
