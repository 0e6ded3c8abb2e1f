"""Messages between roles: rows of one dtype, and the outbox that a handler answers through.

A handler takes its role's state, the time and one message, changes nothing but that state, and posts its answers.
A kind of message is handled by exactly one role. Kinds that a role sends to itself are timers and turns: they cross no
network, and a live master owes them to itself. BEGIN and HALT are effects on the executor, which runs attempts: in the
simulator it is the driver's clock, live it is a process.
"""
from typing import NamedTuple

import numpy as np

from subak.kernel import inlined

MESSAGE = np.dtype([
    ("kind", np.int16),  # one of KINDS
    ("reason", np.int16),  # why, one of REASONS; 0 where nothing was refused or lost; of RETRY: the kind to repeat
    ("to", np.int32),  # number of the receiver within its role
    ("sender", np.int32),  # number of the sender within its role
    ("task", np.int32),  # -1 where it is about no task
    ("machine", np.int32),  # -1 where it is about no machine
    ("epoch", np.int32),  # of the local master that is meant or that speaks
    ("count", np.int32),  # how many entries, probes or attempts it is about; of PREEMPT: the queue to preempt
    ("attempt", np.int64),  # number of the attempt, of its global master
    ("handle", np.int32),  # a row of the receiver's own, which it gave the sender
    ("start", np.int64),  # number of the start, of its machine; of a request: how often the task was preempted
    ("seen", np.int64),  # version of its local master that the sender has seen
    ("first", np.int64),  # the update it carries: entries first .. last - 1 of the sender's ledger
    ("last", np.int64),  # of a request: the life of the global master, whose number its attempt may still not have
    ("delay", np.float64),  # seconds from now, of a timer; that the reservation waited; of PROBE: the batch's work
    ("travelled", np.float64),  # seconds that the messages about no task yet, of which this is the last, were under way
])

SUBMITTER, GLOBAL_MASTER, LOCAL_MASTER, WORKER, EXECUTOR = range(5)
ROLES = ("submitter", "global master", "local master", "worker", "executor")

_KINDS = (  # name, who handles it, whether it crosses the network
    ("ARRIVE", SUBMITTER, False),  # a task arrives at its submitter
    ("RESUBMIT", SUBMITTER, False),  # timer: has the global master heard of the task?
    ("DONE", SUBMITTER, True),  # the task has ended
    ("REBUILD", SUBMITTER, True),  # a new global master asks for the tasks that have not ended
    ("SUBMIT", GLOBAL_MASTER, True),
    ("PLACE", GLOBAL_MASTER, False),  # a turn: place one task of one queue
    ("LAUNCHED", GLOBAL_MASTER, True),  # the attempt has its amounts, and starts (a gang's: is held)
    ("REFUSED", GLOBAL_MASTER, True),  # the attempt has nothing, and never will
    ("ENDED", GLOBAL_MASTER, True),  # the attempt is over: FINISHED, or lost for a reason
    ("UPDATE", GLOBAL_MASTER, True),  # the state of a cluster, periodic or asked for
    ("RETRY", GLOBAL_MASTER, False),  # timer: has the request been answered?
    ("WAKE", GLOBAL_MASTER, False),  # timer of a new global master: have all local masters answered?
    ("LAUNCH", LOCAL_MASTER, True),  # on the global master's own partition
    ("REPARTITION", LOCAL_MASTER, True),  # on another's partition: move the amounts, and launch
    ("PREEMPT", LOCAL_MASTER, True),  # take the amounts from attempts of a queue (count) on the machine, and launch
    ("GO", LOCAL_MASTER, True),  # all of a gang are held: start this one
    ("ABANDON", LOCAL_MASTER, True),  # give up the attempt, held or running
    ("NOTED", LOCAL_MASTER, True),  # the global master has noted the end of the attempt
    ("ASK", LOCAL_MASTER, True),  # a global master asks for the whole state
    ("BEAT", LOCAL_MASTER, False),  # timer: send an update to every global master
    ("CHECK", LOCAL_MASTER, False),  # timer: which workers are silent, what is unanswered?
    ("OVER", LOCAL_MASTER, True),  # a worker: the attempt is over, for a reason
    ("STARTED", LOCAL_MASTER, True),  # a worker answers a repeated start
    ("ALIVE", LOCAL_MASTER, True),  # a worker lives, and runs count attempts
    ("HOLDS", LOCAL_MASTER, True),  # a worker runs this attempt, one of count
    ("PULSE", LOCAL_MASTER, True),  # the active one to the standby: I live
    ("WATCH", LOCAL_MASTER, False),  # timer of the standby: does the active one live?
    ("CHANGE", LOCAL_MASTER, False),  # the operator: a machine leaves, joins or takes another capacity
    ("START", WORKER, True),
    ("KILL", WORKER, True),
    ("FORGET", WORKER, True),  # the end of the attempt is noted
    ("REPORT", WORKER, True),  # a new local master: obey me, and say what you run
    ("LEASE", WORKER, True),  # the local master has heard the worker's sign of life (sent at `delay`)
    ("TICK", WORKER, False),  # timer: send a sign of life, or stop what runs when the lease is over
    ("EXITED", WORKER, False),  # the executor: the attempt's run time is over
    ("READY", EXECUTOR, False),  # effect: the task waits from now on (its stage need not wait for others)
    ("BEGIN", EXECUTOR, False),  # effect: run the attempt
    ("HALT", EXECUTOR, False),  # effect: end the attempt now
    # Sparrow, Hawk, Eagle, Pigeon; `first` is the batch that is meant, SUBMIT carries count tasks of one
    ("PROBE", WORKER, True),  # reserve a place in the queue for a task of the batch
    ("FETCH", GLOBAL_MASTER, True),  # the reservation's turn has come: which task?
    ("ASSIGN", WORKER, True),  # this task
    ("NOTHING_LEFT", WORKER, True),  # all tasks of the batch are taken
    ("BOUNCED", GLOBAL_MASTER, True),  # the worker left or shrank: place the reservation, or the task, elsewhere
    ("REJECTED", GLOBAL_MASTER, True),  # the worker holds a long task: probe elsewhere
    ("ENQUEUE", WORKER, True),  # a long task joins the queue
    ("LONG_BEGUN", GLOBAL_MASTER, True),  # it has begun
    ("LONG_OVER", GLOBAL_MASTER, True),  # it has ended
    ("STEAL", WORKER, True),  # an idle worker asks for reservations
    ("STOLEN", WORKER, True),  # count reservations, a chain that begins at `start`
    ("DEAL", LOCAL_MASTER, True),  # a distributor hands a group a task
    # what whoever drives the roles hands to one of them, BOOT and RESTART to one of any kind; no role sends it
    ("BOOT", EXECUTOR, False),  # begin, for the first time
    ("RESTART", EXECUTOR, False),  # begin anew, with nothing but what is on disk
    ("POWER_OFF", EXECUTOR, False),  # to a worker: the machine has failed, with everything that ran on it
    ("RECONFIGURE", EXECUTOR, False),  # to a worker: the machine leaves, joins or takes another capacity
)
KINDS = tuple(name for name, _, _ in _KINDS)
HANDLER = np.array([role for _, role, _ in _KINDS], np.int8)
CROSSES = np.array([crosses for _, _, crosses in _KINDS])
(ARRIVE, RESUBMIT, DONE, REBUILD, SUBMIT, PLACE, LAUNCHED, REFUSED, ENDED, UPDATE, RETRY, WAKE,
 LAUNCH, REPARTITION, PREEMPT, GO, ABANDON, NOTED, ASK, BEAT, CHECK, OVER, STARTED, ALIVE, HOLDS, PULSE, WATCH, CHANGE,
 START, KILL, FORGET, REPORT, LEASE, TICK, EXITED, READY, BEGIN, HALT,
 PROBE, FETCH, ASSIGN, NOTHING_LEFT, BOUNCED, REJECTED, ENQUEUE, LONG_BEGUN, LONG_OVER, STEAL, STOLEN,
 DEAL, BOOT, RESTART, POWER_OFF, RECONFIGURE) = range(len(KINDS))

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
)
(NO_REASON, FINISHED_WELL, NOT_FREE, NOT_THERE, OLD_REQUEST, OLD_EPOCH, NO_VICTIMS, PREEMPTED, MACHINE_LOST, GANG_LOST,
 LEASE_LOST, UNKNOWN) = range(len(REASONS))

NOBODY = -1  # no task, no machine, no row
STILL_HELD = 1  # `start` of LAUNCHED: the attempt has been held for long, say again whether it goes


class Outbox(NamedTuple):
    """The messages of one handler, in order."""

    row: np.ndarray  # MESSAGE[place]
    size: np.ndarray  # int64[1]


def build_outbox(capacity: int) -> Outbox:
    """Return an empty outbox for *capacity* messages of one handler."""
    return Outbox(np.zeros(capacity, MESSAGE), np.zeros(1, np.int64))


@inlined
def post(out: Outbox, kind: int, sender: int, to: int, task: int, machine: int) -> np.void:
    """Append a message and return its row, for the fields beyond these."""
    row = out.row[out.size[0]]
    out.size[0] += 1
    row["kind"], row["reason"], row["sender"], row["to"] = kind, NO_REASON, sender, to
    row["task"], row["machine"] = task, machine
    row["epoch"], row["count"], row["handle"] = 0, 0, NOBODY
    row["attempt"], row["start"], row["seen"], row["first"], row["last"] = 0, 0, 0, 0, 0
    row["delay"], row["travelled"] = 0.0, 0.0
    return row
