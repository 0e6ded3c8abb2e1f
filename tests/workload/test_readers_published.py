"""Published tables: rows as their publishers print them, or made by hand to the schema (tests/data/published)."""
from pathlib import Path

import polars as pl
import pytest

from subak.errors import InputError
from subak.workload.readers import READERS
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options

FILES = Path(__file__).parents[1] / "data" / "published"
NEVER, UNKNOWN = "never started, so its run time is unknown", "how long it ran is unknown"
RUNS = "still runs, and how long it has run is not given"


def read(name: str, file: str, **options):
    return READERS[name].read(FILES / file, Options(**options), ignore_progress)


def rows(conversion) -> list[tuple]:
    """Return each stage's job, number of tasks, arrival, start, run time, and what a task asks for."""
    workload = conversion.workload
    told = workload.tasks.group_by("stage").agg(
        pl.len(), *(pl.col(name).first() for name in ("arrival", "recorded_start", "run_time"))).sort("stage")
    names = workload.jobs["job"].gather(workload.stages["job"])
    return [(names[stage], *rest, *workload.requests[:, stage].tolist()) for stage, *rest in told.rows()]


def test_jobs_of_seren():
    assert rows(read("acme", "trace_seren-published.csv")) == [
        ("5778432", 1, 0.0, 32.0, 117.0, 128000, 8000), ("5778469", 1, 336.0, 349.0, 2693.0, 128000, 8000)]
    conversion = read("acme", "trace_seren-by-hand.csv")
    assert conversion.accounts[0].dropped == {NEVER: 1, UNKNOWN: 1}
    assert rows(conversion) == [
        ("9000001", 1, 0.0, 1.0, 14.0, 16000, 0), ("9000002", 128, 0.0, 3600.0, 86400.0, 128000, 8000),
        ("9000005", 2, 3600.0, 3630.0, 3600.0, 128000, 8000), ("9000006", 1, 3600.0, 3600.0, 0.0, 128000, 8000)]
    assert set(conversion.workload.tasks["outcome"]) == {"FINISH", "KILL", "LOST"}
    assert conversion.workload.gang_sizes().tolist() == [0, 128, 2, 0]
    assert conversion.remarks["time 0 is"] == "2023-03-02 00:00:00+00:00"
    assert conversion.workload.provenance.name == "acme"


def test_jobs_of_kalos_have_memory_and_run_from_start_to_end():
    # Their column duration, 18 and 82, is from the submission
    assert rows(read("acme", "trace_kalos-published.csv")) == [
        ("dlctk696s0jbvitv", 8, 0.0, 10.0, 8.0, 120000, 8000, 1024000),
        ("dlc1t2ypl09b8qtp", 8, 1664.0, 1676.0, 70.0, 120000, 8000, 1024000)]


def test_tasks_of_pai_have_instances():
    conversion = read("pai2020", "pai_task_table-by-hand.csv")
    assert rows(conversion) == [
        ("jobA", 1, 500010.0, 500010.0, 690.0, 6000, 30000, 0),
        ("jobA", 2, 500010.0, 500010.0, 690.0, 4000, 30000, 500),
        ("jobB", 4, 500105.0, 500105.0, 295.0, 6000, 30000, 1000), ("jobE", 1, 503001.0, 503001.0, 599.0, 0, 0, 1000)]
    assert conversion.accounts[0].dropped == {NEVER: 1, UNKNOWN: 1}


TASKS = "pai_task_table-by-hand.csv"
NO_JOB = "rows whose job's submission is unknown (they arrive when they start)"
EARLY = "rows that start before they arrive (they start at once)"


def pai(folder: Path, *jobs: str, name="pai_job_table.csv", source=TASKS, **options):
    """Read the tasks with a table of jobs beside them, each line of it a job's name, user and submission."""
    folder.mkdir(exist_ok=True)
    (folder / TASKS).write_text((FILES / TASKS).read_text())
    lines = [f"{job},i,{user},Terminated,{submitted},900000.0\n" for job, user, submitted in map(str.split, jobs)]
    (folder / name).write_text("".join(lines).replace("~", ""))
    reader, read_bytes = READERS["pai2020"], []
    conversion = reader.read(folder / source, Options(**options), read_bytes.append)
    assert sum(read_bytes) == sum(path.stat().st_size for path in reader.files(folder / source))
    return conversion


def arrivals(conversion) -> dict[str, tuple]:
    """Return when each job arrived and started, and its user."""
    users = dict(zip(conversion.workload.jobs["job"], conversion.workload.jobs["user"], strict=True))
    return {name: (arrival, start, users[name]) for name, _, arrival, start, *_ in rows(conversion)}


@pytest.mark.parametrize("source", [TASKS, "."])
def test_jobs_of_pai_were_submitted_before_their_tasks_started(tmp_path, source):
    conversion = pai(tmp_path, "jobA ann 500000.5", "jobE eve 503002", "jobB ~ 500100", "jobX ann 7", source=source)
    assert arrivals(conversion) == {
        "jobA": (500000.5, 500010.0, "ann"), "jobB": (500100.0, 500105.0, "unknown"),
        "jobE": (503002.0, 503002.0, "eve")}
    assert [row[4] for row in rows(conversion)] == [690.0, 690.0, 295.0, 599.0]  # as they ran
    jobs = conversion.accounts[1]
    assert (jobs.table, jobs.rows, jobs.used, jobs.dropped) == ("jobs", 4, {"kept": 4}, {})
    assert conversion.accounts[0].dropped == {NEVER: 1, UNKNOWN: 1}
    told = conversion.remarks
    assert (told["submissions and users"], told["jobs without a row of tasks"], told[EARLY]) == (
        "of pai_job_table.csv", 1, 1)
    assert NO_JOB not in told
    assert [row[:2] for row in conversion.understood.rows if row[0].startswith("arrival")] == [
        ("arrival, if no submission is known", "start_time")]
    provenance = conversion.workload.provenance
    assert provenance.origin.startswith(f"file {TASKS} and pai_job_table.csv: ")
    assert (provenance.notes["remarks"], provenance.notes["jobs"]["rows"]) == (told, 4)


def test_without_the_table_of_jobs_nothing_waits():
    conversion = read("pai2020", TASKS)
    said = conversion.remarks["submissions and users"]
    assert said == "none: no pai_job_table*.csv lies beside the tasks; each arrives when it starts, and none waits"
    assert conversion.workload.provenance.notes["remarks"] == conversion.remarks
    assert set(conversion.workload.jobs["user"]) == {"unknown"}


def test_lines_of_pais_jobs_that_say_nothing_are_dropped_and_their_tasks_kept(tmp_path):
    lines = ("jobA ann soon", "jobB ~ ~", "jobB bob 500100", "jobB eve 500101", "~ ann 5", "jobE eve -1", "jobQ eve ~")
    conversion = pai(tmp_path, *lines, max_lost=0.8)
    assert arrivals(conversion) == {
        "jobA": (500010.0, 500010.0, "unknown"), "jobB": (500100.0, 500105.0, "bob"),
        "jobE": (503001.0, 503001.0, "unknown")}
    assert conversion.remarks[NO_JOB] == 3  # two tasks of jobA, one of jobE
    wrong = "start_time must be a number of s from 0 to 1e+12"
    account = conversion.accounts[1]
    assert (account.used, account.dropped) == ({"kept": 1}, {
        wrong: 2, "job_name must be given": 1, "job seen before": 1, "when it was submitted is unknown": 2})
    gone = conversion.dropped.filter(table="jobs")
    assert gone.filter(reason=wrong).select("file", "line", "column", "value").rows() == [
        ("pai_job_table.csv", 1, "start_time", "soon"), ("pai_job_table.csv", 6, "start_time", "-1")]
    assert sorted(gone["line"]) == [1, 2, 4, 5, 6, 7]
    assert len(conversion.dropped) == 6 + sum(conversion.accounts[0].dropped.values())


def test_too_many_bad_lines_of_pais_jobs_are_refused(tmp_path):
    said = (r"pai_job_table.csv, line 2: start_time must be a number .*, not soon \(such rows: 2\); 66.7% of the jobs' "
            r"submissions would be lost, at most 50% may be \(--max-lost\)")
    with pytest.raises(InputError, match=said):
        pai(tmp_path, "jobA ann 500000", "jobB bob soon", "jobE eve later", max_lost=0.5)
    with pytest.raises(InputError, match="none of its 1 rows can be kept; most: when it was submitted is unknown"):
        pai(tmp_path, "jobA ann ~")
    with pytest.raises(InputError, match=r"pai_job_table\.csv: has no rows"):
        pai(tmp_path)


def test_a_slice_of_pai_is_of_submissions(tmp_path):
    lines = ("jobA ann 100", "jobB bob 200", "jobE eve 300")
    assert arrivals(pai(tmp_path, *lines, arrival_min=150, arrival_end=250)) == {"jobB": (200.0, 500105.0, "bob")}


def test_which_files_of_pai_are_read(tmp_path):
    with pytest.raises(InputError, match=r"pai_job_table\.csv: is the table of jobs; name the table of tasks, or the"):
        pai(tmp_path, "jobA ann 1", source="pai_job_table.csv")
    with pytest.raises(InputError, match=r"needs at most one file pai_job_table\*.csv, plain, gz or xz; it has 2"):
        pai(tmp_path, "jobA ann 1", name="pai_job_table_again.csv")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match=r"empty: needs one file pai_task_table\*.csv, plain, gz or xz; it has 0"):
        READERS["pai2020"].files(empty)
    with pytest.raises(InputError, match="absent: no such file or folder"):
        READERS["pai2020"].files(tmp_path / "absent")


def test_jobs_of_fugaku():
    conversion = read("fdata", "23_03-by-hand.parquet")
    assert [row[:2] for row in rows(conversion)][2] == ("jid_2", 384)
    assert conversion.workload.stages["cpu"].to_list() == [48000] * len(conversion.workload.stages)
    assert set(conversion.workload.tasks["outcome"]) == {"FAIL", "FINISH"}
    assert conversion.remarks["time 0 is"].endswith("of a zone not named")
    assert read("fdata", "23_03-by-hand.parquet", zone="Asia/Tokyo").remarks["time 0 is"] == "2023-03-01 00:00:00+00:00"


def test_jobs_of_marconi100():
    conversion = read("pm100", "job_table-by-hand.parquet")
    assert rows(conversion)[:2] == [
        ("1002", 2, 0.0, 120.0, 240.0, 128000, 4000), ("1001", 1, 60.0, 70.0, 3600.0, 128000, 4000)]
    # Limits are minutes, of the last there is none
    assert conversion.workload.tasks["estimate"].to_list() == [3600.0, 3600.0, 86400.0, 3600.0, None]


def test_jobs_of_in2p3():
    conversion = read("in2p3", "09-by-hand.tsv")
    assert conversion.remarks["queues are"] == "partition"  # with nodes of its own
    assert "queues are" not in read("fdata", "23_03-by-hand.parquet").remarks
    assert rows(conversion) == [
        ("1", 1, 0.0, 60.0, 3600.0, 1000, 0), ("2", 1, 0.0, 60.0, 10.0, 4000, 0),
        ("3", 1, 0.0, 60.0, 3600.0, 5000, 1000),
        ("4", 1, 0.0, 100.0, 1000.0, 128000, 0)]
    assert conversion.accounts[0].dropped == {NEVER: 1}
    assert conversion.workload.tasks["estimate"].to_list() == [86400.0, 86400.0, 3600.0, 604800.0]


def test_the_job_table_of_supercloud():
    conversion = read("supercloud", "slurm-log-by-hand.csv")
    assert rows(conversion) == [
        ("90000000001", 1, 0.0, 10.0, 3600.0, 40000, 340000, 2000),
        ("90000000005", 1, 0.0, 5.0, 1000.0, 20000, 170000, 1000),
        ("90000000006", 1, 0.0, 5.0, 3600.0, 20000, 0, 0), ("90000000003", 4, 600.0, 1000.0, 2610.0, 48000, 192000, 0)]
    assert conversion.workload.tasks["estimate"].to_list()[:3] == [None, 7200.0, 3600.0]
    assert conversion.accounts[0].dropped == {NEVER: 1, RUNS: 1}


@pytest.mark.parametrize(("state", "outcome"), [
    ("3", "FINISH"), ("11", "FAIL"), ("1024", "EVICT"), ("1027", "EVICT"), ("259", "FINISH")])
def test_states_of_slurms_database_have_flags(tmp_path, state, outcome):
    text = (FILES / "slurm-log-by-hand.csv").read_text().splitlines()[:2]
    path = tmp_path / "slurm-log.csv"
    path.write_text("\n".join([text[0], text[1].replace(",4294,3,", f",4294,{state},")]))
    conversion = READERS["supercloud"].read(path, Options(), ignore_progress)
    assert conversion.workload.tasks["outcome"].to_list() == [outcome]


SERVED = "disaggregated_DLRM_trace-by-hand.csv"


def test_instances_of_recommendation_models():
    conversion = read("dlrm2025", SERVED)
    gpu, cpu = (16000, 100000, 2000, 500000, 20000), (48000, 200000, 0, 90000, 3000)
    assert rows(conversion) == [  # two of a stage have run 2,000 and 900 s, or 1,889.5 and 1,700 s: the first is shown
        ("app_0", 2, 0.0, None, 2000.0, *gpu), ("app_2", 1, 0.0, 50.0, 10.0, 8000, 1500, 0, 80000, 1000),
        ("app/1", 2, 100.0, 110.5, 1889.5, *cpu)]
    tasks = conversion.workload.tasks.sort("stage", "arrival", maintain_order=True)
    assert tasks.select("run_time", "outcome").rows() == [
        (2000.0, "CENSORED"), (900.0, "KILL"), (10.0, "KILL"), (1889.5, "KILL"), (1700.0, "CENSORED")]
    assert set(conversion.workload.stages["kind"]) == {"SERVICE"}
    assert conversion.workload.jobs["queue"].to_list() == ["app_0", "app_2", "app_1"]
    assert conversion.accounts[0].dropped == {"instance seen before": 1, NEVER: 2}
    assert conversion.dropped["line"].to_list() == [6, 7, 8]
    assert {load.resource: load.kept for load in conversion.loads} == pytest.approx({
        "cpu": (16 * 2900 + 48 * 3589.5 + 8 * 10) / 3600, "memory": (100 * 2900 + 200 * 3589.5 + 1.5 * 10) / 3600,
        "gpu": 2 * 2900 / 3600, "disk": (500 * 2900 + 90 * 3589.5 + 80 * 10) / 3600,
        "rdma": (20 * 2900 + 3 * 3589.5 + 10) / 3600})
    assert {load.lost for load in conversion.loads} == {0.0}
    told = conversion.remarks
    assert (told["last instant (s)"], told["applications"], told["instances that were there before"],
            told["instances that still ran at the last instant"]) == (2000.0, 3, 3, 2)
    assert (conversion.workload.observed.begin, conversion.workload.observed.end) == (100.0, 2000.0)


def test_a_slice_of_the_instances():
    conversion = read("dlrm2025", SERVED, arrival_min=200.0, arrival_end=1000.0)
    assert [row[0] for row in rows(conversion)] == ["app/1"]
    assert conversion.workload.tasks["run_time"].to_list() == [1700.0]  # to the last instant of the whole file
    assert conversion.accounts[0].dropped["arrived outside the slice"] == 4


def test_a_row_that_cannot_be_read_hides_no_other_of_its_name(tmp_path):
    lines = (FILES / SERVED).read_text().splitlines()
    whole = READERS["dlrm2025"].read(FILES / SERVED, Options(), ignore_progress).workload
    fields = lines[3].split(",")
    fields[3] = "x"
    path = tmp_path / "disaggregated_DLRM_trace.csv"
    path.write_text("\n".join([*lines[:3], ",".join(fields), *lines[3:]]))
    conversion = READERS["dlrm2025"].read(path, Options(), ignore_progress)
    assert conversion.workload.tasks.equals(whole.tasks)
    assert conversion.dropped.filter(line=4)["column"].to_list() == ["cpu_request"]


def test_of_two_jobs_of_one_number_one_that_cannot_be_read_hides_no_other(tmp_path):
    path = tmp_path / "log.swf"
    good = "1 0 5 60 2 -1 -1 2 60 -1 1 1 1 1 1 -1 -1 -1"
    others = [f"{number}{good[1:]}" for number in (2, 3, 4)]
    path.write_text("\n".join([good.replace(" 60 2 ", " x 2 ", 1), good, *others]))
    conversion = READERS["swf"].read(path, Options(max_lost=1.0), ignore_progress)
    assert conversion.workload.jobs["job"].to_list() == ["1", "2", "3", "4"]


@pytest.mark.parametrize(("place", "value", "rule"), [
    (0, "", "instance_sn must be given"), (1, "GPU", "role must be HN or CN, not GPU"),
    (1, "", "role must be HN or CN, is missing"), (2, "", "app_name must be given"),
    (3, "", "cpu_request must be given"), (5, "nan", "gpu_request must be a number, 0 or more, not nan"),
    (9, "-1", "memory_request must be a number, 0 or more, not -1"),
    (11, "3000000", "disk must be from 0 to 2147483.647 GiB, not 3000000"),
    (14, "soon", "creation_time must be a number, 0 or more, not soon"),
    (15, "-5", "scheduled_time must be a number, 0 or more, not -5"),
    (16, "1e13", "deletion_time must be at most 1e.12 s, not "), (16, "5", "ends before it starts"),
])
def test_a_mistake_in_an_instance_is_named_and_drops_only_its_row(tmp_path, place, value, rule):
    lines = (FILES / SERVED).read_text().splitlines()
    fields = lines[3].split(",")
    fields[place] = value
    lines[3] = ",".join(fields)
    path = tmp_path / "disaggregated_DLRM_trace.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=f"disaggregated_DLRM_trace.csv, line 4: {rule}"):
        READERS["dlrm2025"].read(path, Options(max_lost=0.0), ignore_progress)
    conversion = READERS["dlrm2025"].read(path, Options(), ignore_progress)
    gone = conversion.dropped.filter(line=4).row(0, named=True)
    assert rule.split(", not")[0].split(", is")[0].replace("1e.12", "1e+12") == gone["reason"]
    # What a field that cannot be says of the work counts for nothing: the mean of the others stands in
    assert all(0 < load.lost < load.kept for load in conversion.loads if load.resource != "gpu")
