"""The Google-like workload paper: what it says beside what is measured on a trace and on generated data.

Measured means: the tasks of the trace with exactly three events (SUBMIT, SCHEDULE and an end), as the paper takes
them; their makespan is the time from SCHEDULE to the end. A workload has no events: there each attempt counts.
"""
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.errors import InputError
from subak.reproduce.claims import DIFFERS, HOLDS
from subak.reproduce.google_like import published as paper
from subak.workload.google_like.draw import draw
from subak.workload.google_like.fit import leave_standing_out
from subak.workload.google_like.goodness import Comparison, compare
from subak.workload.google_like.parameters import Parameters
from subak.workload.readers.files.stream import Advance, blocks, csv_rows, parts
from subak.workload.readers.google.attempts import (
    EVENT_EVICT,
    EVENT_FAIL,
    EVENT_FINISH,
    EVENT_KILL,
    EVENT_LOST,
    EVENT_SCHEDULE,
    EVENT_SUBMIT,
)
from subak.workload.readers.google.google2011 import events as google2011
from subak.workload.readers.google.tasks import AFTER, SECOND
from subak.workload.table import Workload

ENDINGS = ("FINISH", "KILL")
END_NAMES = {EVENT_FINISH: "FINISH", EVENT_KILL: "KILL", EVENT_FAIL: "FAIL", EVENT_EVICT: "other", EVENT_LOST: "other"}
TABLE_TITLES = {
    "I": "Number of events per task", "II": "Endings of tasks with three events", "III": "Scheduling classes",
    "IV": "Priorities", "V": "Priority groups", "VI": "Makespans of finished tasks (s)",
    "VII": "Makespans of killed tasks (s)", "KS": "Laws of makespans and gaps",
}
GENERATED_COUNT = 1_000_000
PAPER_LAW = "paper's law"


class Measured(NamedTuple):
    """What a source says of its tasks."""

    source: str
    tasks: pl.DataFrame  # ended (FINISH, KILL, FAIL, other), makespan (s), priority, class (null where unknown)
    attempts: dict[str, np.ndarray]  # seconds that each attempt of any task ran, by ending; empty without events
    events: dict[int, int] | None  # tasks by number of events, 9 for more; None without events
    gaps: np.ndarray  # seconds between arrivals (of distinct tasks), after the trace's beginning
    submits: np.ndarray | None  # seconds between EVENT_SUBMIT events, resubmissions too; None without events
    window: float | None  # seconds that were seen; makespans are shorter


NEAR = 0.1  # a figure holds within a tenth of the paper's
NEAR_SHARE = 0.05  # or, where it is a share, within 5 points


class Row(msgspec.Struct, frozen=True):
    """One claim: the paper's figure, what was measured, what the generator gives, and why they differ."""

    table: str
    what: str
    paper: float | None
    measured: float | None = None
    generated: float | None = None
    reason: str = ""

    @property
    def verdict(self) -> str | None:
        """Whether what was measured is near the paper's figure; None without one of them."""
        if self.paper is None or self.measured is None:
            return None
        room = NEAR_SHARE if self.is_share else NEAR * abs(self.paper)
        return HOLDS if abs(self.measured - self.paper) <= room else DIFFERS

    @property
    def is_share(self) -> bool:
        """Whether its figures are shares of one."""
        return "(share" in self.what


class Reproduction(NamedTuple):
    """All rows, the comparisons behind the figures, and how it was made."""

    source: str
    rows: tuple[Row, ...]
    comparisons: dict[str, Comparison]  # gaps, EVENT_FINISH, EVENT_KILL
    groups: pl.DataFrame  # Fig. 3: source, ended, group, mean, count
    notes: tuple[str, ...]


def measure_trace(folder: Path, advance: Advance) -> Measured:
    """Measure a Google 2011 trace folder, straight from task_events. Raises InputError for a bad file."""
    google2011.files(folder)
    paths = parts(folder / "task_events")
    names = ("time", "job", "index", "event", "class", "priority")
    tables = [csv_rows(block, google2011.TASK_EVENT_COLUMNS).select(names)
              for path in paths for block in blocks(path, advance)]
    events = pl.concat(tables).filter(pl.col("time") < AFTER).sort("time", maintain_order=True)
    if events.is_empty():
        raise InputError(f"{folder}: has no events within the trace's window")
    by_task = _by_task(events)
    counts = by_task.with_columns(pl.col("events").clip(upper_bound=9)).group_by("events").len().sort("events").rows()
    first = by_task.filter(pl.col("submit") > 0)["submit"].sort().to_numpy()
    submits = events.filter((pl.col("event") == EVENT_SUBMIT) & (pl.col("time") > 0))["time"].sort().to_numpy()
    window = float(events["time"].max()) / SECOND  # type: ignore[arg-type]
    source = f"{len(paths)} parts of the genuine trace ({folder})"
    return Measured(source, _three_events(by_task), _attempts(events), dict(counts),
                    np.diff(first) / SECOND, np.diff(submits) / SECOND, window)


def _by_task(events: pl.DataFrame) -> pl.DataFrame:
    """Return one row a task: how many events it has, and when and how it was submitted, scheduled and ended."""
    time, event = pl.col("time"), pl.col("event")
    ends = event.is_in(list(END_NAMES))
    return events.group_by("job", "index").agg(
        pl.len().alias("events"),
        time.filter(event == EVENT_SUBMIT).min().alias("submit"),
        time.filter(event == EVENT_SCHEDULE).min().alias("schedule"),
        time.filter(ends).max().alias("end"),
        event.filter(ends).last().alias("end_event"),
        pl.col("priority").last(), pl.col("class").last(),
    )


def _three_events(by_task: pl.DataFrame) -> pl.DataFrame:
    whole = pl.col("submit").is_not_null() & pl.col("schedule").is_not_null() & pl.col("end").is_not_null()
    return by_task.filter((pl.col("events") == 3) & whole).select(
        ended=pl.col("end_event").replace_strict(END_NAMES, return_dtype=pl.String),
        makespan=(pl.col("end") - pl.col("schedule")) / SECOND,
        priority=pl.col("priority"), **{"class": pl.col("class").cast(pl.Int64, strict=False)},
    )


def _attempts(events: pl.DataFrame) -> dict[str, np.ndarray]:
    """Return how long each attempt ran that finished or was killed, seconds above 0: from a SCHEDULE to its end."""
    ends = pl.col("event").is_in(list(END_NAMES))
    turns = events.filter(ends | (pl.col("event") == EVENT_SCHEDULE)).sort("job", "index", "time", maintain_order=True)
    before = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in ("job", "index"))
    ran = turns.with_columns(ran=(pl.col("time") - pl.col("time").shift(1)) / SECOND).filter(
        before & ends & (pl.col("event").shift(1) == EVENT_SCHEDULE)).filter(pl.col("ran") > 0)
    return {"FINISH": ran.filter(event=EVENT_FINISH)["ran"].to_numpy(),
            "KILL": ran.filter(event=EVENT_KILL)["ran"].to_numpy()}


def measure_workload(workload: Workload) -> Measured:
    """Measure a workload whose tasks say how they ended. Raises InputError for one that does not."""
    name = workload.provenance.name
    if "outcome" not in workload.tasks.columns:
        raise InputError(f"workload {name}: does not say how its tasks ended")
    known = workload.tasks.with_columns(workload.stages.select(pl.col("priority").gather(workload.tasks["stage"])))
    outcome = pl.col("outcome").cast(pl.String)
    tasks = known.filter(outcome.ne("CENSORED")).select(
        ended=pl.when(outcome.is_in(["FINISH", "KILL", "FAIL"])).then(outcome).otherwise(pl.lit("other")),
        makespan="run_time", priority="priority", **{"class": pl.lit(None, pl.Int64)})
    gaps = np.diff(leave_standing_out(workload.tasks)["arrival"].to_numpy())
    return Measured(f"the workload {name}", tasks, {}, None, gaps, None, None)


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
            *_law_rows(comparisons, runs), *_attempt_rows(measured.attempts),
            *_gap_rows(measured, made.gap, comparisons))
    return Reproduction(measured.source, rows, comparisons, _group_means(measured), _notes(measured))


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
    return rows + _shares("II", paper.ENDINGS, measured.tasks["ended"], made, "long services do not end within a short "
                          "window; the generator's type rounds 73.3 % to 70 %")


def _event_reason(count: int, measured: Measured) -> str:
    if measured.events is None:
        return "a workload has no events"
    return {2: "more tasks still run at the end of a short window", 3: "a short window, and a first half day with many "
            "evictions and resubmissions", 9: "resubmissions"}.get(count, "")


def _share_rows(measured: Measured) -> list[Row]:
    """Return Tables III to V: over the tasks that ended by FINISH or KILL, as the paper's sums show."""
    tasks = measured.tasks.filter(pl.col("ended").is_in(ENDINGS)).with_columns(_group())
    reason = "the first parts hold a different mix of jobs than the month"
    return [*_shares("III", paper.CLASSES, tasks["class"], {}, reason),
            *_shares("IV", paper.PRIORITIES, tasks["priority"], {}, reason),
            *_shares("V", paper.GROUP_COUNTS, tasks["group"], {}, reason)]


def _shares(table: str, counts: dict[str, int] | dict[int, int], seen: pl.Series, made: dict[str, float],
            reason: str) -> list[Row]:
    known = seen.drop_nulls()
    found = dict(zip(*known.value_counts().get_columns(), strict=True)) if len(known) else {}
    total = sum(counts.values())
    why = reason if len(known) else "not in a workload"
    return [Row(table, f"{name} (share)", count / total, found.get(name, 0) / len(known) if len(known) else None,
                made.get(str(name)), why) for name, count in counts.items()]


def _group() -> pl.Expr:
    free, normal, production = paper.GROUP_BOUNDS
    priority = pl.col("priority")
    return (pl.when(priority <= free).then(pl.lit(paper.GROUPS[0])).when(priority <= normal)
            .then(pl.lit(paper.GROUPS[1])).when(priority <= production).then(pl.lit(paper.GROUPS[2]))
            .otherwise(pl.lit(paper.GROUPS[3])).alias("group"))


def _makespan_rows(measured: Measured, made: dict[str, np.ndarray]) -> list[Row]:
    """Return Tables VI and VII; the generator has no groups, so only the row "All" has its figures."""
    rows: list[Row] = []
    other = "another mix of jobs, and a short window hides long makespans"
    for table, ending in (("VI", "FINISH"), ("VII", "KILL")):
        tasks = measured.tasks.filter(ended=ending).with_columns(_group())
        for group, (_, *figures) in paper.MAKESPANS[ending].items():
            seen = (tasks if group == "All" else tasks.filter(group=group))["makespan"].to_numpy()
            drawn = made[ending] if group == "All" else np.empty(0)
            names = ("average", "standard deviation", "median")
            for name, figure, one, another in zip(names, figures, _three(seen), _three(drawn), strict=True):
                reason = other if len(seen) else "none of this group ended so in what was read"
                rows.append(Row(table, f"{group}: {name}", figure, one, another, reason))
    return rows


def _three(values: np.ndarray) -> tuple[float | None, float | None, float | None]:
    if not len(values):
        return None, None, None
    return float(values.mean()), float(values.std()), float(np.median(values))


def _law_rows(comparisons: dict[str, Comparison], made: dict[str, np.ndarray]) -> list[Row]:
    rows: list[Row] = []
    for ending in ENDINGS:
        seen = _law_figures(comparisons[ending]) if ending in comparisons else {}
        drawn = _law_figures(compare(ending, made[ending]))
        for name, figure in paper.LAWS[ending].items():
            rows.append(Row("KS", f"{ending}: {name}", figure, seen.get(name), drawn.get(name), LAW_REASONS[name]))
        if ending in comparisons:
            nearest = comparisons[ending].law("Pareto from 0").distance
            rows.append(Row("KS", f"{ending}: KS of a Pareto law from 0", None, nearest, None,
                            "not in the paper: the same law, not tied to the least value"))
            rows.append(Row("KS", f"{ending}: KS of the paper's own log-normal", None,
                            comparisons[ending].law(PAPER_LAW).distance, None, "with the paper's mu and sigma"))
    return rows


def _attempt_rows(attempts: dict[str, np.ndarray]) -> list[Row]:
    """Return the same log-normal laws over every attempt, whatever the number of events of its task."""
    rows = []
    for ending, values in attempts.items():
        if _enough(values):
            logs = np.log(values)
            figures = {"mu": float(logs.mean()), "sigma": float(logs.std()), "median (s)": float(np.median(values))}
            known = {**paper.LAWS[ending], "median (s)": paper.MAKESPANS[ending]["All"][3]}
            rows += [Row("KS", f"{ending}, every attempt: {name}", known[name], figure, None,
                         "the paper takes tasks of three events only; here each attempt of any task counts")
                     for name, figure in figures.items()]
    return rows


LAW_REASONS = {
    "mu": "measured: another mix of jobs; generated: ln(mass / disparity), not the fitted mu",
    "sigma": "measured: another mix of jobs; generated: sqrt(2 ln disparity), above the fitted sigma",
    "log-normal KS": "generated data are log-normal by construction",
    "Pareto coefficient": "1 / mean(ln(x / least)): it follows from the least makespan",
    "Pareto scale": "the least makespan: the more tasks are read, the less",
    "Pareto KS": "the law starts at the least makespan, whatever that is",
}


def _law_figures(comparison: Comparison) -> dict[str, float]:
    normal, pareto = comparison.law("log-normal"), comparison.law("Pareto from the least")
    return {"mu": float(np.log(normal.parameters["scale"])), "sigma": normal.parameters["s"],
            "log-normal KS": normal.distance, "Pareto coefficient": pareto.parameters["b"],
            "Pareto scale": pareto.parameters["scale"], "Pareto KS": pareto.distance}


def _gap_rows(measured: Measured, made: np.ndarray, comparisons: dict[str, Comparison]) -> list[Row]:
    gaps, submits = measured.gaps, measured.submits
    rows = [Row("KS", "mean gap between tasks (s)", paper.GAP_MEAN, float(gaps.mean()) if len(gaps) else None,
                float(made.mean()), "the paper's is that of SUBMIT events: 48.4 million in 29 days are 0.0518 s; "
                "25.4 million tasks are 0.0985 s")]
    if submits is not None and len(submits):
        rows.append(Row("KS", "mean gap between SUBMIT events (s)", paper.GAP_MEAN, float(submits.mean()), None,
                        "the parts are quieter than the month"))
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
