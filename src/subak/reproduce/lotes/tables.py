"""LoTES's Tables 1 and 2 as printed, as the input of its two linear programs."""
from itertools import combinations

import numpy as np

from subak.placement.lotes.allocation import Problem
from subak.placement.lotes.bins import FINE_UNITS, Machine, all_bins, build_machine

# Table 1: machines, cores, memory (hundredths of the largest machine), classes with a positive allocation.
MACHINES = np.array([6732, 3863, 1001, 795, 126, 52, 5, 5, 3, 1])
CORES = np.array([50, 50, 50, 100, 25, 50, 50, 50, 100, 100])
MEMORY = np.array([50, 25, 75, 100, 25, 12, 3, 97, 50, 6])
CLASSES = np.array([4, 2, 1, 2, 2, 1, 1, 2, 2, 1])  # |K^j|
# Table 2: cores and memory of each class (hundredths), its share of the jobs, hours it runs.
REQUESTS = np.array([[2, 2, 7, 20], [1, 3, 3, 6]])
SHARES = np.array([0.23, 0.46, 0.30, 0.01])
HOURS = np.array([0.03, 0.04, 0.04, 0.03])
BINS_MAX = 10_000_000
RATE_PER_HOUR = 4_730_796.6  # lambda* of these tables, from another implementation


def printed_problem() -> Problem:
    """Return the problem; rates are in jobs an hour, and every class may run on every configuration."""
    rate = np.tile(1 / HOURS, (MACHINES.size, 1))
    return Problem(REQUESTS.astype(np.float64), SHARES, rate, np.array([CORES, MEMORY]), MACHINES)


def without_misfits(problem: Problem) -> Problem:
    """Return a problem in which no class runs on machines that could not hold one job of it."""
    fits = (problem.request[:, None, :] <= problem.capacity[:, :, None]).all(axis=0)
    return problem._replace(rate=problem.rate * fits)


def bins_allowed() -> tuple[int, int]:
    """Return how many bins there are at most with the |K^j| of Table 1, and how many Algorithm 1 as printed makes.

    Which classes a configuration has is not printed: those with which there are most.
    """
    problem = without_misfits(printed_problem())
    request, capacity = ((amounts * FINE_UNITS).astype(np.int64) for amounts in (problem.request, problem.capacity))
    totals = np.zeros(2, np.int64)
    for room, count in zip(capacity.T, CLASSES, strict=True):
        fitting = np.flatnonzero((request <= room[:, None]).all(axis=0))
        machines = [build_machine(np.ascontiguousarray(room), request, np.array(chosen))
                    for chosen in combinations(fitting, min(count, fitting.size))]
        totals += (max(len(_every_bin(machine)) for machine in machines), max(map(as_printed, machines)))
    return int(totals[0]), int(totals[1])


def _every_bin(machine: Machine) -> np.ndarray:
    found = all_bins(machine, BINS_MAX)
    assert found is not None
    return found


def as_printed(machine: Machine) -> int:
    """Return how many bins Algorithm 1 makes taken literally: nextBin is never set back, so each step back is one."""
    free, added, bins, first, begin, counting = machine.left[0].copy(), [], 1, 0, 0, False
    while first < machine.jobs.size:
        for row in range(begin, machine.jobs.size):
            while (machine.request[row] <= free).all():
                free -= machine.request[row]
                added.append(row)
                counting = True
        if added:
            begin = added.pop()
            free += machine.request[begin]
            bins += counting
        first, begin = (first, begin + 1) if added else (first + 1, first + 1)
    return bins
