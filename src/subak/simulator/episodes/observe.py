"""Observes an episode: waiting tasks in order, and the fleet, as features from 0 to 1.

Of each place: whether somebody waits there; how long it has waited, and is estimated to run; how many tasks it has;
per resource, what a task of it asks for, as a share of the largest machine's. Of the fleet: per resource, the share of
it that is used, and the most that is free on one machine, as a share of the largest; how many tasks wait, and run.

Times and counts are squashed: log(1 + x) / log(1 + most), at most 1.
"""
import math

import numpy as np

from subak.marks import inlined
from subak.simulator.engine.state import Simulation
from subak.simulator.episodes.state import NO_HEAD, Episode

MOST_SECONDS, MOST_TASKS = 1e9, 1e6  # that are told from more
OF_TIME, OF_COUNT = 1.0 / math.log1p(MOST_SECONDS), 1.0 / math.log1p(MOST_TASKS)
# features of a place; behind them, one per resource
IS_THERE, WAITED, ESTIMATED, GANG_SIZE, FIRST_REQUEST = range(5)
PER_RESOURCE_OF_FLEET = 2  # used, most free; behind them all, how many wait and run


@inlined
def observe(episode: Episode, waiting: np.ndarray, fleet: np.ndarray) -> None:
    """Write the features of those shown into float32[place, feature], and of the fleet into float32[feature]."""
    sim, left = episode.sim, episode.gangs.left
    waiting[:] = 0.0
    for place in range(episode.shown.size):
        head = episode.shown[place]
        if head == NO_HEAD:
            break
        waiting[place, IS_THERE] = 1.0
        waiting[place, WAITED] = squashed(sim.clock.now - sim.progress.ready[head], OF_TIME)
        waiting[place, ESTIMATED] = squashed(sim.tasks.estimate[head], OF_TIME)
        waiting[place, GANG_SIZE] = squashed(left[head], OF_COUNT)
        for row in range(sim.fleet.scale.size):
            asked = sim.tasks.request[row, sim.tasks.shape[head]] * sim.fleet.scale[row]
            waiting[place, FIRST_REQUEST + row] = min(asked, 1.0)
    observe_fleet(sim, fleet)


@inlined
def observe_fleet(sim: Simulation, features: np.ndarray) -> None:
    """Write how full the machines are."""
    state = sim.fleet
    for row in range(state.scale.size):
        used = state.used[row] / state.present[row] if state.present[row] > 0 else 0.0
        most = 0
        for block in range(state.block_free_max.shape[1]):
            most = max(most, state.block_free_max[row, block])
        features[PER_RESOURCE_OF_FLEET * row] = min(used, 1.0)
        features[PER_RESOURCE_OF_FLEET * row + 1] = min(most * state.scale[row], 1.0)
    features[features.size - 2] = squashed(sim.counts.waiting_now, OF_COUNT)
    features[features.size - 1] = squashed(sim.counts.running_now, OF_COUNT)


@inlined
def squashed(value: float, scale: float) -> float:
    """Return a time or a count as a number from 0 to 1."""
    return min(math.log1p(value) * scale, 1.0)
