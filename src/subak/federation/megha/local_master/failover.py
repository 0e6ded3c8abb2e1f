"""Declares workers lost, and lets a standby take over from a local master.

Rules:
- A worker gives signs of life; one that is silent for a lease is LOST, and so are its attempts. A worker that hears
  nothing for a lease stops everything, so nothing of a LOST worker runs. With a standby, workers are only declared lost
  while the standby confirms that it has not taken over.
- A standby that hears no pulse for a third of a lease takes over, in an epoch of its own: everything that it knows it
  asks of the workers, which obey the later epoch from then on. The other master hears of it at once, else both could
  take over, and the one of the earlier epoch be left alone with workers that do not obey it. A worker that has not
  reported is SILENT: nothing is placed on it, and nothing of it is declared lost before a lease has passed in which no
  other master can have kept it alive: since the other one confirmed the new epoch, or, without a standby, since the
  takeover.
- A machine that the operator took away has nothing, and a takeover says so: before it comes back, its worker obeys the
  latest epoch of its local masters, of whom one may not know that it was deposed.
- Reports are numbered: only one that arrives whole counts, since between two of them attempts may have been forgotten.
- A restarted local master is a standby; without one at its side it takes over at once. Its epoch is on disk.

What each message does in each state of a machine: transitions.py.

Sources: Megha section IV-D names active and standby; leases after Gray and Cheriton, SOSP 1989.
"""
import numpy as np

from subak.federation.megha.attempts import (
    add_attempt,
    drop_attempt,
    find_attempt,
    has_room,
    note_task,
)
from subak.federation.megha.ledger import LEDGER_EPOCH, NEEDED_FROM, VERSION, WHOLE_AT
from subak.federation.megha.local_master.handlers import adopt_incarnation, finish
from subak.federation.megha.local_master.state import (
    ABSENT,
    ACTIVE,
    ATTEMPT_HELD,
    ATTEMPT_KILLING,
    ATTEMPT_OVER,
    ATTEMPT_PENDING,
    ATTEMPT_RUNNING,
    ATTEMPT_STARTING,
    EPOCH,
    LISTED,
    LOST_MACHINE,
    PULSE_AT,
    REFUSED_OTHER,
    SILENT,
    TAKEOVERS,
    WORKERS_LOST,
    LocalMaster,
    answer_for,
    enter_row,
    enter_size,
    first_machine,
    forget_heir,
    hold_no_longer,
    is_awaited,
    keep_over,
    order,
    tell,
    write_whole,
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
    NO_REASON,
    NOBODY,
    NOT_THERE,
    PULSE,
    REFUSED,
    REPORT,
    START,
    STILL_HELD,
    UPDATE,
    WATCH,
    Outbox,
    go_on,
    is_filling,
    post,
)
from subak.fleet.amounts import shift, take
from subak.fleet.index import lower_summary
from subak.fleet.state import BLOCK
from subak.marks import inlined, noinline
from subak.workload.tasks import Shapes

FOREVER = float("inf")
NEVER = -1  # a version that nobody has seen
ON_A_WORKER = (ATTEMPT_STARTING, ATTEMPT_RUNNING, ATTEMPT_KILLING)  # states of attempts that a worker was told of
ECHO = 1  # `count` of a PULSE that answers one
UNCONFIRMED = float("-inf")  # PULSE_AT of a new active master: the other one has not confirmed its epoch
LOOK_AGAIN = 1.0 / 64.0  # of its patience a standby waits at least: what rounding leaves of it may be no time at all


@inlined
def patience(rules: Rules) -> float:
    """Return how long a standby waits for a pulse, and an active master counts as confirmed."""
    return rules.lease / 3.0


@inlined
def timer(local: LocalMaster, kind: int, delay: float, out: Outbox) -> None:
    """Arm a timer of this epoch."""
    row = post(out, kind, local.number, local.number, NOBODY, NOBODY)
    row["delay"], row["epoch"] = delay, local.scalar[EPOCH]


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
    if local.scalar[ACTIVE] == 0 or message["epoch"] != local.scalar[EPOCH]:
        return
    confirmed = not rules.standby or now - local.clock[PULSE_AT] <= patience(rules)
    first = message["machine"] if message["machine"] != NOBODY else first_machine(topology, local.cluster)
    for machine in range(first, first_machine(topology, local.cluster + 1)):
        if is_filling(out):
            go_on(out, CHECK, local.number, machine)["epoch"] = local.scalar[EPOCH]
            return
        is_silent = now - local.machine[machine]["heard"] > rules.lease + rules.timer_slack
        is_silent = is_silent and local.machine[machine]["state"] in (LISTED, SILENT)
        if is_silent and confirmed:
            local.tally[WORKERS_LOST] += 1
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
        row["epoch"], row["delay"] = local.scalar[EPOCH], now


@inlined
def summon(local: LocalMaster, machine: int, out: Outbox) -> None:
    """Tell a worker to obey this epoch and to report."""
    row = post(out, REPORT, local.number, machine, NOBODY, machine)
    local.machine[machine]["starts"] += 1
    row["epoch"], row["report"] = local.scalar[EPOCH], local.machine[machine]["starts"]


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
            local.tally[REFUSED_OTHER] += 1
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
def on_alive(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Note a sign of life of a worker with `count` attempts, sent at `delay`.

    One that still obeys a former epoch is summoned by the standby, too: whoever speaks gave it up when it was away.
    """
    machine = message["machine"]
    if message["epoch"] > local.scalar[EPOCH]:
        step_down(local, message["epoch"], rules, now, out)
    if local.machine[machine]["configuration"] == NOBODY:
        return
    if message["epoch"] < local.scalar[EPOCH]:
        summon(local, machine, out)
        return
    if local.scalar[ACTIVE] == 0 or message["incarnation"] < local.machine[machine]["worker_incarnation"]:
        return
    if message["count"] > 0 and message["incarnation"] > local.machine[machine]["worker_incarnation"]:
        local.machine[machine]["reborn"] = max(local.machine[machine]["reborn"], message["incarnation"])
        summon(local, machine, out)
    else:
        note_worker_incarnation(local, topology, rules, shapes, machine, message["incarnation"], now, out)
    local.machine[machine]["heard"] = max(local.machine[machine]["heard"], now)
    grant_lease(local, message, out)
    state = local.machine[machine]["state"]
    if (message["count"] == 0 and state == SILENT) or (state == LOST_MACHINE and local.machine[machine]["reborn"] == 0):
        list_machine(local, topology, machine)


@inlined
def grant_lease(local: LocalMaster, message: np.void, out: Outbox) -> None:
    """Answer a sign of life, which was sent at `delay`."""
    row = post(out, LEASE, local.number, message["machine"], NOBODY, message["machine"])
    row["delay"], row["epoch"], row["incarnation"] = message["delay"], local.scalar[EPOCH], message["incarnation"]


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


@inlined
def on_holds(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Enter an attempt that a worker reports, one of `count`, at `delay`; with the last all is known of its machine.

    A whole report is a sign of life, and is answered: so what runs need not wait for the next sign.
    Asked are workers that are SILENT, and such as have attempts of a former incarnation: these may have ended well.
    """
    machine = message["machine"]
    speaks = local.scalar[ACTIVE] and message["epoch"] == local.scalar[EPOCH]
    if not speaks or not is_awaited(local, machine):
        return
    if message["incarnation"] < max(local.machine[machine]["worker_incarnation"], local.machine[machine]["reborn"]):
        return
    number = find_attempt(local.rows, machine, message["task"], message["attempt"])
    if message["report"] < local.machine[machine]["report"] or (number == NOBODY and not has_room(local.rows)):
        return
    if message["report"] > local.machine[machine]["report"]:
        local.machine[machine]["report"], local.machine[machine]["reported"] = message["report"], 0
    if number == NOBODY:
        number = learn_attempt(local, shapes, now, message)
    elif message["reason"] != NO_REASON and local.rows.row[number]["state"] in ON_A_WORKER:
        local.rows.row[number]["code"] = message["code"]
        finish(local, topology, rules, shapes, number, message["reason"], now, out)
    if local.rows.row[number]["awaits"] != message["report"]:
        local.rows.row[number]["awaits"] = message["report"]
        local.machine[machine]["reported"] += 1
    if local.machine[machine]["reported"] == message["count"]:
        lose_unreported(local, topology, rules, shapes, machine, message["report"], now, out)
        local.machine[machine]["heard"] = now
        local.machine[machine]["worker_incarnation"], local.machine[machine]["reborn"] = message["incarnation"], 0
        grant_lease(local, message, out)
        if local.machine[machine]["state"] == SILENT:
            list_machine(local, topology, machine)


@inlined
def learn_attempt(local: LocalMaster, shapes: Shapes, now: float, message: np.void) -> int:
    """Enter an attempt that a worker knows of and this master does not; return its row."""
    machine = message["machine"]
    number = add_attempt(local.rows, machine, message["task"], message["attempt"], ATTEMPT_RUNNING)
    row = local.rows.row[number]
    note_task(row, message)
    row["since"], row["start"], row["code"] = now, message["start"], message["code"]
    if message["reason"] == NO_REASON:
        take(local.fleet, shapes, row["shape"], machine)
        enter_row(local, number)
    else:
        row["state"], row["reason"] = ATTEMPT_OVER, message["reason"]
        enter_row(local, number)
        keep_over(local, number, message["reason"])
    return number


@inlined
def on_pulse(local: LocalMaster, topology: Topology, rules: Rules, now: float, message: np.void, out: Outbox) -> None:
    """Of the active master: confirm it. Of the standby: note when the pulse was sent that it confirms."""
    if message["epoch"] > local.scalar[EPOCH]:
        step_down(local, message["epoch"], rules, now, out)
    if message["epoch"] < local.scalar[EPOCH]:
        return
    if bool(local.scalar[ACTIVE]) != (message["count"] == ECHO):  # else two standbys would answer each other for ever
        return
    if local.scalar[ACTIVE]:
        if local.clock[PULSE_AT] == UNCONFIRMED:
            wait_for_all(local, topology, now)
        local.clock[PULSE_AT] = max(local.clock[PULSE_AT], message["delay"])
        return
    local.clock[PULSE_AT] = now
    row = post(out, PULSE, local.number, message["sender"], NOBODY, NOBODY)
    row["epoch"], row["delay"], row["count"] = local.scalar[EPOCH], message["delay"], ECHO


@inlined
def wait_for_all(local: LocalMaster, topology: Topology, now: float) -> None:
    """Let the lease of every silent worker begin: from now on the other master keeps none alive."""
    for machine in range(first_machine(topology, local.cluster), first_machine(topology, local.cluster + 1)):
        if local.machine[machine]["state"] == SILENT:
            local.machine[machine]["heard"] = now


@noinline
def step_down(local: LocalMaster, epoch: int, rules: Rules, now: float, out: Outbox) -> None:
    """Become the standby of a later epoch."""
    was_active = local.scalar[ACTIVE]
    local.scalar[EPOCH], local.scalar[ACTIVE] = epoch, 0
    local.clock[PULSE_AT] = now
    if was_active and rules.standby:
        timer(local, WATCH, patience(rules), out)


@inlined
def on_watch(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, out: Outbox
) -> None:
    """Take over when the active master has not been heard for long; else look again."""
    if local.scalar[ACTIVE]:
        return
    waited = now - local.clock[PULSE_AT]
    if waited >= patience(rules) or not rules.standby:
        take_over(local, topology, rules, now, out)
    else:
        timer(local, WATCH, max(patience(rules) - waited, patience(rules) * LOOK_AGAIN), out)


@noinline
def take_over(local: LocalMaster, topology: Topology, rules: Rules, now: float, out: Outbox) -> None:
    """Speak for the cluster in a later epoch: know nothing, and ask every worker."""
    parity = local.number // topology.standbys
    later = local.scalar[EPOCH] + 1
    local.scalar[EPOCH] = later if later % 2 == parity else later + 1
    local.scalar[ACTIVE] = 1
    local.tally[TAKEOVERS] += 1
    local.clock[PULSE_AT] = UNCONFIRMED
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
    local.ledger.size[VERSION], local.ledger.size[NEEDED_FROM], local.ledger.size[WHOLE_AT] = 0, 0, NEVER
    local.ledger.size[LEDGER_EPOCH] = local.scalar[EPOCH]
    for master in range(topology.global_masters):
        local.asker[master]["known"], local.asker[master]["incarnation"] = NEVER, 0
        local.asker[master]["top"], local.asker[master]["bits"] = NEVER, np.uint64(0)
        local.asker[master]["over_first"] = NOBODY


@inlined
def on_ask(local: LocalMaster, topology: Topology, rules: Rules, message: np.void, out: Outbox) -> None:
    """Tell a global master the whole state; what a former incarnation of it asked is not heeded any more."""
    sender = message["sender"]
    if local.scalar[ACTIVE] == 0 or message["incarnation"] < local.asker[sender]["incarnation"]:
        return
    if message["incarnation"] > local.asker[sender]["incarnation"]:
        adopt_incarnation(local, topology, sender, message["incarnation"])
    local.asker[sender]["known"] = NEVER
    tell(local, topology, rules, UPDATE, sender, NOBODY, NOBODY, out)


@noinline
def on_change(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Note the operator's word on a machine: its configuration from now on, or that it leaves.

    Its worker is told after all local masters of the cluster, with the latest of their epochs.
    """
    message["epoch"] = max(message["epoch"], local.scalar[EPOCH])
    machine, configuration = message["machine"], message["shape"]
    was_absent = local.machine[machine]["configuration"] == NOBODY
    local.machine[machine]["configuration"] = configuration
    if local.scalar[ACTIVE] == 0:
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


@inlined
def restart_local(local: LocalMaster, topology: Topology, rules: Rules, now: float, out: Outbox) -> None:
    """Come back with nothing but the epoch: as a standby, or, without another at one's side, as the active one."""
    local.scalar[ACTIVE] = 0
    local.clock[PULSE_AT] = now
    if rules.standby:
        timer(local, WATCH, patience(rules), out)
    else:
        take_over(local, topology, rules, now, out)
