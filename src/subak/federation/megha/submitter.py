"""The submitter: hands each task to the global master of its queue, and keeps it until it has heard of its end.

Rules: a task is submitted when it has arrived and no stage it waits for is open; it is submitted again, at doubling
intervals, while nothing is heard of it (the network may lose messages, a global master its memory); a global master
that was restarted asks for all of its tasks that have not ended. Of a gang it is told which have ended, because nobody
else may remember. A second DONE changes nothing.

What each message does in each state of a task: transitions.py.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.topology import Topology
from subak.federation.messages import FINISHED_WELL, NOBODY, READY, RESUBMIT, SUBMIT, Outbox, post
from subak.kernel import inlined, noinline
from subak.workload.tasks import Stages

SUBMISSION_NEW, SUBMISSION_BLOCKED, SUBMISSION_OPEN, SUBMISSION_ENDED = range(4)
ME = 0  # there is one submitter
DOUBLINGS_MAX = 6


class Submitter(NamedTuple):
    """What those who submit know of their tasks."""

    state: np.ndarray  # int8[task]: SUBMISSION_NEW, SUBMISSION_BLOCKED, SUBMISSION_OPEN, SUBMISSION_ENDED
    owner: np.ndarray  # int32[task], its global master
    tries: np.ndarray  # int8[task], how often it was submitted
    stages: Stages
    retry: float  # seconds until it is submitted again; inf: never


@inlined
def on_arrive(submitter: Submitter, message: np.void, out: Outbox) -> None:
    """Submit a task that arrived, unless its stage waits for others."""
    task, stages = message["task"], submitter.stages
    if stages.of_task.size > 0 and stages.waits[stages.of_task[task]] > 0:
        submitter.state[task] = SUBMISSION_BLOCKED
    else:
        submit(submitter, task, out)


@inlined
def submit(submitter: Submitter, task: int, out: Outbox) -> None:
    """Submit a task for the first time."""
    submitter.state[task] = SUBMISSION_OPEN
    post(out, READY, ME, ME, task, NOBODY)
    send(submitter, task, out)


@inlined
def send(submitter: Submitter, task: int, out: Outbox) -> None:
    """Hand a task to its global master, and look after it later."""
    post(out, SUBMIT, ME, submitter.owner[task], task, NOBODY)
    if submitter.retry < np.inf:
        row = post(out, RESUBMIT, ME, ME, task, NOBODY)
        row["delay"] = submitter.retry * 2.0 ** submitter.tries[task]
        submitter.tries[task] = min(submitter.tries[task] + 1, DOUBLINGS_MAX)


@inlined
def on_resubmit(submitter: Submitter, topology: Topology, message: np.void, out: Outbox) -> None:
    """Submit a task again of which nothing was heard."""
    task = message["task"]
    if submitter.state[task] == SUBMISSION_OPEN:
        send(submitter, task, out)
        if topology.gang.size > 0 and topology.gang[task] != NOBODY:
            tell_ended(submitter, topology, topology.gang[task], out)


@noinline
def tell_ended(submitter: Submitter, topology: Topology, gang: int, out: Outbox) -> None:
    """Say which tasks of a gang have ended."""
    for place in range(topology.gang_first[gang], topology.gang_first[gang + 1]):
        task = topology.gang_task[place]
        if submitter.state[task] == SUBMISSION_ENDED:
            row = post(out, SUBMIT, ME, submitter.owner[task], task, NOBODY)
            row["reason"] = FINISHED_WELL


@inlined
def on_done(submitter: Submitter, message: np.void, out: Outbox) -> None:
    """Count a task that ended off in its stage; the last one releases the stages that wait for it."""
    task, stages = message["task"], submitter.stages
    if submitter.state[task] != SUBMISSION_OPEN:
        return
    submitter.state[task] = SUBMISSION_ENDED
    if stages.of_task.size == 0:
        return
    stage = stages.of_task[task]
    stages.left[stage] -= 1
    if stages.left[stage] > 0:
        return
    for edge in range(stages.child_first[stage], stages.child_first[stage + 1]):
        child = stages.child[edge]
        stages.waits[child] -= 1
        if stages.waits[child] == 0:
            release(submitter, child, out)


@inlined
def release(submitter: Submitter, stage: int, out: Outbox) -> None:
    """Submit those tasks of a stage that have arrived; the others will be when they arrive."""
    for place in range(submitter.stages.task_first[stage], submitter.stages.task_first[stage + 1]):
        task = submitter.stages.task[place]
        if submitter.state[task] == SUBMISSION_BLOCKED:
            submit(submitter, task, out)


@inlined
def on_rebuild(submitter: Submitter, topology: Topology, message: np.void, out: Outbox) -> None:
    """Hand a restarted global master all of its tasks that have not ended."""
    for gang in range(topology.gang_first.size - 1):
        if submitter.owner[topology.gang_task[topology.gang_first[gang]]] == message["sender"]:
            tell_ended(submitter, topology, gang, out)
    for task in range(submitter.state.size):
        if submitter.state[task] == SUBMISSION_OPEN and submitter.owner[task] == message["sender"]:
            post(out, SUBMIT, ME, message["sender"], task, NOBODY)
