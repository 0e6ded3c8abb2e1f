"""The submitter of a global master: hands over each task and keeps it until its end is confirmed.

Rules: a task is submitted when it has arrived and no stage it waits for is open; it is submitted again, at doubling
intervals, while nothing is heard of it (the network may lose messages, a global master its memory); a global master
that was restarted asks for all of its tasks that are open. Of a gang it is told which have ended, because nobody else
may remember. A second DONE changes nothing.

A task whose attempt failed, or ran for longer than it may, is submitted anew while its terms allow, after a while that
doubles each time; attempts that are lost or preempted are the global master's affair. A task that is cancelled, or has
waited for too long, is withdrawn: the global master says what became of it, since it may have finished meanwhile. What
depends on a stage that did not finish is cancelled. A gang starts together and fails together, and is not tried again.

An open task has a row in a table of both (open_tasks.py). When its end is DONE, and the master that now is has said so
too, the row is another's: a master that said so and was restarted has forgotten it, and may have been handed the task
again. The rows of a gang are given back together.

What each message does in each state of a task: transitions.py.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.counts import compared, told
from subak.federation.megha.jobs import (
    OUTCOME_OF,
    SUBMISSION_BACKOFF,
    SUBMISSION_BLOCKED,
    SUBMISSION_ENDED,
    SUBMISSION_NEW,
    SUBMISSION_OPEN,
    SUBMISSION_WITHDRAWN,
    Jobs,
    gang_of,
    is_known,
    terms_of,
)
from subak.federation.megha.open_tasks import (
    OpenTasks,
    close_gang,
    close_task,
    is_still,
    join_gang,
    open_gang,
    open_task,
)
from subak.federation.messages import (
    CANCELLED,
    EXPIRE,
    FAILURE,
    FINISHED_WELL,
    GANG_FAILED,
    GIVEN_UP,
    HAND_OVER,
    NO_REASON,
    NOBODY,
    READY,
    RELEASE,
    RESUBMIT,
    STAGE_FAILED,
    SUBMIT,
    TRY_AGAIN,
    WAITED_TOO_LONG,
    WITHDRAW,
    Outbox,
    go_on,
    is_filling,
    post,
)
from subak.marks import inlined, noinline
from subak.records import Numbers

DOUBLINGS_MAX = 6
OF_AN_ATTEMPT = FAILURE | (np.arange(FAILURE.size) == FINISHED_WELL)

SUBMISSION = np.dtype([
    ("tries", np.int8),  # how often it was submitted
    ("reason", np.int8),  # why it was withdrawn, or has ended; 0 while it is to be placed
    ("settled", np.bool_),  # whether the present incarnation of the global master has said that it ended
])


class SubmitterCounts(Numbers):
    """What a submitter knows of its global master."""

    incarnation_known: int  # of the global master that asked last


class Submitter(NamedTuple):
    """One submitter, and what it keeps of the tasks that are open."""

    number: int  # that of its global master
    tasks: OpenTasks
    submission: np.ndarray  # SUBMISSION[row]
    counts: SubmitterCounts
    retry: float  # seconds until a task is submitted again; inf: never


@inlined
def on_arrive(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """Submit a task that arrived, unless its stage waits for others or it was cancelled before."""
    place, stages = message["task"] & jobs.mask, jobs.stages
    if not is_known(jobs, message["task"]) or jobs.state[place] == SUBMISSION_ENDED:
        return
    if stages.of_task.size > 0 and stages.waits[stages.of_task[place]] > 0:
        jobs.state[place] = SUBMISSION_BLOCKED
    else:
        submit(submitter, jobs, place, out)


# -- what is submitted, and said again ---------------------------------------------------------------------------------


@inlined
def submit(submitter: Submitter, jobs: Jobs, place: int, out: Outbox) -> None:
    """Submit a task for the first time; one of a gang that has failed is given up."""
    gang = gang_of(jobs, place)
    if gang != NOBODY and jobs.gang_failed[gang]:
        give_up(submitter, jobs, place, GANG_FAILED, out)
    else:
        begin_round(submitter, jobs, admit(submitter.tasks, jobs, place), out)


@inlined
def admit(tasks: OpenTasks, jobs: Jobs, place: int) -> int:
    """Give a task a row, and write there what it asks for."""
    row, asked, terms = open_task(tasks, jobs.number[place]), jobs.asked[place], terms_of(jobs, place)
    jobs.row[place] = row
    tasks.rank[row], tasks.shape[row], tasks.queue[row] = jobs.rank[place], jobs.shape[place], asked["queue"]
    tasks.lane[row], tasks.priority[row] = asked["lane"], asked["priority"]
    tasks.losses_max[row], tasks.limit[row] = terms["losses_max"], terms["run_max"]
    gang = gang_of(jobs, place)
    if gang != NOBODY:
        if jobs.gang_row[gang] == NOBODY:
            jobs.gang_row[gang] = open_gang(tasks, jobs.number[place], jobs.gang_size[gang])
        join_gang(tasks, row, jobs.gang_row[gang])
    return row


@inlined
def begin_round(submitter: Submitter, jobs: Jobs, row: int, out: Outbox) -> None:
    """Let a task wait from now on: for the first time, or after an attempt that failed."""
    task, submission = submitter.tasks.number[row], submitter.submission[row]
    terms = terms_of(jobs, task & jobs.mask)
    jobs.state[task & jobs.mask] = SUBMISSION_OPEN
    submission["tries"], submission["reason"], submission["settled"] = 0, NO_REASON, False
    post(out, READY, submitter.number, NOBODY, task, NOBODY)
    send(submitter, jobs, row, out)
    look_after(submitter, row, out)
    if terms["wait_max"] < np.inf:
        timer(submitter, EXPIRE, row, terms["wait_max"], out)


@inlined
def send(submitter: Submitter, jobs: Jobs, row: int, out: Outbox) -> None:
    """Say again what is wanted of an open task: that it be placed or withdrawn, or nothing because it has ended."""
    task = submitter.tasks.number[row]
    kind = WITHDRAW if jobs.state[task & jobs.mask] == SUBMISSION_WITHDRAWN else SUBMIT
    message = post(out, kind, submitter.number, submitter.number, task, NOBODY)
    message["row"], message["round"] = row, submitter.tasks.round[row]
    message["reason"], message["incarnation"] = submitter.submission[row]["reason"], submitter.counts.incarnation_known


@inlined
def timer(submitter: Submitter, kind: int, row: int, delay: float, out: Outbox) -> None:
    """Arm a timer for an open task."""
    message = post(out, kind, submitter.number, submitter.number, submitter.tasks.number[row], NOBODY)
    message["row"], message["round"], message["delay"] = row, submitter.tasks.round[row], delay


@inlined
def look_after(submitter: Submitter, row: int, out: Outbox) -> None:
    """Arm the timer to say it again."""
    if submitter.retry < np.inf:
        submission = submitter.submission[row]
        timer(submitter, RESUBMIT, row, submitter.retry * 2.0 ** submission["tries"], out)
        submission["tries"] = min(submission["tries"] + 1, DOUBLINGS_MAX)


@inlined
def state_in(jobs: Jobs, tasks: OpenTasks, row: int) -> int:
    """Return the state of the task that has a row, one of SUBMISSIONS."""
    return int(jobs.state[tasks.number[row] & jobs.mask])


@inlined
def is_this(submitter: Submitter, message: np.void) -> bool:
    """Whether a message is about an open task, in its present round."""
    return is_still(submitter.tasks, message["row"], message["task"], message["round"])


@inlined
def on_resubmit(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """Say again what was not heard of, or whose end the global master has not confirmed."""
    row = message["row"]
    if is_this(submitter, message) and not submitter.submission[row]["settled"]:
        send(submitter, jobs, row, out)
        if submitter.tasks.gang[row] != NOBODY:
            tell_ended(submitter, jobs, submitter.tasks.gang[row], row, out)
        look_after(submitter, row, out)


@noinline
def tell_ended(submitter: Submitter, jobs: Jobs, gang: int, but: int, out: Outbox) -> None:
    """Say which tasks of a gang have ended; one of them, *but*, was told of already."""
    row = submitter.tasks.gangs[gang]["first"]
    while row != NOBODY:
        if row != but and state_in(jobs, submitter.tasks, row) == SUBMISSION_ENDED:
            send(submitter, jobs, row, out)
        row = submitter.tasks.next[row]


@inlined
def on_rebuild(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """Hand a restarted global master all of its tasks that are open, and say which of their gangs have ended.

    Where that was done already, it is the one task that is asked for.
    """
    if message["incarnation"] > submitter.counts.incarnation_known:
        submitter.counts.incarnation_known = message["incarnation"]
        hand_over(submitter, jobs, 0, out)
    elif is_this(submitter, message):
        send(submitter, jobs, message["row"], out)


@inlined
def on_hand_over(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """Go on to hand the tasks over, unless the global master was restarted again."""
    if message["incarnation"] == submitter.counts.incarnation_known:
        hand_over(submitter, jobs, message["row"], out)


@noinline
def hand_over(submitter: Submitter, jobs: Jobs, first: int, out: Outbox) -> None:
    """Hand the global master, whose incarnation is new, the open tasks from a row on."""
    for row in range(first, submitter.tasks.counts.tasks_ever):
        if is_filling(out):
            later = go_on(out, HAND_OVER, submitter.number, NOBODY)
            later["row"], later["incarnation"] = row, submitter.counts.incarnation_known
            return
        if submitter.tasks.number[row] != NOBODY and state_in(jobs, submitter.tasks, row) != SUBMISSION_BACKOFF:
            send(submitter, jobs, row, out)
            if submitter.submission[row]["settled"]:
                submitter.submission[row]["settled"], submitter.submission[row]["tries"] = False, 0
                look_after(submitter, row, out)


# -- ends --------------------------------------------------------------------------------------------------------------


@inlined
def on_done(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """Note how a task has ended, or that it is to be tried again.

    Of what a former incarnation of the global master said, only ends of attempts count. Its other decisions the present
    one does not know, and may have started the task since: it is asked again.
    """
    row, place = message["row"], message["task"] & jobs.mask
    is_present = message["incarnation"] == submitter.counts.incarnation_known
    if not is_this(submitter, message) or not (is_present or OF_AN_ATTEMPT[message["reason"]]):
        return
    submission = submitter.submission[row]
    if jobs.state[place] in (SUBMISSION_OPEN, SUBMISSION_WITHDRAWN):
        note_attempts(jobs, message)
        submission["reason"] = message["reason"]
        if may_try_again(submitter, jobs, row):
            jobs.state[place] = SUBMISSION_BACKOFF
        else:
            conclude(submitter, jobs, place, message["reason"], out)
            if submitter.tasks.gang[row] != NOBODY and message["reason"] != FINISHED_WELL:
                withdraw_gang(submitter, jobs, submitter.tasks.gang[row], out)
    if is_present and message["count"] == 0 and not submission["settled"]:
        submission["settled"] = True
        if jobs.state[place] == SUBMISSION_BACKOFF:
            pause = terms_of(jobs, place)["backoff"] * 2.0 ** (jobs.ending[place]["failed"] - 1)
            timer(submitter, TRY_AGAIN, row, pause, out)
        else:
            close(submitter, jobs, row)


@inlined
def note_attempts(jobs: Jobs, message: np.void) -> None:
    """Note what a task has been through since it was submitted last; what was lost is said of all rounds.

    In its first round there is nothing to add to: what is only written need not be waited for.
    """
    ending = jobs.ending[message["task"] & jobs.mask]
    failed = FAILURE[message["reason"]]
    ending["code"], ending["lost"] = message["code"], message["lost"]
    if message["round"] == 0:
        ending["refusals"], ending["repartitions"] = message["refusals"], message["repartitions"]
        ending["preempted"], ending["failed"] = message["preempted"], failed
    else:
        ending["refusals"] = told(ending["refusals"], message["refusals"])
        ending["repartitions"] = told(ending["repartitions"], message["repartitions"])
        ending["preempted"] = told(ending["preempted"], message["preempted"])
        ending["failed"] = compared(ending["failed"], failed)


@inlined
def may_try_again(submitter: Submitter, jobs: Jobs, row: int) -> bool:
    """Whether a task is to be submitted anew after the end that was noted last."""
    place = submitter.tasks.number[row] & jobs.mask
    return bool(
        FAILURE[submitter.submission[row]["reason"]] and jobs.state[place] == SUBMISSION_OPEN
        and submitter.tasks.gang[row] == NOBODY and jobs.ending[place]["failed"] <= terms_of(jobs, place)["retries"]
    )


@inlined
def on_try_again(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """Submit a task anew."""
    if is_this(submitter, message) and jobs.state[message["task"] & jobs.mask] == SUBMISSION_BACKOFF:
        submitter.tasks.round[message["row"]] += 1
        begin_round(submitter, jobs, message["row"], out)


@inlined
def conclude(submitter: Submitter, jobs: Jobs, place: int, reason: int, out: Outbox) -> None:
    """Note that a task has ended for good; the last one of a stage releases the stages that wait for it."""
    if reason != FINISHED_WELL:
        give_up(submitter, jobs, place, reason, out)
        return
    note_end(jobs, place, reason)
    if jobs.stages.of_task.size > 0:
        end_of_stage(submitter, jobs, place, out)


@noinline
def give_up(submitter: Submitter, jobs: Jobs, place: int, reason: int, out: Outbox) -> None:
    """Note that a task will not finish: what depends on it is cancelled, and its gang has failed."""
    note_end(jobs, place, reason)
    post(out, GIVEN_UP, submitter.number, NOBODY, jobs.number[place], NOBODY)["reason"] = reason
    if jobs.stages.of_task.size > 0:
        give_dependents_up(jobs, jobs.stages.of_task[place])
    gang = gang_of(jobs, place)
    if gang != NOBODY:
        jobs.gang_failed[gang] = True
        close_if_over(submitter, jobs, gang)


@inlined
def note_end(jobs: Jobs, place: int, reason: int) -> None:
    """Note how a task has ended, and count it off in its gang."""
    jobs.ending[place]["outcome"], jobs.ending[place]["reason"] = OUTCOME_OF[reason], reason
    jobs.state[place] = SUBMISSION_ENDED
    gang = gang_of(jobs, place)
    if gang != NOBODY:
        jobs.gang_left[gang] -= 1


@inlined
def close(submitter: Submitter, jobs: Jobs, row: int) -> None:
    """Give the row of a task back that is settled; those of a gang when all of it are."""
    place = submitter.tasks.number[row] & jobs.mask
    if submitter.tasks.gang[row] == NOBODY:
        jobs.row[place] = NOBODY
        close_task(submitter.tasks, row)
    else:
        close_if_over(submitter, jobs, jobs.gang[place])


@inlined
def close_if_over(submitter: Submitter, jobs: Jobs, gang: int) -> None:
    """Give the rows of a gang back when all of it has ended, and what was submitted of it is settled."""
    if jobs.gang_left[gang] > 0 or jobs.gang_row[gang] == NOBODY:
        return
    first = submitter.tasks.gangs[jobs.gang_row[gang]]["first"]
    row = first
    while row != NOBODY:
        if not submitter.submission[row]["settled"]:
            return
        row = submitter.tasks.next[row]
    row = first
    while row != NOBODY:
        jobs.row[submitter.tasks.number[row] & jobs.mask] = NOBODY
        row = submitter.tasks.next[row]
    close_gang(submitter.tasks, jobs.gang_row[gang])
    jobs.gang_row[gang] = NOBODY


# -- withdrawals -------------------------------------------------------------------------------------------------------


@inlined
def on_cancel(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """End a task that its user does not want any more, wherever it is."""
    place = message["task"] & jobs.mask
    if not is_known(jobs, message["task"]) or jobs.state[place] == SUBMISSION_ENDED:
        return
    row, gang = jobs.row[place], gang_of(jobs, place)
    if jobs.state[place] in (SUBMISSION_NEW, SUBMISSION_BLOCKED):
        give_up(submitter, jobs, place, CANCELLED, out)
    elif jobs.state[place] == SUBMISSION_BACKOFF:
        give_up(submitter, jobs, place, CANCELLED, out)
        if submitter.submission[row]["settled"]:
            close(submitter, jobs, row)
    else:
        withdraw(submitter, jobs, row, CANCELLED, out)
    if gang != NOBODY and jobs.gang_row[gang] != NOBODY:
        withdraw_gang(submitter, jobs, jobs.gang_row[gang], out)


@inlined
def withdraw(submitter: Submitter, jobs: Jobs, row: int, reason: int, out: Outbox) -> None:
    """Ask the global master to end a task that is open."""
    place = submitter.tasks.number[row] & jobs.mask
    if jobs.state[place] == SUBMISSION_OPEN:
        jobs.state[place], submitter.submission[row]["reason"] = SUBMISSION_WITHDRAWN, reason
        send(submitter, jobs, row, out)


@noinline
def withdraw_gang(submitter: Submitter, jobs: Jobs, gang: int, out: Outbox) -> None:
    """End what has not ended of a gang, of which one has not finished."""
    row = submitter.tasks.gangs[gang]["first"]
    while row != NOBODY:
        withdraw(submitter, jobs, row, GANG_FAILED, out)
        row = submitter.tasks.next[row]


@inlined
def on_expire(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """Ask the global master to end a task if it still waits; look again when as much time has passed."""
    row, place = message["row"], message["task"] & jobs.mask
    if is_this(submitter, message) and jobs.state[place] == SUBMISSION_OPEN:
        asked = post(out, WITHDRAW, submitter.number, submitter.number, message["task"], NOBODY)
        asked["row"], asked["round"], asked["reason"] = row, message["round"], WAITED_TOO_LONG
        asked["incarnation"] = submitter.counts.incarnation_known
        timer(submitter, EXPIRE, row, terms_of(jobs, place)["wait_max"], out)


# -- stages ------------------------------------------------------------------------------------------------------------


@inlined
def end_of_stage(submitter: Submitter, jobs: Jobs, place: int, out: Outbox) -> None:
    """Count a task that finished off in its stage; the last one releases the stages that wait for no other."""
    stages = jobs.stages
    stage = stages.of_task[place]
    stages.left[stage] -= 1
    if stages.left[stage] > 0:
        return
    first, last = stages.child_first[stage], stages.child_first[stage + 1]
    for edge in range(first, last):
        stages.waits[stages.child[edge]] -= 1
    release_children(submitter, jobs, first, last, out)


@inlined
def release_children(submitter: Submitter, jobs: Jobs, first: int, last: int, out: Outbox) -> None:
    """Submit the tasks of those stages at edges *first* .. *last* - 1 that wait for no other."""
    stages = jobs.stages
    for edge in range(first, last):
        child = stages.child[edge]
        if stages.waits[child] == 0 and not jobs.given_up[child] and not release(
            submitter, jobs, child, stages.task_first[child], edge + 1, last, out
        ):
            return


@inlined
def release(submitter: Submitter, jobs: Jobs, stage: int, begin: int, first: int, last: int, out: Outbox) -> bool:
    """Submit those tasks of a stage, from a place on, that have arrived; the others will be when they arrive.

    Return whether there was room. If not, what is left follows, then the stages at edges *first* .. *last* - 1. What
    was to go on when all of a job was cancelled may find another's tasks here, whose stage waits for others.
    """
    for member in range(begin, jobs.stages.task_first[stage + 1]):
        place = jobs.stages.task[member]
        if jobs.state[place] != SUBMISSION_BLOCKED or jobs.stages.waits[jobs.stages.of_task[place]] > 0:
            continue
        if is_filling(out):
            later = go_on(out, RELEASE, submitter.number, NOBODY)
            later["count"], later["row"], later["first"], later["last"] = stage, member, first, last
            return False
        submit(submitter, jobs, place, out)
    return True


@inlined
def on_release(submitter: Submitter, jobs: Jobs, message: np.void, out: Outbox) -> None:
    """Go on to submit the tasks of a stage, and of the stages behind it."""
    first, last = message["first"], message["last"]
    if release(submitter, jobs, message["count"], message["row"], first, last, out):
        release_children(submitter, jobs, first, last, out)


@noinline
def give_dependents_up(jobs: Jobs, stage: int) -> None:
    """Cancel what depends on a stage that cannot finish any more, and what depends on that."""
    stages, stack = jobs.stages, 0
    jobs.to_give_up[0] = stage
    while stack >= 0:
        before = jobs.to_give_up[stack]
        stack -= 1
        for edge in range(stages.child_first[before], stages.child_first[before + 1]):
            child = stages.child[edge]
            if not jobs.given_up[child]:
                jobs.given_up[child] = True
                stack += 1
                jobs.to_give_up[stack] = child
                cancel_stage(jobs, child)


@inlined
def cancel_stage(jobs: Jobs, stage: int) -> None:
    """Note that the tasks of a stage, none of which was submitted yet, never will be."""
    for member in range(jobs.stages.task_first[stage], jobs.stages.task_first[stage + 1]):
        place = jobs.stages.task[member]
        if jobs.state[place] != SUBMISSION_ENDED:
            note_end(jobs, place, STAGE_FAILED)
