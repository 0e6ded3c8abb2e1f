"""Alibaba 2018 (cluster-trace-v2018): batch tasks and, if there, their instances, in the published schema or in spar's.

A file's schema is told by its number of columns, a folder's tables by how their files' names begin: batch_task or
tasks, batch_instance or instances. Alibaba's words differ from ours: its task becomes a stage, its instances become the
stage's tasks, and the numbers in a task's name the dependencies (alibaba2018_names.py).

- A job arrives when its first task starts: the trace has no submit times, so the wait before that is unknown. A slice
  takes whole jobs.
- A request that is missing, below 0 or, of memory, above 100 is unknown or invalid: the task is dropped and counted,
  and the tasks that name it do not wait for it.
- An instance runs as long as its row says. Without a usable row it runs as long as its task; a task has as many
  instances as it states, or more if it has more rows.
- In the published schema time 0 means "outside the trace's 8 days". What has a start but no end still ran when the
  trace ended: it keeps the run time seen until then.
- The fleet is the published one, alike machines; a table machine_meta is not read.
"""
from pathlib import Path
from typing import NamedTuple

import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet, make_fleet
from subak.resources import AMOUNT_MAX, Resource
from subak.tables import ColumnType, Provenance
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.readers.alibaba.alibaba2018_names import dependencies
from subak.workload.readers.conversion import (
    Account,
    Conversion,
    Reader,
    account,
    account_of,
    kept_of,
    notes,
    refuse_too_many,
)
from subak.workload.readers.files.stream import Advance, Block, blocks, csv_rows, parts, refuse_lines, refuse_negative
from subak.workload.readers.load import Load, load_of
from subak.workload.readers.options import Options
from subak.workload.readers.rulings import KEPT, Ruling, ruling, with_ruling
from subak.workload.table import OUTCOMES, Workload, make_workload

UNIT = 1e-4
RESOURCES = (Resource("cpu", UNIT, "cores"), Resource("memory", UNIT, "hundredths of the largest machine"))
CPU_PER_CORE = 100.0  # plan_cpu of one core
MEMORY_MAX = 100.0  # plan_mem of the largest machine; above it, and below 0, a value is invalid (trace_2018.md, 2.2)
MACHINE_COUNT, MACHINE_CORES = 4_034, 96.0
ORIGIN = "Alibaba Cluster Trace Program, cluster-trace-v2018: batch workloads"
LICENCE = "no licence stated: for research, not for redistribution"
OUTCOME_NAMES = {"Terminated": "FINISH", "Failed": "FAIL", "Cancelled": "KILL", "Interrupted": "KILL"}

TASK_COLUMNS: dict[str, ColumnType] = {
    "name": pl.String, "count": pl.Int64, "job": pl.String, "type": pl.String, "status": pl.String,
    "start": pl.Float64, "end": pl.Float64, "cpu": pl.Float64, "memory": pl.Float64,
}
SPAR_TASK_COLUMNS: dict[str, ColumnType] = {
    "start": pl.Float64, "job": pl.String, "name": pl.String, "duration": pl.Float64, "cpu": pl.Float64,
    "memory": pl.Float64, "count": pl.Int64,
}
INSTANCE_COLUMNS: dict[str, ColumnType] = {
    "instance": pl.String, "name": pl.String, "job": pl.String, "type": pl.String, "status": pl.String,
    "start": pl.Float64, "end": pl.Float64, "machine": pl.String, "seq": pl.String, "total_seq": pl.String,
    "cpu_avg": pl.String, "cpu_max": pl.String, "memory_avg": pl.String, "memory_max": pl.String,
}
SPAR_INSTANCE_COLUMNS: dict[str, ColumnType] = {
    "start": pl.Float64, "job": pl.String, "name": pl.String, "instance": pl.String, "duration": pl.Float64,
    "cpu_avg": pl.String, "memory_avg": pl.String,
}
TASK_SCHEMAS, INSTANCE_SCHEMAS = (TASK_COLUMNS, SPAR_TASK_COLUMNS), (INSTANCE_COLUMNS, SPAR_INSTANCE_COLUMNS)

NAMELESS = "names no job, task or instance"
REPEATED = "task seen before in its job"
NOT_STARTED = "did not start within the trace"
BACKWARDS = "ends before it starts"
NO_COUNT = "number of instances unknown or 0"
NO_REQUEST = "request unknown or invalid"
ZERO_REQUEST = "asks for nothing of anything"
OUTSIDE = "its job arrived outside the slice"
TASK_NOT_KEPT = "its task is not kept, or not in batch_task"
EARLIER = "an earlier try of the same instance"
OWN, OF_TASK = "with a run time of its own", "with its task's run time (its own is unknown)"


class Files(NamedTuple):
    """The files of the two tables."""

    tasks: list[Path]
    instances: list[Path]


def files(source: Path) -> list[Path]:
    """Return the files of a trace: of a folder, or the one file of tasks. Raises InputError when there is none."""
    found = _files(source)
    return [*found.tasks, *found.instances]


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read batch tasks and their instances. Raises InputError naming the file and the line of the first mistake."""
    paths = _files(source)
    tables = [_tasks(block) for path in paths.tasks for block in blocks(path, advance)]
    if not tables:
        raise InputError(f"{source}: has no tasks")
    tasks = pl.concat(tables)
    window_end = _last(tasks)
    ruled = _with_rulings(tasks, options)
    kept = _with_run_times(kept_of(ruled, source, "tasks"), window_end).sort("arrival", maintain_order=True)
    kept = kept.with_row_index("stage")
    instances, counted = _instances(paths.instances, kept, window_end, advance)
    refuse_too_many(_task_count(kept, instances), source)
    parents, named = dependencies(kept)
    accounts = (account_of("batch_task", ruled), *counted)
    table = _task_table(kept, instances)
    remarks = _remarks(kept, instances, table) | {name: count for name, count in named.items() if count} | {
        "fleet": f"{MACHINE_COUNT:,} alike machines, the published size; the online services on them are not modelled"}
    chosen = {"from": options.arrival_min, "until": options.arrival_end}
    provenance = Provenance("alibaba2018", ORIGIN, LICENCE, notes(accounts, remarks, chosen))
    return Conversion(_workload(kept, parents, table, provenance), _fleet(), accounts, remarks,
                      loads=_loads(ruled, kept, table, window_end))


READER = Reader("batch tasks of Alibaba's 2018 trace, and their instances if there: a folder with batch_task and "
                "batch_instance, or one file of tasks", files, read, frozenset({"arrival_min", "arrival_end"}))


# Rows


def _files(source: Path) -> Files:
    if source.is_file():
        return Files([source], [])
    if not source.is_dir():
        raise InputError(f"{source}: no such file or folder")
    tasks, instances = ([path for path in parts(source) if path.name.startswith(names)]
                        for names in (("batch_task", "tasks"), ("batch_instance", "instances")))
    if not tasks:
        raise InputError(f"{source}: needs a file batch_task*.csv or tasks*.csv, plain, gz or xz")
    return Files(tasks, instances)


def _rows(block: Block, schemas: tuple[dict[str, ColumnType], ...]) -> pl.DataFrame:
    """Return a block's rows with start, end and status, from whichever schema has its number of columns."""
    columns = block.text.partition(b"\n")[0].count(b",") + 1
    fitting = [schema for schema in schemas if len(schema) == columns]
    if not fitting:
        counts = " or ".join(str(len(schema)) for schema in schemas)
        raise InputError(f"{block.path}, line {block.line}: needs {counts} columns, has {columns}")
    table = csv_rows(block, fitting[0])
    if "duration" in table.columns:
        refuse_negative(table, block, "start", "duration")
        return table.with_columns(end=pl.col("start") + pl.col("duration"), status=pl.lit(None, pl.String))
    refuse_negative(table, block, "start", "end")
    return table.with_columns(pl.when(pl.col(name) > 0).then(name).alias(name) for name in ("start", "end"))


def _tasks(block: Block) -> pl.DataFrame:
    table = _rows(block, TASK_SCHEMAS)
    for name, most in (("cpu", AMOUNT_MAX * UNIT * CPU_PER_CORE), ("memory", AMOUNT_MAX * UNIT)):
        value = pl.col(name)
        refuse_lines(table, value.is_nan() | (value > most), block, f"{name} must be a number, at most {most:g}", name)
    memory_valid = pl.col("memory").is_between(0, MEMORY_MAX)
    return table.select(
        "job", "name", "count", "start", "end", "status",
        cpu=pl.when(pl.col("cpu") >= 0).then(pl.col("cpu") / CPU_PER_CORE),
        memory=pl.when(memory_valid).then("memory"),
    )


def _last(tasks: pl.DataFrame) -> float:
    """Return the last instant that the tasks name, 0 without any."""
    last = tasks.select(pl.max_horizontal(pl.max("start"), pl.max("end"))).item()
    return 0.0 if last is None else float(last)


def _with_rulings(tasks: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Add `arrival`, its job's, `ruling`, why a task is kept or dropped, and `lost`, whether load goes with it.

    The first rule that holds counts. What arrived outside the slice carries no load, whatever else it lacks.
    """
    arrival = pl.col("start").min().over("job")
    nothing = pl.all_horizontal(pl.col(name) < UNIT / 2 for name in ("cpu", "memory"))
    outside = (arrival < options.arrival_min) | (arrival >= options.arrival_end)
    rules = [
        Ruling(pl.col("job").is_null() | pl.col("name").is_null(), NAMELESS),
        Ruling(~pl.struct("job", "name").is_first_distinct(), REPEATED, load=False),
        Ruling(pl.col("start").is_null(), NOT_STARTED, load=False),
        Ruling(pl.col("end") < pl.col("start"), BACKWARDS),
        Ruling(pl.col("count").fill_null(0) < 1, NO_COUNT),
        Ruling(pl.col("cpu").is_null() | pl.col("memory").is_null(), NO_REQUEST),
        Ruling(nothing, ZERO_REQUEST, load=False),
        Ruling(outside, OUTSIDE, load=False),
    ]
    ruled = with_ruling(tasks.with_columns(arrival=arrival), rules)
    return ruled.with_columns(pl.col("lost") & ~outside.fill_null(False))


def _loads(ruled: pl.DataFrame, kept: pl.DataFrame, tasks: pl.DataFrame, window_end: float) -> tuple[Load, ...]:
    """Return the load: of a task that is kept that of its instances, of one that is lost what its row says."""
    told = tasks.group_by("stage").agg(run_time=pl.col("run_time").mean(), count=pl.len().cast(pl.Int64))
    used = kept.drop("run_time", "count").join(told, on="stage", how="left", maintain_order="left")
    lost = _with_run_times(ruled.filter("lost"), window_end)
    columns = ("ruling", "lost", "run_time", pl.when(pl.col("count") > 0).then("count").alias("count"), "cpu", "memory")
    return load_of(pl.concat(rows.select(columns) for rows in (used, lost)), RESOURCES)


def _with_run_times(rows: pl.DataFrame, window_end: float) -> pl.DataFrame:
    """Add run_time (null where unknown), and the outcome; what has no end still ran at *window_end*."""
    start, end = pl.col("start"), pl.col("end")
    seen = pl.when(end >= start).then(end - start).when(end.is_null()).then((window_end - start).clip(0.0))
    outcome = pl.col("status").replace_strict(OUTCOME_NAMES, default=None, return_dtype=pl.String)
    still = end.is_null() & start.is_not_null()
    return rows.with_columns(run_time=seen,
                             outcome=pl.when(still).then(pl.lit("CENSORED")).otherwise(outcome).cast(OUTCOMES))


def _instances(
    paths: list[Path], kept: pl.DataFrame, window_end: float, advance: Advance,
) -> tuple[pl.DataFrame, tuple[Account, ...]]:
    """Return stage, run_time (null where unknown) and outcome of the kept tasks' instances, and the account."""
    stages = kept.select("job", "name", "stage")
    found, rulings = [], []
    for path in paths:
        for block in blocks(path, advance):
            rows = _of_tasks(_rows(block, INSTANCE_SCHEMAS), stages)
            rulings.append(rows.group_by("ruling").len())
            found.append(rows.filter(ruling=KEPT).select("stage", "instance", "start", "end", "status"))
    if not found:
        return pl.DataFrame(schema={"stage": pl.UInt32, "run_time": pl.Float64, "outcome": OUTCOMES}), ()
    last = _last_tries(rows := pl.concat(found))
    instances = _with_run_times(last, window_end).select("stage", "run_time", "outcome")
    counts = dict(pl.concat(rulings).group_by("ruling").agg(pl.sum("len").cast(pl.Int64)).sort("ruling").rows())
    total, unknown = sum(counts.values()), instances["run_time"].null_count()
    counts.pop(KEPT, None)
    return instances, (account("batch_instance", total, {OWN: len(instances) - unknown, OF_TASK: unknown},
                               counts | {EARLIER: len(rows) - len(instances)}),)


def _of_tasks(rows: pl.DataFrame, stages: pl.DataFrame) -> pl.DataFrame:
    """Add `stage`, the kept task's, and `ruling`."""
    nameless = pl.any_horizontal(pl.col("job", "name", "instance").is_null())
    joined = rows.join(stages, on=["job", "name"], how="left", maintain_order="left")
    return joined.with_columns(ruling=ruling([(nameless, NAMELESS), (pl.col("stage").is_null(), TASK_NOT_KEPT)]))


def _last_tries(rows: pl.DataFrame) -> pl.DataFrame:
    """Return each instance once: of several rows the one that ends last, or has not ended; the later of equals."""
    numbered = rows.with_row_index("row").sort("end", nulls_last=True, maintain_order=True)
    return numbered.unique(["stage", "instance"], keep="last").sort("row").drop("row")


# Tables


def _missing(kept: pl.DataFrame, instances: pl.DataFrame) -> pl.DataFrame:
    """Return stage and repeats: how many instances each stage states beyond its rows, where there are any."""
    rows = instances.group_by("stage").len("rows")
    beyond = pl.col("count") - pl.col("rows").fill_null(0).cast(pl.Int64)
    joined = kept.join(rows, on="stage", how="left", maintain_order="left")
    return joined.select("stage", repeats=beyond).filter(pl.col("repeats") > 0)


def _task_count(kept: pl.DataFrame, instances: pl.DataFrame) -> float:
    return len(instances) + float(_missing(kept, instances)["repeats"].cast(pl.Float64).sum())


def _task_table(kept: pl.DataFrame, instances: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks: the instances with rows, and those that a task states beyond them."""
    stated = _missing(kept, instances).select(pl.col("stage").repeat_by("repeats")).explode("stage").select(
        "stage", run_time=pl.lit(None, pl.Float64), outcome=pl.lit(None, OUTCOMES))
    tasks = pl.concat([instances, stated]).sort("stage", maintain_order=True)
    of_stage = kept.select("stage", "job", "arrival", stage_run_time="run_time", stage_outcome="outcome")
    own = pl.col("run_time").is_not_null()
    return tasks.join(of_stage, on="stage", how="left", maintain_order="left").select(
        "stage", "arrival", own=own, index=pl.int_range(pl.len()).over("job"),
        run_time=pl.coalesce("run_time", "stage_run_time"),
        outcome=pl.when(own).then("outcome").otherwise("stage_outcome"),
    )


def _remarks(kept: pl.DataFrame, instances: pl.DataFrame, tasks: pl.DataFrame) -> dict[str, int | float | str]:
    differ = kept.join(instances.group_by("stage").len("rows"), on="stage", how="inner")
    counts = {
        "tasks with run time 0": tasks.filter(run_time=0.0).height,
        "tasks still running at the trace's end": tasks.filter(outcome="CENSORED").height,
        "tasks with their stage's run time": len(tasks) - int(tasks["own"].sum()),
        "stages without a row of instances": len(kept) - len(differ),
        "stages with fewer rows of instances than stated": differ.filter(pl.col("rows") < pl.col("count")).height,
        "stages with more rows of instances than stated": differ.filter(pl.col("rows") > pl.col("count")).height,
    }
    return {name: count for name, count in counts.items() if count}


def _workload(kept: pl.DataFrame, parents: pl.Series, tasks: pl.DataFrame, provenance: Provenance) -> Workload:
    jobs = kept.select("job").unique(maintain_order=True)
    rows = kept.join(jobs.with_row_index("row"), on="job", how="left", maintain_order="left")
    stages = rows.select(
        "name", "cpu", "memory", job="row", depends_on=parents, kind=pl.lit("TASK"), priority=pl.lit(0),
        constraints=pl.lit([], pl.List(CONSTRAINT_TYPE)),
    )
    outcome = [] if tasks["outcome"].null_count() == len(tasks) else ["outcome"]
    return make_workload(jobs.select("job", queue=pl.lit("all"), user=pl.lit("unknown")), stages,
                         tasks.select("stage", "index", "arrival", "run_time", *outcome), RESOURCES, provenance)


def _fleet() -> Fleet:
    """Return the machines as published: alike; no table of the sample lists them."""
    names = pl.Series("machine", [f"m_{number}" for number in range(1, MACHINE_COUNT + 1)])
    machines = pl.DataFrame(names).with_columns(cluster=pl.lit("0"), cpu=pl.lit(MACHINE_CORES),
                                                memory=pl.lit(MEMORY_MAX))
    stated = Provenance("alibaba2018", f"{MACHINE_COUNT:,} machines of {MACHINE_CORES:g} cores and memory "
                                       f"{MEMORY_MAX:g}, as published; made by hand", LICENCE)
    return make_fleet(machines, RESOURCES, provenance=stated)
