"""Plans of failures in runs: what they draw befalls the tasks, and is told of them, under megha and central."""
import math

import polars as pl
import pytest

from small import CPU, fleet_of, plain
from subak.federation.settings import Federation
from subak.measures.of_run import outcome_counts
from subak.policy import find_scheduler
from subak.simulator.failures.plan import FailurePlan, Rule
from subak.simulator.results import attempt_table, task_table
from subak.simulator.simulate import simulate
from subak.workload.table import make_workload

AT_ONCE = Federation(delay=0.0, service_scale=0.0, heartbeat=1.0)  # messages take no time


def two():
    return fleet_of((1,), (1,))


def run(workload, *rules, recorded=False, scheduler="central", seed=1):
    """The tables of tasks and of attempts that did not finish."""
    fleet = two()
    outcome = simulate(workload, fleet, find_scheduler(scheduler), seed=seed, federation=AT_ONCE,
                       failures=FailurePlan(recorded=recorded, task=list(rules)))
    return task_table(outcome, workload, fleet), attempt_table(outcome, workload, fleet)


def recorded(*outcomes):
    """Tasks of four seconds, one every ten, with what the trace recorded."""
    made = plain(*[(10 * number, 4, 1) for number in range(len(outcomes))])
    return make_workload(made.jobs, made.stages.with_columns(pl.col("cpu").cast(pl.Float64)),
                         made.tasks.with_columns(outcome=pl.Series(outcomes, dtype=pl.String)), CPU)


def test_a_task_that_always_fails_is_tried_as_often_as_it_may():
    tasks, attempts = run(plain((0, 8, 1)), Rule(fail=1.0, fail_after=0.25, exit_code=9, retries=2, backoff=1.0))
    assert attempts.rows() == [(0, 0, "m0", 0.0, 2.0), (0, 0, "m0", 3.0, 5.0), (0, 0, "m0", 7.0, 9.0)]
    assert tasks.select("outcome", "exit_code", "attempts_failed", "attempts", "status", "wait_time").row(0) == (
        "FAILED", 9, 3, 3, "GIVEN_UP", 0.0)


def test_an_attempt_that_runs_on_is_ended_by_its_deadline():
    tasks, attempts = run(plain((0, 8, 1)), Rule(overrun=1.0, run_max=20.0))
    assert attempts.rows() == [(0, 0, "m0", 0.0, 20.0)]
    assert tasks.select("outcome", "reason").row(0) == (
        "TIMED_OUT", "its attempt ran for longer than it may (20 s)")


def test_a_run_time_above_the_deadline_is_cut_off_there():
    tasks, attempts = run(plain((0, 8, 1), (0, 5, 1)), Rule(run_max=5.0))
    assert attempts.rows() == [(0, 0, "m0", 0.0, 5.0)]
    assert tasks["outcome"].to_list() == ["TIMED_OUT", "FINISHED"]


def test_what_the_trace_recorded_happens_again():
    tasks, attempts = run(recorded("FINISH", "FAIL", "KILL", "EVICT", None), recorded=True)
    assert tasks["outcome"].to_list() == ["FINISHED", "FAILED", "CANCELLED", "FINISHED", "FINISHED"]
    assert tasks["exit_code"].to_list() == [0, 1, None, 0, 0]
    assert attempts.select("job", "start", "end").rows() == [(1, 10.0, 14.0), (2, 20.0, 24.0)]
    assert tasks["reason"].to_list()[1:3] == ["its attempt failed with exit code 1", "cancelled by a user"]


def test_users_cancel_what_waits_and_what_runs():
    tasks, attempts = run(plain(*[(0, 50, 1)] * 6), Rule(cancel=1.0, cancel_after=20.0), seed=4)
    assert set(tasks["outcome"]) == {"CANCELLED"} | ({"FINISHED"} if "FINISHED" in set(tasks["outcome"]) else set())
    assert 0 < len(attempts) < 6  # some waited still
    assert (attempts["end"] < 50).all()


def test_who_waits_for_too_long_is_given_up():
    tasks, _ = run(plain((0, 50, 1), (0, 50, 1), (1, 5, 1)), Rule(wait_max=10.0))
    assert tasks.select("outcome", "reason").row(2) == ("TIMED_OUT", "it waited longer than its wait limit (10 s)")
    assert tasks["outcome"].to_list()[:2] == ["FINISHED", "FINISHED"]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_befalls_tasks_under_every_scheduler(seed):
    workload = plain(*[(number / 2, 3, 1) for number in range(40)])
    rule = Rule(fail=0.4, retries=1, backoff=0.5)
    under = [run(workload, rule, scheduler=name, seed=seed)[0] for name in ("megha", "central")]
    assert under[0]["outcome"].to_list() == under[1]["outcome"].to_list()
    counts = outcome_counts(under[0])
    assert 0 < counts.outcomes["FAILED"] < 40
    assert counts.attempts_failed == under[1]["attempts_failed"].sum() > counts.outcomes["FAILED"]


def test_a_service_that_nobody_stops_ends_by_its_deadline():
    tasks, attempts = run(plain((0, math.inf, 1), (0, 3, 1)), Rule(run_max=100.0))
    assert attempts.rows() == [(0, 0, "m0", 0.0, 100.0)]
    assert tasks["outcome"].to_list() == ["TIMED_OUT", "FINISHED"]
