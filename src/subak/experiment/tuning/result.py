"""The result of a tuning: the settings found, and whether they beat the given ones on other seeds."""
import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import optuna

from subak.experiment.tuning.question import Question, Space, Values
from subak.experiment.tuning.study import best_of, importance, is_feasible, values_tried
from subak.measures.intervals import PAIRS_MIN, Difference, Redrawn, TraceDays, difference
from subak.placement.tunable import Value

BETTER, NOT_BETTER, WORSE, NOT_FOUND, NO_INTERVAL, UNFEASIBLE = (
    "better", "not beaten", "worse", "not beaten while tuning", "no interval", "objectives missed")


class Row(msgspec.Struct, frozen=True):
    """A parameter: its range, and the values that it had."""

    name: str
    range: str
    given: Value
    best: Value
    importance: float | None  # None where too few trials say so


class Tuned(msgspec.Struct, frozen=True):
    """A tuning in a page of numbers; None for what is endless."""

    scheduler: str
    minimise: str
    objectives: list[str]
    seeds: list[int]  # tuned on
    held_out: list[int]
    held_out_workload: str
    trials: int
    failed: int
    best_trial: int
    rows: tuple[Row, ...]
    tuned_given: float | None  # the mean over the seeds tuned on
    tuned_best: float | None
    given: list[float | None]  # by held-out seed
    best: list[float | None]
    difference: float | None  # on the held-out part, in the typical seed: best over given, less one
    interval: tuple[float, float] | None  # of it, 95 %
    of_means: float | None  # the same of the means
    met: dict[str, tuple[int, int]]  # by objective: on how many held-out seeds it is kept, as given and by the best
    verdict: str  # one of the words above


def result_of(
    question: Question, space: Space, study: optuna.Study, given: list[list[float]], best: list[list[float]],
    met: dict[str, tuple[int, int]], days: TraceDays | None,
) -> Tuned:
    """Return what came of it; *given* and *best* are values by held-out seed, the measure first.

    *days* are those that held-out seeds draw from, of a trace.
    """
    found = best_of(study)
    before, after = values_tried(study.trials[0]), values_tried(found)
    shares = importance(study)
    baseline, values = (np.array([row[0] for row in rows]) for rows in (given, best))
    found_better = difference(values, baseline, None if days is None else Redrawn(tuple(question.held_out), days))
    return Tuned(
        scheduler=question.scheduler, minimise=question.minimise, objectives=question.scenario.objectives,
        seeds=question.scenario.seeds, held_out=question.held_out, held_out_workload=question.held_out_workload,
        trials=len(study.trials), failed=sum(bool(trial.user_attrs["error"]) for trial in study.trials),
        best_trial=found.number,
        rows=tuple(Row(each.name, each.text, before[each.name], after[each.name], shares.get(each.name))
                   for each in space.parameters),
        tuned_given=_finite(study.trials[0].value), tuned_best=_finite(found.value),
        given=[_finite(value) for value in baseline], best=[_finite(value) for value in values],
        difference=found_better.share, interval=found_better.ends, of_means=found_better.of_means, met=met,
        verdict=_verdict(found.number, is_feasible(found), found_better))


def _verdict(number: int, feasible: bool, between: Difference) -> str:
    if not feasible:
        return UNFEASIBLE
    if number == 0:
        return NOT_FOUND
    if between.ends is None:
        return NO_INTERVAL
    if between.ends[1] < 0:
        return BETTER
    return WORSE if between.ends[0] > 0 else NOT_BETTER


def kept(rows: list[list[float]], holds: Sequence[Callable[[float], bool]]) -> list[int]:
    """Return on how many seeds each objective is kept; *rows* are values by seed, the measure first."""
    return [sum(test(row[1 + place]) for row in rows) for place, test in enumerate(holds)]


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def seeds_needed() -> int:
    """Return how many held-out seeds an interval takes at least."""
    return PAIRS_MIN


def best_values(study: optuna.Study) -> Values:
    """Return the values that were found."""
    return values_tried(best_of(study))
