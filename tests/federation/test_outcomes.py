"""How tasks end: by hand, on a network without delay whose masters cost nothing, so that every time is plain."""
import math

import pytest

from subak.federation.megha.jobs import OUTCOMES
from subak.federation.messages import (
    CANCELLED,
    FINISHED_WELL,
    GANG_FAILED,
    HAS_FAILED,
    LOST_TOO_OFTEN,
    RAN_TOO_LONG,
    REASONS,
    STAGE_FAILED,
    USED_TOO_MUCH,
    WAITED_TOO_LONG,
)
from subak.federation.settings import Federation
from subak.placement.claims import STATUSES
from subak.simulator.engine.state import LOOP_DONE
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated
from subak.simulator.torture.torture import INTERVAL, Case, Stage, Terms, build, failures_of, next_event

NEVER = math.inf
FINE = (0, NEVER, NEVER)  # of a task that finishes
PLAIN = Federation(global_masters=1, local_masters=1, delay=0.0, service_scale=0.0, heartbeat=1.0)
ALONE = [Stage(0, (1, 0))]


def terms(retries=0, losses_max=30_000, backoff=1.0, wait_max=NEVER, run_max=NEVER):
    return Terms(retries, losses_max, backoff, wait_max, run_max)


def ended(tasks, planned, on, stages=ALONE, machines=((1, 1),), changes=()):
    """The federation when nothing goes on any more. A task is (stage, arrival, run time)."""
    jobs = 1 + max(stage.job for stage in stages)
    case = Case(seed=1, machines=list(machines), racks=[""] * len(machines), absent=[], changes=list(changes),
                queues=["a"] * jobs, stages=list(stages), tasks=list(tasks), settings=PLAIN, plan=None,
                planned=list(planned), terms=on)
    opened = open_federated(*build(case), MEGHA, PLAIN, 1, INTERVAL, NEVER, compiled=False, failures=failures_of(case))
    while next_event(opened)[0] != LOOP_DONE:
        pass
    return opened


def said(opened, task=0):
    """The outcome and why, attempts, those that failed, the last one's start, and the status of a task."""
    ending, sim = opened.roles.jobs.ending[task], opened.simulation
    assert opened.roles.submitters[0].tasks.counts.tasks_open == 0, "a task is open still"
    return (OUTCOMES[ending["outcome"]], int(ending["reason"]), int(sim.progress.attempts[task]), int(ending["failed"]),
            float(sim.progress.start[task]), STATUSES[sim.claims.status[task]])


def test_a_failed_attempt_is_tried_again_after_a_while_that_doubles():
    opened = ended([(0, 0.0, 5.0)], [(2, 2.0, NEVER)], terms(retries=3, backoff=1.0))
    assert said(opened) == ("FINISHED", FINISHED_WELL, 3, 2, 7.0, "FINISHED")  # 0 to 2, 3 to 5, 7 to 12
    assert opened.simulation.clock.now == pytest.approx(12.0)
    assert opened.roles.jobs.ending[0]["code"] == 0


def test_a_task_that_fails_more_often_than_it_may_has_failed_with_its_exit_code():
    opened = ended([(0, 0.0, 5.0)], [(5, 2.0, NEVER)], terms(retries=1, backoff=1.0))
    assert said(opened) == ("FAILED", HAS_FAILED, 2, 2, 3.0, "GIVEN_UP")
    assert opened.roles.jobs.ending[0]["code"] == 7


@pytest.mark.parametrize(("run_time", "outcome", "reason"), [
    (5.0, "TIMED_OUT", RAN_TOO_LONG), (2.0, "FINISHED", FINISHED_WELL), (NEVER, "TIMED_OUT", RAN_TOO_LONG)])
def test_an_attempt_runs_for_no_longer_than_it_may(run_time, outcome, reason):
    opened = ended([(0, 0.0, run_time)], [FINE], terms(run_max=2.0))
    assert said(opened)[:3] == (outcome, reason, 1)
    assert opened.simulation.clock.now == pytest.approx(2.0)


def test_a_task_may_run_too_long_as_often_as_it_may_fail():
    assert said(ended([(0, 0.0, 5.0)], [FINE], terms(retries=2, run_max=2.0)))[:4] == ("TIMED_OUT", RAN_TOO_LONG, 3, 3)


@pytest.mark.parametrize(("cancel_at", "attempts", "end"), [(0.0, 0, 0.0), (1.0, 1, 1.0)])
def test_a_task_is_cancelled_when_it_comes_and_while_it_runs(cancel_at, attempts, end):
    opened = ended([(0, 0.0, 5.0)], [(0, NEVER, cancel_at)], terms())
    outcome, reason, begun, *_, status = said(opened)
    assert (outcome, reason, status) == ("CANCELLED", CANCELLED, "GIVEN_UP")
    assert begun <= max(attempts, 1)
    assert opened.simulation.clock.now == pytest.approx(end)


def test_a_task_is_cancelled_while_it_waits_and_the_next_goes_on():
    tasks, planned = [(0, 0.0, 5.0), (0, 0.5, 5.0), (0, 0.6, 1.0)], [FINE, (0, NEVER, 2.0), FINE]
    opened = ended(tasks, planned, terms())
    assert said(opened, 1)[:3] == ("CANCELLED", CANCELLED, 0)
    assert said(opened, 2) == ("FINISHED", FINISHED_WELL, 1, 0, 5.0, "FINISHED")


def test_a_task_is_cancelled_between_two_attempts():
    assert said(ended([(0, 0.0, 5.0)], [(1, 2.0, 2.5)], terms(retries=3)))[:4] == ("CANCELLED", CANCELLED, 1, 1)


def test_a_task_that_has_ended_is_not_cancelled():
    assert said(ended([(0, 0.0, 1.0), (0, 0.0, 9.0)], [(0, NEVER, 3.0), FINE], terms()))[0] == "FINISHED"


def test_a_task_waits_for_no_longer_than_it_may_and_one_that_runs_goes_on():
    opened = ended([(0, 0.0, 10.0), (0, 0.5, 1.0)], [FINE, FINE], terms(wait_max=3.0))
    assert said(opened, 0)[:3] == ("FINISHED", FINISHED_WELL, 1)
    assert said(opened, 1)[:3] == ("TIMED_OUT", WAITED_TOO_LONG, 0)


@pytest.mark.parametrize(("losses_max", "outcome"), [(0, "LOST"), (1, "FINISHED")])
def test_a_task_is_lost_when_its_machine_leaves_more_often_than_it_may(losses_max, outcome):
    opened = ended([(0, 0.0, 5.0)], [FINE], terms(losses_max=losses_max),
                   changes=[(1.0, 0, False, 1, 1), (2.0, 0, True, 1, 1)])
    assert said(opened)[:2] == (outcome, LOST_TOO_OFTEN if outcome == "LOST" else FINISHED_WELL)


def test_what_depends_on_a_stage_that_failed_is_cancelled_and_the_rest_goes_on():
    stages = [Stage(0, (1, 0)), Stage(0, (1, 0), [0]), Stage(0, (1, 0), [1]), Stage(0, (1, 0))]
    tasks = [(0, 0.0, 1.0), (1, 0.0, 1.0), (2, 0.0, 1.0), (2, 4.0, 1.0), (3, 0.0, 1.0)]
    opened = ended(tasks, [(9, 0.5, NEVER), FINE, FINE, FINE, FINE], terms(), stages)
    order = sorted(range(5), key=lambda place: tasks[place][1])
    outcomes = {order[row]: said(opened, row)[:2] for row in range(5)}
    assert outcomes == {0: ("FAILED", HAS_FAILED), 1: ("CANCELLED", STAGE_FAILED), 2: ("CANCELLED", STAGE_FAILED),
                        3: ("CANCELLED", STAGE_FAILED), 4: ("FINISHED", FINISHED_WELL)}


def test_a_gang_fails_together_even_what_of_it_comes_later():
    gang = [Stage(0, (1, 0), gang=True)]
    opened = ended([(0, 0.0, 5.0), (0, 0.0, 5.0)], [(1, 2.0, NEVER), FINE], terms(retries=3), gang, ((2, 1),))
    assert said(opened, 0)[:4] == ("FAILED", HAS_FAILED, 1, 1), "a gang is not tried again"
    assert said(opened, 1)[:2] == ("FAILED", GANG_FAILED)
    late = ended([(0, 0.0, 5.0), (0, 4.0, 5.0)], [(0, NEVER, 1.0), FINE], terms(), gang, ((2, 1),))
    assert said(late, 0)[:3] == ("CANCELLED", CANCELLED, 0)
    assert said(late, 1)[:3] == ("FAILED", GANG_FAILED, 0)
    assert late.roles.jobs.gang_row.tolist() == [-1], "the gang is not open any more"


def test_every_reason_that_ends_a_task_has_an_outcome():
    from subak.federation.megha.jobs import OUTCOME_OF

    final = (FINISHED_WELL, HAS_FAILED, RAN_TOO_LONG, WAITED_TOO_LONG, CANCELLED, STAGE_FAILED, GANG_FAILED,
             LOST_TOO_OFTEN, USED_TOO_MUCH)
    assert [bool(OUTCOME_OF[reason]) for reason in range(len(REASONS))] == [
        reason in final for reason in range(len(REASONS))]
