"""Which queue a global master serves next: in turns, or by a fair order on what it believes that all queues hold."""
import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from small import TWO, fleet_of
from subak.errors import InputError
from subak.federation.megha.global_master.queue_order import tell_queue
from subak.federation.megha.global_master.trees import build_queue_order
from subak.federation.messages import NOBODY
from subak.federation.settings import Federation
from subak.placement.claims import TASK_FINISHED, TASK_RUNNING
from subak.policy import find_scheduler
from subak.queues.tree import Queue, TreeChange, TreeFile
from subak.simulator.engine.state import LOOP_DONE
from subak.simulator.federated.megha_setup import MEGHA, find_queues
from subak.simulator.federated.simulate import open_federated
from subak.simulator.simulate import simulate
from subak.simulator.torture.invariants import Watch
from subak.simulator.torture.torture import next_event
from subak.workload.tasks import Requests
from test_fair_orders import busy, queued, quick

ONE_MASTER = Federation(global_masters=1, local_masters=1, heartbeat=1.0)


def run(workload, fleet, federation, queues=None, until=float("inf")):
    """Run a federation as plain Python, every invariant checked after every message."""
    opened = open_federated(workload, fleet, MEGHA, federation, 1, 1e6, until, None, queues, compiled=False)
    watch, why = Watch(opened.simulation, opened.network, opened.roles), None
    while why != LOOP_DONE:
        why, handled = next_event(opened)
        watch(handled, opened.due[0])
    return opened


def two_queues():
    """Two queues that want more than a machine of nine has, in turn."""
    rows = [(number % 2, number / 100, 10) for number in range(60)]
    return queued(["a", "b"], rows, [(1, 0), (1, 0)]), fleet_of((9, 9), resources=TWO)


@pytest.mark.parametrize("turns", ["drf", "hdrf", "hdrf-fast", "mch", "mch-exact", "c-ch"])
def test_queues_are_served_by_their_weights(turns):
    tree = TreeFile(queue=[Queue(name="a", weight=2.0)])
    opened = run(*two_queues(), msgspec.structs.replace(ONE_MASTER, queue_order=turns), tree, until=35.0)
    running = opened.simulation.claims.status == TASK_RUNNING
    assert (running[::2].sum(), running[1::2].sum()) == (6, 3)


def test_in_turns_they_are_served_evenly():
    opened = run(*two_queues(), ONE_MASTER, until=35.0)
    running = opened.simulation.claims.status == TASK_RUNNING
    assert abs(int(running[::2].sum()) - int(running[1::2].sum())) <= 1


def turned(time=15.0, **more):
    """Weights 2 and 1, and the other way round from a time on."""
    return TreeFile(queue=[Queue(name="a", weight=2.0)],
                    change=[TreeChange(time=time, queue=[Queue(name="b", weight=2.0)], **more)])


@pytest.mark.parametrize("turns", ["drf", "hdrf", "hdrf-fast", "mch", "mch-exact", "c-ch"])
def test_from_the_time_of_a_change_on_they_are_served_by_the_new_weights(turns):
    opened = run(*two_queues(), msgspec.structs.replace(ONE_MASTER, queue_order=turns), turned(), until=35.0)
    running = opened.simulation.claims.status == TASK_RUNNING
    assert (running[::2].sum(), running[1::2].sum()) == (3, 6)
    opened = run(*two_queues(), msgspec.structs.replace(ONE_MASTER, queue_order=turns), turned(36.0), until=35.0)
    assert (opened.simulation.claims.status == TASK_RUNNING)[::2].sum() == 6, "not before it"


def test_a_queue_whose_share_has_grown_preempts_for_it():
    strict = msgspec.structs.replace(ONE_MASTER, preemption="strict")
    opened = run(*two_queues(), strict, turned(2.0), until=8.0)
    running = opened.simulation.claims.status == TASK_RUNNING
    assert (running[::2].sum(), running[1::2].sum()) == (3, 6)
    shares = msgspec.structs.replace(strict, shares={"a": 0.5, "b": 0.5})
    opened = run(*two_queues(), shares, turned(2.0), until=8.0)
    assert (opened.simulation.claims.status == TASK_RUNNING)[::2].sum() >= 4, "shares that are given stay"


@pytest.mark.parametrize("turns", ["round-robin", "drf"])
def test_a_change_is_the_same_compiled(turns):
    federation = Federation(global_masters=2, local_masters=2, heartbeat=1.0, queue_order=turns, preemption="strict")
    workload, fleet = two_queues()[0], fleet_of((5, 5), (4, 4), resources=TWO)
    plainly = run(workload, fleet, federation, turned()).simulation
    compiled = simulate(workload, fleet, find_scheduler("megha"), federation=federation, queues=turned()).simulation
    assert np.array_equal(plainly.progress.start, compiled.progress.start)
    assert np.array_equal(plainly.progress.attempts, compiled.progress.attempts)
    before = simulate(workload, fleet, find_scheduler("megha"), federation=federation,
                      queues=turned(1e9)).simulation
    assert not np.array_equal(before.progress.start, compiled.progress.start)


@pytest.mark.parametrize("name", ["first-fit", "hdrf", "sparrow", "pigeon"])
def test_who_does_not_follow_a_change_refuses_it(name):
    with pytest.raises(InputError, match=r"queues: change at 15 s; .* only the federations megha and central follow"):
        simulate(*two_queues(), find_scheduler(name), queues=turned())


@settings(quick, max_examples=6)
@given(seed=st.integers(0, 10**6), turns=st.sampled_from(["drf", "hdrf-fast", "mch", "mch-exact"]))
@example(seed=150816, turns="mch")  # a master that has not heard of an end takes back what another's queue has gained
def test_every_task_ends_and_a_master_is_told_the_truth(seed, turns):
    workload, fleet = busy(seed)
    settings_ = Federation(global_masters=2, local_masters=2, heartbeat=1.0, queue_order=turns, preemption="strict")
    opened = run(workload, fleet, settings_)
    assert (opened.simulation.claims.status == TASK_FINISHED).all()
    masters = opened.roles.masters
    for number in range(2):
        mine = np.flatnonzero(opened.roles.topology.queue["owner"] == number)
        assert (masters[number].queue_order.told[mine, -1] == NOBODY).all()


def test_guarantees_of_a_tree_take_the_place_of_flat_shares():
    workload, _ = busy(1, jobs=30)
    names = sorted(set(workload.jobs["queue"]))
    tree = TreeFile(queue=[Queue(name="a", weight=3.0)])
    found = find_queues(workload, Federation(preemption="strict"), tree)
    share = dict(zip(found.name, found.share, strict=True))
    assert names == ["a/x", "a/y", "b", "c/z/w"]
    assert share == pytest.approx({"a/x": 0.3, "a/y": 0.3, "b": 0.2, "c/z/w": 0.2})
    given_ = find_queues(workload, Federation(preemption="strict", shares={"b": 0.7}), tree)
    assert dict(zip(given_.name, given_.share, strict=True))["b"] == 0.7


def test_an_order_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="queue_order: must be one of round-robin, drf, hdrf"):
        Federation(queue_order="fair")


@pytest.mark.parametrize(("held", "present", "shape", "vector", "dominant"), [
    ((1, 4), (4, 8), NOBODY, (0.25, 0.5), 0.5),
    ((0, 1), (4, 8), 0, (0.0, 0.125), 0.125),  # what it holds counts, not what it asks for
    ((1, 0), (4, 8), NOBODY, (0.25, 0.0), 0.25),
    ((0, 0), (4, 8), 0, (0.5, 0.125), 0.5),
    ((0, 0), (1, 0), 0, (2.0, 1.0), 2.0),  # of what is not there it asks for all
    ((0, 0), (4, 8), NOBODY, (0.0, 0.0), 1.0),
])
def test_a_tree_is_told_what_a_queue_holds_or_would_hold_first(held, present, shape, vector, dominant):
    order = build_queue_order("drf", ["a", "b"], None, ["cpu", "memory"])
    asks, total = Requests(np.array([[2], [1]], np.int32), np.zeros(1, np.int32)), np.array([[0, 0], [4, 8]])
    for resource in range(2):
        tell_queue(order, asks, 0, total, np.array(present), NOBODY)
        total[0, resource] = 9
        tell_queue(order, asks, 0, total, np.array(present), NOBODY)  # which is other news than the former
    total[0] = held
    tell_queue(order, asks, 0, total, np.array(present), shape)
    tree, leaf = order.tree, order.leaf[0]
    assert (tuple(tree.vector[leaf].tolist()), tree.dominant[leaf]) == (vector, dominant)
    assert (tree.running[leaf], tree.waiting[leaf]) == (any(held), shape != NOBODY)
