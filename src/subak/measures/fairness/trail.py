"""Rebuilds when tasks waited and what they held, from the tables of tasks and lost attempts."""
import numpy as np
import polars as pl

from subak.measures.fairness.spans import Trail
from subak.workload.table import Workload


def attempt_trail(tasks: pl.DataFrame, attempts: pl.DataFrame, workload: Workload) -> Trail:
    """Return what every task did: a row a task with its last attempt, then a row a lost attempt; its task waited on."""
    stage, lost = workload.tasks["stage"].to_numpy(), attempts["end"].to_numpy()
    rows = rows_of_tasks(attempts, tasks)
    trail = Trail(joined(stage, stage[rows]), joined(times(tasks["ready"]), lost),
                  joined(times(tasks["start"]), attempts["start"].to_numpy()), joined(times(tasks["finish"]), lost))
    idle = np.concatenate([_standing(tasks, "UNPLACEABLE"), _last_rows(_standing(tasks, "GIVEN_UP"), rows, len(tasks))])
    if idle.size == 0:
        return trail
    waits = trail.waits.copy()
    waits[idle] = np.inf
    return trail._replace(waits=waits)


def since(begin: float, trail: Trail) -> Trail:
    """Count time from *begin* (s) on: what was there before is there from then on, and what had ended is of no time."""
    if begin == 0.0:
        return trail
    return Trail(trail.stage, *(np.maximum(times - begin, 0.0) for times in trail[1:]))


def _standing(tasks: pl.DataFrame, status: str) -> np.ndarray:
    """Return the rows of the tasks that stand so at the end."""
    kind = tasks.schema["status"]
    if not isinstance(kind, pl.Enum):
        return tasks.select((pl.col("status") == status).arg_true())["status"].to_numpy()
    names = kind.categories.to_list()
    if status not in names:
        return np.zeros(0, np.int64)
    return np.flatnonzero(tasks["status"].to_physical().to_numpy() == names.index(status))


def _last_rows(tasks: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Return the row of a trail in which each of *tasks* begins to wait for the last time.

    It is that of its last attempt, or its own of the first *count*; *rows* are the tasks of the attempts, in time.
    """
    if tasks.size == 0:
        return tasks
    last = np.arange(count)
    np.maximum.at(last, rows, count + np.arange(rows.size))
    return np.asarray(last[tasks])


def rows_of_tasks(attempts: pl.DataFrame, tasks: pl.DataFrame) -> np.ndarray:
    """Return int64[attempt]: the row of each attempt's task. A join would need a hundred bytes a task."""
    if attempts.is_empty():
        return np.zeros(0, np.int64)
    number = (pl.col("job").cast(pl.UInt64) * 2**32 + pl.col("index")).alias("number")
    of_task = tasks.select(number)["number"].to_numpy()
    wanted, place = np.unique(attempts.select(number)["number"].to_numpy(), return_inverse=True)
    near = np.minimum(np.searchsorted(wanted, of_task), wanted.size - 1).astype(np.uint32)
    rows = np.flatnonzero(wanted[near] == of_task)
    return rows[np.argsort(near[rows])][place]


def joined(column: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return both, [row] of one type, one behind the other; a column of a month is not copied for nothing."""
    return np.concatenate([column, more]) if more.size else column


def times(column: pl.Series) -> np.ndarray:
    """Return instants as float64[row], seconds; inf where they are null, which is never."""
    return (column.fill_null(float("inf")) if column.null_count() else column).to_numpy()
