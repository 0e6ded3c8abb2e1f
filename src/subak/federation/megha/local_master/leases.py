"""Declares workers lost, which have been silent for a lease, and repeats what they have not answered.

- A worker gives signs of life; one that is silent for a lease is LOST, and so are its attempts. A worker that hears
  nothing for a lease stops everything, so nothing of a LOST worker runs. With a standby, workers are only declared lost
  while the standby confirms that it has not taken over.
- A machine that the operator took away has nothing, and a takeover says so: before it comes back, its worker obeys the
  latest epoch of its local masters, of whom one may not know that it was deposed.

What each message does in each state of a machine: transitions.py. Source: leases after Gray and Cheriton, SOSP 1989.
"""
import numpy as np

from subak.federation.megha.attempts import drop_attempt
from subak.federation.megha.local_master.handlers import finish
from subak.federation.megha.local_master.state import (
    ABSENT,
    ATTEMPT_HELD,
    ATTEMPT_KILLING,
    ATTEMPT_OVER,
    ATTEMPT_PENDING,
    ATTEMPT_RUNNING,
    ATTEMPT_STARTING,
    LISTED,
    LOST_MACHINE,
    SILENT,
    LocalMaster,
    answer_for,
    enter_size,
    first_machine,
    forget_heir,
    hold_no_longer,
    is_awaited,
    order,
)
from subak.federation.megha.topology import Rules, Topology
from subak.federation.messages import (
    BEAT,
    CHECK,
    GANG_LOST,
    KILL,
    LAUNCHED,
    LEASE,
    MACHINE_LOST,
    NOBODY,
    NOT_THERE,
    PULSE,
    REFUSED,
    REPORT,
    START,
    STILL_HELD,
    WATCH,
    Outbox,
    go_on,
    is_filling,
    post,
)
from subak.fleet.amounts import shift
from subak.marks import inlined, noinline
from subak.workload.tasks import Shapes

FOREVER = float("inf")
ON_A_WORKER = (ATTEMPT_STARTING, ATTEMPT_RUNNING, ATTEMPT_KILLING)  # states of attempts that a worker was told of


@inlined
def patience(rules: Rules) -> float:
    """Return how long a standby waits for a pulse, and an active master counts as confirmed."""
    return rules.lease / 3.0


@inlined
def timer(local: LocalMaster, kind: int, delay: float, out: Outbox) -> None:
    """Arm a timer of this epoch."""
    row = post(out, kind, local.number, local.number, NOBODY, NOBODY)
    row["delay"], row["epoch"] = delay, local.standing.epoch


@inlined
def begin_timers(local: LocalMaster, topology: Topology, rules: Rules, out: Outbox) -> None:
    """Arm what a local master owes itself from the start, spread over its period."""
    clusters = topology.local_masters
    if local.number >= topology.standbys:
        if rules.retry < FOREVER:
            timer(local, WATCH, patience(rules), out)
        return
    if rules.heartbeat < FOREVER:
        timer(local, BEAT, rules.heartbeat * (local.cluster + 1) / clusters, out)
    if rules.retry < FOREVER:
        timer(local, CHECK, rules.lease / 12.0 * (local.cluster + 1) / clusters, out)


@inlined
def on_check(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Look after workers and unanswered orders, from a machine on; the next look follows.

    A worker that is silent and may not be declared lost, for want of a partner who could say whether it obeys another,
    is asked itself: only so does a master that was deposed while it was cut off hear of it, if its partner then dies.
    """
    if local.standing.active == 0 or message["epoch"] != local.standing.epoch:
        return
    confirmed = not rules.standby or now - local.standing.pulse_at <= patience(rules)
    first = message["machine"] if message["machine"] != NOBODY else first_machine(topology, local.cluster)
    for machine in range(first, first_machine(topology, local.cluster + 1)):
        if is_filling(out):
            go_on(out, CHECK, local.number, machine)["epoch"] = local.standing.epoch
            return
        is_silent = now - local.machine[machine]["heard"] > rules.lease + rules.timer_slack
        is_silent = is_silent and local.machine[machine]["state"] in (LISTED, SILENT)
        if is_silent and confirmed:
            local.tally.workers_lost += 1
            lose_machine(local, topology, rules, shapes, machine, LOST_MACHINE, now, out)
        elif is_silent or is_awaited(local, machine):
            summon(local, machine, out)
        repeat_orders(local, topology, rules, shapes, machine, now, out)
        give_back_if_dead(local, rules, machine, now)
    pulse(local, topology, rules, now, out)
    timer(local, CHECK, min(rules.retry, patience(rules) / 4.0), out)


@inlined
def pulse(local: LocalMaster, topology: Topology, rules: Rules, now: float, out: Outbox) -> None:
    """Let the other local master of the cluster know that this one is active."""
    if rules.standby:
        other = (local.number + topology.standbys) % (2 * topology.standbys)
        row = post(out, PULSE, local.number, other, NOBODY, NOBODY)
        row["epoch"], row["delay"] = local.standing.epoch, now


@inlined
def summon(local: LocalMaster, machine: int, out: Outbox) -> None:
    """Tell a worker to obey this epoch and to report."""
    row = post(out, REPORT, local.number, machine, NOBODY, machine)
    local.machine[machine]["starts"] += 1
    row["epoch"], row["report"] = local.standing.epoch, local.machine[machine]["starts"]


@inlined
def repeat_orders(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, machine: int, now: float, out: Outbox
) -> None:
    """Repeat what was not answered: starts and kills to the worker, a held gang's question to its global master.

    A global master that says nothing for a heartbeat and a lease may never return: what is held for it is given back.
    """
    number = local.rows.first[machine]
    while number != NOBODY:
        row = local.rows.row[number]
        if now - row["since"] >= rules.retry:
            if row["state"] == ATTEMPT_STARTING:
                order(local, START, number, out)
            elif row["state"] == ATTEMPT_KILLING:
                order(local, KILL, number, out)
            elif row["state"] == ATTEMPT_HELD:
                heard = max(row["since"], local.asker[row["owner"]]["heard"])
                if now - heard > rules.heartbeat + rules.lease:
                    finish(local, topology, rules, shapes, number, GANG_LOST, now, out)
                else:
                    answer_for(local, topology, rules, LAUNCHED, number, STILL_HELD, out)
        number = row["next"]


@inlined
def give_back_if_dead(local: LocalMaster, rules: Rules, machine: int, now: float) -> None:
    """Hold a machine back no longer for a global master that says nothing for a heartbeat and a lease."""
    row = local.machine[machine]
    if row["held_by"] != NOBODY:
        heard = max(row["held_since"], local.asker[row["held_by"]]["heard"])
        if now - heard > rules.heartbeat + rules.lease:
            hold_no_longer(local, machine)


@noinline
def lose_machine(  # noqa: PLR0913, PLR0917  (a machine, and what became of it)
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, machine: int, state: int, now: float,
    out: Outbox
) -> None:
    """End every attempt on a machine that is lost or was taken away, and let it have nothing."""
    local.machine[machine]["reborn"] = 0
    local.machine[machine]["held_by"], local.machine[machine]["held_for"] = NOBODY, NOBODY
    lose_attempts(local, topology, rules, shapes, machine, state, now, out)
    shift(local.fleet, machine, topology.capacity, NOBODY)
    enter_size(local, machine)


@noinline
def lose_attempts(  # noqa: PLR0913, PLR0917  (as above)
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, machine: int, state: int, now: float,
    out: Outbox
) -> None:
    """End every attempt on a machine; those that waited for victims there are refused."""
    local.machine[machine]["state"] = state
    number = local.rows.first[machine]
    while number != NOBODY:
        row = local.rows.row[number]
        if row["state"] == ATTEMPT_PENDING:
            local.tally.refused_other += 1
            answer_for(local, topology, rules, REFUSED, number, NOT_THERE, out)
            forget_heir(local, machine, number)
            drop_attempt(local.rows, number)
            number = local.rows.first[machine]
        elif row["state"] != ATTEMPT_OVER:
            row["heir"] = NOBODY if not has_heir(local, number) else row["heir"]
            if row["heir"] == NOBODY:
                finish(local, topology, rules, shapes, number, MACHINE_LOST, now, out)
                number = local.rows.first[machine]
            else:
                number = row["next"]
        else:
            number = row["next"]


@noinline
def lose_unreported(  # noqa: PLR0913, PLR0917  (as above)
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, machine: int, report: int, now: float,
    out: Outbox,
) -> None:
    """End the attempts that a worker was told of and that are not in its report."""
    number = local.rows.first[machine]
    while number != NOBODY:
        row = local.rows.row[number]
        if row["state"] in ON_A_WORKER and row["awaits"] != report:
            finish(local, topology, rules, shapes, number, MACHINE_LOST, now, out)
            number = local.rows.first[machine]
        else:
            number = row["next"]


@inlined
def has_heir(local: LocalMaster, number: int) -> bool:
    """Whether an attempt is preempted for one that still waits for it."""
    heir = local.rows.row[number]["heir"]
    return bool(heir != NOBODY and local.rows.row[heir]["state"] == ATTEMPT_PENDING)


@inlined
def grant_lease(local: LocalMaster, message: np.void, out: Outbox) -> None:
    """Answer a sign of life, which was sent at `delay`."""
    row = post(out, LEASE, local.number, message["machine"], NOBODY, message["machine"])
    row["delay"], row["epoch"], row["incarnation"] = message["delay"], local.standing.epoch, message["incarnation"]


@noinline
def note_worker_incarnation(  # noqa: PLR0913, PLR0917  (a machine, and its worker's incarnation)
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, machine: int, incarnation: int, now: float,
    out: Outbox
) -> None:
    """End what ran in a former incarnation of a worker, and is not known to have ended."""
    if incarnation > local.machine[machine]["worker_incarnation"]:
        lose_attempts(local, topology, rules, shapes, machine, local.machine[machine]["state"], now, out)
        local.machine[machine]["worker_incarnation"], local.machine[machine]["reborn"] = incarnation, 0


@noinline
def list_machine(local: LocalMaster, topology: Topology, machine: int) -> None:
    """Let a machine of which everything is known have its capacity again."""
    local.machine[machine]["state"] = LISTED
    shift(local.fleet, machine, topology.capacity, local.machine[machine]["configuration"])
    enter_size(local, machine)


@noinline
def on_change(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Note the operator's word on a machine: its configuration from now on, or that it leaves.

    Its worker is told after all local masters of the cluster, with the latest of their epochs.
    """
    message["epoch"] = max(message["epoch"], local.standing.epoch)
    machine, configuration = message["machine"], message["shape"]
    was_absent = local.machine[machine]["configuration"] == NOBODY
    local.machine[machine]["configuration"] = configuration
    if local.standing.active == 0:
        return
    if configuration == NOBODY:
        if not was_absent:
            lose_machine(local, topology, rules, shapes, machine, ABSENT, now, out)
    elif was_absent:
        local.machine[machine]["worker_incarnation"] += 1
        local.machine[machine]["starts"], local.machine[machine]["heard"] = 0, now
        local.machine[machine]["reborn"] = 0
        list_machine(local, topology, machine)
    elif local.machine[machine]["state"] == LISTED:
        shift(local.fleet, machine, topology.capacity, configuration)
        enter_size(local, machine)
