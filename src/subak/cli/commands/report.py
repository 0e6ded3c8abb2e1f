"""`subak report`: writes the page, pictures and table files of a run or a comparison."""
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, SpinnerColumn, TimeRemainingColumn

from subak.cli import completion
from subak.errors import InputError
from subak.report.console import bars, echo

FORMATS = ("svg", "png", "pdf", "csv", "json", "latex")


def named_folder(text: str) -> Path:
    """Return the folder of a name. Raises InputError for none: a variable of a script that nobody set, say."""
    if not text:
        raise InputError("--images, --tables: must name a folder, such as . for this one; the name is empty")
    return Path(text)


def report(
    paths: Annotated[list[Path], typer.Argument(
        metavar="PATH...", help="A run folder, or a comparison folder with several in runs/; several runs of one "
                                "workload are shown side by side.", show_default=False)],
    out: Annotated[Path | None, typer.Option(
        metavar="FILE.html", show_default=False,
        help="The file of the page; missing parent folders are created [default: PATH/report.html].")] = None,
    images: Annotated[Path | None, typer.Option(
        metavar="FOLDER", parser=named_folder, show_default=False,
        help="Also write each chart as a picture into this folder, created if missing.")] = None,
    tables: Annotated[Path | None, typer.Option(
        metavar="FOLDER", parser=named_folder, show_default=False,
        help="Also write each table as a file into this folder, created if missing.")] = None,
    formats: Annotated[str | None, typer.Option(
        "--format", metavar="svg,csv,...", show_default=False,
        autocompletion=completion.separated(completion.words(FORMATS)),
        help="The formats of pictures (svg, png, pdf) and of tables (csv, json, latex), separated by commas "
             "[default: svg,png,csv].")] = None,
    baseline: Annotated[str | None, typer.Option(
        metavar="SCHEDULER", show_default=False,
        help="The scheduler with which the others are compared [default: the first one].")] = None,
) -> None:
    """Write one self-contained HTML page with the charts and tables of a run or a comparison.

    The page needs no network. `subak compare --out R` writes it already; this writes it again, or pictures and tables
    of it. Numbers in csv and json are in seconds, bytes and shares of one.

    Runs with different fleets or settings stand side by side under what differs, as in `first-fit scale=1.5`; runs of
    different workloads are refused.

    - `subak report R`
    - `subak report R1 R2 --out both.html`
    - `subak report R --images pictures --format pdf`
    - `subak report R --tables tables --format csv,latex`
    """
    from subak.report.document import unchecked  # noqa: PLC0415  (the charts' library takes a while to load)
    from subak.report.page import write_report  # noqa: PLC0415

    kinds = None if formats is None else [name.strip() for name in formats.split(",")]
    with unchecked(), bars(SpinnerColumn(), BarColumn(), TimeRemainingColumn()) as shown:
        bar = shown.add_task("Drawing the page", total=1.0 if images else None)
        page = write_report(
            paths, out, images, kinds,
            lambda name, part: shown.update(bar, completed=part, description=f"Drawing {name}"), tables, baseline)
    echo(str(page))
