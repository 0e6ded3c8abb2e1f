"""Declares the arguments and help of `subak fair`."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.ending import loading


def fair(
    tree: Annotated[Path, typer.Argument(
        metavar="TREE.toml", help="The queues, what a task of each asks for, and the capacity.", show_default=False)],
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Also write index.html, its charts (svg, png) and the table (csv) to this new folder.",
        show_default=False)] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the folder of --out if it exists.")] = False,
) -> None:
    """Divide a cluster among queues by every fair order, and show each queue's share.

    The cluster is one pooled machine; queues have endless tasks unless the file gives a number. Each line is a queue:
    its guarantee, then its dominant share (its largest share of any resource) under H-DRF, under MCH as published and
    made exact, and under a tree collapsed for one resource (C-CH for cpu, M-CH for memory). `exact` is H-DRF with
    infinitely small tasks.

        capacity = { cpu = 200, memory = 200 }

        [[queue]]
        name = "research/training"     # below research, which need not be listed
        weight = 2.0                   # against its siblings; 1 if left out
        demand = { cpu = 1, memory = 4 }

    Other fields of a queue are `parent` (any other queue), `limit` (its largest dominant share) and `tasks`. Only
    `exact` keeps limits. No queue is more than 64 levels deep.

    - `subak fair tree.toml --out shares` also draws it.
    - `subak queues tree.toml` shows the tree alone.
    """
    with loading():
        from subak.cli.commands.fair import fair as share_out  # noqa: PLC0415  (loads what computes shares)

    share_out(tree, out, overwrite)
