"""Parses and prints amounts and durations as people write them: 500m, 256Gi, 40%, 90s, 1h30m, 1-02:30:00.

The one table of suffixes: command lines, scenarios, job files and readers take theirs from here. The functions that
parse raise ValueError, without words, for a text of another form; those that are told an option raise InputError.
"""
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Annotated, get_args, get_origin, get_type_hints

import msgspec

from subak.errors import InputError

NUMBER = r"[0-9]{1,30}(?:\.[0-9]{1,30})?"

# -- amounts -----------------------------------------------------------------------------------------------------------

MILLI = 1e-3
CORES = {"m": MILLI}
SHARES = {"%": 0.01}
BINARY = {f"{letter}i": 1 << (10 * power) for power, letter in enumerate("KMGTPE", 1)}
DECIMAL = {letter: 10**(3 * power) for power, letter in enumerate("kMGTPE", 1)}
# Kubernetes's, of bytes: a letter alone is decimal
KUBERNETES_BYTES = {"": 1, **DECIMAL, **BINARY}
UNMISTAKABLE_BYTES = {"B": 1, "k": 1000, "KB": 1000, **{f"{letter}B": size for letter, size in DECIMAL.items()},
                      **BINARY, **{f"{word}B": size for word, size in BINARY.items()}}
BYTES = {**UNMISTAKABLE_BYTES, **DECIMAL}
# Slurm's: a letter alone is 1024-fold. Only files of others are read so
SLURM_BYTES = {**UNMISTAKABLE_BYTES, **{word[0]: size for word, size in BINARY.items()}}
AMOUNT = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z%]*)", re.ASCII)
AMOUNT_TEXT_MAX = 60  # characters
QUEUE_LEVELS_MAX = 64  # of a tree of queues: what is done for each queue is done for all above it

Amount = float | str  # a number in what the resource is counted in, or a text that names its own unit


def read_amount(text: str) -> Amount:
    """Return a number, or the text of one with a suffix, such as 256Gi, which a resource gives its meaning.

    Raises ValueError for another form.
    """
    try:
        return float(text)
    except ValueError:
        found = AMOUNT.fullmatch(text.strip()) if len(text) <= AMOUNT_TEXT_MAX else None
        if found is None or found[2] not in {**CORES, **SHARES, **BYTES}:
            raise ValueError from None
        return text.strip()


def read_number(text: str) -> float:
    """Return a number, or a share such as 25%. Raises ValueError for another form."""
    return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)


def amount_in(amount: Amount, of: str, where: str) -> float:
    """Return an amount in *of*, what the resource is counted in, such as cores or MiB.

    Raises InputError, beginning with *where*, for a suffix that this resource does not have.
    """
    if not isinstance(amount, str):
        return float(amount)
    suffixes = _suffixes(of)
    found = AMOUNT.fullmatch(amount.strip()) if len(amount) <= AMOUNT_TEXT_MAX else None
    if found is None or (found[2] and found[2] not in suffixes):
        raise InputError(f"{where}: must be a number of {of or 'units'}, or one with {_words(suffixes)}, "
                         f"not {amount!r}")
    return float(found[1]) * suffixes.get(found[2], 1.0)


def amount_text(amount: Amount) -> str:
    """Return an amount as a title has it."""
    return amount if isinstance(amount, str) else f"{amount:g}"


def _suffixes(of: str) -> Mapping[str, float]:
    """Return the size of each suffix, in *of*."""
    if of in BYTES or of == "bytes":
        return {suffix: size / BYTES.get(of, 1) for suffix, size in BYTES.items()}
    return CORES | SHARES if of in ("cores", "processors") else SHARES


def _words(suffixes: Mapping[str, float]) -> str:
    usual = [word for word in ("m", "%", "Mi", "Gi", "Ti", "M", "G", "T") if word in suffixes]
    return ", ".join(usual[:-1]) + " or " + usual[-1] if len(usual) > 1 else usual[0]


# -- durations ---------------------------------------------------------------------------------------------------------

DURATION_S_MAX = 1_000_000_000
SECONDS_DIGITS = 6  # after the point
DAY_S, HOUR_S, MINUTE_S = 86_400, 3600, 60
SECOND_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
UNIT_SECONDS = {  # in the order of a duration
    "d": Fraction(DAY_S), "h": Fraction(HOUR_S), "m(?:in)?": Fraction(MINUTE_S), "s": Fraction(1),
    "ms": Fraction(1, 1000),
}
PARTS_FORM = "(?=[0-9])" + "".join(rf"(?:({NUMBER}){unit})?" for unit in UNIT_SECONDS)
CLOCK_FORM = r"(?:([0-9]{1,5})-)?([0-9]{1,6}):([0-5][0-9]):([0-5][0-9](?:\.[0-9]{1,30})?)"
DURATION_FORM = f"{NUMBER}|{PARTS_FORM}|{CLOCK_FORM}"
DURATION_WORDS = "90, 90s, 30min, 1h30m, 2d or 1-02:30:00"


# The type of a setting that is a time: a file may say 90 or 1h30m, see `toml_files.convert`; in memory it is seconds
_UNIT = msgspec.Meta(extra={"unit": "s"})
Seconds = Annotated[float, _UNIT]


def times_of(kind: type) -> frozenset[str]:
    """Return the fields of a class that are times; tables of times are none."""
    hints = get_type_hints(kind, include_extras=True)
    return frozenset(name for name, hint in hints.items() if get_origin(_bare(hint)) is not dict and any(
        _UNIT in getattr(each, "__metadata__", ()) for each in (hint, *get_args(_bare(hint)))))


def _bare(hint: object) -> object:
    """Return what a type is annotated on, where it is `Annotated`."""
    return get_args(hint)[0] if hasattr(hint, "__metadata__") else hint


def parse_duration(text: str) -> float:
    """Return seconds, to the nearest millionth, for 90, 0.5, 10s, 5m, 30min, 1h30m, 02:30:00 or 1-02:30:00.

    The units are d, h, m or min, s and ms, each at most once and in this order. Raises ValueError for another form, and
    for what is longer than 10^9 s.
    """
    if re.fullmatch(NUMBER, text):
        seconds = Fraction(text)
    elif found := re.fullmatch(CLOCK_FORM, text):
        seconds = _sum(found, (DAY_S, HOUR_S, MINUTE_S, 1))
    elif found := re.fullmatch(PARTS_FORM, text):
        seconds = _sum(found, UNIT_SECONDS.values())
    else:
        raise ValueError
    if seconds > DURATION_S_MAX:
        raise ValueError
    return float(round(seconds, SECONDS_DIGITS))


def duration_text(seconds: float) -> str:
    """Return a time as `parse_duration` reads it, to a thousandth of a second: 90 s is 1m30s.

    What is no duration, negative or endless, stays a number.
    """
    if not 0 <= seconds <= DURATION_S_MAX:
        return f"{seconds:g}"
    whole, rest = divmod(round(seconds * 1000), 60_000)
    parts = {"d": whole // 1440, "h": whole // 60 % 24, "m": whole % 60}
    said = "".join(f"{count}{unit}" for unit, count in parts.items() if count)
    return f"{said}{rest / 1000:g}s" if rest or not said else said


def read_seconds(text: str | float) -> float:
    """Return the seconds of an option: a duration, or any number, inf too. Raises InputError for another form."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return parse_duration(str(text).strip())
    except ValueError:
        raise InputError(f"a duration must be a number of seconds, or like {DURATION_WORDS}, not {text!r}") from None


def _sum(found: re.Match[str], units: Iterable[Fraction | int]) -> Fraction:
    return sum((Fraction(number) * unit for number, unit in zip(found.groups(), units, strict=True) if number),
               Fraction(0))
