"""Exports tables as CSV and JSON in base units, or as LaTeX."""
import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

from subak.measures.runs import Run, groups
from subak.output.plain import plain
from subak.output.writing import write_file
from subak.report.fairness_tables import QUEUES_FOLDED, queue_table
from subak.report.tables.differences import Compared
from subak.report.tables.energy import energy_tables
from subak.report.tables.federation import federation_tables
from subak.report.tables.measures import tidy_table, wide_table
from subak.report.tables.outcomes import outcome_tables, run_table
from subak.report.tables.table import Amount, Cell, Table, text_of

SUFFIXES = {"csv": ".csv", "json": ".json", "latex": ".tex"}
TABLE_FORMATS = tuple(SUFFIXES)
# What LaTeX would take for a command, and what its usual fonts lack.
LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
    "\u2013": r"\textendash{}", "\u2212": "$-$", "\u00b5": r"\textmu{}", "\u2026": r"\ldots{}", "\u2264": r"$\leq$",
    "\u00d7": r"$\times$", "[": "{[}", "]": "{]}",
})


def report_tables(runs: list[Run], kind: str) -> list[Table]:
    """Return all tables of a report but the comparison; those without rows are left out, and in print most queues."""
    queues = queue_table(runs, QUEUES_FOLDED if kind == "latex" else None)
    tables = [*outcome_tables(runs), queues, *federation_tables(runs), *energy_tables(runs), run_table(runs)]
    return [table for table in tables if table.rows]


def write_tables(runs: list[Run], rows: Sequence[Compared], baseline: int, folder: Path,
                 formats: Sequence[str]) -> list[Path]:
    """Write every table into *folder* as ``<name>.csv``, ``.json`` or ``.tex``, and return the paths."""
    names = list(groups(runs))
    written: list[Path] = []
    for kind in formats:
        comparison = wide_table(rows, names) if kind == "latex" else tidy_table(rows, names, baseline)
        for table in (comparison, *report_tables(runs, kind)):
            written.append(folder / f"{table.name}{SUFFIXES[kind]}")
            write_file(written[-1], WRITERS[kind](table).encode("utf-8", "backslashreplace"))
    return written


def table_paths(runs: list[Run], folder: Path, formats: Sequence[str]) -> list[Path]:
    """Return where `write_tables` writes."""
    return [folder / f"{name}{SUFFIXES[kind]}" for kind in formats
            for name in ("comparison", *(table.name for table in report_tables(runs, kind)))]


def as_csv(table: Table) -> str:
    """Return a table as comma-separated values under a line of titles; what does not exist is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([plain(title) for title in table.titles])
    writer.writerows([_csv_cell(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def as_json(table: Table) -> str:
    """Return a table as a list of objects with its titles as keys; what does not exist is null."""
    rows = [dict(zip(table.titles, map(_value, row), strict=True)) for row in table.rows]
    return json.dumps(rows, indent=1, allow_nan=False) + "\n"


def as_latex(table: Table) -> str:
    """Return a table as a `tabular` with its caption, of text in which LaTeX finds no command."""
    columns = "l" + "".join("r" if all(isinstance(row[number], Amount) for row in table.rows) else "l"
                            for number in range(1, len(table.titles)))
    lines = [_latex_line(table.titles), r"\hline", *(_latex_line([text_of(cell) for cell in row])
                                                     for row in table.rows)]
    inside = "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\hline", *lines, r"\hline", r"\end{tabular}"])
    return f"\\begin{{table}}\n\\centering\n\\caption{{{latex_text(table.caption)}}}\n{inside}\n\\end{{table}}\n"


def latex_text(text: str) -> str:
    """Return plain text for LaTeX: its special characters are printed as they are, on one line."""
    return re.sub("-(?=-)", "-{}", re.sub(r"\s+", " ", plain(text)).translate(LATEX))


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"


def _value(cell: Cell) -> float | str | None:
    return cell.value if isinstance(cell, Amount) else cell


def _csv_cell(cell: Cell) -> float | str:
    value = _value(cell)
    return "" if value is None else plain(value) if isinstance(value, str) else value


WRITERS = {"csv": as_csv, "json": as_json, "latex": as_latex}
