"""A checked, normalised job: every stage has all settings, amounts are integers.

Stages are in an order in which each comes after those that it depends on. Amounts are in the units of the live side:
``cpu`` in thousandths of a core, ``memory`` in MiB (rounded up), any other resource in whole pieces. All of it survives
``msgspec.json``; where there is no limit the value is None.
"""
from msgspec import Struct, field

API_VERSION, KIND = "subak/v1", "Job"
CPU, MEMORY = "cpu", "memory"  # the resources that are not counted in pieces
TASKS = "tasks"  # the resource that counts tasks: each has one, and nothing says so
RESOURCES = {CPU: 1000}  # of a task that says nothing of them
# As in the core, whose own are beside NumPy: tests/live/test_jobfile.py holds them together.
AMOUNT_MAX = 2**31 - 1
OPERATORS = ("=", "!=", "<", ">", "<=", ">=")
STAGES_MAX = 1000
ALL_TASKS_MAX = 1_000_000  # of a job
LOSSES_MAX = 2**15 - 1  # the core's int16
INTERPRETERS = {  # of scripts without #!, by their suffix
    ".py": "python3", ".sh": "sh", ".bash": "bash", ".R": "Rscript", ".jl": "julia", ".pl": "perl"}
QUEUE, STAGE = "default", "main"  # of a job that names none


class Metadata(Struct, frozen=True, forbid_unknown_fields=True):
    """What a job is called, and what its owner notes of it; labels are to be selected by, annotations only kept."""

    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Constraint(Struct, frozen=True, forbid_unknown_fields=True):
    """A predicate on an attribute of the machine, with the meaning of `subak.workload.constraints.Constraint`."""

    attribute: str
    operator: str
    value: str = ""  # with = and !=, empty: the attribute is absent, is present


class Stage(Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks that are alike; seconds and amounts as the head of the file says."""

    name: str
    command: tuple[str, ...]  # with its arguments; never through a shell
    tasks: int = 1
    gang: bool = False  # whether its tasks start together; then it is never tried again
    depends_on: tuple[str, ...] = ()  # names of stages that finish first, each of which is earlier in the job
    priority: int = 0  # larger is more important
    env: dict[str, str] = {}
    workdir: str = "/"
    resources: dict[str, int] = field(default_factory=lambda: dict(RESOURCES))  # of each task, in units
    constraints: tuple[Constraint, ...] = ()  # all must hold
    retries: int = 0  # how often a task is tried again after an attempt that failed or ran too long
    backoff_s: float = 0.0  # before it is tried again; twice as long each time
    losses_max: int = LOSSES_MAX  # attempts that may be lost with their machines before the task is
    wait_limit_s: float | None = None  # how long a task may wait
    time_limit_s: float | None = None  # how long an attempt may run
    grace_s: float = 10.0  # between SIGTERM and SIGKILL
    user: str | None = None  # as whom it runs, a name or number; None: as the agent
    umask: int = 0o022
    cpu_limited: bool = False  # whether it may not use more cpu than it asks for


class JobSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A job that can be submitted."""

    metadata: Metadata
    queue: str  # a path such as org/department/user
    stages: tuple[Stage, ...]

    @property
    def task_count(self) -> int:
        """Tasks of all stages."""
        return sum(stage.tasks for stage in self.stages)

    def earlier_stages(self) -> tuple[tuple[int, ...], ...]:
        """Return for each stage the places of those that it depends on, all of which are before its own."""
        place = {stage.name: number for number, stage in enumerate(self.stages)}
        return tuple(tuple(sorted(place[name] for name in stage.depends_on)) for stage in self.stages)
