"""Match (Megha IV-B.3 and Algorithm 1): where a task could run, on what a global master believes; and its request.

Own partitions come first, each cluster in turn, then the other masters' partitions, the clusters in turn. Within a
partition the first machine counts that meets every constraint (one bit-vector each) and has the resources free; or
the best of those by another placement (placing.py).
"""
from subak.federation.megha.global_master.placement import chosen_in, hold
from subak.federation.megha.global_master.state import (
    LAUNCHES,
    LIFE,
    LIFE_BITS,
    NEXT_EXTERNAL,
    NEXT_INTERNAL,
    PHASE_FLYING,
    REPARTITIONS,
    SEARCHES,
    GlobalMaster,
)
from subak.federation.megha.layout import Layout, Rules
from subak.federation.messages import GO, LAUNCH, REPARTITION, RETRY, Outbox, post
from subak.fleet.feasible import NOWHERE
from subak.fleet.index import SEEN
from subak.fleet.state import LOG
from subak.kernel import inlined
from subak.workload.tasks import Tasks

FOREVER = float("inf")


@inlined
def find_machine(master: GlobalMaster, layout: Layout, tasks: Tasks, task: int) -> int:
    """Return a machine that fits in the view, NOWHERE if none does; nothing is searched twice in the same view."""
    shape = tasks.shape[task]
    view = master.fleet
    if view.frontier[SEEN, shape] == view.freed_blocks[LOG] + 1:
        return NOWHERE
    master.tally[SEARCHES] += 1
    machine = in_own_partitions(master, layout, tasks, shape)
    if machine == NOWHERE:
        machine = in_other_partitions(master, layout, tasks, shape)
    if machine == NOWHERE:
        view.frontier[SEEN, shape] = view.freed_blocks[LOG] + 1
    return machine


@inlined
def in_own_partitions(master: GlobalMaster, layout: Layout, tasks: Tasks, shape: int) -> int:
    """Search the master's partition of each cluster, beginning with the next in turn."""
    clusters = layout.local_masters
    cluster = master.word[NEXT_INTERNAL]
    for _ in range(clusters):
        partition = cluster * layout.global_masters + master.number
        cluster = cluster + 1 if cluster + 1 < clusters else 0
        machine = in_partition(master, layout, tasks, shape, partition)
        if machine != NOWHERE:
            master.word[NEXT_INTERNAL] = cluster
            return machine
    return NOWHERE


@inlined
def in_other_partitions(master: GlobalMaster, layout: Layout, tasks: Tasks, shape: int) -> int:
    """Search the partitions of the other masters: one of each cluster, then the next of each."""
    clusters, masters = layout.local_masters, layout.global_masters
    turn = master.word[NEXT_EXTERNAL]
    for _ in range(clusters * masters):
        cluster, owner = turn % clusters, turn // clusters
        turn = turn + 1 if turn + 1 < clusters * masters else 0
        if owner != master.number:
            machine = in_partition(master, layout, tasks, shape, cluster * masters + owner)
            if machine != NOWHERE:
                master.word[NEXT_EXTERNAL] = turn
                return machine
    return NOWHERE


@inlined
def in_partition(master: GlobalMaster, layout: Layout, tasks: Tasks, shape: int, partition: int) -> int:
    """Return a machine of a partition that fits, or NOWHERE."""
    first, end = layout.block[partition], layout.block[partition + 1]
    return chosen_in(master.fleet, master.bins, tasks, shape, layout.placement, first, end)


@inlined
def note_flight(master: GlobalMaster, layout: Layout, tasks: Tasks, task: int, machine: int) -> None:
    """Take a task's amounts in the view, before the local master has agreed."""
    hold(master.fleet, master.bins, tasks, task, machine)
    consume(master, tasks, task, layout.machine[machine]["cluster"], layout.task[task]["queue"], 1)
    master.task[task]["phase"], master.task[task]["machine"], master.task[task]["flying"] = PHASE_FLYING, machine, True


@inlined
def consume(master: GlobalMaster, tasks: Tasks, task: int, cluster: int, queue: int, sign: int) -> None:
    """Count a task's amounts in or out of what its queue uses."""
    shape = tasks.shape[task]
    for resource in range(master.total.shape[1]):
        amount = sign * tasks.request[resource, shape]
        master.consumed[cluster, queue, resource] += amount
        master.total[queue, resource] += amount


@inlined
def request_launch(
    master: GlobalMaster, layout: Layout, rules: Rules, task: int, kind: int, count: int, out: Outbox
) -> None:
    """Ask the local master for the attempt that the view was changed for; *count* is the queue to preempt, or 1 to hold
    the amounts for a gang.
    """
    cluster = layout.machine[master.task[task]["machine"]]["cluster"]
    master.cluster[cluster]["numbers"] += 1
    master.task[task]["attempt"] = (master.word[LIFE] << LIFE_BITS) + master.cluster[cluster]["numbers"]
    master.task[task]["sent_epoch"] = master.cluster[cluster]["epoch"]
    if layout.machine[master.task[task]["machine"]]["home"] == master.number:
        master.tally[LAUNCHES] += 1
    else:
        master.tally[REPARTITIONS] += 1
        master.task[task]["repartitioned"] += 1
    send_request(master, layout, rules, task, kind, count, out)


@inlined
def send_request(
    master: GlobalMaster, layout: Layout, rules: Rules, task: int, kind: int, count: int, out: Outbox
) -> None:
    """Send, or send again, the request for a task's attempt, and look after it later."""
    post_request(master, layout, task, kind, count, out)
    if rules.retry < FOREVER and kind != GO:
        later = post(out, RETRY, master.number, master.number, task, master.task[task]["machine"])
        later["attempt"], later["delay"], later["count"] = master.task[task]["attempt"], rules.retry, count
        later["reason"] = kind


@inlined
def post_request(
    master: GlobalMaster, layout: Layout, task: int, kind: int, count: int, out: Outbox
) -> None:
    """Send the request for a task's attempt."""
    machine = master.task[task]["machine"]
    cluster = layout.machine[machine]["cluster"]
    instance = speaker(layout, cluster, master.cluster[cluster]["epoch"])
    row = post(out, kind, master.number, instance, task, machine)
    row["attempt"], row["epoch"] = master.task[task]["attempt"], master.task[task]["sent_epoch"]
    row["seen"], row["count"], row["start"] = master.cluster[cluster]["seen"], count, master.task[task]["preempted"]
    row["last"] = master.word[LIFE]


@inlined
def launch_kind(master: GlobalMaster, layout: Layout, machine: int) -> int:
    """Return what a request for a machine is: LAUNCH on an own partition, REPARTITION on another's."""
    return LAUNCH if layout.machine[machine]["home"] == master.number else REPARTITION


@inlined
def speaker(layout: Layout, cluster: int, epoch: int) -> int:
    """Return the number of the local master that speaks for a cluster: epochs of a standby are odd."""
    return int(cluster + layout.local_masters * (epoch % 2))
