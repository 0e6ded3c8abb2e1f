"""The loop that follows a plan of maps and reduces, and its lanes."""
import numpy as np

from subak.placement.claims import KEPT, VIOLATED_RULE
from subak.placement.mapreduce.machine_queues import planned_instant
from subak.placement.mapreduce.plan import Plan
from subak.queues.lanes import Lanes, build_lanes
from subak.simulator.central.loop import advance
from subak.simulator.engine.attempts import commit
from subak.simulator.engine.setup import Prepared
from subak.simulator.engine.state import LOOP_BROKEN, LOOP_PAUSED, LOOP_STEP, Simulation


def build_machine_queues(prepared: Prepared, plan: Plan) -> tuple[Lanes, np.ndarray]:
    """Return the lanes of `planned_instant` and int32[task], each task's; ranks become the plan's."""
    simulation = prepared.simulation
    padded = simulation.fleet.free.shape[1]
    simulation.tasks.rank[:] = plan.rank
    lane_of_task = (plan.machine + padded * plan.is_reduce).astype(np.int32)
    return build_lanes(2 * padded, plan.machine.size), lane_of_task


def run_planned(sim: Simulation, lanes: Lanes, lane_of_task: np.ndarray, budget: int) -> int:
    """Run *budget* steps; return why it stopped."""
    for _ in range(budget):
        outcome = advance(sim)
        if outcome != LOOP_STEP:
            return outcome
        planned_instant(
            sim.fleet, sim.tasks, lanes, lane_of_task, sim.step.freed[: sim.counts.freed_now],
            sim.step.arrived[: sim.counts.arrived_now], sim.claims,
        )
        commit(sim)
        if sim.claims.violation[VIOLATED_RULE] != KEPT:
            return LOOP_BROKEN
    return LOOP_PAUSED
