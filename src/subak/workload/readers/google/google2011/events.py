"""Google 2011 v2 (clusterdata-2011-2): `task_events`, and if given `machine_events`, `task_constraints` and
`machine_attributes`, in their original CSV schema; every part may be absent, and the order does not matter.

The events of a task become attempts (attempts.py), attempts become tasks, alike tasks of a job become a stage.
Times keep the trace's clock: 0 stands for "before the trace began", its first real event is at 600 s.
"""
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.resources import AMOUNT_MAX, Resource
from subak.tables import ColumnType, Provenance
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.readers.conversion import KEPT, Account, Conversion, Reader, account, fate, notes
from subak.workload.readers.files.stream import Advance, Block, blocks, csv_rows, parts, refuse_lines
from subak.workload.readers.google.attempts import (
    EVENT_COLUMNS,
    EVENT_COUNT,
    EVENT_KILL,
    EVENT_SUBMIT,
    EVENT_UPDATE_PENDING,
    NO_EVENT,
    find_attempts,
    sort_events,
)
from subak.workload.readers.google.google2011.constraints import read_constraints
from subak.workload.readers.google.google2011.machines import AFTER, read_machines
from subak.workload.readers.options import Options
from subak.workload.table import OUTCOMES, Observed, Workload, make_workload

UNIT = 1e-8  # the trace's amounts have 4 significant digits and at most 8 decimals: they convert exactly
RESOURCES = (Resource("cpu", UNIT, "of the largest machine"), Resource("memory", UNIT, "of the largest machine"))
SECOND = 1e6  # the trace counts microseconds
PORTION_ROWS = 1 << 23  # events of whole jobs that are sorted at a time
ORIGIN = ("Google cluster-usage traces v2 (clusterdata-2011-2), by Google; "
          "Reiss, Wilkes, Hellerstein: Google cluster-usage traces: format + schema")
LICENCE = "CC-BY 4.0"
TABLES = ("task_events", "machine_events", "task_constraints", "machine_attributes")
OUTCOME_NAMES = {2: "EVICT", 3: "FAIL", 4: "FINISH", 5: "KILL", 6: "LOST", NO_EVENT: "CENSORED"}

TASK_EVENT_COLUMNS: dict[str, ColumnType] = {
    "time": pl.Int64, "missing": pl.String, "job": pl.Int64, "index": pl.Int64, "machine": pl.Int64,
    "event": pl.Int64, "user": pl.String, "class": pl.String, "priority": pl.Int64, "cpu": pl.Float64,
    "memory": pl.Float64, "disk": pl.String, "different_machine": pl.Int64,
}

LONG_AGO = "its SUBMIT and SCHEDULE are not in the parts read"
NEVER_SCHEDULED = "not scheduled before the window's end"
ENDED_PENDING = "ended before it was scheduled"
RESUBMITTED_PENDING = "submitted again before it was scheduled"
RESUBMITTED_RUNNING = "submitted again without an end event"
EARLIER = "an earlier attempt of the same task"
NO_REQUEST = "no row gives its request"
ZERO_REQUEST = "asks for nothing of anything"
CENSORED = "still running at the window's end"
OUTSIDE = "arrived outside the slice"
AFTER_WINDOW = "event after the window (time 2^63-1)"
REPEATED = "exact repetition of a row"
SCHEDULED_TWICE = "second SCHEDULE in one attempt"


class Events(NamedTuple):
    """The rows of task_events in narrow columns, and what was counted on the way."""

    table: pl.DataFrame  # the columns of attempts.EVENT_COLUMNS
    users: pl.DataFrame  # job, user
    rows: int
    after: int  # rows at the sentinel time 2^63-1
    counts: np.ndarray  # int64[event]
    without_request: int
    apart: int  # SUBMITs that ask for machines different from those of the job's other tasks


def files(source: Path) -> list[Path]:
    """Return the files of a trace folder. Raises InputError when there is no `task_events` in it."""
    if not source.is_dir():
        raise InputError(f"{source}: no such folder")
    if not parts(source / "task_events"):
        raise InputError(f"{source}: needs a folder task_events with files *.csv, *.csv.gz or *.csv.xz")
    return [path for name in TABLES for path in parts(source / name)]


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read a trace folder. Raises InputError naming the file and the line of the first mistake."""
    files(source)
    paths = parts(source / "task_events")
    events = read_events(paths, advance)
    window_end = int(events.table["time"].max())  # type: ignore[arg-type]
    constraints = read_constraints(parts(source / "task_constraints"), advance)
    found, distinct = _attempts(events.table)
    attempts = _with_fates(found, window_end, options)
    kept = _kept_tasks(attempts, window_end, options)
    if kept.is_empty():
        raise InputError(f"{source}: none of the {events.rows} rows of task_events makes a task that can be kept")
    machines = read_machines(parts(source / "machine_events"), parts(source / "machine_attributes"),
                             options.fleet, RESOURCES, Provenance("google2011", ORIGIN, LICENCE), advance)
    accounts = (_event_account(events, distinct, attempts), *constraints.accounts, *machines.accounts)
    remarks = _remarks(events, kept, attempts, window_end, paths) | machines.remarks
    provenance = Provenance("google2011", ORIGIN, LICENCE, notes(accounts, remarks, _chosen(options)))
    workload = _workload(kept.join(constraints.sets, on=["job", "index"], how="left", maintain_order="left"),
                         constraints.texts, events.users, provenance, _observed(kept, window_end, options))
    return Conversion(workload, machines.fleet, accounts, remarks)


READER = Reader("a folder with Google's 2011 v2 trace: task_events/ and, if there, machine_events/, task_constraints/ "
                "and machine_attributes/, any subset of parts", files, read,
                frozenset({"resubmissions", "censored", "fleet", "arrival_min", "arrival_end"}))


# Rows


def read_events(paths: list[Path], advance: Advance) -> Events:
    """Read task_events, block by block. Raises InputError naming the file and the line."""
    narrow, users, rows, after, without_request, apart = [], [], 0, 0, 0, 0
    counts = np.zeros(EVENT_COUNT, dtype=np.int64)
    for table in _checked_blocks(paths, advance):
        rows += len(table)
        counts += np.bincount(table["event"].to_numpy(), minlength=EVENT_COUNT)
        without_request += table.select((pl.col("cpu").is_null() | pl.col("memory").is_null()).sum()).item()
        apart += table.filter(event=EVENT_SUBMIT, different_machine=1).height
        real = table.filter(pl.col("time") < AFTER)
        after += len(table) - len(real)
        users.append(real.select("job", "user").unique())
        narrow.append(_narrow(real))
    if rows == after:
        raise InputError(f"{paths[0].parent}: has no events within the trace's window")
    by_job = pl.concat(users).group_by("job").agg(pl.col("user").min())
    return Events(pl.concat(narrow), by_job, rows, after, counts, without_request, apart)


def _checked_blocks(paths: list[Path], advance: Advance) -> Iterator[pl.DataFrame]:
    for path in paths:
        for block in blocks(path, advance):
            table = csv_rows(block, TASK_EVENT_COLUMNS)
            _check_events(table, block)
            yield table


def _check_events(table: pl.DataFrame, block: Block) -> None:
    for name in ("time", "job", "index", "event", "priority"):
        refuse_lines(table, pl.col(name).is_null(), block, f"{name} must be given", name)
        refuse_lines(table, pl.col(name) < 0, block, f"{name} must not be negative", name)
    refuse_lines(table, pl.col("event") >= EVENT_COUNT, block, f"event must be 0 to {EVENT_COUNT - 1}", "event")
    refuse_lines(table, pl.col("index") >= 2**31, block, "index must be below 2^31", "index")
    refuse_lines(table, pl.col("priority") >= 2**15, block, "priority must be below 2^15", "priority")
    for name in ("cpu", "memory"):
        amount = pl.col(name)
        refuse_lines(table, amount.is_nan(), block, f"{name} must be a number", name)
        refuse_lines(table, amount < 0, block, f"{name} must not be negative", name)
        refuse_lines(table, amount > AMOUNT_MAX * UNIT, block, f"{name} must be at most {AMOUNT_MAX * UNIT:g}", name)


def _narrow(table: pl.DataFrame) -> pl.DataFrame:
    amounts = [(pl.col(name) / UNIT).round().fill_null(NO_EVENT).cast(pl.Int32) for name in ("cpu", "memory")]
    return table.select(
        "job", pl.col("index").cast(pl.Int32), "time", pl.col("event").cast(pl.UInt8),
        pl.col("priority").cast(pl.Int16), *amounts,
    ).select(EVENT_COLUMNS)


# Attempts and their fates


def _attempts(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the attempts of all tasks and the number of distinct rows; portions of jobs keep the memory small."""
    count = len(table) // PORTION_ROWS + 1
    found, distinct = [], 0
    for number in range(count):
        ordered = sort_events(table.filter(pl.col("job") % count == number) if count > 1 else table)
        distinct += len(ordered)
        found.append(find_attempts(ordered))
    return pl.concat(found), distinct


def _with_fates(attempts: pl.DataFrame, window_end: int, options: Options) -> pl.DataFrame:
    """Add `arrival` (microseconds) and `fate`, why an attempt is kept or dropped; the first rule that holds counts."""
    scheduled, ended, last = pl.col("schedule") != NO_EVENT, pl.col("end") != NO_EVENT, pl.col("last")
    runs = scheduled & (ended | last)
    own_arrival = pl.when(pl.col("submit") == NO_EVENT).then("schedule").otherwise("submit")
    if options.resubmissions == "attempt":
        known = pl.when(own_arrival != NO_EVENT).then(own_arrival)
        arrival = known.min().over("job", "index")
        earlier = runs & (pl.col("number") < pl.when(runs).then("number").max().over("job", "index"))
    else:
        arrival, earlier = own_arrival, pl.lit(False)
    seconds = pl.col("arrival") / SECOND
    rules = [
        (~scheduled & (pl.col("submit") == NO_EVENT), LONG_AGO),
        (~scheduled & ended, ENDED_PENDING),
        (~scheduled & last, NEVER_SCHEDULED),
        (~scheduled, RESUBMITTED_PENDING),
        (~runs, RESUBMITTED_RUNNING),
        (earlier, EARLIER),
        ((pl.col("cpu") == NO_EVENT) | (pl.col("memory") == NO_EVENT), NO_REQUEST),
        ((pl.col("cpu") == 0) & (pl.col("memory") == 0), ZERO_REQUEST),
        (~ended if options.censored == "drop" else pl.lit(False), CENSORED),
        ((seconds < options.arrival_min) | (seconds >= options.arrival_end), OUTSIDE),
    ]
    return attempts.with_columns(arrival=arrival).with_columns(fate=fate(rules))


def _event_account(events: Events, distinct: int, attempts: pl.DataFrame) -> Account:
    by_fate = dict(attempts.group_by("fate").agg(pl.col("rows").sum()).sort("rows", "fate", descending=True).rows())
    used = {"events of kept tasks": by_fate.pop(KEPT, 0)}
    if EARLIER in by_fate:
        used["events of earlier attempts of the same task"] = by_fate.pop(EARLIER)
    repeated = events.rows - events.after - distinct
    dropped = by_fate | {AFTER_WINDOW: events.after, REPEATED: repeated, SCHEDULED_TWICE: attempts["repeats"].sum()}
    return account("task_events", events.rows, used, dropped)


def _remarks(
    events: Events, kept: pl.DataFrame, attempts: pl.DataFrame, window_end: int, paths: list[Path],
) -> dict[str, int | float | str]:
    dropped = attempts.group_by("fate").len().sort("fate").filter(pl.col("fate") != KEPT)
    counts: dict[str, int | float | str] = {
        "users": kept.join(events.users, on="job")["user"].n_unique(),
        "distinct tasks (job, index)": attempts.select("job", "index").unique().height,
        "attempts found": len(attempts),
        **{f"attempts dropped: {words}": count for words, count in dropped.rows()},
        "tasks kept": len(kept),
        "tasks already running at time 0": kept.filter(schedule=0).height,
        "tasks still running at the window's end": kept.filter(end=NO_EVENT).height,
        "tasks whose SUBMIT is not in the parts (they arrive at their SCHEDULE)": kept.filter(submit=NO_EVENT).height,
        "tasks with run time 0": kept.filter(run_time=0.0).height,
        "rows without a request (the attempt's other rows may have one)": events.without_request,
        "update rows": int(events.counts[EVENT_UPDATE_PENDING:].sum()),
        "SUBMIT rows that ask for different machines (not modelled)": events.apart,
    }
    gaps = _gaps(paths)
    return {
        "window's end (s)": window_end / SECOND,
        "parts of task_events": len(paths),
        **({"parts missing in between": gaps} if gaps else {}),
        **{name: count for name, count in counts.items() if count},
    }


def _gaps(paths: list[Path]) -> str:
    found = [re.search(r"part-(\d+)-of", path.name) for path in paths]
    numbers = sorted({int(match.group(1)) for match in found if match})
    return ", ".join(f"{low + 1} to {high - 1}"
                     for low, high in pairwise(numbers) if high - low > 1)


def _chosen(options: Options) -> dict[str, str | float]:
    return {"resubmissions": options.resubmissions, "censored": options.censored, "fleet": options.fleet,
            "from": options.arrival_min, "until": options.arrival_end}


# Tables


def _kept_tasks(attempts: pl.DataFrame, window_end: int, options: Options) -> pl.DataFrame:
    """Return the kept attempts in order of arrival, with kind, outcome and run_time (seconds)."""
    censored = pl.col("end") == NO_EVENT
    seen = (pl.when(censored).then(window_end).otherwise("end") - pl.col("schedule")) / SECOND
    endless = censored & (options.censored == "forever")
    number = pl.lit(1, pl.Int32) if options.resubmissions == "attempt" else pl.col("number")
    return (
        attempts.filter(fate=KEPT)
        .with_columns(
            number=number,
            run_time=pl.when(endless).then(float("inf")).otherwise(seen),
            kind=pl.when(censored | (pl.col("end_event") == EVENT_KILL)).then(pl.lit("SERVICE"))
            .otherwise(pl.lit("TASK")),
            outcome=pl.col("end_event").replace_strict(OUTCOME_NAMES, return_dtype=OUTCOMES),
        )
        .sort("arrival", "job", "number", "index")
    )


def _observed(kept: pl.DataFrame, window_end: int, options: Options) -> Observed | None:
    """Return when arrivals are as they came: the trace puts what ran, or waited, before it began at time 0."""
    seen = kept.filter(pl.col("arrival") > 0)["arrival"]
    if seen.is_empty() or len(seen) == len(kept):
        return None
    return Observed(float(seen.min()) / SECOND, min(options.arrival_end, window_end / SECOND))  # type: ignore[arg-type]


def _workload(kept: pl.DataFrame, constraints: list[list[dict[str, str]]], users: pl.DataFrame,
              provenance: Provenance, observed: Observed | None) -> Workload:
    """Lay out jobs, stages and tasks; *kept* also has `constraint_set`, a row of *constraints* or null."""
    jobs = kept.select("job", "number").unique(maintain_order=True).with_row_index("job_row")
    alike = ["job_row", "cpu", "memory", "priority", "kind", "constraint_set"]
    tasks = kept.join(jobs, on=["job", "number"], how="left", maintain_order="left")
    stages = tasks.select(alike).unique(maintain_order=True).with_row_index("stage")
    tasks = tasks.join(stages, on=alike, how="left", nulls_equal=True, maintain_order="left")
    return make_workload(
        _job_table(jobs, users),
        _stage_table(stages, constraints),
        tasks.select("stage", "index", pl.col("arrival") / SECOND, "run_time", "outcome",
                     recorded_start=pl.col("schedule") / SECOND),
        RESOURCES, provenance, observed,
    )


def _job_table(jobs: pl.DataFrame, users: pl.DataFrame) -> pl.DataFrame:
    """Name the second submission of job 7's tasks 7#2, and queues by their user's hash with `_` for `/`."""
    user = pl.col("user").fill_null("unknown")
    resubmitted = pl.when(pl.col("number") > 1).then("#" + pl.col("number").cast(pl.String)).otherwise(pl.lit(""))
    return jobs.join(users, on="job", how="left", maintain_order="left").select(
        job=pl.col("job").cast(pl.String) + resubmitted, queue=user.str.replace_all("/", "_"), user=user,
    )


def _stage_table(stages: pl.DataFrame, constraints: list[list[dict[str, str]]]) -> pl.DataFrame:
    none = pl.Series([[]], dtype=pl.List(CONSTRAINT_TYPE))
    lists = pl.concat([none, pl.Series(constraints, dtype=pl.List(CONSTRAINT_TYPE))])
    rows = (stages["constraint_set"].cast(pl.Int64) + 1).fill_null(0)
    place = pl.int_range(pl.len()).over("job_row")
    return stages.select(
        job=pl.col("job_row"), name=place.cast(pl.String), depends_on=pl.lit([], pl.List(pl.UInt32)),
        kind="kind", priority=pl.col("priority").cast(pl.Int32), constraints=lists.gather(rows),
        cpu=pl.col("cpu") * UNIT, memory=pl.col("memory") * UNIT,
    )
