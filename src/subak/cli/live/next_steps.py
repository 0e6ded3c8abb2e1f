"""Says after a submission at a terminal which jobs wait for full machines, and what to type next."""
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from subak.cli.live.show import remark, why_full
from subak.live.api.models import TASK_WAITING, WAITS_FOR_MACHINES, JobView, StageView
from subak.live.jobfile.spec import TASKS

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client

Free = list[dict[str, int]]  # what each machine has left


def is_seen() -> bool:
    """Whether somebody reads what a command prints, at a terminal."""
    return sys.stdout.isatty()


def free_now(federation: "Client") -> Free:
    """Return what each machine that takes tasks has left."""
    return [{name: amount - machine.used.get(name, 0) for name, amount in machine.capacity.items()}
            for machine in federation.machines() if machine.state == "ready" and not machine.cordoned]


def say_what_waits(jobs: Sequence[JobView], free: Free) -> None:
    """Say which of the jobs have to wait: no task of theirs fits into what was *free* before, behind those above it."""
    began = [sum([_place(stage, free) for stage in job.stages if not stage.depends_on]) for job in jobs]
    remark(why_full(structs.replace(job, reason=WAITS_FOR_MACHINES) for job, tasks in zip(jobs, began, strict=True)
                    if job.state == TASK_WAITING and not tasks and not job.warnings))


def say_next(jobs: Sequence[JobView]) -> None:
    """Say what to type next."""
    first = jobs[0].id
    remark([f"subak list shows it; subak logs -f {first} follows it; subak cancel {first} ends it" if len(jobs) == 1
            else f"subak list shows them; subak logs -f {first} follows one; subak cancel --all ends all"])


def _place(stage: StageView, free: Free) -> int:
    """Take from the machines what as many tasks of a stage need as fit; return how many those are."""
    request = {**stage.request, TASKS: 1}
    placed, waiting = [0] * len(free), stage.tasks
    for row, left in enumerate(free):
        fits = [left.get(name, 0) // amount for name, amount in request.items()
                if amount and (name != TASKS or name in left)]
        placed[row] = max(0, min([waiting, *fits]))
        waiting -= placed[row]
    if stage.gang and waiting:
        return 0
    for left, count in zip(free, placed, strict=True):
        for name in left:
            left[name] -= count * request.get(name, 0)
    return stage.tasks - waiting
