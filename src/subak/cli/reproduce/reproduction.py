"""Runs the experiments of a paper, prints its claims and tables, and writes its page."""
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup
from rich.constrain import Constrain
from rich.progress import BarColumn, TimeElapsedColumn
from rich.table import Table

from subak.cli.reproduce.board import CLAIM_WIDTH, STYLES, VERDICT_WIDTH, Board
from subak.cli.reproduce.time_left import TimeLeft, TimeLeftColumn
from subak.output.writing import new_folder
from subak.report.console import Console, Text, bars, echo, waiting
from subak.report.number_text import NOTHING, count_text, number_text, ratio_text, share_text
from subak.report.side_by_side import SideBySide
from subak.reproduce.claims import Figure, Reproduction, Row, score, title_of

ROWS_SHOWN = 60  # longer tables are drawn, not printed
Notify = Callable[[str, float], None]  # what is being measured, and which part of it is done


class Paper(NamedTuple):
    """A paper with the options that are its own."""

    title: str
    chosen: Callable[[str | None, bool], list[str]]  # of --only, and of whether more than the paper's is wanted
    reproduce: Callable[[Iterable[str], Notify], Reproduction]
    draw: Callable[[Figure], Any]
    refuse: Callable[[], None] = lambda: None  # raises InputError for what the options name and is not there
    inputs: tuple[Path, ...] = ()  # what the options name, and is read
    tells_left: bool = False  # whether its own words say which part runs, and how long all may still take


class Request(NamedTuple):
    """The options that all papers have."""

    only: str | None
    quick: bool
    out: Path | None
    seed: int
    overwrite: bool


def run(paper: Paper, request: Request) -> None:
    """Run the experiments and show them; write them too if a folder was named."""
    paper.refuse()
    keys = paper.chosen(request.only, request.out is not None and not request.quick)
    if request.out is not None:
        with new_folder(request.out, "index.html", request.overwrite, paper.inputs) as folder:
            found = _reproduced(paper, keys, TimeLeft(keys))
            with waiting("Drawing"):
                _write(paper, found, request, folder)
        echo(f"Wrote {request.out / 'index.html'}", err=True)
    else:
        found = _reproduced(paper, keys, TimeLeft(keys))
    _show(found, request, Console())


def run_into(paper: Paper, request: Request, folder: Path, left: TimeLeft) -> Board:
    """Run the paper's own figures, write them into a folder that is there, and return the scoreboard."""
    found = _reproduced(paper, paper.chosen(None, False), left)
    with waiting(f"Drawing {paper.title}"):
        _write(paper, found, request, folder)
    rows = [(row.figure, row.verdict, row.claim, row.measured, row.rule, row.reason)
            for row in found.rows if row.verdict]
    return Board(folder.name, paper.title, score(row.verdict for row in found.rows), rows)


def _reproduced(paper: Paper, keys: list[str], left: TimeLeft) -> Reproduction:
    with _progress(left, paper.tells_left) as notify:
        return paper.reproduce(left.each(keys), notify)


@contextmanager
def _progress(left: TimeLeft, tells_left: bool) -> Iterator[Callable[[str, float], None]]:
    """Show what is being measured, and how long all may still take; silent where there is no terminal.

    Whose words tell what is left has no second estimate beside it.
    """
    with bars(BarColumn(), TimeElapsedColumn(), *([] if tells_left else [TimeLeftColumn(left)])) as shown:
        bar = shown.add_task("", total=1.0)

        def notify(label: str, part: float) -> None:
            words = label if tells_left else f"{left.place}: {label}"
            if part == 0.0:
                shown.reset(bar, total=1.0, description=words)
            left.part = part
            shown.update(bar, completed=part, description=words)

        yield notify


# The terminal


def _show(found: Reproduction, request: Request, console: Console) -> None:
    console.print(Text(_verdict(found, request)), soft_wrap=True)
    rows = {key: list(group) for key, group in groupby(found.rows, key=lambda row: row.figure)}
    for figure in found.figures:
        console.print()
        if len(figure.table) <= ROWS_SHOWN:
            console.print(_table(figure))
        else:
            console.print(Text(title_of(figure), style="bold"))
        for row in rows.get(figure.key, []):
            console.print(Constrain(_claim(row), CLAIM_WIDTH))
    console.print()
    for note in found.notes:
        console.print(Constrain(Text(f"- {note}."), CLAIM_WIDTH))


def _claim(row: Row) -> Table:
    """Return a claim, and below it what became of it."""
    shown = Table.grid(padding=(0, 1, 0, 0))
    shown.add_column(width=VERDICT_WIDTH, no_wrap=True)
    shown.add_column(overflow="fold")
    shown.add_row(Text(row.verdict or NOTHING, style=STYLES[row.verdict]), Text(row.claim))
    shown.add_row("", Text(row.measured + (f"; the rule: {row.rule}" if row.rule else "")))
    if row.reason:
        shown.add_row("", Text(row.reason, style="dim"))
    return shown


def _table(figure: Figure) -> SideBySide:
    """Return a figure's numbers; the first columns that tell all rows apart stand again in each part."""
    columns = figure.table.columns
    count = next((count for count in range(1, len(columns)) if not figure.table[:, :count].is_duplicated().any()), 1)
    keys, others = columns[:count], columns[count:]
    widths = [max(map(len, [_heading(name), *(_cell(name, value) for value in figure.table[name])])) for name in keys]

    def beside(texts: list[str]) -> str:
        return "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True))

    lines = [(Text(beside([_cell(name, row[name]) for name in keys])),
              [Text(_cell(name, row[name])) for name in others]) for row in figure.table.iter_rows(named=True)]
    return SideBySide([_heading(name) for name in others], lines, title_of(figure), beside(list(map(_heading, keys))))


def _verdict(found: Reproduction, request: Request) -> str:
    said = f"{score(row.verdict for row in found.rows)}, seed {request.seed}."
    return said + (" This is the quick version: claims are about the full sizes." if request.quick else "")


def _heading(name: str) -> str:
    return name.removesuffix(" (share)").removesuffix(" (times)")


def _cell(name: str, value: object) -> str:
    if value is None or value != value:  # noqa: PLR0124  (nan)
        return NOTHING
    if isinstance(value, str):
        return value
    assert isinstance(value, int | float)
    if name.endswith("(s)"):
        return number_text(value)  # as on the axis of its chart
    if name.endswith("(times)"):
        return ratio_text(value)
    return share_text(value) if name.endswith("(share)") else count_text(value)


# The page


def _write(paper: Paper, found: Reproduction, request: Request, folder: Path) -> None:
    from subak.report.document import unchecked  # noqa: PLC0415  (slow to import, and most calls draw nothing)
    from subak.reproduce.page import Section, drawn, page  # noqa: PLC0415  (as above)

    sections = []
    rows = {key: list(group) for key, group in groupby(found.rows, key=lambda row: row.figure)}
    for each in found.figures:
        name = f"figure-{each.key}"
        with unchecked():
            chart = drawn(paper.draw(each), folder, name, title_of(each))
        each.table.write_csv(folder / f"{name}.csv")
        if each.points is not None:
            each.points.write_csv(folder / f"{name}-points.csv")
        content = _claims(rows.get(each.key, [])) + chart + _measurements(each)
        sections.append(Section(title_of(each), content))
    (folder / "index.html").write_bytes(page(paper.title, _verdict(found, request), found.notes, sections))


def _claims(rows: list[Row]) -> Markup:
    titles = ["Verdict", "Claim of the paper", "Measured", "Rule", "Why it differs, or how it is measured"]
    cells: list[list[object]] = [[row.verdict or NOTHING, row.claim, row.measured, row.rule, row.reason]
                                 for row in rows]
    from subak.reproduce.page import table  # noqa: PLC0415  (as above)

    return table("Claims", titles, cells) if rows else Markup("")


def _measurements(figure: Figure) -> Markup:
    if len(figure.table) > ROWS_SHOWN:
        return Markup("")
    names = figure.table.columns
    cells: list[list[object]] = [[_cell(name, value) for name, value in zip(names, line, strict=True)]
                                 for line in figure.table.iter_rows()]
    from subak.reproduce.page import table  # noqa: PLC0415  (as above)

    return table(title_of(figure), [_heading(name) for name in names], cells)
