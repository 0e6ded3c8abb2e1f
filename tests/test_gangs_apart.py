"""Gangs under every scheduler that there is: they start together, or the run is refused; apart only where asked for."""
import itertools

import pytest

from small import CPU, fleet_of, staged
from subak.errors import InputError
from subak.experiment.run import of_run, refuse_unfit, simulate_into
from subak.experiment.scenario import APART, Scenario
from subak.measures.runs import load_runs
from subak.placement.schedulers import SCHEDULERS
from subak.policy import find_scheduler
from subak.queues.orders import FAIR_ORDERS
from subak.report.notes import notes
from subak.workload.table import make_workload

PLACEMENTS = ("best-fit", "aligned-fit")
NAMES = [*SCHEDULERS, *(f"{placement}+{order}" for placement, order in itertools.product(PLACEMENTS, FAIR_ORDERS)),
         "first-fit+backfill", "best-fit+easy", "worst-fit+conservative", "tetris+normalised", "lotes+drf"]


def ganged():
    """Nine gangs of three tasks, and tasks between them, on machines for one at a time: some must wait for others."""
    made = staged([{"job": job, "request": (1,)} for job in range(18)],
                  [(job, float(job), 4.0 + job % 5, 5.0) for job in range(18) for _ in range(3 if job % 2 else 1)])
    units = [made.stages[resource.name] * resource.unit for resource in CPU]
    stages = made.stages.with_columns(*units, gang=made.stages["job"] % 2 == 1)
    return make_workload(made.jobs, stages, made.tasks, CPU), fleet_of(*[(1,)] * 5)


@pytest.mark.parametrize("name", NAMES)
def test_gangs_start_together_or_the_run_is_refused(tmp_path, name):
    inputs, scenario = ganged(), Scenario(schedulers=[name])
    try:
        refuse_unfit(scenario, [find_scheduler(name)], inputs)
    except InputError as error:
        assert "has 9 gangs" in str(error) or name == "recorded", str(error)
        return
    simulate_into(tmp_path / "R", scenario, name, 1, inputs)
    tasks = load_runs(tmp_path / "R")[0].tasks().collect()
    starts = tasks.group_by("job").agg("start")
    assert tasks["start"].null_count() == 0
    apart = max(max(each) - min(each) for each in starts["start"])
    assert apart == 0 if not find_scheduler(name).architecture else apart < 0.01  # as messages come


def test_those_that_keep_gangs_are_as_many_as_before():
    kept = [name for name, each in SCHEDULERS.items() if each.keeps_gangs]
    assert {"first-fit", "easy", "conservative", "central", "megha", "recorded"} <= set(kept)
    assert not {"sparrow", "hawk", "eagle", "pigeon", "drf", "mch", "tetris", "greedy", "lotes"} & set(kept)


def test_apart_takes_them_apart_and_says_so(tmp_path):
    inputs = ganged()
    scenario = Scenario(schedulers=["sparrow", "easy"], gangs=APART)
    refuse_unfit(scenario, [find_scheduler(name) for name in scenario.schedulers], inputs)
    for name in scenario.schedulers:
        simulate_into(tmp_path / name, of_run(scenario, name, [1]), name, 1, inputs)
    runs = load_runs(tmp_path / "sparrow", tmp_path / "easy")
    assert [run.summary.gangs_apart for run in runs] == [9, 0]
    said = " ".join(notes(runs))
    assert "Beware: sparrow started the tasks of 9 gangs one by one, not together (--gangs apart)" in said
    assert "gangs" not in " ".join(notes(runs[1:]))
    assert 'gangs = "apart"' in (tmp_path / "sparrow" / "scenario.toml").read_text()
    assert "gangs" not in (tmp_path / "easy" / "scenario.toml").read_text()


def test_apart_is_for_those_that_cannot():
    with pytest.raises(InputError, match="gangs: easy, megha keep gangs together; apart is for those that cannot"):
        Scenario(schedulers=["easy", "megha"], gangs=APART)
    with pytest.raises(InputError, match="gangs: must be one of together, apart, not 'both'"):
        Scenario(gangs="both")
