"""The page of a reproduction: tables and figures in one HTML file without scripts.

No script looks how wide a table is, so each says by its number of columns below which width it has a line a cell.
"""
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from subak.report import tags
from subak.report.document import IMAGE_FORMATS, document, drawing, picture

if TYPE_CHECKING:
    import altair as alt

COLUMN_REM, COLUMNS_MAX = 5.5, 24  # the least width of a column of words; tables with more columns always have lines
# What a table is in a box that is narrower than its columns: under each row's first cell, a line a cell.
LINES = (
    ".C, .C tbody, .C tr, .C th, .C td { display: block; min-width: 0; }"
    " .C thead { display: none; } .C tr { padding: 0.5rem 0; } .C th, .C td { padding: 0.1rem 0.4rem; }"
    " .C td::before { content: attr(data-name) \": \"; color: var(--quiet); }")
STILL = (".still { overflow-wrap: anywhere; } .still .scroll { container-type: inline-size; overflow-x: visible; }"
         " .still figure.card { overflow-x: visible; } .still figure.card svg { max-width: 100%; height: auto; }")


class Section(NamedTuple):
    """A heading and what is below it."""

    title: str
    content: Markup


def drawn(chart: "alt.TopLevelMixin", folder: Path, name: str, title: str) -> Markup:
    """Write an Altair chart into *folder* as SVG and PNG, and return it for the page, where a heading is its title."""
    spec = chart.to_dict()
    title_drawn = spec.get("title", {})
    below = title_drawn.get("subtitle") if isinstance(title_drawn, dict) else None
    untitled = {**{key: value for key, value in spec.items() if key != "title"}, **({"title": below} if below else {})}
    for kind in IMAGE_FORMATS:
        (folder / f"{name}.{kind}").write_bytes(picture(spec, kind))
    return drawing(untitled, title)


def page(title: str, verdict: str, notes: Iterable[str], sections: Iterable[Section]) -> bytes:
    """Return the whole page."""
    style = tags.tag("style", Markup(_style()))
    listed = tags.tag("ul", *(tags.tag("li", note) for note in notes))
    body = [tags.tag("section", tags.tag("h2", each.title), each.content) for each in sections]
    head = tags.tag("header", tags.tag("h1", title), tags.tag("p", verdict, class_="verdict"))
    main = tags.tag("main", *body, tags.tag("section", tags.tag("h2", "Notes"), listed), class_="still")
    return document(title, style, head, main)


def table(caption: str, titles: list[str], rows: Iterable[list[object]]) -> Markup:
    """Return a table of plain texts whose first column names the row, for a page on which nothing runs."""
    return tags.words_table(caption, titles, rows, f"columns-{min(len(titles), COLUMNS_MAX + 1)}")


def _style() -> str:
    """Return what is this page's own: which tables have lines where."""
    within = [f"@container (width < {COLUMN_REM * count}rem) {{ {LINES.replace('.C', f'.columns-{count}')} }}"
              for count in range(2, COLUMNS_MAX + 1)]
    return "\n".join([STILL, *within, LINES.replace(".C", f".columns-{COLUMNS_MAX + 1}")])
