"""The measured window: which tasks count, what of the timeline, and what is said of it; by hand."""
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from msgspec import structs
from polars.testing import assert_frame_equal

from small import fleet_of, plain
from subak.errors import InputError
from subak.experiment.checkpoints import Chunks
from subak.experiment.inputs import load_inputs, open_inputs, refuse_unfit
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.federation.settings import Federation
from subak.measures.run_folders import load_runs
from subak.measures.runs import Run, Spread, Summary, WaitedFacts, Waiting, WindowFacts
from subak.measures.window import ARRIVALS, AS_GIVEN, AS_OBSERVED, AT_ONCE, Window, cut, window_facts, window_of
from subak.policy import find_scheduler
from subak.report.comparison import compare, verdict
from subak.report.notes import notes
from subak.workload.samples import sample_folder
from subak.workload.table import Observed, read_workload


def queue():
    """One machine of 2 cores, first in first out.

    seconds   5        15       45       105  110
    task 0    |-- 1 core ------|
    task 1    waits ...........|- 2 cores -|
    task 2             waits ..............|1 core|
    """
    return plain((5, 40, 1), (5, 60, 2), (15, 5, 1))


def summary(folder, workload=None, scheduler="first-fit", **options):
    workload = queue() if workload is None else workload
    scenario = Scenario(schedulers=[scheduler], **{"interval": 10.0, **options})
    return simulate_into(folder / "run", scenario, scheduler, 1, (workload, fleet_of((2,))))


def test_by_default_it_is_from_the_first_arrival_to_the_last(tmp_path):
    found = summary(tmp_path, interval=5.0)
    assert found.window.why == ARRIVALS
    assert (found.window.begin, found.window.end, found.window.tasks, found.window.left_out) == (5, 15, 3, 0)
    assert found.wait_time.mean == pytest.approx((0 + 40 + 90) / 3)
    assert found.utilisation["cpu"] == pytest.approx(0.5)  # one core of two from 5 s to 15 s
    assert found.waiting.mean == pytest.approx(1)


def test_what_is_asked_for_comes_first_and_ends_with_the_run(tmp_path):
    found = summary(tmp_path, measure_from=15, measure_until=math.inf, interval=5.0)
    assert found.window.why == AS_GIVEN
    assert (found.window.begin, found.window.end, found.window.tasks, found.window.left_out) == (15, 110, 1, 2)
    assert (found.wait_time.mean, found.wait_time.max) == ((40 + 90) / 2, 90)  # the second task still waits at 15 s
    assert found.utilisation["cpu"] == pytest.approx((30 * 1 + 60 * 2 + 5 * 1) / (2 * 95))
    assert found.slowdown.mean == pytest.approx((100 / 60 + 95 / 10) / 2)


def test_what_is_asked_for_of_one_end_leaves_the_other_as_it_was():
    """Of three tasks that arrive at 1, 2 and 4."""
    workload = plain((1, 1, 1), (2, 1, 1), (4, 1, 1))
    assert window_of(workload) == Window(1.0, 4.0, ARRIVALS)
    assert window_of(workload, 2.0) == Window(2.0, 4.0, AS_GIVEN)
    assert window_of(workload, None, 3.0) == Window(1.0, 3.0, AS_GIVEN)
    with pytest.raises(InputError, match=r"no task arrives from 2.5s to 3s; they do from 1s to 4s"):
        window_of(workload, 2.5, 3.0)


def test_a_trace_that_begins_loaded_says_so_itself(tmp_path):
    found = summary(tmp_path, replace(queue(), observed=Observed(10.0, 50.0)))
    assert found.window.why == AS_OBSERVED
    assert (found.window.begin, found.window.end, found.window.tasks, found.window.left_out) == (10, 50, 1, 2)
    assert found.utilisation["cpu"] == pytest.approx((35 * 1 + 5 * 2) / (2 * 40))
    assert found.status == {"FINISHED": 3, **dict.fromkeys(set(found.status) - {"FINISHED"}, 0)}  # of all


def test_where_all_arrive_at_once_it_is_the_whole_run(tmp_path):
    found = summary(tmp_path, plain((3, 10, 2), (3, 10, 2)), interval=1.0)
    assert found.window.why == AT_ONCE
    assert (found.window.begin, found.window.end, found.window.tasks) == (3, 23, 2)
    assert found.utilisation["cpu"] == pytest.approx(1.0)


def test_it_ends_with_a_run_that_is_stopped(tmp_path):
    found = summary(tmp_path, until=12.0, interval=1.0)
    assert (found.window.begin, found.window.end) == (5, 12)


def test_an_interval_that_its_ends_cut_counts_in_part():
    timeline = pl.DataFrame({"time": [0.0, 10.0, 20.0, 30.0], "span": [10.0, 10.0, 10.0, 5.0], "used": [1, 2, 3, 4]})
    assert cut(timeline, Window(12.0, 31.0, "")).rows() == [(12.0, 8.0, 2), (20.0, 10.0, 3), (30.0, 1.0, 4)]
    assert cut(timeline, Window(0.0, math.inf, "")).equals(timeline)
    assert cut(timeline, Window(40.0, 50.0, "")).is_empty()


@pytest.mark.parametrize("scheduler", ["megha", "sparrow"])
def test_what_queues_held_in_a_federation_is_of_the_window(tmp_path, scheduler):
    settings = Federation(**({"global_masters": 1, "local_masters": 1} if scheduler == "megha" else
                             {"global_masters": 1}), service_scale=0.0, delay=0.0)
    found = summary(tmp_path, plain((0, 10, 1), (20, 10, 2)), scheduler, federation=settings, measure_from=5,
                    measure_until=25)
    queue, = found.federation.queues
    assert queue.used == pytest.approx((5 * 0.5 + 5 * 1.0) / 20)
    assert found.window.tasks == 1


@pytest.mark.parametrize(("options", "rule"), [
    ({"measure_from": -1.0}, "measure_from: must be 0 s or later, not -1"),
    ({"measure_from": math.inf}, "measure_from: must be 0 s or later, not inf"),
    ({"measure_from": math.nan}, "measure_from: must be 0 s or later, not nan"),
    ({"measure_from": 5.0, "measure_until": 5.0}, "measure_until: must be later than measure_from"),
    ({"measure_until": math.nan}, "measure_until: must be later than measure_from"),
    ({"measure_from": 9.0, "until": 9.0}, "measure_from: must be before the run is stopped"),
])
def test_a_window_in_which_nothing_can_be_is_refused(options, rule):
    with pytest.raises(InputError, match=rule):
        Scenario(**options)


def test_a_window_in_which_no_task_arrives_is_refused_before_the_run():
    scenario = Scenario(measure_from=5399.8, measure_until=5399.9)
    with pytest.raises(InputError, match=r"no task arrives from 1h29m59.8s to 1h29m59.9s; they do from 0s"):
        refuse_unfit(scenario, [find_scheduler("first-fit")], load_inputs(scenario))


@pytest.mark.parametrize("name", ["google2011", "google2011-sampled"])
def test_a_sample_leaves_out_what_ran_before_it_began(name):
    workload = read_workload(sample_folder(name))
    window = window_of(workload)
    assert (window.begin, window.end, window.why) == (600.047726, 5400.0, AS_OBSERVED)
    assert workload.tasks.filter(pl.col("arrival") < window.begin)["arrival"].unique().to_list() == [0.0]


def test_a_folder_keeps_what_was_observed(tmp_path):
    replace(queue(), observed=Observed(1.5, 7.0)).write(tmp_path)
    assert read_workload(tmp_path).observed == Observed(1.5, 7.0)
    queue().write(tmp_path)
    assert read_workload(tmp_path).observed is None
    assert "observed" not in (tmp_path / "workload.toml").read_text()
    header = (tmp_path / "workload.toml").read_text()
    (tmp_path / "workload.toml").write_text(f"{header}\n[observed]\nbegin = 5.0\nend = 4.0\n")
    with pytest.raises(InputError, match="observed: must begin at 0 s or later, end no earlier"):
        read_workload(tmp_path)


def test_a_kept_scenario_holds_the_window(tmp_path):
    summary(tmp_path, measure_from=10, measure_until=20)
    text = (tmp_path / "run" / "scenario.toml").read_text()
    assert "measure_from = 10" in text and "measure_until = 20" in text
    assert load_runs(tmp_path / "run")[0].summary.window.tasks == 1


def test_what_is_free_while_tasks_wait_counts_against_who_blocks_its_queue(tmp_path):
    """Half of a machine is free from 5 s to 45 s, while a task waits that needs all of it, and one that would fit."""
    blocked = summary(tmp_path / "a", measure_until=45, interval=5.0)
    ahead = summary(tmp_path / "b", scheduler="first-fit+backfill", measure_until=45, interval=5.0)
    assert blocked.idle_while_waiting["cpu"] == pytest.approx(0.5)
    assert ahead.idle_while_waiting["cpu"] == pytest.approx((10 + 5 * 0 + 25) * 0.5 / 40)
    alone = summary(tmp_path / "c", plain((5, 40, 1), (6, 40, 1)))
    assert alone.idle_while_waiting == {"cpu": None}


def test_the_sample_is_what_its_page_says():
    """Tasks of the larger sample, kept at random; all else of them is as it was."""
    whole, part = read_workload(sample_folder("google2011")), read_workload(sample_folder("google2011-sampled"))
    kept = whole.tasks.filter(pl.Series(np.random.default_rng(2011).random(len(whole.tasks)) < 0.765))
    assert part.tasks.drop("stage").equals(kept.drop("stage"))

    def told(workload, tasks):
        stages = workload.stages.with_columns(pl.all().exclude("job", "depends_on"),
                                              job=workload.jobs["job"].gather(workload.stages["job"]),
                                              queue=workload.jobs["queue"].gather(workload.stages["job"]))
        return stages[tasks["stage"].to_numpy()]

    assert told(part, part.tasks).equals(told(whole, kept))
    assert part.jobs["job"].n_unique() == part.stages["job"].n_unique() == len(part.jobs)
    assert part.tasks["stage"].n_unique() == len(part.stages)
    for table in ("machines", "changes"):
        first, second = (pl.read_parquet(sample_folder(name) / "fleet" / f"{table}.parquet")
                         for name in ("google2011", "google2011-sampled"))
        assert first.equals(second)


def test_where_nothing_is_or_lasts_the_window_is_empty():
    timeline = pl.DataFrame({"time": [0.0, 5.0, 10.0], "span": [5.0, 5.0, 5.0]})
    assert cut(timeline, Window(5.0, 10.0, AS_GIVEN)).rows() == [(5.0, 5.0)]  # those beside it touch it, for no time
    tasks = pl.DataFrame({"arrival": [0.0]})
    nothing = window_facts(tasks, timeline.clear(), Window(0.0, float("inf"), AT_ONCE))
    assert (nothing.begin, nothing.end, nothing.tasks) == (0.0, 0.0, 1)
    none = replace(queue(), tasks=queue().tasks.clear())
    assert window_of(none) == Window(0.0, float("inf"), AT_ONCE)


def test_who_waits_as_the_window_begins_counts_with_the_whole_of_its_wait(tmp_path):
    """The second task of the queue above waits from 5 s to 45 s, the third from 15 s to 105 s."""
    found = summary(tmp_path, measure_from=15, measure_until=math.inf, interval=5.0)
    assert found.waited == WaitedFacts(tasks=2, before=1, still=0, through=0)
    assert (found.wait_time.mean, found.wait_time.max) == (65, 90)
    assert found.jobs.wait.mean == 65 and (found.jobs.jobs, found.jobs.completed) == (1, 1)
    four = plain((5, 40, 1), (5, 60, 2), (15, 5, 1), (60, 1, 1))  # the fourth starts at 105 s, too
    later = summary(tmp_path / "later", four, measure_from=45.1, measure_until=100.0, interval=5.0)
    assert later.waited == WaitedFacts(tasks=2, before=1, still=0, through=1)
    assert later.wait_time.mean == (90 + 45) / 2
    groups = pl.read_parquet(tmp_path / "later" / "run" / "groups.parquet")
    assert groups.filter(by="queue")["wait_mean"].to_list() == [67.5]


def test_who_never_starts_counts_with_its_wait_until_the_end(tmp_path):
    """At 50 s the second task runs, and the third has waited for 35 s; the fourth is larger than the machine."""
    four = plain((5, 40, 1), (5, 60, 2), (15, 5, 1), (16, 1, 3))
    found = summary(tmp_path, four, until=50.0, measure_until=math.inf, interval=5.0, objectives=["wait.max < 1h"])
    assert found.window.end == 50
    assert found.waited == WaitedFacts(tasks=3, before=0, still=1, through=0)
    assert (found.wait_time.mean, found.wait_time.max) == (25, 40)
    assert (found.objectives[0].value, found.objectives[0].met) == (None, False)  # endless, as far as is known
    groups = pl.read_parquet(tmp_path / "run" / "groups.parquet").filter(by="length")
    assert groups.select("tasks", "started", "wait_mean").rows() == [(4, 2, 25.0)]
    later = summary(tmp_path / "later", four, until=50.0, measure_from=15.5, measure_until=math.inf, interval=5.0)
    assert later.waited == WaitedFacts(tasks=2, before=2, still=1, through=1)
    assert later.wait_time.mean == pytest.approx((40.0 + 35.0) / 2)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("options", [{"measure_from": 15.0}, {"until": 50.0, "measure_until": math.inf}])
def test_in_chunks_the_same_tasks_count(tmp_path, options, exact, monkeypatch):
    monkeypatch.setattr("subak.measures.tasks.tally.EXACT_MAX", 10**9 if exact else 0)
    scenario = Scenario(schedulers=["first-fit"], interval=5.0, **options)
    held = simulate_into(tmp_path / "held", scenario, "first-fit", 1, (queue(), fleet_of((2,))))
    (tmp_path / "W").mkdir()
    queue().write(tmp_path / "W")
    (tmp_path / "W" / "fleet").mkdir()
    fleet_of((2,)).write(tmp_path / "W" / "fleet")
    told = structs.replace(scenario, workload=str(tmp_path / "W"))
    found = simulate_into(tmp_path / "chunks", told, told.schedulers[0], 1, open_inputs(told), chunks=Chunks(1))
    assert found.waited == held.waited and found.jobs == held.jobs
    assert found.wait_time.mean == pytest.approx(held.wait_time.mean)
    parts = [pl.read_parquet(tmp_path / name / "groups.parquet").select("tasks", "started", "wait_mean")
             for name in ("held", "chunks")]
    assert_frame_equal(*parts)


def runs_with(**waited):
    """Runs of schedulers whose mean waits are 1 s, 2 s and so on, with so many tasks that wait all along, of 1,000."""
    return [Run(Path(name), Summary(
        scheduler=name, label=name, seed=1, status={"FINISHED": 1}, wait_time=Spread(*[number] * 6),
        window=WindowFacts(0.0, 100.0, "as asked for", 1000, 0), waiting=Waiting(10.0 * number, 20.0),
        waited=WaitedFacts(1000, through, 0, through)))
        for number, (name, through) in enumerate(waited.items(), start=1)]


def test_nobody_is_best_in_a_wait_who_starves_others():
    def best(**waited):
        row = next(row for row in compare(runs_with(**waited)) if row.measure.family == "Wait time")
        return sorted(row.best)

    assert best(a=0, b=0, c=0) == [0]
    assert best(a=5, b=0, c=0) == [1]
    assert best(a=5, b=5, c=5) == [0]  # nobody lets more wait than another
    assert verdict(runs_with(a=5, b=0, c=0)).startswith("b has the lowest mean wait time, 2 s; next is c")
    said = " ".join(notes(runs_with(a=5, b=0, c=0)))
    assert "Tasks that waited as the window began count with the whole of their waits: 5 of a." in said
    assert "Waited from the window's begin to its end: 5 of a." in said


def test_littles_law_is_said_where_it_fails():
    fits = runs_with(a=0, b=0)
    assert "Little" not in " ".join(notes(fits))
    runs = [fits[0], replace(fits[1], summary=structs.replace(fits[1].summary, waiting=Waiting(23.0, 40.0)))]
    assert "the mean queue would be another: 20, not 23, of b." in " ".join(notes(runs))
