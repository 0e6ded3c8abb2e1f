"""The readers of `.tr` and SWF: their fields, what they drop, and how a bad line ends."""
import gzip
from pathlib import Path

import pytest

from published import trace
from subak.errors import InputError
from subak.workload.readers import swf, tr
from subak.workload.readers.files.stream import blocks, fields, ignore_progress
from subak.workload.readers.options import Options


def write(tmp_path: Path, name: str, *lines: str) -> Path:
    path = tmp_path / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def read_tr(path: Path, **options):
    return tr.read(path, Options(**options), ignore_progress)


def read_swf(path: Path, **options):
    return swf.read(path, Options(**{"max_lost": 1.0} | options), ignore_progress)


# .tr


def test_a_line_is_a_job_and_fractions_are_kept(tmp_path):
    workload = read_tr(write(tmp_path, "a.tr", "7.25 2 2.5  2.0  3.0 ", "", "1.5 1 0.125 0.125")).workload
    assert workload.jobs.rows() == [("3", "all", "unknown"), ("1", "all", "unknown")]
    assert workload.tasks.select("stage", "index", "arrival", "run_time", "estimate").rows() == [
        (0, 0, 1.5, 0.125, 0.125), (1, 0, 7.25, 2.0, 2.5), (1, 1, 7.25, 3.0, 2.5)]
    assert workload.requests.tolist() == [[1, 1]]


def test_the_load_of_a_tr_file_is_that_of_its_slice(tmp_path):
    """Work is the sum of the durations; a job outside the slice is cut, and nothing of it is lost."""
    path = write(tmp_path, "a.tr", "1 2 9 3600 1800", "2 3 9 0 7200 1e12", "30 1 9 3600")
    assert [(each.resource, each.kept, each.lost) for each in read_tr(path).loads] == [
        ("slot", pytest.approx((3600 + 1800 + 7200 + 1e12 + 3600) / 3600), 0.0)]
    assert [(each.kept, each.lost) for each in read_tr(path, arrival_end=2.0).loads] == [(pytest.approx(1.5), 0.0)]


def test_a_tr_slice(tmp_path):
    conversion = read_tr(write(tmp_path, "a.tr", "1 1 1 1", "2 1 1 1", "3 1 1 1"), arrival_min=2.0, arrival_end=3.0)
    assert conversion.workload.jobs["job"].to_list() == ["2"]
    assert conversion.accounts[0].dropped == {"arrived outside the slice": 2}
    with pytest.raises(InputError, match="none of the 1 jobs arrives in the slice"):
        read_tr(write(tmp_path, "b.tr", "1 1 1 1"), arrival_min=9.0)


@pytest.mark.parametrize(("line", "message"), [
    ("1 2 1.5 1.0", "needs a duration for each of its 2 tasks, has 1"),
    ("1 1 1.5 1.0 2.0", "needs a duration for each of its 1 tasks, has 2"),
    ("1", "needs an arrival, .* 4 fields or more, not 1"),
    ("1 1 1.0", "needs an arrival, .* 4 fields or more, not 3"),
    ("-1 1 1 1", "arrival must be .* not -1"),
    ("nan 1 1 1", "arrival must be .* not nan"),
    ("x 1 1 1", "arrival must be .* not x"),
    ("1 0 1 1", "number of tasks must be .* not 0"),
    ("1 1.5 1 1", "number of tasks must be .* not 1.5"),
    ("1 1 1 -4", "durations must be .* not -4"),
    ("1 1 1 inf", "durations must be .* not inf"),
    ("1 1 NaN 1", "durations must be .* not NaN"),
])
def test_a_bad_tr_line_is_named(tmp_path, line, message):
    with pytest.raises(InputError, match=f"a.tr, line 2: {message}"):
        read_tr(write(tmp_path, "a.tr", "1 1 1 1", line, "2 1 1 1"))


def test_an_empty_file_has_no_jobs(tmp_path):
    for read, name in ((read_tr, "a.tr"), (read_swf, "a.swf")):
        with pytest.raises(InputError, match="has no jobs"):
            read(write(tmp_path, name))
        with pytest.raises(InputError, match="no such file"):
            read(tmp_path / "absent")
        with pytest.raises(InputError, match="is a folder"):
            read(tmp_path)


@pytest.mark.parametrize(("name", "jobs", "tasks"), [
    ("GOOG_subtrace.tr.gz", 10_000, 312_558), ("YH1_sub.tr.gz", 2_910, 122_878), ("YH_small.tr", 10, 183),
    ("pigeon_NGO_trace60.tr.gz", 5_001, 10_291), ("pigeon_NGO_trace90.tr.gz", 5_001, 10_291),
])
def test_the_known_tr_files(name, jobs, tasks):
    workload = read_tr(trace("tr", name)).workload
    assert (len(workload.jobs), len(workload.tasks)) == (jobs, tasks)


# SWF

HEADER = ["; Version: 2.2", "; Computer: Paragon", "; MaxProcs: 16", ";", "; Note: hand made"]


def job(number=1, *, submit=10, wait=-1, run=100, allocated=4, requested=8, estimate=200, memory=-1, status=1, user=3,
        queue=2, preceding=-1, more=""):
    return (f"  {number} {submit} {wait} {run} {allocated} -1 -1 {requested} {estimate} {memory} {status} {user} 1 -1 "
            f"{queue} -1 {preceding} -1{more}")


TWO_JOBS = (*HEADER, job(2, submit=20.5, allocated=3), job(1, allocated=1, requested=-1, estimate=-1))


def test_a_job_is_a_gang_of_tasks_of_one_processor(tmp_path):
    conversion = read_swf(write(tmp_path, "a.swf", *TWO_JOBS))
    workload = conversion.workload
    assert workload.jobs.rows() == [("1", "queue2/user3", "3"), ("2", "queue2/user3", "3")]
    assert workload.requests.tolist() == [[1, 1]]
    assert workload.stages["gang"].to_list() == [False, True]
    assert workload.gang_sizes().tolist() == [0, 3]
    assert workload.tasks.select("stage", "index", "arrival", "run_time", "estimate", "outcome").rows() == [
        (0, 0, 10.0, 100.0, None, "FINISH"), *[(1, index, 20.5, 100.0, 200.0, "FINISH") for index in range(3)]]
    assert conversion.fleet.machines.rows() == [(f"node{row}", "0", True, 1) for row in range(16)]


def test_a_job_may_be_one_task_of_all_its_processors(tmp_path):
    conversion = read_swf(write(tmp_path, "a.swf", *TWO_JOBS), computer="one-machine")
    workload = conversion.workload
    assert workload.requests.tolist() == [[1, 3]]
    assert not workload.gang_sizes().any()
    assert workload.tasks.select("arrival", "run_time", "estimate", "outcome").rows() == [
        (10.0, 100.0, None, "FINISH"), (20.5, 100.0, 200.0, "FINISH")]
    assert conversion.fleet.machines.rows() == [("Paragon", "0", True, 16)]


def test_unknown_queues_users_and_outcomes(tmp_path):
    lines = [job(1, user=-1, queue=-1, status=-1), job(2, status=0), job(3, status=5)]
    workload = read_swf(write(tmp_path, "a.swf", *lines)).workload
    assert workload.jobs.rows()[0] == ("1", "unknown/unknown", "unknown")
    assert workload.tasks["outcome"][::4].to_list() == [None, "FAIL", "KILL"]


def test_what_is_unknown_is_dropped_and_counted(tmp_path):
    lines = [job(1), job(2, run=-1), job(3, allocated=0, requested=-1), job(4, submit=-1), job(5, status=2), job(1),
             job(6, submit=9e5)]
    conversion = read_swf(write(tmp_path, "a.swf", *HEADER, *lines), arrival_end=1e5)
    assert conversion.accounts[0].used == {"kept": 1}
    assert conversion.accounts[0].dropped == dict.fromkeys([
        "run time unknown", "number of processors unknown or 0", "submit time unknown",
        "a piece of a job (status 2, 3 or 4)", "job number seen before", "arrived outside the slice"], 1)


def test_more_fields_are_ignored_and_remarked(tmp_path):
    conversion = read_swf(write(tmp_path, "a.swf", job(1, more=" 7 8.5 x"), job(2, run=0)))
    assert conversion.remarks == {
        "lines with more than 18 fields (the rest is ignored)": 1, "jobs with run time 0": 1,
        "jobs with an estimate": 2, "fleet": "none written: the header gives neither MaxProcs nor MaxNodes"}


def test_who_was_cancelled_before_it_ran_never_started(tmp_path):
    cancelled = [job(2, run=0, allocated=0, status=5), job(3, run=-1, allocated=-1, status=5)]
    ran = [job(4, run=0, allocated=8, status=5), job(5, run=7, allocated=0, status=5), job(6, run=0, allocated=0)]
    conversion = read_swf(write(tmp_path, "a.swf", *HEADER, *cancelled, *ran))
    assert conversion.accounts[0].dropped == {"never started, so its run time is unknown": 2}
    assert conversion.workload.jobs["job"].to_list() == ["4", "5", "6"]


def test_what_is_not_read_is_said(tmp_path):
    lines = [job(1, wait=-7), job(2, wait=-1), job(3, memory=1_000_000), job(4, preceding=1), job(5, memory="x")]
    remarks = read_swf(write(tmp_path, "a.swf", *HEADER, *lines)).remarks
    assert remarks["jobs whose wait is negative (it counts as unknown)"] == 1
    assert remarks["jobs that ask for memory (field 10, which is not read)"] == 1
    assert remarks["jobs that follow another (fields 17 and 18, which are not read)"] == 1


@pytest.mark.parametrize(("line", "message"), [
    ("1 2 3", "must have 18 fields or more, not 3"),
    (job(submit=-7), "submit must not be negative .* not -7"),
    (job(run=-7), "run_time must not be negative"),
    (job(run="nan"), "run_time must be a finite number, not nan"),
    (job(user=1e300), "user must be a finite number, not 1e"),
    (job(requested="x"), "requested must be a finite number, not x"),
    (job(requested=3e9), "requested must be at most"),
])
def test_a_bad_swf_line_is_named(tmp_path, line, message):
    with pytest.raises(InputError, match=f"a.swf, line 7: {message}"):
        read_swf(write(tmp_path, "a.swf", *HEADER, job(), line), max_lost=0.0)


@pytest.mark.parametrize(("header", "nodes", "total"), [
    (["; MaxProcs: 16"], [1] * 16, 16), (["; MaxNodes: 8"], [1] * 8, 8), (["; MaxProcs: -1"], None, None),
    (["; MaxProcs: 1024 (two halves)", "; MaxNodes: 2"], [512, 512], 1024),
    (["; MaxNodes: 3", "; MaxProcs: 8"], [3, 3, 2], 8), (["; MaxNodes: 8", "; MaxProcs: 2"], [1, 1], 2),
])
def test_the_computer_comes_from_the_header(tmp_path, header, nodes, total):
    path = write(tmp_path, "a.swf", *header, job())
    for computer, expected in (("nodes", nodes), ("one-machine", total and [total])):
        fleet = read_swf(path, computer=computer).fleet
        assert (None if fleet is None else fleet.capacity.tolist()) == (expected and [expected])


def test_no_processors_is_no_machine(tmp_path):
    with pytest.raises(InputError, match="MaxProcs of the header must be 1 to"):
        read_swf(write(tmp_path, "a.swf", "; MaxProcs: 0", job()))


def test_a_computer_of_too_many_nodes_may_be_one_machine(tmp_path):
    path = write(tmp_path, "a.swf", "; MaxProcs: 2000000", job())
    with pytest.raises(InputError, match=r"header says 2,000,000 nodes, .*--computer one-machine makes one of them"):
        read_swf(path)
    assert read_swf(path, computer="one-machine").fleet.capacity.tolist() == [[2_000_000]]


def test_jobs_of_too_many_processors_may_be_a_task_each(tmp_path):
    path = write(tmp_path, "a.swf", *HEADER, job(allocated=3e8))
    with pytest.raises(InputError, match=r"makes 3e.08 tasks, .* --computer one-machine makes a task of each job"):
        read_swf(path)
    conversion = read_swf(path, computer="one-machine")
    assert conversion.workload.requests.tolist() == [[300_000_000]]
    assert conversion.remarks["jobs that ask for more than the computer has"] == 1


@pytest.mark.parametrize(("name", "jobs", "tasks", "processors"), [
    ("LCG.swf.gz", 188_041, 188_041, 24_515), ("NASA-iPSC-1993-3.1-cln.swf.gz", 18_239, 309_953, 128),
])
def test_the_known_swf_files(name, jobs, tasks, processors):
    conversion = read_swf(trace("swf", name))
    assert (len(conversion.workload.jobs), len(conversion.workload.tasks)) == (jobs, tasks)
    assert conversion.fleet.capacity.tolist() == [[1] * processors]
    whole = read_swf(trace("swf", name), computer="one-machine")
    assert len(whole.workload.tasks) == jobs
    assert whole.workload.requests.sum() == tasks
    assert whole.fleet.capacity.tolist() == [[processors]]


# Streams


def test_blocks_hold_whole_lines_whatever_their_size(tmp_path):
    text = "".join(f"{number} {'x' * (number % 17)}\r\n" for number in range(400)) + "last"
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(text.encode()))
    read = []
    found = list(blocks(path, read.append, size=64))
    assert b"".join(block.text for block in found) == text.replace("\r", "").encode() + b"\n"
    assert sum(read) == path.stat().st_size
    starts = [block.line for block in found]
    assert [int(block.text.split()[0]) + 1 for block in found[:-1]] == starts[:-1]
    assert starts[-1] == 401


def test_fields_know_their_lines_in_later_blocks(tmp_path):
    path = write(tmp_path, "a", *(f" {number}\t a " for number in range(100)))
    lines = [row for block in blocks(path, size=50) for row in fields(block).rows()]
    assert lines == [(number + 1, [str(number), "a"]) for number in range(100)]
