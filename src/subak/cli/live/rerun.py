"""`subak rerun`: submits jobs again, whole or only the tasks that failed."""
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

import msgspec
import typer

from subak import exit_codes
from subak.cli.ending import CommandEndedError
from subak.cli.live.hints import hint
from subak.cli.live.named import named
from subak.cli.live.next_steps import is_seen, say_next
from subak.cli.live.options import JOB, ClientOption, Output, OutputOption, checked, opened
from subak.cli.live.scripts import only_tasks
from subak.cli.live.show import agreed, names_text, of_counts, remark, show
from subak.cli.live.submit import SHOWN, warn
from subak.errors import InputError
from subak.json_type import Json
from subak.live.api.errors import NotFoundError, RefusedError, UnavailableError
from subak.live.api.models import FAILED, FINISHED, LOST, TASK_ENDED, TIMED_OUT, JobView
from subak.report.console import echo
from subak.report.number_text import count_text, counted

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client

T = TypeVar("T")
FAILURES = (FAILED, TIMED_OUT, LOST)  # how tasks end that --failed runs again
RERUN_MAX, TASKS_NAMED = 4_000, 5  # failed tasks of a job that run again, of 4,096 words of a command; those named
LOOKED_AT_MAX = 10_000  # jobs, the latest, among which the latest run of each name is found
UNASKED_MAX = 50  # jobs that run again without a question, where none was named


class Again(NamedTuple):
    """A job that runs again: its job file, its id, and in words which tasks of it."""

    text: bytes
    id: str
    of: str


def rerun(
    ids: Annotated[list[str] | None, typer.Argument(
        metavar="[JOB...]", show_default=False,
        help="Such as g0-17, or its name [default, with --failed: your jobs whose latest run failed].")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only the tasks that failed, ran too long or were lost, each "
                                                          "with its SUBAK_TASK_INDEX; skips jobs that have not "
                                                          "ended.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also jobs that have not ended; with --failed, those of their "
                                                        "tasks that have failed so far.")] = False,
    yes: Annotated[bool, typer.Option(
        "--yes", "-y", help=f"With --failed and no JOB: do not ask first, where more than {UNASKED_MAX} jobs run "
                            "again.")] = False,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Submit jobs again with the same command, environment, folder, amounts, queue and name.

    All tasks run again, whether they finished or not, unless --failed says otherwise. A script is read as it is now;
    only one that begins with #! runs as it was when it was submitted. Of several jobs of one name,
    the latest runs again. If one of the jobs has not ended, nothing is submitted without --force.

    With --failed, a job that cannot run again is named, and all others run; the exit code is 1 if nothing runs again.
    Without JOB, it takes the latest run of each name in its queue, of those jobs that you submitted: where that failed,
    its failed tasks run again; where it finished, goes on or was cancelled, it is left alone.

    - `subak rerun g0-17` prints the id of the new job.
    - `subak rerun --failed` runs all again that failed.
    - `subak rerun --failed sweep` runs those tasks of it again that failed.
    """
    for id in ids or ():
        checked(id, JOB, "JOB")
    if not ids and not failed:
        raise InputError("JOB: must be given; only subak rerun --failed goes without, and runs all again that failed")
    if (ids and yes) or (force and not ids):
        raise InputError("--yes: goes with --failed, and without JOB" if yes else "--force: goes with JOB")
    codes: list[int] = []
    with opened(client, SHOWN) as federation:
        if not failed:
            wanted = [_whole(federation, id, force) for id in ids or ()]
        elif ids:
            wanted, codes = _each(ids, lambda id: _failed_of(federation, *_found(federation, id), force, id))
        else:
            wanted, codes = _each(_failed_names(federation, yes), lambda job: _failed_of(
                federation, job, federation.file(job.id), force, job.name))
        found = [_again(federation, each, output) for each in wanted]
    if output == Output.TABLE and is_seen() and found:
        say_next(found)
    show(found, output)
    if failed and (codes or not found):
        raise CommandEndedError(max(codes, default=exit_codes.OTHERWISE))


def _found(federation: "Client", id: str) -> tuple[JobView, dict[str, Json]]:
    """Return the job of an id, or the latest of a name, and its job file."""
    return named(federation, id, lambda id: (federation.job(id), federation.file(id)), only=JOB, take="latest")


def _whole(federation: "Client", id: str, force: bool) -> Again:
    """Return a job that runs again with all its tasks. Raises RefusedError for one that has not ended."""
    job, file = _found(federation, id)
    if job.state != TASK_ENDED and not force:
        raise RefusedError(f"nothing was submitted, for {job.id} {job.name} is {job.state}; --force submits it again, "
                           "beside that one")
    return Again(msgspec.json.encode(file), job.id, job.id)


def _each(them: Iterable[T], of: Callable[[T], Again | None]) -> tuple[list[Again], list[int]]:
    """Return those that run again, and the exit codes of those that cannot, which are named."""
    found, codes = [], []
    for each in them:
        try:
            again = of(each)
        except (RefusedError, NotFoundError, InputError) as error:
            codes.append(error.exit_code)
            remark([str(error)])
        else:
            found += [again] if again is not None else []
    return found, codes


def _failed_of(federation: "Client", job: JobView, file: dict[str, Json], force: bool, typed: str) -> Again | None:
    """Return a job with only its failed tasks; None, which is said, where there are none, or it has not ended."""
    if job.state != TASK_ENDED and not force:
        more = f"; --force runs again, beside it, what has failed of it so far: {counted(_failures(job), 'task')}"
        remark([f"{job.id} {job.name} is {job.state}, and is left alone{more if _failures(job) else ''}"])
        return None
    tasks = sorted(task.index for task in of_counts(federation, job, FAILURES, RERUN_MAX + 1))
    if not tasks:
        remark([f"{job.id} {job.name}: no task has failed, so none runs again"])
        return None
    if len(tasks) == job.tasks:
        return Again(msgspec.json.encode(file), job.id, job.id)
    if len(tasks) > RERUN_MAX:
        raise InputError(f"--failed: goes with {RERUN_MAX:,} failed tasks at most; {job.id} was not submitted, and "
                         f"{hint('rerun', job.id, typed)} runs all its tasks again")
    if len(job.stages) > 1 or job.stages[0].gang:
        raise InputError(f"--failed: goes with jobs of one stage, and no gang, and {job.id} is another; "
                         f"{hint('rerun', job.id, typed)} runs all its tasks again")
    first = ", ".join(map(str, tasks[:TASKS_NAMED])) + (", ..." if len(tasks) > TASKS_NAMED else "")
    return Again(msgspec.json.encode(only_tasks(file, tasks)), job.id, f"{job.id} (of which {first} failed)")


def _failures(job: JobView) -> int:
    return job.counts.failed + job.counts.timed_out + job.counts.lost


def _failed_names(federation: "Client", yes: bool) -> list[JobView]:
    """Return the latest run of each name in its queue, where that failed, the earliest first; say which are left alone.

    Raises InputError where there are many and nobody agrees, UnavailableError where a master that cannot be asked may
    keep a later run.
    """
    found = federation.jobs(user=federation.whoami().name, limit=LOOKED_AT_MAX + 1)
    if found.unreachable:
        raise UnavailableError(f"nothing was submitted, for a master that may keep later runs cannot be asked: "
                               f"{found.unreachable[0]}")
    if len(found.items) > LOOKED_AT_MAX:
        remark([f"only your latest {LOOKED_AT_MAX:,} jobs are looked at; name earlier ones"])
    latest: dict[tuple[str, str], JobView] = {}
    repeated = set()  # names of which an earlier run failed
    for job in found.items[:LOOKED_AT_MAX]:  # the latest first
        key = job.queue, job.name
        if latest.setdefault(key, job) is not job and _failures(job):
            repeated.add(key)
    wanted = [job for job in latest.values() if job.state == TASK_ENDED and _failures(job)]
    _say_left_alone("the latest run finished", [
        job for key, job in latest.items() if job.outcome == FINISHED and key in repeated])
    _say_left_alone("the latest run has not ended", [job for job in latest.values() if job.state != TASK_ENDED])
    _say_left_alone("the latest run was cancelled", [
        job for job in latest.values() if job.outcome not in ("", FINISHED) and not _failures(job)])
    if not wanted:
        remark(["of no job of yours has the latest run failed, so nothing runs again"])
    if len(wanted) > UNASKED_MAX and not yes and not agreed(
            f"Run {counted(len(wanted), 'job')} again: {names_text(wanted)}?"):
        raise InputError(f"nothing was submitted; --yes runs {count_text(len(wanted))} jobs again without asking")
    return wanted[::-1]


def _say_left_alone(why: str, jobs: list[JobView]) -> None:
    remark([f"left alone, for {why}: {names_text(jobs)}"][:len(jobs)])


def _again(federation: "Client", again: Again, output: Output) -> JobView:
    job = federation.submit(again.text, file=again.id)
    warn(job)
    if output == Output.TABLE:
        echo(f"{job.id} {job.name} submitted to {job.queue}: {counted(job.tasks, 'task')}, as {again.of} was")
    return job
