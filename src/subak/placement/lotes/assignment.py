"""The machine-assignment LP (LoTES section 4.2): how many machines of a configuration emulate each bin.

Constraint (7) has r_kl on both sides, so it is one row a class, in jobs. Bins are listed all, or generated: the LP over
a few bins says what a job of each class is worth, and the most valuable bin of each configuration joins, until none
would improve it. Both end at the same lambda. Then the parts of machines are rounded by their fractionality.
"""
from typing import NamedTuple

import numpy as np

from subak.errors import InputError
from subak.placement.linear_program import Program, Solution, Work
from subak.placement.lotes.allocation import Allocation, Problem
from subak.placement.lotes.bins import all_bins, build_machine, most_valuable_bin
from subak.placement.lotes.settings import LotesSettings

GENERATION_ROUNDS_MAX = 1000  # of column generation
IMPROVEMENT_MIN = 1e-9  # of lambda: nearer to its bound, no bin joins
PAYS_MIN = 1e-12  # of lambda: a bin that adds less does not pay
NODES_FEW, NODES_MAX = 5_000, 300_000  # bins looked at in a search for the most valuable one
GENERATION_WORK_MAX = 1_000_000_000  # of generating bins: at most some twenty seconds on a core of 2023

class Columns(NamedTuple):
    """Bins and the configuration each is for."""

    jobs: np.ndarray  # int64[bin, class]: N_ijk
    configuration: np.ndarray  # int64[bin]


class Assignment(NamedTuple):
    """The optimum of the assignment LP, rounded; only bins that it uses."""

    bins: np.ndarray  # int64[bin, class], jobs
    configuration: np.ndarray  # int64[bin]
    part: np.ndarray  # float64[bin], machines by the LP: x_ij
    machines: np.ndarray  # int64[bin], machines after rounding
    rate: float  # jobs a second: the LP's lambda
    rate_rounded: float  # with whole machines
    rate_bound: float  # no assignment with these classes on these configurations has more
    considered: np.ndarray  # int64[configuration], bins the LP knew
    generated: bool  # whether they were generated, not all listed


def solve_assignment(problem: Problem, allocation: Allocation, fine: np.ndarray, fine_capacity: np.ndarray,
                     settings: LotesSettings) -> Assignment:
    """Return which bins the machines emulate.

    *fine* (int64[resource, class]) and *fine_capacity* (int64[resource, configuration]) are in fine units. Raises
    InputError when all bins are wanted and there are more than ``settings.bins_max``.
    """
    allotted = allocation.jobs if settings.pairs == "allocation" else problem.rate
    served = [np.flatnonzero(row) for row in allotted]  # K^j
    columns = None
    if settings.bins != "generated":
        columns = _all_columns(served, fine, fine_capacity, settings.bins_max)
    if columns is None and settings.bins == "all":
        raise InputError(f"bins_max: there are more than {settings.bins_max:,} non-dominated bins; raise it, or set "
                         "bins to 'generated', which reaches the same rate without listing them")
    scale = allocation.rate
    program = _program(problem.share.size, served)
    # [configuration, class]: what a job on every machine of a configuration adds to its class's row
    gain = problem.rate * problem.machines[:, None] / (scale * problem.share)
    listed = columns is not None
    if columns is not None:
        _add(program, columns, gain)
        solution = program.solve()
        bound = solution.objective
    else:
        columns, solution, bound = _generate(program, _full_of_one(served, fine, fine_capacity), gain,
                                             (served, fine, fine_capacity))
    part = solution.column[1:] * problem.machines[columns.configuration]
    machines = round_parts(part, columns.configuration, problem.machines)
    used = (part > 0) | (machines > 0)
    return Assignment(
        columns.jobs[used], columns.configuration[used], part[used], machines[used],
        min(solution.objective, bound) * scale, rate_of(columns, machines, problem), bound * scale,
        np.bincount(columns.configuration, minlength=len(served)), not listed,
    )


def _program(classes: int, served: list[np.ndarray]) -> Program:
    """Return the rows (7), one a class, and (9), one a configuration; the first column is lambda.

    Variables are parts of a configuration's machines, so that all are near 1.
    """
    parts = np.array([1.0 if each.size else 0.0 for each in served])
    program = Program(np.append(np.zeros(classes), parts), np.append(np.full(classes, np.inf), parts))
    program.add(np.ones(1), np.arange(classes)[:, None], -np.ones((classes, 1)))
    return program


def _add(program: Program, columns: Columns, gain: np.ndarray) -> None:
    classes, count = gain.shape[1], columns.configuration.size
    row = np.vstack([np.repeat(np.arange(classes)[:, None], count, axis=1), classes + columns.configuration])
    program.add(np.zeros(count), row, np.vstack([(columns.jobs * gain[columns.configuration]).T, np.ones(count)]))


def _all_columns(served: list[np.ndarray], fine: np.ndarray, fine_capacity: np.ndarray, most: int) -> Columns | None:
    """List the non-dominated bins of every configuration, or return None if there are more than *most*."""
    jobs, configurations = [np.empty((0, fine.shape[1]), np.int64)], [np.empty(0, np.int64)]
    for configuration, classes in enumerate(served):
        if not classes.size:
            continue
        machine = build_machine(fine_capacity[:, configuration], fine, classes)
        found = all_bins(machine, most)
        if found is None:
            return None
        most -= len(found)
        wide = np.zeros((len(found), fine.shape[1]), np.int64)
        wide[:, machine.classes] = found
        jobs.append(wide)
        configurations.append(np.full(len(found), configuration))
    return Columns(np.vstack(jobs), np.concatenate(configurations))


def _full_of_one(served: list[np.ndarray], fine: np.ndarray, fine_capacity: np.ndarray) -> Columns:
    """Return bins full of one class each, to begin with."""
    jobs, configurations = [np.empty((0, fine.shape[1]), np.int64)], []
    for configuration, classes in enumerate(served):
        for each in classes:
            asked = fine[:, each] > 0
            bin_ = np.zeros((1, fine.shape[1]), np.int64)
            bin_[0, each] = (fine_capacity[asked, configuration] // fine[asked, each]).min()
            jobs.append(bin_)
            configurations.append(configuration)
    return Columns(np.vstack(jobs), np.array(configurations, np.int64))


def _generate(program: Program, columns: Columns, gain: np.ndarray,
              fleet: tuple[list[np.ndarray], np.ndarray, np.ndarray]) -> tuple[Columns, Solution, float]:
    """Add the most valuable bins until none improves lambda; return all, the optimum, and a bound on lambda.

    The bound holds for any prices: it is the machines' worth at them, and equals lambda at the end. A search and a
    simplex iteration cost work by what they may look at; when GENERATION_WORK_MAX of it is used up, what was found
    stands.
    """
    _add(program, columns, gain)
    solution, work = program.solve(), Work(GENERATION_WORK_MAX)
    bound = 1.0  # that of the allocation LP: lambda is counted in multiples of it
    nodes = NODES_FEW
    for _ in range(GENERATION_ROUNDS_MAX):
        if not work.spend(nodes * gain.size):
            break
        new, worth = _most_valuable(solution, gain, fleet, nodes)
        bound = min(bound, worth)
        if bound <= solution.objective * (1 + IMPROVEMENT_MIN):
            break
        unknown = _unknown(new, columns)
        if not unknown.any() and nodes == NODES_MAX:
            break
        nodes = NODES_FEW if unknown.any() else NODES_MAX  # search thoroughly only where a short search finds nothing
        new = Columns(new.jobs[unknown], new.configuration[unknown])
        _add(program, new, gain)
        more = program.solve(int(work.left // sum(gain.shape)))
        work.spend(more.iterations * sum(gain.shape))
        if not more.feasible:
            break
        columns = Columns(np.vstack([columns.jobs, new.jobs]), np.append(columns.configuration, new.configuration))
        solution = more
    return columns, solution, max(bound, solution.objective)


def _most_valuable(solution: Solution, gain: np.ndarray,
                   fleet: tuple[list[np.ndarray], np.ndarray, np.ndarray], nodes: int) -> tuple[Columns, float]:
    """Return the most valuable bins at the prices of a solution, where they pay, and what all machines are worth.

    The worth is infinite when a search was cut at *nodes* bins.
    """
    served, fine, fine_capacity = fleet
    price = np.maximum(-solution.price[:gain.shape[1]], 0.0)
    price /= price.sum()
    rent = solution.price[gain.shape[1]:]
    worth, jobs, configurations = 0.0, [np.empty((0, gain.shape[1]), np.int64)], []
    for configuration, classes in enumerate(served):
        if not classes.size:
            continue
        value = price * gain[configuration]
        bin_, proved = most_valuable_bin(fine_capacity[:, configuration], fine, classes, value, nodes)
        worth += bin_ @ value if proved else np.inf
        if bin_ @ value > rent[configuration] + PAYS_MIN:
            jobs.append(bin_[None])
            configurations.append(configuration)
    return Columns(np.vstack(jobs), np.array(configurations, np.int64)), worth


def _unknown(new: Columns, columns: Columns) -> np.ndarray:
    """Return bool[bin]: which of *new* are not among *columns*: within its tolerance, an LP may ask for one again."""
    known = {(configuration, jobs.tobytes()) for jobs, configuration in zip(*columns, strict=True)}
    return np.array([(configuration, jobs.tobytes()) not in known for jobs, configuration in zip(*new, strict=True)],
                    bool)


def round_parts(part: np.ndarray, configuration: np.ndarray, machines: np.ndarray) -> np.ndarray:
    """Return int64[bin], whole machines: the largest fractional parts are rounded up, ties to the earlier bin.

    Each configuration that has bins keeps its number of *machines* (int64[configuration]).
    """
    near = np.rint(part)
    exact = np.where(np.abs(part - near) < 1e-9 * np.maximum(near, 1), near, part)  # 2.9999999999 is 3
    whole = np.floor(exact).astype(np.int64)
    for each in np.unique(configuration):
        rows = np.flatnonzero(configuration == each)
        missing = int(machines[each] - whole[rows].sum())
        by_fraction = rows[np.argsort(-(exact - whole)[rows], kind="stable")]
        whole[by_fraction[:missing]] += 1
    return whole


def rate_of(columns: Columns, machines: np.ndarray, problem: Problem) -> float:
    """Return the largest rate that whole *machines* (int64[bin]) serve: lambda of (7) with these."""
    jobs = np.zeros(problem.rate.shape)
    np.add.at(jobs, columns.configuration, columns.jobs * machines[:, None])
    return float(((jobs * problem.rate).sum(axis=0) / problem.share).min())
