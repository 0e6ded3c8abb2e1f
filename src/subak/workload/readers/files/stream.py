"""Reads a plain, gz or xz file as blocks of whole lines, in bounded memory."""
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import polars as pl

from subak.errors import InputError, first_line
from subak.tables import ColumnType
from subak.workload.readers.files.xz import XzReader

Advance = Callable[[int], None]  # told how many more bytes of the files on disk were read
BLOCK_SIZE = 1 << 24  # bytes of text; 16 MiB keeps a part's memory small and polars busy
# Bytes of a line, four million durations of a .tr; a small compressed file may hold a line of any length, and what is
# made of it takes ten times as much memory.
LINE_BYTES_MAX = 1 << 25
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of UTF-8, which spreadsheets write; it is part of no field
GZIP_MAGIC, XZ_MAGIC = b"\x1f\x8b", b"\xfd7zXZ\x00"
# What else a file may begin with, and what to do about it
OTHERS = {b"\xff\xfe": "is UTF-16, as some programs of Windows write; it must be UTF-8",
          b"\xfe\xff": "is UTF-16; it must be UTF-8", b"PK\x03\x04": "is a zip file or a spreadsheet; it must be text",
          b"BZh": "is packed with bzip2; gzip and xz are read", b"\x28\xb5\x2f\xfd": "is packed with zstd; gzip and xz "
          "are read"}


class Block(NamedTuple):
    """Whole lines of a file."""

    path: Path
    line: int  # number of the first line in the file, from 1
    text: bytes
    word: str = "line"  # what is numbered


def ignore_progress(_read: int) -> None:
    """Take note of no progress."""


def blocks(path: Path, advance: Advance = ignore_progress, size: int = BLOCK_SIZE) -> Iterator[Block]:
    """Yield the file's lines in order, in blocks of about *size* bytes; line ends become a single newline.

    A mark of UTF-8 at the file's beginning is left out. Raises InputError naming the file when it cannot be read, its
    compressed form is damaged or cut off, or a line has more than LINE_BYTES_MAX bytes.
    """
    line, rest = 1, b""
    with _opened(path) as (raw, stream):
        for chunk in _chunks(raw, stream, size, advance):
            text = rest + chunk
            head, newline, tail = (text.removeprefix(BYTE_ORDER_MARK) if line == 1 else text).rpartition(b"\n")
            rest = tail
            if newline:
                yield Block(path, line, (head + newline).replace(b"\r\n", b"\n"))
                line += head.count(b"\n") + 1
            if len(rest) > LINE_BYTES_MAX:
                raise InputError(f"{path}, line {line}: must be at most {LINE_BYTES_MAX >> 20} MiB long")
    if rest:
        yield Block(path, line, rest.rstrip(b"\r") + b"\n")


def content(path: Path, advance: Advance = ignore_progress) -> bytes:
    """Return all that the file holds, unpacked, without a mark of UTF-8 at its beginning.

    Raises InputError as `blocks` does.
    """
    with _opened(path) as (raw, stream):
        return b"".join(_chunks(raw, stream, BLOCK_SIZE, advance)).removeprefix(BYTE_ORDER_MARK)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    try:
        with path.open("rb") as raw, _decompressed(raw, path) as stream:
            yield raw, stream
    except EOFError:
        raise InputError(f"{path}: the compressed file is cut off before its end") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise InputError(f"{path}: the compressed file is damaged: {first_line(error)}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or first_line(error)}") from None


def _decompressed(raw: BinaryIO, path: Path) -> BinaryIO:
    magic = raw.read(len(XZ_MAGIC))
    raw.seek(0)
    if magic.startswith(GZIP_MAGIC):
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if magic == XZ_MAGIC:
        return cast(BinaryIO, XzReader(raw))
    other = next((words for begin, words in OTHERS.items() if magic.startswith(begin)), None)
    if other is not None:
        raise InputError(f"{path}: {other}")
    if path.suffix in (".gz", ".xz"):
        raise InputError(f"{path}: the name says {path.suffix[1:]}, the content is not")
    return raw


def _chunks(raw: BinaryIO, stream: BinaryIO, size: int, advance: Advance) -> Iterator[bytes]:
    place = 0
    while chunk := stream.read(size):
        advance(raw.tell() - place)
        place = raw.tell()
        yield chunk


def csv_rows(block: Block, schema: Mapping[str, ColumnType]) -> pl.DataFrame:
    """Return a block of headerless CSV as the columns of *schema*.

    Raises InputError with the line that has too few or too many columns, or a value of another type.
    """
    if block.text.count(b",") != (len(schema) - 1) * block.text.count(b"\n"):
        _refuse_columns(block, len(schema))
    try:
        return pl.read_csv(block.text, has_header=False, schema=dict(schema), quote_char=None)
    except pl.exceptions.PolarsError as error:
        _refuse_columns(block, len(schema))
        _refuse_values(block, schema)
        raise InputError(f"{block.path}: not readable as CSV: {first_line(error)}") from None


def _refuse_columns(block: Block, count: int) -> None:
    for number, line in enumerate(block.text.removesuffix(b"\n").split(b"\n"), block.line):
        if line.count(b",") != count - 1:
            raise InputError(f"{block.path}, line {number}: needs {count} columns, has {line.count(b',') + 1}")


def _refuse_values(block: Block, schema: Mapping[str, ColumnType]) -> None:
    text = pl.read_csv(block.text, has_header=False, schema=dict.fromkeys(schema, pl.String), quote_char=None,
                       encoding="utf8-lossy")
    for name, kind in schema.items():
        wrong = pl.col(name).is_not_null() & pl.col(name).cast(kind, strict=False).is_null()
        refuse_lines(text, wrong, block, f"{name} must be a {_kind_name(kind)}", name)


def _kind_name(kind: ColumnType) -> str:
    if kind.is_integer():
        return "whole number"
    return "number" if kind.is_numeric() else "text"


def refuse_lines(table: pl.DataFrame, bad: pl.Expr, block: Block, rule: str, column: str) -> None:
    """Raise InputError for the first row of the block's *table* in which *bad* holds, naming its line and value."""
    rows = table.select(bad.fill_null(False).arg_true().alias("row"))["row"]
    if len(rows) > 0:
        row = int(rows[0])
        number = table["line"][row] if "line" in table.columns else block.line + row
        value = table[column][row]
        raise InputError(f"{block.path}, {block.word} {number}: {rule}, "
                         f"{'is missing' if value is None else f'not {value}'}")


def refuse_missing(table: pl.DataFrame, block: Block, *names: str) -> None:
    """Raise InputError for the first row of the block's *table* in which one of the columns is empty."""
    for name in names:
        refuse_lines(table, pl.col(name).is_null(), block, f"{name} must be given", name)


def refuse_negative(table: pl.DataFrame, block: Block, *names: str) -> None:
    """Raise InputError for the first row in which one of the columns is negative or no finite number."""
    for name in names:
        value = pl.col(name).cast(pl.Float64)
        refuse_lines(table, ~value.is_finite() | (value < 0), block, f"{name} must be a finite number, 0 or more", name)


def fields(block: Block) -> pl.DataFrame:
    """Return the block's non-empty lines as columns `line` and `fields`, a list of what white space separates."""
    whole = block.text.decode("utf-8", errors="replace").removesuffix("\n")
    text = pl.Series("text", [whole]).str.split("\n").explode()  # no other character ends a line
    numbered = pl.DataFrame({"line": pl.int_range(block.line, block.line + len(text), eager=True), "text": text})
    written, words = pl.col("text") != "", pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars()
    spaced = numbered.filter(written).with_columns(words).filter(written)
    return spaced.select("line", fields=pl.col("text").str.split(" "))


def single_file(source: Path) -> list[Path]:
    """Return the one file that *source* is. Raises InputError when it is a folder or absent."""
    if not source.is_file():
        raise InputError(f"{source}: {'is a folder; name one file' if source.is_dir() else 'no such file'}")
    return [source]


def parts(folder: Path) -> list[Path]:
    """Return the CSV files of a folder, plain or compressed, sorted by name; none if the folder is absent."""
    names = (".csv", ".csv.gz", ".csv.xz")
    return sorted(path for path in folder.glob("*") if path.name.endswith(names)) if folder.is_dir() else []
