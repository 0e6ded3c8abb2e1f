"""Prints the answer of `subak size`: a sentence, and a table of the sizes tried."""
import math

from rich.console import Group, RenderableType
from rich.table import Table

from subak.experiment.sizing.answer import Size, Sized, Sizing
from subak.measures.objective import Objective
from subak.report.console import Text
from subak.report.number_text import number_text
from subak.report.sizing.notes import notes
from subak.report.sizing.objective_words import objectives_of
from subak.report.sizing.words import (
    INTERVAL,
    LEAST_USED,
    NEEDED,
    USED,
    headline,
    in_short,
    interval_text,
    scarce,
    sentences,
    size_table,
)
from subak.report.tables.table import text_of

WORDS = ("kept", "answer")  # titles of columns that hold no numbers
SHARE_WIDTH = 7  # characters of a column of shares, whose title is folded
BAR = 10  # characters of a bar; the bound is at its middle
FULL, BOUND, BEYOND = "\N{FULL BLOCK}", "\N{BOX DRAWINGS LIGHT VERTICAL}", ">"


def sizing_text(sizing: Sizing) -> Group:
    """Return the line to report, then all answers, each with its sizes."""
    several, parts = len(sizing.answers) > 1, list[RenderableType]()
    if several:
        if sizing.best is not None:
            parts += [Text(headline(sizing, sizing.answers[sizing.best]), style="bold"), Text("")]
        parts += [_comparison(sizing), Text("")]
    for answer in sizing.answers:
        first = in_short(answer) if several else headline(sizing, answer)
        parts += [Text(first, style="bold"), *(Text(said) for said in sentences(sizing, answer)), Text("")]
        if answer.sizes:
            parts += [_curve(sizing, answer), Text("")]
    tried = any(answer.sizes for answer in sizing.answers)
    said = notes(sizing) if tried else []
    return Group(*parts, *([Text("Notes", style="bold")] if said else []), *(Text(f"- {note}") for note in said))


def _comparison(sizing: Sizing) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("")
    for title in ("fewest", INTERVAL, NEEDED, *(["price"] if _priced(sizing) else [])):
        table.add_column(title, justify="right", header_style="bold")
    for place, answer in enumerate(sizing.answers):
        best = place == sizing.best
        price = "" if answer.buy_price is None else number_text(answer.buy_price)
        cells = ["none" if answer.fewest is None else f"{answer.fewest:,}", interval_text(answer),
                 "" if answer.buy is None else f"{answer.buy:,}",
                 *([f"{price}{' *' if best else ''}"] if _priced(sizing) else [])]
        table.add_row(*(Text(cell, style="bold green" if best else "") for cell in (answer.name, *cells)))
    return table


def _priced(sizing: Sizing) -> bool:
    return any(size.price is not None for answer in sizing.answers for size in answer.sizes)


def _curve(sizing: Sizing, answer: Sized) -> Table:
    found, objectives = size_table(sizing, answer), objectives_of(sizing)
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    # intervals of several objectives do not fit beside each other, and none is worth no column
    shown = len(objectives) == 1 and any(value.low is not None for size in answer.sizes for value in size.values)
    most = scarce(sizing, answer)
    others = {f"{name} {USED}" for name in sizing.resources if name != most}
    places = [place for place, title in enumerate(found.titles) if (shown or title != INTERVAL) and title not in others]
    for place in places:
        title = found.titles[place]
        narrow = SHARE_WIDTH if title.endswith((USED, LEAST_USED)) else None
        table.add_column(Text("least used" if title.endswith(LEAST_USED) else title), max_width=narrow,
                         justify="left" if title in WORDS else "right", overflow="fold", header_style="bold")
    table.add_column(Text(f"bound{BOUND}"), no_wrap=True)
    for row, size in zip(found.rows, answer.sizes, strict=True):
        style = "bold green" if size.machines == answer.buy else "bold" if size.machines == answer.fewest else ""
        cells = (Text("" if row[place] == "" else text_of(row[place]), style=style) for place in places)
        table.add_row(*cells, Text(_bar(size, objectives)))
    return table


def _bar(size: Size, objectives: list[Objective]) -> str:
    """Return a bar of the objective that is the furthest from being kept, over its bound."""
    shares = [value.mean / each.bound if each.bound else math.inf * (value.mean > 0) if value.mean else 0.0
              for each, value in zip(objectives, size.values, strict=False)]
    if not shares or math.isinf(max(shares)):
        return ""
    length = round(max(shares) * BAR / 2)
    bar = f"{FULL * (BAR - 1)}{BEYOND}" if length > BAR else FULL * length
    return bar if len(bar) > BAR // 2 else f"{bar:{BAR // 2}}{BOUND}"
