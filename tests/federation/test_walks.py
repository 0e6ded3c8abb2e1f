"""Walks that post: none fills an outbox, however much there is to walk over."""
import math

import polars as pl
import pytest

import subak
from floods import Floods
from mutants import ROOT
from posting_loops import BOUNDED, GOES_ON, posting_loops
from subak.federation.megha.bounds import MOST
from subak.federation.messages import HANDLER, KINDS
from subak.federation.settings import Federation
from subak.simulator.torture.by_hand import SEED_BY_HAND, case_of
from subak.simulator.torture.torture import Case, Stage, Terms, run_case
from test_torture import OF_THE_OTHERS

CASE = ROOT.parent / "shared" / "cases" / "48-sim-mass-giveup"


@pytest.mark.skipif(not CASE.exists(), reason=f"{CASE} is not here")
@pytest.mark.parametrize(("plan", "given_up"), [("plan.toml", 19_996), ("plan2.toml", 20_000)])
def test_twenty_thousand_tasks_are_given_up_at_once(plan, given_up):
    jobs = pl.DataFrame({"arrival": 0.0, "run_time": 1000.0, "cpu": [1.0] * 20_000, "job": "j"})
    workload = subak.load(jobs, machines=2, capacity={"cpu": 2})
    ran = subak.run(workload, "central", failures=CASE / plan, progress=False)
    assert ran.tasks["status"].value_counts().filter(pl.col("status") == "GIVEN_UP")["count"].to_list() == [given_up]


@pytest.mark.parametrize(("wait_max", "cancelled"), [(1.0, math.inf), (math.inf, 1.0)])
@pytest.mark.parametrize("turns", ["round-robin", "drf"])
def test_a_turn_meets_more_tasks_that_were_given_up_than_the_outbox_holds(wait_max, cancelled, turns):
    """One core, 150 tasks that run for long; all but the first are given up at once, and wait in their lane."""
    count = 150
    case = Case(
        seed=1, machines=[(1, 1)], racks=[""], absent=[], changes=[], queues=["a"], stages=[Stage(0, (1, 0))],
        tasks=[(0, 0.0, 3.0)] * count, plan=None, outbox=0, planned=[(0, math.inf, cancelled)] * count,
        terms=Terms(0, 0, 0.0, wait_max, math.inf),
        settings=Federation(global_masters=1, local_masters=1, heartbeat=math.inf, delay=0.0, service_scale=0.0,
                            queue_order=turns))
    assert run_case(case).failure == ""


# -- each kind of message ----------------------------------------------------------------------------------------------


FLOODED = (10, SEED_BY_HAND, 22, 54, 56, 63, 75)  # runs in which every kind comes; 10 has a crowd


def test_of_each_kind_ten_times_what_the_smallest_outbox_holds_is_served():
    floods = Floods(each=3)
    for seed in FLOODED:
        with floods.over():
            assert run_case(case_of(seed)).failure == ""
    assert set(floods.seen) == {(role, KINDS[kind]) for role, kinds in MOST.items() for kind in kinds}


def test_every_kind_that_a_role_handles_has_a_bound():
    handled = {kind for kind, name in enumerate(KINDS) if HANDLER[kind] in MOST and name not in OF_THE_OTHERS}
    assert {kind for kinds in MOST.values() for kind in kinds} >= handled
    assert all(HANDLER[kind] == role for role, kinds in MOST.items() for kind in kinds if kind in handled)


# -- in the source -----------------------------------------------------------------------------------------------------


def test_every_loop_that_posts_asks_for_room_or_is_of_what_is_known_beforehand():
    loops, _ = posting_loops()
    assert len(loops) > 50
    assert {(loop.function, loop.head) for loop in loops if not loop.asks} == set(BOUNDED)


def test_every_walk_that_stops_goes_on():
    loops, going_on = posting_loops()
    serving = {loop.function for loop in loops if loop.function.rpartition(".")[2].startswith("serve_")}
    stopping = {loop.function for loop in loops if loop.asks} - serving  # who serves is handed the rest again
    assert stopping - going_on == set(GOES_ON)


@pytest.mark.parametrize(("body", "asks"), [
    ("    for row in rows:\n        tell(out)\n", [False]),
    ("    for row in rows:\n        if is_filling(out):\n            return\n        tell(out)\n", [True]),
    ("    for row in rows:\n        if is_filling(out):\n            pass\n        tell(out)\n", [False]),
    ("    while rows and not is_filling(out):\n        tell(out)\n", [True]),
    ("    while rows or not is_filling(out):\n        tell(out)\n", [False]),
    ("    for row in rows:\n        look(row)\n", []),
    ("    [tell(out) for row in rows]\n", [False]),
])
def test_a_loop_that_posts_is_found_whoever_posts(tmp_path, body, asks):
    (tmp_path / "says.py").write_text(
        "from subak.federation.messages import post\n\n\ndef say(out):\n    post(out, 1, 2, 3, 4, 5)\n")
    (tmp_path / "walks.py").write_text(
        "from subak.federation.says import say as tell\n\n\ndef walk(rows, out):\n" + body)
    assert [loop.asks for loop in posting_loops(tmp_path)[0]] == asks
