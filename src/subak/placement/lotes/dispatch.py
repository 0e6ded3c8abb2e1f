"""LoTES's dispatcher: tasks go to the bins that lack their class most, idle machines wait for classes.

An arriving task is given a configuration, and takes there the machine of the highest score v = N - kappa that fits:
what the machine's bin holds of the class, less what runs. If none fits, all other configurations are looked through in
the same manner; then it waits in its class's queue. A machine that is freed serves the classes that its configuration
is devoted to, the highest score first, each in order of arrival among the tasks that fit; classes it is not devoted to
it leaves alone, and rather idles.

- The configuration is drawn, each as often as its part of the class's resources (the paper's roulette wheel), or is the
  one that runs fewest of the class against that part (by deficit).
- Of a configuration all machines are looked at, or only some drawn ones (section 5.3); if none of those fits in any
  configuration, all are, so that nobody waits for want of luck.
- Or arriving tasks keep to the configurations that are devoted to their class, as freed machines do.
- Tasks that no machine devoted to their class could hold, and those of a class that the plan serves nowhere, are of a
  class of no bins, which every configuration serves.
- A shape that fitted nowhere is looked for only where something was freed since.
- Each task of a gang goes where it would when it arrives alone, after those before it (whole_gangs.py).

Source: Tran and others, LoTES, section 4.3.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.feasible import NOWHERE, shape_fits
from subak.fleet.index import block_may_fit, fitting_word, lowest_bit
from subak.fleet.state import BLOCK, LOG, NO_BITS, ONE, FleetState
from subak.marks import inlined, noinline
from subak.placement.claims import TASK_WAITING, Claims, claim, take_back
from subak.placement.fits.random_fit import random_below, random_float
from subak.placement.lotes.scores import Scores, best_machine, change_running, place_of
from subak.placement.rigid.start import holds
from subak.placement.whole_gangs import Gangs, WaitingGangs, end_turn, next_gang
from subak.queues.lanes import (
    ACTIVE_LANES,
    CONTENDERS,
    NOBODY,
    Lanes,
    contend,
    drop_top,
    pop,
    push,
    settle_top,
)
from subak.queues.tournament import Tournament, first_that_fits, note_first
from subak.workload.tasks import Tasks

NEVER_TRIED = -LOG - 1  # freed blocks ago
ALL = 0  # machines looked at
SEARCHES, MACHINES_ASKED = range(2)  # of `looked`


class Dispatcher(NamedTuple):
    """What LoTES keeps of a run."""

    scores: Scores
    waiting: Tournament  # a group for each class, a lane for each shape
    class_of_shape: np.ndarray  # int32[shape]
    counted: np.ndarray  # int16[task], the class it counts as while it runs
    share: np.ndarray  # float64[class, configuration], of the class's tasks: rho
    wheel: np.ndarray  # float64[class, configuration], sums of the shares
    is_devoted: np.ndarray  # bool[class, configuration]
    machines: np.ndarray  # int32[configuration]
    failed: np.ndarray  # int64[shape], freed blocks there had been when it last fitted nowhere
    by_deficit: bool  # how the configuration is chosen
    sampled: int  # machines of it that are looked at, or ALL
    in_turns: bool  # whether shapes have turns: the lanes' scores and the tournament's keys say which
    looked: np.ndarray  # int64[2]: SEARCHES of arriving tasks; MACHINES_ASKED, of configurations looked through
    strays: bool  # whether an arriving task may go to configurations that are not devoted to its class


@inlined
def chosen_configuration(state: Dispatcher, random: np.ndarray, kind: int) -> int:
    """Turn the roulette wheel of a class, or find the configuration that lacks it most, ties to the first."""
    last = state.wheel.shape[1] - 1
    if state.by_deficit:
        held = state.scores.held[kind]
        total, best, most = held.sum() + 1, last, 0.0
        for configuration in range(last):
            lacking = state.share[kind, configuration] * total - held[configuration]
            if lacking > most:
                best, most = configuration, lacking
        return best
    drawn = random_float(random)
    for configuration in range(last):
        if drawn < state.wheel[kind, configuration]:
            return configuration
    return int(last)


@inlined
def best_sampled(
    state: Dispatcher, fleet: FleetState, tasks: Tasks, shape: int, kind: int, configuration: int
) -> int:
    """Return the machine of the highest score that fits among some drawn ones, ties to the first drawn, or NOWHERE."""
    best, highest = NOWHERE, -1
    if state.machines[configuration] > 0:
        first = state.scores.block_first[configuration] * BLOCK
        for _ in range(state.sampled):
            machine = first + random_below(fleet.random, state.machines[configuration])
            if place_of(state.scores, kind, machine) > highest and shape_fits(fleet, tasks, shape, machine):
                best, highest = machine, place_of(state.scores, kind, machine)
    return best


@inlined
def best_of(
    state: Dispatcher, fleet: FleetState, tasks: Tasks, shape: int, kind: int, chosen: int, sampled: bool
) -> int:
    """Return the best machine of the chosen configuration, else the best of all others, ties to the first of them."""
    best, highest = NOWHERE, -1
    for other in range(-1, state.machines.size):
        configuration = chosen if other < 0 else other
        if other != chosen and (state.strays or state.is_devoted[kind, configuration]):
            if sampled:
                machine = best_sampled(state, fleet, tasks, shape, kind, configuration)
            else:
                machine = best_machine(state.scores, fleet, tasks, shape, kind, configuration)
            if machine != NOWHERE and place_of(state.scores, kind, machine) > highest:
                best, highest = machine, place_of(state.scores, kind, machine)
        if other < 0 and best != NOWHERE:
            return best
    return best


@inlined
def best_of_freed(state: Dispatcher, fleet: FleetState, tasks: Tasks, shape: int, kind: int, chosen: int) -> int:
    """Return what `best_of` would for a shape that fitted nowhere: it fits only where something was freed since."""
    best, highest, is_chosen = NOWHERE, -1, False
    for number in range(state.failed[shape], fleet.freed_blocks[LOG]):
        block = fleet.freed_blocks[number % LOG]
        here = state.scores.configuration[block] == chosen
        may_go = state.strays or state.is_devoted[kind, state.scores.configuration[block]]
        if may_go and (here or not is_chosen) and block_may_fit(fleet, tasks, shape, block):
            word = fitting_word(fleet, tasks, shape, block)
            while word != NO_BITS:
                machine = block * BLOCK + lowest_bit(word)
                word &= word - ONE
                place = place_of(state.scores, kind, machine)
                is_first = best == NOWHERE or (here and not is_chosen) or place > highest
                if is_first or (place == highest and machine < best):
                    best, highest, is_chosen = machine, place, here
    return int(best)


@inlined
def place_arrival(state: Dispatcher, fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return the machine for an arriving task, NOWHERE if it must wait."""
    shape = tasks.shape[task]
    kind = state.class_of_shape[shape]
    chosen = chosen_configuration(state, fleet.random, kind)
    machine = NOWHERE
    if fleet.freed_blocks[LOG] - state.failed[shape] <= LOG:
        machine = best_of_freed(state, fleet, tasks, shape, kind, chosen)
    else:
        if state.sampled != ALL:
            machine = best_of(state, fleet, tasks, shape, kind, chosen, True)
        if machine == NOWHERE:
            machine = best_of(state, fleet, tasks, shape, kind, chosen, False)
    if machine == NOWHERE:
        state.failed[shape] = fleet.freed_blocks[LOG]
    note_looked(state, kind, chosen, machine)
    return machine


@inlined
def note_looked(state: Dispatcher, kind: int, chosen: int, machine: int) -> None:
    """Count the machines whose state was asked for: those of the chosen configuration, or if none fitted there of all.

    So the algorithm says, whatever is known here of what fits nowhere.
    """
    state.looked[SEARCHES] += 1
    if machine != NOWHERE and state.scores.configuration[machine // BLOCK] == chosen:
        state.looked[MACHINES_ASKED] += state.machines[chosen]
        return
    for configuration in range(state.machines.size):
        if state.strays or state.is_devoted[kind, configuration]:
            state.looked[MACHINES_ASKED] += state.machines[configuration]


@inlined
def start(state: Dispatcher, fleet: FleetState, tasks: Tasks, task: int, machine: int, claims: Claims) -> None:
    """Claim a machine for a task, and count it there."""
    if claim(claims, fleet, tasks, task, machine):
        kind = state.class_of_shape[tasks.shape[task]]
        state.counted[task] = kind
        change_running(state.scores, kind, machine, 1)


@noinline
def start_gang(state: Dispatcher, fleet: FleetState, tasks: Tasks, gangs: Gangs, gang: int, claims: Claims) -> bool:
    """Claim a machine for each waiting task of a gang, as if it arrived, or for none: whether all have one."""
    began = claims.size[0]
    if not holds(fleet, tasks, tasks.shape[gangs.task[gangs.first[gang]]], gangs.left[gang]):
        return False
    for place in range(gangs.first[gang], gangs.first[gang + 1]):
        member = gangs.task[place]
        if claims.status[member] == TASK_WAITING:
            machine = place_arrival(state, fleet, tasks, member)
            if machine == NOWHERE:
                for undone in range(began, claims.size[0]):
                    kind, machine = state.counted[claims.task[undone]], claims.machine[undone]
                    change_running(state.scores, kind, machine, -1)
                take_back(claims, fleet, tasks, began)
                return False
            start(state, fleet, tasks, member, machine, claims)
    return True


@inlined
def serve_gangs(
    state: Dispatcher, waiting: WaitingGangs, fleet: FleetState, tasks: Tasks, claims: Claims
) -> None:
    """Give each waiting gang its turn."""
    gang = next_gang(waiting)
    while gang != NOBODY:
        end_turn(waiting, tasks.rank, start_gang(state, fleet, tasks, waiting.gangs, gang, claims))
        gang = next_gang(waiting)


@inlined
def next_for(state: Dispatcher, fleet: FleetState, tasks: Tasks, machine: int) -> int:
    """Return the task that a freed machine serves next, or NOBODY: of the class with the highest score, the first."""
    best, highest = NOBODY, 0
    configuration = state.scores.configuration[machine // BLOCK]
    for kind in range(state.is_devoted.shape[0]):
        if state.is_devoted[kind, configuration]:
            score = state.scores.target[kind, machine] - state.scores.running[kind, machine]
            if best == NOBODY or score > highest:
                task = first_that_fits(state.waiting, fleet, tasks, kind, machine)
                if task != NOBODY:
                    best, highest = task, score
    return best


@inlined
def lotes_instant(
    state: Dispatcher, fleet: FleetState, tasks: Tasks, lanes: Lanes, freed: np.ndarray, arrived: np.ndarray,
    claims: Claims,
) -> None:
    """Serve the freed machines (int32[:]), then dispatch the arrived tasks (int32[:])."""
    for machine in freed:
        while lanes.size[ACTIVE_LANES] > 0:
            task = next_for(state, fleet, tasks, machine)
            if task == NOBODY:
                break
            lane = tasks.shape[task]
            pop(lanes, tasks.rank, lane)
            note_first(state.waiting, lanes, tasks, lane)
            start(state, fleet, tasks, task, machine, claims)
    if state.in_turns:
        serve_in_turns(state, fleet, tasks, lanes, arrived, claims)
        return
    for task in arrived:
        machine = place_arrival(state, fleet, tasks, task)
        if machine == NOWHERE:
            lane = tasks.shape[task]
            push(lanes, tasks.rank, lane, task)
            note_first(state.waiting, lanes, tasks, lane)
        else:
            start(state, fleet, tasks, task, machine, claims)


@inlined
def serve_in_turns(
    state: Dispatcher, fleet: FleetState, tasks: Tasks, lanes: Lanes, arrived: np.ndarray, claims: Claims
) -> None:
    """Let the arrived tasks wait, and place those that nobody of their shape waited before, by the turns of shapes.

    *arrived* goes by the tasks' numbers.
    """
    for task in arrived:
        push(lanes, tasks.rank, tasks.shape[task], task)
    for task in arrived:
        if lanes.root[tasks.shape[task]] == task:
            contend(lanes, tasks.rank, tasks.shape[task])
    while lanes.size[CONTENDERS] > 0:
        lane = lanes.contender[0]
        task = lanes.root[lane]
        machine = place_arrival(state, fleet, tasks, task)
        if machine != NOWHERE:
            pop(lanes, tasks.rank, lane)
            start(state, fleet, tasks, task, machine, claims)
        if machine == NOWHERE or not is_among(arrived, lanes.root[lane]):  # nobody is left, or somebody waited before
            note_first(state.waiting, lanes, tasks, lane)
            drop_top(lanes, tasks.rank)
        else:
            settle_top(lanes, tasks.rank)


@inlined
def is_among(arrived: np.ndarray, task: int) -> bool:
    """Whether a task is one of int32[:], in their order."""
    place = np.searchsorted(arrived, task)
    return bool(place < arrived.size and arrived[place] == task)
