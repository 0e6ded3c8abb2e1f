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
_FACTS = "shape queue owner priority in_gang preempted limit"  # of a task: what whoever runs it must know
_NEWS = "incarnation epoch first last count"  # an update
_REQUEST, _ORDER = f"{_OF_ATTEMPT} {_FACTS} incarnation epoch seen", f"{_OF_ATTEMPT} {_FACTS} start epoch handle"
_KINDS = (  # name, who handles it, whether it crosses the network, its fields beyond ALWAYS
    ("ARRIVE", SUBMITTER, False, "task"),  # a task arrives at its submitter
    ("CANCEL", SUBMITTER, False, "task"),  # its user does not want a task any more
    ("RESUBMIT", SUBMITTER, False, f"{_OF_TASK} delay"),  # timer: has the global master heard of the task?
    ("EXPIRE", SUBMITTER, False, f"{_OF_TASK} delay"),  # timer: does the task wait for longer than it may?
    ("TRY_AGAIN", SUBMITTER, False, f"{_OF_TASK} delay"),  # timer: submit a task anew that failed
    ("DONE", SUBMITTER, True,  # the task has ended, or its attempt in a way that its submitter must know
     f"{_OF_TASK} machine reason code incarnation count refusals repartitions preempted lost"),
    ("HAND_OVER", SUBMITTER, False, "row incarnation"),  # goes on with a REBUILD, from a row on
    ("RELEASE", SUBMITTER, False,  # goes on to submit the tasks of stage `count`, from a place on, and those behind it
     "count row first last"),
    ("REBUILD", SUBMITTER, True,  # a restarted global master asks for its open tasks, or again for one
     f"{_OF_TASK} incarnation"),
    ("SUBMIT", GLOBAL_MASTER, True, f"{_OF_TASK} reason incarnation batch count"),
    ("WITHDRAW", GLOBAL_MASTER, True, f"{_OF_TASK} reason incarnation"),  # end the task, for a reason
    ("PLACE", GLOBAL_MASTER, False, ""),  # a turn: place one task of one queue
    ("LAUNCHED", GLOBAL_MASTER, True,  # the attempt has its amounts, and starts (a gang's: is held)
     f"{_OF_ATTEMPT} reason {_NEWS}"),
    ("REFUSED", GLOBAL_MASTER, True, f"{_OF_ATTEMPT} reason {_NEWS}"),  # the attempt has nothing, and never will
    ("ENDED", GLOBAL_MASTER, True,  # the attempt is over: FINISHED, or lost for a reason
     f"{_OF_ATTEMPT} reason {_NEWS}"),
    ("UPDATE", GLOBAL_MASTER, True, _NEWS),  # the state of a cluster, periodic or asked for
    ("CATCH_UP", GLOBAL_MASTER, False,  # goes on with an update, or an answer, from an entry on
     f"{_OF_ATTEMPT} reason repeats {_NEWS}"),
    ("SETTLE", GLOBAL_MASTER, False, "machine row count"),  # goes on to settle doubts, a cluster: task, gang
    ("RETRY", GLOBAL_MASTER, False,  # timer: has the request been answered?
     f"{_OF_ATTEMPT} victims count repeats delay"),
    ("REOPEN", GLOBAL_MASTER, False, "machine delay"),  # timer: ask the cluster of a machine again
    ("PASSED_OVER", GLOBAL_MASTER, False,  # timer: for whom are machines to be held back? Goes on from a machine
     "machine count delay"),
    ("WAKE", GLOBAL_MASTER, False, "delay"),  # timer of a new global master: have all local masters answered?
    ("LAUNCH", LOCAL_MASTER, True, _REQUEST),  # on the global master's own partition
    ("REPARTITION", LOCAL_MASTER, True, _REQUEST),  # on another's partition: move the amounts, and launch
    ("PREEMPT", LOCAL_MASTER, True,  # take the amounts from attempts of a queue on the machine, and launch
     f"{_REQUEST} victims"),
    ("GO", LOCAL_MASTER, True, _REQUEST),  # all of a gang are held: start this one
    ("ABANDON", LOCAL_MASTER, True, f"{_REQUEST} reason"),  # give up the attempt, held or running
    ("HOLD_BACK", LOCAL_MASTER, True,  # hold a machine back for a task passed over for `delay`; for NOBODY: no longer
     "task machine incarnation epoch seen delay"),
    ("NOTED", LOCAL_MASTER, True, "incarnation epoch seen"),  # the global master has noted the end of the attempt
    ("ASK", LOCAL_MASTER, True, "incarnation seen"),  # a global master asks for the whole state
    ("BEAT", LOCAL_MASTER, False, "epoch delay"),  # timer: send an update to every global master
    ("CHECK", LOCAL_MASTER, False,  # timer: which workers, from one on, are silent, and what is unanswered?
     "machine epoch delay"),
    ("OVER", LOCAL_MASTER, True,  # a worker: the attempt is over, for a reason
     "task machine attempt reason code epoch handle"),
    ("STARTED", LOCAL_MASTER, True, "task machine attempt epoch"),  # a worker has begun the attempt
    ("ALIVE", LOCAL_MASTER, True,  # a worker lives, and runs count attempts
     "machine reason epoch incarnation count delay"),
    ("HOLDS", LOCAL_MASTER, True,  # a worker runs this attempt, one of count, as it says at `delay`
     f"{_OF_ATTEMPT} {_FACTS} start reason code epoch incarnation report count delay"),
    ("PULSE", LOCAL_MASTER, True, "epoch count delay"),  # the active one to the standby: I live
    ("WATCH", LOCAL_MASTER, False, "epoch delay"),  # timer of the standby: does the active one live?
    ("CHANGE", LOCAL_MASTER, False,  # the operator: a machine leaves, joins or takes another capacity
     "machine count shape epoch first last"),
    ("START", WORKER, True, _ORDER),
    ("KILL", WORKER, True, f"{_ORDER} reason"),
    ("FORGET", WORKER, True, f"{_ORDER} reason"),  # the end of the attempt is noted
    ("REPORT", WORKER, True, "machine epoch report"),  # a new local master: obey me, and say what you run
    ("LEASE", WORKER, True,  # the local master has heard the worker's sign of life (sent at `delay`)
     "machine epoch incarnation delay"),
    ("TICK", WORKER, False,  # timer: send a sign of life, or stop what runs when the lease is over
     "machine incarnation delay"),
    ("EXITED", WORKER, False, "task machine attempt handle reason code"),  # the executor: the attempt has ended
    ("READY", EXECUTOR, False, "task"),  # effect: the task waits from now on (its stage need not wait for others)
    ("GIVEN_UP", EXECUTOR, False, "task reason"),  # effect: the task has ended without having finished
    ("BEGIN", EXECUTOR, False,  # effect: run the attempt of a task that waited `delay` in the queue of its machine
     "task machine attempt handle limit delay"),
    ("HALT", EXECUTOR, False, "task machine reason"),  # effect: end the attempt now
    # Sparrow, Hawk, Eagle, Dodoor, Pigeon; SUBMIT carries count tasks of a batch
    ("PROBE", WORKER, True,  # reserve a place in the queue for a task of the batch
     "machine batch count delay travelled"),
    ("FETCH", GLOBAL_MASTER, True,  # the reservation's turn has come: which task?
     "machine batch handle delay travelled"),
    ("ASSIGN", WORKER, True, "task machine batch handle delay travelled"),  # this task
    ("NOTHING_LEFT", WORKER, True, "machine batch handle"),  # all tasks of the batch are taken
    ("BOUNCED", GLOBAL_MASTER, True,  # the worker left or shrank: place the reservation, or the task, elsewhere
     "task machine batch count reason"),
    ("REJECTED", GLOBAL_MASTER, True,  # the worker holds a long task: probe elsewhere
     "machine batch count seen travelled"),
    ("ENQUEUE", WORKER, True, "task machine batch travelled"),  # a task joins the queue (in Hawk and Eagle a long one)
    ("LONG_BEGUN", GLOBAL_MASTER, True, "task machine batch"),  # it has begun
    ("LONG_OVER", GLOBAL_MASTER, True, "task machine batch"),  # it has ended
    ("STEAL", WORKER, True, "machine"),  # an idle worker asks for reservations
    ("STOLEN", WORKER, True, "machine count start"),  # count reservations, a chain that begins at `start`
    ("DEAL", LOCAL_MASTER, True, "task batch travelled"),  # a distributor hands a group a task
    ("ADD_LOAD", LOCAL_MASTER, True, "task count"),  # a scheduler's last decisions, a chain that begins with a task
    ("SET_LOAD", LOCAL_MASTER, True, "machine"),  # what a worker has to do
    ("LOADS", GLOBAL_MASTER, True, "seen count"),  # what count workers have to do, as the data store knows
    # what whoever drives the roles hands to one of them, BOOT and RESTART to one of any kind; no role sends it
    ("BOOT", EXECUTOR, False, ""),  # begin, for the first time
    ("RESTART", EXECUTOR, False, ""),  # begin anew, with nothing but what is on disk
    ("POWER_OFF", EXECUTOR, False, ""),  # to a worker: the machine has failed, with everything that ran on it
    ("RECONFIGURE", EXECUTOR, False,  # to a worker: the machine leaves, joins or takes another capacity
     "machine count shape epoch first last"),
)
KINDS = tuple(name for name, *_ in _KINDS)
HANDLER = np.array([role for _, role, *_ in _KINDS], np.int8)
CROSSES = np.array([crosses for _, _, crosses, _ in _KINDS])
FIELDS = tuple((*ALWAYS, *fields.split()) for *_, fields in _KINDS)  # of each kind
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
    "stopped by its worker, which had lost touch",
    "unknown to the new local master",
    "held for long: does it go?",
    "its local master had no room to note it",
    "it failed",
    "it ran for longer than it may",
    "it waited for longer than it may",
    "its user cancelled it",
    "a stage that it depends on failed",
    "another task of its gang failed",
    "its attempts were lost more often than they may be",
    "it used more memory than it asked for",
    "preempted because its machine is drained",
    "preempted by an operator",
    "its machine is held back for another",
)
(NO_REASON, FINISHED_WELL, NOT_FREE, NOT_THERE, OLD_REQUEST, OLD_EPOCH, NO_VICTIMS, PREEMPTED, MACHINE_LOST, GANG_LOST,
 LEASE_LOST, UNKNOWN, STILL_HELD, NO_ROOM,
 HAS_FAILED, RAN_TOO_LONG, WAITED_TOO_LONG, CANCELLED, STAGE_FAILED, GANG_FAILED, LOST_TOO_OFTEN,
 USED_TOO_MUCH, DRAINED, PREEMPTED_BY_OPERATOR, HELD_FOR_ANOTHER) = range(len(REASONS))
# ends of an attempt whose machine was taken from it on purpose
PREEMPTION = np.array([each in (PREEMPTED, DRAINED, PREEMPTED_BY_OPERATOR) for each in range(len(REASONS))])
# ends of an attempt that has failed: whether its task is tried again, its submitter says
FAILURE = np.array([each in (HAS_FAILED, RAN_TOO_LONG, USED_TOO_MUCH) for each in range(len(REASONS))])
# ends of an attempt after which its global master does not place the task again
CONCLUSIVE = FAILURE | np.array([each in (FINISHED_WELL, CANCELLED) for each in range(len(REASONS))])

NOBODY = -1  # no task, no machine, no row


NOBODYS = ("row", "shape", "queue", "owner", "victims", "handle")  # fields that say so where nothing is said

POSTED, OVERRUN, SERVED_COUNT = range(3)  # of `size` of an outbox


class Outbox(NamedTuple):
    """The messages of one handler after another, in order.

    A handler begins with room for `spare` messages (`may_serve`). It posts no more (megha/bounds.py), unless it walks
    over tasks or entries, of which there may be any number. Such a walk asks `is_filling` before each step; when it has
    to stop, its role goes on after this handler with a message to itself (`go_on`).
    """

    row: np.ndarray  # MESSAGE[place]
    size: np.ndarray  # int64[3]: POSTED; OVERRUN, messages for which there was no room, which is a defect;
    # SERVED_COUNT, how many messages of the inbox were
    spare: int  # messages that one step of a walk and all behind it, or a handler that does not walk, may post
    blank: np.ndarray  # MESSAGE[1], what a message says of which nothing is said


def build_outbox(spare: int, more: int = 256) -> Outbox:
    """Return an empty outbox for handlers and steps of up to *spare* messages, and for *more* before a walk stops."""
    blank = np.zeros(1, MESSAGE)
    for name in NOBODYS:
        blank[name] = NOBODY
    return Outbox(np.zeros(spare + more, MESSAGE), np.zeros(3, np.int64), spare, blank)


def part_of(out: Outbox, spare: int) -> Outbox:
    """Return the outbox of a role whose handlers post up to *spare* messages, in the rows of one with room for more."""
    return out._replace(row=out.row[: out.row.size - out.spare + spare], spare=spare)


@inlined
def is_filling(out: Outbox) -> bool:
    """Whether a walk has to stop: there may be no room for another step."""
    return bool(out.size[POSTED] > out.row.size - out.spare)


@inlined
def may_serve(out: Outbox, place: int) -> bool:
    """Whether the message at a place of the inbox is served: there is room for what its handler posts; else later."""
    if is_filling(out):
        return False
    out.size[SERVED_COUNT] = place + 1
    return True


@inlined
def go_on(out: Outbox, kind: int, me: int, machine: int) -> np.void:
    """Post the message by which a role goes on with a walk after this handler; return it, to say from where on."""
    return post(out, kind, me, me, NOBODY, machine)


@inlined
def post(out: Outbox, kind: int, sender: int, to: int, task: int, machine: int) -> np.void:
    """Append a message and return its row, for the fields beyond these."""
    place = out.size[POSTED]
    if place < out.row.size:
        out.size[POSTED] += 1
    else:
        place = out.row.size - 1
        out.size[OVERRUN] += 1
    out.row[place] = out.blank[0]
    row = out.row[place]
    row["kind"], row["sender"], row["to"], row["task"], row["machine"] = kind, sender, to, task, machine
    return row
