"""`subak apply`: changes the configuration of a running federation; also answers live `queues` and `explain`."""
import sys
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.live.options import TASK, ClientOption, Output, OutputOption, checked, file_bytes, opened
from subak.cli.live.show import amounts_text, remark, show, show_facts, show_table
from subak.errors import InputError
from subak.live.api.models import Plan
from subak.report.console import echo
from subak.report.number_text import NOTHING, count_text, share_text

SIGNS = {"add": "+", "remove": "-", "change": "~"}


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The configuration; - is standard input.",
                                         show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Show what a configuration changes, ask, and apply it while the federation runs.

    It is applied to what was shown: if somebody else has changed the configuration meanwhile, nothing is done.

    - `subak apply federation.toml --dry-run` shows what would change.
    - `subak apply federation.toml --yes` is for scripts.
    """
    text = file_bytes(file)
    with opened(client) as federation:
        plan = federation.plan(text)
        if dry_run or not plan.changes:
            if not show(plan, output):
                _show_plan(plan)
            return
        if output == Output.TABLE:
            _show_plan(plan)
        if not yes and not _agreed(str(file) != "-"):
            raise InputError("nothing was changed; --yes applies it without asking")
        plan = federation.apply(text, plan.version)
    if not show(plan, output):
        echo(f"applied; configuration {plan.version} is in force")


def _agreed(may_ask: bool) -> bool:
    """Whether somebody at a terminal says yes."""
    if not may_ask or not sys.stdin.isatty():
        return False
    echo("Apply? [y/N] ", err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


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


def show_explanation(task: str, output: Output, client: Path | None) -> None:
    """Print why a task of a live federation stands as it stands."""
    with opened(client) as federation:
        found = federation.explain(checked(task, TASK, "TASK"))
    if show(found, output):
        return
    by = f"by {found.preempted_by}: {found.preempted_why}" if found.preempted_by else ""
    show_facts(f"{found.task} is {found.state}", [("why", found.words), ("preempted", by)])
    if found.shortages:
        show_table(("cluster", "machines", "lack", "of", "why"), [
            (each.cluster or NOTHING, f"{count_text(each.machines)} of {count_text(each.of)}" if each.of else NOTHING,
             each.test, each.what or NOTHING, each.words) for each in found.shortages])
