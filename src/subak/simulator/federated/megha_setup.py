"""Builds the roles of Megha from tables and settings."""
import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.federation.choices import FEWEST_TASKS, PLACEMENTS, PRIORITY, ROUND_ROBIN
from subak.federation.megha.bounds import Sizes, most_posted
from subak.federation.megha.global_master.placement import Bins
from subak.federation.megha.global_master.queue_order import QueueOrder
from subak.federation.megha.global_master.state import (
    GlobalMaster,
)
from subak.federation.megha.global_master.trees import build_queue_order, shares_of
from subak.federation.megha.jobs import ASKED, ENDING, TERMS, Jobs
from subak.federation.megha.ledger import build_ledger
from subak.federation.megha.local_master.state import (
    LocalMaster,
)
from subak.federation.megha.roles import SERVE, Megha, tables_of
from subak.federation.megha.submitter import Submitter
from subak.federation.megha.tables import (
    build_by_machine,
    build_global_master,
    build_local_master,
    build_submitter,
)
from subak.federation.megha.topology import MACHINE_PLACE, OFF, PAPER, QUEUE_PLACE, STRICT, Rules, Topology, records
from subak.federation.megha.worker import build_workers
from subak.federation.messages import NOBODY
from subak.federation.settings import Federation
from subak.fleet.shapes import find_shapes
from subak.fleet.state import BLOCK, LOG, FleetState, summaries
from subak.fleet.table import Fleet
from subak.queues.tree import TreeFile
from subak.simulator.engine.distinct import distinct_columns
from subak.simulator.engine.setup import NO_ROW
from subak.simulator.federated.heartbeats.idle import IdleTables, serve_idle
from subak.simulator.federated.network import PLACES_MASK
from subak.simulator.federated.simulate import Architecture, Instance
from subak.workload.table import Workload

CLUSTERS_USUAL = 10  # of a fleet that names only one
NAMED_MAX = 3  # queues in an error
ROWS_MORE = 4096  # rows of attempts beyond what can run at once
LEDGER_MIN, RING_MIN = 4096, 4  # entries: room for, and of which are in use at first


@dataclass(frozen=True)
class Queues:
    """Who serves whom: queues are numbered by their global master."""

    of_stage: np.ndarray  # int32[stage]
    owner: np.ndarray  # int32[queue]
    name: list[str]  # of each queue, as in the workload
    share: np.ndarray  # float64[queue]
    lane: np.ndarray  # int32[stage]
    lane_span: np.ndarray  # int32[queue, 2]: its first lane, and that behind its last
    lanes: int


def cluster_count(fleet: Fleet, settings: Federation) -> int:
    """Return the number of local masters. Raises InputError when there are fewer machines."""
    named = fleet.machines["cluster"].n_unique()
    count = settings.local_masters or (named if named > 1 else min(CLUSTERS_USUAL, len(fleet.machines)))
    if count > len(fleet.machines):
        raise InputError(f"local_masters: must be at most the number of machines, {len(fleet.machines)}, not {count}")
    return count


def clusters_of(fleet: Fleet, settings: Federation) -> np.ndarray:
    """Return int32[row]: the cluster of each machine, by its name, or dealt in turn where the numbers differ."""
    count = cluster_count(fleet, settings)
    names = fleet.machines["cluster"]
    if names.n_unique() == count:
        return names.rank("dense").to_numpy().astype(np.int32) - 1
    return (np.arange(len(fleet.machines)) % count).astype(np.int32)


def partition_order(fleet: Fleet, settings: Federation) -> np.ndarray:
    """Return int32[machine], rows of the fleet by cluster and partition, each partition filled up to whole blocks."""
    order, _ = _partitions(fleet, settings)
    return order


def _partitions(fleet: Fleet, settings: Federation) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of the machines, and int64[partition + 1], the first block of each partition."""
    cluster = clusters_of(fleet, settings)
    parts: list[np.ndarray] = []
    blocks = [0]
    for number in range(cluster_count(fleet, settings)):
        rows = np.flatnonzero(cluster == number).astype(np.int32)
        for master in range(settings.global_masters):
            part = rows[master :: settings.global_masters]
            size = -(-len(part) // BLOCK)
            parts += [part, np.full(size * BLOCK - len(part), NO_ROW, np.int32)]
            blocks.append(blocks[-1] + size)
    return np.concatenate(parts), np.array(blocks, np.int64)


def build_megha(instance: Instance) -> Megha:
    """Return the roles of a federation at rest: every view is the truth, nothing runs, nobody waits."""
    workload, settings, sim = instance.workload, instance.settings, instance.simulation
    sim.tasks.rank[:] = ranks(workload, settings, instance.of_stage)
    queues = find_queues(workload, settings, instance.queues)
    topology = _topology(instance, queues)
    rules = Rules(
        settings.heartbeat, settings.retry, settings.lease, settings.timer_slack, settings.updates == "full",
        {"off": OFF, "strict": STRICT, "paper": PAPER}[settings.preemption], settings.preemptions_max,
        settings.standby, instance.hold_back_after,
    )
    running = most_running(instance)
    jobs = _jobs(instance, queues)
    submitters = _submitters(instance, queues, jobs)
    workers = build_workers(topology, np.maximum(sim.fleet.free, 0), running)
    masters = _global_masters(instance, topology, queues, running, submitters)
    return Megha(topology, rules, jobs, submitters, masters, _local_masters(instance, topology, running), workers)


def ranks(workload: Workload, settings: Federation, of_stage: np.ndarray) -> np.ndarray:
    """Return float64[task]: within a queue the least is served first, of equals the one that arrived first.

    *of_stage*: int64[stage], how many tasks it has.
    """
    stage, arrival = workload.tasks["stage"].to_numpy(), workload.tasks["arrival"].to_numpy()
    if settings.order == PRIORITY:
        return arrival - workload.stages["priority"].to_numpy()[stage] * settings.priority_seconds
    if settings.order == FEWEST_TASKS:
        job = workload.stages["job"].to_numpy()
        return np.bincount(job, of_stage)[job][stage]
    return arrival


def find_queues(workload: Workload, settings: Federation, file: TreeFile | None = None) -> Queues:
    """Return the queues and their global masters: as given, else in turn.

    Where nothing goes by queues, and there are fewer than global masters, every job goes to the next one in turn.
    """
    masters = settings.global_masters
    names = workload.jobs["queue"].unique(maintain_order=True).to_list()
    of_job = _codes(workload.jobs["queue"], names)
    stage_job = workload.stages["job"].to_numpy()
    for what, table in (("shares", settings.shares), ("masters_of", settings.masters_of)):
        unknown = sorted(set(table) - set(names))
        if unknown:
            raise InputError(f"{what}: the workload has no queue {unknown[0]!r}; it has {', '.join(names[:NAMED_MAX])}"
                             f"{' ...' if len(names) > NAMED_MAX else ''}")
    anywhere = settings.preemption == "off" and settings.queue_order == ROUND_ROBIN and not settings.masters_of
    if len(names) < masters and anywhere:
        of_job = of_job * masters + np.arange(len(of_job)) % masters
        names = [name for name in names for _ in range(masters)]
        owner = np.arange(len(names)) % masters
    else:
        owner = np.array([settings.masters_of.get(name, turn % masters) for turn, name in enumerate(names)])
    by_owner = np.argsort(owner, kind="stable")
    number = np.empty(len(names), np.int64)
    number[by_owner] = np.arange(len(names))
    of_stage = number[of_job][stage_job]
    lane, span, lanes = _lanes(workload, of_stage, len(names))
    ordered = [names[place] for place in by_owner]
    return Queues(of_stage.astype(np.int32), owner[by_owner].astype(np.int32), ordered,
                  _shares(ordered, settings, file), lane, span, lanes)


def _codes(values: pl.Series, names: list[str]) -> np.ndarray:
    return values.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)


def _shares(names: list[str], settings: Federation, file: TreeFile | None) -> np.ndarray:
    """Return each queue's share: as given, the others dividing the rest evenly, or its guarantee in a file's tree."""
    if file is not None and not settings.shares:
        return shares_of(names, file, [True] * len(names))
    others = len(set(names) - set(settings.shares))
    rest = (1.0 - sum(settings.shares.values())) / max(others, 1)
    return np.array([settings.shares.get(name, rest) for name in names])


def _lanes(workload: Workload, queue_of_stage: np.ndarray, queues: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return int32[stage] lanes, one for each queue, shape and gang size; each queue's span of them; how many.

    Where one of a lane fits nowhere the others do not either: so a large gang holds no smaller one up.
    """
    shape = find_shapes(workload).of_stage
    keys = np.stack([queue_of_stage, shape, workload.gang_sizes()])
    distinct, lane = distinct_columns(keys)
    first = np.searchsorted(distinct[0], np.arange(queues + 1))
    span = np.stack([first[:-1], first[1:]], axis=1).astype(np.int32)
    return lane.astype(np.int32), span, distinct.shape[1]


def _gangs(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """Return int32[task] gangs (empty without any), and int32[gang], how many tasks each has."""
    gang_stages = np.flatnonzero(workload.gang_sizes())
    if gang_stages.size == 0:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    number = np.full(len(workload.stages), NOBODY)
    number[gang_stages] = np.arange(gang_stages.size)
    gang = number[workload.tasks["stage"].to_numpy()].astype(np.int32)
    return gang, np.bincount(gang[gang >= 0], minlength=gang_stages.size).astype(np.int32)


def _jobs(instance: Instance, queues: Queues) -> Jobs:
    """Return what is submitted."""
    workload, sim = instance.workload, instance.simulation
    stage, tasks = workload.tasks["stage"].to_numpy(), len(workload.tasks)
    gang, gang_size = _gangs(workload)
    stages, gangs = sim.stages, gang_size.size
    return Jobs(
        number=np.arange(tasks), mask=PLACES_MASK, state=np.zeros(tasks, np.int8),
        row=np.full(tasks, NOBODY, np.int32), asked=asked_of(workload, queues, stage), rank=sim.tasks.rank,
        shape=sim.tasks.shape, gang=gang,
        gang_size=gang_size,
        gang_row=np.full(gangs, NOBODY, np.int32), gang_left=gang_size.copy(), gang_failed=np.zeros(gangs, np.bool_),
        ending=np.zeros(tasks, ENDING), terms=_everybody_finishes() if instance.terms is None else instance.terms,
        given_up=np.zeros(stages.left.size, np.bool_), to_give_up=np.zeros(stages.left.size, np.int32), stages=stages,
    )


def asked_of(workload: Workload, queues: Queues, stage: np.ndarray) -> np.ndarray:
    """Return ASKED[task] of the tasks of these stages."""
    queue = queues.of_stage[stage]
    return records(ASKED, queue=queue, lane=queues.lane[stage], priority=workload.stages["priority"].to_numpy()[stage],
                   owner=queues.owner[queue])


def _everybody_finishes() -> np.ndarray:
    """Return TERMS[1]: tasks run as long as they do, and are begun again as often as they are lost."""
    terms = np.zeros(1, TERMS)
    terms["losses_max"], terms["wait_max"], terms["run_max"] = np.iinfo(np.int16).max, np.inf, np.inf
    return terms


def _submitters(instance: Instance, queues: Queues, jobs: Jobs) -> list[Submitter]:
    """Return the submitters, each with room for all tasks of its queues: memory is used as they are open at once."""
    settings, tasks = instance.settings, instance.simulation.tasks
    mine = np.bincount(queues.owner[queues.of_stage], instance.of_stage, settings.global_masters)
    owners = np.minimum(mine, tasks.arrival.size)
    of_gangs = np.zeros(settings.global_masters, np.int64)
    if jobs.gang.size:
        with_gang = np.flatnonzero(jobs.gang != NOBODY)
        of_gangs = np.bincount(jobs.asked["owner"][with_gang][np.unique(jobs.gang[with_gang], return_index=True)[1]],
                               minlength=settings.global_masters)
    return [build_submitter(number, int(owners[number]), int(of_gangs[number]), tasks.request, tasks.constraint_set,
                            settings.retry) for number in range(settings.global_masters)]


def _topology(instance: Instance, queues: Queues) -> Topology:
    fleet, settings = instance.fleet, instance.settings
    order, blocks = _partitions(fleet, settings)
    clusters, masters = cluster_count(fleet, settings), settings.global_masters
    partition = np.repeat(np.arange(clusters * masters), np.diff(blocks) * BLOCK)
    configurations, configuration, _ = _configurations(instance, order)
    return Topology(
        masters, clusters, records(MACHINE_PLACE, cluster=partition // masters, home=partition % masters,
                                configuration=configuration),
        np.bincount((partition // masters)[order != NO_ROW], minlength=clusters).astype(np.int32), blocks,
        records(QUEUE_PLACE, owner=queues.owner, share=queues.share),
        configurations, PLACEMENTS.index(settings.placement), clusters,
        np.ones(clusters, np.bool_),
    )


def _configurations(instance: Instance, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct capacities (int32[resource, configuration]), each machine's at time 0, and each change's."""
    sim, fleet = instance.simulation, instance.fleet
    there = order != NO_ROW
    present = fleet.machines["present"].to_numpy()[order] & there
    capacity = np.where(there, fleet.capacity[:, order], 0)
    everything = np.concatenate([capacity, sim.changes.capacity], axis=1)
    distinct, number = distinct_columns(everything)
    now = np.where(present, number[: len(order)], NOBODY)
    later = np.where(sim.changes.present, number[len(order) :], NOBODY)
    return np.ascontiguousarray(distinct.astype(np.int32)), now.astype(np.int32), later.astype(np.int32)


def most_running(instance: Instance) -> int:
    """Return a bound on the attempts that are held at once: every task holds a least amount of some resource."""
    sim = instance.simulation
    bound = 0.0
    for row, request in enumerate(sim.tasks.request):
        asked = request[request > 0]
        if asked.size:
            capacity = np.maximum(instance.fleet.capacity[row], 0).astype(np.float64)
            bound += float((capacity // asked.min()).sum())
    return int(min(bound, instance.of_stage.sum())) + ROWS_MORE


def believed(fleet: FleetState) -> FleetState:
    """Return a role's own picture of an empty fleet; a machine that is not there has 0 free (`shift`)."""
    free = np.maximum(fleet.free, 0)
    largest, at_largest = summaries(free)
    return fleet._replace(
        free=free, capacity=fleet.capacity.copy(), block_free_max=largest, block_at_max=at_largest,
        freed_blocks=np.zeros(LOG + 1, np.int64), frontier=np.zeros_like(fleet.frontier), used=fleet.used.copy(),
        present=fleet.present.copy(), random=fleet.random.copy(), open=fleet.open.copy(),
    )


def _global_masters(
    instance: Instance, topology: Topology, queues: Queues, running: int, submitters: list[Submitter]
) -> list[GlobalMaster]:
    """Return the global masters."""
    held = running if instance.settings.preemption != "off" else 0
    counted = instance.simulation.fleet.free.shape[0] if instance.in_full or goes_by_use(instance.settings) else 0
    same, bins = _queue_order(instance, queues, instance.queues), _bins(instance)
    return [build_global_master(
        submitter, topology, believed(instance.simulation.fleet),
        own=np.flatnonzero(queues.owner == submitter.number), lanes=queues.lanes, lane_span=queues.lane_span,
        lane_places=queues.lanes, queue_order=_own_queue_order(same),
        bins=bins._replace(running=np.zeros_like(bins.running)), held=held, counted=counted,
    ) for submitter in submitters]


def goes_by_use(settings: Federation) -> bool:
    """Whether global masters choose by what queues use: whose tasks are preempted, or whose turn it is."""
    return settings.preemption != "off" or settings.queue_order != ROUND_ROBIN


def _queue_order(instance: Instance, queues: Queues, file: TreeFile | None) -> QueueOrder:
    """Return the tree that global masters choose their queues by."""
    names = [resource.name for resource in instance.workload.resources]
    return build_queue_order(instance.settings.queue_order, queues.name, file, names)


def change_queues(roles: Megha, instance: Instance, file: TreeFile) -> None:
    """Let the queues of a federation that runs have the weights of a file: their shares, and whose turn it is."""
    queues = find_queues(instance.workload, instance.settings, file)
    roles.topology.queue["share"] = queues.share
    order = _queue_order(instance, queues, file)
    for number, master in enumerate(roles.masters):
        roles.masters[number] = master._replace(queue_order=_own_queue_order(order))


def _own_queue_order(order: QueueOrder) -> QueueOrder:
    """Return a tree of one master's own, that was told nothing; what it is made of is the same for all."""
    same = order.tree
    tree = same._replace(
        link=same.link.copy(), value=same.value.copy(), waiting=np.zeros_like(same.waiting),
        running=np.zeros_like(same.running), vector=np.ones_like(same.vector), dominant=np.ones_like(same.dominant),
        mode=same.mode.copy(),
    )
    return order._replace(tree=tree, told=np.full_like(order.told, NOBODY))


def _bins(instance: Instance) -> Bins:
    """Return what the machines emulate by a plan for this workload and fleet; nothing unless masters place by bins."""
    if instance.settings.placement == "bins":
        from subak.simulator.engine.bins import planned_bins  # noqa: PLC0415  (scipy and HiGHS take a while to load)

        return planned_bins(instance.workload, instance.fleet, partition_order(instance.fleet, instance.settings))
    nothing = np.zeros((0, instance.simulation.fleet.free.shape[1]), np.int16)
    return Bins(nothing, np.zeros(0, np.int32), nothing)


def _local_masters(instance: Instance, topology: Topology, running: int) -> list[LocalMaster]:
    """Return the local masters, and their standbys; all of a side share the tables by machine."""
    sides, clusters = 2 if instance.settings.standby else 1, topology.local_masters
    rows = instance.rows or (2 * running if math.isfinite(instance.settings.retry) else running)
    places = int(np.diff(topology.block[:: topology.global_masters]).max()) * BLOCK
    entries = 1 << max(LEDGER_MIN, 4 * (2 * places + min(running, 64 * places))).bit_length()
    result: list[LocalMaster] = []
    for side in range(sides):
        shared = build_by_machine(topology, believed(instance.simulation.fleet))
        result += [build_local_master(side * clusters + cluster, topology, shared, rows,
                                      build_ledger(entries, RING_MIN))
                   for cluster in range(clusters)]
    return result


def megha_counts(fleet: Fleet, settings: Federation, machines: int) -> tuple[int, ...]:
    """Return how many of each role there are."""
    sides = 2 if settings.standby else 1
    return (settings.global_masters, settings.global_masters, sides * cluster_count(fleet, settings), machines, 1)


def megha_outbox(instance: Instance) -> tuple[int, ...]:
    """Return the most messages of a handler, by role."""
    settings, fleet = instance.settings, instance.fleet
    attempts = most_on_a_machine(instance)
    sizes = Sizes(
        gang=int(_gangs(instance.workload)[1].max(initial=1)), attempts=attempts,
        kept=most_running(instance) if math.isfinite(settings.retry) else attempts,
        machines=int(np.bincount(clusters_of(fleet, settings)).max()), global_masters=settings.global_masters,
        local_masters=cluster_count(fleet, settings))
    return tuple(most_posted(role, sizes) for role in range(len(SERVE)))


def most_on_a_machine(instance: Instance) -> int:
    """Return a bound on the attempts that a machine holds at once, like `most_running`."""
    sim, bound = instance.simulation, 0.0
    for row, request in enumerate(sim.tasks.request):
        asked = request[request > 0]
        if asked.size:
            largest = max(instance.fleet.capacity[row].max(initial=0), sim.changes.capacity[row].max(initial=0))
            bound += float(largest // asked.min())
    return int(min(bound, instance.of_stage.sum())) + 1


MEGHA = Architecture(
    machine_order=partition_order,
    counts=megha_counts,
    build=build_megha,
    serve=SERVE,
    tables=lambda roles, simulation, due, out: tables_of(roles, simulation.tasks, simulation.losses.task, due, out),
    outbox=megha_outbox,
    mends=True,
    change_queues=change_queues,
    cluster=lambda roles: np.ascontiguousarray(roles.topology.machine["cluster"]),
    changed_to=lambda instance: _configurations(instance, partition_order(instance.fleet, instance.settings))[2],
    submitter=lambda roles: np.ascontiguousarray(roles.jobs.asked["owner"]),
    number=lambda roles: roles.jobs.number,
    idle=(serve_idle, lambda roles, simulation, network, due, out: IdleTables(
        roles.masters, roles.locals, roles.rules, network.beats, network.owed, network.events.size)),
)
CENTRAL = replace(MEGHA, fixed={"global_masters": 1, "local_masters": 1})
