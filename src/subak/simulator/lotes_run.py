"""A central run of LoTES: its loop, and how the dispatcher is built from a plan."""
import numpy as np

from subak.placement.lotes.configurations import NO_CONFIGURATION
from subak.placement.lotes.dispatch import Dispatcher, change_running, lotes_instant
from subak.placement.lotes.plan import NO_BIN, Plan
from subak.placement.shapes import find_shapes
from subak.placement.starts import KEPT, RULE
from subak.queues.lanes import Lanes, build_lanes
from subak.simulator.central import BROKEN, PAUSED, STEP, advance, commit
from subak.simulator.setup import NO_ROW, Prepared
from subak.simulator.state import ARRIVED, ENDED, FREED, Simulation
from subak.workload.table import Workload

BLOCK = 64
SCORE_MIN = -64  # a machine that runs so many more of a class than its bin holds is as bad as any that runs more


def lotes_order(plan: Plan) -> np.ndarray:
    """Return int32[machine], rows of the fleet by configuration, each filled up to whole blocks with NO_ROW.

    Machines that are like none that were there when the plan was made come last.
    """
    parts = []
    for configuration in (*range(len(plan.configurations.machines)), NO_CONFIGURATION):
        rows = np.flatnonzero(plan.configurations.of_machine == configuration).astype(np.int32)
        parts += [rows, np.full(-rows.size % BLOCK, NO_ROW, np.int32)]
    return np.concatenate(parts)


def build_dispatcher(prepared: Prepared, workload: Workload, plan: Plan) -> tuple[Dispatcher, Lanes]:
    """Return the dispatcher before the first event, and its queues: a lane a shape, those of a class contiguous."""
    simulation, order = prepared.simulation, prepared.machine_order
    class_of_shape = plan.class_of(find_shapes(workload))
    classes, known = plan.routes.shape[1], len(plan.configurations.machines)
    of_place = np.full(simulation.fleet.free.shape[1], known, np.int32)
    there = np.flatnonzero(order != NO_ROW)
    row = order[there]
    of_row = plan.configurations.of_machine[row]
    of_place[there] = np.where(of_row == NO_CONFIGURATION, known, of_row)
    target = np.zeros((classes, of_place.size), np.int32)
    bins = plan.bin_of_machine[row]
    target[:, there[bins != NO_BIN]] = plan.assignment.bins[bins[bins != NO_BIN]].T
    routes = np.vstack([plan.routes, np.zeros(classes)])  # the others come last, and are drawn by nobody
    routes[:known, routes.sum(axis=0) == 0.0] = 1.0 / known
    is_devoted = routes.T > 0.0
    is_devoted[:, known] = True
    sizes = [-(-np.count_nonzero(plan.configurations.of_machine == each) // BLOCK) for each in range(known)]
    first = np.concatenate([[0], np.cumsum(sizes), [of_place.size // BLOCK]]).astype(np.int32)
    of_place = np.repeat(np.arange(known + 1), np.diff(first) * BLOCK).astype(np.int32)
    by_class = np.argsort(class_of_shape, kind="stable").astype(np.int32)
    lane_of_shape = np.empty(by_class.size, np.int32)
    lane_of_shape[by_class] = np.arange(by_class.size)
    scores = int(target.max(initial=0)) - SCORE_MIN + 1
    state = Dispatcher(
        task_class=class_of_shape[simulation.tasks.shape].astype(np.int8), configuration=of_place, block_first=first,
        wheel=np.ascontiguousarray(np.cumsum(routes, axis=0).T), is_devoted=np.ascontiguousarray(is_devoted),
        target=target, running=np.zeros_like(target),
        bucket=np.zeros((classes, scores, of_place.size // BLOCK), np.uint64),
        members=np.zeros((classes, scores, known + 1), np.int32), score_min=SCORE_MIN,
        lane_first=np.searchsorted(class_of_shape[by_class], np.arange(classes + 1)).astype(np.int32),
        lane_of_shape=lane_of_shape, shape_of_lane=by_class,
    )
    fill_buckets(state)
    return state, build_lanes(by_class.size, simulation.tasks.arrival.size)


def fill_buckets(state: Dispatcher) -> None:
    """Put every machine into the bucket of its score."""
    classes, places = state.target.shape
    bit = np.uint64(1) << (np.arange(places) % BLOCK).astype(np.uint64)
    for kind in range(classes):
        score = state.target[kind] - state.score_min
        np.bitwise_or.at(state.bucket[kind], (score, np.arange(places) // BLOCK), bit)
        np.add.at(state.members[kind], (score, state.configuration), 1)


def run_lotes(sim: Simulation, state: Dispatcher, lanes: Lanes, budget: int) -> int:
    """Run *budget* steps; return why it stopped."""
    for _ in range(budget):
        outcome = advance(sim)
        if outcome != STEP:
            return outcome
        for task in sim.step.ended[: sim.counts[ENDED]]:
            change_running(state, int(state.task_class[task]), int(sim.progress.machine[task]), -1)
        lotes_instant(
            state, sim.fleet, sim.tasks, lanes, sim.step.freed[: sim.counts[FREED]],
            sim.step.arrived[: sim.counts[ARRIVED]], sim.starts,
        )
        commit(sim)
        if sim.starts.note[RULE] != KEPT:
            return BROKEN
    return PAUSED
