"""Declares the arguments and help of `subak fit`."""
from pathlib import Path
from typing import Annotated, Literal

import typer

from subak.cli import completion
from subak.cli.ending import loading
from subak.cli.limits import COUNT_MAX


def fit(
    workload: Annotated[str, typer.Argument(
        metavar="WORKLOAD", help="A workload folder, from any trace, or the name of a shipped sample (google2011).",
        autocompletion=completion.workload)],
    out: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write the parameters to this .toml file, which `subak generate` takes.")] = None,
    chart: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Also draw data against models in this .html (works offline), .svg or .png file.")] = None,
    request_classes: Annotated[int, typer.Option(
        metavar="N", min=1, max=COUNT_MAX, help="Keep the N most frequent joint requests; each other one joins the "
                                               "nearest.")] = 64,
    censored: Annotated[Literal["account", "ignore"], typer.Option(
        help="What to make of tasks that were still running when the trace ended: account for them as right-censored, "
             "or ignore them, as the paper does.")] = "account",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE of --out if it exists.")] = False,
) -> None:
    """Fit the Google-like model to a workload: parameters with 95 % intervals, and the goodness of five laws.

    Example: `subak fit W --out like-mine.toml --chart fit.html`, then `subak generate --parameters like-mine.toml`.
    """
    with loading():
        from subak.cli.commands.workloads.fit import fit as fit_workload  # noqa: PLC0415  (loads what fits)

    fit_workload(workload, out, chart, request_classes, censored, overwrite)
