"""Drawn MapReduce batches: their laws, Table 1, what a seed means, their folders, and how bad parameters end."""
import filecmp
import json

import msgspec
import numpy as np
import polars as pl
import pytest
from scipy import stats

from in_process import subak
from subak.errors import InputError
from subak.fleet.table import read_fleet
from subak.workload.mapreduce import CLUSTERS, WORKLOADS, JobClass, MapReduce, draw_batch
from subak.workload.table import read_workload

MANY = 4_000
FEW_MACHINES = {"map_machines": 3, "reduce_machines": 2}


def per_job(workload) -> pl.DataFrame:
    """job, queue, arrival, and of each stage the tasks and the seconds, which are alike within it."""
    stages = workload.tasks.group_by("stage", maintain_order=True).agg(
        pl.len(), pl.col("run_time").first(), pl.col("arrival").first(), alike=pl.col("run_time").n_unique() == 1)
    assert stages["alike"].all()
    named = workload.stages.with_row_index("stage").join(stages, on="stage", maintain_order="left")
    maps, reduces = (named.filter(name=name).select("job", "arrival", count="len", seconds="run_time")
                     for name in ("map", "reduce"))
    return maps.join(reduces, on="job", suffix="_reduce", maintain_order="left").with_columns(
        queue=workload.jobs["queue"].gather(maps["job"]))


def standard_error_of(values: pl.Series) -> float:
    return values.std() / len(values) ** 0.5


def uniform(values: pl.Series, low: float, high: float) -> float:
    """The p-value of Kolmogorov and Smirnov's test against U[low, high]."""
    return stats.kstest(values.to_numpy(), "uniform", args=(low, high - low)).pvalue


def equally_often(values: pl.Series, low: int, high: int) -> float:
    """The p-value of the chi-square test that each whole number is drawn as often; none lies outside."""
    assert low <= values.min()
    assert values.max() <= high
    counts = np.bincount(values.to_numpy() - low, minlength=high - low + 1)
    return stats.chisquare(counts).pvalue


def test_the_single_workload_has_the_paper_s_laws():
    workload, _ = draw_batch(MapReduce(jobs=MANY, **FEW_MACHINES), 7)
    jobs = per_job(workload)
    assert len(jobs) == MANY
    for p_value in (uniform(jobs["seconds"], 5, 45), uniform(jobs["seconds_reduce"], 15, 135),
                    equally_often(jobs["count"], 1, 300), equally_often(jobs["count_reduce"], 1, 40)):
        assert p_value > 1e-4
    for name, mean in (("seconds", 25), ("seconds_reduce", 75), ("count", 150.5), ("count_reduce", 20.5)):
        assert abs(jobs[name].mean() - mean) < 4 * standard_error_of(jobs[name])
    numbers = jobs.select("seconds", "seconds_reduce", "count", "count_reduce").to_numpy()
    correlations = np.corrcoef(numbers, rowvar=False)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 4 / MANY**0.5


def test_the_hybrid_workload_has_three_classes():
    workload, _ = draw_batch(MapReduce(jobs=MANY, classes=WORKLOADS["hybrid"], **FEW_MACHINES), 7)
    jobs = per_job(workload)
    for name, share in (("normal", 0.8), ("long", 0.15), ("large", 0.05)):
        count = jobs.filter(queue=name).height
        assert abs(count - share * MANY) < 4 * (share * (1 - share) * MANY) ** 0.5
    long, large = jobs.filter(queue="long"), jobs.filter(queue="large")
    assert uniform(long["seconds"], 100, 2000) > 1e-4
    assert uniform(long["seconds_reduce"], 300, 6000) > 1e-4
    assert equally_often(long["count"], 1, 300) > 1e-4
    assert uniform(large["seconds"], 5, 45) > 1e-4
    for column, low, high in (("count", 2000, 5000), ("count_reduce", 100, 400)):
        assert low <= large[column].min()
        assert large[column].max() <= high
        assert abs(large[column].mean() - (low + high) / 2) < 4 * standard_error_of(large[column])


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_the_clusters_of_table_1(cluster):
    _, fleet = draw_batch(MapReduce(jobs=300, slow_share=CLUSTERS[cluster]), 3)
    slow = fleet.attribute("slow").is_not_null().to_numpy()
    assert fleet.machines["machine"].str.head(3).unique(maintain_order=True).to_list() == ["map", "red"]
    of_kind = fleet.machines["map_slot"].to_numpy() == 1
    assert [int(slow[of_kind].sum()), int(slow[~of_kind].sum())] == [20 * (cluster - 1)] * 2
    assert fleet.speeds.shape == (300, 200)
    for factors, low in ((fleet.speeds[:, slow], 0.9), (fleet.speeds[:, ~slow], 0.1)):
        if factors.size:
            assert low <= factors.min() <= factors.max() <= 1.0
            width = (1.0 - low) / 12**0.5
            assert abs(factors.mean() - (1.0 + low) / 2) < 4 * width / factors.size**0.5
            assert abs(factors.std() - width) < 0.02 * width


def test_factors_are_of_a_job_and_a_machine():
    _, fleet = draw_batch(MapReduce(jobs=300), 3)
    bound = 4 / 300**0.5
    assert np.abs(np.corrcoef(fleet.speeds[:, :5], rowvar=False)[np.triu_indices(5, 1)]).max() < bound
    assert np.abs(np.corrcoef(fleet.speeds[:5])[np.triu_indices(5, 1)]).max() < 4 / 200**0.5
    assert abs(np.corrcoef(fleet.speeds[:, :100].ravel(), fleet.speeds[:, 100:].ravel())[0, 1]) < 4 / 30_000**0.5


def test_which_machines_are_slow_is_drawn():
    slow = [draw_batch(MapReduce(jobs=1, slow_share=0.4), seed)[1].attributes["machine"].to_list()
            for seed in range(3)]
    assert slow[0] != slow[1] != slow[2]
    assert slow[0] != list(range(40)) + list(range(100, 140))


def test_tables_of_a_batch():
    workload, fleet = draw_batch(MapReduce(jobs=5), 1)
    assert workload.stages.select("name", "depends_on", "map_slot", "reduce_slot").rows()[:4] == [
        ("map", [], 1, 0), ("reduce", [0], 0, 1), ("map", [], 1, 0), ("reduce", [2], 0, 1)]
    assert workload.stages["speed_group"].to_list() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert "shuffle" not in workload.stages.columns
    assert workload.tasks["arrival"].max() == 0.0
    assert fleet.capacity.tolist() == [[1] * 100 + [0] * 100, [0] * 100 + [1] * 100]
    jobs = workload.stages["job"].gather(workload.tasks["stage"])
    assert workload.tasks.with_columns(job=jobs).select(
        (pl.col("index") == pl.int_range(pl.len()).over("job")).all()).item()


def test_more_jobs_leave_the_first_as_they_are():
    parameters = MapReduce(jobs=10, classes=WORKLOADS["hybrid"], gap=5.0, map_output_bytes=1e6, slow_share=0.6)
    few, small = draw_batch(parameters, 5)
    many, large = draw_batch(msgspec.structs.replace(parameters, jobs=30), 5)
    assert few.jobs.equals(many.jobs[:10])
    assert few.stages.equals(many.stages[:len(few.stages)])
    assert few.tasks.equals(many.tasks[:len(few.tasks)])
    assert small.machines.equals(large.machines)
    assert small.attributes.equals(large.attributes)
    assert np.array_equal(small.speeds, large.speeds[:10])


def test_a_seed_is_a_batch():
    parameters = MapReduce(jobs=4)
    (first, fleet), (same, same_fleet), (other, other_fleet) = (draw_batch(parameters, seed) for seed in (1, 1, 2))
    assert first.tasks.equals(same.tasks)
    assert np.array_equal(fleet.speeds, same_fleet.speeds)
    assert not first.tasks.equals(other.tasks)
    assert not np.isin(fleet.speeds, other_fleet.speeds).any()


def test_jobs_may_arrive_over_time():
    workload, _ = draw_batch(MapReduce(jobs=MANY, gap=12.0, **FEW_MACHINES), 7)
    arrivals = per_job(workload)["arrival"].to_numpy()
    gaps = np.diff(arrivals)
    assert arrivals[0] == 0.0
    assert stats.kstest(gaps, "expon", args=(0, 12.0)).pvalue > 1e-4
    assert abs(gaps.mean() - 12.0) < 4 * 12.0 / MANY**0.5
    both = workload.tasks.group_by(workload.stages["job"].gather(workload.tasks["stage"])).agg(
        pl.col("arrival").n_unique())
    assert both["arrival"].unique().to_list() == [1]


def test_a_volume_makes_reduces_copy():
    workload, _ = draw_batch(MapReduce(jobs=50, map_output_bytes=3e6, copy_bytes_per_second=1e6), 2)
    jobs = per_job(workload)
    shuffle = workload.stages.filter(name="reduce")["shuffle"]
    assert shuffle.to_list() == pytest.approx((3.0 * jobs["count"] / jobs["count_reduce"]).to_list())
    assert workload.stages.filter(name="map")["shuffle"].unique().to_list() == [0.0]
    assert per_job(draw_batch(MapReduce(jobs=50), 2)[0]).equals(jobs)


def test_shared_machines_have_slots_of_both_kinds():
    parameters = MapReduce(jobs=6, sharing="machines", map_machines=5, reduce_machines=8, slots=2, slow_share=0.5)
    workload, fleet = draw_batch(parameters, 1)
    assert fleet.capacity.tolist() == [[2] * 5 + [0] * 3, [2] * 8]
    assert workload.stages["speed_group"].to_list() == list(range(12))
    assert fleet.speeds.shape == (12, 8)
    assert (fleet.speeds[0::2, 5:] == 1.0).all()  # where no map can run
    assert fleet.attributes.height == 4
    slow = fleet.attributes["machine"].to_numpy()
    assert fleet.speeds[:, slow].min() >= 0.9
    assert not np.array_equal(fleet.speeds[0], fleet.speeds[1])


def test_shared_slots_take_either():
    workload, fleet = draw_batch(MapReduce(jobs=6, sharing="slots", map_machines=5, reduce_machines=8, slots=3), 1)
    assert [resource.name for resource in fleet.resources] == ["slot"]
    assert fleet.capacity.tolist() == [[3] * 13]
    assert workload.requests.tolist() == [[1] * 12]
    assert fleet.speeds.shape == (12, 13)
    assert fleet.speeds.max() < 1.0


def test_jobs_without_reduces_or_without_maps():
    classes = (JobClass("maps", 1.0, reduces=(0, 0)), JobClass("reduces", 1.0, maps=(0, 0)))
    workload, _ = draw_batch(MapReduce(jobs=40, classes=classes), 1)
    assert len(workload.stages) == 40
    assert workload.stages["depends_on"].list.len().sum() == 0
    assert workload.stages["name"].to_list() == [
        {"maps": "map", "reduces": "reduce"}[queue] for queue in workload.jobs["queue"]]


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        folder = tmp_path / name
        (folder / "fleet").mkdir(parents=True)
        workload, fleet = draw_batch(MapReduce(jobs=7, slow_share=0.2, map_output_bytes=1.0), 9)
        workload.write(folder)
        fleet.write(folder / "fleet")
    files = [str(path.relative_to(tmp_path / "a")) for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert len(files) == 9
    assert filecmp.cmpfiles(tmp_path / "a", tmp_path / "b", files, shallow=False) == (files, [], [])
    again, machines = read_workload(tmp_path / "a"), read_fleet(tmp_path / "a" / "fleet")
    assert again.stages.equals(workload.stages)
    assert again.tasks.equals(workload.tasks)
    assert np.array_equal(machines.speeds, fleet.speeds)
    assert again.provenance.notes["seed"] == 9
    assert msgspec.convert(again.provenance.notes["parameters"], MapReduce) == MapReduce(
        jobs=7, slow_share=0.2, map_output_bytes=1.0)


@pytest.mark.parametrize(("changes", "message"), [
    ({"jobs": 0}, "jobs must be 1 or more, not 0"),
    ({"map_machines": 0}, "map_machines must be 1 or more, not 0"),
    ({"reduce_machines": -1}, "reduce_machines must be 1 or more, not -1"),
    ({"slots": 0}, "slots must be 1 or more, not 0"),
    ({"slow_share": 1.5}, "slow_share must be a share from 0 to 1, not 1.5"),
    ({"gap": -1.0}, "gap must be finite, 0 or more, not -1.0"),
    ({"gap": float("nan")}, "gap must be finite, 0 or more, not nan"),
    ({"map_output_bytes": float("inf")}, "map_output_bytes must be finite, 0 or more, not inf"),
    ({"copy_bytes_per_second": 0.0}, "copy_bytes_per_second must be a positive number, not 0.0"),
    ({"factors": (0.0, 1.0)}, r"factors must be from a least above 0 to a most, not \(0.0, 1.0\)"),
    ({"slow_factors": (2.0, 1.0)}, "slow_factors must be from a least above 0 to a most"),
    ({"classes": ()}, "shares of the classes must not all be 0"),
    ({"jobs": 3_000_000}, "jobs times machines must be at most 500,000,000, not 600000000"),
])
def test_bad_parameters_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        MapReduce(**changes)


@pytest.mark.parametrize(("changes", "message"), [
    ({"maps": (5, 3)}, r"class x: maps must be from a least to a most, 0 or more, not \(5, 3\)"),
    ({"reduces": (-1, 3)}, "class x: reduces must be from a least to a most, 0 or more"),
    ({"map_seconds": (0.0, float("inf"))}, "class x: map_seconds must be from a least to a most"),
    ({"maps": (0, 4), "reduces": (0, 4)}, "class x: a job must have a task"),
])
def test_a_bad_class_is_named(changes, message):
    with pytest.raises(InputError, match=message):
        JobClass("x", 1.0, **changes)


def test_too_many_tasks_are_refused_before_they_are_drawn():
    with pytest.raises(InputError, match="jobs must have at most 200,000,000 tasks together, not 3000000003"):
        draw_batch(MapReduce(jobs=3, classes=(JobClass("x", 1.0, maps=(10**9, 10**9), reduces=(1, 1)),)), 1)
    with pytest.raises(InputError, match="seed must be from 0 to"):
        draw_batch(MapReduce(), -1)


# The command


def test_generate_from_end_to_end(tmp_path):
    done = subak("generate-mapreduce", "--workload", "hybrid", "--jobs", 2, "--cluster", 3, "--seed", 4, "--out",
                 tmp_path / "W")
    assert done.returncode == 0, done.stderr
    workload = read_workload(tmp_path / "W")
    expected, fleet = draw_batch(MapReduce(jobs=2, classes=WORKLOADS["hybrid"], slow_share=0.4), 4)
    assert workload.tasks.equals(expected.tasks)
    assert np.array_equal(read_fleet(tmp_path / "W" / "fleet").speeds, fleet.speeds)
    assert "200 machines, 80 of them slow" in done.stdout
    done = subak("simulate", tmp_path / "W", "--scheduler", "first-fit+backfill", "--out", tmp_path / "R")
    assert done.returncode == 0, done.stderr
    tasks = pl.read_parquet(tmp_path / "R" / "tasks.parquet")
    assert set(tasks["status"]) == {"FINISHED"}
    column = {name: number for number, name in enumerate(fleet.machines["machine"])}
    machine = [column[name] for name in tasks["machine"]]
    group = expected.stages["speed_group"].gather(expected.tasks["stage"]).to_numpy()
    seconds = expected.tasks["run_time"].to_numpy() * fleet.speeds[group, machine]
    assert (tasks["finish"] - tasks["start"]).to_numpy() == pytest.approx(seconds, rel=1e-6)
    assert json.loads((tmp_path / "R" / "summary.json").read_text())


@pytest.mark.parametrize(("arguments", "words"), [
    (("--cluster", 7), "--cluster: must be one of 1, 2, 3, 4, 5, 6, not 7"),
    (("--cluster", 2, "--slow-share", 0.1), "--slow-share: stands instead of --cluster"),
    (("--slow-share", 2), "slow_share must be a share from 0 to 1, not 2.0"),
    (("--jobs", 0), "jobs must be 1 or more, not 0"),
    (("--seed", -1), "seed must be from 0 to"),
    (("--workload", "both"), "'both' is not one of 'single', 'hybrid'"),
])
def test_a_mistake_is_one_line_and_nothing_is_written(tmp_path, arguments, words):
    done = subak("generate-mapreduce", *arguments, "--out", tmp_path / "W")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
