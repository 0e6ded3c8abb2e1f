"""`subak reproduce google-like`: sets the paper's tables beside measured and generated ones."""
from itertools import groupby
from pathlib import Path

from rich.constrain import Constrain
from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TimeRemainingColumn

from subak.cli.reproduce.board import CLAIM_WIDTH, STYLES, Board
from subak.errors import InputError
from subak.output.writing import new_folder
from subak.report.console import Console, Text, bars, echo, waiting
from subak.report.number_text import NOTHING
from subak.report.side_by_side import SideBySide
from subak.reproduce.claims import score
from subak.reproduce.google_like.experiments import TABLE_TITLES, Reproduction
from subak.reproduce.google_like.experiments import reproduce as reproduce_google_like
from subak.reproduce.google_like.measured import Measured, measure_trace, measure_workload
from subak.reproduce.google_like.row import NEAR, Row
from subak.workload.readers.google.google2011 import events as google2011
from subak.workload.samples import sample_folder
from subak.workload.table import read_workload

TITLE = "The Google-like workload, reproduced"
RULE = f"within {NEAR:.0%} of the paper's figure; a share also within {NEAR:.0%} of what is left to 100 %"


def google_like(trace: Path | None, out: Path | None, seed: int, overwrite: bool) -> None:
    """Reproduce the paper's tables, show them, and write them with the figures where *out* is given."""
    if out is not None:
        with new_folder(out, "index.html", overwrite, [trace] if trace else []) as folder:
            found = reproduced(trace, seed)
            with waiting("Drawing"):
                write(found, folder)
        echo(f"Wrote {out / 'index.html'}", err=True)
    else:
        found = reproduced(trace, seed)
    _show(found, Console())


def board(found: Reproduction, name: str) -> Board:
    """Return what became of its figures."""
    rows = [(f"Table {row.table}" if row.table != "KS" else "Laws", row.verdict,
             f"{row.what}: {_number(row.paper, row.is_share)}", _number(row.measured, row.is_share), RULE,
             row.reason) for row in found.rows if row.verdict]
    return Board(name, TITLE, score(row.verdict for row in found.rows), rows)


def reproduced(trace: Path | None, seed: int) -> Reproduction:
    """Run the paper's measurements on a trace, or on the shipped sample."""
    measured = _measured(trace)
    with waiting("Generating a million tasks"):
        return reproduce_google_like(measured, seed)


def _measured(trace: Path | None) -> Measured:
    if trace is None:
        return measure_workload(read_workload(sample_folder()))
    if not trace.is_dir():
        raise InputError(f"{trace}: no such folder")
    total = sum(path.stat().st_size for path in google2011.files(trace))
    with bars(SpinnerColumn(), BarColumn(), DownloadColumn(), TimeRemainingColumn()) as progress:
        bar = progress.add_task(f"Reading {trace}", total=total)
        return measure_trace(trace, lambda read: progress.advance(bar, read))


def _verdict(found: Reproduction) -> str:
    said = score(row.verdict for row in found.rows)
    return f"{said} ({RULE}). Measured on {found.source}; generated: 1,000,000 tasks with the paper's parameters."


def _show(found: Reproduction, console: Console) -> None:
    console.print(Constrain(Text(_verdict(found)), CLAIM_WIDTH))
    if found.source.startswith("the workload"):
        console.print(Constrain(Text("This is the shipped sample, 90 minutes of arrivals; give --trace FOLDER for the "
                                     "trace."), CLAIM_WIDTH))
    for name, group in groupby(found.rows, key=lambda row: row.table):
        rows = list(group)
        console.print()
        console.print(SideBySide(["paper", "measured", "generated", "verdict"], [
            (Text(row.what), [*map(Text, _numbers(row)), Text(row.verdict or NOTHING, style=STYLES[row.verdict])])
            for row in rows], _title(name)))
        for reason, each in groupby((row for row in rows if row.reason), key=lambda row: row.reason):
            about = ", ".join(row.what for row in each)
            console.print(Constrain(Text(f"- {about}: {reason}", style="dim"), CLAIM_WIDTH))
    console.print()
    for note in found.notes:
        console.print(Constrain(Text(f"- {note}."), CLAIM_WIDTH))


def _title(name: str) -> str:
    return f"Table {name}: {TABLE_TITLES[name]}" if name != "KS" else TABLE_TITLES[name]


def _numbers(row: Row) -> list[str]:
    return [_number(value, row.is_share) for value in (row.paper, row.measured, row.generated)]


def _number(value: float | None, share: bool) -> str:
    if value is None:
        return NOTHING
    if share:
        return f"{value:.3%}" if value < 0.01 else f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def write(found: Reproduction, folder: Path) -> None:
    """Write the page and its figures into *folder*."""
    from subak.report.document import unchecked  # noqa: PLC0415  (as above)
    from subak.reproduce.google_like.figures import TITLES, figures  # noqa: PLC0415  (slow to import, rarely needed)
    from subak.reproduce.page import Section, drawn, page, table  # noqa: PLC0415  (as above)

    with unchecked():
        sections = [Section(TITLES[name], drawn(chart, folder, name, TITLES[name]))
                    for name, chart in figures(found).items()]
    for name, rows in groupby(found.rows, key=lambda row: row.table):
        titles = ["What", "Verdict", "Paper", "Measured", "Generated", "Why it differs, or how it is measured"]
        cells: list[list[object]] = [[row.what, row.verdict or NOTHING, *_numbers(row), row.reason] for row in rows]
        sections.append(Section(_title(name), table(_title(name), titles, cells)))
    text = page(TITLE, _verdict(found), found.notes, sections)
    (folder / "index.html").write_bytes(text)
