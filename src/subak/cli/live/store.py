"""`subak store`: checks, copies and restores the data folders of masters."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.listed import LOOK
from subak.report.console import echo
from subak.report.number_text import counted

app = typer.Typer(**LOOK)
DATA = "The folder `data` of a master."
CopyArgument = Annotated[Path, typer.Argument(metavar="COPY", help="The folder with the copy.", show_default=False)]
MasterArgument = Annotated[Path, typer.Argument(metavar="FILE.toml", show_default=False,
                                                help="The file of a global master that has ended.")]


@app.callback()
def stores() -> None:
    """Check, copy and restore the stores of masters, or let one take over from a lost one.

    - `subak store check data/g0` looks at every row.
    - `subak store backup data/g0 /backup/g0-monday` copies it while its master runs.
    - `subak store restore /backup/g0-monday data/g0` puts the copy back where the store is gone.
    - `subak store adopt g0.toml` lets it take over when g0 says that it is not the one in use.
    """


@app.command("check")
def check(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=f"{DATA} Or a copy.",
                                                 show_default=False)]) -> None:
    """Check every row of a store, also while its master runs; exit code 7 if one is damaged.

    Example: `subak store check data/g0`.
    """
    from subak.live.store.copying import check as check_store  # noqa: PLC0415  (other commands do without)

    echo(f"{folder}: {_found(check_store(folder))}")


@app.command("backup")
def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=DATA, show_default=False)],
    to: Annotated[Path, typer.Argument(metavar="COPY", help="The new folder with the copy.", show_default=False)],
) -> None:
    """Copy the store of a master as of one moment, also while the master runs.

    The copy is checked, and is whole or absent. The page about stores says what a copy can and cannot restore.

    Example: `subak store backup data/g0 /backup/g0-monday`.
    """
    from subak.live.store.copying import back_up  # noqa: PLC0415  (as above)

    echo(f"{to}: {_found(back_up(folder, to))}")


@app.command("restore")
def restore(
    copy: CopyArgument,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False,
                                           help=f"{DATA} A store that is there is not replaced.")],
) -> None:
    """Restore a copy of a store that is gone.

    Then start the master. Local masters refuse a global master whose copy is older than the store that was in use: see
    `subak store adopt`.

    Example: `subak store restore /backup/g0-monday data/g0`.
    """
    from subak.live.store.copying import restore as put_back  # noqa: PLC0415  (as above)

    echo(f"{folder}: {_found(put_back(copy, folder))}; start its master")


def _found(rows: int | None) -> str:
    if rows is None:
        return "all pages are whole; its rows have no checksums before a master of this version has opened it"
    return f"{counted(rows, 'row')}, all as they were written"


@app.command("adopt")
def adopt(file: MasterArgument) -> None:
    """Let the store of a global master take over from the one that was in use, and say what is lost.

    Local masters refuse a global master whose store is lost or old; it then ends with exit code 7. If the folder that
    was in use is really gone, this command lets the present one take over. When the global master starts, tasks of the
    former store are ended, no job number is reused, and the former store is refused if it comes back. Jobs missing from
    this store are lost; tasks whose ends it does not know run again.

    Example: `subak store adopt g0.toml`, then start the global master again.
    """
    from subak.live.process.adopting import adopt_store  # noqa: PLC0415  (other commands do without)

    for line in adopt_store(file):
        echo(line)
