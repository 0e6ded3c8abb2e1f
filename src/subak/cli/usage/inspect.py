"""Declares the arguments and help of `subak inspect`."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli import completion
from subak.cli.ending import loading
from subak.cli.limits import COUNT_MAX


def inspect(
    path: Annotated[str, typer.Argument(
        metavar="PATH", help="A workload folder, with or without a fleet in it, or a fleet folder, or the name of a "
                             "shipped sample (google2011).",
        autocompletion=completion.workload)],
    largest: Annotated[int, typer.Option(
        metavar="N", min=0, max=COUNT_MAX, help="How many of the largest jobs to list.")] = 10,
    chart: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Also write a chart to this .html (one file, works offline), .svg or .png file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Describe a workload or a fleet: counts, spans, quantiles, requested against capacity over time, largest jobs.

    "Requested" is the use if every task started on arrival. Examples: `subak inspect google2011`,
    `subak inspect W --chart W.html`.
    """
    with loading():
        from subak.cli.commands.workloads.inspect import inspect as inspect_folder  # noqa: PLC0415  (loads what describes)

    inspect_folder(path, largest, chart, as_json)
