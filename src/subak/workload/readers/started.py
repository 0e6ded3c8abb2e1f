"""The common rules for jobs that never started or have no times.

Slurm writes 0, 4294967294 (NO_VAL), 4294967295 (INFINITE), Unknown and None where there is no instant or no limit.
"""
import polars as pl

NO_VALUES = (4294967294.0, 4294967295.0)
DAY_S = 86400.0


def given(text: pl.Expr) -> pl.Expr:
    """Return fields, null where one says by a number that it says nothing."""
    return pl.when(~text.cast(pl.Float64, strict=False).is_in(NO_VALUES).fill_null(False)).then(text)


def since_1970(seconds: pl.Expr) -> pl.Expr:
    """Return instants in seconds since 1970, null where none is meant: the first day of 1970, or no value of Slurm."""
    return pl.when((seconds.abs() > DAY_S) & ~seconds.is_in(NO_VALUES)).then(seconds)


def limit(value: pl.Expr) -> pl.Expr:
    """Return limits, as numbers of whatever unit, null where there is none."""
    return pl.when(~value.is_in(NO_VALUES)).then(value)


def never_started(start: pl.Expr | None, outcome: pl.Expr | None, run_time: pl.Expr, held: pl.Expr | None = None,
                  ) -> pl.Expr:
    """Return whether a job never ran, from what a format tells of it.

    It did not when no start is recorded, unless it has a run time, or is said to have ended by itself; nor when
    somebody cancelled it before it had run at all, or *held* anything (bool; None where the format does not tell).
    *outcome* is of OUTCOMES, null for states before the start.
    """
    ended = pl.lit(False) if outcome is None else outcome.cast(pl.String).is_in(["FINISH", "FAIL"]).fill_null(False)
    cancelled = pl.lit(False) if outcome is None else outcome.cast(pl.String) == "KILL"
    unheld = pl.lit(False) if held is None else ~held.fill_null(False)
    ran = (run_time > 0).fill_null(False)
    without_start = pl.lit(False) if start is None else start.is_null() & ~ended & ~ran
    return without_start | (cancelled & ~ran & unheld).fill_null(False)
