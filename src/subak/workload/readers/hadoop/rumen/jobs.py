"""Rumen: a history of Hadoop jobs in JSON, objects one after another or in lists; beside it, if at hand, a topology.

- A job has a map stage and a reduce stage, which waits for it; a job without one of them has the other alone. It
  arrives when it was submitted, counted from the first job of the file; `--batch` lets all arrive at 0, as HMHS does.
- A task asks for one map_slot or one reduce_slot. It runs as long as its successful attempt did; of several, the one
  that ended first. Other attempts are counted, not run again.
- Hadoop counts a reduce as running while it waits for maps and copies their output. Its run time here begins when the
  copy ended (`shuffleFinished`): it is sort and reduce. Its *shuffle* is what of the copy came after both its start
  and the end of its job's last map. `--shuffle` leaves that out, as HMHS does, puts it into the column `shuffle` of the
  stages, the median of the stage's reduces, or adds it to each reduce's run time.
- A task of which no attempt succeeded keeps its last attempt, with the outcome FAIL or KILL; of a reduce that was
  copying when it ended, what came after the last map. `--unfinished drop` leaves such tasks out. The tasks that set a
  job up and clean up after it are left out.
- When a task started is recorded of the attempt that it keeps; of a reduce, not before the job's last map ended, from
  when on its slot is of use to it; with `--batch`, of none.
- A time of -1 is unknown, and so is a start at 0 (1970) in a job that was submitted later. Clocks of hosts differ, so
  that attempts may start before their job was submitted: run times are of one clock, a shuffle is of two.
- The machines are the nodes on which attempts ran, and those of `--topology`. /rack/node and node are the same
  machine; the rack is its attribute. A node has two slots of each kind, Hadoop's default, unless `--map-slots` and
  `--reduce-slots` say otherwise; the trace says only how many attempts ran there at once, which is remarked.
- A map's input lies on the nodes that its `preferredLocations` name. `--rack-local` and `--off-rack` say how many times
  as long it takes where it must be read from another machine of such a node's rack, and from another rack; of run times
  recorded there, that is taken out.
- Backslashes before dots, which Rumen's anonymizer leaves in names, are removed.
"""
from pathlib import Path
from typing import NamedTuple

import polars as pl

from subak.errors import InputError
from subak.fleet.locality import LEVELS, LOCALITY_COLUMNS, OFF_RACK, RACK_LOCAL
from subak.tables import Provenance
from subak.workload.mapreduce_tables import NAMES, SLOTS, stage_table
from subak.workload.readers.conversion import Account, Conversion, Reader, account_of, notes, with_recorded
from subak.workload.readers.files.stream import Advance, single_file
from subak.workload.readers.hadoop.rumen.history import History, read_history
from subak.workload.readers.hadoop.rumen.hosts import (
    Hosts,
    fleet_of,
    hosts_of,
    most_at_once,
    plain_name,
    with_levels,
    with_nodes,
)
from subak.workload.readers.load import Load, load_of, together
from subak.workload.readers.options import Options
from subak.workload.readers.rulings import KEPT, Ruling, ruling, with_ruling
from subak.workload.table import OUTCOMES, Workload, make_workload

ORIGIN = "Hadoop's job history as Rumen's JSON"
LICENCE = "not stated in the file; the samples that Hadoop ships are Apache-2.0"
PRIORITIES = {"VERY_LOW": 0, "LOW": 1, "NORMAL": 2, "HIGH": 3, "VERY_HIGH": 4}
OF_DROPPED = "of a job that is dropped"
OUTCOME_NAMES = {"SUCCESS": "FINISH", "FAILED": "FAIL", "KILLED": "KILL"}
SUPPORTED = frozenset({"arrival_min", "arrival_end", "batch", "shuffle", "unfinished", "topology", "map_slots",
                    "reduce_slots", "rack_local", "off_rack"})


class Rulingd(NamedTuple):
    """The rows of a trace, each with its `ruling`; a task with the times of the attempt that it keeps."""

    jobs: pl.DataFrame
    tasks: pl.DataFrame
    attempts: pl.DataFrame


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read a trace, plain or compressed. Raises InputError naming the line, or the job and the field, of a mistake."""
    single_file(source)
    history = read_history(source, advance)
    if history.jobs.is_empty():
        raise InputError(f"{source}: has no jobs")
    ruled = _with_rulings(history, options)
    kept = _kept_tasks(ruled, options)
    if kept.is_empty():
        raise InputError(f"{source}: none of its {len(ruled.jobs)} jobs can be kept")
    hosts = hosts_of(ruled.attempts, options.topology)
    kept = _as_at_home(with_levels(kept, hosts.nodes), options)
    accounts = (*(account_of(name, table) for name, table in ruled._asdict().items()), *hosts.accounts)
    remarks = _remarks(ruled, kept, hosts, options)
    provenance = _provenance(source, accounts, remarks, options)
    fleet = None if hosts.nodes.is_empty() else fleet_of(hosts.nodes, options, provenance)
    return Conversion(_workload(ruled, kept, options, provenance), fleet, accounts, remarks,
                      loads=_loads(ruled, kept, options))


READER = Reader("a file of Rumen, Hadoop's job history as JSON; its racks and nodes, if known, from the file that "
                "--topology names", single_file, read, SUPPORTED)


def _provenance(source: Path, accounts: tuple[Account, ...], remarks: dict[str, int | float | str],
                options: Options) -> Provenance:
    chosen = {"from": options.arrival_min, "until": options.arrival_end, "batch": options.batch,
              "shuffle": options.shuffle, "unfinished": options.unfinished, "topology": Path(options.topology).name,
              "map_slots": options.map_slots, "reduce_slots": options.reduce_slots,
              "rack_local": options.rack_local, "off_rack": options.off_rack}
    return Provenance(source.name.split(".")[0], f"file {source.name}: {ORIGIN}", LICENCE,
                      notes(accounts, remarks, chosen))


# Rulings


def _with_rulings(history: History, options: Options) -> Rulingd:
    jobs = _jobs(history.jobs, options)
    tasks = _tasks(history, jobs, options)
    alive = tasks.filter(ruling=KEPT)["row"].unique().implode()
    jobs = jobs.with_columns(ruling=pl.when((pl.col("ruling") == KEPT) & ~pl.col("row").is_in(alive))
                             .then(pl.lit("none of its tasks can be kept")).otherwise("ruling"))
    return Rulingd(jobs, tasks, _attempts(history, tasks))


def _jobs(jobs: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Add `row`, `arrival` (seconds since `first_submit`, the file's), and the ruling that does not depend on tasks."""
    known = pl.col("submit") >= 0
    first = pl.col("submit").filter(known).min()
    arrival = (pl.col("submit") - first) / 1000
    outside = (arrival < options.arrival_min) | (arrival >= options.arrival_end)
    return with_ruling(jobs.with_row_index("row").with_columns(arrival=arrival, first_submit=first), [
        Ruling(~pl.col("job").is_first_distinct(), "job seen before", load=False),
        Ruling(~known, "submit time unknown"),
        Ruling(outside, "arrived outside the slice", load=False),
    ])


def _tasks(history: History, jobs: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Add the attempt that a task keeps and its ruling; `attempts` counts all, `succeeded` those that did."""
    numbered = history.attempts.with_row_index("attempt_row")
    counted = numbered.group_by("task_row").agg(attempts=pl.len(), succeeded=(pl.col("result") == "SUCCESS").sum())
    tasks = (
        history.tasks.with_row_index("task_row")
        .join(counted, on="task_row", how="left", maintain_order="left")
        .join(_telling(numbered), on="task_row", how="left", maintain_order="left")
        .with_columns(pl.col("attempts", "succeeded").fill_null(0))
    )
    of_dropped, of_lost = jobs["ruling"].gather(tasks["row"]) != KEPT, jobs["lost"].gather(tasks["row"])
    attempted, failed = pl.col("attempts") > 0, (pl.col("succeeded") == 0) & (options.unfinished == "drop")
    return with_ruling(tasks, [
        Ruling(pl.lit(of_lost) & attempted & (pl.col("stage") != "other"), OF_DROPPED),
        Ruling(pl.lit(of_dropped), OF_DROPPED, load=False),
        Ruling(pl.col("stage") == "other", "sets its job up, or cleans up after it", load=False),
        Ruling(~attempted, "never attempted, so its run time is unknown", load=False),
        Ruling(pl.col("attempt_row").is_null(), "its attempt has no start, or no end after it"),
        Ruling(failed, "no attempt succeeded", load=False),
    ])


def _telling(attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the attempt that each task keeps: the first to succeed, else the last to end; only such with times."""
    success = pl.col("result") == "SUCCESS"
    timed = (pl.col("start") >= 0) & (pl.col("finish") >= pl.col("start"))
    able = attempts.filter(timed & (success | ~success.any().over("task_row")))
    earliest_first = pl.when(success).then("finish").otherwise(-pl.col("finish"))
    return able.sort("task_row", earliest_first, maintain_order=True).unique("task_row", keep="first",
                                                                             maintain_order=True)


def _attempts(history: History, tasks: pl.DataFrame) -> pl.DataFrame:
    """Add stage, node, rack, and each attempt's ruling."""
    own = tasks.select("task_row", "stage", kept="attempt_row", task_ruling="ruling", task_succeeded="succeeded")
    attempts = history.attempts.with_row_index("attempt_row").join(own, on="task_row", maintain_order="left")
    return with_nodes(attempts).with_columns(ruling=ruling([
        (pl.col("task_ruling") != KEPT, "of a task that is dropped"),
        (pl.col("attempt_row").eq_missing(pl.col("kept")), KEPT),
        (pl.col("result") == "FAILED", "failed, another attempt is kept"),
        (pl.col("result") == "KILLED", "killed, another attempt is kept"),
        (pl.col("result") == "SUCCESS", "succeeded after another, or its times are unknown"),
        (pl.lit(True), "its result is unknown"),
    ]))


# What is kept


def _kept_tasks(ruled: Rulingd, options: Options) -> pl.DataFrame:
    """Return the tasks kept, a job's together in the order of submissions, maps first.

    Columns: those of the tasks, `arrival`, `run_time`, `recorded_start` and `shuffle` (seconds; null where the trace
    does not tell).
    """
    jobs = ruled.jobs.filter(ruling=KEPT).select("row", arrival=pl.lit(0.0) if options.batch else "arrival",
                                               order="arrival", first_submit="first_submit")
    tasks = ruled.tasks.filter(ruling=KEPT).join(jobs, on="row", maintain_order="left")
    seconds = _seconds(tasks, options).drop("attempt").with_columns(
        pl.col("inputs").list.eval(plain_name(pl.element())))
    return seconds.sort("order", "row", "stage", "task_row", maintain_order=True)


def _seconds(tasks: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Add the run time and the shuffle of each task, in seconds."""
    is_reduce, copied = pl.col("stage") == "reduce", pl.col("copied")
    maps_end = pl.col("finish").filter(pl.col("stage") == "map").max().over("row")
    begin = pl.min_horizontal(pl.max_horizontal("start", maps_end), "finish")
    told = is_reduce & (copied >= pl.col("start")) & (copied <= pl.col("finish"))
    run_from = pl.when(told).then(copied).when(is_reduce).then(begin).otherwise("start")
    started = pl.when(is_reduce).then(begin).otherwise("start")
    timed = tasks.with_columns(
        recorded_start=pl.when(not options.batch).then(
            pl.max_horizontal("arrival", (started - pl.col("first_submit")) / 1000)),
        run_time=(pl.col("finish") - run_from) / 1000,
        shuffle=pl.when(told).then((copied - begin).clip(0) / 1000))
    if options.shuffle != "task":
        return timed
    return timed.with_columns(run_time=pl.col("run_time") + pl.col("shuffle").fill_null(0.0))


def _loads(ruled: Rulingd, kept: pl.DataFrame, options: Options) -> tuple[Load, ...]:
    """Return the load; a task that is lost counts with the run time of its attempt, or as the mean of its stage."""
    jobs = ruled.jobs.select("row", "arrival", "first_submit")
    lost = _seconds(ruled.tasks.filter("lost").join(jobs, on="row", maintain_order="left"), options)
    rows = pl.concat(each.select("stage", "ruling", "lost", "run_time") for each in (kept, lost)).with_columns(
        (pl.col("stage") == name).cast(pl.Float64).alias(each.name) for name, each in zip(NAMES, SLOTS, strict=True))
    return together(load_of(rows.filter(stage=name), SLOTS) for name in NAMES)


def _as_at_home(tasks: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Return the tasks with the run times that they would have had on machines that hold their inputs."""
    factor = pl.col("level").replace_strict(_factors(options), default=1.0, return_dtype=pl.Float64)
    return tasks.with_columns(pl.col("run_time") / factor)


def _factors(options: Options) -> dict[str, float]:
    return {LEVELS[RACK_LOCAL]: options.rack_local, LEVELS[OFF_RACK]: options.off_rack}


def _workload(ruled: Rulingd, kept: pl.DataFrame, options: Options, provenance: Provenance) -> Workload:
    jobs = ruled.jobs[kept["row"].unique(maintain_order=True)]
    placed = kept.with_columns(job_row=pl.col("row").rle_id(), stage_row=pl.struct("row", "stage").rle_id())
    stages = placed.group_by("stage_row", maintain_order=True).agg(
        pl.col("job_row", "stage").first(), pl.col("shuffle").median().fill_null(0.0))
    kind = (stages["stage"] == NAMES[1]).cast(pl.Int64).to_numpy()
    shuffle = stages["shuffle"].to_numpy() if options.shuffle == "stage" else None
    table = stage_table(stages["job_row"].to_numpy(), kind, SLOTS, shuffle)
    priority = jobs["priority"].replace_strict(PRIORITIES, return_dtype=pl.Int32).gather(stages["job_row"])
    return make_workload(_job_table(jobs), _far(table, options).with_columns(priority=priority), _task_table(placed),
                         SLOTS, provenance)


def _far(stages: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Return stages that say how much longer their maps take far from their inputs, where that is so."""
    if options.off_rack == 1.0:
        return stages
    is_map = pl.col("name") == NAMES[0]
    return stages.with_columns(**{name: pl.when(is_map).then(factor).otherwise(1.0) for name, factor in zip(
        LOCALITY_COLUMNS, _factors(options).values(), strict=True)})


def _job_table(jobs: pl.DataFrame) -> pl.DataFrame:
    return jobs.select("job", "user", queue=pl.col("queue") + "/" + pl.col("user"))


def _task_table(tasks: pl.DataFrame) -> pl.DataFrame:
    outcome = pl.col("result").replace_strict(OUTCOME_NAMES, default=None, return_dtype=OUTCOMES)
    known = ["inputs"] if (tasks["inputs"].list.len() > 0).any() else []
    return with_recorded(tasks.select("arrival", "run_time", "recorded_start", *known, stage="stage_row",
                                      index=pl.int_range(pl.len()).over("row"), outcome=outcome))


def _remarks(ruled: Rulingd, kept: pl.DataFrame, hosts: Hosts, options: Options) -> dict[str, int | float | str]:
    jobs, own = ruled.jobs.filter(ruling=KEPT), ruled.attempts
    of_stage = {name: kept.filter(stage=name) for name in NAMES}
    reduces = of_stage["reduce"]
    counts = {
        "map tasks": of_stage["map"].height, "reduce tasks": reduces.height,
        "jobs without a map": len(jobs) - of_stage["map"]["row"].n_unique(),
        "jobs without a reduce": len(jobs) - reduces["row"].n_unique(),
        "jobs that failed or were killed in the trace": jobs.filter(pl.col("outcome") != "SUCCESS").height,
        "tasks of which no attempt succeeded (FAIL, KILL)": kept.filter(succeeded=0).height,
        "tasks that more than one attempt succeeded at": kept.filter(pl.col("succeeded") > 1).height,
        "attempts that failed": own.filter(result="FAILED").height,
        "attempts that were killed": own.filter(result="KILLED").height,
        "reduces without a time of shuffle": reduces.filter(pl.col("shuffle").is_null()).height,
        "jobs that depend on other jobs (not modelled)": jobs.filter(pl.col("awaited") > 0).height,
        "attempts that start before their job was submitted (clocks differ)": _early(ruled),
        "attempts without a host": own["node"].null_count(),
        "nodes with attempts that the topology does not name (added)": hosts.added,
        **{f"maps that were {name}": kept.filter(level=name).height for name in LEVELS},
        "most maps at once on a node": most_at_once(own, "map"),
        "most reduces at once on a node": most_at_once(own, "reduce"),
    }
    fleet = "none written: no attempt names a host" if hosts.nodes.is_empty() else (
        f"{len(hosts.nodes)} nodes of {options.map_slots} map and {options.reduce_slots} reduce slots each, as chosen")
    return {**{name: count for name, count in counts.items() if count}, "fleet": fleet}


def _early(ruled: Rulingd) -> int:
    submit = ruled.jobs["submit"].gather(ruled.tasks["row"].gather(ruled.attempts["task_row"]))
    return int(((ruled.attempts["start"] >= 0) & (ruled.attempts["start"] < submit)).sum())
