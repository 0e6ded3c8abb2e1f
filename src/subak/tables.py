"""Checks the columns of workload and fleet tables, with worded errors, and reads and writes their Parquet files."""
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
from polars.datatypes import DataType, DataTypeClass

from subak.dates import Calendar
from subak.errors import InputError, RunError, first_line
from subak.output.places import refuse_bytes
from subak.resources import Resource

ColumnType = DataType | DataTypeClass
PACKED: dict[str, Any] = {"compression": "zstd", "compression_level": 2}  # two thirds of level 3's time, 4 % larger
RESOURCES_MAX = 64  # each is a column of every table, a panel of every chart and a row of the engine's arrays


class Rule(NamedTuple):
    """What every row of a table keeps."""

    broken: pl.Expr  # bool: whether a row breaks it; where that is unknown (null) it does not
    words: str
    column: str  # whose value is named where it is broken


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where data came from, on which terms, and what was dropped on the way."""

    name: str = "unnamed"
    origin: str = "not stated"
    licence: str = "not stated"
    notes: dict[str, Any] = msgspec.field(default_factory=dict)
    calendar: Calendar | None = None  # None: nobody knows which day time 0 is


def amount_columns(resources: tuple[Resource, ...]) -> dict[str, ColumnType]:
    """Return one int32 column a resource. Raises InputError unless each is named once, and 1 to RESOURCES_MAX are."""
    if len(resources) > RESOURCES_MAX:
        raise InputError(f"resources: must be at most {RESOURCES_MAX}, not {len(resources):,}")
    columns: dict[str, ColumnType] = {resource.name: pl.Int32 for resource in resources}
    if not resources or len(columns) != len(resources):
        raise InputError(f"resources: must be named once each, and at least one; got "
                         f"{[resource.name for resource in resources]}")
    return columns


def amount_rules(amounts: Iterable[str]) -> list[Rule]:
    """Return the rules of the columns of amounts, in units."""
    return [
        Rule(pl.col(name).is_null() | (pl.col(name) < 0), f"{name} must be a whole number of units, 0 or more", name)
        for name in amounts]


def in_units(table: pl.DataFrame, resources: tuple[Resource, ...], where: str,
             rounded: Callable[[np.ndarray, Resource, str], np.ndarray]) -> pl.DataFrame:
    """Return *table* with its float amounts (in ``resource.of``) as int32 units; absent columns stay absent.

    *rounded* is `asked_units` of requests, `held_units` of machines.
    """
    columns = [resource for resource in resources if resource.name in table.columns]
    try:
        amounts = {resource.name: table[resource.name].cast(pl.Float64).to_numpy() for resource in columns}
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{where}: an amount must be a number: {first_line(error)}") from None
    return table.with_columns(
        pl.Series(resource.name, rounded(amounts[resource.name], resource, where)) for resource in columns
    )


def shaped(table: pl.DataFrame, schema: Mapping[str, ColumnType], where: str) -> pl.DataFrame:
    """Return *table* with exactly the columns of *schema*, cast to its types.

    Raises InputError for a missing or unknown column, or a value its type cannot hold.
    """
    held = table.schema
    missing = [name for name in schema if name not in held]
    unknown = [name for name in held if name not in schema]
    if missing or unknown:
        raise InputError(f"{where}: columns must be {', '.join(schema)}"
                         + (f"; missing {', '.join(missing)}" if missing else "")
                         + (f"; unknown {', '.join(unknown)}" if unknown else ""))
    for name, kind in schema.items():
        _refuse_type(name, held[name], kind, where)
    refuse_rows(table, where, [
        Rule(pl.col(name) != pl.col(name).round(), f"{name} must be a whole number", name)
        for name, kind in schema.items() if held[name].is_float() and kind in (pl.Int32, pl.UInt32)])
    try:
        return table.select(pl.col(name).cast(kind) for name, kind in schema.items())
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{where}: a value does not fit its column: {first_line(error)}") from None


def _refuse_type(name: str, held: DataType, kind: ColumnType, where: str) -> None:
    """Raise InputError where a cast would mean something else: a duration becomes microseconds, a struct its text."""
    other = held.is_temporal() or held == pl.Boolean if kind.is_numeric() else False
    if other or (held.is_nested() and not kind.is_nested()):
        wanted = kind() if isinstance(kind, type) else kind
        raise InputError(f"{where}: {name} must be of the type {wanted}, not {held}")


def refuse_rows(table: pl.DataFrame, where: str, rules: Sequence[Rule]) -> None:
    """Raise InputError for the first rule that a row breaks, naming the rule, the row and the value.

    One query asks for all of them: a query costs more than to look at the rows of a small table.
    """
    if not rules:
        return
    broken = table.select(rule.broken.any().alias(str(number)) for number, rule in enumerate(rules)).row(0)
    for rule in itertools.compress(rules, broken):
        rows = table.select(rule.broken.fill_null(False).arg_true().alias("row"))["row"]
        others = f" (and {len(rows) - 1} more rows)" if len(rows) > 1 else ""
        value = table.row(rows[0], named=True)[rule.column]
        raise InputError(f"{where}: {rule.words}, row {rows[0]} has {value!r}{others}")


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write *table* as Parquet (zstd, fixed row groups: the same table gives the same bytes).

    Raises RunError when the disk refuses.
    """
    try:
        table.write_parquet(path.absolute(), row_group_size=1 << 20, **PACKED)
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
