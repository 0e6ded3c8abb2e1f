"""Shows jobs and tasks from the rows of a job, open or ended."""
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

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
    SUBMISSION_NEW,
    SUBMISSION_OPEN,
    SUBMISSION_WITHDRAWN,
    SUBMISSIONS,
)
from subak.federation.messages import DRAINED, NOBODY, PREEMPTED, PREEMPTED_BY_OPERATOR, REASONS
from subak.live.agent.attempts.codes import code_words, signal_of
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
from subak.live.jobfile.spec import JobSpec, Stage
from subak.live.role.global_master.book import Book, Job, StoredJob
from subak.live.role.global_master.history import BEGAN, OUTCOME_WORDS, Happening
from subak.live.role.global_master.queues import QueuesFact

OF_PHASE = {PHASE_FLYING: TASK_STARTING, PHASE_HELD: TASK_STARTING, PHASE_RUNNING: TASK_RUNNING,
            PHASE_LEAVING: TASK_ENDING}
OF_STATE = {SUBMISSION_NEW: TASK_WAITING, SUBMISSION_BACKOFF: TASK_BACKOFF, SUBMISSION_WITHDRAWN: TASK_ENDING,
            SUBMISSION_ENDED: TASK_ENDED}
STATES = (TASK_BLOCKED, TASK_WAITING, TASK_STARTING, TASK_RUNNING, TASK_BACKOFF, TASK_ENDING, TASK_ENDED)
CODE = {word: code for code, word in enumerate(STATES)}
CODES_OF_PHASES = np.array([CODE[OF_PHASE.get(phase, TASK_WAITING)] for phase in range(len(PHASES))], np.int8)
CODES_OF_STATES = np.array([CODE[OF_STATE.get(state, TASK_BLOCKED)] for state in range(len(SUBMISSIONS))], np.int8)
PART = 20_000  # tasks that are looked at in one go


@dataclass(eq=False)
class Part:
    """Some tasks of a job that follow each other, as they are shown."""

    first: int  # index of the first
    rows: np.ndarray  # ON_DISK[place]
    codes: np.ndarray  # int8[place], of STATES
    reasons: np.ndarray  # int[place]: why it waits, or ended

    def ended_as(self, outcome: str) -> np.ndarray:
        """Return which have ended with an outcome, bool[place]."""
        codes = [code for code, word in enumerate(OUTCOME_WORDS) if word == outcome]
        found: np.ndarray = (self.codes == CODE[TASK_ENDED]) & np.isin(self.rows["outcome"], codes)
        return found


@dataclass(eq=False)
class Known:
    """A job as it is shown: *look* returns the part of its tasks from an index on, up to another."""

    id: str
    stored: StoredJob
    spec: JobSpec
    tasks: int
    version: int
    events: list[Happening]
    look: Callable[[int, int], Part]
    job: Job | None = None  # of which *look* speaks while it is open

    def parts(self, first: int = 0) -> Iterator[Part]:
        """Yield all tasks from an index on, PART of them at most at a time."""
        for begin in range(first, self.tasks, PART):
            yield self.look(begin, min(begin + PART, self.tasks))

    def at(self, index: int) -> "Known":
        """Return the job with one task as it stands: its place may be another's by the time that it is looked at."""
        part = self.look(index, index + 1)
        return replace(self, look=lambda first, end: part)

    def row(self, index: int) -> np.void:
        """Return the row of a task."""
        row: np.void = self.look(index, index + 1).rows[0]
        return row

    def state(self, index: int) -> str:
        """Return the state of a task, in the words of the models."""
        return STATES[self.look(index, index + 1).codes[0]]

    def attempt_of(self, index: int, nth: int) -> tuple[int, int] | None:
        """Return the machine and the number of a task's attempt, None for one that is not remembered."""
        row = self.row(index)
        if nth == row["attempts"]:
            return int(row["machine"]), int(row["attempt"])
        return next(((each.machine, each.attempt) for each in self.events
                     if (each.task, each.what, each.nth) == (index, BEGAN, nth)), None)

    def stage_of(self, index: int) -> Stage:
        """Return the stage of a task."""
        for stage in self.spec.stages:
            if index < stage.tasks:
                return stage
            index -= stage.tasks
        raise IndexError(index)


def open_job(id_: str, job: Job, book: Book, master: GlobalMaster) -> Known:
    """Return a job that is open."""
    def look(first: int, end: int) -> Part:
        rows = book.look(job, first, end)
        mine = master.task[np.maximum(rows["row"], 0)]
        is_open = rows["state"] == SUBMISSION_OPEN
        is_about = (rows["row"] != NOBODY) & (mine["tenant"] == rows["number"] + 1)
        placed = np.where(is_about, CODES_OF_PHASES[mine["phase"]], CODE[TASK_WAITING])
        codes = np.where(is_open, placed, CODES_OF_STATES[rows["state"]])
        why = np.where(is_about & (placed == CODE[TASK_WAITING]), mine["reason"], 0)
        return Part(first, rows, codes, np.where(is_open, why, rows["reason"]))

    return Known(id_, job.stored, job.spec, job.admitted.tasks, job.version, job.history.events, look, job)


def ended_job(id_: str, stored: StoredJob, spec: JobSpec, rows: np.ndarray, events: list[Happening]) -> Known:
    """Return a job that has ended."""
    def look(first: int, end: int) -> Part:
        part = rows[first:end]
        return Part(first, part, np.full(part.size, CODE[TASK_ENDED], np.int8), part["reason"])

    return Known(id_, stored, spec, rows.size, len(events) + 1, events, look)


def words_of(known: Known, index: int) -> str:
    """Return why a task waits, or ended as it did."""
    part = known.look(index, index + 1)
    row, has_ended = part.rows[0], part.codes[0] == CODE[TASK_ENDED]
    outcome = OUTCOME_WORDS[int(row["outcome"])]
    if has_ended and outcome == FINISHED:
        return ""
    words = REASONS[int(part.reasons[0])]
    if has_ended and outcome == FAILED and row["code"]:
        words += f" with {code_words(int(row['code']))}"
    return words


class Tally:
    """What is said of a job as a whole, counted part by part."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.ends = np.cumsum([stage.tasks for stage in known.spec.stages])
        self.counts = np.zeros((len(known.spec.stages), len(STATES) + len(OUTCOME_WORDS)), np.int64)
        self.begun, self.ended = np.inf, 0.0
        self.wrong = NOBODY  # index of the first that did not finish

    def add(self, part: Part) -> None:
        """Count some more tasks."""
        rows, outcome = part.rows, part.rows["outcome"]
        words = np.where(part.codes == CODE[TASK_ENDED], len(STATES) + outcome, part.codes)
        stage = np.searchsorted(self.ends, np.arange(part.first, part.first + rows.size), side="right")
        width = self.counts.shape[1]
        self.counts += np.bincount(stage * width + words, minlength=self.counts.size).reshape(self.counts.shape)
        self.begun = float(rows["started"][rows["attempts"] > 0].min(initial=self.begun))
        self.ended = float(rows["ended"].max(initial=self.ended))
        wrong = np.flatnonzero(outcome > 1)
        if self.wrong == NOBODY and wrong.size:
            self.wrong = part.first + int(wrong[0])

    def view(self) -> JobView:
        """Return the job as people see it."""
        known, spec = self.known, self.known.spec
        stages = tuple(StageView(name=stage.name, tasks=stage.tasks, depends_on=stage.depends_on, gang=stage.gang,
                                 request=stage.resources, counts=counts_of(counts))
                       for stage, counts in zip(spec.stages, self.counts, strict=True))
        total = self.counts.sum(axis=0)
        is_over, is_wrong = int(total[len(STATES):].sum()) == known.tasks, self.wrong != NOBODY
        outcome = OUTCOME_WORDS[int(known.row(self.wrong)["outcome"])] if is_wrong else FINISHED
        return JobView(
            id=known.id, name=spec.metadata.name, queue=spec.queue,
            state="ended" if is_over else "running" if np.isfinite(self.begun) else "waiting", version=known.version,
            outcome=outcome if is_over else "",  # type: ignore[arg-type]
            reason=words_of(known, self.wrong) if is_wrong and is_over else "", user=known.stored.submitter,
            priority=spec.stages[0].priority, tasks=known.tasks, counts=counts_of(total), stages=stages,
            labels=spec.metadata.labels, submitted=known.stored.submitted,
            started=self.begun if np.isfinite(self.begun) else None, ended=self.ended if is_over else None)


def counts_of(counts: np.ndarray) -> TaskCounts:
    """Return how many tasks are in each state, int64[state and outcome]."""
    words = (*STATES, "finished", *(word.replace(" ", "_") for word in OUTCOME_WORDS[1:]))
    found: dict[str, int] = {}
    for word, count in zip(words, counts.tolist(), strict=True):
        if count:
            found[word] = found.get(word, 0) + count
    return TaskCounts(**found)


def _exit_code(row: np.void) -> int | None:
    """Return the exit code of a task's last attempt; None where a signal ended it, or nobody knows what did."""
    code = int(row["code"])
    return code if code > 0 or (code == 0 and OUTCOME_WORDS[int(row["outcome"])] == FINISHED) else None


def task_view(known: Known, index: int, machines: Mapping[int, str]) -> TaskView:
    """Return a task as people see it; *machines*: their names."""
    row, stage, state = known.row(index), known.stage_of(index), known.state(index)
    is_over, has_begun = state == TASK_ENDED, bool(row["attempts"])
    return TaskView(
        id=f"{known.id}.{index}", job=known.id, index=index, stage=stage.name, queue=known.spec.queue,
        state=state,  # type: ignore[arg-type]
        outcome=OUTCOME_WORDS[int(row["outcome"])] if is_over else "",  # type: ignore[arg-type]
        reason=words_of(known, index), machine=machines.get(int(row["machine"]), "") if has_begun else "",
        attempts=int(row["attempts"]), exit_code=_exit_code(row) if is_over and has_begun else None,
        signal=signal_of(int(row["code"])) if is_over and has_begun else "",
        preempted=int(row["preempted"]), lost=int(row["lost"]), submitted=known.stored.submitted,
        started=float(row["started"]) if has_begun else None, ended=float(row["ended"]) if is_over else None)


BY_OPERATOR = {REASONS[DRAINED]: "its machine is drained", REASONS[PREEMPTED_BY_OPERATOR]: "on request"}
PREEMPTIONS = (REASONS[PREEMPTED], *BY_OPERATOR)


def preempted_by(happened: Happening, queues: QueuesFact) -> tuple[str, str]:
    """Return for which queue an attempt was preempted, or by whom, and why."""
    if happened.why in BY_OPERATOR:
        return "an operator", BY_OPERATOR[happened.why]
    if happened.heir == NOBODY:
        return "a queue that no longer waits", "it was below its share"
    return queues.queues[happened.heir].path or "a queue that was removed", "that queue was below its share"


def event_view(known: Known, number: int, machines: Mapping[int, str], queues: QueuesFact) -> Event:
    """Return something that happened, as people see it."""
    happened = known.events[number]
    why = happened.why
    if why == REASONS[PREEMPTED]:
        why = f"preempted for {': '.join(preempted_by(happened, queues))}"
    return Event(number=number, at=happened.clock, id=f"{known.id}.{happened.task}", what=happened.what,
                 why=why, machine=machines.get(happened.machine, ""), attempt=happened.nth)
