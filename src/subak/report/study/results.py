"""The results of a study: each measure at each point and seed, and the seeds that failed."""
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from subak.experiment.study.plan import Plan
from subak.experiment.study.records import Record
from subak.measures.intervals import Redrawn, TraceDays, mean_interval
from subak.report.study.columns import Column, columns_of

SCHEDULER = "scheduler"
NOT_RUN = "not run"
# What is shown of a study that names no measures: these where they differ, at most so many.
PREFERRED = ("wait_time_mean", "wait_time_p99", "federation_messages_a_task", "bounded_slowdown_mean",
             "job_completion_mean", "fairness_mean_shortfall", "makespan", "queue_mean")
SHOWN_MAX = 4


class Setting(NamedTuple):
    """What changes between the points of the page: an axis of the study, or the scheduler."""

    title: str
    names: tuple[str, ...]  # of its places
    numbers: tuple[float, ...] | None  # what they are, where all are numbers


class Results(NamedTuple):
    """What was measured."""

    plan: Plan
    columns: dict[str, Column]  # all measures that there are
    shown: tuple[str, ...]  # those that the page shows
    settings: tuple[Setting, ...]
    places: np.ndarray  # int64[point, setting]
    seeds: tuple[int, ...]
    values: dict[str, np.ndarray]  # float64[point, seed] by measure, nan where there is none
    errors: dict[str, list[str]]  # what went wrong, and the names of the runs in which it did
    days: tuple[TraceDays | None, ...] = ()  # that seeds draw from, of each point; None where they draw no trace

    def redrawn(self, points: Iterable[int]) -> Redrawn | None:
        """Return what the seeds of points draw: of a trace, its days; None where that is not one trace."""
        found = {self.days[point] for point in points} if self.days else {None}
        only = next(iter(found)) if len(found) == 1 else None
        return None if only is None else Redrawn(self.seeds, only)

    def point_name(self, point: int) -> str:
        """Return where a point is, such as "heartbeat 5, scheduler megha"."""
        return ", ".join(f"{setting.title} {setting.names[place]}"
                         for setting, place in zip(self.settings, self.places[point], strict=True)) or "the only point"


def results_of(plan: Plan, records: Mapping[str, Record]) -> Results:
    """Gather what is known of the runs of a plan."""
    settings, where = _settings(plan)
    seeds = tuple(sorted({row.seed for row in plan.rows}))
    points = list(dict.fromkeys(map(tuple, where)))
    number, column = {point: each for each, point in enumerate(points)}, {seed: each for each, seed in enumerate(seeds)}
    every = columns_of(list(plan.resources), plan.objectives)
    values = {name: np.full((len(points), len(seeds)), np.nan) for name in every}
    errors: dict[str, list[str]] = {}
    days: list[TraceDays | None] = [None] * len(points)
    only = _seeds_that_count(plan)
    for row, place in zip(plan.rows, where, strict=True):
        record = records.get(row.digest, Record(error=NOT_RUN))
        if record.summary is None:
            errors.setdefault(record.error, []).append(plan.name_of(row))
            continue
        if record.summary.redrawn is not None:
            days[number[tuple(place)]] = TraceDays(record.summary.redrawn.days, record.summary.redrawn.freedom)
        at = slice(None) if only[row.scheduler] == 1 else column[row.seed]  # one that no seed changes has it for all
        for name, each in every.items():
            value = each.measure.value(record.summary)
            values[name][number[tuple(place)], at] = np.nan if value is None else value
    known = {name: found for name, found in values.items() if np.isfinite(found).any()}
    kept = {name: every[name] for name in known}
    shape = np.array(points, dtype=np.int64).reshape(len(points), len(settings))
    return Results(plan, kept, plan.measures or _shown(known), settings, shape, seeds, values, errors,
                   tuple(days))


def of_seeds(values: np.ndarray, redrawn: Redrawn | None) -> tuple[float, tuple[float, float] | None]:
    """Return the mean over float64[seed], or the value on the trace, and its 95 % interval; nan where one misses."""
    if np.isnan(values).any():
        return float("nan"), None
    return float(values.mean()) if redrawn is None else redrawn.own(values), mean_interval(values, redrawn)


def _settings(plan: Plan) -> tuple[tuple[Setting, ...], list[list[int]]]:
    """Return what changes, and where each row is on it. The scheduler changes where a point has several."""
    used = [number for number, axis in enumerate(plan.axes) if len(axis.names) > 1]
    settings = [Setting(axis.title, axis.names, _numbers([row[0] for row in axis.values])
                        if len(axis.keys) == 1 and not axis.named else None)
                for axis in (plan.axes[number] for number in used)]
    where = [[row.places[number] for number in used] for row in plan.rows]
    if len({(row.places, row.scheduler) for row in plan.rows}) > len({row.places for row in plan.rows}):
        settings.append(Setting(SCHEDULER, plan.schedulers, None))
        order = {name: number for number, name in enumerate(plan.schedulers)}
        for place, row in zip(where, plan.rows, strict=True):
            place.append(order[row.scheduler])
    return tuple(settings), where


def _numbers(words: list[str]) -> tuple[float, ...] | None:
    try:
        found = tuple(map(float, words))
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def _seeds_that_count(plan: Plan) -> dict[str, int]:
    """Return with how many seeds each scheduler runs: one where none of them would change anything."""
    seeds: dict[str, set[int]] = {}
    for row in plan.rows:
        seeds.setdefault(row.scheduler, set()).add(row.seed)
    return {name: len(found) for name, found in seeds.items()}


def _shown(known: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Return the measures to show where none are asked for: of those preferred, the ones that points differ in."""
    differ = [name for name in PREFERRED if name in known and np.nanmax(known[name]) > np.nanmin(known[name])]
    return tuple(differ[:SHOWN_MAX] or [name for name in PREFERRED if name in known][:SHOWN_MAX])
