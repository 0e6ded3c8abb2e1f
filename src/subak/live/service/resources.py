"""Shows machines and queues from a global master's view."""
import numpy as np

from subak.federation.megha.global_master.state import PHASE_FLYING, PHASE_HELD, PHASE_RUNNING, PHASE_WAITING
from subak.federation.megha.open_tasks import TASKS_EVER
from subak.federation.messages import NOBODY
from subak.live.api.models import MachineView, QueueView
from subak.live.config import FederationFile
from subak.live.node.facts import MachineFact
from subak.live.node.global_master.global_node import GlobalNode
from subak.queues.tree import Queue, TreeFile, queue_leaves, tree_of_paths


def amounts(node: GlobalNode, units: np.ndarray) -> dict[str, int]:
    """Return amounts by the names of resources."""
    return dict(zip(node.layout.resources, (int(each) for each in units), strict=True))


def total_of(node: GlobalNode) -> tuple[dict[str, int], dict[str, int]]:
    """Return what all machines have, and what of it is used."""
    view = node.master.fleet
    capacity = view.capacity.astype(np.int64)
    used = np.where(capacity > 0, capacity - view.free, 0).sum(axis=1)
    return amounts(node, capacity.sum(axis=1)), amounts(node, used)


def own_tasks(node: GlobalNode) -> np.ndarray:
    """Return the rows of this master's open tasks."""
    return np.flatnonzero(node.tasks.number[: node.tasks.size[TASKS_EVER]] != NOBODY)


def machine_view(node: GlobalNode, file: FederationFile, number: int, machine: MachineFact) -> MachineView:
    """Return a machine as people see it."""
    view, cluster = node.master.fleet, node.layout.cluster_of(number)
    known, capacity = bool(node.master.listed[number]), view.capacity[:, number].astype(np.int64)
    there = bool(capacity.any())
    state, reason = "ready", ""
    if not known:
        state, reason = "unknown", "its local master has not heard of it yet"
    elif machine.joining:
        state, reason = "joining", "nothing starts there before both local masters of its cluster know it"
    elif not there and not machine.cordoned:
        state, reason = "lost", "it was silent for a lease, and what ran there was lost"
    rows = own_tasks(node)
    tasks = int(((node.master.task["machine"][rows] == number) & (node.master.task["phase"][rows] == PHASE_RUNNING)
                 ).sum())
    return MachineView(
        name=machine.name, cluster=file.clusters()[cluster].name, state=state,  # type: ignore[arg-type]
        reason=reason, cordoned=machine.cordoned, draining=machine.cordoned and tasks > 0,
        capacity=amounts(node, np.array(machine.capacity) if machine.cordoned and machine.capacity else capacity),
        used=amounts(node, capacity - view.free[:, number] if there or machine.cordoned else np.zeros_like(capacity)),
        attributes=machine.attributes, tasks=tasks)


def queue_views(node: GlobalNode, file: FederationFile) -> list[QueueView]:
    """Return all queues, parents before their children."""
    setups = {queue.path: (number, queue) for number, queue in enumerate(node.queues.queues) if queue.path}
    listed = [Queue(name=queue.path, weight=queue.weight) for _, queue in setups.values()]
    listed += [Queue(name=queue.path, weight=queue.weight) for queue in node.queues.inner]
    tree = tree_of_paths(list(setups), TreeFile(queue=listed))
    guarantee, leaf_of = tree.guarantee(), queue_leaves(tree, list(setups))
    used = np.zeros((len(tree), len(node.layout.resources)), np.int64)
    waiting, running = np.zeros(len(tree), np.int64), np.zeros(len(tree), np.int64)
    jobs = np.zeros(len(tree), np.int64)
    rows = own_tasks(node)
    phase, queue_of = node.master.task["phase"][rows], node.tasks.queue[rows]
    open_jobs = [job.stored.queue for job in node.book.of_number.values()]
    for (number, _), leaf in zip(setups.values(), leaf_of.tolist(), strict=True):
        mine = queue_of == number
        for node_number in tree.above(leaf):
            used[node_number] += node.master.total[number]
            waiting[node_number] += int((mine & (phase <= PHASE_WAITING)).sum())
            running[node_number] += int((mine & np.isin(phase, (PHASE_RUNNING, PHASE_FLYING, PHASE_HELD))).sum())
            jobs[node_number] += open_jobs.count(number)
    present = np.maximum(node.master.fleet.present, 1)
    views = []
    for number in range(1, len(tree)):
        path = tree.names[number].rstrip("/")
        setup = setups.get(path)
        limit = float(tree.limit[number])
        views.append(QueueView(
            path=path, weight=float(tree.weight[number]), guarantee=float(guarantee[number]),
            dominant_share=float((used[number] / present).max()), limit=limit if limit <= 1 else None,
            owner=file.masters()[setup[1].owner].name if setup else "", used=amounts(node, used[number]),
            jobs=int(jobs[number]), waiting=int(waiting[number]), running=int(running[number])))
    return views
