"""The state of a central run besides fleet, tasks and lanes: clock, stages, changes, timeline."""
from typing import NamedTuple

import numpy as np

from subak.fleet.speeds import Speeds
from subak.fleet.state import FleetState
from subak.placement.claims import Claims
from subak.records import Numbers
from subak.simulator.engine.heap import Events
from subak.simulator.engine.interference import Interference
from subak.simulator.engine.overuse import Overuse
from subak.workload.tasks import Stages, Tasks

# why a loop came back
LOOP_DONE, LOOP_STEP, LOOP_PAUSED, LOOP_TIMELINE_FULL, LOOP_LOSSES_FULL, LOOP_BROKEN, LOOP_UNREAD = range(7)

# timeline columns; the four of messages are a federation's; behind all, per resource: used, capacity, stranded
(TIMELINE_ARRIVALS, TIMELINE_STARTS, TIMELINE_ENDS, TIMELINE_LOST, TIMELINE_WAITING_MEAN, TIMELINE_WAITING_MAX,
 TIMELINE_RUNNING_MEAN, TIMELINE_MESSAGES, TIMELINE_REFUSALS, TIMELINE_REPARTITIONS, TIMELINE_PREEMPTIONS,
 FIRST_RESOURCE) = range(12)
PER_RESOURCE = 3


class Progress(NamedTuple):
    """What happened to each task."""

    ready: np.ndarray  # float64[task], seconds: arrival, or the end of the last stage it waits for
    start: np.ndarray  # float64[task], seconds, of the last attempt; nan before
    event: np.ndarray  # int64[task], sequence number of the event that ends the last attempt
    machine: np.ndarray  # int32[task], of the last attempt; -1 before
    attempts: np.ndarray  # uint16[task]


class Changes(NamedTuple):
    """How the fleet changes, sorted by time."""

    time: np.ndarray  # float64[change], seconds
    machine: np.ndarray  # int32[change]
    present: np.ndarray  # bool[change]
    capacity: np.ndarray  # int32[resource, change], units


class Losses(NamedTuple):
    """Attempts that ended because their machine left or shrank, or for a queue below its guarantee."""

    task: np.ndarray  # int32[loss]
    machine: np.ndarray  # int32[loss]
    start: np.ndarray  # float64[loss], seconds
    end: np.ndarray  # float64[loss], seconds


class Step(NamedTuple):
    """What one instant brought: machines freed, tasks that now wait, tasks whose attempts ended."""

    freed: np.ndarray  # int32[machine]
    is_freed: np.ndarray  # bool[machine]
    arrived: np.ndarray  # int32[task]
    ended: np.ndarray  # int32[task]


class SlowStart(NamedTuple):
    """Attempts that start before the stages they wait for have ended; all arrays are empty where none may."""

    enough: np.ndarray  # int32[stage], tasks left in it with which those that wait for it are released
    unfinished: np.ndarray  # int32[stage], stages that it waits for and that have tasks left
    opened: np.ndarray  # float64[stage], seconds: when the last of these ended; inf before, 0 where there are none


class Record(NamedTuple):
    """What is written down per interval."""

    rows: np.ndarray  # float64[row, column]
    current: np.ndarray  # float64[column], the interval that is open
    waiting_by_shape: np.ndarray  # int32[shape]
    shape_by_size: np.ndarray  # int32[shape], smallest first


class Clock(Numbers):
    """Instants of a run, in simulated seconds."""

    now: float
    accounted: float  # up to when the timeline is integrated
    interval: float  # of the timeline
    boundary: float  # when the open interval ends
    until: float  # when the run was told to stop
    unread_from: float  # the first arrival that has no row yet


class Counts(Numbers):
    """Places in the tables of a run, and how many there are of what."""

    next_arrival: int
    next_change: int
    events: int
    waiting_now: int
    running_now: int
    freed_now: int  # in this step, likewise the next
    arrived_now: int
    rows_closed: int  # of the timeline, since it was last emptied
    intervals: int  # of the timeline, ever
    losses: int
    lost_events: int  # of attempts that were lost: still in the heap
    ended_now: int  # in this step
    preempted_ever: int


class Simulation(NamedTuple):
    """Everything that the loop reads and writes."""

    tasks: Tasks
    fleet: FleetState
    speeds: Speeds
    overuse: Overuse
    interference: Interference
    cut: np.ndarray  # float64[task], seconds after which the present attempt ends without finishing, negative where it
    # does not; empty where all finish
    claims: Claims
    events: Events
    progress: Progress
    stages: Stages
    slow: SlowStart
    changes: Changes
    losses: Losses
    step: Step
    record: Record
    clock: Clock
    counts: Counts
