"""Objectives: what a run must keep, such as `wait.p95 < 60s for queue=prod`, and whether it does.

    MEASURE.STATISTIC  < | <= | > | >=  NUMBER[UNIT]  [for KEY=VALUE,KEY=VALUE]

Measures: wait, turnaround (seconds, of tasks), slowdown (of tasks), completion (seconds, of jobs), job_slowdown.
Statistics: mean, median, max, and percentiles such as p95 or p99.9. Keys: queue (a path, with all below it), user,
priority, length (short or long), class. What never started, or never ended, counts as endless: a scheduler does not
keep an objective by leaving tasks out.
"""
import math
import operator
import re
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.measures.of_run import SLOWDOWN_FLOOR_S
from subak.measures.runs import ObjectiveFacts
from subak.workload.table import Workload

OF_TASKS, OF_JOBS = ("wait", "turnaround", "slowdown"), ("completion", "job_slowdown")
IN_SECONDS = ("wait", "turnaround", "completion")
KEYS = ("queue", "user", "priority", "length", "class")
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
FORM = re.compile(r"\s*([a-z_]+)\.([a-z0-9.]+)\s*(<=|>=|<|>)\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([a-z]*)"
                  r"(?:\s+for\s+(.+?))?\s*", re.ASCII)
EXAMPLE = "wait.p95 < 60s for queue=prod"


class Objective(NamedTuple):
    """What must hold of some tasks, or jobs."""

    text: str
    measure: str
    statistic: str
    sign: str
    bound: float  # seconds, or a ratio
    keys: tuple[tuple[str, str], ...]

    def holds(self, value: float) -> bool:
        """Whether a value keeps the objective."""
        return bool(SIGNS[self.sign](value, self.bound))


def read_objective(text: str) -> Objective:
    """Read an objective. Raises InputError, naming what is wrong, for what is none."""
    found = FORM.fullmatch(text)
    if found is None:
        raise InputError(f"objective: must be like {EXAMPLE!r}, not {text!r}")
    measure, statistic, sign, number, unit, keys = found.groups()
    if measure not in OF_TASKS + OF_JOBS:
        raise InputError(f"objective {text!r}: the measure must be one of {', '.join(OF_TASKS + OF_JOBS)}")
    level_of(statistic, text)
    if (measure in IN_SECONDS) != (unit in UNITS):
        raise InputError(f"objective {text!r}: {measure} takes " + (
            f"one of the units {', '.join(UNITS)}" if measure in IN_SECONDS else "no unit"))
    try:
        bound = float(number) * UNITS.get(unit, 1.0)
    except ValueError:
        raise InputError(f"objective {text!r}: {number!r} is no number") from None
    pairs = tuple(_pair(part, text) for part in keys.split(",")) if keys else ()
    return Objective(" ".join(text.split()), measure, statistic, sign, bound, pairs)


def _pair(part: str, text: str) -> tuple[str, str]:
    key, equals, value = (word.strip() for word in part.partition("="))
    if not equals or not value or key not in KEYS:
        raise InputError(f"objective {text!r}: behind `for` come KEY=VALUE with one of {', '.join(KEYS)}, not {part!r}")
    return key, value


def level_of(statistic: str, text: str) -> float | None:
    """Return the share of a percentile, None for a mean. Raises InputError for no statistic."""
    named = {"mean": None, "median": 0.5, "max": 1.0}
    if statistic in named:
        return named[statistic]
    if re.fullmatch(r"p\d{1,2}(\.\d+)?", statistic) and float(statistic[1:]) > 0:
        return float(statistic[1:]) / 100.0
    raise InputError(f"objective {text!r}: the statistic must be mean, median, max or a percentile such as p95, "
                     f"not {statistic!r}")


def judged(objective: Objective, tasks: pl.DataFrame, jobs: pl.DataFrame, workload: Workload) -> ObjectiveFacts:
    """Return whether a run keeps an objective. *tasks* are described, *jobs* the job table, both of the window.

    Raises InputError where no task is concerned.
    """
    concerned = tasks.filter(_condition(objective, tasks, workload))
    if concerned.is_empty():
        raise InputError(f"objective {objective.text!r}: no task that is measured is of these")
    values = _values(objective.measure, concerned, jobs)
    value = _statistic(values, level_of(objective.statistic, objective.text))
    return ObjectiveFacts(objective.text, None if math.isinf(value) else value, objective.holds(value), len(concerned))


def _condition(objective: Objective, tasks: pl.DataFrame, workload: Workload) -> pl.Expr:
    condition = pl.lit(True)
    for key, value in objective.keys:
        if key == "class" and "class" not in tasks.columns:
            raise InputError(f"objective {objective.text!r}: the workload has no scheduling classes")
        if key == "queue":
            queue = pl.col("queue").cast(pl.String)
            condition &= (queue == value) | queue.str.starts_with(f"{value}/")
        elif key == "user":
            of_user = workload.jobs.select((pl.col("user") == value).arg_true())["user"]
            condition &= pl.col("job").is_in(of_user.cast(tasks["job"].dtype).implode())
        else:
            condition &= pl.col(key).cast(pl.String) == value
    return condition


def _values(measure: str, tasks: pl.DataFrame, jobs: pl.DataFrame) -> np.ndarray:
    """Return float64[task or job]; endless where it has not come to be."""
    if measure in OF_JOBS:
        column = "completion" if measure == "completion" else "slowdown"
        values = jobs.filter(pl.col("job").is_in(tasks["job"].unique().implode()))[column]
    elif measure == "wait":
        values = tasks["wait_time"]
    else:
        turnaround = tasks["finish"] - tasks["ready"]
        longer = tasks.select(pl.max_horizontal("run_time", pl.lit(SLOWDOWN_FLOOR_S)))["run_time"]
        values = turnaround if measure == "turnaround" else (turnaround / longer).clip(lower_bound=1.0)
    return np.sort(values.fill_null(math.inf).to_numpy())


def _statistic(values: np.ndarray, level: float | None) -> float:
    """Return the mean, or the least value that at least this share of the values does not exceed."""
    if values.size == 0:
        return math.inf
    return float(values.mean() if level is None else values[max(math.ceil(level * values.size) - 1, 0)])
