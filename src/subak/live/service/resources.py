"""Shows machines and queues from a global master's view."""
from collections import Counter

import numpy as np

from subak.federation.megha.global_master.state import PHASE_FLYING, PHASE_HELD, PHASE_RUNNING, PHASE_WAITING
from subak.federation.messages import NOBODY
from subak.live.api.models import Free, MachineView, QueueView
from subak.live.config import FederationFile
from subak.live.role.facts import MachineFact
from subak.live.role.global_master.global_role import GlobalRole
from subak.queues.tree import Queue, TreeFile, queue_leaves, tree_of_paths

FREE_MOST = 64  # kinds of machines, by what they have left


def amounts(role: GlobalRole, units: np.ndarray) -> dict[str, int]:
    """Return amounts by the names of resources."""
    return dict(zip(role.layout.resources, (int(each) for each in units), strict=True))


def total_of(role: GlobalRole) -> tuple[dict[str, int], dict[str, int]]:
    """Return what all machines have, and what of it is used."""
    view = role.master.fleet
    capacity = view.capacity.astype(np.int64)
    used = np.where(capacity > 0, capacity - view.free, 0).sum(axis=1)
    return amounts(role, capacity.sum(axis=1)), amounts(role, used)


def free_of(role: GlobalRole) -> tuple[tuple[Free, ...], int]:
    """Return what machines have left that take tasks, FREE_MOST kinds of it at most, and of how many it is not said."""
    fleet = role.master.fleet
    left, counts = np.unique(fleet.free[:, fleet.capacity.any(axis=0)], axis=1, return_counts=True)
    order = np.argsort(-(left * fleet.scale[:, None]).sum(axis=0), kind="stable")
    told = order[:FREE_MOST]
    return tuple(Free(amounts=amounts(role, left[:, kind]), machines=int(counts[kind])) for kind in told.tolist()), int(
        counts[order[FREE_MOST:]].sum())


def own_tasks(role: GlobalRole) -> np.ndarray:
    """Return the rows of this master's open tasks."""
    return np.flatnonzero(role.tasks.number[: role.tasks.counts.tasks_ever] != NOBODY)


def running_on(role: GlobalRole) -> np.ndarray:
    """Return how many of this master's tasks run on each machine, int64[machine]."""
    mine = role.master.task[own_tasks(role)]
    return np.bincount(mine["machine"][mine["phase"] == PHASE_RUNNING], minlength=role.layout.machines)


def machine_view(role: GlobalRole, file: FederationFile, number: int, machine: MachineFact, running: np.ndarray
                 ) -> MachineView:
    """Return a machine as people see it; *running*: tasks on each, as `running_on` returns them."""
    view, cluster = role.master.fleet, role.layout.cluster_of(number)
    known, capacity = bool(role.master.listed[number]), view.capacity[:, number].astype(np.int64)
    there = bool(capacity.any())
    state, reason = "ready", ""
    if not known:
        state, reason = "unknown", "its local master has not heard of it yet"
    elif machine.joining:
        state, reason = "joining", "nothing starts there before both local masters of its cluster know it"
    elif not there and not machine.cordoned:
        state, reason = "lost", "it was silent for a lease, and what ran there was lost"
    tasks = int(running[number])
    return MachineView(
        name=machine.name, cluster=file.clusters()[cluster].name, state=state,  # type: ignore[arg-type]
        reason=reason, cordoned=machine.cordoned, draining=machine.cordoned and tasks > 0,
        capacity=amounts(role, np.array(machine.capacity) if machine.cordoned and machine.capacity else capacity),
        used=amounts(role, capacity - view.free[:, number] if there or machine.cordoned else np.zeros_like(capacity)),
        attributes=machine.attributes, tasks=tasks)


def queue_views(role: GlobalRole, file: FederationFile) -> list[QueueView]:
    """Return all queues, parents before their children."""
    setups = {queue.path: (number, queue) for number, queue in enumerate(role.queues.queues) if queue.path}
    listed = [Queue(name=queue.path, weight=queue.weight) for _, queue in setups.values()]
    listed += [Queue(name=queue.path, weight=queue.weight) for queue in role.queues.inner]
    tree = tree_of_paths(list(setups), TreeFile(queue=listed))
    guarantee, leaf_of = tree.guarantee(), queue_leaves(tree, list(setups))
    used = np.zeros((len(tree), len(role.layout.resources)), np.int64)
    waiting, running = np.zeros(len(tree), np.int64), np.zeros(len(tree), np.int64)
    jobs = np.zeros(len(tree), np.int64)
    rows = own_tasks(role)
    phase, queue_of = role.master.task["phase"][rows], role.tasks.queue[rows]
    count = len(role.queues.queues)
    waiting_of = np.bincount(queue_of[phase <= PHASE_WAITING], minlength=count)
    running_of = np.bincount(queue_of[np.isin(phase, (PHASE_RUNNING, PHASE_FLYING, PHASE_HELD))], minlength=count)
    jobs_of = Counter(job.stored.queue for job in role.book.of_number.values())
    for (number, _), leaf in zip(setups.values(), leaf_of.tolist(), strict=True):
        for role_number in tree.above(leaf):
            used[role_number] += role.master.total[number]
            waiting[role_number] += waiting_of[number]
            running[role_number] += running_of[number]
            jobs[role_number] += jobs_of[number]
    present = np.maximum(role.master.fleet.present, 1)
    views = []
    for number in range(1, len(tree)):
        path = tree.names[number].rstrip("/")
        setup = setups.get(path)
        limit = float(tree.limit[number])
        views.append(QueueView(
            path=path, weight=float(tree.weight[number]), guarantee=float(guarantee[number]),
            dominant_share=float((used[number] / present).max()), limit=limit if limit <= 1 else None,
            owner=file.masters()[setup[1].owner].name if setup else "", used=amounts(role, used[number]),
            jobs=int(jobs[number]), waiting=int(waiting[number]), running=int(running[number])))
    return views
