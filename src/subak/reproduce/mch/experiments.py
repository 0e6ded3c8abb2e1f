"""The experiments of the MCH paper, each claim beside the result.

Fig. 4 is a simulation of six jobs under every order (mch_sharing.py); Fig. 5 the time that orders take on a pooled
machine (mch_loop.py). Past the paper: where the square root comes from, the tree alone, large trees, and federations
(mch_federation.py).
"""
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.reproduce.claims import Figure, Interval, Reproduction, choose_figures, judge_all
from subak.reproduce.mch import sharing
from subak.reproduce.mch.federation import federation
from subak.reproduce.mch.published import CLAIMS, PAPER_SHARES
from subak.reproduce.mch.study import Bench, Scale
from subak.reproduce.mch.timing import POOLED, Bout, Jobs, binary_tree, full_tree, jobs_of, time_all, time_full

SHARED = ("hdrf", "hdrf-fast", "mch", "mch-exact", "drf", "c-ch", "m-ch")  # Fig. 4
TIMED = ("hdrf", "hdrf-fast", "mch", "c-ch", "m-ch")  # Fig. 5
PAST = ("hdrf", "hdrf-fast", "mch", "mch-exact", "c-ch", "m-ch", "drf")
ALL = tuple(range(len(sharing.LEAVES)))
N11, N12, N21, N23 = 0, 1, 2, 4  # leaves of Fig. 4
JOB_TASKS_MAX = 30  # of Fig. 5: nine of ten jobs of the trace have no more
CONFIDENCE = 0.95
TIMING_ROUNDS = 5  # of Fig. 5, over which intervals are
IMPLEMENTATION = "implementation: H-DRF / hdrf-fast (times)"
ALGORITHM, ALGORITHM_PART = "algorithm: hdrf-fast / MCH (times)", "algorithm, of the logarithm (share)"
TREE_ROUNDS = 3  # the best of which is taken: orders in turn, so that none has a quieter machine than others


# Figure 4: shares over time


def figure_4(bench: Bench) -> Figure:
    """Return the shares of the six jobs in every phase and order, beside the exact ones."""
    scale, points, found = bench.scale, [], {}
    for number, order in enumerate(SHARED):
        bench.notify(f"Fig. 4: {order}", number / len(SHARED))
        shares = sharing.shares_under(order, scale.capacity, scale.tasks, bench.seed)
        points.append(sharing.over_time(order, shares))
        found[order] = {phase.active: phase for phase in sharing.phases(shares)}
    rows, errors = [], {order: [0.0] for order in SHARED}
    for active in found["hdrf"]:
        exact = sharing.exact_shares(active)
        rows.append(_share_row(active, "exact", exact))
        if active in PAPER_SHARES:
            rows.append(_share_row(active, "paper", np.array(PAPER_SHARES[active])))
        for order in SHARED:
            phase = found[order].get(active)
            if phase is not None:
                error = float(abs(phase.share - exact).max())
                errors[order].append(error)
                rows.append(_share_row(active, order, phase.share, phase) | {"largest error (share)": error})
    return Figure("4", f"Shares of six jobs of {scale.tasks:,} tasks on one machine of {scale.capacity} CPUs and "
                  f"{scale.capacity} GB", pl.DataFrame(rows), _share_numbers(found, errors), (), pl.concat(points))


def _share_row(active: tuple[int, ...], order: str, share: np.ndarray, phase: sharing.Phase | None = None) -> Any:
    times = {"from (s)": phase.begin if phase else None, "to (s)": phase.end if phase else None}
    held = {f"{sharing.node(leaf)} (share)": float(share[leaf]) if leaf in active else None for leaf in ALL}
    return {"jobs": sharing.name_of(active), "order": order, **times, **held, "largest error (share)": None}


def _share_numbers(found: dict[str, dict[tuple[int, ...], sharing.Phase]], errors: dict[str, list[float]]) -> Any:
    """Return the largest errors of each order, and MCH's shares as the paper speaks of them."""
    numbers = {f"{order} error": max(values) for order, values in errors.items()}
    nan = np.full(len(ALL), np.nan)
    for order in SHARED:
        full = found[order][ALL].share if ALL in found[order] else nan
        numbers[f"{order} paper"] = float(abs(full - PAPER_SHARES[ALL]).max())
        numbers[f"{order} ratio"] = float(full[N11] / full[N21])
    before = tuple(leaf for leaf in ALL if leaf != N11)
    after = tuple(leaf for leaf in before if leaf != N12)
    first, second = (found["mch"][active].share if active in found["mch"] else nan for active in (before, after))
    others = [leaf for leaf in after if leaf != N23]
    return numbers | {"rises": float(second[N23]), "others": float(abs(second - first)[others].max())}


# Figure 5: the time to schedule all tasks


def _jobs(bench: Bench, count: int) -> Jobs:
    jobs: Jobs = bench.once(f"jobs {count}", lambda: jobs_of(bench.google, count, JOB_TASKS_MAX, bench.seed))
    return jobs


def _timed(bench: Bench) -> pl.DataFrame:
    """Return the time of every order, tree and number of jobs, as far as there was time for it, in every round.

    Orders take turns, so that none has a quieter machine than others.
    """
    def make() -> pl.DataFrame:
        _compile(bench)
        rows: list[dict[str, Any]] = []
        last: dict[tuple[int, str], int] = {}  # the largest number of jobs that an order is timed at
        for number, count in product(range(TIMING_ROUNDS), bench.scale.jobs):
            bench.notify(f"Fig. 5: round {number + 1} of {TIMING_ROUNDS}, {count:,} jobs", 0.0)
            for levels, order in product(bench.scale.levels, TIMED):
                if count > last.get((levels, order), count):
                    continue
                bout = time_all(full_tree(levels), _jobs(bench, count), order)
                if bout.seconds > bench.scale.seconds_max:
                    last.setdefault((levels, order), count)
                rows.append({"round": number, "levels": levels, "order": order, "jobs": count, "tasks": bout.decisions,
                             "time (s)": bout.seconds, "not yet ended (share)": bout.alive})
        return pl.DataFrame(rows)
    table: pl.DataFrame = bench.once("timed", make)
    return table


def _medians(times: pl.DataFrame) -> pl.DataFrame:
    """Return the median over the rounds, where all of them have the point."""
    kept = times.group_by("levels", "order", "jobs", maintain_order=True).agg(
        pl.col("tasks").first(), pl.col("time (s)").median(), pl.col("not yet ended (share)").first(),
        pl.len().alias("rounds")).filter(pl.col("rounds") == TIMING_ROUNDS).drop("rounds")
    return kept.with_columns((pl.col("tasks") / pl.col("time (s)")).alias("decisions a second")).sort(
        pl.col("levels"), pl.col("order").replace_strict({order: place for place, order in enumerate(TIMED)}), "jobs")


def _of_rounds(times: pl.DataFrame, of_round: Callable[[pl.DataFrame], float]) -> Interval:
    """Return the mean over the rounds of what *of_round* makes of each, with its interval (Student's t)."""
    values = np.array([of_round(each) for each in times.partition_by("round", maintain_order=True)])
    half = (scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
            if values.size > 1 else float("nan"))
    return Interval(float(values.mean()), float(values.mean() - half), float(values.mean() + half))


def _compile(bench: Bench) -> None:
    """Compile the loop, and let the processor warm up."""
    bench.notify("Compiling the loop", 0.0)
    time_all(full_tree(2), _jobs(bench, bench.scale.jobs[0]), "mch")


def figure_5(bench: Bench) -> Figure:
    """Return how the total time grows with the number of jobs."""
    times, points = _timed(bench), _medians(_timed(bench))
    rows: list[dict[str, Any]] = []
    numbers: dict[str, float | Interval] = {}
    for levels in bench.scale.levels:
        here = times.filter(pl.col("levels") == levels)
        near = here.filter(pl.col("jobs") <= _reach(here))
        for order in TIMED:
            numbers[f"power {order}, {levels}"] = _of_rounds(here, partial(_power, order))
            numbers[f"near {order}, {levels}"] = _of_rounds(near, partial(_power, order))
            last = points.filter((pl.col("levels") == levels) & (pl.col("order") == order)).row(-1, named=True)
            rows.append({"levels": levels, "order": order,
                         "power of the jobs": _in_words(numbers[f"power {order}, {levels}"]),
                         "as far as H-DRF went": _in_words(numbers[f"near {order}, {levels}"]),
                         "largest point, jobs": last["jobs"], "its tasks": last["tasks"], "time (s)": last["time (s)"],
                         "decisions a second": last["decisions a second"],
                         "not yet ended (share)": last["not yet ended (share)"]})
        numbers[f"power of power, {levels}"] = _of_rounds(near, lambda each: _power("hdrf", each) / _power("mch", each))
        numbers[f"mch to collapses, {levels}"] = _of_rounds(here, partial(_mean_ratio, "mch", ("c-ch", "m-ch")))
    jobs = np.array(bench.scale.jobs, float)
    numbers["power q log q"] = exponent(jobs, jobs * np.log(jobs))
    title = "Total time to schedule all tasks, and how it grows with the number of jobs"
    return Figure("5", title, pl.DataFrame(rows), numbers, (), points)


def _reach(times: pl.DataFrame) -> int:
    """Return the largest number of jobs that H-DRF was timed at."""
    return int(times.filter(pl.col("order") == "hdrf")["jobs"].max())  # type: ignore[arg-type]


def _power(order: str, times: pl.DataFrame) -> float:
    """Return the growth exponent of an order's time in a round."""
    mine = times.filter(pl.col("order") == order)
    return exponent(mine["jobs"].to_numpy(), mine["time (s)"].to_numpy())


def _in_words(power: float | Interval) -> str:
    assert isinstance(power, Interval)
    return f"{power.value:.2f} ± {power.value - power.low:.2f}"


def exponent(size: np.ndarray, value: np.ndarray) -> float:
    """Return the slope of log *value* over log *size*, nan below 3 points."""
    if len(size) < 3:
        return float("nan")
    return float(scipy.stats.linregress(np.log(size), np.log(value)).slope)


def _mean_ratio(order: str, others: tuple[str, ...], times: pl.DataFrame) -> float:
    """Return the geometric mean of an order's times by the others', over the numbers of jobs."""
    wide = times.pivot("order", index="jobs", values="time (s)")
    ratios = [np.log((wide[order] / wide[other]).drop_nulls().to_numpy()) for other in others]
    return float(np.exp(np.concatenate(ratios).mean()))


# The square root: the algorithm, and the implementation


def root(bench: Bench) -> Figure:
    """Return how much of H-DRF's time by MCH's is its algorithm, and how much that it was computed anew every time."""
    times = _timed(bench)
    numbers = {name: _of_rounds(times, partial(_at_last, column)) for name, column in (
        ("implementation", IMPLEMENTATION), ("algorithm", ALGORITHM), ("algorithm share", ALGORITHM_PART))}
    numbers["power share"] = _of_rounds(times, _power_share)
    title = "The square root: H-DRF's time by MCH's, of which the implementation's part and the algorithm's"
    return Figure("root", title, _parts(_medians(times)), numbers)


def _parts(times: pl.DataFrame) -> pl.DataFrame:
    """Return H-DRF's time by MCH's at every point that H-DRF has, and its two parts."""
    wide = times.pivot("order", index=["levels", "jobs"], values="time (s)")
    return wide.filter(pl.col("hdrf").is_not_null()).select(
        "levels", "jobs", pl.col("hdrf").alias("H-DRF (s)"), pl.col("hdrf-fast").alias("hdrf-fast (s)"),
        pl.col("mch").alias("MCH (s)"), (pl.col("hdrf") / pl.col("mch")).alias("H-DRF / MCH (times)"),
        (pl.col("hdrf") / pl.col("hdrf-fast")).alias(IMPLEMENTATION),
        (pl.col("hdrf-fast") / pl.col("mch")).alias(ALGORITHM),
        (pl.col("hdrf-fast") / pl.col("mch")).log().truediv((pl.col("hdrf") / pl.col("mch")).log())
        .alias(ALGORITHM_PART)).sort("levels", "jobs")


def _at_last(column: str, times: pl.DataFrame) -> float:
    """Return the median over the trees, at the largest number of jobs of each."""
    return median(_parts(times).group_by("levels", maintain_order=True).last()[column].to_list())


def _power_share(times: pl.DataFrame) -> float:
    """Return the part of the difference of the growth exponents that is left when H-DRF updates paths only."""
    parts = []
    for here in times.partition_by("levels", maintain_order=True):
        near = here.filter(pl.col("jobs") <= _reach(here))
        slow, fast, mch = (_power(order, near) for order in ("hdrf", "hdrf-fast", "mch"))
        parts.append((fast - mch) / (slow - mch))
    return median(parts)


# Past the paper


def tree_alone(bench: Bench) -> Figure:
    """Return what the queues cost by themselves: one job a queue, as the paper counts q for Fig. 5a."""
    _compile(bench)
    cases = list(product(bench.scale.tree_levels, TIMED))
    time = dict.fromkeys(cases, np.inf)
    for number, (levels, order) in product(range(TREE_ROUNDS), cases):
        bench.notify(f"The tree alone: {levels} levels, {order}, round {number + 1}", 0.0)
        count = bench.scale.tree_decisions
        jobs = _jobs(bench, 2**levels)
        many = jobs._replace(tasks=np.full(2**levels, -(-2 * count // 2**levels)))
        bout = time_full(full_tree(levels), many, order, count, bench.scale.seconds_max / TREE_ROUNDS)
        time[levels, order] = min(time[levels, order], bout.seconds / bout.decisions)
    rows = [{"levels": levels, "nodes": 2 ** (levels + 1) - 2, "order": order, "a decision (s)": cost,
             "by MCH's (times)": cost / time[levels, "mch"]} for (levels, order), cost in time.items()]
    numbers = {}
    for order in TIMED:
        mine = [row for row in rows if row["order"] == order]
        size, cost = (np.array([row[name] for row in mine], float) for name in ("nodes", "a decision (s)"))
        numbers[f"power {order}"] = exponent(size, cost)
    numbers["saved, 2 levels"] = 1 - time[2, "mch"] / time[2, "hdrf"]
    return Figure("tree", "The tree alone: one job a queue, what a decision costs", pl.DataFrame(rows), numbers)


def large(bench: Bench) -> Figure:
    """Return decisions a second in a tree of ten levels with very many jobs."""
    _compile(bench)
    scale, rows = bench.scale, []
    parent = binary_tree(scale.large_queues + 1)
    for order in PAST:
        bench.notify(f"Large: {order}", 0.0)
        bout: Bout = time_full(parent, _jobs(bench, scale.large_jobs), order, 2 * scale.large_jobs, scale.seconds_max)
        rows.append({"order": order, "decisions a second": bout.decisions / bout.seconds,
                     "a decision (s)": bout.seconds / bout.decisions, "decisions measured": bout.decisions,
                     "not yet ended (share)": bout.alive})
    levels = int(np.log2(scale.large_queues + 1)) + 1
    title = f"{scale.large_jobs:,} jobs in {scale.large_queues:,} queues, a binary tree of {levels} levels"
    rate = {str(row["order"]): float(row["decisions a second"]) for row in rows}  # type: ignore[arg-type]
    return Figure("large", title, pl.DataFrame(rows), {f"rate {order}": value for order, value in rate.items()})


FIGURES: dict[str, Callable[[Bench], Figure]] = {
    "4": figure_4, "5": figure_5, "root": root, "tree": tree_alone, "large": large, "federation": federation,
}
DEFAULT = ("4", "5", "root")


def chosen_figures(only: str | None, past_the_paper: bool) -> list[str]:
    """Return the keys of the figures that are wanted. Raises InputError for one that does not exist."""
    return choose_figures(only, FIGURES, FIGURES if past_the_paper else DEFAULT)


def reproduce(bench: Bench, keys: Iterable[str]) -> Reproduction:
    """Run the experiments behind the figures named."""
    figures = tuple(FIGURES[key](bench) for key in keys)
    return Reproduction(figures, judge_all(CLAIMS, figures), _notes(bench.scale))


def _notes(scale: Scale) -> tuple[str, ...]:
    return (
        "Fig. 4: the paper says neither when jobs arrive nor how long tasks run. Here n1's jobs arrive at 0 s, n2's at "
        f"{sharing.ARRIVAL_S[N21]:g} s, n3's at {sharing.ARRIVAL_S[-1]:g} s; tasks run {sharing.TASK_S[0]:g} s (cpu) "
        f"and {sharing.TASK_S[1]:g} s (memory) in the mean, each {sharing.SPREAD:.0%} more or less at most, so that "
        "n1,1 leaves at about 600 s and n1,2 at about 790 s. A job leaves when its last task starts",
        f"Fig. 4: a share is the mean from {sharing.SETTLED_S:g} s after the last change, when all tasks that ran "
        f"then have ended, to the next change; phases with less than {sharing.WINDOW_S:g} s of that are not shown; "
        "exact are the fluid shares of H-DRF with these jobs for ever; phases are H-DRF's, and an order without such "
        "a phase is missing there",
        "Fig. 5: jobs are drawn from those of the Google trace with replacement, and dealt in turn to the lowest "
        "queues of a full binary tree; 2 levels have 4 of them, as in the paper. A job has its tasks, "
        f"{JOB_TASKS_MAX} at most, each asking for what most of them do. All jobs are there at the beginning. One "
        f"machine holds {POOLED:.0%} of what all tasks ask; where a task does not fit, the one that has run longest "
        "ends first",
        "Fig. 5: times are of the loop, flattening of the tree included, compiling and laying out the tree not; of "
        f"short ones the best of several. An order that took more than {scale.seconds_max:g} s for a point gets no "
        f"larger one. Exponents are slopes of logarithms, means over {TIMING_ROUNDS} rounds in which the orders take "
        "turns, with 95 % intervals (Student's t). Jobs that have ended stay in the tree, "
        "and H-DRF works them out again with the others: not yet ended says which part of the jobs it would have had "
        "to",
        "the tree alone, and large trees: the machine is full, and of parts of equally many decisions the fastest "
        "counts; H-DRF, which has time for few, is measured before jobs end",
        "hdrf works out every node anew after each start and each end, as H-DRF is defined; hdrf-fast makes the same "
        "choices (tests compare them one by one) and works out the path from the job to the root; mch likewise, where "
        "the paper flattens the whole tree whenever a job comes or leaves, O(q) each time",
        "the square root cannot be one of times: which number's root it is depends on the unit. It can be one of "
        "growth: exponents of 2 and 1; these are compared",
        "the federation's unfairness is as for Megha: half the sum over queues of |share used - share entitled|, "
        "averaged over the time in which a queue wants more than it uses; a fair order chooses among the queues of "
        "one global master only: with ten masters each queue has its own, and turns change nothing; with three, two "
        "queues share one. hdrf-fast and mch choose alike where all queues are below the root",
    )
