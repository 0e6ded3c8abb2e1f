"""`subak apply`: changes the configuration of a running federation; also answers live `queues` and `explain`."""
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from subak.cli.live.hints import hint
from subak.cli.live.named import job_or_task
from subak.cli.live.options import ClientOption, Output, OutputOption, file_bytes, opened
from subak.cli.live.show import (
    ENDED_BADLY,
    PENDING,
    UNFINISHED,
    agreed,
    amounts_text,
    counts_text,
    how_larger,
    of_counts,
    remark,
    show,
    show_facts,
    show_table,
    standing,
)
from subak.errors import InputError
from subak.live.api.models import (
    CANCELLED,
    HAS_FINISHED,
    STANDS,
    TASK_ENDED,
    TASK_WAITING,
    Explanation,
    JobView,
    Plan,
    TaskView,
)
from subak.report.console import echo
from subak.report.number_text import NOTHING, count_text, share_text

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client

EXPLAINED = 1_000  # tasks of a job, whose reasons are counted
SIGNS = {"add": "+", "remove": "-", "change": "~"}


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The configuration; - is standard input.",
                                         show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Show what a configuration would change, ask, and apply it while the federation runs.

    If somebody else has changed the configuration meanwhile, nothing is done.

    - `subak apply federation.toml --dry-run` shows what would change.
    - `subak apply federation.toml --yes` is for scripts.
    """
    text = file_bytes(file)
    with opened(client, "subak apply FILE shows what is not in force") as federation:
        plan = federation.plan(text)
        if dry_run or not plan.changes:
            if not show(plan, output):
                _show_plan(plan)
            return
        if output == Output.TABLE:
            _show_plan(plan)
        if not yes and not agreed("Apply?", str(file) != "-"):
            raise InputError("nothing was changed; --yes applies it without asking")
        plan = federation.apply(text, plan.version)
    if not show(plan, output):
        echo(f"applied; configuration {plan.version} is in force")


def _show_plan(plan: Plan) -> None:
    if not plan.changes:
        echo(f"nothing changes; configuration {plan.version} is in force")
    for change in plan.changes:
        values = f": {change.before or NOTHING} -> {change.after or NOTHING}" if change.before or change.after else ""
        echo(f"{SIGNS[change.kind]} {change.what}{values}")
    remark(plan.warnings)


def show_queues(output: Output, client: Path | None) -> None:
    """Print the queues of a live federation."""
    with opened(client) as federation:
        found = federation.queues()
    if not show(found, output):
        show_table(("queue", "weight", "guarantee", "share", "in use", "jobs", "waiting", "running"), [
            (queue.path or "all", f"{queue.weight:g}", share_text(queue.guarantee), share_text(queue.dominant_share),
             amounts_text(queue.used), count_text(queue.jobs), count_text(queue.waiting), count_text(queue.running))
            for queue in found.items], right=("weight", "guarantee", "share", "jobs", "waiting", "running"))
    remark(found.unreachable)


class Alike(Struct, frozen=True):
    """Tasks of a job that stand alike, for one reason."""

    tasks: int
    state: str  # or its outcome
    reason: str
    first: str  # id of the first


class JobExplanation(Struct, frozen=True):
    """Why a job of several tasks stands as it stands; *example*: one of those that have yet to begin."""

    job: JobView
    tasks: list[Alike]  # that have not finished, the first 1,000
    example: Explanation | None = None


def show_explanation(what: str, output: Output, client: Path | None) -> None:
    """Print why a task or a job of a live federation stands as it stands; of a job of one task, why that does."""
    with opened(client) as federation:
        about = job_or_task(federation, what, f", and no run folder {what}")
        if isinstance(about, JobView) and about.tasks > 1:
            _show_job(_explained(federation, about), output, what)
            return
        found = federation.explain(f"{about.id}.0" if isinstance(about, JobView) else about.id)
    if not show(found, output):
        _show_task(found, what)


def _explained(federation: "Client", job: JobView) -> JobExplanation:
    tasks = of_counts(federation, job, UNFINISHED, EXPLAINED)
    alike: dict[tuple[str, str], list[TaskView]] = {}
    for task in tasks:
        reason = task.reason or (job.reason if task.state == TASK_WAITING else "")
        alike.setdefault((standing(task.state, task.outcome), reason), []).append(task)
    pending = next((task.id for task in tasks if task.state in PENDING), None)
    return JobExplanation(job, [Alike(len(each), state, reason, min(each, key=lambda task: task.index).id)
                                for (state, reason), each in alike.items()],
                          None if pending is None else federation.explain(pending))


def _show_job(found: JobExplanation, output: Output, typed: str) -> None:
    if show(found, output):
        return
    job = found.job
    show_facts(f"{job.id} {job.name}: {standing(job.state, job.outcome)}", [
        ("why", job.reason), ("tasks", counts_text(job.counts))])
    if found.tasks:
        show_table(("tasks", "state", "why", "such as"), [
            (count_text(each.tasks), each.state, each.reason or NOTHING, each.first) for each in found.tasks],
            right=("tasks",))
        bad = [each.first for each in found.tasks if each.state in ENDED_BADLY and each.state != CANCELLED]
        remark(f"{hint('logs', first, typed)} prints what that task wrote" for first in bad[:1])
    if found.example is not None:
        _show_task(found.example, typed)


def _show_task(found: Explanation, typed: str) -> None:
    by = f"by {found.preempted_by}: {found.preempted_why}" if found.preempted_by else ""
    show_facts(f"{found.task} {STANDS[found.state]}", [("why", found.words), ("preempted", by)])
    remark(how_larger([found.words]))
    if found.state == TASK_ENDED and found.words != HAS_FINISHED:
        remark([f"{hint('logs', found.task, typed)} prints what it wrote"])
    if found.shortages:
        show_table(("cluster", "machines", "lack", "of", "why"), [
            (each.cluster or NOTHING, f"{count_text(each.machines)} of {count_text(each.of)}" if each.of else NOTHING,
             each.test, each.what or NOTHING, each.words) for each in found.shortages])
