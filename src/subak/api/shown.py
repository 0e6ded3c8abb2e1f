"""Renders charts and tables in a notebook, without a network or foreign scripts."""
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from markupsafe import Markup
from rich.console import RenderableType

from subak.errors import InputError
from subak.nearest import did_you_mean
from subak.output.writing import write_file
from subak.report import tags
from subak.report.charts.parts import Chart as Drawn
from subak.report.console import Console
from subak.report.document import PICTURE_FORMATS, VEGA_LITE, chart_page, drawable, heading, picture, unchecked
from subak.report.pictures import spec_of, still
from subak.report.tables.differences import Compared

if TYPE_CHECKING:
    import pandas

TEXT_WIDTH = 80  # characters of a table as text
MIME = f"application/vnd.vegalite.{VEGA_LITE.partition('.')[0]}+json"


class Chart:
    """A chart: a notebook draws it, or shows a picture where it cannot; `save` makes a file of it."""

    def __init__(self, drawn: Drawn) -> None:
        self.altair = drawn
        """The Altair chart, to change or to lay beside others."""

    def save(self, path: str | Path) -> Path:
        """Write the chart as a page that needs no network (.html), or as a picture (.svg, .png, .pdf).

        Raises InputError for another ending, or what may not be written.
        """
        place = Path(path)
        kind = place.suffix.removeprefix(".").lower()
        if kind not in ("html", *PICTURE_FORMATS):
            raise InputError(f"{path}: the name must end in .html, .{', .'.join(PICTURE_FORMATS[:-1])} or "
                             f".{PICTURE_FORMATS[-1]}")
        spec = spec_of(self.altair)
        write_file(place, chart_page(spec) if kind == "html" else picture(still(spec), kind))
        return place

    def __repr__(self) -> str:
        """Return its title."""
        return f"Chart: {heading(spec_of(self.altair))[0]}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        spec = still(spec_of(self.altair))
        return {MIME: drawable(spec), "image/svg+xml": picture(spec, "svg").decode(), "text/plain": repr(self)}


class Charted:
    """What has charts, by their names."""

    @property
    def charts(self) -> list[str]:
        """The names of the charts that there are."""
        return list(self._makers())

    def chart(self, name: str | None = None) -> Chart:
        """Draw a chart, by default the first. Raises InputError for a name that `charts` does not have."""
        makers = self._makers()
        wanted = next(iter(makers), "") if name is None else name
        if wanted not in makers:
            raise InputError(f"chart: must be one of {', '.join(makers)}, not {wanted!r}{did_you_mean(wanted, makers)}")
        with unchecked():
            return Chart(makers[wanted]())

    def _makers(self) -> dict[str, Callable[[], Drawn]]:
        """Return every chart, still to be drawn."""
        raise NotImplementedError


class Table:
    """Measures as rows, schedulers as columns, in words; `frame` has the numbers."""

    def __init__(
        self, rows: Sequence[Compared], names: Sequence[str], frame: pl.DataFrame, text: RenderableType
    ) -> None:
        self.frame = frame
        """The same as numbers: a row a measure and scheduler, in seconds, shares of one, and bytes."""
        self._rows, self._names, self._text = rows, names, text

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the numbers as a frame of pandas, which the extra `pandas` installs.

        Raises ModuleNotFoundError without it.
        """
        return self.frame.to_pandas()

    def __repr__(self) -> str:
        """Return the table as a terminal shows it."""
        return as_text(self._text)

    def _repr_html_(self) -> str:
        return str(measure_html(self._rows, self._names))


def measure_html(rows: Sequence[Compared], names: Sequence[str]) -> Markup:
    """Return measures as a table without a style sheet: the best of a row is bold, pointing at a name defines it."""
    head = tags.tag("thead", tags.tag("tr", tags.tag("th", ""), *(tags.tag("th", name) for name in names)))
    body = (tags.tag("tr", tags.tag("th", row.title, f" ({row.unit})" if row.unit else "", title=row.definition or None,
                                    style="text-align: left"),
                     *(_cell(row, number) for number in range(len(names)))) for row in rows)
    return tags.tag("table", head, tags.tag("tbody", *body))


def _cell(row: Compared, number: int) -> Markup:
    value = tags.tag("b", row.texts[number]) if number in row.best else row.texts[number]
    below = " ".join(filter(None, [row.difference(number), row.interval(number), row.of_means(number)]))
    return tags.tag("td", value, *([tags.tag("div", tags.tag("small", below))] if below else []))


def as_text(shown: RenderableType) -> str:
    """Return what a terminal would show, without colours."""
    text = io.StringIO()
    Console(file=text, width=TEXT_WIDTH, force_jupyter=False, color_system=None).print(shown)
    return "\n".join(line.rstrip() for line in text.getvalue().rstrip().splitlines())
