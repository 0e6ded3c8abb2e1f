"""What the LoTES paper leaves open: a mix of classes that is not known, machines near the data, fair orders."""
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from invariants import Watch, check
from naive import twin_of
from naive_lotes import FairLotesTwin
from small import TWO, cases, fleet_of, plain, staged
from subak.errors import InputError
from subak.fleet.shapes import find_shapes
from subak.measures.plans import missed_words, plan_facts
from subak.measures.runs import PlanFacts
from subak.placement.lotes.classes import Arrivals, find_window
from subak.placement.lotes.plan import make_plan
from subak.placement.lotes.settings import LotesSettings
from subak.policy import find_scheduler
from subak.simulator.results import machine_rows
from subak.simulator.simulate import simulate
from test_engine_against_twin import engine_rows, twin_rows
from test_lotes_dispatch import planned_or_none

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


def ran(case, scheduler="lotes", **given):
    return simulate(*case, find_scheduler(scheduler), interval=1.0, lotes=LotesSettings(**given))


def starts(outcome):
    return outcome.simulation.progress.start.tolist()


# The least work first


def test_of_what_arrives_at_once_the_least_work_is_placed_first():
    """A machine of 4 cores: a task of 3 comes first, then four of 1. In that order three of these wait for 10 s."""
    case = plain((0, 10, 3), *[(0, 10, 1)] * 4), fleet_of((4,))
    assert starts(ran(case)) == [0, 0, 10, 10, 10]
    assert starts(ran(case, "lotes+least-work")) == [10, 0, 0, 0, 0]
    assert starts(ran(case, order="smallest")) == [10, 0, 0, 0, 0]


def test_of_who_waits_the_least_work_is_served_first():
    """When the machine is freed at 10 s, 3 cores and 2 cores wait for it, of which one fits at a time."""
    case = plain((0, 10, 4), (1, 5, 3), (2, 5, 2)), fleet_of((4,))
    assert starts(ran(case, classes=1)) == [0, 10, 15]
    assert starts(ran(case, "lotes+least-work", classes=1)) == [0, 15, 10]


def test_work_is_the_mean_run_time_of_the_class_too():
    """Two cores for 1 s are less work than one for 100 s; by requests alone that is the other way round."""
    case = plain((0, 100, 1), (0, 1, 2)), fleet_of((2,))
    assert starts(ran(case, "lotes+least-work", classes=2)) == [1, 0]
    assert starts(ran(case, order="smallest", classes=2)) == [0, 100]


# The mix of classes from history


def test_older_tasks_count_half_for_every_step_back():
    since = np.array([0.0, 50.0, 60.0, 100.0, 119.0, 120.0])
    arrivals = Arrivals(since, np.array([0, 0, 1, 1, 1, 1]), np.array([8.0, np.inf, 4.0, 2.0, 2.0, 9.0]), 0)
    window = find_window(arrivals, 2, 0.0, 120.0, halving=60.0)
    assert window.tasks.tolist() == [1.0, 3.0]  # ages 120 and 70 count half; 60 and less are the last step
    assert window.ended.tolist() == [0.5, 3.0]
    assert window.run_time.tolist() == [4.0, 8.0]
    assert find_window(arrivals, 2, 60.0, 120.0).tasks.tolist() == [0, 3]
    with pytest.raises(InputError, match="window: no task arrives in the 5 s that begin 10 s after the first arrival"):
        find_window(arrivals, 2, 10.0, 15.0)


def turning():
    """Tasks of one core and three gigabytes in the first 20 s, of three and one after: one every half second."""
    tasks = [(0.5 * row, 4, *((1, 3) if row < 40 else (3, 1))) for row in range(100)]
    return plain(*tasks, resources=TWO), fleet_of(*[(4, 4)] * 12, resources=TWO)


@pytest.mark.parametrize(("mix", "third"), [("last", [0.0, 1.0]), ("average", [0.75 / 1.75, 1 / 1.75])])
def test_plans_are_for_the_mix_of_the_past(mix, third):
    """Plans every 10 s up to 50. Before the third came windows of the first kind, twice, and one of the second.

    The average counts them a quarter, a half and 1; with the same tasks in each, the first kind is 0.75 to 1 of these.
    """
    outcome = ran(turning(), classes=2, mix=mix, replan_seconds=10, replan_window=10)
    plans = outcome.plans
    assert len(plans) == 5
    assert [plan.classes.request.T.tolist() for plan in plans[:2]] == [[[1, 3]]] * 2
    small_first = dict(zip(map(tuple, plans[2].classes.request.T.tolist()), plans[2].classes.share, strict=True))
    shares = [small_first.get(kind, 0.0) for kind in ((1.0, 3.0), (3.0, 1.0))]
    assert shares == pytest.approx(third)


def test_before_anything_was_seen_nothing_is_planned_and_everybody_is_served():
    """Nothing is known in the first 100 s: no bins, so that tasks go where fewest run."""
    case = plain(*[(row, 9, 1) for row in range(8)]), fleet_of((4,), (4,))
    outcome = ran(case, mix="last", replan_seconds=100, replan_window=100)
    assert outcome.plans == ()
    assert machine_rows(outcome).tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    assert starts(outcome) == list(range(8))


# Four tasks at 0, whose ends are instants at which a plan may be due, nothing more before 60 s, one that runs long.
GAP = (plain(*[(0, seconds, 1) for seconds in (12, 25, 35, 300, 400)], (60, 5, 1)), fleet_of((8,)))
NOTHING_CAME = "window: no task arrives in the 10 s that begin 10 s after the first arrival"


def test_a_plan_that_cannot_be_made_is_counted():
    """Plans due at 10, 20, 30, 40 and 70 s, made at the next instant: in the three windows from 10 s on nobody came.

    That of 310 s, for which nobody comes any more, is none that is missed.
    """
    outcome = ran(GAP, replan_seconds=10, replan_window=10)
    assert (len(outcome.plans), len(outcome.plans_missed)) == (3, 3)
    assert plan_facts(outcome.plans, outcome.plans_missed).missed == {NOTHING_CAME: 3}
    assert plan_facts((), ("a: 1", "b: 2", "a: 3")) == PlanFacts(plans=0, missed={"a: 1": 2, "b: 2": 1})
    assert plan_facts(()) is None


def test_who_runs_it_hears_of_plans_that_could_not_be_made(tmp_path, run):
    (tmp_path / "W" / "fleet").mkdir(parents=True)
    GAP[0].write(tmp_path / "W")
    GAP[1].write(tmp_path / "W" / "fleet")
    (tmp_path / "lotes.toml").write_text("replan_seconds = 10\nreplan_window = 10\n")
    code, out, error = run("compare", tmp_path / "W", "--schedulers", "first-fit,lotes", "--lotes",
                           tmp_path / "lotes.toml", "--out", tmp_path / "R")
    assert code == 0
    said = ("lotes: of 6 plans 3 could not be made during the run, and what was planned before went on: "
            f"{NOTHING_CAME} (the first of 3)")
    assert error.count(said) == 1
    for shown in (out, (tmp_path / "R" / "report.html").read_text()):
        assert said in " ".join(shown.split())
    assert missed_words("lotes", PlanFacts()) == ""


@settings(quick, max_examples=60)
@given(case=cases(), seed=st.integers(0, 2**32), mix=st.sampled_from(["last", "average"]))
def test_the_future_does_not_change_the_past(case, seed, mix):
    """What runs by 3 s is the same when what arrives later, and is like what came before, is left out."""
    given = LotesSettings(classes=2, mix=mix, replan_seconds=1.0, replan_window=2.0)
    whole, fleet = case  # a stage that waits for another begins sooner when tasks of that are left out
    whole = replace(whole, stages=whole.stages.with_columns(depends_on=pl.lit([], pl.List(pl.UInt32))))
    early = int((whole.tasks["arrival"] <= 3).sum())
    assume(early and planned_or_none(case, LotesSettings()) is not None)
    part = replace(whole, tasks=whole.tasks[:early])
    runs = [simulate(each, fleet, find_scheduler("lotes"), seed, interval=1.0, until=3.0, lotes=given)
            for each in (whole, part)]
    assert starts(runs[0])[:early] == pytest.approx(starts(runs[1]), nan_ok=True)


# Locality


def near_and_far():
    """Two zones of a machine of 4 cores each; a task takes twice as long in the zone that is not its own."""
    stages = [{"request": (1,), "job": 0}, {"request": (1,), "job": 1}]
    tasks = [(1, float(row), 20) for row in range(6)] + [(0, 6.0, 20)]
    workload = staged(stages, tasks)
    workload = replace(workload, stages=workload.stages.with_columns(speed_group=pl.Series([0, 1], dtype=pl.UInt32)))
    return workload, replace(fleet_of((4,), (4,)), speeds=np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_a_plan_sends_tasks_to_their_data():
    plan = make_plan(*near_and_far(), LotesSettings(classes=1, local=True))
    assert sorted(plan.classes.share.tolist()) == pytest.approx([1 / 7, 6 / 7])
    assert plan.configurations.factor.tolist() == [[1.0, 2.0], [2.0, 1.0]]
    assert sorted(plan.rate.flatten().tolist()) == [1 / 40, 1 / 40, 1 / 20, 1 / 20]
    assert plan.notes == ()
    blind = make_plan(*near_and_far(), LotesSettings(classes=1))
    assert len(blind.configurations.machines) == 1
    assert "machines differ in speed" in blind.notes[0]


def test_the_largest_rate_of_two_zones_by_hand():
    """Of 7 tasks 6 are at home in a zone of 4 places. At rate L that zone serves x of them at home, 20 s each.

    The others run 40 s in the other zone, beside L / 7 of 20 s each: x 20 = 4 and (6 L / 7 - x) 40 + (L / 7) 20 = 4.
    """
    rate = make_plan(*near_and_far(), LotesSettings(classes=1, local=True)).allocation.rate
    assert rate == pytest.approx((4 + 8) / (40 * 6 / 7 + 20 / 7))


def test_local_tasks_wait_for_machines_that_are_devoted_to_them():
    """Zones that are asked for evenly: each serves its own alone, and the fifth task of a zone waits for a place."""
    stages = [{"request": (1,), "job": 0}, {"request": (1,), "job": 1}]
    workload = staged(stages, [(row % 2, 100.0, 20) for row in range(8)] + [(1, 200.0 + row, 20) for row in range(5)])
    workload = replace(workload, stages=workload.stages.with_columns(speed_group=pl.Series([0, 1], dtype=pl.UInt32)))
    case = workload, near_and_far()[1]
    window = {"classes": 1, "window_seconds": 50}
    outcome = ran(case, "lotes+local", fallback="devoted", **window)
    assert machine_rows(outcome).tolist()[8:] == [1, 1, 1, 1, 1]
    assert starts(outcome)[8:] == [200, 201, 202, 203, 220]
    stray = ran(case, "lotes+local", **window)
    assert machine_rows(stray).tolist()[8:] == [1, 1, 1, 1, 0]
    assert starts(stray)[-1] == 204


def test_a_fleet_without_speeds_has_no_places_that_are_nearer():
    plan = make_plan(plain((0, 1, 1)), fleet_of((1,)), LotesSettings(local=True))
    assert plan.notes == ("local: the fleet has no speeds, so that no machine is nearer",)


def test_more_speeds_than_a_plan_can_hold_are_refused():
    speeds = np.linspace(1, 2, 5_001)[None]
    case = plain((0, 1, 1), (0, 2, 2), (0, 3, 3), (0, 3, 4)), replace(fleet_of(*[(4,)] * 5_001), speeds=speeds)
    with pytest.raises(InputError, match="5,001 configurations of machines for 4 classes"):
        make_plan(*case, LotesSettings(local=True))


# Fair orders


@st.composite
def jobs_of_one_shape(draw):
    """Some jobs of a few alike tasks, and machines that they more than fill."""
    stages = [{"job": row, "request": draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))}
              for row in range(draw(st.integers(1, 4)))]
    tasks = [(draw(st.integers(0, len(stages) - 1)), draw(st.sampled_from([0, 0, 1, 2, 5])), draw(st.integers(1, 4)))
             for _ in range(draw(st.integers(1, 30)))]
    stages = [each for row, each in enumerate(stages) if any(task[0] == row for task in tasks)]
    names = {old: new for new, old in enumerate(sorted({task[0] for task in tasks}))}
    stages = [{**each, "job": row} for row, each in enumerate(stages)]
    fleet = fleet_of(*draw(st.lists(st.sampled_from([(4, 4), (8, 4), (2, 8)]), min_size=1, max_size=4)), resources=TWO)
    return staged(stages, [(names[task[0]], *task[1:]) for task in tasks], TWO), fleet


@settings(quick, max_examples=60)
@given(case=jobs_of_one_shape(), seed=st.integers(0, 2**32), fallback=st.sampled_from(["all", "devoted"]))
def test_who_is_next_is_the_orders_and_where_is_the_bins(case, seed, fallback):
    given = LotesSettings(classes=2, choice="deficit", fallback=fallback)
    plan = planned_or_none(case, given)
    assume(plan is not None)
    outcome = simulate(*case, find_scheduler("lotes+drf"), seed=seed, interval=1.0, lotes=given)
    world = twin_of(*case, seed)
    kind = plan.class_of(find_shapes(case[0]))[outcome.simulation.tasks.shape].tolist()
    world.run(FairLotesTwin(world, plan, kind, given))
    assert engine_rows(outcome) == twin_rows(world)


def two_queues():
    """A user who submits 8 tasks at once, and a second who submits 2 later, on machines for two at a time.

    When both machines are freed at 10 s nobody holds anything, and a task of each is started.
    """
    stages = [{"job": 0, "request": (1,)}, {"job": 1, "request": (1,)}]
    workload = staged(stages, [(0, 0.0, 10)] * 8 + [(1, 1.0, 10)] * 2)
    queues = pl.Series("queue", ["many", "few"])
    return replace(workload, jobs=workload.jobs.with_columns(queues)), fleet_of((1,), (1,))


def test_a_queue_that_has_nothing_goes_first_under_a_fair_order():
    assert starts(ran(two_queues()))[8:] == [40, 40]
    for order in ("drf", "hdrf", "mch"):
        assert starts(ran(two_queues(), f"lotes+{order}"))[8:] == [10, 20]


@settings(quick, max_examples=50)
@given(case=cases(), seed=st.integers(0, 2**32), order=st.sampled_from(["drf", "hdrf", "hdrf-fast", "mch"]),
       period=st.sampled_from([0.0, 1.0]))
def test_rules_hold_after_every_step_under_a_fair_order(case, seed, order, period):
    given = LotesSettings(classes=2, replan_seconds=period, replan_window=2.0)
    assume(planned_or_none(case, given) is not None)
    watch = Watch(lambda simulation, run: check(simulation, run.fair.lanes))
    simulate(*case, find_scheduler(f"lotes+{order}"), seed=seed, interval=1.0, check=watch, lotes=given)
    assert watch.steps > 0


@pytest.mark.parametrize(("given", "said"), [
    ({"mix": "next"}, "mix: must be one of known, last, average, not 'next'"),
    ({"mix": "last"}, "mix: last goes with plans during a run, so that replan_seconds must be more than 0"),
    ({"fallback": "none"}, "fallback: must be one of all, devoted, not 'none'"),
    ({"usage": 0.0}, "usage: must be more than 0, not 0"),
    ({"usage": 1.5}, "usage: must be at most 1, not 1.5"),
])
def test_settings_are_refused_in_a_line(given, said):
    with pytest.raises(InputError) as caught:
        LotesSettings(**given)
    assert str(caught.value) == said


def test_bins_are_made_for_what_tasks_use_in_the_mean():
    """Four tasks of 4 fill a machine of 16; of those that use 0.75 of that, five: 5 x 3 = 15."""
    case = plain(*[(row, 10, 4) for row in range(4)]), fleet_of((16,))
    assert make_plan(*case).assignment.bins.tolist() == [[4]]
    assert make_plan(*case, LotesSettings(usage=0.75)).assignment.bins.tolist() == [[5]]
