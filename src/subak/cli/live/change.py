"""`subak cancel` and `subak preempt`: end jobs and tasks."""
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from subak import exit_codes
from subak.cli.ending import CommandEndedError
from subak.cli.live.named import job_or_task, named
from subak.cli.live.options import ANY, TASK, ClientOption, Output, OutputOption, checked, opened
from subak.cli.live.show import agreed, counts_text, names_text, remark, show, standing
from subak.errors import InputError
from subak.live.api.errors import NotFoundError, RefusedError
from subak.live.api.models import TASK_ENDED, TASK_RUNNING, TASK_WAITING, JobView
from subak.report.console import echo
from subak.report.number_text import counted

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client


def cancel(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[JOB|TASK...]", help="Such as g0-17 or g0-17.3, or names.",
                                                    show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="All jobs that have not ended, whoever submitted them; asks "
                                                      "first.")] = False,
    queue: Annotated[str, typer.Option("--queue", metavar="PATH", show_default=False,
                                       help="With --all: only jobs of this queue, and of those below it.")] = "",
    mine: Annotated[bool, typer.Option("--mine", help="With --all: only jobs that you submitted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --all: do not ask first.")] = False,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Cancel jobs or tasks; running attempts get SIGTERM, and SIGKILL after their grace period.

    Ended and unknown ones are named, and all others are cancelled; the exit code is then 5 or 3.

    - `subak cancel g0-17` cancels all tasks of a job that have not ended.
    - `subak cancel g0-17.3 g0-17.4` cancels two tasks.
    - `subak cancel --all --queue research/ada` cancels all jobs of the queue; `subak cancel --all --mine` your own.
    """
    if every == bool(ids):
        raise InputError("--all: goes without JOB|TASK" if every else "JOB|TASK: must be given, or --all")
    if (queue or yes or mine) and not every:
        raise InputError(f"{'--queue' if queue else '--yes' if yes else '--mine'}: goes with --all")
    for id in ids or ():
        checked(id, ANY, "JOB|TASK")
    with opened(client, "subak list shows which jobs go on") as federation:
        if every:
            _cancel_all(federation, queue, federation.whoami().name if mine else "", yes, output)
        else:
            _each(ids or [], lambda id: _cancel(federation, id, output))


def _cancel_all(federation: "Client", queue: str, user: str, yes: bool, output: Output) -> None:
    """Cancel all jobs that have not ended, if somebody agrees. Raises InputError where nobody does."""
    found = [federation.jobs(queue=queue, user=user, state=state, limit=None) for state in (TASK_RUNNING, TASK_WAITING)]
    jobs = {job.id: job for each in found for job in each.items}
    where = (f" of {queue}" if queue else "") + (f" of {user}" if user else "")
    if jobs and not yes and not agreed(f"Cancel {counted(len(jobs), 'job')}{where}: {names_text(jobs.values())}?"):
        raise InputError(f"nothing was cancelled; --yes cancels {counted(len(jobs), 'job')}{where} without asking")
    if not jobs and output == Output.TABLE:
        echo(f"no job{where} is open")
    # those that wait first: else they would start on what the others leave
    for id in sorted(jobs, key=lambda id: (jobs[id].state == TASK_RUNNING, jobs[id].submitted)):
        _show(id, federation.cancel(id), output)
    unreachable = sorted({line for each in found for line in each.unreachable})
    remark(unreachable)
    if unreachable:
        raise CommandEndedError(exit_codes.NOT_NOW)


def _cancel(federation: "Client", id: str, output: Output) -> None:
    """Cancel a job or a task. Raises RefusedError for one that has ended."""
    now = job_or_task(federation, id, take="open")
    if now.state == TASK_ENDED:
        raise RefusedError(f"{now.id} has ended already ({now.outcome})")
    _show(now.id, federation.cancel(now.id), output)


def _show(id: str, job: JobView, output: Output) -> None:
    if show(job, output):
        return
    stands = "is cancelled" if not job.counts.ending else "is being cancelled, and ends within its grace period"
    echo(f"{job.id} {job.name} {stands}" if job.tasks == 1 else
         f"{id} {stands}; tasks of {job.name}: {counts_text(job.counts)}")


def _each(ids: list[str], change: Callable[[str], None]) -> None:
    """Change all, also behind one that cannot be changed; such are named, and the command ends with their exit code."""
    codes = []
    for id in ids:
        try:
            change(id)
        except (RefusedError, NotFoundError, InputError) as error:
            codes.append(error.exit_code)
            remark([str(error)])
    if codes:
        raise CommandEndedError(max(codes))


def preempt(
    ids: Annotated[list[str], typer.Argument(metavar="TASK...", help="Such as g0-17.3.", show_default=False)],
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Preempt running tasks: they wait again, and lose none of their retries.

    A task that does not run is named, and all others are preempted; the exit code is then 5.

    - `subak preempt g0-17.3` ends the attempt of task 3.
    """
    for id in ids:
        checked(id, TASK, "TASK")
    with opened(client, "subak history TASK shows whether it was preempted") as federation:
        _each(ids, lambda id: _preempt(federation, id, output))


def _preempt(federation: "Client", id: str, output: Output) -> None:
    task = named(federation, id, federation.preempt, only=TASK, take="open")
    if not show(task, output):
        echo(f"{task.id} preempted: it is {standing(task.state, task.outcome)}")
