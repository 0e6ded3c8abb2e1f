"""The case of a seed: a small federation, its users, and its faults until it may come to rest.

Every task could run: some machine that comes back meets its constraints and has room for it, for a gang as a whole. So
at rest all of it has ended, but for the jobs of global masters that never return.
"""
import math
from collections.abc import Iterator

import numpy as np
from msgspec import Struct, structs

from subak.federation.megha.topology import OFF, STRICT
from subak.live.jobfile.spec import CPU, MEMORY, TASKS, Constraint, JobSpec, Metadata, Stage
from subak.live.role.global_master.queues import QueueSetup
from subak.live.role.layout import PREEMPTIONS, Layout, Rooms, Timing
from subak.workload.predicates import Constraint as Predicate
from subak.workload.predicates import is_met

NEVER = math.inf
ROOMS = Rooms(tasks=128, machines=64, shapes=5, configurations=8, queues=8, attempts_each=24)
ORDERS = ("round-robin", "round-robin", "drf", "hdrf")
KINDS = ("kill", "kill", "kill", "trap", "trap", "off", "agent", "cut", "part", "full", "slow")
STORES, STORES_SHARE = ("lost", "older"), 0.2  # what may become of the store of a global master, in so many cases
ASKS = ("cancel", "cancel", "preempt", "cordon", "drain", "logs")
MACHINES = (64, 192)  # rooms of a cluster: with the lesser one, partitions of some global masters are empty
GROWN = "grown"  # the queue of a global master that comes
GROWS_SHARE = 0.2  # in so many cases a global master or a cluster comes
LEAVES_SHARE = 0.2  # in so many cases a machine leaves for good, and another joins in its place
LEASES_OF_FAULTS = 3.0  # for how long things go wrong
JOBS_MAX, FAULTS_MAX = 6, 9


class MachineCase(Struct, frozen=True):
    """A machine; *stubborn*: what runs there ends only by SIGKILL."""

    cluster: int
    capacity: tuple[int, ...]
    rack: str
    stubborn: bool

    @property
    def attributes(self) -> dict[str, str]:
        """What constraints are about."""
        return {"rack": self.rack} if self.rack else {}


class JobCase(Struct, frozen=True):
    """A job, submitted under *client*; *endings*: of each attempt of each task, in turn, seconds and exit code."""

    at: float
    client: str
    spec: JobSpec
    endings: tuple[tuple[tuple[float, int], ...], ...]


class Wish(Struct, frozen=True):
    """What people ask for: *target* is a job's place, or a machine's; *index* that of a task, below zero for all."""

    at: float
    what: str
    target: int
    index: int = -1


class QueueChange(Struct, frozen=True):
    """The queues from a time on."""

    at: float
    queues: tuple[QueueSetup, ...]


class Growth(Struct, frozen=True):
    """How the federation is from a time on, with machines of clusters that are new."""

    at: float
    layout: Layout
    machines: tuple[MachineCase, ...]


class Fault(Struct, frozen=True):
    """What goes wrong with processes, for how many seconds; *durable*: whether its next write is, when it is killed."""

    at: float
    kind: str
    names: tuple[str, ...]
    seconds: float
    durable: bool = False


class Case(Struct, frozen=True):
    """See the head of the file."""

    seed: int
    layout: Layout
    timing: Timing
    machines: tuple[MachineCase, ...]
    queues: tuple[QueueSetup, ...]
    order: str
    jobs: tuple[JobCase, ...]
    wishes: tuple[Wish, ...]
    changes: tuple[QueueChange, ...]
    faults: tuple[Fault, ...]
    loss: float
    doubling: float
    lateness: float  # seconds, of timers and frames
    over_at: float
    growth: Growth | None = None

    @property
    def dead(self) -> frozenset[str]:
        """Processes that never come back."""
        return frozenset(name for fault in self.faults if fault.seconds == NEVER for name in fault.names)


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    random = np.random.default_rng([seed, 71])
    lease = float(random.choice([2.0, 3.0]))
    timing = Timing(
        heartbeat=float(random.choice([0.5, 1.0])), retry=float(random.choice([0.3, 0.6])), lease=lease,
        timer_slack=float(random.choice([0.02, 0.1])), preemption=PREEMPTIONS[random.choice([OFF, STRICT])],
        preemptions_max=int(random.integers(0, 4)), hold_back_after=_hold_back_after(seed))
    rooms = structs.replace(ROOMS, machines=MACHINES[seed % len(MACHINES)], attempts_each=_attempts_each(seed))
    layout = Layout(int(random.integers(1, 4)), int(random.integers(1, 3)), (CPU, MEMORY, TASKS),
                    bool(random.random() < 0.6), rooms)
    machines = tuple(_machine(random, cluster, layout) for cluster in range(layout.clusters)
                     for _ in range(random.integers(1, 5)))
    queues = tuple(QueueSetup(path, int(random.integers(layout.global_masters)), float(random.choice([0.5, 1.0, 3.0])))
                   for path in ("a", "b", "c", "d/e")[: random.integers(1, 5)])
    over_at = LEASES_OF_FAULTS * lease
    faults = _faults(random, layout, machines, over_at) if random.random() < 0.9 else ()
    faults = tuple(sorted((*faults, *_stores(seed, layout, faults, over_at)), key=lambda fault: fault.at))
    loss, doubling = (float(random.choice([0.0, 0.0, 0.005, 0.03])) if faults else 0.0 for _ in range(2))
    case = Case(seed, layout, timing, machines, queues, str(random.choice(ORDERS)), (), (), (), faults, loss, doubling,
                float(random.choice([0.0, 0.01, 0.05])), over_at)
    jobs = tuple(_job(random, case, number) for number in range(random.integers(1, JOBS_MAX + 1)))
    wishes = (*_wishes(random, case, jobs), *_leaving(case))
    return _growing(structs.replace(case, jobs=jobs, wishes=wishes, changes=_changes(random, case)))


def _hold_back_after(seed: int) -> float:
    """Return after how many seconds machines are held back for who is passed over; of a quarter of the seeds never."""
    return float(np.random.default_rng([seed, 46]).choice([np.inf, 0.0, 0.3, 2.0]))


def _attempts_each(seed: int) -> int:
    """Return how many attempts a machine knows: of a third of the seeds so few that they decide what runs there."""
    return int(np.random.default_rng([seed, 97]).choice([1, 2, 5, 24, 24, 24, 24, 24, 24]))


def _machine(random: np.random.Generator, cluster: int, layout: Layout) -> MachineCase:
    amounts = {CPU: int(random.choice([2000, 4000])), MEMORY: int(random.choice([2048, 4096]))}
    return MachineCase(cluster, layout.amounts(amounts, layout.tasks_each),
                       str(random.choice(["", "a", "a", "b"])), bool(random.random() < 0.2))


# -- jobs --------------------------------------------------------------------------------------------------------------


def _job(random: np.random.Generator, case: Case, number: int) -> JobCase:
    stages: list[Stage] = []
    for place in range(random.integers(1, 4)):
        before = tuple({str(random.choice([stage.name for stage in stages]))}) \
            if stages and random.random() < 0.6 else ()
        stages.append(_stage(random, case, f"{number}", f"s{place}", before))
    queue = str(random.choice([queue.path for queue in case.queues]))
    tasks = sum(stage.tasks for stage in stages)
    endings = tuple(tuple(_ending(random) for _ in range(1 + random.integers(3))) for _ in range(tasks))
    return JobCase(_time(random, 0.9 * case.over_at), f"client {number}", JobSpec(Metadata("j"), queue, tuple(stages)),
                   endings)


def _time(random: np.random.Generator, until: float) -> float:
    return round(float(random.uniform(0.0, until)), 4)


def _ending(random: np.random.Generator) -> tuple[float, int]:
    return float(random.choice([0.0, 0.05, 0.3, 1.0, 2.5, 8.0])), int(random.random() < 0.2)


def _stage(random: np.random.Generator, case: Case, job: str, name: str, before: tuple[str, ...]) -> Stage:
    gang = bool(random.random() < 0.25)
    retries = 0 if gang else int(random.integers(0, 3))
    stage = Stage(
        name, ("work", job), int(random.integers(1, 5)), gang, before, int(random.integers(0, 3)),
        resources={CPU: int(random.choice([500, 1000, 2000])), MEMORY: int(random.choice([256, 1024, 2048]))},
        constraints=(Constraint("rack", str(random.choice(["=", "!="])), "a"),) if random.random() < 0.3 else (),
        retries=retries, backoff_s=float(random.choice([0.0, 0.2, 1.0])),
        losses_max=int(random.choice([0, 1, 1000, 1000, 1000])),
        wait_limit_s=float(random.choice([1.0, 4.0])) if random.random() < 0.15 else None,
        time_limit_s=float(random.choice([0.2, 2.0])) if random.random() < 0.2 else None,
        grace_s=float(random.choice([0.0, 0.1, 0.8])))
    if not fits(case, stage):
        stage = structs.replace(stage, constraints=())
    if not fits(case, stage):
        stage = structs.replace(stage, gang=False)
    return stage


def fits(case: Case, stage: Stage) -> bool:
    """Whether machines that come back have room for a task of a stage, or for all of a gang, when nothing runs."""
    request = case.layout.amounts(stage.resources, tasks=1)
    places = 0
    for number, machine in enumerate(case.machines):
        wanted = [Predicate(each.attribute, each.operator, each.value) for each in stage.constraints]
        if f"m{number}" not in case.dead and all(is_met(each, machine.attributes) for each in wanted):
            places += min(have // want for have, want in zip(machine.capacity, request, strict=True) if want)
    return places >= (stage.tasks if stage.gang else 1)


# -- what people ask for -----------------------------------------------------------------------------------------------


def _wishes(random: np.random.Generator, case: Case, jobs: tuple[JobCase, ...]) -> tuple[Wish, ...]:
    wishes = []
    for _ in range(random.integers(0, 5)):
        what, at = str(random.choice(ASKS)), _time(random, case.over_at)
        if what == "cancel":
            job = int(random.integers(len(jobs)))
            index = int(random.integers(len(jobs[job].endings))) if random.random() < 0.5 else -1
            wishes.append(Wish(max(at, jobs[job].at), what, job, index))
            continue
        machine = int(random.integers(len(case.machines)))
        wishes.append(Wish(at, what, machine))
        if what in ("cordon", "drain"):
            wishes.append(Wish(_time(random, case.over_at), "uncordon", machine))
    return tuple(wishes)


def _leaving(case: Case) -> tuple[Wish, ...]:
    """Return that a machine leaves for good, in some cases: drawn by itself, so that no other draw depends on it."""
    random = np.random.default_rng([case.seed, 83])
    if case.dead or random.random() >= LEAVES_SHARE:
        return ()
    return (Wish(_time(random, case.over_at), "leave", int(random.integers(len(case.machines)))),)


def _growing(case: Case) -> Case:
    """Return a case in which the federation grows, some of the time, with a job for who is new; drawn by itself."""
    random = np.random.default_rng([case.seed, 89])
    if case.dead or random.random() >= GROWS_SHARE:
        return case
    more, master, number = random.integers(3), case.layout.global_masters, len(case.jobs)
    layout = structs.replace(case.layout, global_masters=master + int(more != 0),
                             clusters=case.layout.clusters + int(more != 1))
    machines = tuple(_machine(random, case.layout.clusters, layout)
                     for _ in range(layout.clusters - case.layout.clusters))
    at = _time(random, 0.6 * case.over_at)
    growth = Growth(at, layout, machines)
    if layout.global_masters == master:
        return structs.replace(case, growth=growth)
    last = case.changes[-1] if case.changes else QueueChange(0.0, case.queues)
    change = QueueChange(max(last.at, at) + 1.5, (*last.queues, QueueSetup(GROWN, master)))
    stage = Stage("s0", ("work", f"{number}"), 2, resources={CPU: 500, MEMORY: 256})
    job = JobCase(change.at + 1.0, f"client {number}", JobSpec(Metadata("j"), GROWN, (stage,)),
                  tuple((_ending(random),) for _ in range(2)))
    return structs.replace(case, growth=growth, changes=(*case.changes, change), jobs=(*case.jobs, job))


def _changes(random: np.random.Generator, case: Case) -> tuple[QueueChange, ...]:
    """Return changes of weights, a queue that is removed, and one that comes."""
    if "g0" in case.dead or random.random() < 0.6:
        return ()
    changes, queues = [], list(case.queues)
    for at in sorted(_time(random, case.over_at) for _ in range(random.integers(1, 4))):
        what = random.integers(3)
        if what == 0 and len(queues) > 1:
            queues.pop(int(random.integers(len(queues))))
        elif what == 1:
            queues.append(QueueSetup(f"new {at}", int(random.integers(case.layout.global_masters))))
        else:
            queues = [structs.replace(queue, weight=float(random.choice([0.5, 2.0]))) for queue in queues]
        changes.append(QueueChange(at, tuple(queues)))
    return tuple(changes)


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def _faults(
    random: np.random.Generator, layout: Layout, machines: tuple[MachineCase, ...], until: float
) -> tuple[Fault, ...]:
    names = [f"g{number}" for number in range(layout.global_masters)]
    names += [f"l{number}" for number in range(len(layout.locals))]
    workers = [f"m{number}" for number in range(len(machines))]
    dead = _dead(random, layout, machines)
    faults = [Fault(_time(random, until), "off" if name[0] == "m" else "kill", (name,), NEVER) for name in dead]
    for _ in range(random.integers(1, FAULTS_MAX + 1)):
        kind = str(random.choice(KINDS))
        some = workers if kind in ("off", "agent") else names + workers
        chosen = [str(random.choice(some))]
        if kind in ("cut", "part"):
            count = 2 if kind == "cut" else int(random.integers(1, len(some)))
            chosen = [str(name) for name in random.choice(some, count, replace=False)]
        seconds = float(random.choice([0.0, 0.05, 0.5, 0.4 * until, 0.7 * until]))
        faults.append(Fault(_time(random, until), kind, tuple(chosen), seconds, bool(random.random() < 0.5)))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _stores(seed: int, layout: Layout, faults: tuple[Fault, ...], until: float) -> tuple[Fault, ...]:
    """Return what becomes of the store of a global master that comes back, in some cases; drawn by itself."""
    random = np.random.default_rng([seed, 79])
    dead = {name for fault in faults if fault.seconds == NEVER for name in fault.names}
    name = f"g{int(random.integers(layout.global_masters))}"
    if not faults or name in dead or random.random() >= STORES_SHARE:
        return ()
    kind, seconds = str(random.choice(STORES)), float(random.uniform(0.2, 0.3 * until))
    return (Fault(_time(random, 0.6 * until), kind, (name,), seconds),)


def _dead(random: np.random.Generator, layout: Layout, machines: tuple[MachineCase, ...]) -> list[str]:
    """Return who never comes back: of the masters, or of the machines, for with both nobody could say what is lost."""
    if random.random() < 0.7:
        return []
    if random.random() < 0.4 and len(machines) > layout.clusters:
        return [f"m{int(random.integers(len(machines)))}"]
    dead = [f"l{int(random.integers(len(layout.locals)))}"] if layout.standby and random.random() < 0.5 else []
    if layout.global_masters > 1 and (not dead or random.random() < 0.5):
        dead.append(f"g{int(random.integers(layout.global_masters))}")
    return dead


# -- making a case smaller ---------------------------------------------------------------------------------------------


def smaller(case: Case) -> Iterator[Case]:
    """Yield cases with something left out, the largest parts first."""
    for name in ("faults", "jobs", "wishes", "changes"):
        parts = getattr(case, name)
        for size in (4, 2, 1):
            for first in range(0, len(parts), size):
                kept = parts[:first] + parts[first + size :]
                if len(kept) < len(parts) and (kept or name != "jobs"):
                    yield _with_targets(case, **{name: kept})
    if case.growth is not None and all(job.spec.queue != GROWN for job in case.jobs):
        yield structs.replace(case, growth=None, changes=tuple(
            change for change in case.changes if all(queue.path != GROWN for queue in change.queues)))
    for name in ("loss", "doubling", "lateness"):
        if getattr(case, name) > 0:
            yield structs.replace(case, **{name: 0.0})
    yield from _with_fewer_machines(case)
    for number, job in enumerate(case.jobs):
        if len(job.spec.stages) > 1:
            spec = structs.replace(job.spec, stages=job.spec.stages[:-1])
            short = structs.replace(job, spec=spec, endings=job.endings[: spec.task_count])
            yield _with_targets(case, jobs=(*case.jobs[:number], short, *case.jobs[number + 1 :]))


def _with_fewer_machines(case: Case) -> Iterator[Case]:
    last = len(case.machines) - 1
    if last > 0 and not any(f"m{last}" in fault.names for fault in case.faults):
        fewer = structs.replace(case, machines=case.machines[:-1])
        if all(fits(fewer, stage) for job in case.jobs for stage in job.spec.stages):
            yield _with_targets(fewer)


def _with_targets(case: Case, **changes: tuple[object, ...]) -> Case:
    """Leave parts out, and the wishes that are about what is not there any more."""
    case, clients = structs.replace(case, **changes), [job.client for job in case.jobs]
    wishes = []
    for wish in case.wishes:
        if wish.what != "cancel" and wish.target < len(case.machines):
            wishes.append(wish)
        elif wish.what == "cancel" and wish.target < len(clients):
            now = {job.client: number for number, job in enumerate(case.jobs)}
            job = now.get(clients[wish.target])
            if job is not None and wish.index < len(case.jobs[job].endings):
                wishes.append(structs.replace(wish, target=job))
    return structs.replace(case, wishes=tuple(wishes))


__all__ = ["NEVER", "Case", "Fault", "JobCase", "MachineCase", "QueueChange", "Wish", "random_case", "smaller"]
