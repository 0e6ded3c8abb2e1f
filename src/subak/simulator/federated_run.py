"""A federated run from Python: an architecture builds its roles, and one loop drives them."""
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numba import typeof, types

from subak.errors import RunError
from subak.federation.messages import MESSAGE, ROLES, build_outbox
from subak.federation.settings import LAWS, Federation
from subak.fleet.table import Fleet
from subak.kernel import kernel_of
from subak.placement.starts import MACHINE, RULE, RULES, TASK
from subak.simulator.drive import Progress, drive
from subak.simulator.heap import build_events
from subak.simulator.network import LAW, MEAN, SPREAD, Network, build_network
from subak.simulator.setup import Prepared, prepare
from subak.simulator.state import Simulation
from subak.workload.table import Workload

SLOTS_PER_TASK = 4  # messages and timers on their way at once, for each task, at most
SLOTS_PER_MACHINE = 2
SLOTS = 100_000  # and for the rest


@dataclass(frozen=True)
class Instance:
    """What an architecture may be tuned to when it builds its roles."""

    workload: Workload
    fleet: Fleet
    settings: Federation
    prepared: Prepared
    seed: int

    @property
    def simulation(self) -> Simulation:
        """The state of what really runs; roles may share its tables of tasks, never its amounts."""
        return self.prepared.simulation


@dataclass(frozen=True)
class Architecture:
    """Roles of one kind of federation, and the loop that drives them."""

    machine_order: Callable[[Fleet, Federation], np.ndarray]  # int32[machine], rows of the fleet or NO_ROW
    counts: Callable[[Fleet, Federation, int], tuple[int, ...]]  # how many of each of ROLES, given the machines
    build: Callable[[Instance], Any]  # the roles: a NamedTuple of arrays
    run: Callable[..., int]  # (simulation, network, roles, due, outbox, steps) -> why it came back
    outbox: Callable[[Instance], int] = lambda instance: 4096  # messages of one handler at most
    slots_per_task: Callable[[Federation], int] = lambda settings: SLOTS_PER_TASK  # messages on their way at once
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
    check: Callable[[Simulation, Network, Any], None] | None = None,
) -> dict[str, Any]:
    """Simulate one federation; return `prepared`, `driven` and `federated`. The arguments are those of `simulate`.

    Raises RunError when a role breaks a rule.
    """
    order = architecture.machine_order(fleet, settings)
    prepared = prepare(workload, fleet, "fifo", order, seed, interval, until)
    tasks, machines = len(workload.tasks), len(order)
    slots = architecture.slots_per_task(settings) * tasks + SLOTS_PER_MACHINE * machines + SLOTS
    simulation = prepared.simulation._replace(events=build_events(slots))
    prepared = Prepared(simulation, prepared.instance, prepared.machine_order, prepared.reason_of_shape)
    network = _network(architecture.counts(fleet, settings, machines), tasks, slots, settings, seed)
    instance = Instance(workload, fleet, settings, prepared, seed)
    roles = architecture.build(instance)
    due, out = np.zeros(1, MESSAGE), build_outbox(architecture.outbox(instance))
    run = _engine(typeof((simulation, network, roles, due, out)), architecture.run)
    driven = drive(
        simulation, lambda budget: run(simulation, network, roles, due, out, budget), fixed, on_progress,
        None if check is None else lambda: check(simulation, network, roles),
        lambda: _broken(simulation, due),
    )
    return {"prepared": prepared, "driven": driven, "federated": Federated(settings, network, roles)}


@functools.cache
def _engine(state: Any, run: Callable[..., int]) -> Callable[..., int]:
    engine: Callable[..., int] = kernel_of(types.int64(*state.types, types.int64), run)
    return engine


def _network(counts: tuple[int, ...], tasks: int, slots: int, settings: Federation, seed: int) -> Network:
    assert len(counts) == len(ROLES)
    network = build_network(counts, tasks, slots, seed)
    network.service[:] = settings.service_seconds()
    network.part[:] = settings.part_seconds()
    network.delay[LAW] = LAWS.index(settings.delay_law)
    network.delay[MEAN], network.delay[SPREAD] = settings.delay, settings.delay_spread
    return network


def _broken(simulation: Simulation, due: np.ndarray) -> RunError:
    note = simulation.starts.note
    return RunError(f"a worker {RULES[int(note[RULE])]}: machine {int(note[MACHINE])}, task {int(note[TASK])}, at "
                    f"{simulation.clock[0]:g} s; this is a defect of subak, please report it with the scenario")
