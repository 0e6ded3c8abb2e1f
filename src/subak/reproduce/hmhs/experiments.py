"""The HMHS paper: its two figures measured here, each claim beside what comes out.

Fig. 1 is the makespan against the number of jobs, Fig. 2 against the share of slow machines. Past the paper: the same
against schedulers that a reader would ask for, and on the jobs of a real trace.
"""
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.reproduce.claims import Figure, Interval, Reproduction, choose_figures, judge_all
from subak.reproduce.hmhs.published import CLAIMS
from subak.reproduce.hmhs.study import ALL_SCHEDULERS, BOUND, SCHEDULERS, Bench, Case, Scale, interval, summary
from subak.workload.mapreduce import CLUSTERS, WORKLOADS


def figure_1(bench: Bench) -> Figure:
    """Return makespans against the number of jobs, for both workloads."""
    cases = [Case(workload, jobs) for workload in WORKLOADS for jobs in bench.scale.jobs]
    table = _measured(bench, "Fig. 1", cases)
    numbers: dict[str, float | Interval] = {**_extremes(table)}
    for workload in WORKLOADS:
        numbers |= {f"{workload}, {name}": value
                    for name, value in _extremes(table.filter(pl.col("workload") == workload)).items()}
    of_kind = {kind: table.filter(pl.col("workload") == kind).sort("jobs") for kind in WORKLOADS}
    for other in ("fifo", "r-hmhs"):
        single, hybrid = (_mean(of_kind[kind], f"below {other}") for kind in ("single", "hybrid"))
        numbers[f"single over hybrid, {other}"] = _less(single, hybrid)
        for kind, here in of_kind.items():
            numbers[f"{kind}, change below {other}"] = _less(_gain(here, f"below {other}", -1),
                                                             _gain(here, f"below {other}", 0))
    numbers["trend"] = min(numbers[f"{kind}, change below fifo"] for kind in WORKLOADS)
    numbers["most possible below fifo"] = float((1 - table[f"{BOUND} (s)"] / table["fifo (s)"]).max())  # type: ignore[arg-type]
    title = f"Makespan against the number of jobs on {bench.scale.machines} machines of each kind"
    return Figure("1", title, _worded(table.drop("cluster")), numbers, (), table)


def figure_2(bench: Bench) -> Figure:
    """Return makespans on the six clusters of Table 1."""
    cases = [Case(workload, bench.scale.cluster_jobs, cluster) for workload in WORKLOADS for cluster in CLUSTERS]
    table = _measured(bench, "Fig. 2", cases)
    of_kind = [table.filter(pl.col("workload") == kind) for kind in WORKLOADS]
    steps = [_less(_gain(here, "below fifo", place + 1), _gain(here, "below fifo", place))
             for here in of_kind for place in range(len(CLUSTERS) - 1)]
    numbers = {"cluster 6 below fifo": max(_gain(here, "below fifo", -1) for here in of_kind),
               "worst step": max(steps), **_extremes(table)}
    return Figure("2", f"Makespan of {bench.scale.cluster_jobs} jobs on clusters with more and more slow machines",
                  _worded(table.drop("jobs")), numbers, (), table)


def baselines(bench: Bench) -> Figure:
    """Return every scheduler's makespan above the bound, and below FIFO's."""
    rows = []
    cases = [Case(workload, jobs) for workload in WORKLOADS for jobs in bench.scale.baseline_jobs]
    for number, case in enumerate(cases):
        bench.notify(f"Baselines: {case.jobs} {case.workload} jobs", number / len(cases))
        times = bench.measure(ALL_SCHEDULERS, bench.scale.baseline_seeds, partial(bench.draw, case))
        rows += _baseline_rows(times, {"workload": case.workload, "jobs": case.jobs})
    points = pl.DataFrame(rows)
    return Figure("baselines", "Every scheduler against the bound that none can beat", _worded(points), {}, (), points)


def yahoo(bench: Bench) -> Figure:
    """Return the makespans of a trace's jobs. Raises InputError when there is none."""
    if bench.yahoo is None:
        raise InputError("--only yahoo: needs --jobs FOLDER, a workload of Hadoop's job history (subak convert rumen)")
    bench.notify("Jobs of a trace", 0.0)
    times = bench.measure(ALL_SCHEDULERS, bench.scale.seeds, bench.draw_yahoo)
    row = summary({name: times[name] for name in (*SCHEDULERS, BOUND)})
    numbers = {name.removesuffix(" (share)"): row[name] for name in row if name.startswith(("below", "above"))}
    jobs, tasks = len(bench.yahoo.jobs), len(bench.yahoo.tasks)
    points = pl.DataFrame(_baseline_rows(times, {}))
    return Figure("yahoo", f"{jobs} jobs of a trace, {tasks:,} tasks, on machines drawn as for Fig. 1",
                  _worded(points), numbers, (), points)


def _baseline_rows(times: dict[str, np.ndarray], facts: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for name in (each for each in times if each != BOUND):
        above, above_half = interval(times[name] / times[BOUND] - 1.0)
        under, under_half = interval(1.0 - times[name] / times["fifo"])
        rows.append({**facts, "scheduler": name, "makespan (s)": float(times[name].mean()),
                     "above the bound (share)": above, "above the bound ± (share)": above_half,
                     "below fifo (share)": under, "below fifo ± (share)": under_half})
    return rows


def _measured(bench: Bench, what: str, cases: list[Case]) -> pl.DataFrame:
    """Return a row a case."""
    rows = []
    for number, case in enumerate(cases):
        bench.notify(f"{what}: {case.jobs} {case.workload} jobs, cluster {case.cluster}", number / len(cases))
        times = bench.measure(SCHEDULERS, bench.scale.seeds, partial(bench.draw, case))
        rows.append({**case._asdict(), **summary(times)})
    return pl.DataFrame(rows)


def _worded(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with a mean and its interval in one column, in words."""
    plain = [name for name in table.columns if not name.endswith("(share)")]
    gains = [name for name in table.columns if name.endswith("(share)") and "±" not in name]
    return table.select(*plain, *(
        pl.Series(name.removesuffix(" (share)"), [
            f"{mean:.1%} ± {half:.1%}" for mean, half in table.select(name, name.replace(" (", " ± (")).iter_rows()])
        for name in gains))


def _extremes(table: pl.DataFrame) -> dict[str, Interval]:
    """Return the least and the largest mean of every comparison, with their intervals."""
    numbers = {}
    for name in (each for each in table.columns if each.startswith(("below", "above")) and "±" not in each):
        words = name.removesuffix(" (share)")
        found = [_gain(table, words, place) for place in range(len(table))]
        numbers[f"least {words}"], numbers[f"most {words}"] = min(found), max(found)
    return numbers


def _gain(table: pl.DataFrame, words: str, place: int) -> Interval:
    """Return a mean over seeds with its interval."""
    value, half = float(table[f"{words} (share)"][place]), float(table[f"{words} ± (share)"][place])
    return Interval(value, value - half, value + half)


def _mean(table: pl.DataFrame, words: str) -> Interval:
    """Return the mean of a column's means, whose seeds are drawn for each."""
    value = float(table[f"{words} (share)"].mean())  # type: ignore[arg-type]
    half = float(np.linalg.norm(table[f"{words} ± (share)"].to_numpy())) / len(table)
    return Interval(value, value - half, value + half)


def _less(one: Interval, other: Interval) -> Interval:
    """Return the difference of two means that have nothing in common."""
    value, half = one.value - other.value, float(np.hypot(one.value - one.low, other.value - other.low))
    return Interval(value, value - half, value + half)


FIGURES: dict[str, Callable[[Bench], Figure]] = {"1": figure_1, "2": figure_2, "baselines": baselines, "yahoo": yahoo}
DEFAULT = ("1", "2")


def chosen_figures(only: str | None, past_the_paper: bool, with_jobs: bool) -> list[str]:
    """Return the keys of the figures that are wanted. Raises InputError for one that does not exist."""
    every = [key for key in FIGURES if with_jobs or key != "yahoo"]
    default = [*DEFAULT, *(["yahoo"] if with_jobs else [])]
    return choose_figures(only, FIGURES, every if past_the_paper else default)


def reproduce(bench: Bench, keys: list[str]) -> Reproduction:
    """Run the experiments behind the figures named."""
    figures = tuple(FIGURES[key](bench) for key in keys)
    return Reproduction(figures, judge_all(CLAIMS, figures), _notes(bench.scale))


def _notes(scale: Scale) -> tuple[str, ...]:
    return (
        f"means over {scale.seeds} seeds, each with jobs, machines and speeds of its own; ± is half a 95 % interval "
        "(Student's t); a gain is the mean over the seeds of 1 - HMHS's makespan / the other's",
        "fifo is first-fit with backfill: the next map of the earliest job goes to the first map machine that is free, "
        "and so for reduces; the paper does not say which of several free machines is taken",
        "the bound is that of `subak simulate`: prices of machines prove that no schedule is shorter",
        "what the paper leaves open is chosen so: times are real numbers, V_ij is drawn for each job and machine by "
        "itself, and a slow machine of Table 1 is slow for all jobs",
    )
