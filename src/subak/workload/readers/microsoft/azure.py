"""Azure's virtual machines, 2017 and 2019 (AzurePublicDataset V1 and V2).

The file is vmtable.csv: eleven columns, without a header.

- A virtual machine is a task that asks for its cores and memory; those of one deployment are one job, whose user is the
  subscription. It runs until somebody deletes it, so it is a SERVICE.
- It arrives when it was created, and had no wait that the trace knows of. It runs until it was deleted, at least 300 s,
  the time between two readings, as in the publishers' own analysis. What was deleted at the last instant of the table
  still ran then: its end is unknown. What was created at 0 was there before.
- V2 gives cores and memory in buckets. `>24` cores count as 30 and `>64` GB as 70, as in the publishers' analysis.
- How sensitive to latency it is, the scheduling class, is 0 for Delay-insensitive, 1 for Unknown, 2 for Interactive.
- No fleet is written: the trace names no machines. Usage (vm_cpu_readings) is not read.

Source: AzurePublicDatasetV1.md, V2.md and the notebooks of https://github.com/Azure/AzurePublicDataset; Cortez et al.,
SOSP '17. Made from that schema; the traces themselves were not at hand.
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
from subak.workload.readers.rows import FAULTY, add_amounts, add_times, again, usual_rules, workload_of_rows
from subak.workload.readers.rulings import with_ruling
from subak.workload.table import OUTCOMES, Observed

RESOURCES = (Resource("cpu", 1e-3, "cores"), Resource("memory", 1e-3, "GB"))
COLUMNS = ("vmid", "subscriptionid", "deploymentid", "vmcreated", "vmdeleted", "maxcpu", "avgcpu", "p95maxcpu",
           "vmcategory", "vmcorecount", "vmmemory")
READ = ("vmid", "subscriptionid", "deploymentid", "vmcreated", "vmdeleted", "vmcategory", "vmcorecount", "vmmemory")
AMOUNTS = {"vmcorecount": ("cpu", ">24", 30.0), "vmmemory": ("memory", ">64", 70.0)}
CLASSES = {"Delay-insensitive": 0, "Unknown": 1, "Interactive": 2}
RUN_TIME_MIN_S = 300.0
ORIGIN = "Azure Public Dataset, virtual machines; Cortez et al., SOSP '17"
LICENCE = "CC-BY 4.0"


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read the machines. Raises InputError when too much of the table cannot be read, naming line and column."""
    single_file(source)
    tables = [_machines(rows) for rows in text_rows(source, Dialect(names=COLUMNS), READ, advance)]
    if not tables:
        raise InputError(f"{source}: has no virtual machines")
    table = pl.concat(tables)
    window_end = float(table.filter(pl.col("fault").is_null())["vmdeleted"].max() or 0.0)  # type: ignore[arg-type]
    ruled = _with_rulings(table, window_end, options)
    kept, loads = kept_load(ruled, source, "virtual machines", RESOURCES, options)
    accounts = (account_of("vmtable", ruled),)
    remarks = _remarks(kept, window_end)
    chosen = {"from": options.arrival_min, "until": options.arrival_end}
    provenance = Provenance("azure", f"file {source.name}: {ORIGIN}", LICENCE, notes(accounts, remarks, chosen))
    seen = kept.filter(pl.col("arrival") > 0)["arrival"]
    observed = None if seen.is_empty() or len(seen) == len(kept) else Observed(
        float(seen.min()), max(float(seen.min()), min(options.arrival_end, window_end)))  # type: ignore[arg-type]
    workload = workload_of_rows(kept, RESOURCES, provenance, observed=observed)
    return Conversion(workload, None, accounts, remarks, dropped_of("vmtable", ruled, source), loads=loads)


READER = Reader("vmtable.csv of Azure's public traces of 2017 or 2019", single_file, read,
                frozenset({"arrival_min", "arrival_end", "max_lost"}))


def _machines(rows: Rows) -> pl.DataFrame:
    """Return ROW_COLUMNS of a block's lines."""
    texts, faults = rows.table, Faults(rows)
    faults.missing(texts, "vmid", "vmcorecount", "vmmemory", "vmcategory")
    faults.add(texts, ~pl.col("vmcategory").is_in(list(CLASSES)),
               f"vmcategory must be one of {', '.join(CLASSES)}", "vmcategory")
    found = {name: number(pl.col(name)) for name in ("vmcreated", "vmdeleted")}
    for name, (resource, bucket, size) in AMOUNTS.items():
        found[resource] = pl.when(pl.col(name) == bucket).then(size).otherwise(number(pl.col(name)))
    for name, read_from in (("vmcreated", "vmcreated"), ("vmdeleted", "vmdeleted"), ("cpu", "vmcorecount"),
                            ("memory", "vmmemory")):
        bad = pl.col(read_from).is_not_null() & (found[name].is_null() | (found[name] < 0))
        faults.add(texts, bad, f"{read_from} must be a number, 0 or more", read_from)
    table = texts.select(
        "line", "vmid", **found, bucket=pl.any_horizontal(pl.col("vmcorecount", "vmmemory").str.starts_with(">")),
        job=pl.coalesce("deploymentid", "vmid"), user=pl.col("subscriptionid").fill_null("unknown"),
        scheduling_class=pl.col("vmcategory").replace_strict(CLASSES, default=None, return_dtype=pl.Int32),
    )
    add_times(faults, table, "vmcreated", "vmdeleted")
    add_amounts(faults, table, RESOURCES)
    return faults.onto(table)


def _with_rulings(table: pl.DataFrame, window_end: float, options: Options) -> pl.DataFrame:
    lived = pl.col("vmdeleted") - pl.col("vmcreated")
    ended = pl.when(pl.col("vmdeleted") == window_end).then(pl.lit("CENSORED")).otherwise(pl.lit("KILL"))
    rows = table.with_columns(
        arrival="vmcreated", run_time=pl.when(lived >= 0).then(lived.clip(RUN_TIME_MIN_S)).otherwise(lived),
        kind=pl.lit("SERVICE"), outcome=ended.cast(OUTCOMES), queue=pl.col("user").str.replace_all("/", "_"),
        count=pl.lit(1, pl.Int64))
    return with_ruling(rows, [FAULTY, again("virtual machine", "vmid"), *usual_rules(RESOURCES, options)])


def _remarks(kept: pl.DataFrame, window_end: float) -> dict[str, int | float | str]:
    counts = {
        "deployments": kept["job"].n_unique(), "subscriptions": kept["user"].n_unique(),
        "machines created at 0, or before": kept.filter(arrival=0.0).height,
        "machines that still ran at the last instant": kept.filter(outcome="CENSORED").height,
        "machines that lived shorter than 300 s (they run that long)": kept.filter(
            pl.col("vmdeleted") - pl.col("vmcreated") < RUN_TIME_MIN_S).height,
        "machines of more than 24 cores or 64 GB (they count as 30 and 70)": int(kept["bucket"].sum()),
    }
    return {"last instant (s)": window_end, **{name: count for name, count in counts.items() if count},
            "fleet": "none written: the trace names no machines"}
