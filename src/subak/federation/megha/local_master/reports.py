"""Takes in what workers report: that they live, and what they hold.

Reports are numbered: only one that arrives whole counts, since between two of them attempts may have been forgotten.
"""
import numpy as np

from subak.federation.megha.attempts import add_attempt, find_attempt, has_room, note_task
from subak.federation.megha.local_master.handlers import finish
from subak.federation.megha.local_master.leases import (
    ON_A_WORKER,
    grant_lease,
    list_machine,
    lose_unreported,
    note_worker_incarnation,
    summon,
)
from subak.federation.megha.local_master.state import (
    ATTEMPT_OVER,
    ATTEMPT_RUNNING,
    LOST_MACHINE,
    SILENT,
    LocalMaster,
    enter_row,
    is_awaited,
    keep_over,
)
from subak.federation.megha.local_master.takeover import step_down
from subak.federation.megha.topology import Rules, Topology
from subak.federation.messages import NO_REASON, NOBODY, Outbox
from subak.fleet.amounts import take
from subak.marks import inlined
from subak.workload.tasks import Shapes


@inlined
def on_alive(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Note a sign of life of a worker with `count` attempts, sent at `delay`.

    One that still obeys a former epoch is summoned by the standby, too: whoever speaks gave it up when it was away.
    """
    machine = message["machine"]
    if message["epoch"] > local.standing.epoch:
        step_down(local, message["epoch"], rules, now, out)
    if local.machine[machine]["configuration"] == NOBODY:
        return
    if message["epoch"] < local.standing.epoch:
        summon(local, machine, out)
        return
    if local.standing.active == 0 or message["incarnation"] < local.machine[machine]["worker_incarnation"]:
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
def on_holds(
    local: LocalMaster, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Enter an attempt that a worker reports, one of `count`, at `delay`; with the last all is known of its machine.

    A whole report is a sign of life, and is answered: so what runs need not wait for the next sign.
    Asked are workers that are SILENT, and such as have attempts of a former incarnation: these may have ended well.
    """
    machine = message["machine"]
    speaks = local.standing.active and message["epoch"] == local.standing.epoch
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
