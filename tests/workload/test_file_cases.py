"""Files as people have them: small inputs that went wrong elsewhere, each for its class; tests/data/cases has them."""
import json
from pathlib import Path

import pytest

from subak.errors import InputError
from subak.workload.readers import READERS
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options

CASES = Path(__file__).parents[1] / "data" / "cases"
GPU_2020 = "job,task,inst,status,start,end,cpu,mem,gpu,type"
GPU_2020_MAP = ("arrival=start[s],start=start[s],end=end[s],job=job,cpu=cpu[%],gpu=gpu[%],memory=mem[GiB],tasks=inst",
                "outcome=status")
SUPERCLOUD_MAP = ("arrival=time_submit,start=time_start,end=time_end,job=id_job,cpu=cpus_req[cores]",
                  "estimate=timelimit[min]")


def read(name: str, case: str, **options):
    return READERS[name].read(CASES / case, Options(**options), ignore_progress)


def tasks(conversion, *names: str) -> list[tuple]:
    return conversion.workload.tasks.select(*names).rows()


# Bad rows


def test_a_row_with_a_bad_field_is_dropped_and_named_by_line_column_and_value():
    conversion = read("sacct", "01-sacct-elapsed-invalid/jobs.txt")
    assert conversion.workload.jobs["job"].to_list() == ["1"]
    assert conversion.dropped.rows() == [
        ("jobs", "jobs.txt", 3, "Elapsed must be a duration as D-HH:MM:SS", "Elapsed", "INVALID")]
    assert [(each.kept, each.lost, each.guessed_rows) for each in conversion.loads] == [
        (1.0, 1.0, 1), (1024.0, 1024.0, 1)]


def test_too_many_bad_rows_refuse_the_file_with_line_value_and_share(tmp_path):
    lines = (CASES / "01-sacct-elapsed-invalid/jobs.txt").read_text().splitlines()
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join([*lines, lines[-1].replace("2|", "3|", 1), *(
        lines[1].replace("1|", f"{number}|", 1) for number in range(4, 11))]))
    with pytest.raises(InputError) as refused:
        READERS["sacct"].read(path, Options(), ignore_progress)
    assert str(refused.value) == (
        f"{path}, line 3: Elapsed must be a duration as D-HH:MM:SS, not INVALID (such rows: 2); 20.0% of the load "
        "would be lost, at most 10% may be (--max-lost)")
    assert READERS["sacct"].read(path, Options(max_lost=0.2), ignore_progress).accounts[0].used == {"kept": 8}
    with pytest.raises(InputError, match="line 3: Elapsed"):
        read("sacct", "01-sacct-elapsed-invalid/jobs.txt", max_lost=0.0)


def test_a_row_of_which_the_work_is_known_counts_with_it(tmp_path):
    # 9 jobs of one hour on one core, and two that were submitted nobody knows when: of 100 hours and of none
    path = tmp_path / "jobs.csv"
    path.write_text("at,run,cpu\n" + "1,3600,1\n" * 9 + ",360000,1\n,0,1\n")
    mapped = ("arrival=at,run_time=run,cpu=cpu",)
    with pytest.raises(InputError, match=r"line 11: when it was submitted is unknown \(such rows: 2\); 91.7% of the"):
        READERS["table"].read(path, Options(columns=mapped), ignore_progress)
    kept = READERS["table"].read(path, Options(columns=mapped, max_lost=1.0), ignore_progress)
    assert [(each.kept, each.lost, each.guessed_rows) for each in kept.loads] == [(9.0, 100.0, 0)]


@pytest.mark.parametrize(("lines", "width"), [(("1,2,3,4",), 4), (("1,2",), 2)])
def test_a_row_of_another_width_is_dropped_with_its_line(tmp_path, lines, width):
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join(["at,run,cpu", "0,1,1", *lines, "5,1,1"]))
    conversion = READERS["table"].read(path, Options(columns=("arrival=at,run_time=run,cpu=cpu",)), ignore_progress)
    assert tasks(conversion, "arrival") == [(0.0,), (5.0,)]
    assert conversion.dropped.rows() == [("rows", "jobs.csv", 3, "must have 3 columns", "columns", str(width))]


def test_a_pipe_in_a_jobs_name_is_part_of_it(tmp_path):
    head, first, _ = (CASES / "01-sacct-elapsed-invalid/jobs.txt").read_text().splitlines()
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join([f"JobName|{head}", f"a|b|c|{first}", f"plain|{first.replace('1|', '2|', 1)}"]))
    conversion = READERS["sacct"].read(path, Options(), ignore_progress)
    assert conversion.workload.jobs["job"].to_list() == ["1", "2"]
    assert conversion.dropped.is_empty()


# What a job asks for


def test_what_a_job_held_counts_unless_what_it_asked_for_is_wanted():
    exclusive, jobs = "02-sacct-exclusive-mem0/exclusive.txt", "02-sacct-exclusive-mem0/jobs.txt"
    assert read("sacct", exclusive).workload.requests.tolist() == [[36000], [180 * 1024], [4000]]
    assert read("sacct", exclusive, amounts="requested").workload.requests.tolist() == [[1000], [5 * 1024]]
    held = read("sacct", jobs)
    assert held.workload.requests.tolist() == [[64000, 1000], [250 * 1024, 4096]]
    assert held.remarks["amounts"] == "as allocated"
    assert held.remarks["jobs that held more CPUs or GPUs than they asked for"] == 1
    # A request of 0 MiB is for all that the node has
    assert read("sacct", jobs, amounts="requested").workload.requests.tolist() == [[1000, 1000], [250 * 1024, 4096]]


OLD = "JobID|Submit|Start|Elapsed|State|NNodes|NCPUS|ReqMem|AllocGRES"


@pytest.mark.parametrize(("nodes", "cpus", "memory", "gres", "each"), [
    (2, 8, "4Gn", "gpu:2", (4000, 4096, 2000)), (2, 8, "2Gc", "", (4000, 8192, 0)),
    (1, 4, "3000M", "gpu:volta:1", (4000, 3000, 1000)), (1, 4, "16G", "gpu:4(IDX:0-3)", (4000, 16384, 4000)),
])
def test_older_versions_say_how_many_cpus_and_how_much_memory_of_each(tmp_path, nodes, cpus, memory, gres, each):
    path = tmp_path / "jobs.txt"
    row = f"1704103200|1704103260|01:00:00|COMPLETED|{nodes}|{cpus}|{memory}|{gres}"
    path.write_text(f"{OLD}\n1|{row}\n")
    conversion = READERS["sacct"].read(path, Options(), ignore_progress)
    asked = dict(zip((one.name for one in conversion.workload.resources), conversion.workload.requests[:, 0].tolist(),
                     strict=True))
    assert (asked["cpu"], asked["memory"], asked.get("gpu", 0)) == each
    assert len(conversion.workload.tasks) == nodes


def test_an_empty_amount_is_0_unless_it_is_said_to_be_unknown(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("at,run,cpu,gpu\n" + "0,60,2,\n" * 9 + "0,60,2,1\n1,60,,\n")
    mapped = ("arrival=at,run_time=run,cpu=cpu,gpu=gpu",)
    conversion = READERS["table"].read(path, Options(columns=mapped), ignore_progress)
    assert len(conversion.workload.tasks) == 10
    assert conversion.accounts[0].dropped == {"how much it asks for is unknown": 1}
    assert conversion.remarks["rows with an empty amount, which counts as 0 (--blanks unknown drops them)"] == 9
    with pytest.raises(InputError, match=r"line 2: how much it asks for is unknown \(such rows: 10\); 90.9%"):
        READERS["table"].read(path, Options(columns=mapped, blanks="unknown"), ignore_progress)


def test_ten_pods_of_a_hundred_megabytes_and_a_bit_do_not_fit_where_nine_do():
    conversion = read("pods", "08-pods-memory-rounding")
    names = [each.name for each in conversion.workload.resources]
    assert conversion.workload.requests[names.index("memory")].max() == 101
    assert conversion.fleet.machines["memory"].to_list() == [1000]


# What never started


def test_a_pod_that_is_bound_holds_its_requests_whatever_its_phase():
    conversion = read("pods", "07-pods-bound-pending")
    named = conversion.workload.jobs["job"].gather(conversion.workload.stages["job"].gather(
        conversion.workload.tasks["stage"])).to_list()
    found = dict(zip(named, tasks(conversion, "recorded_start", "run_time", "outcome"), strict=True))
    assert found == {"d/Pod/ok": (10.0, 3600.0, "FINISH"), "d/Pod/pullbackoff": (10.0, 86400.0, "CENSORED"),
                     "d/Pod/initrunning": (10.0, 86400.0, "CENSORED"), "d/Pod/later": (86410.0, 0.0, "CENSORED")}
    assert conversion.workload.stages["gpu"].max() == 8


def test_who_was_cancelled_before_it_ran_never_started():
    conversion = read("swf", "15-swf-cancelled-before-start/w.swf")
    assert conversion.workload.jobs["job"].to_list() == ["1", "4"]
    assert conversion.accounts[0].dropped == {"never started, so its run time is unknown": 2}
    assert [each.lost for each in conversion.loads] == [0.0]


def test_the_numbers_by_which_slurm_says_nothing_are_no_times():
    conversion = read("table", "52-supercloud/slurm-log.csv", columns=SUPERCLOUD_MAP)
    assert conversion.workload.jobs["job"].to_list() == ["1"]
    assert tasks(conversion, "run_time", "recorded_start") == [(3600.0, 10.0)]
    assert "estimate" not in conversion.workload.tasks.columns
    assert conversion.accounts[0].dropped == {"never started, so its run time is unknown": 1}


def test_jobs_that_were_cancelled_while_they_waited_are_no_lost_load(tmp_path):
    head, first, _ = (CASES / "01-sacct-elapsed-invalid/jobs.txt").read_text().splitlines()
    waited = first.replace("COMPLETED", "CANCELLED by 5").replace("01:00:00", "00:00:00")
    held = "|cpu=1,mem=1G,node=1"
    lines = [first, *(waited.removesuffix(held).replace("1|", f"{number}|", 1) + "|" for number in (2, 3)),
             first.replace("1|", "4|", 1).replace("2024-01-01T10:01:00", "4294967295")]
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join([head, *lines]))
    conversion = READERS["sacct"].read(path, Options(), ignore_progress)
    assert conversion.accounts[0].dropped == {"never started, so its run time is unknown": 3}
    assert [each.lost for each in conversion.loads] == [0.0, 0.0]


def test_a_row_that_has_a_run_time_ran_though_nobody_knows_when_it_started(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("at,began,run\n0,1,60\n0,,60\n0,,\n0,,0\n")
    conversion = READERS["table"].read(path, Options(columns=("arrival=at,start=began,run_time=run",)), ignore_progress)
    assert tasks(conversion, "recorded_start") == [(1.0,), (None,)]
    assert conversion.accounts[0].dropped == {"never started, so its run time is unknown": 2}


def test_an_evicted_pod_ends_when_the_last_of_its_conditions_changed(tmp_path):
    stamp = "2024-01-31T12:{}:00Z"
    pod = {"kind": "Pod", "metadata": {"name": "p", "namespace": "n", "creationTimestamp": stamp.format("00")},
           "spec": {"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
           "status": {"phase": "Failed", "reason": "Evicted", "conditions": [
               {"type": kind, "status": "True", "lastTransitionTime": stamp.format(minute)}
               for kind, minute in (("PodScheduled", "10"), ("DisruptionTarget", "40"), ("Ready", "30"))]}}
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": [pod]}))
    conversion = READERS["pods"].read(tmp_path, Options(), ignore_progress)
    assert tasks(conversion, "recorded_start", "run_time", "outcome") == [(600.0, 1800.0, "EVICT")]


# Times


def test_without_a_zone_none_is_claimed_and_with_one_waits_are_right():
    case = "04-sacct-dst/jobs.txt"
    plain = read("sacct", case)
    assert plain.remarks["time 0 is"] == "2024-03-31 01:59:00 by the file's clocks, of a zone not named"
    assert "--zone names it" in plain.remarks["zone"]
    paris = read("sacct", case, zone="Europe/Paris")
    assert paris.remarks["time 0 is"] == "2024-03-31 00:59:00+00:00"
    # The first waits for two minutes, of which clocks show 62; the second from 2:50 to the second 2:10 of that night
    assert [start - arrival for arrival, start in tasks(paris, "arrival", "recorded_start")] == [120.0, 1200.0]
    twice = next(value for name, value in paris.remarks.items() if "comes twice" in name)
    assert twice == "1 (line 3)"


def test_an_hour_that_clocks_skip_is_a_remark_on_its_row(tmp_path):
    path = tmp_path / "jobs.txt"
    path.write_text((CASES / "04-sacct-dst/jobs.txt").read_text().replace("2024-03-31T03:01:00", "2024-03-31T02:01:00"))
    conversion = READERS["sacct"].read(path, Options(zone="Europe/Paris"), ignore_progress)
    skipped = next(value for name, value in conversion.remarks.items() if "skip" in name)
    assert skipped == "1 (line 2)"
    assert tasks(conversion, "recorded_start")[0] == (120.0,)


def test_an_unknown_zone_is_refused():
    with pytest.raises(InputError, match="--zone: must be one such as Europe/Paris, not 'Mars'"):
        read("sacct", "04-sacct-dst/jobs.txt", zone="Mars")


# Names


def test_equal_numbers_of_two_clusters_are_two_jobs():
    conversion = read("sacct", "05-sacct-federation/jobs.txt")
    assert conversion.workload.jobs.rows() == [("east/77", "east/main/a/u", "u"), ("west/77", "west/main/b/v", "v")]
    assert conversion.workload.requests.tolist() == [[1000, 8000], [1024, 1024]]


def test_a_table_without_a_line_of_names_says_so_and_can_be_named():
    case = "51-alibaba-gpu2020/pai_task_table.csv"
    with pytest.raises(InputError, match="its first line was taken for the names of the columns; if it has none, give"):
        read("table", case, columns=GPU_2020_MAP)
    conversion = read("table", case, columns=GPU_2020_MAP, names=tuple(GPU_2020.split(",")))
    headed = read("table", "51-alibaba-gpu2020/headed.csv", columns=GPU_2020_MAP)
    assert conversion.workload.tasks.equals(headed.workload.tasks)
    assert conversion.workload.requests.tolist() == [[12000], [500], [30000]]
    assert conversion.dropped["line"].to_list() == [2]


def test_what_sacct_prints_without_p_is_told_apart(tmp_path):
    path = tmp_path / "jobs.txt"
    path.write_text("JobID         Submit  Start\n------------ ------- ------\n1            now     now\n")
    with pytest.raises(InputError, match=r"line 1: has no \| between its columns, as sacct prints without --parsable2"):
        READERS["sacct"].read(path, Options(), ignore_progress)


# The command line


def test_the_closing_line_says_what_share_of_the_work_was_kept(run):
    code, printed, _ = run("convert", "slurm", str(CASES / "01-sacct-elapsed-invalid/jobs.txt"), "--preview")
    assert code == 0
    assert ("Kept of the work: 50.00% of cpu (1 of 2 hours of cores); 50.00% of memory (1,024 of 2,048 hours of MiB). "
            "Rows whose work is unknown, which count as the mean: 1.") in printed


@pytest.mark.parametrize("share", ["11", "-1", "x", "200%"])
def test_a_share_that_is_none_is_refused(run, share):
    jobs = str(CASES / "05-sacct-federation/jobs.txt")
    code, _, said = run("convert", "sacct", jobs, "--preview", "--max-lost", share)
    assert code == 2
    assert f"--max-lost: must be a share from 0 to 1, such as 0.1 or 10%, not '{share}'" in said
