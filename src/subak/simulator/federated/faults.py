"""What goes wrong in a run: messages lost, doubled, overtaken or late; roles cut off, crashed, restarted.

Everything comes from a plan and its seed, so a run with faults repeats itself to the byte.
"""
from typing import NamedTuple

import numpy as np

from subak.kernel import inlined, noinline
from subak.placement.fits.random_fit import random_float

# of `rate`
LOSS, HEARTBEAT_LOSS, DUPLICATION, REORDERING, SPIKE, LATE_MAX, SPIKE_MAX, FAULTS_UNTIL, TIMER_LATE = range(9)
ACTION_CRASH, ACTION_RESTART = range(2)  # what an action does
NEXT = 0
EVERYBODY = -1  # an address of a cut


class Faults(NamedTuple):
    """A plan: rates of what befalls messages, cuts between addresses, and crashes in the order of time."""

    on: np.ndarray  # int64[1], 0 where nothing ever fails
    rate: np.ndarray  # float64[9]: probabilities LOSS .. SPIKE; LATE_MAX .. TIMER_LATE in seconds
    random: np.ndarray  # uint64[1]
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
    rate = np.zeros(9)
    rate[FAULTS_UNTIL] = np.inf
    return Faults(
        np.zeros(1, np.int64), rate, np.zeros(1, np.uint64), none, none, np.zeros((0, 2), np.int64), none,
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
