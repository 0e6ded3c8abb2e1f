"""Fits the small models: jobs, requests, priorities, constraints, queues, days, stages, failures.

Each function takes the tasks with what their stage says of them (one row a task) or the workload's own tables, and
returns the struct that the generator takes, or None where the data show nothing of the kind.
"""
from typing import NamedTuple

import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.resources import Resource
from subak.workload.google_like.estimates import Estimate, fit_truncated_exponential, fit_zipf, share_of
from subak.workload.google_like.goodness import Numbers, data_numbers
from subak.workload.google_like.parameters import (
    MOST_CHOICES,
    Constraints,
    Diurnal,
    Failures,
    Jobs,
    Priorities,
    Queues,
    RequestClass,
    Stages,
)
from subak.workload.predicates import Constraint
from subak.workload.table import Workload

PLAIN_NUMBER = r"^[-+]?\d+(\.\d+)?$"  # as the generator takes it
RARE = 1e-3  # chance of a choice that stands for "at most one of them"
DAY = 86_400.0  # seconds
CHANCE = 9.21  # of 2 degrees of freedom: chance alone exceeds it once in 100 times
AMPLITUDE_MAX = 0.99  # of the daily wave, whose rate must stay above 0
CONTINUOUS_LEVELS = 50  # more levels of priority than this, up to 1000, are thousandths of a continuous priority


class JobFit(NamedTuple):
    """Tasks per job: the model, its share of single tasks, and data against model."""

    jobs: Jobs | None
    single: Estimate
    data: Numbers
    model: Numbers | None


def fit_jobs(sizes: np.ndarray) -> JobFit:
    """Return the model of *sizes*, the tasks of each job; None when every job has one.

    A size is 1 + floor(L) with L log-normal, or 1. Of the sizes from 2 on only L >= 1 is told, so mu and sigma
    maximise the likelihood of those given that; the share of single tasks then makes up the rest of the ones.
    """
    single = share_of(int((sizes == 1).sum()), len(sizes))
    values, counts = np.unique(sizes[sizes > 1], return_counts=True)
    if not len(values):
        return JobFit(None, single, data_numbers(sizes), None)
    lows, highs = np.log(values - 1.0), np.log(values.astype(np.float64))

    def loss(theta: np.ndarray) -> float:
        mu, sigma = theta[0], np.exp(theta[1])
        inside = _log_between((lows - mu) / sigma, (highs - mu) / sigma)
        return -float(counts @ (inside - scipy.special.log_ndtr(mu / sigma))) / float(counts.sum())

    start = np.log(np.repeat(values, np.minimum(counts, 1000)) - 0.5)
    found = scipy.optimize.minimize(loss, [start.mean(), np.log(max(start.std(), 0.1))], method="L-BFGS-B",
                                    bounds=[(-5.0, 20.0), (np.log(0.02), np.log(5.0))])
    mu, sigma = float(found.x[0]), float(np.exp(found.x[1]))
    ones = float(scipy.special.ndtr(-mu / sigma))  # the log-normal's own share of jobs of one task
    alone = min(max((single.value - ones) / max(1 - ones, 1e-12), 0.0), 1.0)
    jobs = Jobs(single=alone, mass=float(np.exp(mu + sigma**2 / 2)), disparity=float(np.exp(sigma**2 / 2)),
                most=int(sizes.max()))
    return JobFit(jobs, single, data_numbers(sizes), _size_numbers(jobs, mu, sigma, len(sizes)))


def _log_between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return ln(Phi(high) - Phi(low)), on the side of the tail where both are small."""
    swap = low > 0
    near, far = np.where(swap, -low, high), np.where(swap, -high, low)
    upper = scipy.special.log_ndtr(near)
    result: np.ndarray = upper + np.log(-np.expm1(np.minimum(scipy.special.log_ndtr(far) - upper, -1e-300)))
    return np.maximum(result, -1e4)


def _size_numbers(jobs: Jobs, mu: float, sigma: float, count: int) -> Numbers:
    """Return the model of sizes in numbers, cut at its largest."""
    below: np.ndarray = scipy.special.ndtr((np.log(np.arange(1, jobs.most + 1)) - mu) / sigma)  # P(floor(L) < size)
    share = jobs.single + (1 - jobs.single) * below  # P(size <= 1, 2, ...)
    share[-1] = 1.0
    most = float(np.searchsorted(share, 1 - 1 / (count + 1)) + 1)
    median, p90, p99 = (float(np.searchsorted(share, level) + 1) for level in (0.5, 0.9, 0.99))
    return Numbers(float(1 + (1 - share[:-1]).sum()), median, p90, p99, min(most, float(jobs.most)))


def fit_requests(tasks: pl.DataFrame, resources: tuple[Resource, ...], most: int) -> tuple[RequestClass, ...]:
    """Return at most *most* joint requests: the most frequent, each other one lumped with the nearest of them.

    A class weighs its tasks and asks their mean, so that the total asked is kept. Near is by standard deviations.
    """
    names = [resource.name for resource in resources]
    distinct = tasks.group_by(names).len("tasks alike")
    distinct = distinct.sort("tasks alike", *names, descending=[True, *[False] * len(names)])
    amounts, weights = distinct.select(names).to_numpy().astype(np.float64), distinct["tasks alike"].to_numpy()
    spread = np.sqrt(np.cov(amounts.T, fweights=weights, ddof=0).reshape(len(names), -1).diagonal())
    scaled = amounts / np.where(spread > 0, spread, 1.0)
    nearest = np.arange(len(amounts))
    for row in range(most, len(amounts)):
        nearest[row] = int(((scaled[:most] - scaled[row]) ** 2).sum(axis=1).argmin())
    count = min(most, len(amounts))
    total = np.bincount(nearest, weights=weights, minlength=count)
    means = [np.bincount(nearest, weights=weights * column, minlength=count) / total for column in amounts.T]
    return tuple(
        RequestClass(float(total[row] / total.sum()),
                     {each.name: float(mean[row] * each.unit) for each, mean in zip(resources, means, strict=True)})
        for row in range(count)
    )


def fit_priorities(tasks: pl.DataFrame) -> Priorities | None:
    """Return the weights of the priority levels by kind; None where priorities are thousandths of a continuous one.

    A workload without scheduling classes has class 0. A priority below 0 counts as 0, the generator's least. A kind
    without tasks has the weights of the other.
    """
    if is_continuous(tasks):
        return None
    found = {}
    for kind in ("TASK", "SERVICE"):
        levels = tasks.filter(kind=kind).select(pl.col("priority").clip(0), _scheduling_class(tasks))
        counts = levels.group_by("priority", "class").len().sort("priority", "class")
        found[kind] = {f"{priority}/{latency}": float(count) for priority, latency, count in counts.rows()}
    return Priorities(tasks=found["TASK"] or found["SERVICE"], services=found["SERVICE"] or found["TASK"])


def _scheduling_class(tasks: pl.DataFrame) -> pl.Expr:
    known = "scheduling_class" in tasks.columns
    return (pl.col("scheduling_class").fill_null(0) if known else pl.lit(0)).alias("class")


def is_continuous(tasks: pl.DataFrame) -> bool:
    """Return whether priorities look like the paper's continuous ones in thousandths."""
    levels = tasks["priority"].unique()
    return len(levels) > CONTINUOUS_LEVELS and int(levels.min()) >= 0 and int(levels.max()) <= 1000  # type: ignore[arg-type]


def fit_priority_rate(tasks: pl.DataFrame, kind: str) -> Estimate | None:
    """Return the rate of the truncated exponential of priorities in thousandths; None without tasks of the *kind*."""
    levels = tasks.filter(kind=kind)["priority"].to_numpy()
    return fit_truncated_exponential((levels - 0.5) / 1000) if len(levels) else None  # the middle of each thousandth


def fit_constraints(workload: Workload, grouped: bool) -> tuple[Constraints | None, Estimate]:
    """Return how many stages have constraints, and how often each is among those of such a stage.

    Where the stages are *grouped*, alike tasks of all times in one, their tasks count instead.
    """
    counts = workload.tasks.group_by("stage").len()
    stages = workload.stages.select("constraints").with_row_index("stage")
    stages = stages.join(counts, on="stage").with_columns(weight=pl.col("len") if grouped else pl.lit(1))
    total = int(stages["weight"].sum())
    stages = stages.filter(pl.col("constraints").list.len() > 0)
    constrained = int(stages["weight"].sum())
    rate = share_of(constrained, total)
    if stages.is_empty():
        return None, rate
    keys = ["attribute", "operator", "value"]
    each = stages.explode("constraints").unnest("constraints").with_columns(pl.col("value").fill_null("")).unique()
    each = each.filter(pl.col("operator").is_in(["=", "!="]) | pl.col("value").str.contains(PLAIN_NUMBER))
    seen = each.group_by(keys).agg(pl.col("weight").sum())
    seen = seen.sort("weight", *keys, descending=[True, False, False, False]).head(MOST_CHOICES)
    if seen.is_empty():
        return None, rate
    frequencies = independent_frequencies(seen["weight"].to_numpy() / constrained)
    choices = tuple((Constraint(*row[:3]), frequency)
                    for row, frequency in zip(seen.rows(), frequencies.tolist(), strict=True))
    return Constraints(rate.value, choices), rate


def independent_frequencies(shares: np.ndarray) -> np.ndarray:
    """Return how often each choice is drawn, independently, if it is in *shares* of the draws that are not empty.

    A choice's frequency is its share times q, the chance that any is drawn: q = 1 - product of (1 - share q). Where
    the shares add up to 1 or less they exclude each other, which independent draws do when all are rare.
    """
    def surplus(chance: float) -> float:
        return float(-np.expm1(np.log1p(-np.minimum(shares * chance, 1 - 1e-12)).sum()) - chance)

    if surplus(RARE) <= 0:
        return shares * RARE
    top = 1.0
    return shares * (top if surplus(top) >= 0 else float(scipy.optimize.brentq(surplus, RARE, top)))


def fit_queues(jobs: pl.DataFrame, submissions: pl.Series) -> tuple[Queues, Estimate]:
    """Return the users, their Zipf exponent by *submissions* (rows of jobs), and the departments.

    A department is what a queue's path organisation/department/user has before the user.
    """
    users = jobs["user"].fill_null("unknown").gather(submissions)
    counts = users.value_counts(sort=False)["count"].to_numpy()
    exponent = fit_zipf(counts)
    path = pl.col("queue").str.split("/")
    deep = jobs.filter(path.list.len() >= 3).select(path.list.slice(0, 2).list.join("/"))
    departments = min(max(1, deep.to_series().n_unique()), len(counts))
    return Queues(users=len(counts), exponent=exponent.value, departments=departments), exponent


def fit_diurnal(arrivals: np.ndarray, period: float = DAY) -> tuple[Diurnal | None, Estimate | None]:
    """Return the daily wave of job *arrivals*; None when they span under two periods or chance explains the wave.

    The first harmonic over whole periods; arrivals that come in clumps count as fewer (by the variance of gaps).
    """
    periods = int((arrivals[-1] - arrivals[0]) // period)
    if periods < 2:
        return None, None
    within = arrivals[arrivals < arrivals[0] + periods * period]
    angles = 2 * np.pi * within / period
    sine, cosine = 2 * float(np.sin(angles).mean()), 2 * float(np.cos(angles).mean())
    gaps = np.diff(within)
    telling = len(within) / max(1.0, float(gaps.var() / gaps.mean() ** 2))
    amplitude, spread = float(np.hypot(sine, cosine)), 1.96 * float((2 / telling) ** 0.5)
    estimate = Estimate(amplitude, max(0.0, amplitude - spread), amplitude + spread)
    if telling * amplitude**2 / 2 < CHANCE:
        return None, estimate
    phase = float(np.arctan2(-cosine, sine)) / (2 * np.pi) * period % period
    return Diurnal(amplitude=min(amplitude, AMPLITUDE_MAX), period=period, phase=phase), estimate


def fit_stages(workload: Workload) -> tuple[Stages | None, Estimate]:
    """Return the share of jobs whose stages wait for each other, and the share of them that end in a fan-in."""
    waits = pl.col("depends_on").list.len()
    by_job = workload.stages.group_by("job", maintain_order=True).agg(
        pl.len().alias("stages"), (waits > 0).any().alias("waits"), waits.last().alias("last"))
    staged = by_job.filter("waits")
    share = share_of(len(staged), len(by_job))
    if staged.is_empty():
        return None, share
    telling = staged.filter(pl.col("stages") > 2)  # of two stages a chain and a fan-in are the same
    fans = telling.filter(pl.col("last") == pl.col("stages") - 1)
    most = int(staged["stages"].max())  # type: ignore[arg-type]
    return Stages(share.value, max(2, most), len(fans) / len(telling) if len(telling) else 0.5), share


def fit_gangs(workload: Workload) -> float:
    """Return the share of the jobs whose tasks must start together; 0 where that is not recorded."""
    if "gang" not in workload.stages.columns:
        return 0.0
    return float(workload.stages.group_by("job").agg(pl.col("gang").any())["gang"].mean() or 0.0)  # type: ignore[arg-type]


def fit_failures(tasks: pl.DataFrame) -> tuple[Failures | None, dict[str, Estimate]]:
    """Return the shares of attempts that failed, and of tasks that were killed; None where no outcome is known.

    The kill of a service is its ordinary end, so that only tasks tell how many are killed before theirs.
    """
    if "outcome" not in tasks.columns:
        return None, {}
    known = tasks.filter(pl.col("outcome").is_in(["FINISH", "FAIL", "KILL"]))
    own = known.filter(kind="TASK")
    if known.is_empty():
        return None, {}
    fail = share_of(known.filter(outcome="FAIL").height, len(known))
    kill = share_of(own.filter(outcome="KILL").height, len(own)) if len(own) else Estimate(0.0)
    both = {"fail": fail, "kill": kill}
    if fail.value + kill.value == 0:
        return None, both
    return Failures(fail.value, min(kill.value, 1 - fail.value)), both
