"""The fewest machines: bisection on made-up curves, Erlang-C's answers, and the command from end to end."""
import itertools
import json
import math
import re
import shlex
from concurrent.futures import Future
from dataclasses import replace

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from small import CPU, TWO, fleet_of, plain, staged
from subak.errors import InputError
from subak.experiment.sizing.answer import (
    HIGH,
    LOW,
    Recorded,
    Rise,
    Size,
    Sized,
    Sizing,
    Supposed,
    Weeks,
    best_of,
    scarcest,
    value_of,
)
from subak.experiment.sizing.candidates import Candidate, Kind, Mix, Part, Question, hopeless, load_question
from subak.experiment.sizing.counts import may_share
from subak.experiment.sizing.search import fewest, search
from subak.experiment.sizing.size import limit_of, start_of
from subak.experiment.sizing.trials import Tried
from subak.experiment.sizing.weeks import Draw, answers_on, weeks_of
from subak.fleet.edits import rows_in_mix
from subak.fleet.table import read_fleet
from subak.measures.intervals import SEEDS_MIN, TraceDays, mean_interval
from subak.measures.objective import read_objective
from subak.measures.window import Window
from subak.report.sizing.beside_log import replay, unlike_log
from subak.report.sizing.notes import notes
from subak.report.sizing.objective_words import said_objective
from subak.report.sizing.words import headline, sentences
from subak.resources import Resource
from subak.workload.demand import most_at_once, most_recorded
from subak.workload.resample import Drawable
from subak.workload.table import make_workload

OBJECTIVE = [read_objective("wait.mean < 10s")]
EIGHT = range(1, 9)


def sized(value, start=4, limit=1000, seeds=EIGHT):
    """Search with a made-up value of each number of machines and seed; return the answer and what was tried."""
    tried = []

    def trial(machines):
        tried.append(machines)
        return Size(machines, None, (value_of([value(machines, seed) for seed in seeds]),))

    return search("cpu 1", trial, OBJECTIVE, start, limit), tried


# Bisection


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 500), st.integers(1, 700), st.integers(500, 1000))
def test_bisection_finds_the_first_that_holds_and_tries_no_size_twice(answer, start, limit):
    found, tried = sized(lambda machines, _: 5.0 if machines >= answer else 20.0, min(start, limit), limit)
    assert found.fewest == answer
    assert (found.low, found.high) == (answer, answer)
    assert len(tried) == len(set(tried)) <= 10 + 11 + 7  # doubling, halving, and the curve
    assert all(1 <= machines <= limit for machines in tried)
    assert [size.machines for size in found.sizes] == sorted(tried)
    assert (found.odd, found.rises) == ((), ())


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 300))
def test_searches_go_by_what_others_tried(first, second, start):
    tried, count = {}, []

    def trial(machines):
        count.append(machines)
        return Size(machines, None, ())

    for answer in (first, second):
        assert fewest(lambda size, answer=answer: size.machines >= answer, trial, tried, start, 300) == answer
    assert len(count) == len(set(count))


def test_no_size_up_to_the_limit():
    found, tried = sized(lambda machines, _: 1000.0 / machines, limit=99)
    assert (found.fewest, found.low, found.high, max(tried)) == (None, None, None, 99)
    assert sized(lambda machines, _: 1000.0 / machines, limit=101)[0].fewest == 101


def test_the_smallest_already_does():
    assert sized(lambda machines, _: 1.0 / machines)[0].fewest == 1


def test_the_interval_is_of_sizes_that_the_seeds_do_not_decide():
    noise = np.random.default_rng(3).lognormal(0.0, 0.3, 9)
    found, _ = sized(lambda machines, seed: 100.0 * noise[seed] / machines)
    assert found.low < found.fewest < found.high
    for machines, end in ((found.low, LOW), (found.high, HIGH)):
        assert found.size(machines).keeps(OBJECTIVE, end)
        below = value_of([100.0 * noise[seed] / (machines - 1) for seed in EIGHT])
        assert not OBJECTIVE[0].holds(getattr(below, end))


def test_few_seeds_have_no_interval():
    found, _ = sized(lambda machines, seed: (100.0 + seed) / machines, seeds=range(1, SEEDS_MIN))
    assert (found.fewest, found.low, found.high) == (11, None, None)


def test_a_curve_that_rises_is_said():
    found, _ = sized(lambda machines, seed: 5.0 if machines in (10, 11) or machines >= 20 else 20.0 + seed, start=20)
    assert (found.fewest, found.odd) == (10, (12, 15))
    found, _ = sized(lambda machines, seed: 50.0 + seed if machines == 12 else 100.0 / machines + seed / 100, start=11)
    assert found.odd == (12,)  # 1.1 times the answer
    assert [(rise.fewer, rise.more) for rise in found.rises] == [(11, 12)]


def test_a_size_that_is_missed_keeps_nothing():
    size = Size(3, None, (value_of([1.0, 1.0]),), "2 tasks can never run")
    assert not size.keeps(OBJECTIVE)
    assert Size(3, None, (value_of([1.0, 1.0]),)).keeps(OBJECTIVE)


def test_endless_values_are_missed():
    value = value_of([1.0] * 7 + [math.inf])
    assert (value.mean, value.low) == (math.inf, math.inf)


def test_the_best_is_the_cheapest_or_has_the_fewest():
    def answer(machines, price):
        sizes = () if machines is None else (Size(machines, price, ()),)
        return Sized("x", 9, sizes, machines, buy_price=price)

    assert best_of([answer(3, 9.0), answer(9, 3.0), answer(None, None)]) == 1
    assert best_of([answer(3, None), answer(9, None)]) == 0
    assert best_of([answer(None, None)]) is None


def test_the_number_to_report_is_the_surest_that_is_known():
    """Draws of a trace come before seeds, and seeds before the mean alone."""
    answer = Sized("x", 99, (), 10, low=9, high=12)
    assert answer.buy == 12
    assert Sized("x", 99, (), 10, low=9).buy == 10  # no size is sure
    assert Sized("x", 99, (), None).buy is None
    assert Sized("x", 99, (), 10, weeks=Weeks((9, 11), (10, 12), buy=13)).buy == 13
    assert Sized("x", 99, (), 10, weeks=Weeks((9, None), (10, 12))).buy == 10  # too few draws to tell


@pytest.mark.parametrize(("text", "said"), [
    ("wait.p95 < 10min", "95 % of tasks wait less than 10 min"),
    ("wait.p99.9 <= 5s", "99.9 % of tasks wait at most 5 s"),
    ("wait.max < 1s", "all tasks wait less than 1 s"), ("wait.median < 1s", "half of tasks wait less than 1 s"),
    ("wait.mean < 60s for queue=prod,user=ann", "tasks of queue prod of user ann wait less than 60 s on average"),
    ("job_wait.p95 < 1h", "95 % of jobs wait less than 60 min"),
    ("job_slowdown.p90 < 2", "90 % of jobs have a slowdown of less than 2"),
    ("completion.p90 < 2h", "90 % of jobs have a completion time of less than 2 h"),
    ("turnaround.mean < 2d", "tasks have a turnaround time of less than 2 d on average"),
])
def test_objectives_are_said_in_words(text, said):
    assert said_objective(read_objective(text)) == said


# The interval of a mean


def test_the_interval_of_a_mean_is_students_t_of_its_logarithm():
    values = np.array([8.0, 9.0, 10.0, 11.0, 12.0, 10.0])
    error = math.sqrt(10.0 / 5) / math.sqrt(6)  # squares of deviations: 4 + 1 + 0 + 1 + 4 + 0
    span = 2.570582 * error / 10.0  # t of 5 degrees of freedom, 97.5 %
    assert mean_interval(values) == pytest.approx((10 * math.exp(-span), 10 * math.exp(span)), rel=1e-6)
    assert mean_interval(values[:5]) is None
    assert mean_interval(np.zeros(6)) == (0.0, 0.0)
    assert mean_interval(np.array([1.0] * 5 + [math.inf])) is None


# Candidates


def test_hopeless_tasks_are_counted_with_their_reason():
    workload = plain((0, 1, 4), (1, 1, 2), (2, 1, 4))
    assert hopeless(workload, Candidate("cpu 2", fleet_of((2,)), None)) == (
        "2 tasks can never run: one asks cpu 4 cores, the largest machine has 2")
    assert hopeless(workload, Candidate("cpu 4", fleet_of((4,)), None)) == ""


def test_tasks_that_can_never_run_are_said_to_be_sized_apart_where_they_are_a_queues_own():
    workload = plain((0, 1, 4), (1, 1, 2), (2, 1, 4))
    candidate = Candidate("cpu 2", fleet_of((2,)), None)

    def words(*queues):
        return hopeless(replace(workload, jobs=workload.jobs.with_columns(queue=pl.Series(queues))), candidate)
    assert words("gpu/ann", "cpu/bob", "gpu/bob").endswith(
        "has 2 (all in gpu: --only-queue cpu leaves them out, and they are sized apart)")
    assert words("gpu/ann", "gpu/bob", "gpu/bob").endswith("has 2")  # there is no other


def test_the_search_begins_at_the_load_and_ends_where_nothing_waits():
    workload = plain(*((each, 10.0, 1, 2) for each in range(100)), resources=TWO)
    candidate = Candidate("x", fleet_of((1, 4), resources=TWO), None)
    assert most_at_once(workload) == 10
    assert start_of(workload, candidate) == 10  # 1,000 core-seconds over 109 s
    assert limit_of(workload, candidate) == 20
    assert limit_of(workload, Candidate("x", fleet_of(*[(1, 4)] * 30, resources=TWO), None)) == 30


def test_a_price_is_of_the_machines_that_are_there():
    candidate = Candidate("mix", fleet_of((1,), (1,), (4,)), np.array([1.0, 1.0, 3.0]))
    assert [candidate.price(count) for count in (3, 6, 9)] == [5.0, 10.0, 15.0]
    assert Candidate("mix", fleet_of((1,)), None).price(3) is None


def test_all_have_a_price_or_none(tmp_path):
    (tmp_path / "W").mkdir()
    plain((0, 1, 1)).write(tmp_path / "W")
    scenario = scenario_of(tmp_path / "W")
    with pytest.raises(InputError, match="either all machines have one, or none"):
        load_question(Question(scenario, [Kind({"cpu": 1.0}, 1.0), Kind({"cpu": 2.0})]))
    with pytest.raises(InputError, match="either all machines have a price, or none"):
        Mix([Part(1, {"cpu": 1.0}, 1.0), Part(1, {"cpu": 2.0})])
    with pytest.raises(InputError, match="count must be from 1"):
        Mix([Part(0, {"cpu": 1.0})])


def scenario_of(folder):
    from subak.experiment.scenario import Scenario

    return Scenario(workload=str(folder), objectives=["wait.mean < 1s"])


# Erlang-C


def erlang_c(servers, load):
    """The share of arrivals that wait for one of *servers*, by the sum of the textbooks."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def machines_for(load, statistic, bound):
    """The fewest servers of rate 1 whose mean wait, or its percentile, is below the bound."""
    servers = math.floor(load) + 1
    while True:
        waits = erlang_c(servers, load)
        rate = servers - load  # of those who wait, the wait is exponential
        tail = None if statistic == "mean" else 1 - float(statistic[1:]) / 100
        value = waits / rate if tail is None else max(math.log(waits / tail) / rate, 0.0)
        if value < bound:
            return servers
        servers += 1


def queue_of(count, load, seed):
    """One-slot tasks of users of their own: a Poisson process given its number, and exponential run times.

    Run times are the quantiles of the law in a drawn order, so that the trace is of the load that is meant.
    """
    random = np.random.default_rng(seed)
    run_time = -np.log1p(-(np.arange(count) + 0.5) / count)
    run_time = random.permutation(run_time / run_time.mean())
    ids = pl.Series([str(each) for each in range(count)])
    rows = np.arange(count, dtype=np.uint32)
    return make_workload(
        pl.DataFrame({"job": ids, "queue": ["all"] * count, "user": ids}),
        pl.DataFrame({"job": rows, "name": ["only"] * count, "depends_on": [[]] * count, "kind": ["TASK"] * count,
                      "priority": [0] * count, "constraints": [None] * count, "cpu": [1.0] * count}),
        pl.DataFrame({"stage": rows, "index": np.zeros(count, np.uint32),
                      "arrival": np.sort(random.uniform(0, count / load, count)), "run_time": run_time}), CPU)


def test_the_formula_says_what_is_published():
    assert erlang_c(10, 8.0) == pytest.approx(0.409180, abs=1e-6)  # tests/data/answers/queueing.json
    assert erlang_c(10, 8.0) / 2 == pytest.approx(0.204590, abs=1e-6)


@pytest.mark.parametrize(("load", "statistic", "bound"), [(3.0, "mean", 0.1), (8.0, "p90", 0.1), (20.0, "p95", 0.5)])
def test_erlang_c_is_inside_the_interval(run, tmp_path, load, statistic, bound):
    (tmp_path / "W").mkdir()
    queue_of(20_000, load, seed=1).write(tmp_path / "W")
    code, out, said = run("size", tmp_path / "W", "--kind", "cpu=1", "--objective", f"wait.{statistic} < {bound}s",
                          "--seeds", "1-17", "--measure-from", 2000 / load, "--processes", 1)
    assert code == 0, said
    found = re.search(r"95 % intervals: (\d+) to (\d+) machines in the typical stretch", out)
    low, high = map(int, found.groups())
    assert low <= machines_for(load, statistic, bound) <= high
    assert high - low <= 5  # it says something


# The command


@pytest.fixture
def site(tmp_path):
    """A workload of pairs of tasks, a second apart, that run for 3 s and ask for 2 of a machine's cpu."""
    (tmp_path / "W").mkdir()
    staged([{"request": (2,)}], [(0, each // 2, 3.0) for each in range(200)]).write(tmp_path / "W")
    (tmp_path / "W" / "fleet").mkdir()
    fleet_of(*[(2,)] * 3, (4,)).write(tmp_path / "W" / "fleet")
    return tmp_path / "W"


ONE = ("--seeds", 1, "--processes", 1)


def test_a_kind_by_hand(run, site, tmp_path):
    """Two tasks begin each second and run for three: six slots of 2 keep all from waiting, and no fewer."""
    code, out, said = run("size", site, "--kind", "cpu=2", "--objective", "wait.max < 1s", *ONE, "--out",
                          tmp_path / "S")
    assert code == 0, said
    assert "You need 6 machines of cpu=2 in all (not 6 more): all tasks wait less than 1 s, in one run.\n" in out
    assert "One run for each size, so there is no interval" in out
    page = (tmp_path / "S" / "report.html").read_text()
    assert "You need 6 machines of cpu=2 in all (not 6 more): all tasks wait less than 1 s, in one run." in page
    assert "How many machines" in page
    table = pl.read_csv(tmp_path / "S" / "sizes.csv")
    assert table.filter(machines=6)["kept"].item() == "yes"
    assert table.filter(machines=5)["kept"].item() == "no"
    assert dict(zip(table["machines"], table["answer"], strict=True))[6] == "needed"
    assert table["answer"].drop_nulls().to_list() == ["needed"]
    # Of the 200 tasks 194 run for 3 s in the 99 s from the first arrival to the last, and two each for 2, 1 and 0 s
    held = (194 * 3 + 2 * 2 + 2 * 1) * 2
    used = dict(table.select("machines", "cpu used (share)").iter_rows())
    assert used[6] == pytest.approx(held / (6 * 2 * 99)) and used[8] == pytest.approx(held / (8 * 2 * 99))
    least = dict(table.select("machines", "cpu used, least used machine (share)").iter_rows())
    assert least[8] == 0.0 < least[6]  # two of eight are never needed
    assert "least used: that of the least used machine; near 0 % it is there for peaks alone" in " ".join(out.split())


def test_the_answer_is_run_again_from_its_scenario(run, site, tmp_path):
    run("size", site, "--kind", "cpu=2", "--objective", "wait.max < 1s", *ONE, "--out", tmp_path / "S")
    code, out, said = run("simulate", "--scenario", tmp_path / "S" / "scenario.toml")
    assert code == 0, said
    assert "on 6 machines" in out and "met: 0 s" in out


def test_the_cheaper_kind_and_a_mix(run, site, tmp_path):
    (tmp_path / "mixed.toml").write_text(
        "[[machines]]\ncount = 1\ncapacity = { cpu = 2 }\nprice = 2\n[[machines]]\ncount = 1\ncapacity = { cpu = 4 }\n"
        "price = 3.5\n")
    code, out, said = run("size", site, "--kind", "cpu=2", "--price", 2, "--kind", "cpu=4", "--price", 3.9, "--mix",
                          tmp_path / "mixed.toml", "--objective", "wait.max < 1s", *ONE)
    assert code == 0, said
    assert "\n6 machines of cpu=2 for 12\n" in out
    assert "\n3 machines of cpu=4 for 11.7\n" in out
    assert out.startswith("You need 4 machines of the mix mixed (2 of cpu=2, 2 of cpu=4) for 11 in "
                          "all (not 4 more): all "
                          "tasks wait less than 1 s, in one run.\n")
    assert "The kinds are alternatives: take the machines of one, not of all." in " ".join(out.split())
    assert "11 *" in out  # the cheapest


def test_the_fleet_keeps_its_mix(run, site):
    code, out, said = run("size", site, "--objective", "wait.max < 1s", *ONE)
    assert code == 0, said
    # four and one that holds two: six slots
    assert out.startswith("You need 5 machines of the mix of unnamed in all (not 5 more): ")
    assert "The fleet has 4; the answer is 1 more." in out


def test_too_few_of_a_mix_leave_a_task_that_can_never_run(run, tmp_path):
    """One task of a hundred needs the large machine, of which a small part of the mix has none: no percentile helps."""
    (tmp_path / "W").mkdir()
    tasks = [(1 if each == 50 else 0, each, 1.0) for each in range(100)]
    staged([{"request": (2,)}, {"request": (4,)}], tasks).write(tmp_path / "W")
    fleet = fleet_of(*[(2,)] * 3, (4,))
    (tmp_path / "W" / "fleet").mkdir()
    fleet.write(tmp_path / "W" / "fleet")
    code, out, said = run("size", tmp_path / "W", "--objective", "wait.median < 1d", *ONE, "--out", tmp_path / "S")
    assert code == 0, said
    known = next(count for count in range(1, 5) if 3 in rows_in_mix(fleet, count))
    assert known > 1
    assert f"{known} machines of the mix of unnamed" in out
    table = pl.read_csv(tmp_path / "S" / "sizes.csv")
    assert table.filter(machines=known - 1)["kept"].item() == (
        "no: 1 tasks can never run: asks cpu 4 cores, the largest machine has 2")


def test_machines_that_are_too_small_are_said_and_nothing_is_run(run, site, tmp_path):
    code, out, _ = run("size", site, "--kind", "cpu=1", "--objective", "wait.max < 1s", *ONE, "--out", tmp_path / "S")
    assert code == 1
    assert not list(tmp_path.glob("*S*"))  # what is no answer is not kept
    assert "No number of machines of cpu=1 is enough" in out
    assert "200 tasks can never run: one asks cpu 2 cores, the largest machine has 1" in out


def test_a_limit_that_is_not_enough_is_said(run, site, tmp_path):
    code, out, _ = run("size", site, "--kind", "cpu=2", "--objective", "wait.max < 1s", "--limit", 5, *ONE, "--out",
                       tmp_path / "S")
    assert code == 1
    assert not list(tmp_path.glob("*S*"))
    assert "No number of machines up to 5 is enough" in out
    assert "On 5 machines, wait.max < 1s: " in out


def test_a_trace_that_hangs_upon_a_few_sessions_has_its_own_answer_alone(run, site):
    """All tasks are of one job; that seeds draw nothing from it is said, and where they are to, what to beware of."""
    asked = ("size", site, "--kind", "cpu=2", "--objective", "wait.max < 1s", "--processes", 1)
    code, out, said = run(*asked)
    assert code == 0 and "One run for each size, so there is no interval" in out
    assert "seeds do not draw unnamed anew: its work is as uneven as that of 1.0 alike sessions of users" in said
    _, out, said = run(*asked, "--seeds", "1-7", "--resample", "days")
    assert "Beware: the trace's work is as uneven as that of 1 alike sessions of users" in out
    assert "anew" not in said


def test_the_trace_comes_first_then_the_interval_then_what_to_buy(run, tmp_path):
    """A week in which each day of a user is like the others: draws differ, for users' large days may coincide."""
    (tmp_path / "W").mkdir()
    random = np.random.default_rng(2)
    rows = sorted((day * 86_400.0 + 36_000.0 + 1800.0 * random.random(), f"u{user}")
                  for user, day in itertools.product(range(12), range(7)) for _ in range(int(random.integers(4, 12))))
    made = plain(*((arrival, 3600.0, 1) for arrival, _ in rows))
    replace(made, jobs=made.jobs.with_columns(user=pl.Series([user for _, user in rows]))).write(tmp_path / "W")
    asked = ("size", tmp_path / "W", "--kind", "cpu=1", "--objective", "wait.p95 < 60s", "--processes", 1)
    code, out, said = run(*asked, "--out", tmp_path / "S")
    assert code == 0, said
    said = " ".join(out.split())
    found = re.match(r"You need (\d+) machines of cpu=1 in all \(not \1 more\): 95 % of jobs wait "
                     r"less than 60 s, in the "
                     r"next week with 95 % certainty\. Fewest with which wait\.p95 < 60s holds on "
                     r"the trace itself: (\d+)\. "
                     r"95 % intervals: (\d+) to (\d+) machines in the typical week, (\d+) to (\d+) in the next one\. ",
                     said)
    buy, own, low, high, next_low, next_high = map(int, found.groups())
    assert next_low <= low <= own <= high <= next_high and own < buy <= next_high
    assert "7 days were drawn anew, 20 times for all users together and 20 times for each apart" in said
    assert "Each size was run once, on the trace itself, so a size has no interval." in said
    assert f"You need {buy} machines of cpu=1 in all (not {buy} more): " in (tmp_path / "S" / "report.html").read_text()
    assert len(read_fleet(tmp_path / "S" / "fleet").machines) == buy
    kept = json.loads((tmp_path / "S" / "size.json").read_bytes())
    weeks = kept["answers"][0]["weeks"]
    assert len(weeks["whole"]) == len(weeks["users"]) == 20 and weeks["buy"] == buy
    assert weeks["whole"] != weeks["users"] and kept["redrawn"]["days"] == 7
    assert f"95 %: of twenty such stretches to come at most one needs more than {buy}." in said
    marked = pl.read_csv(tmp_path / "S" / "sizes.csv").filter(pl.col("answer").is_not_null())
    assert marked.select("machines", "answer").rows() == [(own, "fewest"), (buy, "needed")]
    assert re.search(rf"\n +{buy} .*  yes   needed ", out)
    assert "No interval: that takes seeds 1-7." in run(*asked, "--seeds", "1-6")[1]
    _, out, _ = run(*asked, "--seeds", "1-9", "--limit", own)
    assert re.search(rf"On \d of 8 draws no size up to {own} is enough, so there is no interval\.", out)


def test_what_weeks_take_by_hand():
    """ln 2 and ln 8 lie 2 ln 2 apart: the deviation of 2, 4, 8 is ln 2; of 4, 4, 4 it is 0. t(4 - 2, .975) = 4.303."""
    found = weeks_of(4, {2: 2, 3: 4, 4: 4, 5: 4, 6: 8, 7: 4}, TraceDays(days=4, freedom=3))
    assert (found.whole, found.users) == ((2, 4, 8), (4, 4, 4))
    error = math.log(2) * math.sqrt(4 / 3)
    assert found.typical == (max(math.floor(4 * math.exp(-4.3027 * error)), 1), math.ceil(4 * math.exp(4.3027 * error)))
    assert found.coming[1] == math.ceil(4 * math.exp(4.3027 * error * math.sqrt(2)))
    assert found.buy == math.ceil(4 * math.exp(2.9200 * error * math.sqrt(2)))
    assert found.spread_whole == pytest.approx(math.log(2)) and found.spread_users == 0.0
    same = weeks_of(4, dict.fromkeys(range(2, 8), 4), TraceDays(days=7, freedom=6))
    assert (same.typical, same.coming, same.buy) == ((4, 4), (4, 4), 4)
    none = weeks_of(4, {2: 4, 3: None, 4: 4, 5: 4, 6: 4, 7: 4}, TraceDays(days=7, freedom=6))
    assert (none.typical, none.beyond, none.middle) == (None, 1, 4.0)


@given(st.dictionaries(st.integers(2, 30), st.integers(1, 60), min_size=1, max_size=12), st.integers(1, 60))
def test_each_draw_has_the_answer_of_a_search_of_its_own(answers, start):
    """Also where runs end in another order than they began."""
    calls = []

    def submit(machines, seed):
        calls.append((machines, seed))
        done = Future()
        done.set_result(Tried((0.0,) if machines >= answers[seed] else (99.0,)))
        return done

    search_ = Draw(start, 50, lambda size: size.keeps(OBJECTIVE), lambda machines, tried: Size(
        machines, None, (value_of(tried.values),)))
    told = []
    found = answers_on(list(answers), search_, submit, told.append)
    assert found == {seed: answer if answer <= 50 else None for seed, answer in answers.items()}
    assert len(calls) == len(set(calls)) and told == list(range(1, len(answers) + 1))


def test_a_range_is_said_where_the_trace_is_too_short_for_one_number():
    def said(buy):
        sizes = tuple(Size(machines, None, (value_of([5.0]),)) for machines in (22, buy))
        answer = Sized("cpu 1", 99, sizes, 22, weeks=Weeks((22,), (22,), (20, 30), (15, 35), buy))
        sizing = Sizing("W", "easy", ("wait.p95 < 10min",), tuple(range(1, 42)), "days",
                        Drawable(days=4, length=86_400.0, freedom=3, sessions=50.0, why_not=""), (answer,), 0, 3, 3)
        return headline(sizing, answer), " ".join(sentences(sizing, answer))

    def partial(seconds):
        trace = Drawable(days=4, length=86_400.0, freedom=3, sessions=50.0, why_not="", rest=seconds)
        return " ".join(notes(Sizing("W", "easy", ("wait.p95 < 10min",), (1, 2), "days", trace, (), None)))

    first, rest = said(34)
    assert first == ("You need 22 to 34 machines of cpu 1 in all (not so many more): 95 % of jobs wait less than "
                     "10 min on 22 of them in the trace itself, and on 34 in the next stretch of 4 "
                     "days with 95 % certainty.")
    assert "The range is wide, for the trace is short and its days differ" in rest and "Beware" not in rest
    assert "day lacks" not in partial(-3599.0) and "behind" not in partial(3599.0)
    assert "The last of the 4 days lacks 2 h, and counts as a whole one; --measure-until leaves it" in partial(-7200.0)
    assert "The 2 h behind the last of the 4 days are measured, too, and stay as they are in" in partial(7200.0)
    first, rest = said(33)
    assert first == ("You need 33 machines of cpu 1 in all (not 33 more): 95 % of jobs wait less "
                     "than 10 min, in the next "
                     "stretch of 4 days with 95 % certainty.")
    assert "range" not in rest


# Beside the answer: the log, growth, partitions, jobs of many tasks


def logged(folder, waits):
    """One-slot tasks, ten seconds apart, that ran for 5 s and of which the log knows these waits; None: it does not."""
    folder.mkdir()
    made = plain(*((10.0 * each, 5.0, 1) for each in range(len(waits))))
    starts = [None if wait is None else 10.0 * each + wait for each, wait in enumerate(waits)]
    replace(made, tasks=made.tasks.with_columns(recorded_start=pl.Series(starts, dtype=pl.Float64))).write(folder)
    return folder


def test_the_waits_of_the_log_stand_beside_those_of_the_sizes(run, tmp_path):
    """Of ten waits of 1 to 10 s the 90 % percentile is 9 s; with one that the log does not know, that of nine is 9."""
    asked = ("--kind", "cpu=1", "--objective", "wait.p90 < 1s", "--objective", "wait.max < 1min", *ONE)
    whole = logged(tmp_path / "W", range(1, 11))
    said = " ".join(run("size", whole, *asked)[1].split())
    log = "The log itself, under its own scheduler on the machines of that time: wait.p90 9 s; wait.max 10 s"
    assert f"{log}." in said
    part = logged(tmp_path / "V", [*range(1, 10), None])
    said = " ".join(run("size", part, *asked)[1].split())
    assert "wait.p90 9 s; wait.max 9 s, of the 9 of 10 tasks whose start it knows." in said
    grown = run("size", whole, *asked, "--load", 2)[1]
    assert "The log itself" not in grown  # it is of another load
    assert "At 2 times the load there is no log to set the simulation beside: size without --load says" in grown
    assert "The log itself" not in run("size", logged(tmp_path / "U", [None] * 3), *asked)[1]


def test_a_log_and_a_simulation_that_differ_are_replayed_by_the_printed_command(run, tmp_path):
    """Two jobs of 200 s held two cpu at once at most, after waits of 100 s; on two machines nobody waits in a run.

    A replay shows the waits of both, and which scheduler is nearest; where the log waits 1 s, that is alike.
    """
    def site(name, wait):
        (tmp_path / name).mkdir()
        made = plain((0.0, 200.0, 1), (0.0, 200.0, 1), (900.0, 200.0, 1))
        replace(made, tasks=made.tasks.with_columns(recorded_start=pl.col("arrival") + wait)).write(tmp_path / name)
        return "size", tmp_path / name, "--kind", "cpu=1", "--objective", "wait.max < 10min", *ONE

    code, out, said = run(*site("W", 100.0), "--out", tmp_path / "S")
    assert code == 0, said
    words = " ".join(out.split())
    assert "At most its jobs held 2 cores at once, as much as 2 such machines have; the answer is 1 fewer." in words
    assert ("On 2 machines (the fewest that hold the log's peak) the log's jobs waited 100 s, the simulation's 0 s "
            "(longest). Replay the log with the command below. More than 1.5 times apart: the simulation does not "
            "reproduce the log.") in words
    assert "The log's own jobs keep it: 100 % within 10 min." in words
    marked = pl.read_csv(tmp_path / "S" / "sizes.csv")
    assert dict(marked.select("machines", "answer").iter_rows())[2] == "log's peak"
    assert marked.filter(machines=2)["wait.max < 10min (seconds)"].item() == 0.0
    command = next(line for line in out.splitlines() if line.startswith("Replay: subak "))
    code, shown, said = run(*shlex.split(command.removeprefix("Replay: subak ")))
    assert code == 0 and re.search(r"wait.max < 10min +met: 100 s +met: 0 s", shown), said
    assert "Nearest to the log in wait.max: " in shown and "so none reproduces the log" in " ".join(shown.split())
    assert json.loads((tmp_path / "S" / "size.json").read_text())["answer"] == out.splitlines()[0]
    alike = " ".join(run(*site("V", 1.0))[1].split())
    assert "jobs waited 1 s, the simulation's 0 s (longest). Replay the log with the command below." in alike
    assert "Replay: subak compare" in alike and "does not reproduce" not in alike
    _, shown, _ = run("compare", tmp_path / "V", "--machines", 2, "--capacity", "cpu=1", "--objective",
                      "wait.max < 10min", "--schedulers", "recorded,first-fit")
    said = " ".join(shown.split())
    assert "Nearest to the log in wait.max: first-fit, 0 s where the log has 1 s." in said
    assert "none reproduces" not in said


def test_answer_and_what_it_rests_on_come_before_the_notes_and_the_least_is_last(run, tmp_path):
    whole = logged(tmp_path / "W", range(1, 11))
    lines = run("size", whole, "--kind", "cpu=1", "--objective", "wait.p90 < 1s", *ONE)[1].splitlines()
    notes_at = lines.index("Notes")
    assert lines[0].startswith("You need 1 machine ") and all(line.startswith("- ") or line.startswith(
        ("Replay: ", *"abcdefghijklmnopqrstuvwxyz0123456789")) for line in lines[notes_at + 1:])
    assert next(place for place, line in enumerate(lines) if line.startswith("The log itself")) < notes_at
    assert [line for line in lines if line.startswith("- ")][-1].startswith("- used: the mean share")


@pytest.mark.parametrize(("log", "simulation", "apart"), [
    (97.0, 64.0, True), (64.0, 97.0, True), (95.0, 64.0, False), (59.0, 0.0, False), (61.0, 0.0, True),
    (100.0, math.inf, True)])
def test_waits_are_apart_by_more_than_half_from_a_minute_on(log, simulation, apart):
    answer = Sized("cpu=1", 99, (Size(3, None, (value_of([simulation]),)),), 3, as_in_log=3)
    sizing = Sizing("W", "easy", ("wait.p95 < 10min",), (1,), "none", None, (answer,), 0,
                    recorded=Recorded((log,), 9), replays=("subak compare W",))
    assert unlike_log(sizing, answer) is apart
    assert replay(sizing) == "subak compare W"  # whatever the ratio
    said = list(sentences(sizing, answer))
    assert sum(words.startswith("On 3 machines (the fewest that hold the log's peak) the log's") for words in said) == 1
    assert any("does not reproduce the log" in words for words in said) is apart


def test_a_log_that_does_not_keep_an_objective_is_said():
    """Of ten jobs nine waited less than a minute; on average they waited less, of which no share is said."""
    answer = Sized("cpu=1", 99, (Size(3, None, (value_of([1.0]), value_of([1.0]))),), 3)
    sizing = Sizing("W", "easy", ("wait.p95 < 1min", "wait.mean < 2min"), (1,), "none", None, (answer,), 0, 10, 10,
                    recorded=Recorded((70.0, 30.0), 10, within=(0.9, None)))
    said = next(words for words in sentences(sizing, answer) if words.startswith("The log itself"))
    assert said.endswith("wait.p95 70 s; wait.mean 30 s. The log's own jobs do not keep wait.p95 < 1min: 90 % within "
                         "60 s.")


def test_the_nearest_to_the_log_is_named(run, tmp_path):
    """Four jobs on one machine; the log let the short one pass, as backfill does, and the last waited 100 s."""
    made = plain((0.0, 100.0, 1), (1.0, 100.0, 2), (2.0, 50.0, 1), (3.0, 10.0, 1))
    starts = pl.Series([0.0, 100.0, 2.0, 52.0])
    folder = tmp_path / "W"
    folder.mkdir()
    replace(made, tasks=made.tasks.with_columns(recorded_start=starts)).write(folder)
    _, shown, _ = run("compare", folder, "--machines", 1, "--capacity", "cpu=2", "--objective", "wait.max < 10min",
                      "--schedulers", "recorded,first-fit,easy")
    assert "Nearest to the log in wait.max: easy, 99 s where the log has 99 s. " in " ".join(shown.split()) + " "


def test_what_the_log_held_at_once_is_of_starts_in_any_order():
    """Of three jobs the last to arrive starts first and is alone; the others run together, one of two and one of one.

    seconds  4    8   10   14   18   20
    slots    |-1-------|   |-2-------|
                                |-1--|
    """
    made = plain((0.0, 6.0, 2), (1.0, 2.0, 1), (2.0, 6.0, 1))
    starts = pl.Series([14.0, 18.0, 4.0])
    assert most_recorded(replace(made, tasks=made.tasks.with_columns(recorded_start=starts))) == (3,)
    late = pl.Series([14.0, 20.0, 4.0])  # the second starts as the first ends
    assert most_recorded(replace(made, tasks=made.tasks.with_columns(recorded_start=late))) == (2,)


def test_the_least_important_note_is_the_last():
    size = Size(3, None, (value_of([1.0]),), used=(0.5,))
    answer = Sized("cpu=1", 99, (size,), 3)
    trace = Drawable(days=7, length=86_400.0, freedom=6, sessions=50.0, why_not="")
    said = notes(Sizing("W", "first-fit", ("wait.p95 < 10min",), tuple(range(1, 42)), "days", trace, (answer,), 0,
                        resources=("cpu",), partitions=("a", "b")))
    begun = ["first-fit is in strict order", "All machines are one pool", "W under first-fit.",
             "Each size was run once", "used: the mean share"]
    assert [note[:len(words)] for note, words in zip(said, begun, strict=True)] == begun


def test_a_kind_needs_no_resource_that_nobody_asks_for(run, tmp_path):
    """Of two partitions one has GPUs; the machines of the other need none, nor a fleet that is kept for it."""
    at = 1_700_000_000
    lines = ["JobID|Partition|User|Submit|Start|Elapsed|State|AllocTRES"]
    lines += [f"{number}|{name}|a|{at}|{at}|90|COMPLETED|cpu=1,mem=1G{gpu}"
              for number, name, gpu in ((1, "cpu", ""), (2, "cpu", ""), (3, "gpu", ",gres/gpu=1"))]
    (tmp_path / "jobs.txt").write_text("\n".join(lines) + "\n")
    assert run("convert", "sacct", tmp_path / "jobs.txt", "--out", tmp_path / "W")[0] == 0
    asked = ("size", tmp_path / "W", "--objective", "wait.max < 1s", *ONE, "--kind")
    lines = " ".join(run(*asked, "cpu=1,memory=1Gi", "--only-queue", "cpu", "--scheduler", "easy")[1].split())
    assert ("The workload has no time limits of users: with exact run times as limits and with limits up to 3 times "
            "too long the answer is the same.") in lines and "export the column Timelimit and convert again" in lines
    code, out, said = run(*asked, "cpu=1,memory=1Gi", "--only-queue", "cpu", "--out", tmp_path / "S")
    assert "time limits of users:" not in out  # first-fit asks for no run times
    assert code == 0 and out.startswith("You need 2 machines of cpu=1,memory=1Gi in all (not 2 more): "), said
    code, _, said = run(*asked, "cpu=1,memory=1Gi")
    assert code == 2 and "--kind: must name each of cpu, memory, gpu once; missing gpu, which tasks ask for" in said
    code, _, said = run(*asked, "cpu=1", "--only-queue", "cpu")
    assert code == 2 and "--kind: must name each of cpu, memory once; missing memory, which tasks ask for" in said
    (tmp_path / "mix.toml").write_text("[[machines]]\ncount = 1\ncapacity = { cpu = 1 }\n")
    code, _, said = run("size", tmp_path / "W", "--objective", "wait.max < 1s", *ONE, "--mix", tmp_path / "mix.toml")
    assert code == 2 and "mix.toml: capacity: must name each of cpu, memory, gpu once" in said
    two = ("--machines", 2, "--capacity", "cpu=1,memory=1Gi")
    code, out, said = run("simulate", tmp_path / "W", *two, "--only-queue", "cpu")
    assert code == 0 and "on 2 machines of cpu 1, memory 1Gi each" in out, said
    code, _, said = run("simulate", tmp_path / "W", *two)
    assert code == 2 and "capacity: must name each of cpu, memory, gpu once; missing gpu" in said


def of_wide_and_narrow(folder, limits):
    """Jobs of one to eight slots through a day; *limits*: with the users' own, which are the run times."""
    random = np.random.default_rng(1)
    rows = sorted((float(random.integers(0, 86_400)), float(random.integers(60, 20_000)), int(random.integers(1, 9)))
                  for _ in range(150))
    made = plain(*rows)
    tasks = made.tasks.with_columns(estimate="run_time") if limits else made.tasks
    replace(made, tasks=tasks).write(folder)
    return folder


def test_time_limits_that_are_supposed_are_supposed_twice_and_the_larger_answer_is_reported(run, tmp_path):
    (tmp_path / "W").mkdir()
    asked = ("size", of_wide_and_narrow(tmp_path / "W", limits=False), "--kind", "cpu=8", "--scheduler", "easy",
             "--objective", "wait.mean < 20min", *ONE)

    def answered(place, *more):
        assert run(*asked, *more, "--out", tmp_path / place)[0] == 0
        return json.loads((tmp_path / place / "size.json").read_text())["answers"][0]

    both, exact, longer = answered("both"), answered("exact", "--estimates", "exact"), answered(
        "longer", "--estimates", "factor=3")
    assert exact["fewest"] != longer["fewest"]  # else nothing is asked of what follows
    assert (both["fewest"], both["supposed"]["fewest"]) == (exact["fewest"], longer["fewest"])
    assert exact["supposed"] is longer["supposed"] is None
    most, least = max(exact["fewest"], longer["fewest"]), min(exact["fewest"], longer["fewest"])
    _, out, _ = run(*asked)
    said = " ".join(out.split())
    assert said.startswith(f"You need {most} machines of cpu=8 in all (not {most} more): ")
    assert (f"{least} or {most} machines: the workload has no time limits of users, and the answer depends on them."
            ) in said
    assert (f"With exact run times as limits {exact['fewest']} are enough, with limits up to 3 times too long "
            f"{longer['fewest']}: jobs whose limits are too long fit into fewer gaps.") in said
    assert read_fleet(tmp_path / "both" / "fleet").machines.height == most
    assert "easy goes by the run times, within a factor of 3." in " ".join(
        run(*asked, "--estimates", "factor=3")[1].split())


def test_the_users_own_time_limits_come_first(run, tmp_path):
    (tmp_path / "W").mkdir()
    asked = ("size", of_wide_and_narrow(tmp_path / "W", limits=True), "--kind", "cpu=8", "--scheduler", "easy",
             "--objective", "wait.mean < 20min", *ONE)
    said = " ".join(run(*asked)[1].split())
    assert "easy goes by the time limits of the users." in said and "depends on them" not in said


def test_limits_that_no_size_copes_with_are_said():
    answer = Sized("cpu 1", 99, (), 10, supposed=Supposed("factor=3", None, None))
    sizing = Sizing("W", "easy", ("wait.p95 < 10min",), (1,), "none", None, (answer,), 0, knows="run times")
    assert answer.buy == 10
    assert next(sentences(sizing, answer)) == (
        "The workload has no time limits of users. With exact run times as limits 10 machines are enough; with limits "
        "up to 3 times too long no number up to 99 is.")


@pytest.mark.parametrize(("longer", "is_said"), [(12, True), (8, False), (10, False)])
def test_what_follows_an_answer_of_supposed_limits_is_said_to_be_of_exact_ones(longer, is_said):
    """Where the larger number is that of longer limits, the sentences behind it are of another number."""
    answer = Sized("cpu 1", 99, (), 10, supposed=Supposed("factor=3", longer, longer))
    sizing = Sizing("W", "easy", ("wait.p95 < 10min",), (1,), "none", None, (answer,), 0, knows="run times")
    said = list(sentences(sizing, answer))
    assert ("The figures that follow are with exact run times as limits." in said) == is_said
    assert answer.buy == max(10, longer)


def test_the_scarcest_resource_is_named():
    sizes = (Size(2, None, (value_of([1.0]),), used=(0.25, 0.5), least_used=(0.2, 0.4)),)
    answer = Sized("cpu 1", 99, sizes, 2)
    sizing = Sizing("W", "first-fit", ("wait.p95 < 10min",), (1,), "none", None, (answer,), 0,
                    resources=("cpu", "memory"))
    assert ("memory is the scarcest resource: on 2 machines the mean use is cpu 25 %, memory 50 %."
            ) in list(sentences(sizing, answer))
    peaked = msgspec.structs.replace(sizes[0], peak=(0.9, 0.75))
    assert scarcest(sizes[0]) == 1 and scarcest(peaked) == 0  # more cpu is used at its peak, less in the mean
    assert ("cpu is the scarcest resource: on 2 machines the mean use is cpu 25 %, memory 50 %; for "
            "95 % of the time it "
            "is at most cpu 90 %, memory 75 %.") in list(sentences(sizing, Sized("cpu 1", 99, (peaked,), 2)))


def test_growth_takes_more_machines(run, site, tmp_path):
    """Two tasks a second for three seconds take six slots; at twice the load four a second take twelve."""
    code, out, said = run("size", site, "--kind", "cpu=2", "--objective", "wait.max < 100ms", "--load", 2, *ONE,
                          "--out", tmp_path / "S")
    assert code == 0, said
    assert out.startswith("You need 12 machines of cpu=2 in all (not 12 more): at 2 times the load all tasks "
                          "wait less than 100 ms, in ")
    assert "a day of the workload passes in 12 h" in " ".join(out.split())
    assert "Use grows 2 times; machines grow less where a peak sets the wait" in " ".join(out.split())
    code, out, said = run("simulate", "--scenario", tmp_path / "S" / "scenario.toml")
    assert code == 0 and "on 12 machines" in out and "met: 0 s" in out, said


def test_growth_takes_no_more_machines_for_the_burst_of_one_user(run, tmp_path):
    """Four tasks at once, each minute, and one each second: twice as densely, the four still want four slots at once.

    In the meantime a task a second for 0.25 s keeps a quarter of one slot busy, then half of it.
    """
    (tmp_path / "W").mkdir()
    rows = sorted([(60.0 * minute, 0.25, 1) for minute in range(5) for _ in range(4)] + [
        (second + 0.5, 0.25, 1) for second in range(240)])
    plain(*rows).write(tmp_path / "W")
    asked = ("size", tmp_path / "W", "--kind", "cpu=1", "--objective", "wait.max < 1ms", *ONE, "--out")
    once, twice = run(*asked, tmp_path / "A"), run(*asked, tmp_path / "B", "--load", 2)
    assert once[1].startswith("You need 4 machines") and twice[1].startswith("You need 4 machines")
    used = [pl.read_csv(tmp_path / name / "sizes.csv").filter(machines=4)["cpu used (share)"].item() for name in "AB"]
    assert used[0] == pytest.approx(260 * 0.25 / (4 * 240), rel=0.02)  # 260 tasks in 240 s on four slots
    assert used[1] == pytest.approx(2 * used[0], rel=0.02)


def test_partitions_are_one_pool_unless_one_is_sized_alone(run, tmp_path):
    """Three of cpu's tasks run at once, and one of gpu's: a pool takes four, gpu alone one."""
    at = 1_700_000_000
    lines = ["JobID|Partition|User|Submit|Start|Elapsed|State|AllocTRES"]
    lines += [f"{number}|{'gpu' if number % 4 == 0 else 'cpu'}|u{number}|{at + number // 4 * 100}|"
              f"{at + number // 4 * 100}|90|COMPLETED|cpu=1,mem=1G" for number in range(4, 44)]
    (tmp_path / "jobs.txt").write_text("\n".join(lines) + "\n")
    code, converted, said = run("convert", "sacct", tmp_path / "jobs.txt", "--out", tmp_path / "W")
    assert code == 0, said
    following = next(line for line in converted.splitlines() if line.startswith("Next: subak size "))
    words = shlex.split(following.removeprefix("Next: subak "))
    assert words[2:6] == ["--only-queue", "cpu", "--kind", "cpu=16,memory=64Gi"]
    other = re.search(r"Size the other partitions apart \(gpu\): (subak size .*)", converted)[1]
    assert shlex.split(other)[3:7] == ["--only-queue", "gpu", "--kind", "cpu=16,memory=64Gi"]
    assert run(*shlex.split(other)[1:], *ONE)[0] == 0
    assert run("simulate", tmp_path / "W", "--only-queue", "gpu", "--machines", 1, "--capacity", "cpu=1", "--capacity",
               "memory=1Gi", "--out", tmp_path / "R")[0] == 0
    for task, title in (("40", "task 9/0 (row 9)"), ("40/0", "task 9/0 (row 9)"), ("8", "task 8/0 (row 8)")):
        assert title in run("explain", tmp_path / "R", task)[1]  # ids of the ten jobs are 4 to 40, by fours
    code, out, said = run(*words, *ONE)
    assert code == 0 and out.startswith("You need 1 machine of cpu=16,memory=64Gi in all (not 1 more): "), said
    asked = ("size", tmp_path / "W", "--kind", "cpu=1,memory=1Gi", "--objective", "wait.max < 1s", *ONE)
    code, out, said = run(*asked)
    assert code == 0, said
    assert out.startswith("You need 4 machines of cpu=1,memory=1Gi in all (not 4 more): all jobs wait "
                          "less than 1 s, in one run.\n")
    assert ("All machines are one pool for 2 partitions (cpu, gpu). One with nodes of its own is sized alone: "
            "--only-queue cpu.") in " ".join(out.split())
    _, out, _ = run(*asked, "--only-queue", "gpu")
    assert out.startswith("You need 1 machine of cpu=1,memory=1Gi in all (not 1 more): ") and "one pool" not in out
    _, out, _ = run(*asked, "--only-queue", "gpu", "--only-queue", "cpu")
    assert out.startswith("You need 4 machines of ")
    code, _, said = run(*asked, "--only-queue", "gpus")
    assert code == 2
    assert "only_queues: no job is in queue 'gpus'; the first parts of queues are cpu, gpu; did you mean 'gpu'?" in said


def test_it_is_said_that_tasks_are_counted_where_jobs_have_several(run, site):
    _, out, _ = run("size", site, "--kind", "cpu=2", "--objective", "wait.max < 1s", *ONE)
    assert "wait is of tasks: 1 job has 200, and each counts. job_wait counts a job once" in " ".join(out.split())
    _, out, _ = run("size", site, "--kind", "cpu=2", "--objective", "job_wait.max < 1s", *ONE)
    assert out.startswith("You need 1 machine of cpu=2 in all (not 1 more): all jobs wait less than 1 s")
    assert "is of tasks" not in out


def test_a_unit_that_is_missing_is_said(run, tmp_path):
    memory = (CPU[0], Resource("memory", 1.0, "MiB"))
    (tmp_path / "W").mkdir()
    plain((0, 1, 1, 65_536), resources=memory).write(tmp_path / "W")
    asked = ("size", tmp_path / "W", "--objective", "wait.max < 1s", *ONE, "--kind")
    code, out, _ = run(*asked, "cpu=1,memory=128")
    assert code == 1
    assert "one asks memory 65,536 MiB, the largest machine has 128 MiB (did you mean 128Gi?)" in " ".join(out.split())
    _, out, _ = run(*asked, "cpu=1,memory=64G")
    assert "has 61,035 MiB (64G counts in powers of 1000; did you mean 64Gi?)" in " ".join(out.split())


def test_processes_find_the_same(run, site):
    call = ("size", site, "--kind", "cpu=2", "--objective", "wait.max < 1s", "--seeds", "1-9",
            "--resample", "days", "--processes")
    alone, several = run(*call, 1), run(*call, 2)
    assert alone[0] == 0, alone[2]
    assert several == alone


def test_the_page_and_the_line_to_report_use_one_word(run, site, tmp_path):
    """Under the chart of the page the number is the one that is needed, as in the headline and the table."""
    code, out, said = run("size", site, "--kind", "cpu=2", "--objective", "wait.p90 < 10s", *ONE, "--out",
                          tmp_path / "S")
    assert code == 0, said
    page = (tmp_path / "S" / "report.html").read_text()
    need = re.match(r"You need ([0-9,]+) machine", out)[1]
    assert f", needed {need}" in page and "to buy" not in page


def test_a_window_counts_what_arrives_in_it_and_the_log_those_that_waited_as_it_began(run, tmp_path):
    """Of five tasks two arrive from 100 to 200 s; one from before waits until 130 s, and counts with all of its wait.

    Of slots the log held five before the window, and 2 + 1 at most in it: from 130 s on, since the first has ended.
    """
    made = plain((0.0, 50.0, 5), (60.0, 100.0, 2), (100.0, 20.0, 1), (140.0, 10.0, 1), (300.0, 10.0, 4))
    starts = pl.Series([0.0, 130.0, 101.0, 142.0, 300.0])
    folder = tmp_path / "W"
    folder.mkdir()
    replace(made, tasks=made.tasks.with_columns(recorded_start=starts)).write(folder)
    window = ("--measure-from", 100, "--measure-until", 200)
    code, out, said = run("size", folder, "--kind", "cpu=1", "--objective", "wait.max < 10min", *ONE, *window, "--out",
                          tmp_path / "S")
    assert code == 1, said  # a machine of one cpu holds no task of five
    code, out, said = run("size", folder, "--kind", "cpu=5", "--objective", "wait.max < 10min", *ONE, *window, "--out",
                          tmp_path / "S")
    assert code == 0, said
    kept = json.loads((tmp_path / "S" / "size.json").read_text())
    assert (kept["jobs"], kept["tasks"], kept["slurm_jobs"]) == (2, 2, 2)
    log = kept["recorded"]
    assert (log["tasks"], log["before"], log["most"], log["values"]) == (2, 1, [3.0], [70.0])
    words = " ".join(out.split())
    assert "of the 2 Slurm jobs that arrive in the window and 1 that waited as it began." in words
    assert "Counts and the log's peak are of that time." in words
    _, out, _ = run("compare", folder, "--machines", 1, "--capacity", "cpu=5", "--schedulers", "recorded,first-fit",
                    *window)
    assert "\nTasks, of the whole run" in out
    _, out, _ = run("compare", folder, "--machines", 1, "--capacity", "cpu=5", "--schedulers", "recorded,first-fit")
    assert "\nTasks " in out and "Tasks, of the whole run" not in out


def test_that_nodes_share_machines_is_said_where_they_can():
    """Machines hold 4; two nodes of a job that ask for 2 each share one, two that ask for 3 do not."""
    window = Window(0.0, 10.0, "")
    for asked, expected in ((2, True), (3, False)):
        made = staged([{"request": (asked,)}], [(0, 0, 3.0), (0, 0, 3.0)])
        made = replace(made, stages=made.stages.with_columns(gang=pl.lit(True)))
        assert may_share(made, window, np.array([[1, 4]])) is expected
        assert not may_share(made, Window(1.0, 10.0, ""), np.array([[1, 4]]))  # it arrives earlier
    sizing = Sizing("W", "easy", (), (1,), "none", None, (), None, may_share=True)
    assert any(note.startswith("Nodes of one job may share a machine") for note in notes(sizing))
    assert "share a machine" not in " ".join(notes(msgspec.structs.replace(sizing, may_share=False)))


def test_what_more_machines_made_worse_is_one_line():
    sizes = (Size(6, None, (value_of([10.0]),)), Size(7, None, (value_of([30.0]),)))
    answer = Sized("cpu=1", 99, sizes, 6, odd=(7,), rises=(Rise(0, 6, 7),))
    said = list(sentences(Sizing("W", "easy", ("wait.p95 < 20s",), (1,), "none", None, (answer,), 0), answer))
    assert [words for words in said if words.startswith("Not monotone")] == [
        "Not monotone: 7 machines do not keep them, so the answer is of the sizes that were tried around it; wait.p95 "
        "is 10 s on 6 machines and 30 s on 7."]


def test_resources_that_are_equally_scarce_are_both_named():
    def said(peaks):
        answer = Sized("cpu=1", 99, (Size(3, None, (value_of([1.0]),), used=(0.5, 0.5, 0.2), peak=peaks),), 3)
        sizing = Sizing("W", "easy", ("wait.p95 < 20s",), (1,), "none", None, (answer,), 0,
                        resources=("cpu", "gpu", "memory"))
        return " ".join(sentences(sizing, answer))

    assert "cpu and gpu are equally scarce: on 3 machines" in said((1.0, 1.0, 0.3))
    assert "gpu is the scarcest resource: on 3 machines" in said((0.9, 1.0, 0.3))
