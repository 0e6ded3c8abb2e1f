"""`subak logs` and `subak watch`: follow a task's output and a job's progress."""
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from subak import exit_codes
from subak.cli.ending import CommandEndedError
from subak.cli.live.options import ANY, JOB, ClientOption, Output, checked, opened
from subak.cli.live.show import counts_text, remark, show, standing
from subak.cli.live.writing import OutputWriter, follow_streams, stream_of, write_attempts
from subak.errors import InputError
from subak.live.api.errors import UnavailableError
from subak.live.api.models import FINISHED, STREAMS, TASK_PATTERN, TASK_RUNNING, JobView, LogChunk, TaskView
from subak.report.console import echo
from subak.report.number_text import counted

if TYPE_CHECKING:
    from subak.live.client import Client

PAUSE_S = 0.2  # between two lines of a job that changes all the time
TAIL_LINES_MAX, ATTEMPTS_MAX = 1 << 31, 2**63 - 1


def logs(
    id: Annotated[str, typer.Argument(metavar="JOB|TASK", show_default=False,
                                      help="Such as g0-17.3; of a job all tasks, one after the other.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")] = False,
    stdout: Annotated[bool, typer.Option("--stdout", help="Print only its standard output.")] = False,
    stderr: Annotated[bool, typer.Option(
        "--stderr", help="Print only its standard error (to standard output).")] = False,
    tail: Annotated[int, typer.Option("--tail", metavar="LINES", min=0, max=TAIL_LINES_MAX, show_default=False,
                                      help="Only the last lines of each stream [default: all that is kept].")] = 0,
    attempt: Annotated[int, typer.Option("--attempt", metavar="N", min=0, max=ATTEMPTS_MAX, show_default=False,
                                         help="The output of its first attempt (1), its second, ... [default: its "
                                              "last].",
                                         )] = 0,
    raw: Annotated[bool, typer.Option("--raw", help="Print it to a terminal unescaped, with colours.")] = False,
    client: ClientOption = None,
) -> None:
    """Print the output of a task, or of all tasks of a job.

    Its standard output goes to standard output, and then, below a line that says so, its standard error to standard
    error; with -f each as it comes.

    For a job: the output of all its tasks, one after the other; without -f only of tasks that have begun. A task
    whose output cannot be read now is named, and the others are printed; the exit code is then 4.

    - `subak logs g0-17.3` prints what it has written, to both streams.
    - `subak logs g0-17.3 --tail 20` prints its last 20 lines of each.
    - `subak logs -f g0-17 --stderr` follows the errors of its tasks in turn, through all attempts that come.
    """
    checked(id, ANY, "JOB|TASK")
    if stdout and stderr:
        raise InputError("--stdout: goes without --stderr; both streams are shown where neither is given")
    streams = tuple(name for name, only in (("stdout", stdout), ("stderr", stderr)) if only) or STREAMS
    with opened(client) as federation:
        def write(task: str, is_only: bool) -> None:
            if follow:
                follow_streams(federation.settings, task, raw, attempt, tail, streams)
                return
            written = [_write(federation, task, stream, attempt, tail, raw, len(streams) > 1) for stream in streams]
            if is_only and not any(written):
                remark([_nothing(federation.task(task))])

        if re.fullmatch(TASK_PATTERN, id):
            write(id, True)
        else:
            _write_all(federation, federation.job(id), follow, write)


def _write(federation: "Client", task: str, stream: str, attempt: int, tail: int, raw: bool, is_with_other: bool,
           ) -> bool:
    """Write what a task has written to a stream by now; return whether there was anything."""
    chunks = _written_so_far(federation, task, stream, attempt, tail)
    first = next(chunks, None)
    if first is None:
        return False
    if is_with_other and stream == "stderr":
        sys.stdout.flush()
        remark([f"{task}, standard error:"])
    writer = OutputWriter(stream_of(stream) if is_with_other else sys.stdout, raw)
    write_attempts(chain([first], chunks), writer, task, begins=not tail)
    writer.end()
    return True


def _nothing(task: TaskView) -> str:
    """Return what is said of a task that has written nothing."""
    if task.state == TASK_RUNNING:
        return (f"{task.id} runs, and has written nothing yet; a program may keep back what it prints, as Python does "
                "without PYTHONUNBUFFERED=1")
    return f"{task.id} is {standing(task.state, task.outcome)}, and has written nothing"


def _write_all(federation: "Client", job: JobView, follow: bool, write: Callable[[str, bool], None]) -> None:
    """Write what the tasks of a job have, one after the other; those that have not begun are only counted."""
    shown, missing = 0, False
    for task in _all(job) if follow else (task.id for task in federation.each_task(job.id, begun=True)):
        shown += 1
        if job.tasks > 1:
            remark([f"task {task}:"])
        try:
            write(task, job.tasks == 1)
        except UnavailableError as error:
            if job.tasks == 1:
                raise
            remark([f"task {task}: {error}"])
            missing = True
    if shown < job.tasks and job.tasks > 1:
        left = job.tasks - shown
        remark([f"{counted(left, 'task')} {'has' if left == 1 else 'have'} not begun"])
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
            if job.version != before or job.state == "ended":  # whose version is counted anew
                _show_line(job, output)
                time.sleep(PAUSE_S)
    if job.outcome != FINISHED:
        raise CommandEndedError(exit_codes.OTHERWISE)


def _show_line(job: JobView, output: Output) -> None:
    if not show(job, output):
        why = f" ({job.reason})" if job.reason else ""
        echo(f"{time.strftime('%H:%M:%S')} {job.id} {standing(job.state, job.outcome)}{why}: {counts_text(job.counts)}")
