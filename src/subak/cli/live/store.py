"""`subak store`: what becomes of the data folders of masters."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.listed import LOOK
from subak.report.console import echo

app = typer.Typer(**LOOK)
MasterArgument = Annotated[Path, typer.Argument(metavar="FILE.toml", show_default=False,
                                                help="The file of a global master that has ended.")]


@app.callback()
def stores() -> None:
    """Look after the stores of masters: take over from one that is lost.

    Example: `subak store adopt g0.toml` when the folder with the data of g0 is gone, and g0 says that it may not go on.
    """


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
