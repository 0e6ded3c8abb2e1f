"""A global master's view: ledger entries of the local masters, plus its own launches in flight.

A launch in flight has taken its amounts in the view already, so the entry TOOK that confirms it takes nothing; when the
whole state of a cluster is told anew, launches in flight to the same local master are taken again.
"""
import numpy as np

from subak.federation.megha.attempts import add_attempt, drop_attempt, find_attempt, has_room
from subak.federation.megha.global_master.hold_back import set_holder
from subak.federation.megha.global_master.losses import is_sent
from subak.federation.megha.global_master.placement import hold, hold_nothing, let_go
from subak.federation.megha.global_master.requests import consume
from subak.federation.megha.global_master.state import (
    NEVER_SEEN,
    PHASE_FLYING,
    PHASE_LEAVING,
    PHASE_UNKNOWN,
    PHASE_WAITING,
    GlobalMaster,
    is_here,
    phase_of,
)
from subak.federation.megha.ledger import ENTRY_WHOLE, Ledger, ring_place, still_holds
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import OFF, Rules, Topology
from subak.federation.messages import CONCLUSIVE, NOBODY
from subak.fleet.amounts import shift
from subak.fleet.index import lower_summary, note_freed_block
from subak.fleet.state import BLOCK
from subak.marks import inlined, noinline

NOTHING_NEW, MISSING = -1, -2  # what an update brings instead of a version to apply it from


@inlined
def begin_update(master: GlobalMaster, cluster: int, now: float, message: np.void, ledger: Ledger) -> int:
    """Return the version to apply an update from, NOTHING_NEW, or MISSING when something before it is.

    The first update of a new epoch makes the view of the cluster start anew. A restarted master heeds only what was
    told to its new incarnation: then nothing that its former one requested is carried out any more.
    """
    if message["epoch"] < master.cluster[cluster]["epoch"]:
        return NOTHING_NEW
    if not master.cluster[cluster]["known"] and message["incarnation"] != master.counts.incarnation:
        return NOTHING_NEW
    if message["epoch"] > master.cluster[cluster]["epoch"]:
        master.cluster[cluster]["epoch"] = message["epoch"]
        master.cluster[cluster]["seen"] = NEVER_SEEN
    master.tally.updates += 1
    master.cluster[cluster]["seen_at"] = now
    first, last, seen = message["first"], message["last"], master.cluster[cluster]["seen"]
    if last <= seen or last == first:
        return NOTHING_NEW
    start = max(first, seen)
    if not still_holds(ledger, message["epoch"], start):
        master.tally.overruns += 1
        return MISSING
    if first > seen and ledger.entry[ring_place(ledger, first)]["kind"] != ENTRY_WHOLE:
        return MISSING
    return int(start)


@inlined
def take_in_view(master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, entry: np.void) -> bool:
    """Apply TOOK; return whether it is news of an own task's attempt."""
    machine, shape = entry["machine"], entry["shape"]
    own = is_mine(master, topology, tasks, entry)
    if own and master.task[entry["row"]]["flying"]:
        master.task[entry["row"]]["flying"] = False
    else:
        hold(master.fleet, master.bins, tasks, shape, machine)
        consume(master, tasks, shape, topology.machine[machine]["cluster"], entry["queue"], 1)
    if rules.preemption != OFF and has_room(master.held):
        row = master.held.row[add_attempt(master.held, machine, entry["task"], entry["attempt"], entry["held"])]
        row["preempted"], row["shape"], row["queue"] = entry["preempted"], shape, entry["queue"]
        row["in_gang"] = entry["in_gang"]
    return bool(own)


@inlined
def is_mine(master: GlobalMaster, topology: Topology, tasks: OpenTasks, entry: np.void) -> bool:
    """Whether an entry is about the attempt of an own task that the master stands by, or its former incarnation did.

    Attempts are numbered for each cluster, so the machine must be the same too. A task that is not open any more has
    ended, whatever runs of it. Of attempts that the master has given up, only what ended the task counts.
    """
    if entry["owner"] != master.number or not is_here(master, tasks, entry["row"], entry["task"], entry["round"]):
        return False
    task = master.task[entry["row"]]
    if task["phase"] in (PHASE_UNKNOWN, PHASE_WAITING):
        return bool(CONCLUSIVE[entry["reason"]] or is_sent(master, topology, entry))
    return bool(task["attempt"] == entry["attempt"] and task["machine"] == entry["machine"])


@inlined
def give_in_view(master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, entry: np.void) -> None:
    """Apply GAVE: the amounts are free again."""
    machine, shape = entry["machine"], entry["shape"]
    let_go(master.fleet, master.bins, tasks, shape, machine)
    consume(master, tasks, shape, topology.machine[machine]["cluster"], entry["queue"], -1)
    if rules.preemption != OFF:
        row = find_attempt(master.held, machine, entry["task"], entry["attempt"])
        if row != NOBODY:
            drop_attempt(master.held, row)


@inlined
def forget_flight(master: GlobalMaster, topology: Topology, tasks: OpenTasks, task: int) -> None:
    """Give a launch in flight back in the view: it was refused, or never sent."""
    machine = master.task[task]["machine"]
    let_go(master.fleet, master.bins, tasks, tasks.shape[task], machine)
    consume(master, tasks, tasks.shape[task], topology.machine[machine]["cluster"], tasks.queue[task], -1)
    master.task[task]["flying"] = False


@inlined
def size_in_view(master: GlobalMaster, topology: Topology, now: float, entry: np.void) -> None:
    """Apply SIZED: the machine has this capacity, is held back or not, and everything on it is known."""
    shift(master.fleet, entry["machine"], topology.capacity, entry["task"])
    set_holder(
        master.fleet, master.holding, master.number, entry["machine"], entry["owner"], entry["attempt"], entry["heir"],
        now)
    master.listed[entry["machine"]] = True


@noinline
def begin_whole(master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, cluster: int) -> None:
    """Apply WHOLE: empty the view of a cluster, and doubt every own task on it until it is told again."""
    masters = topology.global_masters
    first, end = topology.block[cluster * masters], topology.block[(cluster + 1) * masters]
    for machine in range(first * BLOCK, end * BLOCK):
        empty_machine(master, rules, machine)
    for block in range(first, end):
        for resource in range(master.fleet.free.shape[0]):
            lower_summary(master.fleet, resource, block)
        note_freed_block(master.fleet, block)
    for queue in range(master.total.shape[0]):
        for resource in range(master.total.shape[1]):
            master.total[queue, resource] -= master.consumed[cluster, queue, resource]
            master.consumed[cluster, queue, resource] = 0
    doubt_all(master, topology, tasks, cluster)
    master.counts.doubts = 1


@inlined
def empty_machine(master: GlobalMaster, rules: Rules, machine: int) -> None:
    """Let a machine have nothing and hold nothing."""
    view = master.fleet
    master.listed[machine] = False
    set_holder(view, master.holding, master.number, machine, NOBODY, NOBODY, 0.0, 0.0)
    hold_nothing(master.bins, machine)
    for resource in range(view.free.shape[0]):
        view.present[resource] -= view.capacity[resource, machine]
        view.capacity[resource, machine] = 0
        view.free[resource, machine] = 0
    if rules.preemption != OFF:
        while master.held.first[machine] != NOBODY:
            drop_attempt(master.held, master.held.first[machine])


@inlined
def doubt_all(master: GlobalMaster, topology: Topology, tasks: OpenTasks, cluster: int) -> None:
    """Doubt own tasks on a cluster; those still in flight to the local master that speaks are taken again."""
    for task in range(tasks.counts.tasks_ever):
        if PHASE_FLYING <= phase_of(master, tasks, task) <= PHASE_LEAVING:
            machine = master.task[task]["machine"]
            if topology.machine[machine]["cluster"] == cluster:
                if master.task[task]["flying"] and master.task[task]["sent_epoch"] == master.cluster[cluster]["epoch"]:
                    hold(master.fleet, master.bins, tasks, tasks.shape[task], machine)
                    consume(master, tasks, tasks.shape[task], cluster, tasks.queue[task], 1)
                else:
                    master.task[task]["flying"], master.task[task]["doubted"] = False, True

