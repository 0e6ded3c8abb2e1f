"""What is reported of MapReduce jobs: bound, gap, gain over first in first out, and the Gantt chart."""
import functools
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from batches import ONE_KIND, batch, machines
from small import fleet_of, plain, staged
from subak.experiment.inputs import load_inputs
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.measures.batch import bound_seconds, has_bound, slots, stints
from subak.measures.run_folders import load_runs
from subak.policy import find_scheduler
from subak.report.charts import gantt as gantt_module
from subak.report.charts.gantt import gantt
from subak.report.comparison import compare
from subak.report.page import write_report
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate


# Not made while this file is imported: it would start Polars' threads, and mutants.py forks before tests run.
@functools.cache
def jobs():
    return batch((4, 3, 2, 2), (2, 5, 1, 8), (3, 1, 0, 0))


@functools.cache
def fleet():
    return machines((1, 0), (1, 0), (0, 1), speeds=[[0.5, 1.0, 1.0], [1.0, 0.25, 1.0], [1.0, 1.0, 1.0]])


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batch")
    (folder / "w" / "fleet").mkdir(parents=True)
    jobs().write(folder / "w")
    fleet().write(folder / "w" / "fleet")
    for name in ("first-fit+backfill", "hmhs"):
        scenario = Scenario(workload=str(folder / "w"), schedulers=[name])
        simulate_into(folder / "c" / "runs" / name, scenario, name, 1, load_inputs(scenario))
    return folder / "c"


def test_the_summary_has_makespan_bound_and_gap(compared):
    for run in load_runs(compared):
        facts = run.summary
        assert facts.makespan_bound == bound_seconds(jobs(), fleet())
        assert facts.gap == pytest.approx(facts.makespan / facts.makespan_bound - 1)
        assert facts.gap >= 0


def test_the_comparison_measures_from_first_in_first_out(compared):
    rows = {row.measure.title: row for row in compare(load_runs(compared)) if row.measure.family == "Makespan"}
    assert list(rows) == ["", "lower bound", "above it", "below first-fit+backfill"]
    fifo, hmhs = rows[""].values
    assert rows["below first-fit+backfill"].values == [0.0, pytest.approx(1 - hmhs / fifo)]
    assert rows["lower bound"].values == [bound_seconds(jobs(), fleet())] * 2


def test_the_page_has_a_gantt_chart_of_each(compared, tmp_path):
    page = write_report(compared, tmp_path / "page.html").read_text()
    assert page.count("Who ran when: hmhs") >= 1
    assert "The first machines, 2 that ran maps and 1 that ran reduces" in page


def test_stints_are_the_tasks_of_a_job_in_a_row():
    table = task_table(simulate(jobs(), fleet(), find_scheduler("hmhs")), jobs(), fleet())
    found = stints(table, jobs())
    assert found["tasks"].sum() == len(jobs().tasks)
    of_maps = found.filter(pl.col("kind") == "map")
    lasted = (of_maps["end"] - of_maps["begin"]).sum()
    maps = jobs().tasks["stage"].is_in([0, 2, 4])
    assert lasted == pytest.approx((table["finish"] - table["start"]).filter(maps).sum())
    in_a_row = of_maps.select((pl.col("job") == pl.col("job").shift(1)) & (pl.col("machine")
                                                                           == pl.col("machine").shift(1)))
    assert not in_a_row.to_series().any()  # two maps of a job with nothing between are one stint


def test_tasks_that_run_at_once_are_in_different_slots():
    machine, start, finish = np.array([0, 0, 0, 0, 1]), np.array([0.0, 0, 1, 2, 0]), np.array([2.0, 1, 3, 4, 9])
    assert slots(machine, start, finish) == [0, 1, 1, 0, 0]
    workload, fleet = batch((4, 3, 0, 0), resources=ONE_KIND), machines((2,), resources=ONE_KIND)
    table = task_table(simulate(workload, fleet, find_scheduler("hmhs")), workload, fleet)
    assert stints(table, workload).select("slot", "begin", "end", "tasks").rows() == [(0, 0.0, 6.0, 2),
                                                                                      (1, 0.0, 6.0, 2)]


def test_a_chart_too_large_shows_fewer_machines(compared, monkeypatch):
    run = next(run for run in load_runs(compared) if run.label == "hmhs")
    whole = len(run.stints().collect())
    monkeypatch.setattr(gantt_module, "STINTS_DRAWN", whole - 1)
    assert "1 that ran maps" in gantt(run).to_dict()["title"]["subtitle"]


def test_only_mapreduce_jobs_have_a_bound():
    assert has_bound(jobs())
    assert not has_bound(plain((0, 1, 1)))
    changing = machines((1, 0), (0, 1))
    assert bound_seconds(jobs(), changing) is not None
    assert bound_seconds(jobs(), machines((1, 0))) is None  # nowhere to reduce


def test_maps_alone_have_a_bound_and_an_unended_run_has_none(tmp_path):
    """Two machines, four maps of 10 s: 20 s is the least; a run that is cut short is not held against it."""
    maps_only, fleet = staged([{"request": (1,)}], [(0, 0, 10)] * 4), fleet_of((1,), (1,))
    maps_only = replace(maps_only, stages=maps_only.stages.with_columns(name=pl.lit("map")))
    assert has_bound(maps_only)
    assert bound_seconds(maps_only, fleet) == pytest.approx(20.0)
    found = {}
    for until in (math.inf, 15.0):
        scenario = Scenario(schedulers=["hmhs"], until=until)
        found[until] = simulate_into(tmp_path / f"{until}", scenario, "hmhs", 1, (maps_only, fleet))
    assert found[math.inf].gap == pytest.approx(0.0, abs=1e-6)
    assert found[15.0].makespan_bound is None


def test_numbers_too_far_apart_for_a_program_cost_the_bound_not_the_run():
    maps_only, fleet = staged([{"request": (1,)}], [(0, 0, 10)] * 4), fleet_of((1,), (1,))
    maps_only = replace(maps_only, stages=maps_only.stages.with_columns(name=pl.lit("map")))
    fleet = replace(fleet, speeds=np.array([[1.0, 1e18]]))
    assert bound_seconds(maps_only, fleet) in (None, pytest.approx(40.0))
    still = replace(maps_only, tasks=maps_only.tasks.with_columns(run_time=pl.lit(0.0)))
    with np.errstate(all="raise"):
        assert bound_seconds(still, fleet_of((1,), (1,))) is None
