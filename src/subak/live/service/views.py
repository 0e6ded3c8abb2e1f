"""How jobs and tasks of a global master look to people: made from the rows of a job, open or ended."""
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import json, msgpack

from subak.federation.megha.global_master.state import (
    PHASE_FLYING,
    PHASE_HELD,
    PHASE_LEAVING,
    PHASE_RUNNING,
    PHASES,
    GlobalMaster,
)
from subak.federation.megha.jobs import (
    SUBMISSION_BACKOFF,
    SUBMISSION_ENDED,
    SUBMISSION_OPEN,
    SUBMISSION_WITHDRAWN,
    SUBMISSIONS,
)
from subak.federation.messages import DRAINED, NOBODY, PREEMPTED, PREEMPTED_BY_OPERATOR, REASONS
from subak.live.api.models import (
    FAILED,
    FINISHED,
    TASK_BACKOFF,
    TASK_BLOCKED,
    TASK_ENDED,
    TASK_ENDING,
    TASK_RUNNING,
    TASK_STARTING,
    TASK_WAITING,
    Event,
    JobView,
    StageView,
    TaskCounts,
    TaskView,
)
from subak.live.executor.codes import code_words, signal_of
from subak.live.jobfile.spec import JobSpec
from subak.live.node.global_master.book import BEGAN, OUTCOME_WORDS, Happening, Job, StoredJob
from subak.live.node.global_master.queues import QueuesFact
from subak.live.node.global_master.rows import ended_rows

OF_PHASE = {PHASE_FLYING: TASK_STARTING, PHASE_HELD: TASK_STARTING, PHASE_RUNNING: TASK_RUNNING,
            PHASE_LEAVING: TASK_ENDING}
OF_STATE = {SUBMISSION_BACKOFF: TASK_BACKOFF, SUBMISSION_WITHDRAWN: TASK_ENDING, SUBMISSION_ENDED: TASK_ENDED}
WORDS_OF_PHASES = np.array([OF_PHASE.get(phase, TASK_WAITING) for phase in range(len(PHASES))], object)
WORDS_OF_STATES = np.array([OF_STATE.get(state, TASK_BLOCKED) for state in range(len(SUBMISSIONS))], object)


@dataclass(eq=False)
class Known:
    """A job as it is shown: its rows, and the words for their states."""

    id: str
    stored: StoredJob
    spec: JobSpec
    rows: np.ndarray  # ON_DISK[task]
    states: list[str]  # of each task, in the words of the models
    reasons: list[int]  # why it waits, or ended
    version: int
    events: list[Happening]

    @property
    def is_over(self) -> bool:
        """Whether all of its tasks have ended."""
        return all(state == TASK_ENDED for state in self.states)

    def attempt_of(self, index: int, nth: int) -> tuple[int, int] | None:
        """Return the machine and the number of a task's attempt, None for one that is not remembered."""
        row = self.rows[index]
        if nth == row["attempts"]:
            return int(row["machine"]), int(row["attempt"])
        return next(((each.machine, each.attempt) for each in self.events
                     if (each.task, each.what, each.nth) == (index, BEGAN, nth)), None)

    def stage_of(self, index: int) -> Any:
        """Return the stage of a task."""
        for stage in self.spec.stages:
            if index < stage.tasks:
                return stage
            index -= stage.tasks
        raise IndexError(index)


def open_job(id_: str, job: Job, rows: np.ndarray, master: GlobalMaster) -> Known:
    """Return a job that is open."""
    mine = master.task[np.maximum(rows["row"], 0)]
    is_open = rows["state"] == SUBMISSION_OPEN
    is_about = (rows["row"] != NOBODY) & (mine["tenant"] == rows["number"] + 1)
    placed = np.where(is_about, WORDS_OF_PHASES[mine["phase"]], TASK_WAITING)
    states = np.where(is_open, placed, WORDS_OF_STATES[rows["state"]])
    why = np.where(is_about & (placed == TASK_WAITING), mine["reason"], 0)
    reasons = np.where(is_open, why, rows["reason"])
    return Known(id_, job.stored, job.spec, rows, states.tolist(), reasons.tolist(), job.version, job.events)


def ended_job(id_: str, stored: StoredJob, spec: JobSpec, rows: np.ndarray, events: list[Happening]) -> Known:
    """Return a job that has ended."""
    return Known(id_, stored, spec, rows, [TASK_ENDED] * len(rows), rows["reason"].tolist(), len(events) + 1, events)


def job_on_disk(id_: str, body: bytes) -> Known:
    """Return a job that has ended, as it is on disk."""
    stored, data, events = msgpack.decode(body, type=tuple[StoredJob, bytes, list[Happening]])
    spec = json.decode(stored.spec, type=JobSpec)
    return ended_job(id_, stored, spec, ended_rows(data, spec.task_count), events)


def counts_of(states: list[str], outcomes: list[int]) -> TaskCounts:
    """Return how many tasks are in each state."""
    found: dict[str, int] = {}
    for state, outcome in zip(states, outcomes, strict=True):
        word = OUTCOME_WORDS[outcome].replace(" ", "_") if state == TASK_ENDED else state
        found[word or "finished"] = found.get(word or "finished", 0) + 1
    return TaskCounts(**found)


def words_of(known: Known, index: int) -> str:
    """Return why a task waits, or ended as it did."""
    row, reason = known.rows[index], known.reasons[index]
    if known.states[index] == TASK_ENDED and OUTCOME_WORDS[int(row["outcome"])] == FINISHED:
        return ""
    words = REASONS[reason]
    if known.states[index] == TASK_ENDED and OUTCOME_WORDS[int(row["outcome"])] == FAILED and row["code"]:
        words += f" with {code_words(int(row['code']))}"
    return words


def job_view(known: Known) -> JobView:
    """Return a job as people see it."""
    outcomes = known.rows["outcome"].tolist()
    begun = known.rows["started"][known.rows["attempts"] > 0]
    wrong = [number for number, outcome in enumerate(outcomes) if outcome > 1]
    stages, first = [], 0
    for stage in known.spec.stages:
        part = slice(first, first + stage.tasks)
        stages.append(StageView(
            name=stage.name, tasks=stage.tasks, depends_on=stage.depends_on, gang=stage.gang, request=stage.resources,
            counts=counts_of(known.states[part], outcomes[part])))
        first += stage.tasks
    is_over = known.is_over
    outcome = "" if not is_over else OUTCOME_WORDS[outcomes[wrong[0]]] if wrong else FINISHED
    return JobView(
        id=known.id, name=known.spec.metadata.name, queue=known.spec.queue,
        state="ended" if is_over else "running" if begun.size else "waiting", version=known.version,
        outcome=outcome, reason=words_of(known, wrong[0]) if wrong and is_over else "",  # type: ignore[arg-type]
        priority=known.spec.stages[0].priority, tasks=len(known.states), counts=counts_of(known.states, outcomes),
        stages=tuple(stages), labels=known.spec.metadata.labels, submitted=known.stored.submitted,
        started=float(begun.min()) if begun.size else None,
        ended=float(known.rows["ended"].max()) if is_over else None)


def _exit_code(row: np.void) -> int | None:
    """Return the exit code of a task's last attempt; None where a signal ended it, or nobody knows what did."""
    code = int(row["code"])
    return code if code > 0 or (code == 0 and OUTCOME_WORDS[int(row["outcome"])] == FINISHED) else None


def task_view(known: Known, index: int, machines: Mapping[int, str]) -> TaskView:
    """Return a task as people see it; *machines*: their names."""
    row, stage = known.rows[index], known.stage_of(index)
    is_over, has_begun = known.states[index] == TASK_ENDED, bool(row["attempts"])
    return TaskView(
        id=f"{known.id}.{index}", job=known.id, index=index, stage=stage.name, queue=known.spec.queue,
        state=known.states[index],  # type: ignore[arg-type]
        outcome=OUTCOME_WORDS[int(row["outcome"])] if is_over else "",  # type: ignore[arg-type]
        reason=words_of(known, index), machine=machines.get(int(row["machine"]), "") if has_begun else "",
        attempts=int(row["attempts"]), exit_code=_exit_code(row) if is_over and has_begun else None,
        signal=signal_of(int(row["code"])) if is_over and has_begun else "",
        preempted=int(row["preempted"]), lost=int(row["lost"]), submitted=known.stored.submitted,
        started=float(row["started"]) if has_begun else None, ended=float(row["ended"]) if is_over else None)


BY_OPERATOR = {REASONS[DRAINED]: "its machine is drained", REASONS[PREEMPTED_BY_OPERATOR]: "that was asked for"}
PREEMPTIONS = (REASONS[PREEMPTED], *BY_OPERATOR)


def preempted_by(happened: Happening, queues: QueuesFact) -> tuple[str, str]:
    """Return for which queue an attempt was preempted, or by whom, and why."""
    if happened.why in BY_OPERATOR:
        return "an operator", BY_OPERATOR[happened.why]
    if happened.heir == NOBODY:
        return "an operator, or a queue that has given up since", "that was asked for"
    return queues.queues[happened.heir].path or "a queue that was removed", "that queue was below its share"


def event_view(known: Known, number: int, machines: Mapping[int, str], queues: QueuesFact) -> Event:
    """Return something that happened, as people see it."""
    happened = known.events[number]
    why = happened.why
    if why == REASONS[PREEMPTED]:
        why = f"preempted for {': '.join(preempted_by(happened, queues))}"
    return Event(number=number, at=happened.clock, id=f"{known.id}.{happened.task}", what=happened.what,
                 why=why, machine=machines.get(happened.machine, ""), attempt=happened.nth)
