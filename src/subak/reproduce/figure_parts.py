"""Common parts of the charts of reproduced papers."""

from collections.abc import Sequence

import altair as alt
import polars as pl
from altair.utils import schemapi

from subak.report.charts.theme import LIGHT

FIGURE_WIDTH, FIGURE_HEIGHT = 520, 260  # pixels of a panel
COLOURS = [LIGHT[f"series-{number}"] for number in range(1, 9)]
LOG = alt.Scale(type="log")


def base(table: pl.DataFrame) -> alt.Chart:
    """Return a panel over a table's rows; what is not a number is left out, as JSON has no word for it."""
    return alt.Chart(alt.InlineData(values=table.fill_nan(None).to_dicts()), width=FIGURE_WIDTH, height=FIGURE_HEIGHT)


def colour(
    name: str, words: str | None = None, sort: Sequence[str] | schemapi.UndefinedType | None = alt.Undefined
) -> alt.Color:
    """Return a colour for each value of a column."""
    return alt.Color(f"{escaped(name)}:N", title=words, scale=alt.Scale(range=COLOURS), sort=sort)


def escaped(name: str) -> str:
    """Return a column's name as Vega-Lite takes it: dots and brackets are not paths."""
    return name.replace(".", "\\.").replace("[", "\\[").replace("]", "\\]")
