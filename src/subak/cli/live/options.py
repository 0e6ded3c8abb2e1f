"""Declares the options that live commands share, and connects them to the federation."""
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from subak import exit_codes
from subak.cli.ending import CommandEndedError
from subak.cli.limits import COUNT_MAX
from subak.cli.live.scripts import is_script
from subak.errors import InputError
from subak.live.api.models import ID_PATTERN, JOB_PATTERN, MACHINE_PATTERN, NAME_PATTERN, TASK_PATTERN
from subak.quantities import parse_duration
from subak.report.console import echo

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client

JOB, TASK = "a job such as g0-17, or its name", "a task such as g0-17.3, or NAME.3"
ANY = "a job such as g0-17, its name, or a task such as g0-17.3"
MACHINE = "the name of a machine"
FORMS = {  # of what is no id of another kind, a name
    JOB: f"{JOB_PATTERN}|(?!{TASK_PATTERN}){NAME_PATTERN}", ANY: f"{ID_PATTERN}|{NAME_PATTERN}",
    TASK: rf"{TASK_PATTERN}|{NAME_PATTERN[:-1]}\.[0-9]{{1,9}}$", MACHINE: MACHINE_PATTERN}


class Output(StrEnum):
    """How an answer is printed."""

    TABLE, JSON, YAML = "table", "json", "yaml"


ClientOption = Annotated[Path | None, typer.Option(
    "--client", metavar="FILE.toml", show_default=False,
    help="A file with the address and the token file of the federation (keys address and token_file) [default: "
         "SUBAK_ADDRESS and "
         "SUBAK_TOKEN, else ~/.config/subak/client.toml].")]
OutputOption = Annotated[Output, typer.Option(
    "--output", "-o", metavar="table|json|yaml", help="The output format.")]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=COUNT_MAX, help="How many at most.")]


@contextmanager
def opened(file: Path | None, after: str = "") -> Iterator["Client"]:
    """Open a client of the federation that the options name; *after* Ctrl-C, a command that changes things says more.

    What was asked of a federation it may have done, whether or not its answer was still read.
    """
    from subak.live.client import Client, read_settings  # noqa: PLC0415  (see above)

    with if_interrupted(lambda: f"interrupted{after and '; '}{after}"), Client(read_settings(file)) as client:
        yield client


@contextmanager
def if_interrupted(words: Callable[[], str]) -> Iterator[None]:
    """Say on Ctrl-C how things stand, and end the command with its exit code."""
    try:
        yield
    except KeyboardInterrupt:
        echo(f"subak: {words()}", err=True)
        raise CommandEndedError(exit_codes.INTERRUPTED) from None


def time_of(text: str, now: float) -> float:
    """Return the Unix time that --since names: a duration before *now*, or a time. Raises InputError."""
    with suppress(ValueError):
        return now - parse_duration(text)
    with suppress(ValueError):
        return datetime.fromisoformat(text).timestamp()
    raise InputError(f"--since: must be a duration such as 2h or a time such as 2026-11-27T10:00, not {text!r}")


def checked(text: str, what: str, argument: str) -> str:
    """Return an argument. Raises InputError for one that cannot be *what*, such as JOB."""
    if what == JOB and re.fullmatch(TASK_PATTERN, text):
        raise InputError(f"{argument}: takes whole jobs, and {text} is a task")
    if not re.fullmatch(FORMS[what], text) and not (what in (JOB, ANY) and is_script(text)):
        raise InputError(f"{argument}: must be {what}, not {text!r}")
    return text


def file_bytes(path: Path) -> bytes:
    """Return what a file holds, or standard input for ``-``. Raises InputError for one that cannot be read."""
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{str(path)!r}: is no name of a file") from None
