"""The rulings on rows, kept or dropped and why, and whether dropped rows carried load."""
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

KEPT = "kept"


class Ruling(NamedTuple):
    """A rule by which a row is dropped, with its words."""

    holds: pl.Expr
    words: str | pl.Expr
    load: bool = True  # whether such a row carries load, which is lost with it


def ruling(rules: Iterable[Ruling | tuple[pl.Expr, str]]) -> pl.Expr:
    """Return the words of the first rule that holds of a row, and KEPT where none does."""
    return pl.coalesce(*(pl.when(rule[0]).then(rule[1] if isinstance(rule[1], pl.Expr) else pl.lit(rule[1]))
                         for rule in rules), pl.lit(KEPT))


def with_ruling(table: pl.DataFrame, rules: Iterable[Ruling | tuple[pl.Expr, str]]) -> pl.DataFrame:
    """Return the table with `ruling`, and with `lost`: whether a row is dropped that carries load."""
    every = [Ruling(*rule) for rule in rules]
    lost = pl.coalesce(*(pl.when(rule.holds).then(pl.lit(rule.load)) for rule in every), pl.lit(False))
    return table.with_columns(ruling=ruling(every), lost=lost)
