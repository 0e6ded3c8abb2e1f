"""Reads JSON values one at a time, from lines, lists or sequences."""
import json
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from subak.errors import InputError, first_line
from subak.json_type import Json
from subak.workload.readers.files.stream import Advance, Block, blocks, content

SPACE = re.compile(r"\s*")
OBJECTS_MAX = 5_000_000  # of one JSON value: a job of a million attempts has four each; as many take a gigabyte
NO_FIELDS: dict[str, Any] = {}
T = TypeVar("T")


def json_files(source: Path) -> list[Path]:
    """Return the JSON files of a source, which is one or a folder of them. Raises InputError when there is none."""
    names = (".json", ".json.gz", ".json.xz")
    if source.is_dir():
        found = sorted(path for path in source.iterdir() if path.name.endswith(names) and path.is_file())
        if not found:
            raise InputError(f"{source}: needs a file *.json, plain, gz or xz")
        return found
    if not source.is_file():
        raise InputError(f"{source}: no such file or folder")
    return [source]


def json_values(path: Path, advance: Advance, known: frozenset[str]) -> Iterator[Json]:
    """Yield the JSON values of a plain, gz or xz file, which stand one after another, or in lists.

    Of objects only the *known* fields are kept, and of a list one value at a time, so that memory stays near the size
    of the text. Raises InputError naming the line where the text is no JSON, or is cut off.
    """
    text = _text(path, advance).rstrip()  # so that what is cut off is missed in its last line
    decoder = _Decoder(path, text, known)
    place = _after_space(text, 0)
    while place < len(text):
        if text[place] == "[":
            place = yield from _elements(decoder, place)
        else:
            value, place = decoder.value(place)
            yield value
        place = _after_space(text, place)


def _elements(decoder: "_Decoder", place: int) -> Generator[Any, None, int]:
    """Yield the elements of the list that begins at *place*, and return the place behind it."""
    text = decoder.text
    place = _after_space(text, place + 1)
    while not text.startswith("]", place):
        value, place = decoder.value(place)
        yield value
        place = _after_space(text, place)
        if text.startswith(",", place) and not text.startswith("]", _after_space(text, place + 1)):
            place = _after_space(text, place + 1)
        elif not text.startswith("]", place):
            raise decoder.error(place, "is no JSON, or is cut off: a list goes on with , or ends with ]")
    return place + 1


class _Decoder:
    """Decodes one JSON value of a text at a time, with the known fields of its objects, up to OBJECTS_MAX of them."""

    def __init__(self, path: Path, text: str, known: frozenset[str]) -> None:
        self.path, self.text, self.known = path, text, known
        self.escapes = "\\u" in text
        self.decode = json.JSONDecoder(object_hook=self._kept).raw_decode
        self.objects = 0

    def value(self, place: int) -> tuple[Json, int]:
        """Return the value at *place*, and the place behind it. Raises InputError where there is none."""
        self.objects = 0
        try:
            value, end = self.decode(self.text, place)
            if self.escapes:
                json.dumps(value, ensure_ascii=False).encode()  # halves of characters, which no table takes
        except json.JSONDecodeError as error:
            raise self.error(error.pos, f"is no JSON, or is cut off: {error.msg}") from None
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists without end
            raise self.error(place, f"JSON that cannot be read: {first_line(error)}") from None
        return value, end

    def error(self, place: int, words: str) -> InputError:
        """Return the error that names the line of *place*."""
        return InputError(f"{self.path}, line {self.text.count(chr(10), 0, place) + 1}: {words}")

    def _kept(self, found: dict[str, Any]) -> dict[str, Any]:
        self.objects += 1
        if self.objects > OBJECTS_MAX:
            raise ValueError(f"more than {OBJECTS_MAX:,} objects in one value")
        names = self.known & found.keys()
        return {name: found[name] for name in names} if names else NO_FIELDS


def _text(path: Path, advance: Advance) -> str:
    try:
        return content(path, advance).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: must be text in UTF-8, byte {error.start} is {error.object[error.start]:#04x}"
                         ) from None


def _after_space(text: str, place: int) -> int:
    found = SPACE.match(text, place)
    assert found is not None  # it matches nothing too
    return found.end()


def converted(value: object, kind: type[T], where: str) -> T:
    """Return a decoded JSON value as *kind*. Raises InputError, beginning with *where*, for another schema."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError(f"{where}: {first_line(error)}") from None


def json_lines(path: Path, kind: type[T], advance: Advance) -> Iterator[tuple[list[tuple[int, T]], Block]]:
    """Yield the lines of a file, each a JSON value, as pairs of a line's number and a *kind*; numbers may be quoted.

    Raises InputError naming the line that is no JSON, or has a field of another type.
    """
    decoder = msgspec.json.Decoder(kind, strict=False)
    for block in blocks(path, advance):
        lines = [(number, line) for number, line in enumerate(block.text.split(b"\n"), block.line) if line.strip()]
        if lines:
            yield [(number, _line_value(decoder, line, path, number)) for number, line in lines], block


def _line_value(decoder: msgspec.json.Decoder[T], line: bytes, path: Path, number: int) -> Any:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}, line {number}: {first_line(error)[:160]}") from None
