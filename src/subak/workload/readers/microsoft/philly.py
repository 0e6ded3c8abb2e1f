"""Philly, Microsoft's GPU clusters in 2017 (philly-traces): cluster_job_log, and cluster_machine_list beside it.

- A job asks for as many GPUs as its first recorded attempt had (`num_gpus` of the publishers' analysis). If each server
  of that attempt had as many, it is a gang of one task a server; else of one task a GPU. They start together.
- It runs as long as all its attempts did together; the gaps between them were spent waiting. The recorded start is that
  of the first. An attempt without a start, or without an end that is not the last, is not counted. A job whose last
  attempt has no end still ran: it is counted to the last instant of the log.
- Pass is FINISH, Failed FAIL, Killed KILL. The queue is vc/user.
- Times are local (Pacific), so that around a change of clocks a run may be an hour off; they are counted from the first
  submission.
- The fleet is the list of machines: their GPUs, and as an attribute the memory of each (gpu_memory). CPUs and memory
  are not in the log, and not modelled.

Source: the README and the notebook of https://github.com/msr-fiddle/philly-traces; Jeon et al., USENIX ATC '19. Made
from that schema and its examples; the trace itself was not at hand.
"""
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from subak.dates import calendar_at
from subak.errors import InputError
from subak.fleet.table import Fleet, make_fleet
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.readers.conversion import (
    Account,
    Conversion,
    Reader,
    account,
    account_of,
    dropped_of,
    kept_load,
    notes,
)
from subak.workload.readers.files.delimited import Dialect, text_rows
from subak.workload.readers.files.json_text import converted, json_values
from subak.workload.readers.files.stream import Advance, Block, refuse_lines, refuse_missing
from subak.workload.readers.files.times import instant_text, known, number, stamp_seconds
from subak.workload.readers.options import DATED, Options
from subak.workload.readers.rows import NEVER_STARTED, SEEN_BEFORE, since_first, usual_rules, workload_of_rows
from subak.workload.readers.rulings import KEPT, Ruling, ruling, with_ruling
from subak.workload.table import OUTCOMES, QUEUES_ARE, TIME_0

RESOURCES = (Resource("gpu", 1e-3, "GPUs"),)
OUTCOME_NAMES = {"Pass": "FINISH", "Failed": "FAIL", "Killed": "KILL"}
LOG, MACHINES = "cluster_job_log", "cluster_machine_list"
MACHINE_COLUMNS = ("machine", "gpu", "gpu_memory")
ORIGIN = "Microsoft's Philly traces (philly-traces); Jeon et al., USENIX ATC '19"
LICENCE = "as is, with citation of the paper; see the repository"
GPUS_MAX = 2**20  # of a machine


class Server(msgspec.Struct, frozen=True):
    """What an attempt had of one server."""

    gpus: tuple[str, ...] = ()
    ip: str | None = None


class Attempt(msgspec.Struct, frozen=True):
    """A try at running a job."""

    start_time: str | None = None
    end_time: str | None = None
    detail: tuple[Server, ...] | None = None


class Job(msgspec.Struct, frozen=True):
    """A job of the log."""

    jobid: str
    status: str
    submitted_time: str | None = None
    vc: str | None = None
    user: str | None = None
    attempts: tuple[Attempt, ...] | None = None


FIELDS = frozenset(name for kind in (Job, Attempt, Server) for name in kind.__struct_encode_fields__)


class Log(NamedTuple):
    """The rows of a log: jobs, whose `line` is their place, and attempts with the line of their job."""

    jobs: pl.DataFrame
    attempts: pl.DataFrame


def files(source: Path) -> list[Path]:
    """Return the log and, if it is there, the list of machines. Raises InputError where there is no log."""
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    folder = source if source.is_dir() else source.parent
    logs = [source] if source.is_file() else _named(folder, LOG)
    if len(logs) != 1:
        raise InputError(f"{source}: needs one file {LOG}*, plain, gz or xz; it has {len(logs)}")
    return [*logs, *_named(folder, MACHINES)[:1]]


def _named(folder: Path, name: str) -> list[Path]:
    return sorted(path for path in folder.glob(f"{name}*") if path.is_file())


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read a log and its machines. Raises InputError naming the line or the job of the first mistake."""
    paths = files(source)
    log = _log(paths[0], advance)
    first, last = log.jobs.select(first=pl.min("submitted"), last=pl.max("submitted")).row(0)
    origin = float(first)
    calendar = calendar_at(origin, "")
    options = options.placed(calendar, float(last) - origin)
    ruled, attempts = _with_rulings(log, options)
    kept, loads = kept_load(ruled, paths[0], "jobs", RESOURCES, options, "job")
    accounts: tuple[Account, ...] = (account_of("jobs", ruled), _attempt_account(attempts, ruled))
    machines = _machines(paths[1], advance) if len(paths) > 1 else None
    remarks = _remarks(kept, machines, origin)
    if machines is not None:
        accounts += (account_of("machines", machines),)
    chosen = {"from": options.arrival_min, "until": options.arrival_end}
    provenance = Provenance("philly", f"file {paths[0].name}: {ORIGIN}", LICENCE, notes(accounts, remarks, chosen),
                            calendar)
    workload = workload_of_rows(kept, RESOURCES, provenance)
    fleet = None if machines is None else _fleet(machines.filter(ruling=KEPT), provenance)
    return Conversion(workload, fleet, accounts, remarks, dropped_of("jobs", ruled, paths[0]), loads=loads)


READER = Reader("cluster_job_log of Microsoft's Philly traces, or the folder that holds it; cluster_machine_list "
                "beside it is the fleet", files, read, frozenset({*DATED, "max_lost"}))


# Rows


def _log(path: Path, advance: Advance) -> Log:
    jobs: list[tuple[Any, ...]] = []
    attempts: list[tuple[Any, ...]] = []
    for number_, value in enumerate(json_values(path, advance, FIELDS), 1):
        job = converted(value, Job, f"{path}: job {number_}")
        if job.status not in OUTCOME_NAMES:
            raise InputError(f"{path}: job {number_}: status must be one of {', '.join(OUTCOME_NAMES)}, not "
                             f"{job.status[:60]!r}")
        tries = job.attempts or ()
        attempts += [(number_, place, each.start_time, each.end_time) for place, each in enumerate(tries, 1)]
        shape = next((found for each in tries if (found := _shape(each))), (None, None))
        jobs.append((number_, job.jobid, job.status, job.submitted_time, job.vc, job.user, *shape))
    if not jobs:
        raise InputError(f"{path}: has no jobs")
    job_schema = dict.fromkeys(("line", "job", "status", "submitted", "vc", "user", "count", "gpu"), pl.String)
    table = pl.DataFrame(jobs, {**job_schema, "line": pl.Int64, "count": pl.Int64, "gpu": pl.Float64}, orient="row")
    tries_table = pl.DataFrame(attempts, {"line": pl.Int64, "place": pl.Int64, "start": pl.String, "end": pl.String},
                               orient="row")
    return Log(_instants(table, path, "submitted"), _instants(tries_table, path, "start", "end"))


def _shape(attempt: Attempt) -> tuple[int, float] | None:
    """Return how many tasks an attempt had, and the GPUs of each; None if it had none."""
    sizes = [len(server.gpus) for server in attempt.detail or () if server.gpus]
    if not sizes:
        return None
    return (len(sizes), float(sizes[0])) if len(set(sizes)) == 1 else (sum(sizes), 1.0)


def _instants(table: pl.DataFrame, path: Path, *names: str) -> pl.DataFrame:
    texts = table.with_columns(known(pl.col(name)).alias(name) for name in names)
    block = Block(path, 1, b"", "job")
    for name in names:
        bad = pl.col(name).is_not_null() & stamp_seconds(pl.col(name)).is_null()
        refuse_lines(texts, bad, block, f"{name} must be an instant such as 2017-10-07 01:12:09", name)
    return texts.with_columns(stamp_seconds(pl.col(name)).alias(name) for name in names)


def _with_rulings(log: Log, options: Options) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the jobs as ROW_COLUMNS with their ruling, and the attempts with theirs."""
    last_instant = log.attempts.select(pl.max_horizontal(pl.max("start"), pl.max("end"))).item()
    last = pl.col("place") == pl.col("place").max().over("line")
    timed = log.attempts.with_columns(
        still=last & pl.col("end").is_null() & pl.col("start").is_not_null(),
        run=pl.when(last).then(pl.coalesce("end", pl.lit(last_instant, pl.Float64))).otherwise("end") - pl.col("start"))
    attempts = timed.with_columns(ruling=ruling([
        (pl.col("start").is_null(), "no start is recorded"),
        (pl.col("run").is_null(), "no end is recorded"),
        (pl.col("run") < 0, "ends before it starts"),
    ]))
    told = attempts.filter(ruling=KEPT).group_by("line").agg(
        run_time=pl.col("run").sum(), recorded_start=pl.col("start").min(), still=pl.col("still").any())
    joined = log.jobs.join(told, on="line", how="left", maintain_order="left")
    names = [pl.col(name).fill_null("unknown").str.replace_all("/", "_", literal=True) for name in ("vc", "user")]
    outcome = pl.when(pl.col("still").fill_null(False)).then(pl.lit("CENSORED")).otherwise(
        pl.col("status").replace_strict(OUTCOME_NAMES, return_dtype=pl.String))
    rows, _ = since_first(joined.with_columns(arrival="submitted"), "arrival", "recorded_start")
    ruled = with_ruling(rows, [
        Ruling(~pl.col("job").is_first_distinct(), f"job {SEEN_BEFORE}", load=False),
        Ruling(pl.col("count").is_null() & pl.col("recorded_start").is_null(), NEVER_STARTED, load=False),
        Ruling(pl.col("count").is_null(), "no attempt names a GPU"),
        *usual_rules(RESOURCES, options),
    ]).with_columns(
        queue=names[0] + "/" + names[1], user=pl.col("user").fill_null("unknown"), gang=pl.lit(True),
        outcome=outcome.cast(OUTCOMES), recorded_start=pl.max_horizontal("recorded_start", "arrival"))
    return ruled, attempts


def _attempt_account(attempts: pl.DataFrame, jobs: pl.DataFrame) -> Account:
    dropped = jobs.filter(pl.col("ruling") != KEPT)["line"].implode()
    told = attempts.with_columns(ruling=pl.when((pl.col("ruling") == KEPT) & pl.col("line").is_in(dropped))
                                 .then(pl.lit("of a job that is dropped")).otherwise("ruling"))
    counts = dict(told.group_by("ruling").len().sort("ruling").rows())
    return account("attempts", len(told), {"part of their job's run time": counts.pop(KEPT, 0)}, counts)


def _remarks(kept: pl.DataFrame, machines: pl.DataFrame | None, origin: float) -> dict[str, int | float | str]:
    counts = {
        "jobs of several tasks, which start together": kept.filter(pl.col("count") > 1).height,
        "jobs still running at the last instant": kept.filter(outcome="CENSORED").height,
        "jobs with run time 0": kept.filter(run_time=0.0).height,
    }
    said: dict[str, int | float | str] = {name: count for name, count in counts.items() if count}
    said[TIME_0] = instant_text(origin).removesuffix("+00:00") + " Pacific time"
    said[QUEUES_ARE] = "virtual cluster/user"
    if machines is None:
        said["fleet"] = f"none written: there is no {MACHINES} beside the log"
    return said


# The fleet


def _machines(path: Path, advance: Advance) -> pl.DataFrame:
    """Return the machines with their ruling."""
    tables = []
    for rows in text_rows(path, Dialect(names=MACHINE_COLUMNS), MACHINE_COLUMNS, advance):
        head = (pl.col("line") == 1) & number(pl.col("gpu")).is_null()
        table = rows.table.filter(~head)
        refuse_missing(table, rows.block, "machine")
        gpus = number(pl.col("gpu"))
        bad = gpus.is_null() | (gpus != gpus.round()) | ~gpus.is_between(0, GPUS_MAX)
        refuse_lines(table, bad, rows.block, f"number of GPUs must be a whole number from 0 to {GPUS_MAX:,}", "gpu")
        tables.append(table.with_columns(gpu=gpus))
    if not tables or not sum(map(len, tables)):
        raise InputError(f"{path}: has no machines")
    seen = ~pl.col("machine").is_first_distinct()
    return pl.concat(tables).with_columns(ruling=ruling([(seen, "machine seen before")]))


def _fleet(machines: pl.DataFrame, provenance: Provenance) -> Fleet:
    numbered = machines.with_row_index("row")
    attributes = numbered.drop_nulls("gpu_memory").select(machine="row", attribute=pl.lit("gpu_memory"),
                                                          value="gpu_memory")
    return make_fleet(machines.select("machine", "gpu", cluster=pl.lit("0")), RESOURCES, attributes,
                      provenance=provenance)
