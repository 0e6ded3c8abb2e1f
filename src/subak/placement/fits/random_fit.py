"""Random fit: any machine that fits, with equal probability, from the run's seeded generator."""
import numpy as np

from subak.fleet.feasible import NOWHERE, fits, next_fitting
from subak.fleet.state import FleetState
from subak.kernels.kernel import kernel
from subak.workload.tasks import Tasks

PROBES = 32  # tries before every fitting machine is counted

# SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one word of state, so it travels as an array of one number.
GOLDEN_STEP = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
S27, S30, S31, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
UNIT = 2.0**-53


@kernel
def random_float(random: np.ndarray) -> float:
    """Return a number in [0, 1), a multiple of 2^-53; *random* is uint64[1], the state."""
    random[0] += GOLDEN_STEP
    word = random[0]
    word = (word ^ (word >> S30)) * MIX_1
    word = (word ^ (word >> S27)) * MIX_2
    word = word ^ (word >> S31)
    return np.float64(word >> S11) * UNIT


@kernel
def random_below(random: np.ndarray, bound: int) -> int:
    """Return a whole number in [0, bound), all equally likely to 1 part in 2^53."""
    return int(random_float(random) * bound)


def random_fit(fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return a machine drawn evenly from those that fit, -1 if none fits."""
    machines = fleet.machines
    for _ in range(PROBES):
        machine = random_below(fleet.random, machines)
        if fits(fleet, tasks, task, machine):
            return machine
    count = 0
    machine = next_fitting(fleet, tasks, task, 0)
    while machine != NOWHERE:
        count += 1
        machine = next_fitting(fleet, tasks, task, machine + 1)
    if count == 0:
        return NOWHERE
    chosen = random_below(fleet.random, count)
    machine = next_fitting(fleet, tasks, task, 0)
    for _ in range(chosen):
        machine = next_fitting(fleet, tasks, task, machine + 1)
    return machine
