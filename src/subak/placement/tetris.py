"""Tetris as in LoTES section 5.2: the exact best score over all waiting tasks and machines.

score = alignment_weight * (request . free) - work_weight * run_time * (request . 1), in natural amounts. Tasks of
one shape differ only in their run time, so they wait in one lane, shortest first, and only its first task competes.
During a round free amounts only shrink: a lane's score can only fall, so the lane on top, if its score is still what it
was, is the true maximum. After a round nobody who waits fits anywhere: who waited before the next one fits at most the
machines that were freed. A gang goes before single tasks, each of its tasks to the machine of the highest alignment
(whole_gangs.py). Ties: the shorter run time, then the lower task, then the lower machine.
"""
import numpy as np

from subak.fleet.feasible import NOWHERE, shape_fits, shape_fits_any
from subak.fleet.state import FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.placement.claims import Claims, claim
from subak.placement.fits.cheapest import cheapest, cost_of
from subak.placement.interface.hooks import Memory, build_memory
from subak.placement.interface.instance import Instance
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
from subak.workload.tasks import Tasks

# memory.number: the weights, then the natural size of a unit per resource
ALIGNMENT_WEIGHT, WORK_WEIGHT, FIRST_AMOUNT = 0, 1, 2
FREED_MAX = 64  # machines freed at one instant that are looked at one by one; of more there is a short list


def plain_memory(instance: Instance) -> Memory:
    """Return the memory for the score as it stands in the paper: both weights 1, natural amounts."""
    return _memory([1.0, 1.0, *instance.units])


def plain_weights(instance: Instance) -> np.ndarray:
    """Return float64[2, resource, shape]: machines cost the less, the better they are aligned."""
    return _weights(instance, instance.units)


def normalised_memory(instance: Instance) -> Memory:
    """Return the memory for amounts as shares of the largest machine, and both terms divided by their means."""
    share = _shares(instance)
    requests = (instance.requests * share[:, None])[:, instance.shape]
    alignment = (requests * (instance.capacity.max(axis=1) * share)[:, None]).sum(axis=0)
    expected = np.where(np.isfinite(instance.estimate), instance.estimate, 0.0)
    mean_work = (expected * requests.sum(axis=0)).mean()
    weights = [1.0 / mean if mean > 0 else 1.0 for mean in (alignment.mean(), mean_work)]
    return _memory([*weights, *share])


def normalised_weights(instance: Instance) -> np.ndarray:
    """Return the same as `plain_weights` for amounts as shares of the largest machine."""
    return _weights(instance, _shares(instance))


def _memory(numbers: list[float]) -> Memory:
    return build_memory((0, 0), (0, 0), numbers)


def _shares(instance: Instance) -> np.ndarray:
    share: np.ndarray = 1.0 / np.maximum(instance.capacity.max(axis=1), 1)
    return share


def _weights(instance: Instance, unit: np.ndarray) -> np.ndarray:
    """Return the factors of request . free, *unit* being the natural size of each resource's (float64[resource])."""
    first = instance.requests * unit[:, None] * unit[:, None]
    return np.stack([first, -np.ones_like(first)])


def tetris_arrival(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, arrived: np.ndarray, claims: Claims
) -> None:
    """Let the arrived tasks wait; the shapes that nobody waited with before compete."""
    first_new = lanes.size[ACTIVE_LANES]
    for task in arrived:
        push(lanes, tasks.rank, tasks.shape[task], task)
    for place in range(first_new, lanes.size[ACTIVE_LANES]):
        enter(fleet, tasks, lanes, memory, lanes.active[place], arrived[:0])
    serve(fleet, tasks, lanes, memory, arrived[:0], claims)


def tetris_departure(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, freed: np.ndarray, claims: Claims
) -> None:
    """Let the shapes that fit a freed machine compete."""
    for place in range(lanes.size[ACTIVE_LANES]):
        lane = lanes.active[place]
        if shape_fits_any(fleet, tasks, lane, freed):
            enter(fleet, tasks, lanes, memory, lane, freed)
    serve(fleet, tasks, lanes, memory, freed, claims)


def tetris_machine(fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return the fitting machine of the highest alignment, -1 if none fits: where a task of a gang goes."""
    return int(cheapest(fleet, tasks, tasks.shape[task]))


@inlined
def best_aligned(fleet: FleetState, tasks: Tasks, shape: int, freed: np.ndarray) -> int:
    """Return the fitting machine of the highest alignment, the first of equals, or NOWHERE.

    *freed* is int32[:], the only machines that may fit; of any if it is empty.
    """
    if freed.size == 0 or freed.size > FREED_MAX:
        return cheapest(fleet, tasks, shape)
    best, least = int(NOWHERE), np.inf
    for machine in freed:
        if shape_fits(fleet, tasks, shape, machine):
            cost = cost_of(fleet, shape, machine)
            if cost < least or (cost == least and machine < best):
                best, least = machine, cost
    return best


@inlined
def work(fleet: FleetState, tasks: Tasks, memory: Memory, task: int) -> float:
    """Return expected run time * (request . 1) in natural amounts."""
    total = 0.0
    for resource in range(fleet.free.shape[0]):
        total += tasks.request[resource, tasks.shape[task]] * memory.number[FIRST_AMOUNT + resource]
    return tasks.estimate[task] * total


@inlined
def score_on(fleet: FleetState, tasks: Tasks, memory: Memory, task: int, machine: int) -> float:
    """Return the score of a task on a machine; what the machine costs is less than nothing, the alignment."""
    return -memory.number[ALIGNMENT_WEIGHT] * cost_of(fleet, tasks.shape[task], machine) - memory.number[
        WORK_WEIGHT
    ] * work(fleet, tasks, memory, task)


@kernel
def enter(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, lane: int, freed: np.ndarray
) -> None:
    """Let a lane compete if its first task fits somewhere."""
    task = lanes.root[lane]
    machine = best_aligned(fleet, tasks, lane, freed)
    if machine != NOWHERE:
        lanes.score[lane] = score_on(fleet, tasks, memory, task, machine)
        contend(lanes, tasks.rank, lane)


@kernel
def serve(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, freed: np.ndarray, claims: Claims
) -> None:
    """Start the task of the highest score, again and again, until nothing that competes fits."""
    while lanes.size[CONTENDERS] > 0:
        lane = lanes.contender[0]
        task = lanes.root[lane]
        machine = best_aligned(fleet, tasks, lane, freed)
        if machine == NOWHERE:
            drop_top(lanes, tasks.rank)
            continue
        score = score_on(fleet, tasks, memory, task, machine)
        if score == lanes.score[lane]:  # else it fell since the lane was looked at
            claim(claims, fleet, tasks, task, machine)
            pop(lanes, tasks.rank, lane)
        lanes.score[lane] = score
        if lanes.root[lane] == NOBODY:
            drop_top(lanes, tasks.rank)
        else:
            settle_top(lanes, tasks.rank)
