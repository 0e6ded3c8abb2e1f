"""LoTES's dispatcher: by hand, against its plain twin task by task, and after every step."""
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from invariants import Watch, check
from naive import twin_of
from naive_lotes import LotesTwin
from small import CPU, THREE, TWO, cases, fleet_of, plain, staged
from subak.errors import InputError
from subak.fleet.shapes import find_shapes
from subak.fleet.state import BLOCK
from subak.placement.claims import TASK_RUNNING, TASK_WAITING
from subak.placement.lotes.configurations import NO_CONFIGURATION
from subak.placement.lotes.dispatch import SEARCHES
from subak.placement.lotes.plan import make_plan
from subak.placement.lotes.scores import SCORE_MIN
from subak.placement.lotes.settings import FALLBACKS, MIXES, ORDERS, LotesSettings
from subak.policy import find_scheduler
from subak.queues.lanes import NOBODY
from subak.queues.tournament import NO_KEY, NOBODY_WAITS, TURN_SHIFT
from subak.simulator.results import machine_rows
from subak.simulator.simulate import simulate
from test_engine_against_twin import engine_rows, lost_attempts, twin_rows

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


def planned_or_none(case, given):
    try:
        return make_plan(*case, given)
    except InputError:
        return None


@settings(quick, max_examples=80)
@given(case=cases(), seed=st.integers(0, 2**63), choice=st.sampled_from(["roulette", "deficit"]),
       classes=st.integers(1, 3), fallback=st.sampled_from(FALLBACKS), order=st.sampled_from(ORDERS))
def test_tasks_start_where_and_when_the_plain_twin_starts_them(case, seed, choice, classes, fallback, order):
    given = LotesSettings(classes=classes, choice=choice, fallback=fallback, order=order)
    plan = planned_or_none(case, given)
    assume(plan is not None)
    outcome = simulate(*case, find_scheduler("lotes"), seed=seed, interval=1.0, lotes=given)
    world = twin_of(*case, seed)
    kind = plan.class_of(find_shapes(case[0]))[outcome.simulation.tasks.shape].tolist()
    twin = LotesTwin(world, plan, kind, given)
    world.run(twin)
    assert engine_rows(outcome) == twin_rows(world)
    assert lost_attempts(outcome) == sorted(world.losses)
    if twin.searches:
        assert outcome.looked_at == twin.looked / twin.searches / len(twin.of_machine)


def test_who_waited_before_has_no_turn_because_one_of_its_shape_comes_again():
    """The third was lost at 1 s and fits no machine of its class; at 2 s the first is lost, and goes astray alone."""
    full, two = (0.0, 4 * THREE[1].unit, 0.0), (0.0, 4 * THREE[1].unit, THREE[2].unit)
    none, twice = (0.0,) * 3, (0.0, 8 * THREE[1].unit, 0.0)
    made = staged([{"job": 0, "request": full}], [(0, 0.0, 1.0), (0, 0.0, 0.0), (0, 0.0, 1.0)], THREE)
    fleet = fleet_of(*[none] * 63, two, none, full, none, two, resources=THREE, changes=[
        (0.0, 63, True, *full), (0.0, 64, False, *none), (1.0, 63, False, *none), (1.0, 67, False, *none),
        (2.0, 64, True, *twice), (2.0, 65, False, *none)])
    given_ = LotesSettings(classes=2, choice="deficit", order="smallest")
    plan = make_plan(made, fleet, given_)
    outcome = simulate(made, fleet, find_scheduler("lotes"), lotes=given_)
    world = twin_of(made, fleet)
    kind = plan.class_of(find_shapes(made))[outcome.simulation.tasks.shape].tolist()
    world.run(LotesTwin(world, plan, kind, given_))
    assert engine_rows(outcome) == twin_rows(world)
    assert world.attempts[2] == 1 < world.attempts[0]


# -- after every step --------------------------------------------------------------------------------------------------


def dispatcher_holds(simulation, run, world=check):
    """Every rule of a run, those of its *world* among them, and what the dispatcher believes is so."""
    world(simulation, run.lanes)
    check_scores(simulation, run.state)
    check_tournament(run.state.waiting, run.lanes, simulation.tasks)
    if run.settings.order == "fifo":  # each task is looked for when it arrives, under whichever plan
        assert run.state.looked[SEARCHES] >= (simulation.progress.attempts > 0).sum()


def check_scores(simulation, state):
    """Counts are those of what runs; every machine is in the bucket of its score, in one; words and numbers agree."""
    scores, running = state.scores, np.zeros_like(state.scores.running)
    for task in np.flatnonzero(simulation.claims.status == TASK_RUNNING):
        assert state.counted[task] == state.class_of_shape[simulation.tasks.shape[task]]
        running[state.counted[task], simulation.progress.machine[task]] += 1
    assert (running == scores.running).all()
    places = np.arange(scores.bucket.shape[1])
    place_of = np.clip(scores.target - running - SCORE_MIN, 0, places[-1])
    inside, some = bits_of(scores.bucket), scores.bucket != 0
    assert at(inside != (place_of[:, np.newaxis] == places[:, np.newaxis])) == [], "class, bucket, machine"
    for j, (first, last) in enumerate(pairwise(scores.block_first.tolist())):
        words = bits_of(scores.blocks[..., scores.word_first[j]:scores.word_first[j + 1]])
        assert at(words[..., :last - first] != some[..., first:last]) == [], f"class, bucket, block of {j}"
        assert not words[..., last - first:].any()
        members = np.count_nonzero(inside[..., first * BLOCK:last * BLOCK], axis=-1)
        assert at(scores.members[..., j] != members) == [], f"class, bucket of {j}"
    held = [running[:, np.repeat(scores.configuration == j, BLOCK)].sum(axis=1) for j in range(state.machines.size)]
    assert (scores.held == np.array(held).T).all()


def at(differs):
    return np.argwhere(differs).tolist()


def bits_of(words):
    """Return the bits of words, the first of a word last in it: bool[..., bit]."""
    assert 8 * words.itemsize == BLOCK
    return np.unpackbits(words.astype("<u8", order="C").view(np.uint8), axis=-1, bitorder="little").astype(bool)


def check_tournament(trees, lanes, tasks):
    """Every node knows the least of what waits below it."""
    for group, (base, leaves) in enumerate(zip(trees.base.tolist(), trees.leaves.tolist(), strict=True)):
        below = {node: set() for node in range(1, 2 * leaves)}
        for lane in np.flatnonzero(trees.base_of_lane == base):
            node = int(trees.leaf[lane])
            while node >= 1 and lanes.root[lane] != NOBODY:
                below[node].add(int(lane))
                node //= 2
        for node, waiting in below.items():
            least = [min((tasks.request[row, lane] for lane in waiting), default=NOBODY_WAITS)
                     for row in range(len(trees.least))]
            first = min(((int(trees.turn[lane]) << TURN_SHIFT) + int(lanes.root[lane]) for lane in waiting),
                        default=NO_KEY)
            assert trees.first[base + node] == first, f"group {group}, node {node}"
            assert trees.least[:, base + node].tolist() == least, f"group {group}, node {node}"


@settings(quick, max_examples=120)
@given(case=cases(), seed=st.integers(0, 2**63), choice=st.sampled_from(["roulette", "deficit"]),
       sampled=st.sampled_from([0, 0, 1, 3]), period=st.sampled_from([0.0, 1.0, 2.5]),
       words=st.tuples(st.sampled_from(MIXES), st.sampled_from(FALLBACKS), st.sampled_from(ORDERS)))
def test_rules_hold_after_every_step_whatever_the_options(case, seed, choice, sampled, period, words):
    mix, fallback, order = words
    given = LotesSettings(classes=2, choice=choice, sampled=sampled, replan_seconds=period, replan_window=2.0,
                          mix=mix if period else "known", fallback=fallback, order=order)
    assume(planned_or_none(case, given) is not None)
    watch = Watch(dispatcher_holds)
    simulate(*case, find_scheduler("lotes"), seed=seed, interval=1.0, check=watch, lotes=given)
    assert watch.steps > 0


@settings(quick, max_examples=60)
@given(case=cases(), seed=st.integers(0, 2**63), options=st.sampled_from(["", "+deficit", "+sampled", "+replanned"]))
def test_the_same_seed_gives_the_same_bytes(case, seed, options):
    assume(planned_or_none(case, LotesSettings()) is not None)
    runs = [simulate(*case, find_scheduler("lotes" + options), seed=seed) for _ in range(2)]
    first, second = ([*run.simulation.progress, run.loop_result.timeline] for run in runs)
    assert [array.tobytes() for array in first] == [array.tobytes() for array in second]


# -- by hand -----------------------------------------------------------------------------------------------------------

# Two machines of 4 cores and 4 GB; half the tasks ask (3, 1), half (1, 3): the best bin holds one of each.


def mixed(*tasks):
    return plain(*tasks, resources=TWO), fleet_of((4, 4), (4, 4), resources=TWO)


def machines_of(outcome):
    return machine_rows(outcome).tolist()


def test_a_class_goes_where_its_place_in_the_bin_is_empty():
    case = mixed((0, 9, 3, 1), (0, 9, 3, 1), (1, 9, 1, 3), (1, 9, 1, 3))
    plan = make_plan(*case, LotesSettings(classes=2))
    assert plan.assignment.bins.tolist() == [[1, 1]]  # one of each on both machines
    outcome = simulate(*case, find_scheduler("lotes"), lotes=LotesSettings(classes=2))
    assert machines_of(outcome) == [0, 1, 0, 1]


def test_scores_come_before_the_machines_order():
    tasks = [(0, 9, 1, 1), (0.5, 9, 1, 1), (1, 9, 1, 1)]
    case = (plain(*tasks, resources=TWO), fleet_of((4, 4), (4, 4), resources=TWO))
    outcome = simulate(*case, find_scheduler("lotes"))
    assert machines_of(outcome) == [0, 1, 0]  # the bin holds 4 of the class: after one, the other machine lacks more


def test_a_machine_idles_rather_than_serve_a_class_it_is_not_devoted_to():
    """Class 1 fits the large machine only; class 2 fits both, and the LP gives it the small ones alone."""
    tasks = [(0, 10, 4), (0, 3, 1), (0, 3, 1), (0.5, 3, 1), (1, 10, 4), (11, 10, 4), (12, 3, 1)]
    case = plain(*tasks), fleet_of((4,), (1,), (1,))
    plan = make_plan(*case, LotesSettings(classes=2))
    small = plan.class_of(find_shapes(case[0]))[1]
    assert (plan.routes[:, small] > 0).tolist() == [capacity == 1 for capacity in plan.configurations.capacity[0]]
    outcome = simulate(*case, find_scheduler("lotes"), lotes=LotesSettings(classes=2))
    start = outcome.simulation.progress.start.tolist()
    assert start[3] == 3.0  # waits for a small machine
    assert start[4] == 10.0  # the large one went to its own class
    assert machines_of(outcome)[4] == 0


def test_a_task_that_fits_no_devoted_machine_is_served_where_it_fits():
    """Twenty small tasks make the class; some of it fit only the large machine, which serves another class."""
    small = [(0, 1, 1) for _ in range(20)]
    case = plain(*small, (0, 1, 8), (0, 1, 8), (0, 1, 3)), fleet_of((8,), (2,), (2,), (2,))
    outcome = simulate(*case, find_scheduler("lotes"), lotes=LotesSettings(classes=2))
    assert (outcome.simulation.claims.status != TASK_WAITING).all()


def test_deficit_keeps_to_the_parts_more_closely_than_the_wheel():
    """Two configurations, 3 : 1 in capacity; after 400 arrivals that never end, the parts are 300 and 100."""
    case = (plain(*[(float(row), 1e6, 1) for row in range(360)]),
            fleet_of(*[(300,), (100,)]))
    spread = {}
    for choice in ("roulette", "deficit"):
        outcome = simulate(*case, find_scheduler("lotes"), lotes=LotesSettings(choice=choice))
        spread[choice] = abs(machines_of(outcome).count(0) - 270)
    assert spread["deficit"] == 0
    assert 0 < spread["roulette"] < 40


def test_a_new_plan_serves_what_arrives_by_then():
    """The mix turns at 50 s; the plan made for the first half has no place in any bin for the second half's class."""
    first = [(row * 0.5, 4, 3, 1) for row in range(100)]
    second = [(50 + row * 0.5, 4, 1, 3) for row in range(100)]
    case = (plain(*first, *second, resources=TWO), fleet_of(*[(4, 4)] * 12, resources=TWO))
    kept = LotesSettings(classes=2, window_seconds=50)
    renewed = LotesSettings(classes=2, window_seconds=50, replan_seconds=10, replan_window=10)
    runs = [simulate(*case, find_scheduler("lotes"), lotes=each) for each in (kept, renewed)]
    assert len(runs[0].plans) == 1
    assert len(runs[1].plans) == 11  # at 0, 10, ... 100
    before, after = (run.plans[-1].classes.request[:, 0].tolist() for run in runs)
    assert before == [3, 1]
    assert after == [1, 3]


def test_machines_that_join_are_given_bins_by_the_next_plan():
    case = (plain(*[(float(row), 5, 1) for row in range(40)]),
            fleet_of((4,), (4,), present=[True, False], changes=[(10, 1, True, 4)]))
    outcome = simulate(*case, find_scheduler("lotes"), lotes=LotesSettings(replan_seconds=15))
    assert outcome.plans[0].bin_of_machine.tolist() == [0, -1]
    assert outcome.plans[-1].bin_of_machine.tolist() == [0, 0]


@pytest.mark.parametrize(("given", "said"), [
    ({"choice": "luck"}, "choice: must be one of roulette, deficit, not 'luck'"),
    ({"sampled": -1}, "sampled: must be 0 or more, not -1"),
    ({"replan_seconds": -1.0}, "replan_seconds: must be 0 or more, not -1"),
    ({"replan_window": 0.0}, "replan_window: must be more than 0, not 0"),
    ({"replan_seconds": math.nan}, "replan_seconds: must be 0 or more, not nan"),
])
def test_settings_are_refused_in_a_line(given, said):
    with pytest.raises(InputError) as caught:
        LotesSettings(**given)
    assert str(caught.value) == said


# -- odd inputs --------------------------------------------------------------------------------------------------------


def run_lotes(workload, fleet, **given):
    return simulate(workload, fleet, find_scheduler("lotes"), lotes=LotesSettings(**given))


def test_one_machine_one_class_one_task():
    outcome = run_lotes(plain((0, 1, 1)), fleet_of((1,)))
    assert machines_of(outcome) == [0]


def test_tasks_that_no_machine_can_hold_are_reported_and_the_others_run():
    outcome = run_lotes(plain((0, 1, 1), (0, 1, 9)), fleet_of((2,)))
    assert outcome.prepared.reason_of_shape == ["", "asks cpu 9 cores, the largest machine has 2"]
    assert outcome.simulation.progress.attempts.tolist() == [1, 0]
    with pytest.raises(InputError, match="no machine can hold any of the window's 2 tasks"):
        run_lotes(plain((0, 1, 9), (0, 1, 8)), fleet_of((2,)))


def test_runs_of_length_zero_are_served():
    outcome = run_lotes(plain((0, 0, 1), (0, 5, 1), (1, 0, 1)), fleet_of((2,)))
    assert outcome.simulation.progress.attempts.tolist() == [1, 1, 1]
    with pytest.raises(InputError, match="every task of the window has run time 0"):
        run_lotes(plain((0, 0, 1)), fleet_of((2,)))


def test_a_resource_that_nobody_asks_for_changes_nothing():
    tasks = [(row, 7, 1 + row % 2) for row in range(30)]
    without = run_lotes(plain(*tasks), fleet_of((4,), (2,)))
    with_it = run_lotes(plain(*[(*task, 0) for task in tasks], resources=TWO),
                        fleet_of((4, 1), (2, 5), resources=TWO))
    assert machines_of(without) == machines_of(with_it)


def test_a_configuration_that_constraints_forbid_is_not_drawn():
    stages = [{"request": (1,), "constraints": [("kind", "=", "new")]}, {"request": (1,)}]
    case = (staged(stages, [(row % 2, row, 3) for row in range(40)], CPU),
            fleet_of((4,), (4,), attributes=[(1, "kind", "new")]))
    plan = make_plan(*case, LotesSettings(classes=1))
    held = plan.class_of(find_shapes(case[0]))[0]
    forbidden = plan.configurations.of_machine[0]
    assert forbidden != NO_CONFIGURATION
    assert plan.rate[forbidden, held] == 0
    outcome = simulate(*case, find_scheduler("lotes"), lotes=LotesSettings(classes=1))
    assert set(machines_of(outcome)[::2]) == {1}


def test_a_plan_every_instant_is_refused():
    for period in (1e-305, 1e-17, 0.5):
        with pytest.raises(InputError, match=r"replan_seconds: must be 0 \(never\) or 1 and more, not"):
            LotesSettings(replan_seconds=period)


def test_a_plan_says_that_it_counts_all_machines_as_equally_fast():
    fleet = fleet_of((4,), (4,))
    plan = make_plan(plain((0, 1, 1)), replace(fleet, speeds=np.array([[1.0, 0.5]])))
    assert "machines differ in speed: the plan counts run times as if they did not" in plan.notes
    assert make_plan(plain((0, 1, 1)), fleet).notes == ()
