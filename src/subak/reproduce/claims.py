"""A paper's figures measured here: tables and named numbers, and claims that are bounds on those numbers."""
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError

Notify = Callable[[str, float], None]  # what is being simulated, and which part of its tasks have arrived


class Claim(NamedTuple):
    """A claim about one number of a figure."""

    figure: str
    number: str  # its name among the figure's numbers
    says: str
    least: float | None = None
    most: float | None = None
    unit: str = "times"  # s, times, share, slots
    differs: str = ""  # why the measured number may be out of the bounds
    note: str = ""


class Figure(NamedTuple):
    """Measurements: a table for people, named numbers for the claims."""

    key: str
    title: str
    table: pl.DataFrame
    numbers: dict[str, float]
    notes: tuple[str, ...] = ()
    points: pl.DataFrame | None = None  # what is drawn, where that is not the table


class Row(msgspec.Struct, frozen=True):
    """A claim beside what was measured."""

    figure: str
    claim: str
    measured: float | None
    unit: str
    holds: bool | None  # None: the paper gives nothing to compare with
    reason: str


class Reproduction(NamedTuple):
    """Everything that was measured."""

    figures: tuple[Figure, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def title_of(figure: Figure) -> str:
    """Return what a figure is called."""
    return f"Fig. {figure.key}: {figure.title}" if figure.key.isdigit() else figure.title


def choose_figures(only: str | None, known: Collection[str], default: Collection[str]) -> list[str]:
    """Return the keys of the figures that are wanted, in the order known. Raises InputError for an unknown one."""
    if only is None:
        return list(default)
    keys = [key.strip() for key in only.split(",") if key.strip()]
    if not keys or not set(keys) <= set(known):
        raise InputError(f"--only: must name figures among {', '.join(known)}, not {only!r}")
    return [key for key in known if key in keys]


def judge_all(claims: Iterable[Claim], figures: Iterable[Figure]) -> tuple[Row, ...]:
    """Return the claims about the figures that were measured."""
    by_key = {figure.key: figure for figure in figures}
    return tuple(judge(claim, by_key[claim.figure]) for claim in claims if claim.figure in by_key)


def judge(claim: Claim, figure: Figure) -> Row:
    """Return a claim beside the number it is about."""
    measured = figure.numbers[claim.number]
    known = not np.isnan(measured)
    bounded = claim.least is not None or claim.most is not None
    least, most = claim.least if claim.least is not None else -np.inf, claim.most if claim.most is not None else np.inf
    holds = bool(least <= measured <= most) if known and bounded else None
    return Row(claim.figure, claim.says, measured if known else None, claim.unit, holds,
               claim.note if holds is not False else claim.differs or claim.note)
