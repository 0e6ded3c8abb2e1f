"""LoTES's dispatcher: tasks go to machines whose bins lack their class most, and idle machines wait for their classes.

An arriving task draws a configuration, each as often as its part of the class's resources (a roulette wheel), and takes
there the machine of the highest score v = N - kappa that fits: what the machine's bin holds of the class, less what
runs. If none fits, all other configurations are looked through in the same manner; then it waits in its class's queue.
A machine that is freed serves the classes that its configuration is devoted to, the highest score first, each in order
of arrival among the tasks that fit; classes it is not devoted to it leaves alone, and rather idles.

Machines of one configuration and class stand in buckets by score, a bit each, so that the best are found without a
scan: a bucket's words are intersected with those of the machines that fit.

Source: Tran and others, LoTES, section 4.3.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.index import NO_BITS, ONE, block_may_fit, fitting_word, lowest_bit
from subak.fleet.state import BLOCK, FleetState
from subak.kernel import inlined
from subak.placement.feasible import NOWHERE, shape_fits
from subak.placement.random_fit import random_float
from subak.placement.starts import Starts, claim
from subak.queues.lanes import ACTIVE, NOBODY, Lanes, pop, push
from subak.workload.tasks import Tasks


class Dispatcher(NamedTuple):
    """What LoTES keeps of a run. Machines of a configuration are contiguous, and begin with a block."""

    task_class: np.ndarray  # int8[task]
    configuration: np.ndarray  # int32[machine]
    block_first: np.ndarray  # int32[configuration + 1], where the blocks of a configuration begin
    wheel: np.ndarray  # float64[class, configuration], sums of the parts that configurations devote to a class
    is_devoted: np.ndarray  # bool[class, configuration]
    target: np.ndarray  # int32[class, machine], tasks of the class in the machine's bin
    running: np.ndarray  # int32[class, machine]
    bucket: np.ndarray  # uint64[class, score, block], machines of that score
    members: np.ndarray  # int32[class, score, configuration], how many they are
    score_min: int  # of bucket 0
    lane_first: np.ndarray  # int32[class + 1]: a lane for each shape; those of a class are contiguous
    lane_of_shape: np.ndarray  # int32[shape]
    shape_of_lane: np.ndarray  # int32[lane]


@inlined
def score_place(state: Dispatcher, kind: int, machine: int) -> int:
    """Return the bucket of a machine for a class; scores beyond the range count as its ends."""
    score = state.target[kind, machine] - state.running[kind, machine] - state.score_min
    return int(min(max(score, 0), state.bucket.shape[1] - 1))


@inlined
def change_running(state: Dispatcher, kind: int, machine: int, change: int) -> None:
    """Count tasks of a class on a machine, and put it into the bucket of its new score."""
    bit, block = ONE << np.uint64(machine % BLOCK), machine // BLOCK
    before = score_place(state, kind, machine)
    state.running[kind, machine] += change
    after = score_place(state, kind, machine)
    if before != after:
        configuration = state.configuration[machine]
        state.bucket[kind, before, block] &= ~bit
        state.bucket[kind, after, block] |= bit
        state.members[kind, before, configuration] -= 1
        state.members[kind, after, configuration] += 1


@inlined
def drawn_configuration(state: Dispatcher, random: np.ndarray, kind: int) -> int:
    """Turn the roulette wheel of a class."""
    drawn = random_float(random)
    for configuration in range(state.wheel.shape[1] - 1):
        if drawn < state.wheel[kind, configuration]:
            return configuration
    return int(state.wheel.shape[1] - 1)


@inlined
def best_machine(
    state: Dispatcher, fleet: FleetState, tasks: Tasks, shape: int, kind: int, configuration: int
) -> int:
    """Return the machine of a configuration with the highest score for the class that fits, or NOWHERE."""
    for place in range(state.bucket.shape[1] - 1, -1, -1):
        if state.members[kind, place, configuration] > 0:
            for block in range(state.block_first[configuration], state.block_first[configuration + 1]):
                word = state.bucket[kind, place, block]
                if word != NO_BITS and block_may_fit(fleet, tasks, shape, block):
                    word &= fitting_word(fleet, tasks, shape, block)
                    if word != NO_BITS:
                        return block * BLOCK + lowest_bit(word)
    return NOWHERE


@inlined
def place_arrival(state: Dispatcher, fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return the machine for an arriving task, NOWHERE if it must wait."""
    kind, shape = int(state.task_class[task]), tasks.shape[task]
    drawn = drawn_configuration(state, fleet.random, kind)
    machine = best_machine(state, fleet, tasks, shape, kind, drawn)
    if machine != NOWHERE:
        return machine
    best, highest = NOWHERE, -1
    for configuration in range(state.wheel.shape[1]):
        if configuration != drawn:
            machine = best_machine(state, fleet, tasks, shape, kind, configuration)
            if machine != NOWHERE and score_place(state, kind, machine) > highest:
                best, highest = machine, score_place(state, kind, machine)
    return best


@inlined
def first_fitting_of(state: Dispatcher, fleet: FleetState, tasks: Tasks, lanes: Lanes, kind: int, machine: int) -> int:
    """Return the lane of a class whose first task came first of those that fit a machine, or NOBODY."""
    best = NOBODY
    for lane in range(state.lane_first[kind], state.lane_first[kind + 1]):
        first = lanes.root[lane]
        is_earlier = first != NOBODY and (best == NOBODY or first < lanes.root[best])
        if is_earlier and shape_fits(fleet, tasks, state.shape_of_lane[lane], machine):
            best = lane
    return best


@inlined
def serve_machine(
    state: Dispatcher, fleet: FleetState, tasks: Tasks, lanes: Lanes, machine: int, starts: Starts
) -> None:
    """Let a freed machine serve the classes it is devoted to, the highest score first."""
    while lanes.size[ACTIVE] > 0:
        best, highest = NOBODY, 0
        for kind in range(state.target.shape[0]):
            if state.is_devoted[kind, state.configuration[machine]]:
                score = state.target[kind, machine] - state.running[kind, machine]
                if best == NOBODY or score > highest:
                    lane = first_fitting_of(state, fleet, tasks, lanes, kind, machine)
                    if lane != NOBODY:
                        best, highest = lane, score
        if best == NOBODY:
            return
        task = pop(lanes, tasks.rank, best)
        if claim(starts, fleet, tasks, task, machine):
            change_running(state, int(state.task_class[task]), machine, 1)


@inlined
def lotes_instant(
    state: Dispatcher, fleet: FleetState, tasks: Tasks, lanes: Lanes, freed: np.ndarray, arrived: np.ndarray,
    starts: Starts,
) -> None:
    """Serve the freed machines (int32[:]), then dispatch the arrived tasks (int32[:])."""
    for machine in freed:
        serve_machine(state, fleet, tasks, lanes, machine, starts)
    for task in arrived:
        machine = place_arrival(state, fleet, tasks, task)
        if machine == NOWHERE:
            push(lanes, tasks.rank, state.lane_of_shape[tasks.shape[task]], task)
        elif claim(starts, fleet, tasks, task, machine):
            change_running(state, int(state.task_class[task]), machine, 1)
