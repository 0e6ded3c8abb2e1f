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
    """Look after the stores of masters: check, copy, put back, take over from one that is lost.

    - `subak store check data/g0` looks at every row.
    - `subak store backup data/g0 /backup/g0-monday` copies it while its master runs.
    - `subak store restore /backup/g0-monday data/g0` puts the copy back where the store is gone.
    - `subak store adopt g0.toml` lets it take over when g0 says that it is not the one in use.
    """


@app.command("check")
def check(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=f"{DATA} Or a copy.",
                                                 show_default=False)]) -> None:
    """Look at every row of a store, also while its master runs; exit code 7 where one is not as it was written.

    Example: `subak store check data/g0`.
    """
    from subak.live.store.copying import check as check_store  # noqa: PLC0415  (other commands do without)

    echo(f"{folder}: {_found(check_store(folder))}")


@app.command("backup")
def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=DATA, show_default=False)],
    to: Annotated[Path, typer.Argument(metavar="COPY", help="The new folder with the copy.", show_default=False)],
) -> None:
    """Copy the store of a master, as it is at one moment, also while the master runs.

    The copy is looked through, and is there as a whole or not at all. What a copy is good for, and what is lost with
    it, is on the page about stores.

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
    """Put a copy of a store back where the store is gone.

    The master is started then. A global master whose copy is older than what was in use is refused by local masters:
    see `subak store adopt`.

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

    A global master whose store is lost, or older than it was, is refused by local masters, says so, and ends with exit
    code 7. Where the folder that was in use is really gone, the one that is there takes over: what was begun from the
    former one is ended when the global master starts, no number of a job is given again, and the former store is
    refused if it comes back. Jobs that the store does not have are lost; tasks of jobs that it has run again where it
    does not know of their ends.

    Example: `subak store adopt g0.toml`, then start the global master again.
    """
    from subak.live.process.adopting import adopt_store  # noqa: PLC0415  (other commands do without)

    for line in adopt_store(file):
        echo(line)
