"""The fluid allocation: by hand, against known answers, H-DRF with small tasks, and what must always hold."""
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from naive_hdrf import hdrf
from subak.queues.fluid import fluid_shares, make_problem, used_shares
from subak.queues.tree import Queue, TreeFile, tree_of_paths
from trees import by_leaf, nested, problems, truth


def tasks_of(tree, demand, capacity, tasks=None):
    """The fluid numbers of tasks by leaf."""
    shares = fluid_shares(tree, demand, np.array(capacity), tasks)
    return by_leaf(tree, shares / (demand / np.array(capacity)).max(axis=1))


def naive_tasks(tree, demand, capacity, tasks=None):
    order = Counter(hdrf(tree, demand, capacity, tasks))
    return by_leaf(tree, [order[leaf] for leaf in range(len(demand))])


# By hand


def test_flat_drf():
    """NSDI 2011, section 4.1: 9 cpu, 18 GB; A asks for 1 and 4, B for 3 and 1: both come to two thirds."""
    tree, demand = nested({"A": [1, 4], "B": [3, 1]})
    assert tasks_of(tree, demand, [9, 18]) == pytest.approx({"A": 3, "B": 2})
    assert naive_tasks(tree, demand, [9, 18]) == {"A": 3, "B": 2}


def test_children_that_fit_together_do_not_punish_their_parent():
    tree, demand = nested({"sci": [1, 1], "eng": {"dev": [1, 0], "prod": [0, 1]}})
    assert tasks_of(tree, demand, [10, 10]) == pytest.approx({"sci": 5, "eng/dev": 5, "eng/prod": 5})


BLOCKED = {"1": [1, 0], "2": [1, 0], "3": {"1": [1, 0], "2": [0, 1]}, "4": [0, 1]}


def test_what_the_blocked_hold_counts_as_it_is():
    """Cpu is used up at a third each; then 3/2 and 4 share memory evenly. Rescaled it would be 20 and 10."""
    tree, demand = nested(BLOCKED)
    expected = {"1": 10, "2": 10, "3/1": 10, "3/2": 15, "4": 15}
    assert tasks_of(tree, demand, [30, 30]) == pytest.approx(expected)
    assert naive_tasks(tree, demand, [30, 30]) == expected


FIG_4 = {"n1": {"1": [1, 0], "2": [0, 1]}, "n2": {"1": [1, 0], "2": [1, 0], "3": [0, 1]}, "n3": {"1": [1, 0]}}


def test_what_is_left_equalises_shares_not_increments():
    """MCH, Fig. 4: n1/2 is at 1/3 and n2/3 at 1/6 when cpu is used up; both end at 1/2, not at 0.58 and 0.42."""
    tree, demand = nested(FIG_4)
    assert fluid_shares(tree, demand, np.array([200, 200])) == pytest.approx([1/3, 1/2, 1/6, 1/6, 1/2, 1/3])


def counts(tree, ends):
    """How many tasks each leaf has: as named, without end else."""
    return np.array([ends.get(tree.names[leaf], 10**9) for leaf in tree.leaves])


def test_a_queue_whose_share_stands_still_is_given_until_it_rises():
    """At a level of 0.28 a/1 has all its tasks; a/2, of weight 1/3, is at 0.0933 and c, d, e at 0.28 of the cpu.

    What a/1 holds of memory keeps a's share at 0.28 while a/2 rises, and the others wait: it gets all cpu that is left.
    """
    tree, demand = nested({"a": {"1": [0, 1], "2": [1, 0]}, "c": [1, 0], "d": [1, 0], "e": [1, 0]}, {"a/2": 1 / 3})
    tasks, expected = counts(tree, {"a/1": 28}), {"a/1": 28, "a/2": 16, "c": 28, "d": 28, "e": 28}
    assert tasks_of(tree, demand, [100, 100], tasks) == pytest.approx(expected)
    assert naive_tasks(tree, demand, [100, 100], tasks) == expected


def test_equals_that_stand_still_are_given_in_the_order_listed():
    """At a level of 0.2 a and b stand still with 0.02 of the cpu each, c to f have 0.8: a/2 gets the 0.16 left."""
    group = {"1": [0, 1], "2": [1, 0]}
    tree, demand = nested({"a": group, "b": group, **{name: [1, 0] for name in "cdef"}}, {"a/2": 0.1, "b/2": 0.1})
    tasks, cpu = counts(tree, {"a/1": 100, "b/1": 100}), {name: 100 for name in "cdef"}
    expected = {"a/1": 100, "a/2": 90, "b/1": 100, "b/2": 10, **cpu}
    assert tasks_of(tree, demand, [500, 500], tasks) == pytest.approx(expected)
    assert naive_tasks(tree, demand, [500, 500], tasks) == pytest.approx(expected, abs=1)


def test_weights_of_a_group_hold_within_and_between():
    tree, demand = nested({"ads": {"prod": [1, 1], "test": [1, 1]}, "dev": {"prod": [1, 1], "test": [1, 1]}},
                          {"ads": 60, "ads/prod": 90, "ads/test": 10, "dev": 40, "dev/prod": 90, "dev/test": 10})
    assert tasks_of(tree, demand, [1000, 1000]) == pytest.approx(
        {"ads/prod": 540, "ads/test": 60, "dev/prod": 360, "dev/test": 40})


def test_limits_stop_a_queue_in_what_it_holds_its_limit_of():
    """`a` may hold a fifth: of cpu its first child is at it, of memory its second; b takes what is left."""
    tree = tree_of_paths(["a/1", "a/2", "b"], TreeFile(queue=[Queue(name="a", limit=0.2)]))
    demand = np.array([[1, 0], [0, 1], [1, 1]])
    assert tasks_of(tree, demand, [100, 100]) == pytest.approx({"a/1": 20, "a/2": 20, "b": 80})
    assert naive_tasks(tree, demand, [100, 100]) == {"a/1": 20, "a/2": 20, "b": 80}


def test_who_has_all_tasks_leaves_the_rest_to_others():
    tree, demand = nested(FIG_4)
    alone = fluid_shares(tree, demand, np.array([200, 200]), counts(tree, {"n1/2": 0}))
    assert alone == pytest.approx([1/3, 0, 1/6, 1/6, 1, 1/3])  # MCH, section IV-A: "n2,3 increases to 1"


# Known answers


@pytest.mark.parametrize("case", truth("drf"))
def test_known_drf(case):
    tree, demand = nested(case["demand"])
    assert tasks_of(tree, demand, case["capacity"]) == pytest.approx(case["tasks"])
    assert naive_tasks(tree, demand, case["capacity"]) == case["tasks"]


@pytest.mark.parametrize("case", truth("hdrf"))
def test_known_hdrf(case):
    tree, demand = nested(case["tree"], case.get("weights"))
    found = tasks_of(tree, demand, case["capacity"])
    assert found == pytest.approx(case["tasks"])
    assert naive_tasks(tree, demand, case["capacity"]) == case["tasks"]
    wrong = case.get("wrong_if_blocked_children_are_rescaled", {"none": math.inf})
    assert all(abs(found.get(name, 0) - count) > 4 for name, count in wrong.items())


@pytest.mark.parametrize("case", truth("mch"))
def test_known_mch(case):
    tree, demand = nested(case["tree"])
    found = tasks_of(tree, demand, case["capacity"])
    assert by_leaf(tree, fluid_shares(tree, demand, np.array(case["capacity"]))) == pytest.approx(
        case["dominant_share"], abs=0.004)
    assert found == pytest.approx(case["hdrf_tasks"], abs=1)
    assert naive_tasks(tree, demand, case["capacity"]) == case["hdrf_tasks"]
    assert all(abs(found[name] - count) > 15 for name, count in case["wrong_if_increments_are_equal"].items())
    after = by_leaf(tree, fluid_shares(tree, demand, np.array(case["capacity"]), counts(tree, {"n1/2": 0})))
    assert after["n2/3"] == pytest.approx(case["after_n1/2_leaves"]["n2/3"])


# H-DRF with tasks of a hundredth


@given(problems(limits=(math.inf, math.inf, 0.25), leaves_max=6))
@settings(max_examples=40, deadline=None)
def test_small_tasks_come_near_the_fluid(problem):
    """Each choice may be off by a task at every level of the tree; what each other leaf lacks may all be one leaf's."""
    tree, demand, capacity, tasks = problem
    capacity = capacity * 5
    tasks = None if tasks is None else tasks * 5
    shares = fluid_shares(tree, demand, capacity, tasks)
    largest = (demand / capacity).max(axis=1)
    order = Counter(hdrf(tree, demand, capacity, tasks))
    given_ = np.array([order[leaf] for leaf in range(len(demand))]) * largest
    assert given_ == pytest.approx(shares, abs=max(4, len(demand)) * largest.max())


# What must always hold


ANY = problems(limits=(math.inf, math.inf, math.inf, 0.3))


@given(ANY)
@settings(max_examples=60, deadline=None)
def test_nothing_is_more_than_full_and_what_can_be_used_is(problem):
    tree, demand, capacity, tasks = problem
    shares = fluid_shares(tree, demand, capacity, tasks)
    fluid = make_problem(tree, demand, capacity, tasks)
    used = used_shares(fluid, shares)
    limit = np.append(1.0, tree.limit[1:])[:, None]
    assert (used <= limit * (1 + 1e-9)).all()
    assert (shares <= fluid.ceiling * (1 + 1e-9)).all()
    for leaf, node in enumerate(tree.leaves):  # a leaf that could have more is held by nothing
        full = [used[each] >= limit[each] * (1 - 1e-9) for each in (0, *tree.above(int(node)))]
        assert shares[leaf] >= fluid.ceiling[leaf] * (1 - 1e-9) or (np.any(full, axis=0) & (demand[leaf] > 0)).any()


@given(problems())
@settings(max_examples=60, deadline=None)
def test_who_wants_more_has_the_guarantee(problem):
    tree, demand, capacity, tasks = problem
    shares = fluid_shares(tree, demand, capacity, tasks)
    ceiling = make_problem(tree, demand, capacity, tasks).ceiling
    wants, held = shares < ceiling * (1 - 1e-9), used_shares(make_problem(tree, demand, capacity, tasks), shares)
    guarantee = tree.guarantee(tree.active(ceiling > 0))
    hungry = tree.active(wants)
    assert (held.max(axis=1)[hungry] >= guarantee[hungry] * (1 - 1e-9)).all()


@given(ANY)
@settings(max_examples=40, deadline=None)
def test_an_idle_queue_changes_nothing(problem):
    tree, demand, capacity, tasks = problem
    queues = [Queue(name=name, weight=weight, limit=limit)
              for name, weight, limit in zip(tree.names[1:], tree.weight[1:], tree.limit[1:], strict=True)]
    wider = tree_of_paths([tree.names[leaf] for leaf in tree.leaves], TreeFile(queue=[*queues, Queue(name="idle/x")]))
    more = np.vstack([demand, np.ones(demand.shape[1])])
    left = np.append(np.full(len(demand), 10**9) if tasks is None else tasks, 0)
    assert wider.names[-1] == "idle/x"
    assert fluid_shares(wider, more, capacity, left)[:-1] == pytest.approx(
        fluid_shares(tree, demand, capacity, tasks), abs=1e-9)


@given(ANY)
@settings(max_examples=40, deadline=None)
def test_only_ratios_of_weights_matter(problem):
    tree, demand, capacity, tasks = problem
    queues = [Queue(name=name, weight=weight * (7 if "/" in name else 3), limit=limit)
              for name, weight, limit in zip(tree.names[1:], tree.weight[1:], tree.limit[1:], strict=True)]
    scaled = tree_of_paths([], TreeFile(queue=queues))
    assert fluid_shares(scaled, demand, capacity, tasks) == pytest.approx(
        fluid_shares(tree, demand, capacity, tasks), abs=1e-9)
