"""Helios, SenseTime's GPU clusters in 2020 (HeliosData): cluster_log.csv of one of them, one job of Slurm a line.

- A job of several nodes is a gang of as many tasks, which start together and ask for equal parts of its CPUs and GPUs.
  Jobs without GPUs are more than half; they are kept.
- The queue is vc/user: a virtual cluster has nodes of its own, which is not modelled, for the log does not say which.
- Times are local, of one zone without summer time (`--zone Asia/Shanghai` says which); they are counted from the first
  submission. The run time is from start_time to end_time; the columns duration and queue say the same again, and are
  not read.
- States are Slurm's, as for the format sacct.
- No fleet is written: the published files say how many GPUs each virtual cluster has from day to day
  (cluster_gpu_number.csv), and not how many CPUs a node has.

Source: the README of https://github.com/S-Lab-System-Group/HeliosData; Hu et al., SC '21. Made from that schema and its
three example rows; the trace itself was not at hand.
"""
from pathlib import Path

import polars as pl

from subak.errors import InputError
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.readers.conversion import Conversion, Reader, account_of, dropped_of, kept_load, notes
from subak.workload.readers.files.delimited import Dialect, text_rows
from subak.workload.readers.files.faults import Faults, Rows
from subak.workload.readers.files.stream import Advance, single_file
from subak.workload.readers.files.times import (
    Clocks,
    calendar_of,
    clock_remarks,
    known,
    names_zone,
    number,
    refuse_zone,
    stamp_seconds,
)
from subak.workload.readers.options import DATED, Options
from subak.workload.readers.rows import (
    FAULTY,
    NEVER_STARTED,
    add_amounts,
    again,
    last_of,
    since_first,
    usual_rules,
    workload_of_rows,
)
from subak.workload.readers.rulings import Ruling, with_ruling
from subak.workload.readers.slurm.states import is_no_state, outcome_of, state_word
from subak.workload.table import QUEUES_ARE

RESOURCES = (Resource("gpu", 1e-3, "GPUs"), Resource("cpu", 1e-3, "cores"))
COLUMNS = ("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state", "submit_time", "start_time", "end_time")
NUMBERS = ("gpu_num", "cpu_num", "node_num")
TIMES = ("submit_time", "start_time", "end_time")
ORIGIN = "SenseTime's Helios traces (HeliosData); Hu et al., SC '21"
LICENCE = "for academic use, with citation of the paper; see the repository"


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read a cluster's log. Raises InputError when too much of it cannot be read, naming line and column."""
    refuse_zone(options.zone)
    single_file(source)
    tables = [_jobs(rows, options) for rows in text_rows(source, Dialect(), COLUMNS, advance)]
    if not tables:
        raise InputError(f"{source}: has no jobs")
    table, origin = since_first(pl.concat(tables), "arrival", "recorded_start")
    options = options.placed(calendar_of(table, origin, options.zone), last_of(table))
    ruled = _with_rulings(table, options)
    kept, loads = kept_load(ruled, source, "jobs", RESOURCES, options)
    accounts = (account_of("jobs", ruled),)
    remarks = _remarks(kept, origin)
    chosen = {"from": options.arrival_min, "until": options.arrival_end, "zone": options.zone}
    provenance = Provenance("helios", f"file {source.name}: {ORIGIN}", LICENCE, notes(accounts, remarks, chosen),
                            calendar_of(kept, origin, options.zone))
    workload = workload_of_rows(kept, RESOURCES, provenance)
    return Conversion(workload, None, accounts, remarks, dropped_of("jobs", ruled, source), loads=loads)


READER = Reader("cluster_log.csv of one of SenseTime's Helios clusters", single_file, read,
                frozenset({*DATED, "zone", "max_lost"}))


def _jobs(rows: Rows, options: Options) -> pl.DataFrame:
    """Return ROW_COLUMNS of a block's lines, and what the rulings need."""
    faults = Faults(rows)
    texts = rows.table.with_columns(known(pl.col(name)).alias(name) for name in COLUMNS)
    faults.missing(texts, "job_id", "state", *NUMBERS)
    faults.add(texts, ~pl.col("job_id").str.contains(r"^\d+$"), "job_id must be a number", "job_id")
    faults.add(texts, is_no_state(pl.col("state")), "state must be one of Slurm's job states", "state")
    for name in ("vc", "user"):
        faults.add(texts, pl.col(name).str.contains("[[:cntrl:]]"), f"{name} must be a name", name)
    for name in NUMBERS:
        value = number(pl.col(name))
        bad = value.is_null() | (value < 0) | (value != value.round()) | (value > 2**31)
        faults.add(texts, bad, f"{name} must be a whole number, 0 or more", name)
    clocks = Clocks()
    for name in TIMES:
        shown = stamp_seconds(pl.col(name))
        faults.add(texts, pl.col(name).is_not_null() & shown.is_null(),
                   f"{name} must be an instant such as 2020-06-09 18:41:01", name)
        clocks.add(name, shown, ~names_zone(pl.col(name)), options.zone)
    texts = texts.with_columns(**clocks.columns)
    nodes = number(pl.col("node_num")).cast(pl.Int64, strict=False)
    names = [pl.col(name).fill_null("unknown").str.replace_all("/", "_", literal=True) for name in ("vc", "user")]
    found = texts.select(
        "line", "skipped", "twice", "zoneless",
        job="job_id", queue=names[0] + "/" + names[1], user=pl.col("user").fill_null("unknown"),
        arrival="submit_time", recorded_start="start_time", run_time=pl.col("end_time") - pl.col("start_time"),
        outcome=outcome_of(state_word(pl.col("state"))), count=nodes, gang=pl.lit(True),
        **{name: number(pl.col(f"{name}_num")) / nodes.clip(1) for name in ("gpu", "cpu")},
    )
    add_amounts(faults, found, RESOURCES)
    return faults.onto(found)


def _with_rulings(table: pl.DataFrame, options: Options) -> pl.DataFrame:
    never = pl.col("recorded_start").is_null() | pl.col("outcome").is_null()
    return with_ruling(table, [
        FAULTY,
        Ruling(never, NEVER_STARTED, load=False),
        again("job", "job", never=never),
        *usual_rules(RESOURCES, options),
    ]).with_columns(recorded_start=pl.max_horizontal("recorded_start", "arrival"))


def _remarks(kept: pl.DataFrame, origin: float) -> dict[str, int | float | str]:
    counts = {
        "jobs without GPUs": kept.filter(gpu=0.0).height,
        "jobs on several nodes, which start together": kept.filter(pl.col("count") > 1).height,
        "jobs with run time 0": kept.filter(run_time=0.0).height,
    }
    said: dict[str, int | float | str] = {name: count for name, count in counts.items() if count}
    return said | clock_remarks(kept, origin) | {
                   QUEUES_ARE: "virtual cluster/user",
                   "fleet": "none written: the published files do not say how many CPUs a node has"}
