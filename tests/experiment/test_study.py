"""Studies: what a file asks for, what runs are known by, what is kept of them, and what is made of that."""
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fake_study import HEARTBEATS, fake_study
from small import staged
from subak.cli.commands.merge import finish
from subak.errors import InputError, RunError
from subak.experiment.inputs import load_inputs
from subak.experiment.run import simulate_into
from subak.experiment.study import digest as digests
from subak.experiment.study import document
from subak.experiment.study.document import read_study, study_of
from subak.experiment.study.plan import planned, read_plan, write_plan
from subak.experiment.study.points import points_of
from subak.experiment.study.records import Record, is_done, read_record, read_records, write_record
from subak.experiment.study.runs import record_of, told_of
from subak.experiment.study.shards import parse_shard, shard_of
from subak.measures.intervals import difference, mean_interval
from subak.policy_files import named_scheduler
from subak.report.study.columns import columns_of, refuse_measures
from subak.report.study.facts import best_by, front, grouped
from subak.report.study.page import best_table, point_table
from subak.report.study.results import results_of
from subak.report.study.table import run_table

COLUMNS = 160
DOCS = Path(__file__).parents[2] / "docs"
SMALL = """workload = "W"
machines = [1, 2]
capacity = { cpu = 1 }
schedulers = ["first-fit", "random-fit"]
seeds = "1-2"
resample = "days"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a workload of twelve tasks."""
    (tmp_path / "W").mkdir()
    jobs = [{"job": job, "user": f"u{job % 3}", "request": (1,)} for job in range(6)]
    staged(jobs, [(job, 2.0 * job, 3.0 + job) for job in (*range(6), *range(6))]).write(tmp_path / "W")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(text, here):
    (here / "S.toml").write_text(text)
    return read_study(here / "S.toml")


def done_here(study, folder):
    """Do a study in this process, and return its plan."""
    plan, work = planned(study)
    write_plan(folder, plan)
    for digest, each in work.items():
        write_record(folder, digest, record_of(each.name, told_of(each)))
    finish(folder, plan)
    return plan


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# -- what a file asks for ----------------------------------------------------------------------------------------------


def test_lists_are_crossed_and_zips_change_together(here):
    study = asked('''
title = "T"
workload = "W"
machines = [2, 4]
schedulers = ["megha", "central"]
objectives = ["wait.mean < 1s"]
seeds = "1,3-4"
[capacity]
cpu = 1
[federation]
heartbeat = [1, 5, 30]
delay = 0.1
[[zip]]
title = "masters"
name = ["few", "many"]
federation.global_masters = [1, 2]
federation.local_masters = [1, 2]
''', here)
    points = points_of(study)
    assert [axis.title for axis in study.axes] == ["machines", "heartbeat", "masters"]
    assert len(points) == 2 * 3 * 2
    told = [(point.scenario.machines, point.scenario.federation.heartbeat, point.scenario.federation.global_masters,
             point.scenario.federation.local_masters) for point in points]
    assert told == [(machines, beat, masters, masters) for machines in (2, 4) for beat in (1.0, 5.0, 30.0)
                    for masters in (1, 2)]
    first = points[0].scenario
    assert (first.schedulers, first.seeds, first.federation.delay) == (["megha", "central"], [1, 3, 4], 0.1)
    assert (first.workload, first.objectives) == (str(here / "W"), ["wait.mean < 1s"])


def test_what_is_a_list_by_itself_is_swept_as_a_list_of_lists(here):
    study = asked('objectives = [["wait.mean < 1s"], ["wait.mean < 2s", "wait.max < 9s"]]\n', here)
    assert [point.scenario.objectives for point in points_of(study)] == [
        ["wait.mean < 1s"], ["wait.mean < 2s", "wait.max < 9s"]]
    study = asked('capacity = [{ cpu = 1 }, { cpu = 2 }]\nmachines = 3\n', here)
    assert [axis.names for axis in study.axes] == [("cpu=1", "cpu=2")]


def test_schedulers_change_from_point_to_point_in_a_zip(here):
    study = asked('[[zip]]\nschedulers = ["first-fit", ["best-fit", "tetris"]]\nmachines = [3, 4]\n', here)
    assert [point.scenario.schedulers for point in points_of(study)] == [["first-fit"], ["best-fit", "tetris"]]


@pytest.mark.parametrize(("text", "said"), [
    ("heartbeat = [1, 2]", "heartbeat: is no key of a study; it is a key of [federation]"),
    ("machins = 3", "machins: is no key of a study; did you mean 'machines'?"),
    ("[federation]\nheartbeet = 3", "federation.heartbeet: is no key of a study"),
    ("federation = 3", "federation: must be a table of settings, not 3"),
    ("machines = []", "machines: must list at least one value"),
    ("machines = [3, 3]", "machines: each must be there once, '3' occurs 2 times"),
    ("machines = [3, 'x']", "at machines x: Expected `int`, got `str`"),
    ("[federation]\nheartbeat = [1, 0]", "heartbeat: none of the schedulers first-fit supports it"),
    ("schedulers = ['megha']\n[federation]\nheartbeat = [1, 0]", "at heartbeat 0: heartbeat: must be 0.001 or more"),
    ("schedulers = ['meg']", "scheduler must be a name"),
    ("seeds = 'x'", "seeds: must be whole numbers such as 1,2,5-8, not 'x'"),
    ("zip = 3", "zip: must be tables"),
    ("[[zip]]", "zip: must have a key with a list of values"),
    ("[[zip]]\nmachines = 3", "zip: machines must be a list of values, not 3"),
    ("[[zip]]\nseeds = [1, 2]", "zip: seeds cannot change from point to point"),
    ("[[zip]]\nmachines = [1, 2]\nuntil = [1]", "zip: lists must have one length; machines has 2 values, until 1"),
    ("[[zip]]\nmachines = [1, 2]\nname = ['a']", "zip: machines has 2 points, and 1 names"),
    ("[[zip]]\nmachines = [1, 2]\nname = ['a', 'a']", "machines: each must be there once, 'a' occurs 2 times"),
    ("[[zip]]\nmachines = [1, 2]\nname = 'a'", "zip: name must be a list"),
    ("[[zip]]\nmachines = [1, 2]\nname = [1, 2]", "name: must be a text of at most 60 letters, not '1'"),
    ("[[zip]]\nmachines = [1, 2]\ntitle = 'seed'", "title: each must be there once, 'seed' occurs 2 times"),
    ("machines = [1, 2]\n[[zip]]\nmachines = [1, 2]", "key: each must be there once, 'machines' occurs 2 times"),
    ("title = ''", "title: must be a text of at most 60 letters, not 'none'"),
    ("measures = 'wait_time_mean'", "measures: must be a list of columns"),
    ("measures = ['a', 'a']", "measures: each must be there once"),
    (f"machines = {list(range(1, 400))}\nuntil = {[float(each) for each in range(1, 400)]}",
     "study: must have at most 100,000 points, not 159,201"),
])
def test_a_mistake_in_a_study_is_named(here, text, said):
    with pytest.raises(InputError) as error:
        points_of(asked(text, here))
    assert said in str(error.value)


def test_a_point_that_cannot_begin_is_named_before_any_run(here):
    text = 'workload = "W"\n[[zip]]\ntitle = "fleet"\nmachines = [1, 0]\ncapacity = [{ cpu = 1 }, {}]\n'
    with pytest.raises(InputError, match=r"^at fleet 0, none: .*W: has no fleet"):
        planned(asked(text, here))
    with pytest.raises(InputError, match="search_moves: must be given for hmhs-search"):
        planned(study_of({"workload": "W", "schedulers": ["hmhs-search"]}, "T"))
    known = columns_of(["cpu"], ("wait.p95 < 60s",))
    refuse_measures(("wait_time_p99", "utilisation_cpu", "wait.p95 < 60s"), known)
    with pytest.raises(InputError, match=r"measures: 'wait_time_man' is none; did you mean 'wait_time_mean'\?"):
        refuse_measures(("wait_time_man",), known)
    assert known["wait.p95 < 60s"].less_is_better
    assert not known["utilisation_cpu"].less_is_better
    assert not [name for name in known if name.startswith("simulation")]


def test_the_examples_of_the_docs_are_studies(here):
    page = re.search(r"^```toml\n(.*?)^```$", (DOCS / "studies.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    stated = "\n".join(line[4:] for line in document.__doc__.splitlines() if line.startswith("    ") or not line)
    assert [len(points_of(asked(text, here))) for text in (page, stated)] == [4 * 2, 2 * 4 * 2]
    shipped = read_study(DOCS / "studies" / "megha.toml")
    assert len(points_of(shipped)) == 5 * 4
    refuse_measures(shipped.measures, columns_of(["cpu", "memory"], ()))


def test_without_ray_it_is_said_how_to_install_it(here, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, said = run("experiment", "W", *LIST, "--out", "R", "--on", "ray")
    assert code == 2
    assert said == "subak: --on ray: needs Ray; install it with: pip install 'subak[ray]'\n"
    assert not (here / "R").exists()


# -- what runs are known by --------------------------------------------------------------------------------------------


def digests_of(text, here):
    return planned(asked(text, here))[0].digests()


def test_a_run_is_known_by_what_it_reads_and_is_set_to_wherever_that_is(here, monkeypatch):
    first = digests_of(SMALL, here)
    assert len(first) == len(set(first)) == 2 * 2 * 2
    (here / "other").mkdir()
    shutil.move(here / "W", here / "other" / "V")
    moved = SMALL.replace('"W"', '"other/V"') + 'title = "else"\nmeasures = ["makespan"]\n'
    assert digests_of(moved, here) == first
    assert set(digests_of(moved.replace("[1, 2]", "[2, 3]"), here)) & set(first) == {*first[4:]}
    assert not set(digests_of(moved + "until = 5\n", here)) & set(first)
    assert not set(digests_of(moved.replace('"1-2"', '"5-6"'), here)) & set(first)
    monkeypatch.setattr(digests, "code_digest", lambda: "another")
    assert not set(digests_of(moved, here)) & set(first)


def test_the_code_that_decides_and_measures_is_in_the_digest_and_faces_are_not(monkeypatch):
    read = []
    monkeypatch.setattr(digests, "_digest_of", lambda files, house: read.extend(
        path.relative_to(house).as_posix() for path in files) or "")
    digests.code_digest.__wrapped__()
    assert {"kernels/kernel.py", "federation/megha/ledger.py", "measures/of_run.py", "experiment/run.py"} <= set(read)
    assert {name.partition("/")[0] for name in read} >= {"fleet", "queues", "placement", "simulator", "workload"}
    assert not [name for name in read if name.startswith(("cli/", "report/", "live/", "experiment/study/"))]


def test_other_contents_are_another_run(here, monkeypatch):
    monkeypatch.setattr("subak.experiment.study.plan.find_scheduler", lambda name, _: named_scheduler(name))
    first = digests_of(SMALL, here)
    text = (here / "W" / "workload.toml").read_text()
    (here / "W" / "workload.toml").write_text(text + "\n")
    assert not set(digests_of(SMALL, here)) & set(first)
    policy = 'from subak.policy import next_fitting, policy\n@policy\ndef mine(fleet, tasks, task):\n' \
             '    """Mine."""\n    return next_fitting(fleet, tasks, task, 0)\n'
    (here / "p.py").write_text(policy)
    mine = SMALL.replace('"first-fit"', '"p.py:mine"')
    before = digests_of(mine, here)
    (here / "p.py").write_text(policy + "# other\n")
    os.utime(here / "p.py", (1, 1))  # a policy is imported again when its time is another
    assert len(set(digests_of(mine, here)) & set(before)) == 4  # those of the other scheduler


def test_infinity_and_nothing_are_told_apart(here):
    one = digests_of('workload = "W"\nmachines = 1\ncapacity = { cpu = 1 }\nmeasure_until = inf\n', here)
    other = digests_of('workload = "W"\nmachines = 1\ncapacity = { cpu = 1 }\n', here)
    assert one != other


def test_settings_that_a_scheduler_does_not_go_by_make_no_run_of_their_own(here):
    plan, work = planned(asked(SMALL.replace('["first-fit", "random-fit"]', '["first-fit", "megha"]').replace(
        "[1, 2]", "4") + "[federation]\nlocal_masters = 1\nglobal_masters = 1\nheartbeat = [1, 5, 30]\n", here))
    assert len(plan.rows) == 3 * 2 * 2
    assert len(work) == 2 + 3 * 2


# -- what is kept of them ----------------------------------------------------------------------------------------------


def test_a_run_of_a_study_is_that_of_a_comparison(here):
    study = asked(SMALL, here)
    plan, work = planned(study)
    scenario = points_of(study)[0].scenario
    inputs = load_inputs(scenario)
    for row in plan.rows[:4]:
        whole = simulate_into(here / row.digest, scenario, row.scheduler, row.seed, inputs)
        record = msgspec.json.decode(record_of("x", told_of(work[row.digest])), type=Record)
        both = [msgspec.structs.replace(each, speed=None, label="") for each in (whole, record.summary)]
        assert both[0] == both[1]


def test_inputs_that_change_while_a_study_runs_are_refused(here):
    work = next(iter(planned(asked(SMALL, here))[1].values()))
    shutil.copy(here / "W" / "jobs.parquet", here / "W" / "more.parquet")
    from subak.experiment.study import runs

    runs.KEPT.workloads.clear()
    record = msgspec.json.decode(record_of(work.name, told_of(work)), type=Record)
    assert "must be the one the scenario was run on" in record.error
    assert not is_done(record)


def test_what_is_no_record_is_not_there(here):
    write_record(here, "a", b'{"summary": {"scheduler": "x"}, "error": ""}')
    (here / "runs" / "b.json").write_bytes(b'{"summary": {"sched')
    assert is_done(read_record(here, "a"))
    assert read_record(here, "b") is read_record(here, "c") is None
    assert read_records(here, "abc").keys() == {"a"}
    with pytest.raises(InputError, match="is no folder of a study"):
        read_plan(here)


def test_shards_are_disjoint_and_are_all(here):
    work = {str(number): number for number in range(11)}
    parts = [shard_of(work, (number, 4)) for number in range(1, 5)]
    assert sorted(itertools.chain(*parts), key=int) == list(work)
    assert [len(part) for part in parts] == [3, 3, 3, 2]
    assert parse_shard("3/10") == (3, 10)
    for text in ("0/3", "4/3", "3", "x", "1/0", "-1/3", "1/3/4"):
        with pytest.raises(InputError, match="--shard: must be such as 3/10"):
            parse_shard(text)


# -- what is made of that ----------------------------------------------------------------------------------------------


def test_the_table_has_a_row_a_run_with_its_settings_and_measures():
    plan, records = fake_study(broken={"00megha2"})
    table = run_table(plan, {name: record for name, record in records.items() if name != "00megha3"})
    assert table.columns[:8] == ["run", "heartbeat", "masters", "global_masters", "local_masters", "workload",
                                 "scheduler", "seed"]
    assert table.schema["heartbeat"] == table.schema["global_masters"] == pl.Int64
    assert len(table) == len(plan.rows) == 4 * 2 * 2 * 6
    assert table["error"].to_list()[:3] == [None, "the disk is full", "not run"]
    assert table["wait_time_mean"].is_null().sum() == 2
    row = table.row(by_predicate=pl.col("run") == "31central4", named=True)
    assert (row["heartbeat"], row["masters"], row["local_masters"], row["scheduler"], row["seed"]) == (
        30, "many", 10, "central", 4)
    assert row["wait_time_mean"] == records["31central4"].summary.wait_time.mean
    assert not [name for name in table.columns if "memory" in name or "second" in name]


def test_means_are_over_the_seeds_and_points_with_a_failure_are_not_compared():
    plan, records = fake_study(broken={"01megha2"})
    results = results_of(plan, records)
    assert [setting.title for setting in results.settings] == ["heartbeat", "masters", "scheduler"]
    assert results.settings[0].numbers == HEARTBEATS
    assert results.errors == {"the disk is full": ["heartbeat 1, masters many, megha, seed 2"]}
    best = best_by(results, "wait_time_mean")  # heartbeat 1 with many masters would be, had it not failed
    assert results.point_name(best.point) == "heartbeat 1, masters few, scheduler megha"
    values = [records[f"00megha{seed}"].summary.wait_time.mean for seed in range(1, 7)]
    assert best.value == pytest.approx(np.mean(values))
    assert best.interval[0] < best.value < best.interval[1]
    assert best.difference.is_decided == (best.difference.p <= 0.05)
    rivals = [results.values["wait_time_mean"][point] for point in range(len(results.places)) if point != best.point]
    ps = [difference(each, results.values["wait_time_mean"][best.point]).p for each in rivals]
    assert best.difference.p >= min(p for p in ps if p is not None)  # judged together
    best = best_by(results, "utilisation_cpu")
    assert (best.value, best.difference.share, best.difference.ends, best.difference.is_decided) == (
        0.5, 0.0, (0.0, 0.0), False)
    assert [row[0] for row in best_table(results).rows] == ["Wait time, mean", "Wait time, 99 %",
                                                            "Federation, messages a task", "Bounded slowdown, mean"]
    assert len(point_table(results).rows) == 16


def test_groups_are_means_over_the_other_settings_seed_by_seed():
    plan, records = fake_study()
    results = results_of(plan, records)
    groups = grouped(results, "wait_time_mean", (0,), (2,))
    assert [(group.place, group.name) for group in groups[:3]] == [((0,), "megha"), ((0,), "central"), ((1,), "megha")]
    values = [np.mean([records[f"0{masters}central{seed}"].summary.wait_time.mean for masters in (0, 1)])
              for seed in range(1, 7)]
    assert groups[1].value == pytest.approx(np.mean(values))
    assert groups[1].interval == pytest.approx(mean_interval(np.array(values)))


@given(some.lists(some.tuples(some.integers(0, 5), some.integers(0, 5)), min_size=1, max_size=12))
def test_the_front_is_who_is_not_dominated(pairs):
    plan, records = fake_study(seeds=1, schedulers=("megha",))
    results = results_of(plan, records)
    names = ("wait_time_mean", "utilisation_cpu")  # less is better, and more
    values = {name: np.array([[float(pair[number])] for pair in pairs]) for number, name in enumerate(names)}
    results = results._replace(values=values, days=(None,) * len(pairs))
    expected = [(one, other) for one, other in pairs if not any(
        a <= one and b >= other and (a < one or b > other) for a, b in pairs)]
    found = front(results, *names)
    assert sorted(pairs[point] for point in found) == sorted(expected)


def test_the_interval_of_a_mean_is_near_that_of_the_normal_law():
    values = np.random.default_rng(3).normal(10, 2, 400)
    low, high = mean_interval(values)
    assert mean_interval(values - 100) == pytest.approx((low - 100, high - 100), abs=0.01)
    assert (low, high) == pytest.approx((values.mean() - 1.96 * 0.1, values.mean() + 1.96 * 0.1), abs=0.02)
    assert mean_interval(values[:5]) is None
    assert mean_interval(np.append(values[:9], np.inf)) is None
    assert difference(values[:9] * 1.1, values[:9]).ends == pytest.approx((0.1, 0.1))


def test_a_scheduler_that_no_seed_changes_is_compared_with_one_that_runs_with_each(here):
    text = SMALL.replace("days", "none")
    plan = done_here(asked(text, here), here / "R")
    assert [(row.scheduler, row.seed) for row in plan.rows[:3]] == [
        ("first-fit", 1), ("random-fit", 1), ("random-fit", 2)]
    results = results_of(plan, read_records(here / "R", plan.digests()))
    assert np.isfinite(results.values["wait_time_mean"]).all()


# -- the commands ------------------------------------------------------------------------------------------------------

LIST = ("--machines", "1,2", "--capacity", "cpu=1", "--schedulers", "first-fit,random-fit", "--resample", "days",
        "--seeds", "1-2")


@pytest.fixture
def in_this_process(monkeypatch):
    """Let runs be done in this process."""
    def done(todo, _processes):
        for digest, work in todo.items():
            yield digest, record_of(work.name, told_of(work))

    monkeypatch.setattr("subak.cli.commands.experiment.done_here", done)


def test_options_are_the_study_that_a_file_says(here, run, in_this_process):
    assert run("experiment", "W", *LIST, "--out", "R")[0] == 0
    asked(SMALL, here)
    code, _, said = run("experiment", "S.toml", "--out", "F")
    assert code == 0
    assert "8 runs (2 values of machines, 2 schedulers, 2 seeds), 2 at once" in said
    tables = [pl.read_parquet(folder / "runs.parquet") for folder in (here / "R", here / "F")]
    assert tables[0].equals(tables[1])
    assert read_plan(here / "R").digests() == read_plan(here / "F").digests()


def test_a_dry_run_only_says_what_there_is_to_do(here, run):
    code, out, said = run("experiment", "W", *LIST, "--dry-run")
    assert (code, out) == (0, "")
    assert said.startswith("8 runs (2 values of machines, 2 schedulers, 2 seeds), 2 at once")
    assert sorted(path.name for path in here.iterdir()) == ["W"]


def test_what_is_there_is_not_run_again_and_a_run_that_failed_is(here, run, monkeypatch):
    calls = []

    def failing(todo, _processes):
        for number, (digest, work) in enumerate(todo.items()):
            calls.append(digest)
            yield digest, b'{"error": "the disk is full"}' if number == 3 and len(todo) == 8 else record_of(
                work.name, told_of(work))

    monkeypatch.setattr("subak.cli.commands.experiment.done_here", failing)
    code, _, said = run("experiment", "W", *LIST, "--out", "R")
    assert (code, len(calls)) == (2, 8)
    assert "subak: 1 of 8 runs have no result: machines " in said
    assert ": the disk is full" in said
    assert pl.read_parquet("R/runs.parquet")["error"].to_list().count("the disk is full") == 1
    assert "the disk is full" in (here / "R" / "report.html").read_text()
    code, _, said = run("experiment", "W", *LIST, "--out", "R")
    assert (code, len(calls), calls[8]) == (0, 9, calls[3])
    assert "8 runs (2 values of machines, 2 schedulers, 2 seeds); 7 are there, 2 at once" in said
    run("experiment", "W", *LIST[:-1], "1-3", "--out", "R")  # one seed more
    assert len(calls) == 9 + 4
    assert len(pl.read_parquet("R/runs.parquet")) == 12


def test_all_is_done_again_where_that_is_asked_for(here, run, in_this_process):
    assert run("experiment", "W", *LIST, "--out", "R")[0] == 0
    whole = content(here / "R")
    code, _, said = run("experiment", "W", *LIST, "--out", "R", "--overwrite")
    assert code == 0
    assert "8 runs (2 values of machines, 2 schedulers, 2 seeds), 2 at once" in said
    assert content(here / "R") == whole
    for number in (1, 2):
        assert run("experiment", "W", *LIST, "--shard", f"{number}/2", "--out", f"P{number}")[0] == 0
    assert run("merge", "P1", "P2", "--out", "M")[0] == 0
    assert run("merge", "P1", "--out", "M")[0] == 0  # the second half is there already
    code, _, said = run("merge", "P1", "--out", "M", "--overwrite")
    assert code == 2
    assert "subak: 4 of 8 runs have no result: " in said
    assert run("merge", "P2", "M", "--out", "M", "--overwrite")[0] == 0
    assert content(here / "M") == whole


def test_shards_are_merged_to_the_bytes_of_the_whole(here, run, in_this_process):
    assert run("experiment", "W", *LIST, "--out", "R")[0] == 0
    for number in (1, 2, 3):
        code, _, said = run("experiment", "W", *LIST, "--shard", f"{number}/3", "--out", f"P{number}")
        assert code == 0
        assert f"of which shard {number}/3 has {3 if number < 3 else 2}" in said
        assert not (here / f"P{number}" / "runs.parquet").exists()
    code, _, said = run("merge", "P1", "P3", "--out", "M")
    assert code == 2
    assert "subak: 3 of 8 runs have no result: machines" in said
    assert run("merge", "M", "P2", "--out", "M")[0] == 0
    assert content(here / "M") == content(here / "R")
    run("experiment", "W", *LIST[:-1], "1-3", "--shard", "1/3", "--out", "Q")
    code, _, said = run("merge", "P1", "Q", "--out", "N")
    assert (code, said) == (2, "subak: Q: is another study than P1, has other inputs, or another version of Subak\n")


@pytest.mark.parametrize(("arguments", "said"), [
    (("S.toml", "--heartbeat", "1"), "S.toml: a study file holds everything, so the other options must be left out"),
    (("W", *LIST), "--out: must name the folder of the study, or give --dry-run"),
    (("W", *LIST, "--out", "R", "--on", "slurm"), "--on: must be ray or ray://HOST:PORT, not 'slurm'"),
    (("W", *LIST, "--out", "R", "--on", "ray", "--processes", "2"), "--processes: is for runs on this machine"),
    (("W", *LIST, "--out", "W"), "W: is or holds W, which is read"),
    (("W", *LIST, "--out", "."), ".: is or holds the working directory"),
    (("W", *LIST, "--out", "R", "--measures", "wait"), "measures: 'wait' is none"),
    (("W", "--schedulers", "megha", "--heartbeat", "1,x", "--out", "R"),
     "--heartbeat: a duration must be a number of seconds, or like 90,"),
    (("W", "--machines", "1,2.5", "--out", "R"), "--machines: must be whole numbers separated by commas, not '2.5'"),
])
def test_a_mistake_leaves_nothing(here, run, arguments, said):
    asked(SMALL, here)
    code, out, err = run("experiment", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"subak: {said}")
    assert sorted(path.name for path in here.iterdir()) == ["S.toml", "W"]


def test_a_study_that_is_killed_again_and_again_ends_with_the_same_bytes(here):
    study = asked(SMALL.replace('"1-2"', '"1-4"'), here)
    plan = done_here(study, here / "whole")
    call = [sys.executable, "-m", "subak", "experiment", "S.toml", "--out", "R", "--processes", "1"]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path), "NUMBA_DISABLE_JIT": "1"}
    records = here / "R" / "runs"
    kept = {}
    for least in (2, 7):
        process = subprocess.Popen(call, cwd=here, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        while process.poll() is None and len(list(records.glob("[0-9a-f]*.json"))) < least:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        there = {path: path.stat().st_mtime_ns for path in records.glob("[0-9a-f]*.json")}
        assert kept.items() <= there.items()  # what was there was not run again
        kept = there
    assert least <= len(kept) < len(plan.digests())
    subprocess.run(call, cwd=here, env=environment, check=True, capture_output=True)
    assert content(here / "R") == content(here / "whole")


def test_a_folder_of_something_else_is_let_be(here, run):
    (here / "R").mkdir()
    (here / "R" / "mine.txt").write_text("mine")
    code, _, said = run("experiment", "W", *LIST, "--out", "R")
    assert (code, said) == (2, "subak: R: exists and holds no study.json; it is not replaced, choose another folder\n")
    assert content(here / "R") == {"mine.txt": b"mine"}


def test_a_process_that_dies_takes_nothing_with_it_but_its_run(here):
    (here / "wild.py").write_text(
        "import os\nfrom subak.policy import next_fitting, policy\n@policy\ndef wild(fleet, tasks, task):\n"
        '    """Dies."""\n    return next_fitting(fleet, tasks, task, 0)\n'
        "if os.environ.get('POLARS_MAX_THREADS') == '1':\n    os._exit(7)\n")
    (here / "S.toml").write_text(SMALL.replace("[1, 2]", "[1]").replace('"random-fit"', '"wild.py:wild"').replace(
        '"1-2"', "[1]"))
    done = subprocess.run([sys.executable, "-m", "subak", "experiment", "S.toml", "--out", "R", "--processes", "2"],
                          cwd=here, env={**os.environ, "PYTHONPATH": ":".join(sys.path)}, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 2
    assert "1 of 2 runs have no result: machines 1, wild.py-wild, seed 1: run machines 1, wild.py-wild, seed 1: its " \
           "process died of exit code 7" in " ".join(done.stderr.split())
    table = pl.read_parquet(Path(here, "R", "runs.parquet"))
    assert table["error"].null_count() == 1
    assert table.filter(pl.col("error").is_null())["wait_time_mean"].is_not_null().all()


def test_merge_and_finish_raise_when_something_is_missing(here):
    plan, _ = planned(asked(SMALL, here))
    write_plan(here / "R", plan)
    with pytest.raises(RunError, match="8 of 8 runs have no result: machines 1, first-fit, seed 1: not run"):
        finish(here / "R", plan)
