"""Applies an action, and decides when the next one is due.

One step: (1) the action starts what it names, or lets time pass; (2) until something that is shown can start, the
engine goes on to the next instant, as it does for every scheduler: what is freed is offered to those who wait before
tasks that arrive at the same instant are looked at.
"""
import numpy as np

from subak.fleet.feasible import NOWHERE, first_fitting
from subak.fleet.state import FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined, noinline
from subak.placement.claims import TASK_FINISHED, TASK_RUNNING, TASK_WAITING, claim
from subak.placement.fits.best_fit import extreme_fit
from subak.placement.rigid.start import holds
from subak.simulator.central.loop import advance, next_time
from subak.simulator.engine.attempts import commit, drop_dead, end_time, forget_lost_events, lose
from subak.simulator.engine.state import (
    LOOP_LOSSES_FULL,
    LOOP_STEP,
    Simulation,
)
from subak.simulator.episodes.state import (
    ASKS,
    HAS_ENDED,
    INVALID_ACTIONS,
    NO_HEAD,
    NOBODY_FOLLOWS,
    SLOWDOWNS,
    UNSEEN_ARRIVALS,
    Episode,
)
from subak.workload.tasks import SLOWDOWN_FLOOR_S, Tasks

FIRST_FITTING = -1  # of `Episodes.rules`; the others are those of extreme_fit


@inlined
def act(episode: Episode, rules: np.ndarray, action: int, mask: np.ndarray, parts: np.ndarray) -> bool:
    """Start what an action names, if the mask allows it; return whether time is to pass instead.

    An action that is not allowed lets time pass; where nothing is ahead, it does the first one that is allowed.
    """
    wait = mask.size - 1
    if not 0 <= action <= wait or mask[action] == 0:
        episode.state[INVALID_ACTIONS] += 1
        action = wait if mask[wait] else first_allowed(mask)
    if action == wait:
        return True
    start(episode, episode.shown[action // rules.size], rules[action % rules.size], parts)
    return False


@kernel
def first_allowed(mask: np.ndarray) -> int:
    """Return the first action of int8[:] that is possible."""
    action = 0
    while action < mask.size - 1 and mask[action] == 0:
        action += 1
    return action


@noinline
def start(episode: Episode, head: int, rule: int, parts: np.ndarray) -> None:
    """Start all of a gang that wait, each on the machine that the rule chooses; there is room for them."""
    sim, gangs, task, started = episode.sim, episode.gangs, head, 0
    while task != NOBODY_FOLLOWS:
        if sim.claims.status[task] == TASK_WAITING:
            machine = machine_for(sim.fleet, sim.tasks, task, rule)
            claim(sim.claims, sim.fleet, sim.tasks, task, machine)
            parts[SLOWDOWNS] += slowdown(sim, task, end_time(sim, task, machine, sim.clock.now))
            started += 1
        task = gangs.follows[task]
    commit(sim)
    gangs.missing[head] += started
    leave_line(episode, head)


@inlined
def machine_for(fleet: FleetState, tasks: Tasks, task: int, rule: int) -> int:
    """Return the machine that a placement chooses, as `subak simulate` has it."""
    if rule == FIRST_FITTING:
        return first_fitting(fleet, tasks, task)
    return extreme_fit(fleet, tasks, tasks.shape[task], rule)


@inlined
def slowdown(sim: Simulation, task: int, end: float) -> float:
    """Return the bounded slowdown of a task that ends at *end*; 0 of one that never does."""
    run_time = sim.tasks.run_time[task]
    if run_time == np.inf:
        return 0.0
    return max((end - sim.progress.ready[task]) / max(run_time, SLOWDOWN_FLOOR_S), 1.0)


@noinline
def go_on(episode: Episode, mask: np.ndarray, placements: int, passes: bool, parts: np.ndarray) -> None:
    """Go on until something that is shown can start, or nothing will ever happen; *passes*: not at this instant."""
    sim, state = episode.sim, episode.state
    state[ASKS] = 0
    while True:
        if not passes and show(episode, mask, placements):
            drop_dead(sim)
            mask[mask.size - 1] = 1 if state[UNSEEN_ARRIVALS] or next_time(sim) < np.inf else 0
            state[ASKS] = 1
            return
        passes = False
        if state[UNSEEN_ARRIVALS]:
            see_arrivals(episode)
            continue
        why = advance(sim)
        if why == LOOP_LOSSES_FULL:
            sim.counts.losses = 0  # nobody asks for their table
        elif why == LOOP_STEP:
            note_ends(episode, parts)
            state[UNSEEN_ARRIVALS] = sim.counts.arrived_now > 0
            if sim.counts.freed_now == 0:
                see_arrivals(episode)
        else:
            state[HAS_ENDED] = 1
            mask[:] = 0
            mask[mask.size - 1] = 1
            return


@inlined
def show(episode: Episode, mask: np.ndarray, placements: int) -> bool:
    """Show the first that wait, and say in the mask which can start; return whether any can."""
    sim, waiting, left = episode.sim, episode.waiting, episode.gangs.left
    last = waiting.next.size - 1
    head = waiting.next[last]
    shape, count, can, any_can = -1, 0, False, False
    mask[:] = 0
    for place in range(episode.shown.size):
        if head == last:
            episode.shown[place] = NO_HEAD
            continue
        episode.shown[place] = head
        if sim.tasks.shape[head] != shape or left[head] != count:
            shape, count = sim.tasks.shape[head], left[head]
            can = has_room(sim.fleet, sim.tasks, head, count)
        if can:
            any_can = True
            mask[place * placements : (place + 1) * placements] = 1
        head = waiting.next[head]
    return any_can


@inlined
def has_room(fleet: FleetState, tasks: Tasks, head: int, count: int) -> bool:
    """Whether *count* tasks like this one fit the machines at once."""
    if first_fitting(fleet, tasks, head) == NOWHERE:
        return False
    return bool(count == 1 or holds(fleet, tasks, tasks.shape[head], count))


@inlined
def see_arrivals(episode: Episode) -> None:
    """Let the gangs wait of which nobody is missing any more."""
    sim, gangs = episode.sim, episode.gangs
    for task in sim.step.arrived[: sim.counts.arrived_now]:
        head = gangs.head[task]
        gangs.missing[head] -= 1
        if gangs.missing[head] == 0:
            join_line(episode, head)
    episode.state[UNSEEN_ARRIVALS] = 0


@inlined
def note_ends(episode: Episode, parts: np.ndarray) -> None:
    """Tell the gangs what ended or was lost; who loses one attempt loses all."""
    sim, gangs, place = episode.sim, episode.gangs, 0
    while place < sim.counts.ended_now:
        task = sim.step.ended[place]
        head = gangs.head[task]
        if sim.claims.status[task] == TASK_FINISHED:
            gangs.left[head] -= 1
            gangs.missing[head] -= 1
        else:
            lose_rest(episode, head)
            parts[SLOWDOWNS] -= slowdown(
                sim, task, end_time(sim, task, sim.progress.machine[task], sim.progress.start[task]))
        place += 1


@noinline
def lose_rest(episode: Episode, head: int) -> None:
    """Lose what still runs of a gang."""
    sim, task = episode.sim, head
    while task != NOBODY_FOLLOWS:
        if sim.claims.status[task] == TASK_RUNNING:
            lose(sim, task, sim.progress.machine[task])
        task = episode.gangs.follows[task]
    forget_lost_events(sim)


@inlined
def join_line(episode: Episode, head: int) -> None:
    """Let a head wait, behind all that are served before it; most come last."""
    waiting, rank = episode.waiting, episode.sim.tasks.rank
    last = waiting.next.size - 1
    before = waiting.previous[last]
    while before != last and (rank[before] > rank[head] or (rank[before] == rank[head] and before > head)):
        before = waiting.previous[before]
    behind = waiting.next[before]
    waiting.next[before] = waiting.previous[behind] = head
    waiting.next[head], waiting.previous[head] = behind, before


@inlined
def leave_line(episode: Episode, head: int) -> None:
    """Let a head wait no more."""
    waiting = episode.waiting
    before, behind = waiting.previous[head], waiting.next[head]
    waiting.next[before], waiting.previous[behind] = behind, before
