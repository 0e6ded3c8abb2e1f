"""`subak explain`: why one task of a run stands as it stands; `subak explain lotes`: what LoTES plans."""
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from subak.cli.commands.explain_lotes import explain_lotes
from subak.errors import InputError
from subak.placement.lotes.settings import CLASSES_MAX
from subak.report.console import Console, Text
from subak.report.explain import explain as explanation

LOTES = "lotes"
WITH_LOTES = "With lotes in place of RUN"


def explain(
    run: Annotated[str, typer.Argument(
        metavar="RUN", help="A run folder, such as those in the folder runs of a comparison; or the word lotes (a "
                            "folder of that name is ./lotes).", show_default=False)],
    task: Annotated[str, typer.Argument(
        metavar="TASK", help="JOB/INDEX, as in the first columns of tasks.parquet, or the row number of the task; "
                             "with lotes: a workload folder, or the name of a shipped sample.", show_default=False)],
    fleet: Annotated[Path | None, typer.Argument(
        metavar="[FLEET]", help="Only with lotes: the fleet folder [default: the folder `fleet` in the workload's].",
        show_default=False)] = None,
    classes: Annotated[int | None, typer.Option(
        metavar="N", min=0, max=CLASSES_MAX, show_default=False, rich_help_panel=WITH_LOTES,
        help="How many clusters of requests; 0: as many as a criterion finds [default: 4].")] = None,
    settings: Annotated[Path | None, typer.Option(
        metavar="FILE.toml", show_default=False, rich_help_panel=WITH_LOTES,
        help="Settings of the plan, a key each, such as window_seconds = 3600; --classes comes before it.")] = None,
) -> None:
    """Say why a task stands as it stands when the run ends; or, with `lotes`, what LoTES plans before a run.

    Of a task that started: when, where, and what the wait before it was spent on. Of one that waits: what every machine
    lacks; under `megha` and `central` also what each partition lacked, and how old its global master's view of it was.
    Of one that no machine could ever hold: why.

    - `subak explain R 17/0` explains the first task of job 17.
    - `subak explain C/runs/megha 1234` explains the task of row 1234 in one run of a comparison.
    - `subak explain lotes W` shows the classes of workload W, the largest rate its fleet could serve, which part of
      each configuration serves which class, and which machines emulate which bin.

    The reasons of all waiting tasks, with their numbers, are in the output of `subak simulate` and on the page of
    `subak report`.
    """
    if run == LOTES:
        explain_lotes(task, fleet, classes, settings)
        return
    for name, value in (("FLEET", fleet), ("--classes", classes), ("--settings", settings)):
        if value is not None:
            raise InputError(f"{name}: goes only with lotes in place of RUN, as in subak explain lotes WORKLOAD; it "
                             f"says nothing of a task of {run}")
    _explain_task(Path(run), task)


def _explain_task(run: Path, task: str) -> None:
    found = explanation(run, task)
    console = Console()
    console.print(Text(found.title, style="bold"))
    table = Table.grid(padding=(0, 2))
    for name, value in found.facts:
        table.add_row(Text(name, style="dim"), Text(value))
    console.print(table)
    for line in found.why:
        console.print(Text(line))
