"""LoTES's Tables 1 and 2 as printed, as the problem that its two linear programs are about."""
import numpy as np

from subak.placement.lotes.allocation import Problem

# Table 1: machines, cores, memory (hundredths of the largest machine), classes with a positive allocation.
MACHINES = np.array([6732, 3863, 1001, 795, 126, 52, 5, 5, 3, 1])
CORES = np.array([50, 50, 50, 100, 25, 50, 50, 50, 100, 100])
MEMORY = np.array([50, 25, 75, 100, 25, 12, 3, 97, 50, 6])
CLASSES = np.array([4, 2, 1, 2, 2, 1, 1, 2, 2, 1])  # |K^j|
# Table 2: cores and memory of each class (hundredths), its share of the jobs, hours it runs.
REQUESTS = np.array([[2, 2, 7, 20], [1, 3, 3, 6]])
SHARES = np.array([0.23, 0.46, 0.30, 0.01])
HOURS = np.array([0.03, 0.04, 0.04, 0.03])
RATE_PER_HOUR = 4_730_796.6  # lambda* of these tables, from another implementation


def printed_problem() -> Problem:
    """Return the problem; rates are in jobs an hour, and every class may run on every configuration."""
    rate = np.tile(1 / HOURS, (MACHINES.size, 1))
    return Problem(REQUESTS.astype(np.float64), SHARES, rate, np.array([CORES, MEMORY]), MACHINES)


def without_misfits(problem: Problem) -> Problem:
    """Return a problem in which no class runs on machines that could not hold one job of it."""
    fits = (problem.request[:, None, :] <= problem.capacity[:, :, None]).all(axis=0)
    return problem._replace(rate=problem.rate * fits)
