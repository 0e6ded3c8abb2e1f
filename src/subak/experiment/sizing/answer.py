"""The answer of a sizing: the sizes tried, the value of each objective, and the fewest machines."""
import itertools
import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from subak.measures.intervals import mean_interval
from subak.measures.machine_use import Shares
from subak.measures.objective import Objective
from subak.workload.resample import Drawable

MEAN, LOW, HIGH = "mean", "low", "high"  # of the values of an objective over the seeds


class Value(msgspec.Struct, frozen=True):
    """What an objective is about, at one size, in seconds or a ratio; endless where tasks never started or ended."""

    seeds: tuple[float, ...]  # of each seed
    mean: float
    low: float | None = None  # of the 95 % interval of the mean; None where there is none
    high: float | None = None


def value_of(seeds: Sequence[float]) -> Value:
    """Return the mean of what an objective came to with each seed, and its interval."""
    values = np.array(seeds)
    mean = float(values.mean())
    if math.isinf(mean):
        return Value(tuple(seeds), mean, mean, mean)
    return Value(tuple(seeds), mean, *(mean_interval(values) or (None, None)))


def mean_shares(each: Sequence[Shares]) -> Shares:
    """Return the mean of each resource's share over runs; None where one has none."""
    return tuple(None if None in shares else sum(shares) / len(shares) for shares in zip(*each, strict=True))


class Size(msgspec.Struct, frozen=True):
    """So many machines, and what came of them."""

    machines: int
    price: float | None  # of all of them; None where prices are not given
    values: tuple[Value, ...]  # of each objective; none where no run could begin
    missed: str = ""  # why objectives are missed whatever the values are: tasks that can never run
    used: Shares = ()  # of all machines' capacity of each resource, the mean over the seeds; none of draws
    peak: Shares = ()  # no more of each resource is used for 95 % of the time
    least_used: Shares = ()  # of the machine that is used least

    def keeps(self, objectives: Sequence[Objective], end: str = MEAN) -> bool:
        """Whether all objectives hold, of the means, or of that *end* of their intervals."""
        if self.missed:
            return False
        ends = [getattr(value, end) for value in self.values]
        return all(value is not None and each.holds(value) for each, value in zip(objectives, ends, strict=True))


def scarcest(size: Size) -> int | None:
    """Return the resource whose use peaks highest at a size, by its place; None where nothing is known."""
    peaks = size.peak or size.used
    known = [(peaks[place] or 0.0, share, -place) for place, share in enumerate(size.used) if share is not None]
    return -max(known)[2] if known else None


class Rise(msgspec.Struct, frozen=True):
    """An objective's value that rises from a size to the next larger one that was tried."""

    objective: int
    fewer: int
    more: int


class Weeks(msgspec.Struct, frozen=True):
    """Machines that weeks like the trace take."""

    whole: tuple[int | None, ...]  # the answers on draws of whole days; None where no size up to the limit is enough
    users: tuple[int | None, ...]  # on draws of each user's days
    typical: tuple[int, int] | None = None  # 95 % interval of the typical week; None where too few draws tell it
    coming: tuple[int, int] | None = None  # of the next one
    buy: int | None = None  # enough for the next one with 95 % certainty
    spread_whole: float = 0.0  # deviations of the logarithms of the answers
    spread_users: float = 0.0

    @property
    def middle(self) -> float:
        """Return the median answer on draws."""
        return float(np.median([each for each in (*self.whole, *self.users) if each is not None]))

    @property
    def beyond(self) -> int:
        """Return on how many draws no size up to the limit was enough."""
        return sum(each is None for each in (*self.whole, *self.users))


class Supposed(msgspec.Struct, frozen=True):
    """The answer under other time limits, where the workload has none of its users'."""

    estimates: str  # the word for them, as of --estimates
    fewest: int | None  # None where no size up to the limit is enough
    buy: int | None


class Sized(msgspec.Struct, frozen=True):
    """The answer for machines of one kind, or one mix."""

    name: str
    limit: int  # no more machines than that were tried, but for the number needed
    sizes: tuple[Size, ...]  # that were tried, the smallest first
    fewest: int | None  # machines that keep all objectives; None where no size that was tried does
    low: int | None = None  # the fewest of which the seeds do not exclude it; None where they say nothing
    high: int | None = None  # the fewest that keep them surely; None where no size does, or seeds say nothing
    odd: tuple[int, ...] = ()  # fewer machines that keep all objectives, and more that do not
    rises: tuple[Rise, ...] = ()
    hopeless: str = ""  # why no number of these machines can be enough
    weeks: Weeks | None = None  # what weeks like a trace take; None where seeds draw no trace's days
    of_fleet: bool = False  # the mix is the fleet's, so that nobody named machines
    buy_price: float | None = None  # of the machines needed; None where prices are not given
    supposed: Supposed | None = None  # with longer time limits; None where what schedulers know is not supposed
    parts: tuple[tuple[str, int], ...] = ()  # of the machines needed, by kind; none where all are alike
    has: int | None = None  # machines of the fleet whose mix it is; None where nobody told what there is
    as_in_log: int | None = None  # machines that have what the log's tasks held at once; None where it knows no starts

    def size(self, machines: int) -> Size:
        """Return what came of a number of machines that was tried."""
        return next(each for each in self.sizes if each.machines == machines)

    @property
    def buy(self) -> int | None:
        """Return the number to report: enough whether time limits are exact or longer, where that is supposed."""
        other = None if self.supposed is None else self.supposed.buy
        return self.by_scenario if other is None or self.by_scenario is None else max(self.by_scenario, other)

    @property
    def by_scenario(self) -> int | None:
        """Return the number under the scenario's estimates: with certainty where draws or seeds say so."""
        if self.weeks is not None:
            return self.fewest if self.weeks.buy is None else self.weeks.buy
        return self.fewest if self.high is None else self.high


class Recorded(msgspec.Struct, frozen=True):
    """What the objectives came to in the log, on the machines of that time."""

    values: tuple[float, ...]
    tasks: int  # that arrive in the window and of which the log knows the start
    most: tuple[float, ...] = ()  # of each resource that its tasks held at once, in what it is counted in
    of: tuple[str, ...] = ()  # what each is counted in
    before: int = 0  # Slurm jobs from before the window that waited as it began, and count with all of their waits
    within: tuple[float | None, ...] = ()  # of each objective's jobs, those that keep its bound; None of means


class Sizing(msgspec.Struct, frozen=True):
    """A question and its answers."""

    workload: str
    scheduler: str
    objectives: tuple[str, ...]
    seeds: tuple[int, ...]
    resample: str  # how each of them changed the workload
    redrawn: Drawable | None  # the days that seeds draw from; None where they draw none
    answers: tuple[Sized, ...]
    best: int | None  # the answer of the lowest price, or of the fewest machines; None where there is none
    jobs: int = 0  # that arrive in the window, and so on
    tasks: int = 0
    slurm_jobs: int = 0  # tasks, those that start together as one
    resources: tuple[str, ...] = ()
    load: float = 1.0  # times the workload's
    partitions: tuple[str, ...] = ()  # queues that have nodes of their own, by what the trace says
    begins: str = ""  # what the trace says of jobs before it, where they are measured
    knows: str = ""  # what the scheduler knows of run times; empty where it goes by none
    recorded: Recorded | None = None  # None where the log knows no starts, or is of another load
    replays: tuple[str, ...] = ()  # of each answer the command that replays the log; empty where there is none
    may_share: bool = False  # some machine holds several nodes of one job
    window: str = ""  # in words, where it was asked for
    has_log: bool = False  # whether the workload knows when its tasks started


def best_of(answers: Sequence[Sized]) -> int | None:
    """Return the place of the answer that is the cheapest, or has the fewest machines where prices are none."""
    found = [(answer.buy if answer.buy_price is None else answer.buy_price, place)
             for place, answer in enumerate(answers) if answer.buy is not None]
    return min(found)[1] if found else None


def rises(sizes: Sequence[Size], objectives: int, worse: Callable[[np.ndarray, np.ndarray], bool]) -> tuple[Rise, ...]:
    """Return where more machines made an objective worse, in the sizes that were tried.

    *worse* says it of the values, float64[seed], with more machines, and with fewer.
    """
    known = [size for size in sizes if size.values]
    return tuple(
        Rise(number, fewer.machines, more.machines)
        for fewer, more in itertools.pairwise(known) for number in range(objectives)
        if worse(np.array(more.values[number].seeds), np.array(fewer.values[number].seeds)))
