"""Random numbers by position: the n-th uniform depends on seed, purpose and n alone.

So a workload is the same however it is cut into chunks and whoever draws them, and a new small model, which has a
purpose of its own, never changes what the others draw. Philox (Salmon et al., 2011) is such a generator: it enciphers
a counter, so that its state after n numbers is known without drawing them.
"""
from enum import IntEnum

import numpy as np

from subak.errors import InputError

SEED_END = 2**64
NUMBERS_A_STEP = 4  # numbers that one step of Philox's counter gives
SMALLEST = 2.0**-54  # stands for a uniform of 0, which the laws cannot take


class Purpose(IntEnum):
    """What a stream is for; the numbers are part of what a seed means, so they are never given anew."""

    GAP = 1
    KIND = 2
    PRIORITY = 3
    MAKESPAN = 4
    REQUEST = 5
    USER = 6
    ENDING = 7
    CUT = 8
    JOB_SIZE = 10
    JOB_SINGLE = 11
    STAGED = 12
    STAGE_COUNT = 13
    FAN_IN = 14
    GANG = 15
    MACHINE_ORDER = 16
    ESTIMATE = 17
    ATTRIBUTE = 1000  # and the numbers behind it, one for each constraint
    CONSTRAINTS = 1_000_000  # and the numbers behind it, some for each stage of a job


def uniforms(seed: int, purpose: int, first: int, count: int) -> np.ndarray:
    """Return the numbers *first* to first + count - 1 of a stream, float64[count] in ]0, 1[, multiples of 2^-53 or so.

    Raises InputError for a seed outside [0, 2^64[.
    """
    if not 0 <= seed < SEED_END:
        raise InputError(f"seed must be from 0 to {SEED_END - 1}, not {seed!r}")
    bits = np.random.Philox(key=np.array([seed, purpose], dtype=np.uint64))
    bits.advance(first // NUMBERS_A_STEP)
    skipped = first % NUMBERS_A_STEP
    drawn = np.random.Generator(bits).random(skipped + count)[skipped:]
    return np.maximum(drawn, SMALLEST, out=drawn)
