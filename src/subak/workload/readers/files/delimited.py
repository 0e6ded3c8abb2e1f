"""Reads delimited text and Parquet as columns of text, block by block, with line numbers.

Text may be quoted as RFC 4180 says: a separator, or the end of a line, between two double quotes is part of the field.
A Parquet file's values become text too, so that whoever reads them need not ask where they came from; its rows are
numbered from 1.
"""
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import InputError, first_line
from subak.tables import ColumnType, scan_table
from subak.workload.readers.files.faults import NONE, Rows, faults_of
from subak.workload.readers.files.stream import LINE_BYTES_MAX, Advance, Block, blocks, ignore_progress

SEPARATORS = (",", ";", "\t", "|")
PARQUET_MAGIC = b"PAR1"
BATCH_ROWS = 1 << 18  # of a Parquet file at a time
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
QUOTE, NEWLINE = ord('"'), ord("\n")


class Dialect(NamedTuple):
    """How a file is written."""

    separator: str = ","
    quoted: bool = False
    names: tuple[str, ...] = ()  # of the columns; without any, the first line has them
    free: str = ""  # a column in which a separator may stand, where nothing is quoted


class _Whole(NamedTuple):
    """The rows of a block: their text, the line of each, and how many fields each has."""

    text: bytes
    lines: np.ndarray
    counts: np.ndarray


def is_parquet(path: Path) -> bool:
    """Return whether a file begins as Parquet does. Raises InputError when it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or first_line(error)}") from None


def column_names(path: Path, dialect: Dialect) -> tuple[str, ...]:
    """Return the names of the columns. Raises InputError where there are none, or one stands twice."""
    if is_parquet(path):
        return tuple(_flattened(path))
    if dialect.names:
        return dialect.names
    first = next(_blocks(path, dialect, ignore_progress), None)
    return () if first is None else _header(first, dialect)[0]


def guessed_separator(path: Path) -> str:
    """Return which of SEPARATORS the first line has most often, the comma where it has none."""
    head = head_line(path)
    return max(SEPARATORS, key=lambda sign: head.count(sign.encode()))


def head_line(path: Path) -> bytes:
    """Return the first line of a text file that is not empty; nothing of an empty file."""
    first = next(blocks(path), None)
    return b"" if first is None else first.text.lstrip(b"\n").partition(b"\n")[0]


def text_rows(path: Path, dialect: Dialect, wanted: tuple[str, ...], advance: Advance) -> Iterator[Rows]:
    """Yield the *wanted* columns of a file's rows, block by block. Raises InputError naming the line of a mistake."""
    if is_parquet(path):
        yield from _parquet_rows(path, wanted, advance)
        return
    names = dialect.names
    for block in _blocks(path, dialect, advance):
        rest = block
        if not names:
            names, rest = _header(block, dialect)
        if missing := [name for name in wanted if name not in names]:
            raise InputError(f"{path}: has no column {missing[0][:60]}; {_names_said(names)}")
        whole, faults = _fitted(_whole(rest, dialect), dialect, names)
        if len(whole.lines):
            yield Rows(_table(whole, rest, dialect, names, wanted), rest, faults)


def listed(names: tuple[str, ...]) -> str:
    """Return names for a message, as many as fit a line; those that are empty are left out."""
    text = ", ".join(filter(None, names))
    return text if len(text) <= 120 else text[:117] + "..."


# Text


def _blocks(path: Path, dialect: Dialect, advance: Advance) -> Iterator[Block]:
    """Yield blocks that end where a row ends."""
    rest = b""
    line = 1
    for block in blocks(path, advance):
        if not dialect.quoted:
            yield block
            continue
        text = rest + block.text
        ends = _row_ends(text)
        cut = int(ends[-1]) + 1 if len(ends) else 0
        if cut:
            yield Block(path, line, text[:cut])
        line, rest = line + text.count(b"\n", 0, cut), text[cut:]
        if len(rest) > LINE_BYTES_MAX:
            break
    if rest:
        raise InputError(f"{path}, line {line}: a quote is not closed")


def _inside(signs: np.ndarray) -> np.ndarray:
    """Return uint8[byte]: 1 between two quotes."""
    inside: np.ndarray = np.bitwise_xor.accumulate((signs == QUOTE).view(np.uint8))
    return inside


def _row_ends(text: bytes) -> np.ndarray:
    signs = np.frombuffer(text, np.uint8)
    newline = signs == NEWLINE
    return np.flatnonzero(newline & (_inside(signs) == 0) if b'"' in text else newline)


def _whole(block: Block, dialect: Dialect) -> _Whole:
    """Return the rows of a block, without those that are empty."""
    signs = np.frombuffer(block.text, np.uint8)
    newline, separator = signs == NEWLINE, signs == ord(dialect.separator)
    every = np.flatnonzero(newline)
    if dialect.quoted and b'"' in block.text:
        outside = _inside(signs) == 0
        newline, separator = newline & outside, separator & outside
    ends = np.flatnonzero(newline)
    begins = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    filled = ends > begins
    commas = np.flatnonzero(separator)
    counts = np.searchsorted(commas, ends) - np.searchsorted(commas, begins) + 1
    lines = block.line + np.searchsorted(every, begins)
    text = block.text
    if not filled.all():
        kept = np.ones(len(signs), bool)
        kept[ends[~filled]] = False
        text = signs[kept].tobytes()
    return _Whole(text, lines[filled], counts[filled])


def _header(block: Block, dialect: Dialect) -> tuple[tuple[str, ...], Block]:
    """Return the names in the first row that is not empty, and the block without it."""
    text = block.text.lstrip(b"\n")
    line = block.line + len(block.text) - len(text)
    if not text:
        raise InputError(f"{block.path}: begins with empty lines, where names of columns must be")
    end = int(_row_ends(text)[0]) if dialect.quoted else text.index(b"\n")
    head, rest = text[:end], text[end + 1:]
    text_head = io.StringIO(head.decode("utf-8", errors="replace"), newline="")
    try:
        found = list(csv.reader(text_head, delimiter=dialect.separator,
                                quoting=csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE))
    except csv.Error:
        found = []
    if len(found) != 1:  # a carriage return ends a line for csv, and a field may be too long for it
        raise InputError(f"{block.path}, line {line}: cannot be read as names of columns; does each line end with a "
                         "newline?")
    names = tuple(name.strip() for name in found[0])
    twice = next((name for place, name in enumerate(names) if name and name in names[:place]), None)
    if twice is not None:
        raise InputError(f"{block.path}, line {line}: names the column {twice[:60]!r} twice")
    return names, Block(block.path, line + head.count(b"\n") + 1, rest)


def _fitted(whole: _Whole, dialect: Dialect, names: tuple[str, ...]) -> tuple[_Whole, pl.DataFrame]:
    """Return the rows with as many fields as there are names, and the faults of those that had more or fewer.

    A row with too many has them in the column of free text, if there is one; otherwise it is left without fields.
    """
    wrong = np.flatnonzero(whole.counts != len(names))
    if not len(wrong):
        return whole, NONE
    ends = _row_ends(whole.text) if dialect.quoted else np.flatnonzero(np.frombuffer(whole.text, np.uint8) == NEWLINE)
    begins = np.concatenate([[0], ends[:-1] + 1])
    sign = dialect.separator.encode()
    empty = sign * (len(names) - 1)
    pieces, place, bad = [], 0, []
    for row in wrong.tolist():
        more = int(whole.counts[row]) - len(names)
        pieces.append(whole.text[place:begins[row]])
        place = int(ends[row])
        if more > 0 and dialect.free in names:
            pieces.append(_joined(whole.text[begins[row]:place].split(sign), names.index(dialect.free), more, sign))
        else:
            pieces.append(empty)
            bad.append(row)
    text = b"".join([*pieces, whole.text[place:]])
    counts = pl.Series(whole.counts[bad]).cast(pl.String)
    rule = f"must have {len(names)} columns"
    faults = faults_of(pl.Series(bad, dtype=pl.UInt32), rule, "columns", counts) if bad else NONE
    return _Whole(text, whole.lines, whole.counts), faults


def _joined(fields: list[bytes], place: int, more: int, sign: bytes) -> bytes:
    """Return a row in which the field at *place* takes in as many *more*."""
    return sign.join([*fields[:place], b" ".join(fields[place:place + more + 1]), *fields[place + more + 1:]])


def _names_said(names: tuple[str, ...]) -> str:
    """Return which columns there are, or what to do where the first line is none of names."""
    if any(NUMBER.fullmatch(name) for name in names):
        return ("its first line was taken for the names of the columns; if it has none, give them, as --columns "
                "job,cpu,...")
    return f"it has {listed(names)}"


def _table(whole: _Whole, block: Block, dialect: Dialect, names: tuple[str, ...],
           wanted: tuple[str, ...]) -> pl.DataFrame:
    try:
        table = pl.read_csv(whole.text, has_header=False, schema=dict.fromkeys(map(str, range(len(names))), pl.String),
                            separator=dialect.separator, quote_char='"' if dialect.quoted else None,
                            encoding="utf8-lossy", truncate_ragged_lines=True)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{block.path}, from line {block.line}: not readable: {first_line(error)[:120]}") from None
    if len(table) != len(whole.lines):
        raise InputError(f"{block.path}, from line {block.line}: a quote stands in the middle of a field")
    chosen = {name: pl.col(str(names.index(name))).str.strip_chars() for name in wanted}
    filled = [pl.when(text != "").then(text).alias(name) for name, text in chosen.items()]
    return table.select(pl.Series("line", whole.lines), *filled)


# Parquet


def _scanned(path: Path) -> pl.Schema:
    try:
        return scan_table(path).collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {first_line(error)[:120]}") from None


def _parquet_rows(path: Path, wanted: tuple[str, ...], advance: Advance) -> Iterator[Rows]:
    fields = _flattened(path)
    if missing := [name for name in wanted if name not in fields]:
        raise InputError(f"{path}: has no column {missing[0][:60]}; it has {listed(tuple(fields))}")
    texts = [_as_text(name, *fields[name], path).alias(name) for name in wanted]
    size, first = path.stat().st_size, 0
    while True:
        try:
            table = scan_table(path).slice(first, BATCH_ROWS).select(pl.int_range(pl.len()).alias("line") + first + 1,
                                                                     *texts).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"{path}: not a readable Parquet file: {first_line(error)[:120]}") from None
        if table.is_empty():
            break
        yield Rows(table, Block(path, first + 1, b"", "row"))
        first += len(table)
    advance(size)


def _flattened(path: Path) -> dict[str, tuple[pl.Expr, pl.DataType]]:
    """Return the columns by name; those of a struct by its name, a dot and theirs."""
    found: dict[str, tuple[pl.Expr, pl.DataType]] = {}
    waiting = [(name, pl.col(name), kind) for name, kind in _scanned(path).items()]
    while waiting:
        name, column, kind = waiting.pop(0)
        if isinstance(kind, pl.Struct):
            waiting[:0] = [(f"{name}.{each.name}", column.struct.field(each.name), _instance(each.dtype))
                           for each in kind.fields]
        else:
            found[name] = (column, kind)
    return found


def _instance(kind: ColumnType) -> pl.DataType:
    return kind() if isinstance(kind, type) else kind


def _as_text(name: str, column: pl.Expr, kind: pl.DataType, path: Path) -> pl.Expr:
    """Return a column as text: of what lasts the seconds, of lists of structs their JSON."""
    if isinstance(kind, pl.List) and isinstance(kind.inner, pl.Struct):
        inner = column.list.eval(pl.element().struct.json_encode()).list.join(",")
        return pl.concat_str([pl.lit("["), inner, pl.lit("]")])
    if kind.is_nested() or kind == pl.Binary:
        raise InputError(f"{path}: the column {name[:60]} holds {str(kind)[:60]}; it must hold numbers, text or times")
    if kind == pl.Duration:
        return (column.dt.total_microseconds() / 1e6).cast(pl.String)
    return column.cast(pl.String)
