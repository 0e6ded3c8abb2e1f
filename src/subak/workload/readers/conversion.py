"""The result of a conversion: a workload, and an account of every row read."""
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet
from subak.output.writing import write_file
from subak.resources import Resource
from subak.workload.readers.files.faults import FIELDS
from subak.workload.readers.files.stream import Advance
from subak.workload.readers.load import Load, load_of, refuse_lost
from subak.workload.readers.options import Options
from subak.workload.readers.rulings import KEPT
from subak.workload.table import Workload

CONVERTED_TASKS_MAX = 200_000_000  # some 8 GB while converting
# Of dropped.csv: lines of Parquet are rows, of JSON values; the column and the value where a field was none
DROPPED_COLUMNS = ("table", "file", "line", "reason", "column", "value")


class Account(msgspec.Struct, frozen=True):
    """What became of the rows of one table: the rulings' counts add up to the rows read."""

    table: str
    rows: int
    used: dict[str, int]
    dropped: dict[str, int]

    def check(self) -> None:
        """Raise AssertionError, with the numbers, when a row is missing from the account or is there twice."""
        counted = sum(self.used.values()) + sum(self.dropped.values())
        assert counted == self.rows, f"{self.table}: {self.rows} rows read, {counted} accounted for"


def account(table: str, rows: int, used: Mapping[str, int], dropped: Mapping[str, int]) -> Account:
    """Return a checked account without the rulings that nothing met."""
    result = Account(table, rows, _met(used), _met(dropped))
    result.check()
    return result


def kept_of(ruled: pl.DataFrame, where: object, rows: str) -> pl.DataFrame:
    """Return the rows whose `ruling` is KEPT. Raises InputError, beginning with *where*, when there is none."""
    kept = ruled.filter(ruling=KEPT)
    if kept.is_empty():
        most = ruled.group_by("ruling").len().sort("len", "ruling", descending=[True, False])["ruling"]
        raise InputError(f"{where}: none of its {len(ruled):,} {rows} can be kept; most: {most[0]}")
    return kept


def kept_load(ruled: pl.DataFrame, where: object, rows: str, resources: Sequence[Resource], options: Options,
              word: str = "line") -> tuple[pl.DataFrame, tuple[Load, ...]]:
    """Return the rows that are kept, and the load of all. Raises InputError when there is none, or too much is lost."""
    loads = load_of(ruled, resources)
    refuse_lost(ruled, loads, where, word, options)
    return kept_of(ruled, where, rows), loads


def with_recorded(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return tasks without the column `recorded_start` where the trace tells of none when it started."""
    return tasks if tasks["recorded_start"].count() else tasks.drop("recorded_start")


def account_of(table: str, ruled: pl.DataFrame) -> Account:
    """Return the account of rows that have a column `ruling`; the most frequent ruling comes first."""
    counts = dict(ruled.group_by("ruling").len().sort("len", "ruling", descending=True).rows())
    return account(table, len(ruled), {KEPT: counts.pop(KEPT, 0)}, counts)


def refuse_too_many(tasks: float, where: object, hint: str = "") -> None:
    """Raise InputError when a conversion would make more tasks than CONVERTED_TASKS_MAX; *where* begins the message."""
    if tasks > CONVERTED_TASKS_MAX:
        raise InputError(f"{where}: makes {tasks:.4g} tasks, at most {CONVERTED_TASKS_MAX:,} are possible; --from and "
                         f"--until cut a slice{hint}")


def _met(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: int(count) for name, count in counts.items() if count}


def dropped_of(table: str, ruled: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return the rows of one file that are dropped; see `dropped_of_files`."""
    return dropped_of_files(table, ruled.with_columns(file=pl.lit(path.name)))


def dropped_of_files(table: str, ruled: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are dropped, DROPPED_COLUMNS; *ruled* has the columns `file`, `line` and `ruling`.

    Where a field was none, its column and its value stand there too.
    """
    gone = ruled.filter(pl.col("ruling") != KEPT)
    if "fault" not in gone.columns:
        gone = gone.with_columns(pl.lit(None, pl.String).alias(name) for name in FIELDS)
    column, value = (pl.when(pl.col("ruling") == pl.col("fault")).then(name) for name in FIELDS[1:])
    return gone.select(table=pl.lit(table), file="file", line=pl.col("line").cast(pl.Int64), reason="ruling",
                       column=column, value=value)


class Shown(NamedTuple):
    """A table of words for the terminal: what a reader understood of the first rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Conversion:
    """A workload, its fleet if the trace has machines, the accounts, and remarks as pairs of words and a value.

    *dropped* names each row that was dropped (DROPPED_COLUMNS), of formats in which a row is a task or a job; *loads*
    say how much of the work is kept.
    """

    workload: Workload
    fleet: Fleet | None
    accounts: tuple[Account, ...]
    remarks: dict[str, int | float | str]
    dropped: pl.DataFrame | None = None
    understood: Shown | None = None
    loads: tuple[Load, ...] = field(kw_only=True)

    def write(self, folder: Path) -> None:
        """Write the workload into an existing *folder*, the fleet into its subfolder `fleet`, and what was dropped."""
        self.workload.write(folder)
        if self.dropped is not None and len(self.dropped):
            write_file(folder / "dropped.csv", self.dropped.write_csv().encode())
        if self.fleet is not None:
            (folder / "fleet").mkdir()
            self.fleet.write(folder / "fleet")


def notes(
    accounts: Iterable[Account], remarks: Mapping[str, object], options: Mapping[str, object]
) -> dict[str, object]:
    """Return accounts, remarks and options in the form that a provenance keeps."""
    return {
        "options": dict(options),
        **{each.table: {"rows": each.rows, "used": each.used, "dropped": each.dropped} for each in accounts},
        "remarks": dict(remarks),
    }


class Reader(NamedTuple):
    """A format that `subak convert` knows."""

    summary: str  # what the format is, for help texts
    files: Callable[[Path], list[Path]]  # the files that a source consists of
    read: Callable[[Path, Options, Advance], Conversion]
    options: frozenset[str]  # the fields of Options that it supports
