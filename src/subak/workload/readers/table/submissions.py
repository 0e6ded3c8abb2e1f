"""Reads a table of jobs that lies beside a table of their tasks: when each job was submitted, and by whom."""
from pathlib import Path
from typing import NamedTuple

import polars as pl

from subak.errors import InputError
from subak.workload.readers.conversion import Account, Shown, account_of, dropped_of, kept_of
from subak.workload.readers.files.delimited import Dialect, text_rows
from subak.workload.readers.files.faults import Faults, Rows
from subak.workload.readers.files.stream import Advance, parts
from subak.workload.readers.files.times import known, number
from subak.workload.readers.load import refuse_lost
from subak.workload.readers.options import Options
from subak.workload.readers.rows import FAULTY, NO_ARRIVAL, again
from subak.workload.readers.rulings import KEPT, Ruling, with_ruling
from subak.workload.readers.started import given
from subak.workload.table import TIME_MAX_S

FROM_JOBS, OTHERWISE = "submissions and users", "arrival, if no submission is known"


class Beside(NamedTuple):
    """A published table of jobs, and the table of tasks that it lies beside."""

    tasks: str  # how the name of the file of tasks begins
    file: str  # and that of the jobs
    names: tuple[str, ...]  # of the columns of the jobs
    job: str
    submitted: str  # seconds, on the clock of the tasks
    user: str

    @property
    def absent(self) -> dict[str, str]:
        """The remark where there is no table of jobs."""
        return {FROM_JOBS: f"none: no {self.file}*.csv lies beside the tasks; each arrives when it starts, and "
                           "none waits"}

    def files(self, source: Path) -> list[Path]:
        """Return the table of tasks, and that of the jobs beside it if there is one.

        Raises InputError unless there is one of tasks, and at most one of jobs.
        """
        if not source.exists():
            raise InputError(f"{source}: no such file or folder")
        if source.is_file() and source.name.startswith(self.file):
            raise InputError(f"{source}: is the table of jobs; name the table of tasks, or the folder of both")
        there = parts(source if source.is_dir() else source.parent)
        tasks = [path for path in there if path.name.startswith(self.tasks)] if source.is_dir() else [source]
        jobs = [path for path in there if path.name.startswith(self.file)]
        if len(tasks) != 1:
            raise InputError(f"{source}: needs one file {self.tasks}*.csv, plain, gz or xz; it has {len(tasks)}"
                             + (", name one of them" if tasks else ""))
        if len(jobs) > 1:
            raise InputError(f"{jobs[0].parent}: needs at most one file {self.file}*.csv, plain, gz or xz; it has "
                             f"{len(jobs)}")
        return [*tasks, *jobs]


class Submissions(NamedTuple):
    """What a table of jobs says."""

    path: Path
    rows: pl.DataFrame  # `line`, `job`, `submitted` (s), `user`, `ruling`

    def onto(self, tasks: pl.DataFrame) -> pl.DataFrame:
        """Return the tasks with `submitted` and `user` of their jobs; they arrive then, where it is known."""
        jobs = self.rows.filter(ruling=KEPT).select("job", "submitted", "user")
        joined = tasks.join(jobs, on="job", how="left", maintain_order="left")
        return joined.with_columns(arrival=pl.coalesce("submitted", "arrival"))

    @property
    def account(self) -> Account:
        """What became of the rows."""
        return account_of("jobs", self.rows)

    @property
    def dropped(self) -> pl.DataFrame:
        """The rows that are dropped, DROPPED_COLUMNS."""
        return dropped_of("jobs", self.rows, self.path)

    def shown(self, understood: Shown | None) -> Shown | None:
        """Return what was understood of the tasks, in which the arrival is that of some only."""
        if understood is None:
            return None
        return understood._replace(rows=tuple((OTHERWISE, *rest) if name == "arrival" else (name, *rest)
                                              for name, *rest in understood.rows))

    def remarks(self, ruled: pl.DataFrame) -> dict[str, int | float | str]:
        """Return what is remarkable about the join, of tasks with `ruling`."""
        counts = {
            "rows whose job's submission is unknown (they arrive when they start)":
                ruled.filter(pl.col("submitted").is_null(), ruling=KEPT).height,
            "jobs without a row of tasks": self.rows.filter(ruling=KEPT).join(ruled, on="job", how="anti").height,
        }
        said: dict[str, int | float | str] = {FROM_JOBS: f"of {self.path.name}"}
        return said | {name: count for name, count in counts.items() if count}


def submissions_of(path: Path, beside: Beside, options: Options, advance: Advance) -> Submissions:
    """Read a table of jobs. Raises InputError when too much of it cannot be read, naming line and column."""
    dialect = Dialect(quoted=True, names=beside.names)
    wanted = (beside.job, beside.submitted, beside.user)
    tables = [_jobs(rows, beside) for rows in text_rows(path, dialect, wanted, advance)]
    if not tables:
        raise InputError(f"{path}: has no rows")
    ruled = with_ruling(pl.concat(tables), [
        FAULTY, again("job", "job", known=pl.col("submitted").is_not_null()),
        Ruling(pl.col("submitted").is_null(), NO_ARRIVAL, load=False)])
    refuse_lost(ruled, (), path, "line", options, "the jobs' submissions")
    kept_of(ruled, path, "rows")
    return Submissions(path, ruled)


def _jobs(rows: Rows, beside: Beside) -> pl.DataFrame:
    faults = Faults(rows)
    texts = rows.table.select("line", job=known(pl.col(beside.job)), user=known(pl.col(beside.user)),
                              submitted=given(known(pl.col(beside.submitted))))
    value = number(pl.col("submitted"))
    faults.add(texts, pl.col("job").is_null(), f"{beside.job} must be given", "job", beside.job)
    faults.add(texts, pl.col("submitted").is_not_null() & (value.is_null() | ~value.is_between(0, TIME_MAX_S)),
               f"{beside.submitted} must be a number of s from 0 to {TIME_MAX_S:g}", "submitted", beside.submitted)
    return faults.onto(texts.with_columns(submitted=value))
