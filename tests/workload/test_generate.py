"""Generated workloads: valid, the same however they are drawn, and each small model as its parameters say."""
import filecmp
import re
from itertools import pairwise

import msgspec
import numpy as np
import polars as pl
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from subak.cli.usage.generate import generate as command
from subak.errors import InputError
from subak.fleet.table import read_fleet, uniform_fleet
from subak.resources import Resource
from subak.workload.constraints import satisfied
from subak.workload.google_like.chunks import Carried, arrivals, chunk_of
from subak.workload.google_like.draw import Units
from subak.workload.google_like.generate import Length, generate, write_generated
from subak.workload.google_like.google import (
    CONFIGURATIONS,
    google_machines,
    google_priorities,
    megha_constraints,
    with_attributes,
)
from subak.workload.google_like.load import dynamism_for, loads, loads_until, mean_run_time
from subak.workload.google_like.parameters import (
    SHARES,
    TABLE_2,
    Constraints,
    Diurnal,
    Failures,
    Jobs,
    Makespans,
    Parameters,
    Priorities,
    Queues,
    RequestClass,
    Stages,
    read_parameters,
    write_parameters,
)
from subak.workload.predicates import Constraint
from subak.workload.table import read_workload

SMALL = Jobs(single=0.3, mass=6.0, disparity=1.5, most=20)
LONE = Parameters(
    diurnal=Diurnal(0.7, period=40.0), queues=Queues(5, 1.2, 2), constraints=megha_constraints(0.5),
    priorities=google_priorities(), failures=Failures(0.1, 0.2),
)
EVERYTHING = msgspec.structs.replace(LONE, jobs=SMALL, stages=Stages(0.6, 4, 0.5), gangs=0.3)
CPU = (Resource("cpu", 0.5, "cores"),)


def written(folder, parameters, seed=1, threads=2, **length):
    """The workload as it is read back."""
    folder.mkdir(exist_ok=True)
    write_generated(folder, parameters, seed, Length(**length), threads)
    return read_workload(folder)


def tables(parameters, seed, length, **options):
    """The three whole tables, without a disk."""
    chunks = list(generate(parameters, seed, length, **options))
    return [pl.concat([getattr(chunk, name) for chunk in chunks]) for name in ("jobs", "stages", "tasks")]


def by_task(workload):
    """One row a task, with its stage's and its job's columns."""
    jobs = workload.jobs.rename({"job": "id"}).with_row_index("job")
    stages = workload.stages.with_row_index("stage")
    return workload.tasks.join(stages, on="stage").join(jobs, on="job")


def near(count, total, share):
    """Whether *count* of *total* is what a *share* gives, within 5 standard deviations."""
    return abs(count - total * share) <= 5 * np.sqrt(total * share * (1 - share)) + 1e-9


# Folders ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("parameters", [Parameters(), LONE, EVERYTHING, Parameters(jobs=SMALL)])
def test_a_folder_reads_back_and_says_how_it_was_made(tmp_path, parameters):
    workload = written(tmp_path / "w", parameters, seed=2**64 - 1, tasks=5000)
    assert len(workload.tasks) == 5000
    assert not list((tmp_path / "w").glob(".*"))
    notes = workload.provenance.notes
    assert (notes["seed"], notes["length"], notes["tasks"]) == (str(2**64 - 1), {"tasks": 5000}, 5000)
    assert msgspec.convert(notes["parameters"], Parameters) == parameters


@settings(max_examples=15, deadline=None)
@given(chunk=st.integers(1, 160), threads=st.integers(1, 4), seed=st.integers(0, 2**64 - 1),
       parameters=st.sampled_from([Parameters(), LONE, EVERYTHING]),
       length=st.sampled_from([Length(tasks=120), Length(seconds=5.0)]))
def test_neither_chunks_nor_threads_change_anything(chunk, threads, seed, parameters, length):
    whole = tables(parameters, seed, length, threads=1)
    cut = tables(parameters, seed, length, threads=threads, chunk_tasks=chunk)
    assert all(mine.equals(other) for mine, other in zip(whole, cut, strict=True))


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name, threads in (("a", 1), ("b", 3)):
        written(tmp_path / name, EVERYTHING, seed=4, threads=threads, tasks=3000)
    written(tmp_path / "c", EVERYTHING, seed=5, tasks=3000)
    names = ["jobs.parquet", "stages.parquet", "tasks.parquet", "workload.toml"]
    assert filecmp.cmpfiles(tmp_path / "a", tmp_path / "b", names, shallow=False)[0] == names
    assert not filecmp.cmp(tmp_path / "a" / "tasks.parquet", tmp_path / "c" / "tasks.parquet", shallow=False)


@pytest.mark.parametrize("parameters", [Parameters(), LONE, EVERYTHING])
def test_a_longer_workload_begins_like_a_shorter_one(parameters):
    short = tables(parameters, 3, Length(tasks=500))[2]
    long = tables(parameters, 3, Length(tasks=2000))[2]
    columns = ["arrival", "run_time", "index"]
    assert long.head(500).select(columns).equals(short.select(columns))


@pytest.mark.parametrize("parameters", [Parameters(), EVERYTHING])
def test_seconds_keep_what_arrives_before(parameters):
    timed = tables(parameters, 3, Length(seconds=25.0))[2]
    counted = tables(parameters, 3, Length(tasks=2 * len(timed)))[2]
    assert timed["arrival"].max() < 25.0
    assert len(timed) == (counted["arrival"] < 25.0).sum()


def test_seconds_without_a_task_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no task arrives before 1e-09 s"):
        written(tmp_path / "w", Parameters(), seconds=1e-9)


@pytest.mark.parametrize(("length", "rule"), [
    ({}, "number of tasks or of seconds, and not both"), ({"tasks": 5, "seconds": 5.0}, "not both"),
    ({"tasks": 0}, "tasks must be from 1 to 2147483647, not 0"), ({"seconds": 0.0}, "positive number, not 0.0"),
    ({"seconds": float("inf")}, "positive number, not inf"),
])
def test_a_length_is_one_positive_number(length, rule):
    with pytest.raises(InputError, match=rule):
        Length(**length)


def test_a_run_time_beyond_all_numbers_is_refused():
    with pytest.raises(InputError, match="mass and disparity give a run time that never ends, row"):
        tables(Parameters(tasks=Makespans(1e308, 1e4)), 1, Length(tasks=100_000))


# Lone tasks and jobs, by hand ---------------------------------------------------------------------------------------

def units(sizes, run_time, **columns):
    """Units of one task kind, request, user and stage each, unless *columns* says otherwise."""
    count = len(sizes)
    default = {"gap": np.ones(count), "service": np.zeros(count, np.bool_), "level": np.full(count, 250),
               "request": np.zeros(count, np.int64), "user": np.zeros(count, np.int64),
               "stages": np.ones(count, np.int64), "fan_in": np.zeros(count, np.bool_),
               "gang": np.zeros(count, np.bool_), "constraints": np.zeros((1, count), np.int64),
               "ending": np.zeros(len(run_time), np.uint8)}
    given = {name: np.array(value) for name, value in columns.items()}
    return Units(**{**default, **given, "sizes": np.array(sizes), "run_time": np.array(run_time, float)})


def test_alike_tasks_share_a_job_across_chunks():
    parameters = Parameters(requests=(RequestClass(1, {"cpu": 1.0}), RequestClass(1, {"cpu": 2.0})), resources=CPU,
                            queues=Queues(3, 1.0, 2))
    carried = Carried()
    first = chunk_of(parameters, units([1, 1, 1], [5, 6, 7], request=[1, 0, 1], user=[2, 0, 2]),
                     np.array([1.0, 2.0, 3.0]), carried)
    second = chunk_of(parameters, units([1, 1], [8, 9], request=[0, 0], service=[False, True]),
                      np.array([4.0, 5.0]), carried)
    assert first.tasks["stage"].to_list() == [0, 1, 0] and second.tasks["stage"].to_list() == [1, 2]
    assert first.tasks["index"].to_list() == [0, 1, 2] and second.tasks["index"].to_list() == [3, 4]
    assert first.stages["cpu"].to_list() == [4, 2] and second.stages["cpu"].to_list() == [2]  # units of half a core
    assert first.stages["priority"].to_list() == [250, 250]
    assert second.stages["kind"].to_list() == ["SERVICE"] and second.stages["job"].to_list() == [2]
    assert first.jobs["queue"].to_list() == ["organisation/department 1/user 3", "organisation/department 1/user 1"]
    assert (carried.jobs, carried.stages, carried.tasks) == (3, 3, 5)


def test_jobs_have_stages_in_chains_and_fan_ins():
    parameters = Parameters(jobs=Jobs(), stages=Stages(1.0), gangs=0.5)
    carried = Carried(jobs=10, stages=100, tasks=1000)
    chunk = chunk_of(parameters, units([4, 3, 1], range(8), stages=[3, 3, 1], fan_in=[True, False, True],
                                       gang=[True, False, False], constraints=np.zeros((3, 3), np.int64)),
                     np.array([1.0, 2.0, 2.0]), carried)
    assert chunk.jobs["job"].to_list() == ["j10", "j11", "j12"]
    assert chunk.stages["job"].to_list() == [10, 10, 10, 11, 11, 11, 12]
    assert chunk.stages["name"].to_list() == [f"stage {number}" for number in (0, 1, 2, 0, 1, 2, 0)]
    assert chunk.stages["depends_on"].to_list() == [[], [], [100, 101], [], [103], [104], []]
    assert chunk.stages["gang"].to_list() == [True] * 3 + [False] * 4
    assert chunk.tasks["stage"].to_list() == [100, 100, 101, 102, 103, 104, 105, 106]
    assert chunk.tasks["index"].to_list() == [0, 1, 2, 3, 0, 1, 2, 0]
    assert chunk.tasks["arrival"].to_list() == [1.0] * 4 + [2.0] * 4
    assert chunk.tasks["run_time"].to_list() == list(range(8))


def test_endings_and_constraints_are_written_as_drawn():
    parameters = Parameters(
        failures=Failures(0.5, 0.5),
        constraints=Constraints(1.0, ((Constraint("a", "=", "x"), 0.5), (Constraint("b", ">", "3"), 0.5))))
    chunk = chunk_of(parameters, units([1] * 4, [1] * 4, service=[False, True, False, True], ending=[0, 0, 1, 2],
                                       constraints=[[0, 1, 2, 3]]), np.arange(4.0), Carried())
    assert chunk.tasks["outcome"].to_list() == ["FINISH", "KILL", "FAIL", "KILL"]
    first = {"attribute": "a", "operator": "=", "value": "x"}
    second = {"attribute": "b", "operator": ">", "value": "3"}
    assert chunk.stages["constraints"].to_list() == [[], [first], [second], [first, second]]


def test_arrivals_are_running_sums():
    carried = Carried()
    assert arrivals(Parameters(), np.array([1.0, 0.0, 2.5]), carried).tolist() == [1.0, 1.0, 3.5]
    assert arrivals(Parameters(), np.array([0.5]), carried).tolist() == [4.0]


# Small models, by their shares --------------------------------------------------------------------------------------

def test_the_defaults_are_the_papers_model(tmp_path):
    tasks = by_task(written(tmp_path / "w", Parameters(), tasks=200_000))
    assert tasks["arrival"].max() / 200_000 == pytest.approx(0.05, rel=0.01)
    assert near((tasks["kind"] == "TASK").sum(), 200_000, 0.7)
    assert tasks["priority"].min() >= 1 and tasks["priority"].max() <= 1000
    for kind, rate, median in (("TASK", 6, 1700 / 3.8), ("SERVICE", 3, 8000 / 24)):
        own = tasks.filter(pl.col("kind") == kind)
        assert own["run_time"].median() == pytest.approx(median, rel=0.03)
        law = stats.truncexpon(rate, scale=1 / rate)
        counts, _ = np.histogram(own["priority"], bins=10, range=(0.5, 1000.5))
        expected = np.diff(law.cdf(np.linspace(0, 1, 11)))
        assert stats.chisquare(counts, expected / expected.sum() * len(own)).pvalue > 1e-3
    for request in TABLE_2:
        asks = (tasks["cpu"] == round(request.amounts["cpu"] * 1e8)) & (
            tasks["memory"] == round(request.amounts["memory"] * 1e8))
        assert near(asks.sum(), 200_000, request.share)
    assert "outcome" not in tasks.columns and "gang" not in tasks.columns and "scheduling_class" not in tasks.columns


def test_few_priority_levels_make_few_jobs(tmp_path):
    workload = written(tmp_path / "w", Parameters(priority_levels=4), tasks=20_000)
    assert workload.stages["priority"].unique().sort().to_list() == [250, 500, 750, 1000]
    assert len(workload.jobs) <= 4 * 2 * 4


def test_jobs_keep_the_rate_of_the_tasks(tmp_path):
    workload = written(tmp_path / "w", Parameters(jobs=SMALL), tasks=200_000)
    assert workload.tasks["arrival"].max() / 200_000 == pytest.approx(0.05, rel=0.02)
    per_job = by_task(workload).group_by("job").agg(pl.len(), pl.col("arrival").n_unique().alias("times"),
                                                    pl.col("index").max().alias("last"))
    assert (per_job["times"] == 1).all() and (per_job["last"] == per_job["len"] - 1).all()
    assert per_job["len"].max() == SMALL.most


def test_a_share_of_the_jobs_has_stages(tmp_path):
    workload = written(tmp_path / "w", Parameters(jobs=Jobs(0.0, 60.0, 1.5, 500), stages=Stages(0.4, 5, 0.25)),
                       tasks=300_000)
    jobs = workload.stages.group_by("job").agg(pl.len(), pl.col("depends_on").list.len().max().alias("waits"))
    several = jobs.filter(pl.col("len") > 1)
    assert near(len(several), len(jobs), 0.4)
    for count in (2, 3, 4, 5):
        assert near((several["len"] == count).sum(), len(several), 0.25)
    long = several.filter(pl.col("len") > 2)
    assert near((long["waits"] > 1).sum(), len(long), 0.25)


def test_gangs_are_recorded(tmp_path):
    workload = written(tmp_path / "w", Parameters(jobs=SMALL, gangs=0.2), tasks=50_000)
    assert near(workload.stages["gang"].sum(), len(workload.stages), 0.2)


def test_users_and_departments(tmp_path):
    tasks = by_task(written(tmp_path / "w", Parameters(queues=Queues(4, 1.0, 2)), tasks=50_000))
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4
    for user in (1, 2, 3, 4):
        own = tasks.filter(pl.col("user") == f"user {user}")
        assert near(len(own), 50_000, 1 / user / harmonic)
        assert own["queue"].unique().to_list() == [f"organisation/department {2 - user % 2}/user {user}"]


def test_priorities_and_classes_come_as_listed(tmp_path):
    table = Priorities({"0/0": 3.0, "4/1": 1.0}, {"9/3": 1.0, "0/2": 1.0, "11/0": 0.0})
    tasks = by_task(written(tmp_path / "w", Parameters(priorities=table), tasks=40_000))
    found = {(kind, f"{priority}/{latency}"): count for kind, priority, latency, count in tasks.group_by(
        "kind", "priority", "scheduling_class").len().rows()}
    expected = {("TASK", "0/0"): 0.525, ("TASK", "4/1"): 0.175, ("SERVICE", "9/3"): 0.15, ("SERVICE", "0/2"): 0.15}
    assert set(found) == set(expected)
    assert all(near(found[key], 40_000, share) for key, share in expected.items())


def test_googles_priorities_have_the_tables_shares():
    table = google_priorities()
    finished = sum(table.tasks.values())
    assert finished == pytest.approx(18_217_975)  # the file's FINISH events
    assert sum(weight for name, weight in table.tasks.items() if name.endswith("/0")) / finished == pytest.approx(
        0.8386, abs=1e-4)  # Table III
    assert sum(weight for name, weight in table.tasks.items() if name.startswith("9/")) == pytest.approx(49_190)


def test_failures_shorten_what_they_end(tmp_path):
    parameters = Parameters(type=1.0, failures=Failures(0.2, 0.3), tasks=Makespans(100, 1.01))
    tasks = written(tmp_path / "w", parameters, tasks=50_000).tasks
    means = dict(tasks.group_by("outcome").agg(pl.col("run_time").mean()).rows())
    for outcome, share, mean in (("FINISH", 0.5, 100), ("FAIL", 0.2, 50), ("KILL", 0.3, 50)):
        assert near((tasks["outcome"] == outcome).sum(), 50_000, share)
        assert means[outcome] == pytest.approx(mean, rel=0.02)
    assert tasks["run_time"].mean() == pytest.approx(mean_run_time(parameters), rel=0.01) == pytest.approx(75, rel=0.01)


def test_arrivals_follow_the_day(tmp_path):
    arrival = written(tmp_path / "w", Parameters(dynamism=1.0, diurnal=Diurnal(0.5)), seconds=10 * 86_400.0).tasks[
        "arrival"]
    assert len(arrival) == pytest.approx(864_000, rel=0.005)
    quarters = np.histogram(arrival % 86_400, bins=4, range=(0, 86_400))[0] / len(arrival)
    swing = 0.5 / (2 * np.pi)
    assert quarters == pytest.approx([0.25 + swing, 0.25 + swing, 0.25 - swing, 0.25 - swing], abs=0.003)


# Constraints and machines -------------------------------------------------------------------------------------------

def test_a_share_of_the_tasks_has_constraints(tmp_path):
    law = Constraints(0.4, ((Constraint("a", "=", "x"), 0.5), (Constraint("b", "!=", "y"), 0.2)))
    workload = written(tmp_path / "w", Parameters(constraints=law, jobs=SMALL), tasks=60_000)
    lists = [tuple(one["attribute"] for one in row) for row in workload.stages["constraints"].to_list()]
    some = 1 - 0.5 * 0.8
    expected = {(): 0.6, ("a",): 0.4 * 0.4 / some, ("b",): 0.4 * 0.1 / some, ("a", "b"): 0.4 * 0.1 / some}
    for names, share in expected.items():
        assert near(lists.count(names), len(lists), share)


CHOICES = [("=", "x"), ("=", ""), ("!=", "x"), ("!=", ""), ("<", "3"), ("<=", "-2"), (">", "0"), (">=", "2.5"),
           ("<", "0")]


@given(share=st.floats(0, 1), count=st.integers(1, 200), seed=st.integers(0, 2**64 - 1))
def test_machines_meet_constraints_by_the_share(share, count, seed):
    choices = tuple((Constraint(f"a{row}", *choice), 0.1) for row, choice in enumerate(CHOICES))
    law = Constraints(1.0, choices, (share,) * len(choices))
    fleet = with_attributes(uniform_fleet(count, {"cpu": 4.0}, CPU), law, seed)
    for constraint, _ in choices:
        assert satisfied(constraint, fleet.attribute(constraint.attribute)).sum() == round(share * count)
    assert fleet.capacity.tolist() == [[8] * count]


def test_attributes_of_machines_are_independent():
    fleet = with_attributes(google_machines(), megha_constraints(0.5))
    met = [satisfied(constraint, fleet.attribute(constraint.attribute))
           for constraint, _ in megha_constraints(0.5).choices[:20]]
    assert [round(one.mean(), 3) for one in met[:2]] == [0.376, 0.657]
    both = np.corrcoef(np.array(met)) - np.eye(20)
    assert abs(both).max() < 5 / np.sqrt(12_583)


def test_attributes_need_shares_and_one_constraint_each():
    fleet, one = uniform_fleet(3, {"cpu": 1.0}, CPU), (Constraint("a", "=", "x"), 0.5)
    with pytest.raises(InputError, match="met_by must give the share"):
        with_attributes(fleet, Constraints(1.0, (one,)))
    with pytest.raises(InputError, match="'a' is there twice or already"):
        with_attributes(fleet, Constraints(1.0, (one, one), (0.5, 0.5)))
    fleet = with_attributes(fleet, Constraints(1.0, (one,), (0.5,)))
    with pytest.raises(InputError, match="'a' is there twice or already"):
        with_attributes(fleet, Constraints(1.0, (one,), (0.5,)))


def test_googles_machines_are_table_1():
    fleet = google_machines()
    assert len(fleet.machines) == 12_583
    counts = fleet.machines.group_by("cpu", "memory").len()
    assert {(round(cpu * 1e-8, 5), round(memory * 1e-8, 5)): count for cpu, memory, count in counts.rows()} == {
        (cpu, memory): count for count, cpu, memory in CONFIGURATIONS}
    assert fleet.capacity.sum(axis=1) * 1e-8 == pytest.approx([6659.0, 5914.91], rel=1e-5)


# Load ---------------------------------------------------------------------------------------------------------------

def test_load_is_little_s_law_of_the_scarcer_resource():
    two = (Resource("cpu", 0.5, "cores"), Resource("memory", 1.0, "GB"))
    parameters = Parameters(type=1.0, tasks=Makespans(100, 2), resources=two, dynamism=2.0, requests=(
        RequestClass(3, {"cpu": 1.0, "memory": 2.0}), RequestClass(1, {"cpu": 2.0, "memory": 6.0})))
    fleet = uniform_fleet(10, {"cpu": 8.0, "memory": 32.0}, two)
    # 50 tasks run at a time, which ask for 1.25 cores and 3 GB each, of 80 cores and 320 GB.
    assert loads(parameters, fleet) == pytest.approx({"cpu": 62.5 / 80, "memory": 150 / 320})
    assert dynamism_for(parameters, fleet, 0.5) == pytest.approx(2.0 * (62.5 / 80) / 0.5)


def test_the_load_is_reached(tmp_path):
    parameters = Parameters(tasks=Makespans(20, 1.5), services=Makespans(50, 2), failures=Failures(0.1, 0.1))
    fleet = uniform_fleet(100, {"cpu": 0.5, "memory": 0.5}, SHARES)
    parameters = msgspec.structs.replace(parameters, dynamism=dynamism_for(parameters, fleet, 0.8))
    workload = written(tmp_path / "w", parameters, tasks=400_000)  # the first ones find an empty fleet: 1 %
    end = workload.tasks["arrival"][-1]
    found = loads_until(tmp_path / "w", fleet, end)
    assert found == pytest.approx(loads(parameters, fleet), rel=0.03)
    assert max(found.values()) == pytest.approx(0.8, rel=0.03)
    half = loads_until(tmp_path / "w", fleet, end / 2)
    tasks = by_task(workload).filter(pl.col("arrival") < end / 2)
    seconds = np.minimum(tasks["run_time"], end / 2 - tasks["arrival"])
    assert half["cpu"] == pytest.approx((seconds * tasks["cpu"] * 1e-8).sum() / (end / 2) / 50)


@pytest.mark.parametrize("load", [0.0, -1.0, float("nan"), float("inf")])
def test_a_load_is_positive(load):
    with pytest.raises(InputError, match="load must be a positive share"):
        dynamism_for(Parameters(), google_machines(), load)


def test_a_load_needs_a_fleet_that_has_what_is_asked_for():
    with pytest.raises(InputError, match="none of a resource"):
        dynamism_for(Parameters(), uniform_fleet(3, {"cpu": 1.0, "memory": 0.0}, SHARES), 0.5)
    with pytest.raises(InputError, match="resources must be the same"):
        dynamism_for(Parameters(), uniform_fleet(3, {"cpu": 1.0}, CPU), 0.5)


# Parameters ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("parameters", [Parameters(), LONE, EVERYTHING])
def test_parameters_go_to_a_file_and_back(tmp_path, parameters):
    write_parameters(parameters, tmp_path / "p.toml")
    assert read_parameters(tmp_path / "p.toml") == parameters


WRONG = {
    "dynamism = 0": "dynamism .* must be a positive number of seconds, not 0.0",
    "dynamism = nan": "not nan",
    "gap_shape = 1": r"gap_shape must be greater than 1, or gaps have no mean, .*, not 1.0$",
    "type = 1.5": "must be a share from 0 to 1, not 1.5",
    "gangs = 0.5": r"gangs need jobs: give \[jobs\]",
    "priority_levels = 0": "priority_levels must be from 1 to 1000, not 0",
    "task_priority_rate = 0": "task_priority_rate must be a positive number",
    "service_priority_rate = -1": "service_priority_rate must be a positive number",
    "name = ''": "name must not be empty",
    "tasks = {mass = 5, disparity = 1}": r"disparity \(mean / median\) must be greater than 1, not 1.0",
    "services = {mass = 0, disparity = 2}": "mass must be a positive number of seconds, not 0.0",
    "requests = []": "there must be one at least",
    "requests = [{share = 0, amounts = {cpu = 1, memory = 1}}]": "must not all be 0",
    "requests = [{share = -1, amounts = {cpu = 1, memory = 1}}]": "share must be finite and not negative, not -1.0",
    "requests = [{share = 1, amounts = {cpu = 1}}]": "class 0 must name each of cpu, memory once",
    "requests = [{share = 1, amounts = {cpu = 1, memory = -1}}]": "memory must not be negative",
    "requests = [{share = 1, amounts = {cpu = 0, memory = 0}}]": "class 0 must ask for something",
    "resources = []": "resources must be named once each",
    "resources = [{name = 'gang'}]": "not the name of a column",
    "jobs = {single = 2}": "jobs: single must be a share",
    "jobs = {mass = 0}": "jobs: mass must be a positive number",
    "jobs = {disparity = 1}": "jobs: disparity",
    "jobs = {most = 0}": "jobs: most must be from 1 to",
    "stages = {share = 0.5}": r"stages need jobs: give \[jobs\]",
    "stages = {share = 2}": "stages: share must be a share",
    "stages = {share = 0.5, most = 1}": "stages: most must be from 2 to 100, not 1",
    "stages = {share = 0.5, fan_in = 2}": "stages: fan_in must be a share",
    "priorities = {tasks = {four = 1}, services = {'1/1' = 1}}": "named PRIORITY/CLASS, such as 4/0, not 'four'",
    "priorities = {tasks = {}, services = {'1/1' = 1}}": "weights of tasks must not all be 0",
    "priorities = {tasks = {'1/1' = 1}, services = {'1/1' = -1}}": "weights of services must be finite and not neg",
    "constraints = {rate = 2, choices = [[{attribute = 'a', operator = '='}, 1]]}": "constraints: rate",
    "constraints = {rate = 1, choices = []}": "there must be 1 to 62 choices, not 0",
    "constraints = {rate = 1, choices = [[{attribute = '', operator = '='}, 1]]}": "needs an attribute",
    "constraints = {rate = 1, choices = [[{attribute = 'a', operator = '~'}, 1]]}": "operator must be one of",
    "constraints = {rate = 1, choices = [[{attribute = 'a', operator = '<', value = 'x'}, 1]]}": "a < needs a number",
    "constraints = {rate = 1, choices = [[{attribute = 'a', operator = '='}, 2]]}": "frequency of a =",
    "constraints = {rate = 1, choices = [[{attribute = 'a', operator = '='}, 0]]}": "a frequency must be above 0",
    "constraints = {rate = 1, choices = [[{attribute = 'a', operator = '='}, 1]], met_by = [1, 1]}": "met_by must be",
    "constraints = {rate = 1, choices = [[{attribute = 'a', operator = '='}, 1]], met_by = [2]}": "met_by must be a",
    "queues = {users = 0}": "queues: users must be from 1 to",
    "queues = {users = 5, exponent = -1}": "queues: exponent",
    "queues = {users = 5, departments = 6}": "departments must be from 1 to the number of users, not 6",
    "diurnal = {amplitude = 1}": "amplitude must be 0 or more and below 1, not 1.0",
    "diurnal = {amplitude = 0.5, period = 0}": "diurnal: period must be a positive number",
    "diurnal = {amplitude = 0.5, phase = inf}": "diurnal: phase",
    "failures = {fail = 2}": "failures: fail must be a share",
    "failures = {kill = -1}": "failures: kill must be a share",
    "failures = {fail = 0.6, kill = 0.6}": "together must be at most 1",
    "dynamisme = 5": "unknown field",
    "dynamism = 'x'": "dynamism: a duration must be a number of seconds",
    "dynamism": "p.toml: ",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_parameter_is_named_in_one_line(tmp_path, text):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_parameters(tmp_path / "p.toml")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'p.toml'}: ") and "\n" not in message
    assert re.search(WRONG[text], message), message


# The command line ---------------------------------------------------------------------------------------------------

@pytest.fixture
def run(capsys, tmp_path):
    """Run `subak generate` in this process, writing W; return what it says."""
    app = typer.Typer()
    app.command()(command)

    def call(*words):
        app([*map(str, words), "--out", str(tmp_path / "W")], standalone_mode=False)
        return capsys.readouterr().out

    return call


def test_tasks_come_with_googles_machines(run, tmp_path):
    said = run("--tasks", 2000)
    assert "2,000 tasks in " in said and "12,583 machines, Google's of 2011" in said
    # 20 tasks a second of 3,590 s, each 0.0368 and 0.0257 on average, on 6,659 and 5,914.91.
    assert "cpu 39.7%, memory 31.2% in the long run" in said
    assert len(read_workload(tmp_path / "W").tasks) == 2000
    assert len(read_fleet(tmp_path / "W" / "fleet").machines) == 12_583


def test_load_sets_the_dynamism(run, tmp_path):
    said = run("--seconds", 600, "--load", 0.8)
    assert "cpu 80.0%, memory 62.9% in the long run" in said
    notes = read_workload(tmp_path / "W").provenance.notes
    assert notes["parameters"]["dynamism"] == pytest.approx(0.05 * 0.3968 / 0.8, rel=0.001)
    assert notes["length"] == {"seconds": 600.0}


def test_every_option_reaches_the_parameters(run, tmp_path):
    run("--tasks", 500, "--seed", 9, "--dynamism", 1, "--gap-shape", 3, "--type", 0.5, "--task-mass", 10,
        "--task-disparity", 2, "--service-mass", 20, "--service-disparity", 3, "--users", 7, "--diurnal", 0.2,
        "--constraints", 0.5, "--google-classes", "--machines", 40, "--capacity", "cpu=1", "--capacity", "memory=1")
    notes = read_workload(tmp_path / "W").provenance.notes
    assert notes["seed"] == "9"
    assert msgspec.convert(notes["parameters"], Parameters) == Parameters(
        dynamism=1.0, gap_shape=3.0, type=0.5, tasks=Makespans(10, 2), services=Makespans(20, 3), queues=Queues(7),
        diurnal=Diurnal(0.2), constraints=megha_constraints(0.5), priorities=google_priorities())
    fleet = read_fleet(tmp_path / "W" / "fleet")
    assert len(fleet.machines) == 40 and fleet.attributes["attribute"].n_unique() == 21


def test_a_parameter_file_is_the_start(run, tmp_path):
    write_parameters(EVERYTHING, tmp_path / "p.toml")
    run("--parameters", tmp_path / "p.toml", "--tasks", 800, "--service-mass", 9000)
    notes = read_workload(tmp_path / "W").provenance.notes
    assert msgspec.convert(notes["parameters"], Parameters) == msgspec.structs.replace(
        EVERYTHING, services=Makespans(9000, 24))


def test_other_resources_need_a_fleet_of_their_own(run, tmp_path):
    write_parameters(Parameters(resources=CPU, requests=(RequestClass(1, {"cpu": 1}),)), tmp_path / "p.toml")
    assert "No fleet" in run("--parameters", tmp_path / "p.toml", "--tasks", 10)
    assert not (tmp_path / "W" / "fleet").exists()
    with pytest.raises(InputError, match="--load: needs a fleet"):
        run("--parameters", tmp_path / "p.toml", "--tasks", 10, "--load", 0.5, "--overwrite")
    said = run("--parameters", tmp_path / "p.toml", "--tasks", 10, "--overwrite", "--machines", 5, "--capacity",
               "cpu=2")
    assert "5 machines" in said
    with pytest.raises(InputError, match="resources must be the same"):
        run("--tasks", 10, "--fleet", (tmp_path / "W" / "fleet").rename(tmp_path / "F"), "--overwrite")


def test_attributes_of_a_given_fleet_stay(run, tmp_path):
    with_attributes(google_machines(), megha_constraints(0.5), seed=7).write(_folder(tmp_path / "F"))
    said = run("--tasks", 10, "--fleet", tmp_path / "F", "--constraints", 0.5)
    assert "whose attributes stay as they are" in said
    assert read_fleet(tmp_path / "W" / "fleet").attributes.equals(read_fleet(tmp_path / "F").attributes)


def test_constraints_without_shares_say_so(run, tmp_path):
    law = Constraints(1.0, ((Constraint("a", "=", "x"), 1.0),))
    write_parameters(Parameters(constraints=law), tmp_path / "p.toml")
    assert "the machines have no attributes" in run("--tasks", 10, "--parameters", tmp_path / "p.toml")


def _folder(path):
    path.mkdir()
    return path


@pytest.mark.parametrize(("words", "rule"), [
    (("--seconds", 1e300), "seconds: must be fewer than 2147483647 times the dynamism of 0.05 s"),
    ((), "give a number of tasks or of seconds"),
    (("--tasks", 5, "--seconds", 5), "not both"),
    (("--tasks", 0), "tasks must be from 1"),
    (("--tasks", 5, "--load", 0.5, "--dynamism", 1), "--dynamism must be left out"),
    (("--tasks", 5, "--seed", -1), "seed must be from 0"),
    (("--tasks", 5, "--task-disparity", 1), "disparity .* must be greater than 1, not 1.0"),
    (("--tasks", 5, "--capacity", "cpu=1"), "capacity: is that of alike machines; give machines"),
    (("--tasks", 5, "--fleet", "nowhere"), "nowhere/fleet.toml: no such file"),
    (("--tasks", 5, "--fleet", "x", "--machines", 5), "fleet and machines: give one of them, not both"),
    (("--tasks", 5, "--parameters", "nowhere.toml"), "nowhere.toml: no such file"),
])
def test_mistakes_write_nothing(run, tmp_path, words, rule):
    with pytest.raises(InputError, match=rule):
        run(*words)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_overwritten_unasked(run, tmp_path):
    run("--tasks", 5)
    with pytest.raises(InputError, match="exists already"):
        run("--tasks", 6)
    run("--tasks", 6, "--overwrite")
    assert len(read_workload(tmp_path / "W").tasks) == 6


def test_pairs_of_seeds_share_no_task():
    first, second = (tables(Parameters(), seed, Length(tasks=1000))[2] for seed in (1, 2))
    assert not set(first["run_time"]) & set(second["run_time"])
    assert all(later >= earlier for earlier, later in pairwise(first["arrival"]))
