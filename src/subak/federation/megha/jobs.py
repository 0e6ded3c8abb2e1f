"""The submitted tasks: requests, terms, state and outcome of each.

A simulation has the workload here, a task at the place of its number. A live submitter has as many places as tasks may
be known at once, a power of two, and uses them again: the number of a task tells its place by its last bits, and tasks
of former tenants by the others. What is said of one of those changes nothing.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.counts import COMPARED, TOLD
from subak.federation.messages import (
    CANCELLED,
    FINISHED_WELL,
    GANG_FAILED,
    HAS_FAILED,
    LOST_TOO_OFTEN,
    NOBODY,
    RAN_TOO_LONG,
    REASONS,
    STAGE_FAILED,
    USED_TOO_MUCH,
    WAITED_TOO_LONG,
)
from subak.marks import inlined
from subak.workload.tasks import Stages

SUBMISSIONS = ("NEW", "BLOCKED", "OPEN", "BACKOFF", "WITHDRAWN", "ENDED")
(SUBMISSION_NEW, SUBMISSION_BLOCKED, SUBMISSION_OPEN, SUBMISSION_BACKOFF, SUBMISSION_WITHDRAWN,
 SUBMISSION_ENDED) = range(len(SUBMISSIONS))
ASKED = np.dtype([
    ("queue", np.int32),
    ("lane", np.int32),  # alike tasks of a queue share one
    ("priority", np.int32),
    ("owner", np.int32),  # the global master of its queue
])
ENDING = np.dtype([  # what became of a task
    ("outcome", np.int8),  # one of OUTCOMES, 0 while it is open
    ("reason", np.int8),  # why: one of REASONS
    ("code", np.int16),  # exit code of its last attempt
    ("failed", COMPARED),  # attempts that failed or ran too long
    ("lost", COMPARED),  # attempts that were lost
    ("refusals", TOLD),
    ("repartitions", TOLD),
    ("preempted", TOLD),
])
OUTCOMES = ("", "FINISHED", "FAILED", "CANCELLED", "TIMED_OUT", "LOST")
NO_OUTCOME, OUTCOME_FINISHED, OUTCOME_FAILED, OUTCOME_CANCELLED, OUTCOME_TIMED_OUT, OUTCOME_LOST = range(len(OUTCOMES))
OUTCOME_OF = np.array([{  # by reason
    FINISHED_WELL: OUTCOME_FINISHED, HAS_FAILED: OUTCOME_FAILED, USED_TOO_MUCH: OUTCOME_FAILED,
    GANG_FAILED: OUTCOME_FAILED,
    CANCELLED: OUTCOME_CANCELLED, STAGE_FAILED: OUTCOME_CANCELLED, LOST_TOO_OFTEN: OUTCOME_LOST,
    RAN_TOO_LONG: OUTCOME_TIMED_OUT, WAITED_TOO_LONG: OUTCOME_TIMED_OUT,
}.get(reason, NO_OUTCOME) for reason in range(len(REASONS))], np.int8)
TERMS = np.dtype([  # on which a task is run; of a gang none may be tried again
    ("retries", np.int16),  # how often it is tried again after an attempt that failed or ran too long
    ("losses_max", np.int16),  # attempts that may be lost with their machines before the task is
    ("backoff", np.float64),  # seconds before it is tried again; twice as long each time
    ("wait_max", np.float64),  # seconds: a task that still waits when so many have passed is ended, TIMED_OUT
    ("run_max", np.float64),  # seconds that an attempt may run
])


class Jobs(NamedTuple):
    """The tasks that are submitted; each submitter touches those of its own queues."""

    number: np.ndarray  # int64[place], of the task that has the place, NOBODY for none
    mask: int  # bits of a number that are its place
    state: np.ndarray  # int8[place], one of SUBMISSIONS
    row: np.ndarray  # int32[place], where it is open; else NOBODY
    asked: np.ndarray  # ASKED[place]
    rank: np.ndarray  # float64[place]
    shape: np.ndarray  # int32[place]
    gang: np.ndarray  # int32[place], NOBODY where it starts by itself; empty where nobody has one
    gang_size: np.ndarray  # int32[gang], tasks
    gang_row: np.ndarray  # int32[gang], where it is open; else NOBODY
    gang_left: np.ndarray  # int32[gang], tasks that have not ended
    gang_failed: np.ndarray  # bool[gang], whether one has not finished, so that none will
    ending: np.ndarray  # ENDING[place]
    terms: np.ndarray  # TERMS[place], or TERMS[1] for all
    given_up: np.ndarray  # bool[stage], whether its tasks are cancelled, because a stage before it did not finish
    to_give_up: np.ndarray  # int32[stage], a stack
    stages: Stages  # of which tasks are places


@inlined
def is_known(jobs: Jobs, number: int) -> bool:
    """Whether a task has its place yet, or still."""
    return bool(jobs.number[number & jobs.mask] == number)


@inlined
def terms_of(jobs: Jobs, place: int) -> np.void:
    """Return the terms of the task at a place."""
    return jobs.terms[place if jobs.terms.size > 1 else 0]


@inlined
def gang_of(jobs: Jobs, place: int) -> int:
    """Return the gang of the task at a place, or NOBODY."""
    return int(jobs.gang[place]) if jobs.gang.size > 0 else NOBODY
