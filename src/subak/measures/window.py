"""The window: the measured part of a run, without warm-up and drain.

Tasks count that arrive in it, whenever they start or end, and those from before that still wait as it begins: each with
the whole of its wait, at both ends. Who never starts counts with its wait until the end. Were they left out, a
scheduler that lets a thousand tasks wait all along would be said to make nobody wait
(docs/decisions/0071-who-waits-counts.md).
Means over time are those from its begin to its end. A trace that begins with a loaded cluster piles up at its first
instant what ran there, and run times that its end has cut are too short: both say nothing of a scheduler (Feitelson,
Workload Modeling, 2015: warm-up and cool-down are left out).
"""
from typing import NamedTuple, TypeVar

import polars as pl

from subak.dates import instant_words, span_words
from subak.errors import InputError
from subak.measures.runs import WindowFacts
from subak.workload.stored import StoredWorkload, work_of
from subak.workload.table import Workload

AS_OBSERVED, ARRIVALS, AT_ONCE, AS_GIVEN = (
    "in which the trace shows arrivals as they came", "from the first arrival to the last",
    "the whole run, for all arrive at once", "as asked for")
WAITING = "WAITING"  # the status of a task that is ready to start
Table = TypeVar("Table", pl.DataFrame, pl.LazyFrame)


class Window(NamedTuple):
    """Seconds, both ends included; `why` says in words where they come from."""

    begin: float
    end: float
    why: str


def window_of(
    workload: Workload | StoredWorkload, begin: float | None = None, end: float | None = None
) -> Window:
    """Return what to measure of runs of a workload; *begin* and *end* (s) come before what it says of itself.

    Raises InputError where no task arrives in it.
    """
    work = work_of(workload)
    if not work.tasks:
        return Window(0.0, float("inf"), AT_ONCE)
    arrival = work.outline.tasks["arrival"]  # sorted
    first, last = arrival[0], arrival[-1]
    if work.head.observed is not None:
        usual = Window(work.head.observed.begin, work.head.observed.end, AS_OBSERVED)
    else:
        usual = Window(first, last, ARRIVALS) if first < last else Window(first, float("inf"), AT_ONCE)
    window = Window(usual.begin if begin is None else begin, usual.end if end is None else end,
                    usual.why if begin is None and end is None else AS_GIVEN)
    calendar = work.head.provenance.calendar
    if window.why == AS_GIVEN and calendar is not None:
        window = window._replace(why=f"{AS_GIVEN}: {span_words(window.begin, window.end, calendar)}")
    if not work.arrivals_between(window.begin, window.end):
        said = [instant_words(each, calendar) for each in (window.begin, window.end, first, last)]
        raise InputError(f"measure_from, measure_until: no task arrives from {said[0]} to {said[1]}; they do from "
                         f"{said[2]} to {said[3]}")
    return window


def arrived(tasks: Table, window: Window | WindowFacts) -> Table:
    """Return the rows of the tasks that arrive in the window."""
    return _filtered(tasks, _arrives(window))


def measured(tasks: Table, window: Window | WindowFacts) -> Table:
    """Return the rows of the tasks that count; *tasks* is the task table of a run."""
    return _filtered(tasks, counts(window))


def measured_jobs(jobs: pl.DataFrame, window: Window | WindowFacts) -> pl.DataFrame:
    """Return the rows of the jobs that count; *jobs* is the job table of a run."""
    waits = (pl.col("arrival") + pl.col("wait") > window.begin).fill_null(False)
    return _filtered(jobs, _arrives(window) | (_before(window) & waits))


def counts(window: Window | WindowFacts) -> pl.Expr:
    """Whether a row of the task table of a run counts: the task arrives in the window, or waits as it begins."""
    return _arrives(window) | waits_at_begin(window)


def of_window(tasks: pl.DataFrame, window: Window | WindowFacts) -> pl.Series:
    """Return bool[task]: whether a row of the task table of a run counts."""
    return tasks.select(counts(window).alias("counts"))["counts"]


def waits_at_begin(window: Window | WindowFacts) -> pl.Expr:
    """Whether a task from before the window still waits as it begins, for its first start."""
    starts_later = (pl.col("ready") + pl.col("wait_time") > window.begin).fill_null(False)
    return _before(window) & (starts_later | still_waits())


def still_waits() -> pl.Expr:
    """Whether a task was ready to start, and never did."""
    return pl.col("wait_time").is_null() & (pl.col("status") == WAITING)


def waits_through(window: Window | WindowFacts) -> pl.Expr:
    """Whether a task waits from the begin of the window to its end, or longer."""
    starts_after = (pl.col("ready") + pl.col("wait_time") >= window.end).fill_null(False)
    return (pl.col("ready") <= window.begin) & (starts_after | still_waits())


def wait_until(end: float) -> pl.Expr:
    """Return how long each task waited, s, of those that never started until *end*; null for what never can."""
    return pl.when(still_waits()).then((pl.lit(end) - pl.col("ready")).clip(lower_bound=0.0)).otherwise("wait_time")


def _filtered(tasks: Table, those: pl.Expr) -> Table:
    if isinstance(tasks, pl.DataFrame) and tasks.select(those.all()).item():
        return tasks  # a month's are not copied
    return tasks.filter(those)


def _arrives(window: Window | WindowFacts) -> pl.Expr:
    return pl.col("arrival").is_between(window.begin, window.end)


def _before(window: Window | WindowFacts) -> pl.Expr:
    return pl.col("arrival") < window.begin


def window_facts(tasks: pl.DataFrame, timeline: pl.DataFrame, window: Window) -> WindowFacts:
    """Return what summary.json says of the window of a run: it ends with the run at the latest."""
    inside = int(tasks.select(_arrives(window).sum()).item())
    return ended_window(timeline, window, inside, len(tasks))


def ended_window(timeline: pl.DataFrame, window: Window, inside: int, tasks: int) -> WindowFacts:
    """Return the same of a run of so many *tasks*, of which *inside* count."""
    last = timeline.select((pl.col("time") + pl.col("span")).max()).item()
    end = max(min(window.end, last or 0.0), window.begin)
    return WindowFacts(window.begin, end, window.why, inside, tasks - inside)


def cut(timeline: Table, window: Window | WindowFacts) -> Table:
    """Return the intervals of a timeline that lie in the window; one that its ends cut counts in part, as its mean."""
    begin = pl.max_horizontal("time", pl.lit(window.begin))
    end = pl.min_horizontal(pl.col("time") + pl.col("span"), pl.lit(window.end))
    return timeline.with_columns(time=begin, span=end - begin).filter(pl.col("span") > 0)
