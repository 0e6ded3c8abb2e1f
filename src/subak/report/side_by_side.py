"""Lays out columns side by side as far as the terminal is wide, and the rest below."""
from collections.abc import Iterator
from typing import NamedTuple

import rich.console
from rich.measure import Measurement
from rich.table import Table

from subak.report.console import Text

COLUMN_GAP = 2  # characters between two columns

Line = tuple[Text, list[Text]]  # what it is of, and a cell for each column; a line above others has none


class SideBySide(NamedTuple):
    """A table whose first column stands again in each part; names of columns fold between words."""

    names: list[str]
    lines: list[Line]
    title: str = ""
    corner: str = ""  # above the first column

    def __rich_console__(self, console: rich.console.Console, options: rich.console.ConsoleOptions) -> Iterator[Table]:
        """Return the parts, below each other."""
        shown = Table.grid(padding=(1, 0, 0, 0))
        for columns in self.parts(options.max_width):
            shown.add_row(self.table(columns))
        yield shown

    def __rich_measure__(self, console: rich.console.Console, options: rich.console.ConsoleOptions) -> Measurement:
        """Return the narrowest and the widest that the widest part may be."""
        sizes = [Measurement.get(console, options, self.table(columns)) for columns in self.parts(options.max_width)]
        return max(sizes, key=lambda size: size.maximum)

    def parts(self, width: int) -> list[range]:
        """Return which columns stand in each part; one alone may be wider than there is room."""
        left = max([len(self.corner), *(title.cell_len for title, _ in self.lines)])
        found, first, used = [], 0, left
        for number in range(len(self.names)):
            size = COLUMN_GAP + self.width(number)
            if used + size > width and number > first:
                found.append(range(first, number))
                first, used = number, left
            used += size
        return [*found, range(first, len(self.names))]

    def width(self, number: int) -> int:
        """Return the characters of a column, in which its widest cell and the longest word of its name have room."""
        cells = [cells[number].cell_len for _, cells in self.lines if cells]
        return max([*map(len, self.names[number].split(" ")), *cells])

    def table(self, columns: range) -> Table:
        """Return one part."""
        title = Text(self.title) if self.title and columns.start == 0 else None
        table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1), pad_edge=False)
        table.add_column(Text(self.corner), no_wrap=True, header_style="bold", vertical="bottom")
        for column in columns:
            table.add_column(Text(self.names[column]), justify="right", overflow="fold", header_style="bold",
                             max_width=self.width(column))
        for title, cells in self.lines:
            table.add_row(title, *(cells[column] for column in columns if cells))
        return table
