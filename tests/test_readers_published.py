"""Published tables: rows as their publishers print them, or made by hand to the schema (tests/data/published)."""
from pathlib import Path

import polars as pl
import pytest

from subak.workload.readers import READERS
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options

FILES = Path(__file__).parent / "data" / "published"
NEVER, UNKNOWN = "never started, so its run time is unknown", "how long it ran is unknown"


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
    assert conversion.accounts[0].dropped == {NEVER: 1, UNKNOWN: 1}


@pytest.mark.parametrize(("state", "outcome"), [
    ("3", "FINISH"), ("11", "FAIL"), ("1024", "EVICT"), ("1027", "EVICT"), ("259", "FINISH")])
def test_states_of_slurms_database_have_flags(tmp_path, state, outcome):
    text = (FILES / "slurm-log-by-hand.csv").read_text().splitlines()[:2]
    path = tmp_path / "slurm-log.csv"
    path.write_text("\n".join([text[0], text[1].replace(",4294,3,", f",4294,{state},")]))
    conversion = READERS["supercloud"].read(path, Options(), ignore_progress)
    assert conversion.workload.tasks["outcome"].to_list() == [outcome]
