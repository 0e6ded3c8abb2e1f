"""The loop of delay scheduling, and its state."""
import numpy as np

from subak.fleet.locality import NO_HOLDER, Inputs
from subak.placement.claims import KEPT, VIOLATED_RULE
from subak.placement.delay import NEXT_RISE, Delay, Homes, delay_instant
from subak.simulator.central.loop import next_time, pass_to
from subak.simulator.engine.attempts import commit, drop_dead
from subak.simulator.engine.setup import Prepared
from subak.simulator.engine.state import (
    LOOP_BROKEN,
    LOOP_PAUSED,
    LOOP_STEP,
    Simulation,
)
from subak.workload.table import Workload


def build_delay(prepared: Prepared, workload: Workload, wait_seconds: tuple[float, float]) -> Delay:
    """Return the state before the first event; *wait_seconds*: for a machine with the input, and for its rack."""
    inputs, stage = prepared.simulation.speeds.inputs, workload.tasks["stage"].to_numpy().astype(np.int32)
    stages, tasks = len(workload.stages), stage.size
    at_home = np.ones(tasks, bool)
    at_home[: inputs.holder.shape[1]] = inputs.holder[0] == NO_HOLDER
    every, one = np.arange(tasks, dtype=np.int32), np.zeros(tasks, np.int32)
    return Delay(
        on_machine=_homes(*_held(inputs, inputs.holder), stage, prepared.machine_order.size),
        on_rack=_homes(*_held(inputs, inputs.holder_rack), stage, int(inputs.rack.max(initial=0)) + 1),
        anywhere=_homes(every[at_home], one[at_home], stage, 1), all=_homes(every, one, stage, 1),
        stage=stage, tasks=np.zeros(stages, np.int32), running=np.zeros(stages, np.int32),
        level=np.zeros(stages, np.int8), since=np.full(stages, np.inf), allowed=np.zeros(stages, np.int8),
        fresh=np.zeros(stages, bool), active=np.empty(stages, np.int32), place=np.empty(stages, np.int32),
        started=np.zeros(tasks, bool), wait=np.array(wait_seconds, np.float64), clock=np.full(1, np.inf),
        size=np.zeros(1, np.int64),
    )


def _held(inputs: Inputs, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return int32[entry], tasks, and int32[entry], where each is held; *at* is int32[copy, task], below 0: nowhere."""
    copy, task = np.nonzero(at >= 0)
    return task.astype(np.int32), at[copy, task]


def _homes(task: np.ndarray, place: np.ndarray, stage: np.ndarray, places: int) -> Homes:
    """Return the homes of int32[entry] tasks at int32[entry] places; what stands twice is there once."""
    key = stage[task].astype(np.int64) * places + place
    order = np.lexsort((task, key))
    key, task = key[order], task[order]
    again = (np.diff(key, prepend=-1) == 0) & (np.diff(task, prepend=-1) == 0)
    keys, first = np.unique(key[~again], return_index=True)
    bounds = np.append(first, np.count_nonzero(~again)).astype(np.int64)
    return Homes(keys, bounds, task[~again], bounds[:-1].copy(), places)


def run_delay(sim: Simulation, delay: Delay, budget: int) -> int:
    """Run *budget* steps; return why it stopped. A step may be an instant at which a stage has waited long enough."""
    for _ in range(budget):
        drop_dead(sim)
        outcome = pass_to(sim, min(next_time(sim), delay.clock[NEXT_RISE]))
        if outcome != LOOP_STEP:
            return outcome
        delay_instant(
            delay, sim.speeds.inputs, sim.fleet, sim.tasks, sim.clock.now, sim.step.ended[: sim.counts.ended_now],
            sim.step.arrived[: sim.counts.arrived_now], sim.step.freed[: sim.counts.freed_now], sim.claims,
        )
        commit(sim)
        if sim.claims.violation[VIOLATED_RULE] != KEPT:
            return LOOP_BROKEN
    return LOOP_PAUSED
