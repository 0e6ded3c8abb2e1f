"""The search that improves HMHS's plan: never worse, repeatable, and its first stage ends where no move helps."""
import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batches import batch, batches, machines
from invariants import Watch
from subak.errors import InputError
from subak.experiment.inputs import load_inputs
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario, read_scenario
from subak.placement.mapreduce.batch import find_batch
from subak.placement.mapreduce.min_min import min_min
from subak.placement.mapreduce.plan import make_plan
from subak.placement.mapreduce.recipes import SearchSettings
from subak.placement.mapreduce.search import draft_of, end_maps, even_out
from subak.policy import find_scheduler
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=25)
# Min-Min puts the three short tasks on both machines and the long one behind them: 1 + 10 s instead of 10 s
UNEVEN = batch((1, 10, 1, 1), (3, 1, 1, 1), grouped=False)
PAIR = machines((1, 0), (1, 0), (0, 1))


def draft(workload, fleet):
    half = find_batch(workload, fleet).maps
    problem = half.problem(half.arrival, np.zeros(int(half.slots.sum())))
    assignment = min_min(problem)
    return problem, draft_of(problem, assignment.job, assignment.column, np.arange(problem.tasks.size))


@quick
@given(case=batches(jobs_most=5), seed=st.integers(0, 99))
def test_a_plan_is_never_made_worse_and_runs_as_planned(case, seed):
    workload, fleet = case
    plan = make_plan(workload, fleet, "hmhs-search", seed, SearchSettings(moves=15))
    assert plan.makespan <= make_plan(workload, fleet, "hmhs").makespan
    assert plan.search_moves == (15 if find_batch(workload, fleet).maps.task.size else 0)
    outcome = simulate(workload, fleet, find_scheduler("hmhs-search"), seed, check=Watch(),
                       search_moves=15)
    assert task_table(outcome, workload, fleet)["finish"].to_list() == plan.finish.tolist()


def test_an_uneven_plan_is_evened_out():
    hmhs, better = (make_plan(UNEVEN, PAIR, name, 1, SearchSettings(moves=20)) for name in ("hmhs", "hmhs-search"))
    assert (hmhs.makespan, better.makespan) == (12.0, 11.0)


def test_without_maps_there_is_nothing_to_search():
    plan = make_plan(batch((0, 0, 3, 2)), machines((0, 1)), "hmhs-search", 1, SearchSettings(moves=9))
    assert (plan.search_moves, plan.makespan) == (0, 6.0)


def test_a_clock_limits_how_many_moves_are_tried():
    ticks = itertools.count()
    plan = make_plan(UNEVEN, PAIR, "hmhs-search", 1, SearchSettings(seconds=7.5), clock=lambda: float(next(ticks)))
    assert plan.search_moves == 7
    again = make_plan(UNEVEN, PAIR, "hmhs-search", 1, SearchSettings(moves=7))
    assert plan.finish.tolist() == again.finish.tolist()


@quick
@given(case=batches())
def test_the_first_stage_ends_where_no_move_helps(case):
    problem, drafted = draft(*case)
    if not drafted.load.size:
        return
    before, whole = (drafted.load ** 8).sum(), drafted.tasks.sum(axis=0)
    even_out(problem, drafted, 100_000)
    assert (drafted.tasks.sum(axis=0) == whole).all()
    assert (drafted.tasks >= 0).all()
    seconds = (problem.shuffle + problem.seconds * problem.factor[problem.machine][:, problem.group])
    assert np.allclose(drafted.load, (drafted.tasks * seconds).sum(axis=1))
    now = (drafted.load ** 8).sum()
    assert now <= before * (1 + 1e-9)
    for source, target in itertools.permutations(range(drafted.load.size), 2):
        for job in np.flatnonzero(drafted.tasks[source]):
            load = drafted.load.copy()
            load[source] -= seconds[source, job]
            load[target] += seconds[target, job]
            if load[target] >= drafted.load[source]:
                continue
            assert (load ** 8).sum() >= now - 1e-9 * max(load[target], drafted.load[source]) ** 8


def test_ends_of_maps_are_those_of_the_columns_in_sequence():
    problem, drafted = draft(batch((2, 3, 0, 0), (1, 4, 0, 0), grouped=False), machines((1, 0)))
    done = np.zeros(2)
    assert end_maps(problem, drafted._replace(order=np.array([1, 0], np.int32)), done) == 10.0
    assert done.tolist() == [10.0, 4.0]


def test_a_run_limited_in_time_is_repeated_to_the_byte(tmp_path):
    (tmp_path / "w" / "fleet").mkdir(parents=True)
    workload = batch(*[(5, 3 + job % 7, 2, 2 + job % 5) for job in range(12)], grouped=False)
    workload.write(tmp_path / "w")
    machines(*[(1, 0)] * 4, *[(0, 1)] * 2).write(tmp_path / "w" / "fleet")
    scenario = Scenario(workload=str(tmp_path / "w"), schedulers=["hmhs-search"], search_seconds=0.05)
    summary = simulate_into(tmp_path / "one", scenario, "hmhs-search", 3, load_inputs(scenario))
    again = read_scenario(tmp_path / "one" / "scenario.toml")
    assert again.search_moves == summary.options["search_moves"]
    simulate_into(tmp_path / "two", again, "hmhs-search", 3, load_inputs(again))
    for name in ("tasks.parquet", "timeline.parquet", "stints.parquet", "scenario.toml"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    assert pl.read_parquet(tmp_path / "two" / "tasks.parquet")["finish"].max() == summary.makespan


def test_what_no_search_could_mean_is_refused():
    with pytest.raises(InputError, match="search_seconds: must be from 0 to 86,400, not -1"):
        Scenario(schedulers=["hmhs-search"], search_seconds=-1.0)
    with pytest.raises(InputError, match="search_moves: must be from 0 to 1,000,000,000, not -3"):
        Scenario(schedulers=["hmhs-search"], search_moves=-3)
    with pytest.raises(InputError, match="none of the schedulers hmhs searches; hmhs-search would"):
        Scenario(schedulers=["hmhs"], search_moves=3)
