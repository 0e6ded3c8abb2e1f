"""The experiments of the HMHS paper: its two figures and each claim beside the result.

Fig. 1 is the makespan against the number of jobs, Fig. 2 against the share of slow machines. Past the paper: the same
against schedulers that a reader would ask for, and on the jobs of a real trace.
"""
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.locality import LEVELS
from subak.reproduce.claims import Figure, Interval, Reproduction, choose_figures, judge_all
from subak.reproduce.hmhs.published import CLAIMS, SOME_JOBS
from subak.reproduce.hmhs.study import (
    ALIKE,
    ALL_SCHEDULERS,
    BOUND,
    COMPLETION,
    DRAWN_SPEEDS,
    LOCAL_SCHEDULERS,
    SCHEDULERS,
    SLOW_READS,
    TRACE,
    Bench,
    Case,
    Scale,
    Trace,
    below,
    interval,
    knows_places,
    makespans,
    summary,
)
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
    some = of_kind["hybrid"].filter(jobs=SOME_JOBS)
    numbers[f"hybrid, {SOME_JOBS} below fifo-pri"] = _gain(some, "below fifo-pri", 0) if len(some) else float("nan")
    for other in ("fifo", "fifo-pri", "r-hmhs"):
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
    cases = [Case(workload, jobs) for workload in WORKLOADS for jobs in bench.scale.baseline_jobs]
    found = bench.measure("Baselines", cases, ALL_SCHEDULERS, bench.scale.baseline_seeds)
    points = pl.DataFrame([
        row for case, runs in zip(cases, found, strict=True)
        for row in _baseline_rows(makespans(runs), {"workload": case.workload, "jobs": case.jobs})])
    return Figure("baselines", "Every scheduler against the bound that none can beat", _worded(points), {}, (), points)


def yahoo(bench: Bench) -> Figure:
    """Return the makespans of a trace's jobs. Raises InputError when there is none."""
    jobs = _trace(bench, "yahoo").workload
    [runs] = bench.measure("Jobs of a trace", [Case(TRACE)], ALL_SCHEDULERS, bench.scale.seeds)
    times = makespans(runs)
    row = summary({name: times[name] for name in (*SCHEDULERS, BOUND)})
    numbers = {name.removesuffix(" (share)"): row[name] for name in row if name.startswith(("below", "above"))}
    points = pl.DataFrame(_baseline_rows(times, {}))
    title = f"{len(jobs.jobs)} jobs of a trace, {len(jobs.tasks):,} tasks, on machines drawn as for Fig. 1"
    return Figure("yahoo", title, _worded(points), numbers, (), points)


def locality(bench: Bench) -> Figure:
    """Return delay scheduling beside HMHS on a trace's own machines. Raises InputError where inputs are not known."""
    trace = _trace(bench, "locality")
    if trace.fleet is None or not knows_places(trace):
        raise InputError("--only locality: needs --jobs FOLDER with a fleet, and with tasks of which it is known where "
                         "their inputs lie")
    alike, slow = bench.measure("Locality", [Case(ALIKE), Case(SLOW_READS)], LOCAL_SCHEDULERS, 1)
    [drawn] = bench.measure("Locality", [Case(DRAWN_SPEEDS)], LOCAL_SCHEDULERS, bench.scale.seeds)
    rows: list[dict[str, Any]] = []
    numbers: dict[str, float | Interval] = {}
    for words, runs in (("alike", alike), ("slow reads", slow), ("speeds drawn", drawn)):
        times = makespans(runs)
        for name in LOCAL_SCHEDULERS:
            under, half = interval(below(times, "fifo", name))
            means = {each: float(makespans(runs, each)[name].mean())
                     for each in (COMPLETION, *(f"{level} (share)" for level in LEVELS))}
            rows.append({"machines": words, "scheduler": name, "makespan (s)": float(times[name].mean()),
                         "below fifo (share)": under, "below fifo ± (share)": half, **means})
            numbers[f"{words}, {name}, node-local"] = means["node-local (share)"]
        for other in ("fifo", "fair", "delay"):
            under, half = interval(below(times, other))
            certain = 0.0 if len(runs) == 1 else half  # one run is all there is: nothing in it is drawn
            numbers[f"{words}, hmhs below {other}"] = Interval(under, under - certain, under + certain)
        gained, half = interval(below(times, "fair", "delay"))
        certain = 0.0 if len(runs) == 1 else half
        numbers[f"{words}, delay below fair"] = Interval(gained, gained - certain, gained + certain)
    points = pl.DataFrame(rows)
    title = f"{len(trace.workload.jobs)} jobs of a trace on its own {len(trace.fleet.machines):,} machines and racks"
    return Figure("locality", title, _worded(points), numbers, (), points)


def _trace(bench: Bench, figure: str) -> Trace:
    if bench.trace is None:
        raise InputError(f"--only {figure}: needs --jobs FOLDER, a workload of Hadoop's job history (subak convert "
                         "rumen)")
    return bench.trace


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
    found = bench.measure(what, cases, SCHEDULERS, bench.scale.seeds)
    return pl.DataFrame([{**case._asdict(), **summary(makespans(runs))}
                         for case, runs in zip(cases, found, strict=True)])


def _worded(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with a mean and its interval in one column, in words."""
    gains = [name for name in table.columns if f"{name.removesuffix(' (share)')} ± (share)" in table.columns]
    plain = [name for name in table.columns if name not in gains and "±" not in name]
    return table.select(*plain, *(
        pl.Series(name.removesuffix(" (share)"), [
            f"{mean:.1%}" + ("" if np.isnan(half) else f" ± {half:.1%}")
            for mean, half in table.select(name, name.replace(" (", " ± (")).iter_rows()])
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


FIGURES: dict[str, Callable[[Bench], Figure]] = {"1": figure_1, "2": figure_2, "baselines": baselines, "yahoo": yahoo,
                                               "locality": locality}
DEFAULT = ("1", "2")
OF_A_TRACE = ("yahoo", "locality")


def chosen_figures(only: str | None, past_the_paper: bool, with_jobs: bool) -> list[str]:
    """Return the keys of the figures that are wanted. Raises InputError for one that does not exist."""
    every = [key for key in FIGURES if with_jobs or key not in OF_A_TRACE]
    default = [*DEFAULT, *(OF_A_TRACE if with_jobs else ())]
    return choose_figures(only, FIGURES, every if past_the_paper else default)


def reproduce(bench: Bench, keys: Iterable[str]) -> Reproduction:
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
