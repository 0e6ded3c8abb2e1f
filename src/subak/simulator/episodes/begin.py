"""Begins an episode: cuts a window of jobs and resets the fleet."""
import numpy as np

from subak.kernels.kernel import kernel
from subak.marks import inlined, noinline
from subak.placement.claims import VIOLATED_RULE
from subak.placement.fits.random_fit import random_below
from subak.simulator.engine.sorting import sort
from subak.simulator.engine.state import Counts
from subak.simulator.episodes.state import (
    ANY_JOB,
    FIRST_JOB,
    NEVER_S,
    NOBODY_FOLLOWS,
    STAGES_HERE,
    TASKS_HERE,
    Episode,
    Source,
)
from subak.workload.tasks import Stages


@noinline
def begin(source: Source, episode: Episode, first_job: int) -> None:
    """Begin anew with the window from *first_job* on, or one that is drawn."""
    job = first_job
    if job == ANY_JOB:
        job = source.window[0] + random_below(episode.random, source.window[1])
    before = episode.state[TASKS_HERE]
    episode.state[:] = 0
    episode.state[FIRST_JOB] = job
    last = job + source.window[2]
    episode.state[TASKS_HERE] = gather(source.task_first, source.job_task, job, last, episode.task)
    cut_tasks(source, episode, before)
    if episode.sim.stages.of_task.size > 0:
        episode.state[STAGES_HERE] = gather(source.stage_first, source.job_stage, job, last, episode.stage)
        cut_stages(source.stages, episode.sim.stages, episode)
    empty_fleet(source, episode)
    empty_engine(episode)


@kernel
def gather(first: np.ndarray, rows: np.ndarray, job: int, last: int, into: np.ndarray) -> int:
    """Write the rows of the jobs from *job* to before *last*, sorted; return how many there are."""
    begins, count = first[job], first[last] - first[job]
    is_sorted = True
    for place in range(count):
        into[place] = rows[begins + place]
        if place > 0 and into[place] < into[place - 1]:
            is_sorted = False
    if not is_sorted:
        sort(into[:count])
    return int(count)


@kernel
def place_of(rows: np.ndarray, row: int) -> int:
    """Return where *row* is in int32[:], sorted, which holds it."""
    guess = row - rows[0]
    if guess < rows.size and rows[guess] == row:
        return int(guess)
    low, high = 0, rows.size
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def cut_tasks(source: Source, episode: Episode, before: int) -> None:
    """Copy what is known of the window's tasks; behind them, up to *before*, are places of tasks that never arrive."""
    sim, gangs, count = episode.sim, episode.gangs, episode.state[TASKS_HERE]
    rows = episode.task[:count]
    for task in range(count):
        row = rows[task]
        sim.tasks.arrival[task] = source.tasks.arrival[row]
        sim.tasks.run_time[task] = source.tasks.run_time[row]
        sim.tasks.estimate[task] = source.tasks.estimate[row]
        sim.tasks.rank[task] = source.tasks.rank[row]
        sim.tasks.shape[task] = source.tasks.shape[row]
        sim.claims.status[task] = source.status[row]
        sim.progress.ready[task] = source.tasks.arrival[row]
        sim.progress.start[task] = np.nan
        sim.progress.event[task] = -1
        sim.progress.machine[task] = -1
        sim.progress.attempts[task] = 0
        if sim.speeds.group.size > 0:
            sim.speeds.group[task] = source.group[row]
        if sim.speeds.shuffle.size > 0:
            sim.speeds.shuffle[task] = source.shuffle[row]
        head = task if source.head[row] == row else place_of(rows, source.head[row])
        gangs.head[task] = head
        gangs.follows[task] = NOBODY_FOLLOWS
        if source.follows[row] != NOBODY_FOLLOWS:
            gangs.follows[task] = place_of(rows, source.follows[row])
        gangs.left[task] = gangs.missing[task] = 0
        gangs.left[head] += 1
        gangs.missing[head] += 1
    for task in range(count, before):
        sim.tasks.arrival[task] = np.inf
    front = episode.waiting.next.size - 1
    episode.waiting.next[front] = episode.waiting.previous[front] = front


@noinline
def cut_stages(source: Stages, stages: Stages, episode: Episode) -> None:
    """Copy which stage of the window waits for which; those of a job wait for each other only."""
    rows, count = episode.stage[: episode.state[STAGES_HERE]], episode.state[TASKS_HERE]
    edges, tasks = 0, 0
    for stage in range(rows.size):
        row = rows[stage]
        stages.left[stage], stages.waits[stage] = source.left[row], source.waits[row]
        stages.child_first[stage], stages.task_first[stage] = edges, tasks
        for edge in range(source.child_first[row], source.child_first[row + 1]):
            stages.child[edges] = place_of(rows, source.child[edge])
            edges += 1
        for place in range(source.task_first[row], source.task_first[row + 1]):
            task = place_of(episode.task[:count], source.task[place])
            stages.task[tasks] = task
            stages.of_task[task] = stage
            tasks += 1
    stages.child_first[rows.size], stages.task_first[rows.size] = edges, tasks


@inlined
def empty_fleet(source: Source, episode: Episode) -> None:
    """Let nothing run on the machines, which are those of the first instant."""
    before, fleet = source.fleet, episode.sim.fleet
    for row in range(fleet.free.shape[0]):
        for machine in range(fleet.free.shape[1]):
            fleet.free[row, machine] = before.free[row, machine]
            fleet.capacity[row, machine] = before.capacity[row, machine]
        for block in range(fleet.block_free_max.shape[1]):
            fleet.block_free_max[row, block] = before.block_free_max[row, block]
            fleet.block_at_max[row, block] = before.block_at_max[row, block]
        fleet.present[row] = before.present[row]
    fleet.used[:] = 0
    fleet.freed_blocks[:] = 0
    fleet.frontier[:] = 0


@inlined
def empty_counts(counts: Counts) -> None:
    """Set every count to zero."""
    counts.next_arrival = counts.next_change = counts.events = counts.waiting_now = counts.running_now = 0
    counts.freed_now = counts.arrived_now = counts.ended_now = counts.losses = counts.lost_events = 0
    counts.rows_closed = counts.intervals = counts.preempted_ever = 0


@inlined
def empty_engine(episode: Episode) -> None:
    """Set clock, counts and timeline to the beginning."""
    sim = episode.sim
    sim.clock.now = sim.clock.accounted = 0.0
    sim.clock.interval = sim.clock.boundary = NEVER_S
    sim.clock.until = sim.clock.unread_from = np.inf
    empty_counts(sim.counts)
    sim.events.size[:] = 0
    sim.claims.size[0] = 0
    sim.claims.violation[VIOLATED_RULE] = 0
    sim.step.is_freed[:] = False
    sim.record.current[:] = 0.0
    sim.record.waiting_by_shape[:] = 0
    sim.record.rows[:] = 0.0
