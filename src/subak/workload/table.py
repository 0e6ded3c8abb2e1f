"""The workload's tables: jobs, stages, tasks; checked once, with a folder form.

- jobs: one row a job; `queue` is a path such as `org/department/user`, at most 64 levels deep.
- stages: one row a set of alike tasks of a job; one int32 column per resource, in declared units.
- tasks: one row a task, sorted by arrival; the row number is the task's number everywhere.
"""
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from subak.dates import Days
from subak.errors import InputError
from subak.quantities import QUEUE_LEVELS_MAX
from subak.resources import Resource, asked_units
from subak.tables import (
    ColumnType,
    Provenance,
    Rule,
    amount_columns,
    amount_rules,
    in_units,
    read_table,
    refuse_rows,
    shaped,
    write_table,
)
from subak.toml_files import read_toml, write_toml
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.predicates import OPERATORS

NO_MATTER = "does not matter"  # ends that remark where these are few
DUMP_BEGINS = "the dump begins"  # the remark of readers of dumps that list of earlier jobs only some
QUEUES_ARE = "queues are"  # the remark of readers that make queues of several fields: partition/account/user
OWN_NODES = ("partition", "virtual cluster")  # parts of such queues that have nodes of their own
SLURM_JOBS = "Slurm jobs (an element of an array, or all nodes of a job)"  # the words for their count
TIME_0 = "time 0 is"  # the remark of readers whose traces have a calendar
MARKS_A_TASK = 4  # so many more indices than tasks may there be for marks to be worth their memory
TIME_MAX_S = 1e12  # 31,700 years: sums of such times keep a precision of a tenth of a millisecond
KINDS = pl.Enum(["TASK", "SERVICE"])
OUTCOMES = pl.Enum(["FINISH", "FAIL", "KILL", "EVICT", "LOST", "CENSORED"])

JOB_COLUMNS: dict[str, ColumnType] = {
    "job": pl.String,  # the job's id, no two alike
    "queue": pl.String,  # a path such as org/department/user
    "user": pl.String,  # who submitted it
}
STAGE_COLUMNS: dict[str, ColumnType] = {
    "job": pl.UInt32,  # row of the job
    "name": pl.String,  # what the stage is called within its job
    "depends_on": pl.List(pl.UInt32),  # rows of the stages of the same job that end first
    "kind": KINDS,
    "priority": pl.Int32,  # larger is more important
    "constraints": pl.List(CONSTRAINT_TYPE),
}
OPTIONAL_STAGE_COLUMNS: dict[str, ColumnType] = {
    "scheduling_class": pl.Int32,  # how sensitive to latency, 0 the least; recorded only
    "gang": pl.Boolean,  # whether its tasks start together: under megha, central, an order with a placement
    "speed_group": pl.UInt32,  # row of the fleet's speeds: how fast each machine is for its tasks
    "shuffle": pl.Float64,  # seconds of each attempt before the run time, as long on every machine: inputs are copied
    "rack_local": pl.Float64,  # what the run time is multiplied by on another machine of a rack that holds the input
    "off_rack": pl.Float64,  # and on a machine of another rack, of tasks of which it is known where their input lies
}
TASK_COLUMNS: dict[str, ColumnType] = {
    "stage": pl.UInt32,  # row of the stage
    "index": pl.UInt32,  # number within the job
    "arrival": pl.Float64,  # seconds
    "run_time": pl.Float64,  # seconds; inf for a service nobody stops
}
OPTIONAL_TASK_COLUMNS: dict[str, ColumnType] = {
    "estimate": pl.Float64,  # seconds; the user's guess of the run time
    "outcome": OUTCOMES,  # how it ended in the trace
    "recorded_start": pl.Float64,  # seconds; when it started in the trace
    "inputs": pl.List(pl.String),  # ids of the machines that hold its input
}


class Observed(msgspec.Struct, frozen=True):
    """When a trace shows arrivals as they came, in seconds; what arrives before stands for what was there already."""

    begin: float  # the first arrival that was seen
    end: float


@dataclass(frozen=True)
class Workload:
    """Jobs, stages and tasks that passed every check; build one with `make_workload` or `read_workload`."""

    resources: tuple[Resource, ...]
    jobs: pl.DataFrame
    stages: pl.DataFrame
    tasks: pl.DataFrame
    provenance: Provenance
    observed: Observed | None = None  # None: all arrivals are as they came

    @property
    def requests(self) -> np.ndarray:
        """int32[resource, stage], units."""
        return np.vstack([self.stages[resource.name].to_numpy() for resource in self.resources])

    @property
    def asked(self) -> frozenset[str]:
        """Return the names of the resources that any task asks for."""
        return frozenset(each.name for each in self.resources if (self.stages[each.name] > 0).any())

    @property
    def has_dependencies(self) -> bool:
        """Whether any stage waits for another."""
        return bool((self.stages["depends_on"].list.len() > 0).any())

    def gang_sizes(self) -> np.ndarray:
        """Return int64[stage]: the tasks of a stage of several that must start together, else 0."""
        if "gang" not in self.stages.columns:
            return np.zeros(len(self.stages), np.int64)
        sizes = np.bincount(self.tasks["stage"].to_numpy(), minlength=len(self.stages))
        return np.where(self.stages["gang"].fill_null(False).to_numpy() & (sizes > 1), sizes, 0)

    def write(self, folder: Path) -> None:
        """Write workload.toml and three Parquet files into an existing *folder*."""
        write_toml(_Header(self.resources, self.provenance, self.observed), folder / "workload.toml")
        for name, table in (("jobs", self.jobs), ("stages", self.stages), ("tasks", self.tasks)):
            write_table(table, folder / f"{name}.parquet")


def days_of(workload: Workload) -> Days:
    """Return which days a workload spans."""
    last = workload.tasks["arrival"].max()
    return Days(workload.provenance.calendar, 0.0 if last is None else float(last))  # type: ignore[arg-type]


def slurm_jobs(gang_sizes: np.ndarray, tasks: int) -> int:
    """Return how many jobs Slurm would count of so many *tasks*, of which int64[stage] start together."""
    return int(tasks - gang_sizes.sum() + np.count_nonzero(gang_sizes))


def expected_seconds(workload: Workload) -> np.ndarray:
    """Return float64[task], seconds: what a scheduler may know of run times, the estimate where there is one."""
    if "estimate" not in workload.tasks.columns:
        return workload.tasks["run_time"].to_numpy(writable=True)
    return workload.tasks.select(pl.coalesce("estimate", "run_time"))["estimate"].to_numpy(writable=True)


class _Header(msgspec.Struct, omit_defaults=True):
    resources: tuple[Resource, ...]
    provenance: Provenance
    observed: Observed | None = None


def make_workload(
    jobs: pl.DataFrame,
    stages: pl.DataFrame,
    tasks: pl.DataFrame,
    resources: tuple[Resource, ...],
    provenance: Provenance | None = None,
    observed: Observed | None = None,
) -> Workload:
    """Build a checked workload from tables whose stages hold float amounts (in ``resource.of``).

    Tasks are sorted by arrival, equal arrivals keeping their order. Raises InputError naming the rule and the row.
    """
    amount_columns(resources)
    counted = in_units(stages, resources, "stages", asked_units)
    return workload_of_units(jobs, counted, tasks, resources, provenance, observed)


def workload_of_units(
    jobs: pl.DataFrame, stages: pl.DataFrame, tasks: pl.DataFrame, resources: tuple[Resource, ...],
    provenance: Provenance | None = None, observed: Observed | None = None,
) -> Workload:
    """Build a checked workload of stages that ask for whole units, as `asked_units` makes them; see `make_workload`."""
    return _checked(_Header(tuple(resources), provenance or Provenance(), observed), jobs, stages, tasks)


def read_workload(folder: Path) -> Workload:
    """Read a workload folder and check it again. Raises InputError naming the file or the row."""
    header = read_toml(folder / "workload.toml", _Header)
    jobs, stages, tasks = (read_table(folder / f"{name}.parquet") for name in ("jobs", "stages", "tasks"))
    return _checked(header, jobs, stages, tasks)


def read_head(folder: Path) -> Workload:
    """Read a workload folder but for its tasks, of which there are then none; raises InputError as `read_workload`."""
    header = read_toml(folder / "workload.toml", _Header)
    jobs, stages = (read_table(folder / f"{name}.parquet") for name in ("jobs", "stages"))
    return _head(header, jobs, stages)


def _checked(header: _Header, jobs: pl.DataFrame, stages: pl.DataFrame, tasks: pl.DataFrame) -> Workload:
    head = _head(header, jobs, stages)
    tasks = checked_tasks(tasks, head)
    refuse_idle(np.bincount(tasks["stage"].to_numpy(), minlength=len(stages)), head)
    _refuse_twice(head.stages["job"].gather(tasks["stage"]), tasks["index"])
    if not tasks["arrival"].is_sorted():
        tasks = tasks.sort("arrival", maintain_order=True)
    return replace(head, tasks=tasks)


def _head(header: _Header, jobs: pl.DataFrame, stages: pl.DataFrame) -> Workload:
    """Return the workload without its tasks, checked."""
    amounts = amount_columns(header.resources)
    recorded = {name: kind for name, kind in OPTIONAL_STAGE_COLUMNS.items()
                if name in stages.columns and name not in amounts}
    jobs = shaped(jobs, JOB_COLUMNS, "jobs")
    stages = shaped(stages, {**STAGE_COLUMNS, **recorded, **amounts}, "stages")
    _check_jobs(jobs)
    _check_stages(stages, len(jobs), list(amounts))
    _check_dependencies(stages)
    _check_observed(header.observed)
    none = pl.DataFrame(schema=TASK_COLUMNS)
    return Workload(header.resources, jobs, stages, none, header.provenance, header.observed)


def _check_observed(observed: Observed | None) -> None:
    if observed is not None and not 0 <= observed.begin <= observed.end <= TIME_MAX_S:
        raise InputError(f"observed: must begin at 0 s or later, end no earlier, and by {TIME_MAX_S:g} s, not from "
                         f"{observed.begin:g} to {observed.end:g} s")


def _check_jobs(jobs: pl.DataFrame) -> None:
    job, queue = pl.col("job"), pl.col("queue")
    refuse_rows(jobs, "jobs", [
        Rule(job.is_null() | (job == ""), "a job needs an id", "job"),
        Rule(~job.is_first_distinct(), "job ids must differ", "job"),
        Rule(queue.is_null() | ~queue.str.contains(r"^[^/[:cntrl:]]+(/[^/[:cntrl:]]+)*$"),
             "queue must be a path of names such as org/department/user", "queue"),
        Rule(queue.str.count_matches("/", literal=True) >= QUEUE_LEVELS_MAX,
             f"queue must be at most {QUEUE_LEVELS_MAX} levels deep", "queue"),
    ])


def _check_stages(stages: pl.DataFrame, job_count: int, amounts: list[str]) -> None:
    refuse_rows(stages, "stages", [
        Rule(pl.col("job").is_null() | (pl.col("job") >= job_count), f"job must be a row of the {job_count} jobs",
             "job"),
        *(Rule(pl.col(name).is_null(), f"{name} must be given", name) for name in ("kind", "priority")),
        *amount_rules(amounts),
        *_optional_rules(stages),
        Rule(pl.all_horizontal(pl.col(name) == 0 for name in amounts),
             f"a request must ask for something ({', '.join(amounts)})", amounts[0]),
        Rule(pl.col("constraints").list.eval(pl.element().is_null()).list.any(), "a constraint must not be empty",
             "constraints"),
    ])
    _check_constraints(stages["constraints"])


def _optional_rules(stages: pl.DataFrame) -> list[Rule]:
    seconds, factors = pl.col("shuffle"), ("rack_local", "off_rack")
    rules = [
        Rule(pl.col("speed_group").is_null(), "speed_group must be given", "speed_group"),
        Rule(seconds.is_null() | ~seconds.is_finite() | (seconds < 0) | (seconds > TIME_MAX_S),
             f"shuffle must be from 0 to {TIME_MAX_S:g} s", "shuffle"),
        *(Rule(pl.col(name).is_null() | ~pl.col(name).is_finite() | (pl.col(name) < 1),
               f"{name} must be a finite number, 1 or more", name) for name in factors),
    ]
    return [rule for rule in rules if rule.column in stages.columns]


def _check_constraints(constraints: pl.Series) -> None:
    for constraint in constraints.explode().drop_nulls().unique().to_list():
        attribute, operator, value = constraint["attribute"], constraint["operator"], constraint["value"]
        if not attribute or operator not in OPERATORS:
            raise InputError(f"stages: a constraint needs an attribute and one of {' '.join(OPERATORS)}, "
                             f"not {attribute!r} {operator!r} {value!r}")
        if operator not in ("=", "!=") and not _is_number(value):
            raise InputError(f"stages: constraint {attribute} {operator} needs a number, not {value!r}")


def _is_number(text: str | None) -> bool:
    try:
        return float(text or "") == float(text or "")
    except ValueError:
        return False


def _check_dependencies(stages: pl.DataFrame) -> None:
    """Every dependency is an earlier-finishing stage of the same job: no self, no stranger, no cycle."""
    edges = (
        stages.lazy().with_row_index("stage")
        .select("stage", "job", pl.col("depends_on").alias("parent"))
        .explode("parent")
        .drop_nulls("parent")
        .collect()
    )
    if edges.is_empty():
        return
    stage, parent = pl.col("stage"), pl.col("parent")
    refuse_rows(edges, "stages", [
        Rule(parent >= len(stages), "depends_on must name rows of stages", "parent"),
        Rule(parent == stage, "a stage must not depend on itself", "stage"),
    ])
    strangers = edges.with_columns(stages["job"].gather(edges["parent"]).alias("parent_job"))
    refuse_rows(strangers, "stages", [
        Rule(pl.col("parent_job") != pl.col("job"), "a stage may only depend on stages of its own job", "stage")])
    _refuse_cycles(edges)


def _refuse_cycles(edges: pl.DataFrame) -> None:
    """Peel off stages that wait for nothing that is left; what cannot be peeled is a cycle."""
    while not edges.is_empty():
        left = edges.filter(pl.col("parent").is_in(edges["stage"].unique().implode()))
        if len(left) == len(edges):
            stuck = edges["stage"][0]
            raise InputError(f"stages: dependencies must not form a cycle, stage {stuck} is in or behind one")
        edges = left


def checked_tasks(tasks: pl.DataFrame, head: Workload) -> pl.DataFrame:
    """Return some tasks of a workload in their columns' types. Raises InputError naming the rule and the row."""
    optional = {name: kind for name, kind in OPTIONAL_TASK_COLUMNS.items() if name in tasks.columns}
    tasks, stages = shaped(tasks, {**TASK_COLUMNS, **optional}, "tasks"), head.stages
    stage = pl.col("stage")
    refuse_rows(tasks, "tasks", [
        Rule(stage.is_null() | (stage >= len(stages)), f"stage must be a row of the {len(stages)} stages", "stage"),
        Rule(pl.col("index").is_null(), "index must be given", "index"),
        *(rule for name in ("arrival", "run_time", "estimate", "recorded_start") if name in tasks.columns
          for rule in _time_rules(name, name in ("run_time", "estimate"), name in OPTIONAL_TASK_COLUMNS)),
        *(Rule(pl.col(name) < pl.col("arrival"), f"{name} must not be before arrival", name)
          for name in ("recorded_start",) if name in tasks.columns),
    ])
    return tasks


def refuse_idle(count: np.ndarray, head: Workload) -> None:
    """Raise InputError for a stage that others wait for and that has no task; *count* is int[stage], its tasks."""
    idle = np.flatnonzero(count == 0)
    awaited = np.intersect1d(idle, head.stages["depends_on"].explode().drop_nulls().to_numpy())
    if awaited.size > 0:
        raise InputError(f"stages: a stage that others wait for must have a task, row {awaited[0]} has none")


def _refuse_twice(job: pl.Series, index: pl.Series) -> None:
    """Raise InputError for the first task whose index another of its job has."""
    if _dense_and_distinct(job.to_numpy(), index.to_numpy()):
        return
    numbers = (job.cast(pl.UInt64) * 2**32) + index.cast(pl.UInt64)
    if numbers.n_unique() != len(index):
        row = int(np.argmin(numbers.is_first_distinct().to_numpy()))
        raise InputError(f"tasks: an index must occur once in a job, row {row} has {index[row]} again")


def _dense_and_distinct(job: np.ndarray, index: np.ndarray) -> bool:
    """Whether every task has an index that no other of its job has, and those of a job are nearly its first numbers.

    A mark for each then tells it: a month's tasks in a tenth of the time, and of the memory, of a table of them.
    """
    room = np.zeros(int(job.max(initial=0)) + 2, np.int64)  # of each job, behind those before it
    np.maximum.at(room, job.astype(np.int64) + 1, index.astype(np.int64) + 1)
    first = np.cumsum(room)
    if first[-1] > MARKS_A_TASK * index.size:
        return False
    seen = np.zeros(int(first[-1]), bool)
    seen[first[job] + index] = True
    return int(seen.sum()) == index.size


def _time_rules(name: str, infinite: bool, optional: bool) -> list[Rule]:
    column = pl.col(name)
    return [
        *([] if optional else [Rule(column.is_null(), f"{name} must be given", name)]),
        Rule(column.is_nan(), f"{name} must be a number of seconds", name),
        Rule(column < 0, f"{name} must not be negative", name),
        Rule(column.is_finite() & (column > TIME_MAX_S), f"{name} must be at most {TIME_MAX_S:g} s", name),
        *([] if infinite else [Rule(column.is_infinite(), f"{name} must be finite", name)]),
    ]
