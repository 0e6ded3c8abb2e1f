"""A reproduction's page: tables and drawn figures in one HTML file, without scripts, readable offline."""
from collections.abc import Iterable
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import vl_convert

from subak.report import tags
from subak.report.theme import DARK, LIGHT, style_variables

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Section(NamedTuple):
    """A heading and ready HTML below it."""

    title: str
    content: str


def svg(chart: Any) -> str:
    """Return an Altair chart as SVG."""
    return str(vl_convert.vegalite_to_svg(chart.to_json()))


def figure(picture: str, title: str) -> str:
    """Return an SVG as a figure on a white card, so that it is readable in the dark too."""
    return tags.tag("figure", picture, aria_label=title, style="background: #fff; overflow-x: auto; padding: 8px")


def page(title: str, verdict: str, notes: Iterable[str], sections: Iterable[Section]) -> str:
    """Return the whole page as text."""
    listed = tags.tag("ul", *(tags.tag("li", tags.text(note)) for note in notes))
    body = [tags.tag("section", tags.tag("h2", tags.text(each.title)), each.content) for each in sections]
    head = tags.tag("header", tags.tag("h1", tags.text(title)), tags.tag("p", tags.text(verdict), class_="verdict"))
    style = Template((files("subak.report") / "templates" / "page.css").read_text(encoding="utf-8")).substitute(
        light=style_variables(LIGHT), dark=style_variables(DARK))
    return ('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            f"<title>{tags.text(title)}</title>\n<style>\n{style}\n</style>\n</head>\n<body>\n{head}\n"
            f"{tags.tag('main', *body, tags.tag('section', tags.tag('h2', 'Notes'), listed))}\n</body>\n</html>\n")
