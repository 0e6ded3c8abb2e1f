"""Scores how far each machine is from its bin: v = N - kappa for each class (LoTES section 4.3).

Machines of one configuration and class stand in buckets by score, a bit each, 64 to a block; a second level of words
tells which blocks of a bucket have any. So the best are found without a scan over machines.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.feasible import NOWHERE
from subak.fleet.index import block_may_fit, fitting_word, lowest_bit
from subak.fleet.state import BLOCK, NO_BITS, ONE, FleetState
from subak.marks import inlined
from subak.workload.tasks import Tasks

SCORE_MIN = -64  # a machine that runs so many more of a class than its bin holds is as bad as any that runs more


class Scores(NamedTuple):
    """Machines of a configuration are contiguous and begin with a block; bucket p holds score p + SCORE_MIN."""

    target: np.ndarray  # int32[class, machine], tasks of the class in the machine's bin: N
    running: np.ndarray  # int32[class, machine]: kappa
    held: np.ndarray  # int64[class, configuration], tasks that run there
    configuration: np.ndarray  # int32[block]
    block_first: np.ndarray  # int32[configuration + 1], where its blocks begin
    word_first: np.ndarray  # int32[configuration + 1], where its words over blocks begin
    bucket: np.ndarray  # uint64[class, place, block], machines of that score
    blocks: np.ndarray  # uint64[class, place, word], blocks that have such a machine
    members: np.ndarray  # int32[class, place, configuration], how many machines they are


def build_scores(target: np.ndarray, block_first: np.ndarray) -> Scores:
    """Return the scores of idle machines: *target* int32[class, padded machine], *block_first* as above."""
    classes, machines = target.shape
    sizes = np.diff(block_first)
    places = int(target.max(initial=0)) - SCORE_MIN + 1
    word_first = np.concatenate([[0], np.cumsum(-(-sizes // BLOCK))]).astype(np.int32)
    scores = Scores(
        target=target, running=np.zeros_like(target), held=np.zeros((classes, sizes.size), np.int64),
        configuration=np.repeat(np.arange(sizes.size), sizes).astype(np.int32),
        block_first=block_first.astype(np.int32), word_first=word_first,
        bucket=np.zeros((classes, places, machines // BLOCK), np.uint64),
        blocks=np.zeros((classes, places, word_first[-1]), np.uint64),
        members=np.zeros((classes, places, sizes.size), np.int32),
    )
    fill_buckets(scores)
    return scores


def fill_buckets(scores: Scores) -> None:
    """Put every machine into the bucket of its score; the buckets are empty."""
    machine = np.arange(scores.target.shape[1])
    block = machine // BLOCK
    configuration = scores.configuration[block]
    number = block - scores.block_first[configuration]  # of a block in its configuration
    bit, block_bit = (np.uint64(1) << (each % BLOCK).astype(np.uint64) for each in (machine, number))
    word = scores.word_first[configuration] + number // BLOCK
    place = np.clip(scores.target - scores.running - SCORE_MIN, 0, scores.bucket.shape[1] - 1)
    for kind, of_machine in enumerate(place):
        np.bitwise_or.at(scores.bucket[kind], (of_machine, block), bit)
        np.bitwise_or.at(scores.blocks[kind], (of_machine, word), block_bit)
        np.add.at(scores.members[kind], (of_machine, configuration), 1)


@inlined
def place_of(scores: Scores, kind: int, machine: int) -> int:
    """Return the bucket of a machine for a class; scores beyond the range count as its ends."""
    score = scores.target[kind, machine] - scores.running[kind, machine] - SCORE_MIN
    return int(min(max(score, 0), scores.bucket.shape[1] - 1))


@inlined
def change_running(scores: Scores, kind: int, machine: int, change: int) -> None:
    """Count tasks of a class on a machine, and put it into the bucket of its new score."""
    before = place_of(scores, kind, machine)
    scores.running[kind, machine] += change
    after = place_of(scores, kind, machine)
    scores.held[kind, scores.configuration[machine // BLOCK]] += change
    if before != after:
        leave_bucket(scores, kind, machine, before)
        enter_bucket(scores, kind, machine, after)


@inlined
def leave_bucket(scores: Scores, kind: int, machine: int, place: int) -> None:
    """Take a machine out of a bucket."""
    block = machine // BLOCK
    configuration = scores.configuration[block]
    scores.bucket[kind, place, block] &= ~(ONE << np.uint64(machine % BLOCK))
    scores.members[kind, place, configuration] -= 1
    if scores.bucket[kind, place, block] == NO_BITS:
        number = block - scores.block_first[configuration]
        word = scores.word_first[configuration] + number // BLOCK
        scores.blocks[kind, place, word] &= ~(ONE << np.uint64(number % BLOCK))


@inlined
def enter_bucket(scores: Scores, kind: int, machine: int, place: int) -> None:
    """Put a machine into a bucket."""
    block = machine // BLOCK
    configuration = scores.configuration[block]
    number = block - scores.block_first[configuration]
    word = scores.word_first[configuration] + number // BLOCK
    scores.bucket[kind, place, block] |= ONE << np.uint64(machine % BLOCK)
    scores.blocks[kind, place, word] |= ONE << np.uint64(number % BLOCK)
    scores.members[kind, place, configuration] += 1


@inlined
def best_machine(scores: Scores, fleet: FleetState, tasks: Tasks, shape: int, kind: int, configuration: int) -> int:
    """Return the first machine of the highest score that fits in a configuration, or NOWHERE."""
    for place in range(scores.bucket.shape[1] - 1, -1, -1):
        if scores.members[kind, place, configuration] > 0:
            machine = first_in_bucket(scores, fleet, tasks, shape, kind, configuration, place)
            if machine != NOWHERE:
                return machine
    return NOWHERE


@inlined
def first_in_bucket(
    scores: Scores, fleet: FleetState, tasks: Tasks, shape: int, kind: int, configuration: int, place: int
) -> int:
    """Return the first machine of a bucket that fits, or NOWHERE."""
    first = scores.block_first[configuration]
    for word in range(scores.word_first[configuration], scores.word_first[configuration + 1]):
        left = scores.blocks[kind, place, word]
        while left != NO_BITS:
            block = first + (word - scores.word_first[configuration]) * BLOCK + lowest_bit(left)
            left &= left - ONE
            if block_may_fit(fleet, tasks, shape, block):
                fitting = scores.bucket[kind, place, block] & fitting_word(fleet, tasks, shape, block)
                if fitting != NO_BITS:
                    return int(block * BLOCK + lowest_bit(fitting))
    return NOWHERE
