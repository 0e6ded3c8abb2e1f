"""The commands of `subak`: every one is a function in a file of its own, registered here."""
import typer

import subak
from subak.cli.commands.compare import compare
from subak.cli.commands.convert import convert
from subak.cli.commands.fair import fair
from subak.cli.commands.fit import fit
from subak.cli.commands.generate import generate
from subak.cli.commands.generate_mapreduce import generate_mapreduce
from subak.cli.commands.inspect import inspect
from subak.cli.commands.report import report
from subak.cli.commands.schedulers import schedulers
from subak.cli.commands.simulate import simulate
from subak.cli.live.app import register
from subak.cli.live.shared import explain, queues
from subak.cli.reproduce.commands import app as reproduce
from subak.cli.torture.command import torture

app = typer.Typer(
    name="subak",
    invoke_without_command=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    epilog="Start with `subak compare`: it runs on a shipped sample. A command's own help: `subak compare --help`.",
)
COMMANDS = (
    simulate, compare, report, explain, convert, inspect, generate, generate_mapreduce, fit, schedulers, fair, queues,
    torture,
)
for command in COMMANDS:
    app.command()(command)
register(app, "A live federation")
app.add_typer(reproduce, name="reproduce")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"subak {subak.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True,
                                 help="Print the version and stop."),
) -> None:
    """Schedule federated data centers, and compare policies on real traces."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
