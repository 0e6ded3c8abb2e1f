"""The reader of Rumen: every rule by hand, how bad input ends, and Hadoop's samples beside a recount without tables."""
import gzip
import json
import statistics
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from in_process import subak
from published import DATA, trace
from subak.errors import InputError
from subak.fleet.locality import LEVELS
from subak.fleet.table import read_fleet
from subak.workload.readers import READERS
from subak.workload.readers.conversion import Conversion
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options
from subak.workload.table import read_workload

CUT = DATA / "rumen" / "4-jobs.trace.json.gz"
BEGIN = 1_240_000_000_000


def attempt(start=0, finish=10, *, result="SUCCESS", host="/r1/n1", copied=None, name="a") -> dict:
    """An attempt; times in seconds after BEGIN, -1 = unknown."""
    def moment(seconds):
        return -1 if seconds is None or seconds == -1 else BEGIN + int(seconds * 1000)
    return {"attemptID": name, "result": result, "hostName": host, "startTime": moment(start),
            "finishTime": moment(finish), "shuffleFinished": moment(copied), "sortFinished": -1, "location": None}


def task(*attempts: dict, name="t", status="SUCCESS") -> dict:
    return {"taskID": name, "taskStatus": status, "attempts": list(attempts)}


def job(maps=(), reduces=(), *, name="job_1", submit=0.0, others=(), **more) -> dict:
    return {"jobID": name, "user": "ann", "submitTime": BEGIN + int(submit * 1000), "outcome": "SUCCESS",
            "mapTasks": list(maps), "reduceTasks": list(reduces), "otherTasks": list(others), **more}


def written(path: Path, *values: object) -> Path:
    path.write_text("\n".join(json.dumps(value, indent=1) for value in values))
    return path


def rumen(tmp_path: Path, *jobs: object, **options) -> Conversion:
    return READERS["rumen"].read(written(tmp_path / "h.json", *jobs), Options(**options), ignore_progress)


def tasks_of(conversion: Conversion) -> list[tuple]:
    """(job, stage, index, arrival, run time, outcome) of each task."""
    workload = conversion.workload
    stages = workload.stages.with_row_index("stage").select(
        "stage", "name", job=workload.jobs["job"].gather(workload.stages["job"]))
    return workload.tasks.join(stages, on="stage", maintain_order="left").select(
        "job", "name", "index", "arrival", "run_time", "outcome").rows()


# Rules


def test_a_job_becomes_two_stages(tmp_path):
    conversion = rumen(tmp_path, job(
        [task(attempt(5, 15)), task(attempt(6, 26))], [task(attempt(10, 60, copied=40))], priority="HIGH",
        queue="prod"))
    workload = conversion.workload
    assert workload.jobs.rows() == [("job_1", "prod/ann", "ann")]
    assert workload.stages.select("job", "name", "depends_on", "priority", "map_slot", "reduce_slot").rows() == [
        (0, "map", [], 3, 1, 0), (0, "reduce", [0], 3, 0, 1)]
    assert tasks_of(conversion) == [
        ("job_1", "map", 0, 0.0, 10.0, "FINISH"), ("job_1", "map", 1, 0.0, 20.0, "FINISH"),
        ("job_1", "reduce", 2, 0.0, 20.0, "FINISH")]
    assert {account.table: account.used for account in conversion.accounts} == {
        "jobs": {"kept": 1}, "tasks": {"kept": 3}, "attempts": {"kept": 3}}


def test_jobs_may_be_concatenated_or_in_lists(tmp_path):
    jobs = [job([task(attempt())], name=f"j{number}", submit=number) for number in range(4)]
    one = tasks_of(rumen(tmp_path, *jobs))
    assert [row[3] for row in one] == [0.0, 1.0, 2.0, 3.0]
    assert tasks_of(rumen(tmp_path, jobs)) == one
    assert tasks_of(rumen(tmp_path, jobs[0], [], jobs[1:])) == one


def test_jobs_arrive_in_the_order_of_their_submissions_or_together(tmp_path):
    jobs = [job([task(attempt())], name=name, submit=submit) for name, submit in (("a", 9.5), ("b", 2.25), ("c", 4.0))]
    assert [row[::3] for row in tasks_of(rumen(tmp_path, *jobs))] == [("b", 0.0), ("c", 1.75), ("a", 7.25)]
    assert [row[::3] for row in tasks_of(rumen(tmp_path, *jobs, batch=True))] == [("b", 0.0), ("c", 0.0), ("a", 0.0)]
    sliced = rumen(tmp_path, *jobs, arrival_min=1.0, arrival_end=5.0, batch=True)
    assert [row[::3] for row in tasks_of(sliced)] == [("c", 0.0)]
    assert sliced.accounts[0].dropped == {"arrived outside the slice": 2}


@pytest.mark.parametrize(("tries", "run_time", "outcome"), [
    ([attempt(0, 5, result="FAILED"), attempt(5, 12)], 7.0, "FINISH"),
    ([attempt(0, 9), attempt(2, 5)], 3.0, "FINISH"),  # two succeeded: the first to end
    ([attempt(0, 5, result="SUCCEEDED")], 5.0, "FINISH"),
    ([attempt(0, 5, result="FAILED"), attempt(6, 8, result="KILLED")], 2.0, "KILL"),
    ([attempt(6, 8, result="KILLED"), attempt(8, 12, result="FAILED")], 4.0, "FAIL"),
    ([attempt(6, 8, result=None)], 2.0, None),
    ([attempt(6, -1, result="RUNNING"), attempt(1, 2, result="KILLED")], 1.0, "KILL"),
])
def test_which_attempt_a_task_keeps(tmp_path, tries, run_time, outcome):
    assert [row[4:] for row in tasks_of(rumen(tmp_path, job([task(*tries)])))] == [(run_time, outcome)]


def test_rows_that_cannot_be_kept_are_counted(tmp_path):
    conversion = rumen(
        tmp_path,
        job([task(), task(attempt(-1, 5)), task(attempt(9, 5), attempt(1, 2, result="FAILED")), task(attempt())],
            others=[task(attempt()), {"taskID": "s", "attempts": None}]),
        job([task(attempt())]), job([task(attempt())], name="unsent", submitTime=-1), job(name="empty"),
        job(name="null", mapTasks=None, reduceTasks=None))
    assert {account.table: account.dropped for account in conversion.accounts} == {
        "jobs": {"job seen before": 1, "submit time unknown": 1, "none of its tasks can be kept": 2},
        "tasks": {"of a job that is dropped": 2, "sets its job up, or cleans up after it": 2,
                  "its attempt has no start, or no end after it": 2,
                  "never attempted, so its run time is unknown": 1},
        "attempts": {"of a task that is dropped": 6}}
    assert len(conversion.workload.tasks) == 1


def test_other_attempts_are_counted(tmp_path):
    conversion = rumen(tmp_path, job([task(
        attempt(0, 5, result="FAILED"), attempt(5, 6, result="KILLED"), attempt(5, 9), attempt(6, 10),
        attempt(8, -1, result=None))]))
    assert conversion.accounts[2].dropped == {
        "failed, another attempt is kept": 1, "its result is unknown": 1, "killed, another attempt is kept": 1,
        "succeeded after another, or its times are unknown": 1}
    assert conversion.remarks["tasks that more than one attempt succeeded at"] == 1
    assert (conversion.remarks["attempts that failed"], conversion.remarks["attempts that were killed"]) == (1, 1)


def test_unfinished_tasks_may_be_dropped(tmp_path):
    jobs = (job([task(attempt(result="FAILED")), task(attempt())]), job([task(attempt(result="KILLED"))], name="j2"))
    kept = rumen(tmp_path, *jobs)
    assert kept.remarks["tasks of which no attempt succeeded (FAIL, KILL)"] == 2
    dropped = rumen(tmp_path, *jobs, unfinished="drop")
    assert [row[0] for row in tasks_of(dropped)] == ["job_1"]
    assert dropped.accounts[0].dropped == {"none of its tasks can be kept": 1}
    assert dropped.accounts[1].dropped == {"no attempt succeeded": 2}


SHUFFLED = job(
    [task(attempt(0, 20))],
    [task(attempt(10, 60, copied=40)),  # 20 s of the copy after the maps
     task(attempt(30, 60, copied=34)),  # 4
     task(attempt(5, 60, copied=18)),  # 0: the copy was over before the last map's end
     task(attempt(15, 50, result="KILLED")),  # unknown; 30 s after the maps
     task(attempt(25, 50, copied=55))])  # said to be after the end: unknown


@pytest.mark.parametrize(("shuffle", "run_times", "column"), [
    ("ignored", [20.0, 26.0, 42.0, 30.0, 25.0], None),
    ("stage", [20.0, 26.0, 42.0, 30.0, 25.0], [0.0, 4.0]),
    ("task", [40.0, 30.0, 42.0, 30.0, 25.0], None),
])
def test_shuffle(tmp_path, shuffle, run_times, column):
    conversion = rumen(tmp_path, SHUFFLED, shuffle=shuffle)
    assert [row[4] for row in tasks_of(conversion) if row[1] == "reduce"] == run_times
    stages = conversion.workload.stages
    assert (stages["shuffle"].to_list() if "shuffle" in stages.columns else None) == column
    assert conversion.remarks["reduces without a time of shuffle"] == 2


def test_a_reduce_without_maps_counts_from_its_start(tmp_path):
    conversion = rumen(tmp_path, job([], [task(attempt(5, 30, copied=12)), task(attempt(5, 9))]), shuffle="task")
    assert [row[1:5] for row in tasks_of(conversion)] == [("reduce", 0, 0.0, 25.0), ("reduce", 1, 0.0, 4.0)]
    assert conversion.workload.stages["depends_on"].to_list() == [[]]
    assert conversion.remarks["jobs without a map"] == 1


def test_a_job_without_reduces(tmp_path):
    conversion = rumen(tmp_path, job([task(attempt())]), job([task(attempt())], [task(attempt())], name="j2"))
    assert conversion.workload.stages["depends_on"].to_list() == [[], [], [1]]
    assert conversion.remarks["jobs without a reduce"] == 1


def test_a_start_in_1970_is_unknown(tmp_path):
    in_1970 = {**attempt(0, 5, result="FAILED"), "startTime": 0}
    conversion = rumen(tmp_path, job([task(in_1970, attempt(5, 7, result="FAILED")), task(in_1970)]))
    assert [row[4] for row in tasks_of(conversion)] == [2.0]
    zero = job([task({**attempt(), "startTime": 0, "finishTime": 3000})], submitTime=0)
    assert [row[4] for row in tasks_of(rumen(tmp_path, zero))] == [3.0]


def test_attempts_before_their_job_are_remarked(tmp_path):
    conversion = rumen(tmp_path, job([task(attempt(2, 9)), task(attempt(4, 6))], submit=3.0))
    assert conversion.remarks["attempts that start before their job was submitted (clocks differ)"] == 1
    assert [row[4] for row in tasks_of(conversion)] == [7.0, 2.0]
    instant = rumen(tmp_path, job([task(attempt(0, 9))], submit=3.0))
    assert instant.remarks["attempts that start before their job was submitted (clocks differ)"] == 1


def test_jobs_that_depend_on_jobs_are_remarked(tmp_path):
    conversion = rumen(tmp_path, job([task(attempt())], directDependantJobs=["job_0"], outcome="KILLED"))
    assert conversion.remarks["jobs that depend on other jobs (not modelled)"] == 1
    assert conversion.remarks["jobs that failed or were killed in the trace"] == 1


# Inputs


def near(*hosts):
    return {"preferredLocations": [{"layers": host.split("/")} for host in hosts]}


def inputs_of(tmp_path, **options):
    """Maps on the node of their input, in its rack, elsewhere, without a host, without locations; and a reduce."""
    maps = [task(attempt(0, 12, host=host)) | near(*held) for host, held in (
        ("/r\\.1/n1", ("r\\.1/n1", "r2/n3")), ("/r\\.1/n2", ("r\\.1/n1",)), ("/r2/n3", ("r\\.1/n1", "r\\.1/n2")),
        (None, ("r2/n3",)), ("/r2/n3", ()))]
    return rumen(tmp_path, job(maps, [task(attempt(12, 18, host="/r2/n3"))]), **options)


def test_inputs_lie_where_their_locations_say(tmp_path):
    conversion = inputs_of(tmp_path)
    assert conversion.workload.tasks["inputs"].to_list() == [["n1", "n3"], ["n1"], ["n1", "n2"], ["n3"], [], []]
    assert conversion.workload.tasks["run_time"].to_list() == [12.0] * 5 + [6.0]
    assert "off_rack" not in conversion.workload.stages.columns
    assert [conversion.remarks[f"maps that were {name}"] for name in LEVELS] == [1, 1, 1]
    assert "inputs" not in rumen(tmp_path, job([task(attempt())])).workload.tasks.columns


def test_what_reading_from_afar_took_is_taken_out(tmp_path):
    """Run on the machine that it ran on, each map takes as long as it did."""
    conversion = inputs_of(tmp_path, rack_local=1.5, off_rack=2.0)
    assert conversion.workload.tasks["run_time"].to_list() == [12.0, 8.0, 6.0, 12.0, 12.0, 6.0]
    assert conversion.workload.stages.select("name", "rack_local", "off_rack").rows() == [
        ("map", 1.5, 2.0), ("reduce", 1.0, 1.0)]


@pytest.mark.parametrize("factors", [(0.5, 1.0), (2.0, 1.5), (1.0, float("inf")), (float("nan"), 1.0)])
def test_factors_that_nobody_could_mean_are_refused(factors):
    with pytest.raises(InputError, match="--rack-local, --off-rack: must be finite numbers, 1 or more"):
        Options(rack_local=factors[0], off_rack=factors[1])


# Machines


def test_hosts_become_machines_with_their_racks(tmp_path):
    hosts = ["n2\\.org", "/1\\.2/n2\\.org", "/r1/n1", "n1", "lone", None, "/default-rack/deep/n3"]
    conversion = rumen(tmp_path, job([task(attempt(host=host)) for host in hosts]), map_slots=4, reduce_slots=1)
    assert conversion.fleet.machines.select("machine", "map_slot", "reduce_slot").rows() == [
        ("lone", 4, 1), ("n1", 4, 1), ("n2.org", 4, 1), ("n3", 4, 1)]
    assert conversion.fleet.attribute("rack").to_list() == [None, "r1", "1.2", "deep"]
    assert conversion.remarks["attempts without a host"] == 1


def test_the_topology_names_machines_on_which_nothing_ran(tmp_path):
    tree = {"name": "root", "children": [
        {"name": "r\\.1", "children": [{"name": "n\\.1", "children": None}, {"name": "n2"}, {"name": "n2"}]},
        {"name": "r2", "children": []},
        {"name": "dc", "children": [{"name": "r4", "children": [{"name": "n4"}]}, {"name": "n5"}]},
        {"name": "r3", "children": [{"name": "", "children": None}]}]}
    topology = written(tmp_path / "t.json", tree)
    conversion = rumen(tmp_path, job([task(attempt(host="/r9/n9")), task(attempt(host="n.1"))]),
                       topology=str(topology))
    assert conversion.fleet.machines["machine"].to_list() == ["n.1", "n2", "n4", "n5", "n9"]
    assert conversion.fleet.attribute("rack").to_list() == ["r.1", "r.1", "r4", "dc", "r9"]
    assert conversion.accounts[3].dropped == {"node seen before": 1, "node without a name": 1}
    assert conversion.remarks["nodes with attempts that the topology does not name (added)"] == 1


def test_the_most_attempts_at_once_on_a_node_are_remarked(tmp_path):
    maps = [task(attempt(*times)) for times in ((0, 10), (10, 20), (5, 15), (3, 3))]
    conversion = rumen(tmp_path, job([*maps, task(attempt(0, 50, host="n2"))], [task(attempt(0, 50, copied=1))]))
    assert conversion.remarks["most maps at once on a node"] == 2
    assert conversion.remarks["most reduces at once on a node"] == 1


def test_without_hosts_there_is_no_fleet(tmp_path):
    conversion = rumen(tmp_path, job([task(attempt(host=None))]))
    assert conversion.fleet is None
    assert conversion.remarks["fleet"] == "none written: no attempt names a host"


# Bad input


@pytest.mark.parametrize(("text", "message"), [
    ("", "h.json: has no jobs"),
    ("[]", "h.json: has no jobs"),
    ('{"jobID": "a",\n "mapTasks": [', "line 2: is no JSON, or is cut off"),
    ("job,1,2\n", "line 1: is no JSON, or is cut off"),
    ("1" * 5000, "line 1: JSON that cannot be read"),
    ("\n" + "[" * 100_000, "line 2: JSON that cannot be read"),
    (json.dumps(job([task(attempt(host="\ud800"))])), "line 1: JSON that cannot be read: 'utf-8' codec"),
    ("7", "h.json: job 1: Expected `object`, got `int`"),
    ('[{"jobID": "a"}]', "job 1: Object missing required field `mapTasks`"),
    (json.dumps([job(), job(submitTime="x")]), r"job 2: Expected `int`, got `str` - at `\$.submitTime`"),
    (json.dumps(job(submitTime=1e18)), "job 1: Expected `int`"),
    (json.dumps(job(submitTime=2**63)), "job 1: Expected `int` <= 9007199254740992"),
    (json.dumps(job(submitTime=-7)), "submitTime must be milliseconds, 0 to .*, or -1 .*, not -7 of job job_1"),
    (json.dumps(job(submitTime=2 * 10**15)), "submitTime must be .*, not 2000000000000000 of job job_1"),
    (json.dumps(job(priority="SOME")), "job 1: Invalid enum value 'SOME'"),
    (json.dumps(job([task({**attempt(), "result": "LOST"})])), "job 1: Invalid enum value 'LOST'"),
    (json.dumps(job([task({**attempt(name="a_7"), "startTime": -2})])), "startTime must be .*, not -2 of attempt a_7"),
    (json.dumps(job([task({**attempt(), "shuffleFinished": -5})])), "shuffleFinished must be .*, not -5"),
    (json.dumps(job()), "none of its 1 jobs can be kept"),
    (json.dumps(job([task(attempt())], name="")), "jobs: a job needs an id"),
    (json.dumps(job([task(attempt())], queue="/x")), "jobs: queue must be a path of names"),
])
def test_bad_input_is_named(tmp_path, text, message):
    (tmp_path / "h.json").write_text(text)
    with pytest.raises(InputError, match=message) as raised:
        READERS["rumen"].read(tmp_path / "h.json", Options(), ignore_progress)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("content", "message"), [
    (gzip.compress(json.dumps(job([task(attempt())])).encode())[:-9], "the compressed file is cut off"),
    (b"\x1f\x8bxxxxxxxxxxxxxxxxxxxx", "the compressed file is damaged"),
    (b"{\xff}", "must be text in UTF-8, byte 1 is 0xff"),
])
def test_a_damaged_file_is_named(tmp_path, content, message):
    (tmp_path / "h.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        READERS["rumen"].read(tmp_path / "h.json", Options(), ignore_progress)


@pytest.mark.parametrize(("tree", "message"), [
    ([], "a topology must be one JSON object, not 0"),
    ([{"name": "a"}, {"name": "b"}], "a topology must be one JSON object, not 2"),
    ([{"name": "root", "children": []}], "the topology has no nodes below 'root'"),
    ([{"name": "root", "children": [{"name": "\ud800"}]}], "JSON that cannot be read"),
    ([{"name": "root", "children": [{"id": 7}]}], r"missing required field `name` - at `\$.children\[0\]`"),
])
def test_a_bad_topology_is_named(tmp_path, tree, message):
    topology = written(tmp_path / "t.json", *tree)
    with pytest.raises(InputError, match=f"t.json.*: {message}|t.json: .*{message}"):
        rumen(tmp_path, job([task(attempt())]), topology=str(topology))


def test_absent_files_and_bad_slots_are_named(tmp_path):
    with pytest.raises(InputError, match="absent: no such file"):
        rumen(tmp_path, job([task(attempt())]), topology=str(tmp_path / "absent"))
    with pytest.raises(InputError, match="is a folder"):
        READERS["rumen"].read(tmp_path, Options(), ignore_progress)
    with pytest.raises(InputError, match=r"--map-slots: must be 1 to 2147483647, not 0"):
        Options(map_slots=0)


# Genuine histories


def recount(path: Path) -> dict:
    """What the reader should find, from the JSON alone: one decoder, loops, no tables."""
    text, decoder, place, jobs = gzip.decompress(path.read_bytes()).decode(), json.JSONDecoder(), 0, []
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        value, place = decoder.raw_decode(text, place)
        jobs.append(value)
    found: dict = {"jobs": len(jobs), "nodes": set(), "results": Counter(), "seconds": {}, "shuffle": {}}
    for each in jobs:
        ends = []
        for stage in ("map", "reduce"):
            for one in each[f"{stage}Tasks"]:
                ok = [a for a in one["attempts"] if a["result"] == "SUCCESS"]
                found["results"].update(f"{stage} {a['result']}" for a in one["attempts"])
                for success in ok:
                    ends.append(success["finishTime"])
                    since = success["startTime"] if stage == "map" else success["shuffleFinished"]
                    found["seconds"].setdefault((each["jobID"], stage), []).append(
                        (success["finishTime"] - since) / 1000)
        maps_end = max((a["finishTime"] for one in each["mapTasks"] for a in one["attempts"]
                        if a["result"] == "SUCCESS"), default=0)
        copies = [max(0, a["shuffleFinished"] - max(a["startTime"], maps_end)) / 1000
                  for one in each["reduceTasks"] for a in one["attempts"] if a["result"] == "SUCCESS"]
        if copies:
            found["shuffle"][each["jobID"]] = statistics.median(copies)
        for kind in ("mapTasks", "reduceTasks", "otherTasks"):
            found["nodes"] |= {a["hostName"].replace("\\", "").rpartition("/")[2]
                               for one in each[kind] for a in one["attempts"]}
    return found


def agrees(path: Path, **options) -> Conversion:
    """Convert a genuine history, without what did not succeed, and compare it with the recount."""
    known = recount(path)
    conversion = READERS["rumen"].read(path, Options(shuffle="stage", unfinished="drop", **options), ignore_progress)
    workload = conversion.workload
    assert conversion.accounts[0].rows == known["jobs"]
    seconds: dict = {}
    for name, stage, _, _, run_time, outcome in tasks_of(conversion):
        seconds.setdefault((name, stage), []).append(run_time)
        assert outcome == "FINISH"
    assert seconds == {key: pytest.approx(values, abs=1e-9) for key, values in known["seconds"].items()}
    reduces = workload.stages.filter(name="reduce")
    shuffle = dict(zip(workload.jobs["job"].gather(reduces["job"]), reduces["shuffle"], strict=True))
    assert shuffle == pytest.approx(known["shuffle"], abs=1e-9)
    if not options:
        assert set(conversion.fleet.machines["machine"]) == known["nodes"]
    return conversion


def test_the_shipped_cut():
    conversion = agrees(CUT)
    assert dict(Counter(row[1] for row in tasks_of(conversion))) == {"map": 174, "reduce": 50}


@pytest.mark.parametrize(("name", "jobs", "tasks"), [
    ("trace_3m", 12, (148, 18)), ("trace_5m", 16, (240, 540)), ("trace_10m", 29, (77, 184)),
])
def test_gridmix_on_eight_hosts(name, jobs, tasks):
    conversion = agrees(trace("rumen", f"{name}.json.gz"))
    counts = Counter(row[1] for row in tasks_of(conversion))
    assert (len(conversion.workload.jobs), (counts["map"], counts["reduce"])) == (jobs, tasks)
    assert len(conversion.fleet.machines) == 8


def test_the_jobs_of_yahoo():
    topology = trace("rumen", "19-jobs.topology.json.gz")
    history = trace("rumen", "19-jobs.trace.json.gz")
    conversion = agrees(history, topology=str(topology))
    assert (len(conversion.fleet.machines), conversion.fleet.attribute("rack").n_unique()) == (1_545, 41)
    assert recount(history)["results"] == {
        "map SUCCESS": 5_650, "map FAILED": 3_345, "map KILLED": 621,
        "reduce SUCCESS": 2_754, "reduce FAILED": 151, "reduce KILLED": 475}
    whole = READERS["rumen"].read(history, Options(), ignore_progress)
    jobs, tasks, attempts = whole.accounts
    assert (jobs.rows, tasks.rows, attempts.rows) == (19, 8_573 + 3_256 + 40, 9_616 + 3_380 + 45)
    assert tasks.dropped == {"never attempted, so its run time is unknown": 155,
                             "sets its job up, or cleans up after it": 40}
    assert whole.remarks["tasks of which no attempt succeeded (FAIL, KILL)"] == 3_270
    assert len(whole.fleet.machines) == 1_536
    assert [whole.remarks[f"most {stage} at once on a node"] for stage in ("maps", "reduces")] == [2, 2]
    assert whole.workload.tasks["run_time"].max() < 6_000


# The command


def test_convert_from_end_to_end(tmp_path):
    done = subak("convert", "rumen", CUT, "--batch", "--shuffle", "task", "--map-slots", 1, "--out", tmp_path / "W")
    assert done.returncode == 0, done.stderr
    workload = read_workload(tmp_path / "W")
    assert (len(workload.jobs), len(workload.tasks), workload.tasks["arrival"].max()) == (4, 224, 0.0)
    assert workload.provenance.notes["options"]["batch"] is True
    fleet = read_fleet(tmp_path / "W" / "fleet")
    assert set(fleet.machines["map_slot"]) == {1}
    done = subak("simulate", tmp_path / "W", "--scheduler", "first-fit+backfill", "--out", tmp_path / "R")
    assert done.returncode == 0, done.stderr
    assert set(pl.read_parquet(tmp_path / "R" / "tasks.parquet")["status"]) == {"FINISHED"}


@pytest.mark.parametrize(("arguments", "words"), [
    (("rumen", CUT, "--reduce-slots", 0), "--reduce-slots: must be 1 to 2147483647, not 0"),
    (("rumen", CUT, "--topology", "absent.json"), "absent.json: no such file"),
    (("rumen", CUT, "--slots", "separate"), "--slots: has no meaning for the format rumen"),
    (("swf", "x", "--map-slots", 3), "--map-slots: has no meaning for the format swf"),
    (("tr", "x", "--batch"), "--batch: has no meaning for the format tr"),
])
def test_a_mistake_is_one_line_and_nothing_is_written(tmp_path, arguments, words):
    done = subak("convert", *arguments, "--out", tmp_path / "W")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
