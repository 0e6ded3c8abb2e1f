"""Dodoor: by hand, against a plain twin, and against the closed form of the better of two queues."""
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_dodoor
from small import TWO, fleet_of, plain, staged
from subak.federation.messages import ADD_LOAD, BOUNCED, LOADS, SET_LOAD
from subak.federation.settings import Federation
from subak.placement.claims import TASK_FINISHED
from subak.simulator.federated.sampling import DODOOR
from subak.simulator.federated.simulate import simulate_federated


def run(workload, fleet, federation, seed=1):
    brought = simulate_federated(workload, fleet, DODOOR, federation, seed, 1.0, False, math.inf)
    return brought["prepared"].simulation, brought["federated"]


# -- by hand -----------------------------------------------------------------------------------------------------------

def test_the_messages_of_sixteen_tasks_are_counted():
    workload = staged([{"request": (1,)}], [(0, 0, 1)] * 16)
    federation = Federation(service_scale=0.0, global_masters=3, push_ratio=4.0, report_tasks=4)
    _, federated = run(workload, fleet_of((8,), (8,)), federation)
    handled = federated.network.handled
    assert handled[ADD_LOAD] == 16 / 4  # four decisions each
    assert handled[SET_LOAD] == 16  # at each end
    assert handled[LOADS] == 16 / 8 * 3  # 4 decisions for each of 2 workers, to 3 schedulers


def test_who_was_told_nothing_takes_the_first_and_who_was_told_all_the_idle_one():
    """One worker of two is busy; the second task avoids it whenever both were drawn, if the scheduler knows."""
    def share_on_the_busy_one(push_ratio):
        found = []
        for seed in range(200):
            federation = Federation(service_scale=0.0, global_masters=1, push_ratio=push_ratio, report_tasks=1)
            simulation, _ = run(plain((0, 100, 1), (1, 1, 1)), fleet_of((1,), (1,)), federation, seed)
            machine = simulation.progress.machine
            found.append(machine[0] == machine[1])
        return np.mean(found)
    assert abs(share_on_the_busy_one(0.0) - 1 / 4) < 0.1  # drawn twice
    assert abs(share_on_the_busy_one(9.0) - 1 / 2) < 0.11


@pytest.mark.parametrize(("weight", "expected"), [(0.0, 1), (1.0, 0)])
def test_amounts_or_seconds_decide(weight, expected):
    """Worker 0 has half of its cores in use for a second, worker 1 a quarter for 100 s: both hold a task more."""
    stages = [{"job": 0, "request": (2,), "constraints": [("at", "=", "0")]},
              {"job": 1, "request": (1,), "constraints": [("at", "=", "1")]}, {"job": 2, "request": (1,)}]
    fleet = fleet_of((4,), (4,), attributes=[(0, "at", "0"), (1, "at", "1")])
    federation = Federation(service_scale=0.0, global_masters=1, push_ratio=0.0, report_tasks=1,
                            duration_weight=weight)
    went = []
    for seed in range(40):
        simulation, _ = run(staged(stages, [(0, 0, 1), (1, 0, 100), (2, 0.5, 1)]), fleet, federation, seed)
        went.append(int(simulation.progress.machine[2]))
    other = went.count(1 - expected)
    assert 3 <= other <= 18, "a quarter is drawn twice from the other"  # 10 are expected, of 40


def test_a_worker_that_leaves_has_nothing_to_do_and_its_tasks_are_decided_anew():
    """Of 2 workers with a slot each one leaves for good; all 6 tasks end on the other, and all decisions are told."""
    fleet = fleet_of((1,), (1,), changes=[(3.0, 0, False, 0)])
    federation = Federation(service_scale=0.0, global_masters=2, report_tasks=1)
    simulation, federated = run(plain(*[(0, 2, 1)] * 6), fleet, federation)
    loads = federated.roles.loads
    assert (simulation.claims.status == TASK_FINISHED).all()
    again = federated.network.handled[BOUNCED]
    assert again > 0
    assert loads.decisions[0] == federated.network.handled[ADD_LOAD] == 6 + again
    for load in (loads.held, loads.told, loads.stored):
        assert (load == 0).all()


# -- against a plain twin ----------------------------------------------------------------------------------------------

REQUESTS = st.tuples(st.integers(1, 4), st.integers(0, 4))


@settings(deadline=None, max_examples=150)
@given(
    requests=st.lists(REQUESTS, min_size=1, max_size=4), capacities=st.lists(
        st.tuples(st.integers(4, 8), st.integers(4, 16)), min_size=1, max_size=6),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12), random=st.integers(0, 2**32),
    federation=st.builds(
        Federation, service_scale=st.just(0.0), global_masters=st.integers(1, 3), delay=st.sampled_from([0.0005, 0.7]),
        push_ratio=st.sampled_from([0.0, 0.5, 1.0, 3.0]), report_tasks=st.sampled_from([1, 2, 8]),
        duration_weight=st.sampled_from([0.0, 0.5, 0.95, 1.0])),
)
def test_starts_and_machines_are_those_of_the_plain_twin(requests, capacities, sizes, random, federation):
    drawn = np.random.default_rng(random)
    stages, tasks = [], []
    for job, size in enumerate(sizes):
        stages.append({"job": job, "request": requests[job % len(requests)]})
        at = drawn.uniform(0, 8)
        tasks += [(job, at, drawn.exponential(2.0)) for _ in range(size)]
    workload = staged(stages, sorted(tasks, key=lambda task: task[1]), TWO)
    simulation, federated = run(workload, fleet_of(*capacities, resources=TWO), federation, seed=random)
    expected = naive_dodoor.starts(simulation, federated.roles.sparrow.batches, federation, random)
    found = zip(simulation.progress.start.tolist(), simulation.progress.machine.tolist(), strict=True)
    assert list(found) == expected


# -- closed forms ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("load", [0.5, 0.9])
def test_fresh_loads_are_the_better_of_two_queues(load):
    """Alike tasks, workers that run one, loads told at each decision: the mean wait of Mitzenmacher's supermarket.

    In the limit of many workers a task is in the system for sum load^(2^i - 2), i from 1 on, its own run time 1.
    """
    workers, count = 500, 150_000
    drawn = np.random.default_rng(3)
    arrival = np.cumsum(drawn.exponential(1 / (load * workers), count))
    workload = staged([{"request": (1,)}], list(zip([0] * count, arrival, drawn.exponential(1.0, count), strict=True)))
    federation = Federation(service_scale=0.0, global_masters=1, delay=1e-7, push_ratio=0.0, report_tasks=1,
                            duration_weight=0.0, sampling="task")
    simulation, _ = run(workload, fleet_of(*[(1,)] * workers), federation)
    waited = (simulation.progress.start - simulation.progress.ready)[count // 5 :].mean()
    expected = sum(load ** (2**i - 2) for i in range(1, 12)) - 1.0
    assert math.isclose(waited, expected, rel_tol=0.04), f"{waited} s, the closed form says {expected}"
