"""The state of a global master: its view, its queues and their use, and the place of each task.

A task is the row of an open task (open_tasks.py). It is UNKNOWN (not submitted), WAITING, FLYING (requested), HELD (its
gang is incomplete), RUNNING, LEAVING (given up, the local master has not confirmed it), or ENDED.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.counts import COMPARED, TOLD
from subak.federation.megha.attempts import Attempts
from subak.federation.megha.global_master.hold_back import Holding
from subak.federation.megha.global_master.placement import Bins
from subak.federation.megha.global_master.queue_order import QueueOrder
from subak.federation.megha.open_tasks import OpenTasks, is_still
from subak.federation.messages import NOBODY
from subak.fleet.state import FleetState
from subak.marks import inlined
from subak.queues.lanes import Lanes
from subak.records import Numbers

PHASES = ("UNKNOWN", "WAITING", "FLYING", "HELD", "RUNNING", "LEAVING", "ENDED")
PHASE_UNKNOWN, PHASE_WAITING, PHASE_FLYING, PHASE_HELD, PHASE_RUNNING, PHASE_LEAVING, PHASE_ENDED = range(7)

TALLY = ("searches", "launches", "repartitions", "preemption attempts", "refusals", "attempts lost", "updates",
         "entries applied", "updates overrun", "share used up", "no machine")
NEVER_SEEN = -1  # version of a cluster whose whole state has not been seen


CLUSTER = np.dtype([
    ("seen", np.int64),  # version of the view, NEVER_SEEN at first
    ("seen_at", np.float64),  # seconds: when the last update came
    ("epoch", np.int32),  # of the local master that speaks for it
    ("numbers", np.int64),  # of the last request
    ("known", np.bool_),  # whether it has told this incarnation of the master its whole state
    ("closed", np.bool_),  # whether its local master had no room to note an attempt: asked again after a while
])
TASK = np.dtype([
    ("tenant", np.int64),  # 1 + the number of the task that this is about, 0 for none, whoever has the row by now
    ("attempt", np.int64),  # number of the last
    ("machine", np.int32),  # of the last
    ("sent_epoch", np.int32),  # of the local master it was requested from
    ("sent_to", np.int32),  # cluster it was last requested from, NOBODY for none; on disk
    ("sent", np.int64),  # number of that attempt, NOTHING_SENT (losses.py) when it is known to be over; on disk
    ("round", np.int16),  # of the task (open_tasks.py), likewise
    ("refusals", TOLD),
    ("repartitioned", TOLD),  # launches on other partitions
    ("preempted", TOLD),
    ("lost", COMPARED),  # attempts that were lost, in all rounds (losses.py); on disk
    ("code", np.int16),  # exit code of the attempt that it ended with
    ("tried", np.int64),  # `beats` when a preemption for it was refused, not to be tried again before the next
    ("phase", np.int8),  # one of PHASES
    ("reason", np.int8),  # of the last refusal or loss, or why it has ended
    ("withdrawn", np.int8),  # for which reason it is to be ended, though it may run; 0 where it is wanted
    ("queued", np.bool_),  # whether it is in a lane
    ("flying", np.bool_),  # whether its amounts are taken in the view by its own request only
    ("doubted", np.bool_),  # whether the local master must confirm that it still holds it
])
GANG = np.dtype([
    ("tenant", np.int64),  # 1 + the number of the gang that this is about, likewise
    ("waiting", np.int32),  # tasks that wait, or have ended
    ("failed", np.bool_),  # whether it is being given up
])


class MasterCounts(Numbers):
    """Where a global master is in its work."""

    next_queue: int  # a place in own
    next_internal: int
    next_external: int
    placing: int
    incarnation: int
    scanned: int
    doubts: int
    queued: int  # tasks in lanes
    beats: int  # heartbeats heard
    own_queues: int


class GlobalTally(Numbers):
    """How often what happened at a global master, in the order of TALLY."""

    searches: int
    launches: int
    repartitions: int
    preemptions: int
    refusals: int
    lost_attempts: int
    updates: int
    entries_applied: int
    overruns: int
    share_used_up: int
    no_machine: int


class GlobalMaster(NamedTuple):
    """One global master."""

    number: int
    fleet: FleetState  # its view: what it believes is free
    held: Attempts  # what it believes runs where; used with preemption only
    consumed: np.ndarray  # int64[cluster, queue, resource], units, with its own requests in flight; no resources where
    # nothing goes by what queues use
    total: np.ndarray  # int64[queue, resource], units, over all clusters
    cluster: np.ndarray  # CLUSTER[cluster]
    listed: np.ndarray  # bool[machine], whether all attempts on it are known
    own: np.ndarray  # int32[place], its queues, counts.own_queues of them, in the order of their turns
    lanes: Lanes  # one for each queue, shape and size of gang; a queue has places of its own in `active`, `contender`
    lane_span: np.ndarray  # int32[queue, 2]: its first place, and that behind its last; of own queues
    lane_size: np.ndarray  # int64[queue, 3], as Lanes.size, for each queue
    task: np.ndarray  # TASK[row]
    gang: np.ndarray  # GANG[row]
    queue_order: QueueOrder
    bins: Bins
    holding: Holding
    counts: MasterCounts
    tally: GlobalTally


@inlined
def is_here(master: GlobalMaster, tasks: OpenTasks, row: int, number: int, round_: int) -> bool:
    """Whether a row is still that of a task; of one that is new to the row, or submitted anew, nothing is known."""
    if not is_still(tasks, row, number, round_):
        return False
    if master.task[row]["tenant"] != number + 1 or master.task[row]["round"] != round_:
        begin_task(master, row, number, round_)
    gang = tasks.gang[row]
    if gang != NOBODY and master.gang[gang]["tenant"] != tasks.gangs[gang]["number"] + 1:
        master.gang[gang]["tenant"] = tasks.gangs[gang]["number"] + 1
        master.gang[gang]["waiting"], master.gang[gang]["failed"] = 0, False
    return True


@inlined
def begin_task(master: GlobalMaster, row: int, number: int, round_: int) -> None:
    """Know nothing of a task that has come into a row; of one that is submitted anew, how often it was lost."""
    me = master.task[row]
    if me["tenant"] != number + 1:
        me["lost"] = 0
    me["tenant"], me["round"], me["phase"] = number + 1, round_, PHASE_UNKNOWN
    me["reason"], me["withdrawn"], me["code"], me["sent"] = 0, 0, 0, 0
    me["attempt"], me["machine"], me["sent_epoch"], me["sent_to"] = 0, NOBODY, 0, NOBODY
    me["refusals"], me["repartitioned"], me["preempted"], me["tried"] = 0, 0, 0, 0
    me["queued"], me["flying"], me["doubted"] = False, False, False


@inlined
def phase_of(master: GlobalMaster, tasks: OpenTasks, row: int) -> int:
    """Return the phase of the task that has a row now."""
    me = master.task[row]
    is_about = me["tenant"] == tasks.number[row] + 1 and me["round"] == tasks.round[row]
    return int(me["phase"]) if is_about else PHASE_UNKNOWN
