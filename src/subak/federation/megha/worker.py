"""A worker: runs attempts at its local master's order, and reports their ends.

Rules:
- Orders of an epoch older than the latest it has heard are refused. Epoch and incarnation are on disk, and survive a
  restart.
- A machine that joins obeys, before anything else, the latest epoch of the local masters of its cluster: one that took
  over while the machine was away has said that nothing runs there, and one that was deposed may not know it yet.
- A start is carried out at most once, and only by the incarnation of the worker it was meant for; never after its kill.
- Nothing begins that the machine has no room for.
- The end of an attempt is reported until the local master has let the worker forget it.
- A worker that hears nothing from a local master for a lease stops everything it runs, and begins a new incarnation:
  what it was told to start before, and was declared lost meanwhile, never begins.

What each message does in each state of an attempt: transitions.py.

Source: Megha section IV-A; epochs, incarnations and leases make its section IV-D precise.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.attempts import (
    ANY_ATTEMPT,
    Attempts,
    add_attempt,
    build_attempts,
    drop_attempt,
    find_attempt,
    find_by_handle,
    has_room,
    note_task,
    tell_task,
)
from subak.federation.megha.replay_window import is_new
from subak.federation.megha.topology import INCARNATION_BITS, Rules, Topology, records, speaker
from subak.federation.messages import (
    ALIVE,
    BEGIN,
    FINISHED_WELL,
    HALT,
    HOLDS,
    LEASE_LOST,
    MACHINE_LOST,
    NO_REASON,
    NOBODY,
    NOT_FREE,
    OLD_EPOCH,
    OVER,
    STARTED,
    TICK,
    UNKNOWN,
    Outbox,
    post,
)
from subak.marks import inlined, noinline
from subak.workload.tasks import Shapes

STATES = ("RUNNING", "ENDED")
WORKER_RUNNING, WORKER_ENDED = range(2)
NUMBER_MASK = (1 << INCARNATION_BITS) - 1
FOREVER = float("inf")
TICKS = 6.0  # signs of life in a lease


WORKER_ROW = np.dtype([
    ("epoch", np.int32),  # the latest it has heard
    ("incarnation", np.int64),  # how often it was started
    ("top", np.int64),  # highest number of a start
    ("bits", np.uint64),  # which of the 64 up to it were seen
    ("heard", np.float64),  # seconds: when the sign of life was sent that was last confirmed
    ("configuration", np.int32),  # NOBODY where the machine is not there
])


class Workers(NamedTuple):
    """All workers; each touches only its own place, that of its machine."""

    rows: Attempts
    free: np.ndarray  # int32[resource, machine], units
    machine: np.ndarray  # WORKER_ROW[machine]


def build_workers(topology: Topology, free: np.ndarray, rows: int) -> Workers:
    """Return the workers of all machines; *free*: int32[resource, machine], units."""
    configuration = topology.machine["configuration"]
    return Workers(
        build_attempts(topology.machine.size, rows), free,
        records(WORKER_ROW, incarnation=np.ones(configuration.size), top=np.full(configuration.size, NOBODY),
                configuration=configuration),
    )


@inlined
def on_start(
    workers: Workers, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Begin an attempt, unless the order is old, doubled, not for this incarnation, or comes when the lease is over."""
    machine = message["machine"]
    if not obeys(workers, topology, rules, message, out) or not is_for_this_incarnation(workers, message):
        return
    if rules.retry < FOREVER and now - workers.machine[machine]["heard"] >= rules.lease:
        return
    if not is_new(workers.machine[machine], message["start"] & NUMBER_MASK):
        number = find_attempt(workers.rows, machine, message["task"], message["attempt"])
        if number == NOBODY:
            report(workers, topology, OVER, machine, message["task"], message["attempt"], UNKNOWN, out)
        elif workers.rows.row[number]["state"] == WORKER_RUNNING:
            report(workers, topology, STARTED, machine, message["task"], message["attempt"], NO_REASON, out)
        else:
            report_end(workers, topology, number, out)
    elif has_room(workers.rows) and has_amounts(workers, shapes, message["shape"], machine):
        number = add_attempt(workers.rows, machine, message["task"], message["attempt"], WORKER_RUNNING)
        note_task(workers.rows.row[number], message)
        workers.rows.row[number]["start"], workers.rows.row[number]["handle"] = message["start"], message["handle"]
        hold(workers, shapes, message["shape"], machine, -1)
        row = post(out, BEGIN, machine, machine, message["task"], machine)
        row["attempt"], row["handle"], row["limit"] = message["attempt"], number, message["limit"]
        if rules.retry < FOREVER:
            report(workers, topology, STARTED, machine, message["task"], message["attempt"], NO_REASON, out)
    else:
        report(workers, topology, OVER, machine, message["task"], message["attempt"], NOT_FREE, out)


@inlined
def obeys(workers: Workers, topology: Topology, rules: Rules, message: np.void, out: Outbox) -> bool:
    """Whether an order is of the latest epoch the worker has heard; a deposed master is told."""
    machine = message["machine"]
    adopt(workers, machine, message["epoch"])
    if message["epoch"] == workers.machine[machine]["epoch"]:
        return True
    row = post(out, ALIVE, machine, message["sender"], NOBODY, machine)
    me = workers.machine[machine]
    row["epoch"], row["reason"], row["incarnation"] = me["epoch"], OLD_EPOCH, me["incarnation"]
    row["count"] = 1
    return False


@inlined
def is_for_this_incarnation(workers: Workers, message: np.void) -> bool:
    """Whether an order is meant for the present incarnation of its worker."""
    return bool(message["start"] >> INCARNATION_BITS == workers.machine[message["machine"]]["incarnation"])


@inlined
def adopt(workers: Workers, machine: int, epoch: int) -> None:
    """Obey an epoch from now on if it is a later one, whose starts are numbered anew."""
    if epoch > workers.machine[machine]["epoch"]:
        workers.machine[machine]["epoch"] = epoch
        workers.machine[machine]["top"], workers.machine[machine]["bits"] = -1, np.uint64(0)


@inlined
def has_amounts(workers: Workers, shapes: Shapes, shape: int, machine: int) -> bool:
    """Whether the machine has room for a task of a shape."""
    for resource in range(workers.free.shape[0]):
        if workers.free[resource, machine] < shapes.request[resource, shape]:
            return False
    return True


@inlined
def hold(workers: Workers, shapes: Shapes, shape: int, machine: int, sign: int) -> None:
    """Give a task's amounts back (*sign* 1), or take them (-1)."""
    for resource in range(workers.free.shape[0]):
        workers.free[resource, machine] += sign * shapes.request[resource, shape]


@inlined
def report(  # noqa: PLR0913, PLR0917  (a message has many fields)
    workers: Workers, topology: Topology, kind: int, machine: int, task: int, attempt: int, reason: int, out: Outbox
) -> np.void:
    """Tell the local master of the worker's epoch about an attempt."""
    master = speaker(topology, topology.machine[machine]["cluster"], workers.machine[machine]["epoch"])
    row = post(out, kind, machine, master, task, machine)
    row["attempt"], row["reason"], row["epoch"] = attempt, reason, workers.machine[machine]["epoch"]
    return row


@inlined
def report_end(workers: Workers, topology: Topology, number: int, out: Outbox) -> None:
    """Tell the local master of the end of an attempt that is not forgotten."""
    row = workers.rows.row[number]
    over = report(workers, topology, OVER, row["machine"], row["task"], row["attempt"], row["reason"], out)
    over["code"], over["handle"] = row["code"], row["handle"]


@inlined
def end(
    workers: Workers, topology: Topology, rules: Rules, shapes: Shapes, number: int, reason: int, out: Outbox
) -> None:
    """Report the end of a running attempt, and keep it until it may be forgotten."""
    row = workers.rows.row[number]
    row["state"], row["reason"] = WORKER_ENDED, reason
    hold(workers, shapes, row["shape"], row["machine"], 1)
    report_end(workers, topology, number, out)
    if rules.retry == FOREVER:  # nothing is lost on the way, so nothing is kept to be said again
        drop_attempt(workers.rows, number)


@inlined
def on_kill(
    workers: Workers, topology: Topology, rules: Rules, shapes: Shapes, message: np.void, out: Outbox
) -> None:
    """End an attempt; if it is not there it is over, and never begins.

    Where nothing is lost and nothing kept, one that began and is not there has told its end, which is on its way, and
    may be overtaken by what is said here.
    """
    machine = message["machine"]
    if not obeys(workers, topology, rules, message, out) or not is_for_this_incarnation(workers, message):
        return
    never_begun = is_new(workers.machine[machine], message["start"] & NUMBER_MASK)
    number = find_attempt(workers.rows, machine, message["task"], message["attempt"])
    if number != NOBODY and workers.rows.row[number]["state"] == WORKER_RUNNING:
        post(out, HALT, machine, machine, message["task"], machine)["reason"] = message["reason"]
        end(workers, topology, rules, shapes, number, message["reason"], out)
    elif number != NOBODY:
        report_end(workers, topology, number, out)
    elif never_begun or rules.retry != FOREVER:
        report(workers, topology, OVER, machine, message["task"], message["attempt"], message["reason"], out)


@inlined
def on_exited(
    workers: Workers, topology: Topology, rules: Rules, shapes: Shapes, message: np.void, out: Outbox
) -> None:
    """Report that an attempt has come to its end, or why the executor lost it."""
    machine, task = message["machine"], message["task"]
    number = find_by_handle(workers.rows, message["handle"], machine, task, message["attempt"])
    while number != NOBODY and (
        workers.rows.row[number]["task"] != task or workers.rows.row[number]["state"] != WORKER_RUNNING
    ):
        number = workers.rows.row[number]["next"]
    if number != NOBODY:
        reason = message["reason"] if message["reason"] != NO_REASON else FINISHED_WELL
        workers.rows.row[number]["code"] = message["code"]
        end(workers, topology, rules, shapes, number, reason, out)


@inlined
def on_forget(workers: Workers, message: np.void) -> None:
    """Forget an attempt whose end is noted."""
    machine, task, attempt = message["machine"], message["task"], message["attempt"]
    number = find_by_handle(workers.rows, message["handle"], machine, task, attempt)
    if number != NOBODY and workers.rows.row[number]["state"] == WORKER_ENDED:
        drop_attempt(workers.rows, number)


@inlined
def on_report(
    workers: Workers, topology: Topology, rules: Rules, message: np.void, now: float, out: Outbox
) -> None:
    """Obey a later epoch, and say everything that runs or has ended and is not forgotten; this is a sign of life."""
    machine = message["machine"]
    if not obeys(workers, topology, rules, message, out):
        return
    count = attempts_on(workers, machine)
    if count == 0:
        sign_of_life(workers, topology, machine, now, out)
    number = workers.rows.first[machine]
    while number != NOBODY:
        row = workers.rows.row[number]
        held = post(out, HOLDS, machine, message["sender"], row["task"], machine)
        tell_task(held, row)
        held["attempt"], held["reason"], held["code"] = row["attempt"], row["reason"], row["code"]
        held["epoch"] = workers.machine[machine]["epoch"]
        held["start"], held["incarnation"], held["count"] = row["start"], workers.machine[machine]["incarnation"], count
        held["report"], held["delay"] = message["report"], now
        number = row["next"]


@inlined
def attempts_on(workers: Workers, machine: int) -> int:
    """Return how many attempts the worker has not forgotten."""
    count = 0
    number = workers.rows.first[machine]
    while number != NOBODY:
        count += 1
        number = workers.rows.row[number]["next"]
    return count


@inlined
def sign_of_life(workers: Workers, topology: Topology, machine: int, now: float, out: Outbox) -> None:
    """Send a sign of life; `delay` says when it was sent."""
    master = speaker(topology, topology.machine[machine]["cluster"], workers.machine[machine]["epoch"])
    row = post(out, ALIVE, machine, master, NOBODY, machine)
    row["epoch"], row["incarnation"], row["count"] = (
        workers.machine[machine]["epoch"], workers.machine[machine]["incarnation"], attempts_on(workers, machine))
    row["delay"] = now


@inlined
def on_lease(workers: Workers, message: np.void) -> None:
    """Note that a sign of life was heard."""
    me = workers.machine[message["machine"]]
    if message["epoch"] == me["epoch"] and message["incarnation"] == me["incarnation"]:
        me["heard"] = max(me["heard"], message["delay"])


@inlined
def on_tick(
    workers: Workers, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, out: Outbox
) -> None:
    """Give a sign of life, say again what was not noted, and stop everything when the lease is over."""
    machine = message["machine"]
    if message["incarnation"] != workers.machine[machine]["incarnation"]:
        return
    next_tick = now + rules.lease / TICKS + rules.timer_slack
    too_late = next_tick - workers.machine[machine]["heard"] >= rules.lease
    number = workers.rows.first[machine]
    while number != NOBODY:
        row = workers.rows.row[number]
        if row["state"] == WORKER_ENDED:
            report_end(workers, topology, number, out)
        elif too_late:
            post(out, HALT, machine, machine, row["task"], machine)["reason"] = LEASE_LOST
            end(workers, topology, rules, shapes, number, LEASE_LOST, out)
        number = row["next"]
    if too_late:
        begin_incarnation(workers, machine, now)
    sign_of_life(workers, topology, machine, now, out)
    arm(workers, rules, machine, out)


@inlined
def arm(workers: Workers, rules: Rules, machine: int, out: Outbox) -> None:
    """Arm the timer for the next sign of life."""
    row = post(out, TICK, machine, machine, NOBODY, machine)
    row["delay"], row["incarnation"] = rules.lease / TICKS, workers.machine[machine]["incarnation"]


@inlined
def begin_ticks(workers: Workers, topology: Topology, rules: Rules, machine: int, out: Outbox) -> None:
    """Arm the first timer, so that those of all machines are spread over their period."""
    if rules.retry < FOREVER and workers.machine[machine]["configuration"] != NOBODY:
        arm(workers, rules, machine, out)
        out.row[out.counts.posted - 1]["delay"] *= (machine + 1.0) / topology.machine.size


@noinline
def begin_incarnation(workers: Workers, machine: int, now: float) -> None:
    """Begin a new incarnation, whose starts are numbered anew; nothing runs."""
    workers.machine[machine]["incarnation"] += 1
    workers.machine[machine]["top"], workers.machine[machine]["bits"] = -1, np.uint64(0)
    workers.machine[machine]["heard"] = now


@noinline
def restart_worker(workers: Workers, topology: Topology, rules: Rules, machine: int, now: float, out: Outbox) -> None:
    """Begin a new incarnation; what ran has been lost with the former one."""
    begin_incarnation(workers, machine, now)
    if rules.retry < FOREVER:
        sign_of_life(workers, topology, machine, now, out)
        arm(workers, rules, machine, out)


@inlined
def on_power_off(workers: Workers, topology: Topology, machine: int, out: Outbox) -> None:
    """Lose everything that runs, and all memory of it."""
    number = workers.rows.first[machine]
    while number != NOBODY:
        post(out, HALT, machine, machine, workers.rows.row[number]["task"], machine)["reason"] = MACHINE_LOST
        number = workers.rows.row[number]["next"]
    forget_all(workers, topology, machine)


@inlined
def on_reconfigure(  # noqa: PLR0913, PLR0917  (a change of a machine, and what it costs)
    workers: Workers, topology: Topology, rules: Rules, shapes: Shapes, now: float, message: np.void, lost: np.ndarray,
    number: np.ndarray, out: Outbox,
) -> None:
    """Take another configuration, or leave; a machine that shrinks loses the tasks first .. last - 1 of *lost*.

    Tasks of *lost* are places; *number*: int64[place].
    """
    machine, me = message["machine"], workers.machine[message["machine"]]
    adopt(workers, machine, message["epoch"])
    before, after = me["configuration"], message["shape"]
    me["configuration"] = after
    if after == NOBODY:
        forget_all(workers, topology, machine)
    elif before == NOBODY:
        forget_all(workers, topology, machine)
        restart_worker(workers, topology, rules, machine, now, out)
    else:
        resize_worker(workers, topology, machine, before, after)
        message["reason"] = MACHINE_LOST
        for loss in range(message["first"], message["last"]):
            message["task"], message["attempt"] = number[lost[loss]], ANY_ATTEMPT
            on_exited(workers, topology, rules, shapes, message, out)


@noinline
def forget_all(workers: Workers, topology: Topology, machine: int) -> None:
    """Have nothing that runs, and the capacity of the machine's configuration."""
    while workers.rows.first[machine] != NOBODY:
        drop_attempt(workers.rows, workers.rows.first[machine])
    configuration = workers.machine[machine]["configuration"]
    for resource in range(workers.free.shape[0]):
        workers.free[resource, machine] = topology.capacity[resource, configuration] if configuration >= 0 else 0


@noinline
def resize_worker(workers: Workers, topology: Topology, machine: int, before: int, after: int) -> None:
    """Let a machine that stays have another capacity."""
    for resource in range(workers.free.shape[0]):
        workers.free[resource, machine] += topology.capacity[resource, after] - topology.capacity[resource, before]
