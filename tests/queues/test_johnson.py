"""Johnson's order: the known answer, the rule itself, and the best of all sequences on two machines."""
import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from batches import batch, machines
from published import answers
from small import fleet_of, staged
from subak.fleet.shapes import find_shapes
from subak.measures.of_run import makespan
from subak.policy import find_scheduler
from subak.queues.johnson import johnson_ranks, places, priorities
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate
from subak.workload.table import expected_seconds

TRUTH = answers("queueing")["johnson"]  # jobs (map seconds, reduce seconds), order, makespan, fifo_makespan
PAIRS = machines((1, 0), (0, 1))


def flow_shop(jobs):
    """The makespan of jobs (map seconds, reduce seconds) in this sequence on a map and a reduce machine."""
    mapped = reduced = 0.0
    for map_seconds, reduce_seconds in jobs:
        mapped += map_seconds
        reduced = max(reduced, mapped) + reduce_seconds
    return reduced


def johnsons_steps(jobs):
    """Steps 1 to 4 of hmhs 3.1, as printed."""
    first, second = [], []
    for job in sorted(range(len(jobs)), key=lambda each: min(jobs[each])):
        if jobs[job][0] <= jobs[job][1]:
            first.append(job)
        else:
            second.insert(0, job)
    return first + second


def simulated(jobs, scheduler):
    workload = batch(*[(1, one, 1, two) for one, two in jobs], grouped=False)
    outcome = simulate(workload, PAIRS, find_scheduler(scheduler))
    return makespan(task_table(outcome, workload, PAIRS))


def test_the_known_answer():
    jobs = TRUTH["jobs"]
    place = places(priorities(*np.array(jobs, float).T))
    assert (np.argsort(place) + 1).tolist() == TRUTH["order"]
    assert flow_shop([jobs[each - 1] for each in TRUTH["order"]]) == TRUTH["makespan"]
    assert simulated(jobs, "first-fit+backfill+johnson") == TRUTH["makespan"]
    assert simulated(jobs, "first-fit+backfill") == TRUTH["fifo_makespan"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=9,
                unique_by=min))
def test_the_priority_is_johnsons_steps(jobs):
    assert np.argsort(places(priorities(*np.array(jobs, float).T))).tolist() == johnsons_steps(jobs)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=7))
def test_no_sequence_of_two_machines_is_better(jobs):
    best = min(flow_shop(order) for order in itertools.permutations(jobs))
    assert simulated(jobs, "first-fit+backfill+johnson") == best


def ranks(workload, fleet, descending=False):
    return johnson_ranks(workload, fleet, find_shapes(workload), expected_seconds(workload), descending).tolist()


def test_sums_count_tasks_and_the_mean_factor_of_the_machines_that_may_run_them():
    """Job 0: maps 2 * 10 * 0.5, reduces 12; job 1: maps 8, reduces 9. Reduce machines' map factors do not count."""
    workload = batch((2, 10, 1, 3), (1, 8, 3, 3))
    fleet = machines((1, 0), (1, 0), (0, 1), speeds=[[0.25, 0.75, 4.0], [1.0, 1.0, 1.0]])
    assert ranks(workload, fleet) == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert ranks(workload, fleet, descending=True) == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]


def test_a_job_without_maps_goes_first_and_one_without_reduces_last():
    workload = batch((1, 1, 0, 0), (1, 5, 1, 9), (0, 0, 1, 7), grouped=False)
    assert ranks(workload, PAIRS) == [2.0, 1.0, 1.0, 0.0]


def test_ties_go_by_job_in_both_directions():
    workload = batch((1, 4, 1, 9), (1, 4, 1, 6), (1, 9, 1, 4), grouped=False)
    assert ranks(workload, PAIRS) == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    assert ranks(workload, PAIRS, descending=True) == [1.0, 1.0, 2.0, 2.0, 0.0, 0.0]


def test_any_workload_has_the_order():
    """Later stages of a graph count as reduces; estimates are what it goes by."""
    workload = staged([{"job": 0, "request": (1,)}, {"job": 0, "request": (1,), "depends_on": [0]},
                       {"job": 0, "request": (1,), "depends_on": [1]}, {"job": 1, "request": (1,)}],
                      [(0, 0, 1, 5), (1, 0, 1, 2), (2, 0, 1, 2), (3, 0, 1, 1)])
    assert ranks(workload, fleet_of((1,))) == [0.0, 0.0, 0.0, 1.0]
