"""Tetris as in LoTES section 5.2: the highest score over all waiting tasks and all machines, exactly.

score = alignment_weight * (request . free) - work_weight * run_time * (request . 1), in natural amounts. Tasks of
one shape differ only in their run time, so they wait in one lane, shortest first, and only its first task competes.
During a round free amounts only shrink: a lane's score can only fall, so the lane on top, if nothing changed where it
aims, is the true maximum. Ties: the shorter run time, then the lower task, then the lower machine.
"""
import numpy as np

from subak.fleet.feasible import NOWHERE, shape_fits_any
from subak.fleet.index import block_may_fit, fitting_word, lowest_bit
from subak.fleet.state import BLOCK, NO_BITS, ONE, FleetState
from subak.kernel import kernel
from subak.marks import inlined
from subak.placement.claims import Claims, claim
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
# memory.whole[0, slot]: the shape whose findings a slot holds; then per block the machine and the version it was
# found at. memory.real[slot, block]: the machine's alignment.
SHAPES_REMEMBERED = 4096  # shapes remembered at once
TAGS, FIRST_SLOT = 0, 1


def plain_memory(instance: Instance) -> Memory:
    """Return the memory for the score as it stands in the paper: both weights 1, natural amounts."""
    return _memory(instance, [1.0, 1.0, *instance.units])


def normalised_memory(instance: Instance) -> Memory:
    """Return the memory for amounts as shares of the largest machine, and both terms divided by their means."""
    share = 1.0 / np.maximum(instance.capacity.max(axis=1), 1)
    requests = (instance.requests * share[:, None])[:, instance.shape]
    alignment = (requests * (instance.capacity.max(axis=1) * share)[:, None]).sum(axis=0)
    expected = np.where(np.isfinite(instance.estimate), instance.estimate, 0.0)
    mean_work = (expected * requests.sum(axis=0)).mean()
    weights = [1.0 / mean if mean > 0 else 1.0 for mean in (alignment.mean(), mean_work)]
    return _memory(instance, [*weights, *share])


def _memory(instance: Instance, numbers: list[float]) -> Memory:
    slots = min(SHAPES_REMEMBERED, instance.requests.shape[1])
    memory = build_memory((FIRST_SLOT + 2 * slots, max(instance.blocks, slots)), (slots, instance.blocks), numbers)
    memory.whole[:] = -1
    return memory


def tetris_arrival(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, arrived: np.ndarray, claims: Claims
) -> None:
    """Let the arrived tasks wait; the shapes that nobody waited with before compete."""
    first_new = lanes.size[ACTIVE_LANES]
    for task in arrived:
        push(lanes, tasks.rank, tasks.shape[task], task)
    for place in range(first_new, lanes.size[ACTIVE_LANES]):
        enter(fleet, tasks, lanes, memory, lanes.active[place])
    serve(fleet, tasks, lanes, memory, claims)


def tetris_departure(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, freed: np.ndarray, claims: Claims
) -> None:
    """Let the shapes that fit a freed machine compete."""
    for place in range(lanes.size[ACTIVE_LANES]):
        lane = lanes.active[place]
        if shape_fits_any(fleet, tasks, lane, freed):
            enter(fleet, tasks, lanes, memory, lane)
    serve(fleet, tasks, lanes, memory, claims)


@inlined
def alignment(fleet: FleetState, tasks: Tasks, memory: Memory, shape: int, machine: int) -> float:
    """Return request . free in natural amounts."""
    score = 0.0
    for resource in range(fleet.free.shape[0]):
        unit = memory.number[FIRST_AMOUNT + resource]
        score += tasks.request[resource, shape] * unit * unit * fleet.free[resource, machine]
    return score


@inlined
def alignment_bound(fleet: FleetState, tasks: Tasks, memory: Memory, shape: int, block: int) -> float:
    """Return a bound on the alignment of every machine of a block."""
    bound = 0.0
    for resource in range(fleet.free.shape[0]):
        unit = memory.number[FIRST_AMOUNT + resource]
        bound += tasks.request[resource, shape] * unit * unit * fleet.block_free_max[resource, block]
    return bound


@inlined
def best_aligned(fleet: FleetState, tasks: Tasks, memory: Memory, shape: int) -> int:
    """Return the fitting machine of the highest alignment, the first of equals, or NOWHERE.

    What was found in a block holds until the block's version changes: first the blocks that are unchanged since this
    shape was last looked at, then the others, unless even their bound is too low.
    """
    slot = remembered_slot(memory, shape)
    machine_row, version_row = FIRST_SLOT + 2 * slot, FIRST_SLOT + 2 * slot + 1
    best, highest = int(NOWHERE), -1.0
    for block in range(fleet.version.size):
        if memory.whole[version_row, block] == fleet.version[block] and memory.real[slot, block] > highest:
            best, highest = memory.whole[machine_row, block], memory.real[slot, block]
    for block in range(fleet.version.size):
        if memory.whole[version_row, block] == fleet.version[block]:
            continue
        if not block_may_fit(fleet, tasks, shape, block):
            continue
        if alignment_bound(fleet, tasks, memory, shape, block) < highest:
            continue
        machine = best_in_block(fleet, tasks, memory, shape, block)
        score = -1.0
        if machine != NOWHERE:
            score = alignment(fleet, tasks, memory, shape, machine)
        memory.whole[machine_row, block], memory.real[slot, block] = machine, score
        memory.whole[version_row, block] = fleet.version[block]
        if score > highest or (score == highest and machine < best):
            best, highest = machine, score
    return best


@inlined
def remembered_slot(memory: Memory, shape: int) -> int:
    """Return the slot of a shape, emptied if it held another shape's findings."""
    slot = shape % memory.real.shape[0]
    if memory.whole[TAGS, slot] != shape:
        memory.whole[TAGS, slot] = shape
        for block in range(memory.real.shape[1]):
            memory.whole[FIRST_SLOT + 2 * slot + 1, block] = -1
    return slot


@inlined
def best_in_block(fleet: FleetState, tasks: Tasks, memory: Memory, shape: int, block: int) -> int:
    """Return the block's fitting machine of the highest alignment, the first of equals, or NOWHERE."""
    best, highest = NOWHERE, -1.0
    word = fitting_word(fleet, tasks, shape, block)
    while word != NO_BITS:
        machine = block * BLOCK + lowest_bit(word)
        word &= word - ONE
        score = alignment(fleet, tasks, memory, shape, machine)
        if score > highest:
            best, highest = machine, score
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
    """Return the score of a task on a machine."""
    shape = tasks.shape[task]
    return memory.number[ALIGNMENT_WEIGHT] * alignment(fleet, tasks, memory, shape, machine) - memory.number[
        WORK_WEIGHT
    ] * work(fleet, tasks, memory, task)


@inlined
def aim(fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, lane: int) -> int:
    """Find the lane's best machine and score; return the machine, or NOWHERE."""
    task = lanes.root[lane]
    machine = best_aligned(fleet, tasks, memory, tasks.shape[task])
    lanes.target[lane] = machine
    if machine != NOWHERE:
        lanes.aimed[lane] = fleet.version[machine // BLOCK]
        lanes.score[lane] = score_on(fleet, tasks, memory, task, machine)
    return machine


@kernel
def enter(fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, lane: int) -> None:
    """Let a lane compete if its first task fits somewhere."""
    if aim(fleet, tasks, lanes, memory, lane) != NOWHERE:
        contend(lanes, tasks.rank, lane)


@kernel
def serve(fleet: FleetState, tasks: Tasks, lanes: Lanes, memory: Memory, claims: Claims) -> None:
    """Start the task of the highest score, again and again, until nothing that competes fits."""
    while lanes.size[CONTENDERS] > 0:
        lane = lanes.contender[0]
        task = lanes.root[lane]
        machine = lanes.target[lane]
        if lanes.aimed[lane] == fleet.version[machine // BLOCK]:  # the machine is as it was
            claim(claims, fleet, tasks, task, machine)
            pop(lanes, tasks.rank, lane)
        if lanes.root[lane] == NOBODY or aim(fleet, tasks, lanes, memory, lane) == NOWHERE:
            drop_top(lanes, tasks.rank)
        else:
            settle_top(lanes, tasks.rank)
