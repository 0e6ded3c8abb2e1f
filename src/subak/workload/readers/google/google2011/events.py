"""Google 2011 v2 (clusterdata-2011-2), in its original CSV schema.

It reads `task_events` and, if given, `machine_events`, `task_constraints` and `machine_attributes`; every part file may
be absent, and the order does not matter.
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
from subak.resources import AMOUNT_MAX
from subak.tables import ColumnType, Provenance
from subak.workload.readers.conversion import Conversion, Reader, notes
from subak.workload.readers.files.stream import Advance, Block, blocks, csv_rows, parts, refuse_lines
from subak.workload.readers.google.attempts import (
    EVENT_COLUMNS,
    EVENT_COUNT,
    EVENT_SUBMIT,
    EVENT_UPDATE_PENDING,
    NO_EVENT,
)
from subak.workload.readers.google.google2011.constraints import read_constraints
from subak.workload.readers.google.google2011.machines import read_machines
from subak.workload.readers.google.tasks import (
    AFTER,
    AFTER_WINDOW,
    REPEATED,
    UNIT,
    attempt_loads,
    attempts_of,
    chosen,
    event_account,
    kept_tasks,
    observed_span,
    requests,
    task_remarks,
    with_rulings,
    workload_of,
)
from subak.workload.readers.options import Options

ORIGIN = ("Google cluster-usage traces v2 (clusterdata-2011-2), by Google; "
          "Reiss, Wilkes, Hellerstein: Google cluster-usage traces: format + schema")
LICENCE = "CC-BY 4.0"
TABLES = ("task_events", "machine_events", "task_constraints", "machine_attributes")

TASK_EVENT_COLUMNS: dict[str, ColumnType] = {
    "time": pl.Int64, "missing": pl.String, "job": pl.Int64, "index": pl.Int64, "machine": pl.Int64,
    "event": pl.Int64, "user": pl.String, "class": pl.String, "priority": pl.Int64, "cpu": pl.Float64,
    "memory": pl.Float64, "disk": pl.String, "different_machine": pl.Int64,
}


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
    found, distinct = attempts_of(events.table)
    attempts = with_rulings(found, window_end, options)
    kept = kept_tasks(attempts, window_end, options)
    if kept.is_empty():
        raise InputError(f"{source}: none of the {events.rows} rows of task_events makes a task that can be kept")
    machines = read_machines(parts(source / "machine_events"), parts(source / "machine_attributes"),
                             options.fleet, Provenance("google2011", ORIGIN, LICENCE), advance)
    counted = event_account("task_events", events.rows, attempts, {
        AFTER_WINDOW: events.after, REPEATED: events.rows - events.after - distinct})
    accounts = (counted, *constraints.accounts, *machines.accounts)
    remarks = task_remarks(kept, attempts, events.users, window_end) | _remarks(events, paths) | machines.remarks
    provenance = Provenance("google2011", ORIGIN, LICENCE, notes(accounts, remarks, chosen(options)))
    workload = workload_of(kept.join(constraints.sets, on=["job", "index"], how="left", maintain_order="left"),
                           constraints.texts, events.users, provenance, observed_span(kept, window_end, options))
    return Conversion(workload, machines.fleet, accounts, remarks, loads=attempt_loads(attempts, window_end))


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
    return table.select(
        "job", pl.col("index").cast(pl.Int32), "time", pl.col("event").cast(pl.UInt8),
        pl.col("priority").cast(pl.Int16), *requests(table),
        scheduling_class=pl.col("class").cast(pl.Int8, strict=False).fill_null(NO_EVENT),
    ).select(EVENT_COLUMNS)


def _remarks(events: Events, paths: list[Path]) -> dict[str, int | float | str]:
    counts: dict[str, int | float | str] = {
        "rows without a request (the attempt's other rows may have one)": events.without_request,
        "update rows": int(events.counts[EVENT_UPDATE_PENDING:].sum()),
        "SUBMIT rows that ask for different machines (not modelled)": events.apart,
    }
    gaps = _gaps(paths)
    return {"parts of task_events": len(paths), **({"parts missing in between": gaps} if gaps else {}),
            **{name: count for name, count in counts.items() if count}}


def _gaps(paths: list[Path]) -> str:
    found = [re.search(r"part-(\d+)-of", path.name) for path in paths]
    numbers = sorted({int(match.group(1)) for match in found if match})
    return ", ".join(f"{low + 1} to {high - 1}"
                     for low, high in pairwise(numbers) if high - low > 1)
