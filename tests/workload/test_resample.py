"""Workloads redrawn for each seed: what stays, what moves, and that seeds are run where they change something."""
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small import TWO, fleet_of, plain, staged, workloads
from subak.errors import InputError
from subak.experiment.inputs import of_seed, settle_resample
from subak.experiment.parallel import jobs_of
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario, draws
from subak.federation.settings import Federation, supported_by
from subak.placement.schedulers import SCHEDULERS
from subak.tables import amount_columns
from subak.workload.google_like.generate import Length, write_generated
from subak.workload.google_like.parameters import Parameters
from subak.workload.redraws import AUTO, DAYS, MODEL, NONE
from subak.workload.resample import drawable, resample_for, resampled
from subak.workload.samples import sample_folder
from subak.workload.table import make_workload, read_workload


def of_users(*rows):
    """A workload of jobs (user, arrival, run time), one task each."""
    made = plain(*((arrival, run_time, 1) for _, arrival, run_time in rows))
    return replace(made, jobs=made.jobs.with_columns(user=pl.Series([row[0] for row in rows])))


def checked(workload):
    """Apply every rule of workloads again."""
    floats = [pl.col(name) * resource.unit for name, resource in zip(
        amount_columns(workload.resources), workload.resources, strict=True)]
    return make_workload(workload.jobs, workload.stages.with_columns(floats), workload.tasks, workload.resources,
                         workload.provenance, workload.observed)


@given(workloads(TWO), st.integers(1, 20))
def test_a_redrawn_workload_passes_every_check_and_has_whole_jobs(workload, seed):
    end = float(workload.tasks["arrival"][-1])
    drawn = resampled(workload, DAYS, seed, 0.0, end)
    checked(drawn)
    assert resampled(workload, DAYS, seed, 0.0, end).tasks.equals(drawn.tasks)
    assert seed > 1 or drawn.tasks.equals(workload.tasks)

    def told(made, job):
        """What a job is, apart from when: its stages with what they wait for, and its tasks."""
        stages = made.stages.with_row_index("row").filter(pl.col("job") == job)
        first = {row: place for place, row in enumerate(stages["row"])}
        tasks = made.tasks.filter(pl.col("stage").is_in(list(first))).sort("index")
        origin = min(tasks["arrival"], default=0.0)
        return (stages.drop("row", "job", "depends_on").rows(),
                [sorted(first[parent] for parent in parents) for parents in stages["depends_on"]],
                [(first[stage], index, round(arrival - origin, 6), run_time) for stage, index, arrival, run_time in
                 tasks.select("stage", "index", "arrival", "run_time").iter_rows()])

    before = {name: told(workload, number) for number, name in enumerate(workload.jobs["job"])}
    for number, name in enumerate(drawn.jobs["job"]):
        stages, parents, tasks = told(drawn, number)
        was = before[name.partition("~")[0]]
        assert (stages, parents) == was[:2]
        assert np.allclose(np.array(tasks, float), np.array(was[2], float))


def test_what_was_there_before_the_window_stays_and_jobs_of_a_part_move_together():
    workload = of_users(("a", 0, 5), ("b", 0, 7), ("a", 100, 1), ("c", 105, 2), ("b", 400, 3), ("b", 900, 4))
    drawn = [resampled(workload, DAYS, seed, 50.0, 600.0) for seed in range(2, 42)]
    for each in drawn:
        before = each.tasks.filter(pl.col("arrival") < 50)
        assert before["run_time"].to_list() == [5.0, 7.0]
        assert each.tasks.filter(pl.col("arrival") > 600)["run_time"].to_list() == [4.0]
        assert set(each.tasks.filter(pl.col("arrival").is_between(50, 600))["run_time"]) <= {1.0, 2.0, 3.0}
    for each in drawn[::2]:  # whole parts: those at 100 and 105 are in one
        assert each.tasks["run_time"].to_list().count(1.0) == each.tasks["run_time"].to_list().count(2.0)
    assert any(each.tasks["run_time"].to_list().count(1.0) != each.tasks["run_time"].to_list().count(2.0)
               for each in drawn[1::2])
    assert {"j2~2", "j3~2"} <= {name for each in drawn for name in each.jobs["job"]}
    assert drawn[0].provenance.origin.endswith("; days drawn anew")
    assert drawn[0].provenance.notes["redrawn"]["days"] == 8


def test_a_generated_workload_is_drawn_from_its_model(tmp_path):
    write_generated(tmp_path, Parameters(), 5, Length(tasks=200))
    workload = read_workload(tmp_path)
    assert resample_for(workload, AUTO, 3, 0.0, 1.0) == MODEL
    same, other = (resampled(workload, MODEL, seed, 0.0, 1.0) for seed in (1, 2))
    assert same.tasks.equals(workload.tasks) and same.jobs.equals(workload.jobs)
    assert len(other.tasks) == 200 and not other.tasks.equals(workload.tasks)


def test_what_auto_comes_to_and_what_is_refused():
    sample, even = read_workload(sample_folder()), of_users(*((f"u{row}", 60.0 * row, 30.0) for row in range(60)))
    assert resample_for(even, AUTO, 1, 0.0, 3540.0) == NONE
    assert resample_for(even, AUTO, 2, 0.0, 3540.0) == DAYS
    assert resample_for(even, NONE, 2, 0.0, 3540.0) == NONE
    assert resample_for(sample, AUTO, 2, 600.0, 5400.0) == NONE  # a few sessions do most of its work
    assert resample_for(sample, DAYS, 2, 600.0, 5400.0) == DAYS
    with pytest.raises(InputError, match="resample: model needs a workload that `subak generate` made; google2011"):
        resample_for(sample, MODEL, 1, 600.0, 5400.0)
    with pytest.raises(InputError, match="resample: days cannot be drawn of unnamed: all of it arrives at once"):
        resample_for(plain((0, 1, 1), (0, 1, 1)), DAYS, 2, 0.0, float("inf"))
    with pytest.raises(InputError, match="resample: must be one of auto, none, days, model, not 'jobs'"):
        Scenario(resample="jobs")


def test_a_few_sessions_are_no_trace_to_draw_from():
    """The users' work is what counts, up to the end of the window, not how many there are."""
    def sessions(*rows):
        return drawable(of_users(*rows), 0.0, 3600.0)

    alike = [(f"u{row}", 60.0 * row, 30.0) for row in range(60)]
    assert sessions(*alike).sessions == pytest.approx(60)
    assert sessions(*alike, ("big", 10.0, 30_000.0)).sessions < 10
    assert "as uneven as that of" in sessions(*alike, ("big", 10.0, 30_000.0)).why_not
    assert sessions(*alike, ("big", 3590.0, 30_000.0)).sessions > 50  # hardly any of it is within the window
    assert sessions(*[(None, 60.0 * row, 30.0) for row in range(60)]).sessions == pytest.approx(60)  # nobody is known
    assert sessions(*[("one", 60.0 * row, 30.0) for row in range(60)]).sessions == pytest.approx(1)


def test_why_seeds_leave_a_trace_as_it_is_is_said(caplog):
    workload = of_users(*(("one", 60.0 * row, 30.0) for row in range(60)))
    settled = settle_resample(Scenario(seeds=[1, 2]), workload)
    assert settled.resample == NONE
    assert "seeds do not draw unnamed anew: its work is as uneven as that of 1.0 alike sessions" in caplog.text
    caplog.clear()
    settle_resample(Scenario(seeds=[1, 2], resample=NONE), workload)
    settle_resample(Scenario(seeds=[1]), workload)
    assert not caplog.text


def test_every_seed_runs_on_another_workload_and_repeats(tmp_path):
    workload, fleet = of_users(*((f"u{row}", 40.0 * row, 30.0 + row) for row in range(60))), fleet_of((1,))
    scenario = Scenario(schedulers=["first-fit"], seeds=[1, 2])
    waits = [simulate_into(tmp_path / str(seed), scenario, "first-fit", seed, (workload, fleet)).wait_time.mean
             for seed in (1, 2)]
    assert waits[0] != waits[1]
    text = (tmp_path / "2" / "scenario.toml").read_text()
    assert 'resample = "days"' in text and "seeds = [2]" in text.replace("\n    ", "").replace(",\n", "")
    again = Scenario(schedulers=["first-fit"], seeds=[2], resample="days")
    assert simulate_into(tmp_path / "again", again, "first-fit", 2, (workload, fleet)).wait_time.mean == waits[1]
    windows = {of_seed(scenario, seed, (workload, fleet))[2] for seed in (1, 2)}
    assert len(windows) == 1


def contended():
    """A workload on which drawn decisions show: jobs of several tasks on machines that are all alike."""
    stages = [{"job": job, "request": (1, 1)} for job in range(30)]
    return (staged(stages, [(job, 3.0 * job, 10.0 + job % 7) for job in range(30) for _ in range(3)], TWO),
            fleet_of(*[(2, 2)] * 6, resources=TWO))


@pytest.mark.parametrize("name", [name for name, each in SCHEDULERS.items() if not (each.planned or each.recorded)])
def test_a_seed_is_run_where_it_changes_something_and_not_where_it_does_not(tmp_path, name):
    of_two = [key for key in ("global_masters", "local_masters") if key in supported_by(SCHEDULERS[name])]
    settings = Federation(**dict.fromkeys(of_two, 2))
    scenario = Scenario(schedulers=[name], seeds=[1, 2, 3], resample="none", federation=settings)
    tables = []
    for seed in (1, 2, 3):
        simulate_into(tmp_path / str(seed), scenario, name, seed, contended())
        tables.append(pl.read_parquet(tmp_path / str(seed) / "tasks.parquet").select("start", "machine"))
    differs = not (tables[0].equals(tables[1]) and tables[1].equals(tables[2]))
    assert differs == draws(scenario, name)
    assert [job.seed for job in jobs_of(scenario)] == ([1, 2, 3] if differs else [1])


@pytest.mark.parametrize("options", [{"request_error": 0.3}, {"estimates": "factor=2"},
                                     {"schedulers": ["tests/support/fake_runs.py:mine"]},
                                     {"schedulers": ["megha"], "federation": Federation(delay_law="exponential")}])
def test_other_draws_make_seeds_count(options):
    scenario = Scenario(**{"seeds": [1, 2], "resample": "none", **options})
    assert [job.seed for job in jobs_of(scenario)] == [1, 2]
