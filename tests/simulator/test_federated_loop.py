"""The loop around federated roles: what it keeps of attempts that were lost is bounded."""
import numpy as np
import pytest

from small import fleet_of, plain
from subak.federation.messages import PREEMPTED
from subak.federation.settings import Federation
from subak.placement.claims import TASK_FINISHED, TASK_RUNNING
from subak.simulator.engine.attempts import LOST_EVENTS_KEPT
from subak.simulator.engine.heap import SIZE
from subak.simulator.engine.state import (
    LOOP_LOSSES_FULL,
)
from subak.simulator.federated.loop import begin, halt, let_wait
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_task_may_be_preempted_any_number_of_times(tasks):
    """The ends of attempts that were lost stay in the heap until they are most of it; it has room for no more."""
    opened = open_federated(plain(*[(0, 1e9, 1)] * tasks), fleet_of((tasks,)), MEGHA,
                            Federation(global_masters=1, local_masters=1), 1, 10.0, np.inf, compiled=False)
    sim, net = opened.simulation, opened.network
    for task in range(tasks):
        let_wait(sim, net, task)
        begin(sim, net, task, 0)
    for number in range(3 * sim.events.slot.size):
        for name in ("losses", "arrived_now", "ended_now", "freed_now"):  # as with the next event
            setattr(sim.counts, name, 0)
        halt(sim, net, number % tasks, 0, PREEMPTED)
        begin(sim, net, number % tasks, 0)
        assert sim.events.size[SIZE] <= 2 * tasks + LOST_EVENTS_KEPT + 1
    assert (sim.claims.status == TASK_RUNNING).all()
    alive = {int(slot["item"]) for slot in sim.events.slot[: sim.events.size[SIZE]]
             if sim.progress.event[slot["item"]] == slot["sequence"]}
    assert alive == set(range(tasks))


@pytest.mark.parametrize("running", [0, 1, 2])
def test_there_is_room_for_an_end_that_was_lost_with_its_machine(running):
    """All that run may be lost in one step, and one that had ended may begin again in the same."""
    fleet = fleet_of((3,), (1,), changes=[(20.0, 1, False, 0)])
    opened = open_federated(plain((0, 1, 1), *[(0, 1e9, 1)] * running, (99, 1, 1)), fleet,
                            MEGHA, Federation(global_masters=1, local_masters=1), 1, 10.0, np.inf, compiled=False)
    sim, net = opened.simulation, opened.network
    while sim.counts.next_change == 0:
        opened.step(1)
    assert sim.counts.running_now == running and sim.claims.status[0] == TASK_FINISHED
    lost = sim.losses.task.size
    sim.counts.losses = lost  # as many before as the loop goes on with
    while opened.step(1) == LOOP_LOSSES_FULL:
        lost -= 1
        sim.counts.losses = lost
    for task in range(1, running + 1):
        halt(sim, net, task, int(sim.progress.machine[task]), PREEMPTED)
    begin(sim, net, 0, 0)
    assert sim.counts.losses == lost + running + 1 <= sim.losses.task.size
    assert sim.claims.status[0] == TASK_RUNNING
