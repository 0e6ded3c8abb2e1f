"""The scheduler of the log: starts as traces record them, and a run of them, beside the engine's own runs."""
import csv
import gzip
import json
import math
import statistics
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from published import DATA, trace
from small import CPU, cases, fleet_of, plain, staged
from subak.errors import InputError
from subak.experiment.inputs import load_inputs
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.measures.run_folders import load_runs
from subak.policy import find_scheduler
from subak.simulator.failures.plan import FailurePlan
from subak.simulator.recorded import _edges
from subak.simulator.results import attempt_table, task_table, timeline_table
from subak.simulator.simulate import simulate
from subak.workload.mapreduce import MapReduce, draw_batch
from subak.workload.readers import READERS
from subak.workload.readers.conversion import Options
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.samples import sample_folder
from subak.workload.table import make_workload, read_workload

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=100)
RECORDED = find_scheduler("recorded")
TIMES = ["arrival", "run_time", "ready", "start", "finish", "wait_time"]


def with_starts(workload, starts):
    return replace(workload, tasks=workload.tasks.with_columns(pl.Series("recorded_start", starts, dtype=pl.Float64)))


def recorded(workload, fleet, starts, **more):
    """The task table and the timeline of the run that a log of these *starts* records."""
    told = with_starts(workload, starts)
    outcome = simulate(told, fleet, RECORDED, interval=1.0, **more)
    assert len(attempt_table(outcome, told, fleet)) == 0
    return task_table(outcome, told, fleet), timeline_table(outcome, told)


def convert(name, source, **options):
    return READERS[name].read(source, Options(**options), ignore_progress).workload


# Beside the engine: what it did, written down as a log, is what it did


@quick
@given(case=cases(endless=False), name=st.sampled_from(["first-fit", "best-fit+backfill", "tetris"]),
       until=st.sampled_from([math.inf, 0.0, 1.0, 2.5, 4.0, 6.0]))
def test_the_log_of_a_run_is_that_run(case, name, until):
    workload, fleet = case
    whole = simulate(workload, fleet, find_scheduler(name), interval=1.0)
    table = task_table(whole, workload, fleet)
    assume(len(attempt_table(whole, workload, fleet)) == 0)
    assume(table["status"].is_in(["FINISHED"]).all())
    cut = simulate(workload, fleet, find_scheduler(name), interval=1.0, until=until)
    tasks, timeline = recorded(workload, fleet, table["start"], until=until)
    theirs, of_theirs = task_table(cut, workload, fleet), timeline_table(cut, workload)
    assert tasks.select(*TIMES, "attempts", "queue").equals(theirs.select(*TIMES, "attempts", "queue"))
    assert tasks["status"].to_list() == theirs["status"].to_list()
    counts = ["time", "arrivals", "starts", "ends", "lost", "waiting_max"]
    assert timeline.select(counts).equals(of_theirs.select(counts))
    amounts = [name for name in timeline.columns if name.startswith(("used", "capacity"))]
    means = ["span", "waiting", "running", *amounts]
    assert timeline.select(means).to_numpy() == pytest.approx(of_theirs.select(means).to_numpy(), abs=1e-9)
    assert all(timeline[f"stranded_{each.name}"].null_count() == len(timeline) for each in workload.resources)
    assert tasks["machine"].null_count() == len(tasks)


# By hand


def test_two_who_share_what_is_there_for_one_hold_twice_the_fleet():
    """A fleet of 2 cores; from 1 to 4 s and from 2 to 4 s two tasks hold 2 each, the second waited from 0.5 s on."""
    tasks, timeline = recorded(plain((0.5, 2, 2), (1, 3, 2)), fleet_of((2,)), [2, 1])
    assert tasks.select("ready", "start", "finish", "wait_time", "status").rows() == [
        (0.5, 2, 4, 1.5, "FINISHED"), (1, 1, 4, 0, "FINISHED")]
    assert timeline.select("waiting", "waiting_max", "running", "used_cpu", "capacity_cpu").rows() == [
        (0.5, 1, 0, 0, 2), (1, 1, 1, 2, 2), (0, 0, 2, 4, 2), (0, 0, 2, 4, 2)]
    _, before = recorded(plain((0.5, 2, 2), (1, 3, 2)), fleet_of((2,)), [2, 1], until=0.25)
    assert before.select("span", "waiting", "waiting_max", "running").rows() == [(0.25, 0, 0, 0)]


def test_a_task_whose_start_is_not_known_neither_waits_nor_runs():
    tasks, timeline = recorded(plain((0, 2, 1), (0, 5, 1)), fleet_of((2,)), [1, None])
    assert tasks["status"].to_list() == ["FINISHED", "UNPLACEABLE"]
    assert tasks["reason"].to_list() == [None, "the log does not know when it started"]
    assert tasks.row(1, named=True) | {"ready": 0.0, "start": None, "finish": None, "wait_time": None,
                                       "attempts": 0} == tasks.row(1, named=True)
    assert timeline.select("waiting_max", "used_cpu").rows() == [(1, 0), (0, 1), (0, 1)]


def test_services_run_on_and_the_fleet_comes_and_goes():
    fleet = fleet_of((2,), (4,), changes=[(1.5, 0, False, 0), (2.0, 1, True, 1)])
    tasks, timeline = recorded(plain((0, math.inf, 1), (0, 3, 1)), fleet, [0, 0])
    assert tasks["status"].to_list() == ["RUNNING", "FINISHED"]
    assert timeline.select("running", "used_cpu", "capacity_cpu").rows() == [(2, 2, 6), (2, 2, 5), (2, 2, 1)]
    assert recorded(plain((0, math.inf, 1)), fleet, [0], until=3.0)[1]["used_cpu"].to_list() == [1, 1, 1]


def test_run_times_are_those_of_the_log_whatever_machines_are_given():
    workload, fleet = draw_batch(MapReduce(jobs=2), 1)
    assert (fleet.speeds != 1).any()
    tasks, _ = recorded(workload, fleet, workload.tasks["arrival"])
    assert (tasks["finish"] - tasks["start"] - tasks["run_time"]).abs().max() < 1e-6


@pytest.mark.parametrize(("share", "ready"), [(1.0, 4), (0.5, 2), (0.25, 2), (0.0, 1)])
def test_who_waits_for_a_stage_is_ready_when_enough_of_it_has_ended_or_when_it_started(share, ready):
    """Maps end at 2 s and 4 s; their job came at 1 s. One reduce starts at 6 s, another already at 3 s."""
    workload = staged([{"request": (1,)}, {"request": (1,), "depends_on": [0]}],
                      [(0, 1, 1), (0, 1, 2), (1, 1, 1), (1, 1, 1)])
    tasks, _ = recorded(workload, fleet_of((1,)), [1, 2, 6, 3], slow_start=share)
    assert tasks["ready"].to_list() == [1, 1, ready, min(ready, 3)]
    assert tasks["wait_time"].to_list() == [0, 1, 6 - ready, max(3 - ready, 0)]


def test_a_default_interval_is_doubled_until_it_fits_and_a_given_one_is_refused():
    edges = _edges(1.0, 10_000.5, fixed=False)
    assert (edges[1], len(edges) - 1, edges[-1]) == (4.0, 2501, 10_000.5)
    assert _edges(2.0, 0.0, fixed=True).tolist() == [0, 0]
    assert _edges(2.0, 4.0, fixed=True).tolist() == [0, 2, 4]
    with pytest.raises(InputError, match=r"interval: 0\.001 s makes more than 10,000,000 intervals"):
        _edges(0.001, 20_000.0, fixed=True)


# What traces say

SWF = ["; MaxProcs: 4",
       "1 10 5 100 2 -1 -1 2 200 -1 1 1 1 -1 1 -1 -1 -1", "2 20 0 50 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1",
       "3 20.5 -1 50 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1", "4 30 70.5 1 1 -1 -1 1 -1 -1 0 2 1 -1 1 -1 -1 -1"]


def test_a_recorded_wait_of_swf_becomes_a_start(tmp_path):
    path = tmp_path / "a.swf"
    path.write_text("\n".join(SWF))
    workload = convert("swf", path, computer="one-machine")
    assert workload.tasks["recorded_start"].to_list() == [15, 20, None, 100.5]
    assert workload.provenance.notes["remarks"]["jobs whose wait is recorded"] == 3


def text_of(path):
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return file.read()


@pytest.mark.parametrize("name", ["made.swf", "NASA-iPSC-1993-3.1-cln.swf.gz", "LCG.swf.gz"])
def test_the_mean_wait_of_an_swf_log_is_that_of_its_text(tmp_path, run, name):
    """NASA's log and the grid's know none, and are refused; a made one has some."""
    path = tmp_path / name
    path.write_text("\n".join(SWF)) if name == "made.swf" else path.write_bytes(trace("swf", name).read_bytes())
    jobs = [line.split() for line in text_of(path).splitlines() if line.strip() and not line.startswith(";")]
    waits = [float(job[2]) for job in jobs if float(job[2]) >= 0 and float(job[3]) >= 0 and job[10] in "015"]
    assert run("convert", "swf", path, "--computer", "one-machine", "--out", tmp_path / "W")[0] == 0
    code, _, said = run("simulate", tmp_path / "W", "--scheduler", "recorded", "--out", tmp_path / "R")
    if not waits:
        assert (code, said.count("\n"), (tmp_path / "R").exists()) == (2, 1, False)
        assert "recorded: the workload does not know when its tasks started" in said
    else:
        assert code == 0
        assert load_runs(tmp_path / "R")[0].summary.wait_time.mean == pytest.approx(statistics.mean(waits))


def rumen_waits(path):
    """Seconds that each map, and each reduce, of a text waited: from submission, or its job's last map's end."""
    decoder, text, at, waits = json.JSONDecoder(), text_of(path).strip(), 0, []
    while at < len(text):
        job, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        kept = {kind: [min(good, key=lambda each: each["finishTime"]) for task in job[f"{kind}Tasks"]
                       if (good := [each for each in task["attempts"] if each["result"] == "SUCCESS"])]
                for kind in ("map", "reduce")}
        came = job["submitTime"]
        waits += [max(each["startTime"] - came, 0) / 1000 for each in kept["map"]]
        maps_end = max((each["finishTime"] for each in kept["map"]), default=came)
        waits += [max(min(max(each["startTime"], maps_end), each["finishTime"]) - max(maps_end, came), 0) / 1000
                  for each in kept["reduce"]]
    return waits


@pytest.mark.parametrize("name", ["trace_3m.json.gz", "4-jobs.trace.json.gz"])
def test_the_mean_wait_of_hadoops_history_is_that_of_its_text(tmp_path, run, name):
    path = DATA / "rumen" / name
    assert run("convert", "rumen", path, "--unfinished", "drop", "--out", tmp_path / "W")[0] == 0
    assert run("simulate", tmp_path / "W", "--scheduler", "recorded", "--out", tmp_path / "R")[0] == 0
    waits, summary = rumen_waits(path), load_runs(tmp_path / "R")[0].summary
    assert summary.status["FINISHED"] == len(waits)
    assert summary.wait_time.mean == pytest.approx(statistics.mean(waits), abs=1e-3)
    assert summary.makespan_bound is None  # of machines that nobody knows
    assert "recorded_start" not in convert("rumen", path, batch=True).tasks.columns


def test_the_mean_wait_of_pods_is_that_of_their_list():
    folder = trace("openb2023")
    with (folder / "openb_pod_list_default.csv").open() as file:
        pods = [row for row in csv.DictReader(file) if row["scheduled_time"]]
    waits = [max(float(pod["scheduled_time"]) - float(pod["creation_time"]), 0.0) for pod in pods]
    tasks = convert("openb", folder).tasks
    assert len(tasks) == len(waits)
    assert (tasks["recorded_start"] - tasks["arrival"]).mean() == pytest.approx(statistics.mean(waits))


def test_the_mean_wait_of_googles_tasks_is_that_of_their_events(tmp_path):
    """From SUBMIT to the first SCHEDULE of each of those who were submitted once, in the second part alone."""
    rows = list(csv.reader(text_of(trace("google2011", "task_events") / "part-00001-of-00500.csv.gz").splitlines()))
    events = {}
    for row in rows:
        events.setdefault((row[2], row[3]), []).append((int(row[0]), int(row[5])))
    once = {key: dict((kind, time) for time, kind in reversed(sorted(found))) for key, found in events.items()
            if [kind for _, kind in found].count(0) == 1 and [kind for _, kind in found].count(1) == 1}
    waits = {key: (found[1] - found[0]) / 1e6 for key, found in once.items() if found[1] >= found[0]}
    (tmp_path / "task_events").mkdir()
    with gzip.open(tmp_path / "task_events" / "part-00001-of-00500.csv.gz", "wt") as file:
        csv.writer(file).writerows(rows)
    workload = convert("google2011", tmp_path)
    jobs = workload.jobs["job"].gather(workload.stages["job"].gather(workload.tasks["stage"]))
    found = dict(zip(zip(jobs, workload.tasks["index"].cast(pl.String), strict=True),
                     workload.tasks["recorded_start"] - workload.tasks["arrival"], strict=True))
    both = waits.keys() & found.keys()
    assert len(both) > 10_000
    assert statistics.mean(found[key] for key in both) == pytest.approx(statistics.mean(waits[key] for key in both))


# Refusals, and what is written


@pytest.mark.parametrize(("start", "said"), [
    (-1.0, "recorded_start must not be negative"), (math.nan, "recorded_start must be a number of seconds"),
    (math.inf, "recorded_start must be finite"), (0.5, "recorded_start must not be before arrival"),
    (2e12, "recorded_start must be at most"),
])
def test_starts_that_cannot_be_are_refused(start, said):
    workload = plain((0, 1, 1), (1, 1, 1))
    with pytest.raises(InputError, match=f"tasks: {said}.*row 1"):
        make_workload(workload.jobs, workload.stages.with_columns(cpu=pl.lit(1.0)),
                      with_starts(workload, [None, start]).tasks, CPU)


def test_what_no_log_can_be_asked_is_refused(run):
    workload = with_starts(plain((0, 1, 1)), [0])
    for more, said in (({"request_error": 0.5}, "request_error: recorded is what a log says"),
                       ({"failures": FailurePlan()}, "failures: recorded is no federation")):
        with pytest.raises(InputError, match=said):
            simulate(workload, fleet_of((1,)), RECORDED, **more)
    for none in (plain((0, 1, 1)), with_starts(plain((0, 1, 1)), [None])):
        with pytest.raises(InputError, match="recorded: the workload does not know when its tasks started"):
            simulate(none, fleet_of((1,)), RECORDED)
    code, _, said = run("simulate", "--scheduler", "recorded+backfill")
    assert (code, said.strip()) == (2, "subak: scheduler recorded: takes no options, not 'backfill'")


@pytest.fixture
def log(tmp_path):
    """A workload of 40 tasks of 2 cores on a fleet of 8; six at once have 12 in the log. Two queues."""
    folder = tmp_path / "W"
    (folder / "fleet").mkdir(parents=True)
    workload = plain(*[(row, 5, 2) for row in range(40)])
    jobs = workload.jobs.with_columns(queue=pl.Series(["a", "b"] * 20))
    with_starts(replace(workload, jobs=jobs), [row + row % 2 for row in range(40)]).write(folder)
    fleet_of((8,)).write(folder / "fleet")
    return folder


def test_a_comparison_shows_the_log_as_one_more_column(log, tmp_path, run):
    code, table, said = run("compare", log, "--schedulers", "first-fit,recorded", "--out", tmp_path / "R")
    assert code == 0
    assert table.split("\n")[0].split() == ["first-fit", "recorded"]
    assert ("recorded: the log's tasks ask for more than the fleet has, up to 150.0% of its cpu in the mean of one of "
            in said)
    assert "recorded" in (tmp_path / "R" / "report.html").read_text()
    runs = {each.label: each.summary for each in load_runs(tmp_path / "R")}
    assert runs["recorded"].wait_time.mean == 0.5
    assert runs["recorded"].knows == "not recorded"
    assert runs["recorded"].stranded == {"cpu": None}
    assert runs["first-fit"].stranded["cpu"] is not None
    assert run("report", tmp_path / "R" / "runs" / "recorded", "--out", tmp_path / "one.html")[0] == 0
    assert "on a machine that the log does not name" in run("explain", tmp_path / "R" / "runs" / "recorded", "3")[1]


def test_a_recorded_run_is_repeated_to_the_byte(log, tmp_path):
    scenario = Scenario(workload=str(log), schedulers=["recorded"])
    for name in ("one", "two"):
        simulate_into(tmp_path / name, scenario, "recorded", 1, load_inputs(scenario))
    for table in ("tasks", "timeline", "attempts", "queues", "shares"):
        first, second = ((tmp_path / name / f"{table}.parquet").read_bytes() for name in ("one", "two"))
        assert first == second
    assert load_runs(tmp_path / "one")[0].summary.fairness.queues == 2


def test_the_shipped_sample_knows_what_its_page_says():
    tasks = read_workload(sample_folder("google2011")).tasks
    later = tasks.filter(pl.col("arrival") > 0)
    assert tasks["recorded_start"].null_count() == 0
    assert (later["recorded_start"] - later["arrival"]).mean() == pytest.approx(20.7, abs=0.05)
