"""The dispatchers of MapReduce stages equal their plain twins, assignment by assignment."""
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import naive_hmhs as naive
from subak.placement.mapreduce.baselines import by_rank, in_job_order, max_min, sufferage
from subak.placement.mapreduce.dispatch import Problem
from subak.placement.mapreduce.min_min import min_min

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=150)


def problem_of(case):
    """Every job its own group, every column a machine of its own."""
    jobs, columns = len(case["tasks"]), len(case["available"])
    return Problem(
        np.array(case["tasks"]), np.array(case["seconds"], float), np.array(case["shuffle"], float),
        np.array(case["ready"], float), np.arange(jobs, dtype=np.int32),
        np.ascontiguousarray(np.array(case["factor"], float).T), np.arange(columns, dtype=np.int32),
        np.array(case["available"], float),
    )


def rows(assignment):
    return list(zip(assignment.job.tolist(), assignment.column.tolist(), assignment.finish.tolist(), strict=True))


@st.composite
def cases(draw, ready="drawn", ties=True, forbidden=False):
    """Few values where *ties*; *ready* "zero", "drawn", or "distinct" times."""
    jobs, columns = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    seconds = st.sampled_from([1.0, 2.0, 2.0, 4.0]) if ties else st.floats(1.0, 50.0)
    factors = st.sampled_from([0.25, 0.5, 0.5, 1.0, 2.0]) if ties else st.floats(0.1, 1.0)
    times = st.sampled_from([0.0, 0.0, 1.0, 3.0, 4.0, 8.0]) if ties else st.floats(0.0, 60.0)
    factor = [[draw(factors) for _ in range(columns)] for _ in range(jobs)]
    if forbidden:
        for row in factor:
            for column in draw(st.sets(st.integers(0, columns - 1), max_size=columns - 1)):
                row[column] = math.inf
    arrival = {"zero": lambda: [0.0] * jobs, "drawn": lambda: [draw(times) for _ in range(jobs)],
               "distinct": lambda: draw(st.lists(times, min_size=jobs, max_size=jobs, unique=True))}[ready]()
    return {
        "tasks": draw(st.lists(st.integers(0, 6), min_size=jobs, max_size=jobs).filter(any)),
        "seconds": [draw(seconds) for _ in range(jobs)], "shuffle": [draw(times) for _ in range(jobs)],
        "ready": arrival, "factor": factor,
        "available": [0.0] * columns if ready == "zero" else [draw(times) for _ in range(columns)],
    }


@pytest.mark.parametrize("ties", [True, False])
@quick
@given(data=st.data())
def test_min_min_is_the_textbooks(ties, data):
    case = data.draw(cases("zero", ties))
    assert rows(min_min(problem_of(case))) == naive.min_min(case)


@quick
@given(cases("distinct", ties=False))
def test_dynamic_min_min_is_algorithm_1_as_printed(case):
    assert rows(min_min(problem_of(case))) == naive.algorithm_1(case)


@pytest.mark.parametrize("forbidden", [True, False])
@quick
@given(data=st.data())
def test_jobs_that_are_ready_together_are_admitted_together(forbidden, data):
    case = data.draw(cases("drawn", ties=True, forbidden=forbidden))
    assert rows(min_min(problem_of(case))) == naive.dynamic_min_min(case)


def test_where_algorithm_1_depends_on_the_numbers_of_jobs_it_is_not_followed():
    """Both jobs are ready at 1, and the machine before that: as printed job 0 goes first, though job 1 is shorter."""
    case = {"tasks": [1, 1], "seconds": [5.0, 2.0], "shuffle": [0.0, 0.0], "ready": [1.0, 1.0],
            "factor": [[1.0], [1.0]], "available": [0.0]}
    assert naive.algorithm_1(case) == [(0, 0, 6.0), (1, 0, 8.0)]
    assert rows(min_min(problem_of(case))) == [(1, 0, 3.0), (0, 0, 8.0)]


@pytest.mark.parametrize("name", ["max_min", "sufferage", "in_job_order"])
@pytest.mark.parametrize("ties", [True, False])
@quick
@given(data=st.data())
def test_the_baselines_equal_their_twins(name, ties, data):
    case = data.draw(cases("drawn", ties, forbidden=True))
    rule = {"max_min": max_min, "sufferage": sufferage, "in_job_order": in_job_order}[name]
    assert rows(rule(problem_of(case))) == getattr(naive, name)(case)


@quick
@given(cases("drawn", forbidden=True), st.data())
def test_ranks_are_followed(case, data):
    rank = [data.draw(st.sampled_from([1.0, 2.0, 3.0])) for _ in case["tasks"]]
    assert rows(by_rank(problem_of(case), np.array(rank))) == naive.by_rank(case, rank)


def test_several_slots_of_a_machine_share_its_factors():
    problem = Problem(np.array([3]), np.array([4.0]), np.zeros(1), np.zeros(1), np.zeros(1, np.int32),
                      np.array([[0.5], [1.0]]), np.array([0, 0, 1], np.int32), np.zeros(3))
    assert rows(min_min(problem)) == [(0, 0, 2.0), (0, 1, 2.0), (0, 0, 4.0)]
