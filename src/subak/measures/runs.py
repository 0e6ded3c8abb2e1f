"""A run as the report reads it: its summary, and tables that are opened when a chart needs them."""
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from subak.measures.intervals import TraceDays
from subak.resources import Resource
from subak.tables import scan_table
from subak.workload.days import ITSELF, drawn_by


class WorkloadFacts(msgspec.Struct, frozen=True):
    """What was scheduled, and on which terms it may be shown."""

    name: str = "unnamed"
    origin: str = "not stated"
    licence: str = "not stated"
    tasks: int = 0
    jobs: int = 0
    time_0: str = ""  # what the trace's calendar says at time 0, and whose it is; empty where it has none


class RedrawnFacts(msgspec.Struct, frozen=True):
    """Of what a trace was drawn anew, where seeds draw its days."""

    days: int
    length: float  # of one, in seconds: of a trace of fewer than five days they are its eighths
    freedom: int  # days less their classes
    sessions: float  # of users, that weigh as much as if all were alike


class FleetFacts(msgspec.Struct, frozen=True):
    """What it was scheduled on."""

    name: str = "unnamed"
    machines: int = 0


class WindowFacts(msgspec.Struct, frozen=True):
    """The part of a run that is measured, in seconds: tasks that arrive in it, and means over time within it."""

    begin: float = 0.0
    end: float = float("inf")
    why: str = ""  # where it comes from, in words
    tasks: int = 0
    left_out: int = 0  # tasks that arrive before or after it


class Reason(msgspec.Struct, frozen=True):
    """Why a number of tasks did not start, or were not placed."""

    status: str
    reason: str | None
    tasks: int


class Spread(msgspec.Struct, frozen=True):
    """A distribution in seven numbers; each is None when no task started."""

    mean: float | None = None
    median: float | None = None
    p90: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None
    p95: float | None = None  # None in runs of versions before


class JobFacts(msgspec.Struct, frozen=True):
    """Jobs as a whole; the distributions are of those all of whose tasks finished."""

    jobs: int = 0
    completed: int = 0
    wait: Spread = Spread()  # seconds from the job's arrival to its first task's start, of those that started
    completion: Spread = Spread()  # seconds from the job's arrival to its last task's finish
    slowdown: Spread = Spread()  # that over what it takes where nothing waits


class ObjectiveFacts(msgspec.Struct, frozen=True):
    """Whether a run keeps an objective; the value is None where it is endless, since tasks never started or ended."""

    text: str
    value: float | None
    met: bool
    tasks: int


class Waiting(msgspec.Struct, frozen=True):
    """The number of waiting tasks: its mean over time and its largest value."""

    mean: float | None = None
    max: float | None = None


class Speed(msgspec.Struct, frozen=True):
    """How fast the simulation itself was."""

    tasks_per_second: float | None = None
    events: int | None = None
    seconds: float | None = None
    peak_memory_bytes: float | None = None
    decisions_per_second: float | msgspec.UnsetType = msgspec.UNSET  # of a policy that was called as plain Python


class RoleFacts(msgspec.Struct, frozen=True):
    """How busy the roles of one kind were."""

    roles: int = 0
    busy: float | None = None  # share of the run in service, the mean over the roles
    busy_max: float | None = None  # of the busiest one
    inbox_wait: float | None = None  # seconds that a message waited for its receiver, the mean


class QueueFacts(msgspec.Struct, frozen=True):
    """What a queue held, as its largest share of any resource of the machines that were there."""

    queue: str
    share: float | None = None  # that it is entitled to; None where no fairness is asked for
    used: float | None = None  # the mean over the run, without attempts that were lost
    used_at_end: float | None = None
    tasks: int = 0
    waiting_at_end: int = 0


class WaitedFacts(msgspec.Struct, frozen=True):
    """Of which tasks the wait times are, beside those that arrive in the window and start."""

    tasks: int = 0  # that count, without those that never can start
    before: int = 0  # of them, that arrived before the window and waited as it began
    still: int = 0  # that never started
    through: int = 0  # that waited from the window's begin to its end


class FederationFacts(msgspec.Struct, frozen=True):
    """What is only known of a federation."""

    settings: dict[str, Any] = {}  # those that the scheduler supports
    service: dict[str, float] = {}  # seconds that each kind of message cost its receiver
    allocation: Spread = Spread()  # seconds from ready to the last start
    parts: dict[str, Spread] = {}  # of it: framework queueing, processing, worker queueing, communication
    messages: dict[str, int] = {}  # handled, by kind
    lost: int = 0  # messages that were lost
    doubled: int = 0  # messages that came twice
    counts: dict[str, int] = {}  # requests, refusals, preemptions and such, where the architecture has them
    roles: dict[str, RoleFacts] = {}  # by kind of role: how busy they were, how long messages waited for them
    queues: tuple[QueueFacts, ...] = ()  # what queues held, those of most use first
    queues_left_out: int = 0  # queues beyond those


class LevelFacts(msgspec.Struct, frozen=True):
    """How fair a run was among the queues of one level of the tree."""

    level: int
    queues: int = 0
    jain: float | None = None  # Jain's index of the siblings that demand; None where never two did
    shortfall: float = 0.0  # share-seconds below the guarantee while tasks waited, over all its queues
    short: int = 0  # queues that ever were
    starved_longest: float = 0.0  # seconds in which tasks of a queue waited and it held nothing


class FairnessFacts(msgspec.Struct, frozen=True):
    """How fair a run was to the queues of its tree; all but `levels` is over those without queues below them."""

    levels: tuple[LevelFacts, ...] = ()  # from the top: queues, Jain's index, shortfall, short, starved_longest
    queues: int = 0  # how many there are
    short: int = 0  # how many ever held less than guaranteed while tasks of them waited
    shortfall: float = 0.0  # share-seconds by which they did
    shortfall_mean: float | None = None  # the same over `demanding`: share that a waiting queue lacked, in the mean
    demanding: float = 0.0  # queue-seconds in which tasks waited
    starved_longest: float = 0.0  # seconds, the longest in which tasks of a queue waited and it held nothing


class PlanFacts(msgspec.Struct, frozen=True):
    """What a plan promised (LoTES); rates are in jobs a second, of the mix it was made for."""

    classes: int = 0
    configurations: int = 0
    bins: int = 0  # that machines emulate
    rate_pooled: float = 0.0  # lambda* of the allocation LP
    rate: float = 0.0  # lambda of the assignment LP
    rate_rounded: float = 0.0  # with whole machines
    plans: int = 1  # made in the whole run
    seconds: float = 0.0  # that they took, outside the loop
    notes: tuple[str, ...] = ()  # what the first one assumed or left out
    missed: dict[str, int] = {}  # that could not be made during the run: how often, by the rule; what was there went on


class FailureFacts(msgspec.Struct, frozen=True):
    """How the tasks of a run ended that had a plan of failures."""

    outcomes: dict[str, int] = {}  # tasks that finished, failed, were cancelled, timed out, were lost
    attempts_failed: int = 0  # attempts that failed or ran too long


class Amounts(msgspec.Struct, frozen=True):
    """Energy, cost in the energy file's currency and kg of CO2 equivalent; None where it does not say."""

    kwh: float | None = None
    cost: float | None = None
    carbon: float | None = None


class KindFacts(msgspec.Struct, frozen=True):
    """What the machines of a kind used in the window."""

    kind: str
    machines: int = 0
    hours: float = 0.0  # machine-hours that they were there
    kwh: float = 0.0
    cost_energy: float | None = None
    cost_machines: float = 0.0
    carbon: float | None = None  # kg


class EnergyFacts(msgspec.Struct, frozen=True):
    """What the machines of a run used in the window that is measured, and cost."""

    resource: str  # whose use is counted in `used_hours`
    currency: str = ""  # of costs
    total: Amounts = Amounts()  # kwh, cost and carbon (kg of CO2 equivalent) of the window
    per_task: Amounts = Amounts()  # over the tasks that finished in the window
    per_used_hour: Amounts = Amounts()  # over the hours in which a core, or what the resource is counted in, was used
    cost_energy: float | None = None  # at the price of each instant
    cost_machines: float | None = None  # by the hours that they were there
    watts_mean: float | None = None  # of all machines together
    finished: int = 0  # tasks, in the window
    used_hours: float = 0.0  # amount of the resource that tasks used, times hours
    kinds: tuple[KindFacts, ...] = ()  # the sums over the machines of each


class Summary(msgspec.Struct, frozen=True):
    """summary.json: one run in a page of numbers. Times are in seconds, shares are of one."""

    scheduler: str
    label: str = ""
    seed: int = 0
    knows: str = ""  # what the scheduler knew of run times, and how well; empty for runs of versions before
    options: dict[str, Any] = {}
    gangs_apart: int = 0  # whose tasks the scheduler started one by one, though they should start together
    workload: WorkloadFacts = WorkloadFacts()
    redrawn: RedrawnFacts | None = None  # None where seeds leave the workload as it is, or draw it from a model
    fleet: FleetFacts = FleetFacts()
    resources: tuple[Resource, ...] = ()
    window: WindowFacts | None = None  # what waits, slowdowns and means over time are of; None: all there is
    status: dict[str, int] = {}
    reasons: tuple[Reason, ...] = ()
    recorded: dict[str, int] = {}  # tasks that finished, by how the trace says that they ended; empty where it does not
    percentiles_within: float | None = None  # by which share those of tasks may be off; None: they are exact
    wait_time: Spread = Spread()
    slurm_wait: Spread | None = None  # of what Slurm calls a job; None where no tasks start together: it is wait_time
    slowdown: Spread = Spread()
    execution_delay: Spread | None = None  # that finished tasks ran longer for sharing CPU; None where they do not
    locality: dict[str, float] = {}  # which part of the tasks ran how near its input; empty where no input is known
    lengths: dict[str, Spread] = {}  # the wait time of tasks of short jobs, and of long ones
    jobs: JobFacts | None = None
    objectives: tuple[ObjectiveFacts, ...] = ()
    makespan: float | None = None
    makespan_bound: float | None = None  # of MapReduce jobs: no schedule's makespan is less
    makespan_bound_note: str = ""  # why there is no bound, or how far it may be below what was looked for
    gap: float | None = None  # by what share of the bound the makespan is above it
    utilisation: dict[str, float | None] = {}
    waiting: Waiting = Waiting()
    waited: WaitedFacts | None = None  # None in runs of versions before
    stranded: dict[str, float | None] = {}
    idle_while_waiting: dict[str, float | None] = {}  # None where nothing waited
    attempts_lost: int | None = None  # those that failed, or ran too long, were not lost: see `failures`
    run_time_lost: float | None = None  # seconds that lost attempts had run, over all tasks
    failures: FailureFacts | None = None  # None where there was no plan of failures
    federation: FederationFacts | None = None
    fairness: FairnessFacts | None = None  # None where there is only one queue
    plan: PlanFacts | None = None  # None where the scheduler goes by none
    energy: EnergyFacts | None = None  # None where no energy file was given
    speed: Speed = Speed()
    versions: dict[str, str] = {}


@dataclass(frozen=True)
class Run:
    """One run, in its folder or in memory.

    ``label`` is unique among the runs read together; ``group`` is the label without its seed.
    """

    folder: Path
    summary: Summary
    held: Mapping[str, pl.DataFrame] = field(default_factory=dict)  # of a run in memory: its tables, by name
    settings: tuple[tuple[str, str], ...] = ()  # that tell it apart from those that it was read with

    @property
    def own_label(self) -> str:
        """What the run is called in its folder."""
        return self.summary.label or self.folder.name

    @property
    def label(self) -> str:
        """What the run is called."""
        return self.own_label + self._setting

    @property
    def group(self) -> str:
        """What runs that differ only in their seed share."""
        return self.own_label.removesuffix(f"-s{self.summary.seed}") + self._setting

    @property
    def _setting(self) -> str:
        return "".join(f" {name.rpartition('.')[2]}={value}" for name, value in self.settings)

    def table(self, name: str) -> pl.LazyFrame:
        """Return a table by its name, unread."""
        return self.held[name].lazy() if self.held else scan_table(self.folder / f"{name}.parquet")

    def tasks(self) -> pl.LazyFrame:
        """Return tasks.parquet, unread: select few columns before collecting, a month has 25 million rows."""
        return self.table("tasks")

    def timeline(self) -> pl.LazyFrame:
        """Return timeline.parquet, unread."""
        return self.table("timeline")

    def queues(self) -> pl.LazyFrame:
        """Return queues.parquet, unread; only a run whose summary has `fairness` has it."""
        return self.table("queues")

    def shares(self) -> pl.LazyFrame:
        """Return shares.parquet, unread; only a run whose summary has `fairness` has it."""
        return self.table("shares")

    def power(self) -> pl.LazyFrame:
        """Return power.parquet, unread; only a run whose summary has `energy` has it."""
        return scan_table(self.folder / "power.parquet")

    def stints(self) -> pl.LazyFrame:
        """Return stints.parquet, unread; only a run whose summary has `makespan_bound` has it."""
        return self.table("stints")


def groups(runs: list[Run]) -> dict[str, list[Run]]:
    """Return the runs by what they share apart from the seed, in their order."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.group, []).append(run)
    return found


def trace_days(runs: list[Run]) -> TraceDays | None:
    """Return the days that seeds draw from, where the runs are of a trace and of draws of it."""
    found = next((run.summary.redrawn for run in runs if run.summary.redrawn is not None), None)
    return None if found is None else TraceDays(found.days, found.freedom)


def on_trace(runs: list[Run]) -> list[Run]:
    """Return the runs whose values are shown: all, or those on the trace itself where others are on draws of it."""
    return [run for run in runs if run.summary.redrawn is None or drawn_by(run.summary.seed) == ITSELF] or runs


def resource_names(runs: list[Run]) -> list[str]:
    """Return the resources of all runs, each once, in the order in which they are first declared."""
    return list(dict.fromkeys(resource.name for run in runs for resource in run.summary.resources))
