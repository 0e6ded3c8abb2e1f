"""Plans of maps and reduces: what the engine then does, HMHS's three steps, and what cannot be planned for."""
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import naive_hmhs
from batches import ONE_KIND, batch, batches, machines
from invariants import Watch
from small import fleet_of, plain, staged
from subak.errors import InputError
from subak.fleet.table import make_fleet
from subak.placement.mapreduce.plan import make_plan
from subak.placement.mapreduce.recipes import RECIPES
from subak.policy import find_scheduler
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate
from subak.workload.maps_and_reduces import reduce_stages
from subak.workload.table import make_workload

PLANS = [name for name, recipe in RECIPES.items() if not recipe.searches]  # the search has tests of its own

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=25)


def run(workload, fleet, name):
    outcome = simulate(workload, fleet, find_scheduler(name), check=Watch())
    return task_table(outcome, workload, fleet)


def finishes(workload, fleet, name):
    """What the engine does, after a look at whether it is as planned and whether all is in order."""
    table = run(workload, fleet, name)
    assert (table["status"] == "FINISHED").all()
    assert (table["attempts"] == 1).all()
    reduces = reduce_stages(workload)[workload.tasks["stage"].to_numpy()]
    for job in table["job"].unique():
        of_job = (table["job"] == job).to_numpy()
        maps, later = table.filter(of_job & ~reduces), table.filter(of_job & reduces)
        if len(maps) and len(later):
            assert later["start"].min() >= maps["finish"].max(), f"a reduce of job {job} starts before its maps end"
    return table["finish"].to_list()


@pytest.mark.parametrize("name", PLANS)
@quick
@given(data=st.data())
def test_a_run_ends_each_task_when_the_plan_says(name, data):
    workload, fleet = data.draw(batches(slots_most=data.draw(st.integers(1, 3)), whole=data.draw(st.booleans())))
    plan = make_plan(workload, fleet, name)
    assert finishes(workload, fleet, name) == plan.finish.tolist()
    assert plan.makespan == max(plan.finish)


@pytest.mark.parametrize("name", PLANS)
@quick
@given(data=st.data())
def test_jobs_that_arrive_over_time_are_planned_for_as_they_come(name, data):
    workload, fleet = data.draw(batches(arrivals=True, whole=False))
    assert finishes(workload, fleet, name) == make_plan(workload, fleet, name).finish.tolist()


@pytest.mark.parametrize("name", ["hmhs", "sufferage"])
@quick
@given(data=st.data())
def test_maps_and_reduces_that_share_machines(name, data):
    jobs = data.draw(st.lists(st.tuples(st.integers(0, 4), st.floats(1, 50), st.integers(1, 4), st.floats(1, 50)),
                              min_size=1, max_size=5))
    slots = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    workload = batch(*jobs, resources=ONE_KIND)
    speeds = [[data.draw(st.floats(0.1, 1.0)) for _ in slots] for _ in jobs]
    fleet = machines(*[(count,) for count in slots], resources=ONE_KIND, speeds=speeds)
    assert finishes(workload, fleet, name) == make_plan(workload, fleet, name).finish.tolist()


def test_slots_of_two_kinds_on_one_machine_do_not_wait_for_each_other():
    workload = batch((1, 2, 1, 5), (1, 4, 0, 0), grouped=False)
    assert finishes(workload, machines((1, 1)), "hmhs") == [2.0, 7.0, 6.0]


@pytest.mark.parametrize("reverse", [False, True])
@quick
@given(data=st.data())
def test_hmhs_is_its_three_steps(reverse, data):
    jobs = data.draw(st.lists(st.tuples(st.integers(1, 5), st.floats(1, 50), st.integers(1, 5), st.floats(1, 50)),
                              min_size=1, max_size=6))
    count = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    factors = [[data.draw(st.floats(0.1, 1.0)) for _ in range(sum(count))] for _ in jobs]
    map_speeds, reduce_speeds = [row[: count[0]] for row in factors], [row[count[0]:] for row in factors]
    pri = []
    for (maps, map_seconds, reduces, reduce_seconds), one, two in zip(jobs, map_speeds, reduce_speeds, strict=True):
        first, second = map_seconds * np.mean(one) * maps, reduce_seconds * np.mean(two) * reduces  # equation 1
        pri.append(math.copysign(1, first - second if first > second else -1) / min(first, second))  # equation 4
    expected = naive_hmhs.hmhs(jobs, map_speeds, reduce_speeds, pri, reverse)
    fleet = machines(*[(1, 0)] * count[0], *[(0, 1)] * count[1], speeds=factors)
    assert sorted(finishes(batch(*jobs), fleet, "r-hmhs" if reverse else "hmhs")) == expected


@quick
@given(case=batches())
def test_maps_in_turn_are_hadoops_fifo(case):
    workload, fleet = case
    maps = pl.Series(~reduce_stages(workload)[workload.tasks["stage"].to_numpy()])
    columns = ["start", "finish", "machine"]
    ours, theirs = (run(workload, fleet, name).filter(maps).select(columns)
                    for name in ("dynamic-min-min", "first-fit+backfill"))
    assert ours.equals(theirs)


@quick
@given(case=batches())
def test_every_placement_runs_such_a_batch(case):
    for name in ("first-fit+backfill", "fifo-pri", "best-fit+backfill+johnson"):
        finishes(*case, name)


def test_tasks_of_their_own_lengths_are_planned_for_by_their_mean():
    workload = batch((2, 4, 1, 5))
    tasks = workload.tasks.with_columns(run_time=pl.Series([2.0, 6.0, 5.0]))
    workload = make_workload(workload.jobs, workload.stages, tasks, workload.resources)
    fleet = machines((1, 0), (0, 1))
    assert make_plan(workload, fleet, "hmhs").finish.tolist() == [4.0, 8.0, 13.0]
    assert finishes(workload, fleet, "hmhs") == [2.0, 8.0, 13.0]


def test_jobs_without_maps_or_without_reduces():
    workload = batch((2, 3, 0, 0), (0, 0, 2, 4), (1, 1, 1, 1), grouped=False)
    fleet = machines((1, 0), (0, 1))
    assert finishes(workload, fleet, "hmhs") == [4.0, 7.0, 4.0, 9.0, 1.0, 5.0]


def test_constraints_keep_tasks_from_machines():
    workload = staged([{"job": 0, "request": (1,), "constraints": [("rack", "=", "a")]}, {"job": 1, "request": (1,)}],
                      [(0, 0, 5), (1, 0, 5), (1, 0, 5)])
    fleet = fleet_of((1,), (1,), attributes=[(1, "rack", "a")])
    table = run(workload, fleet, "hmhs")
    assert table["machine"][0] == "m1"
    assert table["finish"].max() == 10.0


@pytest.mark.parametrize("name", PLANS)
def test_what_cannot_be_planned_for_is_refused_in_one_line(name):
    two = fleet_of((1,), (1,))
    chain = staged([{"request": (1,)}, {"request": (1,), "depends_on": [0]}, {"request": (1,), "depends_on": [1]}],
                   [(0, 0, 1), (1, 0, 1), (2, 0, 1)])
    cases = [
        (chain, two, r"job 'j0' has 2 stages that wait for others, 's1', 's2'$"),
        (staged([{"request": (1,)}, {"request": (1,)}], [(0, 0, 1), (1, 0, 1)]), two,
         r"job 'j0' has 2 stages that wait for none, 's0', 's1'$"),
        (plain((0, 1, 1)), fleet_of((1,), changes=[(3.0, 0, False, 0.0)]), r"machine m0 changes at 3 s$"),
        (plain((0, 1, 1), (0, 1, 2)), fleet_of((4,)), r"'j0' asks cpu 1, one of job 'j1' asks cpu 2$"),
        (plain((0, 1, 3)), two, r"no machine for a stage: job 'j0', stage 's0' fits none"),
        (plain((0, 1, 1)), fleet_of((1,), present=[False]), r"no machine for a stage: job 'j0', stage 's0' fits none"),
        (plain((0, math.inf, 1)), two, r"a task must be expected to end, row 0 of tasks has inf s$"),
    ]
    for workload, fleet, said in cases:
        with pytest.raises(InputError, match=said) as error:
            simulate(workload, fleet, find_scheduler(name))
        assert "\n" not in str(error.value)


def test_speeds_of_another_shape_never_reach_a_plan():
    fleet = machines((1, 0), (0, 1))
    with pytest.raises(InputError, match="groups x 2 machines"):
        make_fleet(fleet.machines, fleet.resources, speeds=np.ones((1, 3)))
