"""Computes the load that a conversion keeps: run time x tasks x request.

A row that is dropped may carry load (a run time that cannot be read), or none (a job that never started, a step of one
that is counted, what lies outside the slice). The first are lost. Where the work of such a row is not known, it counts
as the mean of the rows that are kept.
"""
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import polars as pl

from subak.errors import InputError
from subak.resources import AMOUNT_MAX, Resource
from subak.workload.readers.options import Options
from subak.workload.readers.rulings import KEPT
from subak.workload.table import TIME_MAX_S

HOUR_S = 3600.0
SUMMED = ("kept", "lost", "guessed", "guessed_rows")


class Load(msgspec.Struct, frozen=True):
    """Of one resource, in hours of what it counts: the work that is kept, and that is lost."""

    resource: str
    of: str
    kept: float
    lost: float
    guessed: float  # of what is lost, at the mean of the rows that are kept
    guessed_rows: int

    @property
    def lost_share(self) -> float:
        """The share of all work that is lost, 0 where there is none."""
        return self.lost / (self.kept + self.lost) if self.lost else 0.0

    @property
    def words(self) -> str:
        """What is kept, for people."""
        of_all = f" ({self.kept:,.10g} of {self.kept + self.lost:,.10g} hours of {self.of})" if self.lost else ""
        return f"{1 - self.lost_share:.2%} of {self.resource}{of_all}"


def load_of(ruled: pl.DataFrame, resources: Sequence[Resource]) -> tuple[Load, ...]:
    """Return the load of rows with `ruling`, `lost`, `run_time`, `count` (else 1) and an amount of each resource.

    A run time or an amount that cannot be (below 0, too large, inf) says nothing of the work, as if it were empty.
    """
    count = pl.col("count").cast(pl.Float64) if "count" in ruled.columns else pl.lit(1.0)
    hours = _possible("run_time", TIME_MAX_S) / HOUR_S
    return tuple(_load_of(ruled, each, hours * count * _possible(each.name, AMOUNT_MAX * each.unit))
                 for each in resources)


def together(parts: Iterable[Sequence[Load]]) -> tuple[Load, ...]:
    """Return the load of several kinds of rows, each of which has a mean of its own."""
    return tuple(Load(same[0].resource, same[0].of, *(sum(getattr(each, name) for each in same) for name in SUMMED))
                 for same in zip(*parts, strict=True))


def _possible(name: str, most: float) -> pl.Expr:
    return pl.when(pl.col(name).is_between(0, most)).then(pl.col(name))


def _load_of(ruled: pl.DataFrame, resource: Resource, work: pl.Expr) -> Load:
    kept, lost = pl.col("ruling") == KEPT, pl.col("lost")
    known, mean, told, unknown = ruled.select(
        work.filter(kept).sum().alias("known"), work.filter(kept).mean().alias("mean"),
        work.filter(lost).sum().alias("told"), (lost & work.is_null()).sum().alias("unknown")).row(0)
    guessed = (mean or 0.0) * unknown
    return Load(resource.name, resource.of, known, told + guessed, guessed, unknown)


def refuse_lost(ruled: pl.DataFrame, loads: Sequence[Load], where: object, word: str, options: Options,
                what: str = "the load") -> None:
    """Raise InputError when more than ``options.max_lost`` of the work, or of the rows that carry any, is lost.

    It names the first such row by its `line`, a *word*, and in a folder by its `file`, where *ruled* has these; and
    *what* the rows carry. One row alone refuses no file, unless nothing may be lost.
    """
    lost, rows = ruled.filter("lost"), ruled.filter((pl.col("ruling") == KEPT) | pl.col("lost"))
    share = max([len(lost) / max(1, len(rows)), *(each.lost_share for each in loads)])
    alone = len(lost) == 1 and options.max_lost > 0
    if len(lost) == 0 or (len(lost) < len(rows) and (share <= options.max_lost or alone)):
        return
    fields = [pl.col(name).cast(pl.String) if name in lost.columns else pl.lit(None, pl.String).alias(name)
              for name in FIRST]
    each = lost.select("ruling", *fields).group_by("ruling", maintain_order=True).agg(pl.len(), pl.col(*FIRST).first())
    first, *rest = each.sort("len", descending=True, maintain_order=True).rows(named=True)
    line = "" if first["line"] is None else f", {word} {first['line']}"
    place = where / first["file"] if isinstance(where, Path) and where.is_dir() and first["file"] else where
    others = "; others: " + ", ".join(f"{each['ruling']} ({each['len']:,})" for each in rest[:2]) if rest else ""
    raise InputError(
        f"{place}{line}: {first['ruling']}{_value(first)} (such rows: {first['len']:,}{others}); {share:.1%} of {what} "
        f"would be lost, at most {options.max_lost:.0%} may be (--max-lost)")


FIRST = ("file", "line", "fault_column", "fault_value")


def _value(row: dict[str, object]) -> str:
    if row["fault_column"] is None:
        return ""
    return f", not {row['fault_value']}" if row["fault_value"] is not None else ", is missing"
