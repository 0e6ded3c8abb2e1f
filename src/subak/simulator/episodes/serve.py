"""Steps all episodes in one call, each to its next decision."""
from collections.abc import Callable

import numpy as np

from subak.federation.serving import compiled_service
from subak.kernels.kernel import by_address
from subak.marks import inlined, noinline
from subak.simulator.engine.state import (
    TIMELINE_RUNNING_MEAN,
    TIMELINE_WAITING_MEAN,
    Simulation,
)
from subak.simulator.episodes.begin import begin
from subak.simulator.episodes.decide import act, go_on
from subak.simulator.episodes.observe import observe
from subak.simulator.episodes.state import (
    ANY_JOB,
    HAS_ENDED,
    RUNNING_SECONDS,
    SECONDS,
    SLOWDOWNS,
    STEP_ALL,
    TASKS_HERE,
    WAITING_SECONDS,
    Episodes,
)


def serve_episodes(world: Episodes, _now: float, command: int) -> int:
    """Step every episode (STEP_ALL), or begin the chosen ones anew (BEGIN_CHOSEN); return how many are there.

    An episode that had ended at the step before begins anew instead, whatever its action, and gets no reward.
    """
    answers = world.answers
    count = answers.action.size
    for number in range(count):
        if command == STEP_ALL and not answers.ended[number]:
            step(world, number)
        elif command == STEP_ALL:
            renew(world, number, ANY_JOB)
        elif answers.chosen[number]:
            renew(world, number, answers.first_job[number])
    return int(count)


@noinline
def step(world: Episodes, number: int) -> None:
    """Do the action of one episode, and go on."""
    episode, answers = world.episodes[number], world.answers
    sim, mask, parts = episode.sim, answers.mask[number], answers.parts[number]
    parts[WAITING_SECONDS] = -integral(sim, TIMELINE_WAITING_MEAN)
    parts[RUNNING_SECONDS] = -integral(sim, TIMELINE_RUNNING_MEAN)
    parts[SECONDS] = -sim.clock.now
    parts[SLOWDOWNS] = 0.0
    if not episode.state[HAS_ENDED]:
        passes = act(episode, world.rules, answers.action[number], mask, parts)
        go_on(episode, mask, world.rules.size, passes, parts)
    parts[WAITING_SECONDS] += integral(sim, TIMELINE_WAITING_MEAN)
    parts[RUNNING_SECONDS] += integral(sim, TIMELINE_RUNNING_MEAN)
    parts[SECONDS] += sim.clock.now
    answers.ended[number] = episode.state[HAS_ENDED] != 0
    tell(world, number)


@noinline
def renew(world: Episodes, number: int, first_job: int) -> None:
    """Begin an episode anew, and go on to its first question; one that has none ends with the next step."""
    episode, answers = world.episodes[number], world.answers
    parts = answers.parts[number]
    begin(world.source, episode, first_job)
    go_on(episode, answers.mask[number], world.rules.size, False, parts)
    parts[:] = 0.0
    answers.ended[number] = False
    tell(world, number)


@inlined
def tell(world: Episodes, number: int) -> None:
    """Write what is seen of an episode, and the reward of this step."""
    answers, episode = world.answers, world.episodes[number]
    observe(episode, answers.waiting[number], answers.fleet[number])
    for place in range(episode.state.size):
        answers.state[number, place] = episode.state[place]
    cost = 0.0
    for part in range(world.weights.size):
        if world.weights[part] != 0.0:
            cost += world.weights[part] * answers.parts[number, part]
    answers.reward[number] = -cost / episode.state[TASKS_HERE]


@inlined
def integral(sim: Simulation, column: int) -> float:
    """Return what a column of the timeline has summed up since the episode began; it is closed at the end."""
    closed = sim.record.rows[0, column] if sim.counts.rows_closed > 0 else 0.0
    return float(closed + sim.record.current[column])


def service(world: Episodes) -> Callable[[int], int]:
    """Return what carries a command out for *world*, compiled; its arrays must stay where they are."""
    if not by_address():
        def in_plain_python(command: int) -> int:
            with np.errstate(over="ignore"):  # the words of 64 bits wrap
                return serve_episodes(world, 0.0, command)

        return in_plain_python
    compiled = compiled_service(serve_episodes, world)
    return lambda command: compiled(0.0, command)
