"""Delay scheduling and where inputs lie: by hand, against the plain twin, and what far inputs cost."""
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batches import SLOTS, batch, machines
from invariants import Watch, check_amounts, check_attempts, check_counts, check_stages, check_summaries
from naive_delay import Machine, Run, Stage, Task
from small_inputs import placed, racked
from subak.errors import InputError
from subak.experiment.scenario import Scenario
from subak.fleet.locality import LEVELS
from subak.fleet.table import make_fleet
from subak.measures.of_run import locality, place_counts
from subak.measures.run_folders import load_runs
from subak.policy import find_scheduler
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)


def rules(simulation, _waiting):
    check_amounts(simulation)
    check_summaries(simulation.fleet)
    for check in (check_counts, check_attempts, check_stages):
        check(simulation)


def run(workload, fleet, wait, name="delay-scheduling"):
    outcome = simulate(workload, fleet, find_scheduler(name), check=Watch(rules), locality_wait=wait)
    return task_table(outcome, workload, fleet)


THREE = racked(machines((1, 0), (1, 0), (1, 0)), ["a", "a", "b"])


def test_a_stage_waits_for_its_machine_then_its_rack_then_takes_any():
    """Three maps whose input m0 holds, 10 s each: one at 0, one in the rack after 4 s, one anywhere after 4 s more.

    The start in the rack is of level 1, from which the stage need wait for the rack's time alone.
    """
    table = run(placed(batch((3, 10, 0, 0)), [["m0"]] * 3), THREE, 4.0)
    assert table.select("start", "machine", "locality").rows() == [
        (0.0, "m0", "node-local"), (4.0, "m1", "rack-local"), (8.0, "m2", "off-rack")]


def test_a_stage_that_declines_lets_the_next_one_go():
    """Job 0, whose input is on m0, declines m1, which job 1 takes; it may run in the rack from 4 s on: on m1, at 6 s.
    """
    table = run(placed(batch((2, 10, 0, 0), (2, 3, 0, 0)), [["m0"]] * 2 + [["m1"]] * 2), THREE, 4.0)
    assert table.select("start", "machine").rows() == [(0.0, "m0"), (6.0, "m1"), (0.0, "m1"), (3.0, "m1")]


def test_time_runs_while_a_machine_stays_idle_that_was_offered_before_the_last_start():
    """m0 is offered first and declined, m1 taken; from then on the stage waits anew, and takes m0 after 4 + 4 s."""
    fleet = racked(machines((1, 0), (1, 0)), ["a", "b"])
    table = run(placed(batch((2, 10, 0, 0)), [["m1"]] * 2), fleet, 4.0)
    assert table.select("start", "machine").rows() == [(0.0, "m1"), (8.0, "m0")]


def test_without_a_wait_it_is_fair_sharing_that_prefers_near_inputs():
    """Four maps of job 0, two of job 1, on three machines: the stage with fewer running tasks goes first."""
    table = run(placed(batch((4, 10, 0, 0), (2, 10, 0, 0)), [["m2"]] * 4 + [["m1"]] * 2), THREE, 0.0)
    assert table.select("start", "machine").rows() == [
        (0.0, "m0"), (0.0, "m2"), (10.0, "m0"), (10.0, "m2"), (0.0, "m1"), (10.0, "m1")]


def test_tasks_without_inputs_wait_for_nobody():
    table = run(placed(batch((2, 1, 1, 2)), [None, [], ["m1"]]), racked(machines((1, 0), (1, 1)), ["a", "a"]), 50.0)
    assert table["start"].to_list() == [0.0, 0.0, 1.0]
    assert table["locality"].to_list() == [None, None, "node-local"]


def test_far_inputs_take_longer_under_every_scheduler():
    workload = placed(batch((3, 10, 0, 0)), [["m0"], ["m0", "gone"], ["gone"]], rack_local=1.5, off_rack=2.0)
    table = run(workload, THREE, 5.0, "first-fit+backfill")
    assert table["finish"].to_list() == [10.0, 15.0, 10.0]  # who holds an input that the fleet has not is not known
    moved = placed(batch((1, 10, 0, 0)), [["m2"]], rack_local=1.5, off_rack=2.0)
    assert run(moved, THREE, 5.0, "first-fit+backfill")["finish"].to_list() == [20.0]


def test_how_near_tasks_ran_is_a_measure_under_every_scheduler(tmp_path, run):
    """Maps whose input m0 holds: one is there, one in its rack, one in the other; that of the fourth nobody knows."""
    workload = placed(batch((4, 3, 0, 0)), [["m0"], ["m0"], ["m0"], None])
    table = task_table(simulate(workload, THREE, find_scheduler("first-fit")), workload, THREE)
    assert locality(place_counts(table)) == {level: 1 / 3 for level in LEVELS}
    for nowhere in (table.filter(pl.col("locality").is_null()), table.drop("locality")):
        assert locality(place_counts(nowhere)) == {}
    (tmp_path / "W" / "fleet").mkdir(parents=True)
    workload.write(tmp_path / "W")
    THREE.write(tmp_path / "W" / "fleet")
    code, out, _ = run("compare", tmp_path / "W", "--schedulers", "first-fit,delay-scheduling,sparrow", "--out",
                       tmp_path / "R")
    assert code == 0
    found = {each.label: each.summary.locality for each in load_runs(tmp_path / "R")}
    assert found["first-fit"] == pytest.approx({level: 1 / 3 for level in LEVELS})
    assert found["delay-scheduling"] == {"node-local": 1.0, "rack-local": 0.0, "off-rack": 0.0}
    assert set(found["sparrow"]) == set(LEVELS)
    assert re.search(r"node-local +33.3 % +100 % \*", out)
    page = (tmp_path / "R" / "report.html").read_text()
    assert "Locality" in page and "on a machine that holds it (node-local)" in page
    assert "in the rack of the machine where it ran" in run("explain", tmp_path / "R" / "runs" / "first-fit", "0/1")[1]


def test_a_machine_whose_rack_is_not_known_is_in_no_rack():
    table = run(placed(batch((1, 10, 0, 0)), [["m1"]], 1.5, 2.0), racked(machines((1, 0), (0, 1)), [None, None]), 1.0)
    assert table.select("start", "finish", "locality").rows() == [(2.0, 22.0, "off-rack")]


def test_a_task_whose_machine_leaves_is_found_again():
    changes = pl.DataFrame([(3.0, 0, False, 0.0, 0.0), (8.0, 0, True, 2.0, 0.0)], orient="row", schema={
        "time": pl.Float64, "machine": pl.UInt32, "present": pl.Boolean, "map_slot": pl.Float64,
        "reduce_slot": pl.Float64})
    fleet = make_fleet(machines((2, 0), (1, 0)).machines, SLOTS, changes=changes)
    table = run(placed(batch((3, 5, 0, 0)), [["m0"]] * 3), fleet, 20.0)
    assert table.select("start", "machine", "attempts").rows() == [(8.0, "m0", 2), (8.0, "m0", 2), (13.0, "m0", 1)]


def test_what_nobody_could_mean_is_refused():
    with pytest.raises(InputError, match="locality_wait: must be a finite number of seconds, 0 or more, not -1"):
        Scenario(schedulers=["delay-scheduling"], locality_wait=-1.0)
    with pytest.raises(InputError, match="locality_wait: none of the schedulers first-fit waits"):
        Scenario(schedulers=["first-fit"], locality_wait=1.0)
    with pytest.raises(InputError, match="request_error: delay-scheduling is delay scheduling, for which"):
        Scenario(schedulers=["delay-scheduling"], request_error=0.5)
    with pytest.raises(InputError, match="off_rack must be a finite number, 1 or more"):
        placed(batch((1, 1, 0, 0)), [["m0"]], off_rack=0.5)
    far = placed(batch((1, 1, 0, 0)), [["m0"]], off_rack=2.0)
    with pytest.raises(InputError, match="off_rack: sparrow is a federation"):
        simulate(far, THREE, find_scheduler("sparrow"))


@st.composite
def cases(draw):
    """Jobs, where their inputs lie, machines in racks, waits; times such that no two sums are equal by chance."""
    jobs = [(draw(st.integers(0, 4)), draw(st.floats(1, 20)), draw(st.integers(0, 3)), draw(st.floats(1, 20)),
             draw(st.sampled_from([0.0, 0.0, 1.7, 6.3]))) for _ in range(draw(st.integers(1, 4)))]
    jobs = [job for job in jobs if job[0] + job[2]] or [(1, 3.3, 1, 2.2, 0.0)]
    slots = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(draw(st.integers(1, 5)))] + [(1, 1)]
    racks = [draw(st.sampled_from(["a", "b", None])) for _ in slots]
    names = [f"m{row}" for row in range(len(slots))] + ["elsewhere"]
    count = sum(job[0] + job[2] for job in jobs)
    inputs = [draw(st.lists(st.sampled_from(names), max_size=3)) for _ in range(count)]
    return jobs, slots, racks, inputs, draw(st.sampled_from([0.0, 0.9, 4.1, 100.0]))


@quick
@given(cases())
def test_starts_agree_with_the_plain_twin(case):
    jobs, slots, racks, inputs, wait = case
    workload = placed(batch(*jobs), inputs, 1.3, 1.9)
    fleet = racked(machines(*slots), racks)
    table = run(workload, fleet, wait)
    stage = workload.tasks["stage"].to_list()
    stages = [Stage(row["depends_on"][0] if row["depends_on"] else None, row["name"] == "reduce")
              for row in workload.stages.to_dicts()]
    held = [{int(name[1:]) for name in names if name != "elsewhere"} for names in workload.tasks["inputs"].to_list()]
    tasks = [Task(number, row["arrival"], row["run_time"], names)
             for number, row, names in zip(stage, workload.tasks.to_dicts(), held, strict=True)]
    twin = Run(tasks, stages, [Machine(each, rack) for each, rack in zip(slots, racks, strict=True)], (wait, wait),
               (1.0, 1.3, 1.9))
    # only maps take longer far from their inputs
    twin.factor_of = lambda row, level: twin.factors[level] if stages[tasks[row].stage].kind == 0 else 1.0
    found = twin.go()
    for row, (start, machine) in found.items():
        assert (table["start"][row], table["machine"][row]) == (pytest.approx(start), f"m{machine}"), row
    assert len(found) == len(tasks)
    assert np.isfinite(table["finish"].to_numpy()).all()
