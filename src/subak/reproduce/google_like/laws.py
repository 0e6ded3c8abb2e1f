"""The laws of makespans: the paper's figures beside ours, and why the distance of a log-normal law is what it is.

The tasks of a job are alike, so that many tasks of few jobs are few draws: how far such a sample is from a log-normal
law, though the law is true, is found by drawing. The mean logarithm of a job is normal, and those of its tasks around
it, with the variances that the sample has (one-way analysis of variance), and jobs are as large as they are there.
"""
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.reproduce.claims import UNEXPLAINED
from subak.reproduce.google_like import published as paper
from subak.reproduce.google_like.measured import ENDINGS, Measured
from subak.reproduce.google_like.row import Row
from subak.workload.google_like.goodness import Comparison, compare, distance, log_normal

PAPER_LAW = "paper's law"
DISTANCE = "log-normal KS"
LAW_DRAWS, LEVELS = 100, (0.025, 0.5, 0.975)
REASONS = {
    "mu": "generated: ln(mass / disparity), not the fitted mu",
    "sigma": "generated: sqrt(2 ln disparity), above the fitted sigma",
    "Pareto coefficient": "1 / mean(ln(x / least)): it follows from the least makespan",
    "Pareto scale": "the least makespan: the more tasks are read, the less",
    "Pareto KS": "the law starts at the least makespan, whatever that is",
}


class Apart(NamedTuple):
    """What the distance of a sample from its log-normal law is made of."""

    fresh: float  # of the tasks that came while the trace was recorded
    low: float  # what it would be if the law were true, for jobs as large and as alike: 95 % of the draws
    median: float
    high: float

    @property
    def reason(self) -> str:
        """Why the distance is not the paper's, as far as these numbers tell."""
        because = f"without the tasks that stood when the trace began it is {self.fresh:.3f} (the next line)"
        if self.fresh > self.high:
            return f"{because}; the rest is {UNEXPLAINED}: jobs as few and as alike make at most {self.high:.3f} of it"
        return (f"{because}, and among jobs as few and as alike a true log-normal law is {self.low:.3f} to "
                f"{self.high:.3f} away (the line after it)")


def law_rows(measured: Measured, comparisons: dict[str, Comparison], made: dict[str, np.ndarray],
             seed: int) -> list[Row]:
    """Return section IV-C: the laws' parameters and distances, and what the distances are made of."""
    rows: list[Row] = []
    for ending in ENDINGS:
        found = comparisons.get(ending)
        seen, drawn = {} if found is None else law_figures(found), law_figures(compare(ending, made[ending]))
        apart = None if found is None else taken_apart(measured.tasks.filter(ended=ending), seed)
        reasons = {**REASONS, DISTANCE: UNEXPLAINED if apart is None else apart.reason}
        rows += [Row("KS", f"{ending}: {name}", figure, seen.get(name), drawn.get(name), reasons[name])
                 for name, figure in paper.LAWS[ending].items()]
        rows += [] if apart is None else [
            Row("KS", f"{ending}: KS without those that stood", None, apart.fresh, None,
                "of the tasks that came while the trace was recorded"),
            Row("KS", f"{ending}: KS expected with so few jobs", None, apart.median, None,
                f"the median of {LAW_DRAWS} draws in which the law is true, with jobs as large and as alike; 95 % of "
                f"them are from {apart.low:.3f} to {apart.high:.3f}")]
        rows += [] if found is None else [
            Row("KS", f"{ending}: KS of a Pareto law from 0", None, found.law("Pareto from 0").distance, None,
                "not in the paper: the same law, not tied to the least value"),
            Row("KS", f"{ending}: KS of the paper's own log-normal", None, found.law(PAPER_LAW).distance, None,
                "with the paper's mu and sigma")]
    return rows


def taken_apart(tasks: pl.DataFrame, seed: int) -> Apart | None:
    """Take the distance of tasks (makespan, job, stood) apart; None where too few came while the trace was recorded."""
    fresh = tasks.filter(~pl.col("stood") & (pl.col("makespan") > 0)).with_columns(log=pl.col("makespan").log())
    jobs = fresh.group_by("job", maintain_order=True).agg(
        tasks=pl.len(), mean=pl.col("log").mean(), squares=((pl.col("log") - pl.col("log").mean()) ** 2).sum())
    if len(jobs) < 2 or len(fresh) == len(jobs):
        return None
    sizes = jobs["tasks"].to_numpy()
    within = float(jobs["squares"].sum()) / (len(fresh) - len(jobs))
    around = float((sizes * (jobs["mean"].to_numpy() - float(fresh["log"].mean())) ** 2).sum()) / (len(jobs) - 1)  # type: ignore[arg-type]
    size = (sizes.sum() - (sizes ** 2).sum() / sizes.sum()) / (len(jobs) - 1)
    random = np.random.default_rng((seed, 10))
    of_jobs, of_tasks = np.sqrt(max((around - within) / size, 0.0)), np.sqrt(within)
    found = [log_normal_distance(np.exp(np.repeat(random.normal(0.0, of_jobs, len(jobs)), sizes)
                                        + random.normal(0.0, of_tasks, len(fresh)))) for _ in range(LAW_DRAWS)]
    return Apart(log_normal_distance(fresh["makespan"].to_numpy()), *np.quantile(found, LEVELS).tolist())


def log_normal_distance(values: np.ndarray) -> float:
    """Return the distance of *values* from the log-normal law of greatest likelihood."""
    return distance(np.sort(values), log_normal(values))


def attempt_rows(attempts: dict[str, np.ndarray]) -> list[Row]:
    """Return the same log-normal laws over every attempt, whatever the number of events of its task."""
    rows = []
    for ending, values in attempts.items():
        if len(values) > 1 and float(values.min()) < float(values.max()):
            logs = np.log(values)
            figures = {"mu": float(logs.mean()), "sigma": float(logs.std()), "median (s)": float(np.median(values)),
                       DISTANCE: log_normal_distance(values)}
            known = {**paper.LAWS[ending], "median (s)": paper.MAKESPANS[ending]["All"][3]}
            rows += [Row("KS", f"{ending}, every attempt: {name}", known[name], figure, None,
                         "the paper takes tasks of three events only; here each attempt of any task counts")
                     for name, figure in figures.items()]
    return rows


def law_figures(comparison: Comparison) -> dict[str, float]:
    """Return the figures of section IV-C of a sample."""
    normal, pareto = comparison.law("log-normal"), comparison.law("Pareto from the least")
    return {"mu": float(np.log(normal.parameters["scale"])), "sigma": normal.parameters["s"],
            DISTANCE: normal.distance, "Pareto coefficient": pareto.parameters["b"],
            "Pareto scale": pareto.parameters["scale"], "Pareto KS": pareto.distance}
