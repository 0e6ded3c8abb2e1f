"""`subak convert` and `subak inspect` as a user meets them, and the description and demand beneath."""
import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from published import trace
from subak.errors import InputError
from subak.fleet.describe import describe_fleet
from subak.fleet.table import make_fleet, read_fleet, uniform_fleet
from subak.resources import Resource
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.demand import capacity_over_time, demand
from subak.workload.describe import LEVELS, describe
from subak.workload.readers import FORMATS
from subak.workload.samples import sample_folder, sample_names
from subak.workload.table import Workload, make_workload, read_workload

CPU = (Resource("cpu", 1e-3, "cores"),)


def small_workload(run_times=(10.0, 20.0, 5.0, 5.0)) -> Workload:
    constraint = {"attribute": "kernel", "operator": ">", "value": "3"}
    jobs = pl.DataFrame({"job": ["a", "b"], "queue": ["org/x", "org/y"], "user": ["x", "y"]})
    stages = pl.DataFrame({
        "job": [0, 1], "name": ["0", "0"], "depends_on": [[], []], "kind": ["TASK", "SERVICE"], "priority": [0, 9],
        "constraints": pl.Series([[], [constraint]], dtype=pl.List(CONSTRAINT_TYPE)), "cpu": [1.0, 2.5],
    }, schema_overrides={"depends_on": pl.List(pl.UInt32)})
    tasks = pl.DataFrame({"stage": [0, 0, 0, 1], "index": [0, 1, 2, 0], "arrival": [0.0, 0.0, 10.0, 12.0],
                          "run_time": run_times})
    return make_workload(jobs, stages, tasks, CPU)


# Demand and description


def test_demand_if_every_task_started_on_arrival():
    found = demand(small_workload(), uniform_fleet(2, {"cpu": 4.0}, CPU), point_count=5)
    assert found.times == [0.0, 5.0, 10.0, 15.0, 20.0]
    assert found.requested["cpu"] == pytest.approx([2.0, 2.0, 2.0, 3.5, 0.0])
    assert found.capacity == {"cpu": [8.0] * 5}
    assert found.requested_max["cpu"] == pytest.approx(4.5)
    assert found.requested_max_time["cpu"] == 12.0
    assert found.requested_mean["cpu"] == pytest.approx((10 + 20 + 5 + 2.5 * 5) / 20)


def test_demand_agrees_with_a_plain_sum():
    random = np.random.default_rng(5)
    workload = make_workload(
        pl.DataFrame({"job": ["a"], "queue": ["q"], "user": ["u"]}),
        pl.DataFrame({"job": [0] * 3, "name": ["0"] * 3, "depends_on": [[]] * 3, "kind": ["TASK"] * 3,
                      "priority": [0] * 3, "constraints": pl.Series([[]] * 3, dtype=pl.List(CONSTRAINT_TYPE)),
                      "cpu": [0.25, 1.0, 3.0]}, schema_overrides={"depends_on": pl.List(pl.UInt32)}),
        pl.DataFrame({"stage": random.integers(0, 3, 200), "index": range(200), "arrival": random.uniform(0, 50, 200),
                      "run_time": random.exponential(9, 200)}), CPU)
    found = demand(workload)
    starts, lengths = (workload.tasks[name].to_numpy() for name in ("arrival", "run_time"))
    amounts = workload.requests[0][workload.tasks["stage"].to_numpy()] * 1e-3
    plain = [amounts[(starts <= time) & (time < starts + lengths)].sum() for time in found.times]
    assert found.requested["cpu"] == pytest.approx(plain)


def test_a_task_without_an_end_is_in_use_forever():
    workload = small_workload((10.0, float("inf"), 5.0, 5.0))
    found = demand(workload, point_count=2)
    assert found.times[-1] == 17.0
    assert found.requested["cpu"][-1] == pytest.approx(1.0)
    assert found.capacity is None
    assert describe(workload).counts["tasks without an end"] == 1
    assert describe(workload).largest_jobs[0].run_time_mean is None


def test_capacity_follows_machines_that_join_leave_and_grow():
    machines = pl.DataFrame({"machine": ["a", "b"], "cluster": ["0", "0"], "present": [True, False],
                             "cpu": [4.0, 1.0]})
    changes = pl.DataFrame({"time": [10.0, 20.0, 30.0, 40.0], "machine": [1, 0, 0, 1],
                            "present": [True, False, True, False], "cpu": [1.0, 4.0, 2.0, 1.0]})
    fleet = make_fleet(machines, CPU, changes=changes)
    assert capacity_over_time(fleet, np.array([0.0, 10.0, 20.0, 30.0, 40.0]))["cpu"] == [4.0, 5.0, 1.0, 3.0, 2.0]


def test_other_resources_than_the_fleets_are_refused():
    with pytest.raises(InputError, match="workload and fleet: resources must be the same"):
        demand(small_workload(), uniform_fleet(1, {"cpu": 1.0}, (Resource("cpu"),)))


def test_a_description_counts_everything():
    description = describe(small_workload())
    assert description.counts == {
        "jobs": 2, "stages": 2, "tasks": 4, "queues": 2, "users": 2, "tasks with constraints": 1,
        "stages that wait for others": 0, "tasks without an end": 0}
    assert description.parts == {"kind": {"TASK": 3, "SERVICE": 1}, "priority": {"9": 1, "0": 3}}
    assert (description.first_arrival, description.last_arrival, description.last_end) == (0.0, 12.0, 20.0)
    run_times = description.quantiles["run time (s)"]
    assert run_times.mean == 10.0
    assert run_times.values[LEVELS.index(0.5)] == 7.5
    assert description.quantiles["time between jobs (s)"].values == [12.0] * len(LEVELS)
    assert description.constraints == {"kernel > 3": 1}
    assert [(job.job, job.tasks, job.requested) for job in description.largest_jobs] == [
        ("a", 3, {"cpu": 3.0}), ("b", 1, {"cpu": 2.5})]


def test_a_workload_of_nothing_is_refused():
    workload = small_workload()
    empty = make_workload(workload.jobs, workload.stages, workload.tasks.clear(), CPU)
    with pytest.raises(InputError, match="has no tasks"):
        describe(empty)


def test_configurations_come_most_frequent_first():
    machines = pl.DataFrame({"machine": ["a", "b", "c"], "cluster": ["0", "1", "1"], "cpu": [4.0, 1.0, 1.0]})
    attributes = pl.DataFrame({"machine": [0, 1], "attribute": ["kernel", "kernel"], "value": ["3", "3"]})
    description = describe_fleet(make_fleet(machines, CPU, attributes))
    found = [(each.machines, each.capacity) for each in description.configurations]
    assert found == [(2, {"cpu": 1.0}), (1, {"cpu": 4.0})]
    assert description.clusters == {"0": 1, "1": 2}
    assert description.attributes["kernel"].most_frequent == {"3": 2}


# The commands


def tr_file(folder: Path) -> Path:
    path = folder / "small.tr"
    path.write_text("0.5 2 3 2 4\n7 1 1.5 1.5\n")
    return path


def swf_file(folder: Path) -> Path:
    path = folder / "small.swf"
    path.write_text("; Computer: small\n; MaxProcs: 8\n1 0 -1 5 2 -1 -1 2 9 -1 1 1 1 -1 1 -1 -1 -1\n")
    return path


def test_convert_then_inspect(run, tmp_path):
    code, out, _ = run("convert", "swf", swf_file(tmp_path), "--out", tmp_path / "W")
    assert code == 0
    assert "jobs: 1 row read" in out
    assert len(read_workload(tmp_path / "W").tasks) == 2
    assert len(read_fleet(tmp_path / "W" / "fleet").machines) == 8
    code, out, _ = run("inspect", tmp_path / "W")
    assert code == 0
    for words in ("Workload W", "Distributions", "present capacity", "Largest jobs", "Provenance", "Fleet small"):
        assert words in out
    code, out, _ = run("inspect", tmp_path / "W" / "fleet")
    assert code == 0
    assert "Machine configurations" in out


def test_inspect_json(run, tmp_path):
    run("convert", "tr", tr_file(tmp_path), "--out", tmp_path / "W")
    code, out, _ = run("inspect", tmp_path / "W", "--json", "--largest", 1)
    found = json.loads(out)
    assert code == 0
    assert found["workload"]["counts"]["tasks"] == 3
    assert [job["job"] for job in found["workload"]["largest_jobs"]] == ["1"]
    assert found["fleet"] is None


@pytest.mark.parametrize("suffix", [".html", ".svg", ".png"])
def test_inspect_draws(run, tmp_path, suffix):
    run("convert", "swf", swf_file(tmp_path), "--out", tmp_path / "W")
    for folder in ("W", "W/fleet"):
        chart = tmp_path / f"chart{suffix}"
        assert run("inspect", tmp_path / folder, "--chart", chart)[0] == 0
        content = chart.read_bytes()
        assert content.startswith({".html": b"<!doctype html>", ".svg": b"<svg", ".png": b"\x89PNG"}[suffix])
        assert b"https://cdn" not in content
        chart.unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["W", "small.swf"]


def test_an_existing_workload_is_only_replaced_on_demand(run, tmp_path):
    source, out = tr_file(tmp_path), tmp_path / "W"
    assert run("convert", "tr", source, "--out", out)[0] == 0
    code, _, message = run("convert", "tr", source, "--out", out)
    assert code == 2
    assert "exists already" in message
    assert run("convert", "tr", source, "--out", out, "--overwrite")[0] == 0


def test_a_folder_that_is_no_workload_is_never_replaced(run, tmp_path):
    source = tr_file(tmp_path)
    code, _, message = run("convert", "tr", source, "--out", tmp_path, "--overwrite")
    assert (code, source.exists()) == (2, True)
    assert "it is not replaced" in message


GOOD_EVENT = "600,,1,0,7,{},u,2,4,0.5,0.25,0.001,0\n"
GOOD_PART = "".join(GOOD_EVENT.format(event) for event in range(2))
BAD = {
    "cut.tr": gzip.compress(b"1 1 1 1\n" * 99)[:-9],
    "columns.tr": b"1 2 3\n",
    "negative.tr": b"-1 1 1 1\n",
    "nan.tr": b"1 1 nan nan\n",
    "binary.tr": bytes(range(256)),
    "empty.tr": b"",
    "columns.swf": b"1 2 3\n",
    "machines.swf": b"; MaxProcs: 0\n1 0 -1 5 2 -1 -1 2 9 -1 1 1 1 -1 1 -1 -1 -1\n",
    "negative.swf": b"1 -5 -1 5 2 -1 -1 2 9 -1 1 1 1 -1 1 -1 -1 -1\n",
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_ends_in_one_line_and_nothing_half_written(run, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(BAD[name])
    code, _, message = run("convert", path.suffix[1:], path, "--out", tmp_path / "W")
    assert code == 2
    assert message.count("\n") == 1
    assert message.startswith(f"subak: {path}")
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(("table", "content"), [
    ("task_events", gzip.compress(GOOD_PART.encode())[:-5]),
    ("task_events", b"600,1\n"),
    ("task_events", GOOD_EVENT.format("x").encode()),
    ("task_events", GOOD_EVENT.format(0).replace("0.5", "nan").encode()),
    ("task_events", GOOD_EVENT.format(0).replace("600", "-600").encode()),
    ("task_events", b"\xff\xfe\x00"),
    ("machine_events", b"600,1,0,p,0.5,0.5\n"),
    ("machine_events", b"0,1,0,p,-0.5,0.5\n"),
    ("machine_attributes", b"0,1,a\n"),
    ("task_constraints", b"0,1,0,7,a,b\n"),
], ids=["cut off", "columns", "no number", "NaN", "negative time", "binary", "no machine", "negative", "attributes",
        "constraints"])
def test_a_bad_google_folder_ends_in_one_line_and_nothing_half_written(run, tmp_path, table, content):
    source = tmp_path / "trace"
    for name, good in (("task_events", GOOD_PART), ("machine_events", "0,1,0,p,0.5,0.5\n")):
        (source / name).mkdir(parents=True)
        (source / name / "part-0.csv").write_text(good)
    (source / table).mkdir(exist_ok=True)
    (source / table / "part-0.csv").write_bytes(content)
    code, _, message = run("convert", "google2011", source, "--out", tmp_path / "W")
    assert code == 2
    assert message.count("\n") == 1
    assert str(source / table) in message
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace"]


@pytest.mark.parametrize(("arguments", "words"), [
    (("convert", "borg", "x", "--out", "W"),
     f"format: must be one of {', '.join(FORMATS)}, not 'borg'"),
    (("convert", "tr", "absent.tr", "--out", "W"), "absent.tr: no such file"),
    (("convert", "google2011", "absent", "--out", "W"), "absent: no such folder"),
    (("convert", "swf", "x", "--out", "W", "--fleet", "last"), "--fleet: has no meaning for the format swf"),
    (("convert", "tr", "x", "--out", "W", "--from", "9", "--until", "3"), "slice: needs 0 <= --from < --until"),
    (("convert", "tr", "x", "--out", "W", "--from", "nan"), "slice: needs 0 <= --from < --until"),
    (("inspect", "absent"), "absent: no such folder"),
    (("inspect", "."), "has neither workload.toml nor fleet.toml"),
    (("inspect", ".", "--chart", "a.pdf"), "--chart: the file must end in .html, .svg, .png, not 'a.pdf'"),
    (("inspect", ".", "--chart", "absent/a.png"), "--chart: no such folder as absent"),
])
def test_a_mistake_is_one_line_and_exit_code_2(run, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    code, out, message = run(*arguments)
    assert (code, out) == (2, "")
    assert message.startswith("subak: ")
    assert message.count("\n") == 1
    assert words in message
    assert list(tmp_path.iterdir()) == []


def test_the_shipped_sample_is_what_its_readme_says(run):
    workload, fleet = read_workload(sample_folder()), read_fleet(sample_folder() / "fleet")
    assert (len(workload.tasks), len(workload.jobs), len(fleet.machines)) == (190_402, 5_501, 12_477)
    found = demand(workload, fleet)
    assert found.requested["cpu"][0] / found.capacity["cpu"][0] == pytest.approx(1.15, abs=0.005)
    assert "CC-BY 4.0" in (sample_folder() / "README.md").read_text()
    assert sample_names() == ["google2011", "google2011-sampled"]
    with pytest.raises(InputError, match="must be one of google2011"):
        sample_folder("borg")


def test_the_shipped_sample_can_be_made_again(run, tmp_path):
    source = trace("google2011", "task_events").parent
    run("convert", "google2011", source, "--until", 5400, "--out", tmp_path / "W")
    again, shipped = read_workload(tmp_path / "W"), read_workload(sample_folder())
    for name in ("jobs", "stages", "tasks"):
        assert getattr(again, name).equals(getattr(shipped, name))
