"""The lower bound on the makespan: no schedule is below it, and it is the optimum of its linear program."""
import itertools
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from batches import ONE_KIND, batch, batches, machines
from subak.errors import RunError
from subak.experiment import run as runs
from subak.experiment.inputs import load_inputs
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.measures.batch import _missed as _note
from subak.measures.batch import lower_bound
from subak.measures.of_run import makespan
from subak.measures.run_folders import load_runs
from subak.placement.linear_program import Work
from subak.placement.mapreduce import bound as bound_module
from subak.placement.mapreduce import prices
from subak.placement.mapreduce.batch import find_batch
from subak.placement.mapreduce.bound import Bound, makespan_bound
from subak.placement.mapreduce.prices import Found, Side, find_prices, value
from subak.placement.mapreduce.recipes import RECIPES
from subak.policy import find_scheduler
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
SCHEDULERS = [*RECIPES, "first-fit+backfill", "fifo-pri", "best-fit+backfill+johnson-reversed"]


def bound_of(workload, fleet):
    return makespan_bound(find_batch(workload, fleet), workload)


@pytest.mark.parametrize("name", SCHEDULERS)
@settings(quick, max_examples=30)
@given(data=st.data())
def test_no_schedule_is_below_it(name, data):
    workload, fleet = data.draw(batches(arrivals=data.draw(st.booleans()), whole=data.draw(st.booleans()),
                                        slots_most=data.draw(st.integers(1, 3))))
    searched = {"search_moves": 5} if name == "hmhs-search" else {}
    outcome = simulate(workload, fleet, find_scheduler(name), **searched)
    table = task_table(outcome, workload, fleet)
    assert makespan(table) >= bound_of(workload, fleet).seconds


@quick
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=6))
def test_no_sequence_of_two_machines_is_below_it(jobs):
    best = np.inf
    for order in itertools.permutations(jobs):
        mapped = reduced = 0.0
        for one, two in order:
            mapped += one
            reduced = max(reduced, mapped) + two
        best = min(best, reduced)
    workload = batch(*[(1, one, 1, two) for one, two in jobs], grouped=False)
    assert bound_of(workload, machines((1, 0), (0, 1))).seconds <= best


def test_a_job_on_its_own_takes_its_maps_and_then_its_reduces():
    """4 maps of 10 s on machines of factors 0.5 and 1: cut at will 4 * 10 / 3; then 6 s of copying and 2 s."""
    bound = bound_of(batch((4, 10, 1, 2), shuffle=6.0), machines((1, 0), (1, 0), (0, 1), speeds=[[0.5, 1.0, 1.0]]))
    assert bound.job == pytest.approx(40 / 3 + 8)
    assert bound.seconds == pytest.approx(bound.job)


def test_nothing_begins_before_it_arrives():
    fleet = machines((1, 0), (0, 1))
    assert bound_of(batch((1, 10, 1, 4), (1, 10, 1, 4, 100.0), grouped=False), fleet).job == pytest.approx(114.0)
    assert bound_of(batch((1, 10, 0, 0), (0, 0, 1, 4, 100.0), grouped=False), fleet).job == pytest.approx(104.0)


def test_the_longest_task_on_the_best_machine():
    bound = bound_of(batch((1, 10, 0, 0)), machines((1, 0), (1, 0), speeds=[[0.5, 1.0]]))
    assert bound.seconds == pytest.approx(5.0)


def test_the_maps_of_all_jobs_and_the_reduces_behind_them():
    """Two jobs of 10 s of maps on one machine, behind each 4 s of reduces on one of many."""
    bound = bound_of(batch((1, 10, 1, 4), (1, 10, 1, 4), grouped=False), machines((1, 0), (0, 1), (0, 1), (0, 1)))
    assert bound.maps.least == pytest.approx(24.0)
    bound = bound_of(batch((1, 3, 1, 10), (1, 3, 1, 10), grouped=False), machines((1, 0), (1, 0), (0, 1)))
    assert bound.reduces.least == pytest.approx(23.0)


def test_slots_share_the_load():
    bound = bound_of(batch((8, 3, 0, 0), resources=ONE_KIND), machines((4,), resources=ONE_KIND))
    assert bound.seconds == pytest.approx(6.0)


@st.composite
def sides(draw):
    jobs, count, levels = draw(st.integers(1, 12)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    seconds = np.array([[draw(st.floats(0.5, 50.0)) for _ in range(count)] for _ in range(jobs)])
    if count > 1 and draw(st.booleans()):
        seconds[draw(st.integers(0, jobs - 1)), draw(st.integers(0, count - 1))] = np.inf
    height = np.array([0.0, *sorted(draw(st.floats(1.0, 40.0)) for _ in range(levels - 1))])
    slots = np.array([draw(st.integers(1, 4)) for _ in range(count)])
    return Side(seconds, np.array([draw(st.integers(1, levels)) for _ in range(jobs)]), height, slots / slots.sum())


def whole_program(side):
    """The same linear program with every column, in scipy's words."""
    jobs, count = side.seconds.shape
    pairs = [(job, machine) for job in range(jobs) for machine in range(count)
             if np.isfinite(side.seconds[job, machine])]
    equal = [[float(job == each) for each, _ in pairs] + [0.0] for job in range(jobs)]
    upper, right = [], []
    for level, height in enumerate(side.height):
        for machine in range(count):
            upper.append([side.seconds[pair] * (pair[1] == machine and side.level[pair[0]] > level) for pair in pairs]
                         + [-1.0])
            right.append(-height)
    return linprog([0.0] * len(pairs) + [1.0], upper, right, equal, [1.0] * jobs).fun


@quick
@given(sides())
def test_columns_that_are_added_as_they_pay_reach_the_optimum(side):
    found, optimum = find_prices(side), whole_program(side)
    assert found.least == pytest.approx(optimum, rel=1e-4)
    assert found.least <= optimum * (1 + 1e-9)
    assert found.most == pytest.approx(optimum, rel=1e-4)
    assert found.most >= optimum * (1 - 1e-6)


@quick
@given(sides(), st.data())
def test_any_prices_prove_a_bound(side, data):
    prices = np.array([[data.draw(st.floats(0.0, 1.0)) for _ in row] for row in np.zeros((side.height.size,
                                                                                         side.seconds.shape[1]))])
    if prices.sum() > 0:
        assert value(side, prices / prices.sum()) <= whole_program(side) * (1 + 1e-7)


# -- what is alike, what is cut short, what is interrupted -------------------------------------------------------------


@quick
@given(sides(), st.data())
def test_a_machine_is_worth_two_alike_ones_of_half_its_slots(side, data):
    """So alike machines may be added up: the program over kinds has the optimum of the program over machines."""
    kind = data.draw(st.integers(0, side.seconds.shape[1] - 1))
    seconds = np.column_stack([side.seconds, 2.0 * side.seconds[:, kind]])
    seconds[:, kind] *= 2.0
    share = np.append(side.share, side.share[kind] / 2.0)
    share[kind] /= 2.0
    assert whole_program(side) == pytest.approx(whole_program(side._replace(seconds=seconds, share=share)), rel=1e-6)


def plain_half(half, run_time):
    """Seconds of each job on each machine, and the least in which all together could do it, one by one."""
    seconds, least, first = np.full((half.tasks.size, half.slots.size), np.inf), np.zeros(half.tasks.size), 0
    for job, count in enumerate(half.tasks.tolist()):
        lasts, factor = run_time[half.task[first : first + count]], half.factor[:, half.group[job]]
        first += count
        if count:
            copies = half.shuffle[job] * lasts.sum() / lasts.max()
            seconds[job] = (lasts.sum() * factor + copies) / half.slots
            least[job] = max(half.shuffle[job] + lasts.max() * factor.min(), 1 / (1 / seconds[job]).sum())
    return seconds, least


def plain_optimum(half, seconds, height):
    """The linear program's with a row a job and a machine, none of them taken together."""
    there = half.tasks > 0
    if not there.any():
        return 0.0
    height = height.round(9)  # alike jobs are at one level, however their seconds were added up
    levels = np.unique([0.0, *np.quantile(height[there], bound_module.LEVELS).round(9)])
    level = (levels[None] <= height[there][:, None]).sum(axis=1)
    return whole_program(Side(seconds[there], level, levels, half.slots / half.slots.sum()))


@st.composite
def alike(draw):
    """Batches of which many jobs and machines are alike, or nearly."""
    jobs = draw(st.lists(st.tuples(st.integers(1, 3), st.sampled_from([2, 4]), st.integers(1, 2),
                                   st.sampled_from([1, 9])), min_size=1, max_size=6))
    count = draw(st.integers(1, 4))
    kinds = draw(st.lists(st.sampled_from([(1.0, 0.5, 1.0), (0.5, 1.0, 1.0), (1.0, 1.0, 0.25)]), min_size=count,
                          max_size=count))  # [machine], by sort of job
    sorts = [draw(st.integers(0, 2)) for _ in jobs]
    slots = [(draw(st.integers(1, 2)), draw(st.integers(1, 2))) for _ in range(count)]
    workload = batch(*jobs, shuffle=draw(st.sampled_from([0.0, 3.0])))
    return workload, machines(*slots, speeds=[[kind[sort] for kind in kinds] for sort in sorts])


@quick
@given(alike())
def test_taking_together_what_is_alike_leaves_the_optimum(drawn):
    workload, fleet = drawn
    found, run_time = find_batch(workload, fleet), workload.tasks["run_time"].to_numpy()
    (maps, before), (reduces, behind) = (plain_half(half, run_time) for half in (found.maps, found.reduces))
    bound = makespan_bound(found, workload)
    assert bound.maps.least == pytest.approx(plain_optimum(found.maps, maps, behind), rel=1e-4)
    assert bound.reduces.least == pytest.approx(plain_optimum(found.reduces, reduces, before), rel=1e-4)
    assert bound.job == pytest.approx((before + behind).max())


@quick
@given(sides())
def test_one_kind_of_machine_is_bounded_in_closed_form(side):
    alone = side._replace(seconds=side.seconds[:, :1], share=np.ones(1))
    if np.isfinite(alone.seconds).all():
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(prices.Program, "solve", lambda *_: pytest.fail("HiGHS was asked"))
            found = find_prices(alone, work_max=0.0)
        assert found.least == pytest.approx(whole_program(alone), rel=1e-9)


def test_without_work_machines_are_priced_by_their_slots():
    """Three slots and one, on each of which a job takes 8 s: 2 s for all four; no level counts what is below it."""
    seconds, share = np.tile([8 / 3, 8.0], (5, 1)), np.array([0.75, 0.25])
    assert find_prices(Side(seconds, np.array([1, 1, 1, 2, 2]), np.array([0.0, 5.0]), share), 0.0).least == 10.0
    assert find_prices(Side(seconds, np.array([1, 1, 1, 2, 2]), np.array([0.0, 7.0]), share), 0.0).least == 11.0


@quick
@given(sides(), st.sampled_from([0.0, 10.0, 1000.0, 3000.0, 6000.0, 7000.0, 8000.0, 10000.0]))
def test_a_search_that_is_cut_short_still_proves_a_bound(side, work_max):
    found, optimum = find_prices(side, work_max), whole_program(side)
    assert 0 < found.least <= optimum * (1 + 1e-9)
    assert found.most >= optimum * (1 - 1e-6)


def test_what_was_cut_short_is_said(monkeypatch):
    workload = batch((9, 4, 3, 2), (2, 7, 2, 9), (5, 1, 4, 6))
    fleet = machines((1, 1), (1, 1), (2, 1), speeds=[[0.5, 1.0, 2.0], [2.0, 1.0, 0.7], [1.0, 0.6, 1.4]])
    whole = lower_bound(workload, fleet)
    assert whole.note == ""
    monkeypatch.setattr(bound_module, "find_prices", lambda side: find_prices(side, 0.0))
    short = lower_bound(workload, fleet)
    assert 0 < short.seconds <= whole.seconds
    if short.seconds < whole.seconds * (1 - 1e-6):
        assert short.note.startswith("cut short: its linear programs' optimum may be above it by ")


def test_how_far_the_bound_may_be_is_said_and_why():
    maps, reduces = Found(20.0, 22.0, "HiGHS gave up"), Found(10.0, 21.0)
    assert Bound(maps, reduces, 1.0).missed == pytest.approx(0.1)
    assert Bound(maps, reduces, 30.0).missed == 0.0
    assert _note(Bound(maps, reduces, 1.0)) == (
        "cut short: its linear programs' optimum may be above it by up to 10.0% (HiGHS gave up)")
    assert _note(Bound(Found(20.0, np.inf), reduces, 1.0)) == (
        "cut short: its linear programs' optimum may be above it by an unknown share")
    assert _note(Bound(Found(20.0, 20.0), reduces._replace(most=20.0), 1.0)) == ""


def random_side(jobs, count, seed=1):
    random = np.random.default_rng(seed)
    return Side(random.uniform(0.5, 2.0, (jobs, count)), random.integers(1, 3, jobs), np.array([0.0, 3.0]),
                np.full(count, 1 / count))


def test_work_that_is_not_there_is_not_spent():
    work = Work(3.0)
    assert (work.spend(2.0), work.spend(2.0), work.spend(1.0), work.left) == (True, False, True, 0.0)


def test_all_work_is_counted(monkeypatch):
    """The greedy plan by its pieces, a round by its cells, a simplex iteration by jobs and machines."""
    side, solutions, solve = random_side(60, 8), [], prices.Program.solve
    monkeypatch.setattr(prices.Program, "solve", lambda *given: solutions.append(solve(*given)) or solutions[-1])
    work = Work(1e9)
    prices.improve(prices.Search(side), work)
    pieces, cells = 60 + prices.PIECES * 8, 60 * 8 / prices.CELLS_A_WORK
    iterations = sum(each.iterations for each in solutions)
    assert iterations > 0
    assert 1e9 - work.left == prices.GREEDY_WORK * pieces + 2 * cells + len(solutions) * cells + iterations * (60 + 8)


def test_a_program_takes_no_more_iterations_than_it_may(monkeypatch):
    given, solve = [], prices.Program.solve

    def noted(program, most):
        found = solve(program, most)
        given.append((most, found.iterations))
        return found

    monkeypatch.setattr(prices.Program, "solve", noted)
    side = random_side(60, 8)
    side = side._replace(seconds=side.seconds * np.linspace(0.2, 3.0, 8))
    optimum = whole_program(side)
    for work_max in range(18_600, 30_000, 300):  # the greedy plan takes 18,520
        found = find_prices(side, work_max)
        assert found.least <= optimum * (1 + 1e-9)
        assert found.most >= optimum * (1 - 1e-9)
    assert given
    assert all(iterations <= most for most, iterations in given)
    assert any(iterations == most for most, iterations in given), "one was to be cut short"


def test_a_solver_that_gives_up_costs_the_rest_and_not_the_bound(monkeypatch):
    def gives_up(*_):
        raise RunError("linear program: HiGHS found no optimum (mine)")

    side = random_side(60, 8)
    whole = find_prices(side)
    monkeypatch.setattr(prices.Program, "solve", gives_up)
    found = find_prices(side)
    assert 0 < found.least <= whole.least
    assert found.most >= whole.most
    assert found.fault == "linear program: HiGHS found no optimum (mine)"


def test_many_jobs_are_priced_by_a_sample_first(monkeypatch):
    """Every fourth as large as four, so that its optimum is much that of all; what it proves of them, it proves."""
    monkeypatch.setattr(prices, "JOBS_FEW", 40)
    side = random_side(200, 6)
    side = side._replace(seconds=side.seconds * [0.3, 1.0, 1.0, 1.0, 1.0, 1.0])
    sampled = prices._sampled(side)
    assert sampled.seconds.min(axis=1).sum() == pytest.approx(side.seconds.min(axis=1).sum(), rel=0.05)
    search = prices.Search(side)
    first = search.least
    with monkeypatch.context() as patched:
        generate = prices._generate
        patched.setattr(prices, "_generate", lambda search, *given: (
            None if len(search.side.seconds) == 200 else generate(search, *given)))
        prices.improve(search, Work(1e9))
    assert search.least == pytest.approx(value(side, search.prices))
    assert first < search.least <= whole_program(side) * (1 + 1e-9)


def test_a_bound_stays_below_the_rounding_of_its_sums():
    bound = bound_of(batch((8, 3, 0, 0), resources=ONE_KIND), machines((4,), resources=ONE_KIND))
    largest = max(bound.maps.least, bound.reduces.least, bound.job)
    assert largest * (1 - 1e-8) < bound.seconds < largest


LONG = """
import sys
import numpy as np
from subak.placement import linear_program
from subak.placement.mapreduce import prices
run = linear_program._run
linear_program._run = lambda solver: (print("solving", flush=True), run(solver))
prices.JOBS_FEW = 10**9  # so that the first program is the long one
random = np.random.default_rng(1)
seconds = random.uniform(0.5, 50.0, (9000, 300))
try:
    prices.find_prices(prices.Side(seconds, np.ones(9000, np.int64), np.zeros(1), np.full(300, 1 / 300)), work_max=1e12)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_is_heard_inside_a_long_program():
    """One that would take some twenty seconds more."""
    process = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "solving\n"
        time.sleep(1.0)
        assert process.poll() is None, "it must still be at work"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=5)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, "", "")


def test_a_run_is_whole_before_its_bound_is_looked_for(tmp_path, monkeypatch):
    workload, fleet = batch((3, 4, 2, 2), (2, 3, 1, 5)), machines((1, 0), (0, 1))
    (tmp_path / "fleet").mkdir()
    workload.write(tmp_path)
    fleet.write(tmp_path / "fleet")
    scenario = Scenario(workload=str(tmp_path), schedulers=["first-fit+backfill"])

    def interrupted(*_):
        run, = load_runs(tmp_path / "R")
        assert run.tasks().collect().height == len(workload.tasks)
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "lower_bound", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate_into(tmp_path / "R", scenario, scenario.schedulers[0], 1, load_inputs(scenario))
    run, = load_runs(tmp_path / "R")
    assert run.summary.makespan_bound is None
    assert sorted(path.name for path in (tmp_path / "R").iterdir()) == [
        "attempts.parquet", "groups.parquet", "scenario.toml", "summary.json", "tasks.parquet", "timeline.parquet"]
