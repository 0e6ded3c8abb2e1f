"""Tables of Markdown, and what the sources say in comments and docstrings."""
import inspect
import re
from typing import Any, get_args, get_type_hints

from reference_pages.rows import VALUES
from subak.federation.settings import Federation
from subak.placement.lotes.settings import LotesSettings
from subak.quantities import times_of
from subak.settings import declared, kind_of

WITH_PAGES = {Federation: "federations.md#settings", LotesSettings: "schedulers.md#lotes-settings"}  # defaults of keys


def table(head: tuple[str, ...], rows: Any) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"]


def prose(text: str | None) -> str:
    return inspect.cleandoc(text or "") + "\n"


def row_table(rows: dict[str, str]) -> list[str]:
    named = [(re.sub(r"^(\w+?_?)(\*.*)?$", r"`\1`\2", name), text) for name, text in rows.items()]
    return table(("column", "what it is"), named)


def columns(module: Any, schema: str, more: Any = ()) -> list[str]:
    """Return the table of a schema constant, with the comments beside its lines."""
    body = re.search(rf"^{schema}:.*?^}}$", inspect.getsource(module), re.MULTILINE | re.DOTALL)
    words = dict(re.findall(r'^    "(\w+)": [^#\n]+  # (.*)$', body[0] if body else "", re.MULTILINE))
    words = {**VALUES, **words} if schema == "STAGE_COLUMNS" else {**words, "outcome": VALUES["outcome"]}
    rows = [(f"`{name}`", kind_name(kind), words[name]) for name, kind in getattr(module, schema).items()]
    return table(("column", "type", "what it is"), [*rows, *more])


def kind_name(kind: Any) -> str:
    text = str(kind)
    return text.partition("(")[0] if text.startswith(("Enum", "Struct", "List(Struct")) else text


def struct_rows(kind: Any) -> list[tuple[str, ...]]:
    """Return name, type, default and help of each setting of a struct."""
    settings, default = declared(kind), kind()
    return [(f"`{name}`", kind_word(kind, name), default_word(getattr(default, name)), setting.help)
            for name, setting in settings.items()]


def default_word(value: Any) -> str:
    page = WITH_PAGES.get(type(value))
    return f"`{value!r}`" if page is None else f"[the defaults]({page})"


def comments_of(kind: Any) -> dict[str, str]:
    """Return the comments beside the fields of a struct."""
    found = re.findall(r"^    (\w+): [^#\n]+?(?:  # (.*))?$", inspect.getsource(kind), re.MULTILINE)
    return {name: text for name, text in found if name in kind.__struct_fields__}


def kind_word(of: Any, name: str) -> str:
    """Return the type of a setting in words."""
    hint = kind_of(of, name)
    word = "duration" if name in times_of(of) else hint.__name__ if type(hint) is type else str(hint)
    optional = type(None) in get_args(get_type_hints(of)[name])
    return word + " | None" * optional


def first_sentence(value: Any) -> str:
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return re.sub(r"``(.+?)``", r"`\1`", text)


def returned(function: Any) -> str:
    """Return what a function says it returns."""
    text = first_sentence(function).removeprefix("Return ")
    return text[0].upper() + text[1:]
