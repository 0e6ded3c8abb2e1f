"""Says after a submission at a terminal which jobs wait for full machines, and what to type next."""
import sys
from collections.abc import Sequence

from msgspec import structs

from subak.cli.live.hints import hint
from subak.cli.live.show import remark, why_full
from subak.live.api.models import TASK_WAITING, WAITS_FOR_MACHINES, FederationView, Free, JobView, StageView
from subak.live.jobfile.spec import TASKS


def is_seen() -> bool:
    """Whether somebody reads what a command prints, at a terminal."""
    return sys.stdout.isatty()


def say_what_waits(jobs: Sequence[JobView], before: FederationView) -> None:
    """Say which of the jobs have to wait: no task of theirs fits into what was free *before*, behind those above it.

    Where machines have so many different amounts free that not all are told, a job may fit on one of those left out.
    """
    free = [*before.free]
    began = [sum([_place(stage, free) for stage in job.stages if not stage.depends_on]) for job in jobs]
    remark(why_full(structs.replace(job, reason=WAITS_FOR_MACHINES) for job, tasks in zip(jobs, began, strict=True)
                    if job.state == TASK_WAITING and not (tasks or job.warnings or before.free_left_out)))


def say_next(jobs: Sequence[JobView]) -> None:
    """Say what to type next."""
    first = jobs[0].id
    remark([f"subak list shows it; {hint('logs -f', first)} follows it; {hint('cancel', first)} ends it"
            if len(jobs) == 1 else
            f"subak list shows them; {hint('logs -f', first)} follows one; subak cancel --all ends all"])


def _place(stage: StageView, free: list[Free]) -> int:
    """Take from the machines what as many tasks of a stage need as fit; return how many those are."""
    request = {**stage.request, TASKS: 1}
    waiting, after = stage.tasks, []
    for alike in free:
        fits = [alike.amounts.get(name, 0) // amount for name, amount in request.items()
                if amount and (name != TASKS or name in alike.amounts)]
        each = max(0, min([waiting, *fits]))  # on one machine
        full = min(alike.machines, waiting // each) if each else 0
        rest = waiting - full * each if each and full < alike.machines else 0  # on one more, fewer than *each*
        after += [_less(alike, request, each, full), _less(alike, request, rest, 1 if rest else 0),
                  Free(amounts=alike.amounts, machines=alike.machines - full - (1 if rest else 0))]
        waiting -= full * each + rest
    if stage.gang and waiting:
        return 0
    free[:] = [alike for alike in after if alike.machines]
    return stage.tasks - waiting


def _less(alike: Free, request: dict[str, int], tasks: int, machines: int) -> Free:
    """Return *machines* of those alike, each with *tasks* tasks more."""
    return Free(amounts={name: amount - tasks * request.get(name, 0) for name, amount in alike.amounts.items()},
                machines=machines)
