"""The common rules of formats in which a row is a task or a job.

A reader makes a table of ROW_COLUMNS, of which those with a default (DEFAULTS) may be missing (`count` where it goes by
`usual_rules`), and one column of floats a resource, what each task of the row asks for. Rows of one job that ask for
the same in the same way are one stage; a row whose tasks start together is a stage by itself.
"""
from collections.abc import Sequence

import numpy as np
import polars as pl

from subak.resources import AMOUNT_MAX, Resource, asked_units
from subak.tables import ColumnType, Provenance
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.readers.conversion import refuse_too_many
from subak.workload.readers.files.faults import Faults
from subak.workload.readers.files.stream import Block, refuse_lines
from subak.workload.readers.options import Options
from subak.workload.readers.rulings import Ruling
from subak.workload.table import OUTCOMES, TIME_MAX_S, Observed, Workload, workload_of_units

ROW_COLUMNS: dict[str, ColumnType] = {
    "job": pl.String, "queue": pl.String, "user": pl.String,
    "arrival": pl.Float64, "run_time": pl.Float64,  # seconds
    "estimate": pl.Float64, "recorded_start": pl.Float64,  # seconds; null where unknown
    "outcome": OUTCOMES, "kind": pl.String, "priority": pl.Int32,
    "scheduling_class": pl.Int32,
    "count": pl.Int64,  # alike tasks
    "gang": pl.Boolean,  # whether they start together
    "constraint_set": pl.Int64,  # a place in the list of constraints; null for none
}
DEFAULTS: dict[str, pl.Expr] = {
    "queue": pl.lit("all"), "user": pl.lit("unknown"), "estimate": pl.lit(None), "recorded_start": pl.lit(None),
    "outcome": pl.lit(None), "kind": pl.lit("TASK"), "priority": pl.lit(0), "count": pl.lit(1), "gang": pl.lit(False),
    "constraint_set": pl.lit(None), "scheduling_class": pl.lit(None),
}
OUTSIDE = "arrived outside the slice"
NO_ARRIVAL, NO_RUN_TIME = "when it was submitted is unknown", "how long it ran is unknown"
BACKWARDS = "ends before it starts"
NO_COUNT = "number of tasks unknown or 0"
ZERO_REQUEST = "asks for nothing of anything"
SEEN_BEFORE = "seen before"
NEVER_STARTED = "never started, so its run time is unknown"
FAULTY = Ruling(pl.col("fault").is_not_null(), pl.col("fault"))


def again(what: str, *names: str, **more: pl.Expr) -> Ruling:
    """Return the rule that of good rows of one name the first counts; one that cannot be read hides no other."""
    columns = [*map(pl.col, names), *(each.alias(name) for name, each in more.items())]
    first = pl.struct(*columns, pl.col("fault").is_null().alias("is good")).is_first_distinct()
    return Ruling(~first, f"{what} {SEEN_BEFORE}", load=False)


def usual_rules(resources: tuple[Resource, ...], options: Options) -> list[Ruling]:
    """Return the rules that hold of rows of any format: what is unknown, impossible, or cut."""
    arrival, run_time, count = pl.col("arrival"), pl.col("run_time"), pl.col("count")
    nothing = pl.all_horizontal(pl.col(each.name) == 0 for each in resources)
    return [
        Ruling(arrival.is_null(), NO_ARRIVAL),
        Ruling(run_time.is_null(), NO_RUN_TIME),
        Ruling(run_time < 0, BACKWARDS),
        Ruling(count.is_null() | (count < 1), NO_COUNT),
        Ruling(nothing, ZERO_REQUEST, load=False),
        Ruling((arrival < options.arrival_min) | (arrival >= options.arrival_end), OUTSIDE, load=False),
    ]


def refuse_amounts(table: pl.DataFrame, block: Block, resources: Sequence[Resource]) -> None:
    """Raise InputError for the first row that asks for a negative amount, or more than there can be units."""
    for each in resources:
        most = AMOUNT_MAX * each.unit
        refuse_lines(table, (pl.col(each.name) < 0) | (pl.col(each.name) > most), block,
                     f"{each.name} must be from 0 to {most:.10g} {each.of}", each.name)


def refuse_times(table: pl.DataFrame, block: Block, *names: str) -> None:
    """Raise InputError for the first row with a time further from 0 than TIME_MAX_S."""
    for name in names:
        refuse_lines(table, pl.col(name).abs() > TIME_MAX_S, block, f"{name} must be at most {TIME_MAX_S:g} s", name)


def add_amounts(faults: Faults, table: pl.DataFrame, resources: Sequence[Resource]) -> None:
    """Note the rows that ask for a negative amount, or more than there can be units."""
    for each in resources:
        most = AMOUNT_MAX * each.unit
        faults.add(table, (pl.col(each.name) < 0) | (pl.col(each.name) > most),
                   f"{each.name} must be from 0 to {most:.10g} {each.of}", each.name)


def add_times(faults: Faults, table: pl.DataFrame, *names: str) -> None:
    """Note the rows with a time further from 0 than TIME_MAX_S."""
    for name in names:
        faults.add(table, pl.col(name).abs() > TIME_MAX_S, f"{name} must be at most {TIME_MAX_S:g} s", name)


def since_first(table: pl.DataFrame, *names: str) -> tuple[pl.DataFrame, float]:
    """Return the table with the columns of instants counted from the first arrival, and when that was."""
    first = table["arrival"].min()
    origin = 0.0 if first is None else float(first)  # type: ignore[arg-type]
    return table.with_columns(pl.col(*names) - origin), origin


def last_of(table: pl.DataFrame) -> float:
    """Return the last arrival of a table that `since_first` counted, s."""
    last = table["arrival"].max()
    return 0.0 if last is None else float(last)  # type: ignore[arg-type]


def workload_of_rows(
    rows: pl.DataFrame, resources: tuple[Resource, ...], provenance: Provenance,
    constraints: Sequence[list[dict[str, str]]] = (), observed: Observed | None = None,
) -> Workload:
    """Lay out jobs, stages and tasks; *constraints* are the sets that `constraint_set` names.

    Raises InputError when they would be too many tasks.
    """
    counts = rows["count"].cast(pl.Float64).sum() if "count" in rows.columns else len(rows)
    refuse_too_many(float(counts), provenance.name)
    units = [pl.Series(each.name, asked_units(rows[each.name].to_numpy(), each, "rows")) for each in resources]
    missing = [words.alias(name) for name, words in DEFAULTS.items() if name not in rows.columns]
    given = [name for name in ROW_COLUMNS if name in rows.columns]  # copies of others would cost
    table = rows.select(*given, *units, *missing).sort("arrival", maintain_order=True).with_row_index("row")
    jobs = table.unique("job", keep="first", maintain_order=True).select("job", "queue", "user")
    table = table.join(jobs.select("job").with_row_index("job_row"), on="job", how="left", maintain_order="left")
    together = pl.col("gang") & (pl.col("count") > 1)
    table = table.with_columns(gang=together, gang_row=pl.when(together).then("row"))
    alike = ["job_row", *(each.name for each in resources), "kind", "priority", "constraint_set", "scheduling_class",
             "gang", "gang_row"]
    stages = table.select(alike).unique(maintain_order=True).with_row_index("stage")
    placed = table.join(stages, on=alike, how="left", nulls_equal=True, maintain_order="left")
    return workload_of_units(jobs, _stage_table(stages, resources, constraints), _task_table(placed), resources,
                         provenance, observed)


def _stage_table(
    stages: pl.DataFrame, resources: tuple[Resource, ...], constraints: Sequence[list[dict[str, str]]],
) -> pl.DataFrame:
    lists = pl.Series([[], *constraints], dtype=pl.List(CONSTRAINT_TYPE))
    optional = [pl.col("gang")] if stages["gang"].any() else []
    if stages["scheduling_class"].count():
        optional.append(pl.col("scheduling_class").cast(pl.Int32))
    return stages.select(
        *optional, *(each.name for each in resources), job="job_row",
        name=pl.int_range(pl.len()).over("job_row").cast(pl.String),
        depends_on=pl.lit([], pl.List(pl.UInt32)), kind="kind", priority=pl.col("priority").cast(pl.Int32),
        constraints=lists.gather((stages["constraint_set"].cast(pl.Int64) + 1).fill_null(0)),
    )


def _task_table(placed: pl.DataFrame) -> pl.DataFrame:
    repeats = placed["count"].to_numpy().astype(np.int64)
    known = [name for name in ("estimate", "outcome", "recorded_start") if placed[name].count()]
    each = placed.select("stage", "job_row", "arrival", "run_time", *known)[np.repeat(np.arange(len(placed)), repeats)]
    return each.with_columns(index=pl.int_range(pl.len()).over("job_row")).drop("job_row")
