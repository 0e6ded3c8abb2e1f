"""The types of all HTTP requests and answers.

Times are Unix times in seconds. Amounts are whole numbers in fixed units: `cpu` in thousandths of a core, `memory` in
MiB, every other resource in pieces. A job is named by the global master that keeps it and a serial number (`g0-17`), a
task of it by its index behind a dot (`g0-17.3`). Nothing heavy is imported here: the client needs it.
"""
from typing import Annotated, Generic, Literal, TypeVar

from msgspec import Meta, Struct

from subak.live.people.identity import PERSON_PATTERN, Role

T = TypeVar("T")
JOB_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,62}-[0-9]{1,18}$"
TASK_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,62}-[0-9]{1,18}\.[0-9]{1,9}$"
ID_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,62}-[0-9]{1,18}(\.[0-9]{1,9})?$"
MACHINE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$"
VALID_S_MAX = 1e10  # of a token that expires: 317 years
NAME_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"  # of a job, as its file says it
KEY_PATTERN = r"^[!-~]{1,128}$"  # of what a client calls a submission

JobId = Annotated[str, Meta(pattern=JOB_PATTERN, examples=["g0-17"])]
TaskId = Annotated[str, Meta(pattern=TASK_PATTERN, examples=["g0-17.3"])]
JobOrTaskId = Annotated[str, Meta(pattern=ID_PATTERN, examples=["g0-17", "g0-17.3"])]
MachineName = Annotated[str, Meta(pattern=MACHINE_PATTERN, examples=["node-3"])]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Time = Annotated[float, Meta(description="Unix time in seconds.")]
Amounts = Annotated[dict[str, int], Meta(description="By resource; cpu in thousandths of a core, memory in MiB.")]

TASK_BLOCKED, TASK_WAITING, TASK_STARTING, TASK_RUNNING = "blocked", "waiting", "starting", "running"
TASK_BACKOFF, TASK_ENDING, TASK_ENDED = "backoff", "ending", "ended"
TaskState = Literal["blocked", "waiting", "starting", "running", "backoff", "ending", "ended"]
STANDS = {  # how a task stands, behind its id
    TASK_BLOCKED: "waits for other stages", TASK_WAITING: "waits", TASK_STARTING: "is starting",
    TASK_RUNNING: "is running", TASK_BACKOFF: "waits to be tried again", TASK_ENDING: "is ending",
    TASK_ENDED: "has ended"}
JobState = Literal["waiting", "running", "ended"]
FINISHED, FAILED, CANCELLED, TIMED_OUT, LOST = "finished", "failed", "cancelled", "timed out", "lost"
Outcome = Literal["", "finished", "failed", "cancelled", "timed out", "lost"]  # empty while it is open
HAS_FINISHED = "it has finished"  # how a task is explained of which nothing more is to be said
NEVER_FITS = "no machine is large enough"  # how the reason of a job begins that can never run
WAITS_FOR_MACHINES = "waits for machines"  # how the reason of a job begins that all machines are too full for
MachineState = Literal["ready", "joining", "unknown", "lost", "absent"]
Stream = Literal["stdout", "stderr"]
STREAMS = ("stdout", "stderr")
TEST_CONSTRAINT, TEST_RESOURCE, TEST_CORDONED, TEST_UNREACHABLE = "constraint", "resource", "cordoned", "unreachable"
TEST_QUEUE, TEST_STAGE, TEST_GANG, TEST_BACKOFF, TEST_ORDER = "queue", "stage", "gang", "backoff", "order"
TEST_HELD_BACK = "held-back"
Test = Literal["constraint", "resource", "cordoned", "unreachable", "queue", "stage", "gang", "backoff", "order",
               "held-back"]
Code = Literal[
    "invalid", "unauthorized", "forbidden", "not-found", "not-allowed", "refused", "too-large", "limited",
    "unavailable", "not-owner", "internal",
]


class TaskCounts(Struct, frozen=True, kw_only=True):
    """How many tasks are in each state; those that have ended, by outcome."""

    blocked: Count = 0
    waiting: Count = 0
    starting: Count = 0
    running: Count = 0
    backoff: Count = 0
    ending: Count = 0
    finished: Count = 0
    failed: Count = 0
    cancelled: Count = 0
    timed_out: Count = 0
    lost: Count = 0


class StageView(Struct, frozen=True, kw_only=True):
    """Tasks of a job that are alike."""

    name: str
    tasks: Count
    depends_on: tuple[str, ...] = ()
    gang: bool = False
    request: Amounts = {}
    counts: TaskCounts = TaskCounts()


class JobView(Struct, frozen=True, kw_only=True):
    """A job as it stands.

    *version* grows with every change that can be seen here, while the job is open, within one life of its master;
    *outcome* is finished where all tasks finished, else that of the first task that did not.
    """

    id: JobId
    name: str
    queue: str
    state: JobState
    version: Count
    outcome: Outcome = ""
    reason: str = ""  # in words: why it waits, or ended as it did
    warnings: tuple[str, ...] = ()  # of the answer to its submission: what no machine is large enough for
    user: str = ""  # who submitted it
    priority: int = 0
    tasks: Count = 0
    counts: TaskCounts = TaskCounts()
    stages: tuple[StageView, ...] = ()
    labels: dict[str, str] = {}
    submitted: Time = 0.0
    started: Time | None = None  # when its first task began
    ended: Time | None = None


class TaskView(Struct, frozen=True, kw_only=True):
    """A task as it stands; machine, attempt, exit code and signal are those of its last attempt."""

    id: TaskId
    job: JobId
    index: Count
    stage: str
    queue: str
    state: TaskState
    outcome: Outcome = ""
    reason: str = ""  # in words: why it waits, or ended as it did
    machine: str = ""
    attempts: Count = 0  # that began
    exit_code: int | None = None  # None where it did not exit by itself
    signal: str = ""  # that ended it, such as SIGKILL
    preempted: Count = 0  # times
    lost: Count = 0  # times
    submitted: Time = 0.0
    started: Time | None = None
    ended: Time | None = None


class QueueView(Struct, frozen=True, kw_only=True):
    """A node of the tree of queues."""

    path: str  # empty for the root
    weight: float
    guarantee: float  # part of the federation, between 0 and 1, by the weights on its path
    dominant_share: float  # the largest part of any resource that it holds
    limit: float | None = None  # part of the federation that it may hold at most
    owner: str = ""  # name of the global master that keeps its jobs
    used: Amounts = {}
    jobs: Count = 0  # that have not ended
    waiting: Count = 0  # tasks
    running: Count = 0  # tasks


class MachineView(Struct, frozen=True, kw_only=True):
    """A machine: ready, joining (not both local masters know it), unknown (it has yet to report), lost or absent.

    Lost is who was silent for a lease, absent who was taken away.
    """

    name: str
    cluster: str
    state: MachineState
    reason: str = ""  # in words, of any state but ready
    cordoned: bool = False  # nothing new is started there
    draining: bool = False  # and what runs there is moved away
    capacity: Amounts = {}
    used: Amounts = {}
    attributes: dict[str, str] = {}
    tasks: Count = 0  # that run there
    heard: Time | None = None  # when it last gave a sign of life


class MasterView(Struct, frozen=True, kw_only=True):
    """A master of the federation; *address* is where a global master answers people."""

    name: str
    role: Literal["global", "local", "standby"]
    state: Literal["ready", "unknown", "lost"]
    address: str = ""
    cluster: str = ""  # of a local master
    queues: tuple[str, ...] = ()  # of a global master
    epoch: Count = 0
    incarnation: Count = 0
    reason: str = ""


class Free(Struct, frozen=True, kw_only=True):
    """Machines that have the same amounts free."""

    amounts: Amounts
    machines: Count


class FederationView(Struct, frozen=True, kw_only=True):
    """A federation as a whole; *version* is that of its configuration.

    *free*: what machines have left that take tasks, those with the most first; each entry is for all machines that have
    just as much, and there are 64 at most.
    """

    name: str
    version: Count
    master: str  # who says this
    masters: tuple[MasterView, ...] = ()
    clusters: tuple[str, ...] = ()
    machines: Count = 0
    capacity: Amounts = {}
    used: Amounts = {}
    free: tuple[Free, ...] = ()
    free_left_out: Count = 0  # machines that are in none of those entries


class Health(Struct, frozen=True, kw_only=True):
    """Whether a master serves; all that is said without a token."""

    state: Literal["ready", "starting", "refusing"]  # refusing: it takes no jobs now, such as when its disk is full
    words: str = ""
    held_ms: float = 0.0  # the longest that its event loop was held in the last minute or two


class Shortage(Struct, frozen=True, kw_only=True):
    """One reason for which a task waits: *machines* of the *of* machines of a cluster fail one test.

    Tests that are not of machines (queue, stage, gang, backoff, order) have no cluster and count none.
    """

    test: Test
    words: str
    cluster: str = ""
    what: str = ""  # the constraint, or the resource
    machines: Count = 0
    of: Count = 0


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a task stands as it stands; of one that was preempted, by whom and why."""

    task: TaskId
    state: TaskState
    words: str
    shortages: tuple[Shortage, ...] = ()
    preempted_by: str = ""  # the last time: the queue or person
    preempted_why: str = ""


class Event(Struct, frozen=True, kw_only=True):
    """Something that happened to a job or a task; numbers grow within a job."""

    number: Count
    at: Time
    id: JobOrTaskId
    what: str
    why: str = ""
    machine: str = ""
    attempt: Count = 0  # the how manieth of the task, from 1 on; 0 where none has begun


class LogChunk(Struct, frozen=True, kw_only=True):
    """Part of what an attempt of a task has written: bytes *offset* .. *next* - 1 of a stream.

    *offset* is later than was asked for where older output was removed to keep its limit of size. Who goes on with the
    same attempt at *next* gets what the later attempts have written, too, one after the other.
    """

    data: bytes
    attempt: Count  # the how manieth of the task, from 1 on; 0 where none has begun
    offset: Count
    next: Count
    is_end: bool  # the task has ended, and this is all


class NewPerson(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token that is asked for, and what its holder may do."""

    name: Annotated[str, Meta(pattern=PERSON_PATTERN, examples=["ada"])]
    role: Role
    queues: tuple[Annotated[str, Meta(max_length=1024)], ...] = ()  # to which it may submit, each with all below it
    all_jobs: bool = False  # whether it may change and read all jobs of these, not only its own
    on_host: bool = False  # no token: it is the user of this name on a master's host
    valid_s: Annotated[float, Meta(ge=0, le=VALID_S_MAX)] = 0.0  # until it expires; 0: never


class TokenView(Struct, frozen=True, kw_only=True):
    """A token, by its id, and who holds it."""

    id: str
    name: str
    role: Role
    queues: tuple[str, ...] = ()
    all_jobs: bool = False
    on_host: bool = False  # it has no token, and is a user of a master's host
    state: Literal["valid", "expired", "revoked"] = "valid"
    made: Time | None = None
    made_by: str = ""
    expires: Time | None = None  # None: never
    revoked: Time | None = None


class MadeToken(Struct, frozen=True, kw_only=True):
    """A token that was just made: it is shown here, and never again; empty of a user of a master's host."""

    token: str
    holder: TokenView


class AuditEntry(Struct, frozen=True, kw_only=True):
    """A change that somebody asked for, and how that ended."""

    at: Time
    request: str
    who: str
    role: Role
    token: str  # its id
    origin: str  # the address, or the user of the master's host, from where it came
    what: str  # method and path
    object: str = ""  # the job, task, machine, person or token that it was about
    code: Count = 0  # of the HTTP answer; 0: none, since the master ended, or the connection


class Change(Struct, frozen=True, kw_only=True):
    """One thing that a new configuration would change; texts are empty where there was, or will be, nothing."""

    kind: Literal["add", "change", "remove"]
    what: str  # such as "queue research/ada: weight"
    before: str = ""
    after: str = ""


class Plan(Struct, frozen=True, kw_only=True):
    """What a configuration changes, against configuration *version*; warnings say what that will do to what runs."""

    version: Count
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    applied: bool = False


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    """Part of a list, in the order of the list; with a cursor there is more, and it is asked for with the cursor."""

    items: tuple[T, ...]
    cursor: str = ""


class Problem(Struct, frozen=True, kw_only=True):
    """Why a request was not carried out."""

    code: Code
    words: str
    field: str = ""  # which part of the request is wrong
    owner: str = ""  # with not-owner: the address that keeps it
    details: tuple[str, ...] = ()  # where several things are wrong: all, a line each
