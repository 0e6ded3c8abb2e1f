"""The roles of Megha as those who drive them see them: `serve_*` hands messages to the handlers of a role.

The same four functions serve in the simulator and in a process of its own. A process holds several roles of a kind side
by side: their tables have one axis more, and a handler is given the slices of one role. Each kind of role is compiled
apart, and is called with the address of what it holds (kernel_state.py).

What a message carries of a ledger is read where it lies, at the local master's.
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
    begin_timers,
    on_alive,
    on_ask,
    on_change,
    on_check,
    on_holds,
    on_pulse,
    on_watch,
    restart_local,
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
    begin_ticks,
    on_exited,
    on_forget,
    on_kill,
    on_lease,
    on_power_off,
    on_reconfigure,
    on_report,
    on_start,
    on_tick,
    restart_worker,
)
from subak.federation.messages import (
    ABANDON,
    ALIVE,
    ARRIVE,
    ASK,
    BEAT,
    BOOT,
    CHANGE,
    CHECK,
    DONE,
    ENDED,
    EXITED,
    FORGET,
    GO,
    HOLDS,
    KILL,
    LAUNCH,
    LAUNCHED,
    LEASE,
    NOBODY,
    NOTED,
    OVER,
    PLACE,
    POWER_OFF,
    PREEMPT,
    PULSE,
    REBUILD,
    RECONFIGURE,
    REFUSED,
    REPARTITION,
    REPORT,
    RESTART,
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
    Outbox,
)
from subak.fleet.state import FleetState
from subak.kernel import inlined
from subak.kernel_state import opened
from subak.queues.hierarchy import Hierarchy
from subak.queues.lanes import Lanes
from subak.workload.tasks import Tasks


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


class SubmitterTables(NamedTuple):
    """What `serve_submitter` works on."""

    submitter: Submitter
    layout: Layout
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox


class GlobalMasterTables(NamedTuple):
    """What `serve_global_master` works on."""

    masters: GlobalMasters
    layout: Layout
    rules: Rules
    tasks: Tasks
    entry: np.ndarray  # ENTRY[instance, place], the ledgers of the local masters
    entry_size: np.ndarray  # int64[instance, 2]
    instance: np.ndarray  # int64[instance, 4], their words: EPOCH ...
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox


class LocalMasterTables(NamedTuple):
    """What `serve_local_master` works on."""

    locals: LocalMasters
    layout: Layout
    rules: Rules
    tasks: Tasks
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox


class WorkerTables(NamedTuple):
    """What `serve_worker` works on."""

    workers: Workers
    layout: Layout
    rules: Rules
    tasks: Tasks
    lost: np.ndarray  # int32[place], tasks that the operator's changes of machines cost
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox


def tables_of(
    roles: Megha, tasks: Tasks, lost: np.ndarray, inbox: np.ndarray, out: Outbox
) -> tuple[SubmitterTables, GlobalMasterTables, LocalMasterTables, WorkerTables]:
    """Return what the roles of a federation in one process work on, which share an inbox and an outbox."""
    layout, rules, local = roles.layout, roles.rules, roles.locals
    return (
        SubmitterTables(roles.submitter, layout, inbox, out),
        GlobalMasterTables(roles.masters, layout, rules, tasks, local.entry, local.entry_size, local.word, inbox, out),
        LocalMasterTables(local, layout, rules, tasks, inbox, out),
        WorkerTables(roles.workers, layout, rules, tasks, lost, inbox, out),
    )


# -- serving: each returns the task that a global master's last turn placed, or tried to, else NOBODY ------------------


def serve_submitter(tables: SubmitterTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to the submitter."""
    inbox = opened(tables).inbox
    for place in range(count):
        to_submitter(tables, inbox[place])
    return NOBODY


def serve_global_master(tables: GlobalMasterTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their global masters."""
    inbox, task = opened(tables).inbox, NOBODY
    for place in range(count):
        task = to_global_master(tables, now, inbox[place])
    return task


def serve_local_master(tables: LocalMasterTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their local masters, or standbys."""
    inbox = opened(tables).inbox
    for place in range(count):
        to_local_master(tables, now, inbox[place])
    return NOBODY


def serve_worker(tables: WorkerTables, now: float, count: int) -> int:
    """Hand the first *count* messages of the inbox to their workers."""
    inbox = opened(tables).inbox
    for place in range(count):
        to_worker(tables, now, inbox[place])
    return NOBODY


SERVE = (serve_submitter, serve_global_master, serve_local_master, serve_worker)  # by role


@inlined
def to_submitter(tables: SubmitterTables, message: np.void) -> None:
    """Hand a message to the submitter. Tables are opened where a message is handled, to read no more than it needs."""
    kind = message["kind"]
    if kind == ARRIVE:
        held = opened(tables)
        on_arrive(held.submitter, message, held.out)
    elif kind == DONE:
        held = opened(tables)
        on_done(held.submitter, message, held.out)
    elif kind == RESUBMIT:
        held = opened(tables)
        on_resubmit(held.submitter, held.layout, message, held.out)
    elif kind == REBUILD:
        held = opened(tables)
        on_rebuild(held.submitter, held.layout, message, held.out)


@inlined
def to_global_master(tables: GlobalMasterTables, now: float, message: np.void) -> int:
    """Hand a message to a global master; return the task that it placed, or tried to, in a turn."""
    kind = message["kind"]
    if kind == SUBMIT:
        held = opened(tables)
        master = global_master(held.masters, message["to"])
        on_submit(master, held.layout, held.rules, held.tasks, message, held.out)
    elif kind == PLACE:
        held = opened(tables)
        master = global_master(held.masters, message["to"])
        return on_place(master, held.layout, held.rules, held.tasks, held.out)
    elif kind in (LAUNCHED, REFUSED, ENDED, UPDATE):
        held = opened(tables)
        master = global_master(held.masters, message["to"])
        sender = message["sender"]
        ledger = Ledger(held.entry[sender], held.entry_size[sender])
        intact = message["epoch"] == held.instance[sender, EPOCH]
        on_update(master, held.layout, held.rules, held.tasks, now, message, ledger, intact, held.out)
        if kind == LAUNCHED and message["start"] == STILL_HELD:
            on_launched(master, held.layout, message, held.out)
    elif kind == RETRY:
        held = opened(tables)
        master = global_master(held.masters, message["to"])
        on_retry(master, held.layout, held.rules, message, held.out)
    elif kind == WAKE:
        held = opened(tables)
        master = global_master(held.masters, message["to"])
        on_wake(master, held.layout, held.rules, held.out)
    elif kind == RESTART:
        held = opened(tables)
        master = global_master(held.masters, message["to"])
        restart(master, held.layout, held.rules, held.tasks, held.out)
    return NOBODY


@inlined
def to_local_master(tables: LocalMasterTables, now: float, message: np.void) -> None:  # noqa: C901, PLR0912, PLR0915
    """Hand a message to a local master."""
    kind = message["kind"]
    if kind in (LAUNCH, REPARTITION, PREEMPT):
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_request(local, held.layout, held.rules, held.tasks, now, message, held.out)
    elif kind == OVER:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_over(local, held.layout, held.rules, held.tasks, now, message, held.out)
    elif kind == BEAT:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_beat(local, held.layout, held.rules, message, held.out)
    elif kind == NOTED:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_noted(local, message, held.out)
    elif kind == GO:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_go(local, now, message, held.out)
    elif kind == ABANDON:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_abandon(local, held.layout, held.rules, held.tasks, now, message, held.out)
    elif kind == STARTED:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_started(local, message)
    elif kind == CHECK:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_check(local, held.layout, held.rules, held.tasks, now, message, held.out)
    elif kind == ALIVE:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_alive(local, held.layout, held.rules, held.tasks, now, message, held.out)
    elif kind == HOLDS:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_holds(local, held.layout, held.rules, held.tasks, now, message, held.out)
    elif kind == PULSE:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_pulse(local, held.layout, held.rules, now, message, held.out)
    elif kind == WATCH:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_watch(local, held.layout, held.rules, held.tasks, now, held.out)
    elif kind == ASK:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_ask(local, held.layout, held.rules, message, held.out)
    elif kind == CHANGE:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        on_change(local, held.layout, held.rules, held.tasks, now, message, held.out)
    elif kind == BOOT:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        begin_timers(local, held.layout, held.rules, held.out)
    elif kind == RESTART:
        held = opened(tables)
        local = local_master(held.locals, held.layout, message["to"])
        restart_local(local, held.layout, held.rules, now, held.out)


@inlined
def to_worker(tables: WorkerTables, now: float, message: np.void) -> None:  # noqa: C901
    """Hand a message to a worker."""
    kind = message["kind"]
    if kind == START:
        held = opened(tables)
        on_start(held.workers, held.layout, held.rules, held.tasks, message, held.out)
    elif kind == EXITED:
        held = opened(tables)
        on_exited(held.workers, held.layout, held.rules, held.tasks, message, held.out)
    elif kind == KILL:
        held = opened(tables)
        on_kill(held.workers, held.layout, held.rules, held.tasks, message, held.out)
    elif kind == FORGET:
        held = opened(tables)
        on_forget(held.workers, message)
    elif kind == REPORT:
        held = opened(tables)
        on_report(held.workers, held.layout, message, now, held.out)
    elif kind == LEASE:
        held = opened(tables)
        on_lease(held.workers, message)
    elif kind == TICK:
        held = opened(tables)
        on_tick(held.workers, held.layout, held.rules, held.tasks, now, message, held.out)
    elif kind == BOOT:
        held = opened(tables)
        begin_ticks(held.workers, held.layout, held.rules, message["to"], held.out)
    elif kind == RESTART:
        held = opened(tables)
        restart_worker(held.workers, held.layout, held.rules, message["to"], now, held.out)
    elif kind == POWER_OFF:
        held = opened(tables)
        on_power_off(held.workers, held.layout, message["to"], held.out)
    elif kind == RECONFIGURE:
        held = opened(tables)
        on_reconfigure(held.workers, held.layout, held.rules, held.tasks, now, message, held.lost, held.out)


# -- one of several roles ----------------------------------------------------------------------------------------------


@inlined
def global_master(masters: GlobalMasters, number: int) -> GlobalMaster:
    """Return one global master."""
    m = masters
    view = FleetState(
        free=m.free[number], capacity=m.capacity[number], block_free_max=m.block_free_max[number], allowed=m.allowed,
        version=m.version[number], freed_blocks=m.freed_blocks[number], frontier=m.frontier[number],
        used=m.used[number], present=m.present[number], scale=m.scale, random=m.random[number], machines=m.machines,
    )
    return GlobalMaster(
        number=number, fleet=view,
        held=Attempts(row=m.held_row[number], first=m.held_first[number], size=m.held_size[number]),
        consumed=m.consumed[number], total=m.total[number], cluster=m.cluster[number], listed=m.listed[number],
        queue_first=m.queue_first, lanes=m.lanes, lane_size=m.lane_size, task=m.task, gang=m.gang,
        turns=turns_of(m, number),
        bins=Bins(target=m.bins.target, class_of_shape=m.bins.class_of_shape, running=m.bins_running[number]),
        word=m.word[number], tally=m.tally[number],
    )


@inlined
def turns_of(masters: GlobalMasters, number: int) -> Turns:
    """Return the tree that a global master chooses its queues by."""
    m, same = masters, masters.turns.tree
    tree = Hierarchy(
        link=m.turn_link[number], value=m.turn_value[number], weight=same.weight, slot=same.slot, shape=same.shape,
        waiting=m.turn_count[number, 0], running=m.turn_count[number, 1], capped=same.capped,
        vector=m.turn_vector[number], dominant=m.turn_dominant[number], is_open=same.is_open,
        gate_first=same.gate_first, gate=same.gate, closed=same.closed, size=same.size, mode=m.turn_word[number],
    )
    return Turns(tree=tree, leaf=m.turns.leaf, queue=m.turns.queue, told=m.turn_told[number])


@inlined
def local_master(locals_: LocalMasters, layout: Layout, number: int) -> LocalMaster:
    """Return one local master; a number beyond the clusters is a standby's."""
    m, clusters = locals_, layout.local_masters
    side = number // clusters
    fleet = FleetState(
        free=m.free[side], capacity=m.capacity[side], block_free_max=m.block_free_max[side], allowed=m.allowed,
        version=m.version[side], freed_blocks=m.freed_blocks[side], frontier=m.frontier[side], used=m.used[side],
        present=m.present[side], scale=m.scale, random=m.random[side], machines=m.machines,
    )
    return LocalMaster(
        number=number, cluster=number % clusters, fleet=fleet,
        rows=Attempts(row=m.row[side], first=m.row_first[side], size=m.row_size[side]),
        ledger=Ledger(entry=m.entry[number], size=m.entry_size[number]), asker=m.asker[number],
        machine=m.machine[side], word=m.word[number], clock=m.clock[number], tally=m.tally[number],
    )
