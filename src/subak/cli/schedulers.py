"""`subak schedulers`: what there is to choose from."""
from rich.console import Console
from rich.table import Table

from subak.placement.schedulers import OPTIONS, SCHEDULERS


def schedulers() -> None:
    """List the schedulers and the options that may follow their names."""
    console = Console()
    table = Table("Scheduler", "What it does", "Options", title="Schedulers", title_justify="left")
    for scheduler in SCHEDULERS.values():
        table.add_row(scheduler.name, scheduler.summary, ", ".join(sorted(scheduler.accepts)) or "none")
    console.print(table)
    options = Table("Option", "What it changes", title="Options, behind a plus sign: first-fit+backfill",
                    title_justify="left")
    for name, text in OPTIONS.items():
        options.add_row(name, text)
    console.print(options)
    console.print("A policy of your own: FILE.py:NAME (see the tutorial and the module subak.policy).")
