"""`subak explain`: says why a task of a run is in its state; `subak explain lotes` shows LoTES's plan."""
from pathlib import Path

from rich.table import Table

from subak.cli.commands.explain_lotes import explain_lotes
from subak.errors import InputError
from subak.report.console import Console, Text
from subak.report.explain import explain as explanation

LOTES = "lotes"


def explain(run: str, task: str, fleet: Path | None, classes: int | None, settings: Path | None) -> None:
    """Explain a task of a run folder or, with the word lotes, the plan for a workload."""
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
