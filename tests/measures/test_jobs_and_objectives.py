"""Jobs as a whole, short and long ones, and objectives: by hand, and against a plain account."""
import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given

from small import TWO, fleet_of, plain, staged, workloads
from subak.errors import InputError
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.measures.objective import Objective, read_measure, read_objective
from subak.measures.objectives import _statistic, refuse_unconcerned
from subak.measures.run_folders import load_runs
from subak.measures.runs import WindowFacts
from subak.measures.tasks import job_sums, jobs
from subak.measures.tasks.job_sums import sums_of
from subak.measures.tasks.jobs import lengths, undisturbed
from subak.measures.window import Window
from subak.report.comparison import compare
from subak.workload.stored import HeldWorkload

ALL = WindowFacts(0.0, math.inf)


def ran(folder, workload, fleet, **options):
    simulate_into(folder / "run", Scenario(**options), "first-fit", 1, (workload, fleet))
    return load_runs(folder / "run")[0]


def chained():
    """A job of two stages, the second behind the first, and one of a single task, on one machine of 2 cores.

    seconds   0       10      20      30
    first     |-a 10--|-c 10--|                c: 5 s of waiting for nothing
    first     |b 4|                            b
    second        waits |........
    """
    return staged([{"job": 0, "request": (1,)}, {"job": 0, "request": (1,), "depends_on": [0]},
                   {"job": 1, "request": (2,)}], [(0, 0, 10), (0, 0, 4), (1, 0, 20), (2, 1, 30)])


def test_a_job_is_complete_when_its_last_task_is(tmp_path):
    """a and b at 0; the other job takes the whole machine at 10 s until 40 s; c runs from 40 s to 60 s."""
    run = ran(tmp_path, chained(), fleet_of((2,)), measure_until=math.inf)
    facts = run.summary.jobs
    assert (facts.jobs, facts.completed) == (2, 2)
    starts = run.tasks().collect()["start"].to_list()
    assert starts == [0.0, 0.0, 40.0, 10.0]
    assert (facts.wait.mean, facts.wait.max) == (4.5, 9.0)  # one starts at once, the other 9 s after it arrived
    assert facts.completion.max == 60.0 and facts.completion.mean == (60 + 39) / 2
    assert facts.slowdown.max == pytest.approx(60 / 30)
    assert facts.slowdown.mean == pytest.approx((60 / 30 + 39 / 30) / 2)


def test_a_job_of_which_a_task_is_left_is_not_complete(tmp_path):
    run = ran(tmp_path, chained(), fleet_of((2,)), until=45.0, measure_until=math.inf)
    assert (run.summary.jobs.jobs, run.summary.jobs.completed) == (2, 1)
    assert run.summary.jobs.completion.max == 39.0


def test_only_jobs_of_the_window_count(tmp_path):
    run = ran(tmp_path, chained(), fleet_of((2,)), measure_from=0.5, measure_until=math.inf)
    assert run.summary.jobs.jobs == 1 and run.summary.jobs.completion.mean == 39.0


def test_what_a_job_takes_where_nothing_waits():
    assert undisturbed(chained()).tolist() == [30.0, 30.0]
    later = staged([{"request": (1,)}, {"request": (1,), "depends_on": [0]}, {"request": (1,), "depends_on": [0]},
                    {"request": (1,), "depends_on": [1, 2]}], [(0, 2, 3), (1, 2, 1), (2, 12, 2), (3, 2, 5), (3, 30, 1)])
    assert undisturbed(later).tolist() == [29.0]  # of the instant 2; its last task comes at 30, and ends at 31


def test_tasks_are_looked_at_a_part_at_a_time(monkeypatch):
    for size in (1, 3):
        monkeypatch.setattr(job_sums, "TASKS_OF_PART", size)
        assert undisturbed(chained()).tolist() == [30.0, 30.0]


@given(workloads(TWO))
def test_it_is_the_longest_chain(workload):
    def stage_end(number, origin):
        ready = max((stage_end(parent, origin) for parent in workload.stages["depends_on"][number]), default=0.0)
        return max(max(arrival - origin, ready) + run_time for stage, arrival, run_time in
                   workload.tasks.select("stage", "arrival", "run_time").iter_rows() if stage == number)

    found = undisturbed(workload)
    for job in range(len(workload.jobs)):
        stages = [row for row, owner in enumerate(workload.stages["job"]) if owner == job
                  and row in set(workload.tasks["stage"])]
        arrivals = [arrival for stage, arrival in workload.tasks.select("stage", "arrival").iter_rows()
                    if stage in stages]
        expected = max((stage_end(row, min(arrivals)) for row in stages), default=0.0)
        assert found[job] == pytest.approx(expected) or (math.isinf(found[job]) and math.isinf(expected))


def test_a_tenth_of_the_jobs_is_long():
    workload = plain(*((row, 10 + row, 1) for row in range(20)))
    found = lengths(workload, ALL)
    assert found.to_list() == ["short"] * 18 + ["long"] * 2
    late = lengths(workload, WindowFacts(10.0, math.inf))
    assert late.to_list() == ["short"] * 19 + ["long"]


def test_a_job_is_as_long_as_its_tasks_in_the_mean():
    """Ten jobs: one of five tasks of 10 s, one of a task of 20 s, the others of a task of a second."""
    stages = [{"job": job, "request": (1,)} for job in range(10)]
    workload = staged(stages, [*[(0, 0, 10)] * 5, (1, 0, 20), *[(job, 0, 1) for job in range(2, 10)]])
    assert lengths(workload, ALL).to_list() == ["short", "long"] + ["short"] * 8


def test_a_job_without_tasks_divides_nobody():
    """Ten jobs of a task of 1 to 10 s, of which the last is long; with ten of 0 s, the last but one would be, too."""
    workload = plain(*((0, 1 + row % 10, 1) for row in range(20)))
    sums = job_sums.JobSums(workload)
    sums.add(workload.tasks.filter(pl.col("stage") < 10))
    with np.errstate(all="raise"):
        assert sums.lengths(ALL).to_list()[:10] == ["short"] * 9 + ["long"]


def queued(folder, **options):
    """Waits 0, 40, 90 s of tasks of 40, 60 and 5 s, all in the queue all/of/us."""
    return ran(folder, plain((5, 40, 1), (5, 60, 2), (15, 5, 1)), fleet_of((2,)), **options)


@pytest.mark.parametrize(("text", "value", "met"), [
    ("wait.p0.5 < 1s", 0.0, True),
    ("wait.p50 <= 40s", 40.0, True), ("wait.median<40s", 40.0, False), ("wait.max < 1.5min", 90.0, False),
    ("wait.max<=1.5min", 90.0, True), ("wait.mean < 44 s", 130 / 3, True), ("wait.p95 > 0.01h", 90.0, True),
    ("turnaround.p66.6 < 100s", 95.0, True), ("slowdown.max < 10", 9.5, True),
    ("slowdown.mean >= 4.05", (1 + 100 / 60 + 9.5) / 3, True),
    ("completion.p99 < 101s for queue=all", 100.0, True),
    ("job_wait.median < 1min", 40.0, True), ("job_wait.max < 1min for user=ada", 90.0, False),
    ("job_slowdown.median < 2 for queue=all/of/us", 100 / 60, True),
    ("wait.max < 1s for length=short, queue=all/of", 90.0, False),
    ("wait.mean < 1s for priority=0", 130 / 3, False), ("wait.mean < 1d for user=ada", 130 / 3, True),
])
def test_an_objective_is_met_or_not(tmp_path, text, value, met):
    found, = queued(tmp_path, objectives=[text]).summary.objectives
    assert found.value == pytest.approx(value)
    assert found.met is met


def test_a_job_waits_until_its_first_task_starts_and_counts_once(tmp_path):
    """Jobs of 3 tasks and 1 on one slot of 10 s each: tasks wait 0, 10, 20 and 25 s, the jobs 0 and 25."""
    workload = staged([{"request": (1,)}, {"job": 1, "request": (1,)}], [*[(0, 0, 10)] * 3, (1, 5, 10)])
    run = ran(tmp_path, workload, fleet_of((1,)), objectives=["wait.mean < 14s", "job_wait.mean < 13s",
                                                              "job_wait.max <= 25s", "job_wait.median < 1s"])
    assert [facts.value for facts in run.summary.objectives] == [13.75, 12.5, 25.0, 0.0]
    late = ran(tmp_path / "late", workload, fleet_of((1,)), objectives=["job_wait.max < 1h"], until=24.0)
    assert late.summary.objectives[0].value is None  # it never started


def test_what_never_starts_is_endless(tmp_path):
    run = queued(tmp_path, objectives=["wait.p60 < 1h", "wait.p70 < 1h", "turnaround.mean > 1s"], until=100.0)
    assert [(facts.value, facts.met) for facts in run.summary.objectives] == [(40.0, True), (None, False), (None, True)]
    rows = {row.measure.title: row for row in compare([run]) if row.measure.family == "Objectives"}
    assert rows["wait.p60 < 1h"].texts() == ["met: 40 s"]
    assert rows["wait.p70 < 1h"].texts() == ["missed: never"]
    assert json.loads((run.folder / "summary.json").read_text())["objectives"][1]["value"] is None


@pytest.mark.parametrize(("text", "seconds"), [
    ("10m", 600.0), ("10 min", 600.0), ("1h30m", 5400.0), ("1-02:30:00", 95400.0), ("02:30:00", 9000.0),
    ("1e3 ms", 1.0)])
def test_a_bound_is_a_duration_as_everywhere_else(text, seconds):
    assert read_objective(f"wait.p95 < {text} for queue=a").bound == seconds


@pytest.mark.parametrize(("text", "rule"), [
    ("wait.mean < 3y", "takes one of the units us, ms, s, min, h, d"), ("slowdown.mean < 3m", "slowdown takes no unit"),
    ("wait < 3s", "must be like"), ("", "must be like"), ("wait.p95 = 3s", "must be like"),
    ("price.p95 < 3s", "must be one of wait, turnaround, slowdown, slurm_wait, job_wait, completion, job_slowdown"),
    ("wait.p0 < 3s", "the statistic must be"), ("wait.p100 < 3s", "the statistic must be"),
    ("wait.best < 3s", "the statistic must be"), ("wait.mean < 3", "takes one of the units us, ms, s, min, h, d"),
    ("slowdown.mean < 3s", "slowdown takes no unit"), ("wait.mean < 1.2.3s", "'1.2.3' is no number"),
    ("wait.mean < 3s for team=a", "KEY=VALUE with one of queue, user"), ("wait.mean < 3s for queue", "KEY=VALUE"),
])
def test_what_is_no_objective_is_refused_before_the_run(text, rule):
    with pytest.raises(InputError, match=rule.replace(".", r"\.").replace("'", ".")):
        Scenario(objectives=[text])


@pytest.mark.parametrize(("text", "rule"), [
    ("wait", "must be like"), ("price.mean", "the measure must be one of wait"), ("wait.best", "the statistic must be"),
    ("energy.p95", "the statistic of energy must be"),
])
def test_what_is_no_measure_is_refused(text, rule):
    assert read_measure("energy.total").bound == read_measure("wait.p95").bound == math.inf
    with pytest.raises(InputError, match=rule):
        read_measure(text)


@pytest.mark.parametrize("text", ["wait.mean < 1s for queue=al", "wait.mean < 1s for user=bob",
                                  "wait.mean < 1s for priority=7"])
def test_an_objective_for_nobody_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="no task that is measured is of these"):
        queued(tmp_path, objectives=[text])
    with pytest.raises(InputError, match="the workload has no scheduling classes"):
        queued(tmp_path, objectives=["wait.mean < 1s for class=1"])


def test_who_is_concerned_is_known_before_the_run(tmp_path):
    """Two queues, two priorities; in the second half of the arrivals there is one of each."""
    workload = staged([{"job": 0, "request": (1,), "priority": 1}, {"job": 1, "request": (1,), "priority": 2}],
                      [(0, 0.0, 1.0), (0, 1.0, 1.0), (1, 9.0, 5.0)])
    jobs_of = pl.DataFrame({"job": ["j0", "j1"], "queue": ["a/x", "b"], "user": ["ann", "bob"]})
    workload = replace(workload, jobs=jobs_of)
    every, late = Window(0.0, 9.0, ""), Window(5.0, 9.0, "")
    texts = ["queue=a", "queue=a/x", "user=ann", "priority=1", "length=short"]
    there = [read_objective(f"wait.mean < 1s for {text}") for text in texts]
    def refuse(objectives, window):
        refuse_unconcerned(objectives, HeldWorkload(workload), window, lambda: sums_of(workload))

    refuse(there, every)
    refuse([read_objective("wait.mean < 1s"), read_objective("wait.mean < 1s for queue=b")], late)
    for each in there[:4]:
        with pytest.raises(InputError, match="no task that is measured is of these"):
            refuse([each], late)
    for text in ("queue=al", "queue=b/c", "user=eve", "priority=7"):
        with pytest.raises(InputError, match="no task that is measured is of these"):
            refuse([read_objective(f"wait.mean < 1s for {text}")], every)


def test_reading_keeps_what_was_written():
    assert read_objective(" wait.p99.9   <=  2min for queue=a/b , priority=3 ") == Objective(
        "wait.p99.9 <= 2min for queue=a/b , priority=3", "wait", "p99.9", "<=", 120.0,
        (("queue", "a/b"), ("priority", "3")))


def test_groups_are_written_down(tmp_path):
    """Ten tasks one after the other on one core: waits 0, 9, ..., 72 s, and of the long one 81 s."""
    run = ran(tmp_path, plain(*((row, 10, 1) for row in range(9)), (9, 20, 1)), fleet_of((1,)),
              objectives=["wait.mean < 1h for length=long"])
    groups = pl.read_parquet(run.folder / "groups.parquet")
    assert groups.select("by", "name", "tasks", "jobs").rows() == [
        ("length", "short", 9, 9), ("length", "long", 1, 1), ("priority", "0", 10, 10), ("queue", "all/of/us", 10, 10)]
    short, long, *_, queue = groups.rows(named=True)
    assert (short["started"], short["wait_mean"], short["wait_median"], short["wait_p95"]) == (9, 36.0, 36.0, 72.0)
    assert (short["wait_p99"], queue["wait_p95"], queue["wait_p99"]) == (72.0, 81.0, 81.0)
    assert (long["wait_mean"], long["completion_mean"], run.summary.objectives[0].value) == (81.0, 101.0, 81.0)
    assert run.summary.lengths["long"].mean == 81.0
    assert queue["completion_mean"] == pytest.approx((9 * 46 + 101) / 10)


def test_groups_of_as_many_tasks_go_by_name():
    groups = pl.DataFrame({"name": ["b", "c", "a"], "tasks": [2, 3, 2]})
    of_jobs = pl.DataFrame({"queue": ["a", "b", "c"], "completion": [1.0, 2.0, 3.0]})
    assert jobs.with_jobs(groups, "queue", of_jobs).rows() == [("c", 3, 1, 3.0), ("a", 2, 1, 1.0), ("b", 2, 1, 2.0)]


@pytest.mark.parametrize(("values", "names", "code"), [
    ([3, 1, 3], ["1", "3"], [1, 0, 1]), ([3, None, 1], ["1", "3", None], [1, 2, 0]), ([None, None], [None], [0, 0]),
])
def test_values_are_told_apart_and_so_are_those_that_are_missing(values, names, code):
    found = jobs._coded(pl.Series(values, dtype=pl.Int32))
    assert (found[0], found[1].tolist()) == (names, code)


@pytest.mark.parametrize("count", [1, 2, jobs.PASSES_MAX, jobs.PASSES_MAX + 1, 300])
def test_the_rows_of_each_group_are_found_in_order(count):
    """Each third row is of the group of its number, and the last group has none; with one group all rows are its."""
    code = np.arange(900, dtype=np.uint32) // 3 % max(count - 1, 1)
    found = [np.arange(900)[here].tolist() for here in jobs._places(code, count)]
    assert found == [[row for row in range(900) if code[row] == each] for each in range(count)]


def test_of_nobody_a_statistic_is_endless():
    assert [_statistic(np.zeros(0), level) for level in (None, 0.5)] == [math.inf, math.inf]


def test_a_group_of_what_has_no_class_has_its_jobs():
    columns = {"job": pl.Series([0, 0, 1]), "class": pl.Series([None, None, 2], dtype=pl.Int32),
               "wait_time": pl.Series([1.0, 3.0, 5.0]), "waited": pl.Series([1.0, 3.0, 5.0]),
               "slowdown": pl.Series([1.0, 1.0, 1.0])}
    of_job = pl.DataFrame({"job": [0, 1], "completion": [13.0, 15.0], "class": [None, 2]})
    groups = jobs.groups_of_kind(columns.__getitem__, "class", of_job)
    assert groups.select("name", "tasks", "jobs", "completion_mean").rows() == [(None, 2, 1, 13.0), ("2", 1, 1, 15.0)]
