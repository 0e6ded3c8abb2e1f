"""Megha where the answer is known: against the central scheduler, by hand, and what other simulators get wrong."""
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings

from small import CPU, cases, fleet_of, plain, staged
from subak.federation.settings import Federation
from subak.placement.claims import STATUSES, TASK_FINISHED, TASK_UNPLACEABLE, TASK_WAITING
from subak.policy import find_scheduler
from subak.resources import Resource
from subak.simulator.federated.by_task import states_by_task
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
INSTANT = Federation(global_masters=1, local_masters=1, delay=0.0, service_scale=0.0, heartbeat=math.inf)
DELAY = 0.0005
TWO_MASTERS = Federation(global_masters=2, local_masters=1, service_scale=0.0, heartbeat=10.0)


def run(workload, fleet, federation, name="megha", until=math.inf):
    return simulate(workload, fleet, find_scheduler(name), federation=federation, until=until)


def placements(outcome):
    """Where and when each task ran last, by the fleet's rows."""
    progress, order = outcome.simulation.progress, outcome.prepared.machine_order
    machine = np.where(progress.machine >= 0, order[progress.machine], -1)
    return list(zip(outcome.simulation.claims.status.tolist(), machine.tolist(),
                    np.nan_to_num(progress.start, nan=-1.0).tolist(), strict=True))


@quick
@given(case=cases(endless=False, dependencies=False))
def test_without_delay_one_of_each_master_places_as_the_central_first_fit(case):
    workload, fleet = case
    # A task that takes no time ends before the next of the same instant arrives; a central step takes them together.
    assume(workload.tasks["run_time"].min() > 0)
    if len(fleet.changes):
        fleet = type(fleet)(fleet.resources, fleet.machines, fleet.attributes, fleet.changes.clear(), fleet.provenance)
    central = simulate(workload, fleet, find_scheduler("first-fit+backfill"))
    assert placements(run(workload, fleet, INSTANT)) == placements(central)


def test_where_nobody_waits_the_strict_order_is_the_same():
    workload = plain(*[(float(number % 7), 3.0, 1 + number % 3) for number in range(40)])
    fleet = fleet_of(*[(4,)] * 40)
    assert placements(run(workload, fleet, INSTANT)) == placements(
        simulate(workload, fleet, find_scheduler("first-fit")))


def test_two_stale_claims_on_one_machine_one_is_refused():
    """Stale commit: a machine of 1 and 2, a claim of 0.25 and 0.75 stands, two more are made at the same moment."""
    resources = (Resource("cpu", 0.25, "cores"), Resource("memory", 0.25, "GB"))
    workload = staged([{"job": job, "request": (0.25, 0.75)} for job in range(3)],
                      [(0, 0.0, 100.0), (1, 1.0, 100.0), (2, 1.0, 100.0)], resources)
    outcome = run(workload, fleet_of((1.0, 2.0), resources=resources), TWO_MASTERS, until=50.0)
    status = outcome.simulation.claims.status.tolist()
    assert [STATUSES[code] for code in status] == ["RUNNING", "RUNNING", "WAITING"]
    fleet = outcome.simulation.fleet
    assert [fleet.free[0, 0] * 0.25, fleet.free[1, 0] * 0.25] == [0.5, 0.5]
    refused = sum(local.tally.refused_not_free for local in outcome.federated.roles.locals)
    assert refused == 1, "one claim is refused for want of memory"
    assert states_by_task(outcome.federated.roles)["refusals"].tolist() == [0, 0, 1]


def test_a_launch_takes_three_messages():
    outcome = run(plain((0.0, 1.0, 1)), fleet_of((1,)), Federation(global_masters=1, local_masters=1, service_scale=0))
    assert outcome.simulation.progress.start[0] == pytest.approx(3 * DELAY)
    table = task_table(outcome, plain((0.0, 1.0, 1)), fleet_of((1,)))
    assert table["communication"][0] == pytest.approx(3 * DELAY)
    assert table["framework_queueing"][0] == pytest.approx(0.0, abs=1e-12)


def test_several_jobs_at_one_instant_all_run_once():
    workload = plain(*[(5.0, 2.0, 1)] * 30)
    outcome = run(workload, fleet_of((4,), (4,), (4,)), Federation(global_masters=3, local_masters=2))
    assert (outcome.simulation.claims.status == TASK_FINISHED).all()
    assert (outcome.simulation.progress.attempts == 1).all()


def test_constraints_that_no_machine_meets_are_reported():
    workload = staged([{"job": 0, "request": (1,), "constraints": [("gpu", "=", "yes")]},
                       {"job": 1, "request": (1,)}], [(0, 0.0, 1.0), (1, 0.0, 1.0)])
    outcome = run(workload, fleet_of((1,), (1,)), Federation(global_masters=2, local_masters=2))
    assert outcome.simulation.claims.status.tolist() == [TASK_UNPLACEABLE, TASK_FINISHED]
    assert outcome.prepared.reason_of_shape[outcome.simulation.tasks.shape[0]] == "no machine that meets gpu = yes"


def test_fractions_of_a_second_count():
    outcome = run(plain((0.25, 0.125, 1)), fleet_of((1,)), INSTANT)
    assert (outcome.simulation.progress.start[0], outcome.loop_result.end) == (0.25, 0.375)


def test_more_global_masters_than_jobs():
    workload = plain((0.0, 1.0, 1), (0.5, 1.0, 2))
    outcome = run(workload, fleet_of((2,), (2,)), Federation(global_masters=7, local_masters=2))
    assert (outcome.simulation.claims.status == TASK_FINISHED).all()


def gang(request, run_times, arrival=0.0):
    workload = staged([{"job": 0, "request": request}], [(0, arrival, run_time) for run_time in run_times])
    return type(workload)(workload.resources, workload.jobs, workload.stages.with_columns(gang=pl.lit(True)),
                          workload.tasks, workload.provenance)


def test_a_gang_starts_together():
    masters = Federation(global_masters=1, local_masters=3)
    outcome = run(gang((1,), [5.0, 6.0, 7.0]), fleet_of((1,), (1,), (1,)), masters)
    start = outcome.simulation.progress.start
    assert (outcome.simulation.claims.status == TASK_FINISHED).all()
    assert start.max() - start.min() < 3 * DELAY


def test_a_gang_that_does_not_fit_together_does_not_start():
    outcome = run(gang((1,), [5.0, 6.0, 7.0]), fleet_of((1,), (1,)), Federation(global_masters=1, local_masters=2))
    assert (outcome.simulation.claims.status == TASK_WAITING).all()
    assert (outcome.simulation.progress.attempts == 0).all()


def test_what_runs_on_a_machine_that_leaves_runs_elsewhere():
    fleet = fleet_of((1,), (1,), changes=[(2.0, 0, False, 0.0)])
    outcome = run(plain((0.0, 10.0, 1)), fleet, Federation(global_masters=1, local_masters=1))
    assert outcome.simulation.claims.status.tolist() == [TASK_FINISHED]
    assert outcome.simulation.progress.attempts.tolist() == [2]
    assert 12.0 < outcome.loop_result.end < 12.1


def test_a_queue_below_its_share_preempts_the_one_above():
    workload = staged([{"job": 0, "request": (1,)}, {"job": 1, "request": (1,)}],
                      [(0, 0.0, 100.0)] * 4 + [(1, 10.0, 10.0)], CPU, jobs=["a", "b"])
    jobs = workload.jobs.with_columns(queue=pl.Series(["greedy", "late"]))
    workload = type(workload)(workload.resources, jobs, workload.stages, workload.tasks, workload.provenance)
    shares = {"greedy": 0.5, "late": 0.5}
    for fairness, preempted in (("strict", 1), ("off", 0)):
        outcome = run(workload, fleet_of((2,), (2,)), Federation(
            global_masters=2, local_masters=2, preemption=fairness, shares=shares))
        assert (outcome.simulation.claims.status == TASK_FINISHED).all()
        assert states_by_task(outcome.federated.roles)["preempted"].sum() == preempted


def preempted_tasks(federation, *stages, tasks, machines):
    """Which tasks were preempted, how often, in a workload of stages (queue, priority, cores), each a job of its own.

    One core where none are said.
    """
    workload = staged([{"job": row, "request": tuple(cores) or (1,), "priority": priority}
                       for row, (_, priority, *cores) in enumerate(stages)], tasks, CPU)
    jobs = workload.jobs.with_columns(queue=pl.Series([queue for queue, *_ in stages]))
    workload = type(workload)(workload.resources, jobs, workload.stages, workload.tasks, workload.provenance)
    outcome = run(workload, fleet_of(*machines), federation, until=90.0)
    return states_by_task(outcome.federated.roles)["preempted"].tolist()


HALVES = {"early": 0.5, "late": 0.5}


def test_the_least_priority_is_preempted_first_and_of_equals_the_latest():
    federation = Federation(global_masters=2, local_masters=1, preemption="strict", shares=HALVES)
    early = [(0, 0.0, 100.0), (1, 1.0, 100.0), (2, 2.0, 100.0), (0, 3.0, 100.0)]
    stages = [("early", 2), ("early", 0), ("early", 1), ("late", 0)]
    for late, victims in ((1, [0, 1, 0, 0]), (2, [0, 1, 1, 0])):
        found = preempted_tasks(federation, *stages, tasks=[*early, *[(3, 10.0, 100.0)] * late], machines=[(4,)])
        assert found == [*victims, *[0] * late]
    alike = [("early", 0), ("early", 0), ("early", 0), ("late", 0)]
    assert preempted_tasks(federation, *alike, tasks=[*early, (3, 10.0, 100.0)], machines=[(4,)]) == [0, 0, 0, 1, 0]


def test_the_queue_furthest_above_its_share_is_preempted_not_the_one_that_holds_most():
    """Of ten cores big is due 6 and has 7, small is due 1 and has 3."""
    federation = Federation(global_masters=2, local_masters=1, preemption="strict",
                            shares={"big": 0.6, "small": 0.1, "late": 0.3})
    tasks = [(0, 0.0, 100.0)] * 7 + [(1, 1.0, 100.0)] * 2 + [(1, 2.0, 100.0), (2, 10.0, 100.0)]
    found = preempted_tasks(federation, ("big", 0), ("small", 0), ("late", 0), tasks=tasks, machines=[(10,)])
    assert found == [0] * 9 + [1, 0]


def test_of_queues_equally_above_their_shares_the_next_is_preempted_where_the_first_makes_no_room():
    """Of four cores a and b are due one each and have two: a on two machines of one, b on one of two, as late wants."""
    federation = Federation(global_masters=1, local_masters=1, preemption="strict",
                            shares={"a": 0.25, "b": 0.25, "late": 0.5})
    tasks = [(1, 0.0, 100.0), (0, 1.0, 100.0), (0, 1.0, 100.0), (2, 10.0, 100.0)]
    assert preempted_tasks(federation, ("a", 0, 1), ("b", 0, 2), ("late", 0, 2), tasks=tasks,
                           machines=[(1,), (1,), (2,)]) == [1, 0, 0, 0]


def test_only_under_the_papers_rule_a_queue_rises_above_its_share_and_loses_in_turn():
    """Three machines, of which each queue is due one and a half: with two of them either is above that."""
    def preempted(rule):
        federation = Federation(global_masters=2, local_masters=1, preemption=rule, shares=HALVES, preemptions_max=1)
        found = preempted_tasks(federation, ("early", 0), ("late", 0), machines=[(1,)] * 3,
                                tasks=[(0, 0.0, 100.0)] * 3 + [(1, 10.0, 100.0)] * 3)
        return sum(found[:3]), sum(found[3:])

    assert preempted("strict") == (1, 0)
    first, in_turn = preempted("paper")
    assert first > 1
    assert in_turn > 0


def test_priority_goes_first_and_waiting_counts_as_priority():
    workload = staged([{"job": 0, "request": (1,), "priority": 0}, {"job": 1, "request": (1,), "priority": 0},
                       {"job": 2, "request": (1,), "priority": 1}],
                      [(0, 0.0, 10.0), (1, 1.0, 10.0), (2, 5.0, 10.0)])
    def starts(seconds):
        federation = Federation(global_masters=1, local_masters=1, order="priority", priority_seconds=seconds)
        return run(workload, fleet_of((1,)), federation).simulation.progress.start

    assert starts(3600.0)[2] < starts(3600.0)[1], "the later task is more important"
    assert starts(3.0)[1] < starts(3.0)[2], "four seconds of waiting outweigh a priority of three"


def test_the_job_with_the_fewest_tasks_goes_first_and_of_equals_the_earlier():
    """A machine for one is busy until 10 s; then the jobs of one task go, in order of arrival, before that of two."""
    workload = staged([{"job": job, "request": (1,)} for job in range(4)],
                      [(0, 0.0, 10.0), (1, 1.0, 10.0), (1, 1.0, 10.0), (2, 2.0, 10.0), (3, 3.0, 10.0)])

    def served(order):
        federation = Federation(global_masters=1, local_masters=1, order=order)
        return np.argsort(run(workload, fleet_of((1,)), federation).simulation.progress.start).tolist()

    assert served("fifo") == [0, 1, 2, 3, 4]
    assert served("fewest-tasks") == [0, 3, 4, 1, 2]
