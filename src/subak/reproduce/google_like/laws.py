"""Laws of makespans: the paper's figures beside ours, and the reason for the log-normal distance.

The tasks of a job are alike, so that many tasks of few jobs are few draws: how far such a sample is from a log-normal
law, though the law is true, is found by drawing. The mean logarithm of a job is normal, and those of its tasks around
it, with the variances that the sample has (one-way analysis of variance), and jobs are as large as they are there.
"""
from typing import NamedTuple

import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.reproduce.claims import Why
from subak.reproduce.google_like import published as paper
from subak.reproduce.google_like.measured import ENDINGS, Measured
from subak.reproduce.google_like.reasons import Without, chance, cut_draws, mean_by_job, unseen
from subak.reproduce.google_like.row import Row, near
from subak.workload.google_like.goodness import Comparison, compare, distance, log_normal
from subak.workload.google_like.parameters import Parameters

PAPER_LAW = "paper's law"
DISTANCE = "log-normal KS"
LAW_DRAWS, LEVELS = 100, (0.025, 0.5, 0.975)
FRESH, FEW, CUT = "KS without those that stood", "KS expected with so few jobs", "KS where the trace ends"
COEFFICIENT, LEAST, PARETO_KS = "Pareto coefficient", "Pareto scale", "Pareto KS"
AS_PUBLISHED = "with the paper's scale"


class Apart(NamedTuple):
    """What the distance of a sample from its log-normal law is made of."""

    fresh: float  # of the tasks that came while the trace was recorded
    low: float  # what it would be if the law were true, for jobs as large and as alike: 95 % of the draws
    median: float
    high: float

    @property
    def why(self) -> Why | None:
        """Why the distance is not the paper's, where these numbers tell."""
        if self.fresh > self.high:
            return None
        return Why(f"without the tasks that stood when the trace began it is {self.fresh:.3f}, and among jobs as few "
                   f"and as alike a true log-normal law is {self.low:.3f} to {self.high:.3f} away",
                   f"the lines {FRESH}, {FEW}")


def law_rows(measured: Measured, comparisons: dict[str, Comparison], made: dict[str, np.ndarray],
             seed: int) -> list[Row]:
    """Return section IV-C: the laws' parameters and distances, and what the distances are made of."""
    rows: list[Row] = []
    for ending in ENDINGS:
        drawn = law_figures(compare(ending, made[ending]))
        tasks = measured.tasks.filter(pl.col("ended").eq(ending) & (pl.col("makespan") > 0))
        if ending not in comparisons:
            rows += [Row("KS", f"{ending}: {name}", figure, None, drawn[name])
                     for name, figure in paper.LAWS[ending].items()]
            continue
        rows += _rows_of(ending, tasks, comparisons[ending], drawn, measured.rooms, seed)
    return rows


def _rows_of(ending: str, tasks: pl.DataFrame, found: Comparison, drawn: dict[str, float], rooms: np.ndarray,
             seed: int) -> list[Row]:
    """Return the paper's lines of one ending, each with why it differs, and those that show that."""
    laws, seen, apart = paper.LAWS[ending], law_figures(found), taken_apart(tasks, seed)
    lines = _shown(ending, tasks, found, apart, rooms, seed)
    by_name = {row.what.removeprefix(f"{ending}: "): row for row in lines}
    whys = {**_law_reasons(tasks, laws, seen, rooms, seed), DISTANCE: None if apart is None else apart.why,
            LEAST: _least_reason(tasks, laws, seen[LEAST]),
            **{name: Why("it follows from the least makespan, which is the law's scale",
                         f"the line {name} {AS_PUBLISHED}")
               if near(by_name[f"{name} {AS_PUBLISHED}"].measured or 0.0, laws[name]) else None
               for name in (COEFFICIENT, PARETO_KS)}}
    law = Parameters().tasks if ending == "FINISH" else Parameters().services
    tried = "" if apart is None or whys[DISTANCE] else (
        f"jobs as few and as alike make at most {apart.high:.3f} of it, what the trace's end cuts off makes "
        f"{by_name[CUT].generated or 0.0:.3f}" if CUT in by_name else
        f"jobs as few and as alike make at most {apart.high:.3f} of it")
    notes = {DISTANCE: tried, "mu": f"generated: ln({law.mass:g} / {law.disparity:g}) is {law.mu:.2f}",
             "sigma": f"generated: sqrt(2 ln {law.disparity:g}) is {law.sigma:.2f}"}
    return [*(Row("KS", f"{ending}: {name}", figure, seen[name], drawn[name], whys[name], notes.get(name, ""))
              for name, figure in laws.items()), *lines]


def _shown(ending: str, tasks: pl.DataFrame, found: Comparison, apart: Apart | None, rooms: np.ndarray,
           seed: int) -> list[Row]:
    """Return the lines that show why others differ."""
    laws, values = paper.LAWS[ending], np.sort(tasks["makespan"].to_numpy())
    logs, scale = np.log(values), laws[LEAST]
    coefficient = float(1 / (logs.mean() - np.log(scale)))
    published = scipy.stats.pareto(b=coefficient, loc=0.0, scale=scale)
    rows = [] if apart is None else [
        Row("KS", f"{ending}: {FRESH}", None, apart.fresh, None, None,
            "of the tasks that came while the trace was recorded"),
        Row("KS", f"{ending}: {FEW}", None, apart.median, None, None,
            f"the median of {LAW_DRAWS} draws in which the law is true, with jobs as large and as alike; 95 % of them "
            f"are from {apart.low:.3f} to {apart.high:.3f}")]
    if rooms.size:
        cut = log_normal_distance(cut_draws(laws["mu"], laws["sigma"], rooms, (seed, 12)))
        rows.append(Row("KS", f"{ending}: {CUT}", None, None, cut, None,
                        "of draws of the paper's law, those that are no longer than the time left to a task"))
    return [*rows,
            Row("KS", f"{ending}: {COEFFICIENT} {AS_PUBLISHED}", laws[COEFFICIENT], coefficient, None, None,
                "1 / (mean(ln x) - ln scale)"),
            Row("KS", f"{ending}: {PARETO_KS} {AS_PUBLISHED}", laws[PARETO_KS], distance(values, published)),
            Row("KS", f"{ending}: KS of a Pareto law from 0", None, found.law("Pareto from 0").distance, None, None,
                "not in the paper: the same law, not tied to the least value"),
            Row("KS", f"{ending}: KS of the paper's own log-normal", None, found.law(PAPER_LAW).distance, None, None,
                "with the paper's mu and sigma")]


def _law_reasons(tasks: pl.DataFrame, laws: dict[str, float], seen: dict[str, float], rooms: np.ndarray,
                 seed: int) -> dict[str, Why | None]:
    """Return why mu and sigma are not the paper's."""
    mean, error = mean_by_job(tasks, pl.col("makespan").log())
    by_chance = {"mu": chance(mean or 0.0, laws["mu"], error), "sigma": None}
    fresh = tasks.filter(~pl.col("stood"))
    if len(fresh) < 2 or not rooms.size:
        return by_chance
    logs, cut = np.log(fresh["makespan"].to_numpy()), np.log(cut_draws(laws["mu"], laws["sigma"], rooms, (seed, 12)))
    of_fresh = mean_by_job(fresh, pl.col("makespan").log())[1]
    others = {"mu": Without(float(logs.mean()), float(cut.mean()), of_fresh),
              "sigma": Without(float(logs.std()), float(cut.std()))}
    return {name: by_chance[name] or unseen(seen[name], laws[name], others[name]) for name in others}


def _least_reason(tasks: pl.DataFrame, laws: dict[str, float], least: float) -> Why | None:
    """Return whether the least makespan is what the least of so many draws of the paper's log-normal law may be.

    Tasks of a job are alike: so many are at least as many as there are jobs, at most as there are tasks.
    """
    counts = len(tasks), tasks["job"].n_unique()
    low, high = (float(np.exp(laws["mu"] + laws["sigma"] * scipy.stats.norm.ppf(1 - level ** (1 / count))))
                 for level, count in zip((1 - LEVELS[0], LEVELS[0]), counts, strict=True))
    if not low <= least <= high:
        return None
    return Why("it is the least makespan, and the least of so few is larger: of as many draws of the paper's "
               f"log-normal law as there are tasks, or jobs, it is {low:.3g} to {high:.3g} s",
               f"arithmetic: {counts[0]:,} tasks, {counts[1]:,} jobs")


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
    """Return the same log-normal laws over every attempt, whatever the number of events of its task.

    The paper's are of other tasks, so that nothing is judged.
    """
    rows = []
    for ending, values in attempts.items():
        if len(values) > 1 and float(values.min()) < float(values.max()):
            logs = np.log(values)
            figures = {"mu": float(logs.mean()), "sigma": float(logs.std()), "median (s)": float(np.median(values)),
                       DISTANCE: log_normal_distance(values)}
            rows += [Row("KS", f"{ending}, every attempt: {name}", None, figure, None, None,
                         "not in the paper, which takes tasks of three events only: each attempt of any task")
                     for name, figure in figures.items()]
    return rows


def law_figures(comparison: Comparison) -> dict[str, float]:
    """Return the figures of section IV-C of a sample."""
    normal, pareto = comparison.law("log-normal"), comparison.law("Pareto from the least")
    return {"mu": float(np.log(normal.parameters["scale"])), "sigma": normal.parameters["s"],
            DISTANCE: normal.distance, "Pareto coefficient": pareto.parameters["b"],
            "Pareto scale": pareto.parameters["scale"], "Pareto KS": pareto.distance}
