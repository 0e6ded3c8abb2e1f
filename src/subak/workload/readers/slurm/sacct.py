"""Slurm's accounting, as `sacct --parsable2` prints it: a file of one line a job, or also one a step.

The commands, for a month; times are in seconds since 1970, so that no change to summer time is in the way, and -aXP is
--allusers --allocations --parsable2:

    export SLURM_TIME_FORMAT=%s
    fields=JobID,Partition,Account,User,Submit,Eligible,Start,Elapsed,Timelimit,State,NNodes,NTasks,ReqTRES,AllocTRES
    sacct -aXP --noconvert -S 2024-01-01 -E 2024-02-01 --format=$fields > jobs.txt

JobID, Submit, Start and State are needed, Elapsed or End, and AllocTRES, ReqTRES or NCPUS; the others may be missing,
and more are not read. Times may also be ISO 8601, as sacct prints them without SLURM_TIME_FORMAT: `--zone Europe/Paris`
says on which clocks. Unknown, None, 0 and 4294967295 are unknown. A `|` in JobName is read as part of it.

- A line in which a field is none is dropped, and named in dropped.csv; with too many of them (--max-lost) the file is
  refused.
- A line whose JobID has a dot (123.0, 123.batch, 123.extern) is a step, and dropped; so is a job that never started. Of
  lines with the same JobID (with --duplicates, a job that was requeued) the one that was submitted last counts.
- Where the column Cluster names several, their jobs are apart: 123 of east is east/123, and its queue begins with east.
- 123_4 is element 4 of the array 123. The elements of an array are tasks of one job, each started by itself. The parts
  of a heterogeneous job (123+0, 123+1) are jobs.
- A job of several nodes (NNodes; where it is missing, node= of the TRES, then NTasks) is a gang of as many tasks, which
  start together and ask for equal parts of what the job asks for. Several of them may be on one machine, as nodes of a
  job are not in Slurm: on larger machines a job of 8 nodes can run on fewer than 8.
- It asks for what it held (AllocTRES), or with `--amounts requested` for what its user asked for (ReqTRES), each where
  the file has it, else for the other: cpu, mem (in MiB; a letter is 1024-fold) and gres/gpu (where only gres/gpu:TYPE
  are given, their sum). What --exclusive and --mem=0 hold is only in AllocTRES. Other TRES are remarked, and not
  modelled. Files of older versions, with NCPUS, ReqMem (4Gn of each node, 2Gc of each CPU) and AllocGRES, are read too.
- It arrives when it was submitted, or became eligible if that was later (it waited for another job, or for --begin).
  Times are counted from the first. Start is the recorded start, Elapsed the run time, Timelimit the user's estimate
  (none where it is UNLIMITED or Partition_Limit).
- Where Elapsed is not given, the run time is from Start to End, with the time that the job was suspended. A job that
  still runs has no End: without Elapsed it is dropped.
- COMPLETED is FINISH; FAILED, OUT_OF_MEMORY FAIL; CANCELLED, TIMEOUT, DEADLINE KILL; PREEMPTED, REQUEUED EVICT;
  NODE_FAIL, BOOT_FAIL LOST; RUNNING CENSORED: it keeps the time that it had run.
- The queue is partition/account/user, without what is missing. A column Priority is read where it is given: Slurm's of
  the last moment.
- No fleet is written: the accounting names no machines that stood idle. NodeList only tells how many names of nodes
  there are.

Source: the manual page of sacct, https://slurm.schedmd.com/sacct.html (24.11).
"""
import itertools
import math
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import polars as pl

from subak.dates import UTC_NAME, Calendar
from subak.errors import InputError
from subak.quantities import MINUTE_S, duration_text
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.days import HOUR_S
from subak.workload.readers.conversion import Conversion, Reader, account_of, dropped_of, kept_load, notes
from subak.workload.readers.files.delimited import Dialect, column_names, head_line, is_parquet, listed, text_rows
from subak.workload.readers.files.faults import Faults, Rows
from subak.workload.readers.files.stream import Advance, single_file
from subak.workload.readers.files.times import (
    Clocks,
    calendar_of,
    clock_remarks,
    clock_seconds,
    instant_text,
    known,
    limited,
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
    add_times,
    last_of,
    since_first,
    usual_rules,
    workload_of_rows,
)
from subak.workload.readers.rulings import Ruling, with_ruling
from subak.workload.readers.slurm.requests import COLUMNS, CPUS, held
from subak.workload.readers.slurm.seen import seen
from subak.workload.readers.slurm.states import is_no_state, outcome_of, state_word
from subak.workload.readers.started import limit, never_started, since_1970
from subak.workload.table import DUMP_BEGINS, NO_MATTER, QUEUES_ARE

RESOURCES = (Resource("cpu", 1e-3, "cores"), Resource("memory", 1.0, "MiB"), Resource("gpu", 1e-3, "GPUs"))
NEEDED = ("JobID", "Submit", "Start", "State")
RAN = ("Elapsed", "End")  # one is needed
OPTIONAL = (*RAN, "Cluster", "User", "Account", "Partition", "Priority", "Eligible", "Timelimit", "NodeList",
            *COLUMNS)
INSTANTS, DURATIONS = ("Submit", "Eligible", "Start", "End"), ("Elapsed", "Timelimit")
LEVELS = ("Partition", "Account", "User")  # of queues
PIPES = Dialect("|", free="JobName")
STEP, NO_TRES = "a step of a job", "what it asks for is unknown"
NO_ESTIMATES = "none: no job that is kept has a Timelimit (sacct --format=...,Timelimit)"
NO_ELIGIBLE = ("Submit: no job has Eligible (sacct --format=...,Eligible), so waits include the time that a job was "
               "held or depended on others")
VALUE = re.compile(rb"[0-9]{4,}([_+.].*)?|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+")  # a JobID or an instant, and no name
HOURS_BEFORE = 1.0  # before the first end in a file: with more, it lists of earlier jobs only those still there
FEW_BEFORE = 0.01  # of all jobs: fewer from before move no percentile that planners ask for
STILL_RUNS = "still runs, and how long it has run is not given"
AGAIN = "its job was submitted again later, or stands there twice"


class Origin(NamedTuple):
    """Where an accounting of Slurm's came from: what Provenance says."""

    name: str
    said: str
    licence: str


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read what sacct printed. Raises InputError when too much of it cannot be read, naming line and column."""
    refuse_zone(options.zone)
    single_file(source)
    _refuse_unnamed(source)
    names = column_names(source, PIPES)
    _refuse_missing(source, names)
    wanted = tuple(name for name in (*NEEDED, *OPTIONAL) if name in names)
    tables = [jobs_of(rows, options) for rows in text_rows(source, PIPES, wanted, advance)]
    left = tuple(name for name in names if name and name not in wanted)
    return accounting(source, tables, left, options, Origin(source.name.split(".")[0], "Slurm's sacct", "not stated"))


def accounting(source: Path, tables: list[pl.DataFrame], left: tuple[str, ...], options: Options,
               origin: Origin) -> Conversion:
    """Return the workload of what `jobs_of` read; *left* are columns that are not read.

    Raises InputError when there are no jobs, or too much of the load is lost.
    """
    if not tables:
        raise InputError(f"{source}: has no jobs")
    table, first = since_first(_of_clusters(pl.concat(tables)), "arrival", "recorded_start")
    options = options.placed(calendar_of(table, first, options.zone), last_of(table))
    ruled = _with_rulings(table, options)
    kept, loads = kept_load(ruled, source, "lines", RESOURCES, options)
    dropped = dropped_of("jobs", ruled, source)
    used = [each.name == "cpu" or kept[each.name].sum() > 0 for each in RESOURCES]
    resources, loads = tuple(itertools.compress(RESOURCES, used)), tuple(itertools.compress(loads, used))
    accounts = (account_of("jobs", ruled),)
    tables.clear()
    del table, ruled  # a gigabyte of two million jobs
    remarks = _remarks(kept, left, first, options)
    chosen = {"from": options.arrival_min, "until": options.arrival_end, "amounts": options.amounts,
              "zone": options.zone}
    provenance = Provenance(origin.name, f"file {source.name}: {origin.said}", origin.licence,
                            notes(accounts, remarks, chosen), calendar_of(kept, first, options.zone))
    workload = workload_of_rows(kept, resources, provenance)
    return Conversion(workload, None, accounts, remarks, dropped, loads=loads)


READER = Reader("a file that Slurm's sacct --parsable2 printed", single_file, read,
                frozenset({*DATED, "amounts", "zone", "max_lost"}))


def _refuse_unnamed(source: Path) -> None:
    """Refuse a file whose first line is a job, not the names of columns."""
    if not is_parquet(source) and any(VALUE.fullmatch(field) for field in head_line(source).split(b"|")):
        raise InputError(f"{source}, line 1: has values where the names of its columns belong, as after sacct "
                         "--noheader. Put the names before them, in the order of its --format: (echo "
                         f"'JobID|Submit|Start|...'; cat {shlex.quote(source.name)}) > named.txt")


def _refuse_missing(source: Path, names: tuple[str, ...]) -> None:
    missing = [name for name in NEEDED if name not in names]
    if len(names) == 1 and "JobID" in names[0].split():
        raise InputError(f"{source}, line 1: has no | between its columns, as sacct prints without --parsable2; run it "
                         "again with -P")
    missing += [one_of[0] for one_of in (RAN, CPUS) if not set(one_of) & set(names)]
    if missing:
        raise InputError(f"{source}, line 1: must name the columns {', '.join(NEEDED)}, Elapsed or End, and AllocTRES, "
                         f"ReqTRES or NCPUS with | between them; {missing[0]} is missing")


# Fields


def jobs_of(rows: Rows, options: Options) -> pl.DataFrame:
    """Return ROW_COLUMNS of a block's lines, and what the rulings need."""
    faults = Faults(rows)
    table = rows.table.with_columns(pl.lit(None, pl.String).alias(name) for name in OPTIONAL
                                    if name not in rows.table.columns)
    texts = table.with_columns(known(pl.col(name)).alias(name) for name in (*NEEDED, *OPTIONAL))
    faults.add(texts, is_no_state(pl.col("State")), "State must be one of sacct's state codes", "State")
    numbered = pl.col("JobID").str.contains(r"^\d+").fill_null(False)
    faults.add(texts, ~numbered, "JobID must begin with a number", "JobID")
    for name in ("Cluster", "Partition", "Account", "User"):
        faults.add(texts, pl.col(name).str.contains("[[:cntrl:]]"), f"{name} must be a name", name)
    priority = number(pl.col("Priority"))
    bad = pl.col("Priority").is_not_null() & (priority.is_null() | (priority != priority.round()) | (priority < 0))
    faults.add(texts, bad, "Priority must be a whole number, 0 or more", "Priority")
    times = _times(texts, faults, options)
    amounts = held(texts, faults, options.amounts)
    add_amounts(faults, amounts, RESOURCES)
    state = state_word(pl.col("State"))
    said = texts.select("line", "JobID", "Cluster", "User", "Account", "Partition", "AllocTRES", "NodeList",
                        state=state, priority=priority.clip(0, 2**31 - 1).cast(pl.Int32).fill_null(0),
                        outcome=outcome_of(state))
    names = [pl.col(name).str.replace_all("/", "_", literal=True) for name in LEVELS]
    found = pl.concat([said, times, amounts], how="horizontal").select(
        "line", "JobID", "Cluster", "NodeList", *amounts.columns, "outcome", "priority", "skipped", "twice", "zoneless",
        submit="Submit", late=pl.col("Eligible") > pl.col("Submit"),
        arrival=pl.max_horizontal("Submit", "Eligible"), recorded_start="Start",
        run_time=pl.coalesce("Elapsed", pl.col("End") - pl.col("Start")), spanned=pl.col("Elapsed").is_null(),
        estimate="Timelimit", job=pl.col("JobID").str.extract(r"^(\d+(?:\+\d+)?)"),
        queue=pl.concat_str(names, separator="/", ignore_nulls=True), user=pl.col("User").fill_null("unknown"),
        gang=pl.lit(True), held=pl.col("AllocTRES").is_not_null(),
        **{f"in {name}": pl.col(name).is_not_null() for name in LEVELS},
    )
    return faults.onto(found.with_columns(queue=pl.when(pl.col("queue") != "").then("queue").otherwise(
        pl.lit("unknown"))))


def _times(texts: pl.DataFrame, faults: Faults, options: Options) -> pl.DataFrame:
    """Return the times of each line in seconds, and whether clocks changed there. Notes fields that are none."""
    clocks = Clocks()
    for name in INSTANTS:
        clocks.add(name, pl.coalesce(number(pl.col(name)), stamp_seconds(pl.col(name))),
                   number(pl.col(name)).is_null() & ~names_zone(pl.col(name)), options.zone)
    limits = limited(pl.col("Timelimit"))
    durations = {name: pl.coalesce(number(text), clock_seconds(text))
                 for name, text in (("Elapsed", pl.col("Elapsed")), ("Timelimit", limits))}
    times = texts.select("line", **clocks.columns, **durations)
    for name in INSTANTS:
        faults.add(*_none(texts, times, name),
                   f"{name} must be an instant as 2024-01-31T12:00:00, or seconds since 1970", name)
    for name in DURATIONS:
        text = texts.with_columns(Timelimit=limits)
        faults.add(*_none(text, times, name), f"{name} must be a duration as D-HH:MM:SS", name)
        faults.add(times, pl.col(name) < 0, f"{name} must not be negative", name)
    times = times.with_columns(*(since_1970(pl.col(name)).alias(name) for name in INSTANTS),
                               *(limit(pl.col(name)).alias(name) for name in DURATIONS))
    add_times(faults, times, *INSTANTS, *DURATIONS)
    return times.drop("line")


def _none(texts: pl.DataFrame, values: pl.DataFrame, name: str) -> tuple[pl.DataFrame, pl.Expr]:
    """Return a table and whether a field is given, and could not be read."""
    return texts.with_columns(none=texts[name].is_not_null() & values[name].is_null()), pl.col("none")


# Rows


def _of_clusters(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with jobs and queues named by their cluster, where there are several."""
    if table["Cluster"].n_unique() < 2:
        return table
    cluster = pl.col("Cluster").fill_null("unknown").str.replace_all("/", "_", literal=True)
    return table.with_columns(job=cluster + "/" + pl.col("job"), queue=cluster + "/" + pl.col("queue"))


def _with_rulings(table: pl.DataFrame, options: Options) -> pl.DataFrame:
    step = pl.col("JobID").str.contains(".", literal=True).fill_null(False)
    # Older versions say of a job that was cancelled while it waited that it started when it was
    never = never_started(pl.col("recorded_start"), pl.col("outcome"), pl.col("run_time"), pl.col("held"))
    never |= pl.col("recorded_start").is_null() | pl.col("outcome").is_null()  # Elapsed is then since 1970
    ran = table.select("line", "Cluster", "JobID", "submit", ran=~step & ~never & pl.col("fault").is_null())
    last = pl.struct("Cluster", "JobID").is_last_distinct()
    counts = ran.filter("ran").sort("submit", "line").filter(last)["line"].implode()
    return with_ruling(table, [
        Ruling(step, STEP, load=False),
        FAULTY,
        Ruling(never, NEVER_STARTED, load=False),
        Ruling(~pl.col("line").is_in(counts), AGAIN, load=False),
        Ruling(~pl.col("asks"), NO_TRES),
        Ruling((pl.col("outcome") == "CENSORED") & pl.col("run_time").is_null(), STILL_RUNS),
        *usual_rules(RESOURCES, options),
    ]).with_columns(early=pl.col("recorded_start") < pl.col("arrival"),
                    recorded_start=pl.max_horizontal("recorded_start", "arrival"))


def _remarks(kept: pl.DataFrame, left: tuple[str, ...], origin: float,
             options: Options) -> dict[str, int | float | str]:
    several = kept.filter(pl.col("count") > 1)
    ignored = sorted(kept["others"].list.explode().drop_nulls().unique().to_list())
    clusters = kept["Cluster"].drop_nulls().unique().sort().to_list()
    counts = {
        "jobs on several nodes, which start together": len(several),
        "elements of arrays": kept.filter(pl.col("JobID").str.contains("_", literal=True)).height,
        "parts of heterogeneous jobs (each a job of its own)": kept.filter(pl.col("job").str.contains("+", literal=True)
                                                                           ).height,
        "jobs still running": kept.filter(outcome="CENSORED").height,
        "jobs without Elapsed (they ran from Start to End, with what they were suspended)": int(kept["spanned"].sum()),
        "jobs with an estimate": kept["estimate"].count(),
        "jobs that became eligible after they were submitted (they arrive then)": int(
            kept["late"].fill_null(False).sum()),
        "jobs that start before they arrive (they start at once)": int(kept["early"].fill_null(False).sum()),
        "jobs that held more CPUs or GPUs than they asked for": int(kept["more"].sum()),
        "jobs that ask for no memory": kept.filter(memory=0.0).height,
        "jobs with run time 0": kept.filter(run_time=0.0).height,
    }
    said: dict[str, int | float | str] = {"amounts": _amounts_said(kept, options)}
    levels = [name.lower() for name in LEVELS if kept[f"in {name}"].all()]
    if levels:
        said[QUEUES_ARE] = "/".join([*(["cluster"] if len(clusters) > 1 else []), *levels])
    said |= {name: count for name, count in counts.items() if count}
    if not kept["late"].count():
        said["arrival is"] = NO_ELIGIBLE
    if not kept["estimate"].count():
        said["estimates"] = NO_ESTIMATES
    if len(clusters) > 1:
        said["clusters (their jobs and queues begin with the name)"] = listed(tuple(clusters))
    said |= clock_remarks(kept, origin) | _begins(kept, origin, options.zone)
    said |= seen(kept, origin, RESOURCES)
    if ignored:
        said["TRES that are not modelled"] = listed(tuple(ignored))
    if left:
        said["columns that are not read"] = listed(left)
    return said | {"fleet": "none written: the accounting does not say which machines there are"}


def _begins(kept: pl.DataFrame, origin: float, zone: str) -> dict[str, str]:
    """Say when a dump begins, where jobs came long before: sacct -S lists of those only who had not ended by then."""
    ended = kept.filter(pl.col("outcome") != "CENSORED")
    first = ended.select((pl.col("recorded_start") + pl.col("run_time")).min()).item()
    hours = 0.0 if first is None else (first - kept.select(pl.col("arrival").min()).item()) / HOUR_S
    if hours < HOURS_BEFORE:
        return {}
    before = kept.filter(pl.col("arrival") < first).height
    at = instant_text(origin + first).removesuffix("+00:00" if kept["zoneless"].any() else "")
    begin = _minute(first, origin, calendar_of(kept, origin, zone))
    said = (f"{at}, with its first end: of the {hours:,.1f} h before it lists only jobs that had not ended, {before:,} "
            f"of {kept.height:,} jobs")
    if before < FEW_BEFORE * kept.height:
        return {DUMP_BEGINS: f"{said}: {NO_MATTER}"}
    return {DUMP_BEGINS: f"{said}. Others ran then, too, so its waits are too short: --measure-from {begin} leaves "
                         "that time out of what is measured"}


def _minute(seconds: float, origin: float, calendar: Calendar | None) -> str:
    """Return the first whole minute from so many seconds after time 0 on, as --measure-from reads it."""
    whole = math.ceil((origin + seconds) / MINUTE_S) * MINUTE_S - origin
    date = "" if calendar is None else calendar.text(whole).removesuffix("T00:00:00").removesuffix(":00")
    zone = "" if calendar is None or calendar.zone in ("", UTC_NAME) else f" ({calendar.zone})"
    return date + zone if date else duration_text(whole)


def _amounts_said(kept: pl.DataFrame, options: Options) -> str:
    if options.amounts == "requested":
        return "as requested"
    known = int(kept["allocated"].sum())
    return "as allocated" if known == len(kept) else (
        f"as allocated, of {known:,} jobs; as requested, of {len(kept) - known:,} that do not say what they held")
