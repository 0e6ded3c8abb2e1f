"""How much of a workload is run: some queues alone, and another load."""
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from small import CPU, fleet_of, plain, staged, workloads
from subak.errors import InputError
from subak.experiment.inputs import of_seed
from subak.experiment.scenario import Scenario
from subak.workload.extent import at_load, of_queues
from subak.workload.redraws import DAYS
from subak.workload.table import TIME_0, Observed, workload_of_units

DAY = 86_400.0


def in_queues(workload, queues):
    return replace(workload, jobs=workload.jobs.with_columns(queue=pl.Series(queues)))


# Load


def test_the_load_by_hand():
    made = plain((0, 7, 1), (13, 7, 1), (26, 7, 2))
    made = replace(made, tasks=made.tasks.with_columns(recorded_start=pl.Series([1.0, 14.0, 27.0])),
                   observed=Observed(13.0, 26.0))
    made.provenance.notes["remarks"] = {TIME_0: "2024-01-01", "kept": 3}
    found = at_load(made, 1.3)
    assert found.tasks["arrival"].to_list() == pytest.approx([0.0, 10.0, 20.0])
    assert found.tasks["run_time"].to_list() == [7.0] * 3
    assert "recorded_start" not in found.tasks.columns  # nobody started so
    assert (found.observed.begin, found.observed.end) == pytest.approx((10.0, 20.0))
    assert found.provenance.notes["remarks"] == {"kept": 3}  # its hours are no hours
    assert found.provenance.origin.endswith("; at 1.3 times its load")
    assert at_load(made, 1.0) is made


def test_what_arrives_at_once_has_no_load():
    with pytest.raises(InputError, match="load: must be 1, not 2, for unnamed, whose tasks all arrive at once"):
        at_load(plain((3, 1, 1), (3, 1, 1)), 2.0)


@pytest.mark.parametrize("load", [0.0, -1.0, 0.009, 101.0, float("nan"), float("inf")])
def test_no_load_is_refused(load):
    with pytest.raises(InputError, match=r"load: must be a number from 0\.01 to 100, such as 1\.3, not"):
        Scenario(load=load)


def test_a_log_is_of_its_own_load():
    with pytest.raises(InputError, match=r"^load: recorded does what the log says"):
        Scenario(load=1.3, schedulers=["first-fit", "recorded"])


def test_days_are_drawn_before_the_load_changes_and_the_window_with_it():
    """A job at noon of each of eight days, the user's number its day: draws stay at noon, of days of 12 h."""
    made = plain(*((DAY * day + DAY / 2, 60.0, 1) for day in range(8)))
    made = replace(made, jobs=made.jobs.with_columns(user=pl.Series([f"u{day % 2}" for day in range(8)])))
    scenario = Scenario(load=2.0, resample=DAYS, seeds=[1, 2, 3], measure_from=DAY)
    for seed in (1, 2, 3):
        _, (drawn, _), window = of_seed(scenario, seed, (made, fleet_of((1,))))
        assert np.allclose((drawn.tasks["arrival"].to_numpy() - DAY / 4) % (DAY / 2), 0.0)
        assert (window.begin, window.end) == (DAY / 2, DAY * 7.5 / 2)


# Queues


def test_queues_by_hand():
    """A job of gpu with two stages, one before it of cpu; gpu-long is another queue than gpu, gpu/ann is below it."""
    made = staged(
        [{"job": 0, "request": (1,)}, {"job": 1, "request": (2,)}, {"job": 1, "request": (3,), "depends_on": [1]},
         {"job": 2, "request": (4,)}, {"job": 3, "request": (5,)}],
        [(0, 0, 1), (1, 1, 1), (3, 2, 1), (2, 3, 1), (4, 4, 1), (1, 5, 1)])
    made = in_queues(made, ["cpu/bob", "gpu/ann", "gpu-long/ann", "gpu"])
    found = of_queues(made, ["gpu"])
    assert found.jobs["job"].to_list() == ["j1", "j3"]
    assert found.stages.select("job", "cpu", "depends_on").rows() == [(0, 2, []), (0, 3, [0]), (1, 5, [])]
    assert found.tasks.select("stage", "arrival").rows() == [(0, 1.0), (1, 3.0), (2, 4.0), (0, 5.0)]
    assert found.provenance.name == "unnamed (gpu)"
    assert of_queues(made, ["gpu-long", "cpu"]).jobs["job"].to_list() == ["j0", "j2"]
    assert of_queues(made, []) is made


@settings(deadline=None, max_examples=60)
@given(workloads(CPU))
def test_what_is_kept_is_a_workload_and_the_parts_add_up(workload):
    workload = in_queues(workload, [f"q{row % 2}" for row in range(len(workload.jobs))])
    kept = [of_queues(workload, [name]) for name in ("q0", "q1") if name in workload.jobs["queue"]]
    for part in kept:
        workload_of_units(part.jobs, part.stages, part.tasks, part.resources)  # breaks no rule
        assert part.tasks["arrival"].is_sorted()
    assert sum(len(part.tasks) for part in kept) == len(workload.tasks)
    assert of_queues(workload, ["q0", "q1"][:len(kept)]).tasks.equals(workload.tasks)
    assert of_queues(workload, ["q0", "q1"][:len(kept)]).stages.equals(workload.stages)


def test_a_queue_that_nobody_is_in_is_refused():
    made = in_queues(plain(*((row, 1, 1) for row in range(12))), [f"q{row}/a" for row in range(12)])
    with pytest.raises(InputError, match=r"only_queues: no job is in queue 'q7/b'; the first parts of queues are q0, "
                                         r"q1, q10, q11, .* and others; did you mean 'q7"):
        of_queues(made, ["q7/b"])
    with pytest.raises(InputError, match="only_queues: must be names of queues"):
        Scenario(only_queues=[""])


def test_both_go_in_chunks(tmp_path, run):
    (tmp_path / "W").mkdir()
    plain((0, 1, 1), (1, 1, 1), (3, 1, 1)).write(tmp_path / "W")
    machines = ("--machines", 1, "--capacity", "cpu=1")
    for option in (("--load", 2), ("--only-queue", "all")):
        folders = [tmp_path / f"{option[1]}-{kind}" for kind in ("chunks", "memory")]
        for folder, chunk in zip(folders, (("--chunk", 1), ()), strict=True):
            assert run("simulate", tmp_path / "W", *machines, *chunk, *option, "--out", folder)[0] == 0
        one, other = ((folder / "tasks.parquet").read_bytes() for folder in folders)
        assert one == other
    code, _, said = run("simulate", tmp_path / "W", *machines, "--chunk", 1, "--only-queue", "none")
    assert code == 2 and "only_queues: no job is in queue 'none'" in said
