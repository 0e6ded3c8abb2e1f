"""Parses YAML (a safe subset) or JSON into nodes that know their lines.

A scalar keeps the text that was written, so that a version 5.10 stays one, ``no`` is a word and 022 has its zero. Not
accepted: tags, keys that are not text, a key twice, several documents. Aliases count as often as they are used.
"""
import json
import re
from collections.abc import Iterator
from typing import Any

import yaml
from msgspec import Struct, field

from subak.errors import InputError
from subak.output.plain import shortened

TEXT_BYTES_MAX = 1 << 20
ITEMS_MAX = 200_000
DEPTH_MAX = 20
# YAML 1.2's core schema, without octal and hexadecimal numbers, infinity and NaN.
NULL, BOOLEAN = re.compile("~|null|Null|NULL|"), re.compile("true|True|TRUE|false|False|FALSE")
NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
PAIR = re.compile(r"\\\\|\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")  # one character of JSON
UNUSUAL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # in strings of JSON; YAML ends lines with some
HALF = re.compile("[\ud800-\udfff]")  # of a character
SHOWN_LETTERS = 60  # characters of a value in an error
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # only its parser, which is fast where it is machine code


class Scalar(Struct, frozen=True):
    """A value that has no parts, as text; *is_plain* where it was written without quotes."""

    line: int
    text: str
    is_plain: bool = False
    nodes: int = 1

    @property
    def is_null(self) -> bool:
        """Whether nothing is said."""
        return self.is_plain and NULL.fullmatch(self.text) is not None

    @property
    def is_boolean(self) -> bool:
        """Whether it is true or false."""
        return self.is_plain and BOOLEAN.fullmatch(self.text) is not None

    @property
    def is_number(self) -> bool:
        """Whether it is a number of JSON or YAML."""
        return self.is_plain and NUMBER.fullmatch(self.text) is not None

    def __str__(self) -> str:
        if self.is_null:
            return "nothing"
        return shortened(self.text if self.is_number or self.is_boolean else repr(self.text), SHOWN_LETTERS)


class Sequence(Struct, frozen=True):
    """A list; *nodes* counts it and all below it."""

    line: int
    parts: list["Node"] = field(default_factory=list)
    nodes: int = 1

    def __str__(self) -> str:
        return "a list"


class Mapping(Struct, frozen=True):
    """A map from text to nodes; *key_lines* says where each key is."""

    line: int
    parts: dict[str, "Node"] = field(default_factory=dict)
    key_lines: dict[str, int] = field(default_factory=dict)
    nodes: int = 1

    def __str__(self) -> str:
        return "a map"


Node = Scalar | Sequence | Mapping


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


# -- JSON without lines ------------------------------------------------------------------------------------------------


def tree_of_json(text: str) -> Node | None:
    """Return the tree of a JSON text with 0 for all lines, in a third of the time; None where `read_tree` must judge.

    What it returns may be nested too deep: no field of a job is.
    """
    if _size(text) > TEXT_BYTES_MAX:
        return None
    try:
        tree = _node(JSON.decode(text))
    except (ValueError, RecursionError):
        return None
    return tree if tree.nodes <= ITEMS_MAX else None


def _node(value: Any) -> Any:
    """Return the node of a value whose maps and numbers are nodes already. Raises ValueError for half a character."""
    if isinstance(value, str):
        if not value.isascii() and HALF.search(value):
            raise ValueError
        return Scalar(0, value)
    if isinstance(value, list):
        parts = [_node(part) for part in value]
        return Sequence(0, parts, sum(part.nodes for part in parts) + 1)
    if value is None or isinstance(value, bool):
        return _as_written(json.dumps(value))
    return value  # a map's or a number's


def _mapping(pairs: list[tuple[str, Any]]) -> Mapping:
    """Return the node of a map. Raises ValueError for a key that occurs twice."""
    parts = {_node(key).text: _node(value) for key, value in pairs}
    if len(parts) < len(pairs):
        raise ValueError
    return Mapping(0, parts, dict.fromkeys(parts, 0), sum(part.nodes + 1 for part in parts.values()) + 1)


def _as_written(text: str) -> Scalar:
    """Return the node of a number, or of what some write for none."""
    return Scalar(0, text, True)


JSON = json.JSONDecoder(object_pairs_hook=_mapping, parse_int=_as_written, parse_float=_as_written,
                        parse_constant=_as_written)


# -- all texts, with lines ---------------------------------------------------------------------------------------------


class _MistakeError(Exception):
    """What the text breaks: line and words."""


def read_tree(text: str, file: str) -> Node:
    """Return the tree of a text. Raises InputError with *file*, line and rule."""
    if (size := _size(text)) > TEXT_BYTES_MAX:
        raise InputError(f"{file}: a job file must be at most {TEXT_BYTES_MAX:,} bytes, not {size:,}")
    try:
        return _Builder(iter(LOADER(_as_yaml(text)).get_event, None)).document()
    except _MistakeError as mistake:
        line, words = mistake.args
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        words = f"this is not YAML: {error.problem or error.context}"
    except (yaml.reader.ReaderError, UnicodeError):
        line, words = _unprintable(text)
    raise InputError(f"{file}:{line}: {words}")


def _as_yaml(text: str) -> str:
    """Return a JSON text with what YAML does not take written in another way, on the same lines; else the text."""
    text = text.removeprefix("\ufeff")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    spaced = UNUSUAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\t", " "))
    return PAIR.sub(_one_character, spaced)


def _one_character(pair: re.Match[str]) -> str:
    if pair[1] is None:
        return pair[0]
    return bytes.fromhex(pair[1] + pair[2]).decode("utf-16-be")


def _unprintable(text: str) -> tuple[int, str]:
    """Return the line and words for the first character that YAML does not allow."""
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    place = found.start() if found else 0
    return text.count("\n", 0, place) + 1, f"must be text that can be printed, and has {text[place:place + 1]!r}"


class _Builder:
    """Makes nodes of a parser's events, and stops as soon as there are too many."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.anchors: dict[str, Node | None] = {}  # None while a node is not complete
        self.nodes = 0

    def document(self) -> Node:
        """Return the only document."""
        next(self.events)
        if isinstance(event := next(self.events), yaml.StreamEndEvent):
            raise _MistakeError(1, "must hold a job, and is empty")
        root = self._node(next(self.events), 1)
        next(self.events)
        if not isinstance(event := next(self.events), yaml.StreamEndEvent):
            raise _MistakeError(_line(event), "must hold one job, and another document begins here")
        return root

    def _node(self, event: Any, depth: int) -> Node:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), line)
        self._count(1, line)
        if event.tag is not None:
            raise _MistakeError(line, f"must not have tags, and has {event.tag!r}")
        if depth > DEPTH_MAX:
            raise _MistakeError(line, f"must not be nested more than {DEPTH_MAX} deep")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        node = self._scalar(event, line) if isinstance(event, yaml.ScalarEvent) else self._parts(event, line, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _parts(self, event: Any, line: int, depth: int) -> Node:
        before = self.nodes
        if isinstance(event, yaml.SequenceStartEvent):
            parts = []
            while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
                parts.append(self._node(event, depth + 1))
            return Sequence(line, parts, self.nodes - before + 1)
        named: dict[str, Node] = {}
        key_lines: dict[str, int] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(self._node(event, depth + 1), key_lines)
            key_lines[key] = _line(event)
            named[key] = self._node(next(self.events), depth + 1)
        return Mapping(line, named, key_lines, self.nodes - before + 1)

    @staticmethod
    def _scalar(event: yaml.ScalarEvent, line: int) -> Scalar:
        if not event.value.isascii() and HALF.search(event.value):
            raise _MistakeError(line, f"must be text, and has half of a character in {event.value[:60]!r}")
        return Scalar(line, event.value, bool(event.implicit[0]))

    @staticmethod
    def _key(key: Node, known: dict[str, int]) -> str:
        if not isinstance(key, Scalar):
            raise _MistakeError(key.line, f"a key must be text, not {key}")
        if key.text == "<<" and key.is_plain:
            raise _MistakeError(key.line, "must not have merge keys (<<): what stages share is written once, "
                                "beside them")
        if key.text in known:
            raise _MistakeError(key.line, f"a key must not occur twice, and {key} is in line {known[key.text]} already")
        return key.text

    def _alias(self, anchor: str, line: int) -> Node:
        node = self.anchors.get(anchor)
        if node is None:
            raise _MistakeError(line, f"an alias must name an anchor of a value that ends before it, not {anchor!r}")
        self._count(node.nodes, line)
        return node

    def _count(self, nodes: int, line: int) -> None:
        self.nodes += nodes
        if self.nodes > ITEMS_MAX:
            raise _MistakeError(line, f"must have at most {ITEMS_MAX:,} values, what an alias stands for counted again")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
