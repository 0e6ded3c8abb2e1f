"""Flat weights: the paper's, collapsed and exact; when the paper's are right."""
import numpy as np
import pytest
from hypothesis import assume, event, given, settings

from subak.queues.curves import curves_of
from subak.queues.flatten import (
    collapsed_weights,
    every_leaf_has_a_bottleneck,
    exact_weights,
    first_saturated,
    mch_weights,
    weighted_drf,
)
from subak.queues.fluid import fluid_shares, make_problem
from trees import by_leaf, nested, problems, truth

TWO = np.array([100, 100])
FIG_4 = {"n1": {"1": [1, 0], "2": [0, 1]}, "n2": {"1": [1, 0], "2": [1, 0], "3": [0, 1]}, "n3": {"1": [1, 0]}}
SAME = 1e-8


def same(one, other):
    return abs(one - other).max() < SAME


# By hand


def test_the_papers_weights_of_its_figure():
    tree, demand = nested(FIG_4)
    assert first_saturated(tree, demand, TWO) == 0
    assert mch_weights(tree, demand, TWO).tolist() == [1, 1, 0.5, 0.5, 1, 1]
    assert exact_weights(tree, demand, TWO) == pytest.approx([1/3, 1/2, 1/6, 1/6, 1/2, 1/3])


def test_weights_of_the_tree_multiply():
    """a has twice b's weight, a/1 three times a/2's: relative weights 4/3 and 2/3, 3/2 and 1/2; mu of a is 2."""
    tree, demand = nested({"a": {"1": [1, 0], "2": [1, 0]}, "b": [1, 0]}, {"a": 2, "a/1": 3})
    weights = mch_weights(tree, demand, TWO)
    assert weights == pytest.approx([1, 1/3, 2/3])
    assert weighted_drf(weights, demand, TWO) == pytest.approx([1/2, 1/6, 1/3])
    assert collapsed_weights(tree) == pytest.approx([1/2, 1/6, 1/3])


def test_a_flat_tree_is_weighted_drf():
    tree, demand = nested({"a": [1, 0], "b": [0, 2], "c": [2, 1]}, {"a": 3, "b": 0.5})
    ratio = mch_weights(tree, demand, TWO) / tree.weight[tree.leaves]
    assert ratio == pytest.approx(ratio[0])
    assert weighted_drf(tree.weight[tree.leaves], demand, TWO) == pytest.approx(fluid_shares(tree, demand, TWO))


def test_a_collapse_breaks_the_guarantee_of_a_group():
    tree, demand = nested({"sci": [1, 1], "eng": {"dev": [1, 0], "prod": [0, 1]}})
    weights = collapsed_weights(tree)
    assert weights.tolist() == [0.5, 0.25, 0.25]
    assert weighted_drf(weights, demand, np.array([120, 120])) * 120 == pytest.approx([80, 40, 40])
    assert weighted_drf(mch_weights(tree, demand, TWO), demand, TWO) == pytest.approx([0.5, 0.5, 0.5])


def test_where_the_papers_weights_are_wrong():
    """Two leaves of x ask for memory only: the tree gives them half of it together, 1 and 1 and 1 a third each."""
    tree, demand = nested({"x": {"1": [0, 1], "2": [0, 1]}, "y": {"1": [0, 1], "2": [1, 0]}, "z": [1, 0], "u": [1, 0]})
    exact, weights = exact_weights(tree, demand, TWO), mch_weights(tree, demand, TWO)
    assert first_saturated(tree, demand, TWO) == 0
    assert exact == pytest.approx([1/4, 1/4, 1/2, 1/3, 1/3, 1/3])
    assert weighted_drf(weights, demand, TWO) == pytest.approx([1/3, 1/3, 1/3, 1/3, 1/3, 1/3])
    assert not every_leaf_has_a_bottleneck(weights, exact, demand, TWO)


def test_partial_leaves_that_weigh_1_may_stop_full_ones_early():
    """Four memory leaves of m weigh 1 each, as much as f and g: flat, memory runs out while most of the cpu is idle.

    In the tree m counts as one: cpu is used up at a level of 1/2, by then f and g hold 0.2 of memory each.
    """
    tree, demand = nested({"m": {str(number): [0, 1] for number in range(4)}, "f": [5, 2], "g": [5, 2]})
    exact, weights = exact_weights(tree, demand, TWO), mch_weights(tree, demand, TWO)
    assert first_saturated(tree, demand, TWO) == 0
    assert exact == pytest.approx([0.15] * 4 + [0.5] * 2)
    assert weighted_drf(weights, demand, TWO) == pytest.approx([1 / 4.8] * 6)
    assert not every_leaf_has_a_bottleneck(weights, exact, demand, TWO)


def test_the_curve_of_a_node_before_any_saturation_is_a_ray():
    """Its share is mu times its children's level: MCH's formula."""
    tree, demand = nested(FIG_4)
    problem = make_problem(tree, demand, TWO, None)
    curves = curves_of(problem, np.zeros(6), np.ones(len(tree), bool))
    n2 = tree.names.index("n2")
    assert len(curves[n2].share) == 1
    assert curves[n2].ray.tolist() == [1, 0.5]
    assert curves[n2].place_ray.tolist() == [0.5, 0.5, 0.5]  # 1 / mu


# Known answers


@pytest.mark.parametrize("case", truth("mch"))
def test_known_mch(case):
    tree, demand = nested(case["tree"])
    capacity = np.array(case["capacity"])
    weights = mch_weights(tree, demand, capacity)
    assert by_leaf(tree, weights) == case["flat_weights"]
    shares = weighted_drf(weights, demand, capacity)
    assert by_leaf(tree, shares) == pytest.approx(case["dominant_share"], abs=0.004)
    gone = np.array([0 if name == "n1/2" else 10**9 for name in by_leaf(tree, shares)])
    after = by_leaf(tree, weighted_drf(weights, demand, capacity, gone))
    assert after["n2/3"] == pytest.approx(case["after_n1/2_leaves"]["n2/3"])


@pytest.mark.parametrize("case", truth("collapsed"))
def test_known_collapse(case):
    tree, demand = nested({"sci": case["demand"]["sci"],
                           "eng": {"dev": case["demand"]["eng/dev"], "prod": case["demand"]["eng/prod"]}})
    weights, capacity = collapsed_weights(tree), np.array(case["capacity"])
    assert by_leaf(tree, weights) == case["flat_weights"]
    tasks = weighted_drf(weights, demand, capacity) / (demand / capacity).max(axis=1)
    assert by_leaf(tree, tasks) == pytest.approx(case["tasks"])


# Against the reference


@given(problems(limits=(np.inf, np.inf, np.inf, 0.3)))
@settings(max_examples=150, deadline=None)
def test_exact_weights_are_the_fluid_shares(problem):
    """Two derivations, by curves and by events, end in the same."""
    assert exact_weights(*problem) == pytest.approx(fluid_shares(*problem), abs=SAME)


@given(problems())
@settings(max_examples=80, deadline=None)
def test_flat_drf_with_exact_weights_is_the_hierarchy(problem):
    _, demand, capacity, tasks = problem
    weights = exact_weights(*problem)
    assert weighted_drf(weights, demand, capacity, tasks) == pytest.approx(fluid_shares(*problem), abs=SAME)
    busy = weights > 0
    assert every_leaf_has_a_bottleneck(weights[busy], weights[busy], demand[busy], capacity,
                                       None if tasks is None else tasks[busy])


@given(problems())
@settings(max_examples=150, deadline=None)
def test_mch_is_right_exactly_where_every_leaf_has_a_bottleneck(problem):
    tree, demand, capacity, tasks = problem
    weights, shares = mch_weights(tree, demand, capacity), fluid_shares(*problem)
    condition = every_leaf_has_a_bottleneck(weights, shares, demand, capacity, tasks)
    event(f"condition holds: {condition}")
    assert condition == same(weighted_drf(weights, demand, capacity, tasks), shares)


@given(problems(ends=False))
@settings(max_examples=60, deadline=None)
def test_mch_is_right_where_all_ask_for_the_first_to_saturate(problem):
    tree, demand, capacity, _ = problem
    demand = demand.copy()
    demand[:, 0] = np.maximum(demand[:, 0], 2)
    assume((demand[:, first_saturated(tree, demand, capacity)] > 0).all())
    shares = weighted_drf(mch_weights(tree, demand, capacity), demand, capacity)
    assert shares == pytest.approx(fluid_shares(tree, demand, capacity), abs=SAME)


def partial_leaves_come_out_even(tree, demand, capacity):
    """The condition of docs/fairness.md in the paper's setting, from the weights alone.

    Two resources, all nodes weigh 1, a leaf asks for both or one. When k' is used up at *level*, the leaves that ask
    for it stay; *even* is what the partial leaves get if they share the rest of k evenly, as MCH has it. Then

    1. *even* is at least *level*, if one that stays asks for k (else k would run out first, and stop it early);
    2. sibling queues with partial leaves below count the same of k; one whose partial leaves are given nothing any
       more may count more, and then counts as its siblings do.
    """
    direction = make_problem(tree, demand, capacity, None).direction
    first = first_saturated(tree, demand, capacity)
    partial = demand[:, first] == 0
    if not partial.any():
        return True
    mu, weights = reach(tree, direction)
    level = 1 / mu
    held = np.where(partial, 0.0, weights * level * direction[:, 1 - first])
    even = (1 - held.sum()) / partial.sum()
    if held.any() and even < level * (1 - SAME):
        return False
    return counts_evenly(tree, held + even * partial, partial, partial & (even > weights * level * (1 + SAME)))


def reach(tree, direction):
    """The root's mu, and the dominant share of each leaf for one of the root's level: products of 1 / mu."""
    vector, mu = np.zeros((len(tree), 2)), np.ones(len(tree))
    vector[tree.leaves] = direction
    for node in range(len(tree) - 1, -1, -1):
        mu[node] = vector[node].max()
        if node > 0:
            vector[tree.parent[node]] += vector[node] / mu[node]
    return mu[0], np.array([1 / np.prod([mu[each] for each in tree.above(int(leaf))]) for leaf in tree.leaves])


def counts_evenly(tree, held, partial, grows):
    has_partial, has_grown = tree.active(partial), tree.active(grows)
    counted = np.zeros(len(tree))
    counted[tree.leaves] = held
    for node in range(len(tree) - 1, -1, -1):
        siblings = [child for child in tree.children[node] if has_partial[child]]
        least = min(counted[siblings], default=0.0)
        if any(has_grown[child] and counted[child] > least * (1 + SAME) for child in siblings):
            return False
        if tree.children[node]:
            counted[node] = sum(least if has_partial[child] else counted[child] for child in tree.children[node])
    return True


@given(problems(resources=(2,), weights=(1,), ends=False))
@settings(max_examples=150, deadline=None)
def test_when_mch_is_right_in_the_papers_setting(problem):
    tree, demand, capacity, _ = problem
    right = same(weighted_drf(mch_weights(tree, demand, capacity), demand, capacity),
                 fluid_shares(tree, demand, capacity))
    expected = partial_leaves_come_out_even(tree, demand, capacity)
    event(f"right: {right}")
    assert right == expected


@given(problems())
@settings(max_examples=40, deadline=None)
def test_mch_depends_on_ratios_of_weights_only(problem):
    tree, demand, capacity, _ = problem
    weight = tree.weight.copy()
    weight[1:] *= np.where(tree.depth[1:] == 1, 7.0, 3.0)
    scaled = type(tree)(tree.names, tree.parent, weight, tree.limit)
    assert mch_weights(scaled, demand, capacity) == pytest.approx(mch_weights(tree, demand, capacity))
    assert collapsed_weights(scaled) == pytest.approx(collapsed_weights(tree))
