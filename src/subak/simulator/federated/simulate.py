"""Simulates a federation: an architecture builds its roles, one loop drives them."""
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import msgspec
import numpy as np

from subak.errors import InputError, RunError
from subak.federation.messages import MESSAGE, ROLES, Outbox, build_outbox, part_of
from subak.federation.settings import LAWS, Federation
from subak.fleet.table import Fleet
from subak.kernels.arrays import in_one_block
from subak.placement.claims import (
    OUTBOX_FULL,
    RULES,
    VIOLATED_RULE,
    VIOLATING_MACHINE,
    VIOLATING_ROLE,
    VIOLATING_TASK,
)
from subak.placement.schedulers import HOLD_BACK_AFTER
from subak.queues.tree import TreeChange, TreeFile, changed, refuse_changes
from subak.simulator.engine.run_loop import Course, Held, LoopResult, Progress
from subak.simulator.engine.setup import NO_ROW, Prepared, Terms, prepare
from subak.simulator.engine.state import Simulation
from subak.simulator.failures.draws import draw_failures
from subak.simulator.failures.plan import FailurePlan
from subak.simulator.failures.planned import NEVER, Planned
from subak.simulator.federated.engine import Services, build_services
from subak.simulator.federated.fault_plan import FaultPlan, arm_faults, quiet_seconds, refuse_late_timers, under_faults
from subak.simulator.federated.heartbeats.beats import TOUCHED, arm_beats
from subak.simulator.federated.loop import MESSAGES_FULL, QUEUES_CHANGE
from subak.simulator.federated.network import (
    Network,
    build_network,
    with_more_room,
)
from subak.workload.table import Workload

SLOTS_PER_TASK = 4  # messages and timers on their way at once, for each task, at most
SLOTS_PER_MACHINE = 2
SLOTS = 100_000  # and for the rest; there is made room for more
SLOTS_MAX = 20_000_000
OUTBOX_MORE = 16_384
MARGIN_PER_MESSAGE = 3  # of a handler's, under faults: each may be doubled, and bring an old one with it


@dataclass(frozen=True)
class Instance:
    """What an architecture may be tuned to when it builds its roles."""

    workload: Workload
    fleet: Fleet
    settings: Federation
    prepared: Prepared
    seed: int
    of_stage: np.ndarray  # int64[stage], how many tasks each has, of the whole run
    queues: TreeFile | None = None  # weights of queues
    rows: int = 0  # of attempts at a local master; 0: as many as can run, and ends that are kept
    outbox: int = OUTBOX_MORE  # messages that a walk over tasks may post before it stops, to go on afterwards
    terms: np.ndarray | None = None  # TERMS[task], on which tasks are run; None: they all finish
    hold_back_after: float = HOLD_BACK_AFTER  # s: machines are held back for who was passed over so long
    in_full: bool = True  # whether roles count what nothing goes by, for those who check them

    @property
    def simulation(self) -> Simulation:
        """The state of what really runs; roles may share its tables of tasks, never its amounts."""
        return self.prepared.simulation


# what serves no role: the function, and the tables that it works on, of the roles and what drives them
Beside = tuple[Callable[..., int], Callable[[Any, Simulation, Network, np.ndarray, Outbox], Any]]


@dataclass(frozen=True)
class Architecture:
    """Roles of one kind of federation, and the loop that drives them."""

    machine_order: Callable[[Fleet, Federation], np.ndarray]  # int32[machine], rows of the fleet or NO_ROW
    counts: Callable[[Fleet, Federation, int], tuple[int, ...]]  # how many of each of ROLES, given the machines
    build: Callable[[Instance], Any]  # the roles: a NamedTuple of arrays
    serve: tuple[Callable[..., int], ...]  # by role: (its tables, now, how many messages) -> the task of a turn
    tables: Callable[[Any, Simulation, np.ndarray, Outbox], tuple[Any, ...]]  # by role: what these functions work on
    outbox: Callable[[Instance], tuple[int, ...]]  # by role: messages of one handler, or step of a walk, at most
    slots_per_task: Callable[[Federation], int] = lambda settings: SLOTS_PER_TASK  # messages on their way at once
    mends: bool = False  # whether it gets over faults
    change_queues: Callable[[Any, Instance, TreeFile], None] | None = None  # let the queues of roles be those of a file
    cluster: Callable[[Any], np.ndarray] | None = None  # of roles that are driven: int32[machine]
    changed_to: Callable[[Instance], np.ndarray] | None = None  # of roles that are driven: int32[change]
    submitter: Callable[[Any], np.ndarray] | None = None  # int32[task], whose it is, where there are several
    number: Callable[[Any], np.ndarray] | None = None  # int64[task], by which roles name a task; None: by its place
    idle: Beside | None = None  # what passes over heartbeats that change nothing
    batch: Callable[[Any], np.ndarray] | None = None  # of roles that submit in batches: int32[task], tasks in its batch
    fixed: dict[str, Any] = field(default_factory=dict)  # settings that this architecture is defined by

    def settled(self, settings: Federation) -> Federation:
        """Return the settings with those that this architecture is defined by."""
        return msgspec.structs.replace(settings, **self.fixed)


@dataclass(frozen=True)
class Federated:
    """A finished federated run, beside what every run has."""

    settings: Federation
    network: Network
    roles: Any
    states: np.ndarray | None = None  # TASK[task] of Megha, for some of the tasks of a run; None: the roles have them


@dataclass
class Opened:
    """A federation before its first event, and as it goes on."""

    prepared: Prepared
    settings: Federation
    network: Network
    roles: Any
    due: np.ndarray  # MESSAGE[1], what was handled last
    out: Outbox  # what its handler posted
    services: Services
    change_queues: Callable[[TreeFile], None]
    changes: list[TreeChange]  # of the queues
    changed: int = 0  # how many of them there were

    @property
    def simulation(self) -> Simulation:
        """The state of what really runs."""
        return self.prepared.simulation

    def step(self, budget: int) -> int:
        """Run a number of events; return why it came back. Raises RunError where too many messages are on their way."""
        while True:
            self.network.idle.next_tree = (self.changes[self.changed].time if self.changed < len(self.changes)
                                            else math.inf)
            why = self.services.run(self.simulation, self.network, self.due, self.out, budget)
            if why == QUEUES_CHANGE:
                self.change_queues_next()
                continue
            if why != MESSAGES_FULL:
                return why
            if self.network.slot.size > SLOTS_MAX:
                now = self.simulation.clock.now
                raise RunError(f"more than {SLOTS_MAX:,} messages are on their way at {now:g} s; with shorter "
                               "delays and services, a longer heartbeat or fewer masters there are fewer")
            self.network = with_more_room(self.network)

    def change_queues_next(self) -> None:
        """Let the queues change that change next."""
        self.change_queues(changed(TreeFile(), self.changes[self.changed]))
        self.changed += 1
        self.network.owed[:] = TOUCHED
        self.services = self.services.renewed()


def open_federated(  # noqa: PLR0913, PLR0917  (every one is a word of the scenario)
    workload: Workload,
    fleet: Fleet,
    architecture: Architecture,
    settings: Federation,
    seed: int,
    interval: float,
    until: float,
    faults: FaultPlan | None = None,
    queues: TreeFile | None = None,
    compiled: bool = True,
    rows: int = 0,
    outbox: int = OUTBOX_MORE,
    failures: tuple[Planned, np.ndarray] | None = None,
    in_full: bool = True,
    of_stage: np.ndarray | None = None,
    slots: int = 0,
    hold_back_after: float = HOLD_BACK_AFTER,
) -> Opened:
    """Return a federation at rest, about to begin. The arguments are those of `simulate`; *rows*, *outbox* and
    *hold_back_after* as of `Instance`; *failures* are what befalls tasks, and on which terms they run. Not *in_full*,
    heartbeats that change nothing are passed over, and nobody counts what nothing goes by: what is recorded is the
    same. *of_stage*:
    int64[stage], the tasks of the whole run where *workload* has others; *slots*: messages on their way at once that
    there is room for at first, 0 for the usual.

    Not *compiled*, it runs as plain Python at once: for runs of some thousand messages, which are looked at one by one.
    """
    if queues is not None:
        refuse_limits(queues)
        if architecture.change_queues is None:
            refuse_changes(queues, "this federation")
    if faults is not None:
        if not architecture.mends:
            raise InputError("faults: only megha and central get over them; the other federations repeat nothing")
        settings = under_faults(settings)
        refuse_late_timers(faults, settings)
    order = architecture.machine_order(fleet, settings)
    prepared = prepare(workload, fleet, order, Terms(seed=seed, interval=interval, until=until))
    tasks, machines = len(workload.tasks), len(order)
    slots = slots or architecture.slots_per_task(settings) * tasks + SLOTS_PER_MACHINE * machines + SLOTS
    simulation = prepared.simulation
    if failures is not None:
        prepared = replace(prepared, simulation=simulation._replace(cut=np.full(tasks, -1.0)))
        simulation = prepared.simulation
    terms = None if failures is None else failures[1]
    stage = workload.tasks["stage"].to_numpy()
    whole = np.bincount(stage, minlength=len(workload.stages)) if of_stage is None else of_stage
    instance = Instance(workload, fleet, settings, prepared, seed, whole, queues, rows, outbox, terms, hold_back_after,
                        in_full)
    spare = architecture.outbox(instance)
    due, out = np.zeros(1, MESSAGE), build_outbox(max(spare), instance.outbox)
    margin = (MARGIN_PER_MESSAGE if faults is not None else 1) * out.row.size + 1
    slots = max(slots, margin + SLOTS)
    network = _network(architecture.counts(fleet, settings, machines), tasks, slots, settings, seed)
    network.counts.margin = margin
    network.idle.timeout = quiet_seconds(settings, hold_back_after)
    if failures is not None:
        network = _with_planned(network, *failures)
    if faults is not None:
        network = arm_faults(faults, settings, network, order, hold_back_after)
    roles = architecture.build(instance)
    network = _told_of(network, architecture, roles, instance, order)
    simulation, network, roles, due, out = in_one_block((simulation, network, roles, due, out))
    prepared = replace(prepared, simulation=simulation)
    instance = replace(instance, prepared=prepared)
    if architecture.idle is not None and not in_full and faults is None:
        charged = roles.topology.size if settings.updates == "full" else np.zeros(1, np.int32)
        arm_beats(network.beats, settings, network.first, network.service, network.part, charged)
    services = build_services(*_served(architecture, roles, network, simulation, due, out, spare),
                              (simulation, network, due, out) if compiled else None)
    change = architecture.change_queues
    return Opened(prepared, settings, network, roles, due, out, services,
                  lambda file: None if change is None else change(roles, instance, file),
                  list(queues.change) if queues is not None else [])


def _served(
    architecture: Architecture, roles: Any, network: Network, simulation: Simulation, due: np.ndarray, out: Outbox,
    spare: tuple[int, ...],
) -> tuple[tuple[Callable[..., int], ...], tuple[Any, ...]]:
    """Return the functions that serve the roles, behind them what passes over heartbeats; tables.

    *spare*: as of the outbox, by role.
    """
    serve = list(architecture.serve)
    tables = [each._replace(out=part_of(out, most))
              for each, most in zip(architecture.tables(roles, simulation, due, out), spare, strict=True)]
    idle = architecture.idle
    serve.append(serve[0] if idle is None else idle[0])  # if there is none, nobody asks for it
    tables.append(tables[0] if idle is None else idle[1](roles, simulation, network, due, out))
    return tuple(serve), tuple(tables)


class Simulated(TypedDict):
    """What a federation's simulation adds to an outcome."""

    prepared: Prepared
    loop_result: LoopResult
    federated: Federated


def simulate_federated(  # noqa: PLR0913, PLR0917  (every one is a word of the scenario)
    workload: Workload,
    fleet: Fleet,
    architecture: Architecture,
    settings: Federation,
    seed: int,
    interval: float,
    fixed: bool,
    until: float,
    on_progress: Callable[[Progress], None] | None = None,
    check: Callable[..., None] | None = None,
    faults: FaultPlan | None = None,
    queues: TreeFile | None = None,
    failures: FailurePlan | None = None,
    hold_back_after: float = HOLD_BACK_AFTER,
) -> Simulated:
    """Simulate one federation; return `prepared`, `loop_result` and `federated`. The arguments are those of `simulate`.

    Raises RunError when a role breaks a rule.
    """
    drawn = None if failures is None else _drawn(failures, architecture, workload, seed)
    opened = open_federated(workload, fleet, architecture, settings, seed, interval, until, faults, queues,
                            failures=drawn, in_full=check is not None, hold_back_after=hold_back_after)
    simulation, roles = opened.simulation, opened.roles
    held = Held(simulation, opened.step, lambda: broken_rule(simulation))
    loop_result = Course(held, fixed).drive(
        on_progress, None if check is None else lambda: check(simulation, opened.network, roles))
    federated = Federated(opened.settings, opened.network, roles)
    return {"prepared": opened.prepared, "loop_result": loop_result, "federated": federated}


def refuse_limits(file: TreeFile) -> None:
    """Raise InputError where a queue has a limit, which a federation does not keep."""
    queues = [*file.queue, *(queue for change in file.change for queue in change.queue)]
    limited = next((queue for queue in queues if queue.limit < math.inf), None)
    if limited is not None:
        raise InputError(f"queues: {limited.name} has the limit {limited.limit:g}; a federation heeds the weights of "
                         "queues, and no limits")


def _drawn(
    failures: FailurePlan, architecture: Architecture, workload: Workload, seed: int
) -> tuple[Planned, np.ndarray]:
    """Return what befalls the tasks of a run, and on which terms they are run."""
    if not architecture.mends:
        raise InputError("failures: only megha and central know of them; in the other federations every task finishes")
    return draw_failures(failures, workload, seed)


def _network(counts: tuple[int, ...], tasks: int, slots: int, settings: Federation, seed: int) -> Network:
    assert len(counts) == len(ROLES)
    network = build_network(counts, tasks, slots, seed)
    network.service[:] = settings.service_seconds()
    network.part[:] = settings.part_seconds()
    network.delay.law = LAWS.index(settings.delay_law)
    network.delay.mean, network.delay.spread = settings.delay, settings.delay_spread
    return network


def _with_planned(network: Network, planned: Planned, terms: np.ndarray) -> Network:
    """Return the network on which tasks fail as planned; the run goes on while any may still wait for too long."""
    by_time = np.argsort(planned.cancel_at, kind="stable")[: int((planned.cancel_at < NEVER).sum())]
    longest = terms["wait_max"][terms["wait_max"] < NEVER].max(initial=0.0)
    network.idle.timeout += longest
    return network._replace(
        planned=planned, why=np.zeros(planned.fails.size, np.int8), failed=np.zeros(planned.fails.size, np.int16),
        failed_seconds=np.zeros(planned.fails.size),
        cancel_time=planned.cancel_at[by_time],
        cancel_task=by_time.astype(np.int32))


def _told_of(
    network: Network, architecture: Architecture, roles: Any, instance: Instance, order: np.ndarray
) -> Network:
    """Return the network, knowing what it must of the architecture's roles."""
    arrival = instance.simulation.tasks.arrival
    network = network._replace(is_there=instance.fleet.machines["present"].to_numpy()[order] & (order != NO_ROW),
                               arrival=arrival, arriving=np.arange(arrival.size, dtype=np.int32))
    if architecture.cluster is not None:
        cluster = architecture.cluster(roles)
        network.counts.driven, network.counts.clusters = 1, cluster.max() + 1
        network = network._replace(cluster=cluster)
    if architecture.changed_to is not None:
        network = network._replace(changed_to=architecture.changed_to(instance))
    if architecture.submitter is not None:
        network = network._replace(submitter=architecture.submitter(roles))
    if architecture.number is not None:
        network = network._replace(number=architecture.number(roles))
    if architecture.batch is not None:
        network = network._replace(batch=architecture.batch(roles))
    return network


def broken_rule(simulation: Simulation) -> RunError:
    """Word the rule that a role broke: a worker that answers what cannot be, or one whose outbox is full."""
    violation = [int(each) for each in simulation.claims.violation]
    rule = RULES[violation[VIOLATED_RULE]]
    said = (f"a {ROLES[violation[VIOLATING_ROLE]]} {rule}" if violation[VIOLATED_RULE] == OUTBOX_FULL else
            f"a worker {rule}: machine {violation[VIOLATING_MACHINE]}, task {violation[VIOLATING_TASK]}")
    return RunError(f"{said}, at {simulation.clock.now:g} s; this is a defect of subak, "
                    "please report it with the scenario")
