"""WfFormat (WfCommons), versions 1.4, 1.5 and 1.6: JSON, a workflow a file; a folder of such files is several jobs.

- A workflow is a job, called as its file is; it arrives at 0, for the format has no arrivals. Each of its tasks is a
  stage of one task, which waits for its parents: those it names, and those that name it as their child. Tasks are named
  by their id, in 1.4 by their name.
- A task runs for runtimeInSeconds and asks for coreCount cores (1.4: cores), for 1 where that is missing or 0. Its
  memory is what it used (memoryInBytes), not what it asked for; none where that is missing.
- A workflow is kept whole or not at all: one with a task whose run time is unknown, with a parent that there is not, or
  with a circle of tasks is dropped, and its load is lost.
- A task started at its executedAt, counted from the workflow's, where both are instants of ISO 8601.
- The fleet is the machines that say how many cores they have, and their memory where a task used any; of those with one
  name, the largest.
- It has no users, queues, estimates, priorities, outcomes and GPUs. Input and output files are not read.

Source: https://github.com/wfcommons/WfFormat, wfcommons-schema.json; Coleman et al., FGCS 2022. Made from that schema
and files written by hand.
"""
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet, make_fleet
from subak.resources import Resource
from subak.tables import ColumnType, Provenance
from subak.workload.readers.conversion import (
    Conversion,
    Reader,
    account_of,
    dropped_of_files,
    kept_load,
    notes,
    refuse_too_many,
    with_recorded,
)
from subak.workload.readers.files.faults import Faults, Rows
from subak.workload.readers.files.json_text import converted, json_files, json_values
from subak.workload.readers.files.stream import Advance, Block
from subak.workload.readers.files.times import stamp_seconds
from subak.workload.readers.options import Options
from subak.workload.readers.rows import FAULTY, NO_RUN_TIME, add_amounts, again
from subak.workload.readers.rulings import KEPT, Ruling, ruling, with_ruling
from subak.workload.table import TIME_MAX_S, Workload, make_workload

BYTES_A_MIB = 2.0**20
RESOURCES = (Resource("cpu", 1e-3, "cores"), Resource("memory", 1.0, "MiB"))
VERSIONS = ("1.4", "1.5", "1.6")
ORIGIN = "workflows in WfFormat (WfCommons); Coleman et al., FGCS 2022"
LICENCE = "not stated in the files"
TASK_COLUMNS: dict[str, ColumnType] = {
    "file": pl.String, "line": pl.Int64,  # a task's number in its workflow
    "job": pl.String, "task": pl.String,  # what others name it by
    "parents": pl.List(pl.String), "stranger": pl.String,  # a parent that there is not
    "in_circle": pl.Boolean, "specified": pl.Boolean,
    "run_time": pl.Float64, "cores": pl.Float64, "bytes": pl.Float64,
    "executed": pl.String, "begin": pl.String,  # instants: of the task, of the workflow
    "machine_count": pl.Int64,
}
MACHINE_COLUMNS: dict[str, ColumnType] = {
    "file": pl.String, "line": pl.Int64, "machine": pl.String, "cores": pl.Float64, "bytes": pl.Float64}


class Cpu(msgspec.Struct, frozen=True, rename="camel"):
    """The processors of a machine; version 1.4 says `count`."""

    core_count: float | None = None
    count: float | None = None


class Machine(msgspec.Struct, frozen=True, rename="camel"):
    """A machine of an execution."""

    node_name: str
    memory_in_bytes: float | None = None
    cpu: Cpu | None = None


class Task(msgspec.Struct, frozen=True, rename="camel"):
    """A task as specified, as executed, or both, which is how version 1.4 has it."""

    id: str | None = None
    name: str | None = None
    parents: tuple[str, ...] | None = None
    children: tuple[str, ...] | None = None
    runtime_in_seconds: float | None = None
    core_count: float | None = None
    cores: float | None = None  # coreCount of version 1.4
    memory_in_bytes: float | None = None
    executed_at: str | None = None
    machines: tuple[Any, ...] | None = None


class Specification(msgspec.Struct, frozen=True):
    """What is to be done."""

    tasks: tuple[Task, ...] = ()


class Execution(msgspec.Struct, frozen=True, rename="camel"):
    """What was done; version 1.4 has its fields in the workflow."""

    tasks: tuple[Task, ...] = ()
    machines: tuple[Machine, ...] | None = None
    executed_at: str | None = None


class Parts(Execution, frozen=True, rename="camel"):
    """A workflow: a specification and an execution; in version 1.4 tasks that are both."""

    specification: Specification = Specification()
    execution: Execution | None = None


class Document(msgspec.Struct, frozen=True, rename="camel"):
    """A file."""

    schema_version: str
    workflow: Parts


FIELDS = frozenset(name for kind in (Document, Parts, Specification, Execution, Task, Machine, Cpu)
                   for name in kind.__struct_encode_fields__)


class Tables(NamedTuple):
    """What files hold: TASK_COLUMNS, MACHINE_COLUMNS, and how many workflows have no tasks."""

    tasks: pl.DataFrame
    machines: pl.DataFrame
    empty: int


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read workflows. Raises InputError naming the file and the field of a mistake."""
    tables = _tables(source, advance)
    ruled = _with_rulings(tables.tasks, source)
    kept, loads = kept_load(ruled, source, "tasks", RESOURCES, options, "task")
    refuse_too_many(float(len(kept)), source)
    machines = _machine_rulings(tables.machines, bool(kept["memory"].sum()))
    accounts = (account_of("tasks", ruled), *([account_of("machines", machines)] if len(machines) else []))
    used = machines.filter(ruling=KEPT)
    remarks = _remarks(kept, used, tables.empty)
    provenance = Provenance(source.name.split(".")[0], f"{source.name}: {ORIGIN}", LICENCE,
                            notes(accounts, remarks, {}))
    dropped = pl.concat([dropped_of_files("tasks", ruled), dropped_of_files("machines", machines)])
    return Conversion(_workload(kept, provenance), _fleet(used, provenance), accounts, remarks, dropped, loads=loads)


READER = Reader("workflows in WfFormat (WfCommons) 1.4, 1.5 or 1.6: a file, or a folder of *.json", json_files, read,
                frozenset({"max_lost"}))


# Files


def _tables(source: Path, advance: Advance) -> Tables:
    tasks: list[tuple[Any, ...]] = []
    machines: list[tuple[Any, ...]] = []
    called: dict[str, int] = {}
    empty = 0
    for path in json_files(source):
        for value in json_values(path, advance, FIELDS):
            document = converted(value, Document, f"{path}")
            if document.schema_version not in VERSIONS:
                raise InputError(f"{path}: schemaVersion must be one of {', '.join(VERSIONS)}, not "
                                 f"{document.schema_version[:60]!r}")
            stem = path.name.partition(".json")[0] or path.name
            called[stem] = called.get(stem, 0) + 1
            job = stem if called[stem] == 1 else f"{stem}#{called[stem]}"
            whole = document.workflow
            done = whole if document.schema_version == "1.4" else whole.execution or Execution()
            before = len(tasks)
            tasks += _task_rows(path, job, document, done)
            empty += len(tasks) == before
            machines += [(path.name, number, each.node_name, _either(each.cpu, "core_count", "count"),
                          each.memory_in_bytes) for number, each in enumerate(done.machines or (), 1)]
    if not tasks:
        raise InputError(f"{source}: has no tasks of workflows")
    return Tables(pl.DataFrame(tasks, TASK_COLUMNS, orient="row"),
                  pl.DataFrame(machines, MACHINE_COLUMNS, orient="row"), empty)


def _task_rows(path: Path, job: str, document: Document, done: Execution) -> Iterator[tuple[Any, ...]]:
    """Yield TASK_COLUMNS of a workflow: a row each task, and each run of a task that the specification lacks."""
    named = [(_key(task, document, path), task, task) for task in done.tasks] if document.schema_version == "1.4" else (
        _joined(document, done, path))
    parents: dict[str, dict[str, None]] = {key: {} for key, _, _ in named}
    strangers: dict[str, str] = {}
    for key, task, _ in named:
        for above, below in (*((name, key) for name in (task.parents if task else None) or ()),
                             *((key, name) for name in (task.children if task else None) or ())):
            if above in parents and below in parents:
                parents[below][above] = None
            else:
                strangers[key] = below if above == key else above
    circle = _circle(parents)
    for number, (key, task, run) in enumerate(named, 1):
        yield (path.name, number, job, key, list(parents[key]), strangers.get(key), key in circle, task is not None,
               run and run.runtime_in_seconds, _either(run, "core_count", "cores"), run and run.memory_in_bytes,
               run and run.executed_at, done.executed_at, len((run and run.machines) or ()))


def _joined(document: Document, done: Execution, path: Path) -> list[tuple[str, Task | None, Task | None]]:
    """Return each task with its run, None where there is none, and runs without a task, by id."""
    runs: dict[str, list[Task]] = {}
    for run in done.tasks:
        runs.setdefault(_key(run, document, path), []).append(run)
    tasks = [(_key(task, document, path), task) for task in document.workflow.specification.tasks]
    joined: list[tuple[str, Task | None, Task | None]] = [
        (key, task, runs[key].pop(0) if runs.get(key) else None) for key, task in tasks]
    return [*joined, *((key, None, run) for key, left in runs.items() for run in left)]


def _key(task: Task, document: Document, path: Path) -> str:
    """Return what names a task to others. Raises InputError where it has no such name."""
    field = "name" if document.schema_version == "1.4" else "id"
    name: str | None = getattr(task, field)
    if not name:
        raise InputError(f"{path}: a task of version {document.schema_version} needs {field}")
    return name


def _either(of: msgspec.Struct | None, first: str, second: str) -> float | None:
    value: float | None = getattr(of, first, None)
    return getattr(of, second, None) if value is None else value


def _circle(parents: dict[str, dict[str, None]]) -> frozenset[str]:
    """Return the tasks of a circle in which each waits for the next, none where there is no circle."""
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        return frozenset(error.args[1])
    return frozenset()


# Rulings


def _with_rulings(tasks: pl.DataFrame, source: Path) -> pl.DataFrame:
    """Add the amounts, `recorded_start` and the rulings; what drops one task drops its workflow."""
    cores, begin = pl.col("cores"), stamp_seconds(pl.col("begin"))
    start = stamp_seconds(pl.col("executed")) - begin
    table = tasks.with_columns(
        cpu=pl.when(cores != 0).then(cores).otherwise(1.0).fill_null(1.0),
        memory=(pl.col("bytes") / BYTES_A_MIB).fill_null(0.0),
        recorded_start=pl.when(start.is_between(0, TIME_MAX_S)).then(start))
    faults = Faults(Rows(table, Block(source, 1, b"")))
    faults.add(table, ~pl.col("specified"), "a run must be the one run of a task of the specification", "task", "id")
    faults.add(table, ~pl.struct("job", "task").is_first_distinct(), "no two tasks may have one name", "task", "id")
    faults.add(table, pl.col("stranger").is_not_null(), "parents and children must be tasks", "stranger", "parents")
    faults.add(table, pl.col("in_circle"), "tasks must not wait for each other in a circle", "task", "parents")
    faults.add(table, ~pl.col("run_time").is_between(0, TIME_MAX_S),
               f"runtimeInSeconds must be from 0 to {TIME_MAX_S:g} s", "run_time", "runtimeInSeconds")
    add_amounts(faults, table, RESOURCES)
    own = ruling([FAULTY, Ruling(pl.col("run_time").is_null(), NO_RUN_TIME)])
    judged = faults.onto(table).with_columns(own=own)
    cause = pl.col("own").filter(pl.col("own") != KEPT).first().over("job")
    return with_ruling(judged, [
        Ruling(pl.col("own") != KEPT, pl.col("own")),
        Ruling(cause.is_not_null(), pl.format("of a workflow that is dropped for another task: {}", cause)),
    ])


def _machine_rulings(machines: pl.DataFrame, with_memory: bool) -> pl.DataFrame:
    cores, memory = pl.col("cores"), pl.col("bytes") / BYTES_A_MIB
    table = machines.with_columns(cpu=cores, memory=memory.fill_null(0.0))
    faults = Faults(Rows(table, Block(Path(), 1, b"")))
    add_amounts(faults, table, RESOURCES)
    sized = faults.onto(table).sort("cpu", "memory", descending=True, nulls_last=True, maintain_order=True)
    return with_ruling(sized, [
        FAULTY,
        Ruling(cores.fill_null(0.0) == 0, "says not how many cores it has", load=False),
        Ruling((memory.fill_null(0.0) == 0) & with_memory, "says not how much memory it has, and tasks use some",
             load=False),
        again("machine", "machine"),
    ])


# The whole


def _remarks(kept: pl.DataFrame, machines: pl.DataFrame, empty: int) -> dict[str, int | float | str]:
    most = machines["memory"].max()
    counts = {
        "workflows": kept["job"].n_unique(), "workflows without tasks (left out)": empty,
        "tasks without coreCount (they ask for 1 core)": kept.filter(pl.col("cores").fill_null(0.0) == 0).height,
        "tasks whose memory is unknown (they ask for none)": kept["bytes"].null_count(),
        "tasks that ask for the memory that they used": kept.filter(pl.col("memory") > 0).height,
        "tasks that used more memory than any machine has (are its bytes KB?)":
            0 if most is None else kept.filter(pl.col("memory") > most).height,
        "tasks that ran on several machines (each runs on one)": kept.filter(pl.col("machine_count") > 1).height,
        "tasks whose start is recorded": kept["recorded_start"].count(),
        "tasks with an executedAt that is none, or before their workflow's (not read)":
            kept["executed"].count() - kept["recorded_start"].count(),
        "tasks with run time 0": kept.filter(run_time=0.0).height,
    }
    said: dict[str, int | float | str] = {name: count for name, count in counts.items() if count}
    return said if len(machines) else said | {"fleet": "none written: no machine says what it has"}


def _workload(kept: pl.DataFrame, provenance: Provenance) -> Workload:
    rows = kept.with_row_index("stage").with_columns(
        index=pl.int_range(pl.len()).over("job"), job_row=pl.col("job").rank("dense").cast(pl.UInt32) - 1)
    jobs = rows.select("job", "job_row").unique("job").sort("job_row")
    names = rows.select("job_row", pl.col("task").alias("parents"), pl.col("stage").alias("parent"))
    waits = rows.select("stage", "job_row", "parents").explode("parents").drop_nulls("parents").join(
        names, on=["job_row", "parents"], maintain_order="left").group_by("stage").agg("parent")
    stages = rows.join(waits, on="stage", how="left", maintain_order="left").select(
        "cpu", "memory", job="job_row", name="task", kind=pl.lit("TASK"), priority=pl.lit(0),
        depends_on=pl.col("parent").fill_null([]).list.sort(), constraints=pl.lit([]))
    tasks = rows.select("stage", "index", "run_time", "recorded_start", arrival=pl.lit(0.0))
    return make_workload(jobs.select("job", queue=pl.lit("all"), user=pl.lit("unknown")), stages, with_recorded(tasks),
                         RESOURCES, provenance)


def _fleet(machines: pl.DataFrame, provenance: Provenance) -> Fleet | None:
    if machines.is_empty():
        return None
    return make_fleet(machines.select("machine", "cpu", "memory", cluster=pl.lit("0")), RESOURCES,
                      provenance=provenance)
