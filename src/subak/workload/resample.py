"""Makes another workload like a given one for each seed, so that repeated runs differ.

- `model`: a workload that `subak generate` made is drawn anew, with another seed of the model.
- `days`: of a trace, the first seed is the trace itself, and others draw its days anew: even seeds whole days, odd ones
  each user's days (days.py says how). What arrives outside of the window that is measured stays as it is. Left to
  itself, a trace is not drawn whose work is that of a few sessions: that would say nothing of others.
- `none`: the workload as it is.
"""
import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.workload.days import (
    DAY_S,
    ITSELF,
    SESSIONS_LEAST,
    Days,
    alike_sessions,
    days_of,
    draw_days,
    drawn_by,
    grouped,
    sessions_of,
)
from subak.workload.google_like.generate import Length, write_generated
from subak.workload.google_like.parameters import Parameters
from subak.workload.google_like.streams import SEED_END
from subak.workload.redraws import AUTO, DAYS, MODEL, NONE, REDRAWN
from subak.workload.table import Workload, read_workload

AT_ONCE = "all of it arrives at once"


class Drawable(msgspec.Struct, frozen=True):
    """What there is to draw of a trace."""

    days: int
    length: float  # of one, s: of a short trace they are eighths
    freedom: int  # days less classes
    sessions: float  # of users, that weigh as much as if all were alike (Kish)
    why_not: str  # why its days are not drawn anew; empty where they are
    rest: float = 0.0  # s behind its last whole day, which stay as they are; below 0: that the last day lacks


def resample_for(workload: Workload, asked: str, seeds: int, begin: float, end: float) -> str:
    """Return what *asked* comes to: `auto` redraws where there are several seeds and that says something.

    *begin* and *end* are of the window that is measured, in seconds. Raises InputError where a workload that no model
    made is to be drawn from one, and where days are to be drawn of one that arrives at once.
    """
    name = workload.provenance.name
    if asked == MODEL and _model_of(workload) is None:
        raise InputError(f"resample: model needs a workload that `subak generate` made; {name} was not, days redraws a "
                         "trace")
    if asked == DAYS and not drawable(workload, begin, end).days:
        raise InputError(f"resample: days cannot be drawn of {name}: {AT_ONCE}; none takes it as it is")
    if asked != AUTO:
        return asked
    if seeds == 1 or why_as_it_is(workload, begin, end):
        return NONE
    return redraw_of(workload, begin, end)


def redraw_of(workload: Workload, begin: float, end: float) -> str:
    """Return how a workload is drawn anew: by its model where it has one; NONE where all of it arrives at once."""
    if _model_of(workload) is not None:
        return MODEL
    return DAYS if drawable(workload, begin, end).days else NONE


def why_as_it_is(workload: Workload, begin: float, end: float) -> str:
    """Return why several seeds leave a workload as it is where nobody asked for that; empty where they do not."""
    return "" if _model_of(workload) is not None else drawable(workload, begin, end).why_not


def resampled(workload: Workload, how: str, seed: int, begin: float, end: float) -> Workload:
    """Return the workload of a seed, the same for every scheduler; *how* is one of RESAMPLES but `auto`.

    *begin* and *end* are of the window that is measured, in seconds: what arrives outside of it stays as it is.
    """
    if how == NONE:
        return workload
    return _of_model(workload, seed) if how == MODEL else _of_days(workload, seed, begin, end)


# -- by the model ------------------------------------------------------------------------------------------------------


def _model_of(workload: Workload) -> dict[str, Any] | None:
    notes = workload.provenance.notes
    return notes if {"seed", "length", "parameters"} <= notes.keys() else None


def _of_model(workload: Workload, seed: int) -> Workload:
    """Draw a generated workload anew; seed 1 gives it as it was generated."""
    notes = _model_of(workload)
    assert notes is not None
    with TemporaryDirectory() as folder:
        write_generated(Path(folder), msgspec.convert(notes["parameters"], Parameters),
                        (int(notes["seed"]) + seed - 1) % SEED_END, Length(**notes["length"]))
        return read_workload(Path(folder))


# -- by days -----------------------------------------------------------------------------------------------------------


class _Trace(NamedTuple):
    """A trace with its days."""

    job: np.ndarray  # int64[task], the job of each
    arrival: np.ndarray  # float64[job], s, when its first task arrives; endless without any
    user: np.ndarray  # int64[job]
    days: Days
    drawable: Drawable


_last: list[tuple[Workload, float, float, _Trace]] = []  # the one that was looked at: every seed and point asks again


def drawable(workload: Workload, begin: float, end: float) -> Drawable:
    """Return what there is to draw of a workload from *begin* to *end*, s."""
    return _trace(workload, begin, end).drawable


def _trace(workload: Workload, begin: float, end: float) -> _Trace:
    for known, *window, found in _last:
        if known is workload and window == [begin, end]:
            return found
    made = _looked_at(workload, begin, end)
    _last[:] = [(workload, begin, end, made)]
    return made


def _looked_at(workload: Workload, begin: float, end: float) -> _Trace:
    job = workload.stages["job"].to_numpy().astype(np.int64)[workload.tasks["stage"].to_numpy()]
    arrival = np.full(len(workload.jobs), np.inf)
    np.minimum.at(arrival, job, workload.tasks["arrival"].to_numpy())
    user = workload.jobs["user"].fill_null("").rank("dense").to_numpy().astype(np.int64)
    unknown = workload.jobs["user"].null_count() == user.size
    who = np.arange(user.size) if unknown else user  # each job is somebody's
    days = days_of(arrival, who, begin, end)
    inside = np.flatnonzero(days.of_job >= 0)
    session = sessions_of(who[inside], arrival[inside])
    sessions = alike_sessions(session, _work(workload, job, end)[inside])
    last = end if math.isfinite(end) else float(arrival[np.isfinite(arrival)].max(initial=begin))
    rest = last - begin - days.number * days.length if days.length == DAY_S else 0.0
    found = Drawable(days.number, days.length, days.freedom, sessions, _why_not(days, sessions), rest)
    return _Trace(job, arrival, user, days, found)


def _why_not(days: Days, sessions: float) -> str:
    """Return why the days of a trace are not drawn anew; empty where they may be."""
    if not days.number:
        return AT_ONCE
    if sessions < SESSIONS_LEAST:
        return (f"its work is as uneven as that of {sessions:.1f} alike sessions of users, and there must be "
                f"{SESSIONS_LEAST}")
    return ""


def _work(workload: Workload, job: np.ndarray, end: float) -> np.ndarray:
    """Return float64[job]: what its tasks ask of the first resource that any asks for, times seconds until *end*."""
    stage = workload.tasks["stage"].to_numpy()
    asked = next((amounts for resource in workload.resources
                  if (amounts := workload.stages[resource.name].to_numpy()[stage]).any()), np.ones(stage.size))
    left = np.maximum(end - workload.tasks["arrival"].to_numpy(), 0.0)
    return np.bincount(job, np.minimum(workload.tasks["run_time"].to_numpy(), left) * asked,
                       minlength=len(workload.jobs))


def _of_days(workload: Workload, seed: int, begin: float, end: float) -> Workload:
    """Draw days with replacement; the first seed gives the trace itself. What was drawn from is noted."""
    trace, what = _trace(workload, begin, end), drawn_by(seed)
    facts = msgspec.structs.asdict(trace.drawable)
    del facts["why_not"], facts["rest"]
    notes = {**workload.provenance.notes, REDRAWN: facts}
    provenance = msgspec.structs.replace(workload.provenance, notes=notes)
    if what == ITSELF:
        return replace(workload, provenance=provenance)
    chosen, shift = draw_days(trace.days, trace.arrival, trace.user, what, np.random.default_rng([seed, 1]))
    return replace(_gathered(workload, trace.job, chosen, shift),
                   provenance=msgspec.structs.replace(provenance, origin=f"{provenance.origin}; days drawn anew",
                                                      calendar=None))


def _gathered(workload: Workload, job: np.ndarray, chosen: np.ndarray, shift: np.ndarray) -> Workload:
    """Return a workload of *chosen* jobs, one row each, as often as they occur, that arrive *shift* seconds later.

    *job* is that of each task, int64[task].
    """
    stages = grouped(workload.stages["job"].to_numpy(), len(workload.jobs))
    tasks = grouped(job, len(workload.jobs))
    stage_count, task_count = stages.counts(chosen), tasks.counts(chosen)
    first = np.cumsum(stage_count) - stage_count  # of each job's stages among the new ones
    owner, place = np.repeat(np.arange(chosen.size), stage_count), stages.place()
    return replace(
        workload, jobs=_jobs(workload.jobs[chosen], chosen),
        stages=_stages(workload.stages[stages.of(chosen)], owner, first, place),
        tasks=_tasks(workload.tasks[tasks.of(chosen)], np.repeat(first, task_count), place,
                     np.repeat(shift, task_count)))


def _jobs(jobs: pl.DataFrame, chosen: np.ndarray) -> pl.DataFrame:
    """Name a job that is drawn again 7~2, 7~3 and so on."""
    nth = pl.DataFrame({"chosen": chosen}).select((pl.int_range(pl.len()).over("chosen") + 1).alias("nth"))["nth"]
    again = pl.when(pl.col("nth") > 1).then("~" + pl.col("nth").cast(pl.String)).otherwise(pl.lit(""))
    return jobs.with_columns(nth).with_columns(job=pl.col("job") + again).drop("nth")


def _stages(stages: pl.DataFrame, job: np.ndarray, first: np.ndarray, place: np.ndarray) -> pl.DataFrame:
    """Renumber jobs and dependencies of stages; *first* is by new job, *place* by old stage."""
    table = stages.with_columns(pl.Series("job", job, dtype=pl.UInt32))
    if not (table["depends_on"].list.len() > 0).any():
        return table
    begins = pl.Series("begins", first[job].astype(np.uint32))
    moved = table.with_row_index("row").with_columns(begins).select("row", "begins", "depends_on").explode("depends_on")
    moved = moved.drop_nulls("depends_on")
    moved = moved.with_columns(depends_on=(
        pl.col("begins") + pl.Series(place.astype(np.uint32)).gather(moved["depends_on"])).cast(pl.UInt32))
    lists = moved.group_by("row", maintain_order=True).agg("depends_on")
    none = pl.lit([], pl.List(pl.UInt32))
    return (table.drop("depends_on").with_row_index("row").join(lists, on="row", how="left", maintain_order="left")
            .with_columns(pl.col("depends_on").fill_null(none)).select(stages.columns))


def _tasks(tasks: pl.DataFrame, first: np.ndarray, place: np.ndarray, shift: np.ndarray) -> pl.DataFrame:
    """Renumber the stages of tasks, let them arrive later, and start later in the log, and sort them."""
    stage = pl.Series("stage", first + place[tasks["stage"].to_numpy()], dtype=pl.UInt32)
    times = [(pl.col(name) + pl.Series(shift)).clip(lower_bound=0.0) for name in ("arrival", "recorded_start")
             if name in tasks.columns]
    return tasks.with_columns(stage, *times).sort("arrival", maintain_order=True)
