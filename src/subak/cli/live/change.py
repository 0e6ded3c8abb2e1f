"""`subak cancel` and `subak preempt`: end jobs and tasks."""
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from subak.cli.ending import CommandEndedError
from subak.cli.live.options import ANY, TASK, ClientOption, Output, OutputOption, checked, opened
from subak.cli.live.show import counts_text, remark, show, standing
from subak.live.api.errors import NotFoundError, RefusedError
from subak.live.api.models import TASK_ENDED, TASK_PATTERN
from subak.report.console import echo

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client


def cancel(
    ids: Annotated[list[str], typer.Argument(metavar="JOB|TASK...", help="Such as g0-17 or g0-17.3.",
                                             show_default=False)],
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Cancel jobs or tasks; what runs of them gets SIGTERM, and SIGKILL after its grace period.

    One that has ended, or is not there, is named, and all others are cancelled; the exit code is then 5 or 3.

    - `subak cancel g0-17` cancels all tasks of a job that have not ended.
    - `subak cancel g0-17.3 g0-17.4` cancels two tasks.
    """
    for id in ids:
        checked(id, ANY, "JOB|TASK")
    with opened(client) as federation:
        _each(ids, lambda id: _cancel(federation, id, output))


def _cancel(federation: "Client", id: str, output: Output) -> None:
    """Cancel a job or a task. Raises RefusedError for one that has ended."""
    now = federation.task(id) if re.fullmatch(TASK_PATTERN, id) else federation.job(id)
    if now.state == TASK_ENDED:
        raise RefusedError(f"{id} has ended already: it is {now.outcome}")
    job = federation.cancel(id)
    if not show(job, output):
        echo(f"{id} cancelled; {job.id} {standing(job.state, job.outcome)}: {counts_text(job.counts)}")


def _each(ids: list[str], change: Callable[[str], None]) -> None:
    """Change all, also behind one that cannot be changed; such are named, and the command ends with their exit code."""
    codes = []
    for id in ids:
        try:
            change(id)
        except (RefusedError, NotFoundError) as error:
            codes.append(error.exit_code)
            remark([str(error)])
    if codes:
        raise CommandEndedError(max(codes))


def preempt(
    ids: Annotated[list[str], typer.Argument(metavar="TASK...", help="Such as g0-17.3.", show_default=False)],
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Take machines from tasks that run; the tasks wait again, and lose none of their retries.

    One that does not run is named, and all others are preempted: exit code 5.

    - `subak preempt g0-17.3` ends the attempt of task 3.
    """
    for id in ids:
        checked(id, TASK, "TASK")
    with opened(client) as federation:
        _each(ids, lambda id: _preempt(federation, id, output))


def _preempt(federation: "Client", id: str, output: Output) -> None:
    task = federation.preempt(id)
    if not show(task, output):
        echo(f"{id} preempted: it is {standing(task.state, task.outcome)}")
