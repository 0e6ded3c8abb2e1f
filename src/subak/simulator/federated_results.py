"""Results of federated runs only: parts of the allocation time, masters, wait reasons, views."""
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from subak.federation.batches.membership import Membership
from subak.federation.batches.table import Batches
from subak.federation.megha.global_master.preemption import SLACK
from subak.federation.megha.global_master.state import (
    NEVER_SEEN,
    PHASE_ENDED,
    PHASE_FLYING,
    PHASE_HELD,
    PHASE_LEAVING,
    PHASE_RUNNING,
    PHASE_UNKNOWN,
    PHASES,
)
from subak.federation.megha.global_master.state import PHASE_WAITING as IN_QUEUE
from subak.federation.megha.roles import Megha
from subak.federation.megha.topology import OFF, PAPER
from subak.federation.messages import NOBODY, NOT_FREE, REASONS
from subak.federation.pigeon import Pigeon
from subak.federation.sampling import sparrow
from subak.federation.sampling.dodoor import Dodoor
from subak.federation.sampling.eagle import Eagle
from subak.federation.sampling.hawk import Hawk
from subak.fleet.shortage import has_enough, meets_constraints
from subak.fleet.state import BLOCK
from subak.fleet.table import Fleet
from subak.placement.claims import TASK_WAITING
from subak.simulator.engine.columns import coded, numbers
from subak.simulator.engine.state import Simulation
from subak.simulator.federated.by_task import states_by_task
from subak.simulator.federated.simulate import Federated
from subak.simulator.outcome import Outcome
from subak.workload.table import Workload

Sampled = sparrow.Sparrow | Hawk | Eagle | Dodoor  # federations that sample

PARTS = ("framework_queueing", "processing", "worker_queueing", "communication")  # Megha section II
VIEWS_MAX = 5_000  # of a global master and a shape whose views are written down, those of most tasks first

OF_PHASE = {  # why a task waits that is not in its global master's queue
    PHASE_UNKNOWN: "its global master has not heard of it yet",
    PHASE_FLYING: "it is requested, and its local master has not answered yet",
    PHASE_HELD: "its gang is incomplete: it holds a machine until all of its gang do",
    PHASE_LEAVING: "its gang was given up, which its local master has not confirmed yet",
    PHASE_RUNNING: "it is accepted, and its start is on the way to the worker",
    PHASE_ENDED: "its end was lost in a failure: its global master takes it for ended",
}
ATTEMPT_LOST = "its attempt was lost, which its global master has not heard of yet"
GANG_INCOMPLETE = "its gang is incomplete: others of it have not arrived, or have not come to rest"
GANG_TOO_LARGE = "there is no room for all of its gang at once"
SHARE_USED_UP = "its queue has used up its share, and "
REFUSED_BEFORE = "refused by a newer state, and by now "
VIEW_BEHIND = "a machine could take it by now, which its global master's view does not show yet"
TURN_AGAIN = "refused by a newer state, and its turn has not come again"
TURN_TO_COME = "its turn has not come: in its global master's view a machine could take it"
NOBODY_ABLE = "no worker that is there could hold it; its scheduler keeps it until one comes"
AT_BUSY_WORKER = "it, or what is reserved for it, is on the way to workers or in their queues; another machine is free"


def parts_of_allocation(outcome: Outcome, waited: np.ndarray) -> dict[str, np.ndarray]:
    """Return the four parts of *waited* (float64[task], seconds, nan where a task has not started), which add up to it.

    What no message, service or worker accounts for is framework queueing. Where failures make roles repeat themselves,
    the parts may overlap: none is then counted beyond the wait.
    """
    if outcome.federated is None:
        nothing = np.zeros_like(waited)
        at_worker = outcome.scheduler.waits_at == "worker"
        return dict(zip(PARTS, (nothing if at_worker else waited, nothing, waited if at_worker else nothing, nothing),
                        strict=True))
    network, left, parts = outcome.federated.network, np.nan_to_num(waited), {}
    for name, seconds in (("communication", network.communication), ("processing", network.processing),
                          ("worker_queueing", network.at_worker)):
        parts[name] = np.minimum(seconds, left)
        left = left - parts[name]
    parts["framework_queueing"] = left
    return {name: parts[name] for name in PARTS}


def master_columns(outcome: Outcome, fleet: Fleet) -> list[pl.Series]:
    """Return who was responsible for each task, and how often its requests failed, where that is known."""
    if outcome.federated is None:
        return []
    roles, machine = outcome.federated.roles, outcome.simulation.progress.machine
    columns = [pl.Series("global_master", owners(roles).astype(np.int32))]
    cluster = clusters(roles)
    if cluster is not None:
        names = cluster_names(outcome, fleet, int(cluster.max(initial=0)) + 1)
        columns.append(coded(np.where(machine >= 0, cluster[machine], -1), names, "local_master"))
    if isinstance(roles, Megha):
        table = _states(outcome.federated)
        columns += [pl.Series(name, table[field].astype(np.int32)) for name, field in (
            ("refusals", "refusals"), ("repartitions", "repartitioned"), ("preemptions", "preempted"))]
    return columns


def _states(federated: Federated) -> np.ndarray:
    """Return TASK[task] of Megha's tasks."""
    return states_by_task(federated.roles) if federated.states is None else federated.states


def owners(roles: Megha | Sampled | Pigeon) -> np.ndarray:
    """Return int32[task]: the global master, scheduler or distributor of each task."""
    if isinstance(roles, Megha):
        return np.asarray(roles.jobs.asked["owner"])
    batches = batches_of(roles)
    return np.asarray(batches.scheduler[batches.of_task])


def batches_of(roles: Sampled | Pigeon) -> Batches:
    """Return the batches of a federation that samples or deals."""
    batches: Batches = (roles if isinstance(roles, Pigeon) else sampling_of(roles)).batches
    return batches


def sampling_of(roles: Sampled) -> sparrow.Sparrow:
    """Return the part of a federation that Sparrow, Hawk, Eagle and Dodoor have in common."""
    if isinstance(roles, Eagle):
        return roles.hawk.sparrow
    return roles.sparrow if isinstance(roles, Hawk | Dodoor) else roles


def clusters(roles: object) -> np.ndarray | None:
    """Return int32[machine]: the local master, or group, of each; None where there are none."""
    if isinstance(roles, Megha):
        return np.asarray(roles.topology.machine["cluster"])
    return np.asarray(roles.groups.of_worker) if isinstance(roles, Pigeon) else None


def cluster_names(outcome: Outcome, fleet: Fleet, count: int) -> list[str]:
    """Return what each cluster is called: as in the fleet where they are its own, else by their numbers."""
    names = sorted(fleet.machines["cluster"].unique().to_list())
    own = outcome.federated is not None and isinstance(outcome.federated.roles, Megha) and len(names) == count
    return names if own else [str(number) for number in range(count)]


# -- why a task waits --------------------------------------------------------------------------------------------------


def waiting_reasons(
    outcome: Outcome, waiting: np.ndarray, of_shape: Callable[[int], str]
) -> tuple[np.ndarray, list[str]]:
    """Return int64[waiting task], places in the reasons that are returned beside it.

    *of_shape* says what every machine lacks for a shape, or that one could take it.
    """
    reasons = _Reasons(outcome, of_shape)
    key = reasons.keys(waiting)
    distinct, place = np.unique(key, axis=1, return_inverse=True)
    return place.reshape(-1), [reasons.text(*(int(value) for value in column)) for column in distinct.T]


class _Reasons:
    """Words for why tasks wait; a task's words depend on its key alone."""

    def __init__(self, outcome: Outcome, of_shape: Callable[[int], str]) -> None:
        self.sim = outcome.simulation
        self.federated: Any = outcome.federated
        self.roles = None if outcome.federated is None else outcome.federated.roles
        self.texts: dict[int, str] = {}
        self.of_shape = of_shape

    def keys(self, waiting: np.ndarray) -> np.ndarray:
        """Return int64[key, waiting task]: shape, and of Megha phase, master, queue, last reason, gang, attempts."""
        shape = self.sim.tasks.shape[waiting].astype(np.int64)
        if not isinstance(self.roles, Megha):
            return np.stack([shape])
        table, jobs = _states(self.federated)[waiting], self.roles.jobs
        queue = jobs.asked["queue"][waiting].astype(np.int64)
        gang = jobs.gang[waiting] if jobs.gang.size else np.full(waiting.size, NOBODY)
        lost = self.sim.progress.attempts[waiting] > 0
        return np.stack([shape, table["phase"], jobs.asked["owner"][waiting],
                         queue if self.roles.rules.preemption != OFF else np.zeros_like(queue),
                         table["reason"], gang, lost]).astype(np.int64)

    def text(self, shape: int, *more: int) -> str:
        """Return the reason that a key stands for."""
        if more:
            return self.of_megha(shape, *more)
        if self.roles is None:
            return self.lacks(shape)
        if _members(self.roles).able_count[shape] == 0:
            return NOBODY_ABLE
        could = could_take(self.sim.fleet.free, self.sim, shape).any()
        return AT_BUSY_WORKER if could else self.lacks(shape)

    def lacks(self, shape: int) -> str:
        """Say what every machine lacks, or that one could take it."""
        if shape not in self.texts:
            self.texts[shape] = self.of_shape(shape)
        return self.texts[shape]

    def of_megha(
        self, shape: int, phase: int, master: int, queue: int, reason: int, gang: int, lost: int
    ) -> str:
        """Return why a task waits under Megha."""
        assert isinstance(self.roles, Megha)
        if phase != IN_QUEUE:
            return ATTEMPT_LOST if phase == PHASE_RUNNING and lost else OF_PHASE[phase]
        if gang != NOBODY and not gang_waits(self.roles, master, gang):
            return GANG_INCOMPLETE
        refused = reason == NOT_FREE
        if not could_take(self.sim.fleet.free, self.sim, shape).any():
            used_up = self.roles.rules.preemption != OFF and not is_entitled(self.roles, self.sim, master, queue, shape)
            return (SHARE_USED_UP if used_up else REFUSED_BEFORE if refused else "") + self.lacks(shape)
        if gang != NOBODY:
            return GANG_TOO_LARGE
        if not could_take(self.roles.masters[master].fleet.free, self.sim, shape).any():
            return VIEW_BEHIND
        return TURN_AGAIN if refused else TURN_TO_COME


def gang_waits(roles: Megha, master: int, gang: int) -> bool:
    """Whether all of a gang wait, or have ended."""
    row = roles.jobs.gang_row[gang]
    return bool(row != NOBODY and roles.masters[master].gang[row]["waiting"] == roles.jobs.gang_size[gang])


def _members(roles: Any) -> Membership:
    members: Membership = roles.members if isinstance(roles, Pigeon) else sampling_of(roles).members
    return members


def could_take(free: np.ndarray, sim: Simulation, shape: int) -> np.ndarray:
    """Return bool[machine]: which could take a task of *shape* with *free* (int32[resource, machine], units)."""
    enough = has_enough(free[:, : sim.fleet.machines], sim.tasks, shape).all(axis=0)
    return np.asarray(enough & allowed_machines(sim, shape))


def allowed_machines(sim: Simulation, shape: int) -> np.ndarray:
    """Return bool[machine]: which are there and meet the constraints of a shape."""
    there = sim.fleet.free[0, : sim.fleet.machines] >= 0
    return np.asarray(meets_constraints(sim.fleet, sim.tasks, shape) & there)


def is_entitled(roles: Megha, sim: Simulation, master: int, queue: int, shape: int) -> bool:
    """Whether a global master takes a queue to be below its share, as Algorithm 2 asks before it preempts."""
    more = 0 if roles.rules.preemption == PAPER else sim.tasks.request[:, shape].astype(np.int64)
    return bool(_dominant(roles, master, queue, more) <= roles.topology.queue[queue]["share"] + SLACK)


def _dominant(roles: Megha, master: int, queue: int, more: Any = 0) -> float:
    present = roles.masters[master].fleet.present
    held = roles.masters[master].total[queue] + more
    return float(np.divide(held, present, out=np.zeros(present.size), where=present > 0).max(initial=0.0))


# -- what was known of the waiting tasks -------------------------------------------------------------------------------


def waiting_tables(outcome: Outcome, workload: Workload, fleet: Fleet) -> dict[str, pl.DataFrame]:
    """Return `waiting`, a row a task that waits, and `views`, a row for what its global master saw of each partition.

    Only Megha's global masters have views; of other runs there is nothing. Amounts are in natural units.
    """
    if outcome.federated is None or not isinstance(outcome.federated.roles, Megha):
        return {}
    roles = outcome.federated.roles
    tasks = np.flatnonzero(outcome.simulation.claims.status == TASK_WAITING)
    return {"waiting": _waiting_table(outcome.simulation, roles, tasks, workload),
            "views": _view_table(outcome, roles, tasks, workload, fleet)}


def _waiting_table(sim: Simulation, roles: Megha, tasks: np.ndarray, workload: Workload) -> pl.DataFrame:
    table, shape = states_by_task(roles)[tasks], sim.tasks.shape[tasks]
    queue, owner = roles.jobs.asked["queue"][tasks], roles.jobs.asked["owner"][tasks]
    fair = roles.rules.preemption != OFF
    nothing = np.full(tasks.size, np.nan)
    used = np.array([_dominant(roles, *pair) for pair in zip(owner, queue, strict=True)]) if fair else nothing
    return pl.DataFrame([
        pl.Series("task", tasks.astype(np.uint32)),
        pl.Series("global_master", owner), pl.Series("shape", shape),
        coded(table["phase"].astype(np.int64), PHASES, "phase"),
        coded(np.where(table["reason"] > 0, table["reason"], -1), REASONS, "last_refused"),
        numbers("share", roles.topology.queue["share"][queue] if fair else nothing),
        numbers("share_used", used.astype(np.float64)),
        *(pl.Series(f"asked_{resource.name}", sim.tasks.request[row, shape] * resource.unit)
          for row, resource in enumerate(workload.resources)),
    ])


def _view_table(outcome: Outcome, roles: Megha, tasks: np.ndarray, workload: Workload, fleet: Fleet) -> pl.DataFrame:
    owner, shape = roles.jobs.asked["owner"][tasks], outcome.simulation.tasks.shape[tasks]
    pairs, counts = np.unique(np.stack([owner, shape]), axis=1, return_counts=True)
    most = np.sort(np.argsort(-counts, kind="stable")[:VIEWS_MAX])
    names = cluster_names(outcome, fleet, roles.topology.local_masters)
    parts = [_views_of(outcome, roles, int(pairs[0, pair]), int(pairs[1, pair]), int(counts[pair]), workload, names)
             for pair in most]
    return pl.concat(parts) if parts else _views_of(outcome, roles, 0, 0, 0, workload, names).clear()


def _views_of(
    outcome: Outcome, roles: Megha, master: int, shape: int, tasks: int, workload: Workload, names: list[str]
) -> pl.DataFrame:
    """Return what one global master saw, and what there was, of each partition that has machines, for one shape."""
    sim, topology = outcome.simulation, roles.topology
    filled = np.flatnonzero(np.diff(topology.block) > 0)
    cluster, home = filled // topology.global_masters, filled % topology.global_masters
    first = (topology.block[filled] * BLOCK).astype(np.int64)
    allowed, view = allowed_machines(sim, shape), roles.masters[master].fleet.free
    known = roles.masters[master].cluster[cluster]
    age = np.maximum(max(outcome.loop_result.end, sim.clock.now) - known["seen_at"], 0.0)
    columns = [
        pl.Series("global_master", np.full(filled.size, master, np.int32)),
        pl.Series("shape", np.full(filled.size, shape, np.int32)),
        pl.Series("tasks", np.full(filled.size, tasks, np.uint32)),
        coded(cluster, names, "local_master"),
        pl.Series("partition_of", home.astype(np.int32)), pl.Series("own", home == master),
        numbers("view_age", age, known["seen"] != NEVER_SEEN),
        *(pl.Series(name, np.add.reduceat(machines.astype(np.int64), first).astype(np.uint32)) for name, machines in (
            ("machines", allowed), ("fit_in_view", could_take(view, sim, shape)),
            ("fit_in_truth", could_take(sim.fleet.free, sim, shape)))),
    ]
    for row, resource in enumerate(workload.resources):
        for name, free in (("view_free", view[row]), ("free", sim.fleet.free[row])):
            largest = np.maximum.reduceat(np.where(allowed, free[: sim.fleet.machines], -1), first)
            columns.append(numbers(f"{name}_{resource.name}", largest * resource.unit, largest >= 0))
    return pl.DataFrame(columns)
