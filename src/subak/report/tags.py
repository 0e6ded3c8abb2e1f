"""Builds HTML tags; all other text is escaped here."""
import json
from collections.abc import Iterable

from markupsafe import Markup, escape

# In a script element `</script` and `<!--` end or hide it; the others are escaped so that no parser ever minds.
_AS_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def tag(name: str, *content: object, **attributes: str | int | bool | None) -> Markup:
    """Return an element; attributes that are None or False are left out, `_` becomes `-`.

    Content and values that are not Markup are escaped; *name* and the attributes' names are the program's own.
    """
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value)
                      for key, value in attributes.items() if value is not None and value is not False)
    return Markup(f"<{name}{written}>{''.join(map(escape, content))}</{name}>")


def facts(pairs: Iterable[tuple[str, str]], class_: str = "facts") -> Markup:
    """Return a list of names and plain-text values."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_=class_)


def words_table(caption: str, titles: list[str], rows: Iterable[list[object]], class_: str = "") -> Markup:
    """Return a table of plain texts whose first column names the row."""
    head = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in titles)))
    body = tag("tbody", *(tag("tr", tag("th", row[0], scope="row"), *(
        tag("td", cell, data_name=title) for title, cell in zip(titles[1:], row[1:], strict=True))) for row in rows))
    return scroller(caption, tag("table", head, body, class_=f"words {class_}".strip()))


def scroller(caption: str, table: Markup) -> Markup:
    """Return a table in a box of its own that scrolls sideways, also by keyboard, so that the page never does.

    Where page.js runs, a table that is wider than its box has a line a cell instead, under its `data-name`.
    """
    return tag("div", table, class_="scroll fits", role="region", tabindex=0, aria_label=caption)


def data(value: object, **attributes: str) -> Markup:
    """Return *value* as JSON in a script element that no text can close, and that no browser runs."""
    written = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False).translate(_AS_ESCAPES)
    return tag("script", Markup(written), type="application/json", **attributes)


def _attribute(name: str, value: str | int | bool) -> str:
    return f" {name}" if value is True else f' {name}="{escape(value)}"'
