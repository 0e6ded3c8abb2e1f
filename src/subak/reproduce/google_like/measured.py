"""Measures the tasks of a source as the paper counts them: those with three events.

Measured means: the tasks of the trace with exactly three events (SUBMIT, SCHEDULE and an end), as the paper takes
them; their makespan is the time from SCHEDULE to the end. A workload has no events, but where it is known when tasks
started, those of a task are told from its attempts; elsewhere each attempt counts.
"""
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.workload.google_like.fit import leave_standing_out
from subak.workload.readers.files.stream import Advance, blocks, csv_rows, parts
from subak.workload.readers.google.attempts import (
    EVENT_EVICT,
    EVENT_FAIL,
    EVENT_FINISH,
    EVENT_KILL,
    EVENT_LOST,
    EVENT_SCHEDULE,
    EVENT_SUBMIT,
)
from subak.workload.readers.google.google2011 import events as google2011
from subak.workload.readers.google.tasks import AFTER, SECOND
from subak.workload.table import Workload

ENDINGS = ("FINISH", "KILL")
END_NAMES = {EVENT_FINISH: "FINISH", EVENT_KILL: "KILL", EVENT_FAIL: "FAIL", EVENT_EVICT: "other", EVENT_LOST: "other"}
EVENTS_WHOLE, EVENTS_MOST = 3, 9  # of a task that was submitted once and ended; of Table I: this many, and more


class Measured(NamedTuple):
    """What a source says of its tasks."""

    source: str
    tasks: pl.DataFrame  # ended (FINISH, KILL, FAIL, other), makespan (s), priority, class (null where unknown), job,
    # stood (whether it was there when the trace began), late (whether it ended when no arrival is known any more)
    attempts: dict[str, np.ndarray]  # seconds that each attempt of any task ran, by ending; empty without events
    events: dict[int, int] | None  # tasks by number of events, 9 for more; None where they are not known
    fresh_events: dict[int, int] | None  # the same of the tasks that came while the trace was recorded
    arrivals: pl.DataFrame  # time (s, sorted) and job of distinct tasks, after the trace's beginning
    submits: pl.DataFrame | None  # the same of EVENT_SUBMIT events, resubmissions too; None without events
    rooms: np.ndarray  # seconds that the trace still shows when a task starts, of those that came while it was recorded
    window: float | None  # seconds that were seen; makespans are shorter

    @property
    def gaps(self) -> np.ndarray:
        """Seconds between arrivals."""
        return np.diff(self.arrivals["time"].to_numpy())


def measure_trace(folder: Path, advance: Advance) -> Measured:
    """Measure a Google 2011 trace folder, straight from task_events. Raises InputError for a bad file."""
    google2011.files(folder)
    paths = parts(folder / "task_events")
    names = ("time", "job", "index", "event", "class", "priority")
    tables = [csv_rows(block, google2011.TASK_EVENT_COLUMNS).select(names)
              for path in paths for block in blocks(path, advance)]
    events = pl.concat(tables).filter(pl.col("time") < AFTER).sort("time", maintain_order=True)
    if events.is_empty():
        raise InputError(f"{folder}: has no events within the trace's window")
    by_task = _by_task(events)
    fresh = by_task.filter(pl.col("submit") > 0)
    submits = events.filter((pl.col("event") == EVENT_SUBMIT) & (pl.col("time") > 0))
    window = float(events["time"].max()) / SECOND  # type: ignore[arg-type]
    rooms = window - fresh["schedule"].drop_nulls().to_numpy() / SECOND
    source = f"{len(paths)} parts of the genuine trace ({folder})"
    return Measured(source, _three_events(by_task), _attempts(events), _table_1(by_task), _table_1(fresh),
                    _times(fresh.rename({"submit": "arrival"})), _times(submits.rename({"time": "arrival"})), rooms,
                    window)


def _times(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return when tasks came (microseconds in `arrival`), in order, and whose they are."""
    return tasks.select(time=pl.col("arrival") / SECOND, job=pl.col("job").cast(pl.String)).sort("time")


def _by_task(events: pl.DataFrame) -> pl.DataFrame:
    """Return one row a task: how many events it has, and when and how it was submitted, scheduled and ended."""
    time, event = pl.col("time"), pl.col("event")
    ends = event.is_in(list(END_NAMES))
    return events.group_by("job", "index").agg(
        pl.len().alias("events"),
        time.filter(event == EVENT_SUBMIT).min().alias("submit"),
        time.filter(event == EVENT_SCHEDULE).min().alias("schedule"),
        time.filter(ends).max().alias("end"),
        event.filter(ends).last().alias("end_event"),
        pl.col("priority").last(), pl.col("class").last(),
    )


def _three_events(by_task: pl.DataFrame) -> pl.DataFrame:
    whole = pl.col("submit").is_not_null() & pl.col("schedule").is_not_null() & pl.col("end").is_not_null()
    return by_task.filter((pl.col("events") == EVENTS_WHOLE) & whole).select(
        ended=pl.col("end_event").replace_strict(END_NAMES, return_dtype=pl.String),
        makespan=(pl.col("end") - pl.col("schedule")) / SECOND,
        priority=pl.col("priority"), **{"class": pl.col("class").cast(pl.Int64, strict=False)},
        job=pl.col("job").cast(pl.String), stood=pl.col("submit") == 0, late=pl.lit(False),
    )


def _attempts(events: pl.DataFrame) -> dict[str, np.ndarray]:
    """Return how long each attempt ran that finished or was killed, seconds above 0: from a SCHEDULE to its end."""
    ends = pl.col("event").is_in(list(END_NAMES))
    turns = events.filter(ends | (pl.col("event") == EVENT_SCHEDULE)).sort("job", "index", "time", maintain_order=True)
    before = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in ("job", "index"))
    ran = turns.with_columns(ran=(pl.col("time") - pl.col("time").shift(1)) / SECOND).filter(
        before & ends & (pl.col("event").shift(1) == EVENT_SCHEDULE)).filter(pl.col("ran") > 0)
    return {"FINISH": ran.filter(event=EVENT_FINISH)["ran"].to_numpy(),
            "KILL": ran.filter(event=EVENT_KILL)["ran"].to_numpy()}


def measure_workload(workload: Workload) -> Measured:
    """Measure a workload whose tasks say how they ended. Raises InputError for one that does not."""
    name = workload.provenance.name
    if "outcome" not in workload.tasks.columns:
        raise InputError(f"workload {name}: does not say how its tasks ended")
    attempts = _with_events(workload)
    whole = attempts if attempts["events"].null_count() else attempts.filter(events=EVENTS_WHOLE)
    outcome = pl.col("outcome").cast(pl.String)
    tasks = whole.filter(outcome.ne("CENSORED")).select(
        ended=pl.when(outcome.is_in(["FINISH", "KILL", "FAIL"])).then(outcome).otherwise(pl.lit("other")),
        makespan="run_time", priority="priority", **{"class": "class"}, job="task_job", stood="stood",
        late=pl.col("end") > workload.tasks["arrival"].max())
    fresh = attempts.filter(~pl.col("stood"))
    cut = attempts.filter(outcome.eq("CENSORED"))["end"].drop_nulls().to_numpy()  # the record ends with these
    window = float(cut.max()) if cut.size else None
    rooms = np.zeros(0) if window is None else window - fresh["recorded_start"].drop_nulls().to_numpy()
    rooms = rooms[rooms > 0]
    ran = {ending: attempts.filter((outcome == ending) & (pl.col("run_time") > 0))["run_time"].to_numpy()
           for ending in ENDINGS}
    return Measured(f"the workload {name}", tasks, ran, _counts(attempts), _counts(fresh),
                    fresh.select(time="arrival", job="task_job"), None, rooms, window)


def _with_events(workload: Workload) -> pl.DataFrame:
    """Return the tasks of a workload, attempts of the trace's, with the number of events of the task each is one of.

    Attempts of one task are of jobs called NAME, NAME#2 and so on (`task_job`). Each has a SUBMIT, a SCHEDULE and,
    unless it is censored, an end; these, and when it ended (`end`), are null where it is not known when tasks started.
    """
    of_class = "scheduling_class" in workload.stages.columns
    latency = pl.col("scheduling_class").cast(pl.Int64) if of_class else pl.lit(None, pl.Int64)
    stage, known = workload.tasks["stage"], "recorded_start" in workload.tasks.columns
    job = workload.jobs["job"].str.replace(r"#\d+$", "").gather(workload.stages["job"]).gather(stage)
    scheduled, ended = pl.col("recorded_start").is_not_null(), pl.col("outcome").cast(pl.String) != "CENSORED"
    own = 1 + scheduled.cast(pl.Int64) + ended.cast(pl.Int64) if known else pl.lit(None, pl.Int64)
    first = len(workload.tasks) - len(leave_standing_out(workload.tasks))
    return workload.tasks.with_columns(
        workload.stages.select(pl.col("priority"), latency.alias("class"))[stage],
        task_job=job, events=own, stood=pl.int_range(pl.len()) < first,
        end=pl.col("recorded_start") + pl.col("run_time") if known else pl.lit(None, pl.Float64),
    ).with_columns(pl.col("events").sum().over("task_job", "index") if known else pl.col("events"))


def _counts(attempts: pl.DataFrame) -> dict[int, int] | None:
    """Return how many tasks have how many events, None where that is not known."""
    if attempts["events"].null_count():
        return None
    return _table_1(attempts.unique(["task_job", "index"]))


def _table_1(by_task: pl.DataFrame) -> dict[int, int]:
    counted = by_task.select(pl.col("events").clip(upper_bound=EVENTS_MOST)).group_by("events").len()
    return dict(counted.sort("events").rows())
