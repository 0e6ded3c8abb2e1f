"""Knows the last attempt of each task and decides whether it counts as lost.

An attempt counts as lost when it may have begun, and nobody can say how it ended: its machine was lost, its worker had
lost touch, or no local master that could hold it knows of it. So a task begins at most once more than its attempts may
be lost; attempts that failed, were preempted or given up with their gang do not count.

The cluster and the number of the attempt that was sent last, and the count, are on disk before the next attempt leaves.
A restarted master therefore counts each loss once, whether its former incarnation had heard of it or not.
"""
import numpy as np

from subak.federation.counts import compared
from subak.federation.megha.global_master.state import PHASE_FLYING, PHASE_HELD, GlobalMaster
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import Topology
from subak.federation.messages import (
    LEASE_LOST,
    LOST_TOO_OFTEN,
    MACHINE_LOST,
    MACHINE_STOPPED,
    NOBODY,
    OLD_EPOCH,
    UNKNOWN,
)
from subak.marks import inlined

LOSSES = (MACHINE_LOST, LEASE_LOST, UNKNOWN, MACHINE_STOPPED)  # ends of attempts that nobody wanted
NOTHING_SENT = 0  # number of the attempt that was sent last, when it is known to be over; those of attempts are greater


@inlined
def is_sent(master: GlobalMaster, topology: Topology, entry: np.void) -> bool:
    """Whether an entry is about the attempt that its task was sent to last, by this incarnation or a former one."""
    task = master.task[entry["row"]]
    cluster = topology.machine[entry["machine"]]["cluster"]
    return bool(task["sent"] == entry["attempt"] and task["sent_to"] == cluster)


@inlined
def may_have_begun(master: GlobalMaster, tasks: OpenTasks, task: int) -> bool:
    """Whether the attempt that was sent last may have begun: one of a gang does not before it is told to go."""
    phase = master.task[task]["phase"]
    return bool(phase != PHASE_HELD and (phase != PHASE_FLYING or tasks.gang[task] == NOBODY))


@inlined
def may_be_lost(master: GlobalMaster, tasks: OpenTasks, task: int, reason: int) -> bool:
    """Whether a request that was refused may have been carried out: by the local master that was replaced."""
    return bool(reason == OLD_EPOCH and may_have_begun(master, tasks, task))


@inlined
def end_attempt(master: GlobalMaster, tasks: OpenTasks, task: int, is_lost: bool) -> None:
    """Note that the attempt that was sent last is over and its task has not ended; withdraw one that lost too many."""
    me = master.task[task]
    if me["sent"] != NOTHING_SENT and is_lost:
        me["lost"] = compared(me["lost"], 1)
    me["sent"] = NOTHING_SENT
    if me["lost"] > tasks.losses_max[task]:
        me["withdrawn"] = LOST_TOO_OFTEN
