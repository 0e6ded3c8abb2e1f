"""Tags: the little HTML the page needs, with every text escaped in one place."""
import json
from collections.abc import Iterable
from html import escape
from typing import Any


def tag(name: str, *content: str, **attributes: str | int | bool | None) -> str:
    """Return an element around ready HTML; attributes that are None or False are left out, `_` becomes `-`."""
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value)
                      for key, value in attributes.items() if value is not None and value is not False)
    return f"<{name}{written}>{''.join(content)}</{name}>"


def text(value: object) -> str:
    """Return *value* as text that cannot become markup."""
    return escape(str(value))


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of names and plain-text values."""
    return tag("dl", *(tag("div", tag("dt", text(name)), tag("dd", text(value))) for name, value in pairs),
               class_="facts")


def words_table(caption: str, titles: list[str], rows: Iterable[list[object]]) -> str:
    """Return a table of plain texts whose first column names the row."""
    head = tag("thead", tag("tr", *(tag("th", text(title), scope="col") for title in titles)))
    body = tag("tbody", *(tag("tr", tag("th", text(row[0]), scope="row"), *(tag("td", text(cell)) for cell in row[1:]))
                          for row in rows))
    return scroller(caption, tag("table", head, body, class_="words"))


def scroller(caption: str, table: str) -> str:
    """Return a table in a box of its own that scrolls sideways, also by keyboard, so that the page never does."""
    return tag("div", table, class_="scroll", role="region", tabindex=0, aria_label=caption)


def data(value: Any, **attributes: str) -> str:
    """Return *value* as JSON in a script element that no text can close."""
    written = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")
    return tag("script", written, type="application/json", **attributes)


def _attribute(name: str, value: str | int | bool) -> str:
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
