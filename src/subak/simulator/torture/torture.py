"""Runs small random federations under random faults, checking every invariant after every message.

A case is drawn from its seed; a failure is shrunk by leaving tasks, faults, machines and settings out as long as some
invariant still breaks. What was covered is counted: which kinds of message met a task, or an attempt, in which state.
"""
import copy
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.federation.megha.jobs import TERMS
from subak.federation.messages import NOBODY
from subak.federation.settings import Federation
from subak.fleet.table import Fleet, make_fleet
from subak.placement.lotes.plan import make_plan
from subak.queues.tree import Queue, TreeChange, TreeFile
from subak.resources import Resource
from subak.simulator.engine.state import (
    LOOP_BROKEN,
    LOOP_DONE,
    LOOP_LOSSES_FULL,
    LOOP_TIMELINE_FULL,
)
from subak.simulator.failures.planned import Planned
from subak.simulator.federated.fault_plan import FaultPlan, random_plan
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import Opened, broken_rule, open_federated
from subak.simulator.torture.at_rest import unrest
from subak.simulator.torture.coverage import Coverage
from subak.simulator.torture.folds import Broken
from subak.simulator.torture.invariants import Watch
from subak.simulator.torture.message_text import event_words
from subak.workload.table import STAGE_COLUMNS, Workload, make_workload

Value = TypeVar("Value")

CPU_AND_MEMORY = (Resource("cpu", 1.0, "cores"), Resource("memory", 1.0, "GB"))
INTERVAL = 1e6  # of the timeline, in seconds
LONGEST = 150.0  # seconds that all tasks of a case run one after the other, at most, and
EVENTS_MAX = 30_000  # events after which it counts as never at rest
TRACE_KEPT = 60  # events shown of a failure
SHRINK_RUNS = 300
CROWD = 100  # tasks: ten times what the smallest outbox of a global master holds


class Stage(msgspec.Struct):
    """Tasks that are alike."""

    job: int
    request: tuple[int, int]
    depends_on: list[int] = []
    priority: int = 0
    rack: str = ""  # the machines it must run on; empty: any
    gang: bool = False


class Terms(msgspec.Struct):
    """On which terms all tasks of a case are run."""

    retries: int
    losses_max: int
    backoff: float
    wait_max: float
    run_max: float


class Case(msgspec.Struct):
    """A federation, its work, and what goes wrong."""

    seed: int
    machines: list[tuple[int, int]]  # cpu, memory
    racks: list[str]
    absent: list[int]  # machines that are not there at first
    changes: list[tuple[float, int, bool, int, int]]  # time, machine, present, cpu, memory
    queues: list[str]  # of each job
    stages: list[Stage]
    tasks: list[tuple[int, float, float]]  # stage, arrival, run time
    settings: Federation
    plan: FaultPlan | None
    rows: int = 0  # of attempts at a local master; 0: as many as can be
    outbox: int = 256  # messages that a walk over tasks may post before it stops
    planned: list[tuple[int, float, float]] = []  # of each task: attempts that fail, after how long, when cancelled
    terms: Terms | None = None  # where failures are planned
    hold_back_after: float = math.inf  # s: machines are held back for who was passed over so long
    trees: list[tuple[float, list[float]]] = []  # from a time on, the weights of the queues, by name


@dataclass
class Ending:
    """How a case went."""

    case: Case
    failure: str = ""  # empty: every invariant held
    trace: list[str] = field(default_factory=list)
    events: int = 0
    seconds: float = 0.0  # simulated


def random_case(seed: int) -> Case:
    """Draw a case from a seed."""
    random = np.random.default_rng([seed, 26])

    def pick(*values: Value) -> Value:
        return values[random.integers(len(values))]

    machines = [(int(pick(1, 2, 4, 4)), int(pick(1, 2, 4, 8))) for _ in range(random.integers(2, 13))]
    racks = [str(pick("", "a", "b")) for _ in machines]
    clusters = int(random.integers(1, min(3, len(machines)) + 1))
    queues = [f"q{number}" for number in range(random.integers(1, 5))]
    stages, jobs = _random_stages(random, len(queues))
    tasks = _random_tasks(random, stages)
    masters = int(random.integers(1, 4))
    faulty = random.random() < 0.85
    over_at = float(pick(3.0, 6.0, 12.0))
    standby = bool(random.random() < 0.5)
    settings = _random_settings(random, masters, clusters, queues, [queues[job % len(queues)] for job in jobs], faulty,
                                standby)
    turns = np.random.default_rng([seed, 27]).choice(["round-robin", "round-robin", "drf", "hdrf-fast", "mch"])
    placement = np.random.default_rng([seed, 28]).choice(["first-fit", "first-fit", "aligned-fit", "bins"])
    settings = msgspec.structs.replace(settings, queue_order=str(turns), placement=str(placement))
    plan = random_plan(seed, global_masters=masters, clusters=clusters, machines=len(machines), standby=standby,
                       over_at=over_at) if faulty else None
    gangs = [sum(task[0] == number for task in tasks) for number, stage in enumerate(stages) if stage.gang]
    rows, settings, plan = _tightened(seed, max(gangs, default=0), settings, plan)
    absent = [number for number in range(len(machines)) if random.random() < 0.08]
    changes = []
    if random.random() < 0.4:
        for _ in range(random.integers(1, 5)):
            cpu, memory = int(pick(1, 2, 4)), int(pick(1, 2, 4, 8))
            changes.append((round(float(random.uniform(0, over_at)), 3), int(random.integers(len(machines))),
                            bool(random.random() < 0.6), cpu, memory))
        changes.sort(key=lambda change: change[0])
    planned, terms = _random_failures(np.random.default_rng([seed, 34]), tasks)
    outbox, alone = int(np.random.default_rng([seed, 35]).choice([1, 1, 4, 256])), len(tasks)
    tasks, planned, terms = _with_crowd(seed, stages, tasks, planned, terms)
    if len(tasks) > alone:
        outbox = 0  # a walk stops behind its first message
    hold_back_after = float(np.random.default_rng([seed, 46]).choice([math.inf, 0.0, 0.3, 2.0]))
    trees = _random_trees(np.random.default_rng([seed, 36]), len(queues), over_at)
    if trees:
        settings = msgspec.structs.replace(settings, shares={})
    return Case(seed, machines, racks, absent, changes, [queues[job % len(queues)] for job in jobs], stages, tasks,
                settings, plan, rows, outbox, planned, terms, hold_back_after, trees)


def _with_crowd(
    seed: int, stages: list[Stage], tasks: list[tuple[int, float, float]], planned: list[tuple[int, float, float]],
    terms: Terms | None,
) -> tuple[list[tuple[int, float, float]], list[tuple[int, float, float]], Terms | None]:
    """Return tasks, planned failures, terms; in one case of sixteen with a crowd, which is cancelled at once."""
    random = np.random.default_rng([seed, 45])
    single = [task for task in tasks if not stages[task[0]].gang]
    if random.random() > 1 / 16 or not single:
        return tasks, planned, terms
    stage, arrival, _ = single[random.integers(len(single))]
    planned = planned or [(0, math.inf, math.inf)] * len(tasks)
    cancelled = float(arrival + random.choice([0.5, 1.0, 3.0]))
    return (tasks + [(stage, arrival, 0.25)] * CROWD, planned + [(0, math.inf, cancelled)] * CROWD,
            terms or Terms(0, 30_000, 0.0, math.inf, math.inf))


def _random_trees(random: np.random.Generator, queues: int, over_at: float) -> list[tuple[float, list[float]]]:
    """Return how the weights of the queues change, in one case of four."""
    if random.random() < 0.75:
        return []
    times = np.round(np.sort(random.uniform(0, over_at, random.integers(1, 4))), 3)
    return [(float(time), random.choice([1.0, 1.0, 2.0, 10.0], queues).tolist()) for time in times]


def _random_failures(
    random: np.random.Generator, tasks: list[tuple[int, float, float]]
) -> tuple[list[tuple[int, float, float]], Terms | None]:
    """Return what befalls each task of one case of two, and the terms on which they are run."""
    if random.random() < 0.5:
        return [], None
    planned = []
    for _, arrival, run_time in tasks:
        fails = int(random.choice([0, 0, 0, 1, 1, 2, 5]))
        after = float(round(random.uniform(0, min(run_time, 4.0)), 3)) if fails else math.inf
        cancelled = float(arrival + round(random.uniform(0, 4.0), 3)) if random.random() < 0.2 else math.inf
        planned.append((fails, after, cancelled))
    return planned, Terms(
        int(random.integers(0, 4)), int(random.choice([0, 1, 3, 30_000])), float(random.choice([0.0, 0.2, 1.0])),
        float(random.choice([1.0, 3.0, math.inf])), float(random.choice([0.5, 2.0, math.inf])))


def _tightened(
    seed: int, gang: int, settings: Federation, plan: FaultPlan | None
) -> tuple[int, Federation, FaultPlan | None]:
    """Let timers be late, old messages come again, and local masters have little room, yet enough for any gang."""
    if plan is None:
        return 0, settings, None
    random = np.random.default_rng([seed, 29])
    slack = float(random.choice([0.0, 0.1, 0.6]))
    late = float(round(random.uniform(0, slack), 3))
    replay = float(random.choice([0.0, 0.02, 0.1]))
    rows = gang + int(random.integers(2, 7)) if random.random() < 0.25 else 0
    settings = msgspec.structs.replace(settings, timer_slack=slack)
    return rows, settings, msgspec.structs.replace(plan, timer_late=late, replay=replay)


def _random_stages(random: np.random.Generator, queues: int) -> tuple[list[Stage], list[int]]:
    """Return stages, and the number of each job."""
    stages: list[Stage] = []
    for row in range(random.integers(1, 7)):  # noqa: B007
        job = stages[-1].job + int(random.random() < 0.7) if stages else 0
        before = [number for number, stage in enumerate(stages) if stage.job == job]
        stages.append(Stage(
            job, (int(random.integers(1, 4)), int(random.integers(0, 4))),
            [int(random.choice(before))] if before and random.random() < 0.5 else [], int(random.integers(0, 3)),
            str(random.choice(["", "", "", "a"])), bool(random.random() < 0.25),
        ))
    jobs = [job + int(random.integers(queues)) for job in range(stages[-1].job + 1)]
    return stages, jobs


def _random_tasks(random: np.random.Generator, stages: list[Stage]) -> list[tuple[int, float, float]]:
    count = int(random.integers(len(stages), 31))
    of_stage = [*range(len(stages)), *(int(random.integers(len(stages))) for _ in range(count - len(stages)))]
    service = random.random() < 0.1
    tasks = []
    for stage in of_stage:
        arrival = float(random.choice([0.0, 0.0, 0.5, 1.0, 1.0, 2.25, 3.0, 5.0]))
        run_time = float(random.choice([0.0, 0.25, 1.0, 1.0, 2.5, 4.0]))
        tasks.append((stage, arrival, math.inf if service and random.random() < 0.1 else run_time))
    return tasks


def _random_settings(
    random: np.random.Generator, masters: int, clusters: int, queues: list[str], used: list[str], faulty: bool,
    standby: bool,
) -> Federation:
    def pick(*values: Value) -> Value:
        return values[random.integers(len(values))]

    delay = float(pick(0.0, 0.0005, 0.01, 0.1))
    law = str(pick("constant", "uniform", "exponential"))
    share = 1.0 / len(queues)
    return Federation(
        global_masters=masters, local_masters=clusters, heartbeat=float(pick(0.5, 1.0, 3.0)), delay=delay,
        delay_law=law, delay_spread=delay / 2 if law == "uniform" else 0.0,
        service_profile="python",  # of slow masters, at which messages wait for each other
        service_scale=float(pick(0.0, 1.0, 10.0)), updates=str(pick("changes", "full")),
        preemption=str(pick("off", "strict", "strict", "paper")),
        shares={name: share for name in sorted(set(used))}, preemptions_max=int(pick(0, 1, 3)),
        order=str(pick("fifo", "priority")), retry=float(pick(0.3, 0.7, 1.5)) if faulty else math.inf,
        lease=float(pick(4.0, 6.0)), standby=standby if faulty else False,
    )


def build(case: Case) -> tuple[Workload, Fleet]:
    """Return a case's workload and fleet."""
    return _workload(case), _fleet(case)


def _workload(case: Case) -> Workload:
    count = len(case.stages)
    stages = pl.DataFrame({
        "job": [stage.job for stage in case.stages], "name": [f"s{row}" for row in range(count)],
        "depends_on": [stage.depends_on for stage in case.stages], "kind": ["TASK"] * count,
        "priority": [stage.priority for stage in case.stages],
        "constraints": [[{"attribute": "rack", "operator": "=", "value": stage.rack}] if stage.rack else []
                        for stage in case.stages],
        "gang": [stage.gang for stage in case.stages],
        **{resource.name: [float(stage.request[row]) for stage in case.stages]
           for row, resource in enumerate(CPU_AND_MEMORY)},
    }, schema={**STAGE_COLUMNS, "gang": pl.Boolean, "cpu": pl.Float64, "memory": pl.Float64})
    tasks = [case.tasks[number] for number in _by_arrival(case)]
    return make_workload(
        pl.DataFrame({"job": [f"j{row}" for row in range(len(case.queues))], "queue": case.queues,
                      "user": ["ada"] * len(case.queues)}),
        stages,
        pl.DataFrame({"stage": [task[0] for task in tasks], "index": list(range(len(tasks))),
                      "arrival": [task[1] for task in tasks], "run_time": [task[2] for task in tasks]}),
        CPU_AND_MEMORY,
    )


def _by_arrival(case: Case) -> list[int]:
    return sorted(range(len(case.tasks)), key=lambda number: case.tasks[number][1])


def failures_of(case: Case) -> tuple[Planned, np.ndarray] | None:
    """Return what befalls the tasks of a case, and TERMS[task]; None where all finish."""
    if case.terms is None:
        return None
    planned = [case.planned[number] for number in _by_arrival(case)]
    terms = np.zeros(len(planned), TERMS)
    for name, value in msgspec.structs.asdict(case.terms).items():
        terms[name] = value
    fails, after, cancel_at = (np.array(column) for column in zip(*planned, strict=True))
    return Planned(fails.astype(np.int16), after.astype(np.float64), np.full(len(planned), 7, np.int16),
                 cancel_at.astype(np.float64)), terms


def _fleet(case: Case) -> Fleet:
    count = len(case.machines)
    return make_fleet(
        pl.DataFrame({"machine": [f"m{row}" for row in range(count)], "cluster": ["c"] * count,
                      "present": [row not in case.absent for row in range(count)],
                      "cpu": [float(cpu) for cpu, _ in case.machines],
                      "memory": [float(memory) for _, memory in case.machines]}),
        CPU_AND_MEMORY,
        attributes=pl.DataFrame([(row, "rack", rack) for row, rack in enumerate(case.racks) if rack], orient="row",
                                schema={"machine": pl.UInt32, "attribute": pl.String, "value": pl.String}),
        changes=pl.DataFrame([(time, machine, there, float(cpu), float(memory))
                              for time, machine, there, cpu, memory in case.changes], orient="row",
                             schema={"time": pl.Float64, "machine": pl.UInt32, "present": pl.Boolean,
                                     "cpu": pl.Float64, "memory": pl.Float64}),
    )


def run_case(case: Case, coverage: Coverage | None = None, on_event: Callable[[str], None] | None = None) -> Ending:
    """Run a case to its rest, or to the first invariant that breaks; *on_event* is told of every event in words."""
    workload, fleet = build(case)
    settings = case.settings
    if settings.placement == "bins" and not _has_bins(workload, fleet):
        settings = msgspec.structs.replace(settings, placement="first-fit")
    opened = open_federated(workload, fleet, MEGHA, settings, case.seed, INTERVAL, math.inf, case.plan,
                            _tree_file(case), compiled=False, rows=case.rows, outbox=case.outbox,
                            failures=failures_of(case), hold_back_after=case.hold_back_after)
    ending = Ending(case)
    trace: deque[str] = deque(maxlen=TRACE_KEPT)
    try:
        for line in _events(opened, case, ending, coverage or Coverage(), on_event is not None):
            trace.append(line)
            if on_event:
                on_event(line)
    except Broken as broken:
        ending.failure = f"at {ending.seconds:g} s: {broken}"
    ending.trace = list(trace)
    return ending


def _tree_file(case: Case) -> TreeFile | None:
    """Return the queues of a case and how they change, None where they do not."""
    names = sorted(set(case.queues))
    return TreeFile(change=[
        TreeChange(time=time, queue=[Queue(name=name, weight=weight)
                                     for name, weight in zip(names, weights, strict=False)])
        for time, weights in case.trees
    ]) if case.trees else None


def _has_bins(workload: Workload, fleet: Fleet) -> bool:
    """Whether there is anything to plan bins for: a task that ends and a machine that can hold it."""
    try:
        make_plan(workload, fleet)
    except InputError:
        return False
    return True


def _events(opened: Opened, case: Case, ending: Ending, coverage: Coverage, in_words: bool) -> Iterator[str]:
    """Run a case event by event; yield each in words, if wanted. Raises Broken."""
    sim = opened.simulation
    watch = Watch(sim, opened.network, opened.roles)
    while True:
        seen = coverage.look(opened)
        why, handled = next_event(opened)
        ending.events += 1
        ending.seconds = sim.clock.now
        if in_words and handled:
            yield event_words(opened)
        watch(handled, opened.due[0])
        coverage.count(seen, opened, watch)
        over = case.plan is None or ending.seconds > case.plan.over_at
        if why == LOOP_DONE or (over and ending.events % 16 == 0 and not unrest(watch)):
            break
        if ending.seconds > 2.0 * opened.network.idle.timeout + LONGEST or ending.events > EVENTS_MAX:
            raise Broken(f"(i) no rest after {ending.events} events: {unrest(watch)}")
    left = unrest(watch)
    if left:
        raise Broken(f"(i) at rest, but {left}")


def next_event(opened: Opened) -> tuple[int, bool]:
    """Let one event happen; return why the loop came back, and whether a message was handled.

    If so, `opened.due` has it, and `opened.out` the answers, up to the first of kind NOBODY. Raises Broken.
    """
    sim = opened.simulation
    opened.due[0]["kind"] = NOBODY
    forget_answers(opened.out.row["kind"])
    with np.errstate(over="ignore"):
        why = opened.step(1)
    if why == LOOP_BROKEN:
        raise Broken(f"(b) {broken_rule(sim)}")
    if why == LOOP_TIMELINE_FULL:
        sim.counts.rows_closed = 0
    if why == LOOP_LOSSES_FULL:
        sim.counts.losses = 0
    return why, bool(opened.due[0]["kind"] >= 0)


def forget_answers(kinds: np.ndarray) -> None:
    """Let the answers to one event be of kind NOBODY: all are before the first of that kind, once all rows have it."""
    if kinds[-1] != NOBODY:
        kinds[:] = NOBODY
    place = 0
    while kinds[place] != NOBODY:
        kinds[place] = NOBODY
        place += 1


# -- making a failure smaller ------------------------------------------------------------------------------------------


def shrink(case: Case, runs: int = SHRINK_RUNS) -> Ending:
    """Return the failure of the smallest case that still fails, found by leaving parts out, one after the other."""
    best = run_case(case)
    left = runs
    again = True
    while again and left > 0:
        again = False
        for smaller in _smaller(best.case):
            left -= 1
            if left <= 0:
                break
            try:
                ending = run_case(smaller)
            except Exception:
                continue
            if ending.failure:
                best, again = ending, True
                break
    return best


def _smaller(case: Case) -> Iterator[Case]:  # noqa: C901, PLR0912
    """Yield cases with something left out, the largest parts first."""
    plan = case.plan
    for size in (8, 4, 2, 1):
        for first in range(0, len(case.tasks), size):
            kept = case.tasks[:first] + case.tasks[first + size :]
            if kept and len(kept) < len(case.tasks):
                planned = case.planned[:first] + case.planned[first + size :]
                yield _without_empty_stages(msgspec.structs.replace(case, tasks=kept, planned=planned))
    if case.terms is not None:
        yield msgspec.structs.replace(case, planned=[], terms=None)
    if plan is not None:
        for name in ("crash", "cut"):
            for place in range(len(getattr(plan, name))):
                kept_faults = [one for number, one in enumerate(getattr(plan, name)) if number != place]
                yield msgspec.structs.replace(case, plan=msgspec.structs.replace(plan, **{name: kept_faults}))
        for name in ("loss", "heartbeat_loss", "duplication", "reordering", "spike"):
            if getattr(plan, name) > 0:
                yield msgspec.structs.replace(case, plan=msgspec.structs.replace(plan, **{name: 0.0}))
    for place in range(len(case.trees)):
        yield msgspec.structs.replace(case, trees=case.trees[:place] + case.trees[place + 1 :])
    for place in range(len(case.changes)):
        yield msgspec.structs.replace(case, changes=case.changes[:place] + case.changes[place + 1 :])
    if case.absent:
        yield msgspec.structs.replace(case, absent=[])
    used = {change[1] for change in case.changes} | {
        int(name.split()[1]) for name in _names(plan) if name.startswith("worker ")}
    if len(case.machines) - 1 not in used and len(case.machines) > case.settings.local_masters:
        yield msgspec.structs.replace(case, machines=case.machines[:-1], racks=case.racks[:-1],
                                      absent=[row for row in case.absent if row < len(case.machines) - 1])
    simpler = {"placement": "first-fit", "preemption": "off", "queue_order": "round-robin", "order": "fifo",
               "updates": "changes", "service_scale": 0.0, "delay_law": "constant", "global_masters": 1,
               "standby": False, "local_masters": 1}
    for name, value in simpler.items():
        if getattr(case.settings, name) != value:
            yield msgspec.structs.replace(case, settings=_settings_with(case.settings, name, value))


def _settings_with(settings: Federation, name: str, value: Any) -> Federation:
    more = {"delay_spread": 0.0} if name == "delay_law" else {}
    return msgspec.structs.replace(settings, **{name: value}, **more)


def _names(plan: FaultPlan | None) -> list[str]:
    if plan is None:
        return []
    return [crash.role for crash in plan.crash] + [name for cut in plan.cut for name in cut.between]


def _without_empty_stages(case: Case) -> Case:
    """Leave out stages that have lost their tasks, jobs that have lost their stages, and what waited for them."""
    kept = sorted({task[0] for task in case.tasks})
    number = {stage: place for place, stage in enumerate(kept)}
    jobs = sorted({case.stages[stage].job for stage in kept})
    stages = []
    for row in kept:
        stage = copy.copy(case.stages[row])
        stage.job = jobs.index(stage.job)
        stage.depends_on = [number[other] for other in stage.depends_on if other in number]
        stages.append(stage)
    queues = [case.queues[job] for job in jobs]
    shares = {name: share for name, share in case.settings.shares.items() if name in queues}
    return msgspec.structs.replace(
        case, stages=stages, queues=queues, tasks=[(number[task[0]], *task[1:]) for task in case.tasks],
        settings=msgspec.structs.replace(case.settings, shares=shares))


def describe(case: Case) -> str:
    """Say what a case is, in TOML."""
    return msgspec.toml.encode(_plain(case)).decode()


def _plain(case: Case) -> dict[str, Any]:
    defaults = msgspec.to_builtins(Federation())
    chosen = {name: value for name, value in msgspec.to_builtins(case.settings).items() if value != defaults[name]}
    plain = {**msgspec.to_builtins(case), "settings": chosen}
    for name in ("plan", "terms"):
        if plain[name] is None:
            del plain[name]
    return plain


__all__ = ["Case", "Counter", "Ending", "random_case", "run_case", "shrink"]
