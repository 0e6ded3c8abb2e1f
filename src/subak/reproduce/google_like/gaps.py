"""Gaps between tasks: the paper's mean and law beside ours, and why no Pareto law is near."""
import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.reproduce.claims import Why
from subak.reproduce.google_like import published as paper
from subak.reproduce.google_like.laws import PAPER_LAW
from subak.reproduce.google_like.measured import Measured
from subak.reproduce.google_like.reasons import chance
from subak.reproduce.google_like.row import Row, near
from subak.workload.google_like.goodness import Comparison, distance

LONG_S, AT_ONCE_S = 10.0, 1e-3
LOG_SHAPES_LESS_1 = -18.0, 5.0  # of Pareto laws whose mean there is
TASKS = sum(paper.EVENT_COUNTS.values())  # of the month, by Table I
BY_TABLE_1 = paper.MONTH_S / TASKS  # s


def gap_rows(measured: Measured, made: np.ndarray, comparisons: dict[str, Comparison]) -> list[Row]:
    """Return section IV-A; *made* are the gaps that the paper's generator draws."""
    gaps = measured.gaps
    if not gaps.size:
        return [Row("KS", "mean gap between tasks (s)", paper.GAP_MEAN, None, float(made.mean()))]
    job = measured.arrivals["job"].to_numpy()
    at_once, of_one_job = gaps < AT_ONCE_S, job[1:] == job[:-1]
    rows = [
        *_mean_rows(measured.arrivals, gaps, float(made.mean())),
        *_submit_rows(measured.submits),
        Row("KS", "gaps over 10 s (share; the paper: very few)", None, float((gaps > LONG_S).mean()),
            float((made > LONG_S).mean())),
        Row("KS", "gaps under 1 ms (share)", None, float(at_once.mean()), float((made < AT_ONCE_S).mean())),
    ]
    if at_once.any():
        rows.append(Row("KS", "of these, between tasks of one job (share)", None, float(of_one_job[at_once].mean())))
    return rows + (_law_rows(gaps[gaps > 0], comparisons["gaps"]) if "gaps" in comparisons else [])


def _mean_rows(arrivals: pl.DataFrame, gaps: np.ndarray, made: float) -> list[Row]:
    """Return the mean gap beside the paper's two: the one that it states, and the one that its Table I makes."""
    mean = float(gaps.mean())
    by_chance = chance(mean, BY_TABLE_1, mean * _error(arrivals), " s")
    agrees = near(mean, BY_TABLE_1) or by_chance is not None
    disagreement = (f"the paper's figures do not agree: in 29 days {TASKS:,} tasks (Table I) are {BY_TABLE_1:.4f} s "
                    f"apart, and {paper.MONTH_S / paper.GAP_MEAN / 1e6:.1f} million would be {paper.GAP_MEAN:g} s")
    line = "mean gap between tasks, by Table I"
    return [Row("KS", "mean gap between tasks (s)", paper.GAP_MEAN, mean, made,
                Why(disagreement, f"the line {line}") if agrees else None, "" if agrees else disagreement),
            Row("KS", f"{line} (s)", BY_TABLE_1, mean, None, by_chance)]


def _submit_rows(submits: pl.DataFrame | None) -> list[Row]:
    if submits is None or len(submits) < 2:
        return []
    mean = float(np.diff(submits["time"].to_numpy()).mean())
    why = chance(mean, paper.GAP_MEAN, mean * _error(submits), " s")
    return [Row("KS", "mean gap between SUBMIT events (s)", paper.GAP_MEAN, mean, None, why)]


def _error(arrivals: pl.DataFrame) -> float:
    """Return the standard error of a mean gap, as a share of it, if jobs with as many tasks come as a Poisson process.

    The number of tasks in a time has then the variance of the sum of the squares of the sizes of jobs.
    """
    sizes = arrivals.group_by("job").len()["len"].to_numpy().astype(np.float64)
    return float(np.sqrt((sizes**2).sum()) / sizes.sum())


def _law_rows(gaps: np.ndarray, found: Comparison) -> list[Row]:
    ordered, mean, best = np.sort(gaps), float(gaps.mean()), found.law("Pareto from 0")
    nearest = scipy.optimize.minimize_scalar(
        lambda log: distance(ordered, scipy.stats.lomax(c=1 + np.exp(log), loc=0.0, scale=np.exp(log) * mean)),
        method="bounded", bounds=LOG_SHAPES_LESS_1, options={"xatol": 0.01})
    shape = best.parameters["c"]
    its_mean = "infinite" if best.numbers.mean is None else f"{best.numbers.mean:.3g} s"
    return [
        Row("KS", "KS of the paper's Pareto law of gaps", None, found.law(PAPER_LAW).distance),
        Row("KS", "KS of the nearest Pareto law with the mean of these gaps", None, float(nearest.fun), None,
            None, f"of all shapes above 1; its own is 1 + {np.exp(nearest.x):.2g}"),
        Row("KS", "KS of the Pareto law of greatest likelihood", None, best.distance, None, None,
            f"its shape is {shape:.3g}, so that its mean is {its_mean}"),
    ]
