"""Restores a global master: its incarnation and last requests come from disk, the rest from other roles.

The view comes from the local masters, who tell their whole state to a new incarnation and heed the former one no more;
tasks that run are learnt from there, those that wait from the submitter. A task that may run in a cluster which has not
answered is not placed, and the master keeps on disk which cluster and attempt that is; all others are, so a local
master that never comes back holds up no more than it held. A whole state also settles doubts in between: own tasks that
a local master does not hold have been lost with it, and count as lost (losses.py).

Source: Megha section IV-D: global masters are stateless.
"""
import numpy as np

from subak.federation.megha.global_master.backlog import enqueue, lanes_of
from subak.federation.megha.global_master.gangs import enqueue_gang, gang_is_settled, give_up_if_in_part
from subak.federation.megha.global_master.hold_back import forget_holding
from subak.federation.megha.global_master.losses import end_attempt, may_have_begun
from subak.federation.megha.global_master.phases import conclude, take_turn, wait_again
from subak.federation.megha.global_master.requests import is_settled
from subak.federation.megha.global_master.state import (
    NEVER_SEEN,
    PHASE_UNKNOWN,
    PHASE_WAITING,
    GlobalMaster,
    phase_of,
)
from subak.federation.megha.global_master.view import begin_whole
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import Rules, Topology
from subak.federation.messages import (
    ASK,
    NO_REASON,
    NOBODY,
    REBUILD,
    SETTLE,
    UNKNOWN,
    WAKE,
    Outbox,
    go_on,
    is_filling,
    post,
)
from subak.fleet.state import BLOCK
from subak.marks import inlined, noinline
from subak.queues.lanes import ACTIVE_LANES, CONTENDERS, drop_top, pop


@inlined
def settle_doubts(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, out: Outbox
) -> bool:
    """Let own tasks wait again that a local master, in its whole state, does not hold; return whether all are done."""
    master.counts.doubts = 0
    for task in range(tasks.counts.tasks_ever):
        if is_filling(out):
            master.counts.doubts = 1
            return False
        if master.task[task]["doubted"]:
            if master.listed[master.task[task]["machine"]]:
                master.task[task]["doubted"] = False
                master.tally.lost_attempts += 1
                end_attempt(master, tasks, task, may_have_begun(master, tasks, task))
                wait_again(master, topology, rules, tasks, task, UNKNOWN, out)
            else:
                master.counts.doubts = 1
    return True


@inlined
def restart(master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, out: Outbox) -> None:
    """Begin a new incarnation with nothing: ask the local masters for their state, and the submitter for its tasks."""
    forget_everything(master, topology, rules, tasks)
    master.counts.incarnation += 1
    post(out, REBUILD, master.number, master.number, NOBODY, NOBODY)["incarnation"] = master.counts.incarnation
    on_wake(master, topology, rules, out)


@noinline
def on_wake(master: GlobalMaster, topology: Topology, rules: Rules, out: Outbox) -> None:
    """Ask every local master that has not answered, and its standby; look again later."""
    unknown = 0
    for cluster in range(topology.local_masters):
        if not master.cluster[cluster]["known"]:
            unknown += 1
            for instance in range(2 if rules.standby else 1):
                number = cluster + topology.standbys * instance
                row = post(out, ASK, master.number, number, NOBODY, NOBODY)
                row["incarnation"], row["seen"] = master.counts.incarnation, NEVER_SEEN
    if unknown > 0:
        row = post(out, WAKE, master.number, master.number, NOBODY, NOBODY)
        row["delay"] = min(rules.retry, rules.lease)


@noinline
def is_known(master: GlobalMaster, topology: Topology, cluster: int) -> bool:
    """Whether a cluster has told its whole state, and what runs on each of its machines."""
    if master.cluster[cluster]["seen"] == NEVER_SEEN:
        return False
    masters = topology.global_masters
    for machine in range(topology.block[cluster * masters] * BLOCK, topology.block[(cluster + 1) * masters] * BLOCK):
        if not master.listed[machine]:
            return False
    return True


@inlined
def settle_cluster(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, cluster: int, out: Outbox
) -> None:
    """Let what was last requested from a cluster have its turn once it is known what became of it; gangs that start in
    part are given up.
    """
    if master.cluster[cluster]["known"] or not is_known(master, topology, cluster):
        return
    master.cluster[cluster]["known"] = True
    settle_from(master, topology, rules, tasks, cluster, 0, 0, out)


@inlined
def on_settle(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, message: np.void, out: Outbox
) -> None:
    """Go on to settle doubts, and a cluster."""
    cluster = topology.machine[message["machine"]]["cluster"]
    if master.counts.doubts and not settle_doubts(master, topology, rules, tasks, out):
        settle_later(master, topology, cluster, message["row"], message["count"], out)
    else:
        settle_from(master, topology, rules, tasks, cluster, message["row"], message["count"], out)


@noinline
def settle_from(  # noqa: PLR0913, PLR0917  (where a walk goes on)
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, cluster: int, first: int,
    first_gang: int, out: Outbox,
) -> None:
    """Let what was requested from a cluster have its turn, from a task and a gang on."""
    for task in range(first, tasks.counts.tasks_ever):
        if is_filling(out):
            settle_later(master, topology, cluster, task, first_gang, out)
            return
        if phase_of(master, tasks, task) == PHASE_WAITING and is_settled(master, task):
            end_attempt(master, tasks, task, True)  # what was sent before left no trace
            if master.task[task]["withdrawn"] != NO_REASON:
                conclude(master, topology, tasks, task, master.task[task]["withdrawn"], out)
            elif tasks.gang[task] == NOBODY and master.task[task]["sent_to"] == cluster:
                enqueue(master, tasks, task)
    for gang in range(first_gang, tasks.counts.gangs_ever):
        if is_filling(out):
            settle_later(master, topology, cluster, tasks.counts.tasks_ever, gang, out)
            return
        if tasks.gangs[gang]["number"] != NOBODY and gang_is_settled(master, tasks, gang):
            give_up_if_in_part(master, topology, rules, tasks, gang, out)
            enqueue_gang(master, topology, tasks, gang)
    take_turn(master, out)


@noinline
def settle_later(master: GlobalMaster, topology: Topology, cluster: int, task: int, gang: int, out: Outbox) -> None:
    """Go on to settle a cluster after this handler, from a task and a gang on."""
    machine = topology.block[cluster * topology.global_masters] * BLOCK
    later = go_on(out, SETTLE, master.number, machine)
    later["row"], later["count"] = task, gang


@inlined
def forget_everything(master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks) -> None:
    """Lose what only memory held."""
    for queue in master.own[: master.counts.own_queues]:
        lanes = lanes_of(master, queue)
        while lanes.size[CONTENDERS] > 0:
            drop_top(lanes, tasks.rank)
        while lanes.size[ACTIVE_LANES] > 0:
            pop(lanes, tasks.rank, lanes.active[0])
    for task in range(tasks.counts.tasks_ever):
        forget_task(master, task)
    for gang in range(tasks.counts.gangs_ever):
        master.gang[gang]["waiting"], master.gang[gang]["failed"] = 0, False
    for cluster in range(topology.local_masters):
        row = master.cluster[cluster]
        row["seen"], row["epoch"], row["numbers"] = NEVER_SEEN, 0, 0
        row["known"], row["closed"] = not topology.is_there[cluster], False
        begin_whole(master, topology, rules, tasks, cluster)
    counts = master.counts
    counts.next_queue = counts.next_internal = counts.next_external = counts.placing = counts.doubts = counts.queued = 0
    forget_holding(master.fleet, master.holding, master.number)


@inlined
def forget_task(master: GlobalMaster, task: int) -> None:
    """Know nothing of a task but what is on disk: which cluster was last asked for which attempt, and what was lost."""
    master.task[task]["phase"] = PHASE_UNKNOWN
    master.task[task]["attempt"], master.task[task]["machine"], master.task[task]["sent_epoch"] = 0, NOBODY, 0
    master.task[task]["queued"], master.task[task]["flying"], master.task[task]["doubted"] = False, False, False
    master.task[task]["withdrawn"] = NO_REASON
