"""Frontier's traces (OLCF, frontier-2024.swf and frontier-2025.swf): SWF with 21 fields, one job a line.

- A job is a gang of as many tasks as it has nodes, which start together, each on the cores of a node. Both numbers are
  of field 21, such as frontier:excl:2500x112 (cluster, mode, nodes x cores of each): field 5 holds nodes or cores, and
  does not say which.
- The GPUs that it used (field 19) are shared evenly by its nodes, rounded up; where they are unknown, it asks for none.
- The walltime limit (field 9) is the estimate; the soft one (field 20) is not read. All else is as in SWF: pieces of
  jobs and jobs that were cancelled before they ran are dropped, and a recorded wait tells when a job started.
- No fleet is written: the trace does not say how many nodes there are.

Source: Maheshwari, Klusacek, Suter, Brewer, JSSPP 2026, as ExaDigiT RAPS reads it. Made from that list of fields and
lines written by hand; the trace itself was not at hand, and its licence is not known.
"""
from pathlib import Path

import polars as pl

from subak.dates import UTC_NAME, calendar_at
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
from subak.workload.readers.files.times import instant_text
from subak.workload.readers.options import DATED, Options
from subak.workload.readers.rows import workload_of_rows
from subak.workload.readers.swf_lines import Form, Part, counts_of, header_of, read_parts, row_columns, with_rulings
from subak.workload.table import TIME_0

RESOURCES = (Resource("cpu", 1.0, "cores"), Resource("gpu", 1.0, "GPUs"))
FORM = Form(21, {"gpus": 18}, {"descriptor": 20})
DESCRIPTOR = r"^[^:]*:(?<mode>[^:]*):(?<nodes>\d{1,10})x(?<cores>\d{1,10})$"
ORIGIN = "Frontier, OLCF; Maheshwari, Klusacek, Suter, Brewer, JSSPP 2026"
LICENCE = "no licence stated"


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read a file, plain or compressed. Raises InputError when too much of it cannot be read, naming the line."""
    parts = read_parts(source, FORM, advance)
    jobs = pl.concat(_sized(part) for part in parts)
    header = header_of(parts)
    start = _start(header)
    calendar = None if start is None else calendar_at(start, UTC_NAME)
    options = options.placed(calendar, float(jobs["submit"].max() or 0.0))  # type: ignore[arg-type]
    ruled = with_rulings(jobs, [], options)
    all_kept, loads = kept_load(ruled, source, "jobs", RESOURCES, options)
    kept = all_kept.sort("submit", maintain_order=True)
    accounts = (account_of("jobs", ruled),)
    remarks = _remarks(jobs, kept, start)
    chosen = {"from": options.arrival_min, "until": options.arrival_end}
    provenance = Provenance(source.name.split(".")[0], f"file {source.name}: {ORIGIN}", LICENCE,
                            notes(accounts, remarks, chosen), calendar)
    refuse_too_many(float(kept["count"].sum()), source)
    rows = kept.select("count", "cpu", "gpu", gang=pl.lit(True), **row_columns())
    return Conversion(workload_of_rows(rows, RESOURCES, provenance), None, accounts, remarks,
                      dropped_of("jobs", ruled, source), loads=loads)


READER = Reader("a file of Frontier's traces, SWF with 21 fields", single_file, read,
                frozenset({*DATED, "max_lost"}))


def _sized(part: Part) -> pl.DataFrame:
    """Return the jobs of a part with their nodes (`count`), and what each asks for."""
    shape = pl.col("descriptor").str.extract_groups(DESCRIPTOR).struct
    numbers = {name: shape[name].cast(pl.Int64) for name in ("nodes", "cores")}
    able = pl.all_horizontal(each.is_between(1, AMOUNT_MAX) for each in numbers.values())
    count, cores = (pl.when(able).then(each) for each in numbers.values())
    sized = part.jobs.with_columns(mode=shape["mode"], count=count, cpu=cores.cast(pl.Float64),
                                   gpu=(pl.col("gpus").clip(0) / count).ceil())
    part.faults.add(sized, pl.col("count").is_null(),
                    "field 21 must be CLUSTER:MODE:NODESxCORES, such as frontier:excl:16x112", "descriptor")
    return part.faults.onto(sized)


def _start(header: dict[str, str]) -> float | None:
    """Return the instant of time 0, s since 1970, where the file's header says it."""
    start = header.get("UnixStartTime", "")
    return float(start) if start.isascii() and start.isdigit() and len(start) < 12 else None


def _remarks(jobs: pl.DataFrame, kept: pl.DataFrame, start: float | None) -> dict[str, int | float | str]:
    gpus = pl.col("gpus")
    counts = counts_of(jobs, kept, FORM) | {
        "jobs whose GPUs are unknown (they ask for none)": kept.filter(gpus < 0).height,
        "jobs whose GPUs their nodes cannot share evenly (rounded up)": kept.filter(
            (gpus > 0) & (gpus != pl.col("gpu") * pl.col("count"))).height,
        "jobs that share nodes with others": kept.filter(pl.col("mode") != "excl").height,
    }
    said: dict[str, int | float | str] = {name: count for name, count in counts.items() if count}
    when = {} if start is None else {TIME_0: instant_text(start)}
    return {**said, **when, "fleet": "none written: the trace does not say how many nodes there are"}
