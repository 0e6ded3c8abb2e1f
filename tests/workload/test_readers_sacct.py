"""Slurm's accounting, and Helios's log of Slurm: by hand, for no trace of either may be passed on."""

from pathlib import Path

import pytest

from subak.errors import InputError
from subak.experiment.sizing.size import partitions_of
from subak.workload.readers import READERS
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options
from subak.workload.readers.slurm.seen import count_nodes

HEAD = "JobID|User|Account|Partition|Submit|Eligible|Start|Elapsed|Timelimit|State|NNodes|NTasks|ReqTRES|AllocTRES"
MONDAY = 1704110400  # 2024-01-01 12:00 UTC


def job(
    number="100",
    *,
    user="ann",
    submit=0,
    eligible=None,
    start=60,
    elapsed="01:00:00",
    limit="02:00:00",
    state="COMPLETED",
    nodes="1",
    tasks="",
    asked="cpu=8,mem=16G,node=1,billing=8",
    got="cpu=8,mem=16G,node=1",
):
    eligible = submit if eligible is None else eligible
    times = [value if isinstance(value, str) else str(MONDAY + value) for value in (submit, eligible, start)]
    return "|".join([number, user, "phys", "main", *times, elapsed, limit, state, nodes, tasks, asked, got])


def read(tmp_path: Path, *lines: str, name="sacct", head=HEAD, **options):
    path = tmp_path / "jobs.txt"
    path.write_text("".join(f"{line}\n" for line in (head, *lines)))
    return READERS[name].read(path, Options(**{"max_lost": 1.0} | options), ignore_progress)


def tasks(conversion) -> list[tuple]:
    return conversion.workload.tasks.select("stage", "index", "arrival", "run_time", "recorded_start", "outcome").rows()


def test_a_job_on_nodes_is_a_gang_that_shares_its_request(tmp_path):
    conversion = read(
        tmp_path, job(nodes="2", got="cpu=8,mem=16G,node=2,gres/gpu=4,gres/gpu:a100=4"), job("101", submit=30)
    )
    workload = conversion.workload
    assert [each.name for each in workload.resources] == ["cpu", "memory", "gpu"]
    assert workload.requests.tolist() == [[4000, 8000], [8192, 16384], [2000, 0]]
    assert workload.gang_sizes().tolist() == [2, 0]
    assert workload.jobs.rows() == [("100", "main/phys/ann", "ann"), ("101", "main/phys/ann", "ann")]
    assert workload.tasks["estimate"].to_list() == [7200.0] * 3
    assert tasks(conversion) == [
        (0, 0, 0.0, 3600.0, 60.0, "FINISH"),
        (0, 1, 0.0, 3600.0, 60.0, "FINISH"),
        (1, 0, 30.0, 3600.0, 60.0, "FINISH"),
    ]
    assert conversion.remarks["time 0 is"] == "2024-01-01 12:00:00+00:00"


def test_a_dump_begins_with_its_first_end(tmp_path):
    """sacct -S lists of jobs from before only those that had not ended: the first ends 3 h after the first came."""
    lines = [job("1", start=0, elapsed="03:00:00"), job("2", submit=7200, start=7200, elapsed="02:00:00"),
             job("3", submit=10_900, start=10_900, elapsed="00:10:00"),
             job("4", submit=30, start=60, elapsed="00:00:10", state="RUNNING")]
    said = read(tmp_path, *lines).remarks["the dump begins"]
    assert said == ("2024-01-01 15:00:00+00:00, with its first end: of the 3.0 h before it lists only jobs that had "
                    "not ended, 3 of 4 jobs. Others ran then, too, so its waits are too short: "
                    "--measure-from 2024-01-01T15:00 leaves that time out of what is measured")
    assert "the dump begins" not in read(tmp_path, *lines, job("5", start=0, elapsed="00:59:00")).remarks
    later = [job(str(number), submit=20_000, start=20_000, elapsed="00:10:00") for number in range(5, 302)]
    assert read(tmp_path, *lines, *later[:-1]).remarks["the dump begins"].endswith("is measured")  # 3 of 300: 1 %
    assert read(tmp_path, *lines, *later).remarks["the dump begins"].endswith(
        "had not ended, 3 of 301 jobs: does not matter")
    assert "the dump begins" not in read(tmp_path, lines[-1]).remarks  # none has ended


def test_the_old_cluster_is_seen(tmp_path):
    """100 holds 4 + 4 cores on two nodes from 60 s, 101 two more cores from 90 s; 102 begins as 100 ends."""
    head = HEAD + "|NodeList"
    conversion = read(
        tmp_path,
        job("100", nodes="2", got="cpu=8,mem=16G,node=2") + "|n[09-10]",
        job("101", start=90, got="cpu=2,mem=3G,node=1,gres/gpu=1") + "|gpu1",
        job("102", start=3660, got="cpu=7,mem=16G,node=1") + "|n10",
        job("103", start=8000, got="cpu=1,mem=1G,node=1") + "|rack[1-2]n[1,3-4]",
        head=head,
    )
    said = conversion.remarks
    assert said["most in use at once"] == (
        "10 cores at 2024-01-01 12:01:30+00:00; 19 GiB of memory at 2024-01-01 12:01:30+00:00; "
        "1 GPU at 2024-01-01 12:01:30+00:00"
    )
    assert said["widest job"] == "100: 8 cores, 16 GiB of memory on 2 nodes"
    assert said["nodes named in NodeList"] == 3 + 6
    assert "NodeList" not in str(said.get("columns that are not read"))
    assert "nodes named in NodeList" not in read(tmp_path, job()).remarks


def test_names_of_nodes_are_counted_once_and_not_beyond_bounds():
    assert count_nodes(["n[1-3],m", "n2", "n[02]"]) == 5
    assert count_nodes(["n[1-999999999]"]) == 0  # at once, without the names
    assert count_nodes(["a[x", "]"]) == 2


def test_a_dump_without_names_of_columns_is_told_how_to_get_them(tmp_path):
    with pytest.raises(InputError, match=r"line 1: has values where the names .* --noheader\. Put .* cat jobs\.txt"):
        read(tmp_path, job("101"), head=job())


def test_what_stands_in_for_eligible_is_said(tmp_path):
    without = HEAD.replace("|Eligible", "|Other")
    said = read(tmp_path, job(), head=without).remarks["arrival is"]
    assert said.startswith("Submit: no job has Eligible (sacct --format=...,Eligible), so waits include")
    assert "arrival is" not in read(tmp_path, job()).remarks


def test_elements_of_an_array_are_tasks_of_one_job_and_steps_are_none(tmp_path):
    conversion = read(
        tmp_path,
        job("7_1"),
        job("7_1.batch", user=""),
        job("7_1.0", user="", nodes="1", tasks="4"),
        job("7_2", start=90),
        job("7_[3-9%2]", start="Unknown", elapsed="00:00:00", state="PENDING"),
        job("8+0"),
        job("8+1"),
    )
    assert conversion.workload.jobs["job"].to_list() == ["7", "8+0", "8+1"]
    assert conversion.workload.gang_sizes().tolist() == [0, 0, 0]
    assert [row[:2] for row in tasks(conversion)] == [(0, 0), (0, 1), (1, 0), (2, 0)]
    assert conversion.accounts[0].used == {"kept": 4}
    assert conversion.accounts[0].dropped == {"a step of a job": 2, "never started, so its run time is unknown": 1}
    assert conversion.dropped["line"].to_list() == [3, 4, 6]


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("COMPLETED", "FINISH"),
        ("FAILED", "FAIL"),
        ("OUT_OF_MEMORY", "FAIL"),
        ("CANCELLED by 1000", "KILL"),
        ("TIMEOUT", "KILL"),
        ("DEADLINE", "KILL"),
        ("NODE_FAIL", "LOST"),
        ("PREEMPTED", "EVICT"),
        ("REQUEUED", "EVICT"),
        ("RUNNING", "CENSORED"),
    ],
)
def test_states_are_outcomes(tmp_path, state, outcome):
    assert tasks(read(tmp_path, job(state=state)))[0][-1] == outcome


@pytest.mark.parametrize(
    ("tres", "requests"),
    [
        ("cpu=1,mem=512K,node=1", [1000, 1]),
        ("cpu=1,mem=4000M", [1000, 4000]),
        ("cpu=1,mem=1.5T", [1000, 1572864]),
        ("mem=100,cpu=3", [3000, 100]),
        ("cpu=2,mem=1G,gres/gpu:v100=1,gres/gpu:a100=2", [2000, 1024, 3000]),
    ],
)
def test_what_tres_ask_for(tmp_path, tres, requests):
    # A second job, so that memory is among the resources even where the first asks for less than a MiB
    other = job("101", submit=1, asked="cpu=1,mem=1G", got="cpu=1,mem=1G")
    asked = read(tmp_path, job(asked=tres), other, amounts="requested")
    allocated = read(tmp_path, job(asked="cpu=64,mem=1T", got=tres), other)
    assert asked.workload.requests[:, 0].tolist() == allocated.workload.requests[:, 0].tolist() == requests


def test_estimates_eligibility_and_what_was_cancelled_in_the_queue(tmp_path):
    conversion = read(
        tmp_path,
        job(limit="UNLIMITED"),
        job("101", eligible=40, limit="1-00:00:00"),
        job("102", submit=50, start=45),
        job("103", state="CANCELLED by 5", elapsed="00:00:00", got=""),
        job("100", limit="UNLIMITED"),
        job("104", asked="", got=""),
        job("105", asked="", got="cpu=3,node=1"),
    )
    assert conversion.workload.tasks["estimate"].to_list() == [None, 7200.0, 86400.0, 7200.0]
    assert [row[2:5] for row in tasks(conversion)] == [
        (0.0, 3600.0, 60.0),
        (0.0, 3600.0, 60.0),
        (40.0, 3600.0, 60.0),
        (50.0, 3600.0, 50.0),
    ]
    assert conversion.accounts[0].dropped == {
        "its job was submitted again later, or stands there twice": 1,
        "never started, so its run time is unknown": 1,
        "what it asks for is unknown": 1,
    }
    assert conversion.remarks["jobs that start before they arrive (they start at once)"] == 1


def again(*jobs):
    """Lines of one job: when each was submitted, how long it ran, and how it ended."""
    return [job("7", submit=submit, elapsed=elapsed, state=state, start="Unknown" if state == "PENDING" else submit + 5)
            for submit, elapsed, state in jobs]


FAILED, WHOLE, WAITS = (0, "00:01:00", "NODE_FAIL"), (70, "00:02:00", "COMPLETED"), (90, "00:00:00", "PENDING")


@pytest.mark.parametrize(
    "lines", [(FAILED, WHOLE), (WHOLE, FAILED), (WAITS, WHOLE), (WHOLE, WAITS), (WAITS, FAILED, WHOLE)]
)
def test_of_a_job_that_was_requeued_what_ran_last_counts(tmp_path, lines):
    """As sacct without --duplicates shows it, whatever the order of its lines."""
    conversion = read(tmp_path, *again(*lines))
    assert [(row[3], row[5]) for row in tasks(conversion)] == [(120.0, "FINISH")]
    account = conversion.accounts[0]
    assert (account.rows, account.used, sum(account.dropped.values())) == (len(lines), {"kept": 1}, len(lines) - 1)


def test_instants_of_1970_never_were(tmp_path):
    conversion = read(tmp_path, job("1", submit="0"), job("2", start="0"), job("3", eligible="1970-01-01T01:00:00"))
    assert conversion.workload.jobs["job"].to_list() == ["3"]
    assert conversion.accounts[0].dropped == {
        "when it was submitted is unknown": 1, "never started, so its run time is unknown": 1}
    assert conversion.dropped["line"].to_list() == [2, 3]


def test_steps_without_their_jobs_are_no_workload(tmp_path):
    with pytest.raises(InputError, match="none of its 2 lines can be kept; most: a step of a job"):
        read(tmp_path, job("7.batch"), job("7.0"))


def test_lines_may_end_with_a_separator(tmp_path):
    """sacct --parsable, without the 2."""
    conversion = read(tmp_path, job(elapsed="1-02:03:04") + "|", head=HEAD + "|")
    assert tasks(conversion)[0][3] == 93784.0
    assert "columns that are not read" not in conversion.remarks


def test_times_may_be_local_and_columns_few(tmp_path):
    head = "State|JobID|Submit|Start|Elapsed|AllocTRES|JobName"
    conversion = read(
        tmp_path, "COMPLETED|1|2024-01-01T12:00:00|2024-01-01T12:00:30|00:10:00|cpu=2,mem=1G,node=3|x", head=head
    )
    assert tasks(conversion)[0] == (0, 0, 0.0, 600.0, 30.0, "FINISH")
    assert conversion.workload.gang_sizes().tolist() == [3]
    assert conversion.workload.jobs.rows() == [("1", "unknown", "unknown")]
    assert conversion.remarks["columns that are not read"] == "JobName"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (job(state="DONE"), "line 2: State must be one of sacct's state codes, not DONE"),
        (job(submit="soon"), "line 2: Submit must be an instant .* not soon"),
        (job(elapsed="1:2"), "line 2: Elapsed must be a duration"),
        (job(nodes="1.5"), "line 2: NNodes must be a whole number"),
        (job(asked="cpu=many"), "line 2: ReqTRES must be as"),
        (job(asked="cpu=1,gres/gpu:a100:2"), "line 2: ReqTRES must be as"),
        (job(number="x"), "line 2: JobID must begin with a number"),
        (job(number=""), "line 2: JobID must begin with a number"),
        ("1|2", "line 2: must have 14 columns, not 2"),
    ],
)
def test_a_mistake_is_named(tmp_path, line, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, line)


def test_a_job_that_names_no_nodes_and_no_tasks_is_one_task(tmp_path):
    conversion = read(tmp_path, job(nodes="", asked="cpu=8,mem=16G", got=""))
    assert conversion.workload.requests.tolist() == [[8000], [16384]]
    assert len(conversion.workload.tasks) == 1


def test_what_is_not_modelled_is_remarked(tmp_path):
    conversion = read(tmp_path, job(got="cpu=1,mem=1G,node=1,billing=1,fs/disk=3,gres/gpu:a100=1,license/x=1"))
    assert conversion.remarks["TRES that are not modelled"] == "fs/disk, license/x"


def test_a_missing_time_limit_is_a_remark(tmp_path):
    head = "JobID|State|Submit|Start|Elapsed|AllocTRES"
    line = f"100|COMPLETED|{MONDAY}|{MONDAY}|01:00:00|cpu=8,mem=16G,node=1"
    for conversion in (read(tmp_path, line, head=head), read(tmp_path, job(limit="UNLIMITED"))):
        assert len(conversion.workload.tasks) == 1
        assert conversion.remarks["estimates"].startswith("none: no job that is kept has a Timelimit (sacct --format")
    assert "estimates" not in read(tmp_path, job(), job("101", limit="")).remarks


def test_needed_columns_are_named(tmp_path):
    with pytest.raises(InputError, match=r"line 1: must name the columns JobID, .*; Start is missing"):
        read(tmp_path, "1|2", head="JobID|Submit|Elapsed|State|ReqTRES")
    with pytest.raises(InputError, match=r"State, Elapsed or End, and AllocTRES, .*; Elapsed is missing"):
        read(tmp_path, "1|2", head="JobID|Submit|Start|State|ReqTRES")
    with pytest.raises(InputError, match=r"; AllocTRES is missing"):
        read(tmp_path, "1|2", head="JobID|Submit|Start|State|End")


ENDS = "JobID|Submit|Start|End|State|AllocTRES"
SPANNED = "jobs without Elapsed (they ran from Start to End, with what they were suspended)"


def ended(number, end, state="COMPLETED", elapsed=None, tres="cpu=8,node=1"):
    """A line of ENDS: submitted at 0, started at 60; with *elapsed* a line of ENDS and Elapsed."""
    end = end if isinstance(end, str) else str(MONDAY + end)
    more = [] if elapsed is None else [elapsed]
    return "|".join([number, str(MONDAY), str(MONDAY + 60), end, state, tres, *more])


def test_without_elapsed_a_job_runs_from_start_to_end(tmp_path):
    conversion = read(
        tmp_path,
        ended("1", 90),
        ended("2", 60, state="FAILED"),
        ended("3", "Unknown", state="RUNNING"),
        ended("4", 50),
        ended("5", "Unknown"),
        ended("6", 60, state="CANCELLED by 5", tres=""),
        head=ENDS,
    )
    assert [row[2:] for row in tasks(conversion)] == [(0.0, 30.0, 60.0, "FINISH"), (0.0, 0.0, 60.0, "FAIL")]
    assert conversion.accounts[0].dropped == {
        "still runs, and how long it has run is not given": 1, "ends before it starts": 1,
        "how long it ran is unknown": 1, "never started, so its run time is unknown": 1}
    assert conversion.loads[0].guessed_rows == 3  # of one that still runs the work is lost, at the mean of the others
    assert conversion.remarks[SPANNED] == 2


def test_elapsed_counts_before_end(tmp_path):
    """It leaves out what a job was suspended; a running job has it, and no end."""
    conversion = read(
        tmp_path, ended("1", 90, elapsed="00:00:20"), ended("2", "Unknown", state="RUNNING", elapsed="00:00:40"),
        ended("3", 110, elapsed=""), head=f"{ENDS}|Elapsed")
    assert [row[3] for row in tasks(conversion)] == [20.0, 40.0, 50.0]
    assert conversion.remarks[SPANNED] == 1
    assert SPANNED not in read(tmp_path, job()).remarks


def test_an_end_in_the_hour_that_comes_twice_is_after_the_start(tmp_path):
    """Clocks in Paris went from 03:00 back to 02:00 on 2024-10-27."""
    line = "1|2024-10-27T02:10:00|2024-10-27T02:50:00|2024-10-27T02:20:00|COMPLETED|cpu=8,node=1"
    assert tasks(read(tmp_path, line, head=ENDS, zone="Europe/Paris"))[0][3] == 1800.0


@pytest.mark.parametrize("end", ["soon", "1e13"])
def test_an_end_that_is_no_instant_is_named(tmp_path, end):
    with pytest.raises(InputError, match=f"line 2: End must be .*not {end.replace('1e13', '10000000000000.0')}"):
        read(tmp_path, ended("1", end), head=ENDS)


def test_a_running_job_of_the_database_is_dropped_with_a_reason(tmp_path):
    head = "id_job,state,time_submit,time_start,time_end,cpus_req"
    conversion = read(tmp_path, f"1,3,{MONDAY},{MONDAY},{MONDAY + 30},8", f"2,1,{MONDAY},{MONDAY},0,8",
                      name="supercloud", head=head)
    assert conversion.accounts[0].dropped == {"still runs, and how long it has run is not given": 1}
    assert SPANNED not in conversion.remarks


# Helios


HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
PUBLISHED = (
    "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0",
    "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0",
    "1425513,uzqls,vcpDC,1,1,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0",
)


def test_the_published_rows_of_helios(tmp_path):
    """The examples of its README, whose durations are given there; the others are made up."""
    made_up = (
        "5,u,vc,16,32,2,TIMEOUT,2020-06-09 18:41:30,2020-06-09 18:51:30,2020-06-09 19:51:30,3600,600",
        "6,u,vc,1,1,1,CANCELLED,2020-06-09 18:41:28,None,2020-06-17 14:15:21,0,0",
    )
    waited = PUBLISHED[0].replace("2020-06-09 18:41:01,2020-06-10", "None,2020-06-10")
    conversion = read(tmp_path, waited, *PUBLISHED, *made_up, PUBLISHED[0], name="helios", head=HELIOS)
    assert tasks(conversion) == [
        (0, 0, 0.0, 36848.0, 0.0, "FINISH"),
        (1, 0, 26.0, 249.0, 26.0, "FAIL"),
        (2, 0, 27.0, 675233.0, 27.0, "KILL"),
        (3, 0, 29.0, 3600.0, 629.0, "KILL"),
        (3, 1, 29.0, 3600.0, 629.0, "KILL"),
    ]
    assert conversion.workload.requests.tolist() == [[1000, 4000, 1000, 8000], [1000, 16000, 1000, 16000]]
    assert conversion.workload.jobs["queue"].to_list() == ["vcJkd/uXBbc", "vchbv/uVMrF", "vcpDC/uzqls", "vc/u"]
    assert partitions_of(conversion.workload) == ("vc", "vcJkd", "vchbv", "vcpDC")
    assert conversion.accounts[0].dropped == {"never started, so its run time is unknown": 2, "job seen before": 1}


def test_a_state_that_slurm_has_not_is_named_in_helios(tmp_path):
    with pytest.raises(InputError, match="line 2: state must be one of Slurm's job states, not DONE"):
        read(tmp_path, PUBLISHED[0].replace("COMPLETED", "DONE"), name="helios", head=HELIOS)


@pytest.mark.parametrize(("change", "levels"), [
    (lambda line: line, "partition/account/user"), (lambda line: line.replace("|phys|", "||"), "partition/user"),
    (lambda line: line.replace("|main|", "||"), "account/user"),
])
def test_what_the_parts_of_queues_are_is_said(tmp_path, change, levels):
    conversion = read(tmp_path, job(), change(job("101", submit=30)))
    assert conversion.remarks["queues are"] == levels
    assert partitions_of(conversion.workload) == (("main",) if "partition" in levels else ())


def test_partitions_of_several_clusters_are_apart(tmp_path):
    lines = [f"{line}|{cluster}" for cluster in ("east", "west") for line in (job(), job("101", submit=30))]
    conversion = read(tmp_path, *lines, head=f"{HEAD}|Cluster")
    assert conversion.remarks["queues are"] == "cluster/partition/account/user"
    assert partitions_of(conversion.workload) == ("east/main", "west/main")


def test_where_nobody_says_what_was_asked_for_no_job_held_more(tmp_path):
    remark = "jobs that held more CPUs or GPUs than they asked for"
    assert read(tmp_path, job(asked=""), job("101", got="cpu=16,mem=16G,node=1")).remarks[remark] == 1
