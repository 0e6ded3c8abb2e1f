"""`subak cancel` and `subak preempt`: what is to end."""
import re
from typing import Annotated

import typer

from subak.cli.live.options import ANY, TASK, ClientOption, Output, OutputOption, checked, opened
from subak.cli.live.show import counts_text, show, standing
from subak.live.api.errors import RefusedError
from subak.live.api.models import TASK_ENDED, TASK_PATTERN
from subak.report.console import echo


def cancel(
    ids: Annotated[list[str], typer.Argument(metavar="JOB|TASK...", help="Such as g0-17 or g0-17.3.",
                                             show_default=False)],
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Cancel jobs or tasks; what runs of them gets SIGTERM, and SIGKILL after its grace period.

    One that has ended stays as it ended: exit code 5, and nothing is cancelled of those behind it.

    - `subak cancel g0-17` cancels all tasks of a job that have not ended.
    - `subak cancel g0-17.3 g0-17.4` cancels two tasks.
    """
    for id in ids:
        checked(id, ANY, "JOB|TASK")
    with opened(client) as federation:
        for id in ids:
            now = federation.task(id) if re.fullmatch(TASK_PATTERN, id) else federation.job(id)
            if now.state == TASK_ENDED:
                raise RefusedError(f"{id} has ended already: it is {now.outcome}")
            job = federation.cancel(id)
            if not show(job, output):
                echo(f"{id} cancelled; {job.id} {standing(job.state, job.outcome)}: {counts_text(job.counts)}")


def preempt(
    ids: Annotated[list[str], typer.Argument(metavar="TASK...", help="Such as g0-17.3.", show_default=False)],
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Take machines from tasks that run; the tasks wait again, and lose none of their retries.

    - `subak preempt g0-17.3` ends the attempt of task 3.
    """
    for id in ids:
        checked(id, TASK, "TASK")
    with opened(client) as federation:
        for id in ids:
            task = federation.preempt(id)
            if not show(task, output):
                echo(f"{id} preempted: it is {standing(task.state, task.outcome)}")
