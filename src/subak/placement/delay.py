"""Delay scheduling (Zaharia and others, EuroSys 2010, Algorithm 3): a job waits briefly for local input.

What the paper calls a job is a stage here. A machine with room is offered to the stages that wait, that with the
fewest running tasks first. A stage may start a task there whose input the machine holds; when it has declined offers
for W1 seconds, one whose input is in the rack; after W2 seconds more, any. Who starts a task waits anew, from the level
of that task on. Tasks whose input nobody holds are at home everywhere.

The paper counts time from one heartbeat to the next while a stage declines; here offers are made when machines are
freed, when tasks come and when a stage may start more than before, and a stage's waiting time runs from the first offer
that it declined since its last start.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.feasible import NOWHERE, first_fitting, fits
from subak.fleet.locality import NO_HOLDER, NO_RACK, OFF_RACK, RACK_LOCAL, Inputs
from subak.fleet.state import FleetState
from subak.marks import inlined, noinline
from subak.placement.claims import TASK_BLOCKED, TASK_NOT_ARRIVED, TASK_WAITING, Claims, claim
from subak.workload.tasks import Tasks

NOBODY = -1
NEXT_RISE = 0  # of `clock`
WAITING_STAGES = 0  # of `size`


class Homes(NamedTuple):
    """Tasks by where they are at home: each home is a stage with one of its places, a machine or a rack, say."""

    key: np.ndarray  # int64[home], stage * places + place, rising
    first: np.ndarray  # int64[home + 1], where its tasks begin in `task`
    task: np.ndarray  # int32[entry], of each home in the order of their numbers
    next: np.ndarray  # int64[home], the entry before which none waits
    places: int


class Delay(NamedTuple):
    """What delay scheduling keeps of a run."""

    on_machine: Homes
    on_rack: Homes
    anywhere: Homes  # of one place: tasks whose input nobody holds
    all: Homes  # of one place
    stage: np.ndarray  # int32[task]
    tasks: np.ndarray  # int32[stage], that wait
    running: np.ndarray  # int32[stage]
    level: np.ndarray  # int8[stage], of its last start
    since: np.ndarray  # float64[stage], seconds: the first offer declined since that; inf if none was
    allowed: np.ndarray  # int8[stage], the level up to which it may start tasks at this instant
    fresh: np.ndarray  # bool[stage], whether it may start more than at the last instant
    active: np.ndarray  # int32[stage], those of which tasks wait, the first `size`
    place: np.ndarray  # int32[stage], where in `active`
    started: np.ndarray  # bool[task], ever
    wait: np.ndarray  # float64[2], seconds: W1 for a machine that holds the input, W2 more for its rack
    clock: np.ndarray  # float64[1]: NEXT_RISE, when a stage may start more though nothing happens; inf for never
    size: np.ndarray  # int64[1]: WAITING_STAGES


@inlined
def delay_instant(  # noqa: PLR0913, PLR0917  (what an instant brought)
    delay: Delay, inputs: Inputs, fleet: FleetState, tasks: Tasks, now: float, ended: np.ndarray, arrived: np.ndarray,
    freed: np.ndarray, claims: Claims,
) -> None:
    """Offer machines at an instant; *ended*, *arrived* (tasks) and *freed* (machines) are int32[:].

    Who declined a machine that is still as it was is asked again only when it may start more; till then its time runs.
    """
    for task in ended:
        delay.running[delay.stage[task]] -= 1
    for task in arrived:
        let_wait(delay, inputs, task)
    raised = 0
    for place in range(delay.size[WAITING_STAGES]):
        raised += may_start_more(delay, delay.active[place], now)
    for machine in freed:
        while offer(delay, inputs, fleet, tasks, machine, now, False, claims):
            pass
    if raised > 0:
        for machine in range(fleet.machines):
            while offer(delay, inputs, fleet, tasks, machine, now, True, claims):
                pass
    delay.clock[NEXT_RISE] = np.inf
    for place in range(delay.size[WAITING_STAGES]):
        wait_on(delay, fleet, tasks, delay.active[place], now, claims.status)


@inlined
def wait_on(delay: Delay, fleet: FleetState, tasks: Tasks, stage: int, now: float, status: np.ndarray) -> None:
    """Let a stage's time run while a machine has room that it does not take; note when it may start more."""
    delay.fresh[stage] = False
    if delay.since[stage] == np.inf and has_room_somewhere(delay, fleet, tasks, stage, status):
        delay.since[stage] = now
    delay.clock[NEXT_RISE] = min(delay.clock[NEXT_RISE], next_rise(delay, stage, now))


@inlined
def let_wait(delay: Delay, inputs: Inputs, task: int) -> None:
    """Let a task wait; one whose attempt was lost is looked for in its homes again."""
    stage = delay.stage[task]
    if delay.tasks[stage] == 0:
        delay.place[stage] = delay.size[WAITING_STAGES]
        delay.active[delay.place[stage]] = stage
        delay.size[WAITING_STAGES] += 1
    delay.tasks[stage] += 1
    delay.fresh[stage] = True
    if delay.started[task]:
        look_again(delay, inputs, task)


@noinline
def look_again(delay: Delay, inputs: Inputs, task: int) -> None:
    """Look at all tasks of the homes of *task* again, of which some had ended."""
    stage = delay.stage[task]
    rewind(delay.all, stage, 0)
    rewind(delay.anywhere, stage, 0)
    if inputs.holder.shape[1] > 0:
        for copy in range(inputs.holder.shape[0]):
            if inputs.holder[copy, task] != NO_HOLDER:
                rewind(delay.on_machine, stage, inputs.holder[copy, task])
            if inputs.holder_rack[copy, task] >= 0:
                rewind(delay.on_rack, stage, inputs.holder_rack[copy, task])


@inlined
def may_start_more(delay: Delay, stage: int, now: float) -> int:
    """Note up to which level a stage may start tasks now; return 1 if that, or its tasks, are more than before."""
    before = delay.allowed[stage]
    allow(delay, stage, now)
    delay.fresh[stage] = delay.fresh[stage] or delay.allowed[stage] > before
    return 1 if delay.fresh[stage] else 0


@inlined
def allow(delay: Delay, stage: int, now: float) -> None:
    """Note up to which level a stage may start tasks now."""
    rise = min(delay.since[stage], now)
    delay.allowed[stage] = delay.level[stage]
    for level in range(delay.level[stage], OFF_RACK):
        rise += delay.wait[level]
        if now >= rise:
            delay.allowed[stage] = level + 1


@inlined
def offer(  # noqa: PLR0913, PLR0917  (as above)
    delay: Delay, inputs: Inputs, fleet: FleetState, tasks: Tasks, machine: int, now: float, fresh: bool,
    claims: Claims,
) -> bool:
    """Let the first stage that would start a task on *machine* do so, of all or of the *fresh* ones; False for none.

    Those before it have declined.
    """
    best, chosen, level = NOBODY, NOBODY, OFF_RACK
    for place in range(delay.size[WAITING_STAGES]):
        stage = delay.active[place]
        asked = (delay.fresh[stage] or not fresh) and (best == NOBODY or goes_before(delay, stage, best))
        if asked and has_room(delay, fleet, tasks, stage, machine, claims.status):
            for near in range(delay.allowed[stage] + 1):
                task = first_at(delay, inputs, stage, machine, near, claims.status)
                if task != NOBODY:
                    best, chosen, level = stage, task, near
                    break
    for place in range(delay.size[WAITING_STAGES]):
        stage = delay.active[place]
        declined = delay.since[stage] == np.inf and (best == NOBODY or goes_before(delay, stage, best))
        if declined and has_room(delay, fleet, tasks, stage, machine, claims.status):
            delay.since[stage] = now
    if best == NOBODY or not claim(claims, fleet, tasks, chosen, machine):
        return False
    note_start(delay, chosen, level, now)
    return True


@inlined
def goes_before(delay: Delay, stage: int, other: int) -> bool:
    """Whether a machine is offered to *stage* before *other*: it has fewer running tasks, or a lower number."""
    if delay.running[stage] != delay.running[other]:
        return delay.running[stage] < delay.running[other]
    return stage < other


@inlined
def has_room(delay: Delay, fleet: FleetState, tasks: Tasks, stage: int, machine: int, status: np.ndarray) -> bool:
    """Whether a machine has room for a task of a stage, wherever its input lies."""
    task = first_waiting(delay.all, home_of(delay.all, stage, 0), status)
    return task != NOBODY and fits(fleet, tasks, task, machine)


@inlined
def has_room_somewhere(delay: Delay, fleet: FleetState, tasks: Tasks, stage: int, status: np.ndarray) -> bool:
    """Whether any machine has."""
    task = first_waiting(delay.all, home_of(delay.all, stage, 0), status)
    return task != NOBODY and first_fitting(fleet, tasks, task) != NOWHERE


@inlined
def first_at(delay: Delay, inputs: Inputs, stage: int, machine: int, level: int, status: np.ndarray) -> int:
    """Return the first task of a stage that waits and would run on *machine* at a level or nearer, or NOBODY."""
    if level == OFF_RACK:
        return first_waiting(delay.all, home_of(delay.all, stage, 0), status)
    if level == RACK_LOCAL:
        if inputs.rack.size == 0 or inputs.rack[machine] == NO_RACK:
            return NOBODY
        return first_waiting(delay.on_rack, home_of(delay.on_rack, stage, inputs.rack[machine]), status)
    task = first_waiting(delay.on_machine, home_of(delay.on_machine, stage, machine), status)
    if task == NOBODY:
        task = first_waiting(delay.anywhere, home_of(delay.anywhere, stage, 0), status)
    return task


@inlined
def note_start(delay: Delay, task: int, level: int, now: float) -> None:
    """Note that a task starts at a level."""
    stage = delay.stage[task]
    delay.started[task] = True
    delay.running[stage] += 1
    delay.level[stage] = level
    delay.since[stage] = np.inf
    allow(delay, stage, now)
    delay.tasks[stage] -= 1
    if delay.tasks[stage] == 0:
        delay.size[WAITING_STAGES] -= 1
        last = delay.active[delay.size[WAITING_STAGES]]
        delay.active[delay.place[stage]] = last
        delay.place[last] = delay.place[stage]


@inlined
def next_rise(delay: Delay, stage: int, now: float) -> float:
    """Return when a stage may start more than now, inf for never."""
    rise = delay.since[stage]
    for level in range(delay.level[stage], OFF_RACK):
        rise += delay.wait[level]
        if rise > now:
            return rise
    return np.inf


# Homes


@inlined
def home_of(homes: Homes, stage: int, place: int) -> int:
    """Return the home of a stage at a place, or NOBODY where it has no tasks."""
    key = np.int64(stage) * homes.places + place
    low, high = 0, homes.key.size
    while low < high:
        middle = (low + high) // 2
        if homes.key[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < homes.key.size and homes.key[low] == key else NOBODY


@inlined
def first_waiting(homes: Homes, home: int, status: np.ndarray) -> int:
    """Return the first task of a home that waits, or NOBODY; tasks come in the order of their arrival."""
    if home == NOBODY:
        return NOBODY
    while homes.next[home] < homes.first[home + 1]:
        task = homes.task[homes.next[home]]
        if status[task] == TASK_WAITING:
            return task
        if status[task] == TASK_NOT_ARRIVED or status[task] == TASK_BLOCKED:
            return NOBODY
        homes.next[home] += 1
    return NOBODY


@inlined
def rewind(homes: Homes, stage: int, place: int) -> None:
    """Look at all tasks of a home again."""
    home = home_of(homes, stage, place)
    if home != NOBODY:
        homes.next[home] = homes.first[home]
