"""Parses quantities of job files, such as 500m, 4Gi and 1h30m.

Every function that parses raises ValueError, without words, for a text that is no such quantity or one out of range;
the words are the rules' in `leaves.py`.
"""
import re
from fractions import Fraction
from functools import lru_cache
from math import ceil

from subak import quantities
from subak.live.jobfile.spec import AMOUNT_MAX, CPU, MEMORY
from subak.quantities import DAY_S, HOUR_S, MINUTE_S, NUMBER, SECONDS_DIGITS
from subak.quantities import KUBERNETES_BYTES as SUFFIXES

CPU_UNITS = 1000  # of a core
MEMORY_UNIT = 1 << 20  # bytes
CPU_FORM = rf"{NUMBER}|[0-9]{{1,15}}m"
MEMORY_FORM = rf"({NUMBER})((?:[kMGTPE]|[KMGTPE]i)?)"
COUNT_FORM = "[0-9]{1,10}"

often = lru_cache(1024)  # the same few amounts are asked for again and again
parse_duration = often(quantities.parse_duration)


@often
def parse_cpu(text: str) -> int:
    """Return thousandths of a core, rounded up, for 2, 0.5 or 500m."""
    _match(CPU_FORM, text)
    units = Fraction(text[:-1]) if text.endswith("m") else Fraction(text) * CPU_UNITS
    return _amount(units)


def print_cpu(amount: int) -> str:
    """Return the shortest text that `parse_cpu` takes for the amount."""
    return str(amount // CPU_UNITS) if amount % CPU_UNITS == 0 else f"{amount}m"


@often
def parse_memory(text: str) -> int:
    """Return MiB, rounded up, for 4Gi, 512M or a number of bytes; what is less than 1 MiB, but not 0, is a mistake."""
    number, suffix = _match(MEMORY_FORM, text).groups()
    units = Fraction(number) * SUFFIXES[suffix] / MEMORY_UNIT
    if 0 < units < 1:
        raise ValueError
    return _amount(units)


def parse_bytes(text: str) -> int:
    """Return bytes, rounded up, for 4Gi, 512M or a number of bytes."""
    number, suffix = _match(MEMORY_FORM, text).groups()
    return ceil(Fraction(number) * SUFFIXES[suffix])


def print_memory(amount: int) -> str:
    """Return the shortest text that `parse_memory` takes for the amount, in a power of two."""
    for suffix in ("Pi", "Ti", "Gi"):
        size = SUFFIXES[suffix] // MEMORY_UNIT
        if amount and amount % size == 0:
            return f"{amount // size}{suffix}"
    return f"{amount}Mi"


def parse_count(text: str) -> int:
    """Return how many pieces."""
    return _amount(Fraction(_match(COUNT_FORM, text)[0]))


def parse_amount(resource: str, text: str) -> int:
    """Return the units of a resource."""
    return {CPU: parse_cpu, MEMORY: parse_memory}.get(resource, parse_count)(text)


def print_amount(resource: str, amount: int) -> str | int:
    """Return what a file says for the amount of a resource: a text for cpu and memory, else the number of pieces."""
    return {CPU: print_cpu, MEMORY: print_memory}.get(resource, int)(amount)


def print_duration(seconds: float) -> str:
    """Return a short text that `parse_duration` takes for these seconds, to the millionth."""
    if seconds and seconds == int(seconds):
        for unit, size in (("d", DAY_S), ("h", HOUR_S), ("m", MINUTE_S)):
            if int(seconds) % size == 0:
                return f"{int(seconds) // size}{unit}"
        return f"{int(seconds)}s"
    return f"{seconds:.{SECONDS_DIGITS}f}".rstrip("0").rstrip(".") + "s"


def _match(form: str, text: str) -> re.Match[str]:
    found = re.fullmatch(form, text)
    if found is None:
        raise ValueError
    return found


def _amount(units: Fraction) -> int:
    """Return whole units, rounded up."""
    if units > AMOUNT_MAX:
        raise ValueError
    return ceil(units)
