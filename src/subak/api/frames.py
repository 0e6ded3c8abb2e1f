"""Makes a workload from a data frame with one row per task."""
from collections.abc import Mapping

import polars as pl

from subak.errors import InputError
from subak.quantities import Amount, amount_in
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.table import OPTIONAL_TASK_COLUMNS, STAGE_COLUMNS, Workload, make_workload

FINE = 1e-3  # the unit of amounts that are not whole
NEEDED = ("arrival", "run_time")
USUAL = {"queue": pl.lit("all"), "user": pl.lit("nobody"), "priority": pl.lit(0)}  # of columns that are left out


def resources_of(tasks: pl.DataFrame, capacity: Mapping[str, Amount]) -> tuple[Resource, ...]:
    """Return a resource for each name of *capacity*, in ones where all amounts are whole, else in thousandths.

    Raises InputError where there is none, or a frame of tasks lacks one.
    """
    if not capacity:
        raise InputError("load: a frame of tasks needs a fleet, or alike machines, such as machines=10, "
                         'capacity={"cpu": 4}')
    refuse_columns(tasks, list(capacity))
    whole = {name: bool((tasks[name].cast(pl.Float64) % 1 == 0).all())
             and amount_in(amount, "units", f"capacity, {name}") % 1 == 0 for name, amount in capacity.items()}
    return tuple(Resource(name, 1.0 if is_whole else FINE) for name, is_whole in whole.items())


def workload_of(tasks: pl.DataFrame, resources: tuple[Resource, ...]) -> Workload:
    """Return the workload of a frame with a row a task.

    Columns: `arrival` and `run_time` (seconds), the *resources* that a task asks for, and, where they are known, `job`
    (without it each task is one), `queue`, `user`, `priority` and `estimate` (seconds). Raises InputError for a column
    that is missing, or not known.
    """
    names = [resource.name for resource in resources]
    refuse_columns(tasks, names)
    numbered = pl.int_range(pl.len()).cast(pl.String).alias("job")
    rows = tasks.with_columns(
        pl.col("job").cast(pl.String) if "job" in tasks.columns else numbered,
        *(value.alias(name) for name, value in USUAL.items() if name not in tasks.columns))
    jobs = rows.select("job", "queue", "user").unique("job", keep="first", maintain_order=True)
    alike = ["job", "priority", *names]
    stages = rows.select(alike).unique(maintain_order=True).with_row_index("stage")
    numbers = rows.join(stages, on=alike, how="left", maintain_order="left", nulls_equal=True)
    optional = [name for name in OPTIONAL_TASK_COLUMNS if name in tasks.columns]
    told = numbers.select("stage", pl.int_range(pl.len()).over("job").alias("index"), *NEEDED, *optional)
    return make_workload(jobs, _stages(stages, jobs, names), told, resources, Provenance("a frame", "made in Python"))


def refuse_columns(tasks: pl.DataFrame, resources: list[str]) -> None:
    """Raise InputError where a column is missing, holds no numbers, or is not known."""
    missing = [name for name in (*NEEDED, *resources) if name not in tasks.columns]
    if missing:
        raise InputError(f"tasks: columns missing: {', '.join(missing)}; there are {', '.join(tasks.columns)}")
    for name in (*NEEDED, *resources):
        if not tasks[name].dtype.is_numeric():
            raise InputError(f"tasks: {name} must hold numbers, not {tasks[name].dtype}")
    known = {*NEEDED, *resources, "job", *USUAL, *OPTIONAL_TASK_COLUMNS}
    strangers = [name for name in tasks.columns if name not in known]
    if strangers:
        raise InputError(f"tasks: columns not known: {', '.join(strangers)}; leave them out, or give them as resources "
                         "with a capacity")


def _stages(stages: pl.DataFrame, jobs: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    rows = jobs.select("job").with_row_index("row")
    table = stages.join(rows, on="job", how="left", maintain_order="left")
    return table.select(
        pl.col("row").alias("job"), pl.col("stage").cast(pl.String).alias("name"),
        pl.lit([], STAGE_COLUMNS["depends_on"]).alias("depends_on"), pl.lit("TASK").alias("kind"), "priority",
        pl.lit([], STAGE_COLUMNS["constraints"]).alias("constraints"), pl.col(names).cast(pl.Float64))
