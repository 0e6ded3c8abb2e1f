"""Declares the arguments and help of `subak merge`."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.ending import loading
from subak.settings import OUTPUT


def merge(
    folders: Annotated[list[Path], typer.Argument(
        metavar="FOLDER...", help="Folders of shards of one study.", show_default=False)],
    out: Annotated[Path, typer.Option(
        metavar="FOLDER", help="The folder of the study; it may hold a part of it already.", show_default=False,
        rich_help_panel=OUTPUT)],
    overwrite: Annotated[bool, typer.Option(
        "--overwrite", help="Ignore everything that the folder of --out already holds.",
        rich_help_panel=OUTPUT)] = False,
) -> None:
    """Join the shards of a study into one folder, with its table and its page.

    - `subak merge R1 R2 R3 --out R`, after `subak experiment STUDY.toml --shard 1/3 --out R1` and so on.

    The result is the same, to the byte, as from one machine. Missing runs are named, and the exit code is then 2;
    `subak experiment STUDY.toml --out R` does them.
    """
    with loading():
        from subak.cli.commands.merge import merge as merge_shards  # noqa: PLC0415  (loads tables and charts)

    merge_shards(folders, out, overwrite)
