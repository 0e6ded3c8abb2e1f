"""Turns attempts into tasks, and alike tasks of a job into a stage.

Times keep the trace's clock: 0 stands for "before the trace began", its first real event is at 600 s.
"""
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.resources import Resource, asked_units
from subak.tables import Provenance
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.readers.conversion import Account, account
from subak.workload.readers.google.attempts import EVENT_KILL, NO_EVENT, find_attempts, sort_events
from subak.workload.readers.load import Load, load_of
from subak.workload.readers.options import Options
from subak.workload.readers.rulings import KEPT, Ruling, with_ruling
from subak.workload.table import OUTCOMES, Observed, Workload, workload_of_units

UNIT = 1e-8  # the traces' amounts have 4 significant digits and at most 8 decimals: they convert exactly
RESOURCES = (Resource("cpu", UNIT, "of the largest machine"), Resource("memory", UNIT, "of the largest machine"))
SECOND = 1e6  # the traces count microseconds
AFTER = 2**63 - 1  # "after the trace ended"
PORTION_ROWS = 1 << 23  # events of whole jobs that are sorted at a time
OUTCOME_NAMES = {2: "EVICT", 3: "FAIL", 4: "FINISH", 5: "KILL", 6: "LOST", NO_EVENT: "CENSORED"}

LONG_AGO = "its SUBMIT and SCHEDULE are not in the parts read"
NEVER_SCHEDULED = "not scheduled before the window's end"
ENDED_PENDING = "ended before it was scheduled"
RESUBMITTED_PENDING = "submitted again before it was scheduled"
RESUBMITTED_RUNNING = "submitted again without an end event"
EARLIER = "an earlier attempt of the same task"
NO_REQUEST = "no row gives its request"
ZERO_REQUEST = "asks for nothing of anything"
CENSORED = "still running at the window's end"
OUTSIDE = "arrived outside the slice"
AFTER_WINDOW = "event after the window (time 2^63-1)"
REPEATED = "exact repetition of a row"
SCHEDULED_TWICE = "second SCHEDULE in one attempt"



class Constraints(NamedTuple):
    """The distinct sets of constraints, and which task has which."""

    texts: list[list[dict[str, str]]]  # [set]: attribute, operator, value
    sets: pl.DataFrame  # job, index, constraint_set (a row of texts)
    accounts: tuple[Account, ...]


# Attempts and their rulings


def requests(events: pl.DataFrame) -> list[pl.Series]:
    """Return what events ask for of each resource, in units; NO_EVENT where they do not say."""
    given = {each: asked_units(events[each.name].fill_null(0.0).to_numpy(), each, "events") for each in RESOURCES}
    return [pl.Series(each.name, np.where(events[each.name].is_null(), NO_EVENT, units), pl.Int32)
            for each, units in given.items()]


def attempts_of(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the attempts of all tasks and the number of distinct rows; portions of jobs keep the memory small."""
    count = len(table) // PORTION_ROWS + 1
    found, distinct = [], 0
    for number in range(count):
        ordered = sort_events(table.filter(pl.col("job") % count == number) if count > 1 else table)
        distinct += len(ordered)
        found.append(find_attempts(ordered))
    return pl.concat(found), distinct


def with_rulings(attempts: pl.DataFrame, window_end: int, options: Options) -> pl.DataFrame:
    """Add `arrival` (microseconds), `ruling`, why an attempt is kept or dropped, and `lost`, whether load goes with it.

    The first rule that holds counts. What arrived outside the slice, or is not the last try of its task where only that
    counts, carries no load, whatever else it lacks.
    """
    scheduled, ended, last = pl.col("schedule") != NO_EVENT, pl.col("end") != NO_EVENT, pl.col("last")
    runs = scheduled & (ended | last)
    own_arrival = pl.when(pl.col("submit") == NO_EVENT).then("schedule").otherwise("submit")
    if options.resubmissions == "attempt":
        known = pl.when(own_arrival != NO_EVENT).then(own_arrival)
        arrival = known.min().over("job", "index")
        followed = pl.col("number") < pl.when(runs).then("number").max().over("job", "index")
    else:
        arrival, followed = own_arrival, pl.lit(False)
    seconds = pl.col("arrival") / SECOND
    outside = (seconds < options.arrival_min) | (seconds >= options.arrival_end)
    rules = [
        Ruling(~scheduled & (pl.col("submit") == NO_EVENT), LONG_AGO),
        Ruling(~scheduled & ended, ENDED_PENDING, load=False),
        Ruling(~scheduled & last, NEVER_SCHEDULED, load=False),
        Ruling(~scheduled, RESUBMITTED_PENDING, load=False),
        Ruling(~runs, RESUBMITTED_RUNNING),
        Ruling(runs & followed, EARLIER, load=False),
        Ruling((pl.col("cpu") == NO_EVENT) | (pl.col("memory") == NO_EVENT), NO_REQUEST),
        Ruling((pl.col("cpu") == 0) & (pl.col("memory") == 0), ZERO_REQUEST, load=False),
        Ruling(~ended if options.censored == "drop" else pl.lit(False), CENSORED, load=False),
        Ruling(outside, OUTSIDE, load=False),
    ]
    elsewhere = (pl.col("arrival") != NO_EVENT) & outside | followed
    return with_ruling(attempts.with_columns(arrival=arrival), rules).with_columns(
        lost=pl.col("lost") & ~elsewhere.fill_null(False))


def attempt_loads(attempts: pl.DataFrame, window_end: int) -> tuple[Load, ...]:
    """Return the load of attempts with rulings; one without an end counts until the window's end."""
    end = pl.when(pl.col("end") != NO_EVENT).then("end").when("last").then(window_end)
    amounts = {each.name: pl.when(pl.col(each.name) != NO_EVENT).then(pl.col(each.name) * each.unit)
               for each in RESOURCES}
    rows = attempts.filter((pl.col("ruling") == KEPT) | pl.col("lost"))
    return load_of(rows.select("ruling", "lost", **amounts, run_time=pl.when(pl.col("schedule") != NO_EVENT).then(
        (end - pl.col("schedule")) / SECOND)), RESOURCES)


def event_account(table: str, rows: int, attempts: pl.DataFrame, dropped: Mapping[str, int]) -> Account:
    """Return what became of the rows of a table of events; *dropped* before there were attempts."""
    counts = dict(attempts.group_by("ruling").agg(pl.col("rows").sum()).sort("rows", "ruling", descending=True).rows())
    used = {"events of kept tasks": counts.pop(KEPT, 0)}
    if EARLIER in counts:
        used["events of earlier attempts of the same task"] = counts.pop(EARLIER)
    return account(table, rows, used, {**counts, **dropped, SCHEDULED_TWICE: int(attempts["repeats"].sum())})


def task_remarks(
    kept: pl.DataFrame, attempts: pl.DataFrame, users: pl.DataFrame, window_end: int,
) -> dict[str, int | float | str]:
    """Return what is remarkable of the tasks of any of the traces."""
    dropped = attempts.group_by("ruling").len().sort("ruling").filter(pl.col("ruling") != KEPT)
    counts: dict[str, int | float | str] = {
        "users": kept.join(users, on="job")["user"].n_unique(),
        "distinct tasks (job, index)": attempts.select("job", "index").unique().height,
        "attempts found": len(attempts),
        **{f"attempts dropped: {words}": count for words, count in dropped.rows()},
        "tasks kept": len(kept),
        "tasks already running at time 0": kept.filter(schedule=0).height,
        "tasks still running at the window's end": kept.filter(end=NO_EVENT).height,
        "tasks whose SUBMIT is not in the parts (they arrive at their SCHEDULE)": kept.filter(submit=NO_EVENT).height,
        "tasks with run time 0": kept.filter(run_time=0.0).height,
    }
    return {"window's end (s)": window_end / SECOND, **{name: count for name, count in counts.items() if count}}


def chosen(options: Options) -> dict[str, str | float]:
    """Return what was chosen of the options, for the provenance."""
    return {"resubmissions": options.resubmissions, "censored": options.censored, "fleet": options.fleet,
            "from": options.arrival_min, "until": options.arrival_end}


# Tables


def kept_tasks(attempts: pl.DataFrame, window_end: int, options: Options) -> pl.DataFrame:
    """Return the kept attempts in order of arrival, with kind, outcome and run_time (seconds)."""
    censored = pl.col("end") == NO_EVENT
    seen = (pl.when(censored).then(window_end).otherwise("end") - pl.col("schedule")) / SECOND
    endless = censored & (options.censored == "forever")
    number = pl.lit(1, pl.Int32) if options.resubmissions == "attempt" else pl.col("number")
    return (
        attempts.filter(ruling=KEPT)
        .with_columns(
            number=number,
            run_time=pl.when(endless).then(float("inf")).otherwise(seen),
            kind=pl.when(censored | (pl.col("end_event") == EVENT_KILL)).then(pl.lit("SERVICE"))
            .otherwise(pl.lit("TASK")),
            outcome=pl.col("end_event").replace_strict(OUTCOME_NAMES, return_dtype=OUTCOMES),
        )
        .sort("arrival", "job", "number", "index")
    )


def observed_span(kept: pl.DataFrame, window_end: int, options: Options) -> Observed | None:
    """Return when arrivals are as they came: the trace puts what ran, or waited, before it began at time 0."""
    seen = kept.filter(pl.col("arrival") > 0)["arrival"]
    if seen.is_empty() or len(seen) == len(kept):
        return None
    return Observed(float(seen.min()) / SECOND, min(options.arrival_end, window_end / SECOND))  # type: ignore[arg-type]


def workload_of(kept: pl.DataFrame, constraints: list[list[dict[str, str]]], users: pl.DataFrame,
              provenance: Provenance, observed: Observed | None) -> Workload:
    """Lay out jobs, stages and tasks; *kept* also has `constraint_set`, a row of *constraints* or null."""
    jobs = kept.select("job", "number").unique(maintain_order=True).with_row_index("job_row")
    alike = ["job_row", "cpu", "memory", "priority", "kind", "constraint_set", "scheduling_class"]
    tasks = kept.join(jobs, on=["job", "number"], how="left", maintain_order="left")
    stages = tasks.select(alike).unique(maintain_order=True).with_row_index("stage")
    tasks = tasks.join(stages, on=alike, how="left", nulls_equal=True, maintain_order="left")
    return workload_of_units(
        _job_table(jobs, users),
        _stage_table(stages, constraints),
        tasks.select("stage", "index", pl.col("arrival") / SECOND, "run_time", "outcome",
                     recorded_start=pl.col("schedule") / SECOND),
        RESOURCES, provenance, observed,
    )


def _job_table(jobs: pl.DataFrame, users: pl.DataFrame) -> pl.DataFrame:
    """Name the second submission of job 7's tasks 7#2, and queues by their user's hash with `_` for `/`."""
    user = pl.col("user").fill_null("unknown")
    resubmitted = pl.when(pl.col("number") > 1).then("#" + pl.col("number").cast(pl.String)).otherwise(pl.lit(""))
    return jobs.join(users, on="job", how="left", maintain_order="left").select(
        job=pl.col("job").cast(pl.String) + resubmitted, queue=user.str.replace_all("/", "_"), user=user,
    )


def _stage_table(stages: pl.DataFrame, constraints: list[list[dict[str, str]]]) -> pl.DataFrame:
    none = pl.Series([[]], dtype=pl.List(CONSTRAINT_TYPE))
    lists = pl.concat([none, pl.Series(constraints, dtype=pl.List(CONSTRAINT_TYPE))])
    rows = (stages["constraint_set"].cast(pl.Int64) + 1).fill_null(0)
    place = pl.int_range(pl.len()).over("job_row")
    known = stages["scheduling_class"].max() != NO_EVENT
    of_class = pl.when(pl.col("scheduling_class") != NO_EVENT).then(pl.col("scheduling_class").cast(pl.Int32))
    return stages.select(
        job=pl.col("job_row"), name=place.cast(pl.String), depends_on=pl.lit([], pl.List(pl.UInt32)),
        kind="kind", priority=pl.col("priority").cast(pl.Int32), constraints=lists.gather(rows),
        cpu="cpu", memory="memory", **({"scheduling_class": of_class} if known else {}),
    )
