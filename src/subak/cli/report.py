"""`subak report`: one page, and pictures of its charts, from a run or a comparison."""
from pathlib import Path
from typing import Annotated

import typer

from subak.report.page import IMAGE_FORMATS, write_report


def report(
    path: Annotated[Path, typer.Argument(help="A run folder, or a comparison folder with several in runs/.",
                                         show_default=False)],
    out: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Where the page goes, if not "
                                                                       "PATH/report.html.")] = None,
    images: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Also write each chart as a picture "
                                                                       "into this folder.")] = None,
    formats: Annotated[str, typer.Option("--format", help="The pictures' formats, separated by commas.")]
    = ",".join(IMAGE_FORMATS),
) -> None:
    """Write one self-contained HTML page with the charts and tables of a run or a comparison."""
    typer.echo(write_report(path, out, images, [name.strip() for name in formats.split(",")]))
