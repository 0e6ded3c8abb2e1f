"""The Google-like workload paper: what it says beside what is measured on a trace and on generated data.

A reason is printed where it was tested. Of shares, means and medians chance is told by jobs, whose tasks are alike: a
figure is within it where it is no more than 1.96 standard errors away, with jobs as the units that are drawn.
"""
from typing import NamedTuple

import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.reproduce.claims import UNEXPLAINED
from subak.reproduce.google_like import published as paper
from subak.reproduce.google_like.laws import PAPER_LAW, attempt_rows, law_rows
from subak.reproduce.google_like.measured import ENDINGS, Measured
from subak.reproduce.google_like.row import Row
from subak.workload.google_like.draw import draw
from subak.workload.google_like.goodness import Comparison, compare
from subak.workload.google_like.parameters import Parameters

TABLE_TITLES = {
    "I": "Number of events per task", "II": "Endings of tasks with three events", "III": "Scheduling classes",
    "IV": "Priorities", "V": "Priority groups", "VI": "Makespans of finished tasks (s)",
    "VII": "Makespans of killed tasks (s)", "KS": "Laws of makespans and gaps",
}
GENERATED_COUNT = 1_000_000
Z_95 = 1.96  # standard errors on either side of what is measured


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
    rows = (*_event_rows(measured), *_share_rows(measured), *_makespan_rows(measured, runs),
            *law_rows(measured, comparisons, runs, seed), *attempt_rows(measured.attempts),
            *_gap_rows(measured, made.gap, comparisons))
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
    """Return Tables I and II, in shares: the parts are a fiftieth of the trace."""
    rows = []
    total = sum(paper.EVENT_COUNTS.values())
    seen = measured.events or {}
    for count, tasks in paper.EVENT_COUNTS.items():
        name = f"{count}{' and more' if count == 9 else ''} events (share)"
        share = seen.get(count, 0) / sum(seen.values()) if seen else None
        rows.append(Row("I", name, tasks / total, share, None, _event_reason(count, measured)))
    made = {"FINISH": Parameters().type, "KILL": 1 - Parameters().type}
    return rows + _shares("II", paper.ENDINGS, measured.tasks.rename({"ended": "value"}), made)


def _event_reason(count: int, measured: Measured) -> str:
    if measured.events is None:
        return "it is not known when tasks started"
    return "tasks that still run when the parts end have no end" if count == 2 else UNEXPLAINED


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
        share, error = _mean_by_job(known, pl.col("value") == name)
        rows.append(Row(table, f"{name} (share)", count / total, share, made.get(str(name)),
                        _chance(share, count / total, error) if share is not None else "not in a workload"))
    return rows


def _mean_by_job(tasks: pl.DataFrame, value: pl.Expr) -> tuple[float | None, float]:
    """Return the mean of a value over tasks, None without any, and its standard error if jobs were drawn."""
    if tasks.is_empty():
        return None, np.nan
    by_job = tasks.group_by("job").agg(sum=value.cast(pl.Float64).sum(), tasks=pl.len().cast(pl.Float64))
    mean, jobs = float(by_job["sum"].sum()) / len(tasks), len(by_job)
    squares = float(((by_job["sum"] - mean * by_job["tasks"]) ** 2).sum())
    return mean, float(np.sqrt(squares * jobs / (jobs - 1)) / len(tasks)) if jobs > 1 else np.nan


def _chance(measured: float, published: float, error: float) -> str:
    """Return whether chance may be why a mean is not the paper's."""
    if not np.isfinite(error) or abs(measured - published) > Z_95 * error:
        return UNEXPLAINED
    return "the jobs are so few that chance may make as much of a difference (standard error by jobs)"


def _group() -> pl.Expr:
    free, normal, production = paper.GROUP_BOUNDS
    priority = pl.col("priority")
    return (pl.when(priority <= free).then(pl.lit(paper.GROUPS[0])).when(priority <= normal)
            .then(pl.lit(paper.GROUPS[1])).when(priority <= production).then(pl.lit(paper.GROUPS[2]))
            .otherwise(pl.lit(paper.GROUPS[3])).alias("group"))


def _makespan_rows(measured: Measured, made: dict[str, np.ndarray]) -> list[Row]:
    """Return Tables VI and VII; the generator has no groups, so only the row "All" has its figures."""
    rows: list[Row] = []
    for table, ending in (("VI", "FINISH"), ("VII", "KILL")):
        tasks = measured.tasks.filter(ended=ending).with_columns(_group())
        for group, (_, *figures) in paper.MAKESPANS[ending].items():
            seen = tasks if group == "All" else tasks.filter(group=group)
            drawn = made[ending] if group == "All" else np.empty(0)
            names = ("average", "standard deviation", "median")
            whys = _makespan_reasons(seen, figures[0], figures[2])
            for name, figure, one, another, why in zip(
                    names, figures, _three(seen["makespan"].to_numpy()), _three(drawn), whys, strict=True):
                rows.append(Row(table, f"{group}: {name}", figure, one, another, why))
    return rows


def _makespan_reasons(tasks: pl.DataFrame, average: float, median: float) -> tuple[str, str, str]:
    """Return why the average, the standard deviation and the median of makespans are not the paper's."""
    mean, error = _mean_by_job(tasks, pl.col("makespan"))
    if mean is None:
        nothing = "none of this group ended so in what was read"
        return nothing, nothing, nothing
    below, of_below = _mean_by_job(tasks, pl.col("makespan") <= median)
    return _chance(mean, average, error), UNEXPLAINED, _chance(below or 0.0, 0.5, of_below)


def _three(values: np.ndarray) -> tuple[float | None, float | None, float | None]:
    if not len(values):
        return None, None, None
    return float(values.mean()), float(values.std()), float(np.median(values))


def _gap_rows(measured: Measured, made: np.ndarray, comparisons: dict[str, Comparison]) -> list[Row]:
    gaps, submits = measured.gaps, measured.submits
    rows = [Row("KS", "mean gap between tasks (s)", paper.GAP_MEAN, float(gaps.mean()) if len(gaps) else None,
                float(made.mean()), "the paper's is that of SUBMIT events: 48.4 million in 29 days are 0.0518 s; "
                "25.4 million tasks are 0.0985 s")]
    if submits is not None and len(submits):
        rows.append(Row("KS", "mean gap between SUBMIT events (s)", paper.GAP_MEAN, float(submits.mean()), None,
                        UNEXPLAINED))
    over = float((gaps > 10).mean()) if len(gaps) else None
    rows.append(Row("KS", "gaps over 10 s (share; the paper: very few)", None, over, float((made > 10).mean())))
    if "gaps" in comparisons:
        found = comparisons["gaps"]
        why = "most gaps are microseconds (tasks of one job) and the rest seconds: no Pareto law with this mean is near"
        rows.append(Row("KS", "KS of the paper's Pareto law of gaps", None, found.law(PAPER_LAW).distance, None, why))
        rows.append(Row("KS", "KS of the best Pareto law of gaps", None, found.law("Pareto from 0").distance, None,
                        "its mean is infinite"))
    return rows


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
    window = () if measured.window is None else (
        f"the parts show {measured.window:,.0f} s of 2,505,600: a makespan that began in them and ended later is not "
        "seen, which shortens above all KILL",)
    return (
        *window,
        "the paper's own figures: Tables III to VII add up to 24,227,625 tasks that ended by FINISH or KILL, Table II "
        "to 24,157,190, and its total run times (13 and 20 billion seconds) to the 11 million of its sample",
        "mass and disparity (1700 and 3.8, 8000 and 24) give sigma 1.63 and 2.52, and medians 447 and 333 s; its "
        "fitted log-normal laws have 1.42 and 2.06, medians 518 and 464 s, and means 1,420 and 3,873 s: the two do not "
        "agree",
        "section IV-A says Pareto with shape 5, Fig. 8 draws with 4; the mean gap is the same for both",
        "of the groups and classes (Tables III to V) the paper's generator knows nothing: it draws a number in ]0, 1]",
    )
