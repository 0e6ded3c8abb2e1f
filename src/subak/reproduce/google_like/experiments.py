"""The experiments of the Google-like paper: its numbers beside a trace's and generated ones.

A reason is printed where numbers show it (reasons.py), elsewhere that it is not explained.
"""
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.reproduce.claims import DIFFERS, Why
from subak.reproduce.google_like import published as paper
from subak.reproduce.google_like.gaps import gap_rows
from subak.reproduce.google_like.laws import PAPER_LAW, attempt_rows, law_rows
from subak.reproduce.google_like.measured import ENDINGS, EVENTS_MOST, Measured
from subak.reproduce.google_like.reasons import (
    Z_95,
    Without,
    chance,
    cut_draws,
    mean_by_job,
    share_by_job,
    unseen,
    without,
)
from subak.reproduce.google_like.row import Row, room
from subak.workload.google_like.draw import draw
from subak.workload.google_like.goodness import Comparison, compare
from subak.workload.google_like.parameters import Makespans, Parameters

TABLE_TITLES = {
    "I": "Number of events per task", "II": "Endings of tasks with three events", "III": "Scheduling classes",
    "IV": "Priorities", "V": "Priority groups", "VI": "Makespans of finished tasks (s)",
    "VII": "Makespans of killed tasks (s)", "KS": "Laws of makespans and gaps",
}
GENERATED_COUNT = 1_000_000
STATISTICS = ("average", "standard deviation", "median")
OTHER = "other"  # of ENDINGS: evicted, or lost
TASKS_MIN = 2  # of a distribution
MOST_LATE = 0.95  # of what ended otherwise


class Reproduction(NamedTuple):
    """All rows, the comparisons behind the figures, and how it was made."""

    source: str
    rows: tuple[Row, ...]
    comparisons: dict[str, Comparison]  # gaps, EVENT_FINISH, EVENT_KILL
    groups: pl.DataFrame  # Fig. 3: source, ended, group, mean, count
    classes: pl.DataFrame  # Figs. 1, 6 and 7: figure, class, group, tasks; no rows where no class is known
    notes: tuple[str, ...]


def reproduce(measured: Measured, seed: int = 1) -> Reproduction:
    """Return every claim of the paper beside *measured* and a million tasks generated with its parameters."""
    made = draw(Parameters(), seed, 0, GENERATED_COUNT)
    runs = {"FINISH": made.makespan[~made.service], "KILL": made.makespan[made.service]}
    seen = {ending: _makespans(measured.tasks.filter(ended=ending)) for ending in ENDINGS}
    comparisons = {ending: _compare_makespans(ending, seen[ending]) for ending in ENDINGS if _enough(seen[ending])}
    gaps = measured.gaps[measured.gaps > 0]
    if _enough(gaps):
        law = scipy.stats.lomax(c=paper.GAP_SHAPE, loc=0.0, scale=(paper.GAP_SHAPE - 1) * paper.GAP_MEAN)
        comparisons["gaps"] = compare("gaps between tasks", gaps, {PAPER_LAW: law})
    rows = (*_event_rows(measured), *_ending_rows(measured), *_share_rows(measured),
            *_makespan_rows(measured, runs, seed), *law_rows(measured, comparisons, runs, seed),
            *attempt_rows(measured.attempts), *gap_rows(measured, made.gap, comparisons))
    return Reproduction(measured.source, rows, comparisons, _group_means(measured), _classes(measured),
                        _notes(measured))


def _enough(values: np.ndarray) -> bool:
    return len(values) > 1 and float(values.min()) < float(values.max())


def _makespans(tasks: pl.DataFrame) -> np.ndarray:
    return tasks.filter(pl.col("makespan") > 0)["makespan"].to_numpy()


def _compare_makespans(ending: str, values: np.ndarray) -> Comparison:
    laws = paper.LAWS[ending]
    law = scipy.stats.lognorm(s=laws["sigma"], loc=0.0, scale=float(np.exp(laws["mu"])))
    return compare(f"makespans until {ending}", values, {PAPER_LAW: law})


def _event_rows(measured: Measured) -> list[Row]:
    """Return Table I, in shares; of those that differ, also without what stood when the trace began."""
    seen, fresh = measured.events or {}, measured.fresh_events or {}
    rows: list[Row] = []
    more: list[Row] = []
    total = sum(paper.EVENT_COUNTS.values())
    for count, tasks in paper.EVENT_COUNTS.items():
        name, figure = f"{count}{' and more' if count == EVENTS_MOST else ''} events", tasks / total
        row = Row("I", f"{name} (share)", figure, seen.get(count, 0) / sum(seen.values()) if seen else None,
                  note="" if seen else "it is not known when tasks started")
        if row.verdict == DIFFERS and fresh:
            line = f"{name}, of those that came later (share)"
            other = fresh.get(count, 0) / sum(fresh.values())
            why = without(row.measured or 0.0, figure, other, room(figure, is_share=True), "it is the tasks that stood "
                          "when the trace began", f"the line {line.removesuffix(' (share)')}")
            row = Row("I", row.what, figure, row.measured, why=why)
            more.append(Row("I", line, figure, other))
        rows.append(row)
    return rows + more


def _ending_rows(measured: Measured) -> list[Row]:
    """Return Table II, also without those that ended otherwise, where a workload's end makes them many."""
    made = {"FINISH": Parameters().type, "KILL": 1 - Parameters().type}
    tasks = measured.tasks.rename({"ended": "value"})
    rows = _shares("II", paper.ENDINGS, tasks, made)
    other = tasks.filter(value=OTHER)
    late = float(other["late"].mean() or 0.0) if len(other) else 0.0  # type: ignore[arg-type]
    if late < MOST_LATE:
        return rows
    counts = {name: count for name, count in paper.ENDINGS.items() if name != OTHER}
    less = _shares("II", counts, tasks.filter(pl.col("value") != OTHER), {})
    why = Why(f"of the {len(other):,} that were evicted, or lost, {other['late'].sum():,} ended after the workload's "
              "last arrival, so that their next attempts are not in it, nor the events of these",
              "the lines without other")
    rows = [msgspec.structs.replace(row, why=why) for row in rows]
    return rows + [msgspec.structs.replace(row, what=row.what.replace(" (", ", without other ("), generated=None)
                   for row in less]


def _share_rows(measured: Measured) -> list[Row]:
    """Return Tables III to V: over the tasks that ended by FINISH or KILL, as the paper's sums show."""
    tasks = measured.tasks.filter(pl.col("ended").is_in(ENDINGS)).with_columns(_group())
    return [*_shares("III", paper.CLASSES, tasks.rename({"class": "value"}), {}),
            *_shares("IV", paper.PRIORITIES, tasks.rename({"priority": "value"}), {}),
            *_shares("V", paper.GROUP_COUNTS, tasks.rename({"group": "value"}), {})]


def _shares(table: str, counts: dict[str, int] | dict[int, int], tasks: pl.DataFrame,
            made: dict[str, float]) -> list[Row]:
    """Return the share of each value of the column `value` of *tasks*, which has `job`."""
    known, total = tasks.drop_nulls("value"), sum(counts.values())
    rows = []
    for name, count in counts.items():
        share, error = share_by_job(known, pl.col("value") == name)
        rows.append(Row(table, f"{name} (share)", count / total, share, made.get(str(name)),
                        note="not in a workload" if share is None else "", error=Z_95 * error))
    return rows


def _group() -> pl.Expr:
    free, normal, production = paper.GROUP_BOUNDS
    priority = pl.col("priority")
    return (pl.when(priority <= free).then(pl.lit(paper.GROUPS[0])).when(priority <= normal)
            .then(pl.lit(paper.GROUPS[1])).when(priority <= production).then(pl.lit(paper.GROUPS[2]))
            .otherwise(pl.lit(paper.GROUPS[3])).alias("group"))


def _makespan_rows(measured: Measured, made: dict[str, np.ndarray], seed: int) -> list[Row]:
    """Return Tables VI and VII; the generator has no groups, so only the row "All" has its figures."""
    rows: list[Row] = []
    for table, ending in (("VI", "FINISH"), ("VII", "KILL")):
        tasks = measured.tasks.filter(ended=ending).with_columns(_group())
        for group, (_, *figures) in paper.MAKESPANS[ending].items():
            seen = tasks if group == "All" else tasks.filter(group=group)
            drawn = made[ending] if group == "All" else np.empty(0)
            whys = _makespan_reasons(seen, tuple(figures), measured.rooms, seed)
            errors = Z_95 * mean_by_job(seen, pl.col("makespan"))[1], 0.0, 0.0
            note = "" if len(seen) else "none of this group ended so in what was read"
            for name, figure, one, another, why, error in zip(
                    STATISTICS, figures, _three(seen["makespan"].to_numpy()), _three(drawn), whys, errors, strict=True):
                rows.append(Row(table, f"{group}: {name}", figure, one, another, why, note, error))
    return rows


def _makespan_reasons(tasks: pl.DataFrame, figures: tuple[float, ...], rooms: np.ndarray,
                      seed: int) -> list[Why | None]:
    """Return why the average, the standard deviation and the median of makespans are not the paper's."""
    if tasks.is_empty():
        return [None] * len(STATISTICS)
    below, of_below = mean_by_job(tasks, pl.col("makespan") <= figures[-1])
    by_chance = None, None, chance(below or 0.0, 0.5, of_below, " of the tasks")
    return [first or unseen(one, figure, of) for first, one, figure, of in zip(
        by_chance, _figures(tasks["makespan"].to_numpy()), figures, _without(tasks, figures, rooms, seed), strict=True)]


def _without(tasks: pl.DataFrame, figures: tuple[float, ...], rooms: np.ndarray, seed: int) -> list[Without | None]:
    """Return the three figures without what only a part of the trace has."""
    fresh, (average, _, median) = tasks.filter(~pl.col("stood")), figures
    if len(fresh) < TASKS_MIN or not rooms.size:
        return [None] * len(figures)
    law = Makespans(average, average / median)
    cut = cut_draws(law.mu, law.sigma, rooms, (seed, 11))
    if len(cut) < TASKS_MIN:
        return [None] * len(figures)
    errors = mean_by_job(fresh, pl.col("makespan"))[1], 0.0, 0.0
    return [Without(one, other, error) for one, other, error in zip(
        _figures(fresh["makespan"].to_numpy()), _figures(cut), errors, strict=True)]


def _three(values: np.ndarray) -> tuple[float | None, ...]:
    return _figures(values) if len(values) else (None,) * len(STATISTICS)


def _figures(values: np.ndarray) -> tuple[float, float, float]:
    """Return the STATISTICS of values, of which there is one at least."""
    return float(values.mean()), float(values.std()), float(np.median(values))


def _group_means(measured: Measured) -> pl.DataFrame:
    """Return Fig. 3: the mean makespan of each group by its ending, in the paper and as measured."""
    seen = measured.tasks.filter(pl.col("ended").is_in(ENDINGS)).with_columns(_group())
    means = seen.group_by("ended", "group").agg(pl.col("makespan").mean().alias("mean"), pl.len().alias("count"))
    rows = [("paper", ending, group, figures[1], figures[0]) for ending, groups in paper.MAKESPANS.items()
            for group, figures in groups.items() if group != "All"]
    ordered = means.select("ended", "group", "mean", "count").sort("ended", "group")
    rows += [("measured", *row) for row in ordered.rows()]
    return pl.DataFrame(rows, orient="row", schema={"source": pl.String, "ended": pl.String, "group": pl.String,
                                                    "mean": pl.Float64, "count": pl.Int64})


def _classes(measured: Measured) -> pl.DataFrame:
    """Return Figs. 1, 6 and 7: how many tasks of each scheduling class are of each group of priorities."""
    seen = measured.tasks.filter(pl.col("ended").is_in(ENDINGS) & pl.col("class").is_not_null()).with_columns(_group())
    parts = [seen.filter(chosen).group_by("class", "group").agg(tasks=pl.len()).with_columns(figure=pl.lit(figure))
             for figure, chosen in (("1", pl.lit(True)), ("6", pl.col("ended") == "FINISH"),
                                    ("7", pl.col("ended") == "KILL"))]
    return pl.concat(parts).select("figure", "class", "group", "tasks").sort("figure", "class", "group")


def _notes(measured: Measured) -> tuple[str, ...]:
    longer = {} if measured.window is None else {
        ending: float(scipy.stats.norm.sf((np.log(measured.window) - law["mu"]) / law["sigma"]))
        for ending, law in paper.LAWS.items()}
    window = () if measured.window is None else (
        f"what was read shows {measured.window:,.0f} s, the paper's month 2,505,600: a makespan that began in it and "
        f"ended later is not seen. By the paper's laws {longer['FINISH']:.1%} of the makespans until FINISH are longer "
        f"than all of it, and {longer['KILL']:.1%} of those until KILL",)
    ran = sum(seconds / paper.MAKESPANS[ending]["All"][1] for ending, seconds in paper.RUN_SECONDS.items())
    own = Parameters()
    tasks, services = own.tasks, own.services
    return (
        *window,
        "the paper's own figures: Tables III to VII add up to 24,227,625 tasks that ended by FINISH or KILL, Table II "
        f"to 24,157,190, and its total run times (13 and 20 billion seconds), by its averages, to {ran / 1e6:.1f} "
        "million; its sample has 11 million",
        f"mass and disparity ({tasks.mass:g} and {tasks.disparity:g}, {services.mass:g} and {services.disparity:g}) "
        f"give sigma {tasks.sigma:.2f} and {services.sigma:.2f}, and medians {np.exp(tasks.mu):.0f} and "
        f"{np.exp(services.mu):.0f} s; its fitted log-normal laws have {_fitted()}: the two do not agree",
        "section IV-A says Pareto with shape 5, Fig. 8 draws with 4; the mean gap is the same for both",
        "of the groups and classes (Tables III to V) the paper's generator knows nothing: it draws a number in ]0, 1]",
    )


def _fitted() -> str:
    """Return the paper's fitted laws in words."""
    laws = [(law["mu"], law["sigma"]) for law in paper.LAWS.values()]
    return (f"{' and '.join(f'{sigma:g}' for _, sigma in laws)}, medians "
            f"{' and '.join(f'{np.exp(mu):.0f}' for mu, _ in laws)} s, and means "
            f"{' and '.join(f'{np.exp(mu + sigma**2 / 2):,.0f}' for mu, sigma in laws)} s")
