"""Builds Pigeon's groups of workers from a fleet."""
import numpy as np

from subak.errors import InputError
from subak.federation.batches.membership import build_membership
from subak.federation.batches.submitter import build_batch_submitter
from subak.federation.messages import NOBODY
from subak.federation.pigeon import Distributors, Groups, Pigeon, serve_pigeon
from subak.federation.settings import Federation
from subak.fleet.state import BLOCK
from subak.fleet.table import Fleet
from subak.simulator.engine.setup import NO_ROW
from subak.simulator.federated.sampling import (
    ROOM,
    batch_sizes,
    build_workers,
    own_amounts,
    shared_tables,
    stage_batches,
)
from subak.simulator.federated.simulate import Architecture, Instance

GROUP_SIZE = 100  # workers of a master, as in the authors' simulator


def group_count(fleet: Fleet, settings: Federation) -> int:
    """Return how many groups the machines are dealt to. Raises InputError when there are fewer machines."""
    machines = len(fleet.machines)
    count = settings.local_masters or -(-machines // GROUP_SIZE)
    if count > machines:
        raise InputError(f"local_masters: must be at most the number of machines, {machines}, not {count}")
    return count


def grouped_order(fleet: Fleet, settings: Federation) -> np.ndarray:
    """Return int32[machine], rows of the fleet by group: its general workers, then the kept ones, in whole blocks."""
    return _groups(fleet, settings)[0]


def _groups(fleet: Fleet, settings: Federation) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of the machines, and int64[2 group + 1], the first block of each part."""
    count, parts, blocks = group_count(fleet, settings), [], [0]
    rows = np.arange(len(fleet.machines), dtype=np.int32)
    for group in range(count):
        members = rows[group::count]
        general = max(len(members) - round(settings.short_share * len(members)), 1)
        for part in (members[:general], members[general:]):
            size = -(-len(part) // BLOCK)
            parts += [part, np.full(size * BLOCK - len(part), NO_ROW, np.int32)]
            blocks.append(blocks[-1] + size)
    return np.concatenate(parts), np.array(blocks, np.int64)


def build_pigeon(instance: Instance) -> Pigeon:
    """Return the roles of a Pigeon federation."""
    simulation, settings = instance.simulation, instance.settings
    batches = stage_batches(instance, settings.cutoff)
    blocks = _groups(instance.fleet, settings)[1]
    count, tasks = blocks.size // 2, batches.of_task.size
    groups = Groups(
        room=own_amounts(simulation.fleet, is_searched=True), block=blocks,
        of_worker=np.repeat(np.arange(2 * count) // 2, np.diff(blocks) * BLOCK).astype(np.int32),
        head=np.full((count, 2), NOBODY, np.int32), tail=np.full((count, 2), NOBODY, np.int32),
        next=np.zeros(tasks, np.int32), turns=np.zeros(count, np.int32), is_long=batches.is_long[batches.of_task],
        weight=settings.fair_weight,
    )
    return Pigeon(
        batches=batches._replace(is_long=np.zeros_like(batches.is_long)),  # no scheduler follows long tasks
        submitter=build_batch_submitter(batches, simulation.stages),
        members=build_membership(simulation.fleet, simulation.tasks, 0, instance.seed),
        distributors=Distributors(
            np.zeros(count, np.int32), np.array([instance.seed], np.uint64), np.zeros(tasks, np.int32),
            np.zeros(1, np.int64),
        ),
        groups=groups,
        workers=build_workers(instance),
    )


PIGEON = Architecture(
    machine_order=grouped_order,
    counts=lambda fleet, settings, machines: (
        1, settings.global_masters, group_count(fleet, settings), machines, 1),
    build=build_pigeon,
    serve=(serve_pigeon,) * 4,
    tables=shared_tables,
    batch=lambda roles: batch_sizes(roles.batches),
    outbox=lambda instance: (4 * instance.simulation.tasks.arrival.size + ROOM,) * 4,
)
