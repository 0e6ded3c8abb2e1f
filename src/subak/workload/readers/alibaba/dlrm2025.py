"""Alibaba's GPU-disaggregated serving of recommendation models (cluster-trace-gpu-v2025).

The file is disaggregated_DLRM_trace.csv, one instance a line.

- An instance is a task of the kind SERVICE; those of one application (app_name) are one job, and its queue.
- It asks for CPU cores, GPUs, memory, disk, and rdma, per cent of a network card's bandwidth.
- An instance without a creation_time (empty or NaN) was there before the trace: it arrives at 0, and runs from there
  where scheduled_time is empty as well. One that was created in the trace and never scheduled never ran.
- An instance without a deletion_time still ran at the last instant that the file names: its outcome is CENSORED, and it
  runs to there.
- role (with a GPU, HN, or without, CN), max_instance_per_node and limits are not modelled. No fleet is written: the
  trace names no machines.

Source: README.md of https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2025; Yang et al., NSDI '25. Tried on
the published file, 23,871 instances.
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
from subak.workload.readers.files.times import number
from subak.workload.readers.options import Options
from subak.workload.readers.rows import (
    FAULTY,
    NEVER_STARTED,
    add_amounts,
    add_times,
    again,
    usual_rules,
    workload_of_rows,
)
from subak.workload.readers.rulings import Ruling, with_ruling
from subak.workload.readers.started import never_started
from subak.workload.table import OUTCOMES, Observed

RESOURCES = (Resource("cpu", 1e-3, "cores"), Resource("memory", 1e-3, "GiB"), Resource("gpu", 1e-3, "GPUs"),
             Resource("disk", 1e-3, "GiB"), Resource("rdma", 1e-3, "% of a card"))
AMOUNTS = tuple(f"{each.name}_request" for each in RESOURCES)
TIMES = ("creation_time", "scheduled_time", "deletion_time")
READ = ("instance_sn", "role", "app_name", *AMOUNTS, *TIMES)
ROLES = ("HN", "CN")
ORIGIN = "Alibaba's cluster-trace-gpu-v2025; Yang et al., NSDI '25"
LICENCE = "no licence stated"  # of the repository's folders, that of 2020 alone has one


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read the instances. Raises InputError when too much of the table cannot be read, naming line and column."""
    single_file(source)
    tables = [_instances(rows) for rows in text_rows(source, Dialect(), READ, advance)]
    if not tables:
        raise InputError(f"{source}: has no instances")
    table = pl.concat(tables)
    good = table.filter(pl.col("fault").is_null())
    window_end = float(good.select(pl.max_horizontal(pl.col(*TIMES).max())).item() or 0.0)
    ruled = _with_rulings(table, window_end, options)
    kept, loads = kept_load(ruled, source, "instances", RESOURCES, options)
    accounts = (account_of("instances", ruled),)
    remarks: dict[str, int | float | str] = {
        "last instant (s)": window_end, "applications": kept["job"].n_unique(),
        "instances that were there before": kept["creation_time"].null_count(),
        "instances that still ran at the last instant": kept["deletion_time"].null_count(),
        "fleet": "none written: the trace names no machines"}
    chosen = {"from": options.arrival_min, "until": options.arrival_end}
    provenance = Provenance("dlrm2025", f"file {source.name}: {ORIGIN}", LICENCE, notes(accounts, remarks, chosen))
    seen = kept["creation_time"].drop_nulls()
    observed = None if seen.is_empty() or len(seen) == len(kept) else Observed(
        float(seen.min()), max(float(seen.min()), min(options.arrival_end, window_end)))  # type: ignore[arg-type]
    workload = workload_of_rows(kept, RESOURCES, provenance, observed=observed)
    return Conversion(workload, None, accounts, remarks, dropped_of("instances", ruled, source), loads=loads)


READER = Reader("disaggregated_DLRM_trace.csv of Alibaba's GPU trace of 2025", single_file, read,
                frozenset({"arrival_min", "arrival_end", "max_lost"}))


def _instances(rows: Rows) -> pl.DataFrame:
    told = (pl.when(pl.col(name).str.to_lowercase() != "nan").then(pl.col(name)).alias(name) for name in TIMES)
    texts, faults = rows.table.with_columns(told), Faults(rows)
    faults.missing(texts, "instance_sn", "app_name", *AMOUNTS)
    faults.add(texts, ~pl.col("role").is_in(list(ROLES)).fill_null(False), "role must be HN or CN", "role")
    for name in (*AMOUNTS, *TIMES):
        bad = pl.col(name).is_not_null() & (number(pl.col(name)).is_null() | (number(pl.col(name)) < 0))
        faults.add(texts, bad, f"{name} must be a number, 0 or more", name)
    found = {each.name: number(pl.col(name)) for each, name in zip(RESOURCES, AMOUNTS, strict=True)}
    table = texts.select("line", "instance_sn", *(number(pl.col(name)).alias(name) for name in TIMES), **found,
                         job=pl.col("app_name"))
    add_times(faults, table, *TIMES)
    add_amounts(faults, table, RESOURCES)
    return faults.onto(table)


def _with_rulings(table: pl.DataFrame, window_end: float, options: Options) -> pl.DataFrame:
    there_before = pl.when(pl.col("creation_time").is_null()).then(0.0)
    start, end = pl.coalesce("scheduled_time", there_before), pl.col("deletion_time")
    ended = pl.when(end.is_null()).then(pl.lit("CENSORED")).otherwise(pl.lit("KILL")).cast(OUTCOMES)
    run_time = end.fill_null(window_end) - start
    rows = table.with_columns(
        arrival=pl.col("creation_time").fill_null(0.0), run_time=run_time, recorded_start="scheduled_time",
        kind=pl.lit("SERVICE"), outcome=ended, queue=pl.col("job").str.replace_all("/", "_"),
        count=pl.lit(1, pl.Int64), never=never_started(start, ended, run_time))
    never = Ruling(pl.col("never"), NEVER_STARTED, load=False)
    return with_ruling(rows, [FAULTY, again("instance", "instance_sn"), never, *usual_rules(RESOURCES, options)])
