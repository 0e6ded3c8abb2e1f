"""Parses seeds: one, a list, or a range."""
import re

from subak.errors import InputError

SEEDS = re.compile(r"\s*(\d{1,19})\s*(?:-\s*(\d{1,19})\s*)?", re.ASCII)  # one, or from one to another
SEEDS_MAX = 10_000


def parse_seeds(text: str, what: str = "--seeds") -> list[int]:
    """Return the seeds of a text such as ``1,2,5-8``. Raises InputError, which begins with *what*, for another form."""
    seeds: list[int] = []
    for part in text.split(","):
        found = SEEDS.fullmatch(part)
        first, last = (int(number) for number in (found[1], found[2] or found[1])) if found else (1, 0)
        if last < first:
            raise InputError(f"{what}: must be whole numbers such as 1,2,5-8, not {text!r}")
        if last - first + len(seeds) >= SEEDS_MAX:
            raise InputError(f"{what}: must be at most {SEEDS_MAX:,}, not {text!r}")
        seeds.extend(range(first, last + 1))
    return seeds
