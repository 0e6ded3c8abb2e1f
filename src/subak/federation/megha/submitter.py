"""The submitter of a global master: hands it each task of its queues, and keeps it until both know of its end.

Rules: a task is submitted when it has arrived and no stage it waits for is open; it is submitted again, at doubling
intervals, while nothing is heard of it (the network may lose messages, a global master its memory); a global master
that was restarted asks for all of its tasks that are open. Of a gang it is told which have ended, because nobody else
may remember. A second DONE changes nothing.

An open task has a row in a table of both (open_tasks.py). When its end is DONE, and the master that now is has said so
too, the row is another's: a master that said so and was restarted has forgotten it, and may have been handed the task
again. The rows of a gang are given back together.

What each message does in each state of a task: transitions.py.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.open_tasks import (
    TASKS_EVER,
    OpenTasks,
    close_gang,
    close_task,
    is_still,
    join_gang,
    open_gang,
    open_task,
)
from subak.federation.messages import FINISHED_WELL, NOBODY, READY, RESUBMIT, SUBMIT, Outbox, post
from subak.kernel import inlined, noinline
from subak.workload.tasks import Stages

SUBMISSION_NEW, SUBMISSION_BLOCKED, SUBMISSION_OPEN, SUBMISSION_ENDED = range(4)
DOUBLINGS_MAX = 6
INCARNATION_KNOWN = 0  # of `scalar`

SUBMISSION = np.dtype([
    ("state", np.int8),  # SUBMISSION_OPEN or SUBMISSION_ENDED
    ("tries", np.int8),  # how often it was submitted
    ("settled", np.bool_),  # whether the present incarnation of the global master has said that it ended
])
ASKED = np.dtype([
    ("queue", np.int32),
    ("lane", np.int32),  # alike tasks of a queue share one
    ("priority", np.int32),
    ("owner", np.int32),  # the global master of its queue
])
ENDING = np.dtype([  # what became of a task
    ("outcome", np.int8),  # one of OUTCOMES, 0 while it is open
    ("code", np.int16),  # exit code of its last attempt
    ("failed", np.int16),  # attempts that failed or ran too long
    ("refusals", np.int16),
    ("repartitions", np.int16),
    ("preempted", np.int16),
])
OUTCOMES = ("", "FINISHED", "FAILED", "CANCELLED", "TIMED_OUT", "LOST")
NO_OUTCOME, OUTCOME_FINISHED, OUTCOME_FAILED, OUTCOME_CANCELLED, OUTCOME_TIMED_OUT, OUTCOME_LOST = range(len(OUTCOMES))
TERMS = np.dtype([  # on which a task is run; of a gang none may be tried again
    ("retries", np.int16),  # how often it is tried again after an attempt that failed or ran too long
    ("losses_max", np.int16),  # attempts that may be lost with their machines before the task is
    ("backoff", np.float64),  # seconds before it is tried again; twice as long each time
    ("wait_max", np.float64),  # seconds: a task that still waits when so many have passed is ended, TIMED_OUT
    ("run_max", np.float64),  # seconds that an attempt may run
])


class Jobs(NamedTuple):
    """The tasks that are submitted, as the workload has them; each submitter touches those of its own queues."""

    state: np.ndarray  # int8[task]: SUBMISSION_NEW, SUBMISSION_BLOCKED, SUBMISSION_OPEN, SUBMISSION_ENDED
    asked: np.ndarray  # ASKED[task]
    rank: np.ndarray  # float64[task]
    shape: np.ndarray  # int32[task]
    gang: np.ndarray  # int32[task], NOBODY where it starts by itself; empty without gangs
    gang_size: np.ndarray  # int32[gang], tasks
    gang_row: np.ndarray  # int32[gang], where it is open; else NOBODY
    ending: np.ndarray  # ENDING[task], of those that ended
    stages: Stages


class Submitter(NamedTuple):
    """One submitter, and what it keeps of the tasks that are open."""

    number: int  # that of its global master
    tasks: OpenTasks
    submission: np.ndarray  # SUBMISSION[row]
    scalar: np.ndarray  # int64[1]: INCARNATION_KNOWN, of the global master that asked last
    retry: float  # seconds until a task is submitted again; inf: never


@inlined
def on_arrive(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """Submit a task that arrived, unless its stage waits for others."""
    task, stages = message["task"], jobs.stages
    if stages.of_task.size > 0 and stages.waits[stages.of_task[task]] > 0:
        jobs.state[task] = SUBMISSION_BLOCKED
    else:
        submit(submitter, jobs, task, out)


@inlined
def submit(submitter: Submitter, jobs: Jobs, task: int, out: Outbox) -> None:
    """Submit a task for the first time."""
    jobs.state[task] = SUBMISSION_OPEN
    row = admit(submitter.tasks, jobs, task)
    submission = submitter.submission[row]
    submission["state"], submission["tries"], submission["settled"] = SUBMISSION_OPEN, 0, False
    post(out, READY, submitter.number, NOBODY, task, NOBODY)
    send(submitter, row, out)
    look_after(submitter, row, out)


@inlined
def admit(tasks: OpenTasks, jobs: Jobs, task: int) -> int:
    """Give a task a row, and write there what it asks for."""
    row, asked = open_task(tasks, task), jobs.asked[task]
    tasks.rank[row], tasks.shape[row], tasks.queue[row] = jobs.rank[task], jobs.shape[task], asked["queue"]
    tasks.lane[row], tasks.priority[row] = asked["lane"], asked["priority"]
    if jobs.gang.size > 0 and jobs.gang[task] != NOBODY:
        gang = jobs.gang[task]
        if jobs.gang_row[gang] == NOBODY:
            jobs.gang_row[gang] = open_gang(tasks, gang, jobs.gang_size[gang])
        join_gang(tasks, row, jobs.gang_row[gang])
    return row


@inlined
def send(submitter: Submitter, row: int, out: Outbox) -> None:
    """Hand an open task to the global master, or say that it has ended."""
    message = post(out, SUBMIT, submitter.number, submitter.number, submitter.tasks.number[row], NOBODY)
    message["row"], message["incarnation"] = row, submitter.scalar[INCARNATION_KNOWN]
    if submitter.submission[row]["state"] == SUBMISSION_ENDED:
        message["reason"] = FINISHED_WELL


@inlined
def look_after(submitter: Submitter, row: int, out: Outbox) -> None:
    """Arm the timer to submit a task again."""
    if submitter.retry < np.inf:
        submission = submitter.submission[row]
        timer = post(out, RESUBMIT, submitter.number, submitter.number, submitter.tasks.number[row], NOBODY)
        timer["row"], timer["delay"] = row, submitter.retry * 2.0 ** submission["tries"]
        submission["tries"] = min(submission["tries"] + 1, DOUBLINGS_MAX)


@inlined
def on_resubmit(submitter: Submitter, message: np.void, out: Outbox) -> None:
    """Submit a task again of which nothing was heard, or whose end the global master has not confirmed."""
    row = message["row"]
    if is_still(submitter.tasks, row, message["task"]) and not submitter.submission[row]["settled"]:
        send(submitter, row, out)
        if submitter.tasks.gang[row] != NOBODY:
            tell_ended(submitter, submitter.tasks.gang[row], row, out)
        look_after(submitter, row, out)


@noinline
def tell_ended(submitter: Submitter, gang: int, but: int, out: Outbox) -> None:
    """Say which tasks of a gang have ended; one of them, *but*, was told of already."""
    row = submitter.tasks.gangs[gang]["first"]
    while row != NOBODY:
        if row != but and submitter.submission[row]["state"] == SUBMISSION_ENDED:
            send(submitter, row, out)
        row = submitter.tasks.next[row]


@inlined
def on_done(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """Note the end of a task; the last one of a stage releases the stages that wait for it."""
    row, task = message["row"], message["task"]
    if not is_still(submitter.tasks, row, task):
        return
    submission = submitter.submission[row]
    if submission["state"] == SUBMISSION_OPEN:
        submission["state"], jobs.state[task] = SUBMISSION_ENDED, SUBMISSION_ENDED
        ending = jobs.ending[task]
        ending["refusals"], ending["repartitions"] = message["refusals"], message["repartitions"]
        ending["preempted"] = message["preempted"]
        if jobs.stages.of_task.size > 0:
            end_of_stage(submitter, jobs, task, out)
    if message["incarnation"] == submitter.scalar[INCARNATION_KNOWN]:
        submission["settled"] = True
        close(submitter, jobs, row)


@inlined
def close(submitter: Submitter, jobs: Jobs, row: int) -> None:
    """Give the row of a task back that is settled; those of a gang when all of it are."""
    gang = submitter.tasks.gang[row]
    if gang == NOBODY:
        close_task(submitter.tasks, row)
    elif gang_is_over(submitter, gang):
        jobs.gang_row[submitter.tasks.gangs[gang]["number"]] = NOBODY
        close_gang(submitter.tasks, gang)


@inlined
def gang_is_over(submitter: Submitter, gang: int) -> bool:
    """Whether all tasks of a gang were submitted, and are settled."""
    count, row = 0, submitter.tasks.gangs[gang]["first"]
    while row != NOBODY:
        count += submitter.submission[row]["settled"]
        row = submitter.tasks.next[row]
    return bool(count == submitter.tasks.gangs[gang]["size"])


@inlined
def end_of_stage(submitter: Submitter, jobs: Jobs, task: int, out: Outbox) -> None:
    """Count a task that ended off in its stage."""
    stages = jobs.stages
    stage = stages.of_task[task]
    stages.left[stage] -= 1
    if stages.left[stage] > 0:
        return
    for edge in range(stages.child_first[stage], stages.child_first[stage + 1]):
        child = stages.child[edge]
        stages.waits[child] -= 1
        if stages.waits[child] == 0:
            release(submitter, jobs, child, out)


@inlined
def release(submitter: Submitter, jobs: Jobs, stage: int, out: Outbox) -> None:
    """Submit those tasks of a stage that have arrived; the others will be when they arrive."""
    for place in range(jobs.stages.task_first[stage], jobs.stages.task_first[stage + 1]):
        task = jobs.stages.task[place]
        if jobs.state[task] == SUBMISSION_BLOCKED:
            submit(submitter, jobs, task, out)


@inlined
def on_rebuild(submitter: Submitter, message: np.void, out: Outbox) -> None:
    """Hand a restarted global master all of its tasks that are open, and say which of their gangs have ended.

    Where that was done already, it is the one task that is asked for.
    """
    if message["incarnation"] > submitter.scalar[INCARNATION_KNOWN]:
        submitter.scalar[INCARNATION_KNOWN] = message["incarnation"]
        for row in range(submitter.tasks.size[TASKS_EVER]):
            if submitter.tasks.number[row] != NOBODY:
                send(submitter, row, out)
                if submitter.submission[row]["settled"]:
                    submitter.submission[row]["settled"], submitter.submission[row]["tries"] = False, 0
                    look_after(submitter, row, out)
    elif is_still(submitter.tasks, message["row"], message["task"]):
        send(submitter, message["row"], out)
