"""The readers of Alibaba 2018, SWIM and openb: every rule by hand, how a bad line ends, and the published files."""
import gzip
import lzma
from pathlib import Path

import polars as pl
import pytest

from in_process import subak
from published import trace
from subak.errors import InputError
from subak.fleet.table import read_fleet
from subak.workload.constraints import satisfied
from subak.workload.predicates import Constraint
from subak.workload.readers import READERS
from subak.workload.readers.alibaba.alibaba2018_names import dependencies
from subak.workload.readers.conversion import Conversion
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options
from subak.workload.table import read_workload


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def convert(name: str, source: Path, **options) -> Conversion:
    return READERS[name].read(source, Options(**{"max_lost": 1.0} | options), ignore_progress)


# Alibaba 2018


def task(name="M1", *, job="j_1", count=1, start=100, end=110, cpu=100, memory=0.5, status="Terminated"):
    """A row of batch_task."""
    return f"{name},{count},{job},1,{status},{start},{end},{cpu},{memory}"


def instance(number=1, *, name="M1", job="j_1", start=100, end=110, status="Terminated"):
    """A row of batch_instance."""
    return f"ins_{number},{name},{job},1,{status},{start},{end},m_7,1,1,50,90,0.1,0.2"


def alibaba(tmp_path: Path, tasks: list[str], instances: list[str] | None = None, **options) -> Conversion:
    write(tmp_path / "A" / "batch_task.csv", *tasks)
    if instances is not None:
        write(tmp_path / "A" / "batch_instance.csv", *instances)
    return convert("alibaba2018", tmp_path / "A", **options)


def rows(conversion: Conversion, *names: str) -> list[tuple]:
    return conversion.workload.tasks.select(names).rows()


def test_a_task_becomes_a_stage_of_its_instances(tmp_path):
    conversion = alibaba(tmp_path, [task(count=2, cpu=50, memory=0.39), task("R2_1", start=110, end=140)])
    workload = conversion.workload
    assert workload.jobs.rows() == [("j_1", "all", "unknown")]
    assert workload.stages.select("job", "name", "depends_on", "kind", "priority").rows() == [
        (0, "M1", [], "TASK", 0), (0, "R2_1", [0], "TASK", 0)]
    assert workload.requests.tolist() == [[5000, 10000], [3900, 5000]]
    assert rows(conversion, "stage", "index", "arrival", "run_time", "outcome") == [
        (0, 0, 100.0, 10.0, "FINISH"), (0, 1, 100.0, 10.0, "FINISH"), (1, 2, 100.0, 30.0, "FINISH")]
    assert conversion.accounts[0].used == {"kept": 2}
    assert conversion.remarks["stages without a row of instances"] == 2


def test_instances_have_run_times_of_their_own(tmp_path):
    conversion = alibaba(
        tmp_path, [task(count=4), task("M2", status="Failed", count=1, end=105)],
        [instance(1, end=103), instance(2, end=107, status="Failed"), instance(3, start=0, end=0, status="Waiting"),
         instance(1, name="M2", start=101, end=102, status="Interrupted"), instance(2, name="M2", start=104, end=103)])
    assert rows(conversion, "stage", "index", "run_time", "outcome") == [
        (0, 0, 3.0, "FINISH"), (0, 1, 7.0, "FAIL"), (0, 2, 10.0, "FINISH"), (0, 3, 10.0, "FINISH"),
        (1, 4, 1.0, "KILL"), (1, 5, 5.0, "FAIL")]
    assert conversion.accounts[1].used == {
        "with a run time of its own": 3, "with its task's run time (its own is unknown)": 2}
    assert conversion.remarks["stages with fewer rows of instances than stated"] == 1
    assert conversion.remarks["stages with more rows of instances than stated"] == 1
    assert conversion.remarks["tasks with their stage's run time"] == 3


def test_every_instance_row_is_accounted_for(tmp_path):
    conversion = alibaba(
        tmp_path, [task(), task("M2", cpu="")],
        [instance(1, end=104), instance(1, end=102), instance(2, name="M2"), instance(3, name="M9"),
         instance(4, job="")])
    assert rows(conversion, "run_time") == [(4.0,)]
    assert conversion.accounts[1].used == {"with a run time of its own": 1}
    assert conversion.accounts[1].dropped == {
        "an earlier try of the same instance": 1, "its task is not kept, or not in batch_task": 2,
        "names no job, task or instance": 1}


def test_a_try_that_still_runs_is_the_last(tmp_path):
    conversion = alibaba(tmp_path, [task(end=150)], [instance(1, start=120, end=0, status="Running"), instance(1)])
    assert rows(conversion, "run_time", "outcome") == [(30.0, "CENSORED")]


def test_every_task_row_is_kept_or_dropped_for_a_reason(tmp_path):
    conversion = alibaba(tmp_path, [
        task(), task(), task("M2", job=""), task("M3", start=0, end=0, status="Waiting"), task("M4", start=120),
        task("M5", count=0), task("M6", count=""), task("M7", cpu=""), task("M8", memory=""), task("M9", memory=101),
        task("M10", cpu=-1), task("M11", cpu=0, memory=0), task("M1", job="late", start=500, end=510),
    ], arrival_end=500.0)
    assert conversion.accounts[0].used == {"kept": 1}
    assert conversion.accounts[0].dropped == {
        "request unknown or invalid": 4, "number of instances unknown or 0": 2, "asks for nothing of anything": 1,
        "did not start within the trace": 1, "ends before it starts": 1, "its job arrived outside the slice": 1,
        "names no job, task or instance": 1, "task seen before in its job": 1}


def test_a_task_without_an_end_keeps_what_was_seen(tmp_path):
    conversion = alibaba(tmp_path, [task(end=400), task("M2", start=150, end=0, status="Running"),
                                    task("M3", start=160, end="", status="Running"), task("M4", end=100)])
    assert rows(conversion, "run_time", "outcome") == [
        (300.0, "FINISH"), (250.0, "CENSORED"), (240.0, "CENSORED"), (0.0, "FINISH")]
    assert conversion.remarks["tasks still running at the trace's end"] == 2
    assert conversion.remarks["tasks with run time 0"] == 1
    last = alibaba(tmp_path / "last", [task(end=400), task("M2", start=400, end="", status="Running")])
    assert rows(last, "run_time") == [(300.0,), (0.0,)]


def test_a_slice_takes_whole_jobs(tmp_path):
    tasks = [task("M1", start=100), task("R2_1", start=300, end=310), task("M1", job="j_2", start=200, end=210)]
    conversion = alibaba(tmp_path, tasks, arrival_min=100.0, arrival_end=200.0)
    assert conversion.workload.stages["name"].to_list() == ["M1", "R2_1"]
    assert set(conversion.workload.tasks["arrival"]) == {100.0}
    with pytest.raises(InputError, match="none of its 3 tasks can be kept"):
        alibaba(tmp_path, tasks, arrival_min=1e6)


def named(*names: str, job: str = "j") -> tuple[list[list[int]], dict[str, int]]:
    parents, remarks = dependencies(pl.DataFrame({"job": [job] * len(names), "name": names}))
    return parents.to_list(), {words: count for words, count in remarks.items() if count}


@pytest.mark.parametrize(("names", "parents"), [
    (["M1", "M2_1", "M3_1", "R4_2", "M5_3_4"], [[], [0], [0], [1], [2, 3]]),  # Alibaba's own example
    (["R7_21", "J21"], [[1], []]),  # a parent may have the larger number and come later
    (["M1", "R1", "R2_1"], [[], [], [0, 1]]),
    (["task_Nzg3", "task_1", "MergeTask", "M1"], [[], [], [], []]),
])
def test_names_hold_the_dependencies(names, parents):
    assert named(*names)[0] == parents


def test_what_cannot_be_waited_for_is_left_out_and_counted():
    parents, remarks = named("M1_9", "M2_2_1", "R3_1_1", "M4_5", "M5_4", "M6_5", "M7_6_Stg4", "Merge", "task_1")
    assert parents == [[], [0], [0], [], [], [4], [5], [], []]
    assert remarks == {
        "dependencies": 4, "dependencies that a name gives twice (once counts)": 1,
        "dependencies on a task that is not there or not kept (left out)": 1,
        "dependencies of a task on itself (left out)": 1, "dependencies in or between cycles (left out)": 2,
        "tasks outside a DAG (task_...)": 1, "tasks whose name gives no number (they wait for nothing)": 1,
        "parts of names that are no number (ignored)": 1}


def test_dependencies_stay_within_a_job():
    parents, _ = dependencies(pl.DataFrame({"job": ["a", "b", "b"], "name": ["M1", "R2_1", "M1"]}))
    assert parents.to_list() == [[], [2], []]


def test_a_parent_that_is_dropped_is_not_waited_for(tmp_path):
    conversion = alibaba(tmp_path, [task(cpu=""), task("R2_1")])
    assert conversion.workload.stages["depends_on"].to_list() == [[]]
    assert conversion.remarks["dependencies on a task that is not there or not kept (left out)"] == 1


def test_the_schema_of_spar(tmp_path):
    write(tmp_path / "A" / "tasks_0-9s.csv", "0,j_2,R2_1,7,50.0,0.3,2", "0,j_2,M1,5,100.0,0.5,1")
    text = b"0,j_2,R2_1,ins_1,6,9.0,0.1\n0,j_2,R2_1,ins_2,4,9.0,0.1\n0,j_2,M1,ins_3,0,9.0,0.1\n"
    (tmp_path / "A" / "instances_0-9s.csv.xz").write_bytes(lzma.compress(text))
    conversion = convert("alibaba2018", tmp_path / "A")
    assert conversion.workload.stages.select("name", "depends_on").rows() == [("R2_1", [1]), ("M1", [])]
    assert rows(conversion, "stage", "index", "arrival", "run_time") == [
        (0, 0, 0.0, 6.0), (0, 1, 0.0, 4.0), (1, 2, 0.0, 0.0)]
    assert "outcome" not in conversion.workload.tasks.columns
    alone = convert("alibaba2018", tmp_path / "A" / "tasks_0-9s.csv")
    assert rows(alone, "run_time") == [(7.0,), (7.0,), (5.0,)]


def test_more_tasks_than_possible_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"makes 4e[+]08 tasks, at most 200,000,000 are possible; --from and --until"):
        alibaba(tmp_path, [task(count=200_000_000), task("M2", count=200_000_000)])


def test_the_fleet_is_the_published_one(tmp_path):
    fleet = alibaba(tmp_path, [task()]).fleet
    assert len(fleet.machines) == 4_034
    assert fleet.capacity[:, 0].tolist() == [960_000, 1_000_000]


@pytest.mark.parametrize(("line", "message"), [
    ("M1,1,j_1", "line 2: needs 9 columns, has 3"),
    (task(start=-5), "line 2: start must be a finite number, 0 or more, not -5"),
    (task(end="nan"), "line 2: end must be a finite number, 0 or more, not nan"),
    (task(cpu="x"), "line 2: cpu must be a number, not x"),
    (task(cpu="nan"), "line 2: cpu must be a number, at most"),
    (task(cpu=2.2e8), "line 2: cpu must be a number, at most 2.14748e\\+07, not"),
    (task(memory=1e9), "line 2: memory must be a number, at most 214748"),
    (task(count=1.5), "line 2: count must be a whole number, not 1.5"),
])
def test_a_bad_task_line_is_named(tmp_path, line, message):
    with pytest.raises(InputError, match=f"batch_task.csv, {message}"):
        alibaba(tmp_path, [task(), line])


@pytest.mark.parametrize(("line", "message"), [
    ("1,2", "line 1: needs 14 or 7 columns, has 2"),
    (instance(start=-1), "line 1: start must be a finite number"),
    ("0,j,M1,ins_1,-2,1,1", "line 1: duration must be a finite number, 0 or more, not -2"),
])
def test_a_bad_instance_line_is_named(tmp_path, line, message):
    with pytest.raises(InputError, match=f"batch_instance.csv, {message}"):
        alibaba(tmp_path, [task()], [line])


def test_a_source_without_tasks(tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        convert("alibaba2018", tmp_path / "absent")
    with pytest.raises(InputError, match=r"needs a file batch_task\*.csv or tasks"):
        convert("alibaba2018", tmp_path)
    with pytest.raises(InputError, match="has no tasks"):
        convert("alibaba2018", write(tmp_path / "batch_task.csv"))


def test_the_sample_of_alibaba2018():
    conversion = convert("alibaba2018", trace("alibaba2018"))
    workload = conversion.workload
    assert (len(workload.jobs), len(workload.stages), len(workload.tasks)) == (7_320, 28_435, 1_369_402)
    assert [each.dropped for each in conversion.accounts] == [{}, {}]
    assert conversion.remarks["dependencies"] == workload.stages["depends_on"].list.len().sum() == 21_722
    assert conversion.remarks["dependencies that a name gives twice (once counts)"] == 3
    assert workload.tasks["run_time"].sum() == 76_024_282
    slice_ = convert("alibaba2018", trace("alibaba2018"), arrival_end=60.0)
    assert slice_.workload.tasks.equals(workload.tasks.head(len(slice_.workload.tasks)))


# SWIM


def swim(tmp_path: Path, *lines: str, **options) -> Conversion:
    return convert("swim", write(tmp_path / "fb.tsv", *lines), **options)


MODEL = {"block_bytes": 100.0, "reduce_bytes": 50.0, "reduces_max": 3.0, "map_bytes_per_second": 10.0,
         "reduce_bytes_per_second": 5.0, "copy_bytes_per_second": 4.0, "floor_seconds": 2.0}


def test_bytes_become_maps_and_reduces(tmp_path):
    conversion = swim(tmp_path, "job0\t7\t7\t250\t50\t40", model=MODEL)
    workload = conversion.workload
    assert workload.stages.select("job", "name", "depends_on", "slot").rows() == [
        (0, "map", [], 1), (0, "reduce", [0], 1)]
    assert workload.tasks.rows() == [(0, 0, 7.0, 12.0), (0, 1, 7.0, 12.0), (0, 2, 7.0, 12.0), (1, 3, 7.0, 20.0)]
    assert conversion.fleet is None
    assert workload.provenance.notes["parameters"] == MODEL
    assert "ceil(input / block_bytes)" in workload.provenance.notes["model"]["maps"]


@pytest.mark.parametrize(("line", "maps", "reduces"), [
    ("a 0 0 0 0 0", [2.0], []),
    ("a 0 0 100 0 20", [14.0], []),
    ("a 0 0 0 0 20", [4.0], []),
    ("a 0 0 101 1 0", [2.0 + 102 / 20] * 2, [2.2]),
    ("a 0 0 100 300 0", [42.0], [22.0] * 3),  # 6 reduces, were there no most
])
def test_the_rules_of_the_model(tmp_path, line, maps, reduces):
    workload = swim(tmp_path, line, model=MODEL).workload
    stages = workload.stages["name"].gather(workload.tasks["stage"])
    assert workload.tasks.filter(stages == "map")["run_time"].to_list() == pytest.approx(maps)
    assert workload.tasks.filter(stages == "reduce")["run_time"].to_list() == pytest.approx(reduces)


@pytest.mark.parametrize(("shuffle", "run_time", "column"), [
    ("ignored", 2.0 + 140 / 3 / 5, None), ("stage", 2.0 + 140 / 3 / 5, [0.0, 10.0, 0.0]),
    ("task", 2.0 + 140 / 3 / 5 + 10.0, None),
])
def test_the_copy_of_the_maps_output(tmp_path, shuffle, run_time, column):
    workload = swim(tmp_path, "a 0 0 50 120 20", "b 0 0 50 0 20", model=MODEL, shuffle=shuffle).workload
    reduces = workload.stages["name"].gather(workload.tasks["stage"]) == "reduce"
    assert workload.tasks.filter(reduces)["run_time"].to_list() == pytest.approx([run_time] * 3)
    assert (workload.stages["shuffle"].to_list() if "shuffle" in workload.stages.columns else None) == column
    assert workload.provenance.notes["options"]["shuffle"] == shuffle


def test_separate_slots(tmp_path):
    workload = swim(tmp_path, "a 0 0 50 120 20", slots="separate").workload
    assert workload.stages.select("name", "map_slot", "reduce_slot").rows() == [("map", 1, 0), ("reduce", 0, 1)]


def test_the_default_model(tmp_path):
    conversion = swim(tmp_path, "a 0 0 134217729 0 0")
    assert len(conversion.workload.tasks) == 2
    assert conversion.workload.provenance.notes["parameters"]["block_bytes"] == 128 * 1024**2


def test_swim_rows_and_remarks(tmp_path):
    conversion = swim(tmp_path, "a 9 0 1 0 1", "b 5 1 0 0 0", "a 6 1 1 0 0", "c 99 93 1 1 1e12", arrival_end=50.0)
    assert conversion.workload.jobs["job"].to_list() == ["b", "a"]
    assert conversion.accounts[0].dropped == {"job seen before": 1, "arrived outside the slice": 1}
    assert conversion.remarks == {
        "run times and numbers of tasks": "modelled, see --model; the trace has bytes only", "maps (modelled)": 2,
        "jobs without a reduce": 2, "jobs that read no input (one map)": 1,
        "jobs without any bytes (one map of the floor's length)": 1,
        "gaps that differ from the submit times (the submit times count)": 1,
        "fleet": "none written: the trace has no machines"}


# Lines of SWIM's FB-2010_samples_24_times_1hr_withInputPaths_0 (New BSD), and one as WorkloadSynthesis.pl writes it
# where it knows the output as well.
WITH_PATHS = ("job0\t1\t1\t2267942\t0\t1937944\tinputPath1\t\t",
              "job5\t2\t0\t87734611\t102012497\t663299\tinputPath2\t\t",
              "job280\t1512\t1\t0\t0\t32512\tinputPath180\t\t", "job9\t1600\t88\t1\t0\t1\tinputPath2\toutputPath7\t")


def test_paths_of_data_are_counted_and_change_nothing(tmp_path):
    conversion = swim(tmp_path, *WITH_PATHS, "job99\t1700\t100\t1\t0\t1\t\t\t")
    without = swim(tmp_path, *("\t".join(line.split("\t")[:6]) for line in WITH_PATHS), "job99\t1700\t100\t1\t0\t1")
    for name in ("jobs", "stages", "tasks"):
        assert getattr(conversion.workload, name).equals(getattr(without.workload, name))
    assert conversion.remarks == without.remarks | {
        "jobs with paths of their data (where data lies is not modelled)": 4}


def test_a_long_modelled_task_is_remarked(tmp_path):
    assert swim(tmp_path, "a 0 0 1 0 1e12").remarks["modelled tasks of more than an hour"] == 1


@pytest.mark.parametrize(("line", "message"), [
    ("a 1 2 3 4", "needs 6 fields, and at most 2 paths, not 5"),
    ("a 1 2 3 4 5 6", "after 6 fields there may be paths, not 6"),
    ("a 1 2 3 4 5 in out more", "needs 6 fields, and at most 2 paths, not 9"),
    ("a x 2 3 4 5", "submit must be a finite number, 0 or more, not x"),
    ("a 1 2 3 -4 5", "shuffle must be a finite number, 0 or more, not -4"),
    ("a 1 2 inf 4 5", "input must be a finite number, 0 or more, not inf"),
])
def test_a_bad_swim_line_is_named(tmp_path, line, message):
    with pytest.raises(InputError, match=f"fb.tsv, line 2: {message}"):
        swim(tmp_path, "b 1 1 1 1 1", line)


@pytest.mark.parametrize(("model", "message"), [
    ({"block": 1.0}, "--model: must name one of block_bytes, .*, floor_seconds, not 'block'"),
    ({"block_bytes": 0.0}, "--model: block_bytes must be a finite number above 0, not 0"),
    ({"floor_seconds": -1.0}, "--model: floor_seconds must be a finite number 0 or more, not -1"),
    ({"map_bytes_per_second": float("nan")}, "--model: map_bytes_per_second must be a finite number above 0, not nan"),
    ({"reduces_max": 1.5}, "--model: reduces_max must be a whole number, not 1.5"),
    ({"block_bytes": 1e-9}, "--model: makes 1e[+]09 tasks, at most 200,000,000 are possible; .*, a larger block_bytes"),
])
def test_a_bad_model_is_refused(tmp_path, model, message):
    with pytest.raises(InputError, match=message):
        swim(tmp_path, "a 1 1 1 1 1", model=model)


def test_swim_without_jobs(tmp_path):
    with pytest.raises(InputError, match="has no jobs"):
        swim(tmp_path)
    with pytest.raises(InputError, match="none of its 1 jobs can be kept"):
        swim(tmp_path, "a 1 1 1 1 1", arrival_min=9.0)
    with pytest.raises(InputError, match="is a folder"):
        convert("swim", tmp_path)


@pytest.mark.parametrize(("year", "jobs", "stages", "tasks"), [
    (2009, 5_894, 7_340, 221_297), (2010, 24_442, 40_560, 8_323_578),
])
def test_the_samples_of_swim(year, jobs, stages, tasks):
    conversion = convert("swim", trace("swim", f"FB-{year}_samples_24_times_1hr_0.tsv.gz"))
    workload = conversion.workload
    assert (len(workload.jobs), len(workload.stages), len(workload.tasks)) == (jobs, stages, tasks)
    assert conversion.accounts[0].dropped == {}


# openb

POD_HEAD = ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
            "scheduled_time")
NODE_HEAD = "sn,cpu_milli,memory_mib,gpu,model"
NODE_ROWS = ("n0,32000,262144,0,", "n1,96000,786432,8,V100M32", "n2,64000,393216,2,T4", "n3,64000,393216,4,V100M16")


def pod(name="p0", *, cpu=4000, memory=1024, gpus=1, milli=460, spec="", qos="LS", phase="Succeeded", created=10,
        deleted=100, scheduled=40):
    """A row of openb_pod_list."""
    return f"{name},{cpu},{memory},{gpus},{milli},{spec},{qos},{phase},{created},{deleted},{scheduled}"


def openb(tmp_path: Path, *pods: str, nodes: tuple[str, ...] | None = NODE_ROWS, **options) -> Conversion:
    write(tmp_path / "O" / "openb_pod_list_default.csv", POD_HEAD, *pods)
    if nodes is not None:
        write(tmp_path / "O" / "openb_node_list_all_node.csv", NODE_HEAD, *nodes)
    return convert("openb", tmp_path / "O", **options)


def test_a_pod_is_a_job_of_one_task(tmp_path):
    conversion = openb(tmp_path, pod(), pod("p1", gpus=2, milli=1000, created=5, scheduled=5),
                       pod("p2", gpus=0, milli=0, created=20))
    workload = conversion.workload
    assert workload.jobs.rows() == [("p1", "all", "unknown"), ("p0", "all", "unknown"), ("p2", "all", "unknown")]
    assert workload.requests.tolist() == [[4000] * 3, [1024] * 3, [2000, 460, 0]]
    assert rows(conversion, "stage", "arrival", "run_time", "outcome") == [
        (0, 5.0, 95.0, "FINISH"), (1, 10.0, 60.0, "FINISH"), (2, 20.0, 60.0, "FINISH")]
    assert conversion.remarks == {
        "pods that ask for GPUs": 2, "pods that ask for a part of a GPU (a node's GPUs are one pool)": 1,
        "pods that waited before they were scheduled": 2}


def test_qos_is_the_priority_and_phase_the_kind(tmp_path):
    conversion = openb(tmp_path, pod("a", qos="BE", phase="Failed"), pod("b", qos="Burstable", phase="Running"),
                       pod("c", qos="LS", phase="Running", deleted=200), pod("d", qos="Guaranteed"))
    assert conversion.workload.stages.select("priority", "kind").rows() == [
        (0, "TASK"), (1, "SERVICE"), (2, "SERVICE"), (3, "TASK")]
    assert conversion.workload.tasks["outcome"].to_list() == ["FAIL", "KILL", "CENSORED", "FINISH"]


def test_nodes_are_the_fleet(tmp_path):
    fleet = openb(tmp_path, pod(), nodes=(*NODE_ROWS, NODE_ROWS[0])).fleet
    assert fleet.capacity.tolist() == [
        [32000, 96000, 64000, 64000], [262144, 786432, 393216, 393216], [0, 8000, 2000, 4000]]
    assert fleet.attribute("gpu_model").to_list() == [None, "V100M32", "T4", "V100M16"]
    assert fleet.provenance.notes["nodes"]["dropped"] == {"node seen before": 1}


def test_alternatives_are_an_attribute_of_the_nodes_that_serve(tmp_path):
    conversion = openb(tmp_path, pod("a", spec="V100M32|V100M16"), pod("b", spec="T4"), pod("c"),
                       pod("d", spec="V100M16|V100M32"))
    sets = [[Constraint(**each) for each in row] for row in conversion.workload.stages["constraints"].to_list()]
    either = Constraint("gpu_model of V100M16|V100M32", "=", "yes")
    assert sets == [[either], [Constraint("gpu_model", "=", "T4")], [], [either]]
    fits = [satisfied(each, conversion.fleet.attribute(each.attribute)).tolist() for each in (either, sets[1][0])]
    assert fits == [[False, True, False, True], [False, False, True, False]]
    assert conversion.remarks["pods that name GPU models"] == 3
    assert conversion.remarks["pods that name several GPU models"] == 2


def test_every_pod_is_kept_or_dropped_for_a_reason(tmp_path):
    conversion = openb(
        tmp_path, pod("a"), pod("a"), pod("b", scheduled="", phase="Pending"), pod("c", deleted=""),
        pod("d", deleted=30), pod("e", cpu=0, memory=0, milli=0), pod("f", created=50, scheduled=50),
        pod("g", milli=0), pod("h", deleted=40), arrival_end=50.0)
    assert conversion.accounts[0].used == {"kept": 3}
    assert conversion.accounts[0].dropped == dict.fromkeys([
        "pod seen before", "never started, so its run time is unknown", "deletion time unknown",
        "deleted before it was scheduled", "asks for nothing of anything", "arrived outside the slice"], 1)
    assert conversion.remarks["pods with run time 0"] == 1
    assert conversion.remarks[
        "pods whose num_gpu and gpu_milli disagree on whether they need GPUs (they get none)"] == 1


def test_a_thousandth_of_a_gpu_is_something(tmp_path):
    conversion = openb(tmp_path, pod("a", cpu=0, memory=0, milli=1), pod("b", cpu=0, memory=0, milli=2))
    assert conversion.accounts[0].used == {"kept": 2}


def test_pods_without_nodes(tmp_path):
    conversion = openb(tmp_path, pod(), nodes=None)
    assert conversion.fleet is None
    assert conversion.remarks["fleet"] == "none written: there is no openb_node_list*.csv beside the pods"
    with pytest.raises(InputError, match="none of its 1 pods can be kept"):
        openb(tmp_path, pod(), arrival_min=1e6)


def test_which_files_are_read(tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        convert("openb", tmp_path / "absent")
    with pytest.raises(InputError, match=r"needs one file openb_pod_list\*.csv, plain, gz or xz; it has 0$"):
        convert("openb", tmp_path)
    openb(tmp_path, pod())
    (tmp_path / "O" / "openb_pod_list_cpu.csv.gz").write_bytes(gzip.compress(f"{POD_HEAD}\r\n{pod('z')}\r\n".encode()))
    write(tmp_path / "O" / "openb_node_list_a.csv", NODE_HEAD, "other,1,1,0,")
    with pytest.raises(InputError, match="it has 2, name one of them"):
        convert("openb", tmp_path / "O")
    conversion = convert("openb", tmp_path / "O" / "openb_pod_list_cpu.csv.gz")
    assert conversion.workload.jobs["job"].to_list() == ["z"]
    assert len(conversion.fleet.machines) == 4


@pytest.mark.parametrize(("line", "message"), [
    ("p,1,2", "needs 11 columns, has 3"),
    (pod(""), "name must be given, is missing"),
    (pod(created=""), "creation_time must be given, is missing"),
    (pod(cpu=-1), "cpu_milli must be a finite number, 0 or more, not -1"),
    (pod(cpu=3e9), "cpu_milli must be at most 2147483647"),
    (pod(gpus=1.5), "num_gpu must be a whole number, not 1.5"),
    (pod(milli=1001), "gpu_milli must be at most 1000, not 1001"),
    (pod(spec="T4|"), "gpu_spec must be names of GPU models with | between them"),
    (pod(qos="Gold"), "qos must be one of BE, Burstable, LS, Guaranteed, not Gold"),
    (pod(phase="Lost"), "pod_phase must be one of Succeeded, Failed, Running, Pending, not Lost"),
    (pod(deleted=-3), "deletion_time must be a finite number, 0 or more, not -3"),
])
def test_a_bad_pod_line_is_named(tmp_path, line, message):
    with pytest.raises(InputError) as error:
        openb(tmp_path, pod(), line)
    assert f"openb_pod_list_default.csv, line 3: {message}" in str(error.value)


@pytest.mark.parametrize(("nodes", "message"), [
    (("n0,1,2", ), "line 2: needs 5 columns, has 3"),
    ((",1,2,0,", ), "line 2: sn must be given"),
    (("n0,1,2,-1,", ), "line 2: gpu must be a finite number, 0 or more, not -1"),
    (("n0,1,2,3000000,", ), "line 2: gpu must be at most 2147483.647"),
    ((), "has no rows"),
])
def test_a_bad_node_line_is_named(tmp_path, nodes, message):
    with pytest.raises(InputError, match=f"openb_node_list_all_node.csv.* ?{message}"):
        openb(tmp_path, pod(), nodes=nodes)


def test_a_header_is_needed(tmp_path):
    with pytest.raises(InputError, match="line 1: must be the header name,cpu_milli"):
        convert("openb", write(tmp_path / "openb_pod_list_x.csv", pod()))
    with pytest.raises(InputError, match="has no rows"):
        convert("openb", write(tmp_path / "openb_pod_list_x.csv"))


def test_the_published_openb():
    conversion = convert("openb", trace("openb2023"))
    assert len(conversion.workload.tasks) == 7_255
    assert conversion.accounts[0].dropped == {"never started, so its run time is unknown": 897}
    assert conversion.fleet.capacity.sum(axis=1, dtype=int).tolist() == [125_514_000, 612_028_416, 6_212_000]
    assert conversion.workload.tasks["outcome"].value_counts(sort=True).rows() == [
        ("KILL", 5_159), ("FAIL", 1_870), ("FINISH", 192), ("CENSORED", 34)]


# End to end


def test_a_converted_slice_is_simulated(tmp_path):
    write(tmp_path / "A" / "batch_task.csv", task(count=3), task("R2_1", count=2), task(job="j_2", start=900, end=905))
    converted = subak("convert", "alibaba2018", tmp_path / "A", "--until", 500, "--out", tmp_path / "W")
    assert converted.returncode == 0, converted.stderr
    assert "dropped: its job arrived outside the slice" in converted.stdout
    done = subak("simulate", tmp_path / "W", "--out", tmp_path / "R")
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(tmp_path / "R" / "tasks.parquet").select("start", "finish").rows() == [
        (100.0, 110.0)] * 3 + [(110.0, 120.0)] * 2


def test_an_openb_pod_runs_on_a_node_of_its_model(tmp_path):
    openb(tmp_path, pod("a", spec="T4|V100M16"), pod("b", spec="P100"))
    assert subak("convert", "openb", tmp_path / "O", "--out", tmp_path / "W").returncode == 0
    done = subak("simulate", tmp_path / "W", "--out", tmp_path / "R")
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(tmp_path / "R" / "tasks.parquet").select("machine", "status").rows() == [
        ("n2", "FINISHED"), (None, "UNPLACEABLE")]


def test_the_model_is_set_by_options(tmp_path):
    source = write(tmp_path / "fb.tsv", "a 0 0 1e9 0 0")
    done = subak("convert", "swim", source, "--model", "block_bytes=1e8", "--model", "floor_seconds=0",
                 "--out", tmp_path / "W")
    assert done.returncode == 0, done.stderr
    workload = read_workload(tmp_path / "W")
    assert workload.tasks["run_time"].to_list() == [5.0] * 10
    assert workload.provenance.notes["parameters"]["floor_seconds"] == 0
    again = ("--out", tmp_path / "X")
    assert "--model: must be NAME=NUMBER" in subak("convert", "swim", source, "--model", "x", *again).stderr
    assert "--model: must name each once" in subak(
        "convert", "swim", source, "--model", "a=1", "--model", "a=1", *again).stderr
    assert "--model: has no meaning for the format tr" in subak(
        "convert", "tr", source, "--model", "block_bytes=1", *again).stderr


@pytest.mark.parametrize(("name", "source", "options"), [
    ("alibaba2018", ("alibaba2018",), ("--until", 30)),
    ("openb", ("openb2023",), ("--from", 12e6)),
])
def test_a_slice_of_a_published_trace_runs_on_its_machines(tmp_path, name, source, options):
    done = subak("convert", name, trace(*source), *options, "--out", tmp_path / "W")
    assert done.returncode == 0, done.stderr
    assert len(read_fleet(tmp_path / "W" / "fleet").machines) > 1_000
    done = subak("simulate", tmp_path / "W", "--out", tmp_path / "R")
    assert done.returncode == 0, done.stderr
    assert set(pl.read_parquet(tmp_path / "R" / "tasks.parquet")["status"]) == {"FINISHED"}
