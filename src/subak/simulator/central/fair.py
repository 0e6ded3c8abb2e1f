"""The loop of fair orders, with preemption, and its state."""
from collections.abc import Callable

import numpy as np

from subak.marks import noinline
from subak.placement.claims import KEPT, VIOLATED_RULE, claim
from subak.placement.fair import (
    Fair,
    fair_instant,
    let_wait,
    note_end,
    open_fitting,
    serve,
    start,
)
from subak.placement.hold_back import build_held_back
from subak.placement.reclaim import (
    LOOK_AGAIN,
    PER_SECOND,
    TOKENS,
    Reclaim,
    build_reclaim,
    excess,
    goes_first,
    look_anew,
    makes_room,
    neediest_leaf,
    note_in_vain,
)
from subak.queues.fair_orders import hierarchy_of, least_requests
from subak.queues.hierarchy import NOBODY
from subak.queues.lanes import build_lanes
from subak.queues.leaves import leaves_of
from subak.queues.tree import tree_of_paths
from subak.simulator.central.gangs import gangs_of, lose_gangs
from subak.simulator.central.loop import advance
from subak.simulator.engine.attempts import commit, forget_lost_events, is_alive, lose
from subak.simulator.engine.heap import SIZE
from subak.simulator.engine.setup import Prepared, Terms
from subak.simulator.engine.state import (
    LOOP_BROKEN,
    LOOP_PAUSED,
    LOOP_STEP,
    Simulation,
)
from subak.workload.table import Workload


def build_fair(
    prepared: Prepared, workload: Workload, order: str, terms: Terms, reclaims_per_hour: float
) -> tuple[Fair, Reclaim]:
    """Return an order's state before the first event; *terms* have weights and limits of queues."""
    simulation = prepared.simulation
    tree = tree_of_paths(workload.jobs["queue"].to_list(), terms.queues)
    leaves = leaves_of(workload, prepared.shapes.of_stage, tree, terms.arrival_of_stage)
    capacity = np.maximum(simulation.fleet.present, 1)
    vector = simulation.tasks.request.T / capacity
    names = [resource.name for resource in workload.resources]
    nodes = len(tree)
    fair = Fair(
        tree=hierarchy_of(order, leaves.branches, vector, names, nodes),
        lanes=build_lanes(leaves.queue.size, simulation.tasks.arrival.size),
        leaf=leaves.of_task, least=least_requests(simulation.tasks.request), queue=leaves.queue,
        parent=tree.parent, weight=tree.weight, limit=tree.limit, used=np.zeros((nodes, len(names)), np.int64),
        present=simulation.fleet.present.copy(), siblings=np.zeros(nodes),
        waiting=np.zeros(nodes, np.int64), running=np.zeros(nodes, np.int64),
        capped=np.empty(leaves.queue.size, np.int32), size=np.zeros(1, np.int64),
        has_limits=bool(np.isfinite(tree.limit).any()),
        gangs=gangs_of(simulation, workload),
        held=build_held_back(simulation.fleet, leaves.queue.size, terms.hold_back_after),
    )
    return fair, build_reclaim(nodes, vector.shape[0], reclaims_per_hour)


def run_fair(
    sim: Simulation, fair: Fair, reclaim: Reclaim, select_machine: Callable[..., int], budget: int
) -> int:
    """Run *budget* steps of a fair order joined with a placement; return why it stopped."""
    for _ in range(budget):
        outcome = advance(sim)
        if outcome != LOOP_STEP:
            return outcome
        lose_gangs(sim, fair.gangs)
        fair_instant(
            sim.fleet, sim.tasks, fair, select_machine, sim.step.ended[: sim.counts.ended_now],
            sim.step.arrived[: sim.counts.arrived_now], sim.step.freed[: sim.counts.freed_now], reclaim.guarantee,
            sim.clock.now, sim.claims,
        )
        commit(sim)
        if reclaim.clock[PER_SECOND] > 0.0 and sim.clock.now >= reclaim.clock[LOOK_AGAIN]:
            reclaim_places(sim, fair, reclaim, select_machine)
        if sim.claims.violation[VIOLATED_RULE] != KEPT:
            return LOOP_BROKEN
    return LOOP_PAUSED


@noinline
def reclaim_places(sim: Simulation, fair: Fair, reclaim: Reclaim, select_machine: Callable[..., int]) -> None:
    """Preempt for queues below their guarantees as long as the cap and the rules allow it."""
    now, before = sim.clock.now, sim.counts.preempted_ever
    look_anew(fair, reclaim, now)
    while reclaim.clock[TOKENS] >= 1.0:
        leaf = neediest_leaf(fair, sim.tasks, reclaim.guarantee, reclaim.tried)
        if leaf == NOBODY:
            break
        task = fair.lanes.root[leaf]
        victim = find_victim(sim, fair, reclaim.guarantee, task, leaf)
        if victim == NOBODY:
            note_in_vain(reclaim, sim.tasks.shape[task], now)
            continue
        replace(sim, fair, leaf, victim)
        reclaim.clock[TOKENS] -= 1.0
    if sim.counts.preempted_ever > before:
        open_fitting(sim.fleet, sim.tasks, fair, sim.step.freed[: sim.counts.freed_now])
        serve(sim.fleet, sim.tasks, fair, select_machine, reclaim.guarantee[:0], now, sim.claims)
        commit(sim)
        forget_lost_events(sim)


@noinline
def replace(sim: Simulation, fair: Fair, leaf: int, victim: int) -> None:
    """End the victim's attempt, and start the first task of a leaf in its place."""
    task, machine = fair.lanes.root[leaf], sim.progress.machine[victim]
    sim.counts.arrived_now, sim.counts.ended_now = 0, 0  # they have been seen
    sim.counts.preempted_ever += 1
    lose(sim, victim, machine)
    note_end(fair, sim.tasks, victim)
    let_wait(fair, sim.tasks, victim)
    if claim(sim.claims, sim.fleet, sim.tasks, task, machine):
        start(fair, sim.tasks, leaf)
        commit(sim)


@noinline
def find_victim(sim: Simulation, fair: Fair, guarantee: np.ndarray, task: int, leaf: int) -> int:
    """Return the running task that is to go for *task*, NOBODY if none may."""
    best, most = NOBODY, 0.0
    for place in range(sim.events.size[SIZE]):
        slot = sim.events.slot[place]
        if is_alive(sim, slot) and makes_room(sim.fleet, sim.tasks, slot["item"], task, slot["place"]):
            above = excess(fair, sim.tasks, slot["item"], leaf, guarantee)
            if goes_first(sim.progress.start, slot["item"], above, best, most):
                best, most = slot["item"], above
    return int(best)
