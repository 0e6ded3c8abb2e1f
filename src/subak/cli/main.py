"""The `subak` command: every subcommand is a function in a file of its own, registered here."""
import os
import sys

import typer
from rich.console import Console

import subak
from subak.cli.compare import compare
from subak.cli.convert import convert
from subak.cli.inspect import inspect
from subak.cli.report import report
from subak.cli.schedulers import schedulers
from subak.cli.simulate import simulate
from subak.errors import SubakError

app = typer.Typer(
    name="subak",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Schedule federated data centers, and compare policies on real traces.",
)
for command in (simulate, compare, report, convert, inspect, schedulers):
    app.command()(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"subak {subak.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True,
                                 help="Print the version and stop."),
) -> None:
    """Schedule federated data centers, and compare policies on real traces."""


def main() -> None:
    """Run the command line; a user's mistake becomes one line on standard error and exit code 2."""
    try:
        app()
    except SubakError as error:
        Console(stderr=True).print(f"subak: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("subak: interrupted; nothing was written", soft_wrap=True)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
