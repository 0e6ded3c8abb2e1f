"""The `subak` command: every subcommand is a function in a file of its own, registered here."""
import signal
import sys
from typing import Any

import typer

import subak
from subak.cli.compare import compare
from subak.cli.console import say
from subak.cli.convert import convert
from subak.cli.explain import explain
from subak.cli.fair import fair
from subak.cli.fit import fit
from subak.cli.generate import generate
from subak.cli.generate_mapreduce import generate_mapreduce
from subak.cli.inspect import inspect
from subak.cli.queues import queues
from subak.cli.report import report
from subak.cli.reproduce import app as reproduce
from subak.cli.schedulers import schedulers
from subak.cli.simulate import simulate
from subak.cli.torture import torture
from subak.errors import SubakError
from subak.output.writing import written

MISTAKE, INTERRUPTED, ENDED = 2, 130, 143  # exit codes; the last two as shells count Ctrl-C and SIGTERM
# What Typer raises for a command line it does not understand; of its family, it exports only BadParameter.
UsageError: Any = typer.BadParameter.__base__

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


def main() -> None:
    """Run the command line; a user's mistake becomes one line on standard error and exit code 2."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED))  # so that nothing half-written, and no process, is left
    try:
        code = app(prog_name="subak", standalone_mode=False)
    except SubakError as error:
        _fail(str(error))
    except UsageError as error:
        where = error.ctx.command_path if error.ctx else "subak"
        _fail(f"{error.format_message().rstrip('.')} (see {where} --help)")
    except OSError as error:  # of a name that no file can have, a folder that may not be entered, a disk that fails
        _fail(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
    except MemoryError:
        _fail("out of memory")
    if code == INTERRUPTED:
        _say(f"interrupted; {written[-1]} was written" if written else "interrupted; nothing was written")
    sys.exit(code)


def _fail(text: str) -> None:
    _say(text, style="red")
    sys.exit(MISTAKE)


def _say(text: str, style: str = "") -> None:
    say(f"subak: {text}", stderr=True, style=style)
