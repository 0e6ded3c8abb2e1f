"""A reproduction's page: tables and drawn figures in one HTML file, without scripts, readable offline."""
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from subak.report import tags
from subak.report.document import IMAGE_FORMATS, document, drawing, picture


class Section(NamedTuple):
    """A heading and what is below it."""

    title: str
    content: Markup


def drawn(chart: Any, folder: Path, name: str, title: str) -> Markup:
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
    listed = tags.tag("ul", *(tags.tag("li", note) for note in notes))
    body = [tags.tag("section", tags.tag("h2", each.title), each.content) for each in sections]
    head = tags.tag("header", tags.tag("h1", title), tags.tag("p", verdict, class_="verdict"))
    return document(title, head, tags.tag("main", *body, tags.tag("section", tags.tag("h2", "Notes"), listed)))
