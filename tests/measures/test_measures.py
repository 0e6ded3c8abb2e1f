"""What a run says of itself, on runs worked by hand."""
import math

import polars as pl
import pytest

from small import CPU, TWO, fleet_of, plain, staged
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.measures import of_run as measures
from subak.measures.runs import Summary
from subak.measures.window import wait_until
from subak.placement.claims import STATUSES
from subak.policy import find_scheduler
from subak.simulator.results import attempt_table, task_table, timeline_table
from subak.simulator.simulate import simulate


class Run:
    """A simulated case and its tables."""

    def __init__(self, workload, fleet, scheduler="first-fit", **options):
        self.outcome = simulate(workload, fleet, find_scheduler(scheduler), **options)
        self.tasks = task_table(self.outcome, workload, fleet)
        self.timeline = timeline_table(self.outcome, workload)
        self.attempts = attempt_table(self.outcome, workload, fleet)

    def __getitem__(self, column):
        return self.tasks[column].to_list()


def wait_spread(tasks):
    return measures.spread(tasks.select(wait_until(0.0).alias("wait"))["wait"])


def slowdown_spread(tasks):
    return measures.spread(tasks.select(measures.bounded_slowdown().alias("slowdown"))["slowdown"])


@pytest.fixture(scope="module")
def queue():
    """One machine of 2 cores, first in first out.

    seconds   5        15       45       105  110
    task 0    |-- 1 core ------|
    task 1    waits ...........|- 2 cores -|
    task 2             waits ..............|1 core|
    """
    return Run(plain((5, 40, 1), (5, 60, 2), (15, 5, 1)), fleet_of((2,)), interval=10.0)


def test_when_and_where_each_task_ran(queue):
    assert queue["start"] == [5, 45, 105]
    assert queue["finish"] == [45, 105, 110]
    assert queue["machine"] == ["m0", "m0", "m0"]
    assert queue["attempts"] == [1, 1, 1]
    assert queue["job"] == [0, 1, 2]
    assert queue["queue"] == ["all/of/us"] * 3
    assert queue["reason"] == [None, None, None]


def test_wait_time_is_that_before_the_first_start(queue):
    assert queue["wait_time"] == [0, 40, 90]
    spread = wait_spread(queue.tasks)
    assert (spread.mean, spread.median, spread.max) == (130 / 3, 40, 90)


def test_a_slowdown_is_bounded_by_ten_seconds_and_by_one(queue):
    # 40 / 40, 100 / 60, and (90 + 5) / 10 as 5 s count as 10
    spread = slowdown_spread(queue.tasks)
    assert (spread.median, spread.max) == (pytest.approx(100 / 60), 9.5)
    assert spread.mean == pytest.approx((1 + 100 / 60 + 9.5) / 3)


def test_a_short_task_that_starts_at_once_is_not_sped_up():
    run = Run(plain((0, 2, 1), (0, math.inf, 1)), fleet_of((2,)))
    assert slowdown_spread(run.tasks).mean == 1  # 2 / 10 would be 0.2; an endless task has none
    assert wait_spread(run.tasks).mean == 0


def test_the_makespan_runs_from_the_first_arrival(queue):
    assert measures.makespan(queue.tasks) == 105


def test_the_gap_is_above_the_bound_and_of_a_run_in_which_every_task_finished():
    whole, cut = {"FINISHED": 3, "WAITING": 0}, {"FINISHED": 2, "WAITING": 1}
    for status, makespan, bound, expected in ((whole, 150.0, 100.0, 0.5), (cut, 150.0, 100.0, None),
                                              (whole, 150.0, None, None), (whole, 150.0, 0.0, None),
                                              ({}, None, 100.0, None)):
        assert measures.gap(Summary(scheduler="hmhs", status=status, makespan=makespan), bound) == expected


def test_utilisation_is_used_over_present_from_the_beginning_of_time(queue):
    assert queue.outcome.loop_result.end == 110
    assert measures.utilisation(queue.timeline, ["cpu"]) == {"cpu": (40 + 2 * 60 + 5) / (2 * 110)}
    nothing_there = queue.timeline.with_columns(capacity_cpu=pl.lit(0.0))
    assert measures.utilisation(nothing_there, ["cpu"]) == {"cpu": None}


def test_the_mean_number_waiting_weighs_every_second(queue):
    found = measures.waiting(queue.timeline)
    assert found.mean == pytest.approx((40 + 90) / 110)
    assert found.max == 2


def test_a_short_last_interval_counts_for_as_long_as_it_was():
    found = measures.waiting(pl.DataFrame({"span": [10.0, 10.0, 5.0], "waiting": [4.0, 2.0, 12.0],
                                           "waiting_max": [6, 3, 12]}))
    assert (found.mean, found.max) == ((40 + 20 + 60) / 25, 12)
    assert measures.waiting(pl.DataFrame({"span": [0.0], "waiting": [0.0], "waiting_max": [3]})).mean is None


def test_capacity_is_idle_while_tasks_wait_as_far_as_one_does():
    """Four that wait count like one, half a one as a half, and none not at all."""
    found = pl.DataFrame({"span": [10.0, 10.0, 10.0], "waiting": [4.0, 0.5, 0.0], "used_cpu": [2.0, 0.0, 4.0],
                          "capacity_cpu": [4.0, 4.0, 4.0]})
    assert measures.idle_while_waiting(found, ["cpu"]) == {"cpu": pytest.approx(1 - 20 / 60)}
    assert measures.idle_while_waiting(found[2:], ["cpu"]) == {"cpu": None}


def test_what_is_overcommitted_is_used_beyond_what_there_is():
    found = pl.DataFrame({"used_cpu": [5.0, 1.0], "capacity_cpu": [4.0, 4.0], "used_memory": [3.0, 4.0],
                          "capacity_memory": [4.0, 4.0]})
    assert measures.overcommitted(found, ["cpu", "memory"]) == {"cpu": 1.25}


def test_stranded_is_what_no_waiting_task_could_use(queue):
    # until 15 only task 1 waits and the free core is too little for it; later task 2 would fit but must wait its turn
    assert queue.timeline["stranded_cpu"].to_list() == [1] + [0] * 10
    assert measures.stranded(queue.timeline, ["cpu"]) == {"cpu": 10 / 220}


def test_an_interval_counts_what_happened_in_it(queue):
    table = queue.timeline
    assert table["time"].to_list() == [10.0 * number for number in range(11)]
    assert table["arrivals"].to_list() == [2, 1] + [0] * 9
    assert table["starts"].to_list() == [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]
    assert table["ends"].to_list() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2]  # the end at 110 belongs to the last
    assert table["waiting"].to_list() == pytest.approx([0.5, 1.5, 2, 2, 1.5, 1, 1, 1, 1, 1, 0.5])
    assert table["used_cpu"].to_list() == pytest.approx([0.5, 1, 1, 1, 1.5, 2, 2, 2, 2, 2, 1.5])
    assert table["running"].to_list() == pytest.approx([0.5] + [1] * 10)


def test_each_resource_has_its_own_columns_of_an_interval():
    run = Run(plain((0, 5, 1, 3), (0, 10, 2, 1), resources=TWO), fleet_of((4, 8), resources=TWO), interval=10.0)
    found = run.timeline.select("used_cpu", "capacity_cpu", "used_memory", "capacity_memory")
    assert found.row(0) == pytest.approx((2.5, 4, 2.5, 8))


def test_waiting_is_counted_where_the_scheduler_lets_tasks_wait(queue):
    assert queue["framework_queueing"] == [0, 40, 90]
    assert queue["worker_queueing"] == [0, 0, 0]
    greedy = Run(plain((5, 40, 1), (5, 60, 2), (15, 5, 1)), fleet_of((2,)), "greedy")
    assert (greedy["framework_queueing"], greedy["worker_queueing"]) == ([0, 0, 0], [0, 40, 90])


def test_amounts_are_in_natural_units():
    from subak.resources import Resource

    half = (Resource("cpu", 0.5, "cores"),)
    run = Run(plain((0, 10, 1.5), resources=half), fleet_of((2,), resources=half), interval=10.0)
    assert (run.timeline["used_cpu"][0], run.timeline["capacity_cpu"][0]) == (1.5, 2.0)


# -- percentiles -------------------------------------------------------------------------------------------------------


def test_percentiles_of_the_numbers_from_0_to_1000():
    values = pl.Series([float(number * 3 % 1001) for number in range(1001)] + [None])
    spread = measures.spread(values)
    assert spread.p95 == 950
    assert (spread.mean, spread.median, spread.p90, spread.p99, spread.p999, spread.max) == (
        500, 500, 900, 990, 999, 1000)


def test_percentiles_of_one_value_are_that_value_and_of_none_are_missing():
    one, none = measures.spread(pl.Series([3.5])), measures.spread(pl.Series([None], dtype=pl.Float64))
    assert {one.mean, one.median, one.p90, one.p99, one.p999, one.max} == {3.5}
    assert {none.mean, none.median, none.p90, none.p99, none.p999, none.max} == {None}


def test_percentiles_are_nearest_rank():
    assert measures.spread(pl.Series([1.0, 2.0, 3.0, 4.0])).median == 2


# -- how it ends -------------------------------------------------------------------------------------------------------


def every_status():
    """Two machines, of 1 and 2 cores; at 10 s one task stands in each way."""
    stages = [
        {"job": 0, "request": (1,)}, {"job": 1, "request": (2,)}, {"job": 1, "request": (1,), "depends_on": [1]},
        {"job": 2, "request": (9,)}, {"job": 3, "request": (1,), "constraints": [("rack", "=", "b")]},
        {"job": 3, "request": (2,)},
    ]
    tasks = [(0, 0, 1), (1, 0, 100), (2, 0, 1), (3, 0, 1), (4, 0, 1), (5, 1, 1), (0, 20, 1)]
    return staged(stages, tasks), fleet_of((1,), (2,), attributes=[(0, "rack", "a")])


def test_every_task_is_accounted_for_with_a_reason():
    run = Run(*every_status(), "first-fit+backfill", until=10.0, interval=5.0)
    assert list(zip(run["status"], run["reason"], strict=True)) == [
        ("FINISHED", None),
        ("RUNNING", None),
        ("BLOCKED", "its stage waits for others to end"),
        ("UNPLACEABLE", "asks cpu 9 cores, the largest machine has 2"),
        ("UNPLACEABLE", "no machine that meets rack = b"),
        ("WAITING", "no machine has free cpu 2 cores (at most 1 is free on one machine)"),
        ("NOT_ARRIVED", "it arrives after the end of the run"),
    ]
    counts = measures.status_counts(run.tasks)
    assert counts == {"NOT_ARRIVED": 1, "BLOCKED": 1, "WAITING": 1, "RUNNING": 1, "FINISHED": 1, "UNPLACEABLE": 2}
    found = measures.reasons(run.tasks)
    assert [reason.tasks for reason in found] == [1] * 5
    assert found == tuple(sorted(found, key=lambda reason: (reason.status, reason.reason)))
    assert sum(reason.tasks for reason in found) == len(run.tasks) - counts["FINISHED"] - counts["RUNNING"]


def test_columns_are_empty_for_what_has_not_happened():
    run = Run(*every_status(), "first-fit+backfill", until=10.0)
    assert run["ready"] == [0, 0, None, 0, 0, 1, None]
    assert run["start"] == [0, 0, None, None, None, None, None]
    assert run["finish"] == [1, None, None, None, None, None, None]
    assert run["machine"] == ["m0", "m1", None, None, None, None, None]
    assert run["wait_time"] == [0, 0, None, None, None, None, None]
    assert run["attempts"] == [1, 1, 0, 0, 0, 0, 0]


def test_a_status_that_no_task_has_is_counted_as_none(queue):
    assert {name: count for name, count in measures.status_counts(queue.tasks).items() if count} == {"FINISHED": 3}
    assert measures.status_counts(queue.tasks).keys() == set(STATUSES) - {"GIVEN_UP"}  # no plan of failures


def test_locality_is_a_share_of_those_that_started_and_of_which_it_is_known():
    where = pl.DataFrame({"locality": [*["node-local"] * 3, "off-rack", None]})
    assert measures.locality(measures.place_counts(where)) == {"node-local": 0.75, "rack-local": 0.0, "off-rack": 0.25}
    for nowhere in (where.clear(), pl.DataFrame({"status": ["FINISHED"]})):
        assert measures.locality(measures.place_counts(nowhere)) == {}


def test_reasons_come_most_frequent_first():
    run = Run(plain((0, 1, 5), (0, 1, 7), (0, 1, 7)), fleet_of((1,)))
    assert [(reason.tasks, reason.reason) for reason in measures.reasons(run.tasks)] == [
        (2, "asks cpu 7 cores, the largest machine has 1"), (1, "asks cpu 5 cores, the largest machine has 1")]
    assert measures.makespan(run.tasks) is None


def test_why_a_task_waits_names_what_is_lacking():
    fleet = fleet_of((2, 1), (1, 2), resources=TWO)
    run = Run(plain((0, math.inf, 1, 0), (0, math.inf, 0, 1), (0, 1, 2, 2), (0, 1, 2, 1), resources=TWO), fleet)
    assert run["reason"][2] == "no machine has all it asks together"
    apart = Run(plain((0, math.inf, 1, 1), (0, 1, 2, 1), resources=TWO), fleet_of((2, 1), resources=TWO))
    assert apart["reason"][1] == ("no machine has free cpu 2 cores (at most 1 is free on one machine) "
                                  "or memory 1 GB (at most 0 is free on one machine)")
    turn = Run(plain((0, math.inf, 1), (0, 1, 2), (0, 1, 1)), fleet_of((2,)))
    assert turn["reason"][2].startswith("its turn had not come")
    gone = Run(plain((1, 1, 1)), fleet_of((1,), changes=[(0, 0, False, 0)]))
    assert gone["reason"] == ["no machine that meets its constraints is present"]


# -- the end of time ---------------------------------------------------------------------------------------------------


def test_a_run_that_is_told_to_stop_accounts_for_the_time_up_to_then():
    run = Run(plain((0, 100, 1)), fleet_of((2,)), until=50.0, interval=20.0)
    assert run.outcome.loop_result.end == 50
    assert run.timeline["span"].to_list() == [20, 20, 10]
    assert measures.utilisation(run.timeline, ["cpu"]) == {"cpu": 0.5}


def test_a_run_told_to_stop_later_than_its_last_event_ends_at_that():
    assert Run(plain((0, 7, 1)), fleet_of((2,)), until=50.0).outcome.loop_result.end == 7


def test_what_happens_at_the_last_instant_still_happens():
    run = Run(plain((0, 5, 1), (5, 1, 1)), fleet_of((1,)), until=5.0)
    assert (run["status"], run["start"]) == (["FINISHED", "RUNNING"], [0, 5])


def bounded(*_):
    bounded.calls += 1
    assert bounded.calls < 20_000, "the run does not end"


@pytest.mark.parametrize("gap", [4_095.0, 4_096.0, 4_097.0, 10_000.0])
def test_a_long_silence_in_short_intervals(gap):
    bounded.calls = 0
    run = Run(plain((0, 1, 1), (gap, 1, 1)), fleet_of((1,)), interval=1.0, check=bounded)
    assert run.outcome.loop_result.end == gap + 1
    assert len(run.timeline) == gap + 1
    assert run.timeline["span"].sum() == gap + 1
    assert run.timeline["used_cpu"].to_list() == [1] + [0] * (int(gap) - 1) + [1]


@pytest.mark.parametrize("count", [3, 1_000])
def test_a_default_interval_that_is_too_fine_is_doubled_and_nothing_is_lost(count):
    run = Run(plain(*[(number % 7, 5_000.0 / count * 3, 1) for number in range(count)]), fleet_of((1,)))
    assert run.outcome.loop_result.interval in (4.0, 8.0)
    assert len(run.timeline) <= 4096
    assert run.timeline["span"].sum() == pytest.approx(run.outcome.loop_result.end)
    assert (run.timeline["used_cpu"] * run.timeline["span"]).sum() == pytest.approx(15_000)
    assert run.timeline["ends"].sum() == count


@pytest.mark.parametrize("lost", [1, 2, 3, 10])
def test_lost_attempts_do_not_coarsen_the_timeline(lost):
    bounded.calls = 0
    changes = [(0.125 * number, 0, number % 2 == 0, 1) for number in range(1, 2 * lost + 1)]
    run = Run(plain((0, 8, 1)), fleet_of((1,), changes=changes), check=bounded)
    assert run["attempts"] == [lost + 1]
    assert len(run.attempts) == lost
    assert run.outcome.loop_result.interval == 1.0


def test_the_end_of_a_lost_attempt_does_not_prolong_the_run():
    # the task would have ended at 100, but its machine leaves for good at 1
    run = Run(plain((0, 100, 1)), fleet_of((1,), changes=[(1, 0, False, 0)]))
    assert run.outcome.loop_result.end == 1
    assert measures.waiting(run.timeline).mean == 0
    assert measures.utilisation(run.timeline, ["cpu"]) == {"cpu": 1.0}


# -- losses ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loss():
    """A machine leaves at 5 and is back at 7: its task starts at 0 and again at 7; a second waits all the while."""
    return Run(plain((0, 10, 1), (1, 2, 1)), fleet_of((1,), changes=[(5, 0, False, 0), (7, 0, True, 1)]), interval=1.0)


def test_wait_time_uses_the_first_start_and_start_the_last(loss):
    assert loss["wait_time"] == [0, 16]
    assert loss["start"] == [7, 17]
    assert loss["finish"] == [17, 19]
    assert loss["attempts"] == [2, 1]
    assert loss["framework_queueing"] == [7, 16]
    spread = slowdown_spread(loss.tasks)  # 17 s in the system for 10 s of work, 18 s for 2 s
    assert (spread.median, spread.max) == (1.7, 1.8)


def test_a_lost_attempt_is_a_row_of_attempts(loss):
    assert loss.attempts.rows() == [(0, 0, "m0", 0.0, 5.0)]
    assert loss.timeline["lost"].to_list() == [0] * 5 + [1] + [0] * 13


def test_a_task_that_was_lost_and_waits_kept_its_wait_time():
    run = Run(plain((0, 10, 1), (3, 1, 1)), fleet_of((1,), (1,), changes=[(4, 1, False, 0), (2, 0, False, 0)]))
    # task 0 starts on m0 at 0, loses it at 2, starts on m1, loses it at 4; task 1 never starts
    assert run["status"] == ["WAITING", "WAITING"]
    assert run["wait_time"] == [0, None]
    assert (run["start"], run["finish"], run["machine"]) == ([None, None], [None, None], [None, None])
    assert run["attempts"] == [2, 0]
    assert run.attempts.rows() == [(0, 0, "m0", 0.0, 2.0), (0, 0, "m1", 2.0, 4.0)]


def test_capacity_that_left_is_not_capacity(loss):
    assert measures.utilisation(loss.timeline, ["cpu"]) == {"cpu": (5 + 10 + 2) / (19 - 2)}


# -- folders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["random-fit+backfill", "greedy", "tetris+normalised"])
def test_repeated_runs_write_the_same_bytes(tmp_path, scheduler):
    workload = plain(*[(number // 5, number % 4, 1 + number % 3) for number in range(60)])
    fleet = fleet_of(*[(4,)] * 5, changes=[(3, 1, False, 0), (5, 1, True, 4)])
    for name in ("one", "two"):
        simulate_into(tmp_path / name, Scenario(seeds=[7]), scheduler, 7, (workload, fleet))
    for file in ("tasks.parquet", "timeline.parquet", "attempts.parquet"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert len(pl.read_parquet(tmp_path / "one" / "tasks.parquet")) == 60


def test_another_seed_draws_other_machines(tmp_path):
    workload, fleet = plain(*[(0, 1, 1)] * 30), fleet_of(*[(4,)] * 10)
    for seed in (1, 2):
        simulate_into(tmp_path / str(seed), Scenario(), "random-fit", seed, (workload, fleet))
    first, second = (pl.read_parquet(tmp_path / str(seed) / "tasks.parquet")["machine"].to_list() for seed in (1, 2))
    assert first != second


def test_every_field_of_the_summary_is_filled(tmp_path, monkeypatch):
    filled = set()
    monkeypatch.setattr("subak.experiment.summary.Summary", lambda **fields: filled.update(fields) or Summary(**fields))
    simulate_into(tmp_path / "run", Scenario(), "first-fit", 1, every_status())
    later = {"makespan_bound", "makespan_bound_note", "gap"}  # of MapReduce jobs, once the run is whole
    assert filled | later == set(Summary.__struct_fields__)


def test_the_summary_says_what_the_tables_say(tmp_path):
    summary = simulate_into(tmp_path / "run", Scenario(until=10.0), "first-fit+backfill", 1, every_status())
    assert summary.status == {"NOT_ARRIVED": 1, "BLOCKED": 1, "WAITING": 1, "RUNNING": 1, "FINISHED": 1,
                              "UNPLACEABLE": 2}
    assert (summary.workload.tasks, summary.workload.jobs, summary.fleet.machines) == (7, 4, 2)
    assert (summary.wait_time.max, summary.makespan, summary.attempts_lost) == (9, 1, 0)  # who waits has, since 1 s
    assert summary.resources == CPU
    assert summary.options["until_s"] == 10.0
