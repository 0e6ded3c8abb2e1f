"""Google 2019 (cluster-usage traces v3), as BigQuery exports it: JSON lines, CSV or Parquet.

The folder has instance_events and, if given, collection_events, machine_events and machine_attributes, in any number of
files, plain, gz or xz.

A table is the files in the folder of its name, or whose names begin with it. Events have v3's own numbers (0 SUBMIT, 1
QUEUE, 2 ENABLE, 3 SCHEDULE, 4 EVICT, 5 FAIL, 6 FINISH, 7 KILL, 8 LOST, 9 and 10 UPDATE; machines 1 ADD, 2 REMOVE, 3
UPDATE), which are not those of 2011, or their names. From there on the trace is read as that of 2011: events become
attempts, attempts tasks, alike tasks of a collection a stage, and times keep the trace's clock, on which 0 stands for
"before the trace began" and the first real event is at 600 s.

- An instance of an alloc set is a task: it holds its resources for the tasks that run inside it. Those take nothing
  from a machine beyond that, and are dropped (alloc_collection_id).
- QUEUE and ENABLE say whether a waiting instance may be scheduled, which is not modelled. The first of them after the
  end of an attempt counts as its resubmission, since v3 says so in no other way when an instance waits again.
- Constraints are those first seen of a task. PRESENT and NOT_PRESENT are "is not empty" and "is empty".
- The user, who is also the queue, is that of collection_events; without it, unknown.
- Limits a machine or a switch, dependencies between collections, and vertical scaling are not modelled.

Source: clusterdata_trace_format_v3.proto of https://github.com/google/cluster-data; Tirmazi et al., EuroSys '20. Made
from that schema; the trace itself was not at hand.
"""
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.resources import AMOUNT_MAX
from subak.tables import Provenance
from subak.workload.readers.conversion import Account, Conversion, Reader, account, notes
from subak.workload.readers.files.stream import Advance, Block, refuse_lines
from subak.workload.readers.google.attempts import EVENT_COLUMNS, NO_EVENT
from subak.workload.readers.google.google2019.fields import (
    ATTRIBUTES,
    COLLECTIONS,
    EVENT_TYPES,
    INSTANCES,
    MACHINE_EVENT_TYPES,
    MACHINES,
    Sets,
    Table,
    parts,
    place_of,
    table_rows,
)
from subak.workload.readers.google.machines import NO_MACHINES, Machines, machines_of, refuse_capacities
from subak.workload.readers.google.tasks import (
    AFTER,
    AFTER_WINDOW,
    REPEATED,
    UNIT,
    Constraints,
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

ORIGIN = ("Google cluster-usage traces v3 (clusterdata-2019), by Google; "
          "Wilkes: Google cluster-usage traces v3; Tirmazi et al., EuroSys '20")
LICENCE = "CC-BY 4.0"
TABLES = ("instance_events", "collection_events", "machine_events", "machine_attributes")
COLLECTION_TYPES = ("JOB", "ALLOC_SET")
ALLOC_SET = 1
V3 = {name: number for number, name in enumerate(EVENT_TYPES)}
MOVES = (V3["QUEUE"], V3["ENABLE"])
# The trace of 2011's number of each event; a move is no event there
AS_2011 = np.array([0, NO_EVENT, NO_EVENT, 1, 2, 3, 4, 5, 6, 7, 8], dtype=np.int8)
RANK = np.array([1, 2, 2, 3, 0, 0, 0, 0, 0, 4, 4], dtype=np.int8)  # order at one instant, for what a move follows
IN_ALLOC = "runs inside an instance of an alloc set, which holds its resources"
MOVE = "QUEUE or ENABLE: whether it may be scheduled is not modelled"


class Events(NamedTuple):
    """The rows of instance_events in narrow columns, and what was counted on the way."""

    table: pl.DataFrame  # the columns of attempts.EVENT_COLUMNS, with v3's events, and constraint_set
    rows: int
    after: int  # rows at the sentinel time 2^63-1
    inside: int  # rows of tasks in alloc instances
    of_alloc_sets: int
    without_request: int


def files(source: Path) -> list[Path]:
    """Return the files of a trace folder. Raises InputError when there are no `instance_events` in it."""
    if not source.is_dir():
        raise InputError(f"{source}: no such folder")
    if not parts(source, TABLES[0]):
        raise InputError(f"{source}: needs files instance_events*, or a folder of that name, with *.json, *.csv or "
                         "*.parquet")
    return [path for name in TABLES for path in parts(source, name)]


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read a trace folder. Raises InputError naming the file and the line of the first mistake."""
    files(source)
    sets = Sets()
    events = _events(parts(source, TABLES[0]), sets, advance)
    window_end = int(events.table["time"].max())  # type: ignore[arg-type]
    translated, moves = as_2011(events.table)
    found, distinct = attempts_of(translated.select(EVENT_COLUMNS))
    attempts = with_rulings(found, window_end, options)
    kept = kept_tasks(attempts, window_end, options)
    if kept.is_empty():
        raise InputError(f"{source}: none of the {events.rows} rows of instance_events makes a task that can be kept")
    users, user_accounts = _users(parts(source, TABLES[1]), advance)
    machines = _machines(source, options, advance)
    counted = event_account(TABLES[0], events.rows, attempts, {
        IN_ALLOC: events.inside, AFTER_WINDOW: events.after, MOVE: moves, REPEATED: len(translated) - distinct})
    accounts = (counted, *user_accounts, *machines.accounts)
    remarks = task_remarks(kept, attempts, users, window_end) | _remarks(events) | machines.remarks
    provenance = Provenance("google2019", ORIGIN, LICENCE, notes(accounts, remarks, chosen(options)))
    constraints = _first_sets(events.table, sets)
    workload = workload_of(kept.join(constraints.sets, on=["job", "index"], how="left", maintain_order="left"),
                           constraints.texts, users, provenance, observed_span(kept, window_end, options))
    return Conversion(workload, machines.fleet, accounts, remarks, loads=attempt_loads(attempts, window_end))


READER = Reader("a folder with Google's 2019 trace: instance_events and, if there, collection_events, machine_events "
                "and machine_attributes, as JSON lines, CSV or Parquet", files, read,
                frozenset({"resubmissions", "censored", "fleet", "arrival_min", "arrival_end"}))


# Rows


def _read(paths: list[Path], table: Table, sets: Sets, advance: Advance) -> list[tuple[pl.DataFrame, Block]]:
    return [rows for path in paths for rows in table_rows(path, table, sets, advance)]


def _refuse(table: pl.DataFrame, block: Block, *names: str) -> None:
    """Raise InputError for the first row in which one of the columns is missing or negative."""
    for name in names:
        refuse_lines(table, pl.col(name).is_null(), block, f"{name} must be given", name)
        refuse_lines(table, pl.col(name) < 0, block, f"{name} must not be negative", name)


def _places(table: pl.DataFrame, block: Block, name: str, names: tuple[str, ...]) -> pl.Series:
    """Return an enumeration's numbers. Raises InputError naming the line of what is no member of it."""
    known = {text: place_of(text, names) for text in table[name].unique().drop_nulls().to_list()}
    bad = [text for text, place in known.items() if place is None]
    refuse_lines(table, pl.col(name).is_null() | pl.col(name).is_in(bad), block,
                 f"{name} must be 0 to {len(names) - 1} or a name such as {names[-1]}", name)
    return table[name].replace_strict(known, return_dtype=pl.Int64)


def _events(paths: list[Path], sets: Sets, advance: Advance) -> Events:
    narrow, rows, after, inside, of_alloc_sets, without_request = [], 0, 0, 0, 0, 0
    for path in paths:
        for table, block in table_rows(path, INSTANCES, sets, advance):
            checked = _checked(table, block)
            rows += len(table)
            late = pl.col("time") == AFTER
            in_alloc = (pl.col("alloc").fill_null(0) > 0) & ~late
            after += checked.filter(late).height
            inside += checked.filter(in_alloc).height
            real = checked.filter(~late & ~in_alloc)
            of_alloc_sets += real.filter(collection=ALLOC_SET).height
            without_request += real.filter(pl.col("cpu").is_null() | pl.col("memory").is_null()).height
            narrow.append(_narrow(real))
    if not narrow or not sum(map(len, narrow)):
        raise InputError(f"{paths[0].parent}: has no events of instances within the trace's window")
    return Events(pl.concat(narrow), rows, after, inside, of_alloc_sets, without_request)


def _checked(table: pl.DataFrame, block: Block) -> pl.DataFrame:
    _refuse(table, block, "time", "job", "index")
    for name, most in (("index", 2**31 - 1), ("priority", 2**15 - 1)):
        refuse_lines(table, ~pl.col(name).is_between(0, most), block, f"{name} must be 0 to {most}", name)
    for name in ("cpu", "memory"):
        bad = ~pl.col(name).is_between(0, AMOUNT_MAX * UNIT)
        refuse_lines(table, bad, block, f"{name} must be from 0 to {AMOUNT_MAX * UNIT:g}", name)
    collections = table.with_columns(pl.col("collection").fill_null("0"))
    return table.with_columns(event=_places(table, block, "event", EVENT_TYPES),
                              collection=_places(collections, block, "collection", COLLECTION_TYPES),
                              priority=pl.col("priority").fill_null(0))


def _narrow(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(
        "job", pl.col("index").cast(pl.Int32), "time", pl.col("event").cast(pl.UInt8),
        pl.col("priority").cast(pl.Int16), *requests(table),
        scheduling_class=pl.col("class").cast(pl.Int8, strict=False).fill_null(NO_EVENT),
        constraint_set=pl.col("constraint").cast(pl.Int32))


def as_2011(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return events with the numbers of 2011, without moves that say nothing new, and how many those were.

    The first QUEUE or ENABLE after an attempt has ended, or of a task of which nothing was seen, submits it.
    """
    ordered = table.with_columns(rank=pl.Series(RANK[table["event"].to_numpy()])).sort("job", "index", "time", "rank")
    event, places = ordered["event"].to_numpy(), np.arange(len(ordered))
    new = ordered.select(pl.struct("job", "index").rle_id().diff().fill_null(1) != 0).to_series().to_numpy()
    begins = np.maximum.accumulate(np.where(new, places, 0))
    move = np.isin(event, MOVES)
    telling = np.maximum.accumulate(np.where(~move & (event < V3["UPDATE_PENDING"]), places, -1))
    seen = telling >= begins
    ended = seen & (event[telling] >= V3["EVICT"]) & (event[telling] <= V3["LOST"])
    after = np.where(seen, telling, -1 - begins)  # what a move comes after: an event, or nothing
    submits = move & (ended | ~seen)
    first = np.zeros(len(ordered), bool)
    first[np.flatnonzero(submits)[np.unique(after[submits], return_index=True)[1]]] = True
    numbers = np.where(first, 0, AS_2011[event])
    kept = numbers != NO_EVENT
    translated = ordered.with_columns(event=pl.Series(numbers)).filter(pl.Series(kept))
    return translated.with_columns(pl.col("event").cast(pl.UInt8)).drop("rank"), int((~kept).sum())


def _first_sets(table: pl.DataFrame, sets: Sets) -> Constraints:
    """Return the constraints that each task had when some were first seen."""
    given = table.drop_nulls("constraint_set").sort("job", "index", "time", maintain_order=True)
    first = given.unique(["job", "index"], keep="first", maintain_order=True)
    return Constraints(sets.texts(), first.select("job", "index", pl.col("constraint_set").cast(pl.UInt32)), ())


def _users(paths: list[Path], advance: Advance) -> tuple[pl.DataFrame, tuple[Account, ...]]:
    """Return the user of each collection, and what became of the rows that name them."""
    tables = []
    for path in paths:
        for table, block in table_rows(path, COLLECTIONS, Sets(), advance):
            _refuse(table, block, "job")
            tables.append(table.select("job", "user"))
    if not tables:
        return pl.DataFrame(schema={"job": pl.Int64, "user": pl.String}), ()
    rows = pl.concat(tables)
    named = rows.drop_nulls("user")
    users = named.group_by("job").agg(pl.col("user").min())
    return users, (account(TABLES[1], len(rows), {"first to name a collection's user": len(users)}, {
        "seen later of the same collection": len(named) - len(users), "names no user": len(rows) - len(named)}),)


def _machines(source: Path, options: Options, advance: Advance) -> Machines:
    """Return the fleet. Raises InputError naming the file and the line."""
    tables, paths = [], parts(source, TABLES[2])
    if not paths:
        return NO_MACHINES
    for path in paths:
        for table, block in table_rows(path, MACHINES, Sets(), advance):
            _refuse(table, block, "time", "machine")
            refuse_capacities(table, block)
            events = _places(table, block, "event", MACHINE_EVENT_TYPES)
            refuse_lines(table.with_columns(number=events), pl.col("number") == 0, block,
                         "event must be 1 (ADD), 2 (REMOVE) or 3 (UPDATE)", "event")
            tables.append(table.with_columns(event=events - 1).drop("line"))
    if not tables:
        raise InputError(f"{paths[0]}: has no rows")
    attributes = parts(source, TABLES[3])
    given = [_checked_attributes(*rows) for rows in _read(attributes, ATTRIBUTES, Sets(), advance)]
    rows = pl.concat(given) if given else None
    return machines_of(pl.concat(tables), rows, source, options.fleet, Provenance("google2019", ORIGIN, LICENCE))


def _checked_attributes(table: pl.DataFrame, block: Block) -> pl.DataFrame:
    _refuse(table, block, "time", "machine")
    refuse_lines(table, pl.col("attribute").is_null(), block, "name must be given", "attribute")
    return table.drop("line").with_columns(pl.col("value").fill_null(""),
                                           pl.col("deleted").fill_null(False).cast(pl.Int64))


def _remarks(events: Events) -> dict[str, int | float | str]:
    counts = {"rows without a request (the attempt's other rows may have one)": events.without_request,
              "rows of alloc sets, whose instances are tasks": events.of_alloc_sets}
    return {name: count for name, count in counts.items() if count}
