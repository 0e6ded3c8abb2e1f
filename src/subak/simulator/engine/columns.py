"""Makes columns of result tables from arrays: nulls, names, words."""
from collections.abc import Sequence

import numpy as np
import polars as pl


def numbers(name: str, values: np.ndarray, known: np.ndarray | None = None) -> pl.Series:
    """Return a column in which nan, and what is not *known*, is null."""
    if known is not None:
        values = np.where(known, values, np.nan)
    column = pl.Series(name, values)
    return column.fill_nan(None) if np.isnan(values).any() else column


def named(names: pl.Series, rows: np.ndarray, name: str) -> pl.Series:
    """Return the names at *rows* as an Enum, null where the row is -1; those of an Enum are taken as they are."""
    column = names if isinstance(names.dtype, pl.Enum) else as_enum(names)
    return column.gather(_places(rows)).alias(name)


def as_enum(names: pl.Series) -> pl.Series:
    """Return names as an Enum of those that there are, in their order."""
    return names.cast(pl.Enum(names.unique(maintain_order=True)))


def coded(code: np.ndarray, words: Sequence[str], name: str) -> pl.Series:
    """Return *words* at *code* as an Enum, null where the code is -1."""
    return pl.Series(name, words, dtype=pl.Enum(words)).gather(_places(code))


def worded(code: np.ndarray, words: Sequence[str], name: str) -> pl.Series:
    """Return *words*, of which some may be the same, at *code* as an Enum, null where the code is -1."""
    distinct = list(dict.fromkeys(words))
    if (code < 0).all():
        return pl.Series(name, [None], pl.Enum(distinct)).new_from_index(0, code.size)
    place = np.array([distinct.index(word) for word in words], np.int64)
    return coded(np.where(code >= 0, place[code], -1), distinct, name)


def _places(rows: np.ndarray) -> pl.Series:
    """Return rows to gather: null where a row is -1."""
    places = pl.Series(rows.astype(np.int64))
    return places.set(places < 0, None)
