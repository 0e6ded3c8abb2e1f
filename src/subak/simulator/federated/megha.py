"""Megha in the simulator: the roles of a federation side by side, and the loop that hands each its messages.

Roles of a kind are stacked: their tables have one axis more, and a handler is given the slices of one role. What a
message carries of a ledger is read where it lies, at the local master's.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.attempts import Attempts
from subak.federation.megha.global_master.handlers import (
    on_launched,
    on_place,
    on_retry,
    on_submit,
    on_update,
)
from subak.federation.megha.global_master.placement import Bins
from subak.federation.megha.global_master.rebuild import on_wake, restart
from subak.federation.megha.global_master.state import GlobalMaster
from subak.federation.megha.global_master.turns import Turns
from subak.federation.megha.layout import Layout, Rules
from subak.federation.megha.ledger import Ledger
from subak.federation.megha.local_master.failover import (
    on_alive,
    on_ask,
    on_change,
    on_check,
    on_holds,
    on_pulse,
    on_watch,
    restart_local,
    timer,
)
from subak.federation.megha.local_master.handlers import (
    on_abandon,
    on_beat,
    on_go,
    on_noted,
    on_over,
    on_request,
    on_started,
)
from subak.federation.megha.local_master.state import EPOCH, LocalMaster
from subak.federation.megha.submitter import Submitter, on_arrive, on_done, on_rebuild, on_resubmit
from subak.federation.megha.worker import (
    Workers,
    arm,
    on_exited,
    on_forget,
    on_kill,
    on_lease,
    on_report,
    on_start,
    on_tick,
    power_off,
    resize_worker,
    restart_worker,
)
from subak.federation.messages import (
    ABANDON,
    ALIVE,
    ARRIVE,
    ASK,
    BEAT,
    CHANGE,
    CHECK,
    DONE,
    ENDED,
    EXITED,
    FORGET,
    GLOBAL_MASTER,
    GO,
    HANDLER,
    HOLDS,
    KILL,
    LAUNCH,
    LAUNCHED,
    LEASE,
    LOCAL_MASTER,
    MACHINE_LOST,
    NO_REASON,
    NOBODY,
    NOTED,
    OVER,
    PLACE,
    PREEMPT,
    PULSE,
    REBUILD,
    REFUSED,
    REPARTITION,
    REPORT,
    RESUBMIT,
    RETRY,
    START,
    STARTED,
    STILL_HELD,
    SUBMIT,
    TICK,
    UPDATE,
    WAKE,
    WATCH,
    WORKER,
    Outbox,
)
from subak.fleet.state import FleetState
from subak.kernel import cold, inlined
from subak.queues.hierarchy import Hierarchy
from subak.queues.lanes import Lanes
from subak.simulator.engine.state import LOOP_BROKEN, LOOP_PAUSED, NOW, UNTIL, Simulation
from subak.simulator.federated.faults import CRASH, RESTART
from subak.simulator.federated.loop import HANDLE, NOTHING, advance, carry_out, halt, next_instant
from subak.simulator.federated.network import BEGUN, Network
from subak.workload.tasks import Tasks

FOREVER = float("inf")


class GlobalMasters(NamedTuple):
    """All global masters; see `GlobalMaster` for what the tables hold."""

    free: np.ndarray  # int32[master, resource, machine]
    capacity: np.ndarray  # int32[master, resource, machine]
    block_free_max: np.ndarray  # int32[master, resource, block]
    allowed: np.ndarray  # uint64[constraint_set, block], the same for all
    version: np.ndarray  # int64[master, block]
    freed_blocks: np.ndarray  # int64[master, LOG + 1]
    frontier: np.ndarray  # int64[master, 2, shape]
    used: np.ndarray  # int64[master, resource]
    present: np.ndarray  # int64[master, resource]
    scale: np.ndarray  # float64[resource]
    random: np.ndarray  # uint64[master, 1]
    machines: int
    held_row: np.ndarray  # ROW[master, row]
    held_first: np.ndarray  # int32[master, machine]
    held_size: np.ndarray  # int64[master, 2]
    consumed: np.ndarray  # int64[master, cluster, queue, resource]
    total: np.ndarray  # int64[master, queue, resource]
    cluster: np.ndarray  # CLUSTER[master, cluster]
    listed: np.ndarray  # bool[master, machine]
    queue_first: np.ndarray  # int32[master + 1]
    lanes: Lanes
    lane_size: np.ndarray  # int64[queue, 3]
    task: np.ndarray  # TASK[task]
    gang: np.ndarray  # GANG[gang]
    turns: Turns  # what is the same for all; below, what each tells its own tree
    turn_link: np.ndarray  # int32[master, slot, 7]
    turn_value: np.ndarray  # float64[master, slot, column]
    turn_count: np.ndarray  # int64[master, 2, leaf]: waiting, running
    turn_vector: np.ndarray  # float64[master, leaf, resource]
    turn_dominant: np.ndarray  # float64[master, leaf]
    turn_word: np.ndarray  # int64[master, 3]
    turn_told: np.ndarray  # int64[master, queue, resource + 1]
    bins: Bins  # what is the same for all
    bins_running: np.ndarray  # int16[master, class, machine]
    word: np.ndarray  # int64[master, 10]
    tally: np.ndarray  # int64[master, 11]


class LocalMasters(NamedTuple):
    """All local masters, and behind them their standbys; a side is all of one or of the other."""

    free: np.ndarray  # int32[side, resource, machine]
    capacity: np.ndarray  # int32[side, resource, machine]
    block_free_max: np.ndarray  # int32[side, resource, block]
    allowed: np.ndarray  # uint64[constraint_set, block]
    version: np.ndarray  # int64[side, block]
    freed_blocks: np.ndarray  # int64[side, LOG + 1]
    frontier: np.ndarray  # int64[side, 2, shape]
    used: np.ndarray  # int64[side, resource]
    present: np.ndarray  # int64[side, resource]
    scale: np.ndarray  # float64[resource]
    random: np.ndarray  # uint64[side, 1]
    machines: int
    row: np.ndarray  # ROW[side, row]
    row_first: np.ndarray  # int32[side, machine]
    row_size: np.ndarray  # int64[side, 2]
    entry: np.ndarray  # ENTRY[instance, place]
    entry_size: np.ndarray  # int64[instance, 2]
    asker: np.ndarray  # ASKER[instance, master]
    machine: np.ndarray  # MACHINE[side, machine]
    word: np.ndarray  # int64[instance, 4]
    clock: np.ndarray  # float64[instance, 1]
    tally: np.ndarray  # int64[instance, 6]


class Megha(NamedTuple):
    """The roles of a federation, and what all of them know."""

    layout: Layout
    rules: Rules
    submitter: Submitter
    masters: GlobalMasters
    locals: LocalMasters
    workers: Workers


@inlined
def global_master(roles: Megha, number: int) -> GlobalMaster:
    """Return one global master."""
    m = roles.masters
    view = FleetState(
        m.free[number], m.capacity[number], m.block_free_max[number], m.allowed, m.version[number],
        m.freed_blocks[number], m.frontier[number], m.used[number], m.present[number], m.scale, m.random[number],
        m.machines,
    )
    held = Attempts(m.held_row[number], m.held_first[number], m.held_size[number])
    return GlobalMaster(
        number, view, held, m.consumed[number], m.total[number], m.cluster[number], m.listed[number], m.queue_first,
        m.lanes, m.lane_size, m.task, m.gang, turns_of(m, number),
        Bins(m.bins.target, m.bins.class_of_shape, m.bins_running[number]), m.word[number], m.tally[number],
    )


@inlined
def turns_of(masters: GlobalMasters, number: int) -> Turns:
    """Return the tree that a global master chooses its queues by."""
    same = masters.turns.tree
    tree = Hierarchy(
        masters.turn_link[number], masters.turn_value[number], same.weight, same.slot, same.shape,
        masters.turn_count[number, 0], masters.turn_count[number, 1], same.capped, masters.turn_vector[number],
        masters.turn_dominant[number], same.is_open, same.gate_first, same.gate, same.closed, same.size,
        masters.turn_word[number],
    )
    return Turns(tree, masters.turns.leaf, masters.turns.queue, masters.turn_told[number])


@inlined
def local_master(roles: Megha, number: int) -> LocalMaster:
    """Return one local master; a number beyond the clusters is a standby's."""
    m, clusters = roles.locals, roles.layout.local_masters
    side, cluster = number // clusters, number % clusters
    fleet = FleetState(
        m.free[side], m.capacity[side], m.block_free_max[side], m.allowed, m.version[side], m.freed_blocks[side],
        m.frontier[side], m.used[side], m.present[side], m.scale, m.random[side], m.machines,
    )
    return LocalMaster(
        number, cluster, fleet, Attempts(m.row[side], m.row_first[side], m.row_size[side]),
        Ledger(m.entry[number], m.entry_size[number]), m.asker[number], m.machine[side], m.word[number],
        m.clock[number], m.tally[number],
    )


@inlined
def to_submitter(roles: Megha, message: np.void, out: Outbox) -> None:
    """Hand a message to the submitter."""
    kind = message["kind"]
    if kind == ARRIVE:
        on_arrive(roles.submitter, message, out)
    elif kind == DONE:
        on_done(roles.submitter, message, out)
    elif kind == RESUBMIT:
        on_resubmit(roles.submitter, roles.layout, message, out)
    elif kind == REBUILD:
        on_rebuild(roles.submitter, roles.layout, message, out)


@inlined
def to_global_master(roles: Megha, tasks: Tasks, now: float, message: np.void, out: Outbox) -> int:
    """Hand a message to a global master; return the task that it placed, or tried to, in a turn."""
    layout, rules, kind = roles.layout, roles.rules, message["kind"]
    master = global_master(roles, message["to"])
    if kind == SUBMIT:
        on_submit(master, layout, rules, tasks, message, out)
    elif kind == PLACE:
        return on_place(master, layout, rules, tasks, out)
    elif kind in (LAUNCHED, REFUSED, ENDED, UPDATE):
        sender = message["sender"]
        ledger = Ledger(roles.locals.entry[sender], roles.locals.entry_size[sender])
        intact = message["epoch"] == roles.locals.word[sender, EPOCH]
        on_update(master, layout, rules, tasks, now, message, ledger, intact, out)
        if kind == LAUNCHED and message["start"] == STILL_HELD:
            on_launched(master, layout, message, out)
    elif kind == RETRY:
        on_retry(master, layout, rules, message, out)
    elif kind == WAKE:
        on_wake(master, layout, rules, out)
    return NOBODY


@inlined
def to_local_master(roles: Megha, tasks: Tasks, now: float, message: np.void, out: Outbox) -> None:  # noqa: C901, PLR0912
    """Hand a message to a local master."""
    layout, rules, kind = roles.layout, roles.rules, message["kind"]
    local = local_master(roles, message["to"])
    if kind in (LAUNCH, REPARTITION, PREEMPT):
        on_request(local, layout, rules, tasks, now, message, out)
    elif kind == OVER:
        on_over(local, layout, rules, tasks, now, message, out)
    elif kind == BEAT:
        on_beat(local, layout, rules, message, out)
    elif kind == NOTED:
        on_noted(local, message, out)
    elif kind == GO:
        on_go(local, now, message, out)
    elif kind == ABANDON:
        on_abandon(local, layout, rules, tasks, now, message, out)
    elif kind == STARTED:
        on_started(local, message)
    elif kind == CHECK:
        on_check(local, layout, rules, tasks, now, message, out)
    elif kind == ALIVE:
        on_alive(local, layout, rules, tasks, now, message, out)
    elif kind == HOLDS:
        on_holds(local, layout, rules, tasks, now, message, out)
    elif kind == PULSE:
        on_pulse(local, layout, rules, now, message, out)
    elif kind == WATCH:
        on_watch(local, layout, rules, tasks, now, out)
    elif kind == ASK:
        on_ask(local, layout, rules, message, out)
    elif kind == CHANGE:
        on_change(local, layout, rules, tasks, now, message, out)


@inlined
def to_worker(roles: Megha, tasks: Tasks, now: float, message: np.void, out: Outbox) -> None:
    """Hand a message to a worker."""
    workers, layout, rules, kind = roles.workers, roles.layout, roles.rules, message["kind"]
    if kind == START:
        on_start(workers, layout, rules, tasks, message, out)
    elif kind == EXITED:
        on_exited(workers, layout, rules, tasks, message, out)
    elif kind == KILL:
        on_kill(workers, layout, rules, tasks, message, out)
    elif kind == FORGET:
        on_forget(workers, message)
    elif kind == REPORT:
        on_report(workers, layout, message, now, out)
    elif kind == LEASE:
        on_lease(workers, message)
    elif kind == TICK:
        on_tick(workers, layout, rules, tasks, now, message, out)


@inlined
def handle(roles: Megha, tasks: Tasks, now: float, message: np.void, out: Outbox) -> int:
    """Hand a message to the role that handles its kind; return the task of a global master's turn, or NOBODY."""
    role = HANDLER[message["kind"]]
    if role == GLOBAL_MASTER:
        return to_global_master(roles, tasks, now, message, out)
    if role == LOCAL_MASTER:
        to_local_master(roles, tasks, now, message, out)
    elif role == WORKER:
        to_worker(roles, tasks, now, message, out)
    else:
        to_submitter(roles, message, out)
    return NOBODY


def run_megha(sim: Simulation, net: Network, roles: Megha, due: np.ndarray, out: Outbox, budget: int) -> int:
    """Run *budget* events; return why it stopped."""
    if net.size[BEGUN] == 0:
        net.size[BEGUN] = 1
        begin_timers(sim, net, roles, out)
    for _ in range(budget):
        if net.faults.on[0]:
            strike(sim, net, roles, out)
        why = advance(sim, net, due)
        if why == NOTHING:
            continue
        if why != HANDLE:
            return why
        message = due[0]
        if message["kind"] == CHANGE:
            change_machine(sim, net, roles, message, out)
        else:
            task = handle(roles, sim.tasks, sim.clock[NOW], message, out)
            if task != NOBODY:
                net.processing[task] += net.service[PLACE]
        if carry_out(sim, net, HANDLER[message["kind"]], out):
            return LOOP_BROKEN
    return LOOP_PAUSED


@cold
def begin_timers(sim: Simulation, net: Network, roles: Megha, out: Outbox) -> None:
    """Arm what roles owe themselves from the start, spread over its period."""
    layout, rules = roles.layout, roles.rules
    clusters = layout.local_masters
    for cluster in range(clusters):
        local = local_master(roles, cluster)
        if rules.heartbeat < FOREVER:
            timer(local, BEAT, rules.heartbeat * (cluster + 1) / clusters, out)
        if rules.retry < FOREVER:
            timer(local, CHECK, rules.lease / 12.0 * (cluster + 1) / clusters, out)
            if rules.standby:
                timer(local_master(roles, clusters + cluster), WATCH, rules.lease / 3.0, out)
    carry_out(sim, net, LOCAL_MASTER, out)
    if rules.retry < FOREVER:
        for machine in range(layout.machine.size):
            if layout.machine[machine]["configuration"] != NOBODY:
                arm(roles.workers, rules, machine, out)
                out.row[out.size[0] - 1]["delay"] *= (machine + 1.0) / layout.machine.size
    carry_out(sim, net, WORKER, out)


@cold
def change_machine(sim: Simulation, net: Network, roles: Megha, message: np.void, out: Outbox) -> None:
    """Carry out the operator's change of a machine at its worker, and tell its local master and the standby.

    A machine that stays but shrinks has lost the attempts `first` .. `last` - 1 of the losses.
    """
    machine, change, first, last = message["machine"], message["count"], message["first"], message["last"]
    layout, workers, now = roles.layout, roles.workers, sim.clock[NOW]
    configuration, before = layout.changed_to[change], roles.locals.machine[0, machine]["configuration"]
    address = net.first[WORKER] + machine
    if configuration == NOBODY:
        net.lives[address] = -abs(net.lives[address])
        power_off(workers, layout, machine, NOBODY)
    elif before == NOBODY:
        net.lives[address] = abs(net.lives[address]) + 1
        power_off(workers, layout, machine, configuration)
        restart_worker(workers, layout, roles.rules, machine, now, out)
    else:
        resize_worker(workers, layout, machine, before, configuration)
        message["reason"] = MACHINE_LOST
        for loss in range(first, last):
            message["task"] = sim.losses.task[loss]
            on_exited(workers, layout, roles.rules, sim.tasks, message, out)
        message["reason"] = NO_REASON
    carry_out(sim, net, WORKER, out)
    for side in range(roles.locals.free.shape[0]):
        local = local_master(roles, layout.machine[machine]["cluster"] + side * layout.local_masters)
        on_change(local, layout, roles.rules, sim.tasks, now, message, out)


@cold
def strike(sim: Simulation, net: Network, roles: Megha, out: Outbox) -> None:
    """Crash or restart what the plan says is due before the next event."""
    faults = net.faults
    while faults.next[0] < faults.time.size and faults.time[faults.next[0]] <= next_instant(sim, net):
        action = faults.next[0]
        faults.next[0] += 1
        if faults.time[action] > sim.clock[UNTIL]:
            continue
        sim.clock[NOW] = max(sim.clock[NOW], faults.time[action])
        address = faults.address[action]
        if faults.action[action] == CRASH and net.lives[address] > 0:
            crash(sim, net, roles, address)
        elif faults.action[action] == RESTART and net.lives[address] < 0:
            net.lives[address] = -net.lives[address] + 1
            net.busy[address] = sim.clock[NOW]
            come_back(sim, net, roles, address, out)


@cold
def crash(sim: Simulation, net: Network, roles: Megha, address: int) -> None:
    """Let a role be gone, with everything that is in its memory or runs on it."""
    net.lives[address] = -net.lives[address]
    if net.first[WORKER] <= address < net.first[WORKER + 1]:
        machine = address - net.first[WORKER]
        number = roles.workers.rows.first[machine]
        while number != NOBODY:
            halt(sim, net, roles.workers.rows.row[number]["task"], machine, MACHINE_LOST)
            number = roles.workers.rows.row[number]["next"]
        power_off(roles.workers, roles.layout, machine, roles.locals.machine[0, machine]["configuration"])


@cold
def come_back(sim: Simulation, net: Network, roles: Megha, address: int, out: Outbox) -> None:
    """Let a role begin anew."""
    now, layout, rules = sim.clock[NOW], roles.layout, roles.rules
    if address >= net.first[WORKER]:
        machine = address - net.first[WORKER]
        if roles.locals.machine[0, machine]["configuration"] == NOBODY:
            net.lives[address] = -net.lives[address]
            return
        restart_worker(roles.workers, layout, rules, machine, now, out)
        carry_out(sim, net, WORKER, out)
    elif address >= net.first[LOCAL_MASTER]:
        local = local_master(roles, address - net.first[LOCAL_MASTER])
        restart_local(local, layout, rules, now, out)
        carry_out(sim, net, LOCAL_MASTER, out)
    elif address >= net.first[GLOBAL_MASTER]:
        restart(global_master(roles, address - net.first[GLOBAL_MASTER]), layout, rules, sim.tasks, out)
        carry_out(sim, net, GLOBAL_MASTER, out)
