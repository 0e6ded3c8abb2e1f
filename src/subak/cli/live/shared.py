"""Sends `subak queues` and `subak explain` to a live federation or to the simulator's files.

Which is meant is seen from the arguments. The simulator is loaded only for the latter.
"""
import os
import re
from pathlib import Path
from typing import Annotated

import typer

from subak.cli import completion
from subak.cli.ending import loading
from subak.cli.limits import COUNT_MAX
from subak.cli.live.federation import show_explanation, show_queues
from subak.cli.live.options import ClientOption, Output, OutputOption
from subak.cli.live.scripts import is_script
from subak.errors import InputError
from subak.live.api.models import ID_PATTERN, NAME_PATTERN
from subak.placement.lotes.settings import CLASSES_MAX

WITH_LOTES = "With lotes in place of RUN"


def queues(
    source: Annotated[str | None, typer.Argument(
        metavar="[WORKLOAD|TREE.toml]", help="A workload folder, the name of a shipped sample (google2011), or a file "
                                             "of queues [default: those of the live federation].",
        show_default=False, autocompletion=completion.workload)] = None,
    weights: Annotated[Path | None, typer.Option(
        "--queues", metavar="TREE.toml", help="With a workload: weights and limits of its queues, and queues it does "
                                              "not use.", show_default=False)] = None,
    rows: Annotated[int, typer.Option(
        metavar="N", min=1, max=COUNT_MAX, help="How many queues to list: the first in the file, or those that ask for "
                                               "most.")] = 40,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Show the tree of queues: weights, limits, guarantees, and each queue's running, waiting or requested amounts.

    A job's queue is a path such as org/department/user, of at most 64 parts; each part is a node of the tree. The
    guarantee of a queue is its parent's guarantee, times its weight over the sum of its siblings' weights. Jobs of an
    inner queue itself are in a leaf whose name ends with a slash.

    - `subak queues` shows the queues of the live federation, and their use.
    - `subak queues google2011` shows the queues of the shipped sample.
    - `subak queues W --queues tree.toml` shows a workload's queues with the weights and limits of a file.
    - `subak queues tree.toml` shows the queues of a file; `subak fair tree.toml` shares a cluster out among them.
    """
    if source is None:
        if weights is not None:
            raise InputError("--queues: goes with a workload")
        show_queues(output, client)
        return
    _refuse_live(output, client, source)
    with loading():
        from subak.cli.commands.queues import queues as queues_of  # noqa: PLC0415  (loads the simulator)

    queues_of(source, weights, rows)


def explain(
    run: Annotated[str, typer.Argument(
        metavar="RUN|JOB|TASK", show_default=False,
        help="A run folder, such as those in the folder runs of a comparison; or the word lotes (a folder of that name "
             "is ./lotes); or, by itself, a job of a live federation by its id or name, or a task such as g0-17.3.")],
    task: Annotated[str | None, typer.Argument(
        metavar="[TASK]", help="JOB/INDEX, as in the first columns of tasks.parquet, or the row number of the task; or "
                               "the job's name in the trace, alone or with an index, such as job=4711/0; "
                               "with lotes: a workload folder, or the name of a shipped sample.",
        show_default=False)] = None,
    fleet: Annotated[Path | None, typer.Argument(
        metavar="[FLEET]", help="Only with lotes: the fleet folder [default: the folder `fleet` in the workload's].",
        show_default=False)] = None,
    classes: Annotated[int | None, typer.Option(
        metavar="N", min=0, max=CLASSES_MAX, show_default=False, rich_help_panel=WITH_LOTES,
        help="The number of request clusters; 0: chosen by a criterion [default: 4].")] = None,
    settings: Annotated[Path | None, typer.Option(
        metavar="FILE.toml", show_default=False, rich_help_panel=WITH_LOTES,
        help="Settings of the plan, one key each, such as window_seconds = 3600; --classes overrides it.")] = None,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Say why a task is in its state, in a live federation or at the end of a run; with `lotes`, show LoTES's plan.

    A task that started: when, where, and the parts of its wait. A waiting task: what every machine lacks; under `megha`
    and `central` also what each partition lacks in the global master's view, and how old that view is. An unplaceable
    task: why no machine could ever hold it.

    A job of several tasks in a live federation: how many are in each state, and why.

    - `subak explain g0-17.3` says why a task of the live federation waits, or who preempted it.
    - `subak explain g0-17` explains a job; `subak explain train` the job named train, the open one, or else the latest.
    - `subak explain R 17/0` explains the first task of job 17 of a run.
    - `subak explain R job=4711/3` explains task 3 of job 4711, as the trace names it.
    - `subak explain C/runs/megha 1234` explains the task of row 1234 in one run of a comparison.
    - `subak explain lotes W` shows the plan for workload W: classes, the largest rate that its fleet can serve, the
      part of each configuration for each class, and the bin of each machine.

    `subak simulate` and the page of `subak report` list the reasons of all waiting tasks with their numbers.
    """
    if task is None:
        if not (re.fullmatch(ID_PATTERN, run) or re.fullmatch(NAME_PATTERN, run)) or (
                os.path.exists(run) and not is_script(run)):  # noqa: PTH110
            raise InputError(f"TASK: must follow {run}, which is not a job or a task of a live federation, such as "
                             "g0-17 or g0-17.3")
        for name, value in (("--classes", classes), ("--settings", settings)):
            if value is not None:
                raise InputError(f"{name}: goes only with lotes")
        show_explanation(run, output, client)
        return
    _refuse_live(output, client, run)
    with loading():
        from subak.cli.commands.explain import explain as explain_run  # noqa: PLC0415  (loads the simulator)

    explain_run(run, task, fleet, classes, settings)


def _refuse_live(output: Output, client: Path | None, source: str) -> None:
    """Raise InputError for options that say something of a live federation only."""
    if output != Output.TABLE or client is not None:
        raise InputError(f"{'--client' if client is not None else '--output'}: says nothing of {source}, but of a "
                         "live federation")
