"""Waits by priority and by width of gangs: the groups, their means, and the charts of a report that has several."""
import polars as pl
import pytest

from small import fleet_of, plain, staged
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.measures.run_folders import load_runs
from subak.measures.series import group_waits
from subak.measures.tasks.jobs import _waited, width_words
from subak.report.charts.group_waits import group_wait_makers, ordered
from subak.report.page import write_report
from subak.resources import Resource
from subak.workload.table import make_workload

CPU = (Resource("cpu", 1.0, "cores"),)


def rigid():
    """A gang of 2, one of 3 and two single tasks, of two priorities, on three cores."""
    stages = [{"job": 0, "request": (1,), "priority": 5}, {"job": 1, "request": (1,)}, {"job": 2, "request": (1,)}]
    work = staged(stages,
                  [(0, 0, 10), (0, 0, 10), (1, 0, 20), (1, 0, 20), (1, 0, 20), (2, 0, 5), (2, 0, 5)])
    stages = work.stages.with_columns(gang=pl.Series([True, True, False]), cpu=pl.col("cpu").cast(pl.Float64))
    return make_workload(work.jobs, stages, work.tasks, CPU)


def ran(folder, workload, *schedulers):
    scenario = Scenario(schedulers=list(schedulers), seeds=[1])
    for name in schedulers:
        simulate_into(folder / "runs" / name, scenario, name, 1, (workload, fleet_of((3,))))
    return load_runs(folder)


def test_widths_are_powers_of_two():
    sizes = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 1000]
    assert width_words(pl.Series(sizes).to_numpy()).to_list() == [
        "1", "1", "2", "3 to 4", "3 to 4", "5 to 8", "5 to 8", "9 to 16", "9 to 16", "17 to 32", "513 to 1024"]
    assert ordered("gang", ["9 to 16", "1", "3 to 4", "2"]) == ["1", "2", "3 to 4", "9 to 16"]
    assert ordered("priority", ["0", "-5", "200", "9"]) == ["200", "9", "0", "-5"]


def test_groups_hold_the_waits_of_gangs(tmp_path):
    runs = ran(tmp_path, rigid(), "first-fit", "first-fit+backfill")
    strict, filled = (dict(zip(run["name"], run["mean"], strict=True))
                      for run in group_waits(runs, "gang", 16).sort("scheduler").partition_by("scheduler"))
    # first in, first out: the gang of 3 starts when that of 2 has ended, and the single ones behind it
    assert strict == {("2"): 0, "3 to 4": 10, "1": 30}
    # the third core is free for single tasks, one after the other
    assert filled == {"2": 0, "3 to 4": 10, "1": 2.5}
    groups = pl.read_parquet(tmp_path / "runs" / "first-fit" / "groups.parquet")
    assert groups.filter(pl.col("by") == "gang").sort("name")["tasks"].to_list() == [2, 2, 3]


def test_the_charts_are_there_where_a_run_has_several(tmp_path):
    runs = ran(tmp_path / "several", rigid(), "first-fit", "first-fit+backfill")
    makers = group_wait_makers(runs)
    assert list(makers) == ["wait-by-priority", "wait-by-gang"]
    spec = makers["wait-by-gang"]().to_dict(validate=True)
    (rows,) = spec["datasets"].values()
    assert {(row["scheduler"], row["name"], row["mean"]) for row in rows} >= {("first-fit", "1", 30.0)}
    page = write_report(tmp_path / "several").read_text()
    assert 'id="wait-by-gang"' in page
    assert 'id="wait-by-priority"' in page
    alike = ran(tmp_path / "alike", plain((0, 1, 1), (1, 1, 1)), "first-fit")
    assert group_wait_makers(alike) == {}


def test_only_the_largest_groups_are_drawn(tmp_path):
    many = staged([{"job": 0, "request": (1,), "priority": row} for row in range(20)],
                  [(row, 0, 1) for row in range(20) for _ in range(row + 1)])
    runs = ran(tmp_path, many, "first-fit")
    assert sorted(map(int, group_waits(runs, "priority", 5)["name"])) == [15, 16, 17, 18, 19]
    assert group_waits(runs, "gang", 5).is_empty()


def test_means_are_over_seeds(tmp_path):
    for seed, wait in ((1, 2.0), (2, 4.0)):
        scenario = Scenario(schedulers=["first-fit"], seeds=[1, 2], resample="none")
        folder = tmp_path / "runs" / f"first-fit-s{seed}"
        simulate_into(folder, scenario, "first-fit", seed, (rigid(), fleet_of((3,))))
        table = pl.read_parquet(folder / "groups.parquet")
        table.with_columns(wait_mean=pl.lit(wait), wait_p95=pl.lit(10 * wait)).write_parquet(folder / "groups.parquet")
    found = group_waits(load_runs(tmp_path), "priority", 16)
    assert found.select("mean", "p95").unique().rows() == [(3.0, 30.0)]
    assert found["scheduler"].unique().to_list() == ["first-fit"]
    assert pytest.approx(3.0) == found["mean"][0]


def test_a_group_of_which_nobody_started_has_waited_for_nobody_knows_how_long():
    mean, *levels = _waited(pl.Series([None, None], dtype=pl.Float64))
    assert (mean, set(levels)) == (None, {None})
