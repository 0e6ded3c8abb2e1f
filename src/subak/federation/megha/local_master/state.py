"""The state of a local master, with two operations: enter a change, report changes.

An attempt at a local master is HELD (for its gang), PENDING (the tasks it preempts still run), STARTING (its worker was
told), RUNNING (the worker said so), KILLING (the worker was told to end it) or OVER (its global master has not noted
the end). A machine is LISTED (all its attempts are known), SILENT (its worker has not reported to this epoch), LOST
(silent for a lease) or ABSENT (the operator took it away).
"""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.attempts import Attempts, drop_attempt, tell_task
from subak.federation.megha.ledger import (
    ENTRY_GAVE,
    ENTRY_GONE,
    ENTRY_SIZED,
    ENTRY_TOOK,
    ENTRY_WHOLE,
    Ledger,
    enter,
    reaches_back_to,
)
from subak.federation.megha.topology import Rules, Topology
from subak.federation.messages import FORGET, NO_REASON, NOBODY, START, Outbox, is_filling, post
from subak.fleet.state import BLOCK, FleetState
from subak.marks import inlined, noinline
from subak.records import Numbers

STATES = ("HELD", "PENDING", "STARTING", "RUNNING", "KILLING", "OVER")
ATTEMPT_HELD, ATTEMPT_PENDING, ATTEMPT_STARTING, ATTEMPT_RUNNING, ATTEMPT_KILLING, ATTEMPT_OVER = range(6)
MACHINE_STATES = ("LISTED", "SILENT", "LOST", "ABSENT")
LISTED, SILENT, LOST_MACHINE, ABSENT = range(4)
SECONDS_SAID_MAX = 2**31 - 1  # that an entry can say
LOCAL_TALLY = ("accepted", "refused: not free", "refused otherwise", "tasks preempted", "workers lost", "takeovers")


ASKER = np.dtype([
    ("known", np.int64),  # version that this global master has seen
    ("top", np.int64),  # highest number of a request
    ("bits", np.uint64),  # which of the 64 up to it were seen
    ("incarnation", np.int64),
    ("heard", np.float64),  # seconds: when it last answered a heartbeat
    ("over_first", np.int32),  # rows of its attempts that are over and that it has not noted, in order
    ("over_last", np.int32),
])
MACHINE = np.dtype([
    ("configuration", np.int32),  # NOBODY where the operator took it away
    ("state", np.int8),  # one of MACHINE_STATES
    ("heard", np.float64),  # seconds: when its worker last gave a sign of life
    ("worker_incarnation", np.int64),
    ("starts", np.int64),  # told to this incarnation of its worker
    ("report", np.int64),  # number of the report that is coming in
    ("reported", np.int32),  # attempts of it that came
    ("held_by", np.int32),  # the global master that has it held back; NOBODY
    ("held_for", np.int64),  # the task that it said so for, NOBODY
    ("held_since", np.float64),  # seconds
    ("passed_over", np.float64),  # seconds: since when that task is
    ("reborn", np.int64),  # the later incarnation of its worker that has attempts to report; 0 where there is none
])


class Standing(Numbers):
    """Whether a local master speaks for its cluster."""

    epoch: int
    active: int
    pulse_at: float  # seconds: sent by this master, and answered; of a standby, heard


class LocalTally(Numbers):
    """How often what happened at a local master, in the order of LOCAL_TALLY."""

    accepted: int
    refused_not_free: int
    refused_other: int
    preempted_tasks: int
    workers_lost: int
    takeovers: int


class LocalMaster(NamedTuple):
    """One local master, or its standby. Tables by machine hold all machines; each touches its own cluster's."""

    number: int  # its cluster; of a standby `standbys` of the topology more
    cluster: int
    fleet: FleetState  # what is free, by the attempts below
    rows: Attempts
    ledger: Ledger
    asker: np.ndarray  # ASKER[global_master]
    machine: np.ndarray  # MACHINE[machine]
    standing: Standing
    tally: LocalTally


@inlined
def first_machine(topology: Topology, cluster: int) -> int:
    """Return the first machine of a cluster; that of the next cluster is behind its last."""
    return int(topology.block[cluster * topology.global_masters] * BLOCK)


@inlined
def tell(  # noqa: PLR0913, PLR0917  (a message has many fields)
    local: LocalMaster, topology: Topology, rules: Rules, kind: int, master: int, task: int, machine: int, out: Outbox
) -> np.void:
    """Post a message to a global master, with everything that has changed since the version it has seen.

    `incarnation` is that of the global master that is heeded: what was promised to a former one answers no later one.
    """
    row = post(out, kind, local.number, master, task, machine)
    since = local.asker[master]["known"]
    if not reaches_back_to(local.ledger, since):
        if not reaches_back_to(local.ledger, local.ledger.counts.whole_at):
            write_whole(local, topology)
        since = local.ledger.counts.whole_at
    row["first"], row["last"], row["epoch"] = since, local.ledger.counts.version, local.standing.epoch
    row["count"] = topology.size[local.cluster] if rules.full_updates else row["last"] - row["first"]
    row["incarnation"] = local.asker[master]["incarnation"]
    return row


@noinline
def write_over_what_was_seen(local: LocalMaster) -> None:
    """Keep the entries only that some global master has not seen, and the last whole state, for who asks for it."""
    ledger, needed = local.ledger, local.ledger.counts.version
    for master in range(local.asker.size):
        if local.asker[master]["known"] >= 0:  # else it is told a whole state
            needed = min(needed, local.asker[master]["known"])
    whole = ledger.counts.whole_at
    if whole >= ledger.counts.needed_from and ledger.counts.version - whole <= ledger.entry.size:
        needed = min(needed, whole)
    ledger.counts.needed_from = max(ledger.counts.needed_from, needed)


@noinline
def write_whole(local: LocalMaster, topology: Topology) -> None:
    """Enter the whole state of the cluster into the ledger."""
    first, end = first_machine(topology, local.cluster), first_machine(topology, local.cluster + 1)
    local.ledger.counts.whole_at = local.ledger.counts.version
    enter(local.ledger, ENTRY_WHOLE, first, NOBODY, 0)
    for machine in range(first, end):
        number = local.rows.first[machine]
        while number != NOBODY:
            enter_row(local, number)
            number = local.rows.row[number]["next"]
        if local.machine[machine]["state"] != SILENT:
            enter_size(local, machine)


@inlined
def answer_for(
    local: LocalMaster, topology: Topology, rules: Rules, kind: int, number: int, reason: int, out: Outbox
) -> None:
    """Tell a global master what became of an attempt of its task."""
    row = local.rows.row[number]
    answer = tell(local, topology, rules, kind, row["owner"], row["task"], row["machine"], out)
    answer["row"], answer["round"], answer["attempt"], answer["reason"] = (
        row["row"], row["round"], row["attempt"], reason)


@inlined
def enter_attempt(local: LocalMaster, kind: int, number: int) -> np.void:
    """Enter something of an attempt, and return the entry for the fields that depend on the kind."""
    row = local.rows.row[number]
    entry = enter(local.ledger, kind, row["machine"], row["task"], row["attempt"])
    entry["owner"], entry["row"], entry["shape"], entry["queue"] = row["owner"], row["row"], row["shape"], row["queue"]
    entry["in_gang"], entry["preempted"], entry["round"] = row["in_gang"], row["preempted"], row["round"]
    entry["code"] = row["code"]
    return entry


@noinline
def enter_row(local: LocalMaster, number: int) -> None:
    """Enter an attempt as it stands."""
    row = local.rows.row[number]
    if row["state"] != ATTEMPT_PENDING:
        kind = ENTRY_GONE if row["state"] == ATTEMPT_OVER else ENTRY_TOOK
        entry = enter_attempt(local, kind, number)
        entry["reason"] = row["reason"] if kind == ENTRY_GONE else NO_REASON
        entry["held"] = row["state"] == ATTEMPT_HELD


@inlined
def enter_size(local: LocalMaster, machine: int) -> None:
    """Enter the capacity of a machine of which everything is known."""
    configuration = local.machine[machine]["configuration"] if local.machine[machine]["state"] == LISTED else NOBODY
    entry = enter(local.ledger, ENTRY_SIZED, machine, configuration, local.machine[machine]["held_for"])
    entry["owner"] = local.machine[machine]["held_by"]
    if entry["owner"] != NOBODY:
        seconds = local.machine[machine]["held_since"] - local.machine[machine]["passed_over"]
        entry["heir"] = int(min(seconds, SECONDS_SAID_MAX))


@inlined
def start(local: LocalMaster, number: int, now: float, incarnation_bits: int, out: Outbox) -> None:
    """Tell the worker to start an attempt."""
    row = local.rows.row[number]
    machine = row["machine"]
    local.machine[machine]["starts"] += 1
    row["start"] = (local.machine[machine]["worker_incarnation"] << incarnation_bits) + local.machine[machine]["starts"]
    row["state"], row["since"] = ATTEMPT_STARTING, now
    order(local, START, number, out)


@inlined
def order(local: LocalMaster, kind: int, number: int, out: Outbox) -> None:
    """Send a worker an order about an attempt."""
    row = local.rows.row[number]
    message = post(out, kind, local.number, row["machine"], row["task"], row["machine"])
    message["attempt"], message["start"], message["epoch"] = row["attempt"], row["start"], local.standing.epoch
    message["reason"], message["handle"] = row["reason"], number
    tell_task(message, row)


@inlined
def end_row(local: LocalMaster, number: int, reason: int) -> None:
    """Enter the end of an attempt that held its amounts; it is kept until its global master has noted it."""
    entry, heir = enter_attempt(local, ENTRY_GAVE, number), local.rows.row[number]["heir"]
    entry["reason"], entry["held"] = reason, local.rows.row[number]["state"] == ATTEMPT_HELD
    if heir != NOBODY:
        entry["heir"] = local.rows.row[heir]["queue"]
    keep_over(local, number, reason)


@inlined
def keep_over(local: LocalMaster, number: int, reason: int) -> None:
    """Put an attempt last among those of its global master that are over."""
    row = local.rows.row[number]
    asker = local.asker[row["owner"]]
    row["state"], row["reason"], row["heir"] = ATTEMPT_OVER, reason, NOBODY
    row["version"] = local.ledger.counts.version
    if asker["over_first"] == NOBODY:
        asker["over_first"] = number
    else:
        local.rows.row[asker["over_last"]]["heir"] = number
    asker["over_last"] = number


@inlined
def forget_noted(local: LocalMaster, owner: int, out: Outbox) -> None:
    """Forget attempts whose end their global master has noted, the oldest first, and let their workers do so.

    Nothing of a machine is forgotten while its report comes in; what is left is forgotten with the next word of it.
    """
    asker, rows = local.asker[owner], local.rows.row
    before, number = NOBODY, asker["over_first"]
    while number != NOBODY and rows[number]["version"] <= asker["known"] and not is_filling(out):
        after = rows[number]["heir"]
        if is_awaited(local, rows[number]["machine"]):
            before = number
        else:
            order(local, FORGET, number, out)
            if before == NOBODY:
                asker["over_first"] = after
            else:
                rows[before]["heir"] = after
            if after == NOBODY:
                asker["over_last"] = before
            drop_attempt(local.rows, number)
        number = after


@inlined
def is_awaited(local: LocalMaster, machine: int) -> bool:
    """Whether a report of a machine's worker is coming in, or must."""
    return bool(local.machine[machine]["state"] == SILENT or local.machine[machine]["reborn"] > 0)


@noinline
def hold_no_longer(local: LocalMaster, machine: int) -> None:
    """Let everybody use a machine that was held back, which all is known of."""
    local.machine[machine]["held_by"], local.machine[machine]["held_for"] = NOBODY, NOBODY
    enter_size(local, machine)


@noinline
def forget_pending(local: LocalMaster, topology: Topology, owner: int) -> None:
    """Give up what waits for victims, and what is held back, on behalf of a global master's former incarnation.

    The new one cannot know.
    """
    for machine in range(first_machine(topology, local.cluster), first_machine(topology, local.cluster + 1)):
        if local.machine[machine]["held_by"] == owner:
            hold_no_longer(local, machine)
        number = local.rows.first[machine]
        while number != NOBODY:
            row = local.rows.row[number]
            after = row["next"]
            if row["state"] == ATTEMPT_PENDING and row["owner"] == owner:
                forget_heir(local, machine, number)
                drop_attempt(local.rows, number)
            number = after


@noinline
def forget_heir(local: LocalMaster, machine: int, heir: int) -> None:
    """Let nobody wait for the victims of an attempt that is given up."""
    number = local.rows.first[machine]
    while number != NOBODY:
        row = local.rows.row[number]
        if row["state"] != ATTEMPT_OVER and row["heir"] == heir:
            row["heir"] = NOBODY
        number = row["next"]
