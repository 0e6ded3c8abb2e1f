"""Prices machines, which proves a lower bound on the time at which the most loaded one is done.

Of a side (what each job would take on each machine alone) it is asked how soon the most loaded machine can be done if
jobs may be cut at will: the linear program of bound.py. Any prices, one of each level and machine, 0 or more and 1 in
all, bound its optimum C from below:

    C >= sum over jobs of min over machines of price * seconds + sum over levels of price * h,

where the price that a job pays is the sum over the levels that bind it. So the bound holds however prices are found,
and however the solver rounds. They are looked for from coarse to fine:

1. in closed form: each machine is priced by its slots, in the level of which that proves the most;
2. with many jobs, at the prices found for every fourth of them, taken as all (their optimum is much the same);
3. by HiGHS, over the columns (a job on a machine) of a greedy plan and of the cheapest machines at the prices so far;
   columns are added as they pay at the program's prices, until what these prove is the program's own objective.

Each step costs work that is counted (simplex iterations, and cells looked at); when the work allowed is used up, the
best prices so far stand. The objective of any program that was solved says how far from the optimum that may be.
"""
import math
from collections.abc import Iterator
from typing import NamedTuple

import highspy
import numpy as np

from subak.errors import RunError
from subak.placement.linear_program import Program, Work

JOBS_FEW = 400  # more are first priced by a sample
SAMPLED = 4  # one in so many
MACHINES_A_ROUND = 8  # for each job, the cheapest ones that are not in the program yet ..
MACHINES_A_JOB = 5  # .. but so many times as many as the job alone could keep busy, where that is more
PIECES = 4  # of all that a machine does, in a greedy plan
PRICE_ROUNDS = 30
CLOSE, CLOSE_OF_SAMPLE = 1e-7, 1e-4  # of the bound: what another round could gain, below which there is none
CELLS_AT_ONCE = 1 << 20  # of jobs by machines
JITTER = 1e-4  # of a cost: of machines that cost as much, different jobs take different ones
WORK_MAX = 60_000_000  # of one side: at most some fifteen seconds on a core of 2023
CELLS_A_WORK = 8  # cells that cost as much as a job or machine in a simplex iteration
GREEDY_WORK = 200  # of a piece in a greedy plan
_NOBODY = np.zeros(0, np.int64)


class Side(NamedTuple):
    """A stage of all jobs as a program sees it."""

    seconds: np.ndarray  # float64[job, machine], that the machine needs for the job alone, all slots; inf: it may not
    level: np.ndarray  # int64[job], how many levels bind the job
    height: np.ndarray  # float64[level], seconds: h, the first is 0, ascending
    share: np.ndarray  # float64[machine], of all slots


class Found(NamedTuple):
    """What the best prices prove."""

    least: float  # seconds: the linear program's optimum is no less
    most: float  # seconds: it is no more; inf where no program was solved
    fault: str = ""  # why HiGHS gave up, in words; empty if it did not


class Plan(NamedTuple):
    """Pieces of jobs on machines."""

    job: np.ndarray  # int64[piece], those of a job in a row
    machine: np.ndarray  # int64[piece]
    done: float  # when the most loaded machine is


class Search:
    """The best prices found so far for a side whose numbers are near 1."""

    def __init__(self, side: Side, close: float = CLOSE) -> None:
        self.side, self.close = side, close
        self.prices = max(_by_slots(side), key=lambda prices: value(side, prices))
        self.least, self.most = value(side, self.prices), math.inf

    def offer(self, prices: np.ndarray, least: float) -> None:
        """Take *prices* that prove more."""
        if least > self.least:
            self.prices, self.least = prices, least

    @property
    def settled(self) -> bool:
        """Whether no prices would prove more."""
        return self.least >= self.most * (1.0 - self.close)


def find_prices(side: Side, work_max: float = WORK_MAX) -> Found:
    """Return bounds on the optimum of the side's linear program, found with so much work; 0 without jobs."""
    if side.seconds.shape[0] == 0:
        return Found(0.0, 0.0)
    unit = float(side.seconds.min(axis=1).sum() / side.seconds.shape[1] + side.height[-1]) or 1.0  # about the answer
    search, fault = Search(side._replace(seconds=side.seconds / unit, height=side.height / unit)), ""
    try:
        improve(search, Work(work_max))
    except RunError as error:
        fault = str(error)
    return Found(search.least * unit, max(search.most, search.least) * unit, fault)


def improve(search: Search, work: Work) -> None:
    """Look for better prices: of a sample of the jobs, then of all. Raises RunError when HiGHS gives up."""
    side, plan = search.side, None
    pieces = len(side.seconds) + PIECES * side.share.size
    if work.spend(GREEDY_WORK * pieces + 2 * side.seconds.size / CELLS_A_WORK):
        plan = greedy_plan(side)
        search.most = plan.done
    if len(side.seconds) > JOBS_FEW and not search.settled:
        sample = Search(_sampled(side), CLOSE_OF_SAMPLE)
        improve(sample, work)
        search.offer(sample.prices, value(side, sample.prices))
    if plan is not None and not search.settled:
        _generate(search, plan, work)


def value(side: Side, prices: np.ndarray) -> float:
    """Return the bound that *prices* (float64[level, machine], 0 or more, 1 in all) prove."""
    total = float((prices.sum(axis=1) * side.height).sum())
    return total + sum(float(cost.min(axis=1).sum()) for _, cost in _costs(side, prices))


def _by_slots(side: Side) -> Iterator[np.ndarray]:
    for level in range(side.height.size):
        prices = np.zeros((side.height.size, side.share.size))
        prices[level] = side.share
        yield prices


def _costs(side: Side, prices: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of jobs, and float64[job of the block, machine]: what each job would cost on each machine."""
    over_levels = np.cumsum(prices, axis=0)  # of the levels that bind a job, the last of which is `level` - 1
    jobs, machines = side.seconds.shape
    step = max(CELLS_AT_ONCE // machines, 1)
    for first in range(0, jobs, step):
        rows = slice(first, first + step)
        seconds, price = side.seconds[rows], over_levels[side.level[rows] - 1]
        yield rows, np.multiply(seconds, price, out=np.full(seconds.shape, np.inf), where=np.isfinite(seconds))


def _sampled(side: Side) -> Side:
    """Return every fourth job of each level by size, as large as all."""
    order = np.lexsort((side.seconds.min(axis=1), side.level))
    rows = np.sort(order[SAMPLED // 2 :: SAMPLED])
    return side._replace(seconds=side.seconds[rows] * (order.size / rows.size), level=side.level[rows])


def _generate(search: Search, plan: Plan, work: Work) -> None:
    """Solve the program from a *plan* on, with more columns each time, until none pays or no work is left."""
    side, columns = search.side, _Columns(search.side)
    pieces = np.unique(np.stack([plan.job, plan.machine]), axis=1)
    columns.add(*pieces)
    columns.add(*columns.paying(search.prices, everyone=True)[1:])
    for _ in range(PRICE_ROUNDS):
        if search.settled or not work.spend(side.seconds.size / CELLS_A_WORK):
            break
        solution = columns.program.solve(int(work.left // columns.size))
        work.spend(solution.iterations * columns.size)
        if solution.feasible:
            search.most = min(search.most, -solution.objective)
        prices = np.maximum(solution.price[len(side.seconds):].reshape(search.prices.shape), 0.0)
        if not prices.sum() > 0:
            break
        least, job, machine = columns.paying(prices / prices.sum())
        search.offer(prices / prices.sum(), least)
        if not job.size:
            break
        columns.add(job, machine)


def greedy_plan(side: Side) -> Plan:
    """Return a plan that puts pieces where they end first: of the highest level before others, large ones first."""
    pieces = np.maximum(np.ceil(PIECES * side.seconds.min(axis=1)), 1.0).astype(np.int64)
    order = np.repeat(by_size := np.lexsort((-side.seconds.min(axis=1) / pieces, -side.level)), pieces[by_size])
    done = np.repeat(side.height[:, None], side.share.size, axis=1)  # [level, machine]
    machine = np.zeros(order.size, np.int64)
    for number, job in enumerate(order.tolist()):
        seconds, binding = side.seconds[job] / pieces[job], side.level[job]
        machine[number] = (done[:binding].max(axis=0) + seconds).argmin()
        done[:binding, machine[number]] += seconds[machine[number]]
    return Plan(order, machine, float(done.max()))


class _Columns:
    """The program with a row a job (all of it is done), one a level and machine, and the columns added so far."""

    def __init__(self, side: Side) -> None:
        jobs, machines = side.seconds.shape
        height = np.repeat(side.height, machines)
        self.side, self.size = side, jobs + machines  # what an iteration's work is proportional to
        self.known = np.zeros((jobs, machines), bool)
        self.program = Program(np.concatenate([np.ones(jobs), np.full(height.size, -highspy.kHighsInf)]),
                               np.concatenate([np.ones(jobs), -height]), primal=True)
        rows = np.arange(jobs, jobs + height.size)
        self.program.add_sparse(-np.ones(1), np.zeros(1), rows, -np.ones(rows.size))  # the column of C
        doublings = np.log2(np.maximum(MACHINES_A_JOB / MACHINES_A_ROUND * side.seconds.min(axis=1), 1.0))
        self.most = MACHINES_A_ROUND << np.minimum(np.ceil(doublings), 30).astype(np.int64)  # int64[job], a round

    def add(self, job: np.ndarray, machine: np.ndarray) -> None:
        """Add x_ij for each *job* and *machine* (int64[column])."""
        jobs, machines = self.side.seconds.shape
        self.known[job, machine] = True
        entries = 1 + self.side.level[job]
        starts = np.cumsum(entries) - entries
        column = np.repeat(np.arange(job.size), entries)
        level = np.arange(column.size) - starts[column] - 1  # -1: the job's own row
        row = np.where(level < 0, job[column], jobs + level * machines + machine[column])
        seconds = self.side.seconds[job, machine][column]
        self.program.add_sparse(np.zeros(job.size), starts, row, np.where(level < 0, 1.0, seconds))

    def paying(self, prices: np.ndarray, everyone: bool = False) -> tuple[float, np.ndarray, np.ndarray]:
        """Return what *prices* prove, and int64[column] twice, jobs and machines to add.

        These are the cheapest that are not known, where they are cheaper than what the job has; or for *everyone*.
        """
        total, jobs, machines = float((prices.sum(axis=1) * self.side.height).sum()), [], []
        for rows, cost in _costs(self.side, prices):
            total += float(cost.min(axis=1).sum())
            known = self.known[rows]
            enough = np.where(known & (not everyone), cost, np.inf).min(axis=1) * (1.0 - CLOSE)
            cost[known] = np.inf
            pays = np.flatnonzero(cost.min(axis=1) < enough)
            for most in np.unique(self.most[rows][pays]):
                chosen = pays[self.most[rows][pays] == most]
                job, machine = _cheapest(cost[chosen], rows.start + chosen, min(most, cost.shape[1]))
                paid = cost[job - rows.start, machine] < enough[job - rows.start]
                jobs.append(job[paid])
                machines.append(machine[paid])
            self.most[rows.start + pays] *= 2
        return total, np.concatenate([_NOBODY, *jobs]), np.concatenate([_NOBODY, *machines])


def _cheapest(cost: np.ndarray, job: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return int64[column] twice: each *job* (int64[row]) with its *count* cheapest machines."""
    jitter = np.modf(job[:, None] * 0.6180339887498949 + np.arange(cost.shape[1]) * 0.7548776662466927)[0]
    machine = np.argpartition(cost * (1.0 + JITTER * jitter), count - 1, axis=1)[:, :count]
    return np.repeat(job, count), machine.ravel()
