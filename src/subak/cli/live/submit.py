"""`subak submit` and `subak run`: jobs from files, and a command as a job."""
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from subak import exit_codes
from subak.cli.ending import CommandEndedError
from subak.cli.live.options import (
    ClientOption,
    Output,
    OutputOption,
    file_bytes,
    opened,
)
from subak.cli.live.show import counts_text, remark, show
from subak.cli.live.writing import OutputWriter, write_attempts
from subak.errors import InputError, SubakError
from subak.live.api.models import CANCELLED, FAILED, FINISHED, STREAMS, TIMED_OUT, JobView, TaskView
from subak.report.console import echo

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client, ClientSettings

HEARD_S = 0.2  # between two looks for Ctrl-C


def submit(
    files: Annotated[list[Path], typer.Argument(
        metavar="FILE...", help="Job files in YAML or JSON; - is standard input.", show_default=False)],
    key: Annotated[str, typer.Option(
        "--key", metavar="TEXT", show_default=False,
        help="What this submission is called: with the same key the same job is submitted once, however often this is "
             "run; goes with one file.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all have ended; exit code 1 if one did not "
                                                      "finish.")] = False,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Submit jobs; each is on disk when its id is printed.

    - `subak submit job.yaml` prints the id of the job.
    - `subak submit train.yaml test.yaml --wait` waits for both.
    - `subak submit job.yaml --key nightly-2026-11-22` is safe to repeat, also after a crash of whoever calls it.
    """
    if key and len(files) > 1:
        raise InputError("--key: goes with one file, for it names one job")
    with opened(client) as federation:
        found = [_submitted(federation, file, key, output) for file in files]
        ended = [_waited(federation, job) for job in found] if wait else found
    show(ended, output)
    if wait and any(job.outcome != FINISHED for job in ended):
        raise CommandEndedError(exit_codes.OTHERWISE)


def _submitted(federation: "Client", file: Path, key: str, output: Output) -> JobView:
    """Submit a file; what was submitted is said at once, for the next may be refused."""
    job = federation.submit(file_bytes(file), key=key, file=str(file))
    if output == Output.TABLE:
        echo(f"{job.id} {job.name} submitted to {job.queue}: {job.tasks:,} tasks")
    return job


def _waited(federation: "Client", job: JobView) -> JobView:
    while job.state != "ended":
        job = federation.wait(job.id)
    remark([f"{job.id} {job.outcome}: {job.reason or counts_text(job.counts)}"])
    return job


def run(
    command: Annotated[list[str], typer.Argument(
        metavar="-- COMMAND...", help="The command and its arguments; no shell reads them.", show_default=False)],
    queue: Annotated[str, typer.Option("--queue", metavar="PATH", show_default=False, help="Such as research/ada.")],
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", show_default=False,
                                             help="Of the job [default: the command's].")] = None,
    resources: Annotated[list[str] | None, typer.Option(
        "--resource", "-r", metavar="NAME=AMOUNT", show_default=False,
        help="What it asks for, such as cpu=500m or memory=4Gi; once for each [default: cpu=1].")] = None,
    env: Annotated[list[str] | None, typer.Option(
        "--env", "-e", metavar="NAME=VALUE", show_default=False, help="A variable of its environment; once for "
                                                                      "each.")] = None,
    workdir: Annotated[str | None, typer.Option("--workdir", metavar="FOLDER", show_default=False,
                                                help="Where it runs, on its machine [default: /].")] = None,
    time_limit: Annotated[str | None, typer.Option("--time-limit", metavar="DURATION", show_default=False,
                                                   help="That it may run, such as 90s or 1h30m.")] = None,
    priority: Annotated[int | None, typer.Option("--priority", metavar="N", show_default=False,
                                                 help="Larger is more important [default: 0].")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the id of the job, and do not wait.")] = False,
    raw: Annotated[bool, typer.Option(
        "--raw", help="Let what it writes reach a terminal as it is, colours and all; else what could steer the "
                      "terminal is shown as escapes.")] = False,
    client: ClientOption = None,
) -> None:
    """Run one command in the federation, show what it writes, and end with its exit code.

    Ctrl-C cancels it. Exit codes of its own: 124, it ran longer than --time-limit; 125, it could not be run, or was
    lost with its machine; 130, it was cancelled.

    - `subak run --queue research/ada -- python train.py --epochs 10` runs it with one core.
    - `subak run --queue web -r cpu=500m -r memory=4Gi -e STAGE=test -- make check` asks for half a core and 4 GiB.
    - `subak run --queue web --detach -- sleep 60` prints the id; `subak logs -f ID` follows it.
    """
    try:
        text = _job_text(command, {
            "name": name, "queue": queue, "resources": _pairs(resources, "--resource"), "env": _pairs(env, "--env"),
            "workdir": workdir, "time_limit": time_limit, "priority": priority})
    except InputError as error:  # of the command line
        raise InputError("; ".join(str(error).splitlines())) from None
    from subak.live.client import Client, read_settings  # noqa: PLC0415  (see above)

    settings = read_settings(client)
    try:
        with Client(settings) as federation:
            job = federation.submit(text, file="run")
            if detach:
                echo(job.id)
                return
            code = _followed(federation, job, settings, raw)
    except SubakError as error:
        error.exit_code = exit_codes.NOT_RUN
        raise
    raise CommandEndedError(code)


def _job_text(command: list[str], said: dict[str, object]) -> bytes:
    """Return a job file for a command. Raises InputError with a line for each mistake."""
    from subak.live.jobfile.command import from_command  # noqa: PLC0415  (loads a YAML reader)
    from subak.live.jobfile.write import as_file  # noqa: PLC0415

    return msgspec.json.encode(as_file(from_command(command, **said)))  # type: ignore[arg-type]


def _pairs(texts: list[str] | None, option: str) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise InputError(f"{option}: must be NAME=VALUE, not {text!r}")
        if name in found:
            raise InputError(f"{option}: must name each once, {name} comes again")
        found[name] = value
    return found or None


def _followed(federation: "Client", job: JobView, settings: "ClientSettings", raw: bool) -> int:
    """Show both streams of the only task of a job until it has ended; return the exit code for it."""
    id = f"{job.id}.0"
    failed: list[SubakError] = []
    threads = [threading.Thread(target=_pump, args=(settings, id, stream, raw, failed), daemon=True)
               for stream in STREAMS]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(HEARD_S)
    except KeyboardInterrupt:
        federation.cancel(job.id)
        remark([f"{job.id} is cancelled"])
        return exit_codes.INTERRUPTED
    if failed:
        raise failed[0]
    while job.state != "ended":
        job = federation.wait(job.id)
    return _exit_code(federation.task(id))


def _pump(settings: "ClientSettings", id: str, stream: str, raw: bool, failed: list[SubakError]) -> None:
    """Write a stream of a task as it comes, over a connection of its own."""
    from subak.live.client import Client  # noqa: PLC0415  (see above)

    try:
        with Client(settings) as federation:
            writer = OutputWriter(sys.stdout if stream == "stdout" else sys.stderr, raw)
            write_attempts(federation.follow(id, stream, attempt=1), writer, id)
            writer.end()
    except SubakError as error:
        failed.append(error)


def _exit_code(task: TaskView) -> int:
    if task.outcome == FINISHED:
        return 0
    remark([f"{task.id} {task.outcome}{f': {task.reason}' if task.reason else ''}"])
    if task.outcome == FAILED:
        return exit_codes.of_command(task.exit_code, task.signal)
    return {TIMED_OUT: exit_codes.TIMED_OUT, CANCELLED: exit_codes.INTERRUPTED}.get(task.outcome, exit_codes.NOT_RUN)
