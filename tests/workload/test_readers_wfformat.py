"""Workflows in WfFormat: files written by hand to its schema."""
import json
from pathlib import Path

import pytest

from subak.errors import InputError
from subak.workload.readers import READERS
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options

DATA = Path(__file__).resolve().parents[1] / "data" / "published" / "wfformat"
WHOLE = {"id": "a", "name": "a", "parents": [], "children": []}


def read(source, **options):
    return READERS["wfformat"].read(source, Options(**options), ignore_progress)


def document(*tasks, runs=None, machines=(), version="1.6"):
    """Return a workflow of tasks given as changes; each runs for 3600 s on 2 cores unless *runs* says otherwise."""
    specified = [{**WHOLE, **task} for task in tasks]
    if runs is None:
        runs = [{"id": task["id"], "runtimeInSeconds": 3600, "coreCount": 2} for task in specified]
    return {"name": "w", "schemaVersion": version, "workflow": {
        "specification": {"tasks": specified, "files": []},
        "execution": {"makespanInSeconds": 1, "executedAt": "2024-05-01T10:00:00Z", "tasks": runs,
                      "machines": list(machines)}}}


def written(folder, **documents):
    for name, value in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def stage_names(conversion):
    """Return of each job its stages by name, with the names of those they wait for."""
    workload = conversion.workload
    names, jobs = workload.stages["name"].to_list(), workload.jobs["job"].to_list()
    return {(jobs[job], name): [names[each] for each in waits]
            for job, name, waits in workload.stages.select("job", "name", "depends_on").iter_rows()}


def test_the_files_of_both_layouts():
    conversion = read(DATA)
    workload = conversion.workload
    assert stage_names(conversion) == {
        ("chain-1.4", "a_ID1"): [], ("chain-1.4", "b_ID2"): ["a_ID1"], ("chain-1.4", "c_ID3"): ["b_ID2"],
        ("diamond-1.5", "split_1"): [], ("diamond-1.5", "work_1"): ["split_1"], ("diamond-1.5", "work_2"): ["split_1"],
        ("diamond-1.5", "work_3"): ["split_1"],  # only its parent says so
        ("diamond-1.5", "merge_1"): ["work_1", "work_2"]}  # the second only by its own child
    assert workload.stages["cpu"].to_list() == [2000, 1000, 1000, 1000, 4000, 1500, 1000, 1000]
    assert workload.stages["memory"].to_list() == [1, 0, 0, 1, 2048, 0, 1, 0]
    assert workload.tasks["run_time"].to_list() == [10, 5, 1, 10.25, 60, 0, 7, 20.125]
    assert workload.tasks["arrival"].to_list() == [0.0] * 8
    assert workload.tasks["recorded_start"].to_list() == [None] * 3 + [5.0] + [None] * 4
    assert conversion.fleet.machines.rows() == [("n1", "0", True, 32000, 131072)]  # the larger of two of one name
    assert conversion.accounts[1].dropped == {"machine seen before": 1, "says not how many cores it has": 1}
    assert conversion.remarks == {
        "workflows": 2, "tasks without coreCount (they ask for 1 core)": 4,
        "tasks whose memory is unknown (they ask for none)": 4, "tasks that ask for the memory that they used": 4,
        "tasks that ran on several machines (each runs on one)": 1, "tasks whose start is recorded": 1,
        "tasks with an executedAt that is none, or before their workflow's (not read)": 1, "tasks with run time 0": 1}


def test_a_workflow_without_a_run_time_is_dropped_whole_and_its_load_is_lost(tmp_path):
    good = document({"id": "a"}, {"id": "b", "parents": ["a"]})
    bad = document({"id": "a"}, {"id": "b"}, runs=[{"id": "a", "runtimeInSeconds": 7200, "coreCount": 3}])
    source = written(tmp_path, good=good, bad=bad)
    conversion = read(source, max_lost=0.9)
    assert conversion.workload.jobs["job"].to_list() == ["good"]
    assert conversion.accounts[0].dropped == {
        "how long it ran is unknown": 1,
        "of a workflow that is dropped for another task: how long it ran is unknown": 1}
    cpu = conversion.loads[0]
    assert (cpu.kept, cpu.lost, cpu.guessed, cpu.guessed_rows) == (4.0, 8.0, 2.0, 1)  # 2 h x 3 told, 2 the mean
    assert conversion.dropped.select("file", "line").rows() == [("bad.json", 1), ("bad.json", 2)]
    with pytest.raises(InputError, match=r"bad.json, task 1: of a workflow .*; 66.7% of the load would be lost"):
        read(source)


@pytest.mark.parametrize(("tasks", "runs", "reason"), [
    (({"id": "a", "parents": ["z"]},), None, "parents and children must be tasks"),
    (({"id": "a", "children": ["z"]},), None, "parents and children must be tasks"),
    (({"id": "a", "parents": ["b"]}, {"id": "b", "parents": ["a"]}), None, "in a circle"),
    (({"id": "a", "parents": ["a"]},), None, "in a circle"),
    (({"id": "a"}, {"id": "a"}), None, "no two tasks may have one name"),
    (({"id": "a"},), [{"id": "a", "runtimeInSeconds": 1}, {"id": "a", "runtimeInSeconds": 1}], "the one run of a task"),
    (({"id": "a"},), [{"id": "a", "runtimeInSeconds": 1}, {"id": "z", "runtimeInSeconds": 1}], "the one run of a task"),
    (({"id": "a"},), [{"id": "a", "runtimeInSeconds": -1}], "runtimeInSeconds must be from 0"),
    (({"id": "a"},), [{"id": "a", "runtimeInSeconds": 1, "coreCount": -1}], "cpu must be from 0"),
    (({"id": "a"},), [{"id": "a", "runtimeInSeconds": 1, "memoryInBytes": 1e18}], "memory must be from 0"),
])
def test_what_drops_a_workflow(tmp_path, tasks, runs, reason):
    source = written(tmp_path, bad=document(*tasks, runs=runs), good=document({"id": "a"}))
    conversion = read(source, max_lost=1.0)
    assert conversion.workload.jobs["job"].to_list() == ["good"]
    assert any(reason in words for words in conversion.accounts[0].dropped)
    with pytest.raises(InputError, match=reason):
        read(source, max_lost=0.0)


def test_parents_are_names_in_version_1_4_and_ids_later(tmp_path):
    tasks = [{"name": "x", "id": "1", "runtimeInSeconds": 1},
             {"name": "1", "id": "x", "runtimeInSeconds": 1, "parents": ["x"]}]
    old = {"schemaVersion": "1.4", "workflow": {"tasks": tasks}}
    new = document({"id": "1", "name": "x"}, {"id": "x", "name": "1", "children": ["1"]})
    assert stage_names(read(written(tmp_path, old=old, new=new))) == {
        ("new", "1"): ["x"], ("new", "x"): [], ("old", "x"): [], ("old", "1"): ["x"]}


def test_machines_need_memory_only_where_tasks_use_some(tmp_path):
    machines = [{"nodeName": "m", "cpu": {"coreCount": 4}},
                {"nodeName": "c", "cpu": {"count": 2}, "memoryInBytes": 2**21}]
    without = document({"id": "a"}, machines=machines)
    assert read(written(tmp_path, a=without)).fleet.machines["machine"].to_list() == ["m", "c"]
    using = [{"id": "a", "runtimeInSeconds": 1, "memoryInBytes": 2**22}]
    conversion = read(written(tmp_path, a=document({"id": "a"}, runs=using, machines=machines)))
    assert conversion.fleet.machines["machine"].to_list() == ["c"]
    assert conversion.remarks["tasks that used more memory than any machine has (are its bytes KB?)"] == 1
    conversion = read(written(tmp_path, a=document({"id": "a"}, runs=using)))
    assert conversion.fleet is None
    assert conversion.remarks["fleet"] == "none written: no machine says what it has"


def test_a_workflow_without_tasks_and_two_in_one_file(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([document({"id": "a"}), document(), document({"id": "b"})]))
    conversion = read(tmp_path / "a.json")
    assert conversion.workload.jobs["job"].to_list() == ["a", "a#3"]
    assert conversion.remarks["workflows without tasks (left out)"] == 1


def test_only_versions_that_are_known_are_read(tmp_path):
    source = written(tmp_path, a=document({"id": "a"}, version="1.3"))
    with pytest.raises(InputError, match=r"a.json: schemaVersion must be one of 1.4, 1.5, 1.6, not '1.3'"):
        read(source)


def test_a_start_before_the_workflow_began_is_not_read(tmp_path):
    runs = [{"id": "a", "runtimeInSeconds": 1, "executedAt": "2024-05-01T09:59:59Z"},
            {"id": "b", "runtimeInSeconds": 1, "executedAt": "2024-05-01T12:00:01.5+02:00"}]
    conversion = read(written(tmp_path, a=document({"id": "a"}, {"id": "b"}, runs=runs)))
    assert conversion.workload.tasks["recorded_start"].to_list() == [None, 1.5]
