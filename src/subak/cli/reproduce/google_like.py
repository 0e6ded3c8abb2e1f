"""`subak reproduce google-like`: the tables of the paper, measured and generated."""
from itertools import groupby
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TimeRemainingColumn
from rich.table import Table

from subak.errors import InputError
from subak.output.writing import new_folder
from subak.report import tags
from subak.report.console import Console, Text, bars, echo, waiting
from subak.report.number_text import NOTHING
from subak.reproduce.google_like.experiments import (
    TABLE_TITLES,
    Measured,
    Reproduction,
    Row,
    measure_trace,
    measure_workload,
)
from subak.reproduce.google_like.experiments import reproduce as reproduce_google_like
from subak.workload.readers.google.google2011 import events as google2011
from subak.workload.samples import sample_folder
from subak.workload.table import read_workload


def google_like(trace: Path | None, out: Path | None, seed: int, overwrite: bool) -> None:
    """Reproduce the paper's tables, show them, and write them with the figures where *out* is given."""
    if out is not None:
        with new_folder(out, "index.html", overwrite, [trace] if trace else []) as folder:
            found = _reproduced(trace, seed)
            with waiting("Drawing"):
                _write(found, folder)
        echo(f"Wrote {out / 'index.html'}", err=True)
    else:
        found = _reproduced(trace, seed)
    _show(found, Console())


def _reproduced(trace: Path | None, seed: int) -> Reproduction:
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
    return f"Measured on {found.source}; generated: 1,000,000 tasks with the paper's parameters."


def _show(found: Reproduction, console: Console) -> None:
    console.print(Text(_verdict(found)), soft_wrap=True)
    if found.source.startswith("the workload"):
        console.print(Text("This is the shipped sample, 90 minutes of arrivals; give --trace FOLDER for the trace."),
                      soft_wrap=True)
    for name, rows in groupby(found.rows, key=lambda row: row.table):
        table = Table("what", title=_title(name), title_justify="left")
        for column in ("paper", "measured", "generated"):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("where it differs", overflow="fold")
        for row in rows:
            table.add_row(*_cells(row))
        console.print(table)
    for note in found.notes:
        console.print(Text(f"- {note}."), soft_wrap=True)


def _title(name: str) -> str:
    return f"Table {name}: {TABLE_TITLES[name]}" if name != "KS" else TABLE_TITLES[name]


def _cells(row: Row) -> list[str]:
    numbers = (row.paper, row.measured, row.generated)
    return [row.what, *(_number(value, "(share" in row.what) for value in numbers), row.reason]


def _number(value: float | None, share: bool) -> str:
    if value is None:
        return NOTHING
    if share:
        return f"{value:.3%}" if value < 0.01 else f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _write(found: Reproduction, folder: Path) -> None:
    from subak.reproduce.google_like.figures import TITLES, figures  # noqa: PLC0415  (slow to import, rarely needed)
    from subak.reproduce.page import Section, drawn, page  # noqa: PLC0415  (as above)

    sections = [Section(TITLES[name], drawn(chart, folder, name, TITLES[name]))
                for name, chart in figures(found).items()]
    for name, rows in groupby(found.rows, key=lambda row: row.table):
        titles = ["What", "Paper", "Measured", "Generated", "Where it differs"]
        cells: list[list[object]] = [[*_cells(row)] for row in rows]
        sections.append(Section(_title(name), tags.words_table(_title(name), titles, cells)))
    text = page("The Google-like workload, reproduced", _verdict(found), found.notes, sections)
    (folder / "index.html").write_bytes(text)
