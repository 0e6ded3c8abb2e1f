"""Gives reasons why a part of the trace differs from the paper's month, where numbers show them.

Three are looked for: chance, told by jobs, whose tasks are alike; what stood when the trace began, which has been there
for longer than is known; and the trace's end, behind which nothing is seen that began before it.
"""
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.report.number_text import number_text
from subak.reproduce.claims import UNEXPLAINED, Why
from subak.reproduce.google_like.row import NEAR

Z_95 = 1.96  # standard errors on either side of what is measured
CUT_DRAWS = 200_000
FEW_JOBS = "the jobs are so few that chance may make as much of a difference"
THE_REST = f"; the rest is {UNEXPLAINED}"
BY_CHANCE = "; the rest may be chance, for the jobs are few"


class Without(NamedTuple):
    """A figure without what only a part of the trace has, beside what the paper's would then be."""

    fresh: float  # of the tasks that came while the trace was recorded
    cut: float  # of the paper's law, of which only is seen what ends before the trace does
    error: float = 0.0  # standard error by jobs of `fresh`


def mean_by_job(tasks: pl.DataFrame, value: pl.Expr) -> tuple[float | None, float]:
    """Return the mean of a value over tasks, None without any, and its standard error if jobs were drawn."""
    if tasks.is_empty():
        return None, np.nan
    by_job = tasks.group_by("job").agg(sum=value.cast(pl.Float64).sum(), tasks=pl.len().cast(pl.Float64))
    mean, jobs = float(by_job["sum"].sum()) / len(tasks), len(by_job)
    squares = float(((by_job["sum"] - mean * by_job["tasks"]) ** 2).sum())
    return mean, float(np.sqrt(squares * jobs / (jobs - 1)) / len(tasks)) if jobs > 1 else np.nan


def share_by_job(tasks: pl.DataFrame, is_one: pl.Expr) -> tuple[float | None, float]:
    """Return the share of tasks of a kind, and its standard error by jobs, as `mean_by_job` does.

    Where no job has any of them, or nothing else, it may be of 3 jobs by the number of jobs (the rule of three).
    """
    share, error = mean_by_job(tasks, is_one)
    of_nobody = 3.0 / Z_95 / max(tasks["job"].n_unique(), 1)
    return share, of_nobody if share in {0.0, 1.0} else error


def chance(measured: float, published: float, error: float, unit: str = "") -> Why | None:
    """Return whether chance may be why a mean is not the paper's; *error* is its standard error by jobs."""
    if not np.isfinite(error) or abs(measured - published) > Z_95 * error:
        return None
    return Why(FEW_JOBS, f"arithmetic: {Z_95} standard errors by jobs are {number_text(Z_95 * error)}{unit}")


def cut_draws(mu: float, sigma: float, rooms: np.ndarray, seed: tuple[int, ...]) -> np.ndarray:
    """Return draws of a log-normal law, those that are no longer than the room of the task that each is drawn for.

    *rooms* is float64[task], seconds that the trace still shows when it starts.
    """
    random = np.random.default_rng(seed)
    drawn = np.exp(random.normal(mu, sigma, CUT_DRAWS))
    return drawn[drawn <= random.choice(rooms, CUT_DRAWS)]


def unseen(measured: float, published: float, of: Without | None) -> Why | None:
    """Return whether what stood when the trace began, and what ends behind it, make the difference, or most of it.

    All figures are above 0 but that of a single task's deviation. Most is more than half, by ratios.
    """
    if of is None or min(measured, published, of.fresh, of.cut) <= 0:
        return None
    all_of_it = abs(of.fresh - of.cut) <= max(NEAR * of.cut, Z_95 * of.error)
    if not all_of_it and abs(np.log(of.fresh / of.cut)) > abs(np.log(measured / published)) / 2:
        return None
    said = (f"without the tasks that stood when the trace began it is {number_text(of.fresh)}, and a log-normal law "
            f"with the paper's figures has {number_text(of.cut)} if only is seen what ends before the trace does")
    near = abs(of.fresh - of.cut) <= NEAR * of.cut
    return Why(said + ("" if near else BY_CHANCE if all_of_it else THE_REST),
               f"arithmetic: {CUT_DRAWS:,} draws of the law, each with the time left to a task")


def without(measured: float, published: float, other: float, room: float, words: str, shown: str) -> Why | None:
    """Return whether leaving something out, which gives *other*, makes a figure the paper's within *room*, or nearly.

    *words* say what is left out, *shown* where *other* is printed.
    """
    if abs(other - published) <= room:
        return Why(words, shown)
    return Why(words + THE_REST, shown) if abs(other - published) <= abs(measured - published) / 2 else None
