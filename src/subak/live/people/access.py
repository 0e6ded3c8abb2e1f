"""What each request needs, and which role has it: the one place that decides.

| need | admin | operator | submitter | reader |
|---|---|---|---|---|
| read: states of jobs, queues, machines, masters | yes | yes | yes | yes |
| submit to a queue | yes | its subtrees | its subtrees | no |
| change a job: cancel, preempt | yes | yes | own jobs; all of its subtrees if it was made so | no |
| inside a job: its file, environment, output | yes | as a submitter | as above | no |
| operate: machines, configuration | yes | yes | no | no |
| administer: people, audit | yes | no | no | no |

An operator has subtrees of queues only if it was made with some.
"""
from enum import Enum

from subak.live.people.identity import ADMIN, OPERATOR, Identity


class Need(Enum):
    """What a request needs, and what may do it, in words."""

    NOTHING = "nothing"
    READ = "any token"
    SUBMIT = "a submitter of it, or an admin"
    CHANGE_JOB = "whoever submitted it, a submitter of all jobs of its queue, an operator or an admin"
    READ_JOB = "whoever submitted it, a submitter of all jobs of its queue, or an admin"
    OPERATE = "an operator or an admin"
    ADMINISTER = "an admin"


OF_JOBS = (Need.CHANGE_JOB, Need.READ_JOB)  # needs that depend on whose job it is


def may(who: Identity, need: Need, queue: str | None = None, owner: str = "") -> bool:
    """Whether somebody may do what needs this, to a job of a queue that *owner* submitted, or to that queue."""
    if who.role == ADMIN or need in (Need.NOTHING, Need.READ):
        return True
    if need is Need.SUBMIT:
        return bool(who.queues) if queue is None else who.covers(queue)
    if need in OF_JOBS:
        return (need is Need.CHANGE_JOB and who.role == OPERATOR) or (
            queue is not None and who.has_a_right_to(queue, owner))
    return need is Need.OPERATE and who.role == OPERATOR


def refusal(who: Identity, need: Need, what: str) -> str:
    """Return why somebody may not do that, in one line."""
    queues = f" of {', '.join(who.queues)}" if who.queues else ""
    role = f"an {who.role}" if who.role[0] in "ao" else f"a {who.role}"
    return f"{who.name} is {role}{queues}: {what} takes {need.value}"
