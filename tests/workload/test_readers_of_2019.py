"""Google 2019, Azure and Philly: by hand from the published formats, for the traces were not at hand."""

import json
from pathlib import Path

import polars as pl
import pytest

from subak.errors import InputError
from subak.workload.readers import READERS
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.google.google2019.events import IN_ALLOC, MOVE
from subak.workload.readers.google.google2019.fields import EVENT_TYPES
from subak.workload.readers.options import Options

S = 1_000_000
SUBMIT, QUEUE, ENABLE, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING, UPDATE_RUNNING = range(11)


def read(name: str, path: Path, **options):
    return READERS[name].read(path, Options(**{"max_lost": 1.0} | options), ignore_progress)


# Google


def event(time, kind, job=1, index=0, cpu=0.25, **more):
    return {
        "time": str(time),
        "type": str(kind),
        "collection_id": str(job),
        "instance_index": str(index),
        "priority": "200",
        "resource_request": {"cpus": cpu, "memory": 0.5},
        **more,
    }


def borg(tmp_path: Path, *events, **tables):
    folder = tmp_path / "T"
    folder.mkdir(exist_ok=True)
    for name, lines in (("instance_events-000000000000", events), *tables.items()):
        (folder / f"{name}.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def tasks(conversion, *names: str) -> list[tuple]:
    workload = conversion.workload
    table = workload.tasks.with_columns(
        job=workload.jobs["job"].gather(workload.stages["job"].gather(workload.tasks["stage"]))
    )
    return table.select("job", "arrival", "run_time", *names).rows()


def test_a_folder_without_events_is_named(tmp_path):
    with pytest.raises(InputError, match="absent: no such folder"):
        read("google2019", tmp_path / "absent")
    with pytest.raises(InputError, match=r"needs files instance_events\*, or a folder of that name"):
        read("google2019", tmp_path)


def test_the_numbers_of_events_are_those_of_the_published_format():
    assert dict(zip(EVENT_TYPES, range(11), strict=True)) == {
        "SUBMIT": SUBMIT,
        "QUEUE": QUEUE,
        "ENABLE": ENABLE,
        "SCHEDULE": SCHEDULE,
        "EVICT": EVICT,
        "FAIL": FAIL,
        "FINISH": FINISH,
        "KILL": KILL,
        "LOST": LOST,
        "UPDATE_PENDING": UPDATE_PENDING,
        "UPDATE_RUNNING": UPDATE_RUNNING,
    }


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (EVICT, "EVICT"),
        (FAIL, "FAIL"),
        (FINISH, "FINISH"),
        (KILL, "KILL"),
        (LOST, "LOST"),
        (UPDATE_RUNNING, "CENSORED"),
    ],
)
def test_an_instance_runs_from_its_schedule_to_its_end(tmp_path, end, outcome):
    source = borg(
        tmp_path,
        event(600 * S, SUBMIT),
        event(601 * S, QUEUE),
        event(602 * S, ENABLE),
        event(610 * S, SCHEDULE),
        event(700 * S, end),
    )
    conversion = read("google2019", source)
    assert tasks(conversion, "recorded_start", "outcome") == [("1", 600.0, 90.0, 610.0, outcome)]
    assert conversion.accounts[0].dropped == {MOVE: 2}
    assert conversion.workload.requests.tolist() == [[25_000_000], [50_000_000]]


def test_what_may_be_scheduled_again_after_an_eviction_was_submitted_again(tmp_path):
    source = borg(
        tmp_path,
        event(600 * S, SUBMIT),
        event(610 * S, SCHEDULE),
        event(700 * S, EVICT),
        event(700 * S, QUEUE),
        event(710 * S, ENABLE),
        event(730 * S, SCHEDULE),
        event(800 * S, FINISH),
        event(650 * S, ENABLE, job=2),
        event(660 * S, SCHEDULE, job=2),
        event(670 * S, KILL, job=2),
    )
    conversion = read("google2019", source)
    assert tasks(conversion) == [("1", 600.0, 90.0), ("2", 650.0, 10.0), ("1#2", 700.0, 70.0)]
    assert conversion.accounts[0].used == {"events of kept tasks": 9}
    assert conversion.accounts[0].dropped == {MOVE: 1}
    one = read("google2019", source, resubmissions="attempt")
    assert tasks(one) == [("1", 600.0, 70.0), ("2", 650.0, 10.0)]


def test_tasks_in_alloc_instances_take_nothing_of_a_machine(tmp_path):
    alloc = [
        event(time * S, kind, job=5, collection_type="1")
        for time, kind in ((600, SUBMIT), (610, SCHEDULE), (900, KILL))
    ]
    inside = [
        event(time * S, kind, job=6, alloc_collection_id="5", alloc_instance_index="0")
        for time, kind in ((650, SUBMIT), (660, SCHEDULE), (700, FINISH))
    ]
    conversion = read("google2019", borg(tmp_path, *alloc, *inside, event(2**63 - 1, KILL, job=7)))
    assert tasks(conversion) == [("5", 600.0, 290.0)]
    assert conversion.workload.stages["kind"].to_list() == ["SERVICE"]
    assert conversion.accounts[0].dropped == {IN_ALLOC: 3, "event after the window (time 2^63-1)": 1}


def test_constraints_users_and_machines(tmp_path):
    relations = [
        {"name": "a", "value": "x", "relation": "0"},
        {"name": "b", "relation": 6},
        {"name": "c", "relation": "NOT_PRESENT"},
        {"name": "d", "value": "3", "relation": "5"},
    ]
    source = borg(
        tmp_path,
        event(600 * S, SUBMIT, constraint=relations),
        event(610 * S, SCHEDULE),
        event(700 * S, FINISH),
        collection_events=[
            {"collection_id": "1", "type": 0, "user": "us/er"},
            {"collection_id": "1", "user": "us/er"},
            {"collection_id": 2},
        ],
        machine_events=[
            {"time": 0, "machine_id": "7", "type": 1, "platform_id": "p", "capacity": {"cpus": 0.5, "memory": 1}},
            {"time": 0, "machine_id": "8", "type": "ADD", "capacity": {"cpus": 1, "memory": 1}},
            {"time": 800 * S, "machine_id": "8", "type": 2},
        ],
        machine_attributes=[{"time": 0, "machine_id": "7", "name": "a", "value": "x"}],
    )
    conversion = read("google2019", source, fleet="changing")
    assert conversion.workload.jobs.rows() == [("1", "us_er", "us/er")]
    assert [tuple(each.values()) for each in conversion.workload.stages["constraints"][0]] == [
        ("a", "=", "x"),
        ("b", "!=", ""),
        ("c", "=", ""),
        ("d", ">=", "3"),
    ]
    assert conversion.fleet.capacity.tolist() == [[50_000_000, 100_000_000], [100_000_000, 100_000_000]]
    assert conversion.fleet.changes.select("time", "machine", "present").rows() == [(800.0, 1, False)]
    assert conversion.fleet.attributes.rows() == [(0, "a", "x"), (0, "platform", "p")]
    assert [account.table for account in conversion.accounts] == [
        "instance_events",
        "collection_events",
        "machine_events",
        "machine_attributes",
    ]


def test_csv_and_parquet_say_the_same_as_json(tmp_path):
    rows = [
        event(600 * S, SUBMIT, constraint=[{"name": "a", "value": "x", "relation": 0}]),
        event(610 * S, SCHEDULE),
        event(700 * S, "FINISH"),
    ]
    expected = read("google2019", borg(tmp_path, *rows)).workload
    nested = pl.DataFrame([{**row, "time": int(row["time"])} for row in rows])
    flat = nested.select(
        "time",
        "type",
        "collection_id",
        "instance_index",
        "priority",
        pl.col("resource_request").struct.unnest(),
        constraint=pl.Series([json.dumps(row.get("constraint")) if "constraint" in row else None for row in rows]),
    )
    flat = flat.rename({"cpus": "resource_request_cpus", "memory": "resource_request_memory"})
    (tmp_path / "P" / "instance_events").mkdir(parents=True)
    nested.write_parquet(tmp_path / "P" / "instance_events" / "part-0.parquet")
    (tmp_path / "C").mkdir()
    flat.write_csv(tmp_path / "C" / "instance_events.csv")
    for folder in ("P", "C"):
        found = read("google2019", tmp_path / folder).workload
        assert found.tasks.equals(expected.tasks)
        assert found.stages.equals(expected.stages)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"time": "soon"}, r"line 2: Expected `int.*\$.time"),
        (event(1, 11), "line 2: event must be 0 to 10 or a name such as UPDATE_RUNNING"),
        (event(-1, 0), "line 2: time must not be negative"),
        ({"type": 0}, "line 2: time must be given"),
        (event(1, 0, index=2**31), "line 2: index must be 0 to 2147483647"),
        (event(1, 0, index=-1), "line 2: index must "),
        (event(1, 0, priority="32768"), "line 2: priority must be 0 to 32767"),
        (event(1, 0, priority="-1"), "line 2: priority must be 0 to 32767"),
        (event(1, 0, cpu=-0.1), "line 2: cpu must be from 0 to 21.47"),
        (event(1, 0, cpu=30), "line 2: cpu must be from 0 to 21.47"),
        (event(1, 0, constraint=[{"name": "a", "relation": 9}]), "line 2: a constraint needs a name and a relation"),
    ],
)
def test_a_mistake_of_google_2019_is_named(tmp_path, line, message):
    with pytest.raises(InputError, match=message):
        read("google2019", borg(tmp_path, event(0, SUBMIT), line))

def machine(time, number, kind, *capacity):
    given = dict(zip(("cpus", "memory"), capacity, strict=True)) if capacity else None
    return {"time": time * S, "machine_id": number, "type": kind, "capacity": given}


@pytest.mark.parametrize(
    "names", [{"ADD": 1, "REMOVE": 2, "UPDATE": 3}, {name: name for name in ("ADD", "REMOVE", "UPDATE")}]
)
def test_machines_come_change_and_go(tmp_path, names):
    """With the format's own numbers, which begin at 1, or their names."""
    added, removed, updated = names["ADD"], names["REMOVE"], names["UPDATE"]
    events = [machine(0, 7, added, 0.5, 1), machine(0, 8, added, 1, 1), machine(0, 9, removed, 1, 1),
              machine(700, 7, updated, 0.25, 1), machine(800, 8, removed), machine(900, 9, added, 1, 0.5)]
    source = borg(tmp_path, event(600 * S, SUBMIT), event(610 * S, SCHEDULE), event(700 * S, FINISH),
                  machine_events=events)
    fleet = read("google2019", source, fleet="changing").fleet
    assert fleet.machines.select("machine", "present").rows() == [("7", True), ("8", True), ("9", False)]
    assert fleet.changes.select("time", "machine", "present", "cpu", "memory").rows() == [
        (700.0, 0, True, 25_000_000, 100_000_000),
        (800.0, 1, False, 100_000_000, 100_000_000),
        (900.0, 2, True, 100_000_000, 50_000_000),
    ]
    assert read("google2019", source).fleet.machines["machine"].to_list() == ["7", "8"]



# Azure


def test_virtual_machines_of_both_versions(tmp_path):
    path = tmp_path / "vmtable.csv"
    path.write_text(
        "v1,s1,d1,0,2591400,9,1,5,Delay-insensitive,8,32\n"  # of V2
        "v2,s1,d1,600,600,9,1,5,Unknown,>24,>64\n"
        "v3,s2,d2,900,1800,9,1,5,Interactive,1,0.75\n"  # of V1
        "v3,s2,d2,900,1800,9,1,5,Interactive,1,0.75\n"
        "v4,s2,d2,900,800,9,1,5,Interactive,1,0.75\nv5,s2,d2,900,,9,1,5,Interactive,1,0.75\n"
    )
    conversion = read("azure", path)
    assert tasks(conversion, "outcome") == [
        ("d1", 0.0, 2591400.0, "CENSORED"),
        ("d1", 600.0, 300.0, "KILL"),
        ("d2", 900.0, 900.0, "KILL"),
    ]
    stages = conversion.workload.stages
    assert stages.select("kind", "scheduling_class", "cpu", "memory").rows() == [
        ("SERVICE", 0, 8000, 32000),
        ("SERVICE", 1, 30000, 70000),
        ("SERVICE", 2, 1000, 750),
    ]
    assert conversion.workload.jobs.rows() == [("d1", "s1", "s1"), ("d2", "s2", "s2")]
    assert conversion.accounts[0].dropped == {
        "virtual machine seen before": 1,
        "ends before it starts": 1,
        "how long it ran is unknown": 1,
    }
    assert (conversion.workload.observed.begin, conversion.workload.observed.end) == (600.0, 2591400.0)


@pytest.mark.parametrize(("line", "message"), [
    ("v2,s1,d1,600,900,9,1,5,Unknown,1,3000000000", "line 2: memory must be from 0 to 2147483.647 GB"),
    ("v2,s1,d1,600,900,9,1,5,Unknown,-1,1", "line 2: vmcorecount must be a number, 0 or more"),
    ("v2,s1,d1,600,900,9,1,5,Sometimes,1,1", "line 2: vmcategory must be one of Delay-insensitive, "),
    ("v2,s1,d1,,900,9,1,5,Unknown,,1", "line 2: vmcorecount "),
])
def test_a_mistake_of_azure_is_named(tmp_path, line, message):
    path = tmp_path / "vmtable.csv"
    path.write_text(f"v1,s1,d1,0,2591400,9,1,5,Delay-insensitive,8,32\n{line}\n")
    with pytest.raises(InputError, match=message):
        read("azure", path, max_lost=0.0)


# Philly


def test_the_machines_of_philly_have_whole_numbers_of_gpus(tmp_path):
    (tmp_path / "cluster_job_log").write_text(json.dumps([philly(attempt("01:10:00", "01:20:00", 8))]))
    listed = tmp_path / "cluster_machine_list"
    listed.write_text("m1,0,24GB\nm2,16,24GB\n")  # without a head
    assert read("philly", tmp_path).fleet.machines.rows() == [("m1", "0", True, 0), ("m2", "0", True, 16_000)]
    for lines in ("m1,1.5,24GB\n", "m1,1048577,24GB\n", "m1,-1,24GB\n", "head,gpus,mem\nm1,eight,24GB\n"):
        listed.write_text(f"{lines}m2,2,24GB\n")
        line = 2 if lines.startswith("head") else 1
        if lines.startswith("m1"):
            listed.write_text(f"m2,2,24GB\n{lines}")
            line = 2
        with pytest.raises(InputError, match=f"line {line}: number of GPUs must be a whole number from 0 to 1,048,576"):
            read("philly", tmp_path)
    listed.unlink()
    conversion = read("philly", tmp_path)
    assert conversion.fleet is None
    assert conversion.remarks["fleet"] == "none written: there is no cluster_machine_list beside the log"


def attempt(start, end, *gpus):
    return {
        "start_time": start and f"2017-10-07 {start}",
        "end_time": f"2017-10-07 {end}" if end else "None",
        "detail": [
            {"ip": f"m{number}", "gpus": [f"gpu{each}" for each in range(count)]} for number, count in enumerate(gpus)
        ],
    }


def philly(*attempts, job="a", status="Pass"):
    return {
        "status": status,
        "vc": "v",
        "jobid": job,
        "attempts": attempts,
        "submitted_time": "2017-10-07 01:00:00",
        "user": "u",
    }


def test_jobs_of_philly_run_as_long_as_their_attempts(tmp_path):
    (tmp_path / "cluster_job_log").write_text(
        json.dumps(
            [
                philly(attempt("01:10:00", "01:20:00", 8), attempt("02:00:00", "02:30:00", 8)),
                philly(attempt("01:00:30", "01:01:00", 2, 2), job="b", status="Failed"),
                philly(attempt("01:00:30", "01:01:00", 2, 1), job="c", status="Killed"),
                philly(attempt("01:30:00", None, 1), job="d"),
                philly(job="e"),
                philly(attempt(None, "01:01:00", 1), job="f"),
                philly(attempt("01:01:00", "01:02:00"), job="g"),
                philly(attempt("01:01:00", "01:02:00", 1), job="a"),
            ]
        )
    )
    (tmp_path / "cluster_machine_list").write_text(
        "machineId,number of GPUs,single GPU mem\nm1,8, 24GB\nm2,2, 12GB\nm1,8, 24GB\n"
    )
    conversion = read("philly", tmp_path)
    assert conversion.workload.requests.tolist() == [[8000, 2000, 1000, 1000]]
    assert conversion.workload.gang_sizes().tolist() == [0, 2, 3, 0]
    assert tasks(conversion, "recorded_start", "outcome") == [
        ("a", 0.0, 2400.0, 600.0, "FINISH"),
        *[("b", 0.0, 30.0, 30.0, "FAIL")] * 2,
        *[("c", 0.0, 30.0, 30.0, "KILL")] * 3,
        ("d", 0.0, 3600.0, 1800.0, "CENSORED"),
    ]
    assert conversion.accounts[0].dropped == {
        "no attempt names a GPU": 1,
        "never started, so its run time is unknown": 1,
        "job seen before": 1,
        "how long it ran is unknown": 1,
    }
    assert conversion.accounts[1].used == {"part of their job's run time": 5}
    assert conversion.accounts[1].dropped == {"no start is recorded": 1, "of a job that is dropped": 2}
    assert conversion.fleet.machines.rows() == [("m1", "0", True, 8000), ("m2", "0", True, 2000)]
    assert conversion.fleet.attributes.rows() == [(0, "gpu_memory", "24GB"), (1, "gpu_memory", "12GB")]
