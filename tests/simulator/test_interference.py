"""Interference: tasks that want more CPU than their machine has share it, and end when they have had what they want."""
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invariants import Watch, check, check_amounts, check_attempts, check_shared
from naive_interference import shared_run, work_had
from small import TWO, cases, fleet_of, plain, some_workload, staged
from subak.errors import InputError
from subak.experiment.scenario import Scenario
from subak.fleet.edits import overcommitted
from subak.fleet.speeds import run_seconds
from subak.placement.claims import STATUSES, TASK_FINISHED
from subak.policy import find_scheduler
from subak.resources import Resource
from subak.simulator.engine.heap import SEQUENCE
from subak.simulator.results import machine_rows, task_table
from subak.simulator.simulate import simulate

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))
ORDERED = ["first-fit", "first-fit+backfill", "best-fit+backfill", "worst-fit+backfill+priority", "greedy"]
ALL = [*ORDERED, "tetris", "lotes", "mch", "hdrf", "easy", "conservative"]


def ran(workload, fleet, times=2.0, scheduler="first-fit", **more):
    return simulate(workload, fleet, find_scheduler(scheduler), interference=times, **more)


def spans(*given, **more):
    """The start and the finish of each task."""
    outcome = ran(*given, **more)
    return list(zip(outcome.simulation.progress.start.tolist(), outcome.simulation.interference.end.tolist(),
                    strict=True))


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_two_that_want_all_there_is_get_half_of_it_each():
    assert spans(plain((0, 10, 2), (0, 10, 2)), fleet_of((2,))) == [(0, 20), (0, 20)]


def test_who_comes_and_goes_changes_the_pace_of_the_others():
    # alone to 5, half of it until the first has had its 10 s at 15, then the second's other 5 s alone
    assert spans(plain((0, 10, 2), (5, 10, 2)), fleet_of((2,))) == [(0, 15), (5, 20)]


def test_shares_are_in_proportion_to_what_is_wanted():
    # 4 wanted of 3: three quarters for each, 9 s of work take 12 s; then 1 of 3 is wanted, and 3 s are left of it
    assert spans(plain((0, 9, 3), (0, 12, 1)), fleet_of((3,)), times=1.5) == [(0, 12), (0, 15)]


def test_what_is_held_for_longer_is_waited_for_longer():
    work, fleet = plain((0, 10, 2), (0, 10, 2), (0, 5, 2)), fleet_of((2,))
    assert spans(work, fleet) == [(0, 20), (0, 20), (20, 25)]
    promised = simulate(work, fleet_of((4,)), find_scheduler("first-fit"))
    assert promised.simulation.progress.start.tolist() == [0, 0, 10]  # what it would be if the promise were kept


def test_where_there_is_enough_for_all_no_end_is_changed():
    """So there is one event for each task; the second comes while the first runs, and ends before it."""
    outcome = ran(plain((0, 10, 2), (3, 4, 1), (5, 9, 1)), fleet_of((4,)))
    assert outcome.simulation.events.size[SEQUENCE] == 3


def test_a_machine_interferes_with_nobody_on_another():
    assert spans(plain((0, 10, 2), (0, 10, 2), (0, 10, 1)), fleet_of((2,), (2,))) == [(0, 20), (0, 20), (0, 10)]


def test_what_wants_no_cpu_is_not_slowed_down():
    work = plain((0, 10, 2, 1), (0, 10, 2, 1), (0, 10, 0, 1), resources=TWO)
    assert spans(work, fleet_of((2, 4), resources=TWO)) == [(0, 20), (0, 20), (0, 10)]


def test_memory_is_never_promised_twice():
    work = plain((0, 10, 1, 3), (0, 10, 1, 3), resources=TWO)
    assert spans(work, fleet_of((2, 4), resources=TWO)) == [(0, 10), (10, 20)]


def test_one_task_may_want_more_than_there_is():
    assert spans(plain((0, 10, 3)), fleet_of((2,))) == [(0, 15)]


def test_an_endless_task_slows_others_down_and_never_ends():
    first, second = spans(plain((0, math.inf, 2), (0, 10, 2)), fleet_of((2,)), until=100.0)
    assert (math.isnan(first[1]), second) == (True, (0, 20))


def test_stages_wait_for_the_end_as_it_is():
    stages = [{"request": (2,)}, {"request": (2,)}, {"request": (1,), "depends_on": [0]}]
    work = staged(stages, [(0, 0, 10), (1, 0, 20), (2, 0, 5)])
    assert spans(work, fleet_of((2,))) == [(0, 20), (0, 32.5), (20, 27.5)]


def test_a_machine_that_shrinks_gives_less_and_one_that_leaves_takes_what_was_done():
    shrinks = fleet_of((2,), changes=[(5, 0, True, 1)])
    assert spans(plain((0, 10, 2)), shrinks) == [(0, 15)]
    leaves = fleet_of((2,), (2,), changes=[(6, 0, False, 0)])
    # both share the first machine, and have had 3 s when it goes; the second machine gives them half again
    assert spans(plain((0, 10, 2), (0, 10, 2)), leaves) == [(6, 26), (6, 26)]


def test_the_tasks_table_says_how_much_longer_each_ran():
    work, fleet = plain((0, 10, 2), (5, 10, 2), (40, 7, 2)), fleet_of((2,))
    table = task_table(ran(work, fleet), work, fleet)
    assert table["finish"].to_list() == [15, 20, 47]
    assert table["execution_delay"].to_list() == [5, 5, 0]
    assert "execution_delay" not in task_table(simulate(work, fleet, find_scheduler("first-fit")), work, fleet).columns


def test_machines_differ_in_speed():
    fleet = replace(fleet_of((2,)), speeds=np.array([[0.5]]))
    assert spans(plain((0, 10, 2), (0, 10, 2)), fleet) == [(0, 10), (0, 10)]


def test_machines_promise_whole_units():
    fleet = overcommitted(fleet_of((3, 7), (100, 7), resources=TWO, changes=[(1, 0, True, 20, 7)]), 1.15)
    assert fleet.machines.select("cpu", "memory").rows() == [(3, 7), (115, 7)]
    assert fleet.changes["cpu"].to_list() == [23]


# -- wrong requests ----------------------------------------------------------------------------------------------------


def test_who_asked_for_too_little_cpu_shares_it_and_is_not_ended():
    work = plain(*[(0.0, 10, 10)] * 400)
    outcome = ran(work, fleet_of(*[(30,)] * 400), times=1.0, request_error=0.5)
    assert (outcome.simulation.progress.attempts == 1).all()
    assert sum(part.shape[1] for part in outcome.loop_result.losses) == 0
    asked = outcome.simulation.tasks.request[0, outcome.simulation.tasks.shape]
    assert set(asked.tolist()) == {5, 8, 10, 12, 15}
    assert (outcome.simulation.interference.wants == 10).all()  # what they use, whatever they ask for
    delay = outcome.simulation.interference.end - 10
    assert set(delay.round(9).tolist()) == {0, 3.333333333}  # four who fit by what they ask share 30


def test_who_asked_for_too_little_memory_is_ended_when_it_has_done_a_part():
    work = plain(*[(100.0 * row, 10, 2, 4) for row in range(200)], resources=TWO)
    outcome = ran(work, fleet_of((2, 20), resources=TWO), times=1.0, request_error=0.5)
    losses = np.hstack(outcome.loop_result.losses)
    twice = np.flatnonzero(outcome.simulation.progress.attempts == 2)
    assert sorted(losses[0].astype(int).tolist()) == twice.tolist()
    assert 40 < twice.size < 120
    assert ((losses[3] - losses[2]) < 10).all()


# -- the plain twin, and what must hold --------------------------------------------------------------------------------


def engine_rows(outcome):
    progress, status = outcome.simulation.progress, outcome.simulation.claims.status
    machine, end = machine_rows(outcome), outcome.simulation.interference.end
    return [(STATUSES[status[task]], int(progress.attempts[task]),
             *((float(progress.start[task]), int(machine[task])) if progress.attempts[task] else (None, None)),
             float(end[task]) if status[task] == TASK_FINISHED else None) for task in range(status.size)]


def twin_rows(twin):
    return [(twin.status[task], twin.attempts[task], twin.start[task], twin.machine[task],
             twin.finish[task] if twin.status[task] == "FINISHED" else None) for task in range(len(twin.status))]


def work_is_kept(outcome, workload, fleet):
    """Who finished had its run time at full pace, and nobody more."""
    sim = outcome.simulation
    had = work_had(outcome, workload, fleet)
    for task in np.flatnonzero(sim.claims.status == TASK_FINISHED):
        due = float(run_seconds(sim.speeds, sim.tasks, task, sim.progress.machine[task]))
        if sim.interference.wants[task]:
            assert had.get((task, sim.progress.start[task]), 0.0) == pytest.approx(due, rel=1e-9, abs=1e-9), task
        else:
            assert sim.interference.end[task] == sim.progress.start[task] + due


@settings(quick, max_examples=200)
@given(case=cases(), scheduler=st.sampled_from(ORDERED), times=st.sampled_from([1.5, 2.0, 4.0]),
       until=st.sampled_from([math.inf, math.inf, 4.0, 5.25]))
def test_the_engine_and_the_twin_agree_and_work_is_kept(case, scheduler, times, until):
    workload, fleet = case
    outcome = ran(workload, fleet, times, scheduler, until=until, interval=1.0)
    twin = shared_run(workload, fleet, scheduler, times, until=until)
    assert engine_rows(outcome) == twin_rows(twin)
    work_is_kept(outcome, workload, fleet)


@settings(quick, max_examples=60)
@given(case=cases(endless=False), scheduler=st.sampled_from(ORDERED), times=st.sampled_from([1.0, 1.5, 3.0]),
       error=st.sampled_from([0.0, 0.5]))
def test_rules_hold_after_every_step(case, scheduler, times, error):
    watch = Watch(check)
    ran(*case, times if error else max(times, 1.5), scheduler, request_error=error, interval=1.0, check=watch)
    assert watch.steps > 0


@pytest.mark.parametrize("scheduler", ALL)
def test_under_every_scheduler_work_is_kept(scheduler):
    workload, fleet = some_workload()

    def holds(simulation, _):
        for rule in (check_amounts, check_attempts, check_shared):
            rule(simulation)
    outcome = ran(workload, fleet, 1.5, scheduler, check=holds)
    assert (outcome.simulation.claims.status == TASK_FINISHED).all()
    work_is_kept(outcome, workload, fleet)
    delays = task_table(outcome, workload, fleet)["execution_delay"]
    assert delays.max() > 1.0  # somebody was slowed down


def test_queues_below_their_guarantee_take_places_of_tasks_that_share():
    workload, fleet = some_workload(jobs=60)
    half = workload.jobs.with_columns(queue=pl.Series(["a", "b"] * 30))
    workload = replace(workload, jobs=half)
    outcome = ran(workload, fleet, 1.5, "drf", reclaims_per_hour=3600.0,
                  check=lambda simulation, _: (check_amounts(simulation), check_attempts(simulation),
                                               check_shared(simulation)))
    assert sum(part.shape[1] for part in outcome.loop_result.losses) > 0
    work_is_kept(outcome, workload, fleet)


@pytest.mark.parametrize("scheduler", ["best-fit+backfill", "tetris", "easy", "mch"])
def test_without_a_promise_too_many_nothing_changes(scheduler):
    workload = plain(*[(0.7 * row, 20.0 + 0.1 * row, 1, 5) for row in range(120)], resources=TWO)
    fleet = fleet_of(*[(1, 8)] * 10, resources=TWO)  # memory lets one task on a machine
    without = simulate(workload, fleet, find_scheduler(scheduler))
    shared = ran(workload, fleet, 3.0, scheduler)
    assert without.simulation.progress.start.tobytes() == shared.simulation.progress.start.tobytes()
    ends = without.simulation.progress.start + without.simulation.tasks.run_time
    assert ends.tobytes() == shared.simulation.interference.end.tobytes()
    assert not np.isnan(ends).any()


def test_the_heap_keeps_no_more_than_it_has_room_for():
    workload = plain(*[(0.01 * row, 50.0, 1) for row in range(3000)])
    outcome = ran(workload, fleet_of((60,)), 5.0, "first-fit", interval=100.0)
    assert (outcome.simulation.claims.status == TASK_FINISHED).all()
    work_is_kept(outcome, workload, fleet_of((60,)))


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("more", "said"), [
    ({"interference": 0.5}, "interference: must be from 1 to 100 times the CPU that machines have, or 0 for none, not "
                            "0.5"),
    ({"interference": math.nan}, "interference: must be from 1 to 100 times the CPU that machines have, or 0 for none, "
                                 "not nan"),
    ({"interference": 1.0}, "interference: of machines that promise just what they have (1) tasks get what they asked "
                            "for; give more than 1, or request_error, with which they want more than they asked for"),
    ({"interference": 2.0, "schedulers": ["megha"]},
     "interference: megha is a federation, whose workers give what they promise; tasks may share CPU under the others"),
    ({"interference": 2.0, "schedulers": ["recorded"]},
     "interference: recorded is what a log says; tasks may share CPU under the others"),
    ({"interference": 2.0, "slow_start": 0.5},
     "interference: goes with slow_start 1, since what waits for its inputs wants no CPU, not 0.5"),
    ({"interference": 2.0, "energy": "google2011"},
     "energy: of machines that promise more CPU than they have it is not known what they draw; leave out one of energy "
     "and interference"),
])
def test_what_cannot_be_is_refused(more, said):
    with pytest.raises(InputError) as caught:
        Scenario(**more)
    assert str(caught.value) == said


def test_what_has_no_cpu_is_refused():
    slots = (Resource("slot", 1.0, "slots"),)
    with pytest.raises(InputError) as caught:
        ran(plain((0, 1, 1), resources=slots), fleet_of((1,), resources=slots))
    assert str(caught.value) == "interference: tasks share a resource named cpu; there is slot"
    with pytest.raises(InputError, match="may promise at most 2147483647 units of cpu, one would promise 4000000000"):
        ran(plain((0, 1, 1)), fleet_of((2e9,)))


# -- the command line --------------------------------------------------------------------------------------------------


def test_the_command_line_measures_it_and_repeats_to_the_byte(tmp_path, run):
    code, _, said = run("simulate", "--scheduler", "megha", "--interference", "1.5")
    assert (code, said.count("\n")) == (2, 1)
    folder, first, again = (tmp_path / name for name in ("workload", "first", "again"))
    (folder / "fleet").mkdir(parents=True)
    plain((0, 10, 2), (5, 10, 2), (40, 7, 2)).write(folder)
    fleet_of((2,)).write(folder / "fleet")
    code, shown, _ = run("simulate", folder, "--interference", "2", "--out", first)
    assert code == 0
    assert "Execution delay" in shown
    assert run("simulate", "--scenario", first / "scenario.toml", "--out", again)[0] == 0
    assert (first / "tasks.parquet").read_bytes() == (again / "tasks.parquet").read_bytes()
    assert pl.read_parquet(first / "tasks.parquet")["execution_delay"].to_list() == [5, 5, 0]
    assert "5 s, for sharing its machine's CPU" in run("explain", first, "0/0")[1]
    assert "Execution delay" not in run("explain", first, "2/0")[1]
    assert "interference = 2.0" in (first / "scenario.toml").read_text()
