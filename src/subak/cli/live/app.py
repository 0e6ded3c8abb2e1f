"""The commands of a live federation, which are there without the simulator being loaded."""
from typing import Any

import typer

from subak.cli.live.change import cancel, preempt
from subak.cli.live.federation import apply
from subak.cli.live.follow import logs, watch
from subak.cli.live.jobs import describe, history, list
from subak.cli.live.machines import cordon, drain, machines, uncordon
from subak.cli.live.processes import global_master, local_master, worker
from subak.cli.live.shared import explain, queues
from subak.cli.live.submit import run, submit
from subak.cli.live.up import down, up

# What Typer raises for a command line it does not understand; of its family, it exports only BadParameter.
UsageError: Any = typer.BadParameter.__base__
SHARED = (explain, queues)  # words that the simulator has too
COMMANDS = (
    submit, run, list, describe, logs, watch, cancel, preempt, machines, cordon, uncordon, drain, history, apply,
    up, down, global_master, local_master, worker,
)
WORDS = frozenset(command.__name__.replace("_", "-") for command in (*COMMANDS, *SHARED))

CONTEXTS: dict[Any, dict[str, Any]] = {run: {"allow_interspersed_args": False}}  # what follows a command is its own


def register(app: typer.Typer, panel: str | None = None) -> None:
    """Add the commands that only a live federation has, below a heading of the help."""
    for command in COMMANDS:
        app.command(rich_help_panel=panel, context_settings=CONTEXTS.get(command))(command)


app = typer.Typer(name="subak", rich_markup_mode="markdown", pretty_exceptions_enable=False, add_completion=False)
register(app)
for command in SHARED:
    app.command()(command)
