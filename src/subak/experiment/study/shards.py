"""Splits a study into shards that run apart, for example as tasks of a Slurm array."""
import re
from collections.abc import Mapping
from typing import TypeVar

from subak.errors import InputError

T = TypeVar("T")
FORM = re.compile(r"(\d{1,6})/(\d{1,6})", re.ASCII)
ALL = (1, 1)


def parse_shard(text: str) -> tuple[int, int]:
    """Return which shard of how many a text such as ``3/10`` names. Raises InputError for another form."""
    found = FORM.fullmatch(text.strip())
    number, of = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= of:
        raise InputError(f"--shard: must be such as 3/10, from 1/10 to 10/10, not {text!r}")
    return number, of


def shard_of(work: Mapping[str, T], shard: tuple[int, int]) -> dict[str, T]:
    """Return the runs of a shard: every n-th, so that shards take about as long."""
    number, of = shard
    return dict(list(work.items())[number - 1::of])
