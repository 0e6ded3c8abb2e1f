"""Finds the attempts of each task in unordered task events.

The rules, for the events of one task in order of time:
- SUBMIT opens an attempt; so does the first event of all, and any event but an update after an end event.
- SCHEDULE starts it; a second SCHEDULE in the same attempt is ignored.
- EVICT, FAIL, FINISH, KILL and LOST end it.
- UPDATE_PENDING and UPDATE_RUNNING belong to the attempt before them.
- The request is that of the last row, up to SCHEDULE, that has one.
- At one instant: SUBMIT, UPDATE_PENDING, SCHEDULE, UPDATE_RUNNING, end; but if the task was pending or running
  before an instant with both an end and a SUBMIT, the end comes first (it was evicted and submitted again at once).
"""
import numpy as np
import polars as pl

(EVENT_SUBMIT, EVENT_SCHEDULE, EVENT_EVICT, EVENT_FAIL, EVENT_FINISH, EVENT_KILL, EVENT_LOST, EVENT_UPDATE_PENDING,
 EVENT_UPDATE_RUNNING) = range(9)
EVENT_COUNT = 9
# Columns of events: job and time int64, index int32, event uint8, priority int16, cpu and memory int32,
# scheduling_class int8 (these three: -1 = not given)
EVENT_COLUMNS = ("job", "index", "time", "event", "priority", "cpu", "memory", "scheduling_class")
NO_EVENT = -1
RANK = np.array([0, 2, 4, 4, 4, 4, 4, 1, 3], dtype=np.int8)  # order of events at one instant


def sort_events(events: pl.DataFrame) -> pl.DataFrame:
    """Return the events without exact repetitions, in an order that does not depend on the order they came in."""
    keys = ["job", "index", "time", "rank", "event", "cpu", "memory", "priority", "scheduling_class"]
    ranked = events.with_columns(rank=pl.Series(RANK[events["event"].to_numpy()])).sort(keys)
    same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in EVENT_COLUMNS)
    ranked = ranked.filter(~same.fill_null(False))
    first = _ends_first(ranked)
    if first.any():
        rank = np.where(first, -1, ranked["rank"].to_numpy())
        ranked = ranked.with_columns(rank=pl.Series(rank)).sort(keys)
    return ranked.drop("rank")


def _ends_first(ranked: pl.DataFrame) -> np.ndarray:
    """Return bool[row]: end events of a live task at an instant that also has its SUBMIT."""
    event = ranked["event"].to_numpy()
    instant = np.cumsum(_changes(ranked, ("job", "index", "time"))) - 1
    ends = _is_end(event)
    mixed: np.ndarray = _any_in(instant, ends) & _any_in(instant, event == EVENT_SUBMIT)
    if not mixed.any():
        return mixed
    task_start = _latest(_changes(ranked, ("job", "index")))
    telling = _latest(~mixed & (event < EVENT_UPDATE_PENDING))  # a mixed instant leaves the task as it was
    live = (telling >= task_start) & ~ends[telling]
    first: np.ndarray = mixed & ends & live
    return first


def _is_end(event: np.ndarray) -> np.ndarray:
    ends: np.ndarray = (event >= EVENT_EVICT) & (event <= EVENT_LOST)
    return ends


def _changes(table: pl.DataFrame, names: tuple[str, ...]) -> np.ndarray:
    """Return bool[row]: whether any of the columns differs from the row before; true for the first row."""
    change = np.zeros(len(table), dtype=bool)
    change[:1] = True
    for name in names:
        values = table[name].to_numpy()
        change[1:] |= values[1:] != values[:-1]
    return change


def _any_in(group: np.ndarray, flag: np.ndarray) -> np.ndarray:
    """Return bool[row]: whether *flag* holds for any row of the row's group."""
    return (np.bincount(group, weights=flag) > 0)[group] if len(group) else flag


def _latest(flag: np.ndarray) -> np.ndarray:
    """Return int[row]: the last row up to this one where *flag* holds; -1 before the first."""
    return np.maximum.accumulate(np.where(flag, np.arange(len(flag)), NO_EVENT))


def find_attempts(events: pl.DataFrame) -> pl.DataFrame:
    """Return one row an attempt from sorted events: the rules are at the top of this file.

    Columns: job, index, number (of the attempt in its task, from 1), last (whether it is the task's last), submit,
    schedule, end (microseconds, -1 where absent), end_event, priority, scheduling_class, cpu, memory (units, -1 where
    absent),
    rows (events in it, without repeated SCHEDULEs), repeats (repeated SCHEDULEs).
    """
    event = events["event"].to_numpy()
    new_task = _changes(events, ("job", "index"))
    attempt = np.cumsum(_openings(event, new_task)) - 1
    count = int(attempt[-1]) + 1 if len(attempt) else 0
    opening = _first_row(attempt, np.ones(len(event), dtype=bool), count)
    submit, schedule, end = (_first_row(attempt, flag, count)
                             for flag in (event == EVENT_SUBMIT, event == EVENT_SCHEDULE, _is_end(event)))
    request = _request_row(events, attempt, schedule)
    describing = np.where(schedule == NO_EVENT, opening, schedule)
    first = _latest(new_task[opening])
    rows = np.bincount(attempt, minlength=count)
    repeats = np.maximum(np.bincount(attempt, weights=event == EVENT_SCHEDULE, minlength=count).astype(np.int64) - 1, 0)
    time, cpu, memory = (events[name].to_numpy() for name in ("time", "cpu", "memory"))
    return events.select("job", "index")[opening].with_columns(
        pl.Series("number", np.arange(count) - first + 1, dtype=pl.Int32),
        pl.Series("last", np.append(new_task[opening][1:], True)[:count]),
        pl.Series("submit", _at(time, submit)),
        pl.Series("schedule", _at(time, schedule)),
        pl.Series("end", _at(time, end)),
        pl.Series("end_event", _at(event.astype(np.int8), end)),
        pl.Series("priority", events["priority"].to_numpy()[describing]),
        pl.Series("scheduling_class", events["scheduling_class"].to_numpy()[describing]),
        pl.Series("cpu", _at(cpu, request)),
        pl.Series("memory", _at(memory, request)),
        pl.Series("rows", rows - repeats),
        pl.Series("repeats", repeats),
    )


def _openings(event: np.ndarray, new_task: np.ndarray) -> np.ndarray:
    """Return bool[row]: where an attempt begins."""
    proper = event < EVENT_UPDATE_PENDING
    before = np.append(NO_EVENT, _latest(proper)[:-1])[:len(event)]  # the last event before this row that is no update
    after_end = (before >= _latest(new_task)) & _is_end(event)[before]
    openings: np.ndarray = new_task | (event == EVENT_SUBMIT) | (proper & after_end)
    return openings


def _first_row(attempt: np.ndarray, flag: np.ndarray, count: int) -> np.ndarray:
    """Return int[attempt]: its first row where *flag* holds, -1 without one."""
    result = np.full(count, NO_EVENT, dtype=np.int64)
    rows = np.flatnonzero(flag)[::-1]
    result[attempt[rows]] = rows  # of several rows the last one written, the first in order, stays
    return result


def _request_row(events: pl.DataFrame, attempt: np.ndarray, schedule: np.ndarray) -> np.ndarray:
    """Return int[attempt]: its last row with a request, up to its SCHEDULE if it has one; -1 without one."""
    given = (events["cpu"].to_numpy() >= 0) & (events["memory"].to_numpy() >= 0)
    limit = np.where(schedule == NO_EVENT, len(attempt), schedule)[attempt]
    rows = np.flatnonzero(given & (np.arange(len(attempt)) <= limit))
    result = np.full(len(schedule), NO_EVENT, dtype=np.int64)
    result[attempt[rows]] = rows
    return result


def _at(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return values[rows], and -1 where the row is -1."""
    return np.where(rows == NO_EVENT, NO_EVENT, values[rows]) if len(values) else rows
