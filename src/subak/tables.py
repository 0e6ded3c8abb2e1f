"""What the workload's and the fleet's tables share: column checks with worded errors, and their files."""
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from polars.datatypes import DataType, DataTypeClass

from subak.errors import InputError, RunError, first_line
from subak.output.places import refuse_bytes
from subak.resources import Resource, to_units

ColumnType = DataType | DataTypeClass
RESOURCES_MAX = 64  # each is a column of every table, a panel of every chart and a row of the engine's arrays


class Provenance(msgspec.Struct, frozen=True):
    """Where data came from, on which terms, and what was dropped on the way."""

    name: str = "unnamed"
    origin: str = "not stated"
    licence: str = "not stated"
    notes: dict[str, Any] = msgspec.field(default_factory=dict)


def amount_columns(resources: tuple[Resource, ...]) -> dict[str, ColumnType]:
    """Return one int32 column a resource. Raises InputError unless each is named once, and 1 to RESOURCES_MAX are."""
    if len(resources) > RESOURCES_MAX:
        raise InputError(f"resources: must be at most {RESOURCES_MAX}, not {len(resources):,}")
    columns: dict[str, ColumnType] = {resource.name: pl.Int32 for resource in resources}
    if not resources or len(columns) != len(resources):
        raise InputError(f"resources: must be named once each, and at least one; got "
                         f"{[resource.name for resource in resources]}")
    return columns


def in_units(table: pl.DataFrame, resources: tuple[Resource, ...], where: str) -> pl.DataFrame:
    """Return *table* with its float amounts (in ``resource.of``) as int32 units; absent columns stay absent."""
    columns = [resource for resource in resources if resource.name in table.columns]
    try:
        amounts = {resource.name: table[resource.name].cast(pl.Float64).to_numpy() for resource in columns}
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{where}: an amount must be a number: {first_line(error)}") from None
    return table.with_columns(
        pl.Series(resource.name, to_units(amounts[resource.name], resource, where)) for resource in columns
    )


def shaped(table: pl.DataFrame, schema: Mapping[str, ColumnType], where: str) -> pl.DataFrame:
    """Return *table* with exactly the columns of *schema*, cast to its types.

    Raises InputError for a missing or unknown column, or a value its type cannot hold.
    """
    missing = [name for name in schema if name not in table.columns]
    unknown = [name for name in table.columns if name not in schema]
    if missing or unknown:
        raise InputError(f"{where}: columns must be {', '.join(schema)}"
                         + (f"; missing {', '.join(missing)}" if missing else "")
                         + (f"; unknown {', '.join(unknown)}" if unknown else ""))
    for name, kind in schema.items():
        _refuse_type(table, name, kind, where)
        if table[name].dtype.is_float() and kind in (pl.Int32, pl.UInt32):
            refuse_rows(table, pl.col(name) != pl.col(name).round(), where, f"{name} must be a whole number", name)
    try:
        return table.select(pl.col(name).cast(kind) for name, kind in schema.items())
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{where}: a value does not fit its column: {first_line(error)}") from None


def _refuse_type(table: pl.DataFrame, name: str, kind: ColumnType, where: str) -> None:
    """Raise InputError where a cast would mean something else: a duration becomes microseconds, a struct its text."""
    held = table.schema[name]
    other = held.is_temporal() or held == pl.Boolean if kind.is_numeric() else False
    if other or (held.is_nested() and not kind.is_nested()):
        wanted = kind() if isinstance(kind, type) else kind
        raise InputError(f"{where}: {name} must be of the type {wanted}, not {held}")


def refuse_rows(table: pl.DataFrame, bad: pl.Expr, where: str, rule: str, column: str) -> None:
    """Raise InputError for the first row in which *bad* holds, naming the rule, the row and *column*'s value."""
    rows = table.select(bad.fill_null(False).arg_true().alias("row"))["row"]
    if len(rows) > 0:
        row = rows[0]
        others = f" (and {len(rows) - 1} more rows)" if len(rows) > 1 else ""
        raise InputError(f"{where}: {rule}, row {row} has {table.row(row, named=True)[column]!r}{others}")


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write *table* as Parquet (zstd, fixed row groups: the same table gives the same bytes).

    Raises RunError when the disk refuses.
    """
    try:
        table.write_parquet(path.absolute(), compression="zstd", row_group_size=1 << 20)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RunError(f"{path.name}: could not be written: {first_line(error)}") from None


def read_table(path: Path) -> pl.DataFrame:
    """Read one Parquet file. Raises InputError, naming the file, if it is absent or not Parquet."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        return scan_table(path).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {first_line(error)}") from None


def scan_table(*paths: Path) -> pl.LazyFrame:
    """Return the rows of Parquet files, one after the other, unread; every reader comes by here.

    Polars would take a name for a pattern (``W[1]`` is then ``W1``), and a ``~`` at its start for the home folder.
    """
    for path in paths:
        refuse_bytes(path.absolute())
    return pl.scan_parquet([path.absolute() for path in paths], glob=False)
