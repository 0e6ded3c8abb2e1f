"""The parameters of the Google-like model: the paper's, and those of the small models.

The paper's four are always on. Every other model is off (None) or neutral by default, has its own struct, and is
written into the generated workload's metadata, so that a workload says how it was made.
"""
import math
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from subak.errors import InputError
from subak.json_type import Json
from subak.output.writing import write_file
from subak.quantities import Seconds
from subak.resources import Resource, asked_units
from subak.toml_files import read_toml
from subak.workload.predicates import OPERATORS, Constraint

DRAWN_TASKS_MAX = 2**31 - 1  # of a workload: task numbers are uint32, and some are left for other readers' markers
MOST_CHOICES = 62  # a set of constraints is a bit mask of 64 bits
MOST_STAGES = 100
GAP_SHAPE_MAX = 1_000_000  # far above it, rounding errors swallow the gaps
MOST_USERS = 1_000_000


def require(holds: bool, rule: str, value: object) -> None:
    """Raise InputError that states the *rule* and the *value*, unless it *holds*."""
    if not holds:
        raise InputError(f"{rule}, not {value!r}")


def require_share(what: str, value: float) -> None:
    """Raise InputError unless *value* is a share, 0 to 1."""
    require(0 <= value <= 1, f"{what} must be a share from 0 to 1", value)


def require_positive(what: str, value: float) -> None:
    """Raise InputError unless *value* is finite and above 0."""
    require(math.isfinite(value) and value > 0, f"{what} must be a positive number", value)


def require_weights(what: str, values: Sequence[float]) -> None:
    """Raise InputError unless *values* are finite, none below 0, and not all 0."""
    for value in values:
        require(math.isfinite(value) and value >= 0, f"{what} must be finite and not negative", value)
    require(sum(values) > 0, f"{what} must not all be 0, and there must be one at least", list(values))


class Makespans(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Log-normal makespans: mean = mass, mean / median = disparity (paper, section V)."""

    mass: Seconds
    disparity: float

    def __post_init__(self) -> None:
        require(math.isfinite(self.mass) and self.mass > 0, "mass must be a positive number of seconds", self.mass)
        require(math.isfinite(self.disparity) and self.disparity > 1,
                "disparity (mean / median) must be greater than 1", self.disparity)

    @property
    def mu(self) -> float:
        """The mean of the logarithm: ln(mass / disparity)."""
        return math.log(self.mass / self.disparity)

    @property
    def sigma(self) -> float:
        """The standard deviation of the logarithm: sqrt(2 ln disparity)."""
        return math.sqrt(2 * math.log(self.disparity))


class Jobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks per job: 1 with probability *single*, else 1 + a log-normal rounded down, up to *most*."""

    single: float = 1.0
    mass: float = 30.0  # mean of the log-normal
    disparity: float = 4.0
    most: int = 50_000

    def __post_init__(self) -> None:
        require_share("jobs: single", self.single)
        require_positive("jobs: mass", self.mass)
        require(math.isfinite(self.disparity) and self.disparity > 1,
                "jobs: disparity (mean / median) must be greater than 1", self.disparity)
        require(1 <= self.most <= DRAWN_TASKS_MAX, f"jobs: most must be from 1 to {DRAWN_TASKS_MAX} tasks", self.most)

    @property
    def law(self) -> Makespans:
        """The log-normal behind the jobs of more than one task."""
        return Makespans(self.mass, self.disparity)


class RequestClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A share of the tasks (or jobs, when there are jobs) and what each asks, in natural amounts."""

    share: float
    amounts: dict[str, float]

    def __post_init__(self) -> None:
        require(math.isfinite(self.share) and self.share >= 0, "requests: share must be finite and not negative",
                self.share)


class Priorities(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Priority levels and scheduling classes by their joint counts (Tables III to V), for tasks and for services."""

    tasks: dict[str, float]  # "priority/class" -> weight, such as "4/0"
    services: dict[str, float]

    def __post_init__(self) -> None:
        for kind, weights in (("tasks", self.tasks), ("services", self.services)):
            for level in weights:
                require(re.fullmatch(r"(0|[1-9]\d{0,8})/(0|[1-9]\d{0,8})", level) is not None,
                        f"priorities: {kind} must be named PRIORITY/CLASS, such as 4/0", level)
            require_weights(f"priorities: weights of {kind}", list(weights.values()))


class Constraints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A share *rate* of the stages has constraints: each of *choices* independently with its frequency, one at least.

    *met_by* is the share of the machines that meet each, in the same order; it makes the attributes of a fleet.
    """

    rate: float
    choices: tuple[tuple[Constraint, float], ...]
    met_by: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require_share("constraints: rate", self.rate)
        require(1 <= len(self.choices) <= MOST_CHOICES,
                f"constraints: there must be 1 to {MOST_CHOICES} choices", len(self.choices))
        for constraint, frequency in self.choices:
            _require_constraint(constraint)
            require_share(f"constraints: frequency of {constraint}", frequency)
        require(sum(frequency for _, frequency in self.choices) > 0, "constraints: a frequency must be above 0",
                [frequency for _, frequency in self.choices])
        require(len(self.met_by) in (0, len(self.choices)),
                f"constraints: met_by must be left out or hold a share for each of the {len(self.choices)} choices",
                len(self.met_by))
        for share in self.met_by:
            require_share("constraints: met_by", share)


def _require_constraint(constraint: Constraint) -> None:
    require(constraint.attribute != "", "constraints: a constraint needs an attribute", constraint.attribute)
    require(constraint.operator in OPERATORS, f"constraints: the operator must be one of {' '.join(OPERATORS)}",
            constraint.operator)
    if constraint.operator not in ("=", "!="):
        require(re.fullmatch(r"[-+]?\d+(\.\d+)?", constraint.value) is not None,
                f"constraints: {constraint.attribute} {constraint.operator} needs a number", constraint.value)


class Queues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Users by Zipf's law with *exponent*, spread over *departments* of one organisation."""

    users: int = 1
    exponent: float = 1.0
    departments: int = 1

    def __post_init__(self) -> None:
        require(1 <= self.users <= MOST_USERS, f"queues: users must be from 1 to {MOST_USERS}", self.users)
        require(math.isfinite(self.exponent) and self.exponent >= 0, "queues: exponent must be finite, 0 or more",
                self.exponent)
        require(1 <= self.departments <= self.users, "queues: departments must be from 1 to the number of users",
                self.departments)


class Diurnal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arrival rate times 1 + amplitude * sin(2 pi (t - phase) / period); the mean rate is kept."""

    amplitude: float
    period: Seconds = 86_400.0  # seconds
    phase: Seconds = 0.0  # seconds

    def __post_init__(self) -> None:
        require(0 <= self.amplitude < 1, "diurnal: amplitude must be 0 or more and below 1", self.amplitude)
        require_positive("diurnal: period", self.period)
        require(math.isfinite(self.phase), "diurnal: phase must be a finite number of seconds", self.phase)


class Stages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A share of the jobs has several stages: a chain, each waiting for the one before, or a fan-in.

    In a fan-in only the last stage waits, for all others. A job has no more stages than tasks.
    """

    share: float
    most: int = 4  # stages are 2 to *most*, all equally likely
    fan_in: float = 0.5  # share of those jobs whose last stage waits for all others

    def __post_init__(self) -> None:
        require_share("stages: share", self.share)
        require(2 <= self.most <= MOST_STAGES, f"stages: most must be from 2 to {MOST_STAGES}", self.most)
        require_share("stages: fan_in", self.fan_in)


class Failures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shares of the tasks that fail, or are killed, at a point of their makespan that is uniform."""

    fail: float = 0.0
    kill: float = 0.0

    def __post_init__(self) -> None:
        require_share("failures: fail", self.fail)
        require_share("failures: kill", self.kill)
        require(self.fail + self.kill <= 1, "failures: fail and kill together must be at most 1",
                self.fail + self.kill)


TABLE_2 = (  # LoTES (Tran et al., 2016), Table 2
    RequestClass(0.23, {"cpu": 0.02, "memory": 0.01}),
    RequestClass(0.46, {"cpu": 0.02, "memory": 0.03}),
    RequestClass(0.30, {"cpu": 0.07, "memory": 0.03}),
    RequestClass(0.01, {"cpu": 0.20, "memory": 0.06}),
)
SHARES = (Resource("cpu", 1e-8, "of the largest machine"), Resource("memory", 1e-8, "of the largest machine"))


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workload in numbers. The defaults are the paper's for Google 2011 (section V)."""

    name: str = "google-like"
    dynamism: Seconds = 0.05  # seconds, mean gap between tasks; with jobs, jobs come so that the rate of tasks is kept
    gap_shape: float = 4.0  # of the Pareto law of the gaps
    type: float = 0.7  # share of tasks; the rest are services
    tasks: Makespans = Makespans(1700.0, 3.8)
    services: Makespans = Makespans(8000.0, 24.0)
    task_priority_rate: float = 6.0  # of the truncated exponential on ]0, 1]
    service_priority_rate: float = 3.0
    resources: tuple[Resource, ...] = SHARES
    requests: tuple[RequestClass, ...] = TABLE_2  # joint: a class, or a row resampled from a trace, with its weight
    jobs: Jobs | None = None
    priorities: Priorities | None = None  # None: the paper's continuous priority, in thousandths
    priority_levels: int = 1000  # the continuous priority is rounded up to so many levels
    constraints: Constraints | None = None
    queues: Queues = Queues()
    diurnal: Diurnal | None = None
    stages: Stages | None = None
    gangs: float = 0.0  # share of the jobs whose tasks must start together; recorded only
    failures: Failures | None = None

    def __post_init__(self) -> None:
        require(self.name != "", "name must not be empty", self.name)
        require(math.isfinite(self.dynamism) and self.dynamism > 0,
                "dynamism (the mean gap) must be a positive number of seconds", self.dynamism)
        require(1 < self.gap_shape <= GAP_SHAPE_MAX, "gap_shape must be greater than 1, or gaps have no mean, and at "
                f"most {GAP_SHAPE_MAX:,}, which is exponential", self.gap_shape)
        require_share("type (the share of tasks)", self.type)
        require_positive("task_priority_rate", self.task_priority_rate)
        require_positive("service_priority_rate", self.service_priority_rate)
        require(1 <= self.priority_levels <= 1000, "priority_levels must be from 1 to 1000", self.priority_levels)
        require_share("gangs", self.gangs)
        self._require_requests()
        self._require_jobs()

    def _require_requests(self) -> None:
        names = [resource.name for resource in self.resources]
        require(len(names) > 0 and len(set(names)) == len(names),
                "resources must be named once each, and at least one", names)
        require_weights("requests: shares", [request.share for request in self.requests])
        for number, request in enumerate(self.requests):
            require(sorted(request.amounts) == sorted(names),
                    f"requests: class {number} must name each of {', '.join(names)} once", sorted(request.amounts))
        units = [asked_units(np.array([request.amounts[resource.name] for request in self.requests]), resource,
                             "requests")
                 for resource in self.resources]
        for number in np.flatnonzero(~np.any(units, axis=0)).tolist():
            require(False, f"requests: class {number} must ask for something",
                    self.requests[number].amounts)

    def _require_jobs(self) -> None:
        if self.jobs is None:
            require(self.stages is None, "stages need jobs: give [jobs] in the parameter file", "stages alone")
            require(self.gangs == 0, "gangs need jobs: give [jobs] in the parameter file", f"gangs = {self.gangs}")

    def as_notes(self) -> dict[str, Json]:
        """Return everything as TOML can hold it: what is off is left out."""
        return {name: value for name, value in msgspec.to_builtins(self).items() if value is not None}


def read_parameters(path: Path) -> Parameters:
    """Read a parameter file; what it leaves out has its default. Raises InputError naming the file and the mistake."""
    try:
        return read_toml(path, Parameters)
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(f"{path}:") else f"{path}: {error}") from None


def write_parameters(parameters: Parameters, path: Path) -> None:
    """Write a parameter file that `read_parameters` and `subak generate --parameters` take, whole or not at all."""
    write_file(path, msgspec.toml.encode(parameters.as_notes()))
