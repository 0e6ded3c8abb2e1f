"""Declares the single values of a job file: how each is read, its rule, its JSON schema.

A field of `form.py` has a leaf in its type. The words complete "must be ..."; what reads raises ValueError.
"""
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from subak.live.jobfile import quantities
from subak.live.jobfile.spec import (
    ALL_TASKS_MAX,
    AMOUNT_MAX,
    API_VERSION,
    CPU,
    KIND,
    LOSSES_MAX,
    MEMORY,
    OPERATORS,
)
from subak.live.jobfile.tree import Scalar
from subak.quantities import DURATION_FORM, DURATION_S_MAX, QUEUE_LEVELS_MAX

ARGUMENT_BYTES_MAX = 131_071  # Linux's, of an argument or NAME=value, without the zero at its end
NAME_SIZE = 63  # characters, as of Kubernetes's labels
WORDS_SIZE = 1024  # characters of a queue, an attribute, a variable's name: `Name` of the agent
FOLDER_BYTES_MAX = 4095
ANNOTATION_BYTES_MAX = 65_536
NAME_FORM = rf"[A-Za-z0-9](?:[A-Za-z0-9_.-]{{0,{NAME_SIZE - 2}}}[A-Za-z0-9])?"
KEY_FORM = rf"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{{0,251}}[A-Za-z0-9])?/)?{NAME_FORM}"
QUEUE_PART = r"[^/\x00-\x1f\x7f]+"
QUEUE_FORM = rf"{QUEUE_PART}(?:/{QUEUE_PART}){{0,{QUEUE_LEVELS_MAX - 1}}}"
VARIABLE_FORM = rf"(?!SUBAK_)[^=\x00]{{1,{WORDS_SIZE}}}"
ATTRIBUTE_FORM = rf"[^\x00-\x1f\x7f]{{1,{WORDS_SIZE}}}"
USER_FORM = r"[^\s:/\x00-\x1f\x7f-][^\s:/\x00-\x1f\x7f]{0,255}"
RESOURCE_FORM = rf"[A-Za-z_][A-Za-z0-9_]{{0,{NAME_SIZE - 1}}}"
UMASK_FORM = "0o?[0-7]{1,3}"
UNLIMITED = "unlimited"
Json = dict[str, Any]


class Leaf(NamedTuple):
    """A rule for one value."""

    rule: str
    read: Callable[[Scalar], Any]
    schema: Json


# -- text: any scalar will do, and counts as it was written ------------------------------------------------------------

ANY_SCALAR: Json = {"type": ["string", "number", "boolean"]}  # of numbers, only the reader knows whether they are names


def _text(form: str, rule: str, schema: Json, characters_max: int = WORDS_SIZE, bytes_max: int | None = None) -> Leaf:
    whole = re.compile(form, re.DOTALL)

    def _read(scalar: Scalar) -> str:
        text = scalar.text
        if scalar.is_null or not whole.fullmatch(text) or len(text) > (bytes_max or characters_max):
            raise ValueError
        if bytes_max is not None and len(text.encode()) > bytes_max:
            raise ValueError
        return text
    return Leaf(rule, _read, {**schema, "pattern": pattern_of(form), "maxLength": bytes_max or characters_max})


def pattern_of(form: str) -> str:
    """Return a form as JSON schema has it, which looks for it anywhere in a text."""
    return f"^(?:{form})(?!\n)$"


def _long(what: str, bytes_max: int, form: str = r"[^\x00]*", schema: Json = ANY_SCALAR) -> Leaf:
    return _text(form, f"{what} of at most {bytes_max:,} bytes, without NUL characters", schema, bytes_max=bytes_max)


NAME = _text(NAME_FORM, f"1 to {NAME_SIZE} letters, digits, '-', '_' or '.', with a letter or digit first and last",
             ANY_SCALAR)
LABEL_KEY = _text(KEY_FORM, f"a name of at most {NAME_SIZE} letters, digits, '-', '_' or '.', perhaps after a prefix "
                  "and '/', as in example.com/team", ANY_SCALAR)
LABEL = _text(f"(?:{NAME_FORM})?", f"empty, or {NAME.rule}", ANY_SCALAR)
ANNOTATION = _long("text", ANNOTATION_BYTES_MAX)
QUEUE = _text(QUEUE_FORM, f"a path of at most {QUEUE_LEVELS_MAX} names and {WORDS_SIZE:,} characters, "
              "such as org/department/user", ANY_SCALAR)
ARGUMENT = _long("text", ARGUMENT_BYTES_MAX)
VARIABLE = _text(VARIABLE_FORM, f"1 to {WORDS_SIZE:,} characters without '=' and NUL, and not begin with SUBAK_",
                 ANY_SCALAR)
VALUE = ARGUMENT  # of a variable
WORKDIR = _long("an absolute path", FOLDER_BYTES_MAX, r"/[^\x00]*", {"type": "string"})
ATTRIBUTE = _text(ATTRIBUTE_FORM, f"the name of an attribute, 1 to {WORDS_SIZE:,} characters", ANY_SCALAR)
CONSTRAINT_VALUE = _text(rf"[^\x00-\x1f\x7f]{{0,{WORDS_SIZE}}}", f"at most {WORDS_SIZE:,} characters, none of them "
                         "a control character", ANY_SCALAR)
RESOURCE = _text(RESOURCE_FORM, f"the name of a resource, 1 to {NAME_SIZE} letters, digits or '_'", {"type": "string"})
USER = _text(USER_FORM, "the name or number of a user", ANY_SCALAR)


def _umask(scalar: Scalar) -> int:
    if not re.fullmatch(UMASK_FORM, scalar.text):
        raise ValueError
    return int(scalar.text.replace("o", ""), 8)


UMASK = Leaf('octal digits after a zero, such as "022"', _umask, {"type": "string", "pattern": pattern_of(UMASK_FORM)})


def _one_of(*words: str) -> Leaf:
    def _read(scalar: Scalar) -> str:
        if scalar.text not in words:
            raise ValueError
        return scalar.text
    return Leaf(words[0] if len(words) == 1 else f"one of {' '.join(words)}", _read, {"enum": list(words)})


API = _one_of(API_VERSION)
JOB = _one_of(KIND)
OPERATOR = _one_of(*OPERATORS)

# -- numbers -----------------------------------------------------------------------------------------------------------


def _boolean(scalar: Scalar) -> bool:
    if not scalar.is_boolean:
        raise ValueError
    return scalar.text.lower() == "true"


BOOLEAN = Leaf("true or false", _boolean, {"type": "boolean"})


def _whole(least: int, most: int) -> Leaf:
    def _read(scalar: Scalar) -> int:
        if not (scalar.is_number and re.fullmatch("-?[0-9]{1,10}", scalar.text)):
            raise ValueError
        return _between(int(scalar.text))

    def _between(number: int) -> int:
        if not least <= number <= most:
            raise ValueError
        return number
    return Leaf(f"a whole number from {least:,} to {most:,}", _read,
                {"type": "integer", "minimum": least, "maximum": most})


PRIORITY = _whole(-AMOUNT_MAX - 1, AMOUNT_MAX)
TASKS = _whole(1, ALL_TASKS_MAX)
SMALL = _whole(0, LOSSES_MAX)

# -- quantities --------------------------------------------------------------------------------------------------------


def _quantity(parse: Callable[[str], Any]) -> Callable[[Scalar], Any]:
    def _read(scalar: Scalar) -> Any:
        if scalar.is_number and (exponent := re.search("[eE]([-+]?[0-9]{1,2})$", scalar.text)):
            return parse(f"{Decimal(scalar.text[:exponent.start()]).scaleb(int(exponent[1])):f}")
        return parse(scalar.text)
    return _read


def _quantity_schema(form: str, most: float, *numbers: Json) -> Json:
    return {"anyOf": [{"type": "string", "pattern": pattern_of(form)},
                      *({"type": "number", "maximum": most, **number} for number in numbers or [{"minimum": 0}])]}


def _limit(text: str) -> float | None:
    if text == UNLIMITED:
        return None
    if (seconds := quantities.parse_duration(text)) <= 0:
        raise ValueError
    return seconds


_AT_MOST = f"at most {quantities.print_duration(DURATION_S_MAX)}"
CPU_AMOUNT = Leaf("a quantity such as 2, 0.5 or 500m", _quantity(quantities.parse_cpu),
                  _quantity_schema(quantities.CPU_FORM, AMOUNT_MAX / quantities.CPU_UNITS))
MEMORY_AMOUNT = Leaf("a quantity such as 512Mi or 4Gi, at least 1Mi (a number alone is of bytes)",
                     _quantity(quantities.parse_memory),
                     _quantity_schema(quantities.MEMORY_FORM, AMOUNT_MAX * quantities.MEMORY_UNIT,
                                      {"minimum": 0, "maximum": 0}, {"minimum": quantities.MEMORY_UNIT}))
COUNT = Leaf(f"a whole number from 0 to {AMOUNT_MAX:,}", lambda scalar: quantities.parse_count(scalar.text),
             {"anyOf": [{"type": "string", "pattern": pattern_of(quantities.COUNT_FORM)},
                        {"type": "integer", "minimum": 0, "maximum": AMOUNT_MAX}]})
DURATION = Leaf(f"seconds or a duration such as 10s, 5m or 1h30m, {_AT_MOST}", _quantity(quantities.parse_duration),
                _quantity_schema(DURATION_FORM, DURATION_S_MAX))
LIMIT = Leaf(f"seconds or a duration such as 10s, 5m or 1h30m, more than 0 and {_AT_MOST}, or {UNLIMITED}",
             _quantity(_limit),
             _quantity_schema(rf"{UNLIMITED}|{DURATION_FORM}", DURATION_S_MAX,
                              {"exclusiveMinimum": 0}))


def of_resource(name: str) -> Leaf:
    """Return the leaf of the amount of a resource."""
    return {CPU: CPU_AMOUNT, MEMORY: MEMORY_AMOUNT}.get(name, COUNT)
