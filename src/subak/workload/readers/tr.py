"""`.tr`: one job a line (Sparrow, Hawk, Eagle, Pigeon, Megha): arrival, number of tasks, mean duration, durations.

Seconds with their fractions. Every task asks for one slot. The mean, from which those schedulers estimate, becomes
the estimate of each task. The job's id is its line number.
"""
from pathlib import Path

import polars as pl

from subak.errors import InputError
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.readers.conversion import Conversion, Reader, account_of, notes
from subak.workload.readers.files.stream import Advance, Block, blocks, fields, refuse_lines, single_file
from subak.workload.readers.load import load_of
from subak.workload.readers.options import Options
from subak.workload.readers.rows import OUTSIDE
from subak.workload.readers.rulings import KEPT, Ruling, with_ruling
from subak.workload.table import TIME_MAX_S, make_workload

RESOURCES = (Resource("slot", 1.0, "slots"),)
FIXED_FIELDS = 3  # arrival, number of tasks, mean duration


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read a `.tr` file, plain or compressed. Raises InputError naming the line of the first mistake."""
    single_file(source)
    tables = [_jobs(fields(block), block) for block in blocks(source, advance)]
    if not tables or not sum(map(len, tables)):
        raise InputError(f"{source}: has no jobs")
    read_jobs = pl.concat(tables)
    ruled = _with_rulings(read_jobs, options)
    jobs = ruled.filter(ruling=KEPT)
    if jobs.is_empty():
        raise InputError(f"{source}: none of the {len(read_jobs)} jobs arrives in the slice")
    accounts = (account_of("jobs", ruled),)
    remarks: dict[str, int | float | str] = {"tasks kept": int(jobs["durations"].list.len().sum())}
    chosen = {"from": options.arrival_min, "until": options.arrival_end}
    provenance = Provenance(source.name.split(".")[0], f"file {source.name}", "not stated",
                            notes(accounts, remarks, chosen))
    jobs = jobs.sort("arrival", maintain_order=True)
    workload = make_workload(_job_table(jobs), _stage_table(jobs), _task_table(jobs), RESOURCES, provenance)
    return Conversion(workload, None, accounts, remarks, loads=load_of(ruled, RESOURCES))


READER = Reader("a .tr file, one job a line: arrival, number of tasks, mean duration, durations (seconds)",
                single_file, read, frozenset({"arrival_min", "arrival_end"}))


def _jobs(lines: pl.DataFrame, block: Block) -> pl.DataFrame:
    """Return line, arrival, mean and durations (a list) of checked lines."""
    words = pl.col("fields")
    field_count = words.list.len().cast(pl.Int64)
    table = lines.with_columns(
        field_count=field_count,
        arrival_text=words.list.get(0, null_on_oob=True),
        count_text=words.list.get(1, null_on_oob=True),
        arrival=words.list.get(0, null_on_oob=True).cast(pl.Float64, strict=False),
        count=words.list.get(1, null_on_oob=True).cast(pl.Int64, strict=False),
    )
    refuse_lines(table, pl.col("field_count") < FIXED_FIELDS + 1, block,
                 "needs an arrival, a number of tasks, a mean and the durations, that is 4 fields or more",
                 "field_count")
    arrival, count = pl.col("arrival"), pl.col("count")
    refuse_lines(table, arrival.is_null() | ~arrival.is_finite() | (arrival < 0), block,
                 "arrival must be a finite number of seconds, 0 or more", "arrival_text")
    refuse_lines(table, arrival > TIME_MAX_S, block, f"arrival must be at most {TIME_MAX_S:g} s", "arrival_text")
    refuse_lines(table, count.is_null() | (count < 1), block,
                 "number of tasks must be a whole number, 1 or more", "count_text")
    table = table.with_columns(duration_count=pl.col("field_count") - FIXED_FIELDS)
    wrong = table.filter(pl.col("duration_count") != count)
    if not wrong.is_empty():
        line, tasks, durations = wrong.select("line", "count", "duration_count").row(0)
        raise InputError(f"{block.path}, line {line}: needs a duration for each of its {tasks} tasks, has {durations}")
    return _with_durations(table, block)


def _with_durations(table: pl.DataFrame, block: Block) -> pl.DataFrame:
    texts = table.select("line", word=pl.col("fields").list.slice(FIXED_FIELDS - 1)).explode("word")
    numbers = texts.with_columns(seconds=pl.col("word").cast(pl.Float64, strict=False))
    seconds = pl.col("seconds")
    refuse_lines(numbers, seconds.is_null() | ~seconds.is_finite() | (seconds < 0), block,
                 "durations must be finite numbers of seconds, 0 or more", "word")
    refuse_lines(numbers, seconds > TIME_MAX_S, block, f"durations must be at most {TIME_MAX_S:g} s", "word")
    by_line = numbers.group_by("line", maintain_order=True).agg(
        mean=seconds.first(), durations=seconds.slice(1))
    return table.select("line", "arrival").join(by_line, on="line", how="left", maintain_order="left")


def _with_rulings(jobs: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Return the jobs with rulings, and what their load goes by: how many tasks, and the mean of how long they run."""
    arrival, durations = pl.col("arrival"), pl.col("durations").list
    outside = Ruling((arrival < options.arrival_min) | (arrival >= options.arrival_end), OUTSIDE, load=False)
    slots = (pl.lit(1.0).alias(each.name) for each in RESOURCES)
    return with_ruling(jobs.with_columns(*slots, run_time=durations.mean(), count=durations.len()), [outside])


def _job_table(jobs: pl.DataFrame) -> pl.DataFrame:
    return jobs.select(job=pl.col("line").cast(pl.String), queue=pl.lit("all"), user=pl.lit("unknown"))


def _stage_table(jobs: pl.DataFrame) -> pl.DataFrame:
    nothing = pl.lit([], pl.List(pl.UInt32))
    return jobs.select(job=pl.int_range(pl.len()), name=pl.lit("0"), depends_on=nothing, kind=pl.lit("TASK"),
                       priority=pl.lit(0), constraints=pl.lit([], pl.List(CONSTRAINT_TYPE)), slot=pl.lit(1.0))


def _task_table(jobs: pl.DataFrame) -> pl.DataFrame:
    return (
        jobs.select("arrival", "durations", stage=pl.int_range(pl.len()), estimate="mean",
                    index=pl.int_ranges(0, pl.col("durations").list.len()))
        .explode("durations", "index")
        .select("stage", "index", "arrival", "estimate", run_time="durations")
    )
