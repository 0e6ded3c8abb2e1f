"""`subak explain`: why one task of a run stands as it stands."""
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from subak.report.explain import explain as explanation


def explain(
    run: Annotated[Path, typer.Argument(
        metavar="RUN", help="A run folder, such as those in the folder runs of a comparison.", show_default=False)],
    task: Annotated[str, typer.Argument(
        metavar="TASK", help="JOB/INDEX, as in the first columns of tasks.parquet, or the row number of the task.",
        show_default=False)],
) -> None:
    """Say why a task stands as it stands when the run ends.

    Of a task that started: when, where, and what the wait before it was spent on. Of one that waits: what every machine
    lacks; under `megha` and `central` also what each partition lacked, and how old its global master's view of it was.
    Of one that no machine could ever hold: why.

    - `subak explain R 17/0` explains the first task of job 17.
    - `subak explain C/runs/megha 1234` explains the task of row 1234 in one run of a comparison.

    The reasons of all waiting tasks, with their numbers, are in the output of `subak simulate` and on the page of
    `subak report`.
    """
    found = explanation(run, task)
    console = Console()
    console.print(Text(found.title, style="bold"))
    table = Table.grid(padding=(0, 2))
    for name, value in found.facts:
        table.add_row(Text(name, style="dim"), Text(value))
    console.print(table)
    for line in found.why:
        console.print(Text(line))
