"""Parses objectives such as `wait.p95 < 60s for queue=prod`.

    MEASURE.STATISTIC  < | <= | > | >=  NUMBER[UNIT]  [for KEY=VALUE,KEY=VALUE]

Measures: wait, turnaround (seconds, of tasks), slowdown (of tasks); slurm_wait (seconds, of what Slurm calls a job: an
element of an array, or all nodes of a job); of jobs job_wait (seconds until the first of its tasks starts), completion
(seconds) and job_slowdown.
Statistics: mean, median, max, and percentiles such as p95 or p99.9. Keys: queue (a path, with all below it), user,
priority, length (short or long), class. What never started, or never ended, counts as endless: a scheduler does not
keep an objective by leaving tasks out.

Of the machines, where an energy file says what they draw: energy (Wh, kWh, MWh), cost (no unit: the file's currency),
carbon (g, kg, t of CO2 equivalent), with the statistics total, per_task (over the tasks that finished in the window)
and per_used_hour (over the core-hours, or the like, that tasks held); they take no keys.
"""
import operator
import re
from contextlib import suppress
from typing import NamedTuple

from subak.errors import InputError
from subak.quantities import SECOND_UNITS, parse_duration

OF_TASKS, OF_JOBS = ("wait", "turnaround", "slowdown"), ("job_wait", "completion", "job_slowdown")
SLURM_WAIT = "slurm_wait"  # of tasks that start together once, and of each other task
OF_MACHINES = {"energy": "kwh", "cost": "cost", "carbon": "carbon"}  # and what summary.json calls the amount
MACHINE_STATISTICS = ("total", "per_task", "per_used_hour")
IN_SECONDS = ("wait", "turnaround", SLURM_WAIT, "job_wait", "completion")
MEASURES = (*OF_TASKS, SLURM_WAIT, *OF_JOBS, *OF_MACHINES)
KEYS = ("queue", "user", "priority", "length", "class")
UNITS = {**dict.fromkeys(IN_SECONDS, SECOND_UNITS), "energy": {"Wh": 1e-3, "kWh": 1.0, "MWh": 1e3},
         "carbon": {"g": 1e-3, "kg": 1.0, "t": 1e3}}  # by measure; others take none
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MEASURED, CONCERNED = r"\s*([a-z_]+)\.([a-z0-9._]+)\s*", r"(?:\s+for\s+(.+?))?\s*"
BOUND = r"(<=|>=|<|>)\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([A-Za-z][A-Za-z0-9]*|[:-][0-9:.-]+)?"  # 1h30m and 1-02:30:00 too
FORM = re.compile(MEASURED + BOUND + CONCERNED, re.ASCII)
UNBOUND = re.compile(MEASURED + CONCERNED, re.ASCII)
EXAMPLE, MEASURE_EXAMPLE = "wait.p95 < 60s for queue=prod", "wait.p95 for queue=prod"


class Objective(NamedTuple):
    """What must hold of some tasks, or jobs, or of the machines."""

    text: str
    measure: str
    statistic: str
    sign: str
    bound: float  # seconds, kWh, kg, or a number without a unit
    keys: tuple[tuple[str, str], ...]

    def holds(self, value: float) -> bool:
        """Whether a value keeps the objective."""
        return bool(SIGNS[self.sign](value, self.bound))


def read_objective(text: str) -> Objective:
    """Read an objective. Raises InputError, naming what is wrong, for what is none."""
    found = FORM.fullmatch(text)
    if found is None:
        raise InputError(f"objective: must be like {EXAMPLE!r} (95 % of that queue's tasks wait less), not {text!r}")
    measure, statistic, sign, number, unit, keys = found.groups()
    _refuse_unknown(measure, statistic, text)
    units = UNITS.get(measure, {"": 1.0})
    if measure in IN_SECONDS and unit and unit not in units:
        with suppress(ValueError):  # the units are said below
            number, unit = str(parse_duration(number + unit)), "s"
    if (unit or "") not in units:
        raise InputError(f"objective {text!r}: {measure} takes " + (
            f"one of the units {', '.join(units)}" if measure in UNITS else "no unit"))
    try:
        bound = float(number) * units[unit or ""]
    except ValueError:
        raise InputError(f"objective {text!r}: {number!r} is no number") from None
    return Objective(" ".join(text.split()), measure, statistic, sign, bound, _pairs(measure, keys, text))


def read_measure(text: str) -> Objective:
    """Read what is to be as small as possible, such as `wait.p95 for queue=prod`: an objective that any value keeps.

    Raises InputError, naming what is wrong, for what is none.
    """
    found = UNBOUND.fullmatch(text)
    if found is None:
        raise InputError(f"measure: must be like {MEASURE_EXAMPLE!r}, not {text!r}")
    measure, statistic, keys = found.groups()
    _refuse_unknown(measure, statistic, text)
    return Objective(" ".join(text.split()), measure, statistic, "<=", float("inf"), _pairs(measure, keys, text))


def _refuse_unknown(measure: str, statistic: str, text: str) -> None:
    if measure not in MEASURES:
        raise InputError(f"objective {text!r}: the measure must be one of {', '.join(MEASURES)}")
    if measure not in OF_MACHINES:
        level_of(statistic, text)
    elif statistic not in MACHINE_STATISTICS:
        raise InputError(f"objective {text!r}: the statistic of {measure} must be {', '.join(MACHINE_STATISTICS[:-1])} "
                         f"or {MACHINE_STATISTICS[-1]}, not {statistic!r}")


def _pairs(measure: str, keys: str | None, text: str) -> tuple[tuple[str, str], ...]:
    if keys and measure in OF_MACHINES:
        raise InputError(f"objective {text!r}: {measure} is of all machines, and takes no keys")
    return tuple(_pair(part, text) for part in keys.split(",")) if keys else ()


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
