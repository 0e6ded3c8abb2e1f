"""Preempts for fair shares (Megha IV-C, Algorithm 2): a queue below its share takes from the one furthest above.

The share a queue uses is its dominant one: the largest, over the resources, of what its tasks hold of the federation.
It matters only when a task fits nowhere. In the paper a queue may preempt while its share is not below what it
consumes; then a preemption can lift it above its share, and the queue that lost preempts it in turn, for ever. With
the rule STRICT it may only do so if it stays within its share, so a queue is never the next to lose what it gained. It
may lose what it launches beyond that, where victims left more room than it needed, or to a master that has not heard
yet of an end, to which the queue is larger than it is; PAPER is there to be compared.

Tasks of gangs are never preempted, nor those that were preempted as often as the rules allow.
"""
import numpy as np

from subak.federation.megha.global_master.state import GlobalMaster
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import PAPER, Rules, Topology
from subak.federation.messages import NOBODY
from subak.fleet.feasible import NOWHERE
from subak.fleet.state import BLOCK, NO_BITS, ONE
from subak.marks import inlined, noinline

SLACK = 1e-9  # of a share, for the rounding of its quotient


@inlined
def dominant_share(master: GlobalMaster, tasks: OpenTasks, queue: int, shape: int) -> float:
    """Return the largest share a queue would hold with another task of *shape*; NOBODY for what it holds."""
    largest = 0.0
    for resource in range(master.total.shape[1]):
        amount = master.total[queue, resource]
        if shape != NOBODY:
            amount += tasks.request[resource, shape]
        if master.fleet.present[resource] > 0:
            largest = max(largest, amount / master.fleet.present[resource])
    return largest


@inlined
def may_preempt(master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, task: int) -> bool:
    """Whether the task's queue is entitled to more: Algorithm 2's first comparison."""
    queue = tasks.queue[task]
    shape = NOBODY if rules.preemption == PAPER else tasks.shape[task]
    return dominant_share(master, tasks, queue, shape) <= topology.queue[queue]["share"] + SLACK


@inlined
def find_victims(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, task: int
) -> tuple[int, int]:
    """Return (machine, queue): preempting tasks of the queue there makes room; (NOWHERE, NOBODY) if nothing does.

    Queues are tried in the order of their violation, the largest first, ties by number.
    """
    bound, last = float("inf"), NOBODY
    while True:
        queue, violation = NOBODY, SLACK
        for other in range(topology.queue.size):
            excess = dominant_share(master, tasks, other, NOBODY) - topology.queue[other]["share"]
            untried = excess < bound or (excess == bound and other > last)
            if untried and excess > violation and other != tasks.queue[task]:
                queue, violation = other, excess
        if queue == NOBODY:
            return NOWHERE, NOBODY
        machine = machine_with_victims(master, topology, rules, tasks, task, queue)
        if machine != NOWHERE:
            return machine, queue
        bound, last = violation, queue


@inlined
def machine_with_victims(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, task: int, queue: int
) -> int:
    """Return the first machine on which preempting tasks of a queue makes room for the task, or NOWHERE."""
    allowed = tasks.constraint_set[tasks.shape[task]]
    for block in range(master.fleet.allowed.shape[1]):
        word = master.fleet.allowed[allowed, block] & master.fleet.open[block]
        if word == NO_BITS or master.cluster[topology.machine[block * BLOCK]["cluster"]]["closed"]:
            continue
        for lane in range(BLOCK):
            machine = block * BLOCK + lane
            has_some = (word >> np.uint64(lane)) & ONE != NO_BITS and master.held.first[machine] != NOBODY
            if has_some and makes_room(master, rules, tasks, task, machine, queue):
                return machine
    return NOWHERE


@noinline
def makes_room(
    master: GlobalMaster, rules: Rules, tasks: OpenTasks, task: int, machine: int, queue: int
) -> bool:
    """Whether the queue's preemptible tasks on the machine hold enough for the task, with what is free."""
    for resource in range(master.total.shape[1]):
        room = master.fleet.free[resource, machine]
        number = master.held.first[machine]
        while number != NOBODY:
            row = master.held.row[number]
            if is_victim(rules, row, queue):
                room += tasks.request[resource, row["shape"]]
            number = row["next"]
        if room < tasks.request[resource, tasks.shape[task]]:
            return False
    return True


@inlined
def is_victim(rules: Rules, held: np.void, queue: int) -> bool:
    """Whether an attempt that is held is of a queue, and may be preempted in favour of another."""
    return bool(held["queue"] == queue and held["preempted"] < rules.preemptions_max and not held["in_gang"])
