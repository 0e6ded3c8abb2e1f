"""`subak logs` and `subak watch`: follow a task's output and a job's progress."""
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from subak import exit_codes
from subak.cli.ending import CommandEndedError
from subak.cli.live.options import ANY, JOB, ClientOption, Output, checked, opened
from subak.cli.live.show import counts_text, remark, show, standing
from subak.cli.live.writing import OutputWriter, write_attempts
from subak.live.api.errors import UnavailableError
from subak.live.api.models import FINISHED, TASK_PATTERN, JobView, LogChunk
from subak.report.console import echo

if TYPE_CHECKING:
    from subak.live.client import Client

PAUSE_S = 0.2  # between two lines of a job that changes all the time
TAIL_LINES_MAX, ATTEMPTS_MAX = 1 << 31, 2**63 - 1


def logs(
    id: Annotated[str, typer.Argument(metavar="JOB|TASK", show_default=False,
                                      help="Such as g0-17.3; of a job all tasks, one after the other.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="What it wrote to standard error instead.")] = False,
    tail: Annotated[int, typer.Option("--tail", metavar="LINES", min=0, max=TAIL_LINES_MAX, show_default=False,
                                      help="Only the last lines [default: all that is kept].")] = 0,
    attempt: Annotated[int, typer.Option("--attempt", metavar="N", min=0, max=ATTEMPTS_MAX, show_default=False,
                                         help="What its first attempt wrote (1), its second, ... [default: its last].",
                                         )] = 0,
    raw: Annotated[bool, typer.Option("--raw", help="Let it reach a terminal as it is, colours and all.")] = False,
    client: ClientOption = None,
) -> None:
    """Print what a task has written, wherever it runs or ran.

    Of a job: what all of its tasks have, one after the other; without -f those that have begun. A task whose output
    cannot be had now is named, and the others are printed; the exit code is then 4.

    - `subak logs g0-17.3` prints its standard output.
    - `subak logs g0-17.3 --tail 20` prints its last 20 lines.
    - `subak logs -f g0-17 --stderr` follows the errors of its tasks in turn, through all attempts that come.
    """
    stream = "stderr" if stderr else "stdout"
    writer = OutputWriter(sys.stdout, raw)
    checked(id, ANY, "JOB|TASK")
    with opened(client) as federation:
        def write(task: str) -> None:
            if follow:
                chunks = federation.follow(task, stream, attempt=attempt, tail=tail)
            else:
                chunks = _written_so_far(federation, task, stream, attempt, tail)
            write_attempts(chunks, writer, task, begins=not tail)
            writer.end()

        if re.fullmatch(TASK_PATTERN, id):
            write(id)
        else:
            _write_all(federation, federation.job(id), follow, write)


def _write_all(federation: "Client", job: JobView, follow: bool, write: Callable[[str], None]) -> None:
    """Write what the tasks of a job have, one after the other; those that have not begun are only counted."""
    shown, missing = 0, False
    for task in _all(job) if follow else (task.id for task in federation.each_task(job.id, begun=True)):
        shown += 1
        if job.tasks > 1:
            remark([f"task {task}:"])
        try:
            write(task)
        except UnavailableError as error:
            if job.tasks == 1:
                raise
            remark([f"task {task}: {error}"])
            missing = True
    if shown < job.tasks and job.tasks > 1:
        remark([f"{job.tasks - shown:,} tasks have not begun"])
    if missing:
        raise CommandEndedError(exit_codes.NOT_NOW)


def _all(job: JobView) -> Iterator[str]:
    return (f"{job.id}.{index}" for index in range(job.tasks))


def _written_so_far(federation: "Client", task: str, stream: str, attempt: int, tail: int) -> Iterator[LogChunk]:
    """Return what one attempt has written by now, piece by piece."""
    chunk = federation.logs(task, stream, attempt=attempt, tail=tail)
    asked = chunk.attempt
    while chunk.data and chunk.attempt == asked:
        yield chunk
        chunk = federation.logs(task, stream, chunk.next, attempt=asked)


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
        raise CommandEndedError(exit_codes.OTHERWISE)


def _show_line(job: JobView, output: Output) -> None:
    if not show(job, output):
        why = f" ({job.reason})" if job.reason else ""
        echo(f"{time.strftime('%H:%M:%S')} {job.id} {standing(job.state, job.outcome)}{why}: {counts_text(job.counts)}")
