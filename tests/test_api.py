"""From Python: the same runs as on the command line, policies that are functions, and what notebooks show."""
import inspect
import json
import re
import sys
import threading
import types
from pathlib import Path

import altair as alt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import subak
from small import TWO, fleet_of, plain, staged
from subak.api.frames import workload_of
from subak.api.progress import NoBars, bars
from subak.api.settings import Settings, scenario_of
from subak.api.shown import MIME
from subak.api.threads import in_threads
from subak.cli.progress import RunBars
from subak.errors import InputError, PolicyError, RunError
from subak.experiment.parallel import Job
from subak.experiment.scenario import Scenario
from subak.experiment.workers import DONE, FAILED, PROGRESS
from subak.measures.run_folders import load_runs
from subak.placement.schedulers import SCHEDULERS
from subak.policy import hooks, next_fitting, policy
from subak.policy_files import named_scheduler
from subak.resources import Resource
from subak.simulator.engine.run_loop import Progress

# Four tasks on one machine of four: the third needs all of it, the fourth would fit beside the first two.
FRAME = pl.DataFrame({"arrival": [0, 0, 5, 6], "run_time": [60, 30, 10, 10], "cpu": [2, 1, 4, 1]})


def loaded():
    return subak.load(FRAME, machines=1, capacity={"cpu": 4})


def first(fleet, tasks, task):
    return next_fitting(fleet, tasks, task, 0)


def careless(fleet, tasks, task):
    return 0


# What is loaded


def test_a_frame_becomes_a_workload_by_hand():
    work = subak.load(
        pl.DataFrame({"job": ["b", "a", "b"], "arrival": [2.0, 1.0, 2.0], "run_time": [1, 2, 3], "cpu": [0.5, 1, 2],
                      "queue": ["x/y", "z", "x/y"], "priority": [1, 0, 1]}), machines=2, capacity={"cpu": 4})
    assert work.workload.resources == (Resource("cpu", 1e-3),)
    assert work.tasks.select("job", "queue", "index", "arrival", "run_time", "priority", "cpu").rows() == [
        ("a", "z", 0, 1.0, 2.0, 0, 1.0), ("b", "x/y", 0, 2.0, 1.0, 1, 0.5), ("b", "x/y", 1, 2.0, 3.0, 1, 2.0)]
    assert work.machines.select("machine", "cpu").rows() == [("0", 4.0), ("1", 4.0)]
    assert "3 tasks in 2 jobs" in repr(work) and "3 tasks in 2 jobs" in work._repr_html_()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(1, 3), st.sampled_from([1, 2, 0.25]),
                          st.integers(0, 1)), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_every_row_of_a_frame_is_a_task_of_its_job(rows):
    frame = pl.DataFrame(rows, ["job", "arrival", "run_time", "cpu", "priority"], orient="row",
                         schema_overrides={"cpu": pl.Float64})
    work = subak.load(frame, machines=1, capacity={"cpu": 4})
    found = work.tasks.select("job", "arrival", "run_time", "cpu", "priority").rows()
    assert found == sorted(((job, arrival, run_time, cpu, priority) for job, arrival, run_time, cpu, priority in rows),
                           key=lambda row: row[1])
    assert work.tasks.select("job", "index").is_unique().all()


@pytest.mark.parametrize(("change", "said"), [
    ({"machines": 0, "capacity": None}, r"needs a fleet, or alike machines, such as machines=10"),
    ({"capacity": {"cpu": 4, "gpu": 1}}, "columns missing: gpu; there are arrival, run_time, cpu"),
    ({"workload": FRAME.rename({"run_time": "runtime"})}, "columns missing: run_time"),
    ({"workload": FRAME.with_columns(node=pl.lit(1))}, "columns not known: node"),
    ({"workload": FRAME.with_columns(arrival=pl.lit("now"))}, "arrival must hold numbers, not String"),
    ({"workload": FRAME.with_columns(run_time=pl.lit(-1))}, "run_time must not be negative"),
    ({"workload": {"arrival": [1]}}, r"must be a folder, .* not builtins\.dict; polars\.from_pandas"),
    ({"workload": "no-such-folder"}, "no-such-folder"),
    ({"workload": plain((0, 1, 1)), "machines": 0, "capacity": None}, r"no fleet; give fleet=FOLDER.*\{'cpu': 1\}"),
    ({"fleet": fleet_of((1,))}, "give one of them, not both"),
    ({"scale": 0}, "scale: must be"),
    ({"remove": "30%"}, r"remove: must be a list of such words, as \['30%'\]"),
    ({"add_machines": ["x"]}, "add.machines.*x"),
    ({"machines": -1}, "machines: must be from 1 to"),
    ({"capacity": {"cpu": "4Gi"}}, "capacity, cpu: must be a number of units, or one with %, not '4Gi'"),
    ({"capacity": {"cpu": [4]}}, "capacity: Expected `float | str`, got `array`"),
])
def test_what_cannot_be_loaded_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        subak.load(**{"workload": FRAME, "machines": 1, "capacity": {"cpu": 4}, **change})


def test_tables_and_folders_are_loaded_alike(tmp_path):
    workload, fleet = plain((0, 1, 1, 2), (1, 2, 2, 1), resources=TWO), fleet_of((4, 4), resources=TWO)
    (tmp_path / "W" / "fleet").mkdir(parents=True)
    workload.write(tmp_path / "W")
    fleet.write(tmp_path / "W" / "fleet")
    folder = tmp_path / "W"
    ways = [subak.load(workload, fleet), subak.load(folder), subak.load(folder, fleet),
            subak.load(str(folder), folder / "fleet"), subak.load(workload, folder / "fleet")]
    assert {way.scenario.workload for way in ways} == {"", str(folder)}
    for way in ways:
        assert way.tasks.equals(ways[0].tasks) and way.machines.equals(ways[0].machines)
    assert workload_of(pl.DataFrame({"arrival": [0, 1], "run_time": [1, 2], "cpu": [1, 2], "memory": [2, 1]}),
                       TWO).requests.tolist() == workload.requests.tolist()


def test_machines_are_edited_as_they_are_loaded(tmp_path):
    workload, fleet = plain((0, 1, 1, 1), resources=TWO), fleet_of((4, 4), (4, 4), (8, 2), resources=TWO)
    (tmp_path / "F").mkdir()
    fleet.write(tmp_path / "F")
    for machines in (fleet, tmp_path / "F"):
        found = subak.load(workload, machines, scale=2, remove=["3:cpu=4"], add_machines=["2:cpu=1,memory=1"])
        assert sorted(found.machines.select("cpu", "memory").rows()) == [(1, 1), (1, 1), (4, 4), (8, 2), (8, 2)]


# Runs


def test_runs_by_hand():
    """In order: the third waits until 60 s, and the fourth behind it. With backfill the fourth starts at once."""
    strict = subak.run(loaded(), "first-fit")
    assert strict.tasks["start"].to_list() == [0.0, 0.0, 60.0, 70.0]
    assert strict.summary.wait_time.mean == (55 + 64) / 4
    assert subak.run(loaded(), "first-fit+backfill").tasks["start"].to_list() == [0.0, 0.0, 60.0, 6.0]
    assert (strict.folder, strict.label, strict.summary.speed.peak_memory_bytes) == (None, "first-fit", None)
    assert strict.tables[:3] == ["tasks", "timeline", "attempts"]


def test_a_run_is_the_one_of_the_command_line(run, tmp_path):
    (tmp_path / "W").mkdir()
    staged([{"job": job, "request": (1 + job % 3,)} for job in range(9)],
           [(task % 9, task % 7, 1 + task % 5) for task in range(40)]).write(tmp_path / "W")
    assert run("simulate", tmp_path / "W", "--machines", 2, "--capacity", "cpu=3", "--scheduler", "best-fit",
               "--until", 20, "--out", tmp_path / "R")[0] == 0
    work = subak.load(tmp_path / "W", machines=2, capacity={"cpu": 3})
    held, kept = (subak.run(work, "best-fit", until=20, out=out) for out in (None, tmp_path / "P"))
    for name in held.tables:
        shown = (tmp_path / "R" / f"{name}.parquet").read_bytes()
        assert (tmp_path / "P" / f"{name}.parquet").read_bytes() == shown
        assert held.frame(name).equals(pl.read_parquet(tmp_path / "R" / f"{name}.parquet"))
        assert kept.frame(name).equals(held.frame(name)) and kept.lazy(name).collect().equals(held.frame(name))
    assert (tmp_path / "P" / "scenario.toml").read_text() == (tmp_path / "R" / "scenario.toml").read_text()
    assert kept.folder == tmp_path / "P" and sorted(kept.tables) == sorted(held.tables)
    summaries = [json.loads((tmp_path / name / "summary.json").read_text()) for name in "RP"]
    assert [each.pop("speed") for each in summaries] and summaries[0] == summaries[1]
    assert subak.Run.read(tmp_path / "R").tasks.equals(held.tasks)
    with pytest.raises(InputError, match="exists already"):
        subak.run(work, "best-fit", out=tmp_path / "P")
    with pytest.raises(InputError, match=r"which is read; it is not replaced"):
        subak.run(work, "best-fit", out=tmp_path / "W", overwrite=True)


def test_a_comparison_has_each_scheduler_with_each_seed(tmp_path):
    work = loaded()
    held = subak.compare(work, ["first-fit", "best-fit+backfill"], seeds=[1, 2], resample="days", threads=2)
    kept = subak.compare(work, ["first-fit", "best-fit+backfill"], seeds=[1, 2], resample="days",
                         out=tmp_path / "R")
    labels = ["first-fit-s1", "first-fit-s2", "best-fit+backfill-s1", "best-fit+backfill-s2"]
    for each in (held, kept, subak.Comparison.read(tmp_path / "R")):
        assert list(each.runs) == labels and [one.label for one in each] == labels and len(each) == 4
        assert each.tasks.equals(held.tasks)
    assert held.tasks.group_by("scheduler", "seed").len().height == 4
    assert held["first-fit-s2"].summary.seed == 2
    assert [run.label for run in load_runs(tmp_path / "R")] == labels
    with pytest.raises(InputError, match="did you mean 'first-fit-s1'"):
        held["first-fit-1"]
    with pytest.raises(InputError, match=r"holds 4 runs; read it with Comparison\.read"):
        subak.Run.read(tmp_path / "R")
    with pytest.raises(InputError, match=r"table: must be one of .*did you mean 'tasks'"):
        held["first-fit-s1"].frame("task")


def test_measures_are_those_of_the_runs():
    comparison = subak.compare(loaded(), ["first-fit", "first-fit+backfill"])
    mean = comparison.measures().filter(pl.col("measure") == "Wait time", pl.col("title") == "mean")
    assert mean["value"].to_list() == [run.summary.wait_time.mean for run in comparison] == [29.75, 13.75]
    assert mean["difference"].to_list() == [None, pytest.approx(13.75 / 29.75 - 1)]
    assert mean["best"].to_list() == [False, True] and mean["unit"].unique().to_list() == ["s"]
    other = comparison.measures(baseline="first-fit+backfill").filter(
        pl.col("measure") == "Wait time", pl.col("title") == "mean")
    assert other["difference"].to_list() == [pytest.approx(29.75 / 13.75 - 1), None]
    with pytest.raises(InputError, match="must be one of first-fit"):
        comparison.measures(baseline="fifo")


# Studies


def test_a_study_is_a_table_of_its_runs(tmp_path):
    (tmp_path / "W").mkdir()
    plain((0, 60, 2), (0, 30, 1), (5, 10, 4), (6, 10, 1)).write(tmp_path / "W")
    asked = {"workload": str(tmp_path / "W"), "machines": [1, 2], "capacity": {"cpu": 4}, "schedulers": ["first-fit"]}
    study = subak.study(asked, out=tmp_path / "S", processes=1)
    assert study.runs.select("machines", "wait_time_mean").rows() == [(1, 29.75), (2, 0.0)]
    assert study.errors == {} and "over-machines-wait_time_mean" in study.charts
    assert study.chart()._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
    assert subak.Study.read(tmp_path / "S").runs.equals(study.runs)
    assert (tmp_path / "S" / "runs.parquet").exists() and (tmp_path / "S" / "report.html").exists()
    assert subak.study(asked, out=tmp_path / "S", processes=1).runs.equals(study.runs)  # nothing is run again
    with pytest.raises(InputError, match="machnes: is no key of a study"):
        subak.study({**asked, "machnes": 3})


# Schedulers


def on_arrival(fleet, tasks, lanes, memory, arrived, claims):
    """Leave all of them waiting."""


def on_departure(fleet, tasks, lanes, memory, freed, claims):
    """Start nothing."""


def test_a_function_is_a_policy(tmp_path):
    work = loaded()
    mine = [first, policy(first, "backfill"), policy(first, "shortest-first", name="eager"), SCHEDULERS["best-fit"]]
    found = subak.compare(work, ["first-fit+backfill", *mine], out=tmp_path / "R")
    assert list(found.runs) == ["first-fit+backfill", "first", "first+backfill", "eager+shortest-first", "best-fit"]
    starts = {run.label: run.tasks["start"].to_list() for run in found}
    assert starts["first"] == starts["best-fit"] == [0.0, 0.0, 60.0, 70.0]
    assert starts["first+backfill"] == starts["first-fit+backfill"] == [0.0, 0.0, 60.0, 6.0]
    assert found["first"].summary.scheduler == "first"
    assert not (tmp_path / "R" / "runs" / "first" / "scenario.toml").exists()  # no file can repeat it


def test_a_pair_of_hooks_has_a_name():
    scenario = scenario_of(loaded(), [hooks(on_arrival, on_departure, name="pair")], [1], {"check_policy": True})
    assert scenario.schedulers == ["pair"] and named_scheduler(scenario.schedulers[0]).on_arrival is on_arrival


@pytest.mark.parametrize(("scheduler", "error", "said"), [
    ("fist-fit", InputError, "did you mean 'first-fit'"),
    (3, InputError, "must be a name, a function .* not 3"),
    (policy(first, name="megha"), InputError, "must have a name that no built-in one has"),
    (lambda fleet, tasks, task: fleet.beauty, PolicyError, "scheduler <lambda>: policy <lambda> does not compile"),
    (careless, PolicyError, "scheduler careless answered a machine that cannot hold the task: machine 0 for task 2"),
])
def test_what_is_no_scheduler_is_refused(scheduler, error, said):
    with pytest.raises(error, match=said):
        subak.run(loaded(), scheduler)


def test_two_of_one_name_are_refused():
    with pytest.raises(InputError, match="each must be named once, 'first' occurs 2 times"):
        subak.compare(loaded(), [first, policy(first)])
    with pytest.raises(InputError, match=r"option must be one of .*not 'quickly'"):
        policy(first, "quickly")


def test_a_run_that_fails_leaves_the_others(tmp_path):
    with pytest.warns(UserWarning, match="scheduler careless answered a machine"):
        found = subak.compare(loaded(), ["first-fit", careless], out=tmp_path / "R")
    assert list(found.runs) == ["first-fit"] and list(found.errors) == ["careless"]
    assert sorted(path.name for path in (tmp_path / "R" / "runs").iterdir()) == ["first-fit"]
    with pytest.raises(RunError, match="scheduler careless answered"):
        subak.compare(loaded(), [careless], out=tmp_path / "Q")
    assert not (tmp_path / "Q").exists()
    with pytest.raises(PolicyError):
        subak.run(loaded(), careless, out=tmp_path / "Q")
    assert not (tmp_path / "Q").exists()


# Settings


def test_every_key_of_a_scenario_is_a_keyword():
    elsewhere = {"workload", "workload_digest", "fleet", "fleet_digest", "machines", "capacity", "scale", "remove",
                 "add_machines", "only_queues", "schedulers", "seeds"}
    assert set(Settings.__annotations__) == set(Scenario.__struct_fields__) - elsewhere


@pytest.mark.parametrize(("keywords", "said"), [
    ({"untill": 3}, "untill: no such setting; did you mean 'until'"),
    ({"heartbeat": 3}, r"heartbeat: is a setting of a federation; give federation=\{'heartbeat': 3\}"),
    ({"until": "soon"}, "until: a time must be a number of seconds"),
    ({"until": -1.0}, "until"),
    ({"objectives": "wait.p95 < 60s"}, "objectives: Expected `array`, got `str`"),
    ({"federation": {"hartbeat": 3}}, "federation: .*hartbeat"),
    ({"federation": {"heartbeat": 3}}, "none of the schedulers first-fit supports it"),
    ({"queues": Path("no-such.toml")}, "no-such.toml"),
    ({"seeds": [1.5]}, "seeds: must be whole numbers, not 1.5"),
    ({"threads": 0}, "threads: must be 1 or more, not 0"),
    ({"seeds": -1}, "seeds: must be whole numbers from 0"),
])
def test_what_no_run_could_mean_is_refused(keywords, said):
    with pytest.raises(InputError, match=said):
        subak.compare(loaded(), "first-fit", **keywords)


def test_settings_reach_the_run():
    run = subak.run(loaded(), "first-fit", until=65, objectives=("wait.max < 60s",), measure_until=float("inf"))
    assert {name: count for name, count in run.summary.status.items() if count} == {
        "FINISHED": 2, "RUNNING": 1, "WAITING": 1}
    assert [each.met for each in run.summary.objectives] == [False]


# Threads


def heard(done):
    return Progress(done, 0.0, 1.0, done, 0, 0)


def test_jobs_in_threads_are_heard_and_those_that_fail_leave_others():
    news = []

    def work(job, hear):
        hear(heard(job.seed))
        if job.seed == 2:
            raise RunError("two")
        return job.seed

    jobs = [Job("x", seed, f"x{seed}") for seed in range(4)]
    done, failed = in_threads(jobs, work, 2, news.append)
    assert done == {"x0": 0, "x1": 1, "x3": 3} and {label: str(error) for label, error in failed.items()} == {
        "x2": "two"}
    assert [each.progress.events for each in news if each.kind == PROGRESS and each.label == "x3"] == [3]
    assert sorted(each.kind for each in news if each.kind in (DONE, FAILED)) == [DONE] * 3 + [FAILED]


def test_what_is_raised_by_the_caller_ends_the_runs():
    ended = threading.Event()

    def work(job, hear):
        try:
            while True:
                hear(heard(1))
        finally:
            ended.set()

    def stop(news):
        if news.kind == PROGRESS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_threads([Job("x", 1, "x")], work, 1, stop)
    assert ended.wait(10)


def test_what_is_no_failure_of_a_run_is_raised():
    def work(job, hear):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_threads([Job("x", 1, "x")], work, 1, lambda news: None)


# What is shown


def test_charts_show_themselves_and_become_files(tmp_path):
    before = alt.renderers.active, alt.theme.active, alt.data_transformers.active
    comparison = subak.compare(loaded(), ["first-fit", "first-fit+backfill"])
    assert "queue-length" in comparison.charts and "utilisation-cpu" in comparison.charts
    chart = comparison.chart("queue-length")
    bundle = chart._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg") and bundle["text/plain"] == "Chart: Queue length"
    assert bundle[MIME]["title"]["text"] == "Queue length" and MIME.endswith("v6+json")
    assert set(re.findall(r"https?://[^\"' ]+", bundle["image/svg+xml"])) <= {
        "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert isinstance(chart.altair, alt.Chart)
    for kind, head in (("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>")):
        assert chart.save(tmp_path / f"c.{kind}").read_bytes().lower().startswith(head.lower())
    with pytest.raises(InputError, match=r"must end in \.html, \.svg, \.png or \.pdf"):
        chart.save(tmp_path / "c.gif")
    with pytest.raises(InputError, match="did you mean 'queue-length'"):
        comparison.chart("queue-lenght")
    page = comparison.report(tmp_path / "page.html").read_text()
    assert "first-fit+backfill" in page and 'id="queue-length"' in page
    assert (alt.renderers.active, alt.theme.active, alt.data_transformers.active) == before


def test_tables_show_themselves():
    comparison = subak.compare(loaded(), ["first-fit", policy(first, "backfill", name="<b>mine</b>")])
    page, table = comparison._repr_html_(), comparison.table()
    assert "<b>13.8</b>" in page and "first-fit" in page and "&lt;b&gt;mine&lt;_b&gt;+backfill" in page
    assert "<b>mine" not in page + table._repr_html_()
    assert "Job completion" in table._repr_html_() and "Job completion" not in page
    assert repr(comparison) == repr(table) and "13.8 s *" in repr(table)
    assert not any(line.endswith(" ") for line in repr(table).splitlines())
    assert table.frame.equals(comparison.measures())
    assert "first-fit" in repr(comparison["first-fit"]) and "Wait time" in comparison["first-fit"]._repr_html_()


def test_frames_become_those_of_pandas():
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    comparison = subak.compare(loaded(), ["first-fit", "first-fit+backfill"])
    assert comparison["first-fit"].tasks.to_pandas()["start"].tolist() == [0.0, 0.0, 60.0, 70.0]
    frame = comparison.table().to_pandas()
    assert frame["value"].tolist()[:2] == [29.75, 13.75] and frame["scheduler"].tolist()[0] == "first-fit"


class Display:
    """What IPython's display returns, and what was shown."""

    def __init__(self):
        self.shown = []

    def __call__(self, bundle, raw, display_id):
        assert raw and display_id
        return self

    def update(self, bundle, raw):
        assert raw
        self.shown.append(bundle)


def test_a_notebook_shows_progress_and_leaves_nothing(monkeypatch):
    display, shell = Display(), types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    monkeypatch.setattr("subak.api.progress.EVERY_S", 0.0)
    subak.compare(loaded(), ["first-fit", "best-fit"])
    assert display.shown[-1] == {"text/plain": "", "text/html": ""}
    assert display.shown[-2]["text/plain"] == "2 of 2 runs done"
    assert any("events" in each["text/html"] for each in display.shown)
    assert '<progress value="4" max="4">' in display.shown[-2]["text/html"]
    count = len(display.shown)
    subak.run(loaded(), "first-fit", progress=False)
    assert len(display.shown) == count


def test_where_there_is_no_notebook_bars_are_the_terminals():
    assert isinstance(bars(["a"], 1, ["first-fit"], True), RunBars)
    assert isinstance(bars(["a"], 1, ["first-fit"], False), NoBars)


# The names


def test_the_interface_is_documented_and_typed():
    api = (Path(__file__).parent.parent / "docs" / "api.md").read_text()
    for name in subak.__all__:
        found = getattr(subak, name)
        assert inspect.getdoc(found) and name in dir(subak)
        assert inspect.ismodule(found) or f"heading: subak.{name}\n" in api
    assert (Path(subak.__file__).parent / "py.typed").exists()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        subak.nothing  # noqa: B018


def test_no_module_hides_a_name():
    here = Path(subak.__file__).parent
    modules = {path.stem for path in here.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert modules & set(subak.__all__) == {"errors", "policy"}
