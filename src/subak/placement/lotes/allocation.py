"""The allocation LP (LoTES section 4.1): how much of each pooled configuration serves each class.

Constraint (3) ties the shares of a class on a configuration together, so that one variable is enough for each
(configuration, class): the jobs that run there at once, y = delta c n / r. The program's variables are the parts of a
class's arrivals that a configuration serves, in multiples of a rate that no plan exceeds much, so that all are near 1.
"""
from typing import NamedTuple

import numpy as np

from subak.errors import InputError
from subak.placement.linear_program import Program

SERVED_MIN = 1e-9  # of a class's arrivals: a smaller part is taken for 0
PAIRS_MAX = 20_000  # of configurations and classes: at most some fifteen seconds on a core of 2023


class Problem(NamedTuple):
    """What both linear programs are about."""

    request: np.ndarray  # float64[resource, class], units: r_kl
    share: np.ndarray  # float64[class], of the arrivals: alpha_k
    rate: np.ndarray  # float64[configuration, class], jobs a second by one slot, 0 where it may not run: mu_jk
    capacity: np.ndarray  # int64[resource, configuration], units of one machine: c_jl
    machines: np.ndarray  # int64[configuration]: n_j


class Allocation(NamedTuple):
    """The optimum of the allocation LP."""

    rate: float  # jobs a second: lambda*
    delta: np.ndarray  # float64[configuration, class, resource]
    jobs: np.ndarray  # float64[configuration, class], that run at once


def solve_allocation(problem: Problem) -> Allocation:
    """Return the largest rate of arrivals that the pooled machines could serve. Every class has a rate somewhere.

    Raises InputError when there are more than PAIRS_MAX of configurations and classes.
    """
    pooled = (problem.capacity * problem.machines).astype(np.float64)  # [resource, configuration]
    configurations, classes = problem.rate.shape
    if problem.rate.size > PAIRS_MAX:
        raise InputError(f"fleet: {configurations:,} configurations of machines for {classes} classes are "
                         f"{problem.rate.size:,} pairs, more than LoTES can plan for, {PAIRS_MAX:,}")
    pairs = np.argwhere(problem.rate > 0)
    j, k = pairs.T
    scale = _scale(problem, pooled)
    jobs = scale * problem.share[k] / problem.rate[j, k]  # that run at once, for all arrivals of the class
    used = np.divide(jobs * problem.request[:, k], pooled[:, j], out=np.zeros((len(pooled), len(pairs))),
                     where=pooled[:, j] > 0)  # [resource, pair], parts of the pool
    in_pool = classes + np.arange(len(pooled))[:, None] * configurations + j
    program = Program(np.append(np.zeros(classes), np.full(pooled.size, -np.inf)),
                      np.append(np.full(classes, np.inf), np.ones(pooled.size)))
    program.add(np.ones(1), np.arange(classes)[:, None], -np.ones((classes, 1)))
    program.add(np.zeros(len(pairs)), np.vstack([k, in_pool]), np.vstack([np.ones(len(pairs)), used]))  # (2), (4)
    solution = program.solve()
    served = np.where(solution.column[1:] > SERVED_MIN, solution.column[1:], 0.0)
    running = np.zeros((configurations, classes))
    running[j, k] = served * jobs
    return Allocation(solution.objective * scale, _delta(running, problem, pooled), running)


def _scale(problem: Problem, pooled: np.ndarray) -> float:
    """Return the rate at which some resource is used up, if each class were as fast as anywhere."""
    load = (problem.request * problem.share / problem.rate.max(axis=0)).sum(axis=1)  # [resource], unit seconds a job
    return float((pooled.sum(axis=1)[load > 0] / load[load > 0]).min())


def _delta(running: np.ndarray, problem: Problem, pooled: np.ndarray) -> np.ndarray:
    used = running[:, :, None] * problem.request.T[None]  # [configuration, class, resource]
    whole = np.broadcast_to(pooled.T[:, None, :], used.shape)
    return np.divide(used, whole, out=np.zeros(used.shape), where=whole > 0)
