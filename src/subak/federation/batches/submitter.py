"""The submitter of sampling schedulers: hands each whole batch to the scheduler of its job.

Rules: a batch is submitted once, when all of its tasks have arrived and no stage that it waits for is open. The network
is taken to lose nothing: the papers' schedulers have no answer to a lost message either.

  message | the batch                 | then
  ARRIVE  | has tasks to come         | the task is counted
  ARRIVE  | is complete               | READY for each task and SUBMIT, unless its stage waits
  DONE    | (any)                     | the last of a stage releases the stages that wait for it

Source: Sparrow section 3.1 (a job is submitted whole, to any scheduler).
"""
from typing import NamedTuple

import numpy as np

from subak.federation.batches.table import Batches
from subak.federation.messages import NOBODY, READY, SUBMIT, Outbox, post
from subak.marks import inlined
from subak.workload.tasks import Stages

ME = 0  # there is one submitter


class BatchSubmitter(NamedTuple):
    """What those who submit know of their tasks."""

    missing: np.ndarray  # int32[batch], tasks that have not arrived
    is_ended: np.ndarray  # bool[task]
    stages: Stages


def build_batch_submitter(batches: Batches, stages: Stages) -> BatchSubmitter:
    """Return the submitter before anything has arrived; *stages* are its own."""
    return BatchSubmitter(
        np.diff(batches.first).astype(np.int32), np.zeros(batches.of_task.size, bool),
        Stages(*(array.copy() for array in stages)),
    )


@inlined
def on_batch_arrive(submitter: BatchSubmitter, batches: Batches, message: np.void, out: Outbox) -> None:
    """Count a task that arrived; the last of its batch lets it go, unless its stage waits for others."""
    task, stages = message["task"], submitter.stages
    batch = batches.of_task[task]
    submitter.missing[batch] -= 1
    waits = stages.of_task.size > 0 and stages.waits[stages.of_task[task]] > 0
    if submitter.missing[batch] == 0 and not waits:
        submit_batch(batches, batch, out)


@inlined
def submit_batch(batches: Batches, batch: int, out: Outbox) -> None:
    """Hand a batch to its scheduler."""
    for place in range(batches.first[batch], batches.first[batch + 1]):
        post(out, READY, ME, ME, batches.task[place], NOBODY)
    row = post(out, SUBMIT, ME, batches.scheduler[batch], NOBODY, NOBODY)
    row["batch"] = batch
    row["count"] = batches.first[batch + 1] - batches.first[batch]


@inlined
def on_batch_done(submitter: BatchSubmitter, batches: Batches, message: np.void, out: Outbox) -> None:
    """Count a task that ended off in its stage; the last one releases the stages that wait for it."""
    task, stages = message["task"], submitter.stages
    if stages.of_task.size == 0 or submitter.is_ended[task]:
        return
    submitter.is_ended[task] = True
    stage = stages.of_task[task]
    stages.left[stage] -= 1
    if stages.left[stage] > 0:
        return
    for edge in range(stages.child_first[stage], stages.child_first[stage + 1]):
        child = stages.child[edge]
        stages.waits[child] -= 1
        if stages.waits[child] == 0:
            release_batches(submitter, batches, child, out)


@inlined
def release_batches(submitter: BatchSubmitter, batches: Batches, stage: int, out: Outbox) -> None:
    """Submit those batches of a stage that have arrived; the others will be when they arrive."""
    stages = submitter.stages
    for place in range(stages.task_first[stage], stages.task_first[stage + 1]):
        task = stages.task[place]
        batch = batches.of_task[task]
        if batches.task[batches.first[batch]] == task and submitter.missing[batch] == 0:
            submit_batch(batches, batch, out)
