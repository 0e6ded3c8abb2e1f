"""SWF, the Standard Workload Format (Parallel Workloads Archive): one job a line, 18 fields or more, -1 = unknown.

A job is rigid: it becomes a gang of tasks of one processor each, which start together, on the computer's nodes (`;
MaxNodes:` of the header, which share `; MaxProcs:` evenly; where one is missing, a node has one processor). With
`one-machine` it becomes one task that asks for all its processors from one machine that stands for the whole computer,
which is the same to every scheduler that looks for any free processors, and makes fewer rows. Without either header no
fleet is written. It asks for the processors that were allocated to it (field 5), where that is known, or with
`--amounts requested` for those that its user asked for (field 8). The time that the user asked for (field 9) is the
estimate. Fields beyond the 18th are ignored. A line in which a field is none is dropped, and named in dropped.csv.
Lines with status 2, 3 or 4 are pieces of a job that another line sums up: they are dropped, and so are jobs that were
cancelled (status 5) before they had run or held anything. A job whose wait is recorded started that long after it was
submitted. Memory that a job asks for (field 10), and which it follows (17, 18), are not read; who has them is counted.
"""
import re
from pathlib import Path

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
from subak.workload.readers.files.stream import Advance, single_file
from subak.workload.readers.options import Options
from subak.workload.readers.rows import workload_of_rows
from subak.workload.readers.rulings import Ruling
from subak.workload.readers.swf_lines import Form, counts_of, header_of, read_parts, row_columns, with_rulings

RESOURCES = (Resource("processors", 1.0, "processors"),)
FORM = Form()
SWF_NODES_MAX = 1_000_000
ONE_MACHINE = "--computer one-machine makes"


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read an SWF file, plain or compressed. Raises InputError when too much of it cannot be read, naming the line."""
    parts = read_parts(source, FORM, advance)
    header, lines = header_of(parts), pl.concat(part.faults.onto(part.jobs) for part in parts)
    ruled = _with_rulings(lines, options)
    all_kept, loads = kept_load(ruled, source, "jobs", RESOURCES, options)
    kept = all_kept.sort("submit", maintain_order=True)
    accounts = (account_of("jobs", ruled),)
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
                      dropped_of("jobs", ruled, source), loads=loads)


READER = Reader("a file of the Parallel Workloads Archive, 18 fields or more a line", single_file, read,
                frozenset({"arrival_min", "arrival_end", "computer", "amounts", "max_lost"}))


def _with_rulings(lines: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Add `processors` and `ruling`, why a line is kept or dropped; the first rule that holds counts."""
    first, second = ("allocated", "requested") if options.amounts == "allocated" else ("requested", "allocated")
    rows = lines.with_columns(processors=pl.when(pl.col(first) > 0).then(first).otherwise(second))
    return with_rulings(rows, [Ruling(pl.col("processors") <= 0, "number of processors unknown or 0")], options)


def _remarks(lines: pl.DataFrame, kept: pl.DataFrame, machines: np.ndarray | None) -> dict[str, int | float | str]:
    limit = AMOUNT_MAX if machines is None else int(machines.sum())
    counts = counts_of(lines, kept, FORM) | {
        "jobs whose request is unknown (their allocation counts)": kept.filter(pl.col("requested") <= 0).height,
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
    processors = pl.col("processors")
    return kept.select(
        gang=pl.lit(has_nodes), count=(processors if has_nodes else pl.lit(1)).cast(pl.Int64),
        processors=pl.lit(1.0) if has_nodes else processors, **row_columns())
