"""The Google 2011 reader: each case of the format by hand, a plain twin of its rules, and the genuine parts."""
import gzip
import lzma
import random
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from published import trace
from subak.errors import InputError
from subak.workload.readers.conversion import Conversion
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.google import tasks as borg
from subak.workload.readers.google.attempts import find_attempts, sort_events
from subak.workload.readers.google.google2011 import events as google2011
from subak.workload.readers.options import Options

AFTER = 2**63 - 1
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING, UPDATE_RUNNING = range(9)


def line(time, event, *, job=1, index=0, cpu=0.5, memory=0.25, user="u/x+=", priority=4, different=0):
    """One row of task_events; times in microseconds."""
    missing = "2" if cpu == "" else ""
    return f"{time},{missing},{job},{index},7,{event},{user},2,{priority},{cpu},{memory},0.001,{different}"


def folder(tmp_path: Path, *parts: list[str], **tables: list[str]) -> Path:
    """A trace folder of one file a part, and one of each further table."""
    (tmp_path / "task_events").mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(parts):
        path = tmp_path / "task_events" / f"part-{number:05}-of-00500.csv"
        path.write_text("".join(f"{row}\n" for row in rows))
    for name, rows in tables.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "part-00000-of-00001.csv").write_text("".join(f"{row}\n" for row in rows))
    return tmp_path


def read(source: Path, **options) -> Conversion:
    return google2011.read(source, Options(**options), ignore_progress)


def tasks(conversion: Conversion) -> list[tuple]:
    """(job, index, arrival, run time, outcome, kind) of each task, in order."""
    workload = conversion.workload
    table = workload.tasks.with_columns(
        workload.stages.select(pl.col("job", "kind").gather(workload.tasks["stage"]))
    ).with_columns(pl.col("job").replace_strict(dict(enumerate(workload.jobs["job"])), return_dtype=pl.String))
    return table.select("job", "index", "arrival", "run_time", "outcome", "kind").rows()


def dropped(conversion: Conversion) -> dict[str, int]:
    return conversion.accounts[0].dropped


S = 1_000_000
EVICTED = [line(600 * S, SUBMIT), line(601 * S, SCHEDULE), line(700 * S, EVICT), line(701 * S, SUBMIT),
           line(705 * S, SCHEDULE), line(805 * S, FINISH)]


def test_a_resubmission_is_a_new_task_by_default(tmp_path):
    conversion = read(folder(tmp_path, EVICTED))
    assert tasks(conversion) == [("1", 0, 600.0, 99.0, "EVICT", "TASK"), ("1#2", 0, 701.0, 100.0, "FINISH", "TASK")]
    assert conversion.accounts[0].used == {"events of kept tasks": 6}


def test_a_resubmission_may_be_an_attempt_of_the_same_task(tmp_path):
    conversion = read(folder(tmp_path, EVICTED), resubmissions="attempt")
    assert tasks(conversion) == [("1", 0, 600.0, 100.0, "FINISH", "TASK")]
    assert conversion.accounts[0].used == {"events of kept tasks": 3, "events of earlier attempts of the same task": 3}


def test_an_attempt_that_stays_pending_at_the_end_does_not_hide_the_one_that_ran(tmp_path):
    conversion = read(folder(tmp_path, EVICTED[:4]), resubmissions="attempt")
    assert tasks(conversion) == [("1", 0, 600.0, 99.0, "EVICT", "TASK")]
    assert dropped(conversion) == {borg.NEVER_SCHEDULED: 1}


@pytest.mark.parametrize(("event", "outcome", "kind"), [
    (EVICT, "EVICT", "TASK"), (FAIL, "FAIL", "TASK"), (FINISH, "FINISH", "TASK"),
    (KILL, "KILL", "SERVICE"), (LOST, "LOST", "TASK"),
])
def test_every_end_event_is_an_outcome(tmp_path, event, outcome, kind):
    conversion = read(folder(tmp_path, [line(600 * S, SUBMIT), line(601 * S, SCHEDULE), line(603 * S, event)]))
    assert tasks(conversion) == [("1", 0, 600.0, 2.0, outcome, kind)]


CENSORED = [line(600 * S, SUBMIT), line(601 * S, SCHEDULE), line(650 * S, SUBMIT, job=2),
            line(651 * S, SCHEDULE, job=2), line(700 * S, FINISH, job=2)]


def test_a_task_that_outlives_the_window_keeps_the_run_time_seen(tmp_path):
    conversion = read(folder(tmp_path, CENSORED))
    assert tasks(conversion)[0] == ("1", 0, 600.0, 99.0, "CENSORED", "SERVICE")


def test_a_task_that_outlives_the_window_may_be_dropped_or_endless(tmp_path):
    source = folder(tmp_path, CENSORED)
    gone = read(source, censored="drop")
    assert [row[0] for row in tasks(gone)] == ["2"]
    assert dropped(gone) == {borg.CENSORED: 2}
    assert tasks(read(source, censored="forever"))[0][3] == float("inf")


def test_time_0_means_before_the_window(tmp_path):
    rows = [line(0, SCHEDULE), line(0, SUBMIT), line(650 * S, FINISH), line(0, SUBMIT, job=2),
            line(620 * S, SCHEDULE, job=2), line(630 * S, FINISH, job=2)]
    conversion = read(folder(tmp_path, rows))
    assert tasks(conversion) == [("1", 0, 0.0, 650.0, "FINISH", "TASK"), ("2", 0, 0.0, 10.0, "FINISH", "TASK")]
    assert conversion.remarks["tasks already running at time 0"] == 1


def test_the_other_sentinel_means_after_the_window(tmp_path):
    conversion = read(folder(tmp_path, [*CENSORED, line(AFTER, FINISH)]))
    assert tasks(conversion)[0][4] == "CENSORED"
    assert dropped(conversion) == {borg.AFTER_WINDOW: 1}
    assert conversion.remarks["window's end (s)"] == 700.0


def test_only_sentinels_are_no_trace(tmp_path):
    with pytest.raises(InputError, match="no events within"):
        read(folder(tmp_path, [line(AFTER, FINISH)]))


def test_a_missing_request_comes_from_another_row_of_the_attempt(tmp_path):
    rows = [line(0, SUBMIT, cpu="", memory=""), line(0, SCHEDULE, cpu=0.125), line(650 * S, FINISH)]
    conversion = read(folder(tmp_path, rows))
    assert conversion.workload.requests.tolist() == [[12_500_000], [25_000_000]]
    assert conversion.remarks["rows without a request (the attempt's other rows may have one)"] == 1


def test_without_any_request_a_task_is_dropped(tmp_path):
    lacking = [line(600 * S, event, job=2, cpu="", memory="") for event in (SUBMIT, SCHEDULE)]
    conversion = read(folder(tmp_path, EVICTED + lacking))
    assert dropped(conversion) == {borg.NO_REQUEST: 2}


def test_a_request_of_nothing_is_dropped_but_nothing_of_one_resource_is_kept(tmp_path):
    rows = [line(600 * S, event, job=job, cpu=0, memory=memory)
            for job, memory in ((2, 0), (3, 0.1)) for event in (SUBMIT, SCHEDULE, FINISH)]
    conversion = read(folder(tmp_path, rows))
    assert [row[0] for row in tasks(conversion)] == ["3"]
    assert dropped(conversion) == {borg.ZERO_REQUEST: 3}


def test_the_last_request_before_schedule_counts(tmp_path):
    rows = [line(600 * S, SUBMIT), line(601 * S, UPDATE_PENDING, cpu=0.3), line(602 * S, SCHEDULE, cpu=0.3),
            line(603 * S, UPDATE_RUNNING, cpu=0.7), line(604 * S, FINISH, cpu=0.7)]
    conversion = read(folder(tmp_path, rows))
    assert conversion.workload.requests[0].tolist() == [30_000_000]
    assert conversion.remarks["update rows"] == 2


def test_odd_sequences_are_counted(tmp_path):
    rows = [
        line(600 * S, FINISH, job=1),  # began before the parts
        line(600 * S, SUBMIT, job=2), line(601 * S, KILL, job=2),  # never ran
        line(600 * S, SUBMIT, job=3), line(601 * S, SUBMIT, job=3), line(602 * S, SCHEDULE, job=3),
        line(603 * S, SCHEDULE, job=3), line(604 * S, FINISH, job=3),
        line(600 * S, SUBMIT, job=4), line(601 * S, SCHEDULE, job=4), line(602 * S, SUBMIT, job=4),
        line(600 * S, SCHEDULE, job=5), line(602 * S, FINISH, job=5),  # SUBMIT not seen
        line(602 * S, FINISH, job=5),
    ]
    conversion = read(folder(tmp_path, rows))
    assert tasks(conversion) == [("5", 0, 600.0, 2.0, "FINISH", "TASK"), ("3#2", 0, 601.0, 2.0, "FINISH", "TASK")]
    assert dropped(conversion) == {
        borg.LONG_AGO: 1, borg.ENDED_PENDING: 2, borg.RESUBMITTED_PENDING: 1,
        borg.SCHEDULED_TWICE: 1, borg.RESUBMITTED_RUNNING: 2, borg.NEVER_SCHEDULED: 1,
        borg.REPEATED: 1}


def test_evicted_and_submitted_again_at_one_instant(tmp_path):
    rows = [line(600 * S, SUBMIT), line(601 * S, SCHEDULE), line(700 * S, SUBMIT), line(700 * S, SCHEDULE),
            line(700 * S, EVICT), line(750 * S, FINISH)]
    assert tasks(read(folder(tmp_path, rows))) == [
        ("1", 0, 600.0, 99.0, "EVICT", "TASK"), ("1#2", 0, 700.0, 50.0, "FINISH", "TASK")]


def test_a_task_may_come_and_go_within_one_instant(tmp_path):
    rows = [line(600 * S, FINISH), line(600 * S, SCHEDULE), line(600 * S, SUBMIT)]
    assert tasks(read(folder(tmp_path, rows))) == [("1", 0, 600.0, 0.0, "FINISH", "TASK")]


def test_the_order_of_parts_and_rows_does_not_matter(tmp_path):
    rows = [line(time * S, event, job=job, index=index)
            for job in (1, 2, 3) for index in range(4)
            for time, event in ((600, SUBMIT), (601, SCHEDULE), (700 + index, EVICT), (710, SUBMIT), (720, SCHEDULE))]
    mixed = rows.copy()
    random.Random(4).shuffle(mixed)
    first = read(folder(tmp_path / "a", rows)).workload
    second = read(folder(tmp_path / "b", mixed[30:], mixed[:30])).workload
    for name in ("jobs", "stages", "tasks"):
        assert getattr(first, name).equals(getattr(second, name))


def test_jobs_may_be_worked_on_in_portions(tmp_path, monkeypatch):
    rows = [line((600 + job) * S, event, job=job, index=index) for job in range(9) for index in range(3)
            for event in (SUBMIT, SCHEDULE, FINISH, FINISH)]
    whole = read(folder(tmp_path, rows))
    monkeypatch.setattr(borg, "PORTION_ROWS", 20)
    portions = read(tmp_path)
    assert whole.accounts == portions.accounts
    for name in ("jobs", "stages", "tasks"):
        assert getattr(whole.workload, name).equals(getattr(portions.workload, name))


def test_users_become_queues_without_slashes(tmp_path):
    jobs = read(folder(tmp_path, EVICTED)).workload.jobs
    assert jobs["queue"].unique().to_list() == ["u_x+="]
    assert jobs["user"].unique().to_list() == ["u/x+="]


def test_alike_tasks_of_a_job_share_a_stage(tmp_path):
    rows = [line(600 * S, event, index=index, cpu=0.5 if index < 3 else 0.25)
            for index in range(4) for event in (SUBMIT, SCHEDULE, FINISH)]
    workload = read(folder(tmp_path, rows)).workload
    assert workload.stages.select("name", "priority").rows() == [("0", 4), ("1", 4)]
    assert workload.tasks["stage"].to_list() == [0, 0, 0, 1]


def test_a_slice_holds_what_arrives_in_it(tmp_path):
    conversion = read(folder(tmp_path, EVICTED), arrival_min=601.0, arrival_end=702.0)
    assert [row[0] for row in tasks(conversion)] == ["1#2"]
    assert dropped(conversion) == {borg.OUTSIDE: 3}
    with pytest.raises(InputError, match="none of the 6 rows"):
        read(folder(tmp_path, EVICTED), arrival_min=900.0)


def test_a_gap_between_the_parts_is_remarked(tmp_path):
    source = folder(tmp_path, EVICTED[:3], [], [], EVICTED[3:])
    for number in (1, 2):
        (source / "task_events" / f"part-{number:05}-of-00500.csv").unlink()
    assert read(source).remarks["parts missing in between"] == "1 to 2"


# Constraints and machines

MACHINES = ["0,5,0,pA,0.5,0.25", "0,6,0,pB,1,1", "700000000,5,1,pA,0.5,0.25", "800000000,5,0,pA,,",
            "650000000,6,2,pB,1,0.5", "900000000,7,0,pC,,", "950000000,7,2,pA,0.25,0.25"]


def test_the_fleet_at_the_start(tmp_path):
    conversion = read(folder(tmp_path, EVICTED, machine_events=MACHINES))
    fleet = conversion.fleet
    assert fleet.machines.select("machine", "cluster", "present", "cpu", "memory").rows() == [
        ("5", "0", True, 50_000_000, 25_000_000), ("6", "0", True, 100_000_000, 100_000_000)]
    assert fleet.attribute("platform").to_list() == ["pA", "pB"]
    assert fleet.resources == conversion.workload.resources
    assert fleet.changes.is_empty()


def test_the_fleet_of_last_capacities(tmp_path):
    fleet = read(folder(tmp_path, EVICTED, machine_events=MACHINES), fleet="last").fleet
    assert fleet.machines["machine"].to_list() == ["5", "6", "7"]
    assert fleet.capacity.tolist() == [[50_000_000, 100_000_000, 25_000_000], [25_000_000, 50_000_000, 25_000_000]]


def test_the_changing_fleet(tmp_path):
    fleet = read(folder(tmp_path, EVICTED, machine_events=MACHINES), fleet="changing").fleet
    assert fleet.machines["present"].to_list() == [True, True, False]
    assert fleet.changes.rows() == [
        (650.0, 1, True, 100_000_000, 50_000_000), (700.0, 0, False, 50_000_000, 25_000_000),
        (800.0, 0, True, 50_000_000, 25_000_000), (900.0, 2, True, 25_000_000, 25_000_000),
        (950.0, 2, True, 25_000_000, 25_000_000)]


def test_no_machine_is_no_fleet(tmp_path):
    with pytest.raises(InputError, match="at least one machine, --fleet at-start gives 0"):
        read(folder(tmp_path, EVICTED, machine_events=["700000000,5,0,pA,0.5,0.25"]))


def test_without_machine_events_no_fleet_is_written(tmp_path):
    conversion = read(folder(tmp_path, EVICTED))
    assert conversion.fleet is None
    assert "none written" in conversion.remarks["fleet"]


def test_attributes_are_those_of_time_0(tmp_path):
    attributes = ["0,5,kernel,3,0", "0,6,kernel,4,0", "600000000,5,kernel,5,0", "600000000,6,disks,2,0",
                  "0,9,kernel,1,0", "700000000,6,kernel,,1"]
    source = folder(tmp_path, EVICTED, machine_events=MACHINES, machine_attributes=attributes)
    conversion = read(source)
    assert conversion.fleet.attribute("kernel").to_list() == ["3", "4"]
    assert conversion.fleet.attribute("disks").to_list() == [None, None]
    assert conversion.accounts[-1].dropped == {
        "deletion": 1, "of a machine that is not in the fleet": 1, "after time 0": 2}
    assert read(source, fleet="last").fleet.attribute("disks").to_list() == [None, "2", None]


def test_constraints_first_seen_count_and_part_stages(tmp_path):
    rows = [line(600 * S, event, index=index) for index in range(3) for event in (SUBMIT, SCHEDULE, FINISH)]
    constraints = ["600000000,1,0,3,kernel,3", "600000000,1,0,0,rack,", "600000000,1,1,1,rack,r1",
                   "700000000,1,1,1,rack,r2", "600000000,1,1,1,rack,r1"]
    conversion = read(folder(tmp_path, rows, task_constraints=constraints))
    stages = conversion.workload.stages
    assert stages["constraints"].to_list() == [
        [{"attribute": "kernel", "operator": ">", "value": "3"}, {"attribute": "rack", "operator": "=", "value": ""}],
        [{"attribute": "rack", "operator": "!=", "value": "r1"}], []]
    assert conversion.accounts[1].dropped == {"seen later of the same task": 1, "exact repetition of a row": 1}


@pytest.mark.parametrize(("row", "message"), [
    ("600,1,0,9,a,b", "operator must be 0"), ("600,1,0,2,a,b", "needs a number"), ("-1,1,0,0,a,b", "time must not"),
])
def test_bad_constraints_end_in_one_line(tmp_path, row, message):
    with pytest.raises(InputError, match=rf"task_constraints.*line 1: .*{message}"):
        read(folder(tmp_path, EVICTED, task_constraints=[row]))


# Bad inputs


@pytest.mark.parametrize(("row", "message"), [
    (line(-1, SUBMIT), "time must not be negative, not -1"),
    (line("x", SUBMIT), "time must be a whole number, not x"),
    (line(600.5, SUBMIT), "time must be a whole number, not 600.5"),
    (line("", SUBMIT), "time must be given, is missing"),
    (line(600, 9), "event must be 0 to 8, not 9"),
    (line(600, SUBMIT, index=-3), "index must not be negative"),
    (line(600, SUBMIT, cpu="NaN"), "cpu must be a number, not nan"),
    (line(600, SUBMIT, memory=-0.5), "memory must not be negative, not -0.5"),
    (line(600, SUBMIT, cpu=1e9), "cpu must be at most"),
    (line(600, SUBMIT)[:-2], "needs 13 columns, has 12"),
    (line(600, SUBMIT) + ",0", "needs 13 columns, has 14"),
    ("", "needs 13 columns, has 1"),
])
def test_a_bad_row_is_named_by_its_line(tmp_path, row, message):
    with pytest.raises(InputError, match=rf"part-00000-of-00500.csv, line 3: {message}") as caught:
        read(folder(tmp_path, [*EVICTED[:2], row, *EVICTED[2:]]))
    assert "\n" not in str(caught.value)


def test_too_many_columns_do_not_hide_too_few(tmp_path):
    with pytest.raises(InputError, match="line 1: needs 13 columns, has 12"):
        read(folder(tmp_path, [line(600, SUBMIT)[:-2], line(600, SUBMIT) + ",0"]))


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_compressed_part_reads_like_a_plain_one(tmp_path, suffix, compress):
    plain = read(folder(tmp_path / "plain", EVICTED)).workload
    source = folder(tmp_path / "packed", EVICTED)
    [path] = (source / "task_events").iterdir()
    path.with_name(path.name + suffix).write_bytes(compress(path.read_bytes()))
    path.unlink()
    assert read(source).workload.tasks.equals(plain.tasks)


@pytest.mark.parametrize(("content", "message"), [
    (gzip.compress("\n".join(EVICTED).encode())[:-12], "cut off"),
    (gzip.compress("\n".join(EVICTED).encode())[:20] + b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "damaged"),
    (lzma.compress("\n".join(EVICTED).encode())[:-20], "cut off"),
    (b"not compressed", "name says gz"),
    (b"", "name says gz"),
], ids=["gz cut off", "gz damaged", "xz cut off", "text", "empty"])  # not the bytes: gzip writes the time into them
def test_a_damaged_file_is_named(tmp_path, content, message):
    source = folder(tmp_path, EVICTED)
    (source / "task_events" / "part-00001-of-00500.csv.gz").write_bytes(content)
    with pytest.raises(InputError, match=f"part-00001-of-00500.csv.gz: .*{message}"):
        read(source)


@pytest.mark.parametrize(("tables", "message"), [
    ({"machine_events": []}, "machine_events: has no rows"),
    ({"machine_events": ["-1,5,0,p,0.5,0.5"]}, "machine_events/.*, line 1: time must not be negative, not -1"),
    ({"machine_events": ["0,5,0,p,0.5,0.5"], "machine_attributes": ["-1,5,kernel,3,0"]},
     "machine_attributes/.*, line 1: time must not be negative, not -1"),
    ({"machine_events": ["0,5,0,p,0.5,0.5"], "machine_attributes": ["0,,kernel,3,0"]}, "machine must be given"),
])
def test_bad_tables_of_machines_are_named(tmp_path, tables, message):
    with pytest.raises(InputError, match=message):
        read(folder(tmp_path, EVICTED, **tables))


def test_a_folder_without_task_events_is_named(tmp_path):
    with pytest.raises(InputError, match="needs a folder task_events"):
        read(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        read(tmp_path / "absent")


# A plain twin of attempts.py

EVENTS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(range(9))), min_size=1, max_size=14)


def naive_attempts(events: list[tuple[int, int]]) -> list[tuple]:
    """Attempts of one task, event by event: (submit, schedule, end, end_event)."""
    order = {SUBMIT: 0, UPDATE_PENDING: 1, SCHEDULE: 2, UPDATE_RUNNING: 3}
    attempts, live = [], False
    for instant in sorted({time for time, _ in events}):
        here = sorted({event for time, event in events if time == instant})
        mixed = SUBMIT in here and any(EVICT <= event <= LOST for event in here)
        here.sort(key=lambda event: (order.get(event, -1 if mixed and live else 4), event))
        was_live = live
        for event in here:
            live = _naive_step(attempts, instant, event, live)
        live = was_live if mixed else live
    return [tuple(attempt) for attempt in attempts]


def _naive_step(attempts, instant, event, live):
    over = not attempts or attempts[-1][2] != -1
    if event in (UPDATE_PENDING, UPDATE_RUNNING):
        if not attempts:
            attempts.append([-1, -1, -1, -1])
        return live
    if event == SUBMIT or over:
        attempts.append([-1, -1, -1, -1])
    attempt = attempts[-1]
    if event == SUBMIT:
        attempt[0] = instant
    elif event == SCHEDULE:
        attempt[1] = instant if attempt[1] == -1 else attempt[1]
    else:
        attempt[2], attempt[3] = instant, event
    return event in (SUBMIT, SCHEDULE)


@settings(max_examples=300, deadline=None)
@given(st.lists(EVENTS, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_attempts_agree_with_their_plain_twin(of_tasks, shuffler):
    rows = [{"job": 1, "index": index, "time": time, "event": event, "priority": 0, "cpu": 1, "memory": 1,
             "scheduling_class": 2}
            for index, events in enumerate(of_tasks) for time, event in events]
    shuffler.shuffle(rows)
    table = pl.DataFrame(rows, schema={"job": pl.Int64, "index": pl.Int32, "time": pl.Int64, "event": pl.UInt8,
                                       "priority": pl.Int16, "cpu": pl.Int32, "memory": pl.Int32,
                                       "scheduling_class": pl.Int8})
    ordered = sort_events(table)
    attempts = find_attempts(ordered)
    found = attempts.select("index", "submit", "schedule", "end", "end_event").rows()
    assert found == [(index, *attempt) for index, events in enumerate(of_tasks) for attempt in naive_attempts(events)]
    assert attempts["rows"].sum() + attempts["repeats"].sum() == len(ordered)
    assert attempts.filter("last")["index"].to_list() == list(range(len(of_tasks)))


# The genuine parts


@pytest.fixture(scope="module")
def parts() -> Path:
    return trace("google2011", "task_events").parent


@pytest.fixture(scope="module")
def genuine(parts) -> Conversion:
    return read(parts)


def test_all_ten_parts_are_accounted_for(genuine):
    account = genuine.accounts[0]
    assert account.rows == 1_827_856
    assert sum(account.used.values()) + sum(account.dropped.values()) == 1_827_856
    remarks = genuine.remarks
    assert remarks["window's end (s)"] == 50_711.946042
    assert remarks["distinct tasks (job, index)"] == 464_004
    assert remarks["attempts found"] == 675_721
    assert remarks["rows without a request (the attempt's other rows may have one)"] == 291
    assert remarks["update rows"] == 45
    assert remarks["users"] == 545


def test_the_events_of_the_ten_parts_have_the_known_counts(parts):
    events = google2011.read_events(google2011.files(parts)[:10], ignore_progress)
    assert events.counts.tolist() == [675_721, 639_729, 145_550, 13_267, 230_982, 122_562, 0, 2, 43]
    at_start = events.table.filter(time=0)["event"].value_counts().sort("event").rows()
    assert at_start == [(0, 144_339), (1, 132_982)]
    assert events.users.height == 14_484
    requested = events.table.filter(pl.col("cpu") >= 0, time=0, event=SUBMIT)
    amounts = requested.select(pl.col("cpu", "memory").cast(pl.Int64).sum() * 1e-8)
    assert amounts.row(0) == pytest.approx((7_673.6, 6_000.0), abs=0.05)


def test_the_outcomes_and_run_times_of_the_ten_parts(genuine):
    workload = genuine.workload
    outcomes = Counter(workload.tasks["outcome"].to_list())
    assert outcomes["FINISH"] == 230_982
    assert outcomes["FAIL"] == 13_267
    # Those at 0 ran before, nobody knows how long
    arrived = workload.tasks.filter(pl.col("arrival") > 0, outcome="FINISH")
    logs = np.log(arrived["run_time"].to_numpy())
    assert logs.mean() == pytest.approx(6.2, abs=0.05)
    assert logs.std() == pytest.approx(1.5, abs=0.05)
    assert np.exp(np.median(logs)) == pytest.approx(477.3, abs=0.1)


def test_the_fleet_at_the_start_of_the_trace(genuine):
    fleet = genuine.fleet
    assert len(fleet.machines) == 12_477
    assert (fleet.capacity.sum(axis=1, dtype=np.int64) * 1e-8).tolist() == pytest.approx([6_603.25, 5_862.75], abs=0.05)


def test_the_last_capacities_are_table_1_of_lotes(tmp_path):
    source = folder(tmp_path, EVICTED)
    (source / "machine_events").symlink_to(trace("google2011", "machine_events"))
    fleet = read(source, fleet="last").fleet
    known = pl.read_csv(trace("tables", "google2011_machine_configs.csv"))
    expected = {(round(cpu * 1e8), round(memory * 1e8)): count
                for cpu, memory, count in known.select("cpu", "memory", "number_of_machines").rows()}
    found = dict(zip(map(tuple, fleet.machines.select("cpu", "memory").rows()), [0] * 12_583, strict=True))
    for row in fleet.machines.select("cpu", "memory").rows():
        found[row] += 1
    assert found == expected
    platforms = pl.read_csv(trace("tables", "google2011_machine_platforms.csv"))
    assert Counter(fleet.attribute("platform")) == dict(platforms.rows())


def test_resubmissions_as_attempts_leave_one_task_an_index(parts):
    workload = read(parts, resubmissions="attempt").workload
    names = workload.jobs["job"].str.contains("#")
    assert not names.any()
    assert len(workload.tasks) == 443_255


def test_who_asks_for_machines_that_differ_is_remarked(tmp_path):
    source = folder(tmp_path, [line(0, 0, different=1), line(0, 0, index=1), line(0, 0, index=2, different=1),
                               *(line(1_000_000, 1, index=number, different=1) for number in range(3)),
                               *(line(9_000_000, 4, index=number) for number in range(3))])
    assert read(source).remarks["SUBMIT rows that ask for different machines (not modelled)"] == 2
