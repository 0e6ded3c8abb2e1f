"""`subak logs` and `subak watch`: what a task writes, and how a job goes, while it goes."""
import re
import sys
import time
from typing import Annotated

import typer

from subak.cli.ending import CommandEndedError
from subak.cli.live.options import ANY, EXIT_OTHERWISE, JOB, ClientOption, Output, checked, opened
from subak.cli.live.show import counts_text, show, standing
from subak.cli.live.writing import OutputWriter, write_attempts
from subak.errors import InputError
from subak.live.api.models import FINISHED, TASK_PATTERN, JobView
from subak.report.console import echo

PAUSE_S = 0.2  # between two lines of a job that changes all the time
BYTES_MAX = ATTEMPTS_MAX = 2**63 - 1


def logs(
    id: Annotated[str, typer.Argument(metavar="TASK", show_default=False,
                                      help="Such as g0-17.3; a job of one task stands for it.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="What it wrote to standard error instead.")] = False,
    tail: Annotated[int, typer.Option("--tail", metavar="BYTES", min=0, max=BYTES_MAX, show_default=False,
                                      help="Only the last bytes [default: all that is kept].")] = 0,
    attempt: Annotated[int, typer.Option("--attempt", metavar="N", min=0, max=ATTEMPTS_MAX, show_default=False,
                                         help="What its first attempt wrote (1), its second, ... [default: its last].",
                                         )] = 0,
    raw: Annotated[bool, typer.Option("--raw", help="Let it reach a terminal as it is, colours and all.")] = False,
    client: ClientOption = None,
) -> None:
    """Print what a task has written, wherever it runs or ran.

    - `subak logs g0-17.3` prints its standard output.
    - `subak logs -f g0-17 --stderr` follows the errors of a job of one task, through all attempts that come.
    """
    stream = "stderr" if stderr else "stdout"
    writer = OutputWriter(sys.stdout, raw)
    checked(id, ANY, "TASK")
    with opened(client) as federation:
        task = id if re.fullmatch(TASK_PATTERN, id) else _only_task(federation.job(id))
        if follow:
            write_attempts(federation.follow(task, stream, -tail, attempt=attempt), writer, task)
        else:
            chunk = federation.logs(task, stream, -tail, attempt=attempt)
            asked = chunk.attempt
            while chunk.data and chunk.attempt == asked:
                writer.write(chunk.data)
                chunk = federation.logs(task, stream, chunk.next, attempt=asked)
    writer.end()


def _only_task(job: JobView) -> str:
    if job.tasks != 1:
        raise InputError(f"TASK: job {job.id} has {job.tasks:,} tasks; name one, such as {job.id}.0")
    return f"{job.id}.0"


def watch(
    id: Annotated[str, typer.Argument(metavar="JOB", help="Such as g0-17.", show_default=False)],
    output: Annotated[Output, typer.Option("--output", "-o", metavar="table|json|yaml",
                                           help="How to print each change.")] = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Print a line whenever a job changes, until it has ended; exit code 1 if it did not finish.

    - `subak watch g0-17` shows how many tasks wait, run and have ended.
    - `subak submit job.yaml --wait && echo done` waits without a word.
    """
    checked(id, JOB, "JOB")
    with opened(client) as federation:
        job = federation.job(id)
        _show_line(job, output)
        while job.state != "ended":
            before, job = job.version, federation.wait(id, seen=job.version)
            if job.version != before:
                _show_line(job, output)
                time.sleep(PAUSE_S)
    if job.outcome != FINISHED:
        raise CommandEndedError(EXIT_OTHERWISE)


def _show_line(job: JobView, output: Output) -> None:
    if not show(job, output):
        why = f" ({job.reason})" if job.reason else ""
        echo(f"{time.strftime('%H:%M:%S')} {job.id} {standing(job.state, job.outcome)}{why}: {counts_text(job.counts)}")
