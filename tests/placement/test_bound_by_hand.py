"""The makespan's lower bound on small cases worked out by hand: what counts, what is left out, when it is enough."""
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given

from batches import batch, machines
from subak.errors import InputError
from subak.experiment.inputs import load_inputs
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.measures.batch import bound_seconds, lower_bound
from subak.measures.run_folders import load_runs
from subak.placement.linear_program import Work
from subak.placement.mapreduce import bound as bound_module
from subak.placement.mapreduce import prices
from subak.placement.mapreduce.batch import find_batch
from subak.placement.mapreduce.bound import find_shapes, makespan_bound
from subak.placement.mapreduce.prices import Search, Side, find_prices, greedy_plan
from test_bound import bound_of, quick, random_side, sides, whole_program

# -- copying -----------------------------------------------------------------------------------------------------------


def with_run_times(workload, *seconds):
    return replace(workload, tasks=workload.tasks.with_columns(pl.Series("run_time", seconds, pl.Float64)))


def test_tasks_that_differ_copy_as_often_as_the_longest_would():
    """Reduces of 10 s and ten times 0.1 s, 1 s of copying each, on machines of factors 0.1 and 10.

    The fast machine takes the long one (1 + 1 s) and six of the others (1.01 s each), the slow one four (2 s each): all
    done at 8.06 s. The work is as that of 11 / 10 long tasks, so 1.1 s of copying at the least: 2.2 s on the fast
    machine alone, 111.1 s on the slow one, 1 / (1 / 2.2 + 1 / 111.1) on both. Eleven times copying would be 12.1 and
    121 s, 11 s on both, later than the plan above.
    """
    workload = with_run_times(batch((0, 0, 11, 1), shuffle=1.0), 10.0, *[0.1] * 10)
    bound = bound_of(workload, machines((0, 1), (0, 1), speeds=[[0.1, 10.0]]))
    assert bound.reduces.least == pytest.approx(1 / (1 / 2.2 + 1 / 111.1))
    assert bound.seconds < 8.06


def test_tasks_that_take_no_time_copy_all_the_same():
    """Four reduces copy for 3 s each, as long on any machine: 12 s, 6 s on two slots."""
    bound = bound_of(batch((0, 0, 4, 0), shuffle=3.0), machines((0, 1), (0, 1), speeds=[[0.5, 2.0]]))
    assert bound.reduces.least == pytest.approx(6.0)
    assert bound.job == pytest.approx(6.0)


def test_tasks_that_take_no_time_copy_only_where_they_may_run():
    """The same four where one of the two machines is forbidden to them: 12 s."""
    workload = batch((0, 0, 4, 0), shuffle=3.0)
    found = find_batch(workload, machines((0, 1), (0, 1)))
    half = replace(found.reduces, factor=np.array([[1.0], [np.inf]]))
    bound = makespan_bound(replace(found, reduces=half), workload)
    assert bound.reduces.least == pytest.approx(12.0)


SLOW_STARTED, ONE_OF_EACH = batch((4, 2, 1, 5), shuffle=3.0), machines((1, 0), (0, 1))


def test_a_slow_start_hides_copying():
    """Four maps of 2 s one after the other, then a reduce: 8 + 3 + 5 s, or 8 + 5 s when it has copied meanwhile."""
    assert bound_seconds(SLOW_STARTED, ONE_OF_EACH) == pytest.approx(16.0)
    assert bound_seconds(SLOW_STARTED, ONE_OF_EACH, slow_start=True) == pytest.approx(13.0)


@pytest.mark.parametrize(("share", "seconds"), [(1.0, 16.0), (0.99, 13.0), (0.0, 13.0)])
def test_the_bound_of_a_run_is_by_its_slow_start(tmp_path, share, seconds):
    (tmp_path / "w" / "fleet").mkdir(parents=True)
    SLOW_STARTED.write(tmp_path / "w")
    ONE_OF_EACH.write(tmp_path / "w" / "fleet")
    scenario = Scenario(workload=str(tmp_path / "w"), schedulers=["fifo-pri"], slow_start=share)
    simulate_into(tmp_path / "r", scenario, "fifo-pri", 1, load_inputs(scenario))
    run, = load_runs(tmp_path / "r")
    assert run.summary.makespan_bound == pytest.approx(seconds)


# -- what is before, and behind ----------------------------------------------------------------------------------------


def test_reduces_are_bounded_by_what_is_before_them():
    """Maps of 1, 9 and 9 s, each on a machine of its own; reduces of 8, 2 and 2 s, one after the other.

    The first reduces from 1 to 9 s, the others behind it: 13 s, which is 9 + 2 + 2 s, what cannot begin before 9 s.
    """
    workload = batch((1, 1, 1, 8), (1, 9, 1, 2), (1, 9, 1, 2), grouped=False)
    bound = bound_of(workload, machines((1, 0), (1, 0), (1, 0), (0, 1)))
    assert bound.reduces.least == pytest.approx(13.0)
    assert bound.seconds == pytest.approx(13.0)


def test_maps_are_bounded_by_what_is_behind_them():
    """The same from its end: maps of 2, 2 and 8 s on one machine, behind them 9, 9 and 1 s of reduces."""
    workload = batch((1, 2, 1, 9), (1, 2, 1, 9), (1, 8, 1, 1), grouped=False)
    bound = bound_of(workload, machines((1, 0), (0, 1), (0, 1), (0, 1)))
    assert bound.maps.least == pytest.approx(13.0)
    assert bound.seconds == pytest.approx(13.0)


def test_reduces_are_bounded_by_when_their_maps_come():
    """Maps of 1 s that come at 100, 108 and 108 s: 2 + 2 s of reduces behind 8 + 1 s, seconds from the first."""
    workload = batch((1, 1, 1, 2, 100), (1, 1, 1, 2, 108), (1, 1, 1, 2, 108), grouped=False)
    assert bound_of(workload, machines((1, 0), (0, 1))).reduces.least == pytest.approx(13.0)


def test_reduces_without_maps_are_bounded_by_when_they_come():
    workload = batch((0, 0, 1, 2, 100), (0, 0, 1, 2, 108), (0, 0, 1, 2, 108), grouped=False)
    assert bound_of(workload, machines((1, 1))).reduces.least == pytest.approx(12.0)


def test_levels_are_of_the_jobs_that_are_there():
    """As above, 9 + 2 + 2 s, beside forty jobs that reduce nothing: they are no reason to leave the 9 s out."""
    workload = batch((1, 1, 1, 7), (1, 9, 1, 2), (1, 9, 1, 2), *[(1, 1, 0, 0)] * 40, grouped=False)
    assert bound_of(workload, machines((1, 0), (0, 1))).reduces.least == pytest.approx(13.0)


# -- how much is looked at ---------------------------------------------------------------------------------------------


def differing(jobs, kinds):
    """A batch of reduces that all differ, on so many kinds of machines, as its half and the run times."""
    found = find_batch(batch((0, 0, 1, 1), (0, 0, 1, 1)), machines((0, 1), (0, 1)))
    half = replace(
        found.reduces, task=np.arange(jobs), tasks=np.ones(jobs, np.int64), shuffle=1.0 + np.arange(jobs),
        group=np.zeros(jobs, np.int32), slots=np.ones(kinds, np.int64), factor=1.0 + np.arange(kinds)[:, None])
    return half, np.ones(jobs)


def test_only_what_differs_counts_as_a_pair(monkeypatch):
    """Six jobs of two sorts on six machines of two kinds are four pairs; the bound is left out where they are more."""
    workload = batch(*[(0, 0, 1, 4), (0, 0, 2, 3)] * 3)
    fleet = machines(*[(0, 1)] * 6, speeds=[[0.5, 1.0] * 3, [1.0, 0.5] * 3] * 3)
    monkeypatch.setattr(bound_module, "JOBS_BY_MACHINES_MAX", 4)
    assert lower_bound(workload, fleet).seconds > 0
    monkeypatch.setattr(bound_module, "JOBS_BY_MACHINES_MAX", 3)
    assert lower_bound(workload, fleet) == (
        None, "none: bound: 2 jobs on 2 machines that all differ are too many: at most 3 pairs")


def test_some_millions_of_pairs_are_looked_at_and_more_than_twenty_are_not():
    shapes = find_shapes(*differing(2_100, 1_000))
    assert shapes.seconds.shape == (2_100, 1_000)
    with pytest.raises(InputError, match="4,500 jobs on 4,500 machines that all differ are too many: at most 20,000"):
        find_shapes(*differing(4_500, 4_500))


# -- a sample ----------------------------------------------------------------------------------------------------------


def test_a_sample_is_every_fourth_of_each_level_by_size_and_as_large_as_all():
    """Of eight jobs of level 1 the third and the seventh, of four of level 2 the third: each counts for four."""
    size = np.array([9.0, 6.0, 20.0, 1.0, 8.0, 1.5, 3.0, 5.0, 7.0, 2.0, 2.5, 4.0])
    level = np.where(np.isin(size, [1.5, 2.5, 5.0, 20.0]), 2, 1)
    side = Side(np.column_stack([size, 2 * size]), level, np.array([0.0, 5.0]), np.array([0.5, 0.5]))
    found = prices._sampled(side)
    assert sorted(zip(found.seconds[:, 0].tolist(), found.level.tolist(), strict=True)) == [
        (12.0, 1), (20.0, 2), (32.0, 1)]
    assert (found.seconds[:, 1] == 2 * found.seconds[:, 0]).all()


def test_a_sample_of_what_four_do_not_divide_is_as_large_as_all():
    side = Side(np.full((10, 2), 1.0), np.ones(10, np.int64), np.zeros(1), np.array([0.5, 0.5]))
    assert prices._sampled(side).seconds.sum(axis=0) == pytest.approx([10.0, 10.0])


@pytest.mark.parametrize("seed", range(12))
def test_with_samples_the_optimum_is_still_between_what_is_found(seed, monkeypatch):
    """A sample's own optimum may be less or more than that of all."""
    monkeypatch.setattr(prices, "JOBS_FEW", 8)
    random = np.random.default_rng(seed)
    side = Side(np.exp(2 * random.normal(size=(40, 1)) + random.normal(size=(40, 5))), random.integers(1, 3, 40),
                np.array([0.0, 2.0]), np.full(5, 0.2))
    optimum = whole_program(side)
    for work_max in (12_500.0, 20_000.0, 30_000.0, 1e9):
        found = find_prices(side, work_max)
        assert found.least <= optimum * (1 + 1e-9)
        assert found.most >= optimum * (1 - 1e-9)
    assert found.least == pytest.approx(optimum, rel=1e-6)


def test_only_prices_that_prove_more_are_taken():
    search = Search(random_side(6, 3))
    before, least, other = search.prices, search.least, np.full((2, 3), 1 / 6)
    search.offer(other, least / 2)
    assert search.prices is before and search.least == least
    search.offer(other, least * 2)
    assert search.prices is other and search.least == least * 2


# -- when it is enough -------------------------------------------------------------------------------------------------


def test_a_search_is_settled_when_what_is_missed_is_less_than_close():
    search = Search(random_side(6, 3))
    assert not search.settled  # nothing is known from above
    search.least, search.most = 1.0, 1.0 + 0.9e-7
    assert search.settled
    search.most = 1.0 + 1.1e-7
    assert not search.settled
    search.close, search.most = 0.5, 2.0
    assert search.settled
    search.most = 2.001
    assert not search.settled


def test_nothing_is_solved_where_the_greedy_plan_is_as_good_as_the_closed_form(monkeypatch):
    """One machine does everything, whatever the order."""
    monkeypatch.setattr(prices, "JOBS_FEW", 2)
    monkeypatch.setattr(prices, "_sampled", lambda _: pytest.fail("a sample was taken"))
    monkeypatch.setattr(prices, "_Columns", lambda _: pytest.fail("a program was made"))
    found = find_prices(Side(np.array([[1.0], [2.0], [5.0]]), np.array([1, 1, 2]), np.array([0.0, 4.0]), np.ones(1)))
    assert found.least == pytest.approx(9.0)
    assert found.most == pytest.approx(9.0)


@pytest.fixture
def solved(monkeypatch):
    """A list that grows by one with each program that is solved."""
    found, solve = [], prices.Program.solve
    monkeypatch.setattr(prices.Program, "solve", lambda *given: found.append(1) or solve(*given))
    return found


def generated(close=prices.CLOSE):
    """A search over few jobs on many machines, which takes six rounds."""
    side = random_side(30, 200)
    search = Search(side._replace(seconds=side.seconds / 3, height=side.height / 3), close)
    prices._generate(search, greedy_plan(search.side), Work(1e12))
    return search


def test_rounds_end_when_what_they_found_is_near_enough(solved):
    assert generated().settled
    assert len(solved) > 1
    solved.clear()
    assert generated(close=0.99).settled
    assert len(solved) == 1


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_rounds_are_limited_and_what_they_found_stands(rounds, solved, monkeypatch):
    monkeypatch.setattr(prices, "PRICE_ROUNDS", rounds)
    search = generated()
    assert len(solved) == rounds
    assert not search.settled
    optimum = whole_program(search.side)
    assert search.least <= optimum * (1 + 1e-9)
    assert search.most >= optimum * (1 - 1e-9)


def test_a_sample_need_not_be_as_near_as_all(monkeypatch):
    closes, generate = [], prices._generate
    monkeypatch.setattr(prices, "_generate", lambda search, *given: closes.append(search.close) or generate(
        search, *given))
    monkeypatch.setattr(prices, "JOBS_FEW", 8)
    side = random_side(20, 4)
    prices.improve(Search(side._replace(seconds=side.seconds * [0.2, 1.0, 1.0, 3.0])), Work(1e9))
    assert closes == [prices.CLOSE_OF_SAMPLE, prices.CLOSE]
    assert prices.CLOSE_OF_SAMPLE > 10 * prices.CLOSE


# -- a greedy plan -----------------------------------------------------------------------------------------------------


def test_a_greedy_plan_by_hand():
    """Levels of 0 and 0.4 s; a job of level 2 is before the others, then large pieces before small ones.

    Job 1 ends first on machine 0, at 0.4 + 0.25 s; above 0 s it leaves 0.25 s there. Job 2 is in three pieces of 0.25
    or 0.4 s: one on machine 1 (0.4 before 0.5 s), then two on machine 0 (0.5 before 0.8, 0.75 before 0.8 s). Job 0
    then ends first on machine 1, at 0.65 s.
    """
    side = Side(np.array([[0.125, 0.25], [0.25, 0.5], [0.75, 1.2]]), np.array([1, 2, 1]), np.array([0.0, 0.4]),
                np.array([0.5, 0.5]))
    plan = greedy_plan(side)
    assert plan.job.tolist() == [1, 2, 2, 2, 0]
    assert plan.machine.tolist() == [0, 1, 0, 0, 1]
    assert plan.done == pytest.approx(0.75)


def test_a_greedy_plan_ends_no_sooner_than_its_levels():
    """Half a second of a job behind 7 s on any machine, and nothing else."""
    side = Side(np.array([[0.25, 1.0]]), np.array([2]), np.array([0.0, 7.0]), np.array([0.5, 0.5]))
    assert greedy_plan(side).done == pytest.approx(7.25)


@quick
@given(sides())
def test_a_greedy_plan_is_a_plan(side):
    """All of every job is done, and the most loaded machine when it says."""
    side = side._replace(seconds=side.seconds / 20)
    plan, done = greedy_plan(side), np.repeat(side.height[:, None], side.share.size, axis=1)
    assert sorted(set(plan.job.tolist())) == list(range(len(side.seconds)))
    for job, machine in zip(plan.job.tolist(), plan.machine.tolist(), strict=True):
        done[: side.level[job], machine] += side.seconds[job, machine] / np.count_nonzero(plan.job == job)
    assert plan.done == pytest.approx(done.max())
