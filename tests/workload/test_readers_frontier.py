"""Frontier's SWF with 21 fields: lines written by hand to the published list of fields."""
from pathlib import Path

import pytest

from subak.errors import InputError
from subak.workload.readers import READERS
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options

DATA = Path(__file__).resolve().parents[1] / "data" / "published" / "frontier"
LINE = "{number} 0 60 3600 {allocated} -1 -1 {allocated} 7200 -1 1 17 3 -1 1 1 -1 -1 {gpus} -1 {descriptor}"


def read(source, **options):
    return READERS["frontier"].read(source, Options(**options), ignore_progress)


def written(folder, *jobs):
    lines = [LINE.format(**{"number": row, "allocated": 2, "gpus": 16, "descriptor": "frontier:excl:2x112", **job})
             for row, job in enumerate(jobs, 1)]
    path = folder / "x.swf"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_nodes_and_cores_are_of_field_21_and_gpus_are_shared_evenly():
    conversion = read(DATA / "frontier.swf")
    workload = conversion.workload
    assert workload.jobs.rows() == [("1", "queue1/user17", "17"), ("2", "queue1/user17", "17"),
                                    ("4", "queue2/user18", "18"), ("5", "queue2/user19", "19")]
    assert workload.stages.select("cpu", "gpu").rows() == [(112, 8), (112, 8), (112, 0), (56, 4)]
    assert workload.gang_sizes().tolist() == [16, 128, 0, 0]  # one node alone is no gang
    assert workload.tasks.group_by("stage", maintain_order=True).len()["len"].to_list() == [16, 128, 1, 1]
    first = workload.tasks.unique("stage", keep="first", maintain_order=True)
    assert first.select("arrival", "run_time", "estimate", "recorded_start", "outcome").rows() == [
        (0, 3600, 7200, 60, "FINISH"), (10, 50, 7200, 10, "FAIL"), (30, 7200, 7200, 35, "FAIL"),
        (40, 100, None, 45, None)]
    assert conversion.accounts[0].dropped == {"never started, so its run time is unknown": 1}
    cpu, gpu = conversion.loads
    assert (cpu.kept, cpu.lost) == (pytest.approx((16 * 112 * 3600 + 128 * 112 * 50 + 112 * 7200 + 56 * 100) / 3600), 0)
    assert gpu.kept == pytest.approx((128 * 3600 + 1024 * 50 + 4 * 100) / 3600)
    assert conversion.remarks == {
        "jobs with an estimate": 3, "jobs whose wait is recorded": 4,
        "jobs that follow another (fields 17 and 18, which are not read)": 1,
        "jobs whose GPUs are unknown (they ask for none)": 1, "jobs that share nodes with others": 1,
        "time 0 is": "2024-01-01 00:00:00+00:00",
        "fleet": "none written: the trace does not say how many nodes there are"}
    assert conversion.fleet is None


def test_gpus_that_nodes_cannot_share_evenly_are_rounded_up(tmp_path):
    conversion = read(written(tmp_path, {"gpus": 17}, {"gpus": 16}, {"gpus": 0}))
    assert conversion.workload.stages["gpu"].to_list() == [9, 8, 0]
    assert conversion.remarks["jobs whose GPUs their nodes cannot share evenly (rounded up)"] == 1
    assert conversion.loads[1].kept == 2 * 9 + 2 * 8
    assert "jobs whose GPUs are unknown (they ask for none)" not in conversion.remarks


@pytest.mark.parametrize("descriptor", ["frontier:excl:2", "2x112", "frontier:excl:0x112", "frontier:excl:2x0",
                                        "frontier:excl:-2x112", "frontier:excl:2x9999999999", "-1"])
def test_a_job_without_a_shape_is_dropped_and_its_load_is_lost(tmp_path, descriptor):
    path = written(tmp_path, {}, {"descriptor": descriptor})
    conversion = read(path, max_lost=1.0)
    assert conversion.workload.jobs["job"].to_list() == ["1"]
    assert conversion.dropped.select("line", "column", "value").rows() == [(2, "descriptor", descriptor)]
    assert conversion.loads[0].lost_share == 0.5
    with pytest.raises(InputError, match=r"x.swf, line 2: field 21 must be CLUSTER:MODE:NODESxCORES"):
        read(path, max_lost=0.0)


def test_a_line_of_the_standard_alone_is_no_line_of_frontier(tmp_path):
    path = written(tmp_path, {})
    path.write_text(path.read_text() + "2 0 60 3600 2 -1 -1 2 7200 -1 1 17 3 -1 1 1 -1 -1\n")
    with pytest.raises(InputError, match=r"x.swf, line 2: must have 21 fields or more, not 18"):
        read(path, max_lost=0.0)
