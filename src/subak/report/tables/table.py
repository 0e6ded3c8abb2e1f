"""A table whose cells are numbers and words, so that page and file agree."""
from collections.abc import Callable
from typing import NamedTuple

from markupsafe import Markup

from subak.report import tags
from subak.report.number_text import NOTHING


class Amount(NamedTuple):
    """A cell that is a number: in the measure's own unit (seconds, a share of one, bytes), and in words."""

    value: float | None
    text: str


Cell = str | Amount


class Table(NamedTuple):
    """A table by its name, which is a file's; the first cell of a row names it."""

    name: str
    caption: str
    titles: list[str]
    rows: list[list[Cell]]


def amount(value: float | None, text: Callable[[float | None], str]) -> Amount:
    """Return a number in the words of *text*."""
    return Amount(value, text(value))


def text_of(cell: Cell) -> str:
    """Return a cell in words; one without any says so."""
    return (cell.text if isinstance(cell, Amount) else cell) or NOTHING


def shown(table: Table) -> Markup:
    """Return a table as a page shows it; nothing where it has no rows."""
    if not table.rows:
        return Markup("")
    return tags.words_table(table.caption, table.titles, ([text_of(cell) for cell in row] for row in table.rows))


def folded(summary: str, *content: Markup) -> Markup:
    """Return what is open only to who asks for it; nothing where there is nothing."""
    there = [each for each in content if each]
    return tags.tag("details", tags.tag("summary", summary), *there) if there else Markup("")
