"""SWF, the Standard Workload Format (Parallel Workloads Archive): one job a line, 18 fields or more, -1 = unknown.

A job is rigid: it becomes a gang of tasks of one processor each, which start together, on the computer's nodes (`;
MaxNodes:` of the header, which share `; MaxProcs:` evenly; where one is missing, a node has one processor). With
`one-machine` it becomes one task that asks for all its processors from one machine that stands for the whole computer,
which is the same to every scheduler that looks for any free processors, and makes fewer rows. Without either header no
fleet is written. The time that the user asked for (field 9) is the estimate. Fields beyond the 18th are ignored. Lines
with status 2, 3 or 4 are pieces of a job that another line sums up: they are dropped, and so are jobs that were
cancelled (status 5) before they had run or held anything. A job whose wait is recorded started that long after it was
submitted. Memory that a job asks for (field 10), and which it follows (17, 18), are not read; who has them is counted.
"""
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet, make_fleet
from subak.resources import AMOUNT_MAX, Resource
from subak.tables import Provenance
from subak.workload.readers.conversion import (
    Conversion,
    Reader,
    account_of,
    dropped_of,
    kept_load,
    notes,
    refuse_too_many,
)
from subak.workload.readers.fates import Fate, with_fate
from subak.workload.readers.files.faults import Faults, Rows
from subak.workload.readers.files.stream import Advance, Block, blocks, fields, single_file
from subak.workload.readers.options import Options
from subak.workload.readers.rows import FAULTY, NEVER_STARTED, OUTSIDE, workload_of_rows
from subak.workload.readers.started import never_started
from subak.workload.table import OUTCOMES

RESOURCES = (Resource("processors", 1.0, "processors"),)
FIELD_COUNT = 18
# Places, from 0, of the fields that are read; the format's own numbers are one higher
FIELDS = {"number": 0, "submit": 1, "wait": 2, "run_time": 3, "allocated": 4, "requested": 7, "estimate": 8,
          "status": 10, "user": 11, "queue": 14}
COUNTED = {"memory": 9, "preceding": 16}  # places of fields of which it is only said how many jobs have them
WHOLE = ("number", "allocated", "requested", "status", "user", "queue")
OUTCOME_NAMES = {0.0: "FAIL", 1.0: "FINISH", 5.0: "KILL"}
SWF_NODES_MAX = 1_000_000
ONE_MACHINE = "--computer one-machine makes"
NUMBER_MAX = 2.0**53  # beyond it a float does not hold every whole number


class Lines(NamedTuple):
    """A file's header and its job lines."""

    header: dict[str, str]
    jobs: pl.DataFrame  # line, the numbers of FIELDS, field_count


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read an SWF file, plain or compressed. Raises InputError naming the line of the first mistake."""
    header, lines = _lines(source, advance)
    fated = _with_fates(lines, options)
    all_kept, loads = kept_load(fated, source, "jobs", RESOURCES, options)
    kept = all_kept.sort("submit", maintain_order=True)
    accounts = (account_of("jobs", fated),)
    has_nodes = options.computer == "nodes"
    machines = _machines(header, source, has_nodes)
    remarks = _remarks(lines, kept, machines)
    chosen = {"from": options.arrival_min, "until": options.arrival_end, "computer": options.computer,
              "amounts": options.amounts}
    provenance = _provenance(header, source, notes(accounts, remarks, chosen))
    if has_nodes:
        refuse_too_many(float(kept["processors"].sum()), source, f", or {ONE_MACHINE} a task of each job")
    workload = workload_of_rows(_rows(kept, has_nodes), RESOURCES, provenance)
    return Conversion(workload, _fleet(header, machines, has_nodes, provenance), accounts, remarks,
                      dropped_of("jobs", fated, source), loads=loads)


READER = Reader("a file of the Parallel Workloads Archive, 18 fields or more a line", single_file, read,
                frozenset({"arrival_min", "arrival_end", "computer", "amounts", "max_lost"}))


def _lines(source: Path, advance: Advance) -> Lines:
    single_file(source)
    header: dict[str, str] = {}
    tables = []
    for block in blocks(source, advance):
        for key, value in re.findall(rb"^;[ \t]*([A-Za-z]+):[ \t]*(.*)$", block.text, flags=re.MULTILINE):
            header.setdefault(key.decode(), value.decode("utf-8", errors="replace").strip())
        tables.append(_numbers(fields(block), block))
    if not tables or not sum(map(len, tables)):
        raise InputError(f"{source}: has no jobs")
    return Lines(header, pl.concat(tables))


def _numbers(lines: pl.DataFrame, block: Block) -> pl.DataFrame:
    """Return the fields of the block's job lines as numbers."""
    words = lines.filter(~pl.col("fields").list.first().str.starts_with(";"))
    words = words.with_columns(field_count=pl.col("fields").list.len())
    faults = Faults(Rows(words, block))
    faults.add(words, pl.col("field_count") < FIELD_COUNT, f"must have {FIELD_COUNT} fields or more", "field_count")
    places = FIELDS | COUNTED
    texts = words.with_columns(pl.col("fields").list.get(place, null_on_oob=True).alias(name)
                               for name, place in places.items())
    numbers = texts.with_columns(pl.col(*FIELDS, *COUNTED).cast(pl.Float64, strict=False))
    table = numbers.with_columns(pl.when(pl.col(name).abs() < NUMBER_MAX).then(name).alias(name) for name in FIELDS)
    for name in FIELDS:
        bad = texts.with_columns(bad=table[name].is_null())
        faults.add(bad, pl.col("bad"), f"{name} must be a finite number", name)
    for name in WHOLE:
        faults.add(table, pl.col(name) != pl.col(name).round(), f"{name} must be a whole number", name)
    for name in ("submit", "run_time", "estimate"):
        faults.add(table, (pl.col(name) < 0) & (pl.col(name) != -1),
                   f"{name} must not be negative (only -1, for unknown)", name)
    for name in ("requested", "allocated"):
        faults.add(table, pl.col(name) > AMOUNT_MAX, f"{name} must be at most {AMOUNT_MAX}", name)
    return faults.onto(table.drop("fields"))


def _with_fates(lines: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Add `processors` and `fate`, why a line is kept or dropped; the first rule that holds counts."""
    submit = pl.col("submit")
    piece = pl.col("status").is_in([2.0, 3.0, 4.0])
    never = never_started(None, pl.col("outcome"), pl.col("run_time"), pl.col("allocated") > 0)
    first, second = ("allocated", "requested") if options.amounts == "allocated" else ("requested", "allocated")
    rows = lines.with_columns(
        processors=pl.when(pl.col(first) > 0).then(first).otherwise(second),
        outcome=pl.col("status").replace_strict(OUTCOME_NAMES, default=None, return_dtype=OUTCOMES))
    known = rows.with_columns(pl.when(pl.col("run_time") >= 0).then("run_time"))
    return with_fate(known, [
        Fate(piece, "a piece of a job (status 2, 3 or 4)", load=False),
        FAULTY,
        Fate(submit < 0, "submit time unknown"),
        Fate(never, NEVER_STARTED, load=False),
        Fate(pl.col("run_time").is_null(), "run time unknown"),
        Fate(pl.col("processors") <= 0, "number of processors unknown or 0"),
        Fate(~pl.struct("number", piece).is_first_distinct(), "job number seen before", load=False),
        Fate((submit < options.arrival_min) | (submit >= options.arrival_end), OUTSIDE, load=False),
    ])


def _remarks(lines: pl.DataFrame, kept: pl.DataFrame, machines: np.ndarray | None) -> dict[str, int | float | str]:
    field_count, limit = pl.col("field_count"), AMOUNT_MAX if machines is None else int(machines.sum())
    counts = {
        "lines with more than 18 fields (the rest is ignored)": lines.filter(field_count > FIELD_COUNT).height,
        "jobs whose request is unknown (their allocation counts)": kept.filter(pl.col("requested") <= 0).height,
        "jobs with run time 0": kept.filter(run_time=0.0).height,
        "jobs with an estimate": kept.filter(pl.col("estimate") >= 0).height,
        "jobs whose wait is recorded": kept.filter(pl.col("wait") >= 0).height,
        "jobs whose wait is negative (it counts as unknown)":
            kept.filter((pl.col("wait") < 0) & (pl.col("wait") != -1)).height,
        "jobs that ask for memory (field 10, which is not read)": kept.filter(pl.col("memory") > 0).height,
        "jobs that follow another (fields 17 and 18, which are not read)": kept.filter(pl.col("preceding") > 0).height,
        "jobs that ask for more than the computer has": kept.filter(pl.col("processors") > limit).height,
    }
    fleet: dict[str, int | float | str] = {} if machines is not None else {
        "fleet": "none written: the header gives neither MaxProcs nor MaxNodes"}
    return fleet | {name: count for name, count in counts.items() if count}


def _machines(header: dict[str, str], source: Path, has_nodes: bool) -> np.ndarray | None:
    """Return int64[machine], the processors of each, or None when the header does not say."""
    processors, nodes = (_number(header, name, source) for name in ("MaxProcs", "MaxNodes"))
    total = processors or nodes
    if total is None:
        return None
    if not has_nodes:
        return np.array([total])
    count = min(nodes or total, total)
    if count > SWF_NODES_MAX:
        raise InputError(f"{source}: the header says {count:,} nodes, at most {SWF_NODES_MAX:,} are possible; "
                         f"{ONE_MACHINE} one of them")
    return total // count + (np.arange(count) < total % count)


def _number(header: dict[str, str], name: str, source: Path) -> int | None:
    """Return a number of the header, or None where it is missing or unknown."""
    number = re.match(r"-?\d+", header.get(name, ""))
    if number is None or number.group() == "-1":
        return None
    count = int(number.group())
    if not 1 <= count <= AMOUNT_MAX:
        raise InputError(f"{source}: {name} of the header must be 1 to {AMOUNT_MAX}, not {count}")
    return count


def _provenance(header: dict[str, str], source: Path, counted: dict[str, object]) -> Provenance:
    parts = [header.get(name, "") for name in ("Computer", "Installation", "Acknowledge")]
    said = "; ".join(part for part in parts if part)
    return Provenance(source.name.split(".")[0], f"file {source.name}" + (f": {said}" if said else ""),
                      "Parallel Workloads Archive: use with acknowledgement; no licence text", counted)


def _fleet(
    header: dict[str, str], machines: np.ndarray | None, has_nodes: bool, provenance: Provenance
) -> Fleet | None:
    if machines is None:
        return None
    names = [f"node{row}" for row in range(machines.size)] if has_nodes else [header.get("Computer") or "computer"]
    table = pl.DataFrame({"machine": names, "processors": machines.astype(np.float64)})
    return make_fleet(table.with_columns(cluster=pl.lit("0")), RESOURCES, provenance=provenance)


def _rows(kept: pl.DataFrame, has_nodes: bool) -> pl.DataFrame:
    """Return ROW_COLUMNS: tasks of one processor, or one of all."""
    queue, user = (_named(name) for name in ("queue", "user"))
    processors = pl.col("processors")
    return kept.select(
        "run_time", "outcome", job=_whole("number"), queue=queue + "/" + user, gang=pl.lit(has_nodes), arrival="submit",
        user=pl.when(pl.col("user") >= 0).then(_whole("user")).otherwise(pl.lit("unknown")),
        estimate=pl.when(pl.col("estimate") >= 0).then("estimate"),
        recorded_start=pl.when(pl.col("wait") >= 0).then(pl.col("submit") + pl.col("wait")),
        count=(processors if has_nodes else pl.lit(1)).cast(pl.Int64),
        processors=pl.lit(1.0) if has_nodes else processors,
    )


def _named(name: str) -> pl.Expr:
    known = pl.lit(name) + _whole(name)
    return pl.when(pl.col(name) >= 0).then(known).otherwise(pl.lit("unknown"))


def _whole(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64).cast(pl.String)
