"""Reads the exported tables of Google 2019: JSON lines, CSV or Parquet.

Whole numbers may stand in quotes, as BigQuery writes them; an event or a relation may be its number or its name. A CSV
has nested fields flattened, with a dot or an underscore (resource_request.cpus), and constraints, if any, as JSON.
"""
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from subak.errors import InputError
from subak.tables import ColumnType
from subak.workload.readers.files.delimited import Dialect, column_names, is_parquet, listed, text_rows
from subak.workload.readers.files.faults import Rows
from subak.workload.readers.files.json_text import json_lines
from subak.workload.readers.files.stream import Advance, Block, refuse_lines

Predicate = tuple[str, str, str]  # attribute, operator, value
PARTS = (".json", ".jsonl", ".ndjson", ".csv", ".parquet")
PACKED = ("", ".gz", ".xz")
EVENT_TYPES = ("SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING",
               "UPDATE_RUNNING")
MACHINE_EVENT_TYPES = ("EVENT_TYPE_UNKNOWN", "ADD", "REMOVE", "UPDATE")
RELATIONS = ("EQUAL", "NOT_EQUAL", "LESS_THAN", "GREATER_THAN", "LESS_THAN_EQUAL", "GREATER_THAN_EQUAL", "PRESENT",
             "NOT_PRESENT")
OPERATORS = ("=", "!=", "<", ">", "<=", ">=")  # of the first six relations


class Amounts(msgspec.Struct, frozen=True):
    """Resources: what is asked for, or there."""

    cpus: float | None = None
    memory: float | None = None


class Constraint(msgspec.Struct, frozen=True):
    """MachineConstraint of the format."""

    name: str | None = None
    value: str | None = None
    relation: int | str | None = None


NOTHING = Amounts()


class InstanceEvent(msgspec.Struct, frozen=True):
    """InstanceEvent of the format: what is read of it."""

    time: int | None = None
    type: int | str | None = None
    collection_id: int | None = None
    collection_type: int | str | None = None
    priority: int | None = None
    scheduling_class: int | None = None
    alloc_collection_id: int | None = None
    instance_index: int | None = None
    resource_request: Amounts | None = None
    constraint: tuple[Constraint, ...] | None = None


class CollectionEvent(msgspec.Struct, frozen=True):
    """CollectionEvent of the format: what is read of it."""

    collection_id: int | None = None
    user: str | None = None


class MachineEvent(msgspec.Struct, frozen=True):
    """MachineEvent of the format: what is read of it."""

    time: int | None = None
    machine_id: int | None = None
    type: int | str | None = None
    platform_id: str | None = None
    capacity: Amounts | None = None


class MachineAttribute(msgspec.Struct, frozen=True):
    """MachineAttribute of the format."""

    time: int | None = None
    machine_id: int | None = None
    name: str | None = None
    value: str | None = None
    deleted: bool | None = None


class Table(NamedTuple):
    """How a table is read: the type of a JSON line, and the columns of every row by the path of each field."""

    kind: type[msgspec.Struct]
    needed: tuple[str, ...]  # columns that a CSV or Parquet file must have, by our names
    columns: dict[str, tuple[str, ColumnType]]  # by our name: the path, and the type


INSTANCES = Table(InstanceEvent, ("time", "event", "job", "index", "cpu", "memory"), {
    "time": ("time", pl.Int64), "event": ("type", pl.String), "job": ("collection_id", pl.Int64),
    "collection": ("collection_type", pl.String), "priority": ("priority", pl.Int64),
    "class": ("scheduling_class", pl.Int64),
    "alloc": ("alloc_collection_id", pl.Int64), "index": ("instance_index", pl.Int64),
    "cpu": ("resource_request.cpus", pl.Float64), "memory": ("resource_request.memory", pl.Float64),
    "constraint": ("constraint", pl.Object)})
COLLECTIONS = Table(CollectionEvent, ("job", "user"), {"job": ("collection_id", pl.Int64), "user": ("user", pl.String)})
MACHINES = Table(MachineEvent, ("time", "machine", "event", "cpu", "memory"), {
    "time": ("time", pl.Int64), "machine": ("machine_id", pl.Int64), "event": ("type", pl.String),
    "platform": ("platform_id", pl.String), "cpu": ("capacity.cpus", pl.Float64),
    "memory": ("capacity.memory", pl.Float64)})
ATTRIBUTES = Table(MachineAttribute, ("time", "machine", "attribute", "value"), {
    "time": ("time", pl.Int64), "machine": ("machine_id", pl.Int64), "attribute": ("name", pl.String),
    "value": ("value", pl.String), "deleted": ("deleted", pl.Boolean)})


def parts(source: Path, name: str) -> list[Path]:
    """Return the files of a table: those in the folder of its name, and those whose names begin with its."""
    endings = tuple(part + packed for part in PARTS for packed in PACKED)
    listed = [*source.glob(f"{name}/*"), *source.glob(f"{name}*")] if source.is_dir() else []
    return sorted(path for path in listed if path.name.endswith(endings))


class Sets:
    """The distinct sets of constraints, numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Predicate, ...], int] = {}

    def number(self, constraints: tuple[Constraint, ...] | None) -> int | None:
        """Return the number of a set, None of none. Raises ValueError for what is no constraint."""
        if not constraints:
            return None
        key = tuple(sorted({_predicate(each) for each in constraints}))
        return self.numbers.setdefault(key, len(self.numbers))

    def texts(self) -> list[list[dict[str, str]]]:
        """Return the sets as a workload has them."""
        return [[{"attribute": name, "operator": operator, "value": value} for name, operator, value in key]
                for key in self.numbers]


def _predicate(constraint: Constraint) -> Predicate:
    relation = place_of(constraint.relation or 0, RELATIONS)
    if not constraint.name or relation is None:
        raise ValueError(f"a constraint needs a name and a relation from 0 to 7, not {constraint.name!r:.40} "
                         f"{constraint.relation!r:.20}")
    if relation >= len(OPERATORS):
        return (constraint.name, "!=" if relation == RELATIONS.index("PRESENT") else "=", "")
    value = constraint.value or ""
    if relation >= 2 and not _is_number(value):
        raise ValueError(f"a constraint that orders needs a number, not {value!r:.40}")
    return (constraint.name, OPERATORS[relation], value)


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def place_of(value: int | str, names: tuple[str, ...]) -> int | None:
    """Return the number of an enumeration's member, which is given as a number or a name; None where it is none."""
    text = str(value)
    if text in names:
        return names.index(text)
    return int(text) if text.isascii() and text.isdecimal() and int(text) < len(names) else None


class Part(NamedTuple):
    """Some rows of a file, as the table's columns, and where they are."""

    table: pl.DataFrame
    block: Block


def table_rows(path: Path, table: Table, sets: Sets, advance: Advance) -> Iterator[Part]:
    """Yield a file's rows as the table's columns, with `line`; constraints as the number of their set.

    Raises InputError naming the line of a field that is of another type.
    """
    suffixes = path.name.removesuffix(".gz").removesuffix(".xz")
    if is_parquet(path) or suffixes.endswith(".csv"):
        yield from _flat_rows(path, table, sets, advance)
        return
    for values, block in json_lines(path, table.kind, advance):
        yield Part(_of_values(values, table, sets, block), block)


def _of_values(values: list[tuple[int, Any]], table: Table, sets: Sets, block: Block) -> pl.DataFrame:
    columns: dict[str, pl.Series] = {"line": pl.Series([line for line, _ in values], dtype=pl.Int64)}
    for name, (path, kind) in table.columns.items():
        first, _, rest = path.partition(".")
        found = [getattr(value, first) for _, value in values]
        if rest:
            found = [getattr(value or NOTHING, rest) for value in found]
        if kind == pl.Object:
            columns[name] = pl.Series([_numbered(sets, each, block, line) for (line, _), each in
                                       zip(values, found, strict=True)], dtype=pl.Int64)
        else:
            texts = [None if each is None else str(each) for each in found] if kind == pl.String else found
            columns[name] = pl.Series(texts, dtype=kind)
    return pl.DataFrame(columns)


def _numbered(sets: Sets, constraints: tuple[Constraint, ...] | None, block: Block, line: int) -> int | None:
    try:
        return sets.number(constraints)
    except ValueError as error:
        raise InputError(f"{block.path}, {block.word} {line}: {error}") from None


def _flat_rows(path: Path, table: Table, sets: Sets, advance: Advance) -> Iterator[Part]:
    dialect = Dialect(quoted=True)
    there = column_names(path, dialect)
    sources = {name: next((each for each in (said, said.replace(".", "_")) if each in there), None)
               for name, (said, _) in table.columns.items()}
    missing = [table.columns[name][0] for name in table.needed if sources[name] is None]
    if missing:
        raise InputError(f"{path}: has no column {missing[0]}; it has {listed(there)}")
    for rows in text_rows(path, dialect, tuple(filter(None, sources.values())), advance):
        columns = [_typed(rows, name, source, table.columns[name][1], sets) for name, source in sources.items()]
        _refuse_faults(rows)
        yield Part(rows.table.select("line").with_columns(columns), rows.block)


def _refuse_faults(rows: Rows) -> None:
    """Raise InputError for the first row that has too few or too many fields."""
    for row, rule, _, value in rows.faults.head(1).rows():
        raise InputError(f"{rows.block.path}, {rows.block.word} {rows.table['line'][row]}: {rule}, not {value}")


def _typed(rows: Rows, name: str, source: str | None, kind: ColumnType, sets: Sets) -> pl.Series:
    """Return a column of its type. Raises InputError for a field that is none."""
    wanted = pl.Int64 if kind == pl.Object else kind
    if source is None:
        return pl.Series(name, [None] * len(rows.table), dtype=wanted)
    texts = rows.table[source]
    if kind == pl.Object:
        return pl.Series(name, [_numbered(sets, _constraints(text, rows.block, line), rows.block, line)
                                for line, text in zip(rows.table["line"], texts, strict=True)], dtype=pl.Int64)
    if kind == pl.Boolean:
        typed = texts.str.to_lowercase().replace_strict({"true": True, "1": True, "false": False, "0": False},
                                                        default=None, return_dtype=pl.Boolean)
    else:
        typed = texts.cast(kind, strict=False)
    wrong = texts.is_not_null() & typed.is_null()
    if wrong.any():
        word = "true or false" if kind == pl.Boolean else "a whole number" if kind == pl.Int64 else "a number"
        table = rows.table.with_columns(wrong=wrong)
        refuse_lines(table, pl.col("wrong"), rows.block, f"{source} must be {word}", source)
    return typed.alias(name)


def _constraints(text: str | None, block: Block, line: int) -> tuple[Constraint, ...] | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=tuple[Constraint, ...], strict=False)
    except (msgspec.DecodeError, RecursionError):
        raise InputError(f"{block.path}, {block.word} {line}: constraint must be a list of name, value and relation as "
                         f"JSON, not {text[:60]!r}") from None
