"""Lets a standby take over from a local master, and a deposed one step down.

- A standby that hears no pulse for a third of a lease takes over, in an epoch of its own: everything that it knows it
  asks of the workers, which obey the later epoch from then on. The other master hears of it at once, else both could
  take over, and the one of the earlier epoch be left alone with workers that do not obey it. A worker that has not
  reported is SILENT: nothing is placed on it, and nothing of it is declared lost before a lease has passed in which no
  other master can have kept it alive: since the other one confirmed the new epoch, or, without a standby, since the
  takeover.
- A restarted local master is a standby; without one at its side it takes over at once. Its epoch is on disk.

Source: Megha section IV-D names active and standby.
"""
import numpy as np

from subak.federation.megha.attempts import drop_attempt
from subak.federation.megha.local_master.handlers import adopt_incarnation
from subak.federation.megha.local_master.leases import patience, pulse, summon, timer
from subak.federation.megha.local_master.state import (
    ABSENT,
    SILENT,
    LocalMaster,
    first_machine,
    tell,
    write_whole,
)
from subak.federation.megha.topology import Rules, Topology
from subak.federation.messages import BEAT, CHECK, NOBODY, PULSE, UPDATE, WATCH, Outbox, post
from subak.fleet.index import lower_summary
from subak.fleet.state import BLOCK
from subak.marks import inlined, noinline
from subak.workload.tasks import Shapes

NEVER = -1  # a version that nobody has seen
ECHO = 1  # `count` of a PULSE that answers one
UNCONFIRMED = float("-inf")  # pulse_at of a new active master: the other one has not confirmed its epoch
LOOK_AGAIN = 1.0 / 64.0  # of its patience a standby waits at least: what rounding leaves of it may be no time at all


@inlined
def on_watch(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, out: Outbox
) -> None:
    """Take over when the active master has not been heard for long; else look again."""
    if local.standing.active:
        return
    waited = now - local.standing.pulse_at
    if waited >= patience(rules) or not rules.standby:
        take_over(local, topology, rules, now, out)
    else:
        timer(local, WATCH, max(patience(rules) - waited, patience(rules) * LOOK_AGAIN), out)


@noinline
def take_over(local: LocalMaster, topology: Topology, rules: Rules, now: float, out: Outbox) -> None:
    """Speak for the cluster in a later epoch: know nothing, and ask every worker."""
    parity = local.number // topology.standbys
    later = local.standing.epoch + 1
    local.standing.epoch = later if later % 2 == parity else later + 1
    local.standing.active = 1
    local.tally.takeovers += 1
    local.standing.pulse_at = UNCONFIRMED
    forget_cluster(local, topology, now)
    write_whole(local, topology)
    for machine in range(first_machine(topology, local.cluster), first_machine(topology, local.cluster + 1)):
        if local.machine[machine]["state"] == SILENT:
            summon(local, machine, out)
    for master in range(topology.global_masters):
        tell(local, topology, rules, UPDATE, master, NOBODY, NOBODY, out)
    pulse(local, topology, rules, now, out)
    timer(local, BEAT, rules.heartbeat, out)
    timer(local, CHECK, min(rules.retry, patience(rules) / 4.0), out)


@inlined
def forget_cluster(local: LocalMaster, topology: Topology, now: float) -> None:
    """Lose everything but the epoch, and what the operator said."""
    first, end = first_machine(topology, local.cluster), first_machine(topology, local.cluster + 1)
    for machine in range(first, end):
        while local.rows.first[machine] != NOBODY:
            drop_attempt(local.rows, local.rows.first[machine])
        local.machine[machine]["state"] = SILENT if local.machine[machine]["configuration"] != NOBODY else ABSENT
        local.machine[machine]["heard"] = now
        local.machine[machine]["held_by"], local.machine[machine]["held_for"] = NOBODY, NOBODY
        local.machine[machine]["report"], local.machine[machine]["reported"] = 0, 0
        local.machine[machine]["worker_incarnation"], local.machine[machine]["reborn"] = 0, 0
        for resource in range(local.fleet.free.shape[0]):
            local.fleet.capacity[resource, machine] = 0
            local.fleet.free[resource, machine] = 0
    for block in range(first // BLOCK, end // BLOCK):
        for resource in range(local.fleet.free.shape[0]):
            lower_summary(local.fleet, resource, block)
    local.ledger.counts.version, local.ledger.counts.needed_from, local.ledger.counts.whole_at = 0, 0, NEVER
    local.ledger.counts.epoch = local.standing.epoch
    for master in range(topology.global_masters):
        local.asker[master]["known"], local.asker[master]["incarnation"] = NEVER, 0
        local.asker[master]["top"], local.asker[master]["bits"] = NEVER, np.uint64(0)
        local.asker[master]["over_first"] = NOBODY


@inlined
def on_pulse(local: LocalMaster, topology: Topology, rules: Rules, now: float, message: np.void, out: Outbox) -> None:
    """Of the active master: confirm it. Of the standby: note when the pulse was sent that it confirms."""
    if message["epoch"] > local.standing.epoch:
        step_down(local, message["epoch"], rules, now, out)
    if message["epoch"] < local.standing.epoch:
        return
    if bool(local.standing.active) != (message["count"] == ECHO):  # else two standbys would answer each other for ever
        return
    if local.standing.active:
        if local.standing.pulse_at == UNCONFIRMED:
            wait_for_all(local, topology, now)
        local.standing.pulse_at = max(local.standing.pulse_at, message["delay"])
        return
    local.standing.pulse_at = now
    row = post(out, PULSE, local.number, message["sender"], NOBODY, NOBODY)
    row["epoch"], row["delay"], row["count"] = local.standing.epoch, message["delay"], ECHO


@inlined
def wait_for_all(local: LocalMaster, topology: Topology, now: float) -> None:
    """Let the lease of every silent worker begin: from now on the other master keeps none alive."""
    for machine in range(first_machine(topology, local.cluster), first_machine(topology, local.cluster + 1)):
        if local.machine[machine]["state"] == SILENT:
            local.machine[machine]["heard"] = now


@noinline
def step_down(local: LocalMaster, epoch: int, rules: Rules, now: float, out: Outbox) -> None:
    """Become the standby of a later epoch."""
    was_active = local.standing.active
    local.standing.epoch, local.standing.active = epoch, 0
    local.standing.pulse_at = now
    if was_active and rules.standby:
        timer(local, WATCH, patience(rules), out)


@inlined
def on_ask(local: LocalMaster, topology: Topology, rules: Rules, message: np.void, out: Outbox) -> None:
    """Tell a global master the whole state; what a former incarnation of it asked is not heeded any more."""
    sender = message["sender"]
    if local.standing.active == 0 or message["incarnation"] < local.asker[sender]["incarnation"]:
        return
    if message["incarnation"] > local.asker[sender]["incarnation"]:
        adopt_incarnation(local, topology, sender, message["incarnation"])
    local.asker[sender]["known"] = NEVER
    tell(local, topology, rules, UPDATE, sender, NOBODY, NOBODY, out)


@inlined
def restart_local(local: LocalMaster, topology: Topology, rules: Rules, now: float, out: Outbox) -> None:
    """Come back with nothing but the epoch: as a standby, or, without another at one's side, as the active one."""
    local.standing.active = 0
    local.standing.pulse_at = now
    if rules.standby:
        timer(local, WATCH, patience(rules), out)
    else:
        take_over(local, topology, rules, now, out)
