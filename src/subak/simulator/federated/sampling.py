"""Builds federations whose schedulers sample workers or deal tasks to groups."""
import math

import numpy as np

from subak.federation.batches.membership import build_membership
from subak.federation.batches.reservations import build_reservations
from subak.federation.batches.submitter import build_batch_submitter
from subak.federation.batches.table import Batches, build_batches
from subak.federation.batches.worker import Workers
from subak.federation.messages import NOBODY, Outbox
from subak.federation.sampling.central_scheduler import SENT, Central
from subak.federation.sampling.dodoor import LOADS_KEPT, Dodoor, Loads, serve_dodoor
from subak.federation.sampling.eagle import NEVER, Eagle, Sharing, serve_eagle
from subak.federation.sampling.hawk import Hawk, Thieves, serve_hawk
from subak.federation.sampling.sparrow import Schedulers, Sparrow, serve_sparrow
from subak.federation.serving import SharedTables
from subak.federation.settings import Federation
from subak.fleet.index import MOST
from subak.fleet.state import FleetState, padded, summaries
from subak.fleet.table import Fleet
from subak.simulator.engine.state import Simulation
from subak.simulator.federated.simulate import Architecture, Instance

SNAPSHOTS = 4096  # of Eagle's bit-vector that are kept; who knows only older ones knows nothing
ROOM = 1024  # messages of a handler that no count of tasks bounds


def build_sparrow(instance: Instance) -> Sparrow:
    """Return the roles of a Sparrow federation."""
    return _sampling(instance, math.inf, 0)


def build_hawk(instance: Instance) -> Hawk:
    """Return the roles of a Hawk federation; the central scheduler is the last."""
    sparrow = _sampling(instance, instance.settings.cutoff, kept_for_short(instance))
    number, settings = instance.settings.global_masters, instance.settings
    sparrow.batches.scheduler[sparrow.batches.is_long] = number
    workers, tasks = sparrow.members.workers, sparrow.batches.of_task.size
    central = Central(
        number=number, long_tasks=np.zeros(workers, np.int32), work=np.zeros(workers), running=np.zeros(workers),
        running_work=np.zeros(workers), running_since=np.zeros(workers), share=np.zeros(tasks),
        begun=np.full(tasks, SENT), sent_to=np.zeros(tasks, np.int32), waiting=np.zeros(workers),
        worker=np.zeros(workers, np.int32),
    )
    return Hawk(sparrow, central, Thieves(np.zeros(workers, np.int32), settings.steal_attempts))


def build_eagle(instance: Instance) -> Eagle:
    """Return the roles of an Eagle federation."""
    hawk = build_hawk(instance)
    hawk = hawk._replace(sparrow=_sticky(hawk.sparrow))
    blocks = hawk.sparrow.members.able.shape[1]
    long_batches = int(hawk.sparrow.batches.is_long.sum())
    return Eagle(hawk, Sharing(
        marked=np.zeros(blocks, np.uint64), snapshot=np.zeros((min(long_batches + 1, SNAPSHOTS), blocks), np.uint64),
        taken=np.zeros(1, np.int64), brought=np.full(hawk.sparrow.queues.head.size, NEVER),
        known=np.full(instance.settings.global_masters + 1, NEVER), starvation_limit=instance.settings.starvation_limit,
        estimate_min=float(hawk.sparrow.batches.estimate.min()),
        request_min=instance.simulation.tasks.request.min(axis=1),
    ))


def build_dodoor(instance: Instance) -> Dodoor:
    """Return the roles of a Dodoor federation; the data store is in the place of the one local master."""
    sparrow, settings = _sampling(instance, math.inf, 0), instance.settings
    resources, workers = sparrow.workers.own.capacity.shape
    tasks, schedulers, load = sparrow.batches.of_task.size, settings.global_masters, (resources + 1, workers)
    machines = instance.simulation.fleet.machines
    return Dodoor(sparrow, Loads(
        held=np.zeros(load), tasks_held=np.zeros(workers, np.int32), told=np.zeros(load), stored=np.zeros(load),
        snapshot=np.zeros((LOADS_KEPT, *load)), sent=np.ones(1, np.int64), known=np.zeros(schedulers, np.int64),
        decisions=np.zeros(1, np.int64), unreported=np.full(schedulers, NOBODY, np.int32),
        unreported_count=np.zeros(schedulers, np.int32), next=np.full(tasks, NOBODY, np.int32),
        is_listed=np.zeros(tasks, np.bool_), sent_to=np.full(tasks, NOBODY, np.int32),
        workers=machines, push_tasks=max(round(settings.push_ratio * machines), 1), report_tasks=settings.report_tasks,
        duration_weight=settings.duration_weight,
    ))


def _sticky(roles: Sparrow) -> Sparrow:
    """Return the same roles, with reservations that stay with their workers."""
    return roles._replace(workers=roles.workers._replace(sticky=np.full(roles.batches.of_task.size, NOBODY, np.int32)))


def kept_for_short(instance: Instance) -> int:
    """Return how many workers are kept for short jobs; one at least is not."""
    workers = instance.simulation.fleet.machines
    return min(round(instance.settings.short_share * workers), workers - 1)


def _sampling(instance: Instance, cutoff: float, general: int) -> Sparrow:
    batches = stage_batches(instance, cutoff)
    simulation, settings = instance.simulation, instance.settings
    workers = build_workers(instance)
    count = batches.estimate.size
    return Sparrow(
        batches=batches,
        submitter=build_batch_submitter(batches, simulation.stages),
        members=build_membership(simulation.fleet, simulation.tasks, general, instance.seed),
        schedulers=Schedulers(
            order=batches.task.copy(), handed=np.zeros(count, np.int32), owed=np.zeros(count, np.int32),
            stranded=np.zeros(count, np.int32), stranded_count=np.zeros(1, np.int64),
            nobody=np.zeros(simulation.fleet.allowed.shape[1], np.uint64), probe_ratio=settings.probe_ratio,
            probes_min=settings.probes_min,
        ),
        workers=workers,
        queues=build_reservations(simulation.fleet.free.shape[1], _probes(batches, settings)),
    )


def stage_batches(instance: Instance, cutoff: float) -> Batches:
    """Return the batches of a workload; jobs go round the schedulers."""
    workload, settings = instance.workload, instance.settings
    return build_batches(
        instance.simulation.tasks, workload.tasks["stage"].to_numpy().astype(np.int64),
        workload.stages["job"].to_numpy().astype(np.int64), settings.global_masters, cutoff,
        settings.sampling == "task",
    )


def build_workers(instance: Instance) -> Workers:
    """Return the workers, all idle."""
    simulation = instance.simulation
    fleet, changes, tasks = simulation.fleet, simulation.changes, simulation.tasks.arrival.size
    machines = fleet.free.shape[1]
    listed = tasks if changes.time.size else 0
    return Workers(
        own=own_amounts(fleet, is_searched=False),
        long_queued=np.zeros(machines, np.int32), long_running=np.zeros(machines, np.int32),
        running=np.full(machines, NOBODY, np.int32), earlier=np.zeros(listed, np.int32), begun=np.zeros(listed),
        sticky=np.zeros(0, np.int32),
        capacity=changes.capacity.copy(), is_there=changes.present.copy(),
    )


def own_amounts(fleet: FleetState, is_searched: bool) -> FleetState:
    """Return what the workers, all idle, have: absent ones have 0 of everything.

    A fleet that is never searched needs no summaries: they are set so high that nothing ever has to lower them.
    """
    free = padded(fleet.capacity[:, : fleet.machines], 0)
    largest, at_largest = summaries(free)
    return fleet._replace(
        free=free, capacity=free.copy(),
        block_free_max=largest if is_searched else np.full_like(largest, MOST), block_at_max=at_largest,
        freed_blocks=np.zeros_like(fleet.freed_blocks),
        frontier=np.zeros_like(fleet.frontier), used=np.zeros_like(fleet.used), present=fleet.present.copy(),
        random=fleet.random.copy(),
    )


def _probes(batches: Batches, settings: Federation) -> int:
    sizes = np.diff(batches.first)
    return int(np.maximum(np.maximum(sizes, settings.probes_min), np.ceil(settings.probe_ratio * sizes)).sum())


def shared_tables(
    roles: tuple[object, ...], simulation: Simulation, due: np.ndarray, out: Outbox
) -> tuple[SharedTables, ...]:
    """Return what the function works on that serves every role."""
    return (SharedTables(roles, simulation.tasks, due, out),) * 4


def batch_sizes(batches: Batches) -> np.ndarray:
    """Return int32[task], how many tasks were submitted with each."""
    return np.diff(batches.first).astype(np.int32)[batches.of_task]


def _given(fleet: Fleet, settings: Federation) -> np.ndarray:
    return np.arange(len(fleet.machines), dtype=np.int32)


def _slots_of_dodoor(settings: Federation) -> int:
    """Return how many messages are on their way at once for a task: itself, its decision, its end and the load then."""
    return 4


def _outbox_of_dodoor(instance: Instance) -> tuple[int, ...]:
    """Return room for all that a handler may post: every task with its decision, or the loads to every scheduler."""
    return (4 * instance.simulation.tasks.arrival.size + instance.settings.global_masters + ROOM,) * 4


def _slots_per_task(settings: Federation) -> int:
    """Return how many messages are on their way at once for a task: all its probes, and what is said of it itself."""
    return max(math.ceil(settings.probe_ratio), settings.probes_min) + 3


def _outbox(instance: Instance) -> tuple[int, ...]:
    """Return room for all that a handler may post: at most every task and every reservation comes back at once."""
    tasks = instance.simulation.tasks.arrival.size
    return (2 * tasks + _slots_per_task(instance.settings) * tasks + ROOM,) * 4


SPARROW = Architecture(
    machine_order=_given,
    counts=lambda fleet, settings, machines: (1, settings.global_masters, 1, machines, 1),
    build=build_sparrow,
    serve=(serve_sparrow,) * 4,
    tables=shared_tables,
    batch=lambda roles: batch_sizes(roles.batches),
    outbox=_outbox,
    slots_per_task=_slots_per_task,
)
HAWK = Architecture(
    machine_order=_given,
    counts=lambda fleet, settings, machines: (1, settings.global_masters + 1, 1, machines, 1),
    build=build_hawk,
    serve=(serve_hawk,) * 4,
    tables=shared_tables,
    batch=lambda roles: batch_sizes(roles.sparrow.batches),
    outbox=_outbox,
    slots_per_task=_slots_per_task,
)
EAGLE = Architecture(
    machine_order=_given,
    counts=lambda fleet, settings, machines: (1, settings.global_masters + 1, 1, machines, 1),
    build=build_eagle,
    serve=(serve_eagle,) * 4,
    tables=shared_tables,
    batch=lambda roles: batch_sizes(roles.hawk.sparrow.batches),
    outbox=_outbox,
    slots_per_task=_slots_per_task,
)
DODOOR = Architecture(
    machine_order=_given,
    counts=lambda fleet, settings, machines: (1, settings.global_masters, 1, machines, 1),
    build=build_dodoor,
    serve=(serve_dodoor,) * 4,
    tables=shared_tables,
    batch=lambda roles: batch_sizes(roles.sparrow.batches),
    outbox=_outbox_of_dodoor,
    slots_per_task=_slots_of_dodoor,
)
