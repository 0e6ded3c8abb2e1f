"""How often intervals hold the truth that come from one trace whose days are drawn anew.

Each generator makes a trace of its weeks, and 300 fresh ones, which are the truth. The question is how many servers it
takes for one job in twenty to wait 5 minutes at most, first come, first served; the answer on the trace is the
estimate, and 40 draws of its days give the spread. Printed is in which share of traces the typical week (the geometric
mean of the fresh answers) is inside its interval, a fresh week inside that of the next week, and at most what is to be
bought; and how often the interval of a comparison (first come against shortest, mean wait) holds the typical ratio.
Required of those with days enough: the typical week in 86 % at least. Beside it, t over sessions drawn anew.
"""
import argparse
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

from intervals import FIRST, SHORTEST, waits_of
from subak.measures.intervals import LEVEL, Redrawn, TraceDays, difference
from subak.workload.days import DAY_S, HOUR_S, Days, days_of, draw_days, drawn_by

SEEDS = tuple(range(1, 42))
BOUND_S, SHARE = 300.0, 0.95
Jobs = tuple[np.ndarray, np.ndarray, np.ndarray]  # arrival, run time, s; user


def week(random: np.random.Generator, days: float, rate: float, weekend: float = 0.3) -> np.ndarray:
    """Return when something begins that does so *rate* times a working day: by day, less at weekends."""
    made = []
    for day in range(math.ceil(days)):
        of_day = random.poisson(rate * (weekend if day % 7 > 4 else 1.0))
        hour = np.clip(random.normal(13.5, 3.5, of_day), 4.5, 23.9)
        made.append(day * DAY_S + hour * HOUR_S)
    every = np.concatenate(made)
    return np.sort(every[every < days * DAY_S])


def sessions(random: np.random.Generator, begins: np.ndarray, user: np.ndarray, jobs: float, run_time: float) -> Jobs:
    """Return jobs of sessions, alike in length within each, a few minutes apart."""
    size = random.geometric(1.0 / jobs, begins.size)
    owner = np.repeat(np.arange(begins.size), size)
    gap = random.exponential(120.0, owner.size)
    ends = np.cumsum(size)
    along = np.cumsum(gap)
    arrival = begins[owner] + along - (along - gap)[ends - size][owner]
    length = run_time * random.lognormal(-0.5, 1.0, begins.size)[owner] * random.lognormal(-0.08, 0.4, owner.size)
    return arrival, length, user[owner]


def joined(parts: list[Jobs]) -> Jobs:
    """Return the jobs of all, by their arrival."""
    arrival, run_time, user = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(arrival, kind="stable")
    return arrival[order], run_time[order], user[order]


def few_users(random: np.random.Generator, days: float) -> Jobs:
    """Five users, each with a habit of its own, who submit in sessions by day: the planner's week."""
    habits = np.random.default_rng(1)
    parts = []
    for user in range(5):
        jobs, run_time = 8 + 4 * user, float(habits.uniform(300, 900))
        begins = week(random, days, 14 - user)
        parts.append(sessions(random, begins, np.full(begins.size, user), jobs, run_time))
    return joined(parts)


def habits(random: np.random.Generator, days: float) -> Jobs:
    """Return jobs of five users who do much the same each working day, in arrays at hours of their own."""
    parts = []
    for user in range(5):
        for hour in (9.0 + 0.6 * user, 11.5 + 0.4 * user, 14.0 + 0.5 * user, 17.0 + 0.7 * user):
            for day in range(math.ceil(days)):
                size = random.poisson(60.0 if day % 7 < 5 else 8.0)
                begin = day * DAY_S + random.normal(hour, 0.2) * HOUR_S
                arrival = begin + np.cumsum(random.exponential(75.0, size))
                parts.append((arrival, 900.0 * random.lognormal(-0.18, 0.6, size), np.full(size, user)))
    return joined(parts)


def many_users(random: np.random.Generator, days: float) -> Jobs:
    """Return jobs of a hundred users in sessions of their own."""
    begins = week(random, days, 240)
    return joined([sessions(random, begins, random.integers(100, size=begins.size), 5, 600.0)])


def no_users(random: np.random.Generator, days: float) -> Jobs:
    """Jobs that arrive one by one, more by day, from nobody in particular."""
    begins = week(random, days, 1_500)
    return joined([(begins, 600.0 * random.lognormal(-0.5, 1.0, begins.size), np.zeros(begins.size, np.int64))])


def arrays(random: np.random.Generator, days: float) -> Jobs:
    """Twenty users with arrays of jobs, some large, beside single jobs."""
    begins = week(random, days, 60)
    size = np.minimum(np.ceil(random.pareto(1.5, begins.size) * 6), 300).astype(np.int64) + 1
    owner = np.repeat(np.arange(begins.size), size)
    user = random.integers(20, size=begins.size)
    return joined([(begins[owner], 500.0 * random.lognormal(-0.3, 0.8, begins.size)[owner], user[owner])])


def moody_users(random: np.random.Generator, days: float) -> Jobs:
    """Thirty users whose days differ: on some they submit thrice as much as on others."""
    parts = []
    for user in range(30):
        begins = week(random, days, 20)
        mood = random.gamma(1.5, 1 / 1.5, math.ceil(days) + 1)
        kept = random.random(begins.size) < np.minimum(mood[(begins // DAY_S).astype(int)] / 2.5, 1.0)
        parts.append(sessions(random, begins[kept], np.full(int(kept.sum()), user), 5, 600.0))
    return joined(parts)


def common_days(random: np.random.Generator, days: float) -> Jobs:
    """Sixty users, whose days are busy or quiet for everybody alike."""
    begins = week(random, days, 500)
    mood = random.uniform(0.4, 1.0, math.ceil(days) + 1)
    begins = begins[random.random(begins.size) < mood[(begins // DAY_S).astype(int)]]
    return joined([sessions(random, begins, random.integers(60, size=begins.size), 5, 500.0)])


def steady(random: np.random.Generator, days: float) -> Jobs:
    """Sessions of forty users around the clock: what a trace of hours may be of."""
    begins = np.sort(random.uniform(0, days * DAY_S, random.poisson(days * 400)))
    return joined([sessions(random, begins, random.integers(40, size=begins.size), 5, 600.0)])


class Case(NamedTuple):
    """A generator and how long its traces are."""

    make: Callable[[np.random.Generator, float], Jobs]
    days: float
    is_open: bool = False  # no promise is made


CASES = (
    Case(habits, 7), Case(few_users, 7), Case(many_users, 7), Case(no_users, 7), Case(arrays, 7), Case(moody_users, 7),
    Case(common_days, 7), Case(steady, 7), Case(few_users, 28, is_open=True), Case(many_users, 28, is_open=True),
    Case(arrays, 28, is_open=True), Case(steady, 0.5, is_open=True), Case(steady, 2, is_open=True),
    Case(many_users, 1, is_open=True), Case(arrays, 1, is_open=True), Case(steady, 1 / 16, is_open=True),
)


def servers_for(jobs: Jobs) -> int:
    """Return the fewest servers with which the bound is kept."""
    arrival, run_time, _ = jobs
    luck = np.zeros(arrival.size)

    def kept(servers: int) -> bool:
        if not arrival.size:
            return True
        waits = waits_of(arrival, run_time, servers, FIRST, luck)
        return float(np.quantile(waits, SHARE)) <= BOUND_S

    low, high = 0, 16
    while not kept(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high


def ratio_of(jobs: Jobs, servers: int) -> tuple[float, float]:
    """Return the mean wait, first come and shortest first, on so many servers."""
    arrival, run_time, _ = jobs
    luck = np.zeros(arrival.size)
    if not arrival.size:
        return 0.0, 0.0
    return tuple(max(float(waits_of(arrival, run_time, servers, order, luck).mean()), 0.0)  # type: ignore[return-value]
                 for order in (FIRST, SHORTEST))


def drawn(jobs: Jobs, days: Days) -> Iterator[Jobs]:
    """Return the trace and its draws."""
    arrival, run_time, user = jobs
    for seed in SEEDS:
        chosen, shift = np.arange(arrival.size), np.zeros(arrival.size)
        if seed > 1:
            chosen, shift = draw_days(days, arrival, user, drawn_by(seed), np.random.default_rng([seed, 1]))
        moved = arrival[chosen] + shift
        order = np.argsort(moved, kind="stable")
        yield moved[order], run_time[chosen][order], user[chosen][order]


class Trial(NamedTuple):
    """What came of one trace."""

    answer: int
    typical: tuple[float, float]
    coming: tuple[float, float]
    buy: float
    ratio: tuple[float, float] | None  # None where both wait for nothing in a third of the draws
    freedom: int
    middle: float  # of the draws, over the answer


def trial(number: int, trace: int, servers: int) -> Trial:
    """Return what one trace says."""
    case = CASES[number]
    jobs = case.make(np.random.default_rng([number, 1, trace]), case.days)
    answers, waits = [], []
    days = days_of(jobs[0], jobs[2], 0.0, case.days * DAY_S)
    for redrawn in drawn(jobs, days):
        answers.append(servers_for(redrawn))
        waits.append(ratio_of(redrawn, servers))
    of = Redrawn(SEEDS, TraceDays(days.number, days.freedom))
    spread = of.spread(np.log(answers))
    first, shortest = np.array(waits).T
    ends = difference(shortest, first, of).ends
    assert spread is not None
    middle, half = math.exp(spread.value), spread.half((1 + LEVEL) / 2)
    further = spread.half((1 + LEVEL) / 2) * math.sqrt(2.0)
    return Trial(answers[0], (middle * math.exp(-half), middle * math.exp(half)),
                 (middle * math.exp(-further), middle * math.exp(further)),
                 middle * math.exp(spread.half(LEVEL) * math.sqrt(2.0)), ends, days.freedom,
                 float(np.median(answers[1:])) / answers[0])


def fresh(number: int, week_: int, servers: int) -> tuple[int, float]:
    """Return the answer of a fresh trace, and the logarithm of the ratio of waits on it."""
    case = CASES[number]
    jobs = case.make(np.random.default_rng([number, 2, week_]), case.days)
    first, shortest = ratio_of(jobs, servers)
    offset = 0.05 * (first + shortest) / 2 if min(first, shortest) <= 0 else 0.0
    return servers_for(jobs), math.log((shortest + offset) / (first + offset)) if first + offset > 0 else 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=200, help="of each generator")
    parser.add_argument("--fresh", type=int, default=300, help="weeks that are the truth")
    parser.add_argument("--cases", type=int, nargs="*", default=range(len(CASES)))
    given = parser.parse_args()
    print(f"{'generator':22} {'days':>5} {'answer':>7} {'5 to 95 %':>10} {'typical':>8} {'next':>6} "
          f"{'to buy':>7} {'ratio':>6} {'width':>6} {'middle':>7} {'D - C':>6}")
    worst = 1.0
    with ProcessPoolExecutor() as pool:
        for number in given.cases:
            case = CASES[number]
            few = [servers_for(case.make(np.random.default_rng([number, 3, each]), case.days)) for each in range(5)]
            servers = int(0.9 * np.median(few))  # on which schedulers are compared: load enough for waits
            truth = list(pool.map(fresh, *zip(*((number, each, servers) for each in range(given.fresh)), strict=True)))
            answers, ratios = (np.array(each) for each in zip(*truth, strict=True))
            typical, ratio = float(np.log(answers).mean()), float(ratios.mean())
            every = list(pool.map(trial, *zip(*((number, each, servers) for each in range(given.traces)), strict=True),
                                  chunksize=4))
            name = case.make.__name__.replace("_", " ")
            held = np.array([(
                each.typical[0] <= math.exp(typical) <= each.typical[1],
                np.mean((each.coming[0] <= answers) & (answers <= each.coming[1])), np.mean(answers <= each.buy),
                math.nan if each.ratio is None else each.ratio[0] <= math.expm1(ratio) <= each.ratio[1],
                (each.typical[1] - each.typical[0]) / each.answer, each.middle, each.freedom) for each in every])
            shares = np.nanmean(held, axis=0)
            worst = worst if case.is_open else min(worst, float(shares[0]))
            low, high = np.quantile(answers, (0.05, 0.95))
            print(f"{name:22} {case.days:5g} {math.exp(typical):7.1f} {low:4.0f} {high:4.0f}  "
                  + " ".join(
                      f"{100 * share:{width}.1f}%" for share, width in zip(shares[:5], (7, 5, 6, 5, 5), strict=True))
                  + f" {shares[5]:7.2f} {shares[6]:6.2f}", flush=True)
    print(f"\nthe typical week is held in {100 * worst:.0f} % of traces at worst")


if __name__ == "__main__":
    main()
