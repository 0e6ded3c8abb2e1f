"""Edges of readers, one by one: what is said of an empty table, the first byte, a sentinel, a bound."""
import io
import json
import lzma
from types import SimpleNamespace

import polars as pl
import pytest

from subak.errors import InputError
from subak.workload.readers import READERS
from subak.workload.readers.alibaba import alibaba2018
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.files.xz import XzReader
from subak.workload.readers.google.google2019.fields import _is_number
from subak.workload.readers.google.tasks import NO_EVENT, _stage_table
from subak.workload.readers.hadoop.rumen.hosts import most_at_once
from subak.workload.readers.hadoop.swim import _remarks as swim_remarks
from subak.workload.readers.kubernetes.objects import _place
from subak.workload.readers.kubernetes.requests import amounts
from subak.workload.readers.options import Options
from test_readers_of_2019 import attempt, borg, event, philly
from test_readers_sacct import HEAD, HELIOS, PUBLISHED, job
from test_readers_sacct import read as read_sacct


def read(name, path, **options):
    return READERS[name].read(path, Options(**options), ignore_progress)


def test_tasks_that_name_no_instant_end_at_0():
    empty = pl.DataFrame({"start": [None], "end": [None]}, schema={"start": pl.Float64, "end": pl.Float64})
    assert alibaba2018._last(empty) == 0.0
    assert alibaba2018._last(pl.DataFrame({"start": [5.0], "end": [3.0]})) == 5.0


def test_stages_with_as_many_rows_as_stated_have_no_fewer():
    kept = pl.DataFrame({"stage": [0, 1, 2], "count": [1, 2, 3]})
    instances = pl.DataFrame({"stage": [0, 1, 1, 1, 2, 2]})
    tasks = pl.DataFrame({"run_time": [1.0], "outcome": ["FINISH"], "own": [True]})
    assert alibaba2018._remarks(kept, instances, tasks) == {
        "stages with fewer rows of instances than stated": 1, "stages with more rows of instances than stated": 1}


def test_a_packed_stream_never_gives_out_more_than_was_asked_for():
    """All of the file has been read when most of the text is still to come."""
    text = b"subak" * 200_000
    reader, parts = XzReader(io.BytesIO(lzma.compress(text))), []
    while part := reader.read(1000):
        parts.append(part)
    assert b"".join(parts) == text
    assert max(map(len, parts)) <= 1000


@pytest.mark.parametrize(("text", "is_number"), [("1.5", True), ("-7", True), ("abc", False), ("", False),
                                                 ("nan", False)])
def test_a_text_is_a_number_or_none(text, is_number):
    assert _is_number(text) == is_number


def test_of_a_trace_of_2019_none_of_whose_tasks_may_be_kept_the_rows_are_counted(tmp_path):
    source = borg(tmp_path, event(600_000_000, 0), event(601_000_000, 3), event(602_000_000, 6))
    with pytest.raises(InputError, match="none of the 3 rows of instance_events makes a task that can be kept"):
        read("google2019", source, arrival_min=5000.0)


def test_a_class_that_is_not_known_is_none():
    stages = pl.DataFrame({"constraint_set": [None, None], "job_row": [0, 1], "scheduling_class": [2, NO_EVENT],
                           "kind": ["TASK", "TASK"], "priority": [1, 1], "cpu": [0.5, 0.5], "memory": [0.5, 0.5]},
                          schema_overrides={"constraint_set": pl.Int64})
    assert _stage_table(stages, [])["scheduling_class"].to_list() == [2, None]


def test_attempts_that_never_began_are_on_no_node():
    attempts = pl.DataFrame({"stage": ["MAP"] * 3, "node": ["n"] * 3, "start": [-1, 0, 2], "finish": [9, 5, 3]})
    assert most_at_once(attempts, "MAP") == 2
    assert most_at_once(attempts.head(1), "MAP") == 0
    assert most_at_once(attempts, "REDUCE") == 0


def test_tasks_of_more_than_an_hour_are_counted_from_the_next_second_on():
    jobs = pl.DataFrame({"submit": [0.0], "gap": [0.0]})
    kept = pl.DataFrame({"input": [1.0], "shuffle": [1.0], "output": [1.0], "paths": [0]})
    alike = SimpleNamespace(tasks=pl.DataFrame({"maps": [3], "reduces": [4]}).to_numpy(),
                            seconds=pl.DataFrame({"map": [3600.5], "reduce": [3600.0]}).to_numpy())
    assert swim_remarks(jobs, kept, alike)["modelled tasks of more than an hour"] == 3


@pytest.mark.parametrize(("text", "byte", "place"), [
    (b"\n{", 1, "line 2, column 1"), (b"{}", 0, "line 1, column 1"), (b"{\n\n x", 4, "line 3, column 2")])
def test_the_first_byte_of_a_file_counts_too(text, byte, place):
    assert _place(text, f"is malformed (byte {byte})") == place


def test_a_long_name_of_a_resource_is_cut_at_60():
    with pytest.raises(InputError, match=rf"^here, {'n' * 60}: a quantity must be"):
        amounts({"n" * 70: "odd"}, "here")


def test_a_node_has_nothing_of_what_it_does_not_name(tmp_path):
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d", "uid": "u",
           "creationTimestamp": "2025-01-01T00:00:00Z"}, "spec": {"containers": [container], "nodeName": "a"},
           "status": {"phase": "Running", "startTime": "2025-01-01T00:00:01Z"}}
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {},
              "status": {"allocatable": has}} for name, has in (("a", {"cpu": "4", "memory": "8Gi"}),
                                                                 ("b", {"memory": "8Gi"}))]
    (tmp_path / "all.json").write_text(json.dumps({"kind": "List", "items": [pod, *nodes]}))
    assert read("pods", tmp_path).fleet.machines["cpu"].to_list()[1] == 0


def test_a_table_of_virtual_machines_has_some(tmp_path):
    (tmp_path / "vmtable.csv").write_text("")
    with pytest.raises(InputError, match=r"vmtable.csv: has no virtual machines"):
        read("azure", tmp_path / "vmtable.csv")


def test_a_job_with_run_time_0_is_remarked(tmp_path):
    lines = [job(str(number), elapsed=f"00:00:0{seconds}") for number, seconds in enumerate((0, 1, 0))]
    found = read_sacct(tmp_path, *lines)
    assert found.remarks["jobs with run time 0"] == 2


def test_a_priority_of_0_stays(tmp_path):
    found = read_sacct(tmp_path, f"{job('7')}|0", f"{job('8')}|5", head=f"{HEAD}|Priority")
    assert sorted(found.workload.stages["priority"].to_list()) == [0, 5]


def test_numbers_of_helios_are_whole_and_0_or_more(tmp_path):
    with pytest.raises(InputError, match="line 3: gpu_num must be a whole number, 0 or more"):
        read_sacct(tmp_path, PUBLISHED[0], PUBLISHED[1].replace("vchbv,4,", "vchbv,-4,"), name="helios", head=HELIOS,
                   max_lost=0.0)


def test_instants_of_philly_are_instants(tmp_path):
    (tmp_path / "cluster_job_log").write_text(json.dumps([philly(attempt("01:10:00", "soon", 8))]))
    with pytest.raises(InputError, match="end must be an instant such as 2017-10-07 01:12:09"):
        read("philly", tmp_path)


def test_a_list_of_machines_has_some(tmp_path):
    (tmp_path / "cluster_job_log").write_text(json.dumps([philly(attempt("01:10:00", "01:20:00", 8))]))
    (tmp_path / "cluster_machine_list").write_text("machine,gpus,mem\n")
    with pytest.raises(InputError, match="cluster_machine_list: has no machines"):
        read("philly", tmp_path)


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_tr_file_has_jobs(tmp_path, text):
    (tmp_path / "w.tr").write_text(text)
    with pytest.raises(InputError, match=r"w\.tr: has no jobs"):
        read("tr", tmp_path / "w.tr")
