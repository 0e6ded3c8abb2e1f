"""Fair orders: known answers, H-DRF choice by choice against its definition, and what holds in every run."""
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from naive_hdrf import hdrf
from small import TWO, fleet_of, plain, staged
from subak.errors import InputError
from subak.fleet.state import FREE_WHEN_ABSENT
from subak.placement import fair, reclaim
from subak.placement.claims import TASK_FINISHED, TASK_RUNNING
from subak.policy import find_scheduler
from subak.queues.fair_orders import ENDLESS, hand_out, pooled, share_out
from subak.queues.hierarchy import GATE, KIND, NOBODY, Hierarchy, refresh, refresh_all
from subak.queues.orders import FAIR_ORDERS
from subak.queues.tree import Queue, QueueTree, TreeFile, tree_of_paths
from subak.simulator.engine.attempts import LOST_EVENTS_KEPT
from subak.simulator.engine.heap import SIZE
from subak.simulator.simulate import simulate
from trees import nested, problems, truth

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))
HIERARCHICAL = ("hdrf", "hdrf-fast", "mch-exact")


def shares_of(queues, capacity, order, weights=None):
    tree, demand = nested(queues, weights)
    return share_out(tree, demand, np.array(capacity), order).tolist()


# -- known answers -----------------------------------------------------------------------------------------------------


def test_drf_as_in_its_paper():
    assert shares_of({"A": [1, 4], "B": [3, 1]}, [9, 18], "drf") == [3, 2]


@pytest.mark.parametrize("order", HIERARCHICAL)
def test_children_are_rescaled(order):
    assert shares_of({"sci": [1, 1], "eng": {"dev": [1, 0], "prod": [0, 1]}}, [10, 10], order) == [5, 5, 5]


@pytest.mark.parametrize("order", HIERARCHICAL)
def test_blocked_children_are_not_rescaled(order):
    queues = {"1": [1, 0], "2": [1, 0], "3": {"1": [1, 0], "2": [0, 1]}, "4": [0, 1]}
    found = shares_of(queues, [30, 30], order)
    assert found == [10, 10, 10, 15, 15]
    assert found != [10, 10, 10, 20, 10]  # if blocked children were rescaled


@pytest.mark.parametrize("order", [*HIERARCHICAL, "mch"])
def test_weights(order):
    queues = {"ads": {"prod": [1, 1], "test": [1, 1]}, "dev": {"prod": [1, 1], "test": [1, 1]}}
    weights = {"ads": 60, "ads/prod": 90, "ads/test": 10, "dev": 40, "dev/prod": 90, "dev/test": 10}
    assert shares_of(queues, [1000, 1000], order, weights) == [540, 60, 360, 40]


FIG_4 = {"n1": {"1": [1, 0], "2": [0, 1]}, "n2": {"1": [1, 0], "2": [1, 0], "3": [0, 1]}, "n3": {"1": [1, 0]}}


@pytest.mark.parametrize("order", [*HIERARCHICAL, "mch"])
def test_mch_figure_4(order):
    found = shares_of(FIG_4, [200, 200], order)
    assert found == [67, 100, 34, 33, 100, 66]  # 116.7 and 83.3 of memory if increments were equal
    alone = {**FIG_4, "n1": {"1": [1, 0]}}
    assert shares_of(alone, [200, 200], order)[3] == 200  # when n1,2 has left, n2,3 has all memory


def test_a_collapse_breaks_the_groups_guarantee():
    queues = {"sci": [1, 1], "eng": {"dev": [1, 0], "prod": [0, 1]}}
    for order in ("c-ch", "m-ch"):
        assert shares_of(queues, [120, 120], order) == [80, 40, 40]
    assert shares_of(queues, [120, 120], "hdrf") == [60, 60, 60]


@pytest.mark.parametrize("case", truth("drf"))
def test_drf_of_the_truth_file(case):
    assert shares_of(case["demand"], case["capacity"], "drf") == list(case["tasks"].values())


@pytest.mark.parametrize("case", truth("hdrf"))
@pytest.mark.parametrize("order", HIERARCHICAL)
def test_hdrf_of_the_truth_file(case, order):
    assert shares_of(case["tree"], case["capacity"], order, case.get("weights")) == list(case["tasks"].values())


@pytest.mark.parametrize("case", truth("mch"))
@pytest.mark.parametrize("order", [*HIERARCHICAL, "mch"])
def test_mch_of_the_truth_file(case, order):
    found = shares_of(case["tree"], case["capacity"], order)
    assert found == list(case["hdrf_tasks"].values())
    shares = np.array(found) / case["capacity"][0]
    assert np.allclose(shares, list(case["dominant_share"].values()), atol=0.006)


@pytest.mark.parametrize("case", truth("collapsed"))
def test_collapses_of_the_truth_file(case):
    queues = {"sci": [1, 1], "eng": {"dev": [1, 0], "prod": [0, 1]}}
    assert shares_of(queues, case["capacity"], "c-ch") == list(case["tasks"].values())


@pytest.mark.parametrize("order", ["c-ch", "mch"])
def test_who_runs_counts_as_well_as_who_waits(order):
    """Of what eng has dev is due half, also when both tasks of prod run; were prod not there, all of it."""
    tree, demand = nested({"sci": [1, 0], "eng": {"dev": [1, 0], "prod": [1, 0]}})
    given_ = choices(order, tree, demand, np.array([12, 12]), np.array([99, 99, 2]))
    assert np.bincount(given_).tolist() == [7, 3, 2]


# -- against the definition, and against each other --------------------------------------------------------------------


def choices(order, tree, demand, capacity, tasks):
    hierarchy = pooled(tree, demand, capacity, order)
    hierarchy.waiting[:] = ENDLESS if tasks is None else tasks
    return hand_out(hierarchy, demand, capacity.copy())


@settings(quick, max_examples=150)
@given(case=problems(resources=(2, 3)))
def test_hdrf_is_its_definition_choice_by_choice(case):
    tree, demand, capacity, tasks = case
    assert choices("hdrf", *case) == hdrf(tree, demand, capacity, tasks)


@settings(quick, max_examples=100)
@given(case=problems(resources=(2,)))
def test_the_fast_hdrf_chooses_as_the_slow_one(case):
    assert choices("hdrf", *case) == choices("hdrf-fast", *case)


@settings(quick, max_examples=60)
@given(case=problems(resources=(2,)), factor=st.sampled_from([0.25, 8.0]))
def test_scaling_all_weights_changes_nothing(case, factor):
    tree, *rest = case
    scaled = QueueTree(tree.names, tree.parent, tree.weight * factor, tree.limit)
    for order in FAIR_ORDERS:
        assert choices(order, tree, *rest) == choices(order, scaled, *rest)


@pytest.mark.parametrize("order", ["drf", "hdrf-fast", "mch", "mch-exact", "c-ch"])
@settings(quick, max_examples=20)
@given(case=problems(resources=(2,)))
def test_a_resource_that_nobody_asks_for_changes_nothing(order, case):
    tree, demand, capacity, tasks = case
    more = np.hstack([demand, np.zeros((len(demand), 1), demand.dtype)]), np.append(capacity, 7)
    assert choices(order, tree, *more, tasks) == choices(order, tree, demand, capacity, tasks)


@settings(quick, max_examples=60)
@given(case=problems(resources=(2,)))
def test_an_idle_queue_changes_nothing(case):
    tree, demand, capacity, tasks = case
    more = QueueTree([*tree.names, "idle"], np.append(tree.parent, np.int32(0)), np.append(tree.weight, 3.0),
                     np.append(tree.limit, math.inf))
    had = np.array(tasks if tasks is not None else [100] * len(demand))
    for order in FAIR_ORDERS:
        assert choices(order, tree, demand, capacity, had) == choices(
            order, more, np.vstack([demand, [1, 1]]), capacity, np.append(had, 0))


@settings(quick, max_examples=40)
@given(case=problems(resources=(2,)), seed=st.integers(0, 99))
def test_a_path_is_told_as_if_the_whole_tree_were(case, seed):
    """Values depend on the present alone, not on how it came about."""
    tree, demand, capacity, _ = case
    random = np.random.default_rng(seed)
    for order in ("drf", "hdrf-fast", "mch", "mch-exact", "c-ch"):
        hierarchy = pooled(tree, demand, capacity, order)
        for _ in range(30):
            change_something(hierarchy, random)
        as_told = hierarchy.value.copy()
        refresh_all(hierarchy)
        assert np.array_equal(as_told, hierarchy.value)


def change_something(hierarchy, random):
    leaf = int(random.integers(hierarchy.slot.size))
    choice = random.integers(4)
    if choice == 0:
        fair.add_task(hierarchy, leaf)
    elif choice == 1 and hierarchy.waiting[leaf] > 0:
        fair.begin_task(hierarchy, leaf)
    elif choice == 2 and hierarchy.running[leaf] > 0:
        fair.end_task(hierarchy, leaf)
    elif hierarchy.is_open[leaf]:
        fair.close_shape(hierarchy, leaf)
    else:
        fair.open_closed(hierarchy, hierarchy.closed.tolist().index(leaf))


# -- runs --------------------------------------------------------------------------------------------------------------


def queued(queues, tasks, requests, racks=()):
    """A workload of jobs in queues, each with one stage; some need a machine of a rack."""
    stages = [{"job": job, "request": request} for job, request in enumerate(requests)]
    for stage, rack in zip(stages, racks, strict=False):
        stage["constraints"] = [("rack", "=", rack)] if rack else []
    workload = staged(stages, tasks, TWO)
    jobs = workload.jobs.with_columns(queue=pl.Series(queues))
    return type(workload)(workload.resources, jobs, workload.stages, workload.tasks, workload.provenance)


def busy(seed, jobs=6, tasks=40):
    """A workload with more work than its fleet has room for, and its fleet."""
    random = np.random.default_rng(seed)
    queues = [str(random.choice(["a/x", "a/y", "b", "c/z/w"])) for _ in range(jobs)]
    requests = [(int(random.integers(1, 4)), int(random.integers(0, 4))) for _ in range(jobs)]
    rows = [(int(random.integers(jobs)), float(random.integers(0, 12)), float(random.integers(1, 9)))
            for _ in range(tasks)]
    rows += [(job, 0.0, 1.0) for job in range(jobs)]
    workload = queued(queues, sorted(rows, key=lambda row: row[1]), requests)
    return workload, fleet_of((4, 6), (6, 3), (3, 3), resources=TWO)


def follow(sim, state):
    """Check after every step that the order knows what waits and what runs."""
    waiting = np.bincount(state.leaf[sim.claims.status == 2], minlength=state.queue.size)
    running = np.bincount(state.leaf[sim.claims.status == TASK_RUNNING], minlength=state.queue.size)
    assert state.tree.waiting.tolist() == waiting.tolist()
    assert state.tree.running.tolist() == running.tolist()
    assert state.lanes.length.tolist() == waiting.tolist()
    held = running[:, None] * sim.tasks.request.T[state.tree.shape]
    assert state.used[0].tolist() == held.sum(axis=0).tolist() == sim.fleet.used.tolist()
    assert state.present.tolist() == sim.fleet.present.tolist()
    assert state.waiting[0] == waiting.sum()
    assert (sim.fleet.free >= FREE_WHEN_ABSENT).all()
    share = (state.used / np.maximum(state.present, 1)).max(axis=1)
    assert (share <= np.where(np.isfinite(state.limit), state.limit, 2.0) + 1e-9).all()


@pytest.mark.parametrize("order", FAIR_ORDERS)
@pytest.mark.parametrize("placement", ["", "best-fit+", "random-fit+"])
def test_every_order_with_every_placement_serves_everybody(order, placement):
    workload, fleet = busy(3)
    outcome = simulate(workload, fleet, find_scheduler(placement + order), check=follow)
    assert (outcome.simulation.claims.status == TASK_FINISHED).all()


@pytest.mark.parametrize("order", FAIR_ORDERS)
@settings(quick, max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_rows_says_nothing(order, seed):
    """Jobs that arrive at once may stand in any order: ties go by their queues' names, and by their own."""
    random = np.random.default_rng(seed)
    names = [f"j{number}" for number in random.permutation(60)]  # of one digit and of two
    jobs = sorted((float(random.integers(0, 8)), f"o{random.integers(2)}/d{random.integers(3)}",
                   tuple(map(int, random.integers(1, 5, 2))), float(random.integers(1, 20)), name) for name in names)
    told = []
    for rows in (jobs, sorted(jobs, key=lambda job: (job[0], random.random()))):
        made = staged([{"job": number, "request": job[2]} for number, job in enumerate(rows)],
                      [(number, job[0], job[3]) for number, job in enumerate(rows)], TWO, [job[4] for job in rows])
        made = replace(made, jobs=made.jobs.with_columns(queue=pl.Series([job[1] for job in rows])))
        outcome = simulate(made, fleet_of(*[(8, 8)] * 3, resources=TWO), find_scheduler(order))
        told.append(dict(zip((job[4] for job in rows), outcome.simulation.progress.start.tolist(), strict=True)))
    assert told[0] == told[1]


def test_within_a_queue_who_arrives_first_is_served_first_whatever_its_name():
    workload = staged([{"job": job, "request": (1, 1)} for job in range(3)],
                      [(1, 0.0, 5.0), (2, 0.0, 5.0), (0, 1.0, 5.0)], TWO, ["j1", "j10", "j9"])
    outcome = simulate(workload, fleet_of((1, 1), resources=TWO), find_scheduler("mch"))
    assert outcome.simulation.progress.start.tolist() == [5.0, 0.0, 10.0]  # of j10, j9, j1


@settings(quick, max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_the_fast_hdrf_is_the_slow_one_in_runs_too(seed):
    workload, fleet = busy(seed)
    starts = [simulate(workload, fleet, find_scheduler(order)).simulation.progress.start.tolist()
              for order in ("hdrf", "hdrf-fast")]
    assert starts[0] == starts[1]


def test_two_queues_share_a_machine_by_weight():
    workload = queued(["a", "b"], [(0, 0, 10)] * 30 + [(1, 0, 10)] * 30, [(1, 0), (1, 0)])
    tree = TreeFile(queue=[Queue(name="a", weight=2.0)])
    outcome = simulate(workload, fleet_of((9, 9), resources=TWO), find_scheduler("mch"), queues=tree, until=5.0)
    running = outcome.simulation.claims.status == TASK_RUNNING
    assert (running[:30].sum(), running[30:].sum()) == (6, 3)


def test_a_limit_is_never_passed_even_when_nobody_else_wants_the_rest():
    workload = queued(["a/x", "a/y", "b"], [(0, 0, 10)] * 9 + [(1, 0, 10)] * 9 + [(2, 0, 10)], [(1, 0)] * 3)
    tree = TreeFile(queue=[Queue(name="a", limit=0.5), Queue(name="a/x", limit=0.3)])
    for order in ("hdrf-fast", "mch", "drf"):
        outcome = simulate(workload, fleet_of((10, 1), resources=TWO), find_scheduler(order), queues=tree, until=5.0,
                           check=follow)
        running = outcome.simulation.claims.status == TASK_RUNNING
        assert running[:9].sum() <= 3
        assert running[:18].sum() == 5
        assert running[18]
        outcome = simulate(workload, fleet_of((10, 1), resources=TWO), find_scheduler(order), queues=tree)
        assert (outcome.simulation.claims.status == TASK_FINISHED).all()


# -- preemption --------------------------------------------------------------------------------------------------------


def late_comer(reclaims, until=math.inf):
    """Queue a holds a machine of four when two tasks of queue b come."""
    workload = queued(["a", "b"], [(0, 0, 100)] * 4 + [(1, 10, 20)] * 3, [(1, 0), (1, 0)])
    return simulate(workload, fleet_of((4, 1), resources=TWO), find_scheduler("mch"), reclaims_per_hour=reclaims,
                    until=until, check=follow)


def test_a_queue_below_its_guarantee_takes_it_back_and_no_more():
    outcome = late_comer(3600.0, until=15.0)
    status = outcome.simulation.claims.status
    assert (status[:4] == TASK_RUNNING).sum() == 2
    assert (status[4:] == TASK_RUNNING).sum() == 2
    task, _, start, end = np.hstack(outcome.loop_result.losses)
    assert sorted(task.tolist()) == [2, 3]  # of equals the last
    assert start.tolist() == [0, 0]
    assert end.tolist() == [10, 10]
    assert (late_comer(3600.0).simulation.claims.status == TASK_FINISHED).all()


def test_without_preemptions_it_waits():
    outcome = late_comer(0.0)
    assert outcome.simulation.progress.start[4:].tolist() == [100, 100, 100]
    assert outcome.simulation.counts.preempted_ever == 0


def test_the_cap_is_kept():
    outcome = late_comer(60.0, until=15.0)  # one at once, and one a minute
    assert outcome.simulation.counts.preempted_ever == 1


def losses_of_two_queues(rows, requests, fleet, reclaims):
    """When attempts of queue a, which is job 0, were lost to the jobs of queue b, and when each task started last."""
    workload = queued(["a"] + ["b"] * (len(requests) - 1), rows, requests)
    outcome = simulate(workload, fleet, find_scheduler("mch"), reclaims_per_hour=reclaims, check=follow, until=200.0)
    return np.hstack(outcome.loop_result.losses)[3].tolist(), outcome.simulation.progress.start.tolist()


def test_the_cap_is_kept_when_preemptions_are_far_apart():
    """At 10 the one that is saved up is spent; at 60 there is 5/6 of the next, at 71 a whole one."""
    rows = [(0, 0, 1000)] * 4 + [(1, 10, 1000)] * 2 + [(1, 60, 9)] + [(1, 71, 9)]
    lost, _ = losses_of_two_queues(rows, [(1, 0), (1, 0)], fleet_of((4, 1), resources=TWO), 60.0)
    assert lost == [10, 71]


@pytest.mark.parametrize(("an_hour", "at_once"), [(0.0, 0.0), (6.0, 1.0), (60.0, 1.0), (3600.0, 60.0)])
def test_the_cap_is_kept_to_a_minutes_worth_at_once_or_one(an_hour, at_once):
    state = reclaim.build_reclaim(3, 2, an_hour)
    assert state.guarantee.size == (3 if an_hour else 0)
    assert state.tried.tolist() == [False, False]
    assert state.clock.tolist() == [at_once, 0, 0, an_hour / 3600, at_once]


@pytest.mark.parametrize(("an_hour", "seconds"), [(3600.0, 1), (120.0, 30), (6.0, 60)])
def test_after_a_search_for_a_place_in_vain_the_next_waits_for_as_long_as_a_preemption_takes_to_save_up(
        an_hour, seconds):
    state = reclaim.build_reclaim(1, 2, an_hour)
    reclaim.note_in_vain(state, 1, 100.0)
    assert (state.tried.tolist(), state.clock[reclaim.LOOK_AGAIN]) == ([False, True], 100 + seconds)


def test_a_search_for_a_place_waits_after_one_in_vain_and_goes_on_at_that_instant():
    """At 10 two cores are nowhere to be had from one task; so at 10.5 nobody looks, and at 11 two find a place."""
    rows = [(0, 0, 100)] * 4 + [(1, 10, 9), (2, 10.5, 99), (2, 11, 99)]
    two = fleet_of((2, 1), (2, 1), resources=TWO)
    assert losses_of_two_queues(rows, [(1, 0), (2, 0), (1, 0)], two, 3600.0)[0] == [11, 11]


def test_what_is_left_of_a_place_is_given_away_at_once():
    """Each of two machines runs a task of three cores; one is ended for a task of one, and two more fit beside it."""
    rows = [(0, 0, 100)] * 2 + [(1, 10, 9)] * 3
    lost, start = losses_of_two_queues(rows, [(3, 0), (1, 0)], fleet_of((3, 1), (3, 1), resources=TWO), 3600.0)
    assert (lost, start[2:]) == ([10], [10, 10, 10])


def test_what_is_left_of_a_place_is_given_to_who_was_refused_before():
    """As above, with three machines of four and tasks of two: a core is free on each, so they are refused at first."""
    rows = [(0, 0, 100)] * 3 + [(1, 10, 9)] * 2
    lost, start = losses_of_two_queues(rows, [(3, 0), (2, 0)], fleet_of(*[(4, 1)] * 3, resources=TWO), 3600.0)
    assert (lost, start[3:]) == ([10], [10, 10])


def test_ends_of_attempts_that_gave_their_places_are_forgotten():
    """Every two seconds a short task of b takes one of two places of a: its end, far off, is never the next event."""
    def look(simulation, _):
        assert simulation.events.size[SIZE] <= LOST_EVENTS_KEPT + 3

    workload = queued(["a", "b"], [(0, 0, 1e9)] * 2 + [(1, 2 * turn, 0.5) for turn in range(1, LOST_EVENTS_KEPT + 9)],
                      [(1, 0), (1, 0)])
    outcome = simulate(workload, fleet_of((2, 1), resources=TWO), find_scheduler("mch"), reclaims_per_hour=3600.0,
                       until=3000.0, check=look)
    assert outcome.simulation.counts.preempted_ever == LOST_EVENTS_KEPT + 8


def late_comer_to_a_rack(rack, tasks, asked):
    """Queue a fills machines 64 and 65, of two cores each, from the first; then a task of b needs one of them.

    The machines before hold nothing, and the racks of the first two are those of the last two the other way round.
    """
    workload = queued(["a", "b"], [(0, 0, 100)] * tasks + [(1, 10, 20)], [(1, 0), (asked, 0)], ["", rack])
    racks = [(0, "rack", "right"), (1, "rack", "left"), (64, "rack", "left"), (65, "rack", "right")]
    fleet = fleet_of(*[(0, 1)] * 64, (2, 1), (2, 1), resources=TWO, attributes=racks)
    outcome = simulate(workload, fleet, find_scheduler("mch"), reclaims_per_hour=3600.0, until=15.0, check=follow)
    lost, progress = np.hstack(outcome.loop_result.losses)[0].tolist(), outcome.simulation.progress
    return lost, int(progress.machine[-1]) if outcome.simulation.claims.status[-1] == TASK_RUNNING else None


@pytest.mark.parametrize(("rack", "victim", "machine"), [("left", 1, 64), ("right", 3, 65)])
def test_a_place_is_taken_only_where_the_constraints_are_met(rack, victim, machine):
    assert late_comer_to_a_rack(rack, tasks=4, asked=1) == ([victim], machine)


def test_a_place_is_taken_only_where_it_makes_room():
    assert late_comer_to_a_rack("right", tasks=4, asked=2) == ([], None)  # either of the two there gives half of it
    assert late_comer_to_a_rack("right", tasks=3, asked=2) == ([2], 65)  # half is free
    assert late_comer_to_a_rack("left", tasks=3, asked=2) == ([], None)


def state_of(queues, running, waiting, weights=None):
    """What an order sees when so many tasks of a core run in each queue, which leaves none, and so many wait.

    Returned are the tasks, the state, the guarantees, and the leaf of each queue. Each asks for another amount of
    memory, of which there is enough, so that shapes differ.
    """
    count = sum(running)
    rows = [(job, 0, 100) for job, tasks in enumerate(running) for _ in range(tasks)]
    rows += [(job, 1, 100) for job, tasks in enumerate(waiting) for _ in range(tasks)]
    workload = queued(queues, rows, [(1, job) for job in range(len(queues))])
    tree = TreeFile(queue=[Queue(name=name, weight=weight) for name, weight in (weights or {}).items()])
    kept = []
    sim = simulate(workload, fleet_of((count, 99 * count), resources=TWO), find_scheduler("mch"), queues=tree,
                   until=5.0, check=lambda _, state: kept.append(state)).simulation
    assert (sim.claims.status == TASK_RUNNING).tolist() == [row[1] == 0 for row in rows]
    guarantee = np.zeros(kept[-1].parent.size)
    fair.note_guarantees(kept[-1], guarantee)
    names = tree_of_paths(queues, tree).names
    return sim.tasks, kept[-1], guarantee, {names[node]: leaf for leaf, node in enumerate(kept[-1].queue.tolist())}


def test_who_lacks_the_largest_part_of_its_guarantee_takes_first():
    """Of 12: b is due 6 and has 3, c is due 3 and has 2, a is due 3 and has 7; of equals the first takes."""
    assert takers([7, 3, 2], {"b": 2.0}) == ["b", "c"]
    assert takers([8, 2, 2], {}) == ["b", "c"]


def takers(running, weights):
    """Which of the queues a, b and c may take a place, one after the other."""
    tasks, state, guarantee, leaves = state_of(["a", "b", "c"], running, [1, 1, 1], weights)
    tried = np.zeros(3, bool)
    order = []
    while (leaf := reclaim.neediest_leaf(state, tasks, guarantee, tried)) != NOBODY:
        order.append(leaf)
        tried[tasks.shape[state.lanes.root[leaf]]] = True
    return [name for leaf in order for name in leaves if leaves[name] == leaf]


def excess(running, giver, taker):
    """By how much a task of a leaf of P/x, P/y and Q is above what it is due, for a leaf that wants its place."""
    names = ["P/x", "P/y", "Q"]
    tasks, state, guarantee, leaves = state_of(names, running, [1, 1, 1])
    first = sum(running[: names.index(giver)])
    return reclaim.excess(state, tasks, first, leaves[taker], guarantee)


def test_a_queue_gives_what_it_and_those_above_it_have_beyond_their_guarantees():
    """Of 12, x and y are each due 3, Q 6."""
    x, y, q = "P/x", "P/y", "Q"
    assert excess([7, 1, 4], x, q) == pytest.approx(7 / 3 - 1)
    assert excess([7, 1, 4], x, y) == pytest.approx(7 / 3 - 1)
    assert excess([4, 3, 5], x, q) == pytest.approx(4 / 3 - 1)
    assert excess([4, 2, 6], x, y) == pytest.approx(4 / 3 - 1)
    assert excess([4, 2, 6], x, q) == 0  # P has just what it is due
    assert excess([3, 3, 6], x, y) == 0
    assert excess([4, 3, 5], y, q) == excess([4, 2, 6], q, y) == 0
    assert excess([7, 1, 4], x, x) == 0


def test_no_place_is_given_only_to_be_taken_back():
    """Fifty jobs of one queue, each with a task, against one job with many: whose turn it is, they would win."""
    queues, rows = ["b"] * 50 + ["a"], [(job, 0, 10) for job in range(50)] + [(50, 1, 10)] * 40
    workload = queued(queues, rows, [(1, 0)] * 51)
    outcome = simulate(workload, fleet_of((20, 1), resources=TWO), find_scheduler("hdrf-fast"), reclaims_per_hour=1e6,
                       check=follow)
    task, _, start, end = np.hstack(outcome.loop_result.losses)
    assert len(task) == 10  # when a comes, and never again
    assert (end > start).all()
    assert (outcome.simulation.claims.status == TASK_FINISHED).all()


@settings(quick, max_examples=10)
@given(seed=st.integers(0, 10**6), limit=st.sampled_from([0.3, 0.6]))
def test_limits_are_kept_under_preemption_too(seed, limit):
    workload, fleet = busy(seed)
    tree = TreeFile(queue=[Queue(name="a", limit=max(limit, 0.3)), Queue(name="b", weight=3.0)])
    simulate(workload, fleet, find_scheduler("mch"), queues=tree, reclaims_per_hour=1e6, check=follow, until=60.0)


def test_only_who_is_above_gives():
    """A is below its guarantee, though its only running task's own queue is above: so B gives, which is not."""
    rows = [(0, 0, 90)] * 3 + [(3, 0, 90)] * 6 + [(1, 1, 90), (2, 1, 90)] + [(4, 2, 9)]
    workload = queued(["A/x", "A/y", "A/z", "B/b", "D/d"], rows, [(1, 0), (9, 0), (9, 0), (1, 0), (1, 0)])
    outcome = simulate(workload, fleet_of((9, 1), resources=TWO), find_scheduler("mch"), reclaims_per_hour=1e6,
                       until=5.0, check=follow)
    status = outcome.simulation.claims.status
    assert (status[:3] == TASK_RUNNING).all()
    assert (status[3:9] == TASK_RUNNING).sum() == 5
    assert status[-1] == TASK_RUNNING


def test_shares_are_of_what_is_there():
    workload = queued(["a"], [(0, 0, 100)] * 9, [(1, 0)])
    tree = TreeFile(queue=[Queue(name="a", limit=0.5)])
    fleet = fleet_of((2, 1), (8, 1), resources=TWO, present=[True, False], changes=[(10.0, 1, True, 8, 1)])
    outcome = simulate(workload, fleet, find_scheduler("drf"), queues=tree, until=20.0, check=follow)
    start = outcome.simulation.progress.start
    assert np.isin(start[:1], 0.0).all()
    assert (start == 10.0).sum() == 4
    late = fleet_of((2, 1), (8, 1), resources=TWO, present=[False, False], changes=[(10.0, 1, True, 8, 1)])
    outcome = simulate(workload, late, find_scheduler("mch"), queues=tree, until=20.0, check=follow)
    assert (outcome.simulation.claims.status == TASK_RUNNING).sum() == 4


def test_a_job_of_several_requests_has_one_share_under_drf():
    workload = staged([{"job": 0, "request": (1, 0)}, {"job": 0, "request": (1, 1)}, {"job": 1, "request": (1, 0)}],
                      [(0, 0, 9)] * 9 + [(1, 0, 9)] * 9 + [(2, 0, 9)] * 9, TWO)
    outcome = simulate(workload, fleet_of((8, 8), resources=TWO), find_scheduler("drf"), until=5.0)
    running = outcome.simulation.claims.status == TASK_RUNNING
    assert (running[:18].sum(), running[18:].sum()) == (4, 4)


def test_a_share_is_of_all_there_is_of_a_resource():
    """A task of job 0 holds the only core, all there is; so the other job gets all of the memory."""
    workload = staged([{"job": 0, "request": (1, 0)}, {"job": 0, "request": (0, 1)}, {"job": 1, "request": (0, 1)}],
                      [(0, 0, 9)] + [(1, 1, 9)] * 10 + [(2, 1, 9)] * 10, TWO)
    outcome = simulate(workload, fleet_of((1, 10), resources=TWO), find_scheduler("drf"), until=5.0)
    running = outcome.simulation.claims.status == TASK_RUNNING
    assert (running[1:11].sum(), running[11:].sum()) == (0, 10)


@pytest.mark.parametrize("order", HIERARCHICAL)
def test_who_is_refused_does_not_count_as_if_it_rose(order):
    """A job whose tasks fit nowhere: its queue's other job has what is due to the queue."""
    rows = [(0, 0, 90)] * 2 + [(1, 0, 90)] * 99 + [(2, 0, 90)] * 99
    workload = queued(["p", "p", "q"], rows, [(6, 0), (1, 0), (1, 0)])
    outcome = simulate(workload, fleet_of(*[(5, 1)] * 4, (6, 1), resources=TWO, changes=[(1.0, 4, True, 5, 1)]),
                       find_scheduler(order), until=5.0)
    running = outcome.simulation.claims.status == TASK_RUNNING
    assert abs(int(running[2:101].sum()) - int(running[101:].sum())) <= 2


@settings(quick, max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_no_place_goes_back_and_forth_without_news(seed):
    workload, fleet = busy(seed)
    outcome = simulate(workload, fleet, find_scheduler("hdrf-fast"), reclaims_per_hour=1e6, check=follow)
    sim = outcome.simulation
    assert (sim.claims.status == TASK_FINISHED).all()
    task, _, _, end = np.hstack(outcome.loop_result.losses)
    news = np.unique(np.concatenate([sim.tasks.arrival, sim.progress.start + sim.tasks.run_time]))
    for number in np.unique(task):
        times = np.sort(end[task == number])
        for first, second in pairwise(times):
            assert ((news > first) & (news <= second)).any()


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_what_cannot_be_is_refused_in_one_line():
    with pytest.raises(InputError, match="order m-ch: needs a resource named memory, there are cpu"):
        simulate(plain((0, 1, 1)), fleet_of((1,)), find_scheduler("m-ch"))
    with pytest.raises(InputError, match="backfill says nothing with a fair order"):
        find_scheduler("first-fit+mch+backfill")
    with pytest.raises(InputError, match="at most one order"):
        find_scheduler("first-fit+mch+drf")


def test_a_gate_stands_before_leaves_of_one_shape():
    tree, demand = nested({"a": [1, 0], "b": {"c": [1, 0], "d": [0, 1]}})
    hierarchy = pooled(tree, demand, np.array([4, 4]), "mch")
    assert (hierarchy.link[:, KIND] == GATE).sum() == 3
    assert isinstance(hierarchy, Hierarchy)
    for slot in range(len(hierarchy.link)):
        refresh(hierarchy, slot)
