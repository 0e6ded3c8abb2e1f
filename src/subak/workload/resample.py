"""Another workload like a given one, for each seed: so that the same figure three times is not called three runs.

- `model`: a workload that `subak generate` made is drawn anew, with another seed of the model.
- `sessions`: of a trace, sessions of users are drawn with replacement and begin at other times. A session is a row of
  jobs of one user, each at most 20 minutes behind the one before it: within it jobs keep their distances, so that
  bursts stay. Sessions are drawn, and begin, within the block of time in which they began, so that days stay days; what
  would arrive behind the end arrives at the beginning (circular blocks). What was there before the window stays.
- `none`: the workload as it is.

Source: Zakay and Feitelson, Workload Resampling for Performance Evaluation of Parallel Job Schedulers (2014), with
sessions by distances of arrivals; blocks: Politis and Romano, A Circular Block-Resampling Procedure (1992).
"""
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.tables import Provenance
from subak.workload.google_like.generate import Length, write_generated
from subak.workload.google_like.parameters import Parameters
from subak.workload.google_like.streams import SEED_END
from subak.workload.redraws import AUTO, MODEL, NONE, SESSIONS
from subak.workload.table import Workload, read_workload

SESSION_GAP_S = 1200.0
HOUR_S, DAY_S, BLOCKS_LEAST = 3600.0, 86_400.0, 6


def resample_for(workload: Workload, asked: str, seeds: int) -> str:
    """Return what *asked* comes to: `auto` redraws where there are several seeds, and by the model if there is one.

    Raises InputError where a workload that no model made is to be drawn from one.
    """
    if asked == MODEL and _model_of(workload) is None:
        raise InputError(f"resample: model needs a workload that `subak generate` made; {workload.provenance.name} was "
                         "not, sessions redraws any")
    if asked != AUTO:
        return asked
    if seeds == 1:
        return NONE
    return SESSIONS if _model_of(workload) is None else MODEL


def resampled(workload: Workload, how: str, seed: int, begin: float, end: float) -> Workload:
    """Return the workload of a seed, the same for every scheduler; *how* is one of RESAMPLES but `auto`.

    *begin* and *end* are of the window that is measured, in seconds: what arrives outside of it stays as it is.
    """
    if how == NONE:
        return workload
    return _of_model(workload, seed) if how == MODEL else _of_sessions(workload, seed, begin, end)


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


# -- by sessions -------------------------------------------------------------------------------------------------------


class Groups(NamedTuple):
    """Rows of a table by the group that each belongs to; rows of a group keep their order."""

    rows: np.ndarray  # int64[row], those of the first group first
    first: np.ndarray  # int64[group + 1], where those of each begin

    def of(self, groups: np.ndarray) -> np.ndarray:
        """Return the rows of *groups*, one after the other, each as often as it occurs."""
        count = self.counts(groups)
        ends = np.cumsum(count)
        return self.rows[np.repeat(self.first[groups] - ends + count, count) + np.arange(count.sum())]

    def counts(self, groups: np.ndarray) -> np.ndarray:
        """Return how many rows each of *groups* has."""
        return np.asarray(self.first[groups + 1] - self.first[groups])

    def place(self) -> np.ndarray:
        """Return int64[row]: which one of its group each row of the table is."""
        place = np.empty(self.rows.size, np.int64)
        place[self.rows] = np.arange(self.rows.size) - np.repeat(self.first[:-1], np.diff(self.first))
        return place


def grouped(group: np.ndarray, groups: int) -> Groups:
    """Return the rows of each group, of int[row]: the group of each row."""
    first = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))])
    return Groups(np.argsort(group, kind="stable"), first)


def _of_sessions(workload: Workload, seed: int, begin: float, end: float) -> Workload:
    """Draw sessions with replacement within blocks of time, and let them begin anywhere in theirs."""
    job, arrival = _jobs_of_tasks(workload)
    inside = (arrival >= begin) & (arrival <= end)
    stays, moves = np.flatnonzero(np.isfinite(arrival) & ~inside), np.flatnonzero(inside)
    session = _sessions(workload, arrival, moves)
    chosen, shift = draw_sessions(arrival[moves], session, begin, np.random.default_rng([seed, 1]))
    return _gathered(workload, job, np.concatenate([stays, moves[chosen]]),
                     np.concatenate([np.zeros(stays.size), shift]))


def session_count(workload: Workload, begin: float, end: float) -> int:
    """Return how many sessions there are to draw from; of one, a seed changes nothing but when it begins."""
    _, arrival = _jobs_of_tasks(workload)
    moves = np.flatnonzero((arrival >= begin) & (arrival <= end))
    return int(_sessions(workload, arrival, moves).max(initial=-1)) + 1


def _jobs_of_tasks(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """Return int64[task], the job of each, and float64[job], when its first task arrives; endless without any."""
    job = workload.stages["job"].to_numpy().astype(np.int64)[workload.tasks["stage"].to_numpy()]
    arrival = np.full(len(workload.jobs), np.inf)
    np.minimum.at(arrival, job, workload.tasks["arrival"].to_numpy())
    return job, arrival


def _sessions(workload: Workload, arrival: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Return int64[move]: the session of each of the jobs *moves*."""
    user = workload.jobs["user"].fill_null("").rank("dense").to_numpy().astype(np.int64)
    return sessions_of(user[moves], arrival[moves])


def sessions_of(user: np.ndarray, arrival: np.ndarray) -> np.ndarray:
    """Return int64[job]: the number of each job's session, from 0 on; *user* int[job], *arrival* float64[job], s."""
    order = np.lexsort((arrival, user))
    new = np.ones(order.size, bool)
    new[1:] = (np.diff(user[order]) != 0) | (np.diff(arrival[order]) > SESSION_GAP_S)
    session = np.empty(order.size, np.int64)
    session[order] = np.cumsum(new) - 1
    return session


def draw_sessions(
    arrival: np.ndarray, session: np.ndarray, begin: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return which jobs are drawn (int64[draw]), and by how much later each arrives (float64[draw], s).

    *arrival* float64[job], s, *begin* or later; *session* int64[job], numbered from 0 on without gaps.
    """
    if arrival.size == 0:
        return np.zeros(0, np.int64), np.zeros(0)
    span = float(arrival.max()) - begin
    start = np.full(int(session.max()) + 1, np.inf)
    np.minimum.at(start, session, arrival)
    blocks = _blocks(span)
    block = np.minimum(((start - begin) * (blocks / span)).astype(np.int64), blocks - 1) if span else start * 0
    of_block = grouped(block.astype(np.int64), blocks)
    count = of_block.counts(np.arange(blocks))
    where = np.repeat(np.arange(blocks), count)  # as many sessions begin in a block as did
    drawn = of_block.rows[of_block.first[where] + (random.random(where.size) * count[where]).astype(np.int64)]
    begins = begin + (where + random.random(where.size)) * (span / blocks)
    of_session = grouped(session, start.size)
    chosen = of_session.of(drawn)
    later = np.repeat(begins - start[drawn], of_session.counts(drawn))
    if not span:
        return chosen, np.zeros(chosen.size)
    return chosen, begin + (arrival[chosen] + later - begin) % span - arrival[chosen]


def _blocks(span: float) -> int:
    """Return how many blocks a span (s) has: of a day, or an hour where that would be few, and six at least."""
    length = DAY_S if span >= BLOCKS_LEAST * DAY_S else HOUR_S
    return max(int(span // length), BLOCKS_LEAST)


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
                     np.repeat(shift, task_count)),
        provenance=_noted(workload.provenance))


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


def _noted(provenance: Provenance) -> Provenance:
    return msgspec.structs.replace(provenance, origin=f"{provenance.origin}; sessions of users drawn anew")
