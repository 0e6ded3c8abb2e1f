"""`subak doctor`: looks at a host and says what is wrong."""
from pathlib import Path
from typing import Annotated

import typer

from subak import exit_codes
from subak.cli.ending import CommandEndedError
from subak.live.client.settings import FOLDER
from subak.report.console import Text, echo
from subak.report.number_text import counted

MARKS = {"good": "ok", "mind": "mind", "fault": "FAULT"}


def doctor(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]",
                                           help="The folder of this host, or of `subak up`.")] = Path(FOLDER),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only what is wrong or to be minded.")] = False,
) -> None:
    """Look at this host's part of a federation and say what is wrong: files, certificates, network, clock.

    It reads the folder, dials all masters that its processes dial, with their certificates, and compares clocks and
    versions. It changes nothing, and works whether the processes run or not; a master that does not run yet is a fault.
    The exit code is 1 if there is a fault.

    - `subak doctor h1` on the host h1, in the folder that `subak init` made for it.
    - `subak doctor --quiet` looks at ./subak-federation.
    """
    from subak.live.up.doctor import examined  # noqa: PLC0415  (loads cryptography)

    faults = minded = 0
    for finding in examined(folder):
        faults += finding.grade == "fault"
        minded += finding.grade == "mind"
        if finding.grade != "good" or not quiet:
            echo(Text(f"{MARKS[finding.grade]:5} {finding.about}: {finding.words}"))
    echo(f"{counted(faults, 'fault')}, {minded} to be minded" if faults or minded else "nothing is wrong")
    if faults:
        raise CommandEndedError(exit_codes.OTHERWISE)
