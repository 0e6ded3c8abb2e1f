"""Searches the partitions of a view for one that can run a task (Megha IV-B.3, Algorithm 1).

Own partitions come first, each cluster in turn, then the other masters' partitions, the clusters in turn. Within a
partition the first machine counts that meets every constraint (one bit-vector each) and has the resources free; or
the best of those by another placement (placement.py).
"""
from subak.federation.megha.global_master.hold_back import as_held_for
from subak.federation.megha.global_master.placement import chosen_in
from subak.federation.megha.global_master.state import (
    GlobalMaster,
)
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import Topology
from subak.fleet.feasible import NOWHERE
from subak.fleet.index import SEEN
from subak.fleet.state import LOG, FleetState
from subak.marks import inlined, noinline

FOREVER = float("inf")


@inlined
def find_machine(master: GlobalMaster, topology: Topology, tasks: OpenTasks, task: int) -> int:
    """Return a machine that fits in the view, NOWHERE if none does; nothing is searched twice in the same view."""
    if tasks.lane[task] == master.holding.search.for_lane:
        return find_where_held(master, topology, tasks, tasks.shape[task])
    return search(master, master.fleet, topology, tasks, tasks.shape[task])


@noinline
def find_where_held(master: GlobalMaster, topology: Topology, tasks: OpenTasks, shape: int) -> int:
    """Return a machine for the lane for which machines are held back."""
    return search(master, as_held_for(master.fleet, master.holding, master.holding.open), topology, tasks, shape)


@inlined
def search(master: GlobalMaster, view: FleetState, topology: Topology, tasks: OpenTasks, shape: int) -> int:
    """Return a machine that fits a shape in a view."""
    if view.frontier[SEEN, shape] == view.freed_blocks[LOG] + 1:
        return NOWHERE
    master.tally.searches += 1
    machine = in_own_partitions(master, view, topology, tasks, shape)
    if machine == NOWHERE:
        machine = in_other_partitions(master, view, topology, tasks, shape)
    if machine == NOWHERE:
        view.frontier[SEEN, shape] = view.freed_blocks[LOG] + 1
    return machine


@inlined
def in_own_partitions(
    master: GlobalMaster, view: FleetState, topology: Topology, tasks: OpenTasks, shape: int
) -> int:
    """Search the master's partition of each cluster, beginning with the next in turn."""
    clusters = topology.local_masters
    cluster = master.counts.next_internal
    for _ in range(clusters):
        machine = in_partition(master, view, topology, tasks, shape, cluster, master.number)
        cluster = cluster + 1 if cluster + 1 < clusters else 0
        if machine != NOWHERE:
            master.counts.next_internal = cluster
            return machine
    return NOWHERE


@inlined
def in_other_partitions(
    master: GlobalMaster, view: FleetState, topology: Topology, tasks: OpenTasks, shape: int
) -> int:
    """Search the partitions of the other masters: one of each cluster, then the next of each."""
    clusters, masters = topology.local_masters, topology.global_masters
    turn = master.counts.next_external
    for _ in range(clusters * masters):
        cluster, owner = turn % clusters, turn // clusters
        turn = turn + 1 if turn + 1 < clusters * masters else 0
        if owner != master.number:
            machine = in_partition(master, view, topology, tasks, shape, cluster, owner)
            if machine != NOWHERE:
                master.counts.next_external = turn
                return machine
    return NOWHERE


@inlined
def in_partition(
    master: GlobalMaster, view: FleetState, topology: Topology, tasks: OpenTasks, shape: int, cluster: int, owner: int
) -> int:
    """Return a machine of a cluster's partition that fits, or NOWHERE; a closed cluster has none."""
    if master.cluster[cluster]["closed"]:
        return NOWHERE
    partition = cluster * topology.global_masters + owner
    first, end = topology.block[partition], topology.block[partition + 1]
    return chosen_in(view, master.bins, tasks, shape, topology.placement, first, end)
