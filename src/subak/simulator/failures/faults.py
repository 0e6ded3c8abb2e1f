"""Applies faults: lost, doubled, reordered and late messages; partitions, crashes, restarts.

Everything comes from a plan and its seed, so a run with faults repeats itself to the byte.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.messages import MESSAGE
from subak.marks import inlined, noinline
from subak.placement.fits.random_fit import random_float

# of `rate`
LOSS, HEARTBEAT_LOSS, DUPLICATION, REORDERING, SPIKE, LATE_MAX, SPIKE_MAX, FAULTS_UNTIL, TIMER_LATE, REPLAY = range(10)
ACTION_CRASH, ACTION_RESTART = range(2)  # what an action does
NEXT = 0
PAST = 32  # messages that are kept to be sent again
EVERYBODY = -1  # an address of a cut


class Faults(NamedTuple):
    """A plan: rates of what befalls messages, cuts between addresses, and crashes in the order of time."""

    on: np.ndarray  # int64[1], 0 where nothing ever fails
    rate: np.ndarray  # float64[10]: probabilities LOSS .. SPIKE, REPLAY; seconds LATE_MAX .. TIMER_LATE
    random: np.ndarray  # uint64[1]
    past: np.ndarray  # MESSAGE[place], a sample of what was sent, to be sent again
    past_count: np.ndarray  # int64[1], messages in it
    cut_from: np.ndarray  # float64[cut], seconds
    cut_until: np.ndarray  # float64[cut], seconds
    cut_side: np.ndarray  # int64[cut, 2], addresses, EVERYBODY for all
    time: np.ndarray  # float64[action], seconds, sorted
    action: np.ndarray  # int8[action], ACTION_CRASH or ACTION_RESTART
    address: np.ndarray  # int64[action]
    next: np.ndarray  # int64[1], the action that comes next


def build_faults() -> Faults:
    """Return the plan in which nothing fails."""
    none = np.zeros(0)
    rate = np.zeros(10)
    rate[FAULTS_UNTIL] = np.inf
    return Faults(
        np.zeros(1, np.int64), rate, np.zeros(1, np.uint64), np.zeros(0, MESSAGE),
        np.zeros(1, np.int64), none, none, np.zeros((0, 2), np.int64), none,
        np.zeros(0, np.int8), np.zeros(0, np.int64), np.zeros(1, np.int64),
    )


@noinline
def is_cut(faults: Faults, now: float, sender: int, receiver: int) -> bool:
    """Whether a message sent now cannot reach its receiver."""
    for cut in range(faults.cut_from.size):
        if faults.cut_from[cut] <= now < faults.cut_until[cut]:
            one, other = faults.cut_side[cut, 0], faults.cut_side[cut, 1]
            if (is_side(one, sender) and is_side(other, receiver)) or (
                is_side(one, receiver) and is_side(other, sender)
            ):
                return True
    return False


@inlined
def is_side(side: int, address: int) -> bool:
    """Whether an address is on a side of a cut."""
    return side in (address, EVERYBODY)


@noinline
def message_fault(faults: Faults, now: float, is_heartbeat: bool) -> tuple[bool, float, float]:
    """Draw what befalls a message: (whether it is lost, seconds until its double or -1, seconds it is late)."""
    rate, random = faults.rate, faults.random
    if now >= rate[FAULTS_UNTIL]:
        return False, -1.0, 0.0
    lost = random_float(random) < rate[LOSS]
    lost |= is_heartbeat and random_float(random) < rate[HEARTBEAT_LOSS]
    twice = random_float(random) * rate[LATE_MAX] if random_float(random) < rate[DUPLICATION] else -1.0
    late = random_float(random) * rate[LATE_MAX] if random_float(random) < rate[REORDERING] else 0.0
    if random_float(random) < rate[SPIKE]:
        late += random_float(random) * rate[SPIKE_MAX]
    return lost, twice, late


@inlined
def timer_delay(faults: Faults, delay: float) -> float:
    """Return when a timer of *delay* seconds goes off: not before, and at most so much later as the plan says."""
    if delay > 0.0 and faults.rate[TIMER_LATE] > 0.0:
        return delay + random_float(faults.random) * faults.rate[TIMER_LATE]
    return delay


@noinline
def old_message(faults: Faults, now: float, message: np.void) -> int:
    """Keep a message, in the place of a random one; return the place of one to send again, or -1."""
    if now >= faults.rate[FAULTS_UNTIL]:
        return -1
    count = faults.past_count[0]
    again = -1
    if count > 0 and random_float(faults.random) < faults.rate[REPLAY]:
        again = int(random_float(faults.random) * count)
    place = count if count < PAST else int(random_float(faults.random) * PAST)
    if place != again:
        faults.past[place] = message
    faults.past_count[0] = min(count + 1, PAST)
    return again
