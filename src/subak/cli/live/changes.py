"""Waits for several jobs at once, by one connection: each change as it comes, ends in their order."""
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from subak.live.api.models import TASK_ENDED, TASK_RUNNING, TASK_WAITING, JobView

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client

LOOK_S = 0.5  # between two looks at several jobs, and
LOOKS_PART = 4  # as many times as long as a look takes, so that a long list is no load


def open_jobs(federation: "Client") -> list[JobView]:
    """Return all jobs that have not ended, the earliest submitted first."""
    # in this order: what begins in between is in both
    found = [job for state in (TASK_WAITING, TASK_RUNNING) for job in federation.jobs(state=state, limit=None).items]
    return sorted({job.id: job for job in found}.values(), key=lambda job: job.submitted)


def changes(federation: "Client", jobs: Sequence[JobView]) -> Iterator[JobView]:
    """Return each job as it stands and whenever it has changed, until all have ended; raises what the client raises."""
    seen = {job.id: job for job in jobs}
    yield from sorted(seen.values(), key=_ended)
    pause = LOOK_S
    while left := [job for job in seen.values() if job.state != TASK_ENDED]:
        if len(left) == 1:
            found = [federation.wait(left[0].id, seen=left[0].version)]
        else:
            first, began = federation.wait(left[0].id, seen=left[0].version, timeout_s=pause), time.monotonic()
            found = [first, *_looked(federation, left[1:])]
            pause = max(LOOK_S, LOOKS_PART * (time.monotonic() - began))
        for job in sorted(found, key=_ended):
            if job.version != seen[job.id].version or job.state == TASK_ENDED:  # whose version is counted anew
                yield job
            seen[job.id] = job


def _looked(federation: "Client", jobs: Sequence[JobView]) -> list[JobView]:
    """Return jobs as they stand now; those that are no longer among the open ones are asked for, one by one."""
    is_open = {job.id: job for job in open_jobs(federation)}
    return [is_open.get(job.id) or federation.job(job.id) for job in jobs]


def _ended(job: JobView) -> float:
    return float("inf") if job.ended is None else job.ended
