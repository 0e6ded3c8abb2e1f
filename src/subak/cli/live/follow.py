"""`subak logs` and `subak watch`: follow a task's output and a job's progress."""
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from subak import exit_codes
from subak.cli.ending import CommandEndedError
from subak.cli.live.changes import changes, open_jobs
from subak.cli.live.named import job_or_task, named
from subak.cli.live.options import ANY, JOB, ClientOption, Output, checked, if_interrupted, opened
from subak.cli.live.show import counts_text, ending_text, going_on, outcome_text, remark, show, standing
from subak.cli.live.side_by_side import ended, follow_together, labels_of
from subak.cli.live.writing import OutputWriter, follow_streams, stream_of, write_attempts
from subak.errors import InputError, SubakError
from subak.live.api.errors import NotFoundError, UnavailableError
from subak.live.api.models import FINISHED, STREAMS, TASK_ENDED, TASK_RUNNING, JobView, LogChunk, TaskView
from subak.report.console import echo
from subak.report.number_text import counted

if TYPE_CHECKING:
    from subak.live.client import Client
    from subak.live.client.settings import ClientSettings

FOLLOWED_MAX = 200  # jobs that are followed at once where none is named; each takes two connections
NAMES_SAID = 5  # of those that are followed
NONE_OPEN = "no job is open; subak list shows those that have ended"
PAUSE_S = 0.2  # between two lines of a job that changes all the time
TAIL_LINES_MAX, ATTEMPTS_MAX = 1 << 31, 2**63 - 1


def logs(
    ids: Annotated[list[str] | None, typer.Argument(
        metavar="[JOB|TASK...]", show_default=False,
        help="Such as g0-17.3, or the job's name; of a job all tasks, one after the other [default: the latest job; "
             "with -f all jobs that have not ended].")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until all have ended.")] = False,
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
    """Print the output of tasks, or of all tasks of jobs.

    Its standard output goes to standard output, and then, below a line that says so, its standard error to standard
    error; with -f each as it comes.

    For a job: the output of all its tasks, one after the other; without -f only of tasks that have begun. A task
    whose output cannot be read now is named, and the others are printed; the exit code is then 4.

    With -f, several jobs or tasks are followed at once: each line stands behind the name of its job (NAME.INDEX for a
    task), and a line says how each ended. The exit code is 1 if one did not finish.

    - `subak logs -f train_0 train_1` follows two jobs at once; `subak logs -f` all that have not ended by now.
    - `subak logs` prints what the job has written that was submitted last.
    - `subak logs train_0 train_1` prints what two jobs have written, one after the other, below their names.
    - `subak logs g0-17.3` prints what it has written, to both streams.
    - `subak logs g0-17.3 --tail 20` prints its last 20 lines of each.
    - `subak logs -f g0-17 --stderr` follows the errors of its tasks in turn, through all attempts that come.
    """
    for id in ids or ():
        checked(id, ANY, "JOB|TASK")
    if stdout and stderr:
        raise InputError("--stdout: goes without --stderr; both streams are shown where neither is given")
    streams = tuple(name for name, only in (("stdout", stdout), ("stderr", stderr)) if only) or STREAMS
    followed: dict[str, JobView | TaskView] = {}
    with opened(client) as federation, if_interrupted(
            lambda: _no_longer(federation.settings, followed or dict.fromkeys(ids or ())) if follow else "interrupted"):
        followed |= {id: job_or_task(federation, id) for id in ids} if ids else _unnamed(federation, follow)
        typed = {each.id: name for name, each in followed.items()}
        found = [*{each.id: each for each in followed.values()}.values()]
        if follow and len(found) > 1:
            _follow_several(federation, found, raw, attempt, tail, streams, typed)
            return

        def write(task: str, is_only: bool) -> None:
            if follow:
                follow_streams(federation.settings, task, raw, attempt, tail, streams)
                return
            written = [_write(federation, task, stream, attempt, tail, raw, len(streams) > 1) for stream in streams]
            if is_only and not any(written):
                remark([_nothing(federation.task(task))])

        wholes = [_write_one(federation, each, follow, write, len(found) == 1) for each in found]
        if not all(wholes):
            raise CommandEndedError(exit_codes.NOT_NOW)
        ends = [ended(federation, each) if follow else each for each in found]
        failed = [each for each in ends if each.state == TASK_ENDED and each.outcome != FINISHED]
        remark(ending_text(each, _called(each), is_shown=True) for each in failed)
        if follow and failed:
            raise CommandEndedError(exit_codes.OTHERWISE)


def _unnamed(federation: "Client", follow: bool) -> dict[str, JobView | TaskView]:
    """Return the jobs that are meant where none is named, by what they are called, and say which.

    To follow: all that have not ended; else the latest. Raises InputError for too many, NotFoundError for none at all.
    """
    if not follow:
        jobs = [*federation.jobs(limit=1).items]
        if not jobs:
            raise NotFoundError("there is no job yet: subak submit SCRIPT submits one")
        remark([f"{jobs[0].id} {jobs[0].name}, the latest job:"])
        return {jobs[0].id: jobs[0]}
    jobs = open_jobs(federation)
    if len(jobs) > FOLLOWED_MAX:
        raise InputError(f"JOB|TASK: must be given where more than {FOLLOWED_MAX} jobs are open, and {len(jobs):,} are")
    names = labels_of(jobs, {})
    more = f" and {len(names) - NAMES_SAID} more" if len(names) > NAMES_SAID else ""
    remark([f"follows {counted(len(jobs), 'job')}: {', '.join(names[:NAMES_SAID])}{more}" if jobs else NONE_OPEN])
    return dict(zip(names, jobs, strict=True))


def _no_longer(settings: "ClientSettings", followed: Mapping[str, JobView | TaskView | None]) -> str:
    """Say which of what was followed, by what the user called it, goes on; where nobody answers, all are named."""
    from subak.live.client import Client  # noqa: PLC0415  (as `opened`)

    if not followed:
        return "no longer followed"
    try:
        with Client(settings, patience_s=0.0) as federation:  # the other's connection is in the midst of an answer
            names = _that_go_on(federation, followed)
    except SubakError:
        names = list(followed)
    return f"no longer followed; {going_on(names)}" if names else "no longer followed; all have ended"


def _that_go_on(federation: "Client", followed: Mapping[str, JobView | TaskView | None]) -> list[str]:
    """Return which of what was followed goes on; the jobs are asked for together.

    Of many tasks each whose job goes on is named: only of a few each is asked for.
    """
    jobs = {name: found.job if isinstance(found, TaskView) else found.id for name, found in followed.items() if found}
    now = federation.jobs_of([*dict.fromkeys(jobs.values())])
    ended = {job.id for job in now.items if job.state == TASK_ENDED}
    left = [name for name in followed if jobs.get(name) not in ended]
    tasks = [(name, found.id) for name in left if isinstance(found := followed[name], TaskView)]
    over = {name for name, id in tasks if federation.task(id).state == TASK_ENDED} if len(tasks) <= NAMES_SAID else ()
    return [name for name in left if name not in over]


def _follow_several(federation: "Client", found: Sequence[JobView | TaskView], raw: bool, attempt: int, tail: int,
                    streams: Sequence[str], typed: Mapping[str, str]) -> None:
    """Follow several at once, until all have ended."""
    jobs = {each.job: federation.job(each.job).name for each in found if isinstance(each, TaskView)}
    is_whole, is_good = follow_together(federation.settings, [*zip(labels_of(found, jobs), found, strict=True)],
                                        raw, attempt, tail, streams, typed)
    if not (is_whole and is_good):
        raise CommandEndedError(exit_codes.OTHERWISE if is_whole else exit_codes.NOT_NOW)


def _called(found: JobView | TaskView) -> str:
    return found.name if isinstance(found, JobView) else found.id


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
    return f"{task.id} has written nothing ({standing(task.state, task.outcome)})"


def _write_one(federation: "Client", found: JobView | TaskView, follow: bool, write: Callable[[str, bool], None],
               is_alone: bool) -> bool:
    """Write what a job or a task has; return whether all of it could be read. *is_alone*: nothing else is written."""
    if isinstance(found, JobView):
        return _write_all(federation, found, follow, write, is_alone)
    if not is_alone:
        remark([f"task {found.id}:"])
    write(found.id, True)
    return True


def _write_all(federation: "Client", job: JobView, follow: bool, write: Callable[[str, bool], None], is_alone: bool,
               ) -> bool:
    """Write what the tasks of a job have, one after the other; return whether all of it could be read.

    Those that have not begun are only counted. *is_alone*: no other job is written.
    """
    shown, missing, has_heads = 0, False, job.tasks > 1 or not is_alone
    for task in _all(job) if follow else (task.id for task in federation.each_task(job.id, begun=True)):
        shown += 1
        if has_heads:
            remark([f"task {task} of {job.name}:"])
        try:
            write(task, job.tasks == 1)
        except UnavailableError as error:
            if not has_heads:
                raise
            remark([f"task {task}: {error}"])
            missing = True
    if shown < job.tasks:
        left = job.tasks - shown
        remark([f"{counted(left, 'task')} of {job.name} {'has' if left == 1 else 'have'} not begun"])
    return not missing


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
    ids: Annotated[list[str] | None, typer.Argument(
        metavar="[JOB...]", show_default=False,
        help="Such as g0-17, or its name [default: all jobs that have not ended].")] = None,
    output: Annotated[Output, typer.Option("--output", "-o", metavar="table|json|yaml",
                                           help="How to print each change.")] = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Print a line whenever a job changes, until all have ended; exit code 1 if one did not finish.

    - `subak watch g0-17` shows how many tasks wait, run and have ended.
    - `subak watch train_0 train_1` shows it of two jobs; `subak watch` of all that have not ended by now.
    - `subak submit job.yaml --wait && echo done` waits without a word.
    """
    for id in ids or ():
        checked(id, JOB, "JOB")
    followed: dict[str, JobView] = {}
    typed: dict[str, str] = {}
    with opened(client) as federation, if_interrupted(
            lambda: _no_longer_watched([typed[id] for id, job in followed.items() if job.state != TASK_ENDED])):
        found = {id: named(federation, id, federation.job, only=JOB) for id in ids or ()} or {
            job.id: job for job in open_jobs(federation)}
        if not found:
            remark([NONE_OPEN])
        typed |= {job.id: name for name, job in found.items()}
        followed |= {job.id: job for job in found.values()}
        _watch(federation, followed, output)
    if any(job.outcome != FINISHED for job in followed.values()):
        raise CommandEndedError(exit_codes.OTHERWISE)


def _no_longer_watched(names: Sequence[str]) -> str:
    """Say which jobs go on that were watched."""
    return f"no longer watched; {going_on(names)}" if names else "no longer watched"


def _watch(federation: "Client", followed: dict[str, JobView], output: Output) -> None:
    """Print each change of jobs, and keep each job as it stands; a line that says the same again is left out."""
    lines: dict[str, str] = {}
    for job in changes(federation, [*followed.values()]):
        followed[job.id] = job
        if show(job, output):
            continue
        line = _line(job)
        if lines.get(job.id) != line:
            echo(f"{time.strftime('%H:%M:%S')} {line}")
        lines[job.id] = line
        if len(followed) == 1 and job.state != TASK_ENDED:
            time.sleep(PAUSE_S)


def _line(job: JobView) -> str:
    if job.tasks == 1 and job.outcome:
        return f"{job.id} {job.name} {outcome_text(job.outcome, job.reason)}"
    stands, counts = standing(job.state, job.outcome), counts_text(job.counts)
    why = "" if job.reason.startswith(stands) else job.reason.removeprefix("it failed with ")
    return (f"{job.id} {job.name} {stands}{f' ({why})' if why else ''}"
            f"{'' if job.tasks == 1 and counts == f'1 {stands}' else f': {counts}'}")
