"""The handlers of a local master: checks requests against the truth, orders workers, reports changes.

Rules:
- Amounts are taken when a request is accepted and given back when the worker has said that the attempt is over.
- A request is numbered by its global master and carried out at most once, and only in the epoch it was made for.
- Every answer carries what has changed since the version that the asker has seen.
- The end of an attempt is kept until its global master has noted it.
- Who hears of a later epoch than its own steps down.

What each message does in each state of an attempt: transitions.py.

Sources: Megha sections IV-A, IV-B.4, IV-B.6 and IV-C; windows and epochs make its section IV-D precise.
"""
import numpy as np

from subak.federation.megha.attempts import (
    add_attempt,
    drop_attempt,
    find_attempt,
    find_by_handle,
    has_room,
    note_task,
)
from subak.federation.megha.ledger import ENTRY_TOOK, may_write_over_more
from subak.federation.megha.local_master.state import (
    ATTEMPT_HELD,
    ATTEMPT_KILLING,
    ATTEMPT_OVER,
    ATTEMPT_PENDING,
    ATTEMPT_RUNNING,
    ATTEMPT_STARTING,
    LISTED,
    SILENT,
    LocalMaster,
    answer_for,
    end_row,
    enter_attempt,
    enter_size,
    forget_heir,
    forget_noted,
    forget_pending,
    hold_no_longer,
    order,
    start,
    tell,
    write_over_what_was_seen,
)
from subak.federation.megha.replay_window import is_new
from subak.federation.megha.topology import INCARNATION_BITS, Rules, Topology
from subak.federation.messages import (
    BEAT,
    ENDED,
    FORGET,
    HELD_FOR_ANOTHER,
    KILL,
    LAUNCHED,
    NO_REASON,
    NO_ROOM,
    NO_VICTIMS,
    NOBODY,
    NOT_FREE,
    NOT_THERE,
    OLD_EPOCH,
    OLD_REQUEST,
    PREEMPT,
    REFUSED,
    UPDATE,
    Outbox,
    post,
)
from subak.federation.messages import PREEMPTED as PREEMPTED_REASON
from subak.fleet.amounts import give_back, take
from subak.fleet.feasible import shape_fits
from subak.marks import inlined, noinline
from subak.workload.tasks import Shapes

NUMBER_MASK = (1 << INCARNATION_BITS) - 1
FOREVER = float("inf")


@inlined
def note_seen(local: LocalMaster, sender: int, message: np.void, out: Outbox) -> None:
    """Note what a global master has seen of this epoch, and forget the ends that were kept for it."""
    if message["epoch"] == local.standing.epoch and message["seen"] >= local.asker[sender]["known"]:
        local.asker[sender]["known"] = message["seen"]
        forget_noted(local, sender, out)
        if may_write_over_more(local.ledger):
            write_over_what_was_seen(local)


@inlined
def on_request(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Carry out LAUNCH, REPARTITION or PREEMPT, or refuse it; either way the answer carries the state."""
    if not heeds(local, topology, message, out):
        return
    sender, machine = message["sender"], message["machine"]
    known = find_attempt(local.rows, machine, message["task"], message["attempt"]) if is_old(local, message) else NOBODY
    if known != NOBODY:
        repeat_answer(local, topology, rules, known, out)
    elif message["epoch"] != local.standing.epoch:
        if local.machine[machine]["state"] != SILENT:
            refuse(local, topology, rules, message, OLD_EPOCH, out)
    elif not is_new(local.asker[sender], message["attempt"] & NUMBER_MASK):
        refuse(local, topology, rules, message, OLD_REQUEST, out)
    else:
        decide(local, topology, rules, shapes, now, message, out)


@inlined
def heeds(local: LocalMaster, topology: Topology, message: np.void, out: Outbox) -> bool:
    """Whether the request is for this master to answer: it speaks for the cluster, and the asker still lives."""
    sender, incarnation = message["sender"], message["incarnation"]
    if local.standing.active == 0 or incarnation < local.asker[sender]["incarnation"]:
        return False
    if incarnation > local.asker[sender]["incarnation"]:
        adopt_incarnation(local, topology, sender, incarnation)
    note_seen(local, sender, message, out)
    return True


@noinline
def adopt_incarnation(local: LocalMaster, topology: Topology, sender: int, incarnation: int) -> None:
    """Heed a later incarnation of a global master, whose requests are numbered anew; what pends is given up."""
    local.asker[sender]["incarnation"] = incarnation
    local.asker[sender]["top"], local.asker[sender]["bits"] = NOBODY, np.uint64(0)
    forget_pending(local, topology, sender)


@inlined
def is_old(local: LocalMaster, message: np.void) -> bool:
    """Whether the attempt may be known already: its number is not above all others, or its epoch is another."""
    number = message["attempt"] & NUMBER_MASK
    return bool(message["epoch"] != local.standing.epoch or number <= local.asker[message["sender"]]["top"])


@noinline
def repeat_answer(local: LocalMaster, topology: Topology, rules: Rules, number: int, out: Outbox) -> None:
    """Say again what became of an attempt that is known."""
    row = local.rows.row[number]
    if row["state"] == ATTEMPT_PENDING:
        return
    kind = ENDED if row["state"] == ATTEMPT_OVER else LAUNCHED
    answer_for(local, topology, rules, kind, number, row["reason"], out)


@inlined
def decide(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Accept a new request if the truth allows it."""
    machine = message["machine"]
    if local.machine[machine]["state"] != LISTED:
        refuse(local, topology, rules, message, NOT_THERE, out)
    elif is_held_for_another(local, machine, message["sender"]):
        refuse(local, topology, rules, message, HELD_FOR_ANOTHER, out)
    elif not has_room(local.rows):
        refuse(local, topology, rules, message, NO_ROOM, out)
    elif shape_fits(local.fleet, shapes, message["shape"], machine):
        number = note_request(local, message, ATTEMPT_HELD)
        accept(local, topology, rules, shapes, number, now, out)
    elif message["kind"] == PREEMPT:
        begin_preemption(local, topology, rules, shapes, now, message, out)
    else:
        refuse(local, topology, rules, message, NOT_FREE, out)


@inlined
def is_held_for_another(local: LocalMaster, machine: int, sender: int) -> bool:
    """Whether a machine is held back for another global master."""
    holder = local.machine[machine]["held_by"]
    return bool(holder != NOBODY and holder != sender)  # noqa: PLR1714  (which the compiler does not know of records)


@inlined
def note_request(local: LocalMaster, message: np.void, state: int) -> int:
    """Note a requested attempt, and return its row."""
    number = add_attempt(local.rows, message["machine"], message["task"], message["attempt"], state)
    note_task(local.rows.row[number], message)
    return number


@inlined
def accept(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, number: int, now: float, out: Outbox
) -> None:
    """Take the amounts of an attempt and start it; one of a gang is held. The global master is told."""
    row = local.rows.row[number]
    local.tally.accepted += 1
    take(local.fleet, shapes, row["shape"], row["machine"])
    entry = enter_attempt(local, ENTRY_TOOK, number)
    if not row["in_gang"]:
        start(local, number, now, INCARNATION_BITS, out)
    else:
        entry["held"] = 1
        row["state"], row["since"] = ATTEMPT_HELD, now
    answer_for(local, topology, rules, LAUNCHED, number, NO_REASON, out)


@noinline
def refuse(
    local: LocalMaster, topology: Topology, rules: Rules, message: np.void, reason: int, out: Outbox
) -> None:
    """Answer that the attempt has nothing and never will."""
    if reason == NOT_FREE:
        local.tally.refused_not_free += 1
    else:
        local.tally.refused_other += 1
    answer = tell(local, topology, rules, REFUSED, message["sender"], message["task"], message["machine"], out)
    answer["row"], answer["round"], answer["attempt"], answer["reason"] = (
        message["row"], message["round"], message["attempt"], reason)


@inlined
def begin_preemption(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """End as many tasks of the queue as make room: those of the least priority first, of equals the latest started."""
    machine, queue = message["machine"], message["victims"]
    heir = note_request(local, message, ATTEMPT_PENDING)
    while not enough(local, shapes, message["shape"], machine, heir):
        victim = next_victim(local, rules, machine, queue)
        if victim == NOBODY:
            spare_victims(local, machine, heir)
            drop_attempt(local.rows, heir)
            refuse(local, topology, rules, message, NO_VICTIMS, out)
            return
        local.rows.row[victim]["heir"] = heir
        local.rows.row[heir]["awaits"] += 1
    number = local.rows.first[machine]
    while number != NOBODY:
        row = local.rows.row[number]
        if row["heir"] == heir and row["state"] in (ATTEMPT_STARTING, ATTEMPT_RUNNING):
            local.tally.preempted_tasks += 1
            kill(local, number, PREEMPTED_REASON, now, out)
        number = row["next"]


@inlined
def enough(local: LocalMaster, shapes: Shapes, shape: int, machine: int, heir: int) -> bool:
    """Whether what is free and not spoken for, and what the attempt's own victims hold, suffices."""
    for resource in range(local.fleet.free.shape[0]):
        spoken_for = 0
        room = int(local.fleet.free[resource, machine])
        number = local.rows.first[machine]
        while number != NOBODY:
            row = local.rows.row[number]
            amount = shapes.request[resource, row["shape"]]
            if row["state"] == ATTEMPT_PENDING and number != heir:
                spoken_for += amount
            elif row["state"] in (ATTEMPT_STARTING, ATTEMPT_RUNNING, ATTEMPT_KILLING) and row["heir"] == heir:
                room += amount
            elif row["state"] in (ATTEMPT_STARTING, ATTEMPT_RUNNING, ATTEMPT_KILLING) and row["heir"] != NOBODY:
                spoken_for -= amount
            number = row["next"]
        if room - max(spoken_for, 0) < shapes.request[resource, shape]:
            return False
    return True


@inlined
def next_victim(local: LocalMaster, rules: Rules, machine: int, queue: int) -> int:
    """Return the row of the next task of the queue to preempt on a machine, NOBODY if there is none."""
    best = NOBODY
    number = local.rows.first[machine]
    while number != NOBODY:
        row = local.rows.row[number]
        may = row["state"] in (ATTEMPT_STARTING, ATTEMPT_RUNNING) and row["heir"] == NOBODY
        may = may and row["queue"] == queue and not row["in_gang"] and row["preempted"] < rules.preemptions_max
        if may and (best == NOBODY or goes_first(local, number, best)):
            best = number
        number = row["next"]
    return int(best)


@inlined
def goes_first(local: LocalMaster, number: int, other: int) -> bool:
    """Whether one attempt is preempted before another."""
    first, second = local.rows.row[number], local.rows.row[other]
    if first["priority"] != second["priority"]:
        return bool(first["priority"] < second["priority"])
    return bool(first["start"] > second["start"])


@inlined
def spare_victims(local: LocalMaster, machine: int, heir: int) -> None:
    """Unmark the victims of a preemption that cannot make room."""
    number = local.rows.first[machine]
    while number != NOBODY:
        row = local.rows.row[number]
        if row["heir"] == heir and row["state"] in (ATTEMPT_STARTING, ATTEMPT_RUNNING):
            row["heir"] = NOBODY
        number = row["next"]


@inlined
def kill(local: LocalMaster, number: int, reason: int, now: float, out: Outbox) -> None:
    """Tell the worker to end an attempt."""
    row = local.rows.row[number]
    row["state"], row["reason"], row["since"] = ATTEMPT_KILLING, reason, now
    order(local, KILL, number, out)


@inlined
def on_go(local: LocalMaster, topology: Topology, now: float, message: np.void, out: Outbox) -> None:
    """Start an attempt that was held for its gang."""
    if heeds(local, topology, message, out):
        number = find_attempt(local.rows, message["machine"], message["task"], message["attempt"])
        if number != NOBODY and local.rows.row[number]["state"] == ATTEMPT_HELD:
            start(local, number, now, INCARNATION_BITS, out)


@inlined
def on_hold_back(
    local: LocalMaster, topology: Topology, rules: Rules, now: float, message: np.void, out: Outbox
) -> None:
    """Hold a machine back for a global master, or no longer; for who has been passed over longest where several ask.

    The ledger tells everybody.
    """
    if not heeds(local, topology, message, out) or message["epoch"] != local.standing.epoch:
        return
    machine, sender = message["machine"], message["sender"]
    row = local.machine[machine]
    if row["state"] != LISTED:
        return
    since = now - message["delay"]
    if message["task"] == NOBODY:
        if row["held_by"] == sender:
            hold_no_longer(local, machine)
    elif row["held_for"] != message["task"] and (
        not is_held_for_another(local, machine, sender) or goes_before(rules, sender, since, row)
    ):
        row["held_by"], row["held_for"], row["held_since"], row["passed_over"] = sender, message["task"], now, since
        enter_size(local, machine)


@inlined
def goes_before(rules: Rules, sender: int, since: float, row: np.void) -> bool:
    """Whether a machine is held back for a global master rather than for whom it is: it was passed over for longer.

    How long a message was under way makes no difference: within two heartbeats the lower number goes first.
    """
    if abs(since - row["passed_over"]) <= 2.0 * rules.heartbeat:
        return bool(sender < row["held_by"])
    return bool(since < row["passed_over"])


@inlined
def on_abandon(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Give an attempt up, wherever it is; one that was never seen is never carried out."""
    if not heeds(local, topology, message, out):
        return
    machine = message["machine"]
    number = find_attempt(local.rows, machine, message["task"], message["attempt"])
    if number == NOBODY:
        if message["epoch"] == local.standing.epoch:
            if message["attempt"] >> INCARNATION_BITS == message["incarnation"]:  # a former one's is not heeded anyway
                is_new(local.asker[message["sender"]], message["attempt"] & NUMBER_MASK)
            refuse(local, topology, rules, message, message["reason"], out)
        elif local.machine[machine]["state"] != SILENT:
            refuse(local, topology, rules, message, OLD_EPOCH, out)
        return
    state = local.rows.row[number]["state"]
    if state == ATTEMPT_HELD:
        finish(local, topology, rules, shapes, number, message["reason"], now, out)
    elif state == ATTEMPT_PENDING:
        forget_heir(local, machine, number)
        drop_attempt(local.rows, number)
        refuse(local, topology, rules, message, message["reason"], out)
    elif state in (ATTEMPT_STARTING, ATTEMPT_RUNNING):
        kill(local, number, message["reason"], now, out)
    elif state == ATTEMPT_OVER:
        repeat_answer(local, topology, rules, number, out)


@inlined
def on_started(local: LocalMaster, now: float, message: np.void) -> None:
    """Note that an attempt runs: its start need not be repeated."""
    number = find_attempt(local.rows, message["machine"], message["task"], message["attempt"])
    if number != NOBODY and local.standing.active and local.rows.row[number]["state"] == ATTEMPT_STARTING:
        local.rows.row[number]["state"], local.rows.row[number]["since"] = ATTEMPT_RUNNING, now


@inlined
def on_over(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Note that a worker is done with an attempt, for whatever reason."""
    machine = message["machine"]
    speaks = local.standing.active and message["epoch"] == local.standing.epoch
    if not speaks or local.machine[machine]["state"] == SILENT:
        return
    number = find_by_handle(local.rows, message["handle"], machine, message["task"], message["attempt"])
    if number == NOBODY:
        row = post(out, FORGET, local.number, machine, message["task"], machine)
        row["attempt"], row["epoch"] = message["attempt"], local.standing.epoch
    elif local.rows.row[number]["state"] in (ATTEMPT_STARTING, ATTEMPT_RUNNING, ATTEMPT_KILLING):
        local.rows.row[number]["code"] = message["code"]
        finish(local, topology, rules, shapes, number, message["reason"], now, out)
        if local.machine[machine]["held_by"] != NOBODY:  # whom nobody else tells that something is free
            tell(local, topology, rules, UPDATE, local.machine[machine]["held_by"], NOBODY, NOBODY, out)


@inlined
def finish(  # noqa: PLR0913, PLR0917  (an attempt, and why it is over)
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, number: int, reason: int, now: float,
    out: Outbox
) -> None:
    """Give an attempt's amounts back, tell its global master, and go on with what waited for them."""
    row = local.rows.row[number]
    owner, heir = row["owner"], row["heir"]
    give_back(local.fleet, shapes, row["shape"], row["machine"])
    end_row(local, number, reason)
    answer_for(local, topology, rules, ENDED, number, reason, out)
    if rules.retry == FOREVER:  # nothing is lost on the way, so nothing is kept to be said again
        local.asker[owner]["over_first"] = NOBODY
        drop_attempt(local.rows, number)
    if heir != NOBODY:
        local.rows.row[heir]["awaits"] -= 1
        if local.rows.row[heir]["awaits"] == 0:
            end_preemption(local, topology, rules, shapes, heir, now, out)


@inlined
def end_preemption(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, number: int, now: float, out: Outbox
) -> None:
    """Start the attempt for which the last victim has gone, unless others were faster to what is free."""
    row = local.rows.row[number]
    machine = row["machine"]
    if local.machine[machine]["state"] == LISTED and shape_fits(local.fleet, shapes, row["shape"], machine):
        accept(local, topology, rules, shapes, number, now, out)
        return
    local.tally.refused_not_free += 1
    answer_for(local, topology, rules, REFUSED, number, NOT_FREE, out)
    drop_attempt(local.rows, number)


@inlined
def on_noted(local: LocalMaster, now: float, message: np.void, out: Outbox) -> None:
    """Note what a global master has seen, and that it lives."""
    if local.standing.active and message["incarnation"] >= local.asker[message["sender"]]["incarnation"]:
        local.asker[message["sender"]]["heard"] = now
        note_seen(local, message["sender"], message, out)


@inlined
def on_beat(local: LocalMaster, topology: Topology, rules: Rules, message: np.void, out: Outbox) -> None:
    """Send every global master an update; the next follows a heartbeat later."""
    if local.standing.active == 0 or message["epoch"] != local.standing.epoch:
        return
    for master in range(topology.global_masters):
        tell(local, topology, rules, UPDATE, master, NOBODY, NOBODY, out)
    row = post(out, BEAT, local.number, local.number, NOBODY, NOBODY)
    row["delay"], row["epoch"] = rules.heartbeat, local.standing.epoch
